"""Formulas on plain Python floats: the reference that the fast back ends are tested against.

A blank is ``None``; everything that cannot be computed is blank.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from scenario.formulas.expr import Binary, Blank, Call, Compare, Flag, If, Logic, Name, Negate, Node, Not, Number, Text
from scenario.formulas.facts import power
from scenario.formulas.vectors import POSITIONS, Vectors

Value = Any  # float, str, bool or None


def evaluate(node: Node, values: Mapping[str, Value], vectors: Vectors | None = None) -> Value:
    """The value of a checked formula for one row.

    ``values`` maps each name to a float, text, bool or None. Raises KeyError for a name without a value.
    """
    match node:
        case Number(value=value) | Text(value=value) | Flag(value=value):
            return value
        case Blank():
            return None
        case Name(id=name):
            return values[name]
        case Negate(operand=operand):
            value = evaluate(operand, values, vectors)
            return None if value is None else -value
        case Not(operand=operand):
            value = evaluate(operand, values, vectors)
            return None if value is None else not value
        case Logic(op=op, parts=parts):
            return _logic(op, parts, values, vectors)
        case If(test=test, then=then, other=other):
            condition = evaluate(test, values, vectors)
            return None if condition is None else evaluate(then if condition else other, values, vectors)
        case Binary(op=op, left=left, right=right) | Compare(op=op, left=left, right=right):
            a, b = evaluate(left, values, vectors), evaluate(right, values, vectors)
            if a is None or b is None:
                return None
            return _COMPARE[op](a, b) if op in _COMPARE else _finite(_arithmetic(op, a, b))
        case Call(function=function, args=args):
            return _call(function, args, values, vectors or Vectors())
    raise AssertionError(node)


def _logic(op: str, parts: tuple[Node, ...], values: Mapping[str, Value], vectors: Vectors | None) -> Value:
    for part in parts:
        value = evaluate(part, values, vectors)
        if value is None or value != (op == "and"):
            return value
    return op == "and"


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _arithmetic(op: str, a: float, b: float) -> float:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "**":
            return power(a, b)
    if b == 0:
        return math.nan
    quotient = a / b
    if op == "/" or not math.isfinite(quotient):
        return quotient
    return float(math.floor(quotient)) if op == "//" else a - b * math.floor(quotient)


def _call(function: str, args: tuple[Node, ...], values: Mapping[str, Value], vectors: Vectors) -> Value:
    if function in ("choose", "coalesce", "is_blank"):
        first = evaluate(args[0], values, vectors)
        if function == "is_blank":
            return first is None
        if function == "choose":
            index = 0 if first is None else math.trunc(first)
            return evaluate(args[index], values, vectors) if 1 <= index < len(args) else None
        rest = args[1:]
        while first is None and rest:
            first, rest = evaluate(rest[0], values, vectors), rest[1:]
        return first
    done = [evaluate(arg, values, vectors) for arg in args]
    if any(value is None for value in done):
        return None
    if function in ("at", "tree_tokens", "tree_rows"):
        n = math.floor(done[1])
        if isinstance(args[0], Text):
            (vectors.profile if function == "at" else vectors.tree)(args[0].value)
        found = vectors.by_depth(function).get(done[0])
        return found[n] if found and 0 <= n <= POSITIONS else None
    if function == "curve":
        return _finite(vectors.curve(done[0]).value(done[1]))
    try:
        return _finite(float(FUNCTIONS[function](*done)))
    except (ValueError, OverflowError):
        return None


FUNCTIONS: dict[str, Callable[..., float]] = {
    "min": min, "max": max, "abs": abs, "sqrt": math.sqrt, "exp": math.exp, "log": math.log,
    "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc,
}  # fmt: skip
