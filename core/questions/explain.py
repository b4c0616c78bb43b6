"""Where a number comes from: its formula, the same with the numbers put in, the value, the source, and so on down.

:func:`explain` gives plain data (:class:`Step`); :mod:`scenario.questions.explanation_text` prints it as text, markdown or LaTeX.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from scenario.book.book import Book, Field, Lookup
from scenario.common.errors import Problem, TableError, nearest
from scenario.engine.evaluator import Evaluator
from scenario.formulas.expr import Name, Node
from scenario.formulas.nodes import Value
from scenario.model import shared
from scenario.questions.resolve import Resolved, resolve

HEADLINE = ("tokens_per_round", "round_ms", "tpot_ms", "tokens_per_s", "speedup", "memory_gb", "usd_per_million_tokens")
"""What is explained when no column is named."""


@dataclass
class Step:
    """One number and where it comes from.

    ``role`` is ``calc`` (then ``symbolic`` and ``taken`` hold its formula, as :class:`~scenario.questions.resolve.Resolved`
    does), ``input``, ``lookup`` or ``assumption``. ``values`` holds what the formula reads, with ``units``;
    ``origin`` says in words where a value that is not computed was given. ``of`` names the catalog entry that a
    step speaks of. ``below`` are the steps of what it reads, ``again`` marks one that was explained before.
    """

    name: str
    value: Value
    unit: str = ""
    doc: str = ""
    source: str = ""
    role: str = "calc"
    origin: str = ""
    of: str = ""
    symbolic: Node | None = None
    taken: Node | None = None
    methods: list[str] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)
    values: Mapping[str, Value] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    limits: frozenset[str] = frozenset()
    """The columns that can be ``unlimited``."""
    below: list[Step] = field(default_factory=list)
    again: bool = False


def explain(book: Book, row: str | None, column: str | None = None, depth: int = 1) -> tuple[str, list[Step]]:
    """The row's id and the steps of ``column`` (or of the headline columns), ``depth`` formulas deep.

    Raises :class:`TableError` for a row or column that is not there.
    """
    reader = _Explainer(book, row)
    wanted = [column] if column else [name for name in HEADLINE if name in book.fields]
    steps = [reader.step(name, depth) for name in wanted]
    seen = set()
    for step in walk(steps):  # a source is said once
        profile = book.vectors.profiles.get(step.value) if isinstance(step.value, str) and step.role != "calc" else None
        if profile is not None:
            rates = ", ".join(f"{rate:.6g}" for rate in profile.rates)
            step.origin = "; ".join(part for part in (step.origin, f"marginal rates {rates}") if part)
            step.source = profile.source or step.source
        if step.role != "calc":
            step.again = (step.name, step.of) in seen
            seen.add((step.name, step.of))
    return reader.row, steps


def row_values(book: Book, row: str | None) -> Mapping[str, Value]:
    """Every assumption and every column of one row by name."""
    return _Explainer(book, row).values


def walk(steps: list[Step]) -> Iterator[Step]:
    """All steps, each before those it rests on."""
    for step in steps:
        yield step
        yield from walk(step.below)


class _Explainer:
    def __init__(self, book: Book, row: str | None) -> None:
        self.book = book
        given = self.find(row)
        self.row = str(given["id"][0])
        evaluator = Evaluator(book)
        self.entities = evaluator.entities
        self.given = {name for name in given.columns if given[name][0] is not None}
        values: dict[str, Any] = evaluator.run(given).row(0, named=True)
        self.values: dict[str, Value] = {**book.constants, **values}
        self.units = {name: scalar.parameter.unit for name, scalar in book.scalars.items()}
        self.units |= {name: item.unit for name, item in book.fields.items()}
        self.limits = frozenset(name for name, item in book.fields.items() if item.limit)
        self.done: set[tuple[str, str]] = set()

    def find(self, row: str | None) -> pl.DataFrame:
        rows = self.book.table.rows
        ids = rows["id"].to_list()
        known = "rows: " + ", ".join(ids[:6]) + (", ..." if len(ids) > 6 else "")
        if row is None:
            if len(ids) == 1:
                return rows
            raise TableError(f"the table has {len(ids):,} rows: say which with --row", known)
        if row not in ids:
            raise TableError(f"there is no row '{row}'", nearest(row, ids) or known)
        return rows.filter(pl.col("id") == row)

    def step(self, name: str, depth: int) -> Step:
        """The step of one column or assumption."""
        if name in self.book.scalars:
            return self.assumption(name)
        item = self.book.fields.get(name)
        if item is None:
            known = [*self.book.fields, *self.book.scalars]
            raise TableError(Problem(f"unknown column '{name}'", nearest(name, known) or "scenario list columns shows them"))
        if item.role == "input":
            return Step(name, self.values[name], item.unit, item.doc, item.source, "input", self.where_given(item))
        if item.lookup is not None:
            return self.looked_up(item, item.lookup, depth)
        return self.computed(item, self.values, self.units, depth)

    def where_given(self, item: Field) -> str:
        plain = item.name.removesuffix("_given")
        if {item.name, plain} & self.given:
            return f"row '{self.row}' of {self.book.table.shown_as}"
        return "not given in the row"

    def assumption(self, name: str) -> Step:
        scalar = self.book.scalars[name]
        said = {"table": "given for the whole table", "preset": "from a preset", "default": "default", "unset": "not given"}
        origin = said.get(scalar.origin, scalar.origin) + (f" (method {scalar.owner})" if scalar.owner else "")
        return Step(name, scalar.value, scalar.parameter.unit, scalar.parameter.doc, scalar.source, "assumption", origin)

    def looked_up(self, item: Field, lookup: Lookup, depth: int) -> Step:
        """A value of a catalog entry; where the catalog computes it, with its formula."""
        entry = self.values[lookup.key]
        frame = self.entities[lookup.table]
        table = self.book.tables[lookup.table]
        known = table.fields[lookup.field]
        if entry is None:
            return Step(item.name, None, item.unit, item.doc, role="lookup", origin=f"{lookup.key} is not given")
        values = frame.filter(pl.col("name") == entry).row(0, named=True)
        cited = next(str(row.get("source", "")) for row in table.rows if row["name"] == entry)
        if lookup.table == "gpus" and lookup.field == "usd_per_hour":
            cited = next(str(row.get("price_source", "")) for row in table.rows if row["name"] == entry)
        units = {name: part.unit for name, part in table.fields.items()}
        return self.entity(known, item.name, str(entry), values, units, cited, depth)

    def entity(self, known: Field, name: str, entry: str, values: Mapping[str, Value], units: Mapping[str, str], cited: str,
               depth: int) -> Step:  # fmt: skip
        if known.node is None:
            return Step(name, values[known.name], known.unit, known.doc, cited, "lookup", "catalog", entry)
        if (entry, name) in self.done:
            return Step(name, values[known.name], known.unit, known.doc, of=entry, again=True)
        found = resolve(known.node, values, self.book)
        step = Step(name, values[known.name], known.unit, known.doc, known.source, "calc", "catalog", entry,
                    found.symbolic, found.taken, found.methods, found.cases, values, units)  # fmt: skip
        if depth > 0:
            self.done.add((entry, name))
            fields = next(table.fields for table in self.book.tables.values() if known.name in table.fields)
            for read in found.reads:
                if read in fields:
                    step.below.append(self.entity(fields[read], read, entry, values, units, cited, depth - 1))
                else:
                    step.below.append(self.assumption(read))
        return step

    def computed(self, item: Field, values: Mapping[str, Value], units: Mapping[str, str], depth: int) -> Step:
        assert item.node is not None
        if ("", item.name) in self.done:
            return Step(item.name, values[item.name], item.unit, item.doc, again=True, limits=self.limits)
        found = resolve(item.node, values, self.book)
        passed = self.passed_on(item, found)
        if passed is not None:
            return passed
        doc, source = item.doc, item.source
        if item.name in shared.OPEN or any(item.name in method.columns for method in self.book.methods.values()):
            doc, source = self.answer(item, found.methods)
        step = Step(item.name, values[item.name], item.unit, doc, source, "calc", "", "", found.symbolic, found.taken,
                    found.methods, found.cases, values, units, self.limits)  # fmt: skip
        if depth > 0:
            self.done.add(("", item.name))
            step.below = [self.step(read, depth - 1) for read in found.reads]
        return step

    def passed_on(self, item: Field, found: Resolved) -> Step | None:
        """A column that only hands on a value: said in one step. A helper's formula takes the place of its name."""
        while isinstance(found.symbolic, Name):
            name = found.symbolic.id
            behind = self.book.fields.get(name)
            if behind is not None and behind.node is not None:
                if behind.public:
                    return None
                inner = resolve(behind.node, self.values, self.book)
                found.symbolic, found.taken, found.cases = inner.symbolic, inner.taken, inner.cases
                found.reads = inner.reads
                found.methods += [owner for owner in inner.methods if owner not in found.methods]
                continue
            step = self.step(name, 0)
            if step.role == "calc":  # the catalog computes it
                return None
            origin = step.origin if step.role == "input" else f"{name}{f' of {step.of}' if step.of else ''}: {step.origin}"
            return Step(item.name, self.values[item.name], item.unit, item.doc, step.source or item.source, step.role, origin,
                        methods=found.methods, limits=self.limits)  # fmt: skip
        return None

    def answer(self, item: Field, methods: list[str]) -> tuple[str, str]:
        """What the method of this row says of its own formula."""
        for owner in methods:
            method = self.book.methods.get(owner.removeprefix("method "))
            if method and item.name in method.columns:
                column = method.columns[item.name]
                return column.doc or item.doc, column.source or method.source or item.source
        return item.doc, item.source
