"""How the workbook looks: one place for fonts, fills, number formats and widths.

Inputs are blue on pale yellow, lookups green, formulas black (the FAST standard's colours); fill and font
both tell, so that it also reads in grey.
"""

from __future__ import annotations

import math
import unicodedata
from copy import copy

from openpyxl.styles import Alignment, Border, Font, NamedStyle, PatternFill, Protection, Side
from openpyxl.utils import get_column_letter
from openpyxl.workbook import Workbook
from openpyxl.worksheet.worksheet import Worksheet

from scenario import UNLIMITED
from scenario.workbooks.form import LABELS, Field

BLUE, GREEN, BLACK, GREY, NAVY = "0000C8", "006100", "000000", "6B7280", "1F3864"
PALE_YELLOW, PALE_GREEN, PALE_GREY, RED_FILL, AMBER = "FFF9D6", "EAF4E4", "F2F4F7", "F8CBAD", "FFE699"
BANDS = {
    "INPUT": PALE_YELLOW,
    "RESULT": "D9E7F5",
    "MORE INPUT": PALE_YELLOW,
    "APPLIED": "E4ECF7",
    "LOOKUP": PALE_GREEN,
    "CALC": PALE_GREY,
}
TABS = {
    "Answer": NAVY, "README": NAVY, "Summary": "2E75B6", "Charts": "2E75B6", "Scenarios": "548235", "Formulas": "7F7F7F",
    "Checks": "C00000",
}  # fmt: skip
INPUT_TAB = "BF9000"

_HAIR = Side(style="hair", color="C9CDD3")
_THIN = Side(style="thin", color="9AA1AB")


def _solid(color: str) -> PatternFill:
    return PatternFill("solid", start_color=color, end_color=color)


def add_styles(book: Workbook) -> None:
    """Register the named styles; an analyst finds them in the style gallery."""
    book._named_styles["Normal"].font = Font(name="Calibri", size=10)
    base = {"name": "Calibri", "size": 10}
    grid = Border(bottom=_HAIR)
    styles = [
        NamedStyle("scn.title", font=Font(name="Calibri", size=16, bold=True, color=NAVY)),
        NamedStyle("scn.subtitle", font=Font(**base, italic=True, color=GREY)),
        NamedStyle("scn.heading", font=Font(name="Calibri", size=12, bold=True, color=NAVY)),
        NamedStyle("scn.text", font=Font(**base), alignment=Alignment(vertical="top", wrap_text=True)),
        NamedStyle("scn.label", font=Font(**base, bold=True), alignment=Alignment(vertical="center")),
        NamedStyle("scn.head", font=Font(**base, bold=True, color="FFFFFF"), fill=_solid(NAVY),
                   alignment=Alignment(vertical="center", wrap_text=True), border=Border(bottom=_THIN)),
        NamedStyle("scn.meta", font=Font(name="Calibri", size=8, italic=True, color=GREY),
                   alignment=Alignment(vertical="center")),
        NamedStyle("scn.input", font=Font(**base, color=BLUE), fill=_solid(PALE_YELLOW), border=grid,
                   protection=Protection(locked=False)),
        NamedStyle("scn.link", font=Font(**base, color=GREEN), border=grid),
        NamedStyle("scn.calc", font=Font(**base, color=BLACK), border=grid),
        NamedStyle("scn.check", font=Font(**base, bold=True), alignment=Alignment(horizontal="center")),
        NamedStyle("scn.url", font=Font(**base, underline="single", color="0563C1")),
    ]  # fmt: skip
    for band, color in BANDS.items():
        font = Font(name="Calibri", size=9, bold=True, color=GREY)
        styles.append(NamedStyle(f"scn.band.{band.lower().replace(' ', '')}", font=font, fill=_solid(color)))
    for style in styles:
        book.add_named_style(style)


PRICE, MONEY = "[>=1]$#,##0.00;[>=0.01]$0.0000;$0.000000", "$#,##0"
"""Dollars of a unit, to three digits or more by magnitude; and dollars of a month, whole."""
AMOUNT = "[>=100]#,##0;[>=1]0.00;0.0000"
"""A measured amount by magnitude; below 1 to the fourth decimal."""
WITHIN = f'[>={UNLIMITED:.0f}]"outside";[>=0.01]$#,##0.00##;$0.000000'
"""A price within limits, or that the row is outside them."""

_BIG = '[>=1000000000]#,##0.00,,,"{0}";[>=1000000]#,##0.00,,"M";#,##0'
FORMATS = {
    "$/1M tokens": PRICE, "$/GPU-hour": "$#,##0.00", "$": "$#,##0.00", "ms": AMOUNT, "us": "#,##0.0",
    "GB": AMOUNT, "TB/s": "#,##0.00", "GB/s": "#,##0", "TFLOP/s": "#,##0", "TOP/s": "#,##0", "W": "#,##0",
    "x": '0.00"x"', "%": "0.0%", "tokens/s": "#,##0", "tokens": "[>=100]#,##0;0.00", "rows": "#,##0.0", "FLOP/byte": "#,##0.0",
    "experts": "#,##0.0", "bit": "0.00", "parameters": _BIG.format("B"), "FLOP": _BIG.format("G"), "bytes": "#,##0",
    "sequences": "#,##0", "GPUs": "#,##0",
}  # fmt: skip
"""Number formats by unit: what is shown is rounded by the format, never by a formula."""


