"""Columns by name: their order by dependency, and the loops that have none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from scenario.common.errors import FormulaError, Problem

Place = Callable[[str], Problem]
"""Where a column stands, as a problem without a message."""


def order(reads: Mapping[str, Iterable[str]], place: Place = lambda name: Problem("", place=f"column '{name}'")) -> list[str]:
    """The names of ``reads`` such that each comes after those it reads, else in the given order.

    ``reads`` maps a column to the names in its formula; names that are not columns are inputs and are
    passed over. Raises :class:`FormulaError` with every loop, each written in reading order
    (``a -> b -> a``: a reads b, b reads a), from the column that ``reads`` names first, at its ``place``.
    """
    result, loops = _visited(reads)
    if loops:
        raise FormulaError([said(loop, place) for loop in loops])
    return result


def circles(reads: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The loops, each from the column that ``reads`` names first to itself; without their members ``reads`` has none."""
    return _visited(reads)[1]


def said(loop: list[str], place: Place) -> Problem:
    """The problem that a loop is."""
    spot = place(loop[0])
    return replace(spot, message="columns go round in a circle: " + " -> ".join(loop), hint="one of them must not read the next")


def _visited(reads: Mapping[str, Iterable[str]]) -> tuple[list[str], list[list[str]]]:
    """The order, and the loops that keep it from being one."""
    position = {name: index for index, name in enumerate(reads)}
    done: dict[str, bool] = {}
    result: list[str] = []
    loops: list[list[str]] = []

    def visit(start: str) -> None:
        # An explicit stack: a chain of ten thousand columns must not exhaust Python's own.
        path = [start]
        stack = [iter(reads[start])]
        done[start] = False
        while stack:
            for name in stack[-1]:
                if name not in reads:
                    continue
                if name not in done:
                    done[name] = False
                    path.append(name)
                    stack.append(iter(reads[name]))
                    break
                if not done[name]:
                    around = path[path.index(name) :]
                    first = around.index(min(around, key=position.__getitem__))
                    loops.append([*around[first:], *around[:first], around[first]])
            else:
                stack.pop()
                name = path.pop()
                done[name] = True
                result.append(name)

    for name in reads:
        if name not in done:
            visit(name)
    return result, loops


def levels(names: Iterable[str], reads: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """``names`` (in dependency order) in groups that can be computed side by side."""
    depth: dict[str, int] = {}
    groups: list[list[str]] = []
    for name in names:
        depth[name] = 1 + max((depth[read] for read in reads[name] if read in depth), default=-1)
        while len(groups) <= depth[name]:
            groups.append([])
        groups[depth[name]].append(name)
    return groups
