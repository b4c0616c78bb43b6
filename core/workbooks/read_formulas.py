"""The sheet Formulas of a workbook that comes back: a table's own columns may be changed there, the engine's may not."""

from __future__ import annotations

from scenario.book.book import Book
from scenario.common.yamltree import YamlNode
from scenario.model import shared
from scenario.workbooks.cells import Row
from scenario.workbooks.found import Header, listing
from scenario.workbooks.sheets import Sheets, at


def read_formulas(sheets: Sheets, root: YamlNode, base: Book) -> None:
    """Put changed formulas of the table's own columns into its tree; of the engine's, say that they do not count."""
    header = sheets.header("Formulas", ("sheet", "column", "formula"))
    if header is None:
        return
    known = {item.name: item.text for item in base.fields.values() if item.role == "calc"}
    others = sheets.found.other_formulas
    for row in sheets.body(header):
        name, text = _changed(header, row, known)
        fixed = name in shared.COLUMNS and name not in shared.OPEN
        if not name or not (name in base.table.columns or fixed):
            continue
        place = header.place("formula", row.number)
        sheets.use(header, row, ("formula",))
        if name in base.table.columns:
            section = root.value["columns"].value[name]
            path = ("columns", name, "formula") if isinstance(section.value, dict) else ("columns", name)
            sheets.set(root, path, at(text, place))
        else:
            others[name] = place
    if others:
        said = f"the engine's formulas of {listing(list(others))} are used, not the text here"
        sheets.note(f"{next(iter(others.values()))}: {said}; a column of your own can differ")


def _changed(header: Header, row: Row, known: dict[str, str]) -> tuple[str, str]:
    """A column of Scenarios whose formula is another text than the engine's, and that text; empty for any other row."""
    sheet, column, formula = (header.cell(row, key) for key in ("sheet", "column", "formula"))
    name = str(column.value) if column else ""
    text = str(formula.value) if formula else ""
    changed = sheet is not None and sheet.value == "Scenarios" and name in known and text not in ("", known[name])
    return (name, text) if changed else ("", "")
