"""The sections that make rows, and the one that puts values in place of computed ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from scenario.common.errors import nearest
from scenario.common.yamltree import YamlNode
from scenario.tables.row_writer import OVERRIDE, RowWriter
from scenario.tables.section import Section, Writing
from scenario.tables.terms import NONE, Schema, Terms, mapping, named
from scenario.tables.values import ValueReader

MOST = 1e15
"""The largest override: what is more stands for no limit."""


def _write_grid(writing: Writing) -> Any:
    return _parts(writing)[0]


def _write_rows(writing: Writing) -> Any:
    return _parts(writing)[1]


def _parts(writing: Writing) -> tuple[Any, Any]:
    """The grid and the rows beside it, found once."""
    if writing.rows is None:
        writing.rows = RowWriter(writing).parts()
    return writing.rows


def _row_schema(terms: Terms) -> Schema:
    name = {"type": ["string", "number", "null"], "maxLength": 200, "description": "The row's name."}
    return {"anyOf": [{"type": "array", "minItems": 1, "items": mapping({"id": name, **terms.axes})}, NONE]}


def _read_overrides(reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
    """Values that stand in place of computed ones, as columns ``<name>_override``; blank where there is none."""
    frame = reader.parts["rows"]
    if node is None or reader.source.problems:
        return {}
    for name, values in _overridden(reader, node, frame["id"].to_list()).items():
        typed = pl.col("id").replace_strict(values, default=None, return_dtype=pl.Float64)
        frame = frame.with_columns(typed.alias(f"{name}{OVERRIDE}"))
    return {"rows": frame}


def _overridden(reader: ValueReader, section: YamlNode, known: list[str]) -> dict[str, dict[str, float]]:
    """By column and row what stands in place."""
    found: dict[str, dict[str, float]] = {}
    for row, cells in reader.section(section, "overrides").items():
        if row not in known:
            reader.source.say(section.keys.get(row, cells), f"there is no row '{row}' to override", nearest(row, known))
            continue
        for name, cell in reader.section(cells, f"overrides of {row}").items():
            if isinstance(cell.value, bool) or not isinstance(cell.value, int | float) or abs(cell.value) > MOST:
                reader.source.say(cell, f"an override is a number, not {cell.kind}")
            else:
                found.setdefault(name, {})[row] = float(cell.value)
    return found


def _write_overrides(writing: Writing) -> Any:
    rows = writing.table.rows
    names = [name for name in rows.columns if name.endswith(OVERRIDE)]
    if not names:
        return None
    typed = rows.filter(pl.any_horizontal(pl.col(names).is_not_null())).iter_rows(named=True)
    return {row["id"]: {name.removesuffix(OVERRIDE): row[name] for name in names if row[name] is not None} for row in typed}


GRID = Section(
    "grid", "lists of inputs; every combination is a row", lambda _, __: {}, _write_grid,
    lambda terms: {"anyOf": [mapping(terms.axes, minProperties=1), NONE]}, by_row=True, stage=2,
)  # fmt: skip
ROWS = Section(
    "rows", "rows one by one; a list inside a row expands", lambda reader, _: {"rows": reader.given_rows(reader.parts["defaults"])},
    _write_rows, _row_schema, by_row=True, stage=2,
)  # fmt: skip
OVERRIDES = Section(
    "overrides", "by row id and column: a number in place of the computed one", _read_overrides, _write_overrides,
    lambda _: named(named({"type": "number", "minimum": -MOST, "maximum": MOST})), by_row=True, stage=2,
)  # fmt: skip
