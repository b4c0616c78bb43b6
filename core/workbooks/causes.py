"""Why a cell of a workbook shows something else than the engine computes: what the file itself gives evidence of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from scenario.book.assemble import assemble
from scenario.book.book import Book
from scenario.common.errors import ScenarioError
from scenario.formulas.expr import names
from scenario.registry.loaded import Host
from scenario.result import evaluate
from scenario.tables.changes import united
from scenario.tables.table import Summary, Table
from scenario.workbooks.cells import letter
from scenario.workbooks.form import GIVEN
from scenario.workbooks.found import Reading, Typed
from scenario.workbooks.read_back import changed_places

ALTERED = "shows another value than its formula gives"


def before_changes(reading: Reading, table: Table, host: Host) -> pl.DataFrame | None:
    """What the rows would show with the assumptions as they were written; None where that cannot be told or is the same."""
    assert reading.base is not None
    base = reading.base.table
    old = replace(united(base, table, host), rows=table.rows, features=table.features, where=None, sort=(), sort_nodes=(), columns=table.columns,
                  summary=Summary(), summary_node=None, hardware=table.hardware, measured=table.measured)  # fmt: skip
    try:
        return evaluate(assemble(old, host), host).full
    except (ScenarioError, pl.exceptions.PolarsError, ValueError, KeyError):
        return None


def dependencies(book: Book) -> dict[str, set[str]]:
    """For each column, all columns and scalars that it reads, directly or through others."""
    direct = {
        name: set(names(item.node)) if item.node is not None else {item.lookup.key, f"{item.lookup.table}:{item.lookup.field}"} if item.lookup else set()
        for name, item in book.fields.items()
    }
    for key, table in book.tables.items():
        for column in table.columns:
            assert column.node is not None
            direct[f"{key}:{column.name}"] = {name if name in book.scalars else f"{key}:{name}" for name in names(column.node)}
    done: dict[str, set[str]] = {}

    def collect(name: str) -> set[str]:
        if name not in done:
            done[name] = set()
            for read in direct.get(name, set()):
                done[name] |= {read} | collect(read)
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
        followed = [item for item in self.by_row.get(index, []) if item.column in self.reads[name]]
        if followed:
            return f"follows from {followed[0].cell}, typed over its formula"
        entries = [said for (table, entry), said in self.reading.entries.items() if self.named(name, table, entry, index)]
        edited = [place for (key, entry), place in self.changed.items()
                  if key in self.reads[name] and (not entry or self.named(name, key.partition(":")[0], entry, index))]  # fmt: skip
        parts = [entries[0]] if entries else []
        others = [column for column in (name, *sorted(self.reads[name])) if column in self.reading.other_formulas]
        if others and not entries and not edited:
            parts.append(f"the engine's formula of {others[0]} is another one than the file's")
        elif name in self.stale.get(index, ()) and not entries:
            parts.append(self.in_row(name, index))
        if edited:
            parts.append(f"changed assumption, not recalculated: {', '.join(edited[:3])}" + (", ..." if len(edited) > 3 else ""))
        return "; and ".join(parts) or f"the cell {ALTERED}; recalculate the file"

    def named(self, name: str, table: str, entry: str, index: int) -> bool:
        """Whether the cell reads this entry of a catalog table."""
        return any(self.full[key][index] == entry for key in self.keys.get(table, ()) if key in self.reads[name] and key in self.full.columns)

    def in_row(self, name: str, index: int) -> str:
        """What the row itself tells: an edited input shows in several cells, an altered value in what follows from it alone."""
        stale = self.stale[index]
        roots = [column for column in sorted({name, *self.reads[name]} & stale) if not self.reads[column] & stale]
        every = [column for column in stale if not self.reads[column] & stale]
        direct = {column: self.inputs(column) for column in every}
        suspects = {item for column in roots for item in direct[column] if sum(item in self.reads[other] for other in stale) > 1}
        shared = [item for item in suspects if all(item in inputs for inputs in direct.values())]
        if suspects:
            which = ", ".join(item.removesuffix(GIVEN) for item in sorted(shared or suspects)[:3])
            return f"an input of the row was edited, and the file not recalculated: {which}"
        if name in roots:
            return f"the cell {ALTERED}; recalculate the file"
        place = f"{letter(self.reading.header.columns[roots[0]])}{self.reading.rows[index]}" if self.reading.header else roots[0]
        return f"follows from {place} ({roots[0]}), which {ALTERED}; recalculate the file"

    def inputs(self, column: str) -> set[str]:
        """The inputs of a row that a column reads itself, or as what applies to the row."""
        item = self.book.fields[column]
        direct = set(names(item.node)) if item.node is not None else {item.lookup.key} if item.lookup else set()
        found: set[str] = set()
        for name in direct:
            if name in self.book.fields and self.book.fields[name].role == "input":
                found.add(name)
        return found


def typed_over(item: Typed) -> str:
    """What stands in place of a formula."""
    if item.broken:
        return "the formula refers to what was deleted"
    return "a value is typed over the formula" if item.formula is None else "the formula was changed"
