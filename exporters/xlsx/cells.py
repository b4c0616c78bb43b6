"""Cells with formulas *and* the values they show, and texts that can never become formulas."""

from __future__ import annotations

import re
from typing import Any

from openpyxl.cell import Cell
from openpyxl.worksheet.worksheet import Worksheet

MAX_TEXT = 32_767
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|[\ud800-\udfff]")
ERRORS = ("#N/A", "#VALUE!", "#REF!", "#DIV/0!", "#NUM!", "#NAME?", "#NULL!")
_ESCAPE = re.compile(r"_(?=x[0-9A-Fa-f]{1,4}_)")


def clean(text: str) -> str:
    """A text as a cell can hold it: no control characters, no more than 32,767 characters.

    Excel reads ``_x0041_`` as the letter A, LibreOffice even ``_x8_`` as a character; the underscore in front
    is escaped so that it stays text.
    """
    return _ESCAPE.sub("_x005F_", _CONTROL.sub("\ufffd", text))[:MAX_TEXT]


class Sheet:
    """A worksheet and the values that its formulas show until a program recalculates them."""

    def __init__(self, sheet: Worksheet) -> None:
        self.sheet = sheet
        self.shown: dict[str, Any] = {}

    def put(self, row: int, column: int, value: Any, style: str = "", format: str = "") -> Cell:
        """A constant. Text stays text, whatever it begins with; None leaves the cell empty."""
        cell = self.sheet.cell(row, column)
        if isinstance(value, str):
            cell.value = clean(value)
            cell.data_type = "s"
        elif value is not None:
            cell.value = value
        return _styled(cell, style, format)

    def formula(self, row: int, column: int, text: str, shows: Any, style: str = "", format: str = "") -> Cell:
        """A formula (without ``=``) that shows ``shows`` (None: an empty text) until it is recalculated."""
        cell = self.sheet.cell(row, column, "=" + text)
        self.shown[cell.coordinate] = "" if shows is None else shows
        return _styled(cell, style, format)

    def unknown(self, row: int, column: int, text: str, format: str = "") -> Cell:
        """A formula of which no value is known; a program computes it when it opens the file."""
        return _styled(self.sheet.cell(row, column, "=" + text), "", format)


def _styled(cell: Cell, style: str, format: str) -> Cell:
    if style:
        cell.style = style
    if format:
        cell.number_format = format
    return cell


def value_xml(value: Any) -> tuple[str, str]:
    """The type attribute and the text of ``<v>`` for what a formula shows."""
    if isinstance(value, bool):
        return ' t="b"', "1" if value else "0"
    if isinstance(value, str):
        return (' t="e"' if value in ERRORS else ' t="str"'), escape(clean(value))
    return "", repr(float(value))


def escape(text: str) -> str:
    """Text for XML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
