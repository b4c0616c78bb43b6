"""The sheets beside Scenarios, compared with those of a workbook that the engine writes anew from the same inputs.

Rows are matched by what stands in their first column, columns by their header, so that sorting, and rows or columns
that somebody put in, change nothing.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from scenario.result import Result
from scenario.workbooks.archive import SheetPart, Workbook
from scenario.workbooks.causes import ALTERED_CELL, CLEARED, typed_over
from scenario.workbooks.cell_formulas import Masters, canonical, formula_of, own_areas
from scenario.workbooks.cells import Cell, Row, letter, rows
from scenario.workbooks.form import FIRST, SHEETS, Back
from scenario.workbooks.form.witness import split
from scenario.workbooks.found import Typed
from scenario.workbooks.left import listed

TOLERANCE = 1e-9
"""Relative to the larger of 1 and the value."""
OFFERED = re.compile(r"lists![^(),&]*\Z", re.IGNORECASE)
"""The formula of a title that a drop-down lets one replace: nothing but a cell of the sheet Lists."""

Key = tuple[str, int, str]
"""What stands in a row's first column, the how-manieth such row it is, and the column."""


@dataclass(frozen=True)
class Difference:
    """One cell that shows something else than the engine computes."""

    place: str
    row: str
    column: str
    shows: Any
    engine: Any
    cause: str


@dataclass
class Compared:
    """What came of one sheet. ``unknown`` formulas hold no value that could be compared."""

    title: str
    cells: int = 0
    unknown: int = 0
    differences: list[Difference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def different(shown: list[Any], engine: pl.Series) -> list[int]:
    """The rows in which two columns differ: numbers beyond the tolerance, anything else if not equal."""
    if engine.dtype == pl.Float64 and all(value is None or isinstance(value, float) for value in shown):
        frame = pl.DataFrame({"a": pl.Series(shown, dtype=pl.Float64), "b": engine})
        scale = pl.max_horizontal(pl.lit(1.0), pl.col("b").abs())
        same = (pl.col("a") - pl.col("b")).abs() <= TOLERANCE * scale
        same = same.fill_null(pl.col("a").is_null() & pl.col("b").is_null())
        return frame.select((~same).arg_true()).to_series().to_list()
    return [index for index, (a, b) in enumerate(zip(shown, engine.to_list(), strict=True)) if not _same(a, b)]


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float | bool):  # TRUE is 1 in some files that went through another format
        return abs(a - b) <= TOLERANCE * max(1.0, abs(b))
    return type(a) is type(b) and bool(a == b)


@dataclass
class _Grid:
    """The cells of a sheet by row and column as one knows them; formulas in terms of columns."""

    part: SheetPart
    places: dict[Key, str] = field(default_factory=dict)
    cells: dict[Key, Cell] = field(default_factory=dict)
    formulas: dict[Key, str] = field(default_factory=dict)
    raw: list[str] = field(default_factory=list)
    """The formulas as they stand."""
    rows: set[tuple[str, int]] = field(default_factory=set)

    def shows(self, key: Key) -> Any:
        """What a cell shows; None for a blank one."""
        cell = self.cells.get(key)
        return None if cell is None or cell.value == "" else cell.value


def _read(book: Workbook, part: SheetPart, head: str) -> _Grid:
    """A sheet; ``head`` is what stands in the first column of its table's header."""
    found = _Grid(part)
    masters: Masters = {}
    seen: dict[str, int] = {}
    names: dict[str, str] = {}
    label = ""
    for row in rows(book, part):
        first = row.cells.get(1)
        label = f"{first.value:.12g}" if first and isinstance(first.value, float) else str(first.value) if first else ""
        if label == head and not names:
            names = _header(row)
        seen[label] = seen.get(label, 0) + 1
        found.rows.add((label, seen[label]))
        for column, cell in row.cells.items():
            at = letter(column)
            key = label, seen[label], names.get(at, at)
            place = f"{at}{row.number}"
            found.places[key], found.cells[key] = place, cell
            formula = formula_of(cell, place, masters)
            if formula is not None:
                found.raw.append(formula)
                found.formulas[key] = canonical(formula, names, part.title.lower())
    return found


