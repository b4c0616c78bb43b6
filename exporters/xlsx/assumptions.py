"""The sheets of what is assumed: scalars, models, GPUs, methods, formats, profiles, curves."""

from __future__ import annotations

from typing import Any

import polars as pl
from openpyxl.formatting.rule import FormulaRule
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter
from openpyxl.workbook import Workbook
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation

from scenario import Book, Parameter, Result
from scenario.exporters.xlsx import style as _style
from scenario.exporters.xlsx.cells import Sheet
from scenario.exporters.xlsx.layout import SPARE, Layout, entity_formula, entity_notes
from scenario.exporters.xlsx.splice import ROW
from scenario.exporters.xlsx.tabled import add_table, heads, widths
from scenario.exporters.xlsx.trees import trees
from scenario.workbooks.form import BY_TITLE, FIRST, POSITIONS, TITLES, EntityTable, Field, Scalar

ABOUT = {
    "models": "Architecture of each model (blue) and what follows from it (black). Edit a value and every "
    "scenario of that model moves.",
    "gpus": "Peak, dense rates of each GPU. Prices are per GPU and hour.",
    "methods": "Every method and stack, with the numbers that formulas choose by. The parameters are on Assumptions.",
    "formats": "Bits per stored value, scales included.",
    "time_models": "How a forward pass is timed.",
    "encoders": "Image encoders (blue), and the tokens and arithmetic of one image of the size on Assumptions (black).",
    "hardware": "Constants of the estimate: fitted efficiencies and fixed times by GPU and engine, with the "
    "error they leave.",
}


def assumptions(book: Book, workbook: Workbook) -> Sheet:
    """Every scalar with value, unit, range, meaning, and where it comes from."""
    sheet = Sheet(workbook.create_sheet("Assumptions"))
    names = list(BY_TITLE["Assumptions"].columns)
    heads(
        sheet,
        "Assumptions",
        "One value each for the whole workbook. A row of Scenarios that gives its own value overrides it.",
        names,
    )
    row = FIRST
    for scalar in book.scalars.values():
        group = (
            "all rows"
            if not scalar.owner
            else f"{'time model' if scalar.owner in book.time_models else 'method'} {scalar.owner}"
        )
        sheet.put(row, 1, group, "scn.meta")
        sheet.put(row, 2, scalar.name, "scn.label")
        sheet.put(row, 3, scalar.value, "scn.input", scalar_format(scalar))
        for column, text in enumerate(
            (scalar.parameter.unit, limits(scalar), scalar.parameter.doc, scalar.origin, origin_of(scalar)), 4
        ):
            sheet.put(row, column, text, "scn.text")
        workbook.defined_names[scalar.name] = DefinedName(scalar.name, attr_text=f"Assumptions!$C${row}")
        validate_scalar(sheet, book, scalar, f"C{row}")
        row += 1
    add_table(sheet, BY_TITLE["Assumptions"].table, names, row - 1)
    widths(sheet, [18, 32, 14, 12, 20, 62, 10, 70])
    _style.fit_rows(sheet.sheet, FIRST, row - 1, [6, 8])
    _style.to_top(sheet.sheet, FIRST, row - 1)
    _style.page(sheet.sheet, rows=f"{FIRST - 1}:{FIRST - 1}")
    return sheet


def scalar_format(scalar: Scalar) -> str:
    """The number format of an assumption: its own, else as a column of that unit."""
    parameter = scalar.parameter
    if parameter.format or parameter.kind not in ("number", "integer", "flag"):
        return parameter.format or "General"
    if parameter.kind != "number":
        return "#,##0"
    return _style.FORMATS.get(parameter.unit) or ("0.00##" if (parameter.high or 1e15) <= 1000 else "#,##0.00##")


def origin_of(scalar: Scalar) -> str:
    """The source of an assumption; of one that only names an entry, where that entry's source stands."""
    titles = {"profile": "Profiles", "model": "Models", "tree": "Trees"}
    if scalar.source or scalar.parameter.kind not in titles:
        return scalar.source
    return (
        "not set; " if scalar.value is None else ""
    ) + f"each one's source stands on the sheet {titles[scalar.parameter.kind]}"


def limits(scalar: Scalar) -> str:
    """The allowed range of a value in words."""
    p = scalar.parameter
    if p.kind == "choice" and p.choices:
        return "one of the list"
    if p.kind in ("model", "profile", "tree", "choice"):
        return {"model": "a model", "profile": "a profile", "tree": "a tree"}.get(p.kind, "a name")
    if p.kind == "flag":
        return "0 or 1"
    low = f"> {p.above:g}" if p.above is not None else f"≥ {p.low:g}" if p.low is not None else ""
    high = f"≤ {p.high:g}" if p.high is not None else ""
    whole = "whole" if p.kind == "integer" else ""
    return ", ".join(part for part in (low, high, whole) if part) or "any number"


