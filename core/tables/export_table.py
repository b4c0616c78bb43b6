"""A checked table as YAML, as a person would have written it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from scenario.catalogs import catalog, series
from scenario.common import emit
from scenario.common.emit import Written
from scenario.common.yamltree import Node, Source
from scenario.model import entities, serving, shared
from scenario.model.spec import Parameter
from scenario.registry.host import Host
from scenario.tables import blocks
from scenario.tables.blocks import Block
from scenario.tables.reader import Reader
from scenario.tables.rows import Expander
from scenario.tables.table import MAX_ROWS, VERSION, Table, parameter_specs

LEAST_GRID = 4
"""Combinations that make a grid worth writing when there are other rows too."""
OVERRIDE = "_override"
"""The end of the names of columns that hold values in place of computed ones."""
_NUMBERED = re.compile(r"(.+)-([0-9]+)\Z", re.DOTALL)


def to_yaml(table: Table, host: Host, *, rows: bool = True) -> str:
    """The YAML of a table: read again, it gives the same rows, ids, values and formulas.

    Rows that are a product are a ``grid``; an id is written where it is not the one the reader would give.
    An input that no row gives is left out. ``rows=False`` leaves out the rows and what names them
    (``overrides``): the rest of a table whose rows are kept elsewhere.
    """
    return "\n".join(_Writer(table, host).lines(rows)) + "\n"


def rows_yaml(table: Table, host: Host) -> list[str]:
    """The lines of ``grid`` and ``rows`` alone."""
    return _RowWriter(_Writer(table, host)).lines()


class _Writer:
    def __init__(self, table: Table, host: Host) -> None:
        self.table, self.host = table, host
        self.known: dict[str, Parameter] = {**shared.INPUTS, **serving.INPUTS, **shared.SCALARS, **parameter_specs(host)}

    def lines(self, rows: bool) -> list[str]:
        table = self.table
        found = [f"version: {VERSION}", *emit.entry("title", table.title)]
        if table.time_model != "bound":
            found += emit.entry("time_model", table.time_model)
        found += self.presets()
        found += emit.section("defaults", self.defaults())
        if rows:
            found += _RowWriter(self).lines()
        found += emit.section("parameters", self.parameters())
        mine, known = table.catalog, catalog.builtin()
        found += emit.section("models", self.entries(mine.models, known.models, entities.MODEL_FIELDS, entities.MODEL_NOTES))
        found += emit.section("gpus", self.entries(mine.gpus, known.gpus, entities.GPU_FIELDS, entities.GPU_NOTES))
        found += emit.section("prices", self.prices())
        found += emit.section("profiles", self.profiles())
        found += emit.section("trees", self.trees())
        found += emit.section("curves", self.curves())
        found += emit.section("hardware", self.hardware())
        found += emit.section("measured", self.measured())
        found += emit.section("columns", self.columns())
        if table.show:
            found += ["", *emit.entry("show", list(table.show))]
        if table.where:
            found += ["", f"where: {emit.formula(table.where.text)}"]
        if table.sort:
            names = [f"-{name}" if down else name for name, down in table.sort]
            found += ["", *emit.entry("sort", names[0] if len(names) == 1 else names)]
        found += emit.section("summary", self.summary())
        return found + (emit.section("overrides", self.overrides()) if rows else [])

    def value(self, name: str, value: Any) -> Any:
        """A value of an input as it is written: rates rather than the name made from them, a flag as true or false."""
        parameter = self.known.get(name)
        if parameter and parameter.kind == "profile" and isinstance(value, str) and series.rates_of(value) is not None:
            profile = self.table.vectors.profiles.get(value)
            return list(profile.rates) if profile else value
        if parameter and parameter.kind == "flag" and value in (0, 1):
            return bool(value)
        return "auto" if name == "gpus" and value == 0 else value

    def presets(self) -> list[str]:
        names = self.table.presets
        if not names:
            return []
        about = self.host.presets.get(names[0]) if len(names) == 1 else None
        return emit.entry("preset", names[0] if len(names) == 1 else list(names), comment=about.source if about else "")

    def defaults(self) -> Iterable[str]:
        for name, value in self.table.defaults.items():
            yield from emit.entry(name, self.value(name, value), 2, default_of(self.known.get(name)))

    def parameters(self) -> Iterable[str]:
        for method, values in self.table.parameters.items():
            owner = self.host.methods.get(method) or self.host.time_models.get(method)
            specs = owner.parameters if owner else {}
            written = {name: self.value(name, value) for name, value in values.items()}
            notes = {name: default_of(specs.get(name)) for name in written}
            if not any(notes.values()) and len(emit.flow(written)) < emit.WIDTH:
                yield from emit.entry(method, written, 2)
                continue
            yield f"  {emit.text(method)}:"
            for name, value in written.items():
                yield from emit.entry(name, value, 4, notes[name])

    def overrides(self) -> Iterable[str]:
        rows = self.table.rows
        names = [name for name in rows.columns if name.endswith(OVERRIDE)]
        if names:
            for row in rows.filter(pl.any_horizontal(pl.col(names).is_not_null())).iter_rows(named=True):
                typed = {name.removesuffix(OVERRIDE): row[name] for name in names if row[name] is not None}
                yield from emit.entry(row["id"], typed, 2)

    # -- catalog ---------------------------------------------------------------------------------------

    def entries(
        self, found: Mapping[str, catalog.Entry], base: Mapping[str, catalog.Entry], fields: Mapping[str, Parameter], notes: Sequence[str]
    ) -> Iterable[str]:
        """Models or GPUs that are not the catalog's: all fields of a new one, what differs in a known one."""
        for name, item in found.items():
            old = base.get(name)
            said = _entry(item, old, fields, notes)
            if not said and old:
                continue
            was = [f"{key} {emit.number(old.values[key] or 0)}" for key in said if old and old.values.get(key) is not None]
            comment = "in the catalog: " + ", ".join(was) if was else ""
            if len(said) <= 3 and len(emit.flow(said)) < emit.WIDTH:
                yield from emit.entry(name, said, 2, comment)
                continue
            yield f"  {emit.text(name)}:" + (f"  # {emit.remark(comment)}" if comment else "")
            for key, value in said.items():
                yield from emit.entry(key, value, 4)

    def prices(self) -> Iterable[str]:
        known = catalog.builtin().prices
        for name, price in self.table.catalog.prices.items():
            old = known.get(name)
            if price == old:
                continue
            said: dict[str, Any] = {"usd_per_hour": price.usd_per_hour}
            if price.source and price.source != "the table":
                said["source"] = price.source
            if price.date:
                said["date"] = price.date
            if not price.verified:
                said["unverified"] = True
            comment = f"in the catalog: {emit.number(old.usd_per_hour)}" if old and old.usd_per_hour is not None else ""
            comment += f" ({old.date}), {old.source}" if old and old.date else ""
            yield from emit.entry(name, said if len(said) > 1 else price.usd_per_hour, 2, comment)

    def profiles(self) -> Iterable[str]:
        for name, profile in self.table.vectors.profiles.items():
            if series.rates_of(name.rpartition(":")[2]) is None and profile.rates:
                key = "rates" if profile.given == "marginal" else profile.given
                yield from self.series(name, key, list(profile.values or profile.rates), profile.source, profile.doc)

    def trees(self) -> Iterable[str]:
        for name, tree in self.table.vectors.trees.items():
            paths: list[list[int]] = []
            for parent, rank, _ in tree.nodes:
                paths.append([*(paths[parent] if parent >= 0 else []), rank])
            yield f"  {emit.text(name)}:"
            yield from emit.entry("rates", [list(row) for row in tree.rates], 4)
            yield from emit.entry("topology", paths, 4)
            notes = {"source": tree.source if tree.source != self.table.source.file else "", "doc": tree.doc}
            for note, said in notes.items():
                yield from emit.entry(note, said, 4) if said else []

    def hardware(self) -> Iterable[str]:
        for item in self.table.hardware:
            yield f"  {emit.text(item.name)}:"
            notes = {"title": item.title, "doc": item.doc, "source": item.source if item.source != self.table.source.file else ""}
            said = {"gpus": list(item.gpus), "engine": item.engine, **item.values, "uncertainty": dict(item.uncertainty), **notes}
            for key, value in said.items():
                if value not in ("", [], {}):
                    yield from emit.entry(key, value, 4)

    def measured(self) -> Iterable[str]:
        for curve, where in self.table.measured:
            yield f"  {emit.text(curve.name)}:"
            said = {**where, "points": [list(point) for point in curve.points], "doc": curve.doc,
                    "source": curve.source if curve.source != self.table.source.file else ""}  # fmt: skip
            for key, value in said.items():
                if value != "":
                    yield from emit.entry(key, value, 4)

    def curves(self) -> Iterable[str]:
        measured = {curve.name for curve, _ in self.table.measured}
        for name, curve in self.table.vectors.curves.items():
            if name in measured:
                continue
            yield from self.series(name, "points", [list(point) for point in curve.points], curve.source, curve.doc)

    def series(self, name: str, key: str, values: list[Any], source: str, doc: str) -> Iterable[str]:
        notes = {"source": source if source != self.table.source.file else "", "doc": doc}
        notes = {note: said for note, said in notes.items() if said}
        if not notes:
            yield from emit.entry(name, values if key in ("rates", "points") else {key: values}, 2)
            return
        yield f"  {emit.text(name)}:"
        yield from emit.entry(key, values, 4)
        for note, said in notes.items():
            yield from emit.entry(note, said, 4)

    # -- what is shown ---------------------------------------------------------------------------------

    def columns(self) -> Iterable[str]:
        for name, (column, _) in self.table.columns.items():
            formula = Written(emit.formula(column.formula))
            parts = {key: getattr(column, key) for key in ("title", "unit", "doc", "format", "source")}
            parts = {key: said for key, said in parts.items() if said}
            whole = {"formula": formula, **parts}
            if not parts:
                yield from emit.entry(name, formula, 2)
            elif len(emit.flow(whole)) < emit.WIDTH:
                yield from emit.entry(name, whole, 2)
            else:
                yield f"  {emit.text(name)}:"
                for key, said in whole.items():
                    yield from emit.entry(key, said, 4)

    def summary(self) -> Iterable[str]:
        asked = self.table.summary
        if asked.columns:
            yield from emit.entry("columns", asked.columns, 2)
        if asked.where:
            yield from emit.entry("where", {name: self.value(name, value) for name, value in asked.where.items()}, 2)
        if asked.rows:
            yield from emit.entry("rows", list(asked.rows), 2)


