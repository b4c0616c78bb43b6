"""A workbook that comes back, as the table it stands for: inputs, assumptions, catalogs and the analyst's rows.

What an input cell says counts; formulas do not, unless a value stands in place of one. The rest of the table
(title, own columns, summary) comes from the sheet Source. Every fault is named by sheet and cell.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from scenario.book import selection
from scenario.book.assemble import assemble
from scenario.book.book import Book
from scenario.catalogs import catalog
from scenario.common import inputs, yamltree
from scenario.common.errors import TableError
from scenario.common.yamltree import Node, Source
from scenario.model import stacks
from scenario.registry.loaded import Host
from scenario.result import LEFT_OUT
from scenario.tables.reader import CORE, Reader
from scenario.tables.table import MAX_ROWS, Table
from scenario.workbooks.archive import Workbook
from scenario.workbooks.as_table import WorkbookReader
from scenario.workbooks.assumed import Assumed
from scenario.workbooks.cells import Row, letter, rows
from scenario.workbooks.extras import MAX_CELLS, added, formula_of, letters_of, marked, read_sheet
from scenario.workbooks.form import ALL_CHECKS, GIVEN, PIECE, PIECES, SHEETS, SOURCE_FIRST, TITLES
from scenario.workbooks.form.marks import NO_VALUES, Extras, OldSheet
from scenario.workbooks.form.witness import BEGIN, Witness
from scenario.workbooks.found import Header, Reading, plain, show
from scenario.workbooks.left import Used, chosen, left_behind
from scenario.workbooks.looks import looks_left, names_left
from scenario.workbooks.scenario_rows import RowReader


def load(
    path: str | Path, host: Host, *, max_rows: int = MAX_ROWS, shown: bool = False, overrides: str = "refuse"
) -> tuple[Table, Reading]:
    """The table that a workbook stands for. Raises :class:`TableError` with every bad cell by its address.

    ``shown`` also collects what the computed cells showed. ``overrides`` says what becomes of values typed
    over formulas: ``refuse`` them, ``keep`` them as columns ``<name>_override``, or ``ignore`` them.
    """
    with Workbook(path) as book:
        digest = hashlib.sha256(inputs.read(path, inputs.WORKBOOK)).hexdigest()
        return _Reader(book, host, digest, max_rows, shown, overrides).table()


class _Reader(Assumed):
    def table(self) -> tuple[Table, Reading]:
        header = self.header("Scenarios", ("id",), required=True)
        assert header is not None
        self.found.header = header
        root = self.base_tree()
        base = self.base_book(root, header)
        self.found.base = base
        self.assumptions(root, base)
        for name in ("models", "gpus", "hardware"):
            if name in base.tables:
                self.entity(root, base.tables[name])
        self.fixed(base)
        self.profiles(root, base)
        self.curves(root, base)
        self.formula_texts(root, base)
        rows_read = RowReader(self, header, base)
        rows_read.read()
        self.summary_choices(root, rows_read, base)
        table = WorkbookReader(self.source, root, self.host, self.max_rows, rows_read, None if self.keep_shown else self.left_out).table()
        table.extras = self.extras()
        written = {name for witness in self.witnesses for name in witness.columns}
        heads = {(header.row, column) for name, column in header.columns.items() if name in written}
        self.used[header.sheet.title] = Used(header.row, heads)  # the header's comments are the workbook's own, wherever it has moved
        names = {*base.scalars, ALL_CHECKS, *self.places["assumptions"].rows.values()} if "assumptions" in self.places else {*base.scalars, ALL_CHECKS}
        self.found.notes += [*table.extras.notes, *left_behind(self.workbook, self.witnesses, self.told, self.used),
                             *looks_left(self.workbook, self.witnesses), *names_left(self.workbook, names)]  # fmt: skip
        self.found.notes = list(dict.fromkeys(self.found.notes))
        return table, self.found

    def base_tree(self) -> Node:
        """The table as the sheet Source tells it, without rows."""
        sheet = self.workbook.sheet("Source")
        lines: list[str] = []
        if sheet is not None:
            for row in rows(self.workbook, sheet, until=PIECES, last_row=100_000):
                if row.number >= SOURCE_FIRST:
                    lines += [""] * (row.number - SOURCE_FIRST - len(lines))
                    lines.append(_source_line(row))
        self.left_out = self.rows_left_out([line.removeprefix(LEFT_OUT) for line in lines if line.startswith(LEFT_OUT)])
        self.witnesses = [witness for line in lines if line.startswith(BEGIN) if (witness := Witness.of(line))]
        if not "".join(lines).strip():
            self.found.notes.append("the sheet Source is gone: the title, own columns and summary of the table are not known")
            return yamltree.parse("version: 1", self.workbook.path)[1]
        try:
            _, node = yamltree.parse("\n".join(lines) + "\n", f"{self.workbook.path}, sheet Source")
        except TableError as error:
            raise TableError(error.problems) from None
        if not isinstance(node.value, dict):
            raise self.workbook.refuse("the sheet Source does not hold a table")
        for key in ("grid", "rows", "overrides"):
            node.value.pop(key, None)
        _relocate(node)
        return node

    def rows_left_out(self, lines: list[str]) -> Node | None:
        """The grid and rows that the table's ``where`` kept out of the workbook."""
        if not lines:
            return None
        place = f"{self.workbook.path}, sheet Source"
        try:
            _, node = yamltree.parse("\n".join(lines) + "\n", place)
        except TableError:
            self.found.notes.append("the rows that where left out (sheet Source) cannot be read any more, and do not come back")
            return None
        _relocate(node, "Source")
        return node if isinstance(node.value, dict) else None

    def summary_choices(self, root: Node, found: RowReader, base: Book) -> None:
        """What the Summary was made to show, it shows again."""
        for witness in self.witnesses:
            for place, name, cell in chosen(self.workbook, witness):
                value = plain(cell.value) if name in CORE and cell.kind == "number" else cell.value
                known = found.values.get(name, [None])
                default = base.scalars.get(f"default_{name}")
                if value is not None and (value in known or (None in known and default is not None and value == default.value)):
                    self.set(root, ("summary", "where", name), Node(value, 0, 0, path=place))
                else:
                    self.found.notes.append(f"{place}: no row has {name} {show(cell.value)}; the Summary of the new file begins with another")

    def base_book(self, root: Node, header: Header) -> Book:
        """What the engine would assume by the Source sheet alone: what cells say is compared with this.

        It has the features and the optional inputs whose columns the workbook has.
        """
        known = catalog.builtin()
        row = {"model": next(iter(known.models)), "gpu": next(iter(known.gpus)), "batch": 1, "context": 0, "method": next(iter(self.host.methods))}
        optional = {"isl": 0, "osl": 1, "engine": "any"}
        row |= {name: value for name, value in optional.items() if {name, name + GIVEN} & header.columns.keys()}
        models = list(self.host.time_models) if "time_model" + GIVEN in header.columns else [None]
        listed = [{**row, **({"time_model": model} if model else {})} for model in models]
        cells = [Node({name: Node(value, 0, 0, path="rows") for name, value in one.items()}, 0, 0) for one in listed]
        parts = {key: node for key, node in root.value.items() if key != "summary"}  # which may start at rows that are not here
        with_row = Node({**parts, "rows": Node(cells, 0, 0)}, 0, 0, keys=dict(root.keys))
        source = Source(f"{self.workbook.path}, sheet Source", "")
        table = Reader(source, with_row, self.host, self.max_rows).table()
        table.features = selection.seen(header.columns)
        table.stacks |= self.offered()
        return assemble(table, self.host)

    def offered(self) -> dict[str, stacks.Stack]:
        """The methods and stacks that the sheet Methods lists: those that the workbook's formulas know."""
        sheet = self.workbook.sheet("Methods")
        cells = [cell for row in rows(self.workbook, sheet) for cell in row.cells.values()] if sheet else []
        found = [stacks.parse(cell.value, self.host.methods)[0] for cell in cells if isinstance(cell.value, str)]
        return {stack.name: stack for stack in found if stack}

    def extras(self) -> Extras:
        """The analyst's own columns and sheets, with their formulas in terms that survive a new layout."""
        found, header = Extras(), self.found.header
        assert header is not None
        places = self.places
        home = OldSheet("Scenarios", letters_of(header.columns), {n: str(i) for i, n in enumerate(self.found.rows)}, header.row)
        places[header.sheet.title.lower()] = home
        own_titles = {sheet.title.lower() for sheet in SHEETS} | {header.sheet.title.lower()}
        if self.found.base is not None and not self.found.base.vectors.curves:
            own_titles.discard("curves")
        added_sheets = [sheet for sheet in self.workbook.sheets if sheet.title.lower() not in own_titles]
        own = {sheet.title.lower() for sheet in added_sheets}
        assert self.found.base is not None
        known = {*self.found.base.scalars, ALL_CHECKS}
        found.places = list(places.values())
        for name in sorted(self.found.extra_columns, key=header.columns.__getitem__):  # ranges over them read them in this order
            cells = self.found.extra_columns[name]
            column = found.columns.setdefault(name, {})
            masters: dict[int, tuple[str, str]] = {}
            lost = {True: 0, False: 0}
            for index, cell in cells.items():
                text = formula_of(cell, f"{letter(header.columns[name])}{self.found.rows[index]}", masters)
                formula = marked(text, home, places, own, known) if text and not cell.array else None
                lost[cell.kind != "none"] += cell.formula is not None and formula is None
                column[index] = added(self.workbook, cell, formula, text)
            for valued, count in lost.items():
                kept = "their values are kept" if valued else NO_VALUES
                if count:
                    found.notes.append(f"{header.sheet.title}: {count} formulas of the column '{name}' cannot be carried over; {kept}")
        room = MAX_CELLS
        for sheet in added_sheets:
            found.sheets.append(read_sheet(self.workbook, sheet, places, own, found.notes, known, room))
            room -= len(found.sheets[-1].cells)
        return found


