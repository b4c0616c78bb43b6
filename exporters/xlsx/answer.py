"""The sheet Answer, the first page: per model the cheapest row within limits, what a volume takes, what owning would cost.

The limits stand in blue cells. A column of Scenarios holds each row's price where the row keeps within them; here the least
of each model is found, and everything else is read from its row. Nothing is computed that Scenarios does not have, but for
counts of replicas and servers, and the costs of a month.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import polars as pl
from openpyxl.formatting.rule import FormulaRule
from openpyxl.styles import Alignment, Font
from openpyxl.utils import get_column_letter
from openpyxl.workbook import Workbook
from openpyxl.worksheet.datavalidation import DataValidation

from scenario import UNLIMITED, Result
from scenario.exporters.xlsx import style as _style
from scenario.exporters.xlsx.answer_cost import cost
from scenario.exporters.xlsx.answer_page import MOST, NONE, TOP, Answer
from scenario.exporters.xlsx.cells import Sheet
from scenario.exporters.xlsx.checks import OK
from scenario.exporters.xlsx.layout import Layout
from scenario.exporters.xlsx.splice import written_at
from scenario.exporters.xlsx.tabled import widths
from scenario.workbooks.form import ALL_CHECKS, ANSWER, FIRST, TITLES, limits_at

HOURS, SERVER = 730.0, 8.0
TOKENS_A_DAY = 100e6
_DATE = re.compile(r"\((20[0-9]{2}-[0-9]{2}-[0-9]{2})\)")
SHOWN = ("gpu", "gpus", "method", "batch", "context", "tpot_ms", "ttft_ms", "tokens_per_s", "speedup", "usd_per_million_tokens",
         "usd_low", "usd_high")  # fmt: skip
"""What is shown of the row, as far as the table has it."""


def answer(result: Result, layout: Layout, workbook: Workbook) -> list[Sheet]:
    """The sheet, or nothing of a table without rows."""
    if not result.full.height:
        return []
    page = Answer(result, layout, Sheet(workbook.create_sheet("Answer", 0)))
    page.models = result.full["model"].unique(maintain_order=True).to_list()[:MOST]
    page.places = [_cheapest(result, model) for model in page.models]
    _head(page)
    _limits(page)
    _models(page)
    row = _volume(page, page.last + 2)
    cost(page, row + 2)
    widths(page.sheet, [38.0, 15.0, 10.0, 17.0, *[13.0] * 10])
    page.sheet.sheet.freeze_panes = "B2"
    _style.page(page.sheet.sheet)
    page.sheet.sheet.page_setup.fitToWidth = page.sheet.sheet.page_setup.fitToHeight = 1
    return [page.sheet]


def within_limits(frame: pl.DataFrame) -> pl.Expr:
    """What the column of prices within limits shows at first, with no limit set: the price of each row that can run."""
    price = pl.col("usd_per_million_tokens")
    return pl.when(pl.col("status") == "ok").then(price).otherwise(None).fill_null(UNLIMITED).cast(pl.Float64)


def _cheapest(result: Result, model: str) -> int | None:
    """The first row of the least price of a model, from 1."""
    frame = result.full.select("model", within_limits(result.full).alias(ANSWER)).with_row_index("#", 1)
    found = frame.filter((pl.col("model") == model) & (pl.col(ANSWER) < UNLIMITED)).sort(ANSWER, maintain_order=True)
    return int(found["#"][0]) if found.height else None


def _head(page: Answer) -> None:
    """Title, status, date, prices and what the numbers rest on."""
    sheet, result = page.sheet, page.result
    sheet.put(1, 1, result.book.table.title or "Answer", "scn.title")
    sheet.put(2, 1, "What to run: of each model the cheapest row of Scenarios within the limits. Blue cells are yours to change.",
              "scn.subtitle")  # fmt: skip
    sheet.put(3, 1, "Status", "scn.label")
    sheet.formula(3, 2, ALL_CHECKS, OK, "scn.check")
    good, bad = _style._solid("C6EFCE"), _style._solid(_style.RED_FILL)
    for sign, fill in (("=", good), ("<>", bad)):
        sheet.sheet.conditional_formatting.add("B3", FormulaRule(formula=[f'$B$3{sign}"{OK}"'], fill=fill, font=Font(bold=True)))
    for row, name, said in (
        (4, "Written on", f"{written_at():%Y-%m-%d}"),
        (5, "Prices", _prices(result)),
        (6, "Rests on", f"{result.basis[0].upper()}{result.basis[1:]}."),
    ):
        sheet.put(row, 1, name, "scn.label")
        sheet.put(row, 2, said)


def _prices(result: Result) -> str:
    """What the prices are: on demand, of which day, from where."""
    used = set(result.full["gpu"].drop_nulls().to_list())
    said = {str(row["name"]): str(row.get("price_source", "")) for row in result.book.tables["gpus"].rows if row["name"] in used}
    dates = sorted(match[1] for text in said.values() if (match := _DATE.search(text)))
    own = sorted(name for name, text in said.items() if not _DATE.search(text))
    parts = [f"on demand, as of {' to '.join(dict.fromkeys((dates[0], dates[-1])))}, in US dollars"] if dates else []
    parts += [f"{', '.join(own)}: as the table or the sheet GPUs says, of no known day"] if own else []
    return "; ".join(parts) + ". Sources stand on the sheet GPUs."


def _limits(page: Answer) -> None:
    """The blue cells that say what a row must keep within."""
    sheet = page.sheet
    sheet.put(8, 1, "Limits and volume", "scn.heading")
    cells = limits_at()
    listed: Iterable[tuple[str, str, Any, str, str, str]] = (
        ("tpot", "TPOT at most", None, "#,##0.##", "ms", "time per output token; blank: no limit"),
        ("ttft", "TTFT at most", None, "#,##0.##", "ms", "time to first token, of rows that give a prompt; blank: no limit"),
        ("lossless", "lossless only", "no", "", "", "yes: no method that quantizes, weights and cache in no fewer bits than published"),
        ("budget", "budget at most", None, "$#,##0", "$/month", "of one replica; blank: no limit"),
        ("hours", "hours paid", HOURS, "#,##0", "h/month", "365 days of 24 hours over 12 months"),
        ("tokens", "output tokens a day", TOKENS_A_DAY, "#,##0", "tokens", "of each model; an example: type your own"),
    )
    for key, label, value, form, unit, said in listed:
        row = int(re.sub(r"\D", "", cells[key].split("!")[1]))
        sheet.put(row, 1, label, "scn.label")
        sheet.put(row, 2, value, "scn.input", form).alignment = Alignment(horizontal="right")
        sheet.put(row, 3, unit, "scn.meta")
        sheet.put(row, 4, said, "scn.subtitle")
    for key in ("tpot", "ttft", "budget", "hours", "tokens"):
        number = DataValidation(type="decimal", operator="greaterThanOrEqual", formula1="0", allow_blank=True, showErrorMessage=True)
        number.errorTitle, number.error = "Not a limit", "A number of at least 0, or nothing."
        sheet.sheet.add_data_validation(number)
        number.add(_own(cells[key]))
    for row, word in ((9, "no"), (10, "yes")):
        sheet.put(row, 11, word, "scn.meta")
    yes = DataValidation(type="list", formula1="Answer!$K$9:$K$10", allow_blank=False, showErrorMessage=True)
    sheet.sheet.add_data_validation(yes)
    yes.add(_own(cells["lossless"]))


def _own(place: str) -> str:
    """A cell of this sheet without the sheet's name."""
    return place.split("!")[1].replace("$", "")


