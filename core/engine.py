"""Computes a book with polars: lookups by position, then the columns level by level.

There is no loop over rows. Large frames go through in slices, so that memory stays bounded and the
columns of a slice stay in the processor's caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from scenario import graph
from scenario.book import Book, EntityTable, Field
from scenario.expr import names
from scenario.to_polars import compile_polars

SLICE = 250_000
TYPES = {"number": pl.Float64, "text": pl.String, "flag": pl.Boolean, "none": pl.Float64}

Progress = Callable[[int, int], None]
"""Called with rows done and rows in all."""


def entity_frame(book: Book, table: EntityTable) -> pl.DataFrame:
    """A catalog table with its computed columns, one row per entry."""
    schema = {item.name: TYPES[item.facts.type] for item in table.inputs}
    frame = pl.DataFrame({n: [row.get(n) for row in table.rows] for n in schema}, schema=schema)
    frame = frame.with_columns(pl.Series("name", table.names, dtype=pl.String))
    return compute(book, frame, list(table.columns))


def compute(book: Book, frame: pl.DataFrame, fields: list[Field]) -> pl.DataFrame:
    """``frame`` with the calc ``fields`` added, each group of independent columns in one go."""
    reads = {item.name: names(item.node) for item in fields if item.node is not None}
    ordered = graph.order(reads)
    by_name = {item.name: item for item in fields}
    plan = frame.lazy()
    for level in graph.levels(ordered, reads):
        expressions = []
        for name in level:
            item = by_name[name]
            assert item.node is not None
            expression = compile_polars(item.node, book.vectors, book.constants)  # type: ignore[arg-type]
            expressions.append(expression.cast(TYPES[item.facts.type]).alias(name))
        plan = plan.with_columns(expressions)
    return plan.collect()


class Evaluator:
    """A book made ready to compute any number of rows."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.entities = {name: entity_frame(book, table) for name, table in book.tables.items()}
        self.inputs = [item for item in book.fields.values() if item.role == "input"]
        self.lookups = [item for item in book.fields.values() if item.role == "lookup"]
        self.calcs = [item for item in book.fields.values() if item.role == "calc"]

    def prepare(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The given inputs under the names of the book's input columns, in its types."""
        columns = []
        for item in self.inputs:
            source = item.name.removesuffix("_given") if item.name not in rows.columns else item.name
            kind = TYPES[item.facts.type]
            column = pl.col(source) if source in rows.columns else pl.lit(None)
            columns.append(column.cast(kind).alias(item.name))
        return rows.select(columns)

    def slices(self, rows: pl.DataFrame, size: int = SLICE) -> Iterator[pl.DataFrame]:
        """The computed rows, slice by slice."""
        prepared = self.prepare(rows)
        for start in range(0, max(prepared.height, 1), size):
            yield self.one(prepared.slice(start, size))

    def run(self, rows: pl.DataFrame, progress: Progress | None = None) -> pl.DataFrame:
        """Every column of the book for these rows, in the rows' order."""
        parts = []
        done = 0
        for part in self.slices(rows):
            parts.append(part)
            done += part.height
            if progress:
                progress(done, rows.height)
        return pl.concat(parts, rechunk=False)

    def one(self, frame: pl.DataFrame) -> pl.DataFrame:
        """One slice of prepared inputs, computed."""
        constants = self.book.constants
        keys = {item.lookup.key for item in self.lookups if item.lookup}
        early = [item for item in self.calcs if item.name in keys]  # the key itself may come from a default
        frame = compute(self.book, frame, [item for item in early if set(names(item.node)) <= {*frame.columns, *constants}])  # type: ignore[arg-type]
        while True:
            ready = [i for i in self.lookups if i.lookup and i.name not in frame.columns and i.lookup.key in frame.columns]
            if not ready:
                break
            frame = self.look_up(frame, ready)
            late = [i for i in early if i.name not in frame.columns and set(names(i.node)) <= {*frame.columns, *constants}]  # type: ignore[arg-type]
            frame = compute(self.book, frame, late)
        frame = compute(self.book, frame, [item for item in self.calcs if item.name not in frame.columns])
        return frame.select(list(self.book.fields))

    def look_up(self, frame: pl.DataFrame, fields: list[Field]) -> pl.DataFrame:
        codes: dict[tuple[str, str], str] = {}
        for item in fields:
            assert item.lookup is not None
            codes[item.lookup.table, item.lookup.key] = f"#{item.lookup.table}.{item.lookup.key}"
        coded = [
            pl.col(key).cast(pl.Enum(self.entities[table]["name"])).to_physical().alias(code)
            for (table, key), code in codes.items()
        ]
        values = []
        for item in fields:
            assert item.lookup is not None
            series = self.entities[item.lookup.table][item.lookup.field]
            code = codes[item.lookup.table, item.lookup.key]
            values.append(pl.lit(series).gather(pl.col(code)).alias(item.name))
        return frame.lazy().with_columns(coded).with_columns(values).drop(list(codes.values())).collect()
