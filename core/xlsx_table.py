"""A workbook that comes back, as the table it stands for: inputs, assumptions, catalogs and the analyst's rows.

What an input cell says counts; formulas do not, unless a value stands in place of one. The rest of the table
(title, own columns, summary) comes from the sheet Source. Every fault is named by sheet and cell.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from scenario import catalog, contract, entities, shared, yamltree
from scenario.assemble import assemble, scalar_name
from scenario.book import Book, EntityTable
from scenario.catalog import number_hint
from scenario.errors import Problem, TableError, nearest
from scenario.host import Host
from scenario.reader import CORE, Reader
from scenario.rows import Expander
from scenario.spec import Parameter
from scenario.table import MAX_ROWS, Table
from scenario.vectors import POSITIONS
from scenario.xlsx_cells import Cell, Row, letter, rows
from scenario.xlsx_formula import canonical
from scenario.xlsx_zip import SheetPart, Workbook
from scenario.yamltree import Node, Source

SHEETS = {"models": "Models", "gpus": "GPUs", "methods": "Methods", "formats": "Formats"}
FIRST = 6
"""The first data row that the exporter writes."""
SEARCH = 60
"""Rows in which a sheet's header is looked for."""
WHOLE = 20_000
"""Up to this many rows every formula is read and compared; beyond it a row is only when it lacks some."""


@dataclass
class Header:
    """Where a sheet's table stands: the row of its header, and the column (1 = A) of each name."""

    sheet: SheetPart
    row: int
    columns: dict[str, int]

    def place(self, name: str, row: int) -> str:
        """``Sheet!C7`` for a column by name."""
        return f"{self.sheet.title}!{letter(self.columns[name])}{row}"


@dataclass
class Typed:
    """A constant, or another formula, where a formula of the engine belongs."""

    sheet: str
    cell: str
    row: int | str
    """Which scenario, counted from 0, or the catalog entry's name."""
    column: str
    value: Any
    formula: str | None


@dataclass
class Reading:
    """What was found beside the table itself."""

    notes: list[str] = field(default_factory=list)
    typed: list[Typed] = field(default_factory=list)
    shown: dict[str, list[Any]] = field(default_factory=dict)
    """What the computed columns of Scenarios showed, by column; only when asked for."""
    rows: list[int] = field(default_factory=list)
    """The sheet row of each scenario."""
    header: Header | None = None
    extra_columns: dict[str, list[Cell | None]] = field(default_factory=dict)
    extra_sheets: list[str] = field(default_factory=list)
    base: Book | None = None


def load(
    path: str | Path, host: Host, *, max_rows: int = MAX_ROWS, shown: bool = False, keep_overrides: bool = False
) -> tuple[Table, Reading]:
    """The table that a workbook stands for. Raises :class:`TableError` with every bad cell by its address.

    ``shown`` also collects what the computed cells showed. ``keep_overrides`` carries values typed over formulas
    as columns ``<name>_override`` rather than refusing them.
    """
    with Workbook(path) as book:
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        return _Reader(book, host, digest, max_rows, shown, keep_overrides).table()


