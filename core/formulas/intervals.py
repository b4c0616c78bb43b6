"""Interval arithmetic: what is known of a number (range, blankness, wholeness), and of what comes of it.

An open end at zero stands for at least ``TINY``: no quantity here is smaller without being zero. Bounds are
computed in floating point from the ends themselves, so that rounding cannot carry a value past them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

TINY = 1e-30
HUGE = 1.7e308
EXACT = 2.0**53

End = tuple[float, bool]
"""A bound and whether it is open (not reached)."""


@dataclass(frozen=True)
class Facts:
    """Type (``number``, ``text``, ``flag``, ``none`` for a bare blank), range, blankness.

    ``low``/``high`` with ``open_low``/``open_high`` bound a number that is not blank.
    """

    type: str = "number"
    low: float = -HUGE
    high: float = HUGE
    open_low: bool = False
    open_high: bool = False
    blank: bool = False
    integer: bool = False

    @property
    def ends(self) -> tuple[End, End]:
        """Both ends, an open zero as the smallest quantity there is."""
        low = (TINY, False) if self.low == 0 and self.open_low else (self.low, self.open_low)
        high = (-TINY, False) if self.high == 0 and self.open_high else (self.high, self.open_high)
        return low, high

    def may_be(self, value: float) -> bool:
        """Whether the number can take exactly ``value``."""
        above = value > self.low or (value == self.low and not self.open_low)
        below = value < self.high or (value == self.high and not self.open_high)
        return above and below

    @property
    def negative(self) -> bool:
        return self.low < 0

    @property
    def may_vanish(self) -> bool:
        """Whether the number may be 0, or have either sign."""
        return self.may_be(0) or self.low < 0 < self.high


def arithmetic(op: str, a: Facts, b: Facts) -> Facts:
    """The facts of ``a op b``; blank when an operand may be blank or the operation may fail."""
    blank = a.blank or b.blank
    whole = a.integer and b.integer and op in ("+", "-", "*", "//", "%")
    if op in ("+", "-"):
        (b_low, b_high) = ((b.low, b.open_low), (b.high, b.open_high))
        if op == "-":
            b_low, b_high = (-b.high, b.open_high), (-b.low, b.open_low)
        return interval(_plus((a.low, a.open_low), b_low), _plus((a.high, a.open_high), b_high), blank, whole)
    if op == "*":
        return interval(*_corners(a, b, _times), blank, whole)
    if op == "**":
        return _power(a, b, blank)
    if b.may_vanish:
        return interval(*_remainder(a, b), True, whole) if op == "%" else Facts(blank=True, integer=op == "//")
    quotient = interval(*_corners(a, b, _over), blank)
    if op == "/":
        return quotient
    if op == "%":
        return interval(*_remainder(a, b), quotient.blank, whole)
    low, high = (math.floor(end) if abs(end) < 1e300 else end for end in (quotient.low, quotient.high))
    return interval((float(low), False), (float(high), False), quotient.blank, True)


def may_fail(op: str, a: Facts, b: Facts) -> bool:
    """Whether ``a op b`` of two numbers can have no value, or overflow."""
    return arithmetic(op, _present(a), _present(b)).blank


def _present(facts: Facts) -> Facts:
    return Facts("number", facts.low, facts.high, facts.open_low, facts.open_high, False, facts.integer)


def interval(low: End, high: End, blank: bool, integer: bool = False) -> Facts:
    """Facts with these ends; a bound past the largest double means that the value may overflow."""
    lower, upper = low[0], high[0]
    if not (lower >= -HUGE and upper <= HUGE):
        blank = True
    lower = -HUGE if math.isnan(lower) else min(max(lower, -HUGE), HUGE)
    upper = HUGE if math.isnan(upper) else max(min(upper, HUGE), -HUGE)
    return Facts("number", lower, upper, low[1], high[1], blank, integer)


def _plus(a: End, b: End) -> End:
    # Only a sum that is exactly 0 at the ends keeps away from it: elsewhere rounding may reach the end.
    total = a[0] + b[0]
    return total, total == 0 and (a[1] or b[1])


def _times(a: End, b: End) -> End:
    if a[0] == 0 or b[0] == 0:
        return 0.0, False
    return a[0] * b[0], (a[1] and abs(b[0]) == 1) or (b[1] and abs(a[0]) == 1)


def _over(a: End, b: End) -> End:
    return (a[0] / b[0], a[1] and abs(b[0]) == 1) if a[0] else (0.0, False)


def _corners(a: Facts, b: Facts, combine: Callable[[End, End], End]) -> tuple[End, End]:
    ends = [combine(x, y) for x in a.ends for y in b.ends]
    return min(ends, key=lambda end: (end[0], end[1])), max(ends, key=lambda end: (end[0], not end[1]))


def _remainder(a: Facts, b: Facts) -> tuple[End, End]:
    # a - b * floor(a / b): exact for whole numbers, else off by the rounding of a.
    most = max(abs(a.low), abs(a.high))
    slack = 0.0 if a.integer and b.integer and most <= EXACT else most * 2.0**-50
    return (min(b.low, 0.0) - slack, False), (max(b.high, 0.0) + slack, False)


def power(base: float, exponent: float) -> float:
    """``base ** exponent`` for floats, with ``nan`` where it has no real value and ``inf`` past the range.

    ``0 ** 0`` is 1, as in Python and polars.
    """
    try:
        result = float(base) ** float(exponent)
    except ZeroDivisionError:
        return math.nan
    except OverflowError:
        return math.inf
    return math.nan if isinstance(result, complex) else result


def _power(a: Facts, b: Facts, blank: bool) -> Facts:
    if a.may_vanish and b.low < 0:
        return Facts(blank=True)
    whole = a.integer and b.integer and b.low >= 0
    (low, _), (high, _) = a.ends
    exponents = [end[0] for end in b.ends]
    if low >= 0:
        corners = [power(base, exponent) for base in (low, max(high, low)) for exponent in exponents]
        if low < 1 < high or b.low < 0 < b.high or b.may_be(0):
            corners.append(1.0)
        return interval((min(corners), False), (max(corners), False), blank, whole)
    sizes = [abs(low), abs(high)] + ([0.0] if a.may_vanish else [])
    most = max(power(size, exponent) for size in sizes for exponent in exponents)
    most = max(most, 1.0) if b.may_be(0) or b.low < 0 < b.high else most
    return interval((-most, False), (most, False), blank or not b.integer, whole)
