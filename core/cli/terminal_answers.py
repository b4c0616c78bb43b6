"""How the answers of ``best``, ``sensitivity`` and ``compare`` look on a terminal."""

from __future__ import annotations

from rich.text import Text

from scenario.cli.terminal import cell, screen, table_of
from scenario.questions.best import Best
from scenario.questions.variants import Sensitivity
from scenario.result import Result

BAR = 24
COMPARED = ("rows_per_sequence", "tokens_per_round", "draft_ms", "verify_ms", "tpot_ms", "speedup", "usd_per_million_tokens", "best_gamma",
            "break_even_batch", "memory_gb", "status")  # fmt: skip


def print_best(found: Best) -> None:
    """The best row of each group, and below it what stops the next better one."""
    console = screen()
    wanted = f"{'lowest' if found.lowest else 'highest'} {found.metric}" + (f" where {' and '.join(found.limits)}" if found.limits else "")
    console.print(Text(f"{found.title}: {wanted}", style="bold"))
    right = [index for index, name in enumerate(found.shown) if found.fields[name].facts.type == "number"]
    rows = []
    for choice in found.choices:
        if choice.row is not None:
            rows.append([cell(found.fields[name], choice.row[name]) for name in found.shown])
        else:
            rows.append([cell(found.fields[name], choice.group.get(name)) for name in found.shown])
    table_of([f"{name} {found.fields[name].unit}".strip() for name in found.shown], rows, right)
    for choice in found.choices:
        of = ", ".join(str(value) for value in choice.group.values())
        head = f"{of}: " if of else ""
        if choice.row is None:
            why = f"; {_stopped(found, choice.stop)}" if choice.stop else ""
            console.print(Text(f"{head}none of {choice.rows:,} rows will do{why}"))
        elif choice.stop is None:
            console.print(Text(f"{head}no better row is stopped by a limit", style="dim"))
        else:
            console.print(Text(f"{head}next better: {_stopped(found, choice.stop)}"))


def _stopped(found: Best, stop: object) -> str:
    from scenario.questions.best import Stop

    assert isinstance(stop, Stop)
    value = stop.row[found.metric]
    at = f" at {cell(found.fields[found.metric], value)} {found.fields[found.metric].unit}" if value is not None else ""
    return f"{stop.row['id']}{at} is stopped by {'; '.join(stop.reasons)}"


def print_sensitivity(found: Sensitivity) -> None:
    """A tornado: a bar to the left of the middle where the metric falls, to the right where it rises."""
    console = screen()
    console.print(Text(f"{found.metric} of {found.row}: {found.base:,.5g} {found.unit}", style="bold"))
    ends = [abs(value - found.base) for swing in found.swings for value in (swing.at_low, swing.at_high) if value is not None]
    most = max(ends, default=0) or 1.0
    rows = []
    for swing in found.swings:
        values = [value - found.base for value in (swing.at_low, swing.at_high) if value is not None]
        left, right = -min([0.0, *values]), max([0.0, *values])
        bar = _bar(left / most).rjust(BAR) + "|" + _bar(right / most).ljust(BAR)
        texts = ["-" if value is None else f"{value:,.4g}" for value in (swing.base, swing.low, swing.high, swing.at_low, swing.at_high)]
        rows.append([swing.name, *texts, bar])
    table_of(["input", "value", "low", "high", f"{found.metric} at low", "at high", "below | above"], rows, range(1, 6))
    if found.still:
        console.print(Text("without effect here: " + ", ".join(found.still), style="dim"))


def _bar(share: float) -> str:
    return "#" * round(share * BAR)


def print_compare(result: Result, row: str) -> None:
    """Methods as rows, the fastest first; those that cannot run last."""
    fields = {item.name: item for item in result.book.public}
    frame = result.frame.sort("tpot_ms", nulls_last=True, maintain_order=True)
    shown = ["method", *(name for name in COMPARED if name in frame.columns)]
    screen().print(Text(f"{row}: methods side by side", style="bold"))
    rows = [[cell(fields[name], value) for name, value in zip(shown, line, strict=True)] for line in frame.select(shown).iter_rows()]
    table_of([f"{name} {fields[name].unit}".strip() for name in shown], rows, range(1, len(shown) - 1))
