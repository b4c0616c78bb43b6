"""A workbook that comes back, as the table it stands for: inputs, assumptions, catalogs and the analyst's rows.

What an input cell says counts; formulas do not, unless a value stands in place of one. The rest of the table
(title, own columns, summary) comes from the sheet Source. Every fault is named by sheet and cell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from scenario import catalog, contract, entities, features, shared, timing, yamltree
from scenario.assemble import assemble, scalar_name
from scenario.book import Book, EntityTable
from scenario.catalog import number_hint
from scenario.errors import Problem, TableError, nearest
from scenario.host import Host
from scenario.reader import Reader
from scenario.spec import Parameter
from scenario.table import MAX_ROWS, Table
from scenario.vectors import POSITIONS
from scenario.xlsx_cells import Cell, Row, letter, rows
from scenario.xlsx_extras import MAX_CELLS, Extras, OldSheet, added, formula_of, letters_of, marked, read_sheet
from scenario.xlsx_rows import ANY, BAD, RATE, Header, Reading, RowReader, Typed, WorkbookReader, listing, plain, show
from scenario.xlsx_zip import SheetPart, Workbook
from scenario.yamltree import Node, Source

SHEETS = {"models": "Models", "gpus": "GPUs", "methods": "Methods", "formats": "Formats", "hardware": "Hardware"}
PIECE = 30_000
"""Characters of a line of Source that stand in one cell."""
SEARCH = 60
"""Rows in which a sheet's header is looked for."""


def load(
    path: str | Path, host: Host, *, max_rows: int = MAX_ROWS, shown: bool = False, overrides: str = "refuse"
) -> tuple[Table, Reading]:
    """The table that a workbook stands for. Raises :class:`TableError` with every bad cell by its address.

    ``shown`` also collects what the computed cells showed. ``overrides`` says what becomes of values typed
    over formulas: ``refuse`` them, ``keep`` them as columns ``<name>_override``, or ``ignore`` them.
    """
    with Workbook(path) as book:
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        return _Reader(book, host, digest, max_rows, shown, overrides).table()


