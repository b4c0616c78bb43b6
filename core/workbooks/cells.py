"""Cells of a sheet, row by row, as they stand in the file: values with their kind, and formulas.

A row is taken apart with one expression per cell; a hundred thousand rows are read in seconds because a
caller says up to which column it cares.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from scenario.workbooks.archive import SheetPart, Workbook, legible

_CELL = re.compile(rb"<c\b([^>]{0,500}?)(?:/>|>(.*?)</c>)", re.DOTALL)
_FILLED = re.compile(rb'<c r="([A-Z]{1,3})[0-9]+"([^>/]{0,500})>(.*?)</c>', re.DOTALL)
_CONSTANT = re.compile(rb'<c r="([A-Z]{1,3})[0-9]+"([^>/]{0,500})>(?!<f)(.*?)</c>', re.DOTALL)
_PLACE = re.compile(rb"([A-Za-z]{1,3})[0-9]{1,7}")
_NUMBERED = re.compile(rb' r="([0-9]{1,7})">')
"""A row with nothing but its number."""
_ATTRIBUTE = re.compile(rb'(\w+)="([^"]*)"')
_FORMULA = re.compile(rb"<f\b([^>]*?)(?:/>|>(.*?)</f>)", re.DOTALL)
_VALUE = re.compile(rb"<v\b[^>]*>(.*?)</v>", re.DOTALL)
_INLINE = re.compile(rb"<t\b[^>]{0,500}?(?:/>|>(.*?)</t>)", re.DOTALL)
_ENTITY = re.compile(r"&(#x?[0-9A-Fa-f]+|lt|gt|amp|quot|apos);")
MAX_CELLS = 40_000
"""Tags like those of cells in one row; a sheet has 16,384 columns."""
MAX_TAG = 2_000
"""Bytes of a tag in which attributes are looked for."""
MOST_KNOWN = 50_000
"""Cells that are taken apart once for all that look the same."""
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_AS_IT_STANDS = {b"str": "text", b"e": "error", b"d": "date"}
"""What kind of value some cells hold whose text stands in the cell."""
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. ``kind`` is number, text, flag, error or date; a blank cell is not there at all.

    ``formula`` is its text without ``=``; None for a constant. A cell that shares the formula of the first
    cell of a run has ``shared`` set to that run's number, and its own text only if it is the first. A formula
    whose value the file does not hold is of kind ``none``. ``array``: the formula is one for a whole range.
    """

    kind: str
    value: Any
    formula: str | None = None
    shared: int | None = None
    style: int = 0
    array: bool = False


def blank(cell: Cell) -> bool:
    """Whether a cell says nothing: no formula, and a text of spaces."""
    return cell.kind == "text" and cell.formula is None and not str(cell.value).strip()


@dataclass(slots=True)
class Row:
    """One row: its number, its cells by column (1 = A), whether it is hidden, how many formulas it holds."""

    number: int
    cells: dict[int, Cell]
    hidden: bool = False
    formulas: int = 0
    whole: bool = True
    """Whether all its cells were read."""


def letter(column: int) -> str:
    """The letters of a column (1 = A)."""
    text = ""
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(65 + rest) + text
    return text


def letters_of(columns: Mapping[str, int]) -> dict[str, str]:
    """Header names by letter, from columns by name."""
    return {letter(column): name for name, column in columns.items()}


@lru_cache(maxsize=20_000)
def number(letters: bytes) -> int:
    """The number of a column's letters (A = 1)."""
    value = 0
    for char in letters.upper():
        value = value * 26 + char - 64
    return value


@dataclass(frozen=True)
class Sought:
    """What a caller wants of a long sheet: the cells of some columns, and of some rows every cell."""

    columns: Container[int]
    until: int
    """The last of the columns."""
    formulas: int
    """How many of the columns up to it hold formulas, none of them sought."""
    whole: Callable[[int, bytes, int, int], bool]
    """Given a row's number, its XML, how many formulas it holds and how many of these only point to a shared one: whether to
    read all of it."""


