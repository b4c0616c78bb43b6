"""The Summary: metrics as rows, the values of one input as columns, drop-downs for the others. Live."""

from __future__ import annotations

from typing import Any

import polars as pl
from openpyxl.formatting.rule import FormulaRule
from openpyxl.styles import Alignment, Font
from openpyxl.utils import get_column_letter
from openpyxl.workbook import Workbook
from openpyxl.worksheet.datavalidation import DataValidation

from scenario import Result
from scenario.exporters.xlsx import style as _style
from scenario.exporters.xlsx.assumptions import widths
from scenario.exporters.xlsx.cells import Sheet
from scenario.exporters.xlsx.layout import Layout, joined

MAX_ACROSS = 24
NO_ROW, NO_FIT = "no such row", "does not fit"


def key_columns(result: Result) -> tuple[str, ...]:
    """The inputs that tell rows apart: what varies, the Summary's columns among them."""
    book, given = result.book, result.book.table.rows
    inputs = [
        name.removesuffix("_given") for name, item in book.fields.items() if item.role == "input" and name != "id"
    ]
    varying = [name for name in inputs if name in given.columns and given[name].n_unique() > 1]
    wanted = {book.summary_columns, *book.summary_where, *varying}
    return tuple(name for name in inputs if name in wanted)


def choices(result: Result, layout: Layout) -> dict[str, str]:
    """The cells that choose what the sheet shows, and the input that each stands for."""
    names = [name for name in layout.key if name != result.book.summary_columns]
    return {f"C{row}": name for row, name in enumerate(names, 4)}


def summary(result: Result, layout: Layout, workbook: Workbook, frame: pl.DataFrame) -> Sheet:
    """The sheet, with what it shows at first worked out from the same frame."""
    book = result.book
    sheet = Sheet(workbook.create_sheet("Summary"))
    across = book.summary_columns
    chosen = {name: _first_choice(result, name) for name in layout.key if name != across}
    values = frame[across].unique(maintain_order=True).drop_nulls().to_list()[:MAX_ACROSS] if frame.height else []
    sheet.put(1, 1, book.table.title, "scn.title")
    sheet.put(2, 1, f"One column per {across}. The blue cells are drop-downs: choose what to show.", "scn.subtitle")
    for row, (name, value) in enumerate(chosen.items(), 4):
        item = book.fields[name]
        sheet.put(row, 1, _style.label(item), "scn.label")
        sheet.put(row, 2, item.unit, "scn.meta")
        sheet.put(row, 3, value, "scn.input", _style.number_format(item))
    top = 4 + len(chosen) + (1 if chosen else 0)
    sheet.put(top, 1, across, "scn.head")
    sheet.put(top, 2, "unit", "scn.head")
    sheet.put(top + 1, 1, "row of Scenarios", "scn.meta")
    keys = first_rows(frame)
    for column, value in enumerate(values, 3):
        letter = get_column_letter(column)
        sheet.put(top, column, value, "scn.input", _style.number_format(book.fields[across]))
        sheet.sheet.cell(top, column).font = Font(name="Calibri", size=10, bold=True, color=_style.BLUE)
        sheet.sheet.cell(top, column).alignment = Alignment(horizontal="right")
        key = joined(
            f"{letter}${top}" if name == across else f"$C${4 + list(chosen).index(name)}" for name in layout.key
        )
        shows = keys.get("|".join(as_key(value if name == across else chosen[name]) for name in layout.key))
        sheet.formula(
            top + 1, column, f'IFERROR(MATCH({key},{layout.span("summary_key")},0),"")', shows, "scn.meta", "0"
        )
        for row, metric in enumerate(book.summary_rows, top + 2):
            item = book.fields[metric]
            cell = f"INDEX({layout.span(metric)},{letter}${top + 1})"
            fits = f"INDEX({layout.span('fits')},{letter}${top + 1})"
            blank = f'IF({fits}=FALSE,"{NO_FIT}","")' if item.facts.blank else None
            text = f'IF({cell}="",{blank},{cell})' if blank else cell
            text = f'IF({letter}${top + 1}="","{NO_ROW}",{text})'
            sheet.formula(row, column, text, _value(frame, metric, shows), "scn.calc", _style.number_format(item))
            sheet.sheet.cell(row, column).alignment = Alignment(horizontal="right")
    for row, metric in enumerate(book.summary_rows, top + 2):
        item = book.fields[metric]
        sheet.put(row, 1, _style.label(item), "scn.label")
        sheet.put(row, 2, item.unit, "scn.meta")
    last_row = top + 1 + len(book.summary_rows)
    last = get_column_letter(2 + max(len(values), 1))
    area = f"C{top + 2}:{last}{last_row}"
    grey = Font(color="9AA1AB", italic=True)
    for said in (NO_FIT, NO_ROW):
        sheet.sheet.conditional_formatting.add(area, FormulaRule(formula=[f'C{top + 2}="{said}"'], font=grey))
    _drop_downs(sheet, layout, chosen, frame, across, top, len(values), workbook)
    longest = max((len(as_key(value)) for value in values), default=10)
    status = (
        max((len(str(value)) for value in frame["status"].unique().to_list()), default=8)
        if "status" in book.summary_rows
        else 8
    )
    labels = max((len(_style.label(book.fields[name])) for name in (*book.summary_rows, *chosen)), default=10)
    widths(
        sheet,
        [
            max(18.0, labels * 1.15 + 2),
            13.0,
            *[min(max(longest + 3.0, 14.0, status * 0.95 + 2), 30.0)] * max(len(values), 1),
        ],
    )
    sheet.sheet.freeze_panes = f"C{top + 2}"
    _style.page(sheet.sheet)
    return sheet


