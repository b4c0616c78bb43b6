"""Formulas over numpy arrays, for fitting: a checked formula, many rows, constants that change with every trial.

A blank is ``nan``. Texts are arrays of objects. numpy is imported here and nowhere else in the engine; it comes
with the extra ``scenario-engine[calibrate]``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from scenario.common.errors import FormulaError
from scenario.formulas.expr import Binary, Blank, Call, Compare, Flag, If, Logic, Name, Negate, Node, Not, Number, Text
from scenario.formulas.vectors import Vectors

Array = Any


def evaluate(node: Node, values: Mapping[str, Array], vectors: Vectors | None = None) -> Array:
    """The value of a formula for all rows; both arms of a condition are computed, and the one that counts is taken."""
    def of(part: Node) -> Array:
        return evaluate(part, values, vectors)

    match node:
        case Number(value=value) | Text(value=value) | Flag(value=value):
            return value
        case Blank():
            return np.nan
        case Name(id=name):
            return values[name]
        case Negate(operand=operand):
            return -of(operand)
        case Not(operand=operand):
            return np.logical_not(of(operand))
        case Logic(op=op, parts=parts):
            return functools.reduce(np.logical_and if op == "and" else np.logical_or, [of(part) for part in parts])
        case If(test=test, then=then, other=other):
            return _where(of(test), of(then), of(other))
        case Binary(op=op, left=left, right=right):
            return _BINARY[op](of(left), of(right))
        case Compare(op=op, left=left, right=right):
            return _COMPARE[op](of(left), of(right))
        case Call(function="curve", args=args):
            curve = (vectors or Vectors()).curve(str(of(args[0])))
            return np.vectorize(curve.value, otypes=[float])(of(args[1]))
        case Call(function="at"):
            raise FormulaError("acceptance profiles are not fitted: at() has no place in a time model that is calibrated")
        case Call(function="choose", args=(number, *arms)):
            return _choose(of(number), [functools.partial(of, arm) for arm in arms])
        case Call(function=function, args=args):
            return _FUNCTIONS[function](*(of(arg) for arg in args))
    raise AssertionError(node)


def _choose(number: Array, arms: Sequence[Callable[[], Array]]) -> Array:
    """The arm of each row's number; only the arms that some row takes are computed."""
    index = np.unique(np.trunc(np.nan_to_num(np.asarray(number, dtype=float))))
    result: Array = np.nan
    for place in index:
        if 1 <= place <= len(arms):
            arm = arms[int(place) - 1]()
            result = arm if len(index) == 1 else _where(np.trunc(number) == place, arm, result)
    return result


def _where(test: Array, then: Array, other: Array) -> Array:
    if isinstance(then, str) or isinstance(other, str):
        return np.where(test, np.asarray(then, dtype=object), np.asarray(other, dtype=object))
    return np.where(test, then, other)


def _coalesce(*values: Array) -> Array:
    result = values[-1]
    for value in reversed(values[:-1]):
        result = _where(_is_blank(value), result, value)
    return result


def _is_blank(value: Array) -> Array:
    array = np.asarray(value)
    nothing: Any = None
    return np.equal(array, nothing) if array.dtype == object else np.isnan(array)


def _many(function: Any) -> Any:
    def apply(*values: Array) -> Array:
        result = values[0]
        for value in values[1:]:
            result = function(result, value)
        return result

    return apply


_BINARY: dict[str, Any] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide, "**": np.power, "//": np.floor_divide, "%": np.mod,
}  # fmt: skip
_COMPARE: dict[str, Any] = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
_FUNCTIONS: dict[str, Any] = {
    "min": _many(np.minimum), "max": _many(np.maximum), "abs": np.abs, "sqrt": np.sqrt, "exp": np.exp, "log": np.log,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "coalesce": _coalesce, "is_blank": _is_blank,
}  # fmt: skip
