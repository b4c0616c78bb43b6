"""The graph of columns: who reads whom, as mermaid or Graphviz dot, which other programs lay out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scenario.book.book import Book
from scenario.common.errors import Problem, TableError, nearest
from scenario.common.texts import for_line
from scenario.formulas import graph
from scenario.formulas.expr import names


@dataclass(frozen=True)
class Box:
    """One name of the graph; ``role`` is ``input``, ``lookup``, ``calc`` or ``assumption``."""

    name: str
    role: str
    unit: str


@dataclass(frozen=True)
class Graph:
    """A graph: its boxes in dependency order, and for each name what it reads."""

    boxes: Mapping[str, Box]
    reads: Mapping[str, tuple[str, ...]]


def column_graph(book: Book, column: str | None = None, row: str | None = None) -> Graph:
    """The graph of a book, or of what ``column`` rests on; with ``row``, as that row's formulas choose.

    Raises :class:`TableError` for an unknown column or row.
    """
    if column and column not in book.fields:
        raise TableError(Problem(f"unknown column '{column}'", nearest(column, book.fields) or "scenario list columns shows them"))
    values: Mapping[str, object] = {}
    if row is not None:
        from scenario.questions.explain import row_values

        values = row_values(book, row)
    reads: dict[str, tuple[str, ...]] = {}
    stack = [column] if column else [item.name for item in book.public]
    while stack:
        name = stack.pop()
        if name in reads:
            continue
        reads[name] = _reads(book, name, values)
        stack += reads[name]
    boxes = {}
    for name in graph.order(reads):
        item = book.fields.get(name)
        unit = item.unit if item else book.scalars[name].parameter.unit
        boxes[name] = Box(name, item.role if item else "assumption", unit)
    return Graph(boxes, reads)


def _reads(book: Book, name: str, values: Mapping[str, object]) -> tuple[str, ...]:
    item = book.fields.get(name)
    if item is None:
        return ()
    if item.lookup is not None:
        return (item.lookup.key,)
    if item.node is None:
        return ()
    if values:
        from scenario.questions.resolve import resolve

        return tuple(resolve(item.node, values, book).reads)  # type: ignore[arg-type]
    return tuple(names(item.node))


COLOURS = {"input": "#fff8dc", "lookup": "#e2f0d9", "calc": "#ffffff", "assumption": "#fde9d9"}
"""As in the workbook: inputs pale yellow, lookups green."""


def as_mermaid(columns: Graph) -> str:
    """A mermaid flow chart, which GitHub and many editors draw."""
    lines = ["flowchart LR"]
    for box in columns.boxes.values():
        label = f"{box.name}<br/>{_mermaid(box.unit)}" if box.unit else box.name
        left, right = {"input": ("([", "])"), "lookup": ("[(", ")]"), "assumption": ("{{", "}}")}.get(box.role, ("[", "]"))
        lines.append(f'    {_id(box.name)}{left}"{label}"{right}:::{box.role}')
    for name, reads in columns.reads.items():
        lines += [f"    {_id(read)} --> {_id(name)}" for read in reads]
    lines += [f"    classDef {role} fill:{colour},stroke:#666,color:#111" for role, colour in COLOURS.items()]
    return "\n".join(lines) + "\n"


def _id(name: str) -> str:
    return f"n_{name}"  # "end" and "default" are words of mermaid's own


def _mermaid(text: str) -> str:
    """A text inside a label: mermaid reads it as HTML, with entities between ``#`` and ``;``."""
    kept = for_line(text).replace("#", "#35;").replace("&", "#amp;")
    return kept.replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;").replace("`", "#96;")


def _dot(text: str) -> str:
    """A text inside a quoted label of Graphviz."""
    return for_line(text).replace("\\", "\\\\").replace('"', '\\"')


def as_dot(columns: Graph) -> str:
    """Graphviz dot."""
    lines = ["digraph columns {", "  rankdir=LR;", '  node [shape=box, style=filled, fontname="Helvetica", fontsize=10];']
    for box in columns.boxes.values():
        label = f"{box.name}\\n{_dot(box.unit)}" if box.unit else box.name
        lines.append(f'  "{box.name}" [label="{label}", fillcolor="{COLOURS[box.role]}"];')
    for name, reads in columns.reads.items():
        lines += [f'  "{read}" -> "{name}";' for read in reads]
    return "\n".join([*lines, "}"]) + "\n"


FORMATS: dict[str, Callable[[Graph], str]] = {"mermaid": as_mermaid, "dot": as_dot}