class _Reader:
    def __init__(self, workbook: Workbook, host: Host, digest: str, max_rows: int, shown: bool, overrides: str) -> None:
        self.workbook, self.host, self.max_rows = workbook, host, max_rows
        self.keep_shown, self.overrides = shown, overrides
        self.source = Source(workbook.path, "", digest)
        self.found = Reading(notes=list(workbook.notes))
        self.places: dict[str, OldSheet] = {}

    def table(self) -> tuple[Table, Reading]:
        header = self.header("Scenarios", "T_scenarios", ("id",), required=True)
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
        table = WorkbookReader(self.source, root, self.host, self.max_rows, rows_read).table()
        table.extras = self.extras()
        self.found.notes += table.extras.notes
        return table, self.found

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
                self.found.notes.append(f"{header.place(name, header.row)}: the column '{name}' is not carried over; "
                                        f"put such notes on a sheet of your own")  # fmt: skip

    def unused_time_models(self, base: Book) -> set[str]:
        """The time models that no row of the workbook used when it was written: it has no constants of theirs."""
        if "time_models" not in base.tables or self.workbook.sheet("Time models") is None:
            return set()
        header = self.header("Time models", "T_time_models", ("name",))
        cells = [row.cells.get(header.columns["name"]) for row in self.body(header)] if header else []
        return set(self.host.time_models) - {str(cell.value) for cell in cells if cell is not None}

    def body(self, header: Header) -> Iterator[Row]:
        """The rows below a header."""
        for row in rows(self.workbook, header.sheet):
            if row.number > header.row and row.cells:
                yield row

    def remember(self, title: str, header: Header) -> OldSheet:
        """Note where a sheet's columns stand, for formulas that refer to it; its rows are noted as they are read."""
        place = OldSheet(title, letters_of(header.columns), {}, header.row)
        self.places[header.sheet.title.lower()] = place
        return place

    def base_tree(self) -> Node:
        """The table as the sheet Source tells it, without rows."""
        sheet = self.workbook.sheet("Source")
        lines: list[str] = []
        if sheet is not None:
            for row in rows(self.workbook, sheet, until=20, last_row=100_000):
                if row.number >= 4:
                    lines += [""] * (row.number - 4 - len(lines))
                    lines.append(_source_line(row))
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

    def base_book(self, root: Node, header: Header) -> Book:
        """What the engine would assume by the Source sheet alone: what cells say is compared with this.

        It has the features and the optional inputs whose columns the workbook has.
        """
        known = catalog.builtin()
        row = {"model": next(iter(known.models)), "gpu": next(iter(known.gpus)), "batch": 1, "context": 0, "method": next(iter(self.host.methods))}
        optional = {"isl": 0, "osl": 1, "engine": "any"}
        row |= {name: value for name, value in optional.items() if {name, f"{name}_given"} & header.columns.keys()}
        models = list(self.host.time_models) if "time_model_given" in header.columns else [None]
        listed = [{**row, **({"time_model": model} if model else {})} for model in models]
        cells = [Node({name: Node(value, 0, 0, path="rows") for name, value in one.items()}, 0, 0) for one in listed]
        parts = {key: node for key, node in root.value.items() if key != "summary"}  # which may start at rows that are not here
        with_row = Node({**parts, "rows": Node(cells, 0, 0)}, 0, 0, keys=dict(root.keys))
        source = Source(f"{self.workbook.path}, sheet Source", "")
        table = Reader(source, with_row, self.host, self.max_rows).table()
        table.features = features.seen(header.columns)
        return assemble(table, self.host)

    # -- assumptions -----------------------------------------------------------------------------------

    def assumptions(self, root: Node, base: Book) -> None:
        header = self.header("Assumptions", "T_assumptions", ("name", "value"))
        if header is None:
            return
        self.not_carried(header, ("group", "name", "value", "unit", "allowed", "meaning", "from", "source"))
        seen: dict[str, tuple[str, Cell | None]] = {}
        place_of = self.remember("Assumptions", header)
        for row in self.body(header):
            found = row.cells.get(header.columns["name"])
            if found is not None and isinstance(found.value, str) and found.value:
                place_of.rows[row.number] = found.value
                seen[found.value] = header.place("value", row.number), row.cells.get(header.columns["value"])
        gone: list[str] = []
        unused = self.unused_time_models(base)
        for name, scalar in base.scalars.items():
            if name not in seen and scalar.owner in unused:
                continue
            if name not in seen:
                gone.append(f"{name} ({show(scalar.value)} applies)")
                continue
            place, cell = seen[name]
            value = self.cell_value(place, cell, scalar.parameter)
            if value is BAD or value == scalar.value:
                continue
            if value is None:
                if scalar.value is None or scalar.parameter.derive or scalar.parameter.default is None:
                    continue
                self.say(place, f"{name} is blank", f"type a value; the default is {show(scalar.parameter.default)}")
                continue
            if name.endswith("_default") and scalar.owner:
                self.say(place, f"{name} is the fallback of a derived value and cannot be changed here",
                         f"type the value as {name.removesuffix('_default')}")  # fmt: skip
                continue
            self.found.places["Assumptions", name, "value"] = place
            self.set(root, self.path_of(name, scalar.owner, base), Node(value, 0, 0, path=place))
        if gone:
            self.found.notes.append(f"{header.sheet.title}: there is no row for {listing(gone)}")
        defaults = {f"default_{name}": parameter for name, parameter in {**shared.INPUTS, **shared.SCALARS}.items()}
        for name, (place, cell) in seen.items():
            if name in base.scalars:
                continue
            if name in defaults:  # the sheet Source does not say it, or is gone
                value = self.cell_value(place, cell, defaults[name])
                if value is not BAD and value is not None:
                    self.set(root, ("defaults", name.removeprefix("default_")), Node(value, 0, 0, path=place))
            else:
                hint = nearest(name, base.scalars)
                self.found.notes.append(f"{place}: '{name}' is not an assumption of this engine and is passed over" + (f"; {hint}" if hint else ""))

    def path_of(self, name: str, owner: str, base: Book) -> tuple[str, ...]:
        if not owner:
            return ("time_model",) if name == "default_time_model" else ("defaults", name.removeprefix("default_"))
        if owner not in base.methods:
            return "parameters", owner, name.removeprefix(timing.scalar_name(self.host.time_models[owner], ""))
        method = base.methods[owner]
        key = next(key for key in method.parameters if scalar_name(method, key) == name)
        return "parameters", owner, key

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
        wants_text = parameter is None or parameter.kind in contract.TEXT_KINDS
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

    # -- catalogs --------------------------------------------------------------------------------------

    def entity(self, root: Node, table: EntityTable) -> None:
        header = self.header(SHEETS[table.name], f"T_{table.name}", ("name",))
        if header is None:
            return
        fields = {"models": entities.MODEL_FIELDS, "gpus": entities.GPU_FIELDS, "hardware": entities.HARDWARE_FIELDS}[table.name]
        known = {str(row["name"]): row for row in table.rows}
        missing = [name for name in fields if name not in header.columns]
        if missing:
            self.found.notes.append(f"{header.sheet.title}: the column {missing[0]} is gone; the engine's values apply")
        computed = [item.name for item in table.columns if item.name in header.columns]
        notes = ("name", "title", "doc", "price_source", "source")
        self.not_carried(header, {*notes, *fields, *(item.name for item in (*table.inputs, *table.columns))})
        place_of = self.remember(SHEETS[table.name], header)
        for row in self.body(header):
            name_cell = row.cells.get(header.columns["name"])
            if name_cell is None or name_cell.kind not in ("text", "number"):
                continue
            name = name_cell.value.strip() if isinstance(name_cell.value, str) else plain(name_cell.value)
            place_of.rows[row.number] = name
            old = known.get(name)
            if old is None and table.name == "hardware":
                self.found.notes.append(f"{header.place('name', row.number)}: a new set of constants needs its GPUs: give it under hardware:")
                continue
            if old is None:
                self.new_entry(root, header, table, name, row)
            for key, parameter in fields.items():
                if key not in header.columns:
                    continue
                place = header.place(key, row.number)
                value = self.cell_value(place, row.cells.get(header.columns[key]), parameter)
                before = old.get(key) if old else parameter.default
                if value is BAD or value == before or (value is None and not before):
                    continue
                self.found.places[SHEETS[table.name], name, key] = place
                path = ("prices", name) if key == "usd_per_hour" else (table.name, name, key)
                if key == "usd_per_hour" and value is None:
                    continue
                self.set(root, path, Node(value, 0, 0, path=place))
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
        """The sheets that only show what the engine knows: a change there is refused, or at least said.

        The numbers of methods are how formulas choose; they are others where a file was written with other plugins.
        """
        for name in ("methods", "formats", "time_models"):
            table = base.tables.get(name)
            header = self.header(SHEETS.get(name, "Time models"), f"T_{name}", ("name",)) if table else None
            if header is None or table is None:
                continue
            known = {str(row["name"]): row for row in table.rows}
            other: dict[str, str] = {}
            for row in self.body(header):
                cell = row.cells.get(header.columns["name"])
                old = known.get(str(cell.value)) if cell else None
                for item in table.inputs:
                    place = row.cells.get(header.columns.get(item.name, 0))
                    if old is None or place is None or place.kind != "number" or place.value == old[item.name]:
                        continue
                    if name != "formats":
                        other.setdefault(str(old["name"]), header.place(item.name, row.number))
                    else:
                        self.say(header.place(item.name, row.number), f"{item.name} of {old['name']} cannot be changed in the workbook",
                                 f"it is {show(old[item.name])}")  # fmt: skip
            if other:
                self.found.notes.append(f"{header.sheet.title}: the numbers of {listing(list(other))} are not this engine's "
                                        f"({listing(list(other.values()))}); the engine's apply")  # fmt: skip

    def profiles(self, root: Node, base: Book) -> None:
        header = self.header("Profiles", "T_profiles", ("profile", "p1"))
        if header is None:
            return
        for row in self.body(header):
            cell = row.cells.get(header.columns["profile"])
            if cell is None or not str(cell.value).strip():
                continue
            name = cell.value.strip() if isinstance(cell.value, str) else plain(cell.value)
            old = base.vectors.profiles.get(name)
            given = old.given if old else "marginal"
            mark, parameter = {"marginal": ("p", RATE), "conditional": ("a", RATE), "lengths": ("E", ANY)}[given]
            rates: list[float] = []
            for k in range(1, POSITIONS + 1):
                rate = row.cells.get(header.columns.get(f"{mark}{k}", 0))
                if rate is None or rate.formula is not None:
                    break
                value = self.cell_value(header.place(f"{mark}{k}", row.number), rate, parameter)
                if isinstance(value, float):
                    rates.append(value)
            if rates and (old is None or list(old.values or old.rates) != rates):
                place = header.place(f"{mark}1", row.number)
                said = {key: row.cells.get(header.columns.get(key, 0)) for key in ("doc", "source")}
                key = "rates" if given == "marginal" else given
                self.series(root, "profiles", name, key, Node([Node(rate, 0, 0, path=place) for rate in rates], 0, 0, path=place), said)

    def series(self, root: Node, section: str, name: str, key: str, values: Node, said: dict[str, Cell | None]) -> None:
        """Put a profile or a curve into the tree, with what the sheet says beside its numbers."""
        old = root.value.get(section)
        known = old.value.get(name) if old is not None and isinstance(old.value, dict) else None
        plain = known is not None and not isinstance(known.value, dict)  # the table had no notes beside it
        parts = {note: Node(cell.value, 0, 0, path=values.path) for note, cell in said.items()
                 if cell is not None and isinstance(cell.value, str) and cell.value and not plain}  # fmt: skip
        if parts or key not in ("rates", "points"):
            parts = {key: values, **parts}
            values = Node(parts, 0, 0, keys=dict.fromkeys(parts, values), path=values.path)
        self.set(root, (section, name), values)

    def curves(self, root: Node, base: Book) -> None:
        if not base.vectors.curves:
            return
        header = self.header("Curves", "T_curves", ("curve", "x", "y"))
        if header is None:
            return
        points: dict[str, list[list[float]]] = {}
        places: dict[str, str] = {}
        said: dict[str, dict[str, Cell | None]] = {}
        for row in self.body(header):
            cell = row.cells.get(header.columns["curve"])
            if cell is None or not isinstance(cell.value, str):
                continue
            pair = [self.cell_value(header.place(axis, row.number), row.cells.get(header.columns[axis]), ANY) for axis in ("x", "y")]
            if all(isinstance(value, float) for value in pair):
                points.setdefault(cell.value, []).append(pair)
                places.setdefault(cell.value, header.place("x", row.number))
                said.setdefault(cell.value, {key: row.cells.get(header.columns.get(key, 0)) for key in ("doc", "source")})
        for name, pairs in points.items():
            old = base.vectors.curves.get(name)
            if old is None or [list(point) for point in old.points] != pairs:
                rows_ = [Node([Node(v, 0, 0, path=places[name]) for v in pair], 0, 0, path=places[name]) for pair in pairs]
                if name in {curve.name for curve, _ in base.table.measured}:
                    self.set(root, ("measured", name, "points"), Node(rows_, 0, 0, path=places[name]))
                else:
                    self.series(root, "curves", name, "points", Node(rows_, 0, 0, path=places[name]), said[name])

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
            elif name in shared.COLUMNS and name not in shared.OPEN:
                self.found.other_formulas[name] = place
        if self.found.other_formulas:
            said = f"the engine's formulas of {listing(list(self.found.other_formulas))} are used, not the text here; a column of your own can differ"
            self.found.notes.append(f"{next(iter(self.found.other_formulas.values()))}: {said}")

    def extras(self) -> Extras:
        """The analyst's own columns and sheets, with their formulas in terms that survive a new layout."""
        from scenario.exporters import xlsx

        found, header = Extras(), self.found.header
        assert header is not None
        places = self.places
        home = OldSheet("Scenarios", letters_of(header.columns), {n: str(i) for i, n in enumerate(self.found.rows)}, header.row)
        places[header.sheet.title.lower()] = home
        own_titles = {title.lower() for title in xlsx.TITLES} | {header.sheet.title.lower()}
        if self.found.base is not None and not self.found.base.vectors.curves:
            own_titles.discard("curves")
        added_sheets = [sheet for sheet in self.workbook.sheets if sheet.title.lower() not in own_titles]
        own = {sheet.title.lower() for sheet in added_sheets}
        assert self.found.base is not None
        known = {*self.found.base.scalars, "all_checks"}
        for name, cells in self.found.extra_columns.items():
            column = found.columns.setdefault(name, {})
            masters: dict[int, tuple[str, str]] = {}
            lost = 0
            for index, cell in cells.items():
                text = formula_of(cell, f"{letter(header.columns[name])}{self.found.rows[index]}", masters)
                formula = marked(text, home, places, own, known) if text and not cell.array else None
                lost += cell.formula is not None and formula is None
                column[index] = added(self.workbook, cell, formula)
            if lost:
                found.notes.append(f"{header.sheet.title}: {lost} formulas of the column '{name}' cannot be carried over; their values are kept")
        room = MAX_CELLS
        for sheet in added_sheets:
            found.sheets.append(read_sheet(self.workbook, sheet, places, own, found.notes, known, room))
            room -= len(found.sheets[-1].cells)
        return found


