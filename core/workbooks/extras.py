"""What an analyst added to a workbook, in terms that survive a new layout: columns, sheets, and their formulas.

A formula's references to the engine's sheets are turned into *marks* (sheet, column name, row name), which the
exporter turns back into the addresses of the new file. What cannot be told that way keeps its value, and is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from scenario.workbooks.archive import SheetPart, Workbook
from scenario.workbooks.cells import Cell, letter, rows
from scenario.workbooks.looks import look_of, not_carried

OPEN, CLOSE, BETWEEN = "\x01", "\x02", "\x03"
MAX_CELLS = 200_000
"""Cells of all added sheets together that are carried over."""
MAX_FORMULA = 8_000
"""Characters of a formula; a spreadsheet allows 8,192."""

Mark = tuple[str, str, str]
"""Sheet, column name, and row: a scenario's number, a catalog entry's or an assumption's name, or ``#n`` for a fixed row."""

_REFERENCE = re.compile(
    r"""(?P<text>"(?:[^"]|"")*")
      | (?P<structured>[A-Za-z_\u0080-\U0010ffff\\][\w.\\]*\[(?:[^\[\]]|\[[^\[\]]*\])*\])
      | (?P<sheet>(?:'(?:[^']|'')+'|[A-Za-z_\u0080-\U0010ffff][\w.\u0080-\U0010ffff]*)!)?
        (?:(?P<first>\$?[A-Za-z]{1,3}\$?[0-9]+)(?::(?P<second>\$?[A-Za-z]{1,3}\$?[0-9]+))?
          |(?P<from>\$?[A-Za-z]{1,3}):(?P<to>\$?[A-Za-z]{1,3})
          |(?P<lines>\$?[0-9]{1,7}:\$?[0-9]{1,7}))(?![\w(!.])
      | (?P<word>(?:'(?:[^']|'')+'!)?[A-Za-z_\u0080-\U0010ffff\\][\w.!\\\u0080-\U0010ffff]*)(?P<call>\s*\()?
      | (?P<number>[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?)
      | (?P<odd>[\[\]#]|![A-Za-z$])""",
    re.VERBOSE,
)
_PLACE = re.compile(r"(\$?)([A-Za-z]{1,3})(\$?)([0-9]+)")
_TABLE = re.compile(r"T_(scenarios|assumptions|models|gpus|profiles|curves)\[([^\[\]#@']+)\]")
_ONE = f"{OPEN}([^{OPEN}{CLOSE}]+){CLOSE}"
_AREA = re.compile(f"{_ONE}(?::{_ONE})?")
_TEXT = re.compile(r'"(?:[^"]|"")*"')
_LOOSE = re.compile(r"\b(?:OFFSET|INDIRECT)\s*\(", re.IGNORECASE)
LOOSE = OPEN + CLOSE
"""In front of a formula that goes by how many rows and columns there are between things, or by an address in a text."""


@dataclass(frozen=True)
class Added:
    """One cell that was added: ``formula`` with marks in it, or None for a constant; ``format`` its number format.

    ``text`` is its formula as it stood. Of kind ``none`` it is a formula whose value the file did not hold.
    """

    kind: str
    value: str | float | bool
    formula: str | None = None
    format: str = ""
    text: str = ""

    @property
    def kept(self) -> str | float | bool:
        """What stands in the cell once its formula cannot: the value it had; its text when the file held no value."""
        return f"={self.text}" if self.kind == "none" and self.text else self.value


@dataclass
class AddedSheet:
    """A sheet of the analyst's own: cells by (row, column), widths by column, merged areas, the first cell that scrolls."""

    title: str
    cells: dict[tuple[int, int], Added] = field(default_factory=dict)
    widths: dict[int, float] = field(default_factory=dict)
    merged: list[str] = field(default_factory=list)
    frozen: str = ""
    right_to_left: bool = False
    hidden: bool = False


@dataclass
class Extras:
    """All that was added. ``columns`` are columns of Scenarios: name -> row number (from 0) -> cell."""

    columns: dict[str, dict[int, Added]] = field(default_factory=dict)
    sheets: list[AddedSheet] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    places: list[OldSheet] = field(default_factory=list)
    """Where things stood, of the sheets that formulas may refer to."""


@dataclass
class OldSheet:
    """Where things stood in the old file: a sheet's columns by letter and rows by number."""

    title: str
    columns: dict[str, str]
    rows: dict[int, str]
    header: int


