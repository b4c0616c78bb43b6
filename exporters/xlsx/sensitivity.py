"""The Sensitivity sheet: what each input's low and high value make of a metric, live, with a tornado chart."""

from __future__ import annotations

from openpyxl.chart import BarChart, Reference, Series
from openpyxl.chart.shapes import GraphicalProperties
from openpyxl.workbook import Workbook

from scenario import Result
from scenario.exporters.xlsx import style as _style
from scenario.exporters.xlsx.cells import Sheet
from scenario.exporters.xlsx.layout import Layout
from scenario.exporters.xlsx.tabled import add_table, heads, widths
from scenario.workbooks.form import BY_TITLE, FIRST

BELOW, ABOVE = "1F77B4", "D55E00"


def sensitivity(result: Result, layout: Layout, workbook: Workbook) -> list[Sheet]:
    """The sheet, when the rows are the variants of one; all its numbers are read from Scenarios."""
    found = result.sensitivity
    if found is None:
        return []
    sheet = Sheet(workbook.create_sheet("Sensitivity"))
    metric, item = found.metric, layout.book.fields[found.metric]
    names = [
        "input",
        "unit",
        "low",
        "value",
        "high",
        f"{metric} at low",
        f"{metric}",
        f"{metric} at high",
        "low moves it by",
        "high moves it by",
        "swing",
    ]
    heads(
        sheet,
        f"Sensitivity of {metric}",
        f"One input at a time around the row {found.row}; change its low and high value, or the row itself, on "
        "Scenarios. Sorted by swing when this file was written.",
        names,
    )
    frame = result.full
    places = {name: index for index, name in enumerate(frame["id"].to_list())}
    number = _style.number_format(item)
    row = FIRST - 1
    for swing in found.swings:
        row += 1
        sheet.put(row, 1, swing.name, "scn.label")
        sheet.put(row, 2, swing.unit, "scn.meta")
        variants = [(f"{swing.name} low", 3, 6), (found.row, 4, 7), (f"{swing.name} high", 5, 8)]
        for name, value_column, metric_column in variants:
            there = name if name in places else found.row
            at = f'MATCH("{there}",{layout.span("id")},0)'
            for column, field, shape in (
                (value_column, swing.name, _style.number_format(layout.book.fields[swing.name])),
                (metric_column, metric, number),
            ):
                shows = frame[field][places[there]]
                cell = f"INDEX({layout.span(field)},{at})"
                sheet.formula(
                    row, column, f'IF({cell}="","",{cell})', shows, "scn.link" if column < 6 else "scn.calc", shape
                )
        values = [frame[metric][places[name]] if name in places else found.base for name, _, _ in variants]
        for column, source, value in ((9, "F", values[0]), (10, "H", values[2])):
            moved = None if value is None else value - found.base
            sheet.formula(
                row, column, f'IF(OR({source}{row}="",G{row}=""),"",{source}{row}-G{row})', moved, "scn.calc", number
            )
        both = None if values[0] is None or values[2] is None else abs(values[2] - values[0])
        sheet.formula(row, 11, f'IF(OR(F{row}="",H{row}=""),"",ABS(H{row}-F{row}))', both, "scn.calc", number)
    if found.swings:
        add_table(sheet, BY_TITLE["Sensitivity"].table, names, row)
        sheet.sheet.add_chart(_tornado(sheet, metric, found.unit, row), f"A{row + 3}")
    if found.still:
        sheet.put(row + 2, 1, "Without effect on this row: " + ", ".join(found.still), "scn.subtitle")
    widths(sheet, [24, 14, *[13.0] * 9])
    _style.page(sheet.sheet, rows=f"{FIRST - 1}:{FIRST - 1}")
    return [sheet]


def _tornado(sheet: Sheet, metric: str, unit: str, last: int) -> BarChart:
    chart = BarChart()
    chart.type, chart.grouping, chart.overlap, chart.gapWidth = "bar", "clustered", 100, 40
    chart.title, chart.style = f"What moves {metric}", 2
    chart.height, chart.width = max(6.0, 2.5 + 0.8 * (last - FIRST + 1)), 22.0
    for column, color in ((9, BELOW), (10, ABOVE)):
        series = Series(
            Reference(sheet.sheet, min_col=column, min_row=FIRST, max_row=last),
            title=str(sheet.sheet.cell(FIRST - 1, column).value),
        )
        series.graphicalProperties = GraphicalProperties(solidFill=color)
        series.invertIfNegative = False
        chart.series.append(series)
    chart.set_categories(Reference(sheet.sheet, min_col=1, min_row=FIRST, max_row=last))
    chart.x_axis.scaling.orientation = "maxMin"  # the largest swing on top
    chart.x_axis.tickLblPos = "low"
    chart.x_axis.delete = chart.y_axis.delete = False
    chart.y_axis.title = f"change of {metric} ({unit})"
    chart.y_axis.number_format = "General"
    chart.legend.position = "b"
    return chart
