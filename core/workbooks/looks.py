"""How the sheets of a workbook look: what of it is carried over for an analyst's own sheets, and what is said of the others."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from scenario.workbooks.archive import SheetPart, Workbook
from scenario.workbooks.cells import letter, number
from scenario.workbooks.form.witness import Witness
from scenario.workbooks.left import comments_of, listed

MOST_AREAS = 500
"""Merged areas of a sheet that are carried over."""
MOST_STYLES = 500
MOST_PLACES = 60
_AREA = re.compile(r"([A-Z]{1,3})([0-9]{1,7}):([A-Z]{1,3})([0-9]{1,7})")


@dataclass
class Look:
    """What surrounds the cells of a sheet."""

    widths: list[tuple[int, int, float]] = field(default_factory=list)
    """First and last column (1 = A), width."""
    hidden: list[int] = field(default_factory=list)
    """Hidden columns."""
    merged: list[str] = field(default_factory=list)
    frozen: str = ""
    """The first cell that scrolls; empty when none is frozen."""
    right_to_left: bool = False
    rules: int = 0
    """Conditional formats."""
    validations: int = 0


def look_of(book: Workbook, part: SheetPart) -> Look:
    """What surrounds the cells of a sheet whose rows have been read."""
    first = next(iter(book.chunks(part.part)), b"")
    start = first.find(b"<sheetData")
    head, tail = first[: start if start >= 0 else len(first)], part.tail or first[first.rfind(b"</row>") :]
    found = Look(rules=tail.count(b"<cfRule "), validations=tail.count(b"<dataValidation "))
    found.right_to_left = bool(re.search(rb'<sheetView [^>]{0,900}rightToLeft="(?:1|true)"', head))
    pane = re.search(rb"<pane ([^>]{0,500})>", head)
    if pane and b'state="frozen' in pane[1]:
        split = [re.search(rb'%s="([0-9]{1,7})' % name, pane[1]) for name in (b"xSplit", b"ySplit")]
        across, down = (int(item[1]) if item else 0 for item in split)
        found.frozen = f"{letter(min(across, 200) + 1)}{min(down, 10_000) + 1}" if across or down else ""
    for match in re.finditer(rb"<col\b([^>]{0,500})/?>", head):
        parts = dict(re.findall(rb'(\w+)="([^"]*)"', match[1]))
        try:
            low, high = int(parts[b"min"]), min(int(parts[b"max"]), 16_384)
            if parts.get(b"hidden") in (b"1", b"true"):
                found.hidden += range(low, min(high, low + 200) + 1)
            found.widths.append((low, high, float(parts[b"width"])))
        except (KeyError, ValueError):
            continue
    found.merged = _apart(area.decode() for area in re.findall(rb'<mergeCell ref="([A-Z]{1,3}[0-9]{1,7}:[A-Z]{1,3}[0-9]{1,7})"', tail)[:MOST_AREAS])
    return found


def _apart(areas: Iterable[str]) -> list[str]:
    """Those of some areas that do not overlap one before: a sheet with such is taken for damaged."""
    found: list[tuple[int, int, int, int]] = []
    kept = []
    for area in areas:
        match = _AREA.fullmatch(area)
        if not match:
            continue
        left, right = sorted((number(match[1].encode()), number(match[3].encode())))
        top, bottom = sorted((int(match[2]), int(match[4])))
        inside = right <= 16_384 and top >= 1 and bottom <= 1_048_576
        if inside and all(right < other[0] or left > other[1] or bottom < other[2] or top > other[3] for other in found):
            found.append((left, right, top, bottom))
            kept.append(f"{letter(left)}{top}:{letter(right)}{bottom}")
    return kept


def not_carried(book: Workbook, part: SheetPart, look: Look) -> str:
    """What of the looks of an analyst's sheet is left behind, in words."""
    more = [word for word, there in (("conditional formats", look.rules), ("validations", look.validations),
                                     ("comments", comments_of(book, part))) if there]  # fmt: skip
    return ", ".join(["fonts", "colours", *more, "charts"]) + " or pictures"


def looks_left(book: Workbook, marks: Iterable[Witness]) -> Iterator[str]:
    """What somebody changed of the looks of the workbook's own sheets, as messages."""
    known = list(marks)
    palette = {color for mark in known for color in mark.fills}
    strange = _strange(book, palette | {"FFFFFF"}) if palette else []  # some programs write white where nothing was
    hidden = []
    for mark in known:
        part = book.sheet(mark.sheet)
        if part is None or mark.rules is None:
            continue
        painted = _painted(book, part, strange)
        if painted:
            yield f"{part.title}: the colours of {listed(painted)} are not carried over"
        look = look_of(book, part)
        if look.rules > mark.rules:
            yield f"{part.title}: a conditional format added to it cannot be carried over"
        if look.hidden:
            yield f"{part.title}: its hidden columns {', '.join(map(letter, look.hidden[:8]))}{', ...' if len(look.hidden) > 8 else ''} are shown again"
        hidden += [part.title] * part.hidden
    if hidden:
        yield f"hidden sheets are shown again: {', '.join(hidden)}"


def names_left(book: Workbook, known: Collection[str]) -> Iterator[str]:
    """The names that somebody defined: they are not carried over."""
    names = {name.lower() for name in known}
    own = [text for item in book.tree(book.main).iter("definedName")
           if (text := str(item.get("name", ""))) and text.lower() not in names and not text.lower().startswith(("_xl", "print_", "excel_builtin"))]  # fmt: skip
    if own:
        said = ", ".join(text[:60] for text in dict.fromkeys(own[:8])) + (", ..." if len(own) > 8 else "")
        yield f"names that are not the workbook's own are not carried over: {said}"


def _strange(book: Workbook, palette: Collection[str]) -> list[int]:
    """The cell styles whose fill is none that the workbook was written with."""
    part = book.parts.get("styles", "xl/styles.xml")
    if part not in book.names:
        return []
    root = book.tree(part)
    filled = set()
    for index, item in enumerate(root.findall("fills/fill")):
        pattern = item.find("patternFill")
        kind = pattern.get("patternType", "none") if pattern is not None else "gradient"
        color = pattern.find("fgColor") if pattern is not None else None
        said = color.get("rgb", "")[-6:].upper() if color is not None else ""
        if kind not in ("none", "gray125") and said not in palette:
            filled.add(str(index))
    cells = root.find("cellXfs")
    return [index for index, item in enumerate(cells if cells is not None else []) if item.get("fillId", "0") in filled][:MOST_STYLES]


def _painted(book: Workbook, part: SheetPart, styles: Collection[int]) -> list[str]:
    """The first cells of a sheet that have one of some styles."""
    found: list[str] = []
    if styles:
        pattern = re.compile(rb'<c r="([A-Z]{1,3}[0-9]{1,7})" s="(?:%s)"' % b"|".join(b"%d" % style for style in styles))
        for chunk in book.chunks(part.part):
            for match in pattern.finditer(chunk):
                found.append(match[1].decode())
                if len(found) >= MOST_PLACES:
                    return found
    return found
