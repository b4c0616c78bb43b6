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
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from scenario.common.errors import FormulaError
from scenario.common.yamltree import Source, YamlNode
from scenario.formulas import expr
from scenario.registry import contract

KEYS = ("columns", "rows", "where", "variants", "top", "about", "notes")
COLUMN_KEYS = ("id", "title", "variants")
CELL_KEYS = ("show", "text", "of", "format", "when")
METRIC_KEYS = (*CELL_KEYS, "title", "cells", "note", "heading")
MOST = 200
"""Metrics, and columns, that a summary may have."""
_DIGITS = re.compile(r":\s*(-?[0-9]{1,2})(,?)\s*\Z")
_AT = re.compile(r"@\s*([^@{}]+?)\s*\Z")
_BRACES = re.compile(r"\{([^{}]*)\}")


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


def is_table(node: YamlNode | None) -> bool:
    """Whether a ``summary:`` has columns that are scenarios of their own."""
    across = node.value.get("columns") if node is not None and isinstance(node.value, dict) else None
    listed = across.value if across is not None and isinstance(across.value, list) else None
    return listed is not None and (not listed or any(isinstance(item.value, dict) for item in listed))


class SummaryHolder(Protocol):
    """The reader of a table, so far as it concerns a summary."""

    source: Source
    root: YamlNode
    summary: SummaryTable | None


def of(reader: SummaryHolder) -> SummaryTable | None:
    """The summary of the table that is read, whose rows are needed before its turn comes; read once."""
    node = reader.root.value.get("summary")
    if reader.summary is None and is_table(node):
        reader.summary = read(reader.source, node)
    return reader.summary


def read(source: Source, node: YamlNode) -> SummaryTable:
    """The summary of a ``summary:`` whose columns are a list; problems go to ``source``."""
    return _SummaryReader(source).table(node)


