"""The command ``export-table``."""

from __future__ import annotations

from pathlib import Path

import click

from scenario.cli.options import PLUGINS, QUIET, emit, tell, wrote


@click.command()
@click.argument("table")
@click.option("-o", "--output", metavar="FILE", default="-", help="Where to write; without it, or as -, the table is printed.")
@PLUGINS
@QUIET
def export_table(table: str, output: str, plugins: tuple[str, ...], quiet: bool) -> None:
    """Write TABLE as YAML, as a person would: grids where the rows are one, sources as comments."""
    from scenario import api
    from scenario.common import files
    from scenario.registry import host
    from scenario.tables import export_table

    loaded = host.load(plugins)
    read = api.check(table, host=loaded, overrides="keep")[0].table
    if output != "-":
        files.refuse(Path(output))
    for note in () if quiet else read.notes:
        tell(f"{table}: {note}")
    text = export_table.to_yaml(read, loaded)
    if output == "-":
        emit(text)
        return
    written = files.replace_text(Path(output), text)
    wrote(output, written, quiet, f": {read.rows.height:,} row{'s' if read.rows.height != 1 else ''}")
