"""Constants fitted to many groups of measurements at once: each is global, with deviations of groups that are shrunk to none.

The logarithm of a constant of one row is its global value, plus a deviation for each group that the row belongs to (its GPU
family, its engine, both together), plus nothing where that group has no rows. Every model, format, GPU and engine may be off by
an offset of its own. Both have Gaussian priors around zero, so that few rows move them little (ridge, partial pooling: Gelman and
Hill 2007, chapter 12). Errors count as squares when small and linearly when large (pseudo-Huber). Solved by Levenberg-Marquardt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = Any
Predict = Callable[[Mapping[str, Array]], Array]
"""Logarithms of what was measured, all series of all rows after one another, from constants by row."""


@dataclass(frozen=True)
class Level:
    """A way to group rows. ``spread`` is the prior standard deviation of each constant's deviation; constants left out have none."""

    labels: Array
    spread: Mapping[str, float]


@dataclass(frozen=True)
class Priors:
    """Where constants are expected (``centre``), how far off (``width``, of the logarithm) and their largest value."""

    centre: Mapping[str, float]
    width: Mapping[str, float]
    high: Mapping[str, float] = field(default_factory=dict)


@dataclass
class Solution:
    """Fitted logarithms: of constants, of deviations by level, group and constant, and offsets by series and cell."""

    names: Sequence[str]
    centre: Array
    high: Array
    glob: Array
    deviations: list[dict[str, Array]]
    offsets: list[dict[str, float]]
    width: Array

    def constants(self, labels: Sequence[Array]) -> dict[str, Array]:
        """The constants of rows with these labels, one array of labels per level; unknown groups have no deviation."""
        count = len(labels[0]) if labels else 1
        logs = np.tile(self.centre + self.glob, (count, 1))
        for known, mine in zip(self.deviations, labels, strict=True):
            zero = np.zeros(len(self.names))
            logs = logs + np.array([known.get(str(label), zero) for label in mine])
        return dict(zip(self.names, np.exp(np.minimum(logs, self.high)).T, strict=True))

    def offset(self, series: int, cells: Array) -> Array:
        """Offsets of cells in one series; zero where nothing was measured."""
        return np.array([self.offsets[series].get(str(cell), 0.0) for cell in cells])


@dataclass
class PooledFit:
    """What is fitted. ``wanted`` are logarithms by series (nan: not measured), ``noise`` and ``cell_spread`` one number per series."""

    predict: Predict
    wanted: list[Array]
    noise: Sequence[float]
    cells: Array
    cell_spread: Sequence[float]
    levels: Sequence[Level]
    priors: Priors


def solve(problem: PooledFit, steps: int = 20) -> Solution:
    """The most probable constants of a problem."""
    return _Solver(problem).run(steps)


