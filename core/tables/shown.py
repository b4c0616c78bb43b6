"""The sections that say what is shown: own columns, further columns, which rows, in which order, and the summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from scenario.common.yamltree import YamlNode
from scenario.model import answers, shared
from scenario.model.spec import Column
from scenario.registry import contract
from scenario.tables import read_summary
from scenario.tables.section import Path, Section, Writing, said_of
from scenario.tables.table import Summary, Table, known_inputs
from scenario.tables.terms import FORMULA, NONE, SCALAR, TEXT, Schema, Terms, mapping, named, one_of
from scenario.tables.values import CORE, ValueReader, items

FIELDS = ("formula", "unit", "doc", "title", "format", "source")
"""What a column of the table may say of itself."""


# -- columns ------------------------------------------------------------------------------------------------


def _read_columns(reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
    """The table's own columns; those that cannot be read are ``broken``, so that others may name them."""
    found: dict[str, tuple[Column, YamlNode]] = {}
    for name, cell in reader.section(node, "columns").items():
        key = node.keys.get(name, cell) if node else cell
        bad = contract.name_problems("", name)
        for problem in bad:
            reader.source.say(key, problem.message, problem.hint)
        column = _column(reader, name, cell)
        if not bad and column:
            found[name] = column
        elif not bad:
            reader.broken[name] = (Column("blank"), key)
    return {"columns": found}


def _column(reader: ValueReader, name: str, cell: YamlNode) -> tuple[Column, YamlNode] | None:
    """A column and the place of its formula, or None with a problem noted."""
    notes = dict(_column_notes(reader, cell)) if isinstance(cell.value, dict) else {}
    if isinstance(cell.value, dict) and "formula" not in cell.value:
        reader.source.say(cell, f"column '{name}' needs a formula")
        return None
    read = reader.formula(cell.value["formula"] if isinstance(cell.value, dict) else cell, f"column '{name}'")
    return (Column(**{**notes, "formula": read.text}), read.node) if read else None


def _column_notes(reader: ValueReader, cell: YamlNode) -> Iterator[tuple[str, str]]:
    for name, part in cell.value.items():
        if name not in FIELDS:
            reader.source.unknown(cell.keys.get(name, part), name, "column field", list(FIELDS))
        elif name != "formula":
            text = reader.text(part, name)
            if name == "format" and (said := contract.format_problem(text)):
                reader.source.say(part, said)
            yield name, text


def _write_columns(writing: Writing) -> Any:
    fields = ("formula", "title", "unit", "doc", "format", "source")
    found = {name: {key: getattr(column, key) for key in fields} for name, (column, _) in writing.table.columns.items()}
    return {name: {"formula": parts["formula"], **said_of(parts)} for name, parts in found.items()}


def _take_column(table: Table, other: Table, path: Path) -> Table:
    return replace(table, columns={**table.columns, path[0]: other.columns[path[0]]})


def _column_schema(_: object) -> Schema:
    whole = mapping({"formula": FORMULA, **dict.fromkeys(FIELDS[1:], SCALAR)}, required=["formula"])
    return named({"anyOf": [FORMULA, whole]})


# -- which rows and columns, in which order -----------------------------------------------------------------


