"""Reads a ``summary:`` whose columns are scenarios of their own, with the place of whatever is wrong in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

from scenario.common.errors import FormulaError
from scenario.common.yamltree import Source, YamlNode
from scenario.formulas import expr
from scenario.registry import contract
from scenario.tables.summary import Across, Metric, MetricCell, Part, SummaryTable, Template

KEYS = ("columns", "rows", "where", "variants", "top", "about", "notes", "chosen")
COLUMN_KEYS = ("id", "title", "variants")
CELL_KEYS = ("show", "text", "of", "format", "when")
METRIC_KEYS = (*CELL_KEYS, "title", "cells", "note", "heading")
MOST = 200
"""Metrics, and columns, that a summary may have."""
_DIGITS = re.compile(r":\s*(-?[0-9]{1,2})(,?)\s*\Z")
_AT = re.compile(r"@\s*([^@{}]+?)\s*\Z")
_BRACES = re.compile(r"\{([^{}]*)\}")


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
        across, down = self.chosen(parts.get("chosen"), columns, sum(not metric.heading for metric in metrics))
        return SummaryTable(columns, metrics, {name: self.source.text(cell, f"top {name}") or name for name, cell in top.items()},
                            self.source.text(parts.get("about"), "about"), tuple(note for note in notes if note), across, down, node.plain(),
                            {name: node.value["top"].keys.get(name, cell) for name, cell in top.items()})  # fmt: skip

    def column(self, node: YamlNode, shared: Mapping[str, Mapping[str, YamlNode]]) -> Across | None:
        if not isinstance(node.value, dict) or "id" not in node.value:
            self.source.say(
                node,
                "a column of the summary is a mapping of inputs with an id",
                "{id: a, title: A, model: ..., gpu: ...}",
            )
            return None
        name = self.source.text(node.value["id"], "id")
        own = self.mapping(node.value.get("variants"), "variants")
        variants = {key: self.inputs(cell, f"variant '{key}'") for key, cell in own.items()}
        inputs = {key: cell for key, cell in node.value.items() if key not in COLUMN_KEYS}
        merged = {key: {**shared.get(key, {}), **variants.get(key, {})} for key in {**shared, **variants}}
        return Across(name, self.source.text(node.value.get("title"), "title") or name, inputs, merged)

    def chosen(
        self, node: YamlNode | None, columns: tuple[Across, ...], metrics: int
    ) -> tuple[dict[str, str], dict[int, int | str]]:
        """What is shown in place of columns (by id) and of metrics (by number; another's number or a column's name)."""
        parts = self.mapping(node, "chosen")
        if node is not None and parts:
            self.known(node, ("columns", "rows"), "key of chosen")
        ids, across = [column.id for column in columns], dict[str, str]()
        for name, cell in self.mapping(parts.get("columns"), "chosen columns").items():
            across[name] = self.source.text(cell, "a column")
            for said in (said for said in (name, across[name]) if said not in ids):
                self.source.unknown(cell, said, "column of the summary", ids)
        return across, self.chosen_rows(self.mapping(parts.get("rows"), "chosen rows"), metrics)

    def chosen_rows(self, rows: Mapping[str, YamlNode], metrics: int) -> dict[int, int | str]:
        found: dict[int, int | str] = {}
        for name, cell in rows.items():
            value = cell.value if isinstance(cell.value, int) and not isinstance(cell.value, bool) else self.source.text(cell, "a row")
            there = str(name).isdecimal() and 1 <= int(name) <= metrics
            if there and (isinstance(value, str) or 1 <= value <= metrics):
                found[int(name)] = value
            else:
                self.source.say(cell, f"chosen names metrics by their numbers, from 1 to {metrics}", "rows: {1: 3, 2: tpot_ms}")
        return found

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
        cells = self.own_cells(parts, base, [column.id for column in columns])
        if not base.keys() & {"show", "text"} and {column.id for column in columns} - {*cells}:
            self.source.say(
                node, "a metric shows something", "show: weight_gb, or text: a template with formulas in {}"
            )
        title, note = (
            self.template(parts[key], what) if key in parts else None for key, what in (("title", "title"), ("note", "note"))
        )
        found = Metric(title, self.cell(node, base), cells, note)
        self.variants_known(found, parts.get("of", node), columns)
        return found

    def variants_known(self, metric: Metric, node: YamlNode, columns: tuple[Across, ...]) -> None:
        """Say where a metric is ``of`` a variant that its column does not have."""
        for column in columns:
            of = metric.of(column.id).of
            if of and of not in column.variants:
                self.source.unknown(node, of, f"variant of column '{column.id}'", [*column.variants])

    def own_cells(self, parts: Mapping[str, YamlNode], base: Mapping[str, YamlNode], ids: list[str]) -> dict[str, MetricCell]:
        """The cells of a metric that differ, by column; they inherit what they do not say."""
        cells: dict[str, MetricCell] = {}
        for name, cell in self.mapping(parts.get("cells"), "cells").items():
            if name not in ids:
                self.source.unknown(parts["cells"].keys.get(name, cell), name, "column of the summary", ids)
            elif isinstance(cell.value, dict):
                self.known(cell, CELL_KEYS, "key of a cell")
                shows = {"show", "text"} & {*cell.value}
                inherited = {key: part for key, part in base.items() if not (key in ("show", "text") and shows)}
                cells[name] = self.cell(cell, {**inherited, **cell.value})
            else:
                cells[name] = MetricCell(cell, text=self.template(cell, "a cell"))
        return cells

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
        form = self.source.text(parts.get("format"), "format")
        if form and (said := contract.format_problem(form)):
            self.source.say(parts["format"], said)
        return MetricCell(
            node,
            self.source.text(parts.get("of"), "of"),
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
        "chosen": mapping({"columns": {"type": "object", "additionalProperties": words}, "rows": {"type": "object", "additionalProperties": words}}),
    }, "columns")  # fmt: skip
