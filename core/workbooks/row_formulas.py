"""The formulas in the rows of the Scenarios sheet: whether they are the ones that were written."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection
from string import ascii_uppercase

from scenario.workbooks.cell_formulas import Masters, canonical, formula_of
from scenario.workbooks.cells import Cell, Row, Sought, letter
from scenario.workbooks.found import Header, Reading, Typed
from scenario.workbooks.sheet_columns import Columns

WHOLE = 20_000
"""Up to this many rows every formula is compared; in longer sheets a row's are when it lacks some or has some of its own."""
LONGEST = 9_000
"""Characters of a formula that is looked at; a spreadsheet takes fewer."""
_SHARED = re.compile(rb'<c r="([A-Z]{1,3})[0-9]{1,7}"[^>]{0,60}><f t="shared" si="([0-9]{1,9})"/>')
"""A cell that shares its formula with others, as the exporter writes it: its column and which formula."""


class RowFormulas:
    """Compares the formulas of rows with those that were written; ``found`` gets what stands in place of one."""

    def __init__(self, header: Header, columns: Columns, found: Reading) -> None:
        self.header, self.columns, self.found, self.typed = header, columns, found, found.typed
        self.letters = {letter(column): name for name, column in header.columns.items()}
        self.seen: dict[tuple[str, str], bool] = {}
        self.masters: Masters = {}
        self.shared: dict[tuple[str, int, str], bool] = {}
        self.alike: list[tuple[bytes, bytes]] = []
        self.candidate = self.alike

    def sought(self, columns: Collection[int]) -> Sought:
        """Which rows are read and compared whole: not those whose formulas are the very ones of a row that was in order."""
        tables = " ".join(self.header.sheet.tables.values())
        last = max((int(end) for end in re.findall(r":[A-Z]+([0-9]+)(?: |$)", tables)), default=0)
        # In a longer sheet it has to do that a row holds as many formulas as it should, none of them in its own words.
        whole = self.header.row + (WHOLE if last <= self.header.row + WHOLE else 2)
        formulas = sorted(self.columns.formulas.values())

        def wanted(row: int, text: bytes, found: int, pointing: int) -> bool:
            if row > whole:
                return 0 < found < len(formulas) or (bool(self.alike) and pointing != found)
            shared = _SHARED.findall(text)
            self.candidate = shared if len(shared) == found else []
            return not found or shared != self.alike or len(shared) != found

        until = max(columns)
        return Sought(columns, until, bisect_right(formulas, until), wanted)

    def compare(self, row: Row, index: int) -> None:
        """Note values typed over formulas of the scenario ``index``, and formulas that are not the ones that were written."""
        before = len(self.typed)
        for name, column in self.columns.formulas.items():
            cell = row.cells.get(column)
            if cell is None:
                self.found.cleared.setdefault(index, set()).add(name)
            elif not self.unchanged(name, cell, f"{letter(column)}{row.number}", row.number):
                self.typed.append(self.other(name, cell, f"{letter(column)}{row.number}", index))
        self.alike = self.candidate if len(self.typed) == before else []

    def other(self, name: str, cell: Cell, place: str, index: int) -> Typed:
        """What stands in place of a formula that was written."""
        text = (cell.formula if cell.shared is None else self.masters.get(cell.shared, ("", ""))[0]) or ""
        moved = bool(text) and self.letters != self.columns.letters
        moved = moved and canonical(text[:LONGEST], self.columns.letters) == self.columns.written.get(name)
        title = self.header.sheet.title
        return Typed(title, place, index, name, cell.value, cell.formula, "#REF!" in text, moved)

    def any_unchanged(self, row: Row) -> bool:
        """Whether a row holds a formula that was written."""
        there = ((name, column, row.cells.get(column)) for name, column in self.columns.formulas.items())
        return any(cell is not None and self.unchanged(name, cell, f"{letter(column)}{row.number}", row.number)
                   for name, column, cell in there)  # fmt: skip

    def unchanged(self, name: str, cell: Cell, place: str, row: int) -> bool:
        """Whether a cell holds the formula that was written."""
        if cell.formula is None:
            return False
        if cell.shared is None or cell.formula:
            formula_of(cell, place, self.masters)  # keeps the formula for those that share it
            return self.same(name, cell.formula or "", row)
        text, origin = self.masters.get(cell.shared, ("", ""))
        if not origin:  # its first cell was overwritten, and what it said went with it: nothing speaks against the engine's
            return True
        key = name, cell.shared, origin
        if key not in self.shared:
            # Filled down it is the same formula; filled to the right it reads other columns.
            down = origin.rstrip("0123456789") == place.rstrip("0123456789")
            here = text if down else formula_of(cell, place, self.masters) or ""
            self.shared[key] = self.same(name, here, int(origin.lstrip(ascii_uppercase)) if down else row)
        return self.shared[key]

    def same(self, name: str, text: str, row: int) -> bool:
        """Whether a formula that stands in a row is the one that was written."""
        written = self.columns.written
        if not written:  # the sheet Formulas is gone: nobody knows what was written
            return "#REF!" not in text
        if len(text) > LONGEST:
            return False
        # Most rows say the same; a row whose number may be taken for a number of the formula is looked at itself.
        key = name, text if str(row) in self.columns.literals else text.replace(str(row), "#")
        if key not in self.seen:
            self.seen[key] = canonical(text, self.letters) == written.get(name, "")
        return self.seen[key]
