"""The commands that show the model itself: ``explain`` and ``graph``."""

from __future__ import annotations

import click

from scenario.cli.options import PLUGINS, emit


@click.command()
@click.argument("table")
@click.argument("column", required=False)
@click.option("--row", metavar="ID", help="The row to explain; not needed when the table has one row.")
@click.option("--depth", type=click.IntRange(0), default=1, show_default=True, help="How many formulas deep to go; 0 is the column alone.")
@click.option("--format", "format_", type=click.Choice(["text", "markdown", "latex"]), default="text", show_default=True)
@PLUGINS
def explain(table: str, column: str | None, row: str | None, depth: int, format_: str, plugins: tuple[str, ...]) -> None:
    """Show where the numbers of a row come from: formula, numbers put in, value and source.

    COLUMN is any column of the table's rows; without it the main results are explained.
    """
    from scenario import api
    from scenario.questions import explain
    from scenario.questions import explanation_text as show_steps

    book, _ = api.check(table, plugins)
    name, steps = explain.explain(book, row, column, depth)
    emit(show_steps.FORMATS[format_](name, steps))


@click.command()
@click.argument("table")
@click.argument("column", required=False)
@click.option("--row", metavar="ID", help="Only what this row's formulas read, with its choice of method.")
@click.option("--format", "format_", type=click.Choice(["mermaid", "dot"]), default="mermaid", show_default=True)
@PLUGINS
def graph(table: str, column: str | None, row: str | None, format_: str, plugins: tuple[str, ...]) -> None:
    """Draw which column reads which, for the whole table or for COLUMN alone."""
    from scenario import api
    from scenario.questions import drawing

    book, _ = api.check(table, plugins)
    emit(drawing.FORMATS[format_](drawing.column_graph(book, column, row)))
