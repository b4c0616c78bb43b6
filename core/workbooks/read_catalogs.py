"""The catalog sheets of a workbook that comes back: models, GPUs, hardware; and those that only show what the engine knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scenario.book.book import Book, EntityTable
from scenario.common.yamltree import YamlNode
from scenario.model import entities
from scenario.model.spec import Parameter
from scenario.workbooks.cells import Cell, Row, blank, letter
from scenario.workbooks.form import TITLES
from scenario.workbooks.found import BAD, Header, Typed, listing, show
from scenario.workbooks.sheets import Sheets, at, mapping_at

TYPED = {"models": entities.MODEL_FIELDS, "gpus": entities.GPU_FIELDS, "hardware": entities.HARDWARE_FIELDS}
"""The fields of the catalogs whose blue cells are inputs."""
NOTES = ("name", "title", "doc", "price_source", "source")
PRICE = "usd_per_hour"


def read_catalogs(sheets: Sheets, root: YamlNode, base: Book) -> None:
    """Put what the catalog sheets say otherwise than the engine into the table's tree."""
    for name, fields in TYPED.items():
        header = sheets.header(TITLES[name], ("name",)) if name in base.tables else None
        if header is not None:
            _Catalog(sheets, root, header, base.tables[name], fields).read()
    for name in ("methods", "formats", "time_models"):
        header = sheets.header(TITLES[name], ("name",)) if name in base.tables else None
        if header is not None:
            _fixed(sheets, header, base.tables[name])


class _Catalog:
    """One catalog sheet whose blue cells are inputs."""

    def __init__(
        self, sheets: Sheets, root: YamlNode, header: Header, table: EntityTable, fields: Mapping[str, Parameter]
    ) -> None:
        self.sheets, self.root, self.header, self.table = sheets, root, header, table
        self.title = TITLES[table.name]
        self.fields = {key: parameter for key, parameter in fields.items() if key in header.columns}
        self.missing = [key for key in fields if key not in header.columns]
        self.computed = [item.name for item in table.columns if item.name in header.columns]
        self.known = {str(row["name"]): row for row in table.rows}

    def read(self) -> None:
        sheets, header, table = self.sheets, self.header, self.table
        if self.missing:
            sheets.note(f"{header.sheet.title}: the column {self.missing[0]} is gone; the engine's values apply")
        sheets.not_carried(header, {*NOTES, *self.fields, *table.fields})
        place_of = sheets.remember(self.title, header)
        seen: set[str] = set()
        for row in sheets.body(header, "name"):
            name = header.text(row, "name")
            cell = header.cell(row, "name")
            if cell is None or cell.kind not in ("text", "number"):
                continue
            place_of.rows[row.number] = name
            seen.add(name)
            self.entry(row, name)
        sheets.come_back(header, seen, self.known)

    def entry(self, row: Row, name: str) -> None:
        """One row: a known entry whose cells may have changed, or a new one."""
        sheets, header, old = self.sheets, self.header, self.known.get(name)
        fixed = self.table.name == "hardware"
        sheets.use(header, row, ("name", *self.fields, *self.computed) if old or not fixed else header.columns)
        if old is None and fixed:
            sheets.note(f"{header.place('name', row.number)}: a new set of constants needs its GPUs: "
                        "give it under hardware:")  # fmt: skip
            return
        if old is None:
            self.new(row, name)
        for key, parameter in self.fields.items():
            self.field(row, name, key, parameter, old.get(key) if old else parameter.default)
        if not fixed:
            self.sources(row, name)
        bare = [key for key in self.computed if (cell := header.cell(row, key)) is None or cell.formula is None]
        if old is None and bare:
            place = header.place(bare[0], row.number)
            said = f"the formulas of {name} are missing from {place} on; copy those of the row above"
            sheets.found.entries[self.table.name, name] = said
        for key in bare if old else ():
            cell = header.cell(row, key)
            if cell is not None:
                at_cell = f"{letter(header.columns[key])}{row.number}"
                sheets.found.typed.append(Typed(header.sheet.title, at_cell, name, key, cell.value, None))

    def new(self, row: Row, name: str) -> None:
        """An entry that somebody added."""
        place = self.header.place("name", row.number)
        self.sheets.set(self.root, (self.table.name, name, "source"), at("added in the workbook", place))
        for key in ("title", "source"):
            cell = self.header.cell(row, key)
            if cell is not None and isinstance(cell.value, str) and cell.value:
                self.say(row, name, key, cell.value)

    def say(self, row: Row, name: str, key: str, text: str) -> None:
        """A text beside the numbers goes into the table."""
        self.sheets.set(self.root, (self.table.name, name, key), at(text, self.header.place(key, row.number)))
        self.sheets.use(self.header, row, (key,))

    def field(self, row: Row, name: str, key: str, parameter: Parameter, before: Any) -> None:
        """One blue cell."""
        value = self.sheets.value(self.header, row, key, parameter)
        if value is BAD or value == before or (value is None and not before and key != PRICE):
            return
        place = self.header.place(key, row.number)
        self.sheets.found.places[self.title, name, key] = place
        if key != PRICE:
            self.sheets.set(self.root, (self.table.name, name, key), at(value, place))
        else:
            node = at(None, place) if value is None else self.price(name, value, place)
            self.sheets.set(self.root, ("prices", name), node)

    def price(self, name: str, value: float, place: str, source: YamlNode | None = None) -> YamlNode:
        """A price with the source that was typed beside it, or that the table gives its prices already."""
        prices = self.root.value.get("prices")
        old = prices.value.get(name) if prices is not None and isinstance(prices.value, dict) else None
        said = source or (old.value.get("source") if old is not None and isinstance(old.value, dict) else None)
        cell = at(value, place)
        return cell if said is None else mapping_at({PRICE: cell, "source": said}, place)

    def sources(self, row: Row, name: str) -> None:
        """What was typed beside the numbers of a model or GPU: its title, its source, its price's source."""
        for key in ("title", "source"):
            text = self.sheets.edited(self.title, self.header.cell(row, key))
            if text is not None:
                self.say(row, name, key, text)
        said = self.sheets.edited(self.title, self.header.cell(row, "price_source"))
        price = self.header.cell(row, PRICE)
        if said is not None and price is not None and price.kind == "number":
            source = at(said, self.header.place("price_source", row.number))
            node = self.price(name, float(price.value), self.header.place(PRICE, row.number), source)
            self.sheets.set(self.root, ("prices", name), node)
            self.sheets.use(self.header, row, ("price_source",))