def validate_scalar(sheet: Sheet, book: Book, scalar: Scalar, cell: str) -> None:
    validation = validation_for(
        book, scalar.parameter.kind, scalar.name.removeprefix("default_"), scalar.parameter, cell
    )
    if validation is not None:
        sheet.sheet.add_data_validation(validation)
        validation.add(cell)


def validation_for(book: Book, kind: str, name: str, parameter: Any, cell: str = "") -> DataValidation | None:
    """The drop-down or range that keeps a wrong value out of an input cell; ``cell`` is the first of those
    that it is for."""

    def from_sheet(table: str) -> DataValidation:
        last = FIRST + len(book.tables[table].rows) - 1
        return DataValidation(
            type="list",
            formula1=f"'{TITLES[table]}'!$A${FIRST}:$A${last}",
            allow_blank=True,
            showErrorMessage=True,
            errorTitle="Not known",
            error=f"Choose a name from the sheet {TITLES[table]}.",
        )

    tables = {
        "model": "models",
        "gpu": "gpus",
        "method": "methods",
        "weights": "formats",
        "kv": "formats",
        "time_model": "time_models",
        "encoder": "encoders",
    }
    if kind == "model" or name in tables:
        return from_sheet("models" if kind == "model" else tables[name])
    if kind == "profile":
        last = FIRST + max(len(book.vectors.profiles), 1) - 1
        return DataValidation(
            type="list",
            formula1=f"Profiles!$A${FIRST}:$A${last}",
            allow_blank=True,
            showErrorMessage=True,
            errorTitle="Not known",
            error="Choose a profile from the sheet Profiles.",
        )
    if kind == "tree" and book.vectors.trees:
        return DataValidation(
            type="list",
            formula1=f"Trees!$A${FIRST}:$A${FIRST + len(book.vectors.trees) - 1}",
            allow_blank=True,
            showErrorMessage=True,
            errorTitle="Not known",
            error="Choose a tree from the sheet Trees.",
        )
    if kind not in ("number", "integer", "flag") or parameter is None:
        return None
    low, above, high = bounds(parameter)
    whole = kind in ("integer", "flag")
    if above and cell:  # the kinds of limits that a spreadsheet offers do not leave one end out
        tests = [
            f"ISNUMBER({cell})",
            f"{cell}>{low:.15g}",
            *([f"{cell}<={high:.15g}"] if high is not None else []),
            *([f"INT({cell})={cell}"] if whole else []),
        ]
        validation = DataValidation(type="custom", formula1=f"AND({','.join(tests)})", allow_blank=True)
    else:
        validation = DataValidation(
            type="whole" if whole else "decimal",
            operator="between",
            allow_blank=True,
            formula1=f"{-1e15 if low is None else low:.15g}",
            formula2=f"{1e15 if high is None else high:.15g}",
        )
    validation.showErrorMessage = True
    validation.errorTitle, validation.error = "Out of range", f"{in_words(parameter).capitalize()}."
    return validation


def bounds(parameter: Parameter) -> tuple[float | None, bool, float | None]:
    """The lower limit of a number, whether it is left out, and the upper limit."""
    if parameter.kind == "flag":
        return 0, False, 1
    return (parameter.low if parameter.above is None else parameter.above), parameter.above is not None, parameter.high


def in_words(parameter: Parameter) -> str:
    """What a number may be, as a sentence says it."""
    low, above, high = bounds(parameter)
    what = "a whole number" if parameter.kind in ("integer", "flag") else "a number"
    if low is not None and high is not None and not above:
        return f"{what} from {low:,.12g} to {high:,.12g}"
    parts = [f"above {low:,.12g}" if above else f"of at least {low:,.12g}"] if low is not None else []
    return " ".join([what, " and ".join([*parts, *([f"at most {high:,.12g}"] if high is not None else [])])]).strip()