def _header(row: Row) -> dict[str, str]:
    """The columns of a table by letter."""
    texts = {letter(column): str(cell.value) for column, cell in row.cells.items() if cell.kind == "text"}
    return texts if len(texts) > 2 and len(set(texts.values())) == len(texts) else {}


def other_sheets(path: str | Path, result: Result, rows_differ: bool) -> Iterator[Compared]:
    """Each sheet of the file but Scenarios, compared. ``rows_differ``: whether cells of Scenarios show something else."""
    with tempfile.TemporaryDirectory() as folder, Workbook(path) as book, Workbook(result.to_excel(Path(folder) / "anew.xlsx")) as anew:
        chosen: set[str] = set()
        for sheet in SHEETS:
            part, new = book.sheet(sheet.title), anew.sheet(sheet.title)
            if part is not None and sheet.title not in ("Scenarios", "Source"):
                yield _compare(book, part, anew, new, sheet.back, chosen, rows_differ)


def _compare(
    book: Workbook, part: SheetPart, anew: Workbook, new: SheetPart | None, back: Back, chosen: set[str], rows_differ: bool
) -> Compared:
    """One sheet. ``chosen`` gets the titles of sheets that show what somebody chose on them, which is not known here."""
    found = Compared(part.title)
    if new is None:
        found.notes.append(f"{part.title}: not compared, as such a sheet is not made of this table alone")
        return found
    head = next((_label(row) for row in rows(anew, new, last_row=FIRST - 1) if row.number == FIRST - 1), "")
    here, there = _read(book, part, head), _read(anew, new, head)
    other = _chosen(here, there) if back is Back.CHOICES else []
    follows = next((title for title in chosen if any(f"{title.lower()}!" in text for text in here.formulas.values())), "")
    if there.formulas and (other or follows):
        chosen.add(part.title)
        why = f"it follows from {follows}" if follows else f"something else was chosen or typed at {listed(other)}"
        found.notes.append(f"{part.title}: not compared, as {why}")
        return found
    for key in there.formulas:
        if key[:2] in here.rows:
            _cell(found, here, there, key, rows_differ)
    return found


def _label(row: Row) -> str:
    return str(row.cells[1].value) if 1 in row.cells else ""


def _chosen(here: _Grid, there: _Grid) -> list[str]:
    """The cells that hold another constant than the engine writes and that formulas read: those of the sheet, or others a number."""
    both = here.cells.keys() & there.cells.keys() - there.formulas.keys() - here.formulas.keys()
    other = [here.places[key] for key in both if not _same(here.shows(key), there.shows(key))]
    areas = {area for text in here.raw if other for area in own_areas(text)}
    numbers = {here.places[key] for key in both if isinstance(here.shows(key), int | float)}
    return [place for place in other if place in numbers or any(_inside(split(place), area) for area in areas)]


def _inside(place: tuple[str, int], area: tuple[str, int, str, int]) -> bool:
    return area[0] <= place[0] <= area[2] and area[1] <= place[1] <= area[3]


def _cell(found: Compared, here: _Grid, there: _Grid, key: Key, rows_differ: bool) -> None:
    """One formula that the engine writes: what the file has there."""
    cell, shows, engine = here.cells.get(key), here.shows(key), there.shows(key)
    if cell is not None and cell.kind == "none":
        found.unknown += 1
        return
    found.cells += 1
    formula = here.formulas.get(key)
    picked = formula is None and OFFERED.match(there.formulas[key])  # a metric that was chosen from the drop-down
    if (formula is not None or picked) and _same(shows, engine):
        return
    place = here.places.get(key) or f"{key[2]} of {key[0]}"
    cause = _cause(here, there, key, engine, rows_differ)
    found.differences.append(Difference(f"{here.part.title}!{place}", key[0], key[2], shows, engine, cause))


def _cause(here: _Grid, there: _Grid, key: Key, engine: Any, rows_differ: bool) -> str:
    formula = here.formulas.get(key)
    if key not in here.cells:
        return CLEARED
    if formula is None or (formula != there.formulas[key] and not rows_differ):
        return typed_over(Typed(here.part.title, "", key[0], key[2], here.shows(key), formula))
    if here.part.title == "Checks" and engine in (0.0, "OK"):
        return "this check finds something"
    return "follows from what differs on Scenarios, or " + ALTERED_CELL if rows_differ else ALTERED_CELL
