"""What an analyst had added to the workbook that a table was read from, put into the new one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

from openpyxl.cell import Cell
from openpyxl.utils import column_index_from_string, get_column_letter
from openpyxl.workbook import Workbook

from scenario import Result
from scenario.exporters.xlsx.cells import Sheet, clean, escape, value_xml
from scenario.exporters.xlsx.layout import Layout, entity_notes
from scenario.exporters.xlsx.splice import ROW
from scenario.workbooks.form import BY_TITLE, FIRST, TITLES
from scenario.workbooks.form.marks import LAID_OUT, Added, told_lost, unmark


class Addresses:
    """Where the marks of old formulas stand in the new workbook."""

    def __init__(self, result: Result, layout: Layout) -> None:
        self.result, self.layout = result, layout
        given = result.book.table.rows["id"].to_list()
        places = {name: FIRST + index for index, name in enumerate(result.full["id"].to_list())}
        self.rows = {str(index): places.get(name) for index, name in enumerate(given)}
        first = len(layout.columns) + 1
        self.added = {name: get_column_letter(first + index) for index, name in enumerate(headers(result, layout))}
        extras = result.book.table.extras
        self.old = {sheet.title: sheet for sheet in extras.places} if extras else {}
        self.moves: dict[str, tuple[_Moves, _Moves]] = {}

    def of(self, formula: str | None) -> str | None:
        """A formula in the new workbook's terms; None for one that cannot be told there."""
        return None if formula is None else unmark(formula, self, self.area, self.steady)

    def moved(self, sheet: str) -> tuple[_Moves, _Moves]:
        """What has become of a sheet's columns and rows."""
        if sheet not in self.moves:
            old = self.old[sheet]
            letters = {
                column_index_from_string(letter): self.letter(sheet, name) for letter, name in old.columns.items()
            }
            rows = {number: self.row(sheet, name) for number, name in old.rows.items()}
            above = {number: self.row(sheet, f"#{old.header - number}") for number in range(1, old.header + 1)}
            self.moves[sheet] = (
                _Moves({at: column_index_from_string(new) if new else None for at, new in letters.items()}),
                _Moves({**above, **rows}, set(rows)),
            )
        return self.moves[sheet]

    def area(
        self, sheet: str, first: tuple[str, str], second: tuple[str, str]
    ) -> tuple[tuple[str, int], tuple[str, int]] | None:
        """The new ends of a range, if it still covers the same columns and rows in the same order, or all rows
        there are."""
        columns, rows = self.moved(sheet)
        old = self.old[sheet]
        by_column, by_row = self.before[sheet]
        down = [old.header - int(row[1:]) if row.startswith("#") else by_row[row] for _, row in (first, second)]
        wide = columns.ends(by_column[first[0]], by_column[second[0]])
        high = rows.ends(down[0], down[1]) or (
            rows.whole(down[0], down[1]) if self.height(sheet) == len(old.rows) else None
        )
        if wide is None or high is None:
            return None
        return (get_column_letter(wide[0]), high[0]), (get_column_letter(wide[1]), high[1])

    @cached_property
    def before(self) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
        """Where columns and rows stood in the old file, by sheet and name."""
        return {
            title: (
                {name: column_index_from_string(letter) for letter, name in sheet.columns.items()},
                {name: number for number, name in sheet.rows.items()},
            )
            for title, sheet in self.old.items()
        }

    def steady(self) -> bool:
        """Whether everything stands where it stood in the old file."""
        return all(moves.same for sheet in self.old for moves in self.moved(sheet))

    def height(self, sheet: str) -> int:
        """The rows of a sheet of the new workbook."""
        table = next((t for key, t in self.layout.book.tables.items() if TITLES[key] == sheet), None)
        return (
            self.result.full.height
            if sheet == "Scenarios"
            else len(self.layout.book.scalars)
            if table is None
            else len(table.names)
        )

    def __call__(self, sheet: str, column: str, row: str) -> tuple[str, int] | None:
        letter, number = self.letter(sheet, column), self.row(sheet, row)
        return (letter, number) if letter and number else None

    def row(self, sheet: str, row: str) -> int | None:
        """The number of a row: by a scenario's number, a name, or ``#n`` for n rows above the header."""
        if row.startswith("#"):
            return FIRST - 1 - int(row[1:]) if int(row[1:]) < FIRST - 1 else None
        if sheet == "Scenarios":
            return self.rows.get(row)
        if sheet == "Assumptions":
            return FIRST + self.scalars[row] if row in self.scalars else None
        return self.entity_row(sheet, row)

    @cached_property
    def scalars(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.layout.book.scalars)}

    def entity_row(self, sheet: str, name: str) -> int | None:
        table = next((t for key, t in self.layout.book.tables.items() if TITLES[key] == sheet), None)
        return FIRST + table.names.index(name) if table is not None and name in table.names else None

    def letter(self, sheet: str, column: str) -> str | None:
        if sheet == "Scenarios":
            found = self.layout.columns.get(column)
            return found.letter if found else self.added.get(column)
        if sheet == "Assumptions":
            names = BY_TITLE["Assumptions"].columns
            return get_column_letter(names.index(column) + 1) if column in names else None
        table = next((t for key, t in self.layout.book.tables.items() if TITLES[key] == sheet), None)
        fields = {"name", "title", *table.fields, *entity_notes(table)} if table is not None else set()
        return self.layout.entity_letter(table, column) if table is not None and column in fields else None


