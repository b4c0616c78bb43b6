"""What every sheet with one table on it has: title, header row, the Excel table, column widths."""

from __future__ import annotations

from openpyxl.utils import get_column_letter
from openpyxl.worksheet.table import Table, TableColumn, TableFormula, TableStyleInfo

from scenario.exporters.xlsx.cells import Sheet
from scenario.workbooks.form import FIRST


def heads(sheet: Sheet, title: str, about: str, names: list[str]) -> None:
    """Title, one line about the sheet, and the header row of its table."""
    sheet.put(1, 1, title, "scn.title")
    sheet.put(2, 1, about, "scn.subtitle")
    for column, name in enumerate(names, 1):
        sheet.put(FIRST - 1, column, name, "scn.head")
    sheet.sheet.row_dimensions[FIRST - 1].height = 30
    sheet.sheet.freeze_panes = f"{'B' if len(names) < 9 else 'C'}{FIRST}"


def add_table(sheet: Sheet, name: str, names: list[str], last: int, formulas: dict[int, str] | None = None) -> None:
    """An Excel table over the header and the rows; ``formulas`` are those that new rows are filled with."""
    area = f"A{FIRST - 1}:{get_column_letter(len(names))}{max(last, FIRST)}"
    table = Table(displayName=name, name=name, ref=area)
    table.tableStyleInfo = TableStyleInfo(name="TableStyleLight1", showRowStripes=False)
    table._initialise_columns()
    for index, (column, head) in enumerate(zip(table.tableColumns, names, strict=True)):
        column.name = head
        if formulas and index in formulas:
            assert isinstance(column, TableColumn)
            column.calculatedColumnFormula = TableFormula(attr_text=formulas[index])
    sheet.sheet.add_table(table)


def widths(sheet: Sheet, sizes: list[float]) -> None:
    """Set the column widths from the left."""
    for column, size in enumerate(sizes, 1):
        sheet.sheet.column_dimensions[get_column_letter(column)].width = size
