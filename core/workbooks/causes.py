"""Why a cell of a workbook shows something else than the engine computes: what the file itself gives evidence of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from scenario.book.assemble import assemble
from scenario.book.book import Book, Field
from scenario.common.errors import ScenarioError
from scenario.formulas.expr import names
from scenario.registry.loaded import Host
from scenario.result import evaluate
from scenario.tables.changes import united
from scenario.tables.table import Summary, Table
from scenario.workbooks.cells import letter
from scenario.workbooks.form import GIVEN, TITLES
from scenario.workbooks.found import Reading, Typed

ALTERED = "shows another value than its formula gives"
ALTERED_CELL = f"the cell {ALTERED}; recalculate the file"
CLEARED = "the formula is gone; copy it from a neighbouring row"
MOVED = "the formula reads other columns than it did: a column was deleted or put in, and it was not adjusted"


def before_changes(reading: Reading, table: Table, host: Host) -> pl.DataFrame | None:
    """What the rows would show with the assumptions as they were written; None where that cannot be told or is the same."""
    assert reading.base is not None
    base = reading.base.table
    old = replace(united(base, table, host), rows=table.rows, features=table.features, where=None, sort=(), sort_nodes=(),
                  columns=table.columns, summary=Summary(), summary_node=None, hardware=table.hardware,
                  measured=table.measured)  # fmt: skip
    try:
        return evaluate(assemble(old, host), host).full
    except (ScenarioError, pl.exceptions.PolarsError, ValueError, KeyError):
        return None


def changed_places(reading: Reading, book: Book) -> dict[tuple[str, str], str]:
    """What was changed in the workbook since it was written, but for the rows: (name read by formulas, entry) -> cell.

    Names are those of scalars, which have no entry, or ``table:field`` for the value of a catalog entry.
    """
    base, found = reading.base, {}
    assert base is not None
    for name, scalar in book.scalars.items():
        if name in base.scalars and scalar.value != base.scalars[name].value:
            found[name, ""] = reading.places.get(("Assumptions", name, "value"), name)
    for key, entry, field in _changed_entries(base, book):
        place = reading.places.get((TITLES.get(key, key), entry, field), f"{entry}.{field}")
        found[f"{key}:{field}", entry] = place
    return found


def _changed_entries(base: Book, book: Book) -> Iterator[tuple[str, str, str]]:
    """Catalog table, entry and field of each value that was changed."""
    for key, table in book.tables.items():
        old = {str(row["name"]): row for row in base.tables[key].rows} if key in base.tables else {}
        for row in table.rows:
            before = old.get(str(row["name"]))
            changed = [item.name for item in table.inputs if before and row.get(item.name) != before.get(item.name)]
            yield from ((key, str(row["name"]), name) for name in changed)


def reads(item: Field) -> set[str]:
    """The columns and scalars that a column reads itself."""
    if item.node is not None:
        return set(names(item.node))
    return {item.lookup.key, f"{item.lookup.table}:{item.lookup.field}"} if item.lookup else set()


def dependencies(book: Book) -> dict[str, set[str]]:
    """For each column, all columns and scalars that it reads, directly or through others."""
    direct = {name: reads(item) for name, item in book.fields.items()}
    for key, table in book.tables.items():
        for column in table.columns:
            direct[f"{key}:{column.name}"] = {one if one in book.scalars else f"{key}:{one}" for one in reads(column)}
    done: dict[str, set[str]] = {}

    def collect(name: str) -> set[str]:
        if name not in done:
            done[name] = set()
            done[name] = direct.get(name, set()).union(*(collect(one) for one in direct.get(name, ())))
        return done[name]

    return {name: collect(name) for name in book.fields}


class Causes:
    """The causes of differences. ``stale`` names by row the columns that changed assumptions do not explain."""

    def __init__(self, reading: Reading, book: Book, full: pl.DataFrame, stale: Mapping[int, set[str]]) -> None:
        self.reading, self.book, self.full, self.stale = reading, book, full, stale
        self.reads = dependencies(book)
        self.typed = {(item.row, item.column): item for item in reading.typed}
        self.by_row: dict[object, list[Typed]] = {}
        for item in reading.typed:
            self.by_row.setdefault(item.row, []).append(item)
        self.changed = changed_places(reading, book)
        self.keys: dict[str, set[str]] = {}  # the columns that name an entry of each catalog table
        for field in book.fields.values():
            if field.lookup:
                self.keys.setdefault(field.lookup.table, set()).add(field.lookup.key)

    def of(self, name: str, index: int) -> str:
        """Why the cell of a column in a row differs."""
        if (index, name) in self.typed:
            return typed_over(self.typed[index, name])
        if name in self.reading.cleared.get(index, ()):
            return CLEARED
        followed = next((item for item in self.by_row.get(index, ()) if item.column in self.reads[name]), None)
        if followed is not None:
            how = "typed over its formula" if followed.formula is None else f"where {typed_over(followed)}"
            return f"follows from {followed.cell}, {how}"
        edited = self.edited(name, index)
        parts = [*self.of_engine(name, index, bool(edited)), *edited]
        return "; and ".join(parts) or ALTERED_CELL

    def edited(self, name: str, index: int) -> list[str]:
        """The assumptions that were changed and that the cell reads, as one sentence."""
        places = [place for (key, entry), place in self.changed.items()
                  if key in self.reads[name] and (not entry or self.named(name, key.partition(":")[0], entry, index))]  # fmt: skip
        more = ", ..." if len(places) > 3 else ""
        return [f"changed assumption, not recalculated: {', '.join(places[:3])}{more}"] if places else []

    def of_engine(self, name: str, index: int, edited: bool) -> list[str]:
        """What the engine takes otherwise than the file, or else what the row itself tells."""
        for (table, entry), said in self.reading.entries.items():
            if self.named(name, table, entry, index):
                return [said]
        others = [column for column in (name, *sorted(self.reads[name])) if column in self.reading.other_formulas]
        if others and not edited:
            return [f"the engine's formula of {others[0]} is another one than the file's"]
        return [self.in_row(name, index)] if name in self.stale.get(index, ()) else []

    def named(self, name: str, table: str, entry: str, index: int) -> bool:
        """Whether the cell reads this entry of a catalog table."""
        keys = self.keys.get(table, set()) & self.reads[name] & set(self.full.columns)
        return any(self.full[key][index] == entry for key in keys)

    def in_row(self, name: str, index: int) -> str:
        """What the row itself tells: an edited input shows in several cells, an altered value in what follows from it alone."""
        stale = self.stale[index]
        every = [column for column in stale if not self.reads[column] & stale]
        roots = sorted({name, *self.reads[name]} & set(every))
        suspects = self.suspects(roots, every, stale)
        if suspects:
            which = ", ".join(item.removesuffix(GIVEN) for item in suspects[:3])
            return f"an input of the row was edited, and the file not recalculated: {which}"
        if name in roots:
            return ALTERED_CELL
        header = self.reading.header
        place = f"{letter(header.columns[roots[0]])}{self.reading.rows[index]}" if header else roots[0]
        return f"follows from {place} ({roots[0]}), which {ALTERED}; recalculate the file"

    def suspects(self, roots: list[str], every: list[str], stale: set[str]) -> list[str]:
        """The inputs of a row that explain several of its stale cells; those that explain all of them, if there are any."""
        direct = {column: self.inputs(column) for column in every}
        found = {item for column in roots for item in direct[column]}
        found = {item for item in found if sum(item in self.reads[other] for other in stale) > 1}
        shared = [item for item in found if all(item in inputs for inputs in direct.values())]
        return sorted(shared or found)

    def inputs(self, column: str) -> set[str]:
        """The inputs of a row that a column reads itself, or as what applies to the row."""
        fields = self.book.fields
        return {name for name in reads(fields[column]) if name in fields and fields[name].role == "input"}


def typed_over(item: Typed) -> str:
    """What stands in place of a formula."""
    if item.broken:
        return "the formula refers to what was deleted"
    if item.moved:
        return MOVED
    return "a value is typed over the formula" if item.formula is None else "the formula was changed"


def shown_as(value: Any) -> str:
    """A cell's value for a report."""
    if value is None:
        return "blank"
    return f"{value:.10g}" if isinstance(value, float) else str(value)
