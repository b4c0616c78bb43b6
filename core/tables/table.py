"""A table of scenarios: YAML in, checked inputs out. Nothing is computed here.

The rows come out as a frame of what was *given*: a cell is null where the row says nothing, so that
defaults stay one value for all rows.
"""

from __future__ import annotations

import hashlib
import json
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenario.catalogs.catalog import Catalog
from scenario.catalogs.hardware import Constants
from scenario.common import texts, yamltree
from scenario.common.errors import Problem, TableError, nearest
from scenario.common.yamltree import Source, YamlNode
from scenario.formulas.vectors import Curve, Vectors
from scenario.model import kinds, serving, shared
from scenario.model.spec import Column, Parameter, TimeModel
from scenario.model.stacks import Stack
from scenario.registry import ownership
from scenario.registry.loaded import Host
from scenario.tables.summary import SummaryTable

if TYPE_CHECKING:
    import polars as pl

    from scenario.tables.additions import Extras

VERSION = 1
MAX_ROWS = 5_000_000
TEXT_NAMES = ("id", "model", "gpu", "method", "time_model")
"""Inputs of a row that name something, beside those of a kind that is text."""


@dataclass(frozen=True)
class Formula:
    """A formula of the table with its place."""

    text: str
    node: YamlNode


@dataclass(frozen=True)
class Summary:
    """What the Summary sheet shows: metrics as rows, the values of one input as columns.

    ``where`` fixes other inputs to a value at the start; the sheet's drop-downs change them. ``nodes`` holds
    the place of each name by (``rows``, ``columns`` or ``where``, name).
    """

    rows: tuple[str, ...] = ()
    columns: str = ""
    where: Mapping[str, float | str] = field(default_factory=dict)
    nodes: Mapping[tuple[str, str], YamlNode] = field(default_factory=dict)
    table: SummaryTable | None = None
    """In place of all that: metrics by scenarios of their own."""


@dataclass
class Table:
    """A checked table. ``rows`` has one row per scenario with the inputs as given (null: not given).

    ``defaults`` and ``parameters`` (by method and name) are the table's own values. ``sort`` holds column and
    whether it is descending, ``sort_nodes`` their places. ``notes`` are what its reader left out or guessed, to be told.
    """

    file: str
    title: str
    sha256: str
    source: Source
    catalog: Catalog
    vectors: Vectors
    rows: pl.DataFrame
    stacks: dict[str, Stack]
    time_model: str = "bound"
    presets: tuple[str, ...] = ()
    defaults: dict[str, float | str] = field(default_factory=dict)
    parameters: dict[str, dict[str, float | str]] = field(default_factory=dict)
    columns: dict[str, tuple[Column, YamlNode]] = field(default_factory=dict)
    where: Formula | None = None
    sort: tuple[tuple[str, bool], ...] = ()
    summary: Summary = field(default_factory=Summary)
    summary_node: YamlNode | None = None
    sort_nodes: tuple[YamlNode, ...] = ()
    extras: Extras | None = None
    """What an analyst added to the workbook that the table was read from."""
    notes: tuple[str, ...] = ()
    hardware: tuple[Constants, ...] = ()
    measured: tuple[tuple[Curve, Mapping[str, str | float]], ...] = ()
    show: tuple[str, ...] = ()
    features: frozenset[str] = frozenset()
    """Features that are active whatever the rows give: those of the workbook that a table is read from."""

    @property
    def shown_as(self) -> str:
        """The file as outputs name it: without its folder, so that they are the same wherever it lies."""
        return Path(self.file).name


def time_models(table: Table, host: Host) -> list[TimeModel]:
    """The time models that a table's rows use, in the order in which they were found."""
    given = set(table.rows["time_model"].drop_nulls().unique()) if "time_model" in table.rows.columns else set()
    used = {table.time_model, *given}
    return [model for name, model in host.time_models.items() if name in used]