def _read_show(reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
    known = [*answers.GROUPS, *answers.SHOWN]
    return {"show": tuple(name for item in items(node) if (name := reader.name_of("column to show", item, known)))}


def _read_sort(reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
    found: dict[str, tuple[bool, YamlNode]] = {}
    for item in items(node):
        name = item.value.strip() if isinstance(item.value, str) else ""
        down, name = name.startswith("-"), name.removeprefix("-").removeprefix("+").strip()
        if not name:
            said = "nothing" if isinstance(item.value, str) else item.kind
            reader.source.say(item, f"sort names a column, not {said}", "sort: [model, -tokens_per_s]")
        elif name in found:
            reader.source.say(item, f"sort lists '{name}' twice")
        else:
            found[name] = (down, item)
    return {"sort": tuple((name, down) for name, (down, _) in found.items()), "sort_nodes": tuple(item for _, item in found.values())}


def _write_sort(writing: Writing) -> Any:
    names = [f"-{name}" if down else name for name, down in writing.table.sort]
    return names[0] if len(names) == 1 else names


# -- the summary --------------------------------------------------------------------------------------------


def _read_summary(reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
    if read_summary.is_table(node):
        return {"summary": Summary(table=read_summary.of(reader)), "summary_node": node}
    parts = reader.section(node, "summary")
    for name, cell in parts.items():
        if name not in _SUMMARY:
            reader.source.unknown(node.keys.get(name, cell) if node else cell, name, "summary key", list(_SUMMARY))
    nodes = {("rows", item.value): item for item in _summary_rows(reader, parts.get("rows"))}
    across = parts.get("columns")
    if across is not None and isinstance(across.value, str):
        nodes["columns", across.value] = across
    elif across is not None and across.value is not None:
        reader.source.say(across, f"summary columns is the name of an input, not {across.kind}")
    where = _summary_where(reader, parts.get("where"), nodes)
    metrics = tuple(name for part, name in nodes if part == "rows")
    found = Summary(metrics, next((name for part, name in nodes if part == "columns"), ""), where, nodes)
    if not reader.source.problems:
        _summary_choices(reader, found)
    return {"summary": found, "summary_node": node}


def _summary_rows(reader: ValueReader, node: YamlNode | None) -> Iterator[YamlNode]:
    for item in items(node):
        if isinstance(item.value, str):
            yield item
        else:
            reader.source.say(item, f"summary rows are names of columns, not {item.kind}")


def _summary_where(reader: ValueReader, section: YamlNode | None, nodes: dict[tuple[str, str], YamlNode]) -> dict[str, float | str]:
    known, found = known_inputs(reader.host), {}
    for name, cell in reader.section(section, "summary where").items():
        input_ = name in CORE or name in known
        nodes["where", name] = cell if input_ or not section else section.keys.get(name, cell)
        value = reader.input(name, known, cell) if input_ else cell.shown
        if value is not None:
            found[name] = value
    return found


def _summary_choices(reader: ValueReader, summary: Summary) -> None:
    """A value that the summary starts with must be that of some row."""
    given, known = reader.parts["rows"], known_inputs(reader.host)
    for name, value in summary.where.items():
        fallback = reader.parts["defaults"].get(name, known[name].default if name in known else None)
        values = given[name].unique().to_list() if name in given.columns else [None]
        if value not in [fallback if item is None else item for item in values] and (name in CORE or name in shared.INPUTS):
            text = value if isinstance(value, str) else f"{value:g}"
            reader.source.say(summary.nodes["where", name], f"no row has {name} {text}")


def _write_summary(writing: Writing) -> Any:
    asked = writing.table.summary
    if asked.table is not None:
        return dict(asked.table.said)
    where = {name: writing.value(name, value) for name, value in asked.where.items()}
    return said_of({"columns": asked.columns, "where": where, "rows": list(asked.rows)})


_NAMES: Schema = {"anyOf": [TEXT, {"type": "array", "items": TEXT}, NONE]}
_SUMMARY = ("rows", "columns", "where")


def _summary_schema(terms: Terms) -> Schema:
    where = {"type": ["object", "null"], "properties": terms.inputs}
    plain = mapping({"rows": _NAMES, "columns": {"type": ["string", "null"]}, "where": where}, type=["object", "null"])
    return {"anyOf": [plain, read_summary.schema(TEXT, FORMULA)]}


COLUMNS = Section(
    "columns", "columns of this table: a formula each", _read_columns, _write_columns, _column_schema, take=_take_column, levels=2,
    kind="column", main="formula", entries="still", formula=True,
)  # fmt: skip
SHOW = Section(
    "show", "further columns to work out: best_gamma, break_even, acceptance, or single ones", _read_show,
    lambda writing: list(writing.table.show), lambda _: one_of([*answers.GROUPS, *answers.SHOWN]),
)  # fmt: skip
WHERE = Section(
    "where", "a condition; rows that fail it are left out of the output",
    lambda reader, node: {"where": reader.formula(node, "where")},
    lambda writing: writing.table.where.text if writing.table.where else None, lambda _: FORMULA, formula=True,
)  # fmt: skip
SORT = Section(
    "sort", "a column to sort the output by; -column is descending", _read_sort, _write_sort,
    lambda _: {"anyOf": [TEXT, {"type": "array", "items": TEXT, "uniqueItems": True}, NONE]},
)  # fmt: skip
SUMMARY = Section(
    "summary", "what the summary sheet shows", _read_summary, _write_summary, _summary_schema, levels=1, stage=3,
)  # fmt: skip
