"""The command ``export-table``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from scenario.cli.options import PLUGINS, QUIET, emit, fill


@click.command()
@click.argument("table")
@click.option("-o", "--output", metavar="FILE", default="-", help="Where to write; without it, or as -, the table is printed.")
@PLUGINS
@QUIET
def export_table(table: str, output: str, plugins: tuple[str, ...], quiet: bool) -> None:
    """Write TABLE as YAML, as a person would: grids where the rows are one, sources as comments."""
    from scenario import api
    from scenario import output as files
    from scenario.common.errors import Problem, TableError
    from scenario.registry import host
    from scenario.tables import export_table

    loaded = host.load(plugins)
    located = api.locate(table)
    if output != "-" and os.path.exists(output) and os.path.exists(str(located)) and os.path.samefile(str(located), output):
        raise TableError(Problem("the output would replace the table itself", "choose another name"))
    read = api.load_table(table, loaded, overrides="keep")
    if not quiet:
        for note in read.notes:
            click.echo(f"{table}: {note}", err=True)
    text = export_table.to_yaml(read, loaded)
    if output == "-":
        emit(text)
        return
    written = files.replace(Path(output), fill(text))
    if not quiet:
        click.echo(f"wrote {written}: {read.rows.height:,} row{'s' if read.rows.height != 1 else ''}", err=True)
