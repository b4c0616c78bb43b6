"""A difference of two tables on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scenario.cli.terminal import screen
from scenario.questions import diff_report as report
from scenario.questions.diff import Diff


def print_diff(found: Diff, own: Iterable[str]) -> None:
    """What changed, what came and went, and the outputs that people ask for first; ``own`` are the table's columns."""
    console = screen()
    console.print(Text(report.headline(found), style="bold"))
    if found.changes:
        rows = [(label, report.exact(old), report.exact(new), "" if rows is None else f"{rows:,}")
                for label, old, new, rows in report.input_rows(found)]  # fmt: skip
        _table(console, ("input", "old", "new", "rows"), rows[: report.LISTED], (1, 2, 3))
        _more(console, len(rows))
    for title, listed in (("appeared", found.appeared), ("gone", found.gone)):
        if listed:
            _table(console, (f"row {title}", "what it is"), report.row_rows(listed[: report.LISTED]))
            _more(console, len(listed))
    wanted = {*report.HEADLINES, *own}
    shown = [movement for movement in found.movements if movement.column in wanted] or found.movements[:10]
    numbers = [movement for movement in shown if movement.numbers]
    if numbers:
        heads = ("output", "rows", "old", "new", "change", "relative", "range")
        _table(console, heads, [report.output_row(m) for m in numbers], range(1, 6))
        console.print("moved by", style="bold")
        for movement in numbers:
            console.print(Text(f"  {movement.column}: {report.causes(movement)}"))
        console.print("means over the rows that moved, relative to each row's old value; each input changed alone", style="dim")
    turned = [movement for movement in shown if movement.turned]
    if turned:
        _table(console, ("output", "steps", "turned by"), [(m.column, report.turns(m), report.causes(m, turned=True)) for m in turned])
    if len(shown) < len(found.movements):
        others = report.count(len(found.movements) - len(shown), "other column")
        console.print(f"{others} moved too: --format markdown shows all", style="dim")
    if found.moved.height:
        values = [(str(a), b, report.show(c), report.show(d), report.signed(e), report.percent(f), g)
                for a, b, c, d, e, f, g in report.by_row(found) if b in {m.column for m in shown}]  # fmt: skip
        _table(console, ("id", "output", "old", "new", "change", "relative", "moved by"), values[: 5 * report.LISTED], range(2, 6))
        if len(values) > 5 * report.LISTED:
            console.print(f"... and {len(values) - 5 * report.LISTED:,} more: --format markdown shows all", style="dim")
    for note in found.notes:
        console.print(Text(note), style="dim")


def _more(console: Console, number: int) -> None:
    if number > report.LISTED:
        console.print(f"... and {number - report.LISTED:,} more", style="dim")


def _table(console: Console, heads: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> None:
    table = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for index, head in enumerate(heads):
        table.add_column(Text(head), justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*[Text(part) for part in row])
    console.print(table)
