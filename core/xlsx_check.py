"""Recomputes a workbook with the engine and says, cell by cell, where the file shows something else, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from scenario.assemble import assemble
from scenario.book import Book
from scenario.expr import names
from scenario.host import Host
from scenario.result import evaluate
from scenario.table import MAX_ROWS
from scenario.xlsx_cells import letter
from scenario.xlsx_found import UNKNOWN, Reading, Typed
from scenario.xlsx_table import changed_places, load

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
    changed = changed_places(reading, book)
    typed = {(item.row, item.column): item for item in reading.typed}
    reads = dependencies(book)
    differences: list[Difference] = []
    cells = 0
    header = reading.header
    assert header is not None
    for name, shown in reading.shown.items():
        if name not in full.columns:
            continue
        expected = full[name].to_list()
        cells += len(shown)
        unknown += shown.count(UNKNOWN)
        if UNKNOWN in shown:  # compared as what the engine says: the file says nothing
            shown = [engine if value is UNKNOWN else value for value, engine in zip(shown, expected, strict=True)]
        for index in _different(shown, expected, full.schema[name]):
            cause = _cause(name, index, typed, reads, changed, header.columns, reading.other_formulas)
            place = f"{header.sheet.title}!{letter(header.columns[name])}{reading.rows[index]}"
            differences.append(Difference(place, full["id"][index], name, shown[index], expected[index], cause))
    found = {(item.row, item.column) for item in differences}
    for item in reading.typed:
        if isinstance(item.row, int) and (full["id"][item.row], item.column) not in found and item.column in full.columns:
            same = Difference(f"{item.sheet}!{item.cell}", full["id"][item.row], item.column, item.value, full[item.column][item.row], _typed(item))
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


def dependencies(book: Book) -> dict[str, set[str]]:
    """For each column, all columns and scalars that it reads, directly or through others."""
    direct = {
        name: set(names(item.node)) if item.node is not None else {item.lookup.key, f"{item.lookup.table}:{item.lookup.field}"} if item.lookup else set()
        for name, item in book.fields.items()
    }
    for key, table in book.tables.items():
        for column in table.columns:
            assert column.node is not None
            direct[f"{key}:{column.name}"] = {name if name in book.scalars else f"{key}:{name}" for name in names(column.node)}
    done: dict[str, set[str]] = {}

    def collect(name: str) -> set[str]:
        if name not in done:
            done[name] = set()
            for read in direct.get(name, set()):
                done[name] |= {read} | collect(read)
        return done[name]

    return {name: collect(name) for name in book.fields}


def _cause(
    name: str, index: int, typed: Mapping[tuple[Any, str], Typed], reads: Mapping[str, set[str]], changed: Mapping[str, str],
    columns: Mapping[str, int], formulas: Mapping[str, str],
) -> str:  # fmt: skip
    if (index, name) in typed:
        return _typed(typed[index, name])
    followed = [item for (row, column), item in typed.items() if row == index and column in reads[name]]
    if followed:
        return f"follows from {followed[0].cell}, typed over its formula"
    edited = [place for key, place in changed.items() if key in reads[name]]
    if edited:
        return f"changed assumption, not recalculated: {', '.join(edited[:3])}" + (", ..." if len(edited) > 3 else "")
    others = [column for column in (name, *sorted(reads[name])) if column in formulas]
    if others:
        return f"the engine's formula of {others[0]} is another one than the file's"
    return "an input of the row was edited, and the file not recalculated"


def _typed(item: Typed) -> str:
    if item.broken:
        return "the formula refers to what was deleted"
    return "a value is typed over the formula" if item.formula is None else "the formula was changed"


def shown_as(value: Any) -> str:
    """A cell's value for a report."""
    if value is None:
        return "blank"
    return f"{value:.10g}" if isinstance(value, float) else str(value)


__all__ = ["Checked", "Difference", "Reading", "check", "dependencies", "shown_as"]