def rows(
    book: Workbook, sheet: SheetPart, *, until: int = 16_384, last_row: int = 1_048_576, sought: Sought | None = None
) -> Iterator[Row]:
    """The rows of a sheet that hold anything, cells up to column ``until``, or those that are ``sought``.

    A row that holds something else than formulas outside the sought columns is read whole as well. What stands
    below the last row is left in ``sheet.tail``.
    """
    expected = passed = 0
    piece, close = b"", 0
    taken = _Sought(book, sought) if sought is not None else None
    for chunk in book.chunks(sheet.part):
        # Splitting is many times faster than matching whole rows of a hundred formulas.
        for piece in chunk.split(b"<row")[1:]:
            if piece[:1] not in b" >/\t\r\n":
                continue  # <rowBreaks>
            end, close = piece.find(b">"), piece.rfind(b"</row>")
            plain = _NUMBERED.match(piece)
            attributes = {} if plain else dict(_ATTRIBUTE.findall(piece, 0, min(end + 1, MAX_TAG)))
            given = plain.group(1) if plain else attributes.get(b"r", b"")
            expected = int(given) if given.isdigit() and len(given) < 8 else expected + 1
            if expected > last_row:
                passed += 1
                if passed > 1000:
                    return
                continue
            if piece[end - 1 : end] == b"/":
                continue
            close = close if close > 0 else len(piece)
            found = taken.row(piece, expected, end, close) if taken else None
            if found is None:
                cells = _cells(book, piece[end + 1 : close], 16_384 if sought else until, expected)
                found = Row(expected, cells, False, piece.count(b"<f", end, close))
            found.hidden = attributes.get(b"hidden") in (b"1", b"true")
            yield found
    sheet.tail = piece[max(close, 0) :]


class _Sought:
    """Takes the sought cells out of rows that hold nothing else than formulas beside them."""

    def __init__(self, book: Workbook, sought: Sought) -> None:
        self.book, self.sought = book, sought
        self.after = letter(sought.until + 1).encode()

    def row(self, piece: bytes, number: int, end: int, close: int) -> Row | None:
        """A row whose tag ends at ``end`` and whose cells end at ``close``; None where it is to be read whole."""
        sought = self.sought
        stop = piece.find(b'<c r="%s%d"' % (self.after, number), end)
        head = piece[end + 1 : stop if 0 < stop < close else close]
        usual = head.count(b"<f") == sought.formulas
        cells = _filled(self.book, head, sought.until, sought.columns, _CONSTANT if usual else _FILLED)
        filled = piece.count(b"</c>", end, close)
        # Where these are all that is filled there can be no other formulas, and looking for them takes half as long.
        formulas = pointing = piece.count(b'<f t="shared" si="', end, close)
        if len(cells) + formulas != filled:
            formulas = piece.count(b"<f", end, close)
            if len(cells) + formulas != filled:
                return None
        if sought.whole(number, piece, formulas, pointing):
            return None
        return Row(number, cells, False, formulas, False)


def _cells(book: Workbook, body: bytes, until: int, row: int) -> dict[int, Cell]:
    stop = body.find(b'<c r="%s%d"' % (letter(until + 1).encode(), row)) if until < 16_384 else -1
    if stop >= 0:
        body = body[:stop]
    count = body.count(b"<c")
    if count > MAX_CELLS:
        raise book.refuse(f"row {row} holds more cells than a sheet has columns; the file is refused")
    return _filled(book, body, until) if count == body.count(b'<c r="') else _unplaced(book, body, until)


def _filled(
    book: Workbook, body: bytes, until: int, only: Container[int] | None = None, pattern: re.Pattern[bytes] = _FILLED
) -> dict[int, Cell]:
    """Cells that hold something, each written with its place in front."""
    found: dict[int, Cell] = {}
    known = book.cells
    # Beyond the last closing tag every search would be in vain.
    for letters, attributes, inner in pattern.findall(body, 0, body.rfind(b"</c>") + 4):
        column = number(letters)
        if column > until:
            break
        if only is not None and column not in only:
            continue
        key = attributes, inner
        cell = known.get(key)
        if cell is None:
            cell = _cell(book, attributes, inner)
            if len(known) < MOST_KNOWN and len(inner) < 200:
                known[key] = cell
        if cell is not None:
            found[column] = cell
    return found


