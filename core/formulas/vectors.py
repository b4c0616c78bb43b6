"""Series of numbers that formulas read through ``at()`` and ``curve()``: acceptance profiles and curves."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scenario.common.errors import FormulaError, nearest

POSITIONS = 16
"""Draft positions that a profile covers; past its last given rate the last conditional rate continues."""


@dataclass(frozen=True)
class Profile:
    """An acceptance profile: *marginal* rates per draft position, as serving engines print them.

    ``rates[k-1]`` is the chance that draft token k is accepted (all before it included), in 0..1 and never
    rising. ``lengths[n]`` is the expected tokens per round with n draft tokens, the bonus token included.
    ``given`` says what was typed, ``values``, when that is not the marginal rates: ``conditional`` rates (each given
    that those before were accepted) or ``lengths`` (tokens per round with 1, 2, ... drafts).
    """

    name: str
    rates: tuple[float, ...]
    source: str = ""
    doc: str = ""
    given: str = "marginal"
    values: tuple[float, ...] = ()

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
    def conditional(self) -> tuple[float, ...]:
        """The chance of each position given that those before it were accepted; 0 past a position that never is."""
        rates = self.continued
        return (rates[0], *(rate / before if before > 0 else 0.0 for before, rate in zip(rates, rates[1:], strict=False)))

    @property
    def lengths(self) -> tuple[float, ...]:
        lengths = [1.0]
        for rate in self.continued:
            lengths.append(lengths[-1] + rate)
        return tuple(lengths)


@dataclass(frozen=True)
class Tree:
    """A draft tree: nodes, and the chance that each is accepted given that its parent is.

    ``nodes`` holds (parent, rank, depth) with parents before children; parent -1 is the last accepted token. ``rates`` holds
    per depth the chance of the draft's first, second, ... guess being right; past its end the last depth goes on.
    A node's path probability is its parent's times the rate of its depth and rank.
    """

    name: str
    nodes: tuple[tuple[int, int, int], ...]
    rates: tuple[tuple[float, ...], ...]
    source: str = ""
    doc: str = ""

    def rate(self, depth: int, rank: int) -> float:
        """The rate of a guess by depth (from 1) and rank (from 0); 0 past the given ranks."""
        row = self.rates[min(depth, len(self.rates)) - 1]
        return row[rank] if rank < len(row) else 0.0

    @property
    def probabilities(self) -> tuple[float, ...]:
        """The path probability of every node."""
        found: list[float] = []
        for parent, rank, depth in self.nodes:
            found.append((found[parent] if parent >= 0 else 1.0) * self.rate(depth, rank))
        return tuple(found)

    @property
    def tokens(self) -> tuple[float, ...]:
        """Expected tokens per round, bonus included, when the tree is cut at depth 0, 1, ... 16."""
        shares = self.probabilities
        return tuple(1 + sum(p for p, node in zip(shares, self.nodes, strict=True) if node[2] <= depth) for depth in range(POSITIONS + 1))

    @property
    def rows(self) -> tuple[float, ...]:
        """Nodes when the tree is cut at depth 0, 1, ... 16."""
        return tuple(float(sum(node[2] <= depth for node in self.nodes)) for depth in range(POSITIONS + 1))


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
    """All profiles, curves and trees that the formulas of a run may name."""

    profiles: Mapping[str, Profile] = field(default_factory=dict)
    curves: Mapping[str, Curve] = field(default_factory=dict)
    trees: Mapping[str, Tree] = field(default_factory=dict)

    def by_depth(self, function: str) -> Mapping[str, Sequence[float]]:
        """What ``at``, ``tree_tokens`` or ``tree_rows`` read: per name 17 values, for 0 to 16 drafts or depths."""
        if function == "at":
            return {name: profile.lengths for name, profile in self.profiles.items()}
        return {name: tree.tokens if function == "tree_tokens" else tree.rows for name, tree in self.trees.items()}

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

    def tree(self, name: str) -> Tree:
        """The draft tree of this name; :class:`FormulaError` when there is none."""
        if name not in self.trees:
            raise FormulaError(f"there is no tree '{name}'", nearest(name, self.trees) or "trees: defines them")
        return self.trees[name]
