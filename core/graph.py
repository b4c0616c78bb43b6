"""Columns by name: their order by dependency, and the loops that have none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from scenario.errors import FormulaError, Problem


def order(
    reads: Mapping[str, Iterable[str]],
    place: Callable[[str], Problem] = lambda name: Problem("", place=f"column '{name}'"),
) -> list[str]:
    """The names of ``reads`` such that each comes after those it reads, else in the given order.

    ``reads`` maps a column to the names in its formula; names that are not columns are inputs and are
    passed over. Raises :class:`FormulaError` with every loop, each written in reading order
    (``a -> b -> a``: a reads b, b reads a), from the column that ``reads`` names first, at its ``place``.
    """
    position = {name: index for index, name in enumerate(reads)}
    done: dict[str, bool] = {}
    result: list[str] = []
    loops: list[Problem] = []

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
                    loop = [*around[first:], *around[:first], around[first]]
                    spot = place(loop[0])
                    said = "columns go round in a circle: " + " -> ".join(loop)
                    loops.append(Problem(said, "one of them must not read the next", spot.file, spot.line, spot.column,
                                         spot.source, spot.caret, spot.place))  # fmt: skip
            else:
                stack.pop()
                name = path.pop()
                done[name] = True
                result.append(name)

    for name in reads:
        if name not in done:
            visit(name)
    if loops:
        raise FormulaError(loops)
    return result


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
