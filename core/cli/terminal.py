"""What people see on a terminal: results and checks. No id and no number is ever broken over lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

import polars as pl
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from scenario.book.book import Field
from scenario.common.numbers import show_in_column, show_value
from scenario.common.texts import for_terminal
from scenario.formulas.expr import UNLIMITED
from scenario.result import Result
from scenario.workbooks.check import Checked, shown_as

MAX_SHOWN = 40
FIRST = ("model", "gpu", "batch", "context", "method")
METRICS = ("tpot_ms", "ttft_ms", "tokens_per_s", "speedup", "verdict", "usd_per_million_tokens", "usd_low", "usd_high", "memory_gb", "bound",
           "max_batch", "status")  # fmt: skip
IMPORTANT = ("tpot_ms", "tokens_per_s", "speedup", "usd_per_million_tokens", "status")
LABELS = {"tpot_ms": "TPOT", "ttft_ms": "TTFT", "usd_low": "low", "usd_high": "high",
          "tokens_per_s": "tokens/s", "usd_per_million_tokens": "$/1M tokens", "memory_gb": "memory",
          "max_batch": "max batch"}  # fmt: skip
"""Headers of the metrics; every other column is headed by its name."""
WIDE = 10_000
BOUND = "a bound: no server is faster, real ones are slower"


class Screen(Console):
    """A console that obeys nothing in what it prints, and leaves it to the command line what a reader who has gone means."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=for_terminal(segment.text))

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def screen() -> Console:
    """A terminal of its width; anything else is never cut or coloured."""
    console = Screen(highlight=False, markup=False, emoji=False)
    return console if console.is_terminal else Screen(highlight=False, markup=False, emoji=False, width=WIDE, color_system=None)


def print_result(result: Result) -> None:
    """The rows by what varies in them, with the numbers people ask for first."""
    console, frame, table = screen(), result.frame, result.book.table
    fields = {item.name: item for item in result.book.public}
    all_well = frame.height > 0 and bool((frame["status"] == "ok").all())
    varying, constant = _what_varies(result)
    own = [name for name in table.columns if name in frame.columns]
    leading = [name for name in FIRST if name in varying] + [name for name in varying if name not in FIRST]
    metrics = [name for name in METRICS if name in frame.columns and name not in varying and not (all_well and name == "status")]
    shown = [*(leading or ["model", "method"]), *metrics, *own]
    console.print(Text(table.title, style="bold"))
    if constant:
        parts = [f"{name} {cell(fields[name], frame[name][0])}" for name in [*FIRST, *constant] if name in constant]
        console.print(Text("all rows: " + ", ".join(dict.fromkeys(parts)), style="dim"))
    left_out = _print_rows(console, frame, {name: fields[name] for name in shown}, [*leading, *IMPORTANT, *own, *shown])
    if left_out:
        console.print(Text("not shown for want of width: " + ", ".join(left_out), style="dim"))
    console.print(Text("; ".join(_foot(result, all_well, left_out)), style="dim"))


def rows_said(result: Result) -> str:
    """How many rows there are, and what their times rest on."""
    frame = result.frame
    well = "status" in frame.columns and frame.height > 0 and bool((frame["status"] == "ok").all())
    return "; ".join(_foot(result, well, ["status"]))


def _what_varies(result: Result) -> tuple[list[str], list[str]]:
    """The inputs that were typed and differ between rows, and those that are one for all."""
    frame, table = result.frame, result.book.table
    given, typed = _inputs(result), {*table.rows.columns, *table.defaults}
    inputs = [name for name in frame.columns if name in given and name in typed]
    varying = [name for name in inputs if frame[name].n_unique() > 1]
    return varying, [name for name in inputs if name not in varying and frame.height and frame[name][0] is not None]


def _print_rows(console: Console, frame: pl.DataFrame, shown: dict[str, Field], rank: Sequence[str]) -> list[str]:
    """The first rows as a grid; returns the columns that have no room."""
    some = frame.head(MAX_SHOWN)
    heads = {name: _head(item) for name, item in shown.items()}
    cells = {name: [cell(item, value) for value in some[name]] for name, item in shown.items()}
    right = {name for name, item in shown.items() if item.facts.type == "number"}
    faint = [not bool(value) for value in some["fits"]] if "fits" in some.columns else None
    left_out = _grid(console, heads, cells, right, sorted(shown, key=list(rank).index), faint)
    if frame.height > MAX_SHOWN:
        console.print(f"... and {frame.height - MAX_SHOWN:,} more rows (all are in the file: -o FILE)")
    return left_out


def _foot(result: Result, all_well: bool, left_out: Sequence[str]) -> list[str]:
    """How many rows there are, how they are, and what their times rest on."""
    frame = result.frame
    notes = [f"{frame.height:,} row{'s' if frame.height != 1 else ''}", *(["all fit"] if all_well else []), _basis(result)]
    if "status" in left_out:  # a dash needs its reason
        for status, count in frame.filter(pl.col("status") != "ok")["status"].value_counts(sort=True).iter_rows():
            notes.insert(1, f"{count:,} of them: {status}")
    notes += _placement(result)
    if result.left_out:
        notes.append(f"where: left out {result.left_out:,}")
    return notes


