"""How a frame is computed with the least work: what is one value, what follows from catalog keys, what varies.

Three kinds of columns come out. *Constants* hold one value in every row of the frame (a format that all rows
share, an input that nobody gave). Columns with a *grain* depend on catalog keys alone (model, method, ...):
they are computed once per combination of entries, and a row reads its combination. Only the rest is
computed row by row, and inside its formulas the parts with a grain are read from such tables as well.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from scenario.book.book import Book, Field, Lookup
from scenario.engine.plan_steps import TYPES, Code, Combined, Grain, Step, Stored, apply, code, reads, stages, with_zeros
from scenario.engine.sharing import is_leaf, share, tests
from scenario.formulas import graph
from scenario.formulas.expr import Call, If, Name, Node, names, rebuild
from scenario.formulas.nodes import Value
from scenario.formulas.partial import Literal, fold, literal
from scenario.formulas.to_polars import compile_polars

COMBINATIONS = 60_000
"""Largest table of combinations: its columns must stay in the processor's cache."""

BATCHED = max(1_000, pl.thread_pool_size() ** 2)
"""Up to so many rows a frame is not cut into batches; cut evenly among the threads, a larger one leaves no batch of one row."""

Work = dict[str, tuple[Node | Lookup, str]]
"""Columns to compute: a formula or a lookup each, and its type."""


