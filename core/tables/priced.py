"""The sections that lay a table's own models, GPUs and prices over the catalog's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from scenario.catalogs import catalog
from scenario.catalogs.catalog import Catalog, Entry, Price
from scenario.common import emit
from scenario.common.yamltree import YamlNode
from scenario.model import entities
from scenario.model.spec import Parameter
from scenario.tables.section import Path, Section, Writing, said_of, with_value
from scenario.tables.table import Table
from scenario.tables.terms import NAMES, NOTES, SCALAR, Schema, mapping, named, value_of
from scenario.tables.values import ValueReader

PRICE = "usd_per_hour"


class _Entries:
    """Models or GPUs: ``part`` is the field of the catalog."""

    def __init__(self, part: str, kind: str, fields: Mapping[str, Parameter], notes: Sequence[str]) -> None:
        self.part, self.kind, self.fields, self.notes = part, kind, fields, notes

    def section(self, doc: str) -> Section:
        return Section(
            self.part, doc, self.read, self.write, self.schema, self.facts, self.take, levels=2, kind=self.kind, entries="still",
            remarks=self.remarks, stage=0,
        )  # fmt: skip

    def read(self, reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
        reader.catalog = catalog.merge(reader.catalog, reader.source, {self.part: node} if node else {})
        return {}

    def of(self, known: Catalog) -> Mapping[str, Entry]:
        found: Mapping[str, Entry] = getattr(known, self.part)
        return found

    def write(self, writing: Writing) -> Any:
        """All fields of a new entry, what differs in a known one."""
        base = self.of(catalog.builtin())
        said = {name: self.said(item, base.get(name)) for name, item in self.of(writing.table.catalog).items()}
        return {name: fields for name, fields in said.items() if fields or name not in base}

    def said(self, item: Entry, old: Entry | None) -> dict[str, Any]:
        """What a table says of an entry."""
        said: dict[str, Any] = {"title": item.title} if item.title != (old.title if old else item.name) else {}
        for name, parameter in self.fields.items():
            value = item.values.get(name)
            if value != (old.values.get(name) if old else parameter.default):
                said[name] = bool(value) if parameter.high == 1 and value in (0, 1) else value
        said |= {note: item.notes.get(note) for note in self.notes if item.notes.get(note) != (old.notes.get(note) if old else None)}
        return said | said_of(_cited(item, old))

    def facts(self, mine: Writing, other: Writing) -> Any:
        """Every value of what either table changes, as it applies; a price belongs to ``prices``."""
        known, prices = self.of(mine.table.catalog), {*mine.table.catalog.prices, *other.table.catalog.prices}
        said = self.write(mine)
        found = {}
        for name in dict.fromkeys([*said, *self.write(other)]):
            if name in known:
                notes = {key: value for key, value in said.get(name, {}).items() if key not in self.fields}
                found[name] = {**known[name].values, **notes}
                if name in prices:
                    found[name].pop(PRICE, None)
        return found

    def take(self, table: Table, other: Table, path: Path) -> Table:
        """A field's value, or with the name alone the whole entry (a GPU with its price)."""
        theirs, prices = self.of(other.catalog)[path[0]], table.catalog.prices
        if len(path) == 1:
            item = theirs
            prices = prices if self.kind == "model" else with_value(prices, path[0], other.catalog.prices.get(path[0]))
        else:
            item = self.of(table.catalog)[path[0]]
            item = replace(item, values={**item.values, path[1]: theirs.values.get(path[1])})
        entries = {**self.of(table.catalog), path[0]: item}
        return replace(table, catalog=replace(table.catalog, prices=prices, **{self.part: entries}))

    def remarks(self, writing: Writing) -> Mapping[Path, str]:
        base = self.of(catalog.builtin())
        found: dict[Path, str] = {}
        for name, said in self.write(writing).items():
            old = base[name].values if name in base else {}
            was = [f"{key} {emit.number(old[key] or 0)}" for key in said if old.get(key) is not None]
            found[name,] = "in the catalog: " + ", ".join(was) if was else ""
        return found

    def schema(self, _: object) -> Schema:
        fields = {name: value_of(parameter, name) for name, parameter in self.fields.items()}
        own = {"hf_config": {"type": "string"}} if self.kind == "model" else {}
        return named(mapping({**fields, **NOTES, **dict.fromkeys(self.notes, SCALAR), **own}), propertyNames=NAMES)


