"""README, Formulas and Source: what the workbook is, how it computes, and what it was made from."""

from __future__ import annotations

from typing import Any

from openpyxl.formatting.rule import FormulaRule
from openpyxl.styles import Alignment, Font
from openpyxl.workbook import Workbook
from openpyxl.worksheet.hyperlink import Hyperlink
from openpyxl.worksheet.worksheet import Worksheet

import scenario
from scenario import Result
from scenario.exporters.xlsx import style as _style
from scenario.exporters.xlsx.cells import Sheet
from scenario.exporters.xlsx.checks import OK
from scenario.exporters.xlsx.layout import Layout, entity_formula
from scenario.exporters.xlsx.splice import ROW
from scenario.exporters.xlsx.tabled import add_table, heads, widths
from scenario.workbooks.form import ALL_CHECKS, BY_TITLE, FIRST, PIECE, SOURCE_FIRST, TITLES, Back
from scenario.workbooks.form.witness import Witness


def readme(result: Result, layout: Layout, workbook: Workbook) -> Sheet:
    """What the workbook is: the page after the answer."""
    table = result.book.table
    sheet = Sheet(workbook.create_sheet("README", int("Answer" in workbook.sheetnames)))
    sheet.put(1, 1, table.title, "scn.title")
    sheet.put(
        2,
        1,
        "How fast each model decodes on each GPU by each method, and what a million tokens cost. Every black "
        "cell is a live formula.",
        "scn.subtitle",
    )
    sheet.put(4, 1, "Status", "scn.label")
    status = sheet.formula(4, 2, ALL_CHECKS, OK, "scn.check")
    good, bad = _style._solid("C6EFCE"), _style._solid(_style.RED_FILL)
    sheet.sheet.conditional_formatting.add(
        "B4", FormulaRule(formula=[f'$B$4="{OK}"'], fill=good, font=Font(color="006100", bold=True))
    )
    sheet.sheet.conditional_formatting.add(
        "B4", FormulaRule(formula=[f'$B$4<>"{OK}"'], fill=bad, font=Font(color="9C0006", bold=True))
    )
    status.alignment = Alignment(horizontal="left")
    row = 6
    sheet.put(row, 1, "Sheets", "scn.heading")
    for title in workbook.sheetnames:
        if title in BY_TITLE and title != "README":
            row += 1
            cell = sheet.put(row, 1, title, "scn.url")
            cell.hyperlink = Hyperlink(ref=cell.coordinate, location=f"'{title}'!A1", display=title)
            cell.style = "scn.url"
            sheet.put(row, 2, BY_TITLE[title].about, "scn.text")
    row += 2
    sheet.put(row, 1, "Colours", "scn.heading")
    legend = [
        ("scn.input", "blue on yellow", "an input: change it"),
        ("scn.link", "green", "looked up on another sheet"),
        ("scn.calc", "black", "a formula: leave it"),
        ("", "red fill", "a value typed over a formula"),
    ]
    for style, name, meaning in legend:
        row += 1
        cell = sheet.put(row, 1, name, style)
        if not style:
            cell.fill = bad
        sheet.put(row, 2, meaning, "scn.text")
    row += 2
    sheet.put(row, 1, "How to read the numbers", "scn.heading")
    for text in _notes(result):
        row += 1
        sheet.put(row, 1, "•", "scn.text")
        sheet.put(row, 2, text, "scn.text")
    row += 2
    sheet.put(row, 1, "Where it comes from", "scn.heading")
    for name, value in _provenance(result):
        row += 1
        sheet.put(row, 1, name, "scn.label")
        sheet.put(row, 2, value, "scn.text").alignment = Alignment(horizontal="left", vertical="top", wrap_text=True)
    widths(sheet, [22, 100])
    _style.fit_rows(sheet.sheet, 6, row, [2])
    _style.page(sheet.sheet, landscape=False)
    return sheet


