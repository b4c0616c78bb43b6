"""Series of numbers that formulas read through ``at()`` and ``curve()``: acceptance profiles and curves."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scenario.errors import FormulaError, nearest

POSITIONS = 16
"""Draft positions that a profile covers; past its last given rate the last conditional rate continues."""


@dataclass(frozen=True)
class Profile:
    """An acceptance profile: *marginal* rates per draft position, as serving engines print them.

    ``rates[k-1]`` is the chance that draft token k is accepted (all before it included), in 0..1 and never
    rising. ``lengths[n]`` is the expected tokens per round with n draft tokens, the bonus token included.
    """

    name: str
    rates: tuple[float, ...]
    source: str = ""
    doc: str = ""

    @property
    def continued(self) -> tuple[float, ...]:
        """All 16 marginal rates, the last conditional rate going on past the given ones."""
        rates = list(self.rates[:POSITIONS])
        previous = rates[-2] if len(rates) > 1 else 1.0
        conditional = rates[-1] / previous if previous > 0 else 0.0
        while len(rates) < POSITIONS:
            rates.append(rates[-1] * conditional)
        return tuple(rates)

    @property
    def lengths(self) -> tuple[float, ...]:
        lengths = [1.0]
        for rate in self.continued:
            lengths.append(lengths[-1] + rate)
        return tuple(lengths)


@dataclass(frozen=True)
class Curve:
    """Measured points (x rising, at least two), read linearly between and with the end slopes beyond."""

    name: str
    points: tuple[tuple[float, float], ...]
    source: str = ""
    doc: str = ""

    @property
    def slopes(self) -> tuple[float, ...]:
        """The slope that starts at each point; the last point goes on with the slope before it."""
        pairs = zip(self.points, self.points[1:], strict=False)
        slopes = [(y1 - y0) / (x1 - x0) for (x0, y0), (x1, y1) in pairs]
        return (*slopes, slopes[-1])

    def value(self, x: float) -> float:
        """The curve at ``x``."""
        xs = [point[0] for point in self.points]
        index = max(bisect.bisect_right(xs, x) - 1, 0)
        return self.points[index][1] + (x - xs[index]) * self.slopes[index]


@dataclass(frozen=True)
class Vectors:
    """All profiles and curves that the formulas of a run may name."""

    profiles: Mapping[str, Profile] = field(default_factory=dict)
    curves: Mapping[str, Curve] = field(default_factory=dict)

    def flat_lengths(self) -> Sequence[float]:
        """Expected lengths of all profiles in one series; profile i starts at i * (POSITIONS + 1)."""
        return [length for profile in self.profiles.values() for length in profile.lengths]

    def curve(self, name: str) -> Curve:
        """The curve of this name; :class:`FormulaError` when there is none."""
        if name not in self.curves:
            raise FormulaError(f"there is no curve '{name}'", nearest(name, self.curves) or "curves: defines them")
        return self.curves[name]

    def profile(self, name: str) -> Profile:
        """The acceptance profile of this name; :class:`FormulaError` when there is none."""
        if name not in self.profiles:
            raise FormulaError(f"there is no acceptance profile '{name}'", nearest(name, self.profiles) or "profiles: defines them")
        return self.profiles[name]
