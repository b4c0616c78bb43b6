"""The summary of a table as text: what its Summary sheet shows, words included."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scenario.book.summary import SummaryView
from scenario.cli.terminal import rows_said, screen
from scenario.common.numbers import show_value
from scenario.engine.summary import SummaryValues
from scenario.result import Result


def print_summary(result: Result, view: SummaryView, written: bool) -> None:
    """Assumptions, metrics by scenarios, notes, and how the rows behind them are seen; ``written``: a file has them."""
    console, values = screen(), result.summary
    assert values is not None  # there is a view of it
    console.print(Text(result.book.table.title, style="bold"))
    scalars = result.book.scalars
    top = [f"{label} {show_value(scalars[name].value)}" for name, label in view.top]
    if top:
        console.print(Text("assumes: " + ", ".join(top), style="dim"))
    _print_lines(console, values, view)
    for note in (*(line.note for line in view.lines if line.note), *view.notes):
        console.print(Text(values.text(note), style="dim"))
    said = rows_said(result)
    if not written:
        said += "; the rows: -o - prints them, -o rows.csv and -o costs.xlsx write them"
    console.print(Text(said, style="dim"))


def _print_lines(console: Console, values: SummaryValues, view: SummaryView) -> None:
    """The metrics as a grid, in groups by headings; of a terminal too narrow the texts are broken between words."""
    grid = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    grid.add_column("")
    there = [index for index, (row, _) in enumerate(view.columns) if values.there(row)] or [0]
    for index in there:
        grid.add_column(Text(view.columns[index][1]))
    for line in (line for line in view.lines if not line.extra):
        title = values.text(line.title)
        if line.heading:
            grid.add_row(Text(title, style="bold"))
        else:
            grid.add_row(Text(title), *(Text(values.shown(line.cells[index])) for index in there))
    console.print(grid)