class _Solver:
    def __init__(self, problem: PooledFit) -> None:
        self.problem = problem
        self.names = list(problem.priors.centre)
        self.rows = len(problem.cells)
        wanted = np.concatenate(problem.wanted)
        self.known = np.isfinite(wanted)
        self.wanted = np.where(self.known, wanted, 0.0)
        self.noise = np.repeat(np.asarray(problem.noise, dtype=float), self.rows)
        self.centre = np.log([problem.priors.centre[name] for name in self.names])
        self.high = np.log([problem.priors.high.get(name, 1e9) for name in self.names])
        self.groups = [np.unique(level.labels, return_inverse=True) for level in problem.levels]
        self.cells = np.unique(problem.cells, return_inverse=True)
        self._lay_out()

    def _lay_out(self) -> None:
        """Where each block of unknowns stands, and its prior."""
        count, series = len(self.names), len(self.problem.wanted)
        widths = [np.array([self.problem.priors.width[name] for name in self.names])]
        for level, (groups, _) in zip(self.problem.levels, self.groups, strict=True):
            widths.append(np.tile([level.spread.get(name, 1e-6) for name in self.names], len(groups)))
        widths += [np.full(len(self.cells[0]), spread) for spread in self.problem.cell_spread]
        self.width = np.concatenate(widths)
        self.starts = np.cumsum([0, *(len(width) for width in widths)])
        self.count, self.series = count, series

    def logs(self, x: Array) -> Array:
        """Logarithms of the constants by row."""
        found = np.tile(self.centre + x[: self.count], (self.rows, 1))
        for position, (groups, index) in enumerate(self.groups):
            block = x[self.starts[1 + position] : self.starts[2 + position]].reshape(len(groups), self.count)
            found = found + block[index]
        return np.minimum(found, self.high)

    def predicted(self, logs: Array) -> Array:
        return self.problem.predict(dict(zip(self.names, np.exp(logs).T, strict=True)))

    def errors(self, logs: Array, x: Array) -> Array:
        first = 1 + len(self.groups)
        off = [x[self.starts[first + n] : self.starts[first + n + 1]][self.cells[1]] for n in range(self.series)]
        return np.where(self.known, self.predicted(logs) + np.concatenate(off) - self.wanted, 0.0)

    def cost(self, errors: Array, x: Array) -> float:
        z = errors / self.noise
        return float(np.sum(2 * (np.sqrt(1 + z * z) - 1)) + np.sum((x / self.width) ** 2))

    def jacobian(self, logs: Array) -> Array:
        """Derivatives of the errors by all unknowns; those of the constants by differences."""
        here, step = self.predicted(logs), 1e-4
        slopes = np.zeros((len(here), self.count))
        for position in range(self.count):
            moved = logs.copy()
            moved[:, position] += step
            slopes[:, position] = (self.predicted(moved) - here) / step
        slopes *= np.tile(logs < self.high - 1e-9, (self.series, 1))
        slopes[~self.known] = 0.0
        found = np.zeros((len(here), self.starts[-1]))
        found[:, : self.count] = slopes
        rows = np.arange(len(here))
        for position, (_, index) in enumerate(self.groups):
            for constant in range(self.count):
                column = self.starts[1 + position] + np.tile(index, self.series) * self.count + constant
                found[rows, column] = slopes[:, constant]
        for number in range(self.series):
            mine = np.arange(self.rows) + number * self.rows
            found[mine, self.starts[1 + len(self.groups) + number] + self.cells[1]] = self.known[mine]
        return found

    def run(self, steps: int) -> Solution:
        x = np.zeros(self.starts[-1])
        logs = self.logs(x)
        errors = self.errors(logs, x)
        cost, damping = self.cost(errors, x), 1e-3
        inverse = np.diag(self.width**2)
        for _ in range(steps):
            slopes = self.jacobian(logs)
            weight = 1 / np.sqrt(1 + (errors / self.noise) ** 2) / self.noise**2
            curvature = (slopes * weight[:, None]).T @ slopes + np.diag(1 / self.width**2)
            slope = (slopes * weight[:, None]).T @ errors + x / self.width**2
            x, logs, errors, fell, damping = self._step(x, errors, curvature, slope, cost, damping)
            inverse = np.linalg.pinv(curvature[: self.count, : self.count])
            cost -= fell
            if fell < 0.02:
                break
        return self._solution(x, inverse)

    def _step(self, x: Array, errors: Array, curvature: Array, slope: Array, cost: float, damping: float) -> tuple[Any, ...]:
        """The next point, if one is better within a few dampings."""
        diagonal = np.diag_indices(len(x))
        for _ in range(6):
            damped = curvature.copy()
            damped[diagonal] *= 1 + damping
            tried = x - np.linalg.solve(damped, slope)
            logs = self.logs(tried)
            found = self.errors(logs, tried)
            now = self.cost(found, tried)
            if now < cost:
                return tried, logs, found, cost - now, max(damping / 5, 1e-6)
            damping *= 8
        return x, self.logs(x), errors, 0.0, damping

    def _solution(self, x: Array, inverse: Array) -> Solution:
        deviations: list[dict[str, Array]] = []
        for position, (groups, _) in enumerate(self.groups):
            block = x[self.starts[1 + position] : self.starts[2 + position]].reshape(len(groups), self.count)
            deviations.append({str(group): values for group, values in zip(groups, block, strict=True)})
        first = 1 + len(self.groups)
        offsets = []
        for number in range(self.series):
            values = x[self.starts[first + number] : self.starts[first + number + 1]]
            offsets.append({str(cell): float(value) for cell, value in zip(self.cells[0], values, strict=True)})
        spread = np.minimum(np.sqrt(np.maximum(np.diag(inverse), 0)), self.width[: self.count])
        return Solution(self.names, self.centre, self.high, x[: self.count], deviations, offsets, spread)
