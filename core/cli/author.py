"""Commands for plugin authors and editors: ``new-plugin`` and ``schema``."""

from __future__ import annotations

import json
from pathlib import Path

import click

from scenario.cli.options import PLUGINS, emit


@click.command(name="new-plugin")
@click.argument("name")
@click.option("--dir", "directory", default=".", show_default=True, metavar="DIR", help="Where to make the folder scenario-NAME.")
def new_plugin(name: str, directory: str) -> None:
    """Start an installable plugin with a method NAME, a table and a passing test."""
    from scenario.registry import host
    from scenario.testing import scaffold

    folder = scaffold.write(name, Path(directory), host.load())
    module = next(folder.glob("scenario_*.py"))
    # Without a folder in front pip would look for a package of this name on its index.
    shown = folder if folder.is_absolute() or folder.parts[0] == ".." else f"./{folder}"
    emit(f"wrote {folder}\n"
         f"try it:   scenario run {folder / 'table.yaml'} -p {module}\n"
         f"then:     say in {module.name} how your method drafts, and install it: pip install {shown}\n"
         f"test it:  pip install '{shown}[test]', then python -m pytest {shown}\n")  # fmt: skip


@click.command()
@PLUGINS
def schema(plugins: tuple[str, ...]) -> None:
    """Print the JSON schema of tables, for editors that complete and check YAML."""
    from scenario.registry import host
    from scenario.tables.schema import table_schema

    emit(json.dumps(table_schema(host.load(plugins)), indent=2, ensure_ascii=False) + "\n")
