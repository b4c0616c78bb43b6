"""Native charts fed by live cells: pass time against rows, and speedup, price and the Pareto view by method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl
from openpyxl.chart import ScatterChart
from openpyxl.formatting.rule import FormulaRule
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter
from openpyxl.workbook import Workbook
from openpyxl.worksheet.datavalidation import DataValidation

from scenario import Result
from scenario.exporters.xlsx import drawn as _drawn
from scenario.exporters.xlsx import style as _style
from scenario.exporters.xlsx.cells import Sheet
from scenario.exporters.xlsx.layout import Layout, joined
from scenario.exporters.xlsx.passes import BF16, INT4, Passes, Value
from scenario.exporters.xlsx.summary import first_rows
from scenario.exporters.xlsx.tabled import widths
from scenario.workbooks.form import FIRST, KEY, TITLES
from scenario.workbooks.form import joined as as_key

ROWS = [2**power for power in range(13)]  # 1 to 4096 token rows
MAX_METHODS, MAX_BATCHES = 12, 40
SPARE = 6
"""Further batches that the charts have room for."""
NO_POINT = "#N/A"
"""What a chart feed shows where there is no point."""


@dataclass
class _Feed:
    """The sheet of chart data, and the choices on the Charts sheet that it follows."""

    sheet: Sheet
    chosen: dict[str, tuple[str, Any]]  # input -> (cell on Charts, value at first)
    row: int = 4


def charts(result: Result, layout: Layout, workbook: Workbook, frame: pl.DataFrame) -> list[Sheet]:
    """The Charts sheet and the sheet of cells that feed it."""
    page, data = Sheet(workbook.create_sheet("Charts")), Sheet(workbook.create_sheet("Chart data"))
    page.put(1, 1, "Charts", "scn.title")
    page.put(2, 1, "The blue cells choose what the charts show; everything below follows.", "scn.subtitle")
    data.put(1, 1, "Chart data", "scn.title")
    data.put(
        2,
        1,
        "What the charts draw. #N/A marks a point that does not exist, so that a chart leaves a gap there.",
        "scn.subtitle",
    )
    feed = _Feed(data, _choices(result, layout, page, workbook, frame))
    top = 5 + max(len(feed.chosen), 2)
    page.sheet.add_chart(_roofline(result, layout, feed, _points(result, page, frame)), f"A{top}")
    found = ""
    batches = sorted(frame["batch"].drop_nulls().unique().to_list())[:MAX_BATCHES] if frame.height else []
    if len(batches) > 1:
        batches += batches[-1:] * min(SPARE, MAX_BATCHES - len(batches))
        methods = frame["method"].unique(maintain_order=True).to_list()[:MAX_METHODS]
        blocks, found = _by_batch(result, layout, feed, frame, batches, methods)
        across = [
            _drawn.lines(
                data,
                blocks["speedup"],
                "Speedup against batch",
                "batch (sequences)",
                "speedup (x)",
                batches,
                one=True,
                log_x=True,
            ),
            _drawn.lines(
                data,
                blocks["usd_per_million_tokens"],
                "Price against batch",
                "batch (sequences)",
                "$ per 1M tokens",
                batches,
                log_x=True,
                log_y=True,
            ),
            _drawn.pareto(data, blocks, len(batches)),
        ]
        for chart, place in zip(across, (f"H{top}", f"A{top + 25}", f"H{top + 25}"), strict=True):
            page.sheet.add_chart(chart, place)
    else:
        page.put(
            top + 25, 1, "With several batch sizes in the table, charts against the batch appear here.", "scn.subtitle"
        )
    _heading(result, layout, page, feed, frame, found, top - 1)
    widths(page, [11.0] * 18)
    page.sheet.column_dimensions["A"].width = 16
    widths(data, [26.0] + [15.0] * (MAX_METHODS + 2))
    grey = Font(color="BFBFBF")
    data.sheet.conditional_formatting.add("A4:N500", FormulaRule(formula=["ISNA(A4)"], font=grey))
    _style.page(page.sheet)
    page.sheet.page_setup.fitToHeight = 1
    _style.page(data.sheet)
    return [page, data]


def _heading(result: Result, layout: Layout, page: Sheet, feed: _Feed, frame: pl.DataFrame, found: str, row: int) -> None:
    """What all charts are of, what their times rest on, and that no row of Scenarios is of the choice where that is so."""
    (model, first), (gpu, second) = feed.chosen["model"], feed.chosen["gpu"]
    basis = result.basis.replace('"', '""')
    none = "no row of Scenarios is of this choice, so charts against the batch are empty; "
    warned = f'IF(COUNT({found})=0,"{none}","")&' if found else ""
    keys = first_rows(frame) if found else {}
    values = {name: as_key(value) for name, (_, value) in feed.chosen.items()}
    places = [place for place, name in enumerate(layout.key) if name in values]
    there = any(all(key.split("|")[place] == values[layout.key[place]] for place in places) for key in keys)
    text = f'{model}&" on "&{gpu}&": "&{warned}"{basis}"'
    shows = f"{first} on {second}: {none if found and not there else ''}{result.basis}"
    page.formula(row, 1, text, shows, "scn.heading")


def _choices(
    result: Result, layout: Layout, page: Sheet, workbook: Workbook, frame: pl.DataFrame
) -> dict[str, tuple[str, Any]]:
    """Drop-downs for model, GPU, whatever else tells rows apart (batch and method aside), and what rows give
    that a pass's time reads."""
    keys = [name for name in layout.key if name not in ("model", "gpu", "batch", "method")]
    wanted = list(dict.fromkeys(["model", "gpu", *keys, *_given(result, layout, page)]))
    chosen: dict[str, tuple[str, Any]] = {}
    lists = workbook["Lists"]
    heads = {lists.cell(4, column).value: column for column in range(1, lists.max_column + 1)}
    start = frame
    for name in wanted:
        asked = result.book.summary_where.get(name)
        found = start.filter(pl.col(name) == asked) if asked is not None else start
        start = found if found.height else start
    for row, name in enumerate(wanted, 4):
        value = result.book.summary_where.get(name, start[name][0] if start.height else _left_out(result, name))
        page.put(row, 1, name, "scn.label")
        page.put(row, 2, value, "scn.input", _style.number_format(result.book.fields[name]))
        page.sheet.merge_cells(start_row=row, start_column=2, end_row=row, end_column=3)
        chosen[name] = (f"Charts!$B${row}", value)
        source = ""
        if name in ("model", "gpu"):
            table = result.book.tables[f"{name}s"]
            source = f"{TITLES[table.name]}!$A${FIRST}:$A${FIRST + len(table.rows) - 1}"
        elif name in heads:
            letter = get_column_letter(heads[name])
            source = f"Lists!${letter}$5:${letter}${max(lists.max_row, 5)}"
        if source:
            validation = DataValidation(type="list", formula1=source, allow_blank=True)
            page.sheet.add_data_validation(validation)
            validation.add(f"B{row}")
    return chosen


