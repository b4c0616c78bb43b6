"""The rows of the Scenarios sheet of a workbook that comes back: their inputs, and what stands beside and below them."""

from __future__ import annotations

import re
from typing import Any

from scenario.book.book import Book
from scenario.model import kinds, shared
from scenario.workbooks.cells import Cell, Row, letter, rows
from scenario.workbooks.found import BAD, UNKNOWN, Header, listing
from scenario.workbooks.left import listed
from scenario.workbooks.row_formulas import RowFormulas
from scenario.workbooks.sheet_columns import Columns
from scenario.workbooks.sheets import Sheets

FINE = 50_000
"""Input cells that are checked once for all that look the same."""
_MERGED = re.compile(rb'<mergeCell ref="([A-Z]{1,3}[0-9]{1,7}:[A-Z]{1,3}([0-9]{1,7}))"')

Filled = list[tuple[str, Cell]]
"""The input cells of a row that hold something, by the input's name."""


class RowReader:
    """The Scenarios sheet: inputs by column, and values that stand in place of formulas."""

    def __init__(self, owner: Sheets, header: Header, base: Book) -> None:
        self.owner, self.header = owner, header
        self.columns = Columns(owner, header, base)
        self.known, self.inputs = self.columns.known, self.columns.inputs
        self.formulas = RowFormulas(header, self.columns, owner.found)
        self.needed = [name for name in shared.REQUIRED if name not in base.table.defaults]
        self.values: dict[str, list[Any]] = {}
        """Each input, row for row."""
        self.first: dict[str, dict[Any, str]] = {name: {} for name in self.inputs}
        """The first place of each name that an input holds."""
        self.numbers: list[int] = []
        """The row of the sheet of each scenario."""
        self.fine: dict[tuple[str, int], tuple[Cell, Any]] = {}
        named = [name for name in self.columns.others.values() if owner.written and name not in owner.written]
        owner.found.extra_columns.update({name: {} for name in named})
        self.hidden: list[int] = []
        self.loose: list[str] = []

    def read(self) -> None:
        """Read all rows."""
        owner, header, formulas = self.owner, self.header, self.columns.formulas
        by_column = {column: name for name, column in self.inputs.items()}
        sought = None if owner.keep_shown else self.formulas.sought({*by_column, *self.columns.others})
        given: dict[str, dict[int, Any]] = {name: {} for name in self.inputs}
        shown: dict[str, list[Any]] = {name: [] for name in formulas} if owner.keep_shown else {}
        for row in rows(owner.workbook, header.sheet, sought=sought):
            if row.number <= header.row:
                continue
            filled = [(by_column[column], cell) for column, cell in row.cells.items() if column in by_column]
            if row.formulas < len(formulas) and self.remark(row, filled):
                filled = []
            if row.whole or not 0 < len(filled) == len(row.cells):
                self.beside(row, bool(filled))
            if filled:
                self.scenario(row, filled, given)
                for name, values in shown.items():
                    values.append(_shown(row.cells.get(formulas[name])))
        owner.found.rows, owner.found.shown = self.numbers, shown
        indices = range(len(self.numbers))
        self.values = {name: [found.get(index) for index in indices] for name, found in given.items()}
        self.tell()

    def scenario(self, row: Row, filled: Filled, given: dict[str, dict[int, Any]]) -> None:
        """One scenario's inputs and formulas."""
        index = len(self.numbers)
        if index >= self.owner.max_rows:
            said = f"the workbook has more than {self.owner.max_rows:,} rows"
            raise self.owner.workbook.refuse(said, "allow more with --max-rows")
        if row.hidden:
            self.hidden.append(row.number)
        self.numbers.append(row.number)
        for name, cell in filled:
            # Cells that look the same are one object; one that was in order once is in order again.
            fine = self.fine.get((name, id(cell)))
            given[name][index] = fine[1] if fine else self.checked(name, cell, row.number)
        if row.whole and row.formulas:
            self.formulas.compare(row, index)
        elif not row.formulas:
            self.owner.found.cleared[index] = set(self.columns.formulas)

    def remark(self, row: Row, filled: Filled) -> bool:
        """Whether a row with few formulas is a total or a note below the table, not a scenario.

        It has none of the formulas that were written, and its inputs are a name alone, or sums over other rows, or a
        single cell where several are needed.
        """
        if (row.formulas and not row.whole) or self.formulas.any_unchanged(row):
            return False
        inputs = [cell for name, cell in filled if name != "id"]
        if all(cell.formula is not None and ":" in cell.formula for cell in inputs):
            return True
        there = {name for name, _ in filled}
        return len(filled) == 1 and len([name for name in self.needed if name not in there]) > 1

    def beside(self, row: Row, is_scenario: bool) -> None:
        """Cells of a row that are neither inputs nor the engine's: an own column's, or loose ones."""
        others = self.columns.others
        for column, cell in row.cells.items():
            if column in others and is_scenario:
                self.owner.found.extra_columns.setdefault(others[column], {})[len(self.numbers)] = cell
            elif not is_scenario or column not in self.header.named:
                self.loose.append(f"{letter(column)}{row.number}")

    def tell(self) -> None:
        """Say what is not carried over, put back, or counted all the same."""
        owner, title = self.owner, self.header.sheet.title
        typed = owner.found.typed
        broken = list(dict.fromkeys(item.column for item in typed if item.broken))
        moved = list(dict.fromkeys(item.column for item in typed if item.moved and not item.broken))
        for found, said in (
            (listed(self.loose), "not carried over, because they stand outside the columns with a header or the rows of scenarios: {}"),
            (listing(broken), "the formulas of {} refer to what was deleted (#REF!); they are put back"),
            (listing(moved), "the formulas of {} were not adjusted when columns moved; they are put back"),
            (listing(self.hidden), "hidden rows count as well ({}); delete a row to leave it out"),
        ):
            if found:
                owner.note(f"{title}: {said.format(found)}")
        areas = [area.decode() for area, last in _MERGED.findall(self.header.sheet.tail) if int(last) > self.header.row]
        for area in areas[:20]:
            said = "merged cells: only the first of them holds a value"
            owner.say(f"{title}!{area}", said, "unmerge them and fill each cell")
        if not self.numbers and owner.left_out is None:
            owner.say(title, "there are no rows below the header")

    def checked(self, name: str, cell: Cell, row: int) -> Any:
        """One input value; kept with its cell where there is nothing to say about it."""
        problems, notes = self.owner.source.problems, self.owner.found.notes
        before = len(problems) + len(notes)
        value = self.taken(name, cell, row)
        if before == len(problems) + len(notes) and len(self.fine) < FINE:
            self.fine[name, id(cell)] = cell, value
        return value

    def taken(self, name: str, cell: Cell, row: int) -> Any:
        """The value of an input cell; names are checked once per distinct value by the table's reader."""
        parameter = self.known[name]
        place = f"{self.header.sheet.title}!{letter(self.inputs[name])}{row}"
        value = self.owner.value_of(place, cell, parameter)
        if value is BAD or value is None:
            return None
        if isinstance(value, str):
            self.first[name].setdefault(value, place)
        elif parameter is not None and (said := kinds.value_problem(parameter, value)):
            self.owner.say(place, f"{name}: {said}")
            return None
        return value


def _shown(cell: Cell | None) -> Any:
    """What a computed cell shows; None for a blank one."""
    if cell is None or (cell.kind == "text" and cell.value == ""):
        return None
    return UNKNOWN if cell.kind == "none" else cell.value
