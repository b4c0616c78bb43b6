"""Formulas as LaTeX, for ``scenario explain --format latex`` and for papers; one dispatch table like the other back ends.

The result stands in math mode and needs ``amsmath`` (``cases``, ``\\text``).
"""

from __future__ import annotations

from collections.abc import Callable

from scenario.common.numbers import show_number
from scenario.formulas.expr import Binary, Blank, Call, Compare, Flag, If, Logic, Name, Negate, Node, Not, Number, Text
from scenario.formulas.to_text import reading_literal

Label = Callable[[str], str]
"""The LaTeX that stands for a name: the name itself, or its value with a unit."""

GREEK = frozenset({
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi", "pi",
    "rho", "sigma", "tau", "phi", "chi", "psi", "omega",
})  # fmt: skip
_RANK = {"if": 0, "or": 1, "and": 2, "not": 3, "compare": 4, "+": 5, "-": 5, "*": 6, "%": 6, "negate": 7, "**": 8, "atom": 9}
_SIGN = {"*": r"\cdot", "%": r"\bmod", "<=": r"\le", ">=": r"\ge", "!=": r"\ne", "==": "="}
_ESCAPES = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
            **{char: f"\\{char}" for char in "&%$#_{}"}}  # fmt: skip


def escape(text: str) -> str:
    """Plain text as LaTeX text."""
    return "".join(_ESCAPES.get(char, char) for char in text)


def symbol(name: str) -> str:
    """The symbol of a column: a Greek letter where the name is one, else the name upright."""
    return f"\\{name}" if name in GREEK else f"\\mathrm{{{escape(name)}}}"


def compile_latex(node: Node, label: Label = symbol) -> str:
    """The formula as LaTeX math; ``label`` prints names."""
    return _latex(node, label)[0]


def show_value(value: float) -> str:
    """A value with up to six digits as LaTeX math."""
    return _number(value)


def _number(value: float) -> str:
    text = reading_literal(value)
    if "e" not in text:
        text = show_number(value, 6)
    mantissa, _, exponent = text.partition("e")
    if exponent:
        power = f"10^{{{int(exponent)}}}"
        return power if mantissa == "1" else f"{mantissa} \\cdot {power}"
    return text.replace(",", "{,}")


def _latex(node: Node, label: Label) -> tuple[str, int]:
    atom = _RANK["atom"]

    def part(child: Node, rank: int) -> str:
        text, own = _latex(child, label)
        return text if own >= rank else f"\\left({text}\\right)"

    match node:
        case Number(value=value):
            return _number(value), atom if "\\cdot" not in _number(value) else _RANK["*"]
        case Text(value=value):
            return f"\\text{{{escape(value)}}}", atom
        case Flag(value=value):
            return f"\\text{{{'true' if value else 'false'}}}", atom
        case Blank():
            return r"\text{blank}", atom
        case Name(id=name):
            return label(name), atom
        case Negate(operand=operand):
            return "-" + part(operand, _RANK["negate"]), _RANK["negate"]
        case Not(operand=operand):
            return r"\lnot " + part(operand, _RANK["not"]), _RANK["not"]
        case Binary(op="/", left=left, right=right):
            return f"\\frac{{{part(left, 0)}}}{{{part(right, 0)}}}", _RANK["*"]
        case Binary(op="//", left=left, right=right):
            return f"\\left\\lfloor \\frac{{{part(left, 0)}}}{{{part(right, 0)}}} \\right\\rfloor", atom
        case Binary(op="**", left=left, right=right):
            return f"{{{part(left, atom)}}}^{{{part(right, 0)}}}", _RANK["**"]
        case Binary(op=op, left=left, right=right):
            rank = _RANK[op]
            return f"{part(left, rank)} {_SIGN.get(op, op)} {part(right, rank + 1)}", rank
        case Compare(op=op, left=left, right=right):
            return f"{part(left, 5)} {_SIGN.get(op, op)} {part(right, 5)}", _RANK["compare"]
        case Logic(op=op, parts=parts):
            rank = _RANK[op]
            sign = r" \land " if op == "and" else r" \lor "
            return sign.join(part(item, rank + 1) for item in parts), rank
        case If():
            return _cases(node, label), atom
        case Call(function=function, args=args):
            return FUNCTIONS[function](args, lambda child: part(child, 0)), atom
    raise AssertionError(node)


def _cases(node: Node, label: Label) -> str:
    """A chain of choices as one brace."""
    lines = []
    while isinstance(node, If):
        lines.append(f"{_latex(node.then, label)[0]} & \\text{{if }} {_latex(node.test, label)[0]}")
        node = node.other
    lines.append(f"{_latex(node, label)[0]} & \\text{{otherwise}}")
    return "\\begin{cases} " + r" \\ ".join(lines) + r" \end{cases}"


Show = Callable[[Node], str]


def _named(command: str) -> Callable[[tuple[Node, ...], Show], str]:
    return lambda args, show: f"{command}\\left({', '.join(show(arg) for arg in args)}\\right)"


def _fenced(left: str, right: str) -> Callable[[tuple[Node, ...], Show], str]:
    return lambda args, show: f"\\left{left} {show(args[0])} \\right{right}"


def _choose(args: tuple[Node, ...], show: Show) -> str:
    index = show(args[0])
    lines = [f"{show(value)} & \\text{{if }} {index} = {number}" for number, value in enumerate(args[1:], 1)]
    return "\\begin{cases} " + r" \\ ".join(lines) + r" \end{cases}"


FUNCTIONS: dict[str, Callable[[tuple[Node, ...], Show], str]] = {
    "min": _named(r"\min"), "max": _named(r"\max"), "exp": _named(r"\exp"), "log": _named(r"\ln"),
    "abs": _fenced("|", "|"), "floor": _fenced(r"\lfloor", r"\rfloor"), "ceil": _fenced(r"\lceil", r"\rceil"),
    "sqrt": lambda args, show: f"\\sqrt{{{show(args[0])}}}",
    "trunc": _named(r"\operatorname{trunc}"), "coalesce": _named(r"\operatorname{coalesce}"),
    "is_blank": lambda args, show: f"\\left({show(args[0])} = \\text{{blank}}\\right)",
    "choose": _choose,
    "tree_tokens": lambda args, show: f"E_{{{show(args[0])}}}\\left({show(args[1])}\\right)",
    "tree_rows": lambda args, show: f"N_{{{show(args[0])}}}\\left({show(args[1])}\\right)",
    "at": lambda args, show: f"E_{{{show(args[0])}}}\\left({show(args[1])}\\right)",
    "curve": lambda args, show: f"{show(args[0])}\\left({show(args[1])}\\right)",
}  # fmt: skip