class _Reader:
    def __init__(self, workbook: Workbook, host: Host, digest: str, max_rows: int, shown: bool, keep_overrides: bool) -> None:
        self.workbook, self.host, self.max_rows = workbook, host, max_rows
        self.keep_shown, self.keep_overrides = shown, keep_overrides
        self.source = Source(workbook.path, "", digest)
        self.found = Reading(notes=list(workbook.notes))

    def table(self) -> tuple[Table, Reading]:
        header = self.header("Scenarios", "T_scenarios", ("id",), required=True)
        assert header is not None
        self.found.header = header
        root = self.base_tree()
        base = self.base_book(root)
        self.found.base = base
        self.assumptions(root, base)
        for name in ("models", "gpus"):
            self.entity(root, base.tables[name])
        self.fixed(base)
        self.profiles(root, base)
        self.curves(root, base)
        self.formula_texts(root, base)
        self.extras(base)
        rows_read = _Rows(self, header, base)
        rows_read.read()
        reader = _WorkbookReader(self.source, root, self.host, self.max_rows, rows_read)
        return reader.table(), self.found

    def say(self, place: str, message: str, hint: str = "") -> None:
        self.source.problems.append(Problem(message, hint, self.workbook.path, place=place))

    # -- finding things --------------------------------------------------------------------------------

    def header(self, title: str, table: str, needed: tuple[str, ...], *, required: bool = False) -> Header | None:
        """A sheet's header, found by the table laid over it or by its title, wherever its row has moved to."""
        sheets = [sheet for sheet in self.workbook.sheets if table in sheet.tables]
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
            for column, cell in row.cells.items():
                if cell.kind == "text" and cell.formula is None and isinstance(cell.value, str):
                    names.setdefault(cell.value.strip(), column)
            if all(name in names for name in needed) and len(names) > 2:
                return Header(sheet, row.number, names)
        if required:
            raise self.workbook.refuse(f"the sheet '{sheet.title}' has no header row with {', '.join(needed)}", "put the header row back")
        self.found.notes.append(f"the sheet '{sheet.title}' has no header row with {', '.join(needed)}, so it was not read")
        return None

    def body(self, header: Header) -> Iterator[Row]:
        """The rows below a header."""
        for row in rows(self.workbook, header.sheet):
            if row.number > header.row and row.cells:
                yield row

    def base_tree(self) -> Node:
        """The table as the sheet Source tells it, without rows."""
        sheet = self.workbook.sheet("Source")
        lines: list[str] = []
        if sheet is not None:
            for row in rows(self.workbook, sheet, until=1):
                if row.number >= 4:
                    lines += [""] * (row.number - 4 - len(lines))
                    lines.append(str(row.cells[1].value) if 1 in row.cells else "")
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

    def base_book(self, root: Node) -> Book:
        """What the engine would assume by the Source sheet alone: what cells say is compared with this."""
        known = catalog.builtin()
        row = {"model": next(iter(known.models)), "gpu": next(iter(known.gpus)), "batch": 1, "context": 0, "method": next(iter(self.host.methods))}
        cells = {name: Node(value, 0, 0, path="rows") for name, value in row.items()}
        with_row = Node({**root.value, "rows": Node([Node(cells, 0, 0)], 0, 0)}, 0, 0, keys=dict(root.keys))
        source = Source(f"{self.workbook.path}, sheet Source", "")
        return assemble(Reader(source, with_row, self.host, self.max_rows).table(), self.host)

    # -- assumptions -----------------------------------------------------------------------------------

    def assumptions(self, root: Node, base: Book) -> None:
        header = self.header("Assumptions", "T_assumptions", ("name", "value"))
        if header is None:
            return
        seen: dict[str, tuple[str, Cell | None]] = {}
        for row in self.body(header):
            name = row.cells.get(header.columns["name"])
            if name is not None and isinstance(name.value, str) and name.value:
                seen[name.value] = header.place("value", row.number), row.cells.get(header.columns["value"])
        for name, scalar in base.scalars.items():
            if name not in seen:
                self.found.notes.append(f"{header.sheet.title}: the row '{name}' is gone; {_show(scalar.value)} applies")
                continue
            place, cell = seen[name]
            value = self.cell_value(place, cell, scalar.parameter)
            if value is _BAD or value == scalar.value:
                continue
            if value is None:
                if scalar.value is None or scalar.parameter.derive or scalar.parameter.default is None:
                    continue
                self.say(place, f"{name} is blank", f"type a value; the default is {_show(scalar.parameter.default)}")
                continue
            if name.endswith("_default") and scalar.owner:
                self.say(place, f"{name} is the fallback of a derived value and cannot be changed here",
                         f"type the value as {name.removesuffix('_default')}")  # fmt: skip
                continue
            self.set(root, self.path_of(name, scalar.owner, base), Node(value, 0, 0, path=place))
        for name, (place, _) in seen.items():
            if name not in base.scalars:
                hint = nearest(name, base.scalars)
                self.found.notes.append(f"{place}: '{name}' is not an assumption of this engine and is passed over" + (f"; {hint}" if hint else ""))

    def path_of(self, name: str, owner: str, base: Book) -> tuple[str, ...]:
        if not owner:
            return ("time_model",) if name == "default_time_model" else ("defaults", name.removeprefix("default_"))
        method = base.methods[owner]
        key = next(key for key in method.parameters if scalar_name(method, key) == name)
        return "parameters", owner, key

    def set(self, root: Node, path: tuple[str, ...], node: Node) -> None:
        """Put a value into the tree, making mappings on the way."""
        for key in path[:-1]:
            below = root.value.get(key)
            if below is None or not isinstance(below.value, dict):
                below = Node({}, 0, 0, path=node.path)
                if key in ("prices",) or root.value.get(key) is None:
                    root.value[key] = below
                else:
                    root.value[key] = below
                root.keys.setdefault(key, Node(key, 0, 0, path=node.path))
            root = below
        root.value[path[-1]] = node
        root.keys[path[-1]] = Node(path[-1], 0, 0, path=node.path)

    def cell_value(self, place: str, cell: Cell | None, parameter: Parameter | None) -> Any:
        """The value of an input cell: a float, a text, or None for a blank one; ``_BAD`` with a problem noted."""
        if cell is None or (cell.kind == "text" and not str(cell.value).strip() and cell.formula is None):
            return None
        if cell.kind == "error":
            self.say(place, f"the cell shows {cell.value}", "type a value")
            return _BAD
        if cell.formula is not None and cell.kind == "text" and cell.value == "":
            self.say(place, "an input holds a formula without a value", "type the value, or open and save the file in a spreadsheet program")
            return _BAD
        if cell.formula is not None:
            self.found.notes.append(f"{place}: the value {_show(cell.value)} of a formula in an input is taken; the formula is not carried over")
        wants_text = parameter is None or parameter.kind in contract.TEXT_KINDS
        if wants_text:
            if cell.kind == "number":
                return _plain(cell.value)
            if cell.kind in ("date", "flag"):
                self.say(place, f"a {'date' if cell.kind == 'date' else 'TRUE/FALSE'} stands where a name belongs", "type the name")
                return _BAD
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
        return _BAD

    # -- catalogs --------------------------------------------------------------------------------------

    def entity(self, root: Node, table: EntityTable) -> None:
        header = self.header(SHEETS[table.name], f"T_{table.name}", ("name",))
        if header is None:
            return
        fields = entities.MODEL_FIELDS if table.name == "models" else entities.GPU_FIELDS
        known = {str(row["name"]): row for row in table.rows}
        missing = [name for name in fields if name not in header.columns]
        if missing:
            self.found.notes.append(f"{header.sheet.title}: the column {missing[0]} is gone; the engine's values apply")
        computed = [item.name for item in table.columns if item.name in header.columns]
        for row in self.body(header):
            name_cell = row.cells.get(header.columns["name"])
            if name_cell is None or name_cell.kind not in ("text", "number"):
                continue
            name = name_cell.value.strip() if isinstance(name_cell.value, str) else _plain(name_cell.value)
            old = known.get(name)
            for key, parameter in fields.items():
                if key not in header.columns:
                    continue
                place = header.place(key, row.number)
                value = self.cell_value(place, row.cells.get(header.columns[key]), parameter)
                before = old.get(key) if old else parameter.default
                if value is _BAD or value == before or (value is None and not before):
                    continue
                path = ("prices", name) if key == "usd_per_hour" else (table.name, name, key)
                if key == "usd_per_hour" and value is None:
                    continue
                self.set(root, path, Node(value, 0, 0, path=place))
            if old is None:
                self.new_entry(root, header, table, name, row)
            for column in computed:
                cell = row.cells.get(header.columns[column])
                if cell is not None and cell.formula is None and old is not None:
                    self.found.typed.append(Typed(header.sheet.title, f"{letter(header.columns[column])}{row.number}", name, column, cell.value, None))

    def new_entry(self, root: Node, header: Header, table: EntityTable, name: str, row: Row) -> None:
        self.set(root, (table.name, name, "source"), Node("added in the workbook", 0, 0, path=header.place("name", row.number)))
        for key in ("title", "source"):
            cell = row.cells.get(header.columns.get(key, 0))
            if cell is not None and isinstance(cell.value, str) and cell.value:
                self.set(root, (table.name, name, key), Node(cell.value, 0, 0, path=header.place(key, row.number)))

    def fixed(self, base: Book) -> None:
        """The sheets that only show what the engine knows: a change there is refused rather than passed over."""
        for name in ("methods", "formats", "time_models"):
            table = base.tables.get(name)
            header = self.header(SHEETS.get(name, "Time models"), f"T_{name}", ("name",)) if table else None
            if header is None or table is None:
                continue
            known = {str(row["name"]): row for row in table.rows}
            for row in self.body(header):
                cell = row.cells.get(header.columns["name"])
                old = known.get(str(cell.value)) if cell else None
                for item in table.inputs:
                    place = row.cells.get(header.columns.get(item.name, 0))
                    if old is not None and place is not None and place.kind == "number" and place.value != old[item.name]:
                        self.say(header.place(item.name, row.number), f"{item.name} of {old['name']} cannot be changed in the workbook",
                                 f"it is {_show(old[item.name])}")  # fmt: skip

    def profiles(self, root: Node, base: Book) -> None:
        header = self.header("Profiles", "T_profiles", ("profile", "p1"))
        if header is None:
            return
        for row in self.body(header):
            cell = row.cells.get(header.columns["profile"])
            if cell is None or not str(cell.value).strip():
                continue
            name = cell.value.strip() if isinstance(cell.value, str) else _plain(cell.value)
            rates: list[float] = []
            for k in range(1, POSITIONS + 1):
                rate = row.cells.get(header.columns.get(f"p{k}", 0))
                if rate is None or rate.formula is not None:
                    break
                value = self.cell_value(header.place(f"p{k}", row.number), rate, _RATE)
                if isinstance(value, float):
                    rates.append(value)
            old = base.vectors.profiles.get(name)
            if rates and (old is None or list(old.rates) != rates):
                place = header.place("p1", row.number)
                self.set(root, ("profiles", name), Node([Node(rate, 0, 0, path=place) for rate in rates], 0, 0, path=place))

    def curves(self, root: Node, base: Book) -> None:
        if not base.vectors.curves:
            return
        header = self.header("Curves", "T_curves", ("curve", "x", "y"))
        if header is None:
            return
        points: dict[str, list[list[float]]] = {}
        places: dict[str, str] = {}
        for row in self.body(header):
            cell = row.cells.get(header.columns["curve"])
            if cell is None or not isinstance(cell.value, str):
                continue
            pair = [self.cell_value(header.place(axis, row.number), row.cells.get(header.columns[axis]), _ANY) for axis in ("x", "y")]
            if all(isinstance(value, float) for value in pair):
                points.setdefault(cell.value, []).append(pair)
                places.setdefault(cell.value, header.place("x", row.number))
        for name, pairs in points.items():
            old = base.vectors.curves.get(name)
            if old is None or [list(point) for point in old.points] != pairs:
                rows_ = [Node([Node(v, 0, 0, path=places[name]) for v in pair], 0, 0, path=places[name]) for pair in pairs]
                self.set(root, ("curves", name), Node(rows_, 0, 0, path=places[name]))

    def formula_texts(self, root: Node, base: Book) -> None:
        """The table's own columns may be changed on the sheet Formulas; the engine's may not."""
        header = self.header("Formulas", "T_formulas", ("sheet", "column", "formula"))
        if header is None:
            return
        known = {item.name: item.text for item in base.fields.values() if item.role == "calc"}
        for row in self.body(header):
            cells = {key: row.cells.get(header.columns[key]) for key in ("sheet", "column", "formula")}
            name = str(cells["column"].value) if cells["column"] else ""
            text = str(cells["formula"].value) if cells["formula"] else ""
            if not cells["sheet"] or cells["sheet"].value != "Scenarios" or name not in known or not text or text == known[name]:
                continue
            place = header.place("formula", row.number)
            if name in base.table.columns:
                section = root.value["columns"].value[name]
                path = ("columns", name, "formula") if isinstance(section.value, dict) else ("columns", name)
                self.set(root, path, Node(text, 0, 0, path=place))
            elif name not in {item for item in base.fields if base.fields[item].parameter is not None}:
                own = base.fields[name].text
                if name in shared.OPEN or own != text:
                    self.found.notes.append(f"{place}: the engine's formula of '{name}' is used; a column of your own can differ")

    def extras(self, base: Book) -> None:
        """Sheets that are not the engine's."""
        from scenario.exporters import xlsx

        own = {title.lower() for title in xlsx.TITLES}
        self.found.extra_sheets = [sheet.title for sheet in self.workbook.sheets if sheet.title.lower() not in own]


