"""Reads a table section by section, noting every problem with its place before it gives up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from scenario.common import yamltree
from scenario.common.errors import TableError
from scenario.common.yamltree import YamlNode
from scenario.formulas.vectors import Vectors
from scenario.model import stacks
from scenario.registry.loaded import Host
from scenario.tables import read_summary
from scenario.tables.rows import Expander
from scenario.tables.sections import KEYS, SECTIONS
from scenario.tables.table import MAX_ROWS, Table, from_mapping, known_inputs
from scenario.tables.values import CORE, ValueReader


class FaultyTable(TableError):
    """The problems of a table, with what could be read of it: one row stands for all, so that its formulas can be checked too."""

    table: Table


def load(path: str | Path | Mapping[str, Any], host: Host, *, max_rows: int = MAX_ROWS) -> Table:
    """The table in a YAML file, or given as a mapping of the same keys.

    Raises :class:`TableError` (or :class:`FormulaError`) with everything that is wrong.
    """
    source, node = from_mapping(path) if isinstance(path, Mapping) else yamltree.read(path, stop=False)
    return Reader(source, node, host, max_rows).table()


class Reader(ValueReader):
    """Reads one table: every section in its turn."""

    keys = KEYS

    def table(self) -> Table:
        """The table, or :class:`TableError` with all its problems."""
        source, root = self.source, self.root
        if not isinstance(root.value, dict):
            source.say(root, f"a table is a mapping of {', '.join(KEYS[:6])} ..., not {root.kind}")
            source.stop()
        for name, node in root.value.items():
            if name not in KEYS:
                source.unknown(root.keys.get(name, node), name, "key", list(KEYS))
        for section in sorted(SECTIONS, key=lambda section: section.stage):
            self.parts |= section.read(self, root.value.get(section.key))
        vectors = Vectors(self.profiles, self.curves, self.trees)
        table = Table(file=source.file, sha256=source.sha256, source=source, vectors=vectors, stacks=self.stacks,
                      notes=tuple(self.notes), **self.parts)
        try:
            source.stop()
        except TableError as error:
            faulty = FaultyTable(error.problems)
            faulty.table = self.stand_in(table)
            raise faulty from None
        return table

    def given_rows(self, defaults: Mapping[str, float | str]) -> pl.DataFrame:
        listed, made = self.root.value.get("rows"), read_summary.of(self)
        if made is not None and (listed is None or listed.value is None or isinstance(listed.value, list)):
            own = listed.value or [] if listed is not None else []  # the summary's own rows stand behind the others
            listed = YamlNode([*own, *made.rows(self.root)], self.root.line, self.root.column, path=self.root.path)
        return Expander(self, defaults).frame(self.root.value.get("grid"), listed)

    def stand_in(self, table: Table) -> Table:
        """A faulty table with its broken columns, and one row of no inputs under every method in place of its own."""
        names = {"model": table.catalog.models, "gpu": table.catalog.gpus, "method": self.host.methods}
        row = {"id": ["x"], **{name: [next(iter(known), "")] for name, known in names.items()}}
        nothing = {name: [None] for name in known_inputs(self.host)}
        every = {stack.name: stack for stack in stacks.every(self.host.methods)}
        time_model = table.time_model or next(iter(self.host.time_models), "")
        return replace(table, rows=pl.DataFrame({**nothing, **row}), stacks=every, time_model=time_model,
                       columns={**table.columns, **self.broken})  # fmt: skip


def beyond_context(table: Table) -> Iterator[str]:
    """Tell of rows whose sequences are longer than their model was made for."""

    def given(name: str) -> pl.Expr:
        written = pl.col(name) if name in table.rows.columns else pl.lit(None)
        return written.fill_null(pl.lit(table.defaults.get(name))) if table.defaults.get(name) is not None else written

    limits = {name: entry.values.get("context_length") for name, entry in table.catalog.models.items()}
    lengths = (given("context"), given("isl") + given("osl"), given("prompt_tokens") + given("output_tokens"))
    found = table.rows.select(given("model").cast(pl.String).alias("model"), pl.max_horizontal(*[each.cast(pl.Float64) for each in lengths]).alias("tokens"))
    limit = pl.col("model").replace_strict(limits, default=None, return_dtype=pl.Float64)
    beyond = found.filter(pl.col("tokens") > limit).group_by("model", maintain_order=True).agg(pl.col("tokens").max(), pl.len().alias("rows"))
    for model, tokens, rows in beyond.iter_rows():
        of = f"{rows:,} row{'s' if rows > 1 else ''}"
        yield f"{model} was made for {limits[model]:,.0f} tokens; {of} ask{'s' if rows == 1 else ''} for up to {tokens:,.0f}"


__all__ = ["CORE", "FaultyTable", "Reader", "beyond_context", "load"]