def _source_line(row: Row) -> str:
    """A line of the sheet Source; one that is too long for a cell goes on in the next."""
    text = ""
    for column in range(1, 21):
        piece = str(row.cells[column].value) if column in row.cells else ""
        text += piece
        if len(piece) < PIECE:
            break
    return text


def _relocate(node: Node) -> None:
    """Give every value of the Source sheet its cell as its place."""
    stack = [node]
    while stack:
        item = stack.pop()
        if item.line:
            item.path, item.line, item.column, item.offset = f"Source!A{item.line + 3}", 0, 0, 0
        stack += item.keys.values()
        stack += item.value.values() if isinstance(item.value, dict) else item.value if isinstance(item.value, list) else []


def changed_places(reading: Reading, book: Book) -> dict[str, str]:
    """What was changed in the workbook since it was written, but for the rows: name read by formulas -> cell.

    Names are those of scalars, or ``table:field`` for a catalog value.
    """
    base, found = reading.base, {}
    assert base is not None
    for name, scalar in book.scalars.items():
        if name in base.scalars and scalar.value != base.scalars[name].value:
            found[name] = reading.places.get(("Assumptions", name, "value"), name)
    for key, table in book.tables.items():
        old = {str(row["name"]): row for row in base.tables[key].rows}
        for row in table.rows:
            before = old.get(str(row["name"]), {})
            for item in table.inputs:
                if before and row.get(item.name) != before.get(item.name):
                    place = reading.places.get((SHEETS.get(key, key), str(row["name"]), item.name), f"{row['name']}.{item.name}")
                    found[f"{key}:{item.name}"] = place
    return found
