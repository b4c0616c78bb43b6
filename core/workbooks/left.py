"""What somebody put on the workbook's own sheets that nothing carries over: it is told, cell by cell.

When a workbook is written, the sheet Source gets a line for each sheet that says what stood on it (:class:`Witness`).
Whatever stands there beyond that, when the workbook comes back, somebody has added. Texts are compared without
their places, so that a row put in above is no addition of everything below it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from scenario.workbooks.archive import SheetPart, Workbook
from scenario.workbooks.cells import Cell, letter, number, rows
from scenario.workbooks.form.witness import MOST, PLACE, Witness


@dataclass
class Used:
    """What was taken of a sheet that is read cell by cell, or spoken of: the row of its header, and cells by (row, column)."""

    header: int
    cells: set[tuple[int, int]] = field(default_factory=set)


def left_behind(
    book: Workbook, marks: Iterable[Witness], told: Collection[tuple[str, int]] = (), used: Mapping[str, Used] | None = None
) -> Iterator[str]:
    """What is not carried over, sheet by sheet, as messages.

    ``told`` are columns (sheet, 1 = A) that are spoken of elsewhere; ``used`` says what was taken of a sheet, by title.
    """
    for mark in marks:
        part = book.sheet(mark.sheet)
        if part is None:
            continue
        found = _unread(book, part, mark, (used or {}).get(part.title)) if mark.read else _cells(book, part, mark)
        cells = [place for place, column in found if (part.title, column) not in told]
        if cells:
            yield f"{part.title}: not carried over, as this sheet is made anew: {listed(cells)}"
        comments = [place for place in comments_of(book, part) if place not in mark.comments]
        if mark.columns and used and part.title in used:
            heads = {f"{letter(column)}{row}" for row, column in used[part.title].cells}
            comments = [place for place in comments if place not in heads]
        if comments:
            yield f"{part.title}: the comments at {listed(comments)} are not carried over"
        more = _drawings(book, part) - mark.drawings
        if more > 0:
            yield f"{part.title}: {'a chart or picture' if more == 1 else f'{more} charts or pictures'} added to it cannot be carried over"


def chosen(book: Workbook, mark: Witness) -> Iterator[tuple[str, str, Cell]]:
    """The choices of a sheet that are others than when it was written: place, input, cell."""
    part = book.sheet(mark.sheet)
    for row in rows(book, part, last_row=200) if part and mark.choices else ():
        for column, cell in row.cells.items():
            place = f"{letter(column)}{row.number}"
            if place in mark.choices and cell.formula is None and Witness.digest(cell.value) not in (mark.texts or ()):
                yield f"{part.title}!{place}" if part else place, mark.choices[place], cell


def _cells(book: Workbook, part: SheetPart, mark: Witness) -> Iterator[tuple[str, int]]:
    """The places and columns of what was not there."""
    if part.title == "Scenarios":  # its reader tells of every cell
        return
    there = {(row.number, column): cell for row in rows(book, part, last_row=MOST) for column, cell in row.cells.items()}
    live = {(row, column) for row, column in there if 0 < mark.body <= row and column <= mark.width}
    more = sum(cell.formula is not None for place, cell in there.items() if place not in live) - len(mark.formulas)
    for (row, column), cell in there.items():
        place = f"{letter(column)}{row}"
        beside = column > mark.width
        if place in mark.choices or (cell.kind == "text" and not str(cell.value).strip() and cell.formula is None):
            continue
        if mark.texts is None:
            new = beside
        elif (row, column) in live:  # a header that has moved down is none of them
            new = cell.formula is None and Witness.digest(cell.value) not in mark.texts
        elif cell.formula is not None:  # with as many as there were, those in other places have moved
            new = more > 0 and place not in mark.formulas
        else:
            new = (more < 0 and place in mark.formulas) or Witness.digest(cell.value) not in mark.texts
        if new:
            yield place, column


def _unread(book: Workbook, part: SheetPart, mark: Witness, used: Used | None) -> Iterator[tuple[str, int]]:
    """The places and columns of what was not there, on a sheet that is read, and was not taken."""
    if used is None or mark.texts is None:
        return
    last = used.header - 1 if part.title == "Scenarios" else MOST  # of the rows of Scenarios their reader tells
    for row in rows(book, part, last_row=last):
        for column, cell in row.cells.items():
            if (row.number, column) in used.cells or (cell.kind == "text" and not str(cell.value).strip() and cell.formula is None):
                continue
            if cell.formula is not None or cell.kind != "text" or Witness.digest(cell.value) not in mark.texts:
                yield f"{letter(column)}{row.number}", column


def comments_of(book: Workbook, part: SheetPart) -> list[str]:
    """The cells of a sheet that have a comment."""
    found = []
    for kind, target in book.relations(part.part).values():
        if kind == "comments" and target in book.names:
            found += [item.get("ref", "") for item in book.tree(target).iter("comment")]
    return [place for place in found if PLACE.fullmatch(place)]


def _drawings(book: Workbook, part: SheetPart) -> int:
    count = 0
    for kind, target in book.relations(part.part).values():
        if kind == "drawing" and target in book.names:
            count += sum(item.tag.endswith("Anchor") for item in book.tree(target))
    return count


def listed(found: list[str]) -> str:
    """The first few of some places, in the order in which one reads."""
    ordered = sorted(found, key=lambda place: (int(place.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")), number(place.rstrip("0123456789").encode())))
    return ", ".join(ordered[:8]) + (", ..." if len(ordered) > 8 else "")
