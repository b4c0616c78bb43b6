"""The Summary of a table whose summary lists its scenarios: metrics down, scenarios across, both from drop-downs. Live.

Every metric of every scenario is worked out on the sheet Lists, from the rows of Scenarios that it reads; Summary shows
those that are chosen. Texts join numbers with FIXED, which is alike in every locale, as TEXT is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from openpyxl.formatting.rule import Rule
from openpyxl.styles import Alignment, Border, Font, Side
from openpyxl.styles.differential import DifferentialStyle
from openpyxl.styles.numbers import NumberFormat
from openpyxl.utils import get_column_letter
from openpyxl.workbook import Workbook
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.hyperlink import Hyperlink

from scenario import Result, compile_excel
from scenario.exporters.xlsx import style as _style
from scenario.exporters.xlsx.assumptions import scalar_format
from scenario.exporters.xlsx.cells import Sheet
from scenario.exporters.xlsx.layout import Layout
from scenario.exporters.xlsx.tabled import widths
from scenario.workbooks.form import (
    CHOICE_OF_COLUMN,
    CHOICE_OF_ROW,
    FIRST,
    LISTS_HEAD,
    NO_FIT,
    NO_ROW,
    Line,
    Node,
    Shown,
    SummaryValues,
    SummaryView,
    Text,
)

HEAD = LISTS_HEAD
LITERAL = 200
"""Characters of a text that stand in one pair of quotes; a formula takes 255."""
FIRST_FORMAT = 200
"""The numbers by which formats of conditional formats are told apart; below 164 are a spreadsheet program's own."""


@dataclass
class _Cells:
    """The formulas of a summary's cells, and what they show at first; ``places`` are the cells of Lists that say
    where each row stands in Scenarios."""

    values: SummaryValues
    layout: Layout
    places: dict[str, str] = field(default_factory=dict)

    def reference(self, name: str, row: str) -> str:
        """A name as the formula of a cell refers to it."""
        if name in self.layout.book.scalars:
            return name
        for sheet, beside in self.layout.helpers.items():
            if name in beside:
                letter = beside[name].letter
                return f"INDEX('{sheet}'!${letter}${FIRST}:${letter}${self.layout.last},{self.places[row]})"
        return f"INDEX({self.layout.span(name)},{self.places[row]})"

    def node(self, node: Node, row: str) -> str:
        """A formula over the columns of a row."""
        layout = self.layout
        return compile_excel(node, lambda name: self.reference(name, row), layout.vector_range, layout.empty)

    def text(self, text: Text) -> str:
        """A template as joined pieces."""
        parts: list[str] = []
        for piece in text:
            if piece.node is None:
                parts += quoted(piece.text)
                continue
            value = self.node(piece.node, piece.row)
            if piece.digits is not None and piece.node.facts.type == "number":
                value = f"FIXED({value},{piece.digits},{'FALSE' if piece.thousands else 'TRUE'})"
                parts.append(f'IFERROR({value},"")' if piece.node.facts.blank else value)
            else:
                parts.append(f"({value})")
        whole = "&".join(parts) + ('&""' if len(parts) == 1 and not parts[0].startswith('"') else "")
        return self.guarded(whole, [piece.row for piece in text if piece.node is not None]) or '""'

    def guarded(self, formula: str, rows: list[str]) -> str:
        """A formula that says so where one of the rows that it reads is gone."""
        for row in dict.fromkeys(row for row in rows if row):
            formula = f'IF({self.places[row]}="","{NO_ROW}",{formula})'
        return formula

    def cell(self, cell: Shown) -> str:
        """What one metric is in one scenario."""
        if cell.node is None:
            formula = self.text(cell.text)
        else:
            formula = self.node(cell.node, cell.row)
            if cell.node.facts.blank:
                fits = f"INDEX({self.layout.span('fits')},{self.places[cell.row]})"
                formula = f'IF({formula}="",IF({fits}=FALSE,"{NO_FIT}",""),{formula})'
        for test, said in reversed(cell.when):
            formula = f"IF(({self.node(test, cell.row)})=TRUE,{self.text(said)},{formula})"
        return self.guarded(formula, [cell.row])

    def format(self, cell: Shown) -> str:
        """The number format of a cell: its own, else the column's with its unit."""
        if cell.format or cell.node is None:
            return cell.format or "General"
        item = self.layout.book.fields.get(cell.field)
        if item is None:
            return "#,##0.00##" if cell.node.facts.type == "number" else "General"
        found = _style.number_format(item)
        told = '"' in found or item.unit in ("", "x", "%") or item.unit.startswith("$") or found == "General"
        return found if told else ";".join(f'{section}" {item.unit}"' for section in found.split(";"))