def _placement(result: Result) -> list[str]:
    """What is said of rows whose GPUs are pooled ideally."""
    if "placement" not in result.frame.columns:
        return []
    placed = result.frame["placement"].drop_nulls()
    pooled = placed.filter(placed.str.starts_with("pooled"))
    if pooled.is_empty():
        return []
    rows = "all rows" if pooled.len() == result.frame.height else f"{pooled.len():,} rows" if pooled.len() > 1 else "1 row"
    said = [f"GPUs are pooled ideally in {rows} (tp: n places them)"]
    for words in ("does not fit", "fewer sequences fit"):
        count = int(pooled.str.contains(words, literal=True).sum())
        if count:
            said.append(f"{count:,} of them: as tp {'it does not fit' if words == 'does not fit' else words}")
    return said


def _basis(result: Result) -> str:
    """What the times of the rows rest on, and how far off they may be."""
    frame, model = result.frame, result.book.table.time_model
    if "basis" not in frame.columns or not frame.height:
        return f"times are {BOUND}" if model == "bound" else f"times are by the model '{model}'"
    said = [*_measured(frame.filter(pl.col("time_error").is_not_null()))]
    others = frame.filter(pl.col("time_error").is_null())["basis"].drop_nulls().unique(maintain_order=True).to_list()
    said += [BASES.get(basis, f"by the model '{basis}'") for basis in others if basis != "no measurement"]
    missing = frame.filter(pl.col("basis") == "no measurement").height
    parts = [f"times are {'; '.join(said)}"] if said else []
    if missing:
        parts.append(f"no times in {missing:,} of them: nothing was measured" if said else "no times: nothing was measured")
    return "; ".join(parts) or f"times are by the model '{model}'"


BASES = {"bound": BOUND, "extrapolated": "extrapolated: nothing says how far off"}


def _measured(known: pl.DataFrame) -> Iterable[str]:
    """The bases of rows whose error is known, and how far it reaches."""
    if known.height:
        bases, errors = known["basis"].drop_nulls().unique(maintain_order=True).to_list(), known["time_error"].to_list()
        reach = f"{min(errors):.0%}" if min(errors) == max(errors) else f"{min(errors):.0%} to {max(errors):.0%}"
        yield f"{', '.join(bases)}: nine of ten measurements lie within {reach}"


def _head(item: Field) -> tuple[str, str]:
    label = LABELS.get(item.name, item.name)
    return label, "" if item.unit in label or item.name in FIRST else item.unit


def _grid(console: Console, heads: dict[str, tuple[str, str]], cells: dict[str, list[str]], right: set[str], rank: Sequence[str],
          faint: Sequence[bool] | None = None) -> list[str]:  # fmt: skip
    """Print the columns that fit, the first of ``rank`` before the others; returns the names of those that do not."""
    kept = _that_fit(console.width - 2, heads, cells, rank)
    grid = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    two = any(unit for name, (_, unit) in heads.items() if name in kept)
    for name, (label, unit) in heads.items():
        if name in kept:
            side: Literal["left", "right"] = "right" if name in right else "left"
            grid.add_column(Text(f"{label}\n{unit}" if two else label), justify=side, no_wrap=True, overflow="ellipsis")
    for index, row in enumerate(zip(*(cells[name] for name in heads if name in kept), strict=True)):
        grid.add_row(*[Text(part) for part in row], style="dim" if faint and faint[index] else None)
    console.print(grid)
    return [name for name in heads if name not in kept]


def _that_fit(room: int, heads: dict[str, tuple[str, str]], cells: dict[str, list[str]], rank: Sequence[str]) -> set[str]:
    kept: set[str] = set()
    for name in rank:
        width = max(cell_len(text) for text in (*heads[name], *cells[name])) + 2
        if width <= room or not kept:
            kept.add(name)
            room -= width
    return kept


def _inputs(result: Result) -> set[str]:
    given = {item.name.removesuffix("_given") for item in result.book.fields.values() if item.role == "input"}
    return given - {"id"}


def cell(item: Field, value: object) -> str:
    """One value for a terminal: few digits, blank as a dash."""
    if not isinstance(value, float) or (item.limit and value >= UNLIMITED):
        return show_value(value, unlimited=UNLIMITED if item.limit else None)
    return f"{value:.1%}" if item.unit == "%" else show_in_column(value)


def print_check(file: str, found: Checked) -> None:
    """What a workbook shows otherwise than the engine computes, by cell and cause."""
    console = screen()
    if found.good:
        said = f"good: {found.cells:,} cells of {found.rows:,} rows show what the engine computes"
        console.print(f"{file}: {said}, on {found.sheets} sheets")
        return
    if not found.cells:
        console.print(f"{file}: nothing was compared: no formula holds a value")
    shown = found.differences[:MAX_SHOWN]
    rows = [(d.place, d.column, shown_as(d.shows), shown_as(d.engine), d.cause) for d in shown]
    if rows:
        table_of(("cell", "column", "shows", "engine", "cause"), rows, right=(2, 3))
    if len(found.differences) > MAX_SHOWN:
        console.print(f"and {len(found.differences) - MAX_SHOWN:,} more")
    causes = Counter(d.cause for d in found.differences)
    if found.differences:
        console.print(f"{file}: {len(found.differences):,} cells differ; {found.cells:,} were compared, on {found.sheets} sheets")
    for cause, count in causes.most_common(5):
        console.print(f"  {count:,}: {cause}")


def table_of(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> None:
    """A list in columns; the last ones are left out where a terminal is too narrow for them."""
    console, listed = screen(), [[str(part) for part in row] for row in rows]
    cells = {head: [row[index] for row in listed] for index, head in enumerate(heads)}
    left_out = _grid(console, {head: (head, "") for head in heads}, cells, {heads[index] for index in right}, heads)
    if left_out:
        console.print(Text("not shown for want of width: " + ", ".join(left_out), style="dim"))
