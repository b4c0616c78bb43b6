"""Recomputes a workbook with the engine and says, cell by cell, where the file shows something else, and why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from scenario.book.assemble import assemble
from scenario.registry.loaded import Host
from scenario.result import evaluate
from scenario.tables.table import MAX_ROWS
from scenario.workbooks.causes import Causes, before_changes, typed_over
from scenario.workbooks.cells import letter
from scenario.workbooks.found import UNKNOWN, Reading
from scenario.workbooks.read_back import load

TOLERANCE = 1e-9
"""Relative to the larger of 1 and the value."""


@dataclass(frozen=True)
class Difference:
    """One cell that shows something else than the engine computes."""

    place: str
    row: str
    column: str
    shows: Any
    engine: Any
    cause: str


@dataclass
class Checked:
    """The outcome: how many cells were compared, and those that differ, in the order of the sheet."""

    cells: int
    differences: list[Difference]
    notes: list[str]
    rows: int


def check(path: str | Path, host: Host, *, max_rows: int = MAX_ROWS) -> Checked:
    """Compare every computed cell of Scenarios with the engine's value for the inputs that the file holds.

    Raises :class:`scenario.TableError` when its inputs cannot be read.
    """
    table, reading = load(path, host, max_rows=max_rows, shown=True, overrides="ignore")
    book = assemble(table, host)
    # where and sort act at export only; the sheet may hold any rows in any order.
    book.where, book.sort = None, ()
    full = evaluate(book, host).full
    unknown = 0
    assert reading.header is not None
    header = reading.header
    shown_now = {name: shown for name, shown in reading.shown.items() if name in full.columns}
    for name, shown in shown_now.items():
        unknown += shown.count(UNKNOWN)
        if UNKNOWN in shown:  # compared as what the engine says: the file says nothing
            shown_now[name] = [engine if value is UNKNOWN else value for value, engine in zip(shown, full[name].to_list(), strict=True)]
    found_now = {name: _different(shown, full[name].to_list(), full.schema[name]) for name, shown in shown_now.items()}
    then = before_changes(reading, table, host) if any(found_now.values()) else None
    stale: dict[int, set[str]] = {}  # by row the columns that show something else than with the assumptions as they were written
    for name, indices in found_now.items():
        if then is not None and name in then.columns:
            indices = _different(shown_now[name], then[name].to_list(), then.schema[name])
        for index in indices:
            stale.setdefault(index, set()).add(name)
    causes = Causes(reading, book, full, stale)
    differences: list[Difference] = []
    cells = 0
    for name, indices in found_now.items():
        expected, shown = full[name].to_list(), shown_now[name]
        cells += len(shown)
        for index in indices:
            place = f"{header.sheet.title}!{letter(header.columns[name])}{reading.rows[index]}"
            differences.append(Difference(place, full["id"][index], name, shown[index], expected[index], causes.of(name, index)))
    found = {(item.row, item.column) for item in differences}
    for item in reading.typed:
        if isinstance(item.row, int) and (full["id"][item.row], item.column) not in found and item.column in full.columns:
            same = Difference(f"{item.sheet}!{item.cell}", full["id"][item.row], item.column, item.value, full[item.column][item.row], typed_over(item))
            differences.append(same)
    differences.sort(key=lambda item: (reading.rows[full["id"].index_of(item.row) or 0] if item.row else 0, len(item.place), item.place))
    if unknown:
        said = f"{unknown:,} formulas hold no value to compare: the program that saved the file did not compute them"
        reading.notes.append(f"{header.sheet.title}: {said}; open it in a spreadsheet program and save it")
    return Checked(cells - unknown, differences, reading.notes, full.height)


def _different(shown: list[Any], expected: list[Any], kind: pl.DataType) -> list[int]:
    """The rows in which two columns differ: numbers beyond the tolerance, anything else if not equal."""
    if kind == pl.Float64 and all(value is None or isinstance(value, float) for value in shown):
        frame = pl.DataFrame({"a": pl.Series(shown, dtype=pl.Float64), "b": pl.Series(expected, dtype=pl.Float64)})
        scale = pl.max_horizontal(pl.lit(1.0), pl.col("b").abs())
        same = ((pl.col("a") - pl.col("b")).abs() <= TOLERANCE * scale).fill_null(pl.col("a").is_null() & pl.col("b").is_null())
        return frame.select((~same).arg_true()).to_series().to_list()
    return [index for index, (a, b) in enumerate(zip(shown, expected, strict=True)) if not _same(a, b)]


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= TOLERANCE * max(1.0, abs(b))
    return type(a) is type(b) and a == b


def shown_as(value: Any) -> str:
    """A cell's value for a report."""
    if value is None:
        return "blank"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


__all__ = ["Checked", "Difference", "Reading", "check", "shown_as"]
