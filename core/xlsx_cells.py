"""Cells of a sheet, row by row, as they stand in the file: values with their kind, and formulas.

A row is taken apart with one expression per cell; a hundred thousand rows are read in seconds because a
caller says up to which column it cares.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from scenario.xlsx_zip import SheetPart, Workbook

_CELL = re.compile(rb"<c\b([^>]*?)(?:/>|>(.*?)</c>)", re.DOTALL)
_FILLED = re.compile(rb'<c r="([A-Z]+)[0-9]+"([^>/]*)>(.*?)</c>', re.DOTALL)
_ATTRIBUTE = re.compile(rb'(\w+)="([^"]*)"')
_FORMULA = re.compile(rb"<f\b([^>]*?)(?:/>|>(.*?)</f>)", re.DOTALL)
_VALUE = re.compile(rb"<v\b[^>]*>(.*?)</v>", re.DOTALL)
_INLINE = re.compile(rb"<t\b[^>]*?(?:/>|>(.*?)</t>)", re.DOTALL)
_ENTITY = re.compile(r"&(#x?[0-9A-Fa-f]+|lt|gt|amp|quot|apos);")
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. ``kind`` is number, text, flag, error or date; a blank cell is not there at all.

    ``formula`` is its text without ``=``; None for a constant. A cell that shares the formula of the first
    cell of a run has ``shared`` set to that run's number, and its own text only if it is the first.
    """

    kind: str
    value: Any
    formula: str | None = None
    shared: int | None = None
    style: int = 0


@dataclass(slots=True)
class Row:
    """One row: its number, its cells by column (1 = A), whether it is hidden, how many formulas it holds."""

    number: int
    cells: dict[int, Cell]
    hidden: bool = False
    formulas: int = 0


def letter(column: int) -> str:
    """The letters of a column (1 = A)."""
    text = ""
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(65 + rest) + text
    return text


@lru_cache(maxsize=20_000)
def number(letters: bytes) -> int:
    """The number of a column's letters (A = 1)."""
    value = 0
    for char in letters.upper():
        value = value * 26 + char - 64
    return value


def rows(
    book: Workbook, sheet: SheetPart, *, until: int = 16_384, last_row: int = 1_048_576, full: Callable[[int, int], bool] | None = None
) -> Iterator[Row]:
    """The rows of a sheet that hold anything, cells up to column ``until``.

    ``full(row number, formulas in it)`` says of which rows to read every cell all the same.
    """
    expected = 0
    for chunk in book.chunks(sheet.part):
        # Splitting is many times faster than matching whole rows of a hundred formulas.
        for piece in chunk.split(b"<row ")[1:]:
            end = piece.find(b">")
            attributes = dict(_ATTRIBUTE.findall(piece[: end + 1]))
            expected = int(attributes.get(b"r", expected + 1))
            if expected > last_row:
                return
            if piece[end - 1 : end] == b"/":
                continue
            hidden = attributes.get(b"hidden") in (b"1", b"true")
            formulas = piece.count(b"<f")
            upto = 16_384 if full is not None and full(expected, formulas) else until
            yield Row(expected, _cells(book, piece[end + 1 :], upto, expected), hidden, formulas)


def _cells(book: Workbook, body: bytes, until: int, row: int) -> dict[int, Cell]:
    stop = body.find(b'<c r="%s%d"' % (letter(until + 1).encode(), row))
    if stop >= 0:
        body = body[:stop]
    found: dict[int, Cell] = {}
    for letters, attributes, inner in _FILLED.findall(body):
        column = number(letters)
        if column > until:
            break
        cell = _cell(book, attributes, inner)
        if cell is not None:
            found[column] = cell
    if not found and b"<c" in body and b'<c r="' not in body:
        return _unplaced(book, body, until)
    return found


def _unplaced(book: Workbook, body: bytes, until: int) -> dict[int, Cell]:
    """Cells written without their place, or with it not in front: they follow one another."""
    found: dict[int, Cell] = {}
    column = 0
    for match in _CELL.finditer(body):
        place = dict(_ATTRIBUTE.findall(match.group(1))).get(b"r")
        column = number(place.rstrip(b"0123456789")) if place else column + 1
        cell = _cell(book, match.group(1), match.group(2)) if match.group(2) and column <= until else None
        if cell is not None:
            found[column] = cell
    return found


def _cell(book: Workbook, raw_attributes: bytes, inner: bytes) -> Cell | None:
    attributes = dict(_ATTRIBUTE.findall(raw_attributes))
    formula: str | None = None
    shared: int | None = None
    if b"<f" in inner:
        match = _FORMULA.search(inner)
        if match:
            parts = dict(_ATTRIBUTE.findall(match.group(1)))
            formula = text_of(match.group(2) or b"")
            if parts.get(b"t") == b"shared" and parts.get(b"si", b"").isdigit():
                shared = int(parts[b"si"])
    style = attributes.get(b"s", b"0")
    number_style = int(style) if style.isdigit() else 0
    found = _value(book, attributes.get(b"t", b"n"), inner, number_style)
    if found is None:
        return Cell("text", "", formula, shared, number_style) if formula is not None else None
    return Cell(*found, formula, shared, number_style)


def _value(book: Workbook, kind: bytes, inner: bytes, style: int) -> tuple[str, Any] | None:
    """Kind and value of a cell; None when it shows nothing."""
    if kind == b"inlineStr":
        value = "".join(text_of(part) for part in _INLINE.findall(inner))
        return ("text", value) if value else None
    match = _VALUE.search(inner)
    raw = text_of(match.group(1)) if match else ""
    if not raw:
        return None
    if kind == b"s" and raw.isdigit():
        value = unescape(book.shared_text(int(raw)))
        return ("text", value) if value else None
    if kind in (b"str", b"s"):
        return "text", raw
    if kind == b"b":
        return "flag", raw in ("1", "true")
    if kind == b"e":
        return "error", raw
    if kind == b"d":
        return "date", raw
    try:
        return "date" if style in book.dates else "number", float(raw)
    except ValueError:
        return "text", raw


def text_of(raw: bytes) -> str:
    """XML text as the text it stands for."""
    text = raw.decode("utf-8", "replace")
    if "&" in text:
        text = _ENTITY.sub(_entity, text)
    return unescape(text)


def unescape(text: str) -> str:
    """``_x0041_`` as the character it stands for."""
    return _ESCAPED.sub(lambda match: chr(int(match.group(1), 16)), text) if "_x" in text else text


def _entity(match: re.Match[str]) -> str:
    name = match.group(1)
    if name in _NAMED:
        return _NAMED[name]
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    return chr(code) if code < 0x110000 else "\ufffd"