def _source_line(row: Row) -> str:
    """A line of the sheet Source; one that is too long for a cell goes on in the next."""
    text = ""
    for column in range(1, PIECES + 1):
        piece = str(row.cells[column].value) if column in row.cells else ""
        text += piece
        if len(piece) < PIECE:
            break
    return text


def _relocate(node: Node, place: str = "") -> None:
    """Give every value of the Source sheet its cell as its place, or ``place``."""
    stack = [node]
    while stack:
        item = stack.pop()
        if item.line:
            item.path, item.line, item.column, item.offset = place or f"Source!A{item.line + SOURCE_FIRST - 1}", 0, 0, 0
        stack += item.keys.values()
        stack += item.value.values() if isinstance(item.value, dict) else item.value if isinstance(item.value, list) else []


def changed_places(reading: Reading, book: Book) -> dict[tuple[str, str], str]:
    """What was changed in the workbook since it was written, but for the rows: (name read by formulas, entry) -> cell.

    Names are those of scalars, which have no entry, or ``table:field`` for the value of a catalog entry.
    """
    base, found = reading.base, {}
    assert base is not None
    for name, scalar in book.scalars.items():
        if name in base.scalars and scalar.value != base.scalars[name].value:
            found[name, ""] = reading.places.get(("Assumptions", name, "value"), name)
    for key, table in book.tables.items():
        old = {str(row["name"]): row for row in base.tables[key].rows} if key in base.tables else {}
        for row in table.rows:
            entry = str(row["name"])
            before = old.get(entry, {})
            for item in table.inputs:
                if before and row.get(item.name) != before.get(item.name):
                    place = reading.places.get((TITLES.get(key, key), entry, item.name), f"{entry}.{item.name}")
                    found[f"{key}:{item.name}", entry] = place
    return found
