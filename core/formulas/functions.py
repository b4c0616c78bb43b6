"""The functions of the formula language: names, arguments, and what is known of their results.

How a function is computed lives in the back ends (one dispatch table each); a test compares their
tables with this one, so that none lacks an entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from scenario.formulas.intervals import HUGE, TINY, Facts


@dataclass(frozen=True)
class FunctionSpec:
    """One built-in function.

    ``names`` are its arguments (a last name that ends in ``...`` may stand any number of times), ``kinds`` their types
    (``number``, ``text``, ``literal`` for a text in quotes, ``any``); ``values_from`` is the index of the first argument that can become
    the result. ``facts(arguments, united)`` gives the facts of the result.
    """

    name: str
    names: tuple[str, ...]
    doc: str
    facts: Callable[[list[Facts], Facts], Facts]
    kinds: tuple[str, ...] = ("number",)
    values_from: int | None = None
    lint: str = ""

    @property
    def arity(self) -> tuple[int, int]:
        repeats = self.names[-1].endswith("...")
        return len(self.names) - repeats, 100 if repeats else len(self.names)

    @property
    def signature(self) -> str:
        return f"{self.name}({', '.join(self.names)})"

    def kind(self, index: int) -> str:
        """The type that argument ``index`` must have."""
        return self.kinds[min(index, len(self.kinds) - 1)]


def _number(args: list[Facts], low: float, high: float, *, blank: bool = False, integer: bool = False,
            open_low: bool = False) -> Facts:  # fmt: skip
    """Number facts with this range; blank as well when an argument may be."""
    first = replace(args[0], type="number", blank=False, open_low=open_low, open_high=False, integer=integer)
    blank = blank or any(arg.blank for arg in args)
    if not (low >= -HUGE and high <= HUGE):
        blank = True
    return replace(first, low=max(low, -HUGE), high=min(high, HUGE), blank=blank)


def _safe(function: Callable[[float], float], value: float) -> float:
    try:
        return function(value)
    except OverflowError:
        return math.inf


def _extreme(pick: Callable[..., float]) -> Callable[[list[Facts], Facts], Facts]:
    def facts(args: list[Facts], united: Facts) -> Facts:
        low, high = pick(arg.low for arg in args), pick(arg.high for arg in args)
        # The end is open only if no argument reaches it.
        opened = all(arg.open_low for arg in args if arg.low == low)
        return _number(args, low, high, integer=all(arg.integer for arg in args), open_low=opened)

    return facts


def _abs(args: list[Facts], united: Facts) -> Facts:
    (x,) = args
    low = 0.0 if x.low <= 0 <= x.high else min(abs(x.low), abs(x.high))
    return _number(args, low, max(abs(x.low), abs(x.high)), integer=x.integer, open_low=low == 0 and not x.may_be(0))


def _root(args: list[Facts], united: Facts) -> Facts:
    (x,) = args
    open_low = x.open_low and x.low == 0
    return _number(args, math.sqrt(max(x.low, 0)), math.sqrt(max(x.high, 0)), blank=x.low < 0, open_low=open_low)


def _log(args: list[Facts], united: Facts) -> Facts:
    (x,) = args
    positive = x.low > 0 or (x.low == 0 and x.open_low)
    high = math.log(x.high) if x.high > 0 else 0.0
    return _number(args, math.log(x.low or TINY) if positive else -750.0, high, blank=not positive)


def _whole(function: Callable[[float], float]) -> Callable[[list[Facts], Facts], Facts]:
    def facts(args: list[Facts], united: Facts) -> Facts:
        (x,) = args
        return _number(args, _round_end(function, x.low), _round_end(function, x.high), integer=True)

    return facts


def _round_end(function: Callable[[float], float], value: float) -> float:
    return float(function(value)) if abs(value) < 1e300 else value


def _choose(args: list[Facts], united: Facts) -> Facts:
    number, values = args[0], args[1:]
    outside = number.low < 1 or number.high >= len(values) + 1
    return replace(united, blank=united.blank or number.blank or outside)


def _coalesce(args: list[Facts], united: Facts) -> Facts:
    return replace(united, blank=all(arg.blank for arg in args))


def _at(args: list[Facts], united: Facts) -> Facts:
    # At most one token per position and the bonus.
    n = args[1]
    return _number([n], 1, max(n.high + 1, 1), blank=args[0].blank or n.low < 0 or n.high > 16)


def _tree_rows(args: list[Facts], united: Facts) -> Facts:
    n = args[1]
    return _number([n], 0, 1024, blank=args[0].blank or n.low < 0 or n.high > 16, integer=True)


def _curve(args: list[Facts], united: Facts) -> Facts:
    # The points of a curve are quantities of this world; far outside them the last slope may lead anywhere.
    x = args[1]
    most = 1e30 if max(abs(x.low), abs(x.high)) <= 1e12 else math.inf
    return _number([x], -most, most)


def _is_blank(args: list[Facts], united: Facts) -> Facts:
    return replace(args[0], type="flag", blank=False, low=-HUGE, high=HUGE)


_SPECS = (
    FunctionSpec("min", ("a", "b", "others..."), "The smallest of its arguments.", _extreme(min)),
    FunctionSpec("max", ("a", "b", "others..."), "The largest of its arguments.", _extreme(max)),
    FunctionSpec("abs", ("x",), "The size of x, without its sign.", _abs),
    FunctionSpec("sqrt", ("x",), "The square root; blank below 0.", _root),
    FunctionSpec("exp", ("x",), "e to the power x; blank where it overflows.",
                 lambda args, united: _number(args, _safe(math.exp, args[0].low), _safe(math.exp, args[0].high))),
    FunctionSpec("log", ("x",), "The natural logarithm; blank at 0 and below.", _log),
    FunctionSpec("floor", ("x",), "The next whole number at or below x.", _whole(math.floor)),
    FunctionSpec("ceil", ("x",), "The next whole number at or above x.", _whole(math.ceil)),
    FunctionSpec("trunc", ("x",), "x without its fraction.", _whole(math.trunc)),
    FunctionSpec("round", ("x", "digits..."), "Not for formulas: use a number format.",
                 lambda args, united: _number(args, -HUGE, HUGE),
                 lint="no rounding inside a formula: back ends round halves differently, and it hides digits; "
                      "a column's number format rounds what is shown"),
    FunctionSpec("choose", ("number", "first", "others..."), "The first value for 1, the second for 2, ...; "
                 "blank outside. A fraction is cut off.", _choose, ("number", "any"), 1),
    FunctionSpec("coalesce", ("x", "others..."), "The first of its arguments that is not blank.",
                 _coalesce, ("any",), 0),
    FunctionSpec("is_blank", ("x",), "Whether x has no value.", _is_blank, ("any",)),
    FunctionSpec("at", ("profile", "n"), "Expected tokens per round, bonus included, of an acceptance profile "
                 "with n draft tokens (0 to 16).", _at, ("text", "number")),
    FunctionSpec("tree_tokens", ("tree", "depth"), "Expected tokens per round, bonus included, of a draft tree cut at a depth "
                 "(0 to 16).", _at, ("text", "number")),
    FunctionSpec("tree_rows", ("tree", "depth"), "Nodes of a draft tree cut at a depth (0 to 16): each is a row to verify.",
                 _tree_rows, ("text", "number")),
    FunctionSpec("curve", ("curve", "x"), "A curve at x: linear between its points, the nearest slope beyond them.",
                 _curve, ("literal", "number")),
)  # fmt: skip
FUNCTIONS: dict[str, FunctionSpec] = {spec.name: spec for spec in _SPECS}