def _notes(result: Result) -> list[str]:
    table = result.book.table
    notes = []
    if table.time_model == "bound":
        notes.append(
            "Times are a roofline bound: no server is faster, real ones are slower. mfu and mbu below 1 bring "
            "it nearer to what you measure."
        )
    notes += [
        "A row that does not fit in memory keeps its sizes and pass times, and shows no TPOT, throughput, "
        "speedup or price; its status says why.",
        "A blank input means that the default on Assumptions applies; the APPLIED columns of Scenarios show what does.",
        "What cannot be computed is blank. Numbers are rounded by their format only.",
    ]
    if result.book.time_models == ["bound"]:
        notes.append(
            "gpus pools memory, bandwidth and arithmetic of several GPUs ideally; communication is not counted."
        )
    else:
        notes += [
            "basis says what the times of a row rest on: the bound, an estimate with shipped or calibrated "
            "constants, or measured points; "
            "extrapolated ones are outside what was measured, and nothing says how far off they are.",
            "low and high: nine of ten measurements that the constants were not fitted to lie between. A method "
            "is better only when its "
            "speedup is above 1 at the low end, too. What an estimate leaves out: docs/estimate.md.",
        ]
    if table.where is not None:
        notes.append(
            f"where: {table.where.text} was applied when this file was written ({result.left_out:,} rows left "
            f"out); it does not act in here."
        )
    if table.sort:
        notes.append(
            "Rows were sorted by " + ", ".join(name for name, _ in table.sort) + " when this file was written."
        )
    return notes


def _provenance(result: Result) -> list[tuple[str, str | int]]:
    table = result.book.table
    found: list[tuple[str, str | int]] = [
        ("table", table.shown_as),
        ("sha256", table.sha256),
        ("time model", table.time_model),
        ("rows", result.full.height),
        ("written by", f"scenario {scenario.__version__}"),
        ("made by", f"scenario run {table.shown_as} -o costs.xlsx"),
        ("feed it back", "scenario run costs.xlsx -o new.xlsx"),
    ]
    others = [f"{name} ({origin})" for name, origin in result.book.plugins if origin != "built in"]
    if others:
        found.append(("plugins", ", ".join(others)))
    return found


def source(result: Result, workbook: Workbook) -> Sheet:
    """The table as text, without what stands on the other sheets' cells: rows."""
    sheet = Sheet(workbook.create_sheet("Source"))
    sheet.put(1, 1, "Source", "scn.title")
    sheet.put(
        2,
        1,
        "The table that this workbook was made from, without its rows. What stands in cells on the other sheets "
        "counts before it.",
        "scn.subtitle",
    )
    for row, line in enumerate(result.source_text().split("\n"), SOURCE_FIRST):
        _source_line(sheet, row, line)
    widths(sheet, [120])
    _style.page(sheet.sheet)
    return sheet


def _source_line(sheet: Sheet, row: int, line: str) -> None:
    sheet.put(row, 1, line[:PIECE] or None)
    for column, start in enumerate(range(PIECE, len(line), PIECE), 2):  # more than a cell holds
        sheet.put(row, column, line[start : start + PIECE])
    sheet.sheet.cell(row, 1).font = Font(name="Consolas", size=9)


def witness(workbook: Workbook, layout: Layout, source: Sheet, choices: dict[str, str]) -> None:
    """Below the table's text: what stands on each sheet, so that what somebody adds to it can be told when it
    comes back.

    ``choices`` are the cells of Summary that choose what it shows, and the inputs that they stand for.
    """
    first = source.sheet.max_row + 2
    source.sheet.print_area = f"A1:A{first - 2}"
    for row, sheet in enumerate((sheet for sheet in workbook.worksheets if sheet.title in BY_TITLE), first):
        _source_line(source, row, _seen(sheet, layout, choices).line())
        source.sheet.cell(row, 1).font = Font(name="Consolas", size=6, color=_style.GREY)
        source.sheet.cell(row, 1).alignment = Alignment(horizontal="fill")  # no further than its cell


