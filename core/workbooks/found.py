"""What a workbook that comes back is found to hold: where its tables stand, and what stands in place of formulas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from scenario.book.book import Book
from scenario.model.spec import Parameter
from scenario.workbooks.archive import SheetPart
from scenario.workbooks.cells import Cell, Row, letter


@dataclass
class Header:
    """Where a sheet's table stands: the row of its header, and the column (1 = A) of each name."""

    sheet: SheetPart
    row: int
    columns: dict[str, int]
    named: set[int] = field(default_factory=set)
    """All columns that have a header, repeated ones too."""

    def place(self, name: str, row: int) -> str:
        """``Sheet!C7`` for a column by name."""
        return f"{self.sheet.title}!{letter(self.columns[name])}{row}"

    def cell(self, row: Row, name: str) -> Cell | None:
        """The cell of a row in a column by name."""
        return row.cells.get(self.columns.get(name, 0))

    def text(self, row: Row, name: str) -> str:
        """What that cell says as a name; empty where it says none."""
        cell = self.cell(row, name)
        if cell is None or cell.kind not in ("text", "number"):
            return ""
        return cell.value.strip() if isinstance(cell.value, str) else plain(cell.value)


@dataclass
class Typed:
    """A constant, or another formula, where a formula of the engine belongs."""

    sheet: str
    cell: str
    row: int | str
    """Which scenario, counted from 0, or the catalog entry's name."""
    column: str
    value: Any
    formula: str | None
    broken: bool = False
    """The formula refers to something that was deleted; the engine's formula is put back."""
    moved: bool = False
    """The formula is the one that was written, in letters of columns that have moved since; it is put back as well."""


@dataclass
class Reading:
    """What was found beside the table itself."""

    notes: list[str] = field(default_factory=list)
    typed: list[Typed] = field(default_factory=list)
    shown: dict[str, list[Any]] = field(default_factory=dict)
    """What the computed columns of Scenarios showed, by column; only when asked for."""
    rows: list[int] = field(default_factory=list)
    """The sheet row of each scenario."""
    header: Header | None = None
    cleared: dict[int, set[str]] = field(default_factory=dict)
    """By scenario, counted from 0, the columns whose formula is gone."""
    gone: list[str] = field(default_factory=list)
    """The computed columns of Scenarios that the workbook had and has no more."""
    extra_columns: dict[str, dict[int, Cell]] = field(default_factory=dict)
    """Columns of Scenarios that are not the engine's: name -> scenario, counted from 0 -> cell."""
    base: Book | None = None
    """What the workbook was made from, as far as its sheet Source tells."""
    places: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """The cells of changed assumptions: (sheet, row name, column) -> address."""
    entries: dict[tuple[str, str], str] = field(default_factory=dict)
    """Catalog entries (table, name) of which the workbook computes something else than the engine, and why."""
    other_formulas: dict[str, str] = field(default_factory=dict)
    """The engine's columns of which the sheet Formulas says something else than the engine: name -> address."""


class _Bad:
    """Marks a cell with a problem."""


BAD: Any = _Bad()
UNKNOWN: Any = _Bad()
"""What a formula shows whose value the file does not hold."""
RATE = Parameter(None, 0, 1)
ANY = Parameter(None)


def plain(value: float) -> str:
    """A number as a person types it."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def show(value: Any) -> str:
    """A value as a message says it."""
    if value is None:
        return "blank"
    return plain(value) if isinstance(value, float | int) and not isinstance(value, bool) else str(value)


def listing(items: Sequence[Any]) -> str:
    """The first few of many things."""
    return ", ".join(map(str, items[:8])) + (", ..." if len(items) > 8 else "")
