"""A difference of two tables as a workbook: plain values, one sheet per part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, BinaryIO

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
from openpyxl.styles import Alignment, Border, Font, PatternFill, Side
from openpyxl.utils import get_column_letter

from scenario.questions import diff_report as report
from scenario.questions.diff import Diff

MOST = 1_000_000
"""Rows of a sheet."""
HEAD = PatternFill("solid", fgColor="1F3864")
RULE = Border(bottom=Side("thin", color="BFBFBF"))
FACE, WIDEST = "Calibri", 70
NUMBER, RELATIVE = "#,##0.00##;-#,##0.00##;0", "+0.0%;-0.0%;0.0%"


def write(found: Diff, stream: BinaryIO) -> None:
    """Write the workbook. Only parts that have something to say get a sheet."""
    book = Workbook(write_only=True)
    _summary(book, found)
    if found.changes:
        _sheet(book, "Inputs", ("input", "old", "new", "rows"), report.input_rows(found), "lrrr")
    for title, rows in (("Appeared", found.appeared), ("Gone", found.gone)):
        if rows:
            names = list(dict.fromkeys(name for row in rows for name in row))
            _sheet(book, title, names, ([row.get(name) for name in names] for row in rows), "l" * len(names))
    if found.movements:
        heads: tuple[str, ...] = ("output", "unit", "rows", "old (mean)", "new (mean)", "change", "relative", "least", "most", "steps between words")
        rows_ = ((m.column, m.unit, m.rows, m.old, m.new, m.change, m.relative, m.least, m.most, report.turns(m)) for m in found.movements)
        _sheet(book, "Outputs", heads, rows_, "llrrrrpppl")
        heads = ("output", "unit", "moved by", "change (mean)", "relative (mean)", "rows moved", "rows turned")
        _sheet(book, "Causes", heads, ((m.column, m.unit, s.label, s.change, s.relative, s.rows, s.turned)
                                       for m in found.movements for s in m.shares), "lllrprr")  # fmt: skip
    if found.moved.height:
        heads = ("id", "output", "old", "new", "change", "relative", "moved by")
        _sheet(book, "By row", heads, report.by_row(found, MOST), "llrrrpl")
    book.save(stream)


def _summary(book: Workbook, found: Diff) -> None:
    sheet = book.create_sheet("Summary")
    _page(sheet)
    sheet.column_dimensions["A"].width = 28
    sheet.column_dimensions["B"].width = WIDEST
    title = WriteOnlyCell(sheet, "What changed")
    title.font = Font(name=FACE, size=16, bold=True, color="1F3864")
    sheet.append([title])
    facts: tuple[tuple[str, Any], ...] = (
        ("old", found.old), ("new", found.new), ("rows in both", found.matched), ("rows that appeared", len(found.appeared)),
        ("rows that went", len(found.gone)), ("inputs that changed", len(found.changes)), ("outputs that moved", len(found.movements)),
        ("how to read it", "Each input is changed alone in the old table; what that moves is its share. The rest is interaction. "
                           "Means are over the rows that moved; relative means against each row's old value."),
        *(("note", note) for note in found.notes),
    )  # fmt: skip
    for number, (name, value) in enumerate(facts, 2):
        label = WriteOnlyCell(sheet, name)
        label.font = Font(name=FACE, bold=True)
        label.alignment = Alignment(vertical="top")
        _append(sheet, number, [label, _cell(sheet, value, "l")])


def _sheet(book: Workbook, title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]], sides: str) -> None:
    sheet = book.create_sheet(title)
    _page(sheet)
    listed = list(rows)
    for index, head in enumerate(heads):
        longest = max([len(head), *(len(report.show(row[index])) for row in listed[:500])])
        sheet.column_dimensions[get_column_letter(index + 1)].width = min(longest + 4, WIDEST)
    sheet.freeze_panes = "B2"
    sheet.print_title_rows = "1:1"
    sheet.auto_filter.ref = f"A1:{get_column_letter(len(heads))}{len(listed) + 1}"
    top = []
    for head, side in zip(heads, sides, strict=True):
        cell = WriteOnlyCell(sheet, head)
        cell.font, cell.fill = Font(name=FACE, bold=True, color="FFFFFF"), HEAD
        cell.alignment = Alignment(horizontal="left" if side == "l" else "right", vertical="center", indent=1)
        top.append(cell)
    sheet.append(top)
    for number, row in enumerate(listed, 2):
        _append(sheet, number, [_cell(sheet, value, side) for value, side in zip(row, sides, strict=True)])


def _append(sheet: Any, number: int, cells: list[Any]) -> None:
    """A row as high as its longest text needs; programs do not see to that by themselves."""
    longest = max(len(cell.value) if isinstance(cell.value, str) else 0 for cell in cells)
    if longest > WIDEST - 5:
        sheet.row_dimensions[number].height = 15 * min(longest // (WIDEST - 10) + 1, 27)
    sheet.append(cells)


def _page(sheet: Any) -> None:
    sheet.sheet_view.showGridLines = False
    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.fitToHeight = 0
    sheet.sheet_properties.pageSetUpPr.fitToPage = True
    sheet.oddFooter.center.text = "&A, page &P of &N"


def _cell(sheet: Any, value: Any, side: str) -> Any:
    if isinstance(value, str):
        cell = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("", value)[:32_000])
        cell.data_type = "s"  # a text that begins with = is no formula
    else:
        cell = WriteOnlyCell(sheet, value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            whole = value == int(value) if abs(value) < 1e15 else False
            cell.number_format = RELATIVE if side == "p" else "#,##0" if whole else NUMBER if abs(value) >= 0.01 else "0.000E+00"
    cell.font, cell.border = Font(name=FACE), RULE
    long = isinstance(value, str) and len(value) > WIDEST - 5
    cell.alignment = Alignment(horizontal="left" if side == "l" else "right", vertical="top", wrap_text=long, indent=1)
    return cell