def _relocate(node: Node) -> None:
    """Give every value of the Source sheet its cell as its place."""
    stack = [node]
    while stack:
        item = stack.pop()
        if item.line:
            item.path, item.line, item.column, item.offset = f"Source!A{item.line + 3}", 0, 0, 0
        stack += item.keys.values()
        stack += item.value.values() if isinstance(item.value, dict) else item.value if isinstance(item.value, list) else []


class _Bad:
    """Marks a cell with a problem."""


_BAD: Any = _Bad()
_RATE = Parameter(None, 0, 1)
_ANY = Parameter(None)


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _show(value: Any) -> str:
    return _plain(value) if isinstance(value, float | int) and not isinstance(value, bool) else "blank" if value is None else str(value)


class _Rows:
    """The Scenarios sheet: inputs by column, and values that stand in place of formulas."""

    def __init__(self, owner: _Reader, header: Header, base: Book) -> None:
        self.owner, self.header, self.base = owner, header, base
        self.known: dict[str, Parameter | None] = {"id": None, **dict.fromkeys((*CORE, "time_model"))}
        specs = Reader(owner.source, Node({}, 0, 0), owner.host, owner.max_rows).parameters
        self.known |= {**shared.INPUTS, **specs}
        self.inputs = self.input_columns()
        self.values: dict[str, list[Any]] = {name: [] for name in self.inputs}
        self.numbers: list[int] = []
        self.first: dict[str, dict[Any, str]] = {name: {} for name in self.inputs}

    def input_columns(self) -> dict[str, int]:
        """The columns of the sheet that are inputs, by the input's own name."""
        columns = self.header.columns
        found: dict[str, int] = {}
        for name in self.known:
            if f"{name}_given" in columns:
                found[name] = columns[f"{name}_given"]
            elif name in columns and (name in ("id", *CORE) or name in shared.REQUIRED):
                found[name] = columns[name]
        for name in columns:
            if name.endswith("_override"):
                found[name] = columns[name]
                self.known[name] = _ANY
        self.written: dict[str, str] = {}
        for name in self.expected():
            plain = name.removesuffix("_given")
            if plain not in found:
                self.owner.say(self.header.sheet.title, f"the column '{name}' is gone", "put it back, with this header; its cells may be blank")
        return found

    def expected(self) -> list[str]:
        """The input columns that the workbook had when it was written; ``written`` gets the formulas of its first row."""
        header = self.owner.header("Formulas", "T_formulas", ("column", "kind"))
        if header is None:
            return []
        listed: list[tuple[str, str, str]] = []
        for row in self.owner.body(header):
            cells = [row.cells.get(header.columns.get(key, 0)) for key in ("sheet", "kind", "column", "in the first row")]
            sheet, kind, name, formula = ("" if cell is None else str(cell.value) for cell in cells)
            if sheet == "Scenarios" and name:
                listed.append((kind, name, formula))
        letters = {letter(index): name for index, (_, name, _) in enumerate(listed, 1)}
        self.written = {name: canonical(formula, letters, FIRST) for _, name, formula in listed if formula}
        return [name for kind, name, _ in listed if kind == "input"]

    def read(self) -> None:
        owner, header, reading = self.owner, self.header, self.owner.found
        formulas = self.formula_columns()
        self.letters = {letter(column): name for name, column in header.columns.items()}
        self.seen: dict[tuple[str, str], bool] = {}
        self.shared: dict[tuple[str, int], bool] = {}
        others = {n: c for n, c in header.columns.items() if c not in {*formulas.values(), *self.inputs.values()} and n}
        hidden: list[int] = []
        shown: dict[str, list[Any]] = {name: [] for name in formulas} if owner.keep_shown else {}
        extra: dict[str, list[Cell | None]] = {name: [] for name in others}
        until = max([*self.inputs.values(), *others.values()], default=1)
        whole = header.row + (10**7 if owner.keep_shown else WHOLE)

        def full(row: int, found: int) -> bool:
            return row <= whole or 0 < found < len(formulas)

        for row in rows(owner.workbook, header.sheet, until=until, full=full):
            if row.number <= header.row:
                continue
            cells = {name: row.cells.get(column) for name, column in self.inputs.items()}
            if not any(cell is not None for cell in cells.values()):
                continue
            if len(self.numbers) >= owner.max_rows:
                raise owner.workbook.refuse(f"the workbook has more than {owner.max_rows:,} rows", "allow more with --max-rows")
            if row.hidden:
                hidden.append(row.number)
            self.numbers.append(row.number)
            for name, cell in cells.items():
                self.values[name].append(self.checked(name, cell, row.number))
            if row.formulas and full(row.number, row.formulas):
                self.compare(row, formulas)
            for name, values in shown.items():
                cell = row.cells.get(formulas[name])
                values.append(None if cell is None or (cell.kind == "text" and cell.value == "") else cell.value)
            for name, found in extra.items():
                found.append(row.cells.get(others[name]))
        reading.rows, reading.shown = self.numbers, shown
        reading.extra_columns = {name: found for name, found in extra.items() if any(cell is not None for cell in found)}
        if hidden:
            listed = ", ".join(map(str, hidden[:8])) + (", ..." if len(hidden) > 8 else "")
            reading.notes.append(f"{header.sheet.title}: hidden rows count as well ({listed}); delete a row to leave it out")
        for area in self.merged():
            owner.say(f"{header.sheet.title}!{area}", "merged cells: only the first of them holds a value", "unmerge them and fill each cell")
        if not self.numbers:
            owner.say(header.sheet.title, "there are no rows below the header")

    def formula_columns(self) -> dict[str, int]:
        """The computed columns that the sheet shows: those that had a formula when the workbook was written."""
        computed = set(self.written) or {name for name, item in self.base.fields.items() if item.role != "input"}
        inputs = set(self.inputs.values())
        return {name: column for name, column in self.header.columns.items() if column not in inputs and name in computed}

    def compare(self, row: Row, formulas: Mapping[str, int]) -> None:
        """Note values typed over formulas, and formulas that are not the ones that were written."""
        for name, column in formulas.items():
            cell = row.cells.get(column)
            if cell is None or (cell.formula is not None and self.unchanged(name, cell, row.number)):
                continue
            place = f"{letter(column)}{row.number}"
            index = len(self.numbers) - 1
            self.owner.found.typed.append(Typed(self.header.sheet.title, place, index, name, cell.value, cell.formula))

    def unchanged(self, name: str, cell: Cell, row: int) -> bool:
        if cell.shared is not None and not cell.formula:
            return self.shared.get((name, cell.shared), True)
        key = name, (cell.formula or "").replace(str(row), "#")
        if key not in self.seen:
            self.seen[key] = canonical(cell.formula or "", self.letters, row) == self.written.get(name, "")
        if cell.shared is not None:
            self.shared[name, cell.shared] = self.seen[key]
        return self.seen[key]

    def merged(self) -> list[str]:
        """Merged areas that touch the rows."""
        found: list[str] = []
        tail = b""
        for chunk in self.owner.workbook.chunks(self.header.sheet.part):
            tail = chunk
        for area in re.findall(rb'<mergeCell ref="([A-Z]+[0-9]+:[A-Z]+([0-9]+))"', tail):
            if int(area[1]) > self.header.row:
                found.append(area[0].decode())
        return found

    def checked(self, name: str, cell: Cell | None, row: int) -> Any:
        """One input value; names are checked once per distinct value by the table's reader."""
        if cell is None:
            return None
        parameter = self.known[name]
        place = f"{self.header.sheet.title}!{letter(self.inputs[name])}{row}"
        value = self.owner.cell_value(place, cell, parameter)
        if value is _BAD or value is None:
            return None
        if isinstance(value, str):
            self.first[name].setdefault(value, place)
        elif parameter is not None:
            said = contract.value_problem(parameter, value)
            if said:
                self.owner.say(place, f"{name}: {said}")
                return None
        return value