def quoted(text: str) -> list[str]:
    """A text as a formula writes it, in pieces that a formula takes."""
    pieces = [text[start : start + LITERAL] for start in range(0, len(text), LITERAL)]
    return ['"' + piece.replace('"', '""') + '"' for piece in pieces]


def summary_table(result: Result, layout: Layout, workbook: Workbook, view: SummaryView) -> list[Sheet]:
    """The sheets Summary and Lists."""
    sheet, lists = Sheet(workbook.create_sheet("Summary")), Sheet(workbook.create_sheet("Lists"))
    values = result.summary
    assert values is not None  # there is a view of it
    cells = _Cells(values, layout)
    lines = [line for line in view.lines if not line.heading]
    there = cells.values.there  # a scenario that where leaves out is offered, but not shown at first
    shown = [index for index, (row, _) in enumerate(view.columns) if there(row)] or [0]
    _rows_found(result, view, lists, cells, HEAD + len(lines) + 3)
    _all_metrics(result, view, lists, cells, lines)
    sheet.put(1, 1, result.book.table.title, "scn.title")
    about = view.about or "The names of metrics and scenarios are drop-downs: choose what to show."
    sheet.put(2, 1, about, "scn.subtitle")
    top = _top(result, view, sheet, len(shown)) + 1
    _page_of_metrics(result, view, sheet, cells, lines, shown, top)
    _below(result, view, sheet, cells, top + 1 + sum(not line.extra for line in view.lines), len(shown))
    sheet.sheet.freeze_panes = f"B{top + 1}"
    _style.page(sheet.sheet, landscape=len(shown) > 3)
    sheet.sheet.page_setup.fitToWidth, sheet.sheet.page_setup.fitToHeight = 1, 1 if len(view.lines) < 60 else 0
    sheet.sheet.print_title_cols = None
    _style.page(lists.sheet)
    return [sheet, lists]


def _rows_found(result: Result, view: SummaryView, lists: Sheet, cells: _Cells, top: int) -> None:
    """Where each row that the summary reads stands in Scenarios."""
    lists.put(top, 1, "Rows of Scenarios", "scn.heading")
    names = [row for row, _ in view.columns] + [row for _, row in view.nodes]
    ids = {name: float(at) for at, name in enumerate(result.full["id"].to_list(), 1)}
    for at, name in enumerate(dict.fromkeys(name for name in names if name), top + 1):
        lists.put(at, 1, name, "scn.meta")
        lists.formula(at, 2, f'IFERROR(MATCH($A{at},{cells.layout.span("id")},0),"")', ids.get(name), "scn.meta", "0")
        cells.places[name] = f"Lists!$B${at}"


def _all_metrics(result: Result, view: SummaryView, lists: Sheet, cells: _Cells, lines: list[Line]) -> None:
    """Every metric of every scenario."""
    values = cells.values
    lists.put(1, 1, "What the Summary's drop-downs offer", "scn.title")
    lists.put(2, 1, "Every metric of every scenario; Summary shows those that are chosen there.", "scn.subtitle")
    lists.put(HEAD, 1, "metric", "scn.head")
    for column, (_, title) in enumerate(view.columns, 2):
        lists.put(HEAD, column, title, "scn.head")
    for row, line in enumerate(lines, HEAD + 1):
        if any(piece.node is not None for piece in line.title):
            lists.formula(row, 1, cells.text(line.title), values.text(line.title), "scn.label")
        else:
            lists.put(row, 1, values.text(line.title), "scn.label")
        for column, cell in enumerate(line.cells, 2):
            lists.formula(row, column, cells.cell(cell), values.cell(cell), "scn.calc", cells.format(cell))
    widths(lists, [44.0, *[26.0] * len(view.columns)])
    lists.sheet.freeze_panes = f"B{HEAD + 1}"