def _first_choice(result: Result, name: str) -> Any:
    asked = result.book.summary_where.get(name)
    if asked is not None:
        return asked
    values = result.full[name].drop_nulls().unique(maintain_order=True).to_list() if result.full.height else []
    return values[0] if values else None


def first_rows(frame: pl.DataFrame) -> dict[str, int]:
    """The first row of Scenarios (from 1) with each summary key, as MATCH finds it."""
    firsts = frame.with_row_index("#row", 1).unique("summary_key", keep="first", maintain_order=True)
    return dict(zip(firsts["summary_key"].to_list(), firsts["#row"].to_list(), strict=True))


def as_key(value: Any) -> str:
    """A value as a spreadsheet joins it to a text."""
    if value is None:
        return ""
    if isinstance(value, float):
        return str(int(value)) if value == int(value) else repr(float(f"{value:.15g}"))
    return str(value)


def _value(frame: pl.DataFrame, metric: str, row: int | None) -> Any:
    if row is None:
        return NO_ROW
    value = frame[metric][row - 1]
    if value is None:
        return NO_FIT if frame["fits"][row - 1] is False else ""
    return value


def _drop_downs(
    sheet: Sheet,
    layout: Layout,
    chosen: dict[str, Any],
    frame: pl.DataFrame,
    across: str,
    top: int,
    count: int,
    workbook: Workbook,
) -> None:
    lists = Sheet(workbook.create_sheet("Lists"))
    lists.put(1, 1, "What the Summary's drop-downs offer", "scn.title")
    lists.put(
        2,
        1,
        "The values that stood in Scenarios when this file was written; a new value may be typed as well.",
        "scn.subtitle",
    )
    for column, name in enumerate([*chosen, across], 1):
        lists.put(4, column, name, "scn.head")
        options = frame[name].drop_nulls().unique(maintain_order=True).to_list()[:1000]
        for row, option in enumerate(options, 5):
            lists.put(row, column, option, "scn.calc", _style.number_format(layout.book.fields[name]))
        letter = get_column_letter(column)
        lists.sheet.column_dimensions[letter].width = max([len(as_key(option)) for option in options] + [10]) + 3
        validation = DataValidation(
            type="list", formula1=f"Lists!${letter}$5:${letter}${4 + max(len(options), 1)}", allow_blank=True
        )
        validation.showErrorMessage = False
        sheet.sheet.add_data_validation(validation)
        if name == across:
            validation.add(f"C{top}:{get_column_letter(2 + max(count, 1))}{top}")
        else:
            validation.add(f"C{4 + list(chosen).index(name)}")
    _style.page(lists.sheet)
