"""Formulas as plain data for a page: nested lists that a small runtime in the browser turns into closures.

Nothing of a table ever becomes script text: the runtime (``exporters/html/page/engine.js``) knows the operations by name.
A number stands for itself, a text for the name of a column or an assumption, a list for an operation: its name, its
kind where what is blank depends on it (``number``, ``text``, ``flag``), and its parts. There a blank number is NaN, a
blank text or flag is null; what cannot be computed is blank, as in every back end.
"""

from __future__ import annotations

from scenario.common.errors import FormulaError
from scenario.formulas.expr import Binary, Blank, Call, Compare, Flag, If, Logic, Name, Negate, Node, Not, Number, Text

Tree = float | str | list[object]
"""A formula for the page, ready for JSON."""

FUNCTIONS = frozenset({
    "min", "max", "abs", "sqrt", "exp", "log", "floor", "ceil", "trunc", "choose", "coalesce", "is_blank", "at", "tree_tokens",
    "tree_rows", "curve",
})  # fmt: skip
"""The functions that the page's runtime computes; a test compares them with the language's and with the runtime's own."""


def compile_js(node: Node) -> Tree:
    """The data of a checked formula. Raises :class:`FormulaError` for a function that the page's runtime lacks."""
    match node:
        case Number(value=value):
            return value
        case Name(id=name):
            return name
        case Text(value=value):
            return ["text", value]
        case Flag(value=value):
            return ["flag", value]
        case Blank():
            return ["blank", "number"]
        case Negate(operand=operand):
            return ["negate", compile_js(operand)]
        case Not(operand=operand):
            return ["not", _typed(operand, "flag")]
        case Binary(op=op, left=left, right=right):
            return [op, compile_js(left), compile_js(right)]
        case Compare(op=op, left=left, right=right):
            return [op, left.facts.type, compile_js(left), compile_js(right)]
        case Logic(op=op, parts=parts):
            return [op, *(_typed(part, "flag") for part in parts)]
        case If(test=test, then=then, other=other):
            kind = _kind(node)
            return ["if", kind, _typed(test, "flag"), _typed(then, kind), _typed(other, kind)]
        case Call(function=function, args=args):
            return _call(node, function, args)
    raise AssertionError(node)


def _kind(node: Node) -> str:
    """The type of a formula's values; a bare blank counts as a number."""
    return "number" if node.facts.type == "none" else str(node.facts.type)


def _typed(node: Node, kind: str) -> Tree:
    """Like :func:`compile_js`; a bare blank takes the type that is needed there."""
    return ["blank", kind] if node.facts.type == "none" else compile_js(node)


def _call(node: Call, function: str, args: tuple[Node, ...]) -> Tree:
    if function not in FUNCTIONS:
        raise FormulaError(f"the page cannot compute {function}()")
    kind = _kind(node)
    match function:
        case "choose":
            return ["choose", kind, _typed(args[0], "number"), *(_typed(arg, kind) for arg in args[1:])]
        case "coalesce":
            return ["coalesce", kind, *(_typed(arg, kind) for arg in args)]
        case "is_blank":
            return ["is_blank", compile_js(args[0])]
        case "at" | "tree_tokens" | "tree_rows" | "curve":
            return [function, _typed(args[0], "text"), _typed(args[1], "number")]
    return [function, *(_typed(arg, "number") for arg in args)]
