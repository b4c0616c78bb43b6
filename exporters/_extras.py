"""What an analyst had added to the workbook that a table was read from, put into the new one."""

from __future__ import annotations

import re

from openpyxl.cell import Cell
from openpyxl.utils import get_column_letter
from openpyxl.workbook import Workbook

from scenario import Added, Result, unmark
from scenario.exporters._cells import Sheet, clean, escape, value_xml
from scenario.exporters._layout import FIRST, TITLES, Layout
from scenario.exporters._splice import ROW


class Addresses:
    """Where the marks of old formulas stand in the new workbook."""

    def __init__(self, result: Result, layout: Layout) -> None:
        self.result, self.layout = result, layout
        given = result.book.table.rows["id"].to_list()
        places = {name: FIRST + index for index, name in enumerate(result.full["id"].to_list())}
        self.rows = {str(index): places.get(name) for index, name in enumerate(given)}
        first = len(layout.columns) + 1
        self.added = {name: get_column_letter(first + index) for index, name in enumerate(headers(result, layout))}

    def __call__(self, sheet: str, column: str, row: str) -> tuple[str, int] | None:
        if row.startswith("#"):
            number: int | None = FIRST - 1 - int(row[1:])
        elif sheet == "Scenarios":
            number = self.rows.get(row)
        elif sheet == "Assumptions":
            names = list(self.layout.book.scalars)
            number = FIRST + names.index(row) if row in names else None
        else:
            number = self.entity_row(sheet, row)
        letter = self.letter(sheet, column)
        return (letter, number) if letter and number and number > 0 else None

    def entity_row(self, sheet: str, name: str) -> int | None:
        table = next((t for key, t in self.layout.book.tables.items() if TITLES[key] == sheet), None)
        return FIRST + table.names.index(name) if table is not None and name in table.names else None

    def letter(self, sheet: str, column: str) -> str | None:
        if sheet == "Scenarios":
            found = self.layout.columns.get(column)
            return found.letter if found else self.added.get(column)
        if sheet == "Assumptions":
            names = ["group", "name", "value", "unit", "allowed", "meaning", "from", "source"]
            return get_column_letter(names.index(column) + 1) if column in names else None
        table = next((t for key, t in self.layout.book.tables.items() if TITLES[key] == sheet), None)
        fields = {"name", "title", *table.fields} if table is not None else set()
        return self.layout.entity_letter(table, column) if table is not None and column in fields else None


def headers(result: Result, layout: Layout) -> dict[str, str]:
    """The header of each added column: its name, unless the workbook has that already, be it in other letters of case."""
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
    found = {}
    for name, head in heads.items():
        cells = extras.columns[name]
        letter = addresses.added[name]
        texts = [_cell_xml(letter, cells.get(index_of[row]), styles) if row in index_of else "" for row in result.full["id"].to_list()]
        texts = [_formula(text, cells.get(index_of.get(row, -1)), addresses) for text, row in zip(texts, result.full["id"].to_list(), strict=True)]
        found[head] = letter, texts
    return found


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


def _cell_xml(letter: str, cell: Added | None, styles: _Styles) -> str:
    if cell is None:
        return ""
    start = f'<c r="{letter}{ROW}" s="{styles(cell.format)}"'
    kind, value = value_xml(cell.value)
    if cell.formula is not None:
        return f'{start}{kind}><f>\x04</f><v>{value}</v></c>'
    if isinstance(cell.value, str):
        return f'{start} t="inlineStr"><is><t xml:space="preserve">{escape(clean(cell.value))}</t></is></c>'
    return f'{start}{kind}><v>{value}</v></c>'


def _formula(text: str, cell: Added | None, addresses: Addresses) -> str:
    if cell is None or cell.formula is None:
        return text
    formula = unmark(cell.formula, addresses)
    if formula is None:
        return text.replace("<f>\x04</f>", "")
    # No value goes with it: the engine does not know it, and every program then computes it on opening.
    return f'{text[: text.index(">")].split(" t=")[0]}><f>{escape(formula)}</f></c>'


def sheets(result: Result, layout: Layout, workbook: Workbook) -> list[Sheet]:
    """The added sheets, after the engine's."""
    extras = result.book.table.extras
    if extras is None:
        return []
    addresses = Addresses(result, layout)
    found = []
    for extra in extras.sheets:
        sheet = Sheet(workbook.create_sheet(_title(extra.title, {title.lower() for title in workbook.sheetnames})))
        for (row, column), cell in extra.cells.items():
            formula = unmark(cell.formula, addresses) if cell.formula is not None else None
            if formula:
                sheet.unknown(row, column, formula, cell.format)
            else:
                sheet.put(row, column, cell.value, "", cell.format)
        for column, width in extra.widths.items():
            sheet.sheet.column_dimensions[get_column_letter(column)].width = width
        found.append(sheet)
    return found


def _title(title: str, taken: set[str]) -> str:
    """A sheet's title as a spreadsheet allows it: no more than 31 characters, none of ``[]:*?/\\``, unique, not empty."""
    base = re.sub(r"[\[\]:*?/\\\x00-\x1f]", "_", title).strip("'")[:31] or "Sheet"
    base = base + "_" if base.lower() == "history" else base
    found, number = base, 2
    while found.lower() in taken:
        end = f" ({number})"
        found, number = base[: 31 - len(end)] + end, number + 1
    return found
