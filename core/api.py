"""The main job from Python: a table in, a :class:`~scenario.result.Result` out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scenario import result
from scenario.book.assemble import assemble
from scenario.book.book import Book
from scenario.common.errors import Problem, ScenarioError, TableError
from scenario.registry import host as plugin_host
from scenario.registry.loaded import Host
from scenario.tables import reader, table


def run(
    source: str | Path | Mapping[str, Any], plugins: Sequence[str] = (), *, max_rows: int = table.MAX_ROWS,
    progress: Callable[[int, int], None] | None = None, host: Host | None = None, overrides: str = "refuse",
) -> result.Result:  # fmt: skip
    """Compute a table: a path to YAML, CSV or a workbook, the name of a bundled table, or a mapping of the same keys.

    ``plugins`` are what ``-p`` takes: files, modules, ``no:name``. ``progress`` is called with rows done and
    rows in all. ``overrides`` says what becomes of values typed over a workbook's formulas: ``refuse``, ``keep`` or
    ``ignore``. Raises :class:`scenario.ScenarioError` with all problems of the table.
    """
    book, loaded = check(source, plugins, max_rows=max_rows, host=host, overrides=overrides)
    return result.evaluate(book, loaded, progress)


def check(
    source: str | Path | Mapping[str, Any], plugins: Sequence[str] = (), *, max_rows: int = table.MAX_ROWS, host: Host | None = None,
    overrides: str = "refuse",
) -> tuple[Book, Host]:  # fmt: skip
    """Read and check a table without computing it."""
    loaded = host or plugin_host.load(plugins)
    return assemble(load_table(source, loaded, max_rows=max_rows, overrides=overrides), loaded), loaded


def load_table(
    source: str | Path | Mapping[str, Any], host: Host, *, max_rows: int = table.MAX_ROWS, overrides: str = "refuse"
) -> table.Table:
    """The checked table in a YAML file, a CSV file or a workbook, by the name of a bundled table, or given as a mapping.

    ``overrides`` says what becomes of values typed over a workbook's formulas: ``refuse``, ``keep`` or ``ignore``.
    """
    try:
        return _load(locate(source), host, max_rows, overrides)
    except reader.FaultyTable as error:
        problems = [*error.problems, *_formula_problems(error.table, host)]
        raise TableError(sorted(problems, key=lambda problem: (problem.line, problem.column))) from None


def _load(found: str | Path | Mapping[str, Any], host: Host, max_rows: int, overrides: str) -> table.Table:
    ending = "" if isinstance(found, Mapping) else Path(found).suffix.lower()
    if isinstance(found, Mapping) or ending not in (".csv", ".xlsx", ".xlsm"):
        return _told(reader.load(found, host, max_rows=max_rows))
    if ending == ".csv":
        from scenario.tables import csv_table

        return _told(csv_table.load(found, host, max_rows=max_rows))
    from scenario.workbooks import read_back

    read, reading = read_back.load(found, host, max_rows=max_rows, overrides=overrides)
    return replace(read, notes=(*read.notes, *reading.notes))


def _told(read: table.Table) -> table.Table:
    """A table with what is told of its rows. (A workbook was told when it was made.)"""
    return replace(read, notes=(*read.notes, *reader.beyond_context(read)))


def _formula_problems(faulty: table.Table, host: Host) -> list[Problem]:
    """The faults in the formulas of a table that has others, as far as they can be told: a user wants to hear all at once."""
    asked = faulty.columns or faulty.where or faulty.sort or faulty.summary_node
    if not asked or faulty.time_model not in host.time_models or not host.methods:
        return []
    try:
        assemble(faulty, host)
    except ScenarioError as error:
        return [problem for problem in error.problems if problem.file == faulty.file]
    return []


def bundled() -> dict[str, Path]:
    """The tables that come with the package, by name."""
    from importlib import resources

    folder = Path(str(resources.files("scenario.scenarios")))
    catalogs = {"models", "gpus", "prices", "encoders", "hardware", "names"}
    return {path.stem: path for path in sorted(folder.glob("*.yaml")) if path.stem not in catalogs}


def locate(source: str | Path | Mapping[str, Any]) -> str | Path | Mapping[str, Any]:
    """A path that exists as it is, else the bundled table of that name."""
    if isinstance(source, Mapping):
        return source
    if not isinstance(source, str | os.PathLike):
        raise TableError(f"a table is a path, the name of a bundled table or a mapping, not {type(source).__name__}")
    try:
        there = os.path.lexists(source)
    except ValueError:  # a path with a NUL
        return source
    return source if there else bundled().get(str(source), source)