class _WorkbookReader(Reader):
    """Reads the tree like any table, with the rows of the sheet in place of grid and rows."""

    def __init__(self, source: Source, root: Node, host: Host, max_rows: int, found: _Rows) -> None:
        super().__init__(source, root, host, max_rows)
        self.found = found

    def given_rows(self, defaults: Mapping[str, float | str]) -> pl.DataFrame:
        found = self.found
        expander = Expander(self, defaults)
        columns: dict[str, pl.Series] = {}
        for name, values in found.values.items():
            if name != "id" and all(value is None for value in values) and name not in CORE:
                continue
            columns[name] = self.column(name, values, expander)
        frame = pl.DataFrame(columns).with_columns(self.overrides(columns))
        self.required(frame, defaults)
        self.repeated(frame)
        if self.source.problems:
            return pl.DataFrame()
        self.together(frame, expander)
        return expander.with_ids(frame) if not self.source.problems else pl.DataFrame()

    def overrides(self, columns: Mapping[str, pl.Series]) -> list[pl.Series]:
        """Values typed over formulas: faults, or carried as columns of their own when they are to be kept."""
        found, sheet = self.found, self.found.header.sheet.title
        changed: dict[str, list[Any]] = {}
        kept = found.owner.keep_overrides
        listed = 0
        for typed in found.owner.found.typed:
            place = f"{typed.sheet}!{typed.cell}"
            what = f"{_show(typed.value)} is typed over the formula of '{typed.column}'"
            if typed.formula is not None:
                what = f"the formula of '{typed.column}' was changed"
            can = typed.sheet == sheet and isinstance(typed.row, int) and isinstance(typed.value, float) and not typed.column.endswith("_row")
            if kept and can:
                name = typed.column if f"{typed.column}_given" in found.header.columns else f"{typed.column}_override"
                series = changed.setdefault(name, columns[name].to_list() if name in columns else [None] * len(found.numbers))
                series[int(typed.row)] = typed.value
                found.owner.found.notes.append(f"{place}: {what}; its value {_show(typed.value)} is kept")
            elif kept:
                self.source.say(Node(None, 0, 0, path=place), f"{what}, and cannot be kept", "copy the formula back from a neighbouring row")
            elif listed < 20:
                listed += 1
                self.source.say(Node(None, 0, 0, path=place), what,
                                "copy the formula back from a neighbouring row, or keep the value with --keep-overrides")  # fmt: skip
        return [pl.Series(name, values, dtype=pl.Float64, strict=False) for name, values in changed.items()]

    def column(self, name: str, values: list[Any], expander: Expander) -> pl.Series:
        parameter = self.found.known[name]
        if name.endswith("_override"):
            return pl.Series(name, values, dtype=pl.Float64, strict=False)
        if parameter is not None and parameter.kind not in contract.TEXT_KINDS:
            return pl.Series(name, values, dtype=pl.Float64, strict=False)
        canonical: dict[Any, Any] = {None: None}
        for value, place in self.found.first[name].items():
            node = Node(value, 0, 0, path=place)
            if name == "id":
                canonical[value] = value
            elif parameter is None:
                canonical[value] = self.core(name, node)
            else:
                canonical[value] = self.value(name, parameter, node)
        return pl.Series(name, [canonical.get(value) for value in values], dtype=pl.String)

    def required(self, frame: pl.DataFrame, defaults: Mapping[str, float | str]) -> None:
        sheet, numbers = self.found.header.sheet.title, self.found.numbers
        for name in shared.REQUIRED:
            if name in defaults:
                continue
            if name not in frame.columns:
                if name not in self.found.inputs:
                    self.source.say(Node(None, 0, 0, path=sheet), f"there is no column '{name}', and it has no default")
                    continue
                frame = frame.with_columns(pl.lit(None).alias(name))
            blank = [number for number, empty in zip(numbers, frame[name].is_null().to_list(), strict=True) if empty]
            for number in blank[:20]:
                place = f"{sheet}!{letter(self.found.inputs[name])}{number}"
                if not any(problem.place == place for problem in self.source.problems):
                    self.source.say(Node(None, 0, 0, path=place), f"{name} is blank and has no default", "type a value, or clear the whole row")

    def repeated(self, frame: pl.DataFrame) -> None:
        seen: dict[str, int] = {}
        for number, name in zip(self.found.numbers, frame["id"].to_list(), strict=True):
            if name is None:
                continue
            if name in seen:
                column = letter(self.found.inputs["id"])
                self.source.say(Node(None, 0, 0, path=f"{self.found.header.sheet.title}!{column}{number}"),
                                f"the id '{name}' stands in row {seen[name]} already; an id names one row",
                                "clear the cell: a new id is made")  # fmt: skip
            seen.setdefault(name, number)

    def together(self, frame: pl.DataFrame, expander: Expander) -> None:
        """Checks that need two inputs of a row at once, once per combination."""
        names = [name for name in ("weights", *sorted(expander.shared_by)) if name in frame.columns]
        for name in names:
            pairs = frame.with_row_index("#").group_by("method", name, maintain_order=True).agg(pl.col("#").first())
            for method, value, index in pairs.iter_rows():
                place = f"{self.found.header.sheet.title}!{letter(self.found.inputs[name])}{self.found.numbers[index]}"
                cells = {"method": [(method, Node(method, 0, 0, path=place))], name: [(value, Node(value, 0, 0, path=place))]}
                if name == "weights":
                    expander.twice_quantized(Node(None, 0, 0, path=place), cells)
                else:
                    expander.ranges(cells)
