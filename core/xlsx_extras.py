"""What an analyst added to a workbook, in terms that survive a new layout: columns, sheets, and their formulas.

A formula's references to the engine's sheets are turned into *marks* (sheet, column name, row name), which the
exporter turns back into the addresses of the new file. What cannot be told that way keeps its value, and is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from scenario.xlsx_cells import Cell, letter, rows
from scenario.xlsx_zip import SheetPart, Workbook

OPEN, CLOSE, BETWEEN = "\x01", "\x02", "\x03"
MAX_CELLS = 200_000
"""Cells of one added sheet that are carried over."""

Mark = tuple[str, str, str]
"""Sheet, column name, and row: a scenario's number, a catalog entry's or an assumption's name, or ``#n`` for a fixed row."""

_REFERENCE = re.compile(
    r"""(?P<text>"(?:[^"]|"")*")
      | (?P<sheet>(?:'(?:[^']|'')+'|[A-Za-z_\u0080-\uffff][\w.]*)!)?
        (?P<first>\$?[A-Za-z]{1,3}\$?[0-9]+)(?::(?P<second>\$?[A-Za-z]{1,3}\$?[0-9]+))?(?![\w(!.])""",
    re.VERBOSE,
)
_PLACE = re.compile(r"(\$?)([A-Za-z]{1,3})(\$?)([0-9]+)")
_WHOLE = re.compile(r"\$?[A-Za-z]{1,3}:\$?[A-Za-z]{1,3}(?![\w(])")


@dataclass(frozen=True)
class Added:
    """One cell that was added: ``formula`` with marks in it, or None for a constant; ``format`` its number format."""

    kind: str
    value: str | float | bool
    formula: str | None = None
    format: str = ""


@dataclass
class AddedSheet:
    """A sheet of the analyst's own: cells by (row, column), widths by column."""

    title: str
    cells: dict[tuple[int, int], Added] = field(default_factory=dict)
    widths: dict[int, float] = field(default_factory=dict)


@dataclass
class Extras:
    """All that was added. ``columns`` are columns of Scenarios: name -> row number (from 0) -> cell."""

    columns: dict[str, dict[int, Added]] = field(default_factory=dict)
    sheets: list[AddedSheet] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class OldSheet:
    """Where things stood in the old file: a sheet's columns by letter and rows by number."""

    title: str
    columns: dict[str, str]
    rows: dict[int, str]
    header: int


def marked(formula: str, home: OldSheet | None, sheets: dict[str, OldSheet], own: set[str]) -> str | None:
    """A formula with marks for its references to the engine's sheets; None when one cannot be told.

    ``home`` is the engine's sheet that the formula stands on (None: an added one); ``own`` the added sheets,
    whose references stay as they are.
    """
    failed = _WHOLE.search(re.sub(r'"[^"]*"', "", formula)) is not None

    def replace(match: re.Match[str]) -> str:
        nonlocal failed
        if match.group("text"):
            return match.group()
        prefix = match.group("sheet") or ""
        title = prefix.rstrip("!").strip("'").replace("''", "'").lower()
        if (not prefix and home is None) or title in own:
            return match.group()
        sheet = sheets.get(title) if prefix else home
        ends = [match.group("first"), match.group("second")]
        marks = [_mark(sheet, end) for end in ends if end]
        if sheet is None or any(mark is None for mark in marks):
            failed = True
            return match.group()
        return ("" if home is sheet else f"{sheet.title}!") + ":".join(str(mark) for mark in marks)

    text = _REFERENCE.sub(replace, formula)
    return None if failed else text


def _mark(sheet: OldSheet | None, place: str) -> str | None:
    match = _PLACE.fullmatch(place)
    if sheet is None or match is None:
        return None
    fixed_column, letters, fixed_row, row = match.groups()
    name = sheet.columns.get(letters.upper())
    where = sheet.rows.get(int(row)) or (f"#{sheet.header - int(row)}" if int(row) <= sheet.header else None)
    if name is None or where is None:
        return None
    return OPEN + BETWEEN.join((sheet.title, name, where, fixed_column + fixed_row)) + CLOSE


def unmark(formula: str, address: Callable[[str, str, str], tuple[str, int] | None]) -> str | None:
    """A formula with its marks turned into addresses by ``address(sheet, column, row)``; None when one is gone."""
    failed = False

    def replace(match: re.Match[str]) -> str:
        nonlocal failed
        sheet, name, row, fixed = match.group(1).split(BETWEEN)
        found = address(sheet, name, row)
        if found is None:
            failed = True
            return ""
        return f"${found[0]}${found[1]}" if len(fixed) == 2 else f"{fixed[:1]}{found[0]}{found[1]}" if fixed else f"{found[0]}{found[1]}"

    text = re.sub(f"{OPEN}([^{CLOSE}]*){CLOSE}", replace, formula)
    return None if failed else text


def added(book: Workbook, cell: Cell, formula: str | None) -> Added:
    """A cell as it is carried over."""
    value = cell.value if cell.kind != "error" else str(cell.value)
    return Added(cell.kind, value, formula, book.formats.get(cell.style, ""))


def read_sheet(book: Workbook, part: SheetPart, sheets: dict[str, OldSheet], own: set[str], notes: list[str]) -> AddedSheet:
    """An added sheet with its formulas marked."""
    found = AddedSheet(part.title)
    masters: dict[int, tuple[str, str]] = {}
    for row in rows(book, part):
        for column, cell in row.cells.items():
            if len(found.cells) >= MAX_CELLS:
                notes.append(f"{part.title}: only its first {MAX_CELLS:,} cells are carried over")
                return found
            text = cell.formula
            place = f"{letter(column)}{row.number}"
            if cell.shared is not None:
                text = _shared(masters, cell, place)
            formula = marked(text, None, sheets, own) if text else None
            if text and formula is None:
                notes.append(f"{part.title}!{place}: its formula refers to what cannot be told in a new file; its value is kept")
            found.cells[row.number, column] = added(book, cell, formula)
    for first, last, width in _widths(book, part):
        for column in range(first, min(last, first + 200) + 1):
            found.widths[column] = width
    notes.append(f"the sheet '{part.title}' is carried over: values, formulas, number formats, widths; not its colours, charts or pictures")
    return found


def _shared(masters: dict[int, tuple[str, str]], cell: Cell, place: str) -> str | None:
    from openpyxl.formula.translate import Translator

    if cell.formula:
        masters[cell.shared or 0] = cell.formula, place
        return cell.formula
    if (cell.shared or 0) not in masters:
        return None
    text, origin = masters[cell.shared or 0]
    return str(Translator("=" + text, origin=origin).translate_formula(place)).lstrip("=")


def _widths(book: Workbook, part: SheetPart) -> list[tuple[int, int, float]]:
    first = next(iter(book.chunks(part.part)), b"")
    found = []
    for match in re.finditer(rb"<col\b([^>]*)/?>", first[: first.find(b"<sheetData")]):
        parts = dict(re.findall(rb'(\w+)="([^"]*)"', match.group(1)))
        try:
            found.append((int(parts[b"min"]), int(parts[b"max"]), float(parts[b"width"])))
        except (KeyError, ValueError):
            continue
    return found


def letters_of(columns: dict[str, int]) -> dict[str, str]:
    """Header names by letter, from columns by name."""
    return {letter(column): name for name, column in columns.items()}