class _Moves:
    """Where the columns or the rows of a sheet have moved to: old number -> new number, or None for what is gone.

    ``body`` are those of them that are rows of the table.
    """

    def __init__(self, moved: dict[int, int | None], body: set[int] | None = None) -> None:
        self.moved, self.body = moved, body or set()
        self.same = all(new == old or (new is None and body is None) for old, new in moved.items())
        self.runs: dict[int, int] = {}
        """The number of the stretch that each belongs to: of one stretch, all have moved alike."""
        before = None
        for old in sorted(moved):
            new = moved[old]
            if new is None:
                before = None
                continue
            self.runs[old] = self.runs[old - 1] if before == (old - 1, new - 1) else old
            before = old, new

    def ends(self, first: int, last: int) -> tuple[int, int] | None:
        """Where a stretch begins and ends now; None when it no longer is the same stretch."""
        new = self.moved.get(first), self.moved.get(last)
        if new[0] is None or new[1] is None or self.runs[first] != self.runs[last]:
            return None
        return new[0], new[1]

    def whole(self, first: int, last: int) -> tuple[int, int] | None:
        """The ends of all rows there are, for a stretch over all rows there were; None for any other."""
        new = [place for old in self.body if (place := self.moved[old]) is not None]
        if first > last or len(new) < len(self.body) or not new or last != max(self.body) or first > min(self.body):
            return None
        start = min(new) if first == min(self.body) else self.moved.get(first)
        return None if start is None else (start, max(new))


def headers(result: Result, layout: Layout) -> dict[str, str]:
    """The header of each added column: its name, unless the workbook has that already, be it in other letters
    of case."""
    extras = result.book.table.extras
    taken = {name.lower() for name in layout.columns}
    found: dict[str, str] = {}
    for name in extras.columns if extras else ():
        head, number = clean(name), 2
        while head.lower() in taken:
            head, number = f"{clean(name)[:240]} ({number})", number + 1
        taken.add(head.lower())
        found[name] = head
    return found


def columns(result: Result, layout: Layout, workbook: Workbook) -> dict[str, tuple[str, list[str]]]:
    """The added columns of Scenarios: header -> (letter, the XML of its cell in each row, the row number left open)."""
    extras = result.book.table.extras
    if extras is None or not extras.columns:
        return {}
    addresses = Addresses(result, layout)
    heads, styles = headers(result, layout), _Styles(workbook)
    index_of = {name: index for index, name in enumerate(result.book.table.rows["id"].to_list())}
    there = [index_of.get(row, -1) for row in result.full["id"].to_list()]
    found = {}
    lost: dict[bool, list[str]] = {True: [], False: []}
    old_letters, old_rows = _old_places(addresses)
    for name, head in heads.items():
        cells, letter, texts = extras.columns[name], addresses.added[name], []
        for index in there:
            cell = cells.get(index)
            formula = addresses.of(cell.formula) if cell else None
            if cell and cell.formula is not None and formula is None:
                lost[cell.kind != "none"].append(f"{old_letters.get(name, letter)}{old_rows.get(index, index)}")
            texts.append(_cell_xml(letter, cell, formula, styles))
        found[head] = letter, texts
    result.lost += [told_lost("Scenarios", places, valued) for valued, places in lost.items() if places]
    result.lost += _dropped(result, extras.columns, set(there), old_rows)
    return found


