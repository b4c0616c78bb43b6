"""A summary whose columns are scenarios of their own: metrics by scenarios, as a table's ``summary:`` says it.

    summary:
      variants: {long: {context: 131072}}        # inputs that metrics carry: of each column a row more
      columns:
        - {id: small, title: Llama 8B, model: llama-3.1-8b, gpu: h100-sxm}
        - {id: large, title: Llama 70B, model: llama-3.1-70b, gpus: 4}
      rows:
        - weight_gb
        - {title: cache of a long chat, of: long, show: kv_gb, format: '0.0 "GB"'}
        - {title: speed, text: "{speedup:1}x (up to batch {free_batch})", when: [{if: "not fits", text: does not fit}]}

Each column is a row of the table, and one more for each variant that its cells read; they are rows like any other.
A template is text with formulas in braces: ``{tokens_per_s:0}`` with so many decimals (-1: tens), ``{usd:2,}`` with
thousands marked as well, ``{speedup @ long}`` of another variant of the column, or of any row by its id.
What a reader of the workbook chose to see instead stands in ``chosen: {columns: {small: large}, rows: {1: 3, 2: tpot_ms}}``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scenario.common.yamltree import YamlNode


@dataclass(frozen=True)
class Part:
    """A piece of a template: ``text`` as it stands, or the value of ``formula`` in the row ``at`` (empty: the cell's own).

    ``digits`` are the decimals it is shown with; None: all that it has.
    """

    text: str = ""
    formula: str = ""
    at: str = ""
    digits: int | None = None
    thousands: bool = False


@dataclass(frozen=True)
class Template:
    """Text with formulas in braces, and its place."""

    parts: tuple[Part, ...]
    node: YamlNode = field(compare=False)


@dataclass(frozen=True)
class MetricCell:
    """What a metric shows in a column: the first of ``when`` that holds, else ``text``, else the value of ``show``."""

    node: YamlNode = field(compare=False)
    of: str = ""
    show: str = ""
    text: Template | None = None
    format: str = ""
    when: tuple[tuple[str, Template], ...] = ()

    @property
    def templates(self) -> Iterator[Template]:
        """All the templates of the cell."""
        yield from (said for _, said in self.when)
        if self.text is not None:
            yield self.text


@dataclass(frozen=True)
class Metric:
    """One line: a title and a cell for each column; ``cells`` are those that differ, by column. A ``heading`` has none."""

    title: Template | None
    cell: MetricCell
    cells: Mapping[str, MetricCell] = field(default_factory=dict)
    note: Template | None = None
    heading: bool = False

    def of(self, column: str) -> MetricCell:
        """The cell in a column."""
        return self.cells.get(column, self.cell)


@dataclass(frozen=True)
class Across:
    """One column: the row ``id``, and the rows ``id-variant`` of those of its ``variants`` that cells read."""

    id: str
    title: str
    inputs: Mapping[str, YamlNode] = field(compare=False)
    variants: Mapping[str, Mapping[str, YamlNode]] = field(default_factory=dict, compare=False)

    def row(self, variant: str) -> str:
        """The id of the row that a cell reads: of a variant of this column, else the row of that id."""
        return self.id if not variant else f"{self.id}-{variant}" if variant in self.variants else variant


@dataclass(frozen=True)
class SummaryTable:
    """The whole summary. ``top`` are the assumptions that stand above it, with what they are called; ``said`` is it as plain data."""

    columns: tuple[Across, ...]
    metrics: tuple[Metric, ...]
    top: Mapping[str, str] = field(default_factory=dict)
    about: str = ""
    notes: tuple[Template, ...] = ()
    chosen_columns: Mapping[str, str] = field(default_factory=dict)
    """Columns in whose place a reader chose to see another: id -> id."""
    chosen_rows: Mapping[int, int | str] = field(default_factory=dict)
    """Metrics, counted from 1 without headings, in whose place another is shown: its number, or the name of a column."""
    said: Mapping[str, Any] = field(default_factory=dict)
    top_nodes: Mapping[str, YamlNode] = field(default_factory=dict, compare=False)

    @property
    def used(self) -> dict[str, tuple[Across, str]]:
        """The rows that the summary makes: id -> column and variant."""
        found = {column.row(""): (column, "") for column in self.columns}
        for column in self.columns:
            for metric in self.metrics:
                cell = metric.of(column.id)
                names = [cell.of, *(part.at for said in cell.templates for part in said.parts)]
                found |= {column.row(name): (column, name) for name in names if name in column.variants}
        return found

    @property
    def formulas(self) -> Iterator[str]:
        """Every formula of the summary."""
        for metric in self.metrics:
            for cell in (metric.cell, *metric.cells.values()):
                yield from (text for text in (cell.show, *(test for test, _ in cell.when)) if text)
                yield from _formulas(*cell.templates)
            yield from _formulas(metric.title, metric.note)
        yield from _formulas(*self.notes)

    def rows(self, root: YamlNode) -> list[YamlNode]:
        """The rows that the summary makes, as rows of the table are written; those that the table writes itself aside."""
        listed = root.value.get("rows")
        items = listed.value if listed is not None and isinstance(listed.value, list) else []
        ids = [item.value["id"] for item in items if isinstance(item.value, dict) and "id" in item.value]
        there = {cell.value if isinstance(cell.value, str) else cell.shown for cell in ids}
        found = []
        for name, (column, variant) in self.used.items():
            if name not in there:
                cells = {**column.inputs, **column.variants.get(variant, {})}
                place = next(iter(cells.values()), root)
                made = YamlNode(name, place.line, place.column, path=place.path)
                found.append(YamlNode({"id": made, **cells}, place.line, place.column, path=place.path))
        return found


def _formulas(*templates: Template | None) -> Iterator[str]:
    yield from (part.formula for said in templates if said for part in said.parts if part.formula)
