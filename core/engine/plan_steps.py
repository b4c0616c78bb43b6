"""The steps of a plan as polars expressions, in groups that run side by side."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import polars as pl

from scenario.book.book import Lookup
from scenario.formulas import graph
from scenario.formulas.expr import Node, names
from scenario.formulas.to_polars import Whole, compile_polars, entry
from scenario.formulas.vectors import Vectors

TYPES = {"number": pl.Float64, "text": pl.String, "flag": pl.Boolean, "none": pl.Float64}

ZERO = "#zero"
"""A column of zeros, which makes a column of what polars would take for one value."""

Grain = frozenset[str]
"""The catalog keys that a value depends on; see :mod:`scenario.engine.plan`."""


class Code:
    """The number of a key's entry; a blank key has one past the last."""

    def __init__(self, key: str, known: pl.Series) -> None:
        self.reads, self.known = [key], known

    def expression(self) -> pl.Expr:
        return pl.col(self.reads[0]).cast(pl.Enum(self.known)).to_physical().cast(pl.UInt32).fill_null(len(self.known))


class Combined:
    """The row of a table of combinations."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.reads, self.sizes = [f"#{key}" for key in sizes], list(sizes.values())

    def expression(self) -> pl.Expr:
        result = pl.col(self.reads[0])
        for name, size in zip(self.reads[1:], self.sizes[1:], strict=True):
            result = result * pl.lit(size, dtype=pl.UInt32) + pl.col(name)
        return result


class Stored:
    """A column read from a table of combinations."""

    def __init__(self, values: pl.Series, code: str) -> None:
        self.values, self.reads = values, [code]

    def expression(self) -> pl.Expr:
        return entry(self.values, pl.col(self.reads[0]))


Step = Node | Lookup | Code | Combined | Stored
"""What gives a column: a formula, or one of the ways to read a table."""


def code(grain: Grain) -> str:
    """The column that holds the row of a grain's table."""
    return "#" + ".".join(sorted(grain))


def reads(step: Step) -> list[str]:
    """The columns that a step of the work reads."""
    if isinstance(step, Lookup):
        return [step.key]
    return names(step) if isinstance(step, Node) else step.reads


def with_zeros(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with its column of zeros; one row is there twice."""
    if frame.height == 1:
        frame = pl.DataFrame([pl.Series(s.name, s.to_list() * 2, s.dtype) for s in frame.get_columns()])
    return frame.with_columns(pl.Series(ZERO, [0.0]).new_from_index(0, frame.height))


def apply(plan: pl.LazyFrame, groups: Iterable[list[pl.Expr]]) -> pl.LazyFrame:
    """The frame with the columns of every group. A frame of one row, which is values rather than columns, is not for this."""
    for expressions in groups:
        plan = plan.with_columns(expressions)
    return plan


def stages(
    work: Mapping[str, tuple[Step, str]], entities: Mapping[str, pl.DataFrame], vectors: Vectors, given: Collection[str] = ()
) -> list[list[pl.Expr]]:
    """The work as expressions, each group independent of the later ones. ``given`` are the columns that are there before it."""
    sure = {*given, *(name for name, (step, _) in work.items() if not isinstance(step, Node))}
    whole = Whole(ZERO, sure)
    needs = {name: reads(step) for name, (step, _) in work.items()}
    result = []
    for level in graph.levels(graph.order(needs), needs):
        expressions = []
        for name in level:
            step, kind = work[name]
            if isinstance(step, Lookup):
                table = entities[step.table]
                known = Code(step.key, table["name"])
                expression = entry(table[step.field].extend_constant(None, 1), known.expression())
            elif isinstance(step, Node):
                expression = compile_polars(step, vectors, whole=whole).cast(TYPES[kind])
                sure |= {name} if whole.sure(step) else set()
            else:
                expression = step.expression()
            expressions.append(expression.alias(name))
        result.append(expressions)
    return result
