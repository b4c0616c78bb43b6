"""The command ``diff``."""

from __future__ import annotations

from pathlib import Path

import click

from scenario.cli.options import PLUGINS, QUIET, emit, wrote
from scenario.common.errors import Problem, ScenarioError, TableError

ENDINGS = {".md": "markdown", ".json": "json", ".xlsx": "xlsx"}


@click.command()
@click.argument("old")
@click.argument("new")
@click.option("--format", "format_", type=click.Choice(["terminal", "markdown", "json"]), help="How it is shown; the last two show all.")
@click.option("-o", "--output", metavar="FILE", help="Write it to a file instead: .xlsx .md .json")
@click.option("--by-row", is_flag=True, help="Every value that moved, with what moved it.")
@PLUGINS
@QUIET
@click.pass_context
def diff(
    context: click.Context, old: str, new: str, format_: str | None, output: str | None, by_row: bool, plugins: tuple[str, ...], quiet: bool
) -> None:
    """Say what changed from OLD to NEW: inputs, rows, and which changed input moved which output.

    Exits with 0 when nothing differs, 1 when something does, 2 when a table cannot be read.
    """
    try:
        equal = _diff(old, new, format_, output, by_row, plugins, quiet)
    except ScenarioError as error:
        error.exit_code = 2
        raise
    context.exit(0 if equal else 1)


def _diff(old: str, new: str, format_: str | None, output: str | None, by_row: bool, plugins: tuple[str, ...], quiet: bool) -> bool:
    form = _form(output, format_)
    from scenario import api
    from scenario.common import files
    from scenario.questions import diff, diff_report
    from scenario.registry import host

    loaded = host.load(plugins)
    before, after = (api.load_table(name, loaded, overrides="keep") for name in (old, new))
    if output is not None:
        files.refuse(Path(output))
    found = diff.compare(before, after, loaded, by_row=by_row)
    for name, table in ((old, before), (new, after)):
        found.notes += [f"{name}: {note}" for note in table.notes]
    if form == "terminal":
        if not quiet:
            from scenario.cli import diff_terminal

            diff_terminal.print_diff(found, {*before.columns, *after.columns})
        return found.equal
    if output is None:
        emit(diff_report.markdown(found) if form == "markdown" else diff_report.to_json(found))
        return found.equal
    if form == "xlsx":
        from scenario.questions import diff_xlsx

        written = files.replace(Path(output), lambda stream: diff_xlsx.write(found, stream))
    else:
        text = diff_report.markdown(found) if form == "markdown" else diff_report.to_json(found)
        written = files.replace_text(Path(output), text)
    if not quiet:
        click.echo(diff_report.headline(found))
    wrote(output, written, quiet)
    return found.equal


def _form(output: str | None, format_: str | None) -> str:
    """The form of the report, checked before any work."""
    if output is None:
        return format_ or "terminal"
    ending = Path(output).suffix.lower()
    form = ENDINGS.get(ending, "") if format_ in (None, "terminal") else format_
    if not form:
        raise TableError(Problem(f"{output}: a difference is written as {', '.join(ENDINGS)}", "or give --format markdown or json"))
    return form or ""