def default_of(parameter: Parameter | None) -> str:
    """A remark that says the default in place of which a value stands, and where that is from."""
    if parameter is None or not parameter.source:
        return ""
    default = parameter.default if isinstance(parameter.default, str) else emit.number(parameter.default or 0)
    said = "derived" if parameter.derive else "none" if parameter.default is None else default
    return f"default {said}: {parameter.source}"


def _entry(item: catalog.Entry, old: catalog.Entry | None, fields: Mapping[str, Parameter], notes: Sequence[str]) -> dict[str, Any]:
    """What a table says of a model or GPU."""
    said: dict[str, Any] = {}
    if item.title != (old.title if old else item.name):
        said["title"] = item.title
    for name, parameter in fields.items():
        value = item.values.get(name)
        if value != (old.values.get(name) if old else parameter.default):
            said[name] = bool(value) if parameter.high == 1 and value in (0, 1) else value
    for note in notes:
        if item.notes.get(note) != (old.notes.get(note) if old else None):
            said[note] = item.notes.get(note)
    given = {"the table", f"{old.source} (changed by the table)", old.source} if old else {"the table"}
    if item.source and item.source not in given:
        said["source"] = item.source
    if item.date and item.date != (old.date if old and "source" not in said else ""):
        said["date"] = item.date
    if not item.verified and (old is None or old.verified):
        said["unverified"] = True
    return said


