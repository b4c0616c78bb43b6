"""What an analyst added to a workbook, in terms that survive a new layout: columns, sheets, and their formulas.

A formula's references to the engine's sheets are turned into *marks* (sheet, column name, row name), which the
exporter turns back into the addresses of the new file. What cannot be told that way keeps its value, and is said.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from scenario.workbooks.archive import SheetPart, Workbook
from scenario.workbooks.cells import Cell, letter, rows
from scenario.workbooks.form.marks import AREA, BETWEEN, CLOSE, LOOSE, OPEN, TABLE, TEXT, Added, AddedSheet, OldSheet, told_lost
from scenario.workbooks.looks import look_of, not_carried

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
_LOOSE = re.compile(r"\b(?:OFFSET|INDIRECT)\s*\(", re.IGNORECASE)


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
            column = TABLE.fullmatch(match.group())
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
    plain = TEXT.sub('""', text)
    loose = bool(_LOOSE.search(plain)) and (OPEN in plain or home is not None or "INDIRECT" in plain.upper())
    loose = loose or bool(re.search(rf"{CLOSE}\s*:|:\s*(?:[\w.]+!)?{OPEN}", AREA.sub(lambda area: "" if area.group(2) else area.group(), plain)))
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

