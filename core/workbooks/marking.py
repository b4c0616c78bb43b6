"""Formulas that an analyst added, with marks in place of their references to the workbook's own sheets.

The exporter turns the marks back into the addresses of the new file (:mod:`scenario.workbooks.form.marks`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from scenario.workbooks.form.marks import AREA, BETWEEN, CLOSE, LOOSE, OPEN, TABLE, TEXT, OldSheet

MAX_FORMULA = 8_000
"""Characters of a formula; a spreadsheet allows 8,192."""

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
_HALF_AREA = re.compile(rf"{CLOSE}\s*:|:\s*(?:[\w.]+!)?{OPEN}")
"""A mark beside a colon: one end of a range whose other end is computed."""


@dataclass(frozen=True)
class Marker:
    """What is needed to mark formulas: ``sheets`` are the engine's, by title in small letters; ``own`` the titles of the
    added ones, whose references stay as they are; ``known`` the names that the new workbook defines as well.
    """

    sheets: Mapping[str, OldSheet]
    own: Collection[str] = ()
    known: Collection[str] = ()

    def mark(self, formula: str, home: OldSheet | None) -> str | None:
        """A formula with marks; None when a reference cannot be told. ``home`` is the engine's sheet that it stands on."""
        if len(formula) > MAX_FORMULA:
            return None
        marking = _Marking(self, home)
        text = _REFERENCE.sub(marking.replace, formula)
        if marking.failed:
            return None
        return LOOSE + text if _by_position(TEXT.sub('""', text), home is not None) else text


def _by_position(text: str, at_home: bool) -> bool:
    """Whether a formula, its texts left out, goes by positions rather than by what it names."""
    if _LOOSE.search(text) and (OPEN in text or at_home or "INDIRECT" in text.upper()):
        return True
    return bool(_HALF_AREA.search(AREA.sub(lambda area: "" if area.group(2) else area.group(), text)))


@dataclass
class _Marking:
    """One formula being marked."""

    marker: Marker
    home: OldSheet | None
    failed: bool = False
    kept: Collection[str] = field(default=("text", "number", "call"))

    def replace(self, match: re.Match[str]) -> str:
        kind = match.lastgroup
        if kind == "word":
            known = match.group().upper() in ("TRUE", "FALSE") or match.group() in self.marker.known
            self.failed = self.failed or not known
        elif kind == "structured":
            column = TABLE.fullmatch(match.group())
            known = column is not None and any(column.group(2) in s.columns.values() for s in self.marker.sheets.values())
            self.failed = self.failed or not known
        elif kind == "odd":
            self.failed = True
        elif kind not in self.kept:
            return self.reference(match)
        return match.group()

    def reference(self, match: re.Match[str]) -> str:
        """A cell, a range, or whole columns or rows."""
        prefix = match.group("sheet") or ""
        title = prefix.rstrip("!").strip("'").replace("''", "'").lower()
        if (not prefix and self.home is None) or title in self.marker.own:
            return match.group()
        sheet = self.marker.sheets.get(title) if prefix else self.home
        if match.group("from"):
            marks = [_column_mark(sheet, match.group(end)) for end in ("from", "to")]
        else:
            marks = [_cell_mark(sheet, match.group(end)) for end in ("first", "second") if match.group(end)]
        found = [mark for mark in marks if mark is not None]
        if sheet is None or match.group("lines") or len(found) < len(marks):  # whole rows cannot be told
            self.failed = True
            return match.group()
        return ("" if self.home is sheet else f"{sheet.title}!") + ":".join(found)


def _column_mark(sheet: OldSheet | None, place: str) -> str | None:
    name = sheet.columns.get(place.lstrip("$").upper()) if sheet else None
    if sheet is None or not name:
        return None
    return OPEN + BETWEEN.join((sheet.title, name, "", "c" * place.startswith("$"))) + CLOSE


def _cell_mark(sheet: OldSheet | None, place: str) -> str | None:
    match = _PLACE.fullmatch(place)
    if sheet is None or match is None:
        return None
    fixed_column, letters, fixed_row, row = match.groups()
    name, where = sheet.columns.get(letters.upper()), sheet.rows.get(int(row))
    if where is None and int(row) <= sheet.header:
        where = f"#{sheet.header - int(row)}"
    if name is None or where is None:
        return None
    return OPEN + BETWEEN.join((sheet.title, name, where, "c" * bool(fixed_column) + "r" * bool(fixed_row))) + CLOSE
