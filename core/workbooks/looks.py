"""How an analyst's own sheets look: what of it is carried over. The workbook's own sheets are laid out anew."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from scenario.workbooks.archive import SheetPart, Workbook
from scenario.workbooks.cells import letter, number

MOST_AREAS = 500
"""Merged areas of a sheet that are carried over."""
_AREA = re.compile(r"([A-Z]{1,3})([0-9]{1,7}):([A-Z]{1,3})([0-9]{1,7})")
_MERGED = re.compile(rb'<mergeCell ref="([A-Z]{1,3}[0-9]{1,7}:[A-Z]{1,3}[0-9]{1,7})"')


@dataclass
class Look:
    """What surrounds the cells of a sheet."""

    widths: list[tuple[int, int, float]] = field(default_factory=list)
    """First and last column (1 = A), width."""
    merged: list[str] = field(default_factory=list)
    frozen: str = ""
    """The first cell that scrolls; empty when none is frozen."""
    right_to_left: bool = False


def look_of(book: Workbook, part: SheetPart) -> Look:
    """What surrounds the cells of a sheet whose rows have been read."""
    first = next(iter(book.chunks(part.part)), b"")
    start = first.find(b"<sheetData")
    head, tail = first[: start if start >= 0 else len(first)], part.tail or first[first.rfind(b"</row>") :]
    right_to_left = bool(re.search(rb'<sheetView [^>]{0,900}rightToLeft="(?:1|true)"', head))
    areas = (area.decode() for area in _MERGED.findall(tail)[:MOST_AREAS])
    return Look(list(_widths(head)), _apart(areas), _frozen(head), right_to_left)


def _frozen(head: bytes) -> str:
    pane = re.search(rb"<pane ([^>]{0,500})>", head)
    if not pane or b'state="frozen' not in pane[1]:
        return ""
    split = [re.search(rb'%s="([0-9]{1,7})' % name, pane[1]) for name in (b"xSplit", b"ySplit")]
    across, down = (int(item[1]) if item else 0 for item in split)
    return f"{letter(min(across, 200) + 1)}{min(down, 10_000) + 1}" if across or down else ""


def _widths(head: bytes) -> Iterator[tuple[int, int, float]]:
    for match in re.finditer(rb"<col\b([^>]{0,500})/?>", head):
        parts = dict(re.findall(rb'(\w+)="([^"]*)"', match[1]))
        try:
            yield int(parts[b"min"]), min(int(parts[b"max"]), 16_384), float(parts[b"width"])
        except (KeyError, ValueError):
            continue


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
        if inside and not any(_overlap((left, right, top, bottom), other) for other in found):
            found.append((left, right, top, bottom))
            kept.append(f"{letter(left)}{top}:{letter(right)}{bottom}")
    return kept


def _overlap(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> bool:
    return a[1] >= b[0] and a[0] <= b[1] and a[3] >= b[2] and a[2] <= b[3]