def _top(result: Result, view: SummaryView, sheet: Sheet, across: int) -> int:
    """The assumptions above the table, read from where they are changed; gives the last row that they take."""
    if not view.top:
        return 2
    cell = sheet.put(3, 1, "Assumptions ›", "scn.url")
    cell.hyperlink = Hyperlink(ref="A3", location="'Assumptions'!A1", display="Assumptions ›")
    cell.style = "scn.url"
    pairs = 1 + (across - 1) // 2
    row = 3
    for index, (name, label) in enumerate(view.top):
        scalar = result.book.scalars[name]
        row, column = 4 + index // pairs, 1 + 2 * (index % pairs)
        sheet.put(row, column, label, "scn.label").alignment = Alignment(horizontal="left" if column == 1 else "right")
        found = sheet.formula(
            row, column + 1, f'IF({name}="","",{name})', scalar.value, "scn.link", scalar_format(scalar)
        )
        found.alignment = Alignment(horizontal="center")
    return row


def _page_of_metrics(
    result: Result, view: SummaryView, sheet: Sheet, cells: _Cells, lines: list[Line], shown: list[int], top: int
) -> None:
    """The table itself: titles and scenarios chosen by drop-downs, and what Lists has for both."""
    values = cells.values
    last_line, letters = HEAD + len(lines), [get_column_letter(2 + index) for index in range(len(view.columns))]
    titles, heads = f"Lists!$A${HEAD + 1}:$A${last_line}", f"Lists!$B${HEAD}:${letters[-1]}${HEAD}"
    matrix = f"Lists!$B${HEAD + 1}:${letters[-1]}${last_line}"
    sheet.put(top, 1, "", "scn.head")
    across = [view.chosen_columns.get(index, index) for index in shown]
    for column, index in enumerate(across, 2):
        head = sheet.put(top, column, view.columns[index][1], "scn.head")
        head.alignment = Alignment(horizontal="center", vertical="center", wrap_text=True)
    sheet.sheet.row_dimensions[top].height = 24
    row, place = top, HEAD
    longest, texts = 10, dict[int, int]()
    for line in view.lines:
        place += not line.heading
        if line.extra:
            continue
        row += 1
        if line.heading:
            _band(sheet, row, values.text(line.title), len(shown) + 1)
            continue
        other = view.chosen_lines.get(place - HEAD - 1, place - HEAD - 1)
        line, title = lines[other], values.text(lines[other].title)
        longest = max(longest, _style.wide(title))
        sheet.formula(row, 1, f"Lists!$A${HEAD + 1 + other}", title, "scn.label").border = _LINE
        for column, index in enumerate(across, 2):
            letter = get_column_letter(column)
            text = f'IFERROR(INDEX({matrix},MATCH($A{row},{titles},0),MATCH({letter}${top},{heads},0)),"")'
            cell, value = line.cells[index], values.cell(line.cells[index])
            found = sheet.formula(row, column, text, value, "scn.calc", cells.format(cell))
            found.alignment = Alignment(horizontal="center", vertical="center", wrap_text=isinstance(value, str))
            texts[row] = max(texts.get(row, 0), _style.wide(value) if isinstance(value, str) else 0)
    _offer(sheet, f"B{top}:{get_column_letter(len(shown) + 1)}{top}", heads)
    _offer(sheet, f"A{top + 1}:A{row}", titles)
    _formats(view, sheet, cells, lines, f"B{top + 1}:{get_column_letter(len(shown) + 1)}{row}", top)
    wide = min(max(max(texts.values(), default=0) * 1.02 + 2, 18.0), 34.0)
    for number, most in texts.items():
        sheet.sheet.row_dimensions[number].height = 13.0 * _style.lines("x" * most, wide) + 5
    widths(sheet, [min(longest * 1.12 + 2, 60.0), *[wide] * len(shown)])


