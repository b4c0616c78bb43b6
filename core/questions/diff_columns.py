"""One output column of two tables that are compared: how it moved, and which change moved it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from scenario.book.book import Field
from scenario.formulas.expr import UNLIMITED

NEAR = 1e-12
"""Relative difference below which two numbers are the same: the engine may add in another order."""
INTERACTION = "interaction"
"""What no change moves by itself."""


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


class MovedColumn:
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
        return [*zip([label for label, _ in found], small[:-1], strict=True), (INTERACTION, small[-1])]

    def movement(self) -> Movement:
        old, new = self.old.filter(self.numbers), self.new.filter(self.numbers)
        found = Movement(self.item.name, self.item.unit, int(self.moved.sum()), len(old), turned=self.turns(), shares=self.shares(old))
        if not len(old):
            return found
        change, relative = _means(new - old, old)
        against = ((new - old) / old.abs()).filter(old != 0)
        return replace(found, old=_mean(old), new=_mean(new), change=change, relative=relative, least=_number(against.min()),
                       most=_number(against.max()))  # fmt: skip

    def shares(self, old: pl.Series) -> tuple[Share, ...]:
        """What each change does by itself, the most effective first, what only several do last."""
        moving = [Share(label, *_means(values, old), int((values != 0).sum())) for label, values in self.deltas()] if len(old) else []
        found = [share if share.rows else replace(share, change=None, relative=None) for share in self.turning(moving)]
        size = {share.label: abs(share.relative or share.change or 0) for share in found}
        kept = [share for share in found if share.rows or share.turned]
        return tuple(sorted(kept, key=lambda share: (share.label == INTERACTION, -size[share.label], -share.turned)))

    @property
    def turned(self) -> pl.Series:
        """Rows that move otherwise than from number to number."""
        return self.moved & ~self.numbers

    def turning(self, shares: list[Share]) -> list[Share]:
        """The shares with the rows counted that a change by itself makes what they become; the others take several together."""
        if not self.turned.any():
            return shares
        known = {share.label: share for share in shares}
        for label, brings in self.bringing():
            known[label] = replace(known.get(label, Share(label)), turned=int(brings.sum()))
        return list(known.values())

    def bringing(self) -> list[tuple[str, pl.Series]]:
        """By change the turned rows that it alone brings to their new state (a text, a number, a blank); last those that none brings."""
        end, start, turned = self.state(self.new), self.state(self.start), self.turned
        found = [(label, turned & self.state(values).eq_missing(end) & start.ne_missing(end)) for label, values in self.alone]
        left = turned
        for _, brings in found:
            left = left & ~brings
        return [*found, (INTERACTION, left)]

    def state(self, values: pl.Series) -> pl.Series:
        """What a value is: a text itself, a number only as such, without a limit, or not there."""
        if self.item.facts.type != "number":
            return values
        kind = pl.when(values.is_null()).then(None).when(values >= UNLIMITED).then(pl.lit(self.item.limit)).otherwise(pl.lit(False))
        return pl.select(kind.cast(pl.Boolean)).to_series()

    def turns(self) -> tuple[tuple[Any, Any, int], ...]:
        if not self.turned.any():
            return ()
        frame = pl.DataFrame({"old": self.old, "new": self.new}).filter(self.turned)
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
        limit = self.item.limit
        frame = pl.DataFrame({"id": ids.filter(self.moved), "column": [self.item.name] * len(old), "old": shown(old, limit), "new": shown(new, limit)})
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
        for label, brings in self.bringing():
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


