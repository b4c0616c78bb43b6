"""Which rows of two tables are the same scenario, and what their inputs are."""

from __future__ import annotations

from typing import Any

import polars as pl

from scenario.model import shared
from scenario.tables.table import Table, known_inputs


def match(old: Table, new: Table) -> pl.DataFrame:
    """Pairs of row numbers (``old``, ``new``): by id, else by all inputs, else by model, GPU, method, batch and context."""
    sides = _alike(_effective(old).with_row_index("old"), _effective(new).with_row_index("new"))
    names = [name for name in sides[0].columns if name not in ("id", "old")]
    pairs = []
    for keys, repeated in ((["id"], True), (names, True), ([name for name in shared.REQUIRED if name in names], False)):
        found = _pairs(sides, keys, repeated)
        pairs.append(found)
        sides = [side.join(found, on=name, how="anti") for side, name in zip(sides, ("old", "new"), strict=True)]
    return pl.concat(pairs).sort("old")


def _alike(old: pl.DataFrame, new: pl.DataFrame) -> list[pl.DataFrame]:
    """Both with the inputs of either, blank where one gives none."""
    kinds = {name: kind for side in (new, old) for name, kind in side.schema.items() if name not in ("old", "new")}
    return [side.with_columns(pl.lit(None, dtype=kind).alias(name) for name, kind in kinds.items() if name not in side.columns)
            for side in (old, new)]  # fmt: skip


def _pairs(sides: list[pl.DataFrame], keys: list[str], repeated: bool) -> pl.DataFrame:
    """Rows that agree in ``keys``, the first with the first; what is there more than once only if ``repeated``."""
    counted = [side.with_columns(pl.int_range(pl.len()).over(keys).alias("#")) for side in sides]
    if not repeated:
        counted = [side.filter(pl.len().over(keys) == 1) for side in counted]
    return counted[0].join(counted[1], on=[*keys, "#"], how="inner", nulls_equal=True).select("old", "new")


def _effective(table: Table) -> pl.DataFrame:
    """The rows with the table's and the engine's defaults filled in."""
    defaults = {name: parameter.default for name, parameter in known_inputs(None).items()} | table.defaults
    rows = table.rows
    for name, value in defaults.items():
        if value is None or name in shared.SCALARS:
            continue
        filled = pl.lit(value if isinstance(value, str) else float(value))
        rows = rows.with_columns((pl.col(name).fill_null(filled) if name in rows.columns else filled).alias(name))
    return rows


def told_rows(table: Table, numbers: set[int]) -> list[dict[str, Any]]:
    """Rows as mappings of what they give."""
    listed = table.rows[sorted(numbers)].iter_rows(named=True) if numbers else ()
    return [{name: value for name, value in row.items() if value is not None} for row in listed]


def one(values: pl.Series) -> Any:
    """The value, when it is the same in all rows, else how many there are."""
    found = values.unique()
    return found[0] if len(found) == 1 else f"{len(found):,} values"
