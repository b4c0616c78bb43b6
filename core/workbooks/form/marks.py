"""Marks: references to the workbook's own sheets, in formulas that an analyst added, in terms that survive a new layout.

A mark is ``(sheet, column name, row name)``; the reader makes them (:mod:`scenario.workbooks.extras`), the writer turns them
back into addresses with :func:`unmark`. What cannot be told that way keeps its value, and is said (:func:`told_lost`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from scenario.tables.additions import Added, AddedSheet, Extras, OldSheet

OPEN, CLOSE, BETWEEN = "\x01", "\x02", "\x03"
LOOSE = OPEN + CLOSE
"""In front of a formula that goes by how many rows and columns there are between things, or by an address in a text."""
TABLE = re.compile(r"T_(scenarios|assumptions|models|gpus|profiles|curves)\[([^\[\]#@']+)\]")
"""A whole column of a table."""
TEXT = re.compile(r'"(?:[^"]|"")*"')
_ONE = f"{OPEN}([^{OPEN}{CLOSE}]+){CLOSE}"
AREA = re.compile(f"{_ONE}(?::{_ONE})?")
"""A mark, or the marks of both ends of a range."""

Place = tuple[str, int]
"""A column's letters and a row's number."""
Area = Callable[[str, tuple[str, str], tuple[str, str]], tuple[Place, Place] | None]
"""Given a sheet and the (column, row) of a range's two ends: the ends in the new file; None when it no longer covers the same."""


def unmark(
    formula: str, address: Callable[[str, str, str], Place | None], area: Area | None = None, steady: Callable[[], bool] | None = None
) -> str | None:
    """A formula with its marks turned into addresses by ``address(sheet, column, row)``; None when one is gone.

    ``area`` does so for the ends of a range. ``steady`` says whether everything stands where it stood, which formulas
    have to know that go by positions.
    """
    failed = False
    if formula.startswith(LOOSE):
        formula, failed = formula.removeprefix(LOOSE), steady is not None and not steady()

    def replace(match: re.Match[str]) -> str:
        nonlocal failed
        ends = [mark.split(BETWEEN) for mark in match.groups() if mark is not None]
        sheet = ends[0][0]
        cells = [(name, row or "#0") for _, name, row, _ in ends]  # a whole column has no row
        found = area(sheet, cells[0], cells[1]) if area and len(ends) == 2 else tuple(address(sheet, *cell) for cell in cells)
        if found is None or None in found:
            failed = True
            return ""
        return ":".join(_written(place, row, fixed) for place, (_, _, row, fixed) in zip(found, ends, strict=True) if place)

    text = AREA.sub(replace, formula)
    for table, column in TABLE.findall(TEXT.sub("", formula)):
        title = {"gpus": "GPUs"}.get(table, table.capitalize())
        failed = failed or (table not in ("profiles", "curves") and address(title, column, "#0") is None)
    return None if failed else text


def _written(place: Place, row: str, fixed: str) -> str:
    return "$" * ("c" in fixed) + place[0] + ("$" * ("r" in fixed) + str(place[1]) if row else "")


def told_lost(where: str, cells: Collection[str], valued: bool) -> str:
    """What is said of formulas that cannot be carried over; ``valued``: the file held their values."""
    listed = ", ".join(list(cells)[:8]) + (", ..." if len(cells) > 8 else "")
    kept = "their values are kept" if valued else NO_VALUES
    return f"{where}!{listed}: formulas that refer to what cannot be told in a new file; {kept}"


NO_VALUES = (
    "the file holds no values of them, so that only their text is kept: open and save it in a spreadsheet program first, and their values are kept"
)

LAID_OUT = (
    "its own sheets are laid out anew: colours, conditional formats, and what you hid or widened there are not carried over"
)
"""What is said of looks, whatever they were: they are not remembered one by one."""

__all__ = ["LAID_OUT", "Added", "AddedSheet", "Extras", "OldSheet", "told_lost", "unmark"]