def _given(result: Result, layout: Layout, page: Sheet) -> list[str]:
    """The inputs that rows give and that the time of a pass reads; without them the chart would draw the defaults."""
    book, rows = result.book, result.book.table.rows
    needs = Passes(result, layout, page, {}, ROWS, 1).needs()
    default = book.scalars.get("default_gpus")
    found = [name for name in dict.fromkeys(item.removesuffix("_given") for item in needs)
             if name not in ("model", "gpu", "batch", "method", "context", "weights", "kv") and name in book.fields
             and name in rows.columns and rows[name].null_count() < rows.height]  # fmt: skip
    return found + (
        ["gpus"] if default is not None and not default.value and "gpus" not in found else []
    )  # auto: as many as the row needs


def _left_out(result: Result, name: str) -> Any:
    """What the first row of a table says, none of which is in the workbook."""
    rows, default = result.book.table.rows, result.book.scalars.get(f"default_{name}")
    given: list[Any] = rows[name].drop_nulls().head(1).to_list() if name in rows.columns else []
    return given[0] if given else default.value if default else None


def _points(result: Result, page: Sheet, frame: pl.DataFrame) -> dict[str, tuple[str, float]]:
    """The working point that the chart of passes marks: batch B and draft tokens gamma, beside the other choices."""
    batches, scalars = frame["batch"].drop_nulls() if frame.height else pl.Series([1.0]), result.book.scalars
    batch = float(batches[0]) if len(batches) else 1.0
    owner = next((name for name in ("small_model_gamma", *scalars) if name.endswith("_gamma") and name in scalars
                  and isinstance(scalars[name].value, int | float)), "")  # fmt: skip
    gamma = float(scalars[owner].value or 0) if owner else 4.0  # type: ignore[arg-type]
    page.put(4, 5, "working points at batch B", "scn.label")
    page.put(4, 8, batch, "scn.input", "#,##0")
    page.put(5, 5, "and draft tokens gamma", "scn.label")
    if owner:
        page.formula(5, 8, owner, gamma, "scn.link", "#,##0")
    else:
        page.put(5, 8, gamma, "scn.input", "#,##0")
    return {"batch": ("Charts!$H$4", batch), "gamma": ("Charts!$H$5", gamma)}


