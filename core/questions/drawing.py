"""The graph of columns: who reads whom, as mermaid, Graphviz dot or an SVG picture laid out in layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape

from scenario.book.book import Book
from scenario.common.errors import Problem, TableError, nearest
from scenario.formulas import graph
from scenario.formulas.expr import names


@dataclass(frozen=True)
class Box:
    """One name of the graph; ``role`` is ``input``, ``lookup``, ``calc`` or ``assumption``."""

    name: str
    role: str
    unit: str


@dataclass(frozen=True)
class Columns:
    """A graph: its boxes in dependency order, and for each name what it reads."""

    boxes: Mapping[str, Box]
    reads: Mapping[str, tuple[str, ...]]


def column_graph(book: Book, column: str | None = None, row: str | None = None) -> Columns:
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
    return Columns(boxes, reads)


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


def as_mermaid(columns: Columns) -> str:
    """A mermaid flow chart, which GitHub and many editors draw."""
    lines = ["flowchart LR"]
    for box in columns.boxes.values():
        label = f"{box.name}<br/>{box.unit}" if box.unit else box.name
        left, right = {"input": ("([", "])"), "lookup": ("[(", ")]"), "assumption": ("{{", "}}")}.get(box.role, ("[", "]"))
        lines.append(f'    {_id(box.name)}{left}"{label}"{right}:::{box.role}')
    for name, reads in columns.reads.items():
        lines += [f"    {_id(read)} --> {_id(name)}" for read in reads]
    lines += [f"    classDef {role} fill:{colour},stroke:#666,color:#111" for role, colour in COLOURS.items()]
    return "\n".join(lines) + "\n"


def _id(name: str) -> str:
    return f"n_{name}"  # "end" and "default" are words of mermaid's own


def as_dot(columns: Columns) -> str:
    """Graphviz dot."""
    lines = ["digraph columns {", "  rankdir=LR;", '  node [shape=box, style=filled, fontname="Helvetica", fontsize=10];']
    for box in columns.boxes.values():
        label = f"{box.name}\\n{box.unit}" if box.unit else box.name
        lines.append(f'  "{box.name}" [label="{label}", fillcolor="{COLOURS[box.role]}"];')
    for name, reads in columns.reads.items():
        lines += [f'  "{read}" -> "{name}";' for read in reads]
    return "\n".join([*lines, "}"]) + "\n"


WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 178, 30, 60, 10, 20


def as_svg(columns: Columns) -> str:
    """A picture of its own: one layer per depth, boxes placed near what they read."""
    layers = _layers(columns)
    place: dict[str, tuple[int, int]] = {}
    tallest = max(len(layer) for layer in layers)
    for x, layer in enumerate(layers):
        top = MARGIN + (tallest - len(layer)) * (HEIGHT + GAP_Y) // 2
        for y, name in enumerate(layer):
            place[name] = (MARGIN + x * (WIDTH + GAP_X), top + y * (HEIGHT + GAP_Y))
    width = 2 * MARGIN + len(layers) * (WIDTH + GAP_X) - GAP_X
    height = 2 * MARGIN + tallest * (HEIGHT + GAP_Y) - GAP_Y
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for name, reads in columns.reads.items():
        x2, y2 = place[name]
        for read in reads:
            x1, y1 = place[read]
            start, end = x1 + WIDTH, y1 + HEIGHT // 2
            bend = max((x2 - start) // 2, 20)
            lines.append(f'<path d="M{start},{end} C{start + bend},{end} {x2 - bend},{y2 + HEIGHT // 2} {x2},{y2 + HEIGHT // 2}" '
                         'fill="none" stroke="#999" stroke-width="0.8"/>')  # fmt: skip
    for box in columns.boxes.values():
        x, y = place[box.name]
        lines.append(f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="4" fill="{COLOURS[box.role]}" stroke="#555"/>')
        size = 11 if len(box.name) < 28 else 9
        unit = f'<tspan x="{x + WIDTH // 2}" dy="11" font-size="8" fill="#666">{escape(box.unit)}</tspan>' if box.unit else ""
        lines.append(f'<text x="{x + WIDTH // 2}" y="{y + (13 if unit else 19)}" text-anchor="middle" font-size="{size}">'
                     f"{escape(box.name)}{unit}</text>")  # fmt: skip
    return "\n".join([*lines, "</svg>"]) + "\n"


def _layers(columns: Columns) -> list[list[str]]:
    """Names by depth; a few sweeps put each near the middle of its neighbours, which untangles the lines."""
    layers = graph.levels(columns.boxes, columns.reads)
    depth = {name: index for index, layer in enumerate(layers) for name in layer}
    readers: dict[str, list[str]] = {name: [] for name in columns.boxes}
    for name, reads in columns.reads.items():
        for read in reads:
            readers[read].append(name)
    # Everything stands just before its first reader, so that inputs are near what they are for.
    for name in reversed(list(columns.boxes)):
        if readers[name]:
            depth[name] = min(depth[reader] for reader in readers[name]) - 1
    layers = [[name for name in columns.boxes if depth[name] == index] for index in range(len(layers))]
    for sweep in range(8):
        neighbours = columns.reads if sweep % 2 == 0 else readers
        position = {name: index / max(len(layer), 1) for layer in layers for index, name in enumerate(layer)}
        for layer in layers:
            middle = {n: sum(position[m] for m in neighbours[n]) / len(neighbours[n]) if neighbours[n] else position[n] for n in layer}
            layer.sort(key=middle.__getitem__)
    return [layer for layer in layers if layer]


FORMATS: dict[str, Callable[[Columns], str]] = {"mermaid": as_mermaid, "svg": as_svg, "dot": as_dot}