def _old_places(addresses: Addresses) -> tuple[dict[str, str], dict[int, int]]:
    """The letters of the columns of Scenarios and the numbers of its rows, as they were in the old file."""
    home = addresses.old.get("Scenarios")
    if home is None:
        return {}, {}
    return {name: letter for letter, name in home.columns.items()}, {
        int(name): number for number, name in home.rows.items()
    }


def _dropped(
    result: Result, own: Mapping[str, Mapping[int, Added]], there: set[int], old_rows: dict[int, int]
) -> list[str]:
    """Tells of rows that ``where`` leaves out and that held something in columns of the analyst's own."""
    dropped = sorted({index for cells in own.values() for index in cells} - there)
    if not dropped:
        return []
    names = result.book.table.rows["id"].to_list()
    said = ", ".join(f"{names[index]} (row {old_rows.get(index, index)})" for index in dropped[:8])
    said += ", ..." if len(dropped) > 8 else ""
    return [f"Scenarios: where leaves out {said}, and with them what stands in columns of your own there"]


class _Styles:
    """Cell styles by number format."""

    def __init__(self, workbook: Workbook) -> None:
        self.sheet = workbook.worksheets[0]
        self.known: dict[str, int] = {}

    def __call__(self, format: str) -> int:
        if format not in self.known:
            cell = Cell(self.sheet, row=1, column=1)
            if format:
                cell.number_format = format
            self.known[format] = cell.style_id
        return self.known[format]


def _cell_xml(letter: str, cell: Added | None, formula: str | None, styles: _Styles) -> str:
    """A cell; with a formula it shows what it showed, if the file told, until a program computes it on opening."""
    if cell is None:
        return ""
    start = f'<c r="{letter}{ROW}" s="{styles(cell.format)}"'
    if formula is not None:
        kind, value = value_xml(cell.value)
        shown = f"<v>{value}</v>" if cell.kind != "none" else ""
        return f"{start}{kind if shown else ''}><f>{escape(formula)}</f>{shown}</c>"
    if isinstance(cell.kept, str):
        return f'{start} t="inlineStr"><is><t xml:space="preserve">{escape(clean(cell.kept))}</t></is></c>'
    kind, value = value_xml(cell.kept)
    return f"{start}{kind}><v>{value}</v></c>"


def sheets(result: Result, layout: Layout, workbook: Workbook) -> list[Sheet]:
    """The added sheets, after the engine's."""
    extras = result.book.table.extras
    if extras is None:
        return []
    if extras.columns or extras.sheets or extras.notes:  # somebody worked in the file
        result.lost.append(LAID_OUT)
    addresses = Addresses(result, layout)
    found = []
    for extra in extras.sheets:
        sheet = Sheet(workbook.create_sheet(_title(extra.title, {title.lower() for title in workbook.sheetnames})))
        lost: dict[bool, list[str]] = {True: [], False: []}
        for (row, column), cell in extra.cells.items():
            formula = addresses.of(cell.formula)
            if formula and cell.kind == "none":
                sheet.unknown(row, column, formula, cell.format)
            elif formula:
                sheet.formula(row, column, formula, cell.value, "", cell.format)
            else:
                sheet.put(row, column, cell.kept, "", cell.format)
                if cell.formula is not None:
                    lost[cell.kind != "none"].append(f"{get_column_letter(column)}{row}")
        result.lost += [told_lost(extra.title, places, valued) for valued, places in lost.items() if places]
        for column, width in extra.widths.items():
            sheet.sheet.column_dimensions[get_column_letter(column)].width = width
        for area in extra.merged:
            sheet.sheet.merged_cells.add(area)
        sheet.sheet.freeze_panes = extra.frozen or None
        sheet.sheet.sheet_view.rightToLeft = extra.right_to_left or None
        sheet.sheet.sheet_state = "hidden" if extra.hidden else "visible"
        found.append(sheet)
    return found


def _title(title: str, taken: set[str]) -> str:
    """A sheet's title as a spreadsheet allows it: no more than 31 characters, none of ``[]:*?/\\``, unique,
    not empty."""
    base = re.sub(r"[\[\]:*?/\\\x00-\x1f]", "_", title).strip("'")[:31] or "Sheet"
    base = base + "_" if base.lower() == "history" else base
    found, number = base, 2
    while found.lower() in taken:
        end = f" ({number})"
        found, number = base[: 31 - len(end)] + end, number + 1
    return found
