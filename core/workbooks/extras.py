"""What an analyst added to a workbook, in terms that survive a new layout: columns, sheets, and their formulas.

A formula's references to the engine's sheets are turned into *marks* (sheet, column name, row name), which the
exporter turns back into the addresses of the new file. What cannot be told that way keeps its value, and is said.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from scenario.book.book import Book
from scenario.workbooks.archive import SheetPart, Workbook
from scenario.workbooks.cell_formulas import Masters, formula_of
from scenario.workbooks.cells import Cell, letter, letters_of, rows
from scenario.workbooks.form import ALL_CHECKS, SHEETS
from scenario.workbooks.form.marks import NO_VALUES, Added, AddedSheet, Extras, OldSheet, told_lost
from scenario.workbooks.left import added_beside
from scenario.workbooks.looks import look_of
from scenario.workbooks.marking import MAX_FORMULA, Marker
from scenario.workbooks.sheets import Sheets

MAX_CELLS = 200_000
"""Cells of all added sheets together that are carried over."""


@dataclass
class _Carrier:
    """Turns cells of one sheet, or of one column, into what is carried over; counts the formulas that cannot be."""

    book: Workbook
    marker: Marker
    home: OldSheet | None = None
    masters: Masters = field(default_factory=dict)
    lost: dict[bool, list[str]] = field(default_factory=lambda: {True: [], False: []})
    """Their cells: those that had a value, and those that had none."""

    def cell(self, cell: Cell, place: str) -> Added:
        text = formula_of(cell, place, self.masters)
        formula = self.marker.mark(text, self.home) if text and not cell.array else None
        if cell.formula is not None and formula is None:
            self.lost[cell.kind != "none"].append(place)
        value = cell.value if cell.kind != "error" else str(cell.value)[:80]
        format = self.book.formats.get(cell.style, "")
        return Added(cell.kind, value, formula, format, (text or cell.formula or "")[:MAX_FORMULA])


def read_extras(sheets: Sheets, base: Book) -> Extras:
    """The analyst's own columns and sheets, with their formulas in terms that survive a new layout."""
    header, places, book = sheets.found.header, sheets.places, sheets.workbook
    assert header is not None
    by_number = {number: str(index) for index, number in enumerate(sheets.found.rows)}
    home = OldSheet("Scenarios", letters_of(header.columns), by_number, header.row)
    places[header.sheet.title.lower()] = home
    titles = {sheet.title.lower() for sheet in SHEETS} | {header.sheet.title.lower()}
    if not base.vectors.curves:
        titles.discard("curves")
    added = [part for part in book.sheets if part.title.lower() not in titles]
    marker = Marker(places, {part.title.lower() for part in added}, {*base.scalars, ALL_CHECKS})
    found = Extras(places=list(places.values()))
    for name in sorted(sheets.found.extra_columns, key=header.columns.__getitem__):  # ranges over them read them in this order
        carrier = _Carrier(book, marker, home)
        column = letter(header.columns[name])
        cells = sheets.found.extra_columns[name].items()
        found.columns[name] = {index: carrier.cell(cell, f"{column}{sheets.found.rows[index]}") for index, cell in cells}
        for valued, lost in carrier.lost.items():
            kept = "their values are kept" if valued else NO_VALUES
            if lost:
                said = f"{len(lost)} formulas of the column '{name}' cannot be carried over"
                found.notes.append(f"{header.sheet.title}: {said}; {kept}")
    room = MAX_CELLS
    for part in added:
        found.sheets.append(_sheet(_Carrier(book, marker), part, found.notes, room))
        room -= len(found.sheets[-1].cells)
    return found


def _sheet(carrier: _Carrier, part: SheetPart, notes: list[str], room: int) -> AddedSheet:
    """An added sheet with its formulas marked, up to ``room`` cells of it."""
    found = AddedSheet(part.title, hidden=part.hidden)
    for row in rows(carrier.book, part):
        if len(found.cells) + len(row.cells) > room:
            notes.append(f"{part.title}: only its first {row.number - 1:,} rows are carried over")
            break
        for column, cell in row.cells.items():
            found.cells[row.number, column] = carrier.cell(cell, f"{letter(column)}{row.number}")
    notes += [told_lost(part.title, places, valued) for valued, places in carrier.lost.items() if places]
    look = look_of(carrier.book, part)
    for first, last, width in look.widths:
        found.widths |= dict.fromkeys(range(first, min(last, first + 200) + 1), width)
    found.merged, found.frozen, found.right_to_left = look.merged, look.frozen, look.right_to_left
    notes.append(f"the sheet '{part.title}' is carried over: values, formulas, number formats, widths, merged cells; "
                 "not its fonts, colours, conditional formats or validations")  # fmt: skip
    notes += added_beside(carrier.book, part)
    return found