def choices(result: Result, view: SummaryView) -> dict[str, str]:
    """The cells that choose scenarios and metrics, and what each stands for: ``column`` and its id, ``row`` and its number."""
    values = result.summary
    assert values is not None  # there is a view of it
    shown = [name for name, _ in view.columns if values.there(name)] or [view.columns[0][0]]
    top = _top_rows(view, len(shown)) + 1
    found = {f"{get_column_letter(column)}{top}": f"{CHOICE_OF_COLUMN}{name}" for column, name in enumerate(shown, 2)}
    place = 0
    for row, line in enumerate((line for line in view.lines if not line.extra), top + 1):
        if not line.heading:
            place += 1
            found[f"A{row}"] = f"{CHOICE_OF_ROW}{place}"
    return found


def _top_rows(view: SummaryView, across: int) -> int:
    """The last row that the assumptions above the table take."""
    return 3 + -(-len(view.top) // (1 + (across - 1) // 2)) if view.top else 2


_LINE = Border(bottom=Side(style="hair", color="C9CDD3"))


def _band(sheet: Sheet, row: int, title: str, across: int) -> None:
    """A heading between metrics."""
    for column in range(1, across + 1):
        sheet.put(row, column, title if column == 1 else None, "scn.band.calc")
    sheet.sheet.cell(row, 1).font = Font(name="Calibri", size=10, bold=True, color=_style.NAVY)
    sheet.sheet.row_dimensions[row].height = 18


def _offer(sheet: Sheet, area: str, source: str) -> None:
    """A drop-down; what is not in the list is refused."""
    validation = DataValidation(type="list", formula1=source, allow_blank=True, showErrorMessage=True)
    validation.errorTitle, validation.error = "Not known", "Choose from the list, which stands on the sheet Lists."
    sheet.sheet.add_data_validation(validation)
    validation.add(area)


def _formats(view: SummaryView, sheet: Sheet, cells: _Cells, lines: list[Line], area: str, top: int) -> None:
    """Let number formats follow the metric that is chosen in a line."""
    rules: dict[str, list[str]] = {}
    for place, line in enumerate(lines, HEAD + 1):
        formats = [cells.format(cell) for cell in line.cells]
        for index, code in enumerate(formats):
            test = f"$A{top + 1}=Lists!$A${place}"
            if len(set(formats)) > 1:
                test = f"AND({test},B${top}=Lists!${get_column_letter(2 + index)}${HEAD})"
            if code != "General" and test not in rules.setdefault(code, []):
                rules[code].append(test)
    for number, (code, tests) in enumerate(rules.items(), FIRST_FORMAT):
        style = DifferentialStyle(numFmt=NumberFormat(numFmtId=number, formatCode=code))
        for start in range(0, len(tests), 40):
            sheet.sheet.conditional_formatting.add(
                area, Rule(type="expression", dxf=style, formula=[f"OR({','.join(tests[start : start + 40])})"])
            )


def _below(result: Result, view: SummaryView, sheet: Sheet, cells: _Cells, row: int, across: int) -> None:
    """The notes, each over the width of the table."""
    values = cells.values
    total = sum(sheet.sheet.column_dimensions[get_column_letter(column)].width for column in range(1, across + 2))
    for text in _notes(view):
        row += 1
        said = values.text(text)
        if any(piece.node is not None for piece in text):
            cell = sheet.formula(row, 1, cells.text(text), said, "scn.text")
        else:
            cell = sheet.put(row, 1, said, "scn.text")
        cell.font = Font(name="Calibri", size=9, color=_style.GREY)
        sheet.sheet.merge_cells(start_row=row, start_column=1, end_row=row, end_column=across + 1)
        sheet.sheet.row_dimensions[row].height = 12.5 * _style.lines(said, total) + 2


def _notes(view: SummaryView) -> Iterator[Text]:
    """The notes of metrics, then those of the whole table."""
    yield from (line.note for line in view.lines if line.note)
    yield from view.notes
