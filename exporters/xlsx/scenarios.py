"""The Scenarios sheet: bands, units, formula text, header; its rows are spliced in by
:mod:`scenario.exporters.xlsx.splice`."""

from __future__ import annotations

import polars as pl
from openpyxl.comments import Comment
from openpyxl.formatting.rule import FormulaRule
from openpyxl.styles import Font
from openpyxl.utils import get_column_letter
from openpyxl.workbook import Workbook

from scenario import Result
from scenario.exporters.xlsx import style as _style
from scenario.exporters.xlsx.answer import within_limits
from scenario.exporters.xlsx.assumptions import validation_for
from scenario.exporters.xlsx.cells import Sheet
from scenario.exporters.xlsx.layout import Layout, SheetColumn
from scenario.exporters.xlsx.splice import ROW, ColumnXml
from scenario.exporters.xlsx.tabled import add_table, widths
from scenario.workbooks.form import ANSWER, BY_TITLE, FIRST, KEY


def scenarios(
    result: Result, layout: Layout, workbook: Workbook, added: dict[str, str]
) -> tuple[Sheet, list[ColumnXml]]:
    """The sheet without its rows, and the recipe for them. ``added`` are an analyst's own columns: name -> letter."""
    sheet = Sheet(workbook.create_sheet("Scenarios"))
    sheet.put(1, 1, layout.book.table.title, "scn.title")
    columns = list(layout.columns.values())
    recipe, sizes = [], []
    for index, column in enumerate(columns, 1):
        begins = index == 1 or columns[index - 2].band != column.band
        recipe.append(_head(sheet, index, column, begins))
        sizes.append(_width(result, column))
    for index, (name, letter) in enumerate(added.items(), len(columns) + 1):
        sheet.put(2, index, "ADDED" if index == len(columns) + 1 else None, "scn.band.input")
        sheet.put(5, index, name, "scn.head")
        recipe.append(ColumnXml(name, letter, 0, "", "xml"))
        sizes.append(max(len(name) + 3.0, 12.0))
    sheet.sheet.row_dimensions[5].height = 40
    widths(sheet, sizes)
    _validations(sheet, layout)
    _paint(sheet, layout, columns)
    first_calc = next(i for i, column in enumerate(columns, 1) if column.band != "INPUT")
    frozen = min(first_calc, 6)  # past id, model, GPU, method and batch a frozen pane leaves no room to scroll
    sheet.sheet.freeze_panes = f"{get_column_letter(frozen)}{FIRST}"
    formulas = {i: column.formula.replace(ROW, str(FIRST)) for i, column in enumerate(columns) if column.formula}
    add_table(sheet, BY_TITLE["Scenarios"].table, [*(column.name for column in columns), *added], layout.last, formulas)
    for column in columns:
        if column.band in ("MORE INPUT", "APPLIED", "LOOKUP", "CALC"):  # the working can be folded away
            sheet.sheet.column_dimensions[column.letter].outlineLevel = 1
    sheet.sheet.sheet_properties.outlinePr.summaryRight = False
    shown = [index for index, column in enumerate(columns, 1) if column.band in ("INPUT", "RESULT")]
    _style.page(sheet.sheet, rows="2:5", columns="A:A", last=shown[-1])
    sheet.sheet.print_area = f"A1:{get_column_letter(shown[-1])}{layout.last}"
    return sheet, recipe


def _head(sheet: Sheet, index: int, column: SheetColumn, begins: bool) -> ColumnXml:
    """Write what stands above the rows of a column; gives the recipe for its cells. ``begins``: a band begins here."""
    item = column.item
    sheet.put(2, index, column.band if begins else None, f"scn.band.{column.band.lower().replace(' ', '')}")
    sheet.put(3, index, item.unit if item else "", "scn.meta")
    sheet.put(4, index, _text(column), "scn.meta")
    sheet.put(5, index, column.name, "scn.head").comment = _comment(column)
    style = {"INPUT": "scn.input", "MORE INPUT": "scn.input", "LOOKUP": "scn.link"}.get(column.band, "scn.calc")
    dummy = sheet.put(FIRST, index, None, style, _style.number_format(item) if item else _style.WITHIN if column.name == ANSWER else "General")
    kind = item.facts.type if item else "text" if column.name == KEY else "number"
    del sheet.sheet._cells[FIRST, index]  # it was only there to register the style
    return ColumnXml(column.name, column.letter, dummy.style_id, column.formula, kind)


