"""What rows give for parameters of one name and several owners: a column for each owner."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from scenario.common.errors import Problem, TableError
from scenario.registry.loaded import Host
from scenario.tables.table import Table

SHOWN = 5
"""Problems of one name that are told."""


def apart(table: Table, host: Host) -> Table:
    """``table`` with what its rows give for a private name under the names that its owners have here.

    Raises :class:`TableError` for rows of a stack in which the name has two owners.
    """
    owners: dict[str, dict[str, str]] = {}
    for method, names in (host.names or {}).items():
        for plain, own in names.items():
            if plain in table.rows.columns and own not in table.rows.columns:
                owners.setdefault(plain, {})[method] = own
    rows = table.rows
    problems: list[Problem] = []
    said = pl.col("method") if "method" in rows.columns else pl.lit(None, dtype=pl.String)
    parts = said.fill_null(str(table.defaults.get("method", ""))).str.split("+")
    for plain, found in owners.items():
        built_in = [name for name, other in host.methods.items() if plain in other.parameters]
        every = [*found, *built_in]
        many = pl.sum_horizontal([parts.list.contains(name).cast(pl.Int8) for name in every]) > 1
        unclear = rows.filter(many & pl.col(plain).is_not_null())["id"].to_list()
        hint = "write " + " or ".join([*found.values(), *([plain] if built_in else [])])
        problems += [Problem(f"'{plain}' is a parameter of {' and of '.join(every)}: row '{row}' stacks them", hint, file=table.file)
                     for row in unclear[:SHOWN]]  # fmt: skip
        split = [pl.when(parts.list.contains(name)).then(pl.col(plain)).alias(now) for name, now in found.items()]
        rest = pl.when(~pl.any_horizontal([parts.list.contains(name) for name in found])).then(pl.col(plain))
        rows = rows.with_columns(*split, rest.alias(plain))
        if not built_in:
            rows = rows.drop(plain)
    if problems:
        raise TableError(problems)
    return replace(table, rows=rows)