def from_mapping(data: Mapping[Any, Any]) -> tuple[Source, YamlNode]:
    """A tree for a table given as Python data; a value's place is its path. Numpy and other scalars become plain ones."""
    count = 0

    def build(value: Any, path: str, depth: int) -> YamlNode:
        nonlocal count
        count += 1
        if depth > yamltree.MAX_DEPTH:
            raise TableError(Problem("the table is nested too deeply", place=path[:80]))
        if hasattr(value, "tolist"):  # numpy
            value = value.tolist()
        elif hasattr(value, "to_list"):  # polars
            value = value.to_list()
        if isinstance(value, str) and (bad := texts.CONTROL.search(value)):
            raise TableError(Problem(f"there is a control character ({texts.escaped(bad[0])}) in this text", place=path))
        if isinstance(value, str | bool | int | float) or value is None:
            return YamlNode(value, 0, 0, path=path)
        if isinstance(value, numbers.Real | Decimal):
            return YamlNode(float(value), 0, 0, path=path)
        if isinstance(value, Mapping | Sequence) and count + len(value) > yamltree.MAX_NODES:
            raise TableError(Problem(f"the table holds more than {yamltree.MAX_NODES:,} values", place=path))
        if isinstance(value, Mapping):
            return mapping(value, path, depth)
        if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
            return YamlNode([build(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)], 0, 0, path=path)
        hint = "a set has no order; give a list" if isinstance(value, set | frozenset) else ""
        raise TableError(Problem(f"a table holds numbers, texts, lists and mappings, not {type(value).__name__}", hint, place=path))

    def mapping(value: Mapping[Any, Any], path: str, depth: int) -> YamlNode:
        node = YamlNode({}, 0, 0, path=path)
        for key, item in value.items():
            name = str(key)
            below = f"{path}.{name}" if path else name
            if name in node.value:
                raise TableError(Problem(f"the key '{name}' stands here a second time", place=path))
            node.keys[name] = YamlNode(name, 0, 0, path=below)
            node.value[name] = build(item, below, depth + 1)
        return node

    node = build(data, "", 0)
    text = json.dumps(node.plain(), default=str)
    return Source("table", "", hashlib.sha256(text.encode(errors="replace")).hexdigest()), node


def parameter_specs(host: Host) -> dict[str, Parameter]:
    """Every parameter of every method by name; one that several declare allows what any of them allows."""
    found: dict[str, Parameter] = {}
    for method in host.methods.values():
        for name, parameter in method.parameters.items():
            found[name] = _widest(found[name], parameter) if name in found else parameter
    return {**ownership.aliases(host), **found}


def known_inputs(host: Host | None, *, scalars: bool = False) -> dict[str, Parameter]:
    """Every input of a row that is no name of a model, GPU or method; ``scalars``: also what holds for a whole table.

    Without a host, those that belong to no method.
    """
    found = {**shared.INPUTS, **serving.INPUTS, **(shared.SCALARS if scalars else {})}
    return {**found, **parameter_specs(host)} if host else found


def is_text_input(name: str, known: Mapping[str, Parameter]) -> bool:
    """Whether an input is a text; ``known`` are those that are not texts by themselves."""
    return name in TEXT_NAMES or (name in known and kinds.is_text(known[name]))


def _widest(one: Parameter, other: Parameter) -> Parameter:
    if kinds.is_text(one) != kinds.is_text(other):
        return one  # they are two parameters, each of its own method
    if one.kind == other.kind == "choice":
        return replace(one, choices=tuple(dict.fromkeys((*one.choices, *other.choices))))
    ends = (_ends(one), _ends(other))
    (low, opened), high = min(low for low, _ in ends), max(high for _, high in ends)
    kept = None if low == -math.inf else low
    kind = one.kind if one.kind == other.kind else "number"
    return replace(one, kind=kind, low=None if opened else kept, above=kept if opened else None, high=None if high == math.inf else high)


def _ends(parameter: Parameter) -> tuple[tuple[float, bool], float]:
    """The lowest value and whether it is left out itself, and the highest one."""
    if parameter.kind == "flag":
        return (0.0, False), 1.0
    low = -math.inf if parameter.low is None else parameter.low
    return (low, False) if parameter.above is None else (parameter.above, True), math.inf if parameter.high is None else parameter.high


def unknown_column(source: Source, node: YamlNode | None, name: str, known: Sequence[str]) -> Problem:
    """The problem of naming a column that is not there."""
    return source.problem(node, f"unknown column '{name}'", nearest(name, known))
