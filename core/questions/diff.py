"""Compares two tables: which inputs changed, which rows came and went, what moved, and which change moved it.

Each changed input is set in the old table alone and the engine run once for all rows; what that moves is its
share. What remains between the shares and the whole movement is the inputs' interaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from scenario.book import selection
from scenario.book.assemble import assemble
from scenario.book.book import Book, Field
from scenario.common.errors import ScenarioError
from scenario.engine.evaluator import Evaluator
from scenario.questions import diff_added
from scenario.questions.diff_columns import MovedColumn, Movement, differ
from scenario.questions.diff_rows import match, one, told_rows
from scenario.registry.loaded import Host
from scenario.tables.changes import table_changes, united
from scenario.tables.row_writer import OVERRIDE
from scenario.tables.section import Change
from scenario.tables.table import TEXT_NAMES, Summary, Table, known_inputs

MAX_RUNS = 60
CELLS = 60_000_000
"""Numbers held at once by the shares of all changes."""
BY_ROW = 500_000
"""Moved values that are kept one by one."""
ORDER = ("title", "time_model", "preset", "default", "row", "parameter", "price", "GPU", "model")
"""The kinds of changes that are told first."""


@dataclass
class Diff:
    """The difference of two tables. ``moved`` is one row per moved value: id, column, old, new, change, relative, shares."""

    old: str
    new: str
    changes: list[Change]
    appeared: list[dict[str, Any]]
    gone: list[dict[str, Any]]
    matched: int
    movements: list[Movement] = field(default_factory=list)
    moved: pl.DataFrame = field(default_factory=pl.DataFrame)
    notes: list[str] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        return not (self.changes or self.appeared or self.gone or self.movements)


def compare(old: Table, new: Table, host: Host, *, by_row: bool = False, max_runs: int = MAX_RUNS) -> Diff:
    """The difference of two checked tables. ``by_row`` keeps every moved value with its shares in ``moved``."""
    pairs = match(old, new)
    appeared = told_rows(new, set(range(new.rows.height)) - set(pairs["new"]))
    gone = told_rows(old, set(range(old.rows.height)) - set(pairs["old"]))
    changes = [*table_changes(old, new, host), *diff_added.changes(old, new, pairs)]
    found = Diff(old.shown_as, new.shown_as, changes, appeared, gone, pairs.height)
    if pairs.height:
        found.changes += _names_and_order(old, new, pairs)
        _Comparison(old, new, host, max_runs, found).measure(pairs, by_row)
        found.changes.sort(key=lambda change: ORDER.index(change.kind) if change.kind in ORDER else len(ORDER))
    return found


def _names_and_order(old: Table, new: Table, pairs: pl.DataFrame) -> Iterator[Change]:
    """Rows that are called otherwise, and whether they stand otherwise."""
    was, now = old.rows["id"][pairs["old"]], new.rows["id"][pairs["new"]]
    other = was != now
    if other.any():
        yield Change("row", "id", one(was.filter(other)), one(now.filter(other)), rows=int(other.sum()))
    # Rows that are sorted have no order of their own; those that where leaves out stand last in a workbook.
    loose = (old.sort and old.sort == new.sort) or (old.where and new.where and old.where.text == new.where.text)
    if not pairs["new"].is_sorted() and not loose:
        yield Change("row", "order", None, "rows stand in another order")


class _Comparison:
    """Runs both tables on the rows that they share, and the old one once per change."""

    def __init__(self, old: Table, new: Table, host: Host, max_runs: int, found: Diff) -> None:
        self.old, self.new, self.host, self.max_runs, self.found = old, new, host, max_runs, found
        self.inputs = [*TEXT_NAMES[1:], *known_inputs(host)]
        self.targets: dict[str, pl.Series] = {}

    def measure(self, pairs: pl.DataFrame, by_row: bool) -> None:
        mine, theirs = self.given(pairs)
        base = bare(united(self.old, self.new, self.host), mine)
        target = bare(replace(self.new, stacks={**self.new.stacks, **self.old.stacks}), theirs)
        try:
            book = assemble(base, self.host)
        except ScenarioError:  # a new column that the old table cannot compute
            base = replace(base, columns=self.old.columns)
            book = assemble(base, self.host)
        goal = assemble(target, self.host)
        before, after = Evaluator(book).run(mine), Evaluator(goal).run(theirs)
        pinned = self.row_changes(mine, theirs, before, after)
        moved = {item: differ(before[item.name], after[item.name]) for item in outputs(book, goal, self.old, self.inputs)}
        moved = {item: values for item, values in moved.items() if values.any()}
        if not moved:
            return
        touched = pl.select(pl.any_horizontal(list(moved.values()))).to_series()
        # Rows that are left out of the runs below may be those that bring a part of the model: it stays.
        active = frozenset(feature.name for feature in selection.select(base, self.host).features)
        base = replace(bare(base, pinned.filter(touched)), features=base.features | active)
        alone = self.alone(base, [item.name for item in moved], touched)
        start = self.run(base, [item.name for item in moved])
        before, after = before.filter(touched), after.filter(touched)
        columns = [MovedColumn(item, before[item.name], after[item.name], start, alone, values.filter(touched)) for item, values in moved.items()]
        self.found.movements += [column.movement() for column in columns]
        if by_row:
            self.keep(columns, before["id"])

    def given(self, pairs: pl.DataFrame) -> list[pl.DataFrame]:
        """The rows of both with the inputs of either."""
        sides = [self.old.rows[pairs["old"]], self.new.rows[pairs["new"]]]
        names = dict.fromkeys(name for side in sides for name in side.columns if name in self.inputs or name.endswith(OVERRIDE))
        kinds = {name: next(side.schema[name] for side in sides if name in side.columns) for name in names}
        return [side.select("id", *(pl.col(name) if name in side.columns else pl.lit(None, dtype=kind).alias(name)
                                    for name, kind in kinds.items())) for side in sides]  # fmt: skip

    def keep(self, columns: Sequence[MovedColumn], ids: pl.Series) -> None:
        """Every moved value, as many columns as there is room for."""
        tables: list[pl.DataFrame] = []
        for column in columns:
            if sum(table.height for table in tables) > BY_ROW:
                self.found.notes.append(f"more than {BY_ROW:,} values moved; row by row only the first columns are kept")
                break
            tables.append(column.by_row(ids))
        self.found.moved = pl.concat(tables)

    def run(self, table: Table, names: list[str]) -> pl.DataFrame:
        evaluator = Evaluator(assemble(table, self.host))
        return evaluator.run(table.rows, columns=[name for name in names if name in evaluator.book.fields])

    def alone(self, base: Table, names: list[str], touched: pl.Series) -> list[tuple[str, pl.DataFrame]]:
        """By change the outputs when only it is made; left out where the old table does not work with it."""
        found: list[tuple[str, pl.DataFrame]] = []
        for label, changes in self.runs(base.rows.height * len(names)):
            table = base
            for change in changes:
                if change.label in self.targets:
                    table = replace(table, rows=table.rows.with_columns(self.targets[change.label].filter(touched)))
                elif change.apply:
                    table = change.apply(table)
            try:
                found.append((label, self.run(table, names)))
            except (ScenarioError, pl.exceptions.PolarsError, ValueError, KeyError):
                self.found.notes.append(f"{label} cannot be changed alone; what it moves counts as interaction")
        return found

    def runs(self, cells: int) -> list[tuple[str, list[Change]]]:
        """What is run: each change alone, or in groups when there are very many."""
        real = [change for change in self.found.changes if change.apply or change.label in self.targets]
        runs = [(change.label, [change]) for change in real]
        most = max(min(self.max_runs, CELLS // max(cells, 1)), 1)
        if len(runs) <= most:
            return runs
        grouped: dict[str, list[Change]] = {}
        for change in real:
            grouped.setdefault(change.group or change.label, []).append(change)
        runs = list(grouped.items())
        said = "the fields of one model or GPU are taken together"
        if len(runs) > most:
            rest = [change for _, group in runs[most - 1 :] for change in group]
            runs = [*runs[: most - 1], (f"{len(rest)} other changes", rest)]
            said += f", and the last {len(rest)} of them as one"
        self.found.notes.append(f"{len(real)} inputs changed, more than the {most} that are tried one by one: {said}")
        return runs

    def row_changes(self, mine: pl.DataFrame, theirs: pl.DataFrame, before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
        """Notes the inputs of rows that changed; the old rows with the values that the new ones no longer leave to a default.

        What counts is the value that applies: a default written into every row is no change.
        """
        for name in mine.columns[1:]:
            was, now = mine[name], theirs[name]
            real_was = before[name] if name in before.columns else was
            real_now = after[name] if name in after.columns else now
            other = was.ne_missing(now) & differ(real_was, real_now)
            mine = mine.with_columns(_where(was.is_null() & now.is_not_null(), real_was, was, name))
            if other.any():
                kind, plain = "override" if name.endswith(OVERRIDE) else "row", name.removesuffix(OVERRIDE)
                change = Change(kind, plain, one(real_was.filter(other)), one(real_now.filter(other)), rows=int(other.sum()))
                self.targets[change.label] = _where(other, real_now, mine[name], name)
                self.found.changes.append(change)
        return mine


def _where(test: pl.Series, then: pl.Series, otherwise: pl.Series, name: str) -> pl.Series:
    return pl.select(pl.when(test).then(then).otherwise(otherwise).alias(name)).to_series()


def bare(table: Table, rows: pl.DataFrame) -> Table:
    """A table of these rows without what acts only at export."""
    return replace(table, rows=rows, where=None, sort=(), sort_nodes=(), summary=Summary(), summary_node=None)


def outputs(book: Book, goal: Book, old: Table, inputs: Sequence[str]) -> list[Field]:
    """The computed columns that both books show, those of the table itself last."""
    both = {item.name for item in goal.public}
    own = {*goal.table.columns} - {*old.columns}
    return [item for item in book.public if item.role == "calc" and item.name in both and item.name not in (*inputs, *own)]
