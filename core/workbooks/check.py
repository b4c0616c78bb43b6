"""Recomputes a workbook with the engine and says, cell by cell, where the file shows something else, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from scenario.book.assemble import assemble
from scenario.registry.loaded import Host
from scenario.result import Result, evaluate
from scenario.tables.table import MAX_ROWS, Table
from scenario.workbooks.causes import Causes, before_changes, shown_as, typed_over
from scenario.workbooks.cells import letter
from scenario.workbooks.found import UNKNOWN, Header, Reading
from scenario.workbooks.other_sheets import Compared, Difference, different, other_sheets
from scenario.workbooks.read_back import load

Shown = Mapping[str, list[Any]]
"""The values of columns, row for row."""


@dataclass
class Checked:
    """The outcome: how many cells were compared, and those that differ, in the order of the sheets."""

    cells: int = 0
    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows: int = 0
    sheets: int = 0
    """The sheets of which cells were compared."""
    unknown: dict[str, int] = field(default_factory=dict)
    """The formulas that hold no value to compare, by sheet."""

    def add(self, found: Compared) -> None:
        """Count what was compared on one sheet."""
        self.cells += found.cells
        self.sheets += found.cells > 0
        self.differences += found.differences
        self.notes += found.notes
        if found.unknown:
            self.unknown[found.title] = found.unknown

    @property
    def good(self) -> bool:
        """Whether something was compared and everything shows what the engine computes."""
        return self.cells > 0 and not self.differences

    def tell_unknown(self) -> None:
        """Say how many formulas hold no value."""
        if self.unknown:
            each = ", ".join(f"{title} {count:,}" for title, count in self.unknown.items())
            self.notes.append(f"{sum(self.unknown.values()):,} formulas hold no value to compare ({each}): the program that saved "
                              "the file did not compute them; open it in a spreadsheet program and save it")  # fmt: skip


def check(path: str | Path, host: Host, *, max_rows: int = MAX_ROWS) -> Checked:
    """Compare every computed cell of a workbook with the engine's value for the inputs that the file holds.

    Raises :class:`scenario.TableError` when its inputs cannot be read.
    """
    table, reading = load(path, host, max_rows=max_rows, shown=True, overrides="ignore")
    table.extras = None  # nothing of an analyst's own is compared
    book = assemble(table, host)
    # where and sort act at export only; the sheet may hold any rows in any order.
    book.where, book.sort = None, ()
    result = evaluate(book, host)
    checked = Checked(notes=reading.notes, rows=result.full.height)
    checked.add(_rows(reading, table, result))
    for found in other_sheets(path, result, bool(checked.differences)):
        checked.add(found)
    checked.tell_unknown()
    return checked


def _rows(reading: Reading, table: Table, result: Result) -> Compared:
    """The sheet Scenarios, compared column by column."""
    header, full = reading.header, result.full
    assert header is not None
    found = Compared(header.sheet.title)
    shown = {name: values for name, values in reading.shown.items() if name in full.columns}
    for name, values in shown.items():
        found.unknown += values.count(UNKNOWN)
        if UNKNOWN in values:  # compared as what the engine says: the file says nothing
            pairs = zip(values, full[name].to_list(), strict=True)
            shown[name] = [engine if value is UNKNOWN else value for value, engine in pairs]
    found.cells = sum(map(len, shown.values())) - found.unknown
    at = {name: different(values, full[name]) for name, values in shown.items()}
    causes = Causes(reading, result.book, full, _stale(reading, table, result, shown, at))
    rows: list[tuple[int, Difference]] = []
    for name, indices in at.items():
        expected = full[name].to_list()
        for index in indices:
            place = f"{header.sheet.title}!{letter(header.columns[name])}{reading.rows[index]}"
            cause = causes.of(name, index)
            rows.append((index, Difference(place, full["id"][index], name, shown[name][index], expected[index], cause)))
    rows += _typed_alike(reading, full, {(index, name) for name, indices in at.items() for index in indices})
    found.differences = [item for _, item in sorted(rows, key=lambda row: (row[0], len(row[1].place), row[1].place))]
    _tell_gone(header, reading, found)
    return found


def _stale(
    reading: Reading, table: Table, result: Result, shown: Shown, at: Mapping[str, list[int]]
) -> dict[int, set[str]]:
    """By row the columns that show something else than with the assumptions as they were written."""
    then = before_changes(reading, table, result.host) if any(at.values()) else None
    stale: dict[int, set[str]] = {}
    for name, indices in at.items():
        for index in indices if then is None or name not in then.columns else different(shown[name], then[name]):
            stale.setdefault(index, set()).add(name)
    return stale


def _typed_alike(reading: Reading, full: pl.DataFrame, known: set[tuple[int, str]]) -> list[tuple[int, Difference]]:
    """What stands over a formula and shows the value that the formula gives."""
    found = []
    for item in reading.typed:
        if isinstance(item.row, int) and item.column in full.columns and (item.row, item.column) not in known:
            expected, place = full[item.column][item.row], f"{item.sheet}!{item.cell}"
            name = full["id"][item.row]
            found.append((item.row, Difference(place, name, item.column, item.value, expected, typed_over(item))))
    return found


def _tell_gone(header: Header, reading: Reading, found: Compared) -> None:
    if reading.gone:
        found.notes.append(f"{header.sheet.title}: the columns {', '.join(reading.gone)} are gone, and not compared")


__all__ = ["Checked", "Difference", "Reading", "check", "shown_as"]
