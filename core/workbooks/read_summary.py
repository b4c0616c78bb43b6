"""What the Summary of a workbook that comes back was made to show: it shows that again."""

from __future__ import annotations

from scenario.book.book import Book
from scenario.common.yamltree import YamlNode
from scenario.model.labels import label
from scenario.tables.reader import CORE
from scenario.workbooks.cells import Cell, rows
from scenario.workbooks.form import CHOICE_OF_COLUMN, CHOICE_OF_ROW, DEFAULT, LISTS_HEAD
from scenario.workbooks.found import plain, show
from scenario.workbooks.left import chosen
from scenario.workbooks.scenario_rows import RowReader
from scenario.workbooks.sheets import Sheets, at


def read_choices(sheets: Sheets, root: YamlNode, typed: RowReader, base: Book) -> None:
    """Put what the cells of Summary choose into the table's tree."""
    offered = _Offered(sheets, root, base)
    for witness in sheets.witnesses:
        for place, name, cell in chosen(sheets.workbook, witness):
            if name.startswith(CHOICE_OF_COLUMN):
                offered.column(place, name.removeprefix(CHOICE_OF_COLUMN), cell)
            elif name.startswith(CHOICE_OF_ROW):
                offered.row(place, name.removeprefix(CHOICE_OF_ROW), cell)
            else:
                _input(sheets, root, typed, base, place, name, cell)


def _input(sheets: Sheets, root: YamlNode, typed: RowReader, base: Book, place: str, name: str, cell: Cell) -> None:
    """The value of an input that the Summary is of."""
    value = plain(cell.value) if name in CORE and cell.kind == "number" else cell.value
    known = typed.values.get(name, [None])
    default = base.scalars.get(DEFAULT + name)
    by_default = None in known and default is not None and value == default.value
    if value is not None and (value in known or by_default):
        sheets.set(root, ("summary", "where", name), at(value, place))
    else:
        said = "the Summary of the new file begins with another"
        sheets.note(f"{place}: no row has {name} {show(cell.value)}; {said}")


class _Offered:
    """The scenarios and metrics that the sheet Lists offers, by the titles that it shows."""

    def __init__(self, sheets: Sheets, root: YamlNode, base: Book) -> None:
        self.sheets, self.root = sheets, root
        said = root.value.get("summary")
        parts = said.value if said is not None and isinstance(said.value, dict) else {}
        listed, metrics = ((parts[key].value if key in parts else None) for key in ("columns", "rows"))
        items = [item.value for item in listed if isinstance(item.value, dict)] if isinstance(listed, list) else []
        self.ids = [str(item["id"].value if isinstance(item["id"].value, str) else item["id"].shown) for item in items if "id" in item]
        heading = [isinstance(item.value, dict) and "heading" in item.value for item in metrics] if isinstance(metrics, list) else []
        self.count = heading.count(False)
        self.fields = {label(name, item.title): name for name, item in base.fields.items()}
        self.across, self.down = self._titles() if self.ids else ([], [])

    def _titles(self) -> tuple[list[str], list[str]]:
        """What the scenarios and the metrics are called on the sheet Lists."""
        part, across, down = self.sheets.workbook.sheet("Lists"), list[str](), list[str]()
        for row in rows(self.sheets.workbook, part) if part is not None else ():
            if row.number == LISTS_HEAD:
                across = [show_text(row.cells.get(column)) for column in range(2, 2 + len(self.ids))]
            elif row.number == LISTS_HEAD + 1 + len(down) and 1 in row.cells:
                down.append(show_text(row.cells[1]))
        return across, down

    def column(self, place: str, name: str, cell: Cell) -> None:
        """A scenario that a column was made to show: none is noted where it is the column's own."""
        title = show_text(cell)
        if title not in self.across:
            self.sheets.note(f"{place}: no scenario of this summary is called {show(cell.value)}; the column shows its own again")
        elif self.ids[self.across.index(title)] != name or self._said("columns", name):
            self._set("columns", name, at(self.ids[self.across.index(title)], place))

    def row(self, place: str, number: str, cell: Cell) -> None:
        """A metric that a line was made to show."""
        title = show_text(cell)
        index = self.down.index(title) if title in self.down else -1
        if 0 <= index < self.count:
            self._set("rows", number, at(index + 1, place))
        elif index >= 0 and title in self.fields:
            self._set("rows", number, at(self.fields[title], place))
        else:
            self.sheets.note(f"{place}: no metric of this summary is called {show(cell.value)}; the line shows its own again")

    def _said(self, kind: str, name: str) -> bool:
        node = self.root
        for key in ("summary", "chosen", kind):
            if not isinstance(node.value, dict) or key not in node.value:
                return False
            node = node.value[key]
        return isinstance(node.value, dict) and name in node.value

    def _set(self, kind: str, name: str, value: YamlNode) -> None:
        self.sheets.set(self.root, ("summary", "chosen", kind, name), value)


def show_text(cell: Cell | None) -> str:
    """What a cell says, as text."""
    return "" if cell is None or cell.value is None else cell.value if isinstance(cell.value, str) else plain(cell.value)