def label(item: Field) -> str:
    """A column's name for people: its title, else its name without the unit that stands beside it."""
    if item.title or item.name in LABELS:
        return item.title or LABELS[item.name]
    name = item.name
    for suffix, unit in (
        ("_ms", "ms"),
        ("_gb", "GB"),
        ("_tb_s", "TB/s"),
        ("_us", "us"),
        ("_tokens", "tokens"),
        ("_rows", "rows"),
    ):
        if item.unit == unit:
            name = name.removesuffix(suffix)
    return name.replace("_", " ").replace("usd", "$")


def number_format(item: Field) -> str:
    """The number format of a column: its own, else by unit, else by what its values are."""
    if item.format:
        return item.format
    if item.facts.type != "number":
        return "General"
    if item.limit:
        return f'[>={UNLIMITED:.0f}]"unlimited";#,##0'
    whole = item.facts.integer and item.unit not in FORMATS
    by_unit = FORMATS.get(item.unit)
    if item.facts.integer and item.unit in ("tokens", "rows", "ms", "bit"):
        return "#,##0"
    return by_unit or ("#,##0" if whole else "0.00##" if item.facts.high <= 1000 else "#,##0.00")


def width(item: Field, longest: int) -> float:
    """A column width that shows the header, its filter button, the unit and the values whole."""
    base = max(len(item.name) * 1.05 + 3, len(item.unit) * 0.9 + 2, 9.5)
    if item.facts.type == "text":
        return min(max(base, longest * 1.02 + 2), 46)
    return min(max(base, 14.0 if item.unit == "bytes" else 9.5), 32)


def wide(text: str) -> int:
    """How many columns of type a text takes: Chinese, Japanese and Korean characters two each."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)


def lines(text: str, room: float) -> int:
    """How many lines a wrapped text takes in a column of this width."""
    return sum(max(1, math.ceil(wide(line) / max(room * 1.08, 1))) for line in (text or "").split("\n"))


def fit_rows(sheet: Worksheet, first: int, last: int, wrapped: list[int]) -> None:
    """Set row heights so that the texts wrapped in these columns show whole; some programs do not do it themselves."""
    for row in range(first, last + 1):
        count = max(
            (
                lines(str(sheet.cell(row, c).value or ""), sheet.column_dimensions[get_column_letter(c)].width)
                for c in wrapped
            ),
            default=1,
        )
        sheet.row_dimensions[row].height = 13.5 * min(count, 12) + 1.5


def to_top(sheet: Worksheet, first: int, last: int) -> None:
    """Let all cells of these rows begin at the top, where the first line of a wrapped text stands."""
    for cells in sheet.iter_rows(min_row=first, max_row=last):
        for cell in cells:
            if cell.has_style:
                alignment = copy(cell.alignment)
                alignment.vertical = "top"
                cell.alignment = alignment


PAGE = {True: 240, False: 140}
"""Characters that stand side by side on a page, landscape or not, in type that can still be read."""


def page(sheet: Worksheet, *, rows: str = "", columns: str = "", landscape: bool = True, last: int = 0) -> None:
    """Print set-up, tab colour, no grid lines: as many pages side by side as keep the type readable, the first
    column on each.

    ``last`` is the last column that is printed, all by default.
    """
    sheet.sheet_view.showGridLines = False
    sheet.sheet_properties.tabColor = TABS.get(sheet.title, INPUT_TAB)
    sheet.sheet_properties.pageSetUpPr.fitToPage = True
    sheet.page_setup.orientation = "landscape" if landscape else "portrait"
    sheet.page_setup.paperSize = sheet.PAPERSIZE_A4
    dimensions = sheet.column_dimensions
    letters = [get_column_letter(column) for column in range(1, (last or sheet.max_column) + 1)]
    width = sum(dimensions[letter].width if letter in dimensions else 10 for letter in letters)
    across = math.ceil(width / PAGE[landscape])
    columns = columns or ("A:A" if across > 1 else "")
    sheet.page_setup.fitToWidth, sheet.page_setup.fitToHeight = across, 0
    sheet.page_margins.left = sheet.page_margins.right = 0.4
    sheet.page_margins.top, sheet.page_margins.bottom, sheet.page_margins.footer = 0.6, 0.8, 0.4
    sheet.oddFooter.left.text, sheet.oddFooter.center.text, sheet.oddFooter.right.text = "&F", "&A", "page &P of &N"
    if rows:
        sheet.print_title_rows = rows
    if columns:
        sheet.print_title_cols = columns
