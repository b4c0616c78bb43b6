"""The assembled model of one table: every column with its formula, every constant with its source.

``assemble`` merges the shared columns, the methods' answers and the table's own columns into one list of
fields in which each has *one* formula for all rows: where methods answer differently, it chooses by the
row's method. The engine computes a book, the exporters write it; nothing downstream adds arithmetic.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scenario.book.summary import SummaryView
from scenario.catalogs.catalog import Catalog
from scenario.formulas.expr import UNLIMITED, Call, If, Name, Node, Number
from scenario.formulas.facts import Facts
from scenario.formulas.nodes import Value
from scenario.formulas.vectors import Vectors
from scenario.model import entities, features, serving, shared
from scenario.model.kinds import parameter_facts
from scenario.model.spec import Column, Method, Parameter, TimeModel
from scenario.model.stacks import Stack
from scenario.tables.table import Table

KEY, ANSWER = "summary_key", "price_within_limits"
"""Columns that only the workbook has: by which other sheets find rows, and the price of a row within the limits on the sheet Answer."""


@dataclass(frozen=True)
class Scalar:
    """One constant for the whole table: a default, or a method's parameter.

    ``origin`` says where ``value`` comes from: ``table``, ``preset``, ``default`` or ``unset``.
    ``owner`` is the method or time model it belongs to, or empty.
    """

    name: str
    value: float | str | None
    parameter: Parameter
    origin: str
    source: str
    owner: str = ""


@dataclass(frozen=True)
class Lookup:
    """A value read from a catalog table: the ``field`` of the entry that the ``key`` column names."""

    table: str
    key: str
    field: str


@dataclass(frozen=True)
class Field:
    """One column of the scenario table.

    ``role`` is ``input`` (typed, may be blank), ``lookup`` or ``calc``. ``node`` is the checked formula of a
    calc, ``text`` the formula as people read it. ``public`` columns are in the frame and every file;
    the others are only shown where the work is (the workbook). ``facts`` bound its values. ``sheet`` is the
    workbook's sheet for helper columns that do not stand with the scenarios.
    """

    name: str
    role: str
    facts: Facts
    unit: str = ""
    title: str = ""
    doc: str = ""
    source: str = ""
    format: str = ""
    node: Node | None = None
    text: str = ""
    lookup: Lookup | None = None
    parameter: Parameter | None = None
    public: bool = True
    sheet: str = ""
    limit: bool = False
    """Whether it may say that there is no limit: the number 1e15, shown as the word ``unlimited``."""


@dataclass(frozen=True)
class EntityTable:
    """A catalog table: typed fields, computed columns, and one row per entry.

    ``rows`` holds name, title, the typed values in the order of ``inputs``, and source notes.
    """

    name: str
    inputs: tuple[Field, ...]
    columns: tuple[Field, ...]
    rows: tuple[Mapping[str, Value], ...]

    @property
    def names(self) -> list[str]:
        return [str(row["name"]) for row in self.rows]

    @property
    def fields(self) -> dict[str, Field]:
        return {item.name: item for item in (*self.inputs, *self.columns)}


@dataclass
class Book:
    """Everything a run needs, and everything an exporter shows."""

    table: Table
    scalars: dict[str, Scalar]
    tables: dict[str, EntityTable]
    fields: dict[str, Field]
    vectors: Vectors
    stacks: list[Stack]
    quantizations: list[str]
    draftings: list[str]
    time_models: list[str]
    methods: Mapping[str, Method]
    pass_ms: Node | None = None
    """Time of one forward pass: a formula of ``rows``, ``weight_gb``, ``kv_gb`` and columns."""
    where: Node | None = None
    sort: tuple[tuple[str, bool], ...] = ()
    summary_rows: tuple[str, ...] = ()
    summary_columns: str = ""
    summary_where: Mapping[str, Value] = field(default_factory=dict)
    plugins: tuple[tuple[str, str], ...] = ()
    summary: SummaryView | None = None
    """The summary whose columns are scenarios of their own, if the table has one."""

    @property
    def public(self) -> list[Field]:
        """The columns of the frame and of every file, in reading order."""
        at = shared.ORDER.index("tokens_per_s")
        order = (*shared.ORDER[:at], *serving.ORDER, *shared.ORDER[at:])
        place = {name: index for index, name in enumerate(order)}
        found = [item for item in self.fields.values() if item.public]
        return sorted(found, key=lambda item: place.get(item.name, len(place)))

    @property
    def constants(self) -> dict[str, Value]:
        return {scalar.name: scalar.value for scalar in self.scalars.values()}


def entity_inputs(fields: Mapping[str, Parameter], required: Iterable[str] = ()) -> tuple[Field, ...]:
    """The typed fields of a catalog table, with facts."""
    return tuple(
        Field(name, "input", parameter_facts(p, blank=p.default is None and name not in required), p.unit, doc=p.doc, parameter=p)
        for name, p in fields.items()
    )


def entity_rows(catalog: Catalog, published: bool = False) -> dict[str, tuple[Mapping[str, Any], ...]]:
    """The rows of the models, GPUs and formats tables; ``published`` adds the format that is each model's own."""
    models = tuple(
        {"name": e.name, "title": e.title, **{f: e.values.get(f) for f in entities.MODEL_FIELDS}, "source": e.cited}
        for e in catalog.models.values()
    )
    gpus = []
    for entry in catalog.gpus.values():
        price = catalog.prices.get(entry.name)
        values = {f: entry.values.get(f) for f in entities.GPU_FIELDS}
        if price:
            values["usd_per_hour"] = price.usd_per_hour
        gpus.append({"name": entry.name, "title": entry.title, **values, "source": entry.cited,
                     "price_source": price.cited if price else "no price known"})  # fmt: skip
    formats = tuple(
        {"name": name, "title": doc, "bits": float(bits), "source": "bits per value with its scales"}
        for name, (bits, doc) in entities.FORMATS.items()
    )
    if published:
        formats += ({"name": features.PUBLISHED, "title": "as the model's published checkpoint stores them: stored_bits on the sheet Models",
                     "bits": 16.0, "source": "quantization_config of the model"},)  # fmt: skip
    return {"models": models, "gpus": tuple(gpus), "formats": formats}


def time_model_rows(models: Iterable[TimeModel]) -> tuple[Mapping[str, Any], ...]:
    """The rows of the time models table."""
    return tuple(
        {"name": m.name, "title": m.title or m.name, "time_model_no": float(i), "source": m.source, "doc": m.doc}
        for i, m in enumerate(models, 1)
    )


def limits(node: Node, names: Collection[str]) -> bool:
    """Whether a formula can give ``unlimited`` itself, or a column of ``names`` that can; arithmetic on it gives a number."""
    match node:
        case Number(value=value):
            return value == UNLIMITED
        case Name(id=name):
            return name in names
        case If(then=then, other=other):
            return limits(then, names) or limits(other, names)
        case Call(function="choose", args=args):
            return any(limits(arg, names) for arg in args[1:])
        case Call(function="coalesce" | "min" | "max", args=args):
            return any(limits(arg, names) for arg in args)
    return False


def calc(name: str, column: Column, node: Node, text: str) -> Field:
    """A computed field."""
    return Field(name, "calc", node.facts, column.unit, column.title, column.doc, column.source, column.format, node, text)