class Known(NamedTuple):
    """All that a plan takes from a frame; frames that agree in it are computed by the same plan."""

    constants: tuple[tuple[str, Value], ...]
    """The inputs that hold one value in every row."""
    blank: frozenset[str]
    """The inputs that are blank in some row."""
    most: int
    """The largest table of combinations that is worth its making."""

    @staticmethod
    def of(frame: pl.DataFrame) -> Known:
        """What is to be known of this frame."""
        blank = frozenset(key for key in frame.columns if frame[key].null_count())
        return Known(tuple(constant_inputs(frame).items()), blank, min(COMBINATIONS, frame.height // 4))


class Plan:
    """What to compute for frames of which ``known`` holds, so that they have the columns ``wanted``."""

    def __init__(self, book: Book, entities: Mapping[str, pl.DataFrame], known: Known, wanted: Iterable[str]) -> None:
        self.book, self.entities, self.wanted = book, entities, list(wanted)
        self.most = known.most
        self.constants: dict[str, Value] = {**book.constants, **dict(known.constants)}
        self.blank = set(known.blank)
        self.tables = {item.lookup.key: item.lookup.table for item in book.fields.values() if item.lookup}
        self.same: dict[str, str] = {}
        self.cases: dict[str, Call] = {}
        self.grains: dict[str, Grain] = {}
        self.by_grain: Work = {}
        self.by_row: dict[str, tuple[Node, str]] = {}
        self.parts: dict[Any, tuple[str, Grain]] = {}
        self.stored: dict[str, tuple[Grain, str]] = {}  # name: the table it is read from, and its type
        self.values: dict[Node, Value] = {}
        for name in self.needed():
            self.place(book.fields[name])
        for name in self.wanted:
            self.need(name)
        self.by_row = share(self.by_row)
        self.steps = self.row_steps()

    def needed(self) -> list[str]:
        """The columns that the wanted ones read, in the order of computing."""
        fields = self.book.fields
        sources: dict[str, list[str]] = {}
        stack = list(self.wanted)
        while stack:
            name = stack.pop()
            if name not in sources:
                item = fields[name]
                found = [item.lookup.key] if item.lookup else names(item.node) if item.node else []
                sources[name] = [source for source in found if source in fields]
                stack += sources[name]
        return graph.order({name: sources[name] for name in fields if name in sources})

    def place(self, item: Field) -> None:
        """Decide which kind of column a field is."""
        name, kind = item.name, item.facts.type
        if name in self.constants:
            return
        if item.lookup:
            self.place_lookup(item, item.lookup)
        elif item.node is not None:
            node = fold(item.node, self.constants, self.value, self.same, self.cases)
            if isinstance(node, Literal):
                self.constants[name] = None if not hasattr(node, "value") else node.value
                return
            if isinstance(node, Name):
                self.same[name] = node.id
            elif isinstance(node, Call) and node.function == "choose":
                self.cases[name] = node
            grain = self.grain(node)
            if grain is not None:
                self.grains[name] = grain
                self.by_grain[name] = node, kind
            else:
                self.by_row[name] = self.split(node), kind
        if name in self.tables and name not in self.grains:
            self.grains[name] = frozenset([name])
            if item.role == "calc" and item.facts.blank:
                self.blank.add(name)

    def place_lookup(self, item: Field, lookup: Lookup) -> None:
        """Decide the same for a value from the catalog: it follows its key."""
        table = self.entities[lookup.table]
        if lookup.key in self.constants:
            key = self.constants[lookup.key]
            self.constants[item.name] = None if key is None else table[lookup.field][table["name"].to_list().index(key)]
            return
        self.grains[item.name] = self.grains[lookup.key]
        self.by_grain[item.name] = lookup, item.facts.type

    def value(self, node: Node) -> Value:
        """The value of a formula without names, from the same back end as everything else."""
        if node not in self.values:
            self.values[node] = pl.select(compile_polars(node, self.book.vectors)).item()
        return self.values[node]

    def grain(self, node: Node) -> Grain | None:
        """The keys that a formula depends on; None when it varies by row, reads nothing, or has too many combinations."""
        found: set[str] = set()
        for name in names(node):
            if name not in self.grains:
                return None
            found |= self.grains[name]
        return frozenset(found) if found and (len(found) < 2 or self.size(found) <= self.most) else None

    def size(self, keys: Iterable[str]) -> int:
        """How many combinations of entries there are."""
        return math.prod(self.entities[self.tables[key]].height + (key in self.blank) for key in keys)

    def split(self, node: Node, when: tuple[Node, ...] = ()) -> Node:
        """``node`` for the row by row work: its largest parts with a grain become columns of their own.

        ``when`` are tests that hold wherever the value counts.
        """
        if is_leaf(node):
            for name in names(node):
                self.need(name)
            return node
        grain = self.grain(node)
        words = isinstance(node, If) and node.facts.type == "text"
        if grain is None or words or node.facts.type == "flag":
            # Flags, and words chosen between, are quicker to find by comparing than to read from a table.
            node = tests(node)
            if isinstance(node, If):
                then = self.split(node.then, (*when, node.test))
                return replace(node, test=self.split(node.test, when), then=then, other=self.split(node.other, when))
            return rebuild(node, lambda child: self.split(child, when))
        if node.facts.type == "number" and not node.facts.blank:
            for test in when:
                # Any number will do where it does not count (the experts of a dense model): arithmetic on 0 is quick.
                if grain >= (self.grain(test) or {""}):
                    node = If(test, node, literal(0.0), facts=node.facts)
        key = node.signature
        if key not in self.parts:
            name = f"#{len(self.parts)}"
            self.parts[key] = name, grain
            self.grains[name] = grain
            self.by_grain[name] = node, node.facts.type
            self.need(name)
        return Name(self.parts[key][0], facts=node.facts)

    def need(self, name: str) -> None:
        """Have the rows read a column that has a grain."""
        if name in self.by_grain:
            self.stored[name] = self.grains[name], self.by_grain[name][1]

    # -- carrying it out ----------------------------------------------------------------------------------

    def table(self, grain: Grain) -> pl.DataFrame:
        """One row per combination of entries of the keys, a blank one included, with the columns stored there."""
        keys = sorted(grain)
        frame = functools.reduce(lambda a, b: a.join(b, how="cross"), [self.choices(key) for key in keys])
        wanted = [name for name, (where, _) in self.stored.items() if where == grain]
        work = {name: self.by_grain[name] for name in self.closure(wanted) if name in self.by_grain}
        return apply(with_zeros(frame).lazy(), stages(work, self.entities, self.book.vectors)).select(wanted).collect()

    def choices(self, key: str) -> pl.DataFrame:
        """What a key may be, in the order of its codes."""
        known = self.entities[self.tables[key]]["name"]
        return pl.DataFrame({key: [*known, None] if key in self.blank else known}, schema={key: pl.String})

    def closure(self, wanted: Iterable[str]) -> list[str]:
        """The columns with a grain that these need, themselves included."""
        found: dict[str, None] = {}
        stack = list(wanted)
        while stack:
            name = stack.pop()
            if name in self.by_grain and name not in found:
                found[name] = None
                stack += reads(self.by_grain[name][0])
        return list(found)

    def row_steps(self) -> list[list[pl.Expr]]:
        """The expressions of the rows: codes of the keys, codes of their combinations, then level by level."""
        grains = {grain for grain, _ in self.stored.values()}
        tables = {grain: self.table(grain) for grain in grains}
        work: dict[str, tuple[Step, str]] = dict(self.by_row)
        for key in {key for grain in grains for key in grain}:
            work[f"#{key}"] = Code(key, self.entities[self.tables[key]]["name"]), ""
        for grain in grains:
            if len(grain) > 1:
                sizes = {key: self.size([key]) for key in sorted(grain)}
                work[code(grain)] = Combined(sizes), ""
        for name, (grain, kind) in self.stored.items():
            work[name] = Stored(tables[grain][name], code(grain)), kind
        return stages(work, self.entities, self.book.vectors, [item.name for item in self.book.fields.values() if item.role == "input"])

    def compute(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The wanted columns that vary, for a slice of the frame."""
        varying = [name for name in self.wanted if name not in self.constants] or frame.columns[:1]
        # The streaming engine takes rows through all steps in batches that fit the processor's cache. A batch of one row would
        # be reckoned as values, not as columns, whose powers end in other digits: few rows go through whole, and never alone.
        whole = with_zeros(frame)
        steps = apply(whole.lazy(), self.steps).select(varying)
        return steps.collect(engine="streaming" if whole.height > BATCHED else "in-memory").head(frame.height)

    def complete(self, frame: pl.DataFrame) -> pl.DataFrame:
        """All wanted columns, from what :meth:`compute` gave: polars keeps a column of equal values as that one value."""
        types = {name: TYPES[self.book.fields[name].facts.type] for name in self.wanted}
        equal = (pl.lit(self.constants[name], dtype=types[name]).alias(name) for name in types if name in self.constants)
        return frame.with_columns(equal).select(self.wanted)


def constant_inputs(frame: pl.DataFrame) -> dict[str, Value]:
    """The columns of the frame that hold one value, or none at all, in every row."""
    found: dict[str, Value] = {}
    for series in frame.get_columns() if frame.height > 1 else []:
        if series.null_count() == frame.height:
            found[series.name] = None
        elif not series.null_count():
            value = series[0]
            # A look at the beginning spares most columns the comparison.
            if all(bool((part == value).all()) for part in (series.head(1000), series)):
                found[series.name] = value
    return found
