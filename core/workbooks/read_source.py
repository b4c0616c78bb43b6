"""The sheet Source of a workbook that comes back: the table it was made from, what was left out, how sheets were written."""

from __future__ import annotations

from scenario.common import yamltree
from scenario.common.errors import TableError
from scenario.common.yamltree import YamlNode
from scenario.result import LEFT_OUT
from scenario.workbooks.cells import Row, rows
from scenario.workbooks.form import PIECE, PIECES, SOURCE_FIRST
from scenario.workbooks.form.witness import BEGIN, Witness
from scenario.workbooks.sheets import Sheets

LAST = 100_000
"""The last row of the sheet that is read."""


def read_source(sheets: Sheets) -> YamlNode:
    """The table as the sheet Source tells it, without rows."""
    lines = _lines(sheets)
    sheets.left_out = _left_out(sheets, [line.removeprefix(LEFT_OUT) for line in lines if line.startswith(LEFT_OUT)])
    witnesses = (Witness.of(line) for line in lines if line.startswith(BEGIN))
    sheets.witnesses = [witness for witness in witnesses if witness]
    if not "".join(lines).strip():
        sheets.note("the sheet Source is gone: the title, own columns and summary of the table are not known")
        return yamltree.parse("version: 1", sheets.workbook.path)[1]
    node = _parsed(sheets, lines)
    if not isinstance(node.value, dict):
        raise sheets.workbook.refuse("the sheet Source does not hold a table")
    for key in ("grid", "rows", "overrides"):
        node.value.pop(key, None)
    _relocate(node)
    return node


def _lines(sheets: Sheets) -> list[str]:
    sheet = sheets.workbook.sheet("Source")
    lines: list[str] = []
    for row in rows(sheets.workbook, sheet, until=PIECES, last_row=LAST) if sheet is not None else ():
        if row.number >= SOURCE_FIRST:
            lines += [""] * (row.number - SOURCE_FIRST - len(lines))
            lines.append(_line(row))
    return lines


def _line(row: Row) -> str:
    """A line; one that is too long for a cell goes on in the next."""
    text = ""
    for column in range(1, PIECES + 1):
        piece = str(row.cells[column].value) if column in row.cells else ""
        text += piece
        if len(piece) < PIECE:
            break
    return text


def _parsed(sheets: Sheets, lines: list[str]) -> YamlNode:
    return yamltree.parse("\n".join(lines) + "\n", f"{sheets.workbook.path}, sheet Source")[1]


def _left_out(sheets: Sheets, lines: list[str]) -> YamlNode | None:
    """The grid and rows that the table's ``where`` kept out of the workbook."""
    if not lines:
        return None
    try:
        node = _parsed(sheets, lines)
    except TableError:
        sheets.note("the rows that where left out (sheet Source) cannot be read any more, and do not come back")
        return None
    _relocate(node, "Source")
    return node if isinstance(node.value, dict) else None


def _relocate(node: YamlNode, place: str = "") -> None:
    """Give every value of the Source sheet its cell as its place, or ``place``."""
    stack = [node]
    while stack:
        item = stack.pop()
        if item.line:
            item.path = place or f"Source!A{item.line + SOURCE_FIRST - 1}"
            item.line, item.column, item.offset = 0, 0, 0
        stack += item.keys.values()
        stack += item.value.values() if isinstance(item.value, dict) else item.value if isinstance(item.value, list) else []