class _RowWriter:
    """Writes ``grid`` and ``rows``."""

    def __init__(self, writer: _Writer) -> None:
        self.writer = writer
        reader = Reader(Source("", ""), Node({}, 0, 0), writer.host, MAX_ROWS)
        self.expander = Expander(reader, writer.table.defaults)
        rows = writer.table.rows
        names = [name for name in rows.columns if name != "id" and not name.endswith(OVERRIDE)]
        if writer.table.sort or writer.table.where:  # the rows of a workbook are sorted, and those left out come last
            rows = blocks.regrouped(rows, names)
        self.ids: list[str] = rows["id"].to_list()
        self.frame = rows.select([name for name in names if rows[name].null_count() < rows.height])

    def lines(self) -> list[str]:
        """Both sections. Ids are added until those that the reader makes up for the others are the table's."""
        needed: set[int] = set()
        while True:
            grid, listed, given = self.arrange(needed)
            order = self.order(grid, listed)
            made = self.made(order, given)
            wrong = {index for index, (one, other) in enumerate(zip(self.ids, made, strict=True)) if one != other}
            if not wrong:
                break
            needed |= wrong
        found: list[str] = []
        if grid:
            body = self.cells(grid, order)
            found += emit.section("grid", [line for name, value in body.items()
                                           for line in emit.entry(name, value if isinstance(value, list) else [value], 2)])  # fmt: skip
        written = []
        for block in listed:
            cells = self.cells(block, order)
            if block.start in given:
                cells = {"id": self.base(block) if block.size > 1 else self.ids[block.start], **cells}
            written.append(f"  - {emit.flow(cells)}")
        return found + emit.section("rows", written)

    def arrange(self, needed: set[int]) -> tuple[Block | None, list[Block], dict[int, str]]:
        """The grid, the rows after it, and the ids that are written, by row."""
        height = self.frame.height
        if not self.frame.width:
            blocks_ = [Block(index, 1) for index in range(height)]
            return None, blocks_, {index: self.ids[index] for index in needed}
        first = min(needed, default=height)
        head = blocks.leading(self.frame.head(first)) if first else Block(0, 0)
        listed = self.listed(head.size, needed)
        largest = max((block.size for block in listed), default=0)
        grid: Block | None = head
        if head.size < 2 or (listed and (head.size < LEAST_GRID or head.size < largest)):
            grid, listed = None, self.listed(0, needed)
        given = {block.start + k: self.ids[block.start + k] for block in listed if block.start in needed for k in range(block.size)}
        return grid, listed, given

    def listed(self, start: int, needed: set[int]) -> list[Block]:
        """The rows from ``start`` on as blocks; rows with an id of their own join only as ``x-1``, ``x-2``, ..."""
        rows = self.frame.slice(start)
        found: list[Block] = []
        single = [start + index in needed for index in range(rows.height)]
        for block in blocks.split(rows, single, len(self.frame.columns)):
            block = Block(block.start + start, block.size, block.axes)
            last = found[-1] if found else None
            if last and last.start in needed and block.start < last.start + last.size:
                continue  # part of the numbered block before it
            if block.start in needed:
                block = self.numbered(block.start) or block
            found.append(block)
        return found

    def numbered(self, start: int) -> Block | None:
        """The product whose rows are numbered from 1, starting here."""
        match = _NUMBERED.match(self.ids[start])
        if not match or match[2] != "1":
            return None
        end = start
        while end < len(self.ids) and self.ids[end] == f"{match[1]}-{end - start + 1}":
            end += 1
        rows = self.frame.slice(start, end - start)
        block = blocks.split(rows, [False] * rows.height, len(rows.columns))[0]
        return Block(start, block.size, block.axes) if block.size > 1 else None

    def base(self, block: Block) -> str:
        return self.ids[block.start].removesuffix("-1")

    def order(self, grid: Block | None, listed: list[Block]) -> list[str]:
        """The columns in the order in which the reader meets them, which is a fixed point."""
        order = list(self.frame.columns)
        shapes = dict.fromkeys(self.shape(block) for block in ([grid] if grid else []) + listed)
        for _ in range(len(order) + 1):
            met = list(dict.fromkeys(name for names, axes in shapes for name in placed(names, axes, order)))
            if met == order:
                break
            order = met
        return order

    def shape(self, block: Block) -> tuple[frozenset[str], tuple[str, ...]]:
        row = self.frame.row(block.start, named=True)
        return frozenset({name for name, value in row.items() if value is not None} | set(block.names)), block.names

    def cells(self, block: Block, order: list[str]) -> dict[str, Any]:
        """The inputs of a block as they are written, the slowest axis first."""
        row = self.frame.row(block.start, named=True)
        axes = dict(block.axes)
        names, _ = self.shape(block)
        value = self.writer.value
        return {
            name: [value(name, item) for item in axes[name]] if name in axes else value(name, row[name])
            for name in placed(names, block.names, order)
        }

    def made(self, order: list[str], given: Mapping[int, str]) -> list[str]:
        """The ids that the reader gives to the rows when only ``given`` are written."""
        written = pl.Series("id", [given.get(index) for index in range(self.frame.height)], dtype=pl.String)
        frame = self.frame.select(order).with_columns(written)
        for name in ("model", "gpu", "method"):
            if name not in frame.columns:
                frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias(name))
        return self.expander.with_ids(frame)["id"].to_list()


def placed(names: frozenset[str], axes: Sequence[str], order: Sequence[str]) -> list[str]:
    """``names`` in ``order``, except that the axes come in their own: the places they take are the same."""
    found = [name for name in order if name in names]
    turn = iter(axes)
    return [next(turn) if name in axes else name for name in found]