def marked(
    formula: str, home: OldSheet | None, sheets: dict[str, OldSheet], own: set[str], known: Collection[str] = ()
) -> str | None:
    """A formula with marks for its references to the engine's sheets; None when one cannot be told.

    ``home`` is the engine's sheet that the formula stands on (None: an added one); ``own`` the added sheets,
    whose references stay as they are; ``known`` the names that the new workbook defines as well.
    """
    if len(formula) > MAX_FORMULA:
        return None
    failed = False
    columns = {name for sheet in sheets.values() for name in sheet.columns.values()}

    def replace(match: re.Match[str]) -> str:
        nonlocal failed
        kind = match.lastgroup
        if kind in ("text", "number", "call"):
            return match.group()
        if kind == "word":
            failed = failed or not (match.group().upper() in ("TRUE", "FALSE") or match.group() in known)
            return match.group()
        if kind == "structured":
            column = _TABLE.fullmatch(match.group())
            failed = failed or column is None or column.group(2) not in columns
            return match.group()
        if kind == "odd":
            failed = True
            return match.group()
        prefix = match.group("sheet") or ""
        title = prefix.rstrip("!").strip("'").replace("''", "'").lower()
        if (not prefix and home is None) or title in own:
            return match.group()
        sheet = sheets.get(title) if prefix else home
        if match.group("lines"):  # whole rows
            sheet, marks = None, []
        elif match.group("from"):
            marks = [_mark(sheet, match.group(end), whole=True) for end in ("from", "to")]
        else:
            marks = [_mark(sheet, match.group(end)) for end in ("first", "second") if match.group(end)]
        if sheet is None or any(mark is None for mark in marks):
            failed = True
            return match.group()
        return ("" if home is sheet else f"{sheet.title}!") + ":".join(str(mark) for mark in marks)

    text = _REFERENCE.sub(replace, formula)
    if failed:
        return None
    plain = _TEXT.sub('""', text)
    loose = bool(_LOOSE.search(plain)) and (OPEN in plain or home is not None or "INDIRECT" in plain.upper())
    loose = loose or bool(re.search(rf"{CLOSE}\s*:|:\s*(?:[\w.]+!)?{OPEN}", _AREA.sub(lambda area: "" if area.group(2) else area.group(), plain)))
    return LOOSE + text if loose else text


def _mark(sheet: OldSheet | None, place: str, whole: bool = False) -> str | None:
    if whole:
        fixed, letters = "c" * place.startswith("$"), place.lstrip("$").upper()
        name = sheet.columns.get(letters) if sheet else None
        return OPEN + BETWEEN.join((sheet.title, name, "", fixed)) + CLOSE if sheet and name else None
    match = _PLACE.fullmatch(place)
    if sheet is None or match is None:
        return None
    fixed_column, letters, fixed_row, row = match.groups()
    name = sheet.columns.get(letters.upper())
    where = sheet.rows.get(int(row)) or (f"#{sheet.header - int(row)}" if int(row) <= sheet.header else None)
    if name is None or where is None:
        return None
    return OPEN + BETWEEN.join((sheet.title, name, where, "c" * bool(fixed_column) + "r" * bool(fixed_row))) + CLOSE


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

    text = _AREA.sub(replace, formula)
    for table, column in _TABLE.findall(_TEXT.sub("", formula)):
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


def added(book: Workbook, cell: Cell, formula: str | None, text: str | None = None) -> Added:
    """A cell as it is carried over; ``text`` is its formula as it stands."""
    value = cell.value if cell.kind != "error" else str(cell.value)[:80]
    return Added(cell.kind, value, formula, book.formats.get(cell.style, ""), (text or cell.formula or "")[:MAX_FORMULA])


def read_sheet(
    book: Workbook, part: SheetPart, sheets: dict[str, OldSheet], own: set[str], notes: list[str], known: Collection[str] = (),
    room: int = MAX_CELLS,
) -> AddedSheet:  # fmt: skip
    """An added sheet with its formulas marked, up to ``room`` cells of it."""
    found = AddedSheet(part.title)
    masters: dict[int, tuple[str, str]] = {}
    lost: dict[bool, list[str]] = {True: [], False: []}
    for row in rows(book, part):
        if len(found.cells) + len(row.cells) > room:
            notes.append(f"{part.title}: only its first {row.number - 1:,} rows are carried over")
            break
        for column, cell in row.cells.items():
            place = f"{letter(column)}{row.number}"
            text = formula_of(cell, place, masters)
            formula = marked(text, None, sheets, own, known) if text and not cell.array else None
            if cell.formula is not None and formula is None:
                lost[cell.kind != "none"].append(place)
            found.cells[row.number, column] = added(book, cell, formula, text)
    notes += [told_lost(part.title, places, valued) for valued, places in lost.items() if places]
    look = look_of(book, part)
    for first, last, width in look.widths:
        for column in range(first, min(last, first + 200) + 1):
            found.widths[column] = width
    found.merged, found.frozen, found.right_to_left, found.hidden = look.merged, look.frozen, look.right_to_left, part.hidden
    notes.append(f"the sheet '{part.title}' is carried over: values, formulas, number formats, widths, merged cells; "
                 f"not its {not_carried(book, part, look)}")  # fmt: skip
    return found


def formula_of(cell: Cell, place: str, masters: dict[int, tuple[str, str]]) -> str | None:
    """A cell's formula, also where it is written once for many; ``masters`` keeps those seen so far."""
    from openpyxl.formula.translate import Translator

    if cell.shared is None:
        return cell.formula
    if cell.formula:
        masters[cell.shared or 0] = cell.formula, place
        return cell.formula
    if (cell.shared or 0) not in masters:
        return None
    text, origin = masters[cell.shared or 0]
    try:
        return str(Translator("=" + text, origin=origin).translate_formula(place)).removeprefix("=")
    except Exception:  # a formula that the library cannot take apart
        return None


def letters_of(columns: dict[str, int]) -> dict[str, str]:
    """Header names by letter, from columns by name."""
    return {letter(column): name for name, column in columns.items()}