def _models(page: Answer) -> None:
    """One line a model: its cheapest row, found by the least price within the limits."""
    sheet, layout = page.sheet, page.layout
    sheet.put(TOP - 1, 1, "Cheapest within the limits", "scn.heading")
    names = [name for name in SHOWN if name in layout.columns and (name not in ("ttft_ms",) or page.result.full[name].null_count() < len(page.result))]
    heads = ["model", *(_named(layout, name) for name in names), "$ per month", "row of Scenarios", "least price"]
    for column, head in enumerate(heads, 1):
        sheet.put(TOP, column, head, "scn.head").alignment = Alignment(horizontal="left" if column == 1 else "right", wrap_text=True)
    sheet.sheet.row_dimensions[TOP].height = 28
    page.columns = {name: get_column_letter(column) for column, name in enumerate(names, 2)}
    page.columns |= {"month": get_column_letter(len(heads) - 2), "#": get_column_letter(len(heads) - 1)}
    working = get_column_letter(len(heads))
    offered = layout.book.tables["models"]
    known = DataValidation(type="list", formula1=f"{TITLES['models']}!$A${FIRST}:$A${FIRST + len(offered.rows) - 1}", allow_blank=True)
    sheet.sheet.add_data_validation(known)
    known.add(f"A{TOP + 1}:A{page.last}")
    price, models = layout.span(ANSWER), layout.span("model")
    for index, row in enumerate(page.rows):
        sheet.put(row, 1, page.models[index], "scn.input")
        other = f"({models}<>$A{row})"
        least = f"SUMPRODUCT(SMALL({price}+{UNLIMITED:.0f}*{other},1))"  # of MIN Gnumeric takes one number
        found = f"${working}{row}"
        place = f"SUMPRODUCT(SMALL(ROW({price})-{FIRST - 1}+1000000000*(({other}+({price}>{found}))>0),1))"
        number = page.columns["#"]
        price_at = page.value("usd_per_million_tokens", index)
        sheet.formula(row, len(heads), least, UNLIMITED if price_at is None else price_at, "scn.meta", _style.WITHIN)
        sheet.formula(row, len(heads) - 1, f'IF({found}>={UNLIMITED:.0f},"{NONE}",{place})', page.places[index] or NONE, "scn.meta", "0")
        for column, name in enumerate(names, 2):
            cell = f"INDEX({layout.span(name)},${number}{row})"
            shown = f'IF(ISNUMBER(${number}{row}),IF({cell}="","",{cell}),"")'
            form = "#,##0" if name == "context" else _style.number_format(layout.book.fields[name])
            _right(sheet.formula(row, column, shown, page.value(name, index), "scn.calc", form))
        hours = limits_at()["hours"]
        month = f"INDEX({layout.span('usd_per_hour')},${number}{row})*{page.columns['gpus']}{row}*{_own(hours)}"
        rate, gpus = page.value("usd_per_hour", index), page.value("gpus", index)
        _right(sheet.formula(row, len(heads) - 2, f'IF(ISNUMBER(${number}{row}),{month},"")',
                             None if rate is None else rate * gpus * HOURS, "scn.calc", _style.MONEY))  # fmt: skip
    if page.result.full["model"].n_unique() > MOST:
        sheet.put(page.last + 1, 1, f"The first {MOST} models of the table; another is chosen in a blue cell.", "scn.subtitle")