def entity(layout: Layout, workbook: Workbook, table: EntityTable, frame: pl.DataFrame) -> Sheet:
    """A catalog sheet: typed fields in blue, computed ones live."""
    sheet = Sheet(workbook.create_sheet(TITLES[table.name]))
    notes = entity_notes(table)
    names = ["name", "title", *(f.name for f in table.inputs), *(f.name for f in table.columns), *notes]
    heads(sheet, TITLES[table.name], ABOUT[table.name], names)
    formulas = {item.name: entity_formula(layout, table, item) for item in table.columns}
    fixed = table.name in ("methods", "time_models")  # their numbers are how formulas find the methods: not for editing
    for row, (values, computed) in enumerate(zip(table.rows, frame.iter_rows(named=True), strict=True), FIRST):
        sheet.put(row, 1, values["name"], "scn.label")
        sheet.put(row, 2, values["title"], "scn.calc")
        for column, item in enumerate(table.inputs, 3):
            sheet.put(row, column, values[item.name], "scn.calc" if fixed else "scn.input", _style.number_format(item))
        for column, item in enumerate(table.columns, 3 + len(table.inputs)):
            formula = formulas[item.name].replace(ROW, str(row))
            sheet.formula(row, column, formula, computed[item.name], "scn.calc", _style.number_format(item))
        for column, key in enumerate(notes, 3 + len(table.inputs) + len(table.columns)):
            sheet.put(row, column, str(values.get(key) or ""), "scn.meta")
    last = FIRST + len(table.rows) - 1
    if not fixed:
        _validate_entries(sheet, layout.book, table, last)
    first_row = {
        2 + len(table.inputs) + i: formulas[f.name].replace(ROW, str(FIRST)) for i, f in enumerate(table.columns)
    }
    add_table(sheet, BY_TITLE[TITLES[table.name]].table, names, last, first_row)
    _above_entries(sheet, table, len(notes))
    if table.columns:
        paint_overrides(sheet, 3 + len(table.inputs), 2 + len(table.inputs) + len(table.columns), last)
    _style.page(sheet.sheet, rows=f"{FIRST - 1}:{FIRST - 1}", columns="A:A")
    return sheet


def _validate_entries(sheet: Sheet, book: Book, table: EntityTable, last: int) -> None:
    """Keep wrong values out of the blue cells of a catalog sheet, those of its spare rows too."""
    for column, item in enumerate(table.inputs, 3):
        letter = get_column_letter(column)
        parameter = item.parameter
        validation = validation_for(book, parameter.kind, "", parameter, f"{letter}{FIRST}") if parameter else None
        if validation is not None:
            sheet.sheet.add_data_validation(validation)
            validation.add(f"{letter}{FIRST}:{letter}{last + SPARE}")


def _above_entries(sheet: Sheet, table: EntityTable, notes: int) -> None:
    """Units and formulas above the header of a catalog sheet, and the widths of its columns."""
    for row, said in ((FIRST - 3, "unit"), (FIRST - 2, "formula")):
        sheet.put(row, 1, said, "scn.meta")
    for column, item in enumerate((*table.inputs, *table.columns), 3):
        sheet.put(FIRST - 3, column, item.unit, "scn.meta")
        sheet.put(FIRST - 2, column, item.text, "scn.meta")
    longest, titles = (max((len(str(row[key])) for row in table.rows), default=8) for key in ("name", "title"))
    sizes = [max(_style.width(f, 8), 10) for f in (*table.inputs, *table.columns)]
    widths(sheet, [longest + 3.0, min(titles + 2.0, 44), *sizes, *[60.0] * notes])


def paint_overrides(sheet: Sheet, first: int, last: int, last_row: int) -> None:
    """Colour a cell of a computed column once a value is typed over its formula."""
    start, end = get_column_letter(first), get_column_letter(last)
    rule = FormulaRule(
        formula=[f"NOT(_xlfn.ISFORMULA({start}{FIRST}))"], fill=_style._solid(_style.RED_FILL), font=Font(bold=True)
    )
    sheet.sheet.conditional_formatting.add(f"{start}{FIRST}:{end}{last_row}", rule)


STARTS = {"p": 2, "E": 2 + POSITIONS, "a": 3 + 2 * POSITIONS}
"""The columns at which marginal rates, lengths (from 0 drafts) and conditional rates begin on the sheet Profiles."""


def _profile_cell(kind: str, k: int, row: int, dialect: str, given: int) -> str:
    """The formula of a marginal rate, length or conditional rate at position ``k`` of a profile with ``given``
    positions."""

    def at(what: str, position: int) -> str:
        return f"{get_column_letter(STARTS[what] + position - (what != 'E'))}{row}"

    if kind == "E":
        return f"{at('E', k - 1)}+{at('p', k)}"
    if kind == "a" and k > given:
        return at("a", k - 1) if k > 1 else at("p", 1)
    if kind == "a":
        return f"IF({at('p', k - 1)}>0,{at('p', k)}/{at('p', k - 1)},0)" if k > 1 else at("p", 1)
    if dialect == "lengths" and k <= given:
        return f"{at('E', k)}-{at('E', k - 1)}"
    return f"{at('p', k - 1)}*{at('a', k)}" if k > 1 else at("a", 1)


