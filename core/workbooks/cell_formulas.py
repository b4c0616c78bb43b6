"""Formulas of a workbook in terms of column names, so that moved columns and another program's spelling do not count."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from scenario.workbooks.cells import Cell

_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"]|"")*")
      | (?P<sheet>(?:'(?:[^']|'')+'|[A-Za-z_][\w.]*)!)?(?P<ref>\$?[A-Za-z]{1,3}\$?[0-9]+(?::\$?[A-Za-z]{1,3}\$?[0-9]+)?)(?![\w(])
      | (?P<number>[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?)
      | (?P<word>[A-Za-z_][\w.]*)
      | (?P<space>\s+)
      | (?P<other>.)""",
    re.VERBOSE,
)
_END = re.compile(r"([A-Z]{1,3})\$?([0-9]+)")
_REF = re.compile(r"([A-Z]{1,3})\$?[0-9]")

Masters = dict[int, tuple[str, str]]
"""Formulas that are written once for many cells: text and place of the first, by number."""


def canonical(formula: str, names: Mapping[str, str], home: str = "scenarios") -> str:
    """A formula of the sheet ``home`` with its references there as ``[name]`` by ``names`` (letters -> header).

    Numbers are written one way, function names in capitals without ``_xlfn.``, ranges on other sheets by
    sheet only (rows and columns there move when an analyst inserts some).
    """
    out: list[str] = []
    for match in _TOKEN.finditer(formula.lstrip("=")):
        text = match.group()
        if match.group("ref"):
            out.append(_reference(match, names, home))
        elif text == ")" and out[-1:] == ["("] and out[-2:-1] in (["TRUE"], ["FALSE"]):
            out.pop()  # LibreOffice writes TRUE()
        elif match.lastgroup == "number":
            out.append(f"{float(text):.15g}")
        elif match.lastgroup == "word":
            out.append(text.upper().removeprefix("_XLFN."))
        elif match.lastgroup != "space":
            out.append(text)
    return "".join(out)


def _reference(match: re.Match[str], names: Mapping[str, str], home: str) -> str:
    """A cell or a range."""
    sheet = (match.group("sheet") or "").rstrip("!").strip("'").replace("$", "")
    if sheet and sheet.lower() != home:
        return f"{sheet.lower()}!"
    letters = _REF.findall(match.group("ref").upper())
    return "[" + ":".join(names.get(one, one) for one in letters) + "]"


def own_areas(formula: str) -> Iterator[tuple[str, int, str, int]]:
    """The ranges of its own sheet that a formula reads: first column, its letters padded to three, and row; last ones."""
    for match in _TOKEN.finditer(formula):
        if match.group("ref") and not match.group("sheet"):
            ends = [(column.rjust(3), int(row)) for column, row in _END.findall(match.group("ref").upper())]
            yield (*ends[0], *ends[-1])


def formula_of(cell: Cell, place: str, masters: Masters) -> str | None:
    """A cell's formula, also where it is written once for many; ``masters`` keeps those seen so far."""
    if cell.shared is None:
        return cell.formula
    if cell.formula:
        masters[cell.shared] = cell.formula, place
        return cell.formula
    if cell.shared not in masters:
        return None
    from openpyxl.formula.translate import Translator

    text, origin = masters[cell.shared]
    try:
        return str(Translator("=" + text, origin=origin).translate_formula(place)).removeprefix("=")
    except Exception:  # a formula that the library cannot take apart
        return None