def _roofline(result: Result, layout: Layout, feed: _Feed, points: dict[str, tuple[str, float]]) -> ScatterChart:
    """T(m) of the chosen model and GPU: both weight formats, the compute slope, the ridge, and where both levers work."""
    sheet = feed.sheet
    sheet.put(feed.row, 1, "Pass time T(m) at context 0, one token row per sequence", "scn.heading")
    (batch_cell, batch), (gamma_cell, gamma) = points["batch"], points["gamma"]
    own = [(batch_cell, batch), (f"{batch_cell}*({gamma_cell}+1)", batch * (gamma + 1))]
    passes = Passes(result, layout, sheet, feed.chosen, [*map(float, ROWS), *(rows for _, rows in own)], feed.row + 1)
    lines = [passes.time(BF16), passes.time(INT4), passes.time(BF16, reading=False)]
    experts = passes.value("experts", BF16)
    first = passes.row + 2
    for column, head in enumerate(("token rows m", "BF16", "INT4 weights", "compute only", "ridge"), 1):
        sheet.put(first - 1, column, head, "scn.head")
    passes.columns(first)
    for at, rows in enumerate(passes.rows, first):
        if at < first + len(ROWS):
            sheet.put(at, 1, rows, "scn.calc", "#,##0")
        else:
            sheet.formula(at, 1, own[at - first - len(ROWS)][0], rows, "scn.calc", "#,##0")
        for column, (text, values) in enumerate(lines, 2):
            value = values[at - first]
            shows = NO_POINT if value is None else value
            sheet.formula(
                at, column, f"IFERROR(({text.replace('{row}', str(at))})+0,NA())", shows, "scn.calc", "#,##0.000"
            )
    last = first + len(ROWS) - 1
    below = last + len(own) + 1
    straight = result.book.time_models == ["bound"]  # only the bound has two straight parts that meet at a ridge
    if straight:
        _ridge(sheet, lines, experts, first, below)
    chart = _drawn.chart("Pass time against token rows", "token rows m", "time of one pass (ms)", log_x=True, log_y=True)
    for column, color, dash in ((2, _drawn.COLORS[0], None), (3, _drawn.COLORS[1], None), (4, "7F7F7F", "sysDash")):
        _drawn.add(chart, sheet, 1, column, first, last, color, dash=dash, head=first - 1)
    if straight:
        _drawn.add(chart, sheet, 1, 5, below, below + 1, "C00000", dash="dash", head=first - 1)
    feed.row = _working_points(chart, sheet, lines, passes.rows, last, below + 3) + 2
    return chart


def _working_points(chart: ScatterChart, sheet: Sheet, lines: list[tuple[str, list[Any]]], rows: list[float],
                    last: int, top: int) -> int:  # fmt: skip
    """What the levers do to a decoding step, as points: INT4 lowers the flat part, speculation moves right on the line.

    Gives the last row that they take.
    """
    sheet.put(top, 1, "Working points: INT4 lowers the flat part, speculation moves right", "scn.heading")
    for column, head in enumerate(("point", "token rows m", "ms"), 1):
        sheet.put(top + 1, column, head, "scn.head")
    marked = (
        ("T(B): decode", 1, 0, _drawn.COLORS[0], "circle"),
        ("T((gamma+1)B): verify", 1, 1, _drawn.COLORS[0], "diamond"),
        ("T(B) in INT4", 2, 0, _drawn.COLORS[1], "circle"),
        ("T((gamma+1)B) in INT4", 2, 1, _drawn.COLORS[1], "diamond"),
    )
    at = top + 1
    for name, line, point, color, mark in marked:
        at += 1
        source, value = last + 1 + point, lines[line - 1][1][len(ROWS) + point]
        sheet.put(at, 1, name, "scn.label")
        sheet.formula(at, 2, f"$A{source}", rows[len(ROWS) + point], "scn.calc", "#,##0")
        shows = NO_POINT if value is None else value
        sheet.formula(at, 3, f"{get_column_letter(1 + line)}{source}", shows, "scn.calc", "#,##0.000")
        _drawn.add(chart, sheet, 2, 3, at, at, color, head=at, mark=mark, label=1)
    return at