def _unplaced(book: Workbook, body: bytes, until: int) -> dict[int, Cell]:
    """Cells written without their place, or with it not in front: they follow one another."""
    found: dict[int, Cell] = {}
    column = 0
    for match in _CELL.finditer(body, 0, body.rfind(b"</c>") + 4):
        place = _PLACE.fullmatch(dict(_ATTRIBUTE.findall(match.group(1)[:MAX_TAG])).get(b"r", b""))
        column = number(place.group(1)) if place else column + 1
        cell = _cell(book, match.group(1), match.group(2)) if match.group(2) and column <= until else None
        if cell is not None:
            found[column] = cell
    return found


def _cell(book: Workbook, raw_attributes: bytes, inner: bytes) -> Cell | None:
    attributes = dict(_ATTRIBUTE.findall(raw_attributes[:MAX_TAG]))
    formula, shared, array = _formula(inner) if b"<f" in inner else (None, None, False)
    style = _small(attributes.get(b"s", b"")) or 0
    kind = attributes.get(b"t", b"n")
    found = _value(book, kind, inner, style)
    if found is not None:
        return Cell(*found, formula, shared, style, array)
    if formula is None:
        return None
    # An empty text, or a value that was not computed: openpyxl writes both without a type.
    return Cell("text" if kind == b"str" else "none", "", formula, shared, style, array)


def _small(digits: bytes) -> int | None:
    """A whole number of a few digits; None for anything else."""
    return int(digits) if digits.isdigit() and len(digits) < 10 else None


def _formula(inner: bytes) -> tuple[str | None, int | None, bool]:
    """The formula of a cell, which shared one it is, whether it is one for a whole range."""
    match = _FORMULA.match(inner, inner.find(b"<f"))
    if match is None:
        return None, None, False
    parts = dict(_ATTRIBUTE.findall(match.group(1)[:MAX_TAG]))
    shared = _small(parts.get(b"si", b"")) if parts.get(b"t") == b"shared" else None
    return text_of(match.group(2) or b""), shared, parts.get(b"t") in (b"array", b"dataTable")


def _value(book: Workbook, kind: bytes, inner: bytes, style: int) -> tuple[str, Any] | None:
    """Kind and value of a cell; None when it shows nothing."""
    if kind == b"inlineStr":
        value = "".join(text_of(part) for part in _INLINE.findall(inner[: inner.rfind(b"</t>") + 4]))
        return ("text", value) if value else None
    match = _VALUE.match(inner, max(inner.find(b"<v"), 0))
    raw = text_of(match.group(1)) if match else ""
    if not raw:
        return None
    if kind == b"s":
        return _shared_text(book, raw)
    if kind == b"b":
        return "flag", raw in ("1", "true")
    if kind in _AS_IT_STANDS:
        return _AS_IT_STANDS[kind], raw
    if not _NUMBER.fullmatch(raw) or abs(float(raw)) == float("inf"):
        return "text", raw
    return "date" if style in book.dates else "number", float(raw)


def _shared_text(book: Workbook, raw: str) -> tuple[str, Any] | None:
    index = _small(raw.encode()) if raw.isascii() else None
    text = book.shared_text(index) if index is not None else None
    if text is None:
        return "error", "nothing: its text is missing from the file"
    value = unescape(text)
    return ("text", value) if value else None


def text_of(raw: bytes) -> str:
    """XML text as the text it stands for."""
    text = raw.decode("utf-8", "replace")
    if "&" in text:
        text = _ENTITY.sub(_entity, text)
    return unescape(text)


def unescape(text: str) -> str:
    """``_x0041_`` as the character it stands for; characters that nothing can show become U+FFFD."""
    return legible(_ESCAPED.sub(lambda match: chr(int(match.group(1), 16)), text) if "_x" in text else text)


def _entity(match: re.Match[str]) -> str:
    name = match.group(1)
    if name in _NAMED:
        return _NAMED[name]
    digits, base = (name[2:], 16) if name[1] in "xX" else (name[1:], 10)
    try:
        return chr(int(digits, base)) if len(digits) < 9 else "\ufffd"
    except (ValueError, OverflowError):
        return "\ufffd"
