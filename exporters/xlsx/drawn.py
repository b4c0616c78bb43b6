"""Scatter charts in the look of the workbook: axes, series of a block of cells, and the charts that several blocks make."""

from __future__ import annotations

from openpyxl.chart import Reference, ScatterChart, Series
from openpyxl.chart.data_source import StrRef
from openpyxl.chart.layout import Layout as ChartLayout
from openpyxl.chart.layout import ManualLayout
from openpyxl.chart.series import SeriesLabel
from openpyxl.chart.shapes import GraphicalProperties
from openpyxl.drawing.line import LineProperties

from scenario.exporters.xlsx.cells import Sheet

COLORS = (
    "1F77B4",
    "D55E00",
    "2CA02C",
    "9467BD",
    "8C564B",
    "E377C2",
    "7F7F7F",
    "BCBD22",
    "17BECF",
    "000000",
    "E6AB02",
    "66A61E",
)
MARKS = (
    "circle",
    "square",
    "triangle",
    "diamond",
    "x",
    "star",
    "plus",
    "dash",
    "circle",
    "square",
    "triangle",
    "diamond",
)


def chart(title: str, x: str, y: str, *, log_x: bool = False, log_y: bool = False) -> ScatterChart:
    """An empty chart with its axes named."""
    found = ScatterChart()
    found.title, found.style, found.height, found.width = title, 2, 12.0, 17.0
    found.scatterStyle = "lineMarker"
    for axis, label, log in ((found.x_axis, x, log_x), (found.y_axis, y, log_y)):
        axis.title = label
        axis.delete = False
        axis.number_format = "General"
        axis.majorGridlines.spPr = (
            GraphicalProperties(ln=LineProperties(solidFill="D9D9D9")) if axis.majorGridlines else None
        )
        if log:
            axis.scaling.logBase = 10
        axis.tickLblPos = "low"
        axis.crosses = "min"
    found.legend.position = "b"  # beside the plot a long name would lie over its lines
    found.layout = ChartLayout(manualLayout=ManualLayout(x=0.1, y=0.12, w=0.86, h=0.58, xMode="edge", yMode="edge"))
    found.dispBlanksAs = "gap"
    return found


def add(
    chart: ScatterChart,
    sheet: Sheet,
    x: int,
    y: int,
    first: int,
    last: int,
    color: str,
    *,
    dash: str | None = None,
    head: int,
    mark: str = "none",
    x_block: int | None = None,
    y_block: int | None = None,
    label: int | None = None,
) -> None:
    """Add a series: its values in column ``y``, its places in ``x``; ``head`` and ``label`` say the cell that names it."""
    xs = Reference(sheet.sheet, min_col=x, min_row=x_block or first, max_row=(x_block or first) + last - first)
    ys = Reference(sheet.sheet, min_col=y, min_row=y_block or first, max_row=(y_block or first) + last - first)
    series = Series(ys, xs)
    series.tx = SeriesLabel()
    series.tx.strRef = StrRef(f=str(Reference(sheet.sheet, min_col=label or y, min_row=head)))
    series.graphicalProperties = GraphicalProperties(ln=LineProperties(solidFill=color, w=22000, prstDash=dash))
    series.marker.symbol = mark
    if mark != "none":
        series.marker.size = 6
        series.marker.graphicalProperties = GraphicalProperties(solidFill=color, ln=LineProperties(solidFill=color))
    series.smooth = False
    chart.series.append(series)


def methods(sheet: Sheet, block: int) -> int:
    """How many methods a block of cells has, one a column."""
    column = 2
    while sheet.sheet.cell(block, column).value is not None:
        column += 1
    return column - 2


def lines(
    sheet: Sheet,
    block: int,
    title: str,
    x: str,
    y: str,
    batches: list[float],
    *,
    one: bool = False,
    log_x: bool = False,
    log_y: bool = False,
) -> ScatterChart:
    """A chart of one block, batch along and a line per method; ``one`` adds the line of vanilla decoding."""
    found = chart(title, x, y, log_x=log_x, log_y=log_y)
    last = block + len(batches)
    count = methods(sheet, block)
    for index in range(count):
        add(found, sheet, 1, 2 + index, block + 1, last, COLORS[index], head=block, mark=MARKS[index])
    if one:
        column = count + 2
        sheet.put(block, column, "as fast as vanilla", "scn.head")
        for row in range(block + 1, last + 1):
            sheet.put(row, column, 1, "scn.calc")
        add(found, sheet, 1, column, block + 1, last, "404040", dash="dash", head=block)
    return found


def pareto(sheet: Sheet, blocks: dict[str, int], batches: int) -> ScatterChart:
    """Latency against throughput, a line per method."""
    found = chart("TPOT against throughput", "tokens/s per GPU", "TPOT (ms)", log_x=True, log_y=True)
    xs, ys = blocks["tokens_per_s_per_gpu"], blocks["tpot_ms"]
    for index in range(methods(sheet, ys)):
        add(found, sheet, 2 + index, 2 + index, ys + 1, ys + batches, COLORS[index], head=ys, mark=MARKS[index],
            x_block=xs + 1, y_block=ys + 1)  # fmt: skip
    return found
