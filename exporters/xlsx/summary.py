"""The Summary: metrics as rows, the values of one input as columns, drop-downs for the others. Live."""

from __future__ import annotations

from typing import Any

import polars as pl
from openpyxl.formatting.rule import FormulaRule
from openpyxl.styles import Alignment, Font
from openpyxl.utils import column_index_from_string, get_column_letter
from openpyxl.workbook import Workbook
from openpyxl.worksheet.datavalidation import DataValidation

from scenario import Result
from scenario.exporters.xlsx import style as _style
from scenario.exporters.xlsx.cells import Sheet
from scenario.exporters.xlsx.layout import Layout, joined
from scenario.exporters.xlsx.summary_table import choices as view_choices
from scenario.exporters.xlsx.summary_table import summary_table
from scenario.exporters.xlsx.tabled import widths
from scenario.workbooks.form import KEY, NO_FIT, NO_ROW
from scenario.workbooks.form import joined as as_key

MAX_ACROSS = 24


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
    """The cells that choose what the sheet shows, and what each stands for: an input, or a part of the summary."""
    if result.book.summary is not None:
        return view_choices(result, result.book.summary)
    names = [name for name in layout.key if name != result.book.summary_columns]
    return {f"C{row}": name for row, name in enumerate(names, 4)}


def summary(result: Result, layout: Layout, workbook: Workbook, frame: pl.DataFrame) -> list[Sheet]:
    """The sheets Summary and Lists, with what they show at first worked out from the same frame."""
    if result.book.summary is not None:
        return summary_table(result, layout, workbook, result.book.summary)
    book = result.book
    sheet = Sheet(workbook.create_sheet("Summary"))
    across = book.summary_columns
    chosen, values = _first_choices(result, [name for name in layout.key if name != across])
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
    for row, metric in enumerate(book.summary_rows, top + 2):
        item = book.fields[metric]
        sheet.put(row, 1, _style.label(item), "scn.label")
        sheet.put(row, 2, item.unit, "scn.meta")
    keys = first_rows(frame)
    for column, value in enumerate(values, 3):
        letter = get_column_letter(column)
        cells = [f"{letter}${top}" if name == across else f"$C${4 + list(chosen).index(name)}" for name in layout.key]
        shows = keys.get("|".join(as_key(value if name == across else chosen[name]) for name in layout.key))
        head = sheet.put(top, column, value, "scn.input", _style.number_format(book.fields[across]))
        head.font = Font(name="Calibri", size=10, bold=True, color=_style.BLUE)
        head.alignment = Alignment(horizontal="right")
        place = f'IFERROR(MATCH({joined(cells)},{layout.span(KEY)},0),"")'
        sheet.formula(top + 1, column, place, shows, "scn.meta", "0")
        _metrics(sheet, layout, frame, letter, top + 1, shows)
    area = f"C{top + 2}:{get_column_letter(2 + max(len(values), 1))}{top + 1 + len(book.summary_rows)}"
    grey = Font(color="9AA1AB", italic=True)
    for said in (NO_FIT, NO_ROW):
        sheet.sheet.conditional_formatting.add(area, FormulaRule(formula=[f'C{top + 2}="{said}"'], font=grey))
    lists = _drop_downs(sheet, layout, chosen, frame, across, top, len(values), workbook)
    widths(sheet, _sizes(layout, frame, chosen, values))
    sheet.sheet.freeze_panes = f"C{top + 2}"
    _style.page(sheet.sheet)
    return [sheet, lists]


def _metrics(sheet: Sheet, layout: Layout, frame: pl.DataFrame, letter: str, place: int, shows: int | None) -> None:
    """One column of metrics; the cell above them, in row ``place``, says which row of Scenarios they are of."""
    here = f"{letter}${place}"
    fits = f"INDEX({layout.span('fits')},{here})"
    for row, metric in enumerate(layout.book.summary_rows, place + 1):
        item = layout.book.fields[metric]
        cell = f"INDEX({layout.span(metric)},{here})"
        text = f'IF({cell}="",IF({fits}=FALSE,"{NO_FIT}",""),{cell})' if item.facts.blank else cell
        text = f'IF({here}="","{NO_ROW}",{text})'
        column = column_index_from_string(letter)
        shown = sheet.formula(row, column, text, _value(frame, metric, shows), "scn.calc", _style.number_format(item))
        shown.alignment = Alignment(horizontal="right")


def _sizes(layout: Layout, frame: pl.DataFrame, chosen: dict[str, Any], values: list[Any]) -> list[float]:
    """The widths of the columns."""
    book = layout.book
    longest = max((len(as_key(value)) for value in values), default=10)
    status = 8
    if "status" in book.summary_rows:
        status = max((len(str(value)) for value in frame["status"].unique().to_list()), default=8)
    labels = max((len(_style.label(book.fields[name])) for name in (*book.summary_rows, *chosen)), default=10)
    wide = min(max(longest + 3.0, 14.0, status * 0.95 + 2), 30.0)
    return [max(18.0, labels * 1.15 + 2), 13.0, *[wide] * max(len(values), 1)]


def _first_choices(result: Result, names: list[str]) -> tuple[dict[str, Any], list[Any]]:
    """What the drop-downs say at first, and the columns that then have a row: as many as can be, of what the table asks for."""
    full, across, wanted = result.full, result.book.summary_columns, result.book.summary_where
    if not full.height:
        return {name: wanted.get(name) for name in names}, []
    for name in names:
        found = full.filter(pl.col(name) == wanted[name]) if name in wanted else full
        full = found if found.height else full
    many = full.filter(pl.col(across).is_not_null())
    full = many if many.height else full
    if names:
        most = full.group_by(names, maintain_order=True).agg(pl.col(across).n_unique().alias("#"))
        best = most.sort("#", descending=True, maintain_order=True).head(1)
        full = full.join(best, on=names, how="semi", nulls_equal=True, maintain_order="left")
    values = full[across].drop_nulls().unique(maintain_order=True).to_list()[:MAX_ACROSS]
    return {name: full[name][0] for name in names}, values


def first_rows(frame: pl.DataFrame) -> dict[str, int]:
    """The first row of Scenarios (from 1) with each summary key, as MATCH finds it."""
    firsts = frame.with_row_index("#row", 1).unique(KEY, keep="first", maintain_order=True)
    return dict(zip(firsts[KEY].to_list(), firsts["#row"].to_list(), strict=True))


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
) -> Sheet:
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
    return lists
