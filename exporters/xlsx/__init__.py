"""Excel workbooks in which every computed cell is a live formula that already shows the engine's value."""

from __future__ import annotations

from io import BytesIO
from typing import BinaryIO

from scenario import Exporter, Result, hookimpl
from scenario.workbooks.form import FIRST

MAX_ROWS = 1_048_576 - FIRST + 1


def write_xlsx(result: Result, stream: BinaryIO) -> None:
    """Write the workbook: openpyxl makes the skeleton, the rows and shown values are spliced in."""
    import polars as pl
    from openpyxl import Workbook

    from scenario.exporters.xlsx import answer as _answer
    from scenario.exporters.xlsx import assumptions as _assumptions
    from scenario.exporters.xlsx import cells as _cells
    from scenario.exporters.xlsx import charts as _charts
    from scenario.exporters.xlsx import checks as _checks
    from scenario.exporters.xlsx import extras as _extras
    from scenario.exporters.xlsx import front as _front
    from scenario.exporters.xlsx import helpers as _helpers
    from scenario.exporters.xlsx import layout as _layout
    from scenario.exporters.xlsx import scenarios as _scenarios
    from scenario.exporters.xlsx import sensitivity as _sensitivity
    from scenario.exporters.xlsx import splice as _splice
    from scenario.exporters.xlsx import style as _style
    from scenario.exporters.xlsx import summary as _summary

    workbook = Workbook()
    del workbook[workbook.active.title]
    _style.add_styles(workbook)
    result.lost = []
    layout = _layout.lay_out(result.book, result.full.height, _summary.key_columns(result))
    frame = _scenarios.shown_frame(result, layout)
    sheets = [*_sensitivity.sensitivity(result, layout, workbook), *_summary.summary(result, layout, workbook, frame)]
    sheets += _charts.charts(result, layout, workbook, frame)
    sheets += _answer.answer(result, layout, workbook)
    pages = list(sheets)
    added = _extras.columns(result, layout, workbook)
    frame = frame.with_columns(pl.Series(name, cells, dtype=pl.String) for name, (_, cells) in added.items())
    scenarios, recipe = _scenarios.scenarios(
        result, layout, workbook, {name: letter for name, (letter, _) in added.items()}
    )
    sheets += [scenarios, *_assumptions.all_assumptions(result, layout, workbook)]
    beside = _helpers.helpers(result, layout, workbook)
    sheets += [sheet for sheet, _, _ in beside]
    sheets += [_front.formulas(layout, workbook), _checks.checks(result, layout, workbook, pages, _summary.choices(result, layout))]
    for title in ("Chart data", "Lists"):
        workbook.move_sheet(title, len(workbook.sheetnames))
    source = _front.source(result, workbook)
    sheets += [source, *_extras.sheets(result, layout, workbook)]
    sheets += [_front.readme(result, layout, workbook)]
    _front.witness(workbook, layout, source, _summary.choices(result, layout))
    workbook.active = 0
    workbook.calculation.fullCalcOnLoad = True
    workbook.properties.title = _cells.clean(result.book.table.title)[:255]
    workbook.properties.creator = "scenario"
    skeleton = BytesIO()
    workbook.save(skeleton)
    parts = {
        sheet.sheet.title: f"xl/worksheets/sheet{workbook.sheetnames.index(sheet.sheet.title) + 1}.xml"
        for sheet in sheets
    }
    large = {
        parts["Scenarios"]: _splice.Rows(
            _splice.row_chunks(frame, recipe, FIRST),
            f"A1:{recipe[-1].letter}{layout.last}",
            f"A{FIRST}:A{layout.last}",
        )
    }
    for sheet, columns, last in beside:
        chunks = _splice.row_chunks(frame, columns, FIRST)
        large[parts[sheet.sheet.title]] = _splice.Rows(chunks, f"A1:{last}{layout.last}", "")
    _splice.finish(skeleton, stream, {parts[sheet.sheet.title]: sheet.shown for sheet in sheets}, large,
                   [parts[title] for title in ("README", "Formulas", "Source")])  # fmt: skip


@hookimpl
def scenario_exporters():  # type: ignore[no-untyped-def]
    yield Exporter("xlsx", (".xlsx",), write_xlsx, "An Excel workbook with live formulas.", max_rows=MAX_ROWS)
