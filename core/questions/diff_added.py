"""What differs in the columns and sheets that an analyst added to a workbook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from scenario.tables.section import Change
from scenario.tables.table import Table


def changes(old: Table, new: Table, pairs: pl.DataFrame) -> Iterator[Change]:
    """Own columns, cell by cell of the rows in both tables, and own sheets, cell by cell."""
    if not (old.extras or new.extras):
        return
    mine, theirs = (side.extras.columns if side.extras else {} for side in (old, new))
    rows = dict(pairs.iter_rows())
    for name in dict.fromkeys([*mine, *theirs]):
        was = {rows[index]: _cell(cell, index) for index, cell in mine.get(name, {}).items() if index in rows}
        now = {index: _cell(cell, index) for index, cell in theirs.get(name, {}).items() if index in rows.values()}
        yield from _change("own column", name, was if name in mine else None, now if name in theirs else None)
    sheets = [{sheet.title: sheet for sheet in side.extras.sheets} if side.extras else {} for side in (old, new)]
    for title in dict.fromkeys([*sheets[0], *sheets[1]]):
        cells = [{place: _cell(cell) for place, cell in side[title].cells.items()} if title in side else None for side in sheets]
        yield from _change("own sheet", title, *cells)


def _cell(cell: Any, row: int | None = None) -> tuple[Any, ...]:
    """What a cell says; in a formula its own row is the same wherever that stands."""
    own = f"\x03{row}\x03"
    return (cell.formula.replace(own, "\x03@\x03"),) if cell.formula is not None else ("", cell.kept)


def _change(kind: str, name: str, was: Mapping[Any, Any] | None, now: Mapping[Any, Any] | None) -> Iterator[Change]:
    if was == now:
        return
    told = [None if cells is None else f"{len(cells):,} cell{'s' * (len(cells) != 1)}" for cells in (was, now)]
    if was is not None and now is not None:
        other = sum(was.get(place) != now.get(place) for place in {*was, *now})
        told[1] = f"{told[1]}, {other:,} of them other"
    yield Change(kind, name, told[0], told[1])
