"""The sheets of a workbook that comes back: headers wherever they have moved to, rows, and the values of cells."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from scenario.catalogs.catalog import number_hint
from scenario.common.errors import Problem, nearest
from scenario.common.yamltree import Node, Source
from scenario.model import kinds
from scenario.model.spec import Parameter
from scenario.registry.loaded import Host
from scenario.workbooks.archive import SheetPart, Workbook
from scenario.workbooks.cells import Cell, Row, letter, rows
from scenario.workbooks.extras import letters_of
from scenario.workbooks.form import BY_TITLE
from scenario.workbooks.form.marks import OldSheet
from scenario.workbooks.form.witness import Witness
from scenario.workbooks.found import BAD, Header, Reading, listing, plain, show
from scenario.workbooks.left import Used

SEARCH = 60
"""Rows in which a sheet's header is looked for."""


class Sheets:
    """A workbook being read; every fault is noted by sheet and cell."""

    def __init__(self, workbook: Workbook, host: Host, digest: str, max_rows: int, shown: bool, overrides: str) -> None:
        self.workbook, self.host, self.max_rows = workbook, host, max_rows
        self.keep_shown, self.overrides = shown, overrides
        self.source = Source(workbook.path, "", digest)
        self.found = Reading(notes=list(workbook.notes))
        self.places: dict[str, OldSheet] = {}
        self.left_out: Node | None = None
        """The rows that the table's ``where`` kept out of the workbook."""
        self.witnesses: list[Witness] = []
        """What Source says of how the sheets were written."""
        self.told: set[tuple[str, int]] = set()
        """Columns (sheet, 1 = A) of which is said already that they are not carried over."""
        self.used: dict[str, Used] = {}
        """What was taken of each sheet, by title."""

    def say(self, place: str, message: str, hint: str = "") -> None:
        self.source.problems.append(Problem(message, hint, self.workbook.path, place=place))

    def header(self, title: str, needed: tuple[str, ...], *, required: bool = False) -> Header | None:
        """A sheet's header, found by the table laid over it or by its title, wherever its row has moved to."""
        sheets = [sheet for sheet in self.workbook.sheets if BY_TITLE[title].table in sheet.tables]
        sheet = sheets[0] if sheets else self.workbook.sheet(title)
        if sheet is None:
            if required:
                titles = ", ".join(sheet.title for sheet in self.workbook.sheets[:12])
                raise self.workbook.refuse(f"there is no sheet '{title}'", nearest(title, [s.title for s in self.workbook.sheets])
                                           or f"rename it back; the sheets are: {titles}")  # fmt: skip
            self.found.notes.append(f"the sheet '{title}' is gone; what it held is taken from the engine and the sheet Source")
            return None
        for row in rows(self.workbook, sheet, last_row=SEARCH):
            names: dict[str, int] = {}
            twice: dict[str, int] = {}
            for column, cell in row.cells.items():
                if cell.kind == "text" and cell.formula is None and isinstance(cell.value, str) and cell.value.strip():
                    name = " ".join(cell.value.split())[:255]
                    if name in names:
                        twice[f"{name} ({letter(column)})"] = column
                    names.setdefault(name, column)
            if all(name in names for name in needed) and len(names) > 2:
                self.repeated(sheet, row.number, names, twice)
                return Header(sheet, row.number, names, set(names.values()))
        if required:
            raise self.workbook.refuse(f"the sheet '{sheet.title}' has no header row with {', '.join(needed)}", "put the header row back")
        self.found.notes.append(f"the sheet '{sheet.title}' has no header row with {', '.join(needed)}, so it was not read")
        return None

    def repeated(self, sheet: SheetPart, row: int, names: dict[str, int], twice: dict[str, int]) -> None:
        """A header that stands twice: two columns of one name cannot both count."""
        for name, column in twice.items():
            first = name.rpartition(" ")[0]
            self.say(f"{sheet.title}!{letter(column)}{row}", f"the header '{first}' stands in {letter(names[first])}{row} already",
                     "rename one of the two columns, or delete it")  # fmt: skip

    def not_carried(self, header: Header, known: Collection[str]) -> None:
        """Say which columns of an engine's sheet are somebody's own: only those of Scenarios are carried over."""
        for name in header.columns:
            if name not in known:
                self.told.add((header.sheet.title, header.columns[name]))
                self.found.notes.append(f"{header.place(name, header.row)}: the column '{name}' is not carried over; "
                                        f"put such notes on a sheet of your own")  # fmt: skip

    def use(self, header: Header, row: Row, names: Iterable[str]) -> None:
        """Note that cells of a row are taken, or spoken of."""
        used = self.used.setdefault(header.sheet.title, Used(header.row))
        used.cells |= {(row.number, header.columns[name]) for name in names if name in header.columns}

    def edited(self, sheet: str, cell: Cell | None) -> str | None:
        """The text that somebody put into a cell of a sheet since it was written; None where nobody did, or nobody knows."""
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
            self.found.notes.append(f"{header.sheet.title}: there is no row for {listing(gone)}; what the engine or the sheet Source says of it comes back")

    def body(self, header: Header, key: str = "") -> Iterator[Row]:
        """The rows below a header; of one that has no ``key`` it is said that nothing of it is taken."""
        used = self.used.setdefault(header.sheet.title, Used(header.row))
        for row in rows(self.workbook, header.sheet):
            if row.number <= header.row or not row.cells:
                continue
            if key and header.columns[key] not in row.cells:
                typed = [column for column, cell in row.cells.items() if cell.formula is None and column in header.named]
                if typed:
                    self.found.notes.append(f"{header.sheet.title}!{letter(typed[0])}{row.number}: not carried over, as its row has no {key}")
                    used.cells |= {(row.number, column) for column in row.cells}
                continue
            yield row

    def remember(self, title: str, header: Header) -> OldSheet:
        """Note where a sheet's columns stand, for formulas that refer to it; its rows are noted as they are read."""
        place = OldSheet(title, letters_of(header.columns), {}, header.row)
        self.places[header.sheet.title.lower()] = place
        return place

    def cell_value(self, place: str, cell: Cell | None, parameter: Parameter | None) -> Any:
        """The value of an input cell: a float, a text, or None for a blank one; ``BAD`` with a problem noted."""
        if cell is None or (cell.kind == "text" and not str(cell.value).strip() and cell.formula is None):
            return None
        if cell.kind == "error":
            self.say(place, f"the cell shows {cell.value}", "type a value")
            return BAD
        if cell.formula is not None and cell.kind in ("text", "none") and cell.value == "":
            self.say(place, "an input holds a formula without a value", "type the value, or open and save the file in a spreadsheet program")
            return BAD
        if cell.formula is not None:
            self.found.notes.append(f"{place}: the value {show(cell.value)} of a formula in an input is taken; the formula is not carried over")
        wants_text = parameter is None or kinds.is_text(parameter)
        if wants_text:
            if cell.kind == "number":
                return plain(cell.value)
            if cell.kind in ("date", "flag"):
                self.say(place, f"a {'date' if cell.kind == 'date' else 'TRUE/FALSE'} stands where a name belongs", "type the name")
                return BAD
            return str(cell.value).strip()
        if cell.kind == "number":
            return float(cell.value)
        if cell.kind == "date":
            self.say(place, "a date stands where a number belongs", "type the number, and set the cell's format back to a number")
        elif cell.kind == "flag":
            if parameter is not None and parameter.kind == "flag":
                return float(cell.value)
            self.say(place, f"{'TRUE' if cell.value else 'FALSE'} stands where a number belongs", "type the number")
        else:
            self.say(place, f"'{str(cell.value)[:40]}' is text where a number belongs", number_hint(str(cell.value)) or "type the number")
        return BAD

    def set(self, root: Node, path: tuple[str, ...], node: Node) -> None:
        """Put a value into the tree, making mappings on the way."""
        for key in path[:-1]:
            below = root.value.get(key)
            if below is None or not isinstance(below.value, dict):
                below = Node({}, 0, 0, path=node.path)
                root.value[key] = below
                root.keys.setdefault(key, Node(key, 0, 0, path=node.path))
            root = below
        root.value[path[-1]] = node
        root.keys[path[-1]] = Node(path[-1], 0, 0, path=node.path)
