"""Formulas as text for people: the language itself in canonical form, or with the numbers put in."""

from __future__ import annotations

from collections.abc import Callable

from scenario.formulas.expr import UNLIMITED, Binary, Blank, Call, Compare, Flag, If, Logic, Name, Negate, Node, Not, Number, Text

Label = Callable[[str], str]
"""What to print for a name: the name itself, or its value with a unit."""

_RANK = {"if": 0, "or": 1, "and": 2, "not": 3, "compare": 4, "+": 5, "-": 5, "*": 6, "/": 6, "//": 6, "%": 6,
         "negate": 7, "**": 8, "atom": 9}  # fmt: skip


def compile_text(node: Node, label: Label = lambda name: name, *, signs: dict[str, str] | None = None) -> str:
    """The formula as text. With the defaults the result parses to the same tree.

    ``label`` prints names; ``signs`` replaces operators (``{"*": "×"}``) for reading rather than parsing.
    """
    return _text(node, label, signs or {})[0]


PLAIN = {"*": "×", "<=": "≤", ">=": "≥", "!=": "≠", "-": "−", "**": "^"}
"""Signs for explanations on a terminal or a page."""


def _literal(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def reading_literal(value: float) -> str:
    """A number of a formula for reading: thousands and millions of them as a power of ten."""
    if abs(value) >= 1e6 and value == int(value):
        digits = f"{value:.12e}"
        mantissa, exponent = digits.split("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
        if len(mantissa) <= 4:
            return f"{mantissa}e{int(exponent)}"
    return _literal(value)


def _text(node: Node, label: Label, signs: dict[str, str]) -> tuple[str, int]:
    def part(child: Node, rank: int) -> str:
        text, own = _text(child, label, signs)
        return text if own >= rank else f"({text})"

    def sign(op: str) -> str:
        return signs.get(op, op)

    match node:
        case Number(value=value) if value == UNLIMITED:
            return "unlimited", _RANK["atom"]
        case Number(value=value):
            return (reading_literal if signs else _literal)(value), _RANK["atom"]
        case Text(value=value):
            return (f"'{value}'" if '"' in value else f'"{value}"'), _RANK["atom"]
        case Flag(value=value):
            return ("true" if value else "false"), _RANK["atom"]
        case Blank():
            return "blank", _RANK["atom"]
        case Name(id=name):
            return label(name), _RANK["atom"]
        case Negate(operand=operand):
            return sign("-") + part(operand, _RANK["negate"]), _RANK["negate"]
        case Not(operand=operand):
            return "not " + part(operand, _RANK["not"]), _RANK["not"]
        case Binary(op="**", left=left, right=right):
            return f"{part(left, _RANK['atom'])} {sign('**')} {part(right, _RANK['negate'])}", _RANK["**"]
        case Binary(op=op, left=left, right=right):
            rank = _RANK[op]
            return f"{part(left, rank)} {sign(op)} {part(right, rank + 1)}", rank
        case Compare(op=op, left=left, right=right):
            return f"{part(left, 5)} {sign(op)} {part(right, 5)}", _RANK["compare"]
        case Logic(op=op, parts=parts):
            rank = _RANK[op]
            return f" {op} ".join(part(item, rank + 1) for item in parts), rank
        case If(test=test, then=then, other=other):
            return f"{part(then, 1)} if {part(test, 1)} else {part(other, 0)}", _RANK["if"]
        case Call(function=function, args=args):
            return f"{function}({', '.join(part(arg, 0) for arg in args)})", _RANK["atom"]
    raise AssertionError(node)
