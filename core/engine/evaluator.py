"""Computes a book with polars, as :mod:`scenario.engine.plan` lays out for the frame at hand.

There is no loop over rows. Large frames go through in slices, so that the memory for columns in between
stays bounded, and so that a sweep can be written to a file without ever being held as a whole.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence

import polars as pl
from polars.io.plugins import register_io_source

from scenario.book.book import Book, EntityTable, Field
from scenario.common.errors import Problem, TableError
from scenario.engine.plan import Known, Plan
from scenario.engine.plan_steps import TYPES, ZERO, with_zeros
from scenario.formulas import graph
from scenario.formulas.expr import Node, names
from scenario.formulas.to_polars import Whole, compile_polars

SLICE = 1_000_000

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
            expression = compile_polars(item.node, book.vectors, book.constants)
            expressions.append(expression.cast(TYPES[item.facts.type]).alias(name))
        plan = plan.with_columns(expressions)
    return plan.collect()


def cut(frame: pl.DataFrame, size: int) -> Iterator[pl.DataFrame]:
    """The frame in slices, at least one."""
    return (frame.slice(start, size) for start in range(0, max(frame.height, 1), size))


class Evaluator:
    """A book made ready to compute any number of rows."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.entities = {name: entity_frame(book, table) for name, table in book.tables.items()}
        self.inputs = [item for item in book.fields.values() if item.role == "input"]
        self.plan = functools.lru_cache(maxsize=4)(functools.partial(Plan, book, self.entities))

    def __reduce__(self) -> tuple[type[Evaluator], tuple[Book]]:
        """Another process makes it anew: plans hold expressions, and are not worth their way."""
        return type(self), (self.book,)

    def prepare(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The given inputs under the names of the book's input columns, in its types.

        Raises :class:`TableError` where one is blank that has no default: formulas rely on its being there.
        """
        columns = []
        for item in self.inputs:
            source = item.name.removesuffix("_given") if item.name not in rows.columns else item.name
            kind = TYPES[item.facts.type]
            column = pl.col(source) if source in rows.columns else pl.lit(None)
            columns.append(column.cast(kind).alias(item.name))
        prepared = rows.select(columns)
        for name in (item.name for item in self.inputs if not item.facts.blank and item.name != "id"):
            if count := prepared[name].null_count():
                first = prepared[name].is_null().arg_max()
                where = f"row {first}" if count == 1 else f"{count:,} rows, the first of them row {first}"
                raise TableError(Problem(f"{name} is blank in {where} (the first row is 0), and has no default", "it is never guessed"))
        return prepared

    def arrange(self, rows: pl.DataFrame, columns: Sequence[str] | None) -> tuple[pl.DataFrame, Plan]:
        """The rows as the book wants them, and how to compute what is asked of them."""
        prepared = self.prepare(rows)
        return prepared, self.plan(Known.of(prepared), tuple(self.book.fields if columns is None else columns))

    def slices(self, rows: pl.DataFrame, columns: Sequence[str] | None = None, size: int = SLICE) -> Iterator[pl.DataFrame]:
        """The computed rows, slice by slice; ``columns`` are all of the book's unless named."""
        prepared, plan = self.arrange(rows, columns)
        for part in cut(prepared, size):
            yield plan.complete(plan.compute(part))

    def run(self, rows: pl.DataFrame, progress: Progress | None = None, columns: Sequence[str] | None = None) -> pl.DataFrame:
        """Every column of the book, or the named ones and what they need, for these rows in their order."""
        prepared, plan = self.arrange(rows, columns)
        parts = []
        done = 0
        for part in cut(prepared, SLICE):
            parts.append(plan.compute(part))
            done += part.height
            if progress:
                progress(done, rows.height)
        return plan.complete(pl.concat(parts, rechunk=False))

    def where(self, condition: Node, frame: pl.DataFrame) -> pl.DataFrame:
        """The computed rows for which a condition of the table holds."""
        test = compile_polars(condition, self.book.vectors, self.book.constants, Whole(ZERO))
        kept = with_zeros(frame).select(pl.col("id").is_not_null() & test.fill_null(False)).to_series()
        return frame.filter(kept.head(frame.height))

    def scan(self, rows: pl.DataFrame, columns: Sequence[str] | None = None, size: int = SLICE) -> pl.LazyFrame:
        """The same as a lazy frame that computes as it is read: ``scan(rows).sink_parquet(path)`` holds a few slices only."""
        chosen = list(self.book.fields) if columns is None else list(columns)
        schema = {name: TYPES[self.book.fields[name].facts.type] for name in chosen}

        def source(
            with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
        ) -> Iterator[pl.DataFrame]:
            for part in self.slices(rows.head(n_rows) if n_rows is not None else rows, with_columns or chosen, size):
                yield part if predicate is None else part.filter(predicate)

        return register_io_source(source, schema=schema)
