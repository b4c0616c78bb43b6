"""What an analyst had added to the workbook that a table was read from, put into the new one."""

from __future__ import annotations

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
        self.added: dict[str, str] = {}

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


def columns(result: Result, layout: Layout) -> dict[str, tuple[str, list[str]]]:
    """The added columns of Scenarios: name -> (letter, the XML of its cell in each row, the row number left open)."""
    extras = result.book.table.extras
    if extras is None or not extras.columns:
        return {}
    addresses = Addresses(result, layout)
    first = len(layout.columns) + 1
    names = [name for name in extras.columns if name not in layout.columns]
    addresses.added = {name: get_column_letter(first + index) for index, name in enumerate(names)}
    index_of = {name: index for index, name in enumerate(result.book.table.rows["id"].to_list())}
    found = {}
    for name in names:
        cells = extras.columns[name]
        letter = addresses.added[name]
        texts = [_cell_xml(letter, cells.get(index_of[row])) if row in index_of else "" for row in result.full["id"].to_list()]
        texts = [_formula(text, cells.get(index_of.get(row, -1)), addresses) for text, row in zip(texts, result.full["id"].to_list(), strict=True)]
        found[name] = letter, texts
    return found


def _cell_xml(letter: str, cell: Added | None) -> str:
    if cell is None:
        return ""
    kind, value = value_xml(cell.value)
    if cell.formula is not None:
        return f'<c r="{letter}{ROW}"{kind}><f>\x04</f><v>{value}</v></c>'
    if isinstance(cell.value, str):
        return f'<c r="{letter}{ROW}" t="inlineStr"><is><t xml:space="preserve">{escape(clean(cell.value))}</t></is></c>'
    return f'<c r="{letter}{ROW}"{kind}><v>{value}</v></c>'


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
    first = len(layout.columns) + 1
    addresses.added = {name: get_column_letter(first + i) for i, name in enumerate(n for n in extras.columns if n not in layout.columns)}
    found = []
    for extra in extras.sheets:
        sheet = Sheet(workbook.create_sheet(extra.title))
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
