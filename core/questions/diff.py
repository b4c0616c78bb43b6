"""Compares two tables: which inputs changed, which rows came and went, what moved, and which change moved it.

Each changed input is set in the old table alone and the engine run once for all rows; what that moves is its
share. What remains between the shares and the whole movement is the inputs' interaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from scenario.book.assemble import assemble
from scenario.book.book import Book, Field
from scenario.common.errors import ScenarioError
from scenario.engine.evaluator import Evaluator
from scenario.formulas.expr import UNLIMITED
from scenario.model import serving, shared
from scenario.registry.host import Host
from scenario.tables.changes import Change, table_changes, united
from scenario.tables.table import Summary, Table, parameter_specs

NEAR = 1e-12
"""Relative difference below which two numbers are the same: the engine may add in another order."""
MAX_RUNS = 60
CELLS = 60_000_000
"""Numbers held at once by the shares of all changes."""
BY_ROW = 500_000
"""Moved values that are kept one by one."""
CORE = ("model", "gpu", "method")


@dataclass(frozen=True)
class Share:
    """What one change alone moves in one column: means over the rows that moved, ``relative`` against their old values.

    ``rows`` it moves so, and ``turned`` rows it alone turns to the text (or the blank, or the number) that they become.
    """

    label: str
    change: float | None = None
    relative: float | None = None
    rows: int = 0
    turned: int = 0


@dataclass(frozen=True)
class Movement:
    """How one output moved. Means are over the rows whose old and new values are numbers (``numbers`` of them).

    ``turned`` counts other steps (a text, a blank, ``unlimited``) by old and new value.
    """

    column: str
    unit: str
    rows: int
    numbers: int = 0
    old: float | None = None
    new: float | None = None
    change: float | None = None
    relative: float | None = None
    least: float | None = None
    most: float | None = None
    turned: tuple[tuple[Any, Any, int], ...] = ()
    shares: tuple[Share, ...] = ()


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
    return _Comparison(old, new, host, max_runs).diff(by_row)


class _Comparison:
    def __init__(self, old: Table, new: Table, host: Host, max_runs: int) -> None:
        self.old, self.new, self.host, self.max_runs = old, new, host, max_runs
        self.inputs = [*CORE, "time_model", *shared.INPUTS, *serving.INPUTS, *parameter_specs(host)]
        self.notes: list[str] = []

    def diff(self, by_row: bool) -> Diff:
        old, new = self.old, self.new
        changes = table_changes(old, new, self.host)
        pairs = match(old, new)
        appeared = _rows(new, set(range(new.rows.height)) - set(pairs["new"]))
        gone = _rows(old, set(range(old.rows.height)) - set(pairs["old"]))
        found = Diff(old.shown_as, new.shown_as, changes, appeared, gone, pairs.height, notes=self.notes)
        if not pairs.height:
            return found
        mine, theirs = old.rows[pairs["old"]], new.rows[pairs["new"]]
        other = mine["id"] != theirs["id"]
        renamed = int(other.sum())
        if renamed:
            found.changes.append(Change("row", "id", _one(mine["id"].filter(other)), _one(theirs["id"].filter(other)), rows=renamed))
        # Rows that are sorted have no order of their own; those that where leaves out stand last in a workbook.
        loose = (old.sort and old.sort == new.sort) or (old.where and new.where and old.where.text == new.where.text)
        if not pairs["new"].is_sorted() and not loose:
            found.changes.append(Change("row", "order", None, "rows stand in another order"))
        self.measure(found, mine, theirs, by_row)
        order = ["title", "time_model", "preset", "default", "row", "parameter", "price", "GPU", "model"]
        found.changes.sort(key=lambda change: order.index(change.kind) if change.kind in order else len(order))
        return found

    def measure(self, found: Diff, mine: pl.DataFrame, theirs: pl.DataFrame, by_row: bool) -> None:
        """Run both tables on the rows that they share, and the old one once per change."""
        both = dict.fromkeys([*mine.columns, *theirs.columns])
        given = [name for name in both if name in self.inputs or name.endswith("_override")]
        kinds = {name: (mine if name in mine.columns else theirs).schema[name] for name in given}
        mine, theirs = [
            frame.select("id", *[pl.col(n) if n in frame.columns else pl.lit(None, dtype=kinds[n]).alias(n) for n in given])
            for frame in (mine, theirs)
        ]
        base = bare(united(self.old, self.new), mine)
        target = bare(replace(self.new, stacks={**self.new.stacks, **self.old.stacks}), theirs)
        try:
            book = assemble(base, self.host)
        except ScenarioError:  # a new column that the old table cannot compute
            base = replace(base, columns=self.old.columns)
            book = assemble(base, self.host)
        goal = assemble(target, self.host)
        before, after = Evaluator(book).run(mine), Evaluator(goal).run(theirs)
        row_changes, pinned = self.row_changes(mine, theirs, before, after, given)
        found.changes += row_changes
        base = bare(base, pinned)
        columns = outputs(book, goal, self.old, self.inputs)
        moved = {item.name: differ(before[item.name], after[item.name]) for item in columns}
        columns = [item for item in columns if moved[item.name].any()]
        if not columns:
            return
        touched = pl.DataFrame([moved[item.name].alias(item.name) for item in columns]).select(pl.any_horizontal(pl.all())).to_series()
        before, after, base = before.filter(touched), after.filter(touched), bare(base, pinned.filter(touched))
        runs = self.runs(found.changes, before.height * len(columns))
        names = [item.name for item in columns]
        start = self.run(base, names)
        alone: list[tuple[str, pl.DataFrame]] = []
        for label, applied in runs:
            changed = self.alone(label, base, applied, names, touched)
            if changed is not None:
                alone.append((label, changed))
        tables: list[pl.DataFrame] = []
        kept = 0
        for item in columns:
            here = moved[item.name].filter(touched)
            measured = _Column(item, before[item.name], after[item.name], start, alone, here)
            found.movements.append(measured.movement())
            if by_row and kept <= BY_ROW:
                tables.append(measured.by_row(before["id"]))
                kept += tables[-1].height
        if kept > BY_ROW:
            self.notes.append(f"more than {BY_ROW:,} values moved; row by row only the first columns are kept")
        if tables:
            found.moved = pl.concat(tables)

    def run(self, table: Table, names: list[str]) -> pl.DataFrame:
        evaluator = Evaluator(assemble(table, self.host))
        return evaluator.run(table.rows, columns=[name for name in names if name in evaluator.book.fields])

    def alone(self, label: str, base: Table, changes: Sequence[Change], names: list[str], touched: pl.Series) -> pl.DataFrame | None:
        """The outputs when only these changes are made, or None when the old table does not work with them."""
        table = base
        for change in changes:
            if change.label in self.targets:
                table = replace(table, rows=table.rows.with_columns(self.targets[change.label].filter(touched)))
            elif change.apply:
                table = change.apply(table)
        try:
            return self.run(table, names)
        except (ScenarioError, pl.exceptions.PolarsError, ValueError, KeyError):
            self.notes.append(f"{label} cannot be changed alone; what it moves counts as interaction")
            return None

    def runs(self, changes: Sequence[Change], cells: int) -> list[tuple[str, list[Change]]]:
        """What is run: each change alone, or in groups when there are very many."""
        real = [change for change in changes if change.apply or change.label in self.targets]
        runs = [(change.label, [change]) for change in real]
        most = max(min(self.max_runs, CELLS // max(cells, 1)), 1)
        if len(runs) > most:
            grouped: dict[str, list[Change]] = {}
            for change in real:
                grouped.setdefault(change.group or change.label, []).append(change)
            runs = list(grouped.items())
            said = "the fields of one model or GPU are taken together"
            if len(runs) > most:
                rest = [change for _, group in runs[most - 1 :] for change in group]
                runs = [*runs[: most - 1], (f"{len(rest)} other changes", rest)]
                said += f", and the last {len(rest)} of them as one"
            self.notes.append(f"{len(real)} inputs changed, more than the {most} that are tried one by one: {said}")
        return runs

    def row_changes(
        self, mine: pl.DataFrame, theirs: pl.DataFrame, before: pl.DataFrame, after: pl.DataFrame, given: list[str]
    ) -> tuple[list[Change], pl.DataFrame]:
        """The inputs of rows that changed, and the old rows with the values that the new ones no longer leave to a default.

        What counts is the value that applies: a default written into every row is no change.
        """
        self.targets: dict[str, pl.Series] = {}
        found = []
        for name in given:
            was, now = mine[name], theirs[name]
            real_was = before[name] if name in before.columns else was
            real_now = after[name] if name in after.columns else now
            other = was.ne_missing(now) & differ(real_was, real_now)
            pinned = was.is_null() & now.is_not_null()
            mine = mine.with_columns(pl.select(pl.when(pinned).then(real_was).otherwise(was)).to_series().alias(name))
            if other.any():
                typed = name.endswith("_override")
                change = Change("override" if typed else "row", name.removesuffix("_override"), _one(real_was.filter(other)),
                                _one(real_now.filter(other)), rows=int(other.sum()))  # fmt: skip
                self.targets[change.label] = pl.select(pl.when(other).then(real_now).otherwise(mine[name]).alias(name)).to_series()
                found.append(change)
        return found, mine


class _Column:
    """One output column: its movement and the shares of the changes in it."""

    def __init__(
        self, item: Field, old: pl.Series, new: pl.Series, start: pl.DataFrame, alone: list[tuple[str, pl.DataFrame]], moved: pl.Series
    ) -> None:
        self.item, self.old, self.new, self.moved = item, old, new, moved
        self.start = start[item.name]
        self.alone = [(label, frame[item.name]) for label, frame in alone if item.name in frame.columns]
        self.numbers = pl.repeat(False, len(old), eager=True)
        if item.facts.type == "number":
            self.numbers = moved & number(old, item.limit).is_not_null() & number(new, item.limit).is_not_null()

    def deltas(self) -> list[tuple[str, pl.Series]]:
        """By change what it moves alone, in the rows that moved from number to number; then the interaction."""
        limit = self.item.limit
        start = number(self.start, limit).filter(self.numbers)
        found = [(label, (number(values, limit).filter(self.numbers) - start).fill_null(0)) for label, values in self.alone]
        old, new = self.old.filter(self.numbers), self.new.filter(self.numbers)
        left = new - old
        for _, values in found:
            left = left - values
        scale = pl.select(pl.max_horizontal(old.abs(), new.abs(), *[values.abs() for _, values in found])).to_series()
        small = [pl.select(pl.when(values.abs() <= scale * NEAR * 100).then(0.0).otherwise(values)).to_series()
                 for values in (*[values for _, values in found], left)]  # fmt: skip
        return [*zip([label for label, _ in found], small[:-1], strict=True), ("interaction", small[-1])]

    def movement(self) -> Movement:
        old, new = self.old.filter(self.numbers), self.new.filter(self.numbers)
        turned = self.moved & ~self.numbers
        shares = [Share(label, *_means(values, old), int((values != 0).sum())) for label, values in self.deltas()] if len(old) else []
        if turned.any():
            shares = self.turning(turned, shares)
        shares = [share if share.rows else replace(share, change=None, relative=None) for share in shares if share.rows or share.turned]
        shares.sort(key=lambda share: (share.label == "interaction", -abs(share.relative or share.change or 0), -share.turned))
        found = Movement(self.item.name, self.item.unit, int(self.moved.sum()), len(old), turned=self.turns(turned), shares=tuple(shares))
        if not len(old):
            return found
        change, relative = _means(new - old, old)
        against = ((new - old) / old.abs()).filter(old != 0)
        return replace(found, old=_mean(old), new=_mean(new), change=change, relative=relative, least=_number(against.min()),
                       most=_number(against.max()))  # fmt: skip

    def turning(self, turned: pl.Series, shares: list[Share]) -> list[Share]:
        """The shares with the rows counted that a change by itself makes what they become; the others take several together."""
        known = {share.label: share for share in shares}
        for label, brings in self.bringing(turned):
            known[label] = replace(known.get(label, Share(label)), turned=int(brings.sum()))
        return list(known.values())

    def bringing(self, turned: pl.Series) -> list[tuple[str, pl.Series]]:
        """By change the turned rows that it alone brings to their new state (a text, a number, a blank); last those that none brings."""
        end, start = self.state(self.new), self.state(self.start)
        found = [(label, turned & self.state(values).eq_missing(end) & start.ne_missing(end)) for label, values in self.alone]
        left = turned
        for _, brings in found:
            left = left & ~brings
        return [*found, ("interaction", left)]

    def state(self, values: pl.Series) -> pl.Series:
        """What a value is: a text itself, a number only as such, without a limit, or not there."""
        if self.item.facts.type != "number":
            return values
        kind = pl.when(values.is_null()).then(None).when(values >= UNLIMITED).then(pl.lit(self.item.limit)).otherwise(pl.lit(False))
        return pl.select(kind.cast(pl.Boolean)).to_series()

    def turns(self, turned: pl.Series) -> tuple[tuple[Any, Any, int], ...]:
        if not turned.any():
            return ()
        frame = pl.DataFrame({"old": self.old, "new": self.new}).filter(turned)
        if self.item.facts.type == "number":
            none = pl.lit(UNLIMITED if self.item.limit else float("inf"))
            shown = [pl.when(pl.col(n).is_null()).then(None).when(pl.col(n) >= none).then(pl.lit("unlimited"))
                     .otherwise(pl.lit("a number")).alias(n) for n in ("old", "new")]  # fmt: skip
            frame = frame.with_columns(shown)
        counted = frame.group_by("old", "new", maintain_order=True).len().sort("len", descending=True, maintain_order=True)
        return tuple(counted.rows())

    def by_row(self, ids: pl.Series) -> pl.DataFrame:
        """Every moved value with the shares of the changes."""
        where = self.numbers.filter(self.moved)
        old, new = self.old.filter(self.moved), self.new.filter(self.moved)
        frame = pl.DataFrame({"id": ids.filter(self.moved), "column": [self.item.name] * len(old), "old": shown(old, self.item.limit), "new": shown(new, self.item.limit)})
        kind = pl.List(pl.Struct({"by": pl.String, "change": pl.Float64}))
        turning = self.turned_by(where)
        if not where.any():
            blank = pl.lit(None, dtype=pl.Float64)
            return frame.with_columns(blank.alias("change"), blank.alias("relative"), pl.Series("shares", turning, dtype=kind))
        change = pl.select(pl.when(where).then(new - old)).to_series()
        relative = pl.select(pl.when(old != 0).then(change / old.abs())).to_series()
        deltas = self.deltas()
        parts = pl.DataFrame([values.alias(str(index)) for index, (_, values) in enumerate(deltas)])
        structs = [pl.struct(pl.lit(label).alias("by"), pl.col(str(index)).alias("change")) for index, (label, _) in enumerate(deltas)]
        moving = pl.element().filter(pl.element().struct.field("change") != 0)
        shares = parts.select(pl.concat_list(structs).list.eval(moving).alias("shares")).with_columns(
            pl.Series("#", where.arg_true(), dtype=pl.UInt32))  # fmt: skip
        frame = frame.with_columns(change.alias("change"), relative.alias("relative")).with_row_index("#")
        joined = frame.join(shares, on="#", how="left", maintain_order="left").drop("#")
        return joined.with_columns(pl.coalesce(pl.col("shares").cast(kind), pl.Series("turning", turning, dtype=kind)))

    def turned_by(self, where: pl.Series) -> list[list[dict[str, Any]]]:
        """By moved value, ``where`` it is not from number to number, the changes that bring it; they have no amount."""
        found: list[list[dict[str, Any]]] = [[] for _ in range(len(where))]
        if where.all():
            return found
        for label, brings in self.bringing(self.moved & ~self.numbers):
            for index in brings.filter(self.moved).arg_true():
                found[index].append({"by": label, "change": None})
        return found


def shown(values: pl.Series, limit: bool) -> pl.Series:
    """Values of any type as exact texts; in a column that can be unlimited, no limit as a word."""
    if values.dtype != pl.Float64 or not limit:
        return values.cast(pl.String)
    return pl.select(pl.when(values >= UNLIMITED).then(pl.lit("unlimited")).otherwise(values.cast(pl.String))).to_series()


def number(values: pl.Series, limit: bool) -> pl.Series:
    """Numbers, null where there is no limit."""
    if not limit:
        return values
    return pl.select(pl.when(values < UNLIMITED).then(values)).to_series()


def differ(one: pl.Series, other: pl.Series) -> pl.Series:
    """Where two columns differ; numbers by more than rounding."""
    if one.dtype != pl.Float64 or other.dtype != pl.Float64:
        return one.ne_missing(other)
    near = (one - other).abs() <= pl.select(pl.max_horizontal(one.abs(), other.abs())).to_series() * NEAR
    return one.ne_missing(other) & ~near.fill_null(False)


def _mean(values: pl.Series) -> float | None:
    return _number(values.mean())


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _means(values: pl.Series, old: pl.Series) -> tuple[float | None, float | None]:
    """The mean of a movement, and relative to the old values where they are not 0."""
    return _mean(values), _mean((values / old.abs()).filter(old != 0))


def _one(values: pl.Series) -> Any:
    """The value, when it is the same in all rows, else how many there are."""
    found = values.unique()
    return found[0] if len(found) == 1 else f"{len(found):,} values"


def bare(table: Table, rows: pl.DataFrame) -> Table:
    """A table of these rows without what acts only at export."""
    return replace(table, rows=rows, where=None, sort=(), sort_nodes=(), summary=Summary(), summary_node=None)


def outputs(book: Book, goal: Book, old: Table, inputs: Sequence[str]) -> list[Field]:
    """The computed columns that both books show, those of the table itself last."""
    both = {item.name for item in goal.public}
    own = {*goal.table.columns} - {*old.columns}
    return [item for item in book.public if item.role == "calc" and item.name in both and item.name not in (*inputs, *own)]


def match(old: Table, new: Table) -> pl.DataFrame:
    """Pairs of row numbers (``old``, ``new``): by id, else by all inputs, else by model, GPU, method, batch and context."""
    sides = [_effective(table).with_row_index(name) for table, name in ((old, "old"), (new, "new"))]
    names = [name for name in dict.fromkeys([*sides[0].columns, *sides[1].columns]) if name not in ("id", "old", "new")]
    kinds = {name: next(side.schema[name] for side in sides if name in side.columns) for name in names}
    blank = [pl.lit(None, dtype=kind).alias(name) for name, kind in kinds.items()]
    sides = [side.with_columns([empty for name, empty in zip(kinds, blank, strict=True) if name not in side.columns]) for side in sides]
    pairs = []
    for keys, repeated in ((["id"], True), (names, True), ([n for n in shared.REQUIRED if n in names], False)):
        counted = [side.with_columns(pl.int_range(pl.len()).over(keys).alias("#")) for side in sides]
        if not repeated:
            counted = [side.filter(pl.len().over(keys) == 1) for side in counted]
        found = counted[0].join(counted[1], on=[*keys, "#"], how="inner", nulls_equal=True).select("old", "new")
        pairs.append(found)
        sides = [side.join(found, on=name, how="anti") for side, name in zip(sides, ("old", "new"), strict=True)]
    return pl.concat(pairs).sort("old")


def _effective(table: Table) -> pl.DataFrame:
    """The rows with the table's and the engine's defaults filled in."""
    defaults = {name: parameter.default for name, parameter in {**shared.INPUTS, **serving.INPUTS}.items()} | table.defaults
    rows = table.rows
    for name, value in defaults.items():
        if value is None or name in shared.SCALARS:
            continue
        filled = pl.lit(value if isinstance(value, str) else float(value))
        rows = rows.with_columns((pl.col(name).fill_null(filled) if name in rows.columns else filled).alias(name))
    return rows


def _rows(table: Table, numbers: set[int]) -> list[dict[str, Any]]:
    """Rows as mappings of what they give."""
    return [{name: value for name, value in row.items() if value is not None}
            for row in table.rows[sorted(numbers)].iter_rows(named=True)] if numbers else []  # fmt: skip
