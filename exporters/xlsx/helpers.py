"""Sheets of helper columns: one row per scenario, beside Scenarios row for row."""

from __future__ import annotations

from openpyxl.workbook import Workbook

from scenario import Result
from scenario.exporters.xlsx import style as _style
from scenario.exporters.xlsx.cells import Sheet
from scenario.exporters.xlsx.layout import Layout, sheet_ref
from scenario.exporters.xlsx.splice import ROW, ColumnXml
from scenario.exporters.xlsx.tabled import add_table, widths
from scenario.workbooks.form import BY_TITLE, FIRST

ABOUT = {
    "By gamma": "What each number of draft tokens would give: tokens and rows per round, drafting time, time "
    "per token. best_gamma reads it.",
    "By batch": "What drafting gains at each batch, the draft's cost relative to a step held as in the row. "
    "break_even_batch reads it.",
}


def helpers(result: Result, layout: Layout, workbook: Workbook) -> list[tuple[Sheet, list[ColumnXml], str]]:
    """Each sheet without its rows, the recipe for them, and the letter of its last column."""
    found = []
    for title, columns in layout.helpers.items():
        sheet = Sheet(workbook.create_sheet(title))
        sheet.put(1, 1, title, "scn.title")
        sheet.put(2, 1, ABOUT.get(title, "Helper columns."), "scn.subtitle")
        identity = sheet.put(FIRST, 1, None, "scn.link")
        recipe = [ColumnXml("id", "A", identity.style_id, f"{sheet_ref('Scenarios')}!$A{ROW}", "text")]
        del sheet.sheet._cells[FIRST, 1]
        sheet.put(FIRST - 1, 1, "id", "scn.head")
        sizes = [max([len(name) for name in result.full["id"].to_list()[:1000]] + [10]) + 2.0]
        for index, column in enumerate(columns.values(), 2):
            assert column.item is not None
            sheet.put(FIRST - 3, index, column.item.unit, "scn.meta")
            sheet.put(FIRST - 2, index, column.item.text, "scn.meta")
            sheet.put(FIRST - 1, index, column.name, "scn.head")
            dummy = sheet.put(FIRST, index, None, "scn.calc", _style.number_format(column.item))
            recipe.append(ColumnXml(column.name, column.letter, dummy.style_id, column.formula, column.item.facts.type))
            del sheet.sheet._cells[FIRST, index]
            sizes.append(13.0)
        names = ["id", *columns]
        add_table(sheet, BY_TITLE[title].table, names, layout.last)
        widths(sheet, sizes)
        sheet.sheet.freeze_panes = f"B{FIRST}"
        _style.page(sheet.sheet, rows=f"{FIRST - 1}:{FIRST - 1}", columns="A:A")
        found.append((sheet, recipe, recipe[-1].letter))
    return found
