"""The commands that answer a question rather than compute a table: best, sensitivity, compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from scenario.cli.options import PLUGINS, QUIET, wrote
from scenario.common.errors import FormulaError, Problem, TableError

PRICE = "usd_per_million_tokens"


def _read(path: str, plugins: tuple[str, ...]) -> tuple[Any, Any]:
    from scenario import api
    from scenario.registry import host

    loaded = host.load(plugins)
    return api.load_table(path, loaded), loaded


@click.command()
@click.argument("table")
@click.option("--where", metavar="CONDITION", default="", help='Limits, such as "tpot_ms <= 20 and batch >= 8".')
@click.option("--by", metavar="INPUT", multiple=True, help="The best for each value of this input; may be given again.")
@click.option("--of", "metric", metavar="COLUMN", default=PRICE, help="What is to be lowest; the price unless said. -COLUMN: highest.")
@PLUGINS
def best(table: str, where: str, by: tuple[str, ...], metric: str, plugins: tuple[str, ...]) -> None:
    """The cheapest row of TABLE under limits, and what stops the next cheaper one."""
    from scenario.cli import terminal_answers as terminal
    from scenario.questions import best as search

    read, host = _read(table, plugins)
    try:
        found = search.best(read, host, where, by, metric)
    except FormulaError as error:
        raise error.at(file="--where") if all(not problem.file for problem in error.problems) else error from None
    terminal.print_best(found)


@click.command()
@click.argument("table")
@click.option("--row", metavar="ID", help="The row to start from; the first unless said.")
@click.option("--of", "metric", metavar="COLUMN", default=PRICE, help="The column to watch; the price unless said.")
@click.option("--by", "share", metavar="SHARE", type=click.FloatRange(0, 1, min_open=True), default=0.1, show_default=True,
              help="How far every input goes down and up.")  # fmt: skip
@click.option("--range", "ranges", metavar="INPUT=LOW:HIGH", multiple=True, help="The ends of one input; may be given again.")
@click.option("-o", "--output", metavar="FILE", help="Also write the rows, in .xlsx with a live sheet and its chart.")
@PLUGINS
@QUIET
def sensitivity(
    table: str, row: str | None, metric: str, share: float, ranges: tuple[str, ...], output: str | None, plugins: tuple[str, ...],
    quiet: bool,
) -> None:
    """Which input of a row moves the price most: one at a time, the largest first."""
    from scenario.cli import terminal_answers as terminal
    from scenario.questions import variants

    read, host = _read(table, plugins)
    result, found = variants.sensitivity(read, host, variants.find_row(read, row), metric, share, dict(map(_range, ranges)))
    if not quiet:
        terminal.print_sensitivity(found)
    if output:
        _write(result, host, output)


@click.command()
@click.argument("table")
@click.option("--row", metavar="ID", help="The row to compare on; the first unless said.")
@click.option("--methods", metavar="A,B,...", default="", help="Methods and stacks to compare; all single methods unless said.")
@click.option("-o", "--output", metavar="FILE", help="Also write the rows.")
@PLUGINS
@QUIET
def compare(table: str, row: str | None, methods: str, output: str | None, plugins: tuple[str, ...], quiet: bool) -> None:
    """The decoding methods side by side on one row of TABLE, the fastest first."""
    from scenario.cli import terminal_answers as terminal
    from scenario.questions import variants

    read, host = _read(table, plugins)
    asked = [name.strip() for name in methods.split(",") if name.strip()] or list(host.methods)
    row = variants.find_row(read, row)
    result = variants.compare(read, host, row, asked)
    if not quiet:
        terminal.print_compare(result, row)
    if output:
        _write(result, host, output)


def _range(text: str) -> tuple[str, tuple[float, float]]:
    name, _, span = text.partition("=")
    low, _, high = span.partition(":")
    try:
        return name.strip(), (float(low), float(high))
    except ValueError:
        raise TableError(Problem(f"--range {text}: two numbers are needed", "such as --range alpha=0.6:0.9")) from None


def _write(result: Any, host: Any, output: str) -> None:
    from scenario import output as exporters

    wrote(output, exporters.write(Path(output), exporters.exporter_for(host, output, None), result), False)