class _SummaryReader:
    def __init__(self, source: Source) -> None:
        self.source = source

    def table(self, node: YamlNode) -> SummaryTable:
        parts = node.value
        self.known(node, KEYS, "summary key")
        if parts.get("where") is not None:
            self.source.say(parts["where"], "where has no meaning in a summary whose columns are scenarios of their own",
                            "give the columns the inputs that they should have")  # fmt: skip
        shared = {
            name: self.inputs(cell, f"variant '{name}'")
            for name, cell in self.mapping(parts.get("variants"), "variants").items()
        }
        columns = tuple(found for item in parts["columns"].value if (found := self.column(item, shared)))
        if not columns:
            self.source.say(parts["columns"], "a summary needs a column", "columns: [{id: a, model: ..., gpu: ...}]")
        metrics = tuple(one for item in self.items(parts.get("rows"), "rows") if (one := self.metric(item, columns)))
        top = self.mapping(parts.get("top"), "top")
        notes = (self.template(item, "a note") for item in self.items(parts.get("notes"), "notes"))
        self.twice([(item.id, parts["columns"]) for item in columns], "column")
        for kind, count in (("columns", len(columns)), ("rows", len(metrics))):
            if count > MOST:
                self.source.say(node, f"a summary has at most {MOST} {kind}, not {count}")
        return SummaryTable(columns, metrics, {name: self.text(cell, f"top {name}") or name for name, cell in top.items()},
                            self.text(parts.get("about"), "about"), tuple(note for note in notes if note), node.plain(),
                            {name: node.value["top"].keys.get(name, cell) for name, cell in top.items()})  # fmt: skip

    def column(self, node: YamlNode, shared: Mapping[str, Mapping[str, YamlNode]]) -> Across | None:
        if not isinstance(node.value, dict) or "id" not in node.value:
            self.source.say(
                node,
                "a column of the summary is a mapping of inputs with an id",
                "{id: a, title: A, model: ..., gpu: ...}",
            )
            return None
        name = self.text(node.value["id"], "id")
        own = self.mapping(node.value.get("variants"), "variants")
        variants = {key: self.inputs(cell, f"variant '{key}'") for key, cell in own.items()}
        inputs = {key: cell for key, cell in node.value.items() if key not in COLUMN_KEYS}
        merged = {key: {**shared.get(key, {}), **variants.get(key, {})} for key in {**shared, **variants}}
        return Across(name, self.text(node.value.get("title"), "title") or name, inputs, merged)

    def metric(self, node: YamlNode, columns: tuple[Across, ...]) -> Metric | None:
        if isinstance(node.value, str):
            return Metric(None, MetricCell(node, show=self.formula(node)))
        if not isinstance(node.value, dict):
            self.source.say(node, f"a row of the summary is the name of a column or a mapping, not {node.kind}")
            return None
        self.known(node, METRIC_KEYS, "key of a metric")
        parts = node.value
        if "heading" in parts:
            return Metric(self.template(parts["heading"], "heading"), MetricCell(node), heading=True)
        base = {key: cell for key, cell in parts.items() if key in CELL_KEYS}
        cells: dict[str, MetricCell] = {}
        for name, cell in self.mapping(parts.get("cells"), "cells").items():
            if name not in {column.id for column in columns}:
                self.source.unknown(
                    parts["cells"].keys.get(name, cell), name, "column of the summary", [c.id for c in columns]
                )
            elif isinstance(cell.value, dict):
                self.known(cell, CELL_KEYS, "key of a cell")
                inherited = {
                    key: part
                    for key, part in base.items()
                    if not (key in ("show", "text") and {"show", "text"} & {*cell.value})
                }
                cells[name] = self.cell(cell, {**inherited, **cell.value})
            else:
                cells[name] = MetricCell(cell, text=self.template(cell, "a cell"))
        if not base.keys() & {"show", "text"} and {column.id for column in columns} - {*cells}:
            self.source.say(
                node, "a metric shows something", "show: weight_gb, or text: a template with formulas in {}"
            )
        title = self.template(parts["title"], "title") if "title" in parts else None
        found = Metric(
            title, self.cell(node, base), cells, self.template(parts["note"], "note") if "note" in parts else None
        )
        for column in columns:
            of = found.of(column.id).of
            if of and of not in column.variants:
                self.source.unknown(parts.get("of", node), of, f"variant of column '{column.id}'", [*column.variants])
        return found

    def cell(self, node: YamlNode, parts: Mapping[str, YamlNode]) -> MetricCell:
        tests = []
        for item in self.items(parts.get("when"), "when"):
            if not isinstance(item.value, dict) or {*item.value} != {"if", "text"}:
                self.source.say(
                    item, "when is a list of a condition and a text each", '{if: "not fits", text: does not fit}'
                )
                continue
            words = self.template(item.value["text"], "text")
            if words:
                tests.append((self.formula(item.value["if"]), words))
        text = self.template(parts["text"], "text") if "text" in parts else None
        form = self.text(parts.get("format"), "format")
        if form and (said := contract.format_problem(form)):
            self.source.say(parts["format"], said)
        return MetricCell(
            node,
            self.text(parts.get("of"), "of"),
            self.formula(parts["show"]) if "show" in parts else "",
            text,
            form,
            tuple(tests),
        )

    def template(self, node: YamlNode, what: str) -> Template | None:
        """Text with formulas in braces."""
        if isinstance(node.value, dict | list) or node.value is None:
            self.source.say(
                node, f"{what} is a text, not {node.kind}", 'write a text with braces in quotes: "{speedup:1}x"'
            )
            return None
        text = node.value if isinstance(node.value, str) else node.shown
        parts = []
        for index, piece in enumerate(_BRACES.split(text)):
            if index % 2 == 0:
                if "{" in piece or "}" in piece:
                    self.source.say(
                        node, f"{what} has a brace that is not closed", "formulas stand in braces: {speedup:1}x"
                    )
                parts += [Part(piece)] if piece else []
                continue
            digits = _DIGITS.search(piece)
            inner = piece[: digits.start()] if digits else piece
            at = _AT.search(inner)
            formula = (inner[: at.start()] if at else inner).strip()
            self.formula(YamlNode(formula, node.line, node.column, path=node.path))
            parts.append(
                Part("", formula, at[1] if at else "", int(digits[1]) if digits else None, bool(digits and digits[2]))
            )
        return Template(tuple(parts), node)

    def formula(self, node: YamlNode) -> str:
        if isinstance(node.value, bool | dict | list) or node.value is None:
            self.source.say(node, f"a formula is needed here, not {node.kind}")
            return "0"
        text = node.value if isinstance(node.value, str) else repr(node.value)
        try:
            expr.parse(text)
        except FormulaError as error:
            for problem in error.problems:
                self.source.say(node, f"'{text}': {problem.message}", problem.hint)
            return "0"
        return text

    # -- pieces ----------------------------------------------------------------------------------------

    def inputs(self, node: YamlNode, what: str) -> dict[str, YamlNode]:
        return self.mapping(node, what)

    def mapping(self, node: YamlNode | None, what: str) -> dict[str, YamlNode]:
        if node is None or node.value is None:
            return {}
        if not isinstance(node.value, dict):
            self.source.say(node, f"{what} of a summary is a mapping, not {node.kind}")
            return {}
        return node.value

    def items(self, node: YamlNode | None, what: str) -> list[YamlNode]:
        if node is None or node.value is None:
            return []
        if not isinstance(node.value, list):
            self.source.say(node, f"{what} of a summary is a list, not {node.kind}")
            return []
        return node.value

    def text(self, node: YamlNode | None, what: str) -> str:
        if node is None or node.value is None:
            return ""
        if isinstance(node.value, dict | list):
            self.source.say(node, f"{what} is a text, not {node.kind}")
            return ""
        return node.value if isinstance(node.value, str) else node.shown

    def known(self, node: YamlNode, keys: tuple[str, ...], what: str) -> None:
        for name, cell in node.value.items():
            if name not in keys:
                self.source.unknown(node.keys.get(name, cell), name, what, list(keys))

    def twice(self, names: list[tuple[str, YamlNode]], what: str) -> None:
        seen: set[str] = set()
        for name, node in names:
            if name in seen:
                self.source.say(node, f"the {what} '{name}' stands in the summary twice")
            seen.add(name)


def schema(text: Mapping[str, Any], formula: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of such a summary; ``text`` and ``formula`` are those of a text and of a formula."""
    words: dict[str, Any] = {"type": ["string", "number"]}

    def mapping(properties: Mapping[str, Any], *required: str, more: bool = False) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": dict(properties),
            "required": list(required),
            "additionalProperties": more,
        }

    when = {"type": "array", "items": mapping({"if": formula, "text": words}, "if", "text")}
    cell = {"show": formula, "text": words, "of": words, "format": text, "when": when}
    metric = mapping({**cell, "title": words, "note": words, "heading": words,
                      "cells": {"type": "object", "additionalProperties": {"anyOf": [words, mapping(cell)]}}})  # fmt: skip
    variants = {"type": ["object", "null"], "additionalProperties": {"type": ["object", "null"]}}
    column = mapping({"id": words, "title": words, "variants": variants}, "id", more=True)
    return mapping({
        "columns": {"type": "array", "items": column, "minItems": 1}, "rows": {"type": ["array", "null"], "items": {"anyOf": [text, metric]}},
        "variants": variants, "top": {"type": ["object", "null"], "additionalProperties": words}, "about": words,
        "notes": {"type": ["array", "null"], "items": words},
    }, "columns")  # fmt: skip