def _seen(sheet: Worksheet, layout: Layout, choices: dict[str, str]) -> Witness:
    """What stands on a sheet."""
    cells = [cell for line in sheet.iter_rows() for cell in line if cell.value is not None or cell.comment]
    found = Witness(sheet.title, sheet.max_column, comments=[cell.coordinate for cell in cells if cell.comment],
                    drawings=len(sheet._charts) + len(sheet._images))  # fmt: skip
    if sheet.title == "Scenarios":
        found.columns = list(layout.columns)
    _note_cells(found, sheet, cells, layout, choices)
    if BY_TITLE[sheet.title].returns:
        found.names = list(dict.fromkeys(str(cell.value) for cell in sheet["A"][FIRST - 1 :] if cell.value is not None))
    return found


def _note_cells(found: Witness, sheet: Worksheet, cells: list[Any], layout: Layout, choices: dict[str, str]) -> None:
    """Note what the cells of a sheet say, so far as its reader does not tell of them."""
    back = BY_TITLE[sheet.title].back
    if back is Back.CHOICES:
        found.texts = [Witness.digest(cell.value) for cell in cells if cell.value is not None and cell.data_type != "f"]
        found.formulas = [cell.coordinate for cell in cells if cell.data_type == "f"]
        found.choices = choices if sheet.title == "Summary" else {}
        found.body = FIRST if sheet.title in layout.helpers else 0  # its rows are put in later
    elif back is Back.CELLS:
        found.read, found.texts = True, [Witness.digest(cell.value) for cell in cells if cell.data_type == "s"]


def formulas(layout: Layout, workbook: Workbook) -> Sheet:
    """Every column: kind, unit, formula in the language, formula of the first row, meaning, source."""
    sheet = Sheet(workbook.create_sheet("Formulas"))
    names = list(BY_TITLE["Formulas"].columns)
    heads(
        sheet,
        "Formulas",
        "The formula column is what the engine computes; the next one is the same in spreadsheet terms.",
        names,
    )
    row = FIRST
    for column in layout.columns.values():
        item = column.item
        text = "" if item is None or not column.formula else item.text
        values = [
            "Scenarios",
            column.name,
            column.band.lower() if column.formula else "input",
            item.unit if item else "",
            text,
            "=" + column.formula.replace(ROW, str(FIRST)) if column.formula else "",
            _style.number_format(item) if item else "General",
            (item.doc if item else column.doc),
            item.source if item else "",
        ]
        row = _formula_row(sheet, row, values)
    for title, beside in layout.helpers.items():
        for column in beside.values():
            helper = column.item
            assert helper is not None
            row = _formula_row(
                sheet,
                row,
                [
                    title,
                    column.name,
                    "calc",
                    helper.unit,
                    helper.text,
                    "=" + column.formula.replace(ROW, str(FIRST)),
                    _style.number_format(helper),
                    helper.doc,
                    helper.source,
                ],
            )
    for name, table in layout.book.tables.items():
        for item in table.columns:
            values = [
                TITLES[name],
                item.name,
                "calc",
                item.unit,
                item.text,
                "=" + entity_formula(layout, table, item).replace(ROW, str(FIRST)),
                _style.number_format(item),
                item.doc,
                item.source,
            ]
            row = _formula_row(sheet, row, values)
    add_table(sheet, BY_TITLE["Formulas"].table, names, row - 1)
    widths(sheet, [12, 28, 10, 13, 60, 80, 18, 50, 40])
    _style.fit_rows(sheet.sheet, FIRST, row - 1, [5, 6, 8, 9])
    _style.to_top(sheet.sheet, FIRST, row - 1)
    _style.page(sheet.sheet, rows=f"{FIRST - 1}:{FIRST - 1}")
    return sheet


def _formula_row(sheet: Sheet, row: int, values: list[str]) -> int:
    for column, value in enumerate(values, 1):
        sheet.put(row, column, value, "scn.label" if column == 2 else "scn.text")
    return row + 1