def cited(book: Book, source: str) -> str:
    """A source; the table's own file without its folder, so that a workbook is the same wherever that lies."""
    return book.table.shown_as if source == book.table.source.file else source


def profiles(layout: Layout, workbook: Workbook) -> Sheet:
    """Acceptance profiles in every dialect: what was given is blue, the others follow, live."""
    sheet = Sheet(workbook.create_sheet("Profiles"))
    steps = range(1, POSITIONS + 1)
    names = list(BY_TITLE["Profiles"].columns)
    heads(
        sheet,
        "Acceptance profiles",
        "By draft position: p the marginal rate, a the conditional rate (given that those before were accepted); "
        "E the tokens per round with n drafts, bonus included. Blue as given; past its end the last conditional "
        "rate goes on.",
        names,
    )
    found = list(layout.book.vectors.profiles.values())
    for row, profile in enumerate(found, FIRST):
        sheet.put(row, 1, profile.name, "scn.label")
        typed = {"marginal": "p", "conditional": "a", "lengths": "E"}[profile.given]
        values, given = profile.values or profile.rates, len(profile.rates)
        sheet.put(row, STARTS["E"], 1, "scn.calc", "0.0000")
        for k in steps:
            for kind, shows in (
                ("p", profile.continued[k - 1]),
                ("E", profile.lengths[k]),
                ("a", profile.conditional[k - 1]),
            ):
                column = STARTS[kind] + (k if kind == "E" else k - 1)
                if k <= given and kind == typed:
                    sheet.put(row, column, values[k - 1], "scn.input", "0.0000")
                else:
                    sheet.formula(
                        row, column, _profile_cell(kind, k, row, profile.given, given), shows, "scn.calc", "0.0000"
                    )
        sheet.put(row, len(names) - 2, profile.given, "scn.meta")
        sheet.put(row, len(names) - 1, profile.doc, "scn.meta")
        sheet.put(row, len(names), cited(layout.book, profile.source), "scn.meta")
    if found:
        add_table(sheet, BY_TITLE["Profiles"].table, names, FIRST + len(found) - 1)
    widths(sheet, [28, *[8.0] * (3 * POSITIONS + 1), 12, 40, 50])
    _style.page(sheet.sheet, rows=f"{FIRST - 1}:{FIRST - 1}", columns="A:A")
    return sheet


def curves(layout: Layout, workbook: Workbook) -> Sheet:
    """Measured curves as one long table: linear between points, the nearest slope beyond."""
    sheet = Sheet(workbook.create_sheet("Curves"))
    names = list(BY_TITLE["Curves"].columns)
    heads(
        sheet,
        "Curves",
        "Points of each curve in rising x; between them the curve is linear, beyond them the nearest slope goes on.",
        names,
    )
    row = FIRST
    for curve in layout.book.vectors.curves.values():
        for index, ((x, y), slope) in enumerate(zip(curve.points, curve.slopes, strict=True)):
            sheet.put(row, 1, curve.name, "scn.label")
            sheet.put(row, 2, x, "scn.input")
            sheet.put(row, 3, y, "scn.input")
            start = row - 1 if index == len(curve.points) - 1 else row
            text = f"(C{start + 1}-C{start})/(B{start + 1}-B{start})"
            sheet.formula(row, 4, text, slope, "scn.calc")
            sheet.put(row, 5, curve.doc, "scn.meta")
            sheet.put(row, 6, cited(layout.book, curve.source), "scn.meta")
            row += 1
    add_table(sheet, BY_TITLE["Curves"].table, names, row - 1)
    widths(sheet, [24, 12, 12, 12, 40, 50])
    _style.page(sheet.sheet, rows=f"{FIRST - 1}:{FIRST - 1}")
    return sheet


def all_assumptions(result: Result, layout: Layout, workbook: Workbook) -> list[Sheet]:
    """All the sheets of this module, in order."""
    book = layout.book
    sheets = [assumptions(book, workbook)]
    sheets += [entity(layout, workbook, table, result.entities[name]) for name, table in book.tables.items()]
    sheets.append(profiles(layout, workbook))
    if book.vectors.trees:
        sheets.append(trees(layout, workbook))
    if book.vectors.curves:
        sheets.append(curves(layout, workbook))
    return sheets


__all__ = ["Field", "all_assumptions", "bounds", "in_words", "paint_overrides", "validation_for"]