def _fixed(sheets: Sheets, header: Header, table: EntityTable) -> None:
    """A sheet that only shows what the engine knows: a change there is refused, or at least said.

    The numbers of methods are how formulas choose; they are others where a file was written with other plugins.
    """
    known = _numbered(sheets, header, table)
    other: dict[str, str] = {}
    for row in sheets.body(header):
        name = header.text(row, "name")
        for item in table.inputs if name in known else ():
            cell, old = header.cell(row, item.name), known[name][item.name]
            if cell is not None and cell.kind == "number":
                sheets.use(header, row, ("name", item.name))
            if item.name not in header.columns or _as_written(cell, old):
                continue
            place = header.place(item.name, row.number)
            if table.name == "formats":
                sheets.say(place, f"{item.name} of {name} cannot be changed in the workbook", f"it is {show(old)}")
            else:
                other.setdefault(name, place)
                sheets.found.entries[table.name, name] = f"{place} does not hold the engine's number {show(old)}"
    if other:
        sheets.note(f"{header.sheet.title}: the numbers of {listing(list(other))} are not this engine's "
                    f"({listing(list(other.values()))}); the engine's apply")  # fmt: skip


def _numbered(sheets: Sheets, header: Header, table: EntityTable) -> dict[str, Mapping[str, Any]]:
    """What the engine knows of each entry; time models are numbered anew in every file: those that its rows use."""
    known: dict[str, Mapping[str, Any]] = {str(row["name"]): row for row in table.rows}
    if table.name != "time_models":
        return known
    there = {header.text(row, "name") for row in sheets.body(header)}
    used = [model for model in sheets.host.time_models if model in there and model in known]
    return {model: {**known[model], "time_model_no": float(number)} for number, model in enumerate(used, 1)}


def _as_written(cell: Cell | None, value: Any) -> bool:
    """Whether a cell still says what was written there; a blank says nothing."""
    if cell is None or cell.kind == "none" or blank(cell):
        return value is None
    return bool(cell.kind == "number" and cell.value == value)
