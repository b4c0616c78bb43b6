"""What somebody put on the workbook's own sheets that nothing carries over: it is told, cell by cell.

When a workbook is written, the sheet Source gets a line for each sheet that says what stood on it (:class:`Witness`).
Whatever stands there beyond that, when the workbook comes back, somebody has added. Texts are compared without
their places, so that a row put in above is no addition of everything below it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from scenario.workbooks.archive import SheetPart, Workbook
from scenario.workbooks.cells import Cell, blank, letter, rows
from scenario.workbooks.form import CHOICE_OF_COLUMN, CHOICE_OF_ROW
from scenario.workbooks.form.witness import MOST, PLACE, Witness, runs, split

SPOKEN = 8
"""Runs of cells that one message lists."""
Cells = dict[tuple[int, int], Cell]
"""Cells by (row, column)."""


@dataclass
class Used:
    """What was taken of a sheet that is read cell by cell, or spoken of: the row of its header, cells by (row, column)."""

    header: int
    cells: set[tuple[int, int]] = field(default_factory=set)


def left_behind(
    book: Workbook, marks: Iterable[Witness], told: Collection[tuple[str, int]], used: Mapping[str, Used]
) -> Iterator[str]:
    """What is not carried over, sheet by sheet, as messages.

    ``told`` are columns (sheet, 1 = A) that are spoken of elsewhere; ``used`` says what was taken of a sheet, by title.
    """
    for mark in marks:
        part = book.sheet(mark.sheet)
        if part is None:
            continue
        taken = used.get(part.title)
        found = _unread(book, part, mark, taken) if mark.read else _cells(book, part, mark)
        cells = [f"{letter(column)}{row}" for row, column in found if (part.title, column) not in told]
        if cells:
            yield f"{part.title}: not carried over, as this sheet is made anew: {listed(cells)}"
        heads = {f"{letter(column)}{row}" for row, column in taken.cells} if mark.columns and taken else set()
        yield from added_beside(book, part, {*mark.comments, *heads}, mark.drawings)


def added_beside(book: Workbook, part: SheetPart, comments: Collection[str] = (), drawings: int = 0) -> Iterator[str]:
    """The comments, charts and pictures of a sheet beyond those that were there when it was written."""
    new = [place for place in comments_of(book, part) if place not in comments]
    if new:
        yield f"{part.title}: the comments at {listed(new)} are not carried over"
    more = _drawings(book, part) - drawings
    if more > 0:
        what = "a chart or picture" if more == 1 else f"{more} charts or pictures"
        yield f"{part.title}: {what} added to it cannot be carried over"


def chosen(book: Workbook, mark: Witness) -> Iterator[tuple[str, str, Cell]]:
    """The choices of a sheet that are others than when it was written: place, input, cell."""
    part = book.sheet(mark.sheet)
    for row in rows(book, part, last_row=200) if part and mark.choices else ():
        for column, cell in row.cells.items():
            place = f"{letter(column)}{row.number}"
            part_of = mark.choices.get(place, "").startswith((CHOICE_OF_COLUMN, CHOICE_OF_ROW))  # one of these may name another
            known = Witness.digest(cell.value) in (mark.texts or ()) and not part_of
            if place in mark.choices and cell.formula is None and not known:
                yield f"{mark.sheet}!{place}", mark.choices[place], cell


def names_left(book: Workbook, known: Collection[str]) -> Iterator[str]:
    """The names that somebody defined: they are not carried over."""
    names = {name.lower() for name in known}
    listed_names = dict.fromkeys(str(item.get("name", "")) for item in book.tree(book.main).iter("definedName"))
    own = [name[:60] for name in listed_names
           if name and name.lower() not in names and not name.lower().startswith(("_xl", "print_", "excel_builtin"))]  # fmt: skip
    if own:
        said = ", ".join(own[:SPOKEN]) + (", ..." if len(own) > SPOKEN else "")
        yield f"names that are not the workbook's own are not carried over: {said}"


def _cells(book: Workbook, part: SheetPart, mark: Witness) -> Iterator[tuple[int, int]]:
    """Rows and columns of what was not there, on a sheet that is not read."""
    there: Cells = {(row.number, column): cell for row in rows(book, part, last_row=MOST) for column, cell in row.cells.items()}
    formulas = sum(cell.formula is not None and not _live(place, mark) for place, cell in there.items())
    for place, cell in there.items():
        choice = f"{letter(place[1])}{place[0]}" in mark.choices
        if not choice and not blank(cell) and _is_new(place, cell, mark, formulas - len(mark.formulas)):
            yield place


def _live(place: tuple[int, int], mark: Witness) -> bool:
    """Whether a cell is one of the rows of formulas that stand beside Scenarios row for row."""
    return 0 < mark.body <= place[0] and place[1] <= mark.width


def _is_new(place: tuple[int, int], cell: Cell, mark: Witness, more: int) -> bool:
    """Whether a cell is somebody's; ``more`` is how many formulas the sheet has beyond those that were written."""
    if mark.texts is None:
        return place[1] > mark.width
    if cell.formula is None and Witness.digest(cell.value) not in mark.texts:
        return True
    if _live(place, mark):  # a header that has moved down is none of them
        return False
    was_formula = f"{letter(place[1])}{place[0]}" in mark.formulas
    # With as many formulas as there were, those in other places have moved.
    return more > 0 and not was_formula if cell.formula is not None else more < 0 and was_formula


def _unread(book: Workbook, part: SheetPart, mark: Witness, used: Used | None) -> Iterator[tuple[int, int]]:
    """Rows and columns of what was not there, on a sheet that is read, and was not taken."""
    if used is None or mark.texts is None:
        return
    last = used.header - 1 if part.title == "Scenarios" else MOST  # of the rows of Scenarios their reader tells
    for row in rows(book, part, last_row=last):
        for column, cell in row.cells.items():
            known = cell.formula is None and cell.kind == "text" and Witness.digest(cell.value) in mark.texts
            if not known and not blank(cell) and (row.number, column) not in used.cells:
                yield row.number, column


def comments_of(book: Workbook, part: SheetPart) -> list[str]:
    """The cells of a sheet that have a comment."""
    found = []
    for kind, target in book.relations(part.part).values():
        if kind == "comments" and target in book.names:
            found += [item.get("ref", "") for item in book.tree(target).iter("comment")]
    return [place for place in found if PLACE.fullmatch(place)]


def _drawings(book: Workbook, part: SheetPart) -> int:
    targets = [target for kind, target in book.relations(part.part).values() if kind == "drawing" and target in book.names]
    return sum(item.tag.endswith("Anchor") for target in targets for item in book.tree(target))


def listed(found: Iterable[str]) -> str:
    """Some cells in short, runs down a column as one, in the order in which one reads; of very many the first."""
    said = sorted(runs(found).split(), key=lambda place: split(place)[::-1])
    more = f" and {len(said) - SPOKEN} more" if len(said) > SPOKEN else ""
    return ", ".join(said[:SPOKEN]) + more