def _named(layout: Layout, name: str) -> str:
    """What people call a column, with its unit where that is a time."""
    item = layout.book.fields[name]
    return f"{_style.label(item)} (ms)" if item.unit == "ms" else _style.label(item)


def _right(cell: Any) -> None:
    cell.alignment = Alignment(horizontal="right")


def _volume(page: Answer, row: int) -> int:
    """What the volume takes: replicas, GPUs, whole servers, dollars a month. Gives the last row."""
    sheet, layout, cells = page.sheet, page.layout, limits_at()
    sheet.put(row, 1, "For that volume", "scn.heading")
    sheet.put(row, 2, "whole replicas of the rows above, on whole servers, all of whose GPUs are paid", "scn.subtitle")
    heads = ["model", "replicas", "GPUs", "GPUs per server", "servers", "GPUs paid", "$ per month", "$ per 1M as paid"]
    for column, head in enumerate(heads, 1):
        sheet.put(row + 1, column, head, "scn.head").alignment = Alignment(horizontal="left" if column == 1 else "right", wrap_text=True)
    sheet.sheet.row_dimensions[row + 1].height = 28
    gpus_table = layout.book.tables["gpus"]
    nodes = {str(one["name"]): one.get("node_gpus") for one in gpus_table.rows}
    number, gpu, gpus, rate = (page.columns[name] for name in ("#", "gpu", "gpus", "tokens_per_s"))
    for index, source in enumerate(page.rows):
        at = row + 2 + index
        sheet.formula(at, 1, f"$A{source}", page.models[index], "scn.label")
        busy = f"INDEX({layout.span('utilization')},${number}{source})"
        per_day = f"{rate}{source}*86400*{busy}"
        server = f"INDEX({layout.entity_span(gpus_table, 'node_gpus')},MATCH({gpu}{source},{layout.entity_span(gpus_table, 'name')},0))"
        hour = f"INDEX({layout.span('usd_per_hour')},${number}{source})"
        texts = [
            f"-INT(-{_own(cells['tokens'])}/({per_day}))",
            f"B{at}*{gpus}{source}",
            f"IF(N({server})>0,{server},{SERVER:.0f})",
            f"-INT(-C{at}/D{at})",
            f"E{at}*D{at}",
            f"F{at}*{hour}*{_own(cells['hours'])}",
            f"G{at}/({_own(cells['tokens'])}*365/12)*1000000",
        ]
        shown = _volume_of(page, index, nodes)
        for column, (text, value) in enumerate(zip(texts, shown, strict=True), 2):
            form = _style.MONEY if column == 7 else _style.PRICE if column == 8 else "#,##0"
            _right(sheet.formula(at, column, f'IF(ISNUMBER(${number}{source}),{text},"")', value, "scn.calc", form))
    return row + 1 + len(page.models)


def _volume_of(page: Answer, index: int, nodes: dict[str, Any]) -> list[float | None]:
    """What the cells of a model's volume show at first."""
    speed, busy, hour = (page.value(name, index) for name in ("tokens_per_s", "utilization", "usd_per_hour"))
    if speed is None or hour is None:
        return [None] * 7
    replicas = float(math.ceil(TOKENS_A_DAY / (speed * 86400 * busy)))
    gpus = replicas * page.value("gpus", index)
    server = float(nodes.get(page.value("gpu", index)) or SERVER)
    servers = float(math.ceil(gpus / server))
    month = servers * server * hour * HOURS
    return [replicas, gpus, server, servers, servers * server, month, month / (TOKENS_A_DAY * 365 / 12) * 1e6]