def _width(result: Result, column: SheetColumn) -> float:
    item = column.item
    if item is None:
        return 9.5
    longest = 12
    if item.facts.type == "text" and result.full.height:
        longest = result.full[item.name].str.len_chars().max() or 8  # type: ignore[assignment]
    return _style.width(item, longest)


def shown_frame(result: Result, layout: Layout) -> pl.DataFrame:
    """The computed rows with the workbook's helper columns beside them."""
    frame = result.full
    extra = []
    for column in layout.columns.values():
        if column.item is None and column.name not in (KEY, ANSWER):
            by = column.name.removesuffix("_row")
            table = next(
                item.lookup.table for item in layout.book.fields.values() if item.lookup and item.lookup.key == by
            )
            codes = pl.col(by).cast(pl.Enum(layout.book.tables[table].names)).to_physical().cast(pl.Float64) + 1
            extra.append(codes.alias(column.name))
    parts = [_as_text(frame, name) for name in layout.key]
    key = pl.concat_str(parts, separator="|") if parts else pl.lit("")
    return frame.with_columns(*extra, key.alias(KEY), within_limits(frame).alias(ANSWER))


def _as_text(frame: pl.DataFrame, name: str) -> pl.Expr:
    """A value as ``&`` joins it: a blank is nothing, a whole number has no decimals."""
    value = pl.col(name)
    if frame.schema[name] == pl.String:
        return value.fill_null("")
    whole = value.cast(pl.Int64, strict=False).cast(pl.String)
    digits = value.round_sig_figs(15).cast(pl.String)  # what a spreadsheet keeps when it joins a number to a text
    return pl.when(value == value.floor()).then(whole).otherwise(digits).fill_null("")


def _text(column: SheetColumn) -> str:
    if column.item is None:
        return column.doc
    if column.item.lookup is not None:
        return column.item.text
    return column.item.text if column.formula else "input"


def _comment(column: SheetColumn) -> Comment:
    item = column.item
    lines = [column.name + (f" [{item.unit}]" if item and item.unit else "")]
    if item:
        lines += [item.doc] if item.doc else []
        if column.formula:
            lines.append(f"= {item.text}" if item.lookup is None else f"from {item.text}")
        lines += [f"Source: {item.source}"] if item.source else []
    else:
        lines.append(column.doc)
    comment = Comment("\n".join(lines)[:900], "scenario")
    comment.width, comment.height = 360, 60 + 16 * sum(1 + len(line) // 60 for line in lines)
    return comment


def _validations(sheet: Sheet, layout: Layout) -> None:
    for column in layout.columns.values():
        if column.formula or column.item is None:
            continue
        parameter = column.item.parameter
        kind = parameter.kind if parameter else "text"
        validation = validation_for(
            layout.book, kind, column.name.removesuffix("_given"), parameter, f"{column.letter}{FIRST}"
        )
        if validation is not None:
            validation.allow_blank = column.item.facts.blank
            sheet.sheet.add_data_validation(validation)
            validation.add(f"{column.letter}{FIRST}:{column.letter}{layout.last}")


def _paint(sheet: Sheet, layout: Layout, columns: list[SheetColumn]) -> None:
    for first, last in layout.computed_runs:
        area = f"{first}{FIRST}:{last}{layout.last}"
        over = FormulaRule(
            formula=[f"NOT(_xlfn.ISFORMULA({first}{FIRST}))"], fill=_style._solid(_style.RED_FILL), font=Font(bold=True)
        )
        sheet.sheet.conditional_formatting.add(area, over)
    fits = layout.columns["fits"].letter
    whole = f"A{FIRST}:{columns[-1].letter}{layout.last}"
    sheet.sheet.conditional_formatting.add(
        whole, FormulaRule(formula=[f"${fits}{FIRST}=FALSE"], font=Font(color="9AA1AB", italic=True))
    )
