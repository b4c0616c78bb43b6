"""The command ``export-sql``."""

from __future__ import annotations

from pathlib import Path

import click

from scenario.cli.options import PLUGINS, QUIET, emit, wrote
from scenario.common.errors import Problem, TableError

DIALECTS = ("duckdb", "spark", "bigquery", "snowflake")
"""What ``--dialect`` takes. DuckDB is computed and compared in the tests; the others are written by sqlglot and not run."""


@click.command("export-sql")
@click.argument("table")
@click.option("--dialect", type=click.Choice(DIALECTS), default="duckdb", show_default=True, help="Whose SQL to write.")
@click.option("--inputs", default="scenario_inputs", show_default=True, help="The table of inputs that the statement reads: id, model, gpu, ...")
@click.option("-o", "--output", default="-", help="The file to write (default: the terminal).")
@PLUGINS
@QUIET
def export_sql(table: str, dialect: str, inputs: str, output: str, plugins: tuple[str, ...], quiet: bool) -> None:
    """Write the columns of TABLE as one SQL statement over a table of inputs in a warehouse."""
    from scenario import api
    from scenario.common import files

    try:
        from scenario.engine import sql
    except ModuleNotFoundError:
        raise TableError(Problem("SQL is written with the library sqlglot, which is not installed", "pip install 'scenario-engine[sql]'")) from None
    book, _ = api.check(table, plugins)
    text = sql.statement(book, inputs, dialect, given=book.table.rows.columns) + ";\n"
    if output == "-":
        emit(text)
        return
    written = files.replace_text(Path(output), text)
    wrote(output, written, quiet, f": reads {', '.join(book.table.rows.columns)} of {inputs}")
