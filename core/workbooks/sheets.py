"""The sheets of a workbook that comes back: headers wherever they have moved to, rows, and what is said of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from scenario.common.errors import nearest
from scenario.common.yamltree import Source, YamlNode
from scenario.model.spec import Parameter
from scenario.registry.loaded import Host
from scenario.workbooks.archive import SheetPart, Workbook
from scenario.workbooks.cell_values import Faults
from scenario.workbooks.cells import Cell, Row, letter, letters_of, rows
from scenario.workbooks.form import BY_TITLE
from scenario.workbooks.form.marks import OldSheet
from scenario.workbooks.form.witness import Witness
from scenario.workbooks.found import Header, Reading, listing
from scenario.workbooks.left import Used

SEARCH = 60
"""Rows in which a sheet's header is looked for."""


class Sheets(Faults):
    """A workbook being read; every fault is noted by sheet and cell."""

    def __init__(self, workbook: Workbook, host: Host, digest: str, max_rows: int, shown: bool, overrides: str) -> None:
        super().__init__(Source(workbook.path, "", digest), Reading(notes=list(workbook.notes)))
        self.workbook, self.host, self.max_rows = workbook, host, max_rows
        self.keep_shown, self.overrides = shown, overrides
        self.left_out: YamlNode | None = None
        """The rows that the table's ``where`` kept out of the workbook."""
        self.places: dict[str, OldSheet] = {}
        self.witnesses: list[Witness] = []
        """What Source says of how the sheets were written."""
        self.told: set[tuple[str, int]] = set()
        """Columns (sheet, 1 = A) of which is said already that they are not carried over."""
        self.used: dict[str, Used] = {}
        """What was taken of each sheet, by title."""

    @property
    def written(self) -> list[str]:
        """The headers of Scenarios when the workbook was written; none where Source does not say."""
        return next((witness.columns for witness in self.witnesses if witness.columns), [])

    def sheet(self, title: str, required: bool = False) -> SheetPart | None:
        """A sheet by the table laid over it, else by its title."""
        sheets = [sheet for sheet in self.workbook.sheets if BY_TITLE[title].table in sheet.tables]
        found = sheets[0] if sheets else self.workbook.sheet(title)
        if found is None and required:
            titles = [sheet.title for sheet in self.workbook.sheets]
            hint = nearest(title, titles) or f"rename it back; the sheets are: {', '.join(titles[:12])}"
            raise self.workbook.refuse(f"there is no sheet '{title}'", hint)
        if found is None:
            self.note(f"the sheet '{title}' is gone; what it held is taken from the engine and the sheet Source")
        return found

    def header(self, title: str, needed: tuple[str, ...], *, required: bool = False) -> Header | None:
        """A sheet's header, wherever its row has moved to."""
        sheet = self.sheet(title, required)
        if sheet is None:
            return None
        for row in rows(self.workbook, sheet, last_row=SEARCH):
            names: dict[str, int] = {}
            twice: dict[str, int] = {}
            for name, column in _heads(row):
                if name in names:
                    twice[f"{name} ({letter(column)})"] = column
                names.setdefault(name, column)
            if len(names) > 2 and names.keys() >= set(needed):
                self.repeated(sheet, row.number, names, twice)
                return Header(sheet, row.number, names, set(names.values()))
        said = f"the sheet '{sheet.title}' has no header row with {', '.join(needed)}"
        if required:
            raise self.workbook.refuse(said, "put the header row back")
        self.note(f"{said}, so it was not read")
        return None

    def repeated(self, sheet: SheetPart, row: int, names: dict[str, int], twice: dict[str, int]) -> None:
        """A header that stands twice: two columns of one name cannot both count."""
        for name, column in twice.items():
            first = name.rpartition(" ")[0]
            self.say(f"{sheet.title}!{letter(column)}{row}",
                     f"the header '{first}' stands in {letter(names[first])}{row} already",
                     "rename one of the two columns, or delete it")  # fmt: skip

    def not_carried(self, header: Header, known: Collection[str]) -> None:
        """Say which columns of an engine's sheet are somebody's own: only those of Scenarios are carried over."""
        for name in (name for name in header.columns if name not in known):
            self.told.add((header.sheet.title, header.columns[name]))
            self.note(f"{header.place(name, header.row)}: the column '{name}' is not carried over; "
                      f"put such notes on a sheet of your own")  # fmt: skip

    def use(self, header: Header, row: Row, names: Iterable[str]) -> None:
        """Note that cells of a row are taken, or spoken of."""
        used = self.used.setdefault(header.sheet.title, Used(header.row))
        used.cells |= {(row.number, header.columns[name]) for name in names if name in header.columns}

    def edited(self, sheet: str, cell: Cell | None) -> str | None:
        """The text that somebody put into a cell since it was written; None where nobody did, or nobody knows."""
        witness = next((witness for witness in self.witnesses if witness.sheet == sheet), None)
        if witness is None or witness.texts is None or cell is None or cell.kind != "text" or cell.formula is not None:
            return None
        text = " ".join(str(cell.value).split())
        return text if text and Witness.digest(text) not in witness.texts else None

    def come_back(self, header: Header, seen: Collection[str], known: Collection[str]) -> None:
        """Say which rows of a sheet are gone that the new file has again."""
        names = next((witness.names for witness in self.witnesses if witness.sheet == header.sheet.title), [])
        gone = [name for name in names if name not in seen and name in known]
        if gone:
            said = "what the engine or the sheet Source says of it comes back"
            self.note(f"{header.sheet.title}: there is no row for {listing(gone)}; {said}")

    def body(self, header: Header, key: str = "") -> Iterator[Row]:
        """The rows below a header; of one that has no ``key`` it is said that nothing of it is taken."""
        used = self.used.setdefault(header.sheet.title, Used(header.row))
        for row in rows(self.workbook, header.sheet):
            if row.number <= header.row or not row.cells:
                continue
            if not key or header.cell(row, key) is not None:
                yield row
                continue
            typed = [column for column, cell in row.cells.items() if cell.formula is None and column in header.named]
            if typed:
                place = f"{header.sheet.title}!{letter(typed[0])}{row.number}"
                self.note(f"{place}: not carried over, as its row has no {key}")
                used.cells |= {(row.number, column) for column in row.cells}

    def remember(self, title: str, header: Header) -> OldSheet:
        """Note where a sheet's columns stand, for formulas that refer to it; its rows are noted as they are read."""
        place = OldSheet(title, letters_of(header.columns), {}, header.row)
        self.places[header.sheet.title.lower()] = place
        return place

    def value(self, header: Header, row: Row, name: str, parameter: Parameter | None) -> Any:
        """The value of an input by column."""
        return self.value_of(header.place(name, row.number), header.cell(row, name), parameter)

    def set(self, root: YamlNode, path: tuple[str, ...], node: YamlNode) -> None:
        """Put a value into the tree, making mappings on the way."""
        for key in path[:-1]:
            below = root.value.get(key)
            if below is None or not isinstance(below.value, dict):
                below = YamlNode({}, 0, 0, path=node.path)
                root.value[key] = below
                root.keys.setdefault(key, YamlNode(key, 0, 0, path=node.path))
            root = below
        root.value[path[-1]] = node
        root.keys[path[-1]] = YamlNode(path[-1], 0, 0, path=node.path)


def _heads(row: Row) -> Iterator[tuple[str, int]]:
    """The texts of a row with their columns."""
    for column, cell in row.cells.items():
        if cell.kind == "text" and cell.formula is None and str(cell.value).strip():
            yield " ".join(str(cell.value).split())[:255], column


def at(value: Any, place: str) -> YamlNode:
    """A value of the table's tree that stands in a cell."""
    return YamlNode(value, 0, 0, path=place)


def mapping_at(parts: dict[str, YamlNode], place: str) -> YamlNode:
    """A mapping of such values."""
    return YamlNode(parts, 0, 0, keys=dict(parts), path=place)