def _cited(item: Entry, old: Entry | None) -> dict[str, Any]:
    """The source of an entry, its date and whether it is verified, where that is not the catalog's."""
    given = {"the table", f"{old.source} (changed by the table)", old.source} if old else {"the table"}
    source = "" if item.source in given else item.source
    dated = old.date if old and not source else ""
    unverified = not item.verified and (old is None or old.verified)
    return {"source": source, "date": "" if item.date == dated else item.date, "unverified": unverified or None}


# -- prices -------------------------------------------------------------------------------------------------


def _read_prices(reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
    reader.catalog = catalog.merge(reader.catalog, reader.source, {"prices": node} if node else {})
    return {"catalog": reader.catalog}


def _write_prices(writing: Writing) -> Any:
    known = catalog.builtin().prices
    return {name: _price(price) for name, price in writing.table.catalog.prices.items() if price != known.get(name)}


def _price(price: Price) -> dict[str, Any]:
    said = said_of({"source": "" if price.source == "the table" else price.source, "date": price.date, "unverified": not price.verified or None})
    return {PRICE: price.usd_per_hour, **said}


def _price_facts(mine: Writing, other: Writing) -> Any:
    """What an hour costs on every GPU that either table prices, in ``prices`` or among the GPU's own fields."""
    said, found = _write_prices(mine), {}
    for name in dict.fromkeys([*said, *_write_prices(other)]):
        found[name] = {**said.get(name, {}), PRICE: _hour(mine.table.catalog, name)}
    return found


def _hour(known: Catalog, name: str) -> float | None:
    if name in known.prices:
        return known.prices[name].usd_per_hour
    return known.gpus[name].values.get(PRICE) if name in known.gpus else None


def _take_price(table: Table, other: Table, path: Path) -> Table:
    name, known = path[0], table.catalog
    gpus = dict(known.gpus)
    if name in gpus and name in other.catalog.gpus:
        gpus[name] = replace(gpus[name], values={**gpus[name].values, PRICE: other.catalog.gpus[name].values.get(PRICE)})
    prices = with_value(known.prices, name, other.catalog.prices.get(name))
    return replace(table, catalog=replace(known, gpus=gpus, prices=prices))


def _price_remarks(writing: Writing) -> Mapping[Path, str]:
    found: dict[Path, str] = {}
    for name, old in catalog.builtin().prices.items():
        said = f"in the catalog: {emit.number(old.usd_per_hour)}" if old.usd_per_hour is not None else ""
        found[name,] = said + (f" ({old.date}), {old.source}" if old.date else "")
    return found


def _price_schema(_: object) -> Schema:
    hour = value_of(replace(entities.GPU_FIELDS[PRICE], doc=""))
    return named({"anyOf": [hour, mapping({PRICE: hour, **{key: NOTES[key] for key in ("source", "date", "unverified")}}, required=[PRICE])]})


MODELS = _Entries("models", "model", entities.MODEL_FIELDS, entities.MODEL_NOTES).section("models of this table, or changes to built-in ones")
GPUS = _Entries("gpus", "GPU", entities.GPU_FIELDS, entities.GPU_NOTES).section("GPUs of this table, or changes to built-in ones")
PRICES = Section(
    "prices", "$/GPU-hour by GPU", _read_prices, _write_prices, _price_schema, _price_facts, _take_price, levels=2, kind="price", main=PRICE,
    remarks=_price_remarks, stage=0,
)  # fmt: skip