def _ridge(sheet: Sheet, lines: list[tuple[str, list[Any]]], experts: Value, first: int, top: int) -> None:
    """Two rows that draw an upright line where reading the weights and computing take the same time.

    The memory part of the BF16 line goes through its first two points; experts bend it, so there is no one ridge.
    """
    read, more, slope = lines[0][1][0], lines[0][1][1], lines[2][1][0]
    dense = not experts.values[0] and None not in (read, more, slope) and slope - (more - read) > 1e-9 * slope
    ridge = (2 * read - more) / (slope - (more - read)) if dense else NO_POINT
    steeper = f"D{first}-(B{first + 1}-B{first})"
    line = f"IF({experts.text}>0,NA(),IF({steeper}>0.000000001*D{first},(2*B{first}-B{first + 1})/({steeper}),NA()))"
    for at, letter, low in ((top, "B", read), (top + 1, "D", slope)):
        sheet.formula(at, 1, line, ridge, "scn.calc", "#,##0")
        sheet.formula(
            at, 5, f"IF(ISNUMBER($A{at}),{letter}{first},NA())", low if dense else NO_POINT, "scn.calc", "#,##0.000"
        )


def _by_batch(
    result: Result, layout: Layout, feed: _Feed, frame: pl.DataFrame, batches: list[float], methods: list[str]
) -> tuple[dict[str, int], str]:
    """A block per metric, batch down and method across; returns the header row of each, and the range that says which rows are found."""
    sheet, keys = feed.sheet, first_rows(frame)
    sheet.put(feed.row, 1, "Rows of Scenarios that the choices find", "scn.heading")
    head = feed.row + 1
    rows: dict[tuple[int, int], int | None] = {}
    for index in range(len(batches)):
        at = head + 1 + index
        # The distinct batches of Scenarios in rising order; past the last it stands again, without points.
        text = (
            f'IFERROR(SMALL({layout.span("batch")},COUNTIF({layout.span("batch")},"<="&A{at - 1})+1),A{at - 1})'
            if index
            else f"MIN({layout.span('batch')})"
        )
        sheet.formula(at, 1, text, batches[index], "scn.calc", "#,##0")
    span = layout.span("method")
    for column, method in enumerate(methods, 2):
        letter, before = get_column_letter(column), [f"({span}={get_column_letter(one)}{head})" for one in range(2, column)]
        taken = "+".join([*before, f'({span}="")'])
        # the first row of another method
        place = f'SUMPRODUCT(SMALL(ROW({span})-{FIRST - 1}+1E9*({taken}),1))'
        sheet.formula(head, column, f'IFERROR(INDEX({span},{place}),"")', method, "scn.head")
        for index, batch in enumerate(batches):
            at = head + 1 + index
            parts = {name: cell for name, (cell, _) in feed.chosen.items()} | {
                "batch": f"$A{at}",
                "method": f"{letter}${head}",
            }
            key = joined(parts[name] for name in layout.key)
            values = {name: value for name, (_, value) in feed.chosen.items()} | {"batch": batch, "method": method}
            again = index > 0 and batches[index - 1] == batch
            found = None if again else keys.get("|".join(as_key(values[name]) for name in layout.key))
            rows[index, column] = found
            text = f'IFERROR(MATCH({key},{layout.span(KEY)},0),"")'
            sheet.formula(at, column, f'IF($A{at}=$A{at - 1},"",{text})' if index else text, found, "scn.meta", "0")
    sheet.put(head, 1, "batch", "scn.head")
    sheet.sheet.conditional_formatting.add(
        f"A{head + 2}:A{head + len(batches)}",
        FormulaRule(formula=[f"A{head + 2}=A{head + 1}"], font=Font(color="BFBFBF")),
    )
    feed.row = head + len(batches) + 3
    blocks: dict[str, int] = {}
    for metric in ("speedup", "usd_per_million_tokens", "tpot_ms", "tokens_per_s_per_gpu"):
        item = result.book.fields[metric]
        sheet.put(feed.row, 1, f"{metric} ({item.unit})", "scn.heading")
        top = feed.row + 1
        blocks[metric] = top
        sheet.put(top, 1, "batch", "scn.head")
        for index, batch in enumerate(batches):
            sheet.formula(top + 1 + index, 1, f"A{head + 1 + index}", batch, "scn.calc", "#,##0")
        for column, method in enumerate(methods, 2):
            letter = get_column_letter(column)
            sheet.formula(top, column, f"{letter}${head}", method, "scn.head")
            for index in range(len(batches)):
                place = f"{letter}${head + 1 + index}"
                cell = f"INDEX({layout.span(metric)},{place})"
                row = rows[index, column]
                value = frame[metric][row - 1] if row else None
                text = f'IF({place}="",NA(),IF({cell}="",NA(),{cell}))'
                sheet.formula(
                    top + 1 + index,
                    column,
                    text,
                    NO_POINT if value is None else value,
                    "scn.calc",
                    _style.number_format(item),
                )
        feed.row = top + len(batches) + 3
    return blocks, f"'Chart data'!$B${head + 1}:${get_column_letter(1 + len(methods))}${head + len(batches)}"
