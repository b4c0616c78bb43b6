"""What a workbook that comes back assumes: scalars, catalogs, profiles, curves, and the table's own formulas."""

from __future__ import annotations

from typing import Any

from scenario.book import timing
from scenario.book.book import Book, EntityTable
from scenario.book.scope import scalar_name
from scenario.common.errors import nearest
from scenario.common.yamltree import Node
from scenario.formulas.vectors import POSITIONS
from scenario.model import entities, shared
from scenario.workbooks.cells import Cell, Row, letter
from scenario.workbooks.form import BY_TITLE, TITLES
from scenario.workbooks.found import ANY, BAD, RATE, Header, Typed, listing, plain, show
from scenario.workbooks.sheets import Sheets


class Assumed(Sheets):
    """Puts into the tree of a table what the sheets of assumptions say otherwise than the engine."""

    def unused_time_models(self, base: Book) -> set[str]:
        """The time models that no row of the workbook used when it was written: it has no constants of theirs."""
        if "time_models" not in base.tables or self.workbook.sheet("Time models") is None:
            return set()
        header = self.header("Time models", ("name",))
        cells = [row.cells.get(header.columns["name"]) for row in self.body(header)] if header else []
        return set(self.host.time_models) - {str(cell.value) for cell in cells if cell is not None}

    def assumptions(self, root: Node, base: Book) -> None:
        header = self.header("Assumptions", ("name", "value"))
        if header is None:
            return
        self.not_carried(header, BY_TITLE["Assumptions"].columns)
        seen: dict[str, tuple[str, Cell | None]] = {}
        place_of = self.remember("Assumptions", header)
        for row in self.body(header, "name"):
            found = row.cells.get(header.columns["name"])
            if found is not None and isinstance(found.value, str) and found.value:
                place_of.rows[row.number] = found.value
                self.use(header, row, ("name", "value"))
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
        own = zip(method.parameters, self.host.methods[owner].parameters, strict=True)  # as in this table, and as the author calls it
        key = next(plain for key, plain in own if scalar_name(method, key) == name)
        return "parameters", owner, key

    def entity(self, root: Node, table: EntityTable) -> None:
        header = self.header(TITLES[table.name], ("name",))
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
        place_of = self.remember(TITLES[table.name], header)
        seen: set[str] = set()
        for row in self.body(header, "name"):
            name_cell = row.cells.get(header.columns["name"])
            if name_cell is None or name_cell.kind not in ("text", "number"):
                continue
            name = name_cell.value.strip() if isinstance(name_cell.value, str) else plain(name_cell.value)
            place_of.rows[row.number] = name
            old = known.get(name)
            seen.add(name)
            self.use(header, row, ("name", *fields, *computed) if old or table.name != "hardware" else header.columns)
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
                if value is BAD or value == before or (value is None and not before and key != "usd_per_hour"):
                    continue
                self.found.places[TITLES[table.name], name, key] = place
                path = ("prices", name) if key == "usd_per_hour" else (table.name, name, key)
                node = Node(value, 0, 0, path=place)
                self.set(root, path, self.price(root, name, value, place) if path[0] == "prices" and value is not None else node)
            if table.name != "hardware":
                self.sources(root, header, table, name, row)
            bare = [column for column in computed if (cell := row.cells.get(header.columns[column])) is None or cell.formula is None]
            if old is None and bare:
                place = header.place(bare[0], row.number)
                self.found.entries[table.name, name] = f"the formulas of {name} are missing from {place} on; copy those of the row above"
            for column in computed:
                cell = row.cells.get(header.columns[column])
                if cell is not None and cell.formula is None and old is not None:
                    self.found.typed.append(Typed(header.sheet.title, f"{letter(header.columns[column])}{row.number}", name, column, cell.value, None))
        self.come_back(header, seen, known)

    def price(self, root: Node, name: str, value: float, place: str, source: Node | None = None) -> Node:
        """A price with the source that was typed beside it, or that the table gives its prices already."""
        prices = root.value.get("prices")
        old = prices.value.get(name) if prices is not None and isinstance(prices.value, dict) else None
        said = source or (old.value.get("source") if old is not None and isinstance(old.value, dict) else None)
        cell = Node(value, 0, 0, path=place)
        if said is None:
            return cell
        return Node({"usd_per_hour": cell, "source": said}, 0, 0, keys={"usd_per_hour": cell, "source": said}, path=place)

    def sources(self, root: Node, header: Header, table: EntityTable, name: str, row: Row) -> None:
        """What was typed beside the numbers of a model or GPU: its title, its source, its price's source."""
        for key in ("title", "source", "price_source"):
            cell = row.cells.get(header.columns.get(key, 0))
            text = self.edited(TITLES[table.name], cell)
            if cell is None or text is None:
                continue
            node = Node(text, 0, 0, path=header.place(key, row.number))
            price = row.cells.get(header.columns.get("usd_per_hour", 0))
            if key != "price_source":
                self.set(root, (table.name, name, key), node)
            elif price is not None and price.kind == "number":
                self.set(root, ("prices", name), self.price(root, name, float(price.value), header.place("usd_per_hour", row.number), node))
            else:
                continue
            self.use(header, row, (key,))

    def new_entry(self, root: Node, header: Header, table: EntityTable, name: str, row: Row) -> None:
        self.set(root, (table.name, name, "source"), Node("added in the workbook", 0, 0, path=header.place("name", row.number)))
        for key in ("title", "source"):
            cell = row.cells.get(header.columns.get(key, 0))
            if cell is not None and isinstance(cell.value, str) and cell.value:
                self.set(root, (table.name, name, key), Node(cell.value, 0, 0, path=header.place(key, row.number)))
                self.use(header, row, (key,))

    def fixed(self, base: Book) -> None:
        """The sheets that only show what the engine knows: a change there is refused, or at least said.

        The numbers of methods are how formulas choose; they are others where a file was written with other plugins.
        """
        for name in ("methods", "formats", "time_models"):
            table = base.tables.get(name)
            header = self.header(TITLES[name], ("name",)) if table else None
            if header is None or table is None:
                continue
            known = {str(row["name"]): row for row in table.rows}
            if name == "time_models":  # which are numbered anew in every file: those that its rows use
                there = {str(cell.value) for row in self.body(header) if (cell := row.cells.get(header.columns["name"])) is not None}
                used = [model for model in self.host.time_models if model in there]
                known = {model: {**known[model], "time_model_no": float(number)} for number, model in enumerate(used, 1) if model in known}
            other: dict[str, str] = {}
            for row in self.body(header):
                cell = row.cells.get(header.columns["name"])
                old = known.get(str(cell.value)) if cell else None
                for item in table.inputs:
                    place = row.cells.get(header.columns.get(item.name, 0))
                    if old is not None and place is not None and place.kind == "number":
                        self.use(header, row, ("name", item.name))
                    if old is None or item.name not in header.columns or self.as_written(place, old[item.name]):
                        continue
                    if name != "formats":
                        other.setdefault(str(old["name"]), header.place(item.name, row.number))
                        self.found.entries[name, str(old["name"])] = (
                            f"{header.place(item.name, row.number)} does not hold the engine's number {show(old[item.name])}")
                    else:
                        self.say(header.place(item.name, row.number), f"{item.name} of {old['name']} cannot be changed in the workbook",
                                 f"it is {show(old[item.name])}")  # fmt: skip
            if other:
                self.found.notes.append(f"{header.sheet.title}: the numbers of {listing(list(other))} are not this engine's "
                                        f"({listing(list(other.values()))}); the engine's apply")  # fmt: skip

    @staticmethod
    def as_written(cell: Cell | None, value: Any) -> bool:
        """Whether a cell still says what was written there; a blank says nothing."""
        if cell is None or (cell.kind in ("text", "none") and not str(cell.value or "").strip()):
            return value is None
        return bool(cell.kind == "number" and cell.value == value)

    def profiles(self, root: Node, base: Book) -> None:
        header = self.header("Profiles", ("profile", "p1"))
        if header is None:
            return
        seen: set[str] = set()
        for row in self.body(header, "profile"):
            cell = row.cells.get(header.columns["profile"])
            if cell is None or not str(cell.value).strip():
                continue
            name = cell.value.strip() if isinstance(cell.value, str) else plain(cell.value)
            old = base.vectors.profiles.get(name)
            seen.add(name)
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
            said = {key: row.cells.get(header.columns.get(key, 0)) for key in ("doc", "source")}
            if rates:
                self.use(header, row, (name for name in header.columns if name != "given"))
            if rates and (old is None or list(old.values or old.rates) != rates or self.said_anew("Profiles", said)):
                place = header.place(f"{mark}1", row.number)
                key = "rates" if given == "marginal" else given
                self.series(root, "profiles", name, key, Node([Node(rate, 0, 0, path=place) for rate in rates], 0, 0, path=place), said)
        self.come_back(header, seen, base.vectors.profiles)

    def said_anew(self, sheet: str, said: dict[str, Cell | None]) -> bool:
        """Whether somebody typed a note or a source beside numbers."""
        return any(self.edited(sheet, cell) is not None for cell in said.values())

    def series(self, root: Node, section: str, name: str, key: str, values: Node, said: dict[str, Cell | None]) -> None:
        """Put a profile or a curve into the tree, with what the sheet says beside its numbers."""
        old = root.value.get(section)
        known = old.value.get(name) if old is not None and isinstance(old.value, dict) else None
        plain = known is not None and not isinstance(known.value, dict)  # the table had no notes beside it
        parts = {note: Node(cell.value, 0, 0, path=values.path) for note, cell in said.items()
                 if cell is not None and isinstance(cell.value, str) and cell.value and (not plain or self.edited(section.capitalize(), cell))}  # fmt: skip
        if parts or key not in ("rates", "points"):
            parts = {key: values, **parts}
            values = Node(parts, 0, 0, keys=dict.fromkeys(parts, values), path=values.path)
        self.set(root, (section, name), values)

    def curves(self, root: Node, base: Book) -> None:
        if not base.vectors.curves:
            return
        header = self.header("Curves", ("curve", "x", "y"))
        if header is None:
            return
        measured = {curve.name for curve, _ in base.table.measured}
        points: dict[str, list[list[float]]] = {}
        places: dict[str, str] = {}
        said: dict[str, dict[str, Cell | None]] = {}
        for row in self.body(header, "curve"):
            cell = row.cells.get(header.columns["curve"])
            if cell is None or not isinstance(cell.value, str):
                continue
            pair = [self.cell_value(header.place(axis, row.number), row.cells.get(header.columns[axis]), ANY) for axis in ("x", "y")]
            if all(isinstance(value, float) for value in pair):
                self.use(header, row, ("curve", "x", "y", "slope", *(() if cell.value in points else ("doc", "source") * (cell.value not in measured))))
                points.setdefault(cell.value, []).append(pair)
                places.setdefault(cell.value, header.place("x", row.number))
                said.setdefault(cell.value, {key: row.cells.get(header.columns.get(key, 0)) for key in ("doc", "source")})
        for name, pairs in points.items():
            old = base.vectors.curves.get(name)
            if old is None or [list(point) for point in old.points] != pairs or (name not in measured and self.said_anew("Curves", said[name])):
                rows_ = [Node([Node(v, 0, 0, path=places[name]) for v in pair], 0, 0, path=places[name]) for pair in pairs]
                if name in measured:
                    self.set(root, ("measured", name, "points"), Node(rows_, 0, 0, path=places[name]))
                else:
                    self.series(root, "curves", name, "points", Node(rows_, 0, 0, path=places[name]), said[name])
        self.come_back(header, points, base.vectors.curves)

    def formula_texts(self, root: Node, base: Book) -> None:
        """The table's own columns may be changed on the sheet Formulas; the engine's may not."""
        header = self.header("Formulas", ("sheet", "column", "formula"))
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
            if name in base.table.columns or (name in shared.COLUMNS and name not in shared.OPEN):
                self.use(header, row, ("formula",))
            if name in base.table.columns:
                section = root.value["columns"].value[name]
                path = ("columns", name, "formula") if isinstance(section.value, dict) else ("columns", name)
                self.set(root, path, Node(text, 0, 0, path=place))
            elif name in shared.COLUMNS and name not in shared.OPEN:
                self.found.other_formulas[name] = place
        if self.found.other_formulas:
            said = f"the engine's formulas of {listing(list(self.found.other_formulas))} are used, not the text here; a column of your own can differ"
            self.found.notes.append(f"{next(iter(self.found.other_formulas.values()))}: {said}")
