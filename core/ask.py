"""The questions of the command line from Python: the same answers, as plain objects.

    import scenario
    scenario.best("table.yaml", where="tpot_ms <= 20").choices
    print(scenario.explain("table.yaml", "speedup", row="b1_eagle"))

Every one takes a table as :func:`scenario.run` does (a path, a bundled name, a mapping) and raises
:class:`scenario.ScenarioError` with all problems of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from scenario import api
from scenario.questions import best as search
from scenario.questions import diff as differences
from scenario.questions import explain as explaining
from scenario.questions import explanation_text, variants
from scenario.registry import host as plugin_host
from scenario.registry.loaded import Host
from scenario.result import Result, Sensitivity

Source = str | Path | Mapping[str, Any]
"""A table: a path to YAML, CSV or a workbook, the name of a bundled table, or a mapping of the same keys."""
PRICE = "usd_per_million_tokens"


def best(table: Source, *, where: str = "", by: Sequence[str] = (), of: str = PRICE, plugins: Sequence[str] = ()) -> search.Best:
    """The cheapest row under limits (``where``), for each value of the inputs ``by``, and what stops the next cheaper one.

    ``of`` is the column that is to be lowest, ``-column`` highest.
    """
    read, host = _read(table, plugins)
    return search.best(read, host, where, by, of)


def compare(table: Source, *, row: str | None = None, methods: Sequence[str] = (), plugins: Sequence[str] = ()) -> Result:
    """Decoding methods side by side on one row (the first unless said), the fastest first; all single ones unless named."""
    read, host = _read(table, plugins)
    return variants.compare(read, host, variants.find_row(read, row), list(methods) or list(host.methods))


def sensitivity(
    table: Source, *, row: str | None = None, of: str = PRICE, by: float = 0.1, ranges: Mapping[str, tuple[float, float]] | None = None,
    plugins: Sequence[str] = (),
) -> Sensitivity:  # fmt: skip
    """Which input of a row moves a column most, one at a time: each by the share ``by``, or between the ends in ``ranges``."""
    read, host = _read(table, plugins)
    return variants.sensitivity(read, host, variants.find_row(read, row), of, by, dict(ranges or {}))[1]


def explain(table: Source, column: str | None = None, *, row: str | None = None, depth: int = 1, plugins: Sequence[str] = ()) -> str:
    """Where a number comes from, as text: its formula, the same with the numbers put in, the value, the source, and so on down."""
    book, _ = api.check(table, plugins)
    return explanation_text.as_text(*explaining.explain(book, row, column, depth))


def diff(old: Source, new: Source, *, by_row: bool = False, plugins: Sequence[str] = ()) -> differences.Diff:
    """What changed between two tables, what moved with it, and which change moved it."""
    host = plugin_host.load(plugins)
    return differences.compare(api.load_table(old, host), api.load_table(new, host), host, by_row=by_row)


def models() -> pl.DataFrame:
    """The built-in models: name, title, and what of their architecture is stored."""
    return _catalog("models")


def gpus() -> pl.DataFrame:
    """The built-in GPUs: memory (GB), bandwidth (TB/s), dense rates (TFLOP/s), price ($/GPU-hour)."""
    return _catalog("gpus")


def methods(plugins: Sequence[str] = ()) -> pl.DataFrame:
    """The decoding methods: name, title, what they do, source."""
    found = plugin_host.load(plugins).methods.values()
    return pl.DataFrame([{"name": m.name, "title": m.title or m.name, "doc": m.doc, "source": m.source} for m in found])


def _catalog(name: str) -> pl.DataFrame:
    """A catalog table with its computed columns, as every table has it."""
    row = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "method": "vanilla", "batch": 1, "context": 0}
    result = api.run({"version": 1, "rows": [row]})
    table = result.book.tables[name]
    titles = pl.Series("title", [str(entry.get("title") or entry["name"]) for entry in table.rows])
    return result.entities[name].select("name", titles, pl.exclude("name"))


def _read(table: Source, plugins: Sequence[str]) -> tuple[Any, Host]:
    host = plugin_host.load(plugins)
    return api.load_table(table, host), host
