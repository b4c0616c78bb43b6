"""What ``scenario run`` and ``scenario check`` do."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from scenario import api, output, result
from scenario.cli.options import tell, tell_failures, tell_notes, wrote
from scenario.common import files, memory
from scenario.common.errors import OutputError, Problem, TableError
from scenario.model.spec import Exporter
from scenario.registry import host
from scenario.registry.loaded import Host
from scenario.result import Result
from scenario.tables.table import MAX_ROWS, Table
from scenario.workbooks import check as workbook_check


def run(table: str, target: str | None, format: str | None, max_rows: int | None, keep: bool, plugins: tuple[str, ...], quiet: bool) -> None:
    """Read, compute, write, print. What can be refused is refused before anything is computed."""
    refuse_format(table)
    loaded = host.load(plugins)
    exporter = _exporter(loaded, target, format)
    book, loaded = api.check(table, max_rows=max_rows or MAX_ROWS, host=loaded, overrides="keep" if keep else "refuse")
    if target and target != "-":
        files.refuse(Path(target))
    if exporter is not None and book.where is None:
        output.check_size(exporter, book.table.rows.height)
    memory.require(book.table.rows.height * len(book.fields) * 8.0)  # the frame alone, 8 bytes a cell
    tell_failures(loaded, quiet)
    tell_notes(book.table, quiet)
    with Progress(quiet) as progress:
        computed = result.evaluate(book, loaded, progress)
        if target == "-" and exporter is not None:
            _to_stdout(exporter, computed)
            _tell_lost(book.table, computed, quiet)
            return
        written = output.write(Path(target), exporter, computed) if target and exporter else None
    if not quiet:
        from scenario.cli import terminal

        _tell_lost(book.table, computed, quiet)
        if computed.book.summary is not None and computed.full.height:
            from scenario.cli.terminal_summary import print_summary

            print_summary(computed, computed.book.summary, written is not None)
        else:
            terminal.print_result(computed)
    if written is not None and target:
        wrote(target, written, quiet)


def _exporter(loaded: Host, target: str | None, format: str | None) -> Exporter | None:
    if not target:
        if format:
            raise click.UsageError("--format needs -o FILE (or -o -)")
        return None
    if target != "-":
        exporter = output.exporter_for(loaded, target, format)
        parent = Path(target).parent
        if not parent.is_dir():
            raise OutputError(Problem(f"cannot be written: the folder {parent} does not exist", file=target))
        return exporter
    exporter = output.exporter_for(loaded, "-", format or "csv")
    if not exporter.text and sys.stdout.isatty():
        raise TableError(Problem(f"format '{exporter.name}' is not text, and stdout is a terminal", "name a file: -o FILE"))
    return exporter


def _to_stdout(exporter: Exporter, computed: Result) -> None:
    output.check_size(exporter, computed.full.height)
    output.fill(exporter, computed, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def check(table: str, plugins: tuple[str, ...], quiet: bool) -> None:
    """Read and check; a workbook is recomputed, and differences end with exit code 1."""
    refuse_format(table)
    if table.lower().endswith((".xlsx", ".xlsm")):
        _check_workbook(table, plugins, quiet)
        return
    book, loaded = api.check(table, plugins)
    tell_failures(loaded, quiet)
    tell_notes(book.table, quiet)
    if not quiet:
        rows = book.table.rows.height
        click.echo(f"{table}: good: {rows:,} row{'s' if rows != 1 else ''}, {len(book.public)} columns")


def refuse_format(table: str) -> None:
    """Refuse by its ending a file that no reader takes."""
    if table.lower().endswith((".xls", ".ods", ".parquet")):
        raise TableError(Problem("a table is a YAML file, a CSV file or an .xlsx workbook", "save it as .xlsx", file=table))


def _check_workbook(table: str, plugins: tuple[str, ...], quiet: bool) -> None:
    loaded = host.load(plugins)
    tell_failures(loaded, quiet)
    found = workbook_check.check(table, loaded)
    if not quiet:
        from scenario.cli import terminal

        for note in found.notes:
            tell(f"{table}: {note}")
        terminal.print_check(table, found)
    if not found.good:
        click.get_current_context().exit(1)


def _tell_lost(table: Table, computed: Result, quiet: bool) -> None:
    """What the new file could not hold of what an analyst had added to the old one."""
    for note in () if quiet else computed.lost:
        tell(f"{table.file}: {note}")


class Progress:
    """A bar on stderr, once work has taken a second and only for a person at a terminal."""

    def __init__(self, quiet: bool) -> None:
        self.wanted = not quiet and sys.stderr.isatty()
        self.start = time.monotonic()
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> Callable[[int, int], None] | None:
        return self.update if self.wanted else None

    def update(self, done: int, total: int) -> None:
        if self.bar is None and time.monotonic() - self.start > 1 and done < total:
            from rich.console import Console
            from rich.progress import Progress as Bar

            self.bar = Bar(console=Console(stderr=True), transient=True)
            self.bar.start()
            self.task = self.bar.add_task("computing", total=total)
        if self.bar is not None:
            self.bar.update(self.task, completed=done)

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()
