"""A table of scenarios: YAML in, checked inputs out. Nothing is computed here.

The rows come out as a frame of what was *given*: a cell is null where the row says nothing, so that
defaults stay one value for all rows.
"""

from __future__ import annotations

import hashlib
import json
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
from scenario.common.yamltree import Node, Source
from scenario.formulas.vectors import Curve, Vectors
from scenario.model import kinds
from scenario.model.spec import Column, Parameter, TimeModel
from scenario.model.stacks import Stack
from scenario.registry import ownership
from scenario.registry.host import Host

if TYPE_CHECKING:
    import polars as pl

    from scenario.tables.additions import Extras

VERSION = 1
KEYS: dict[str, str] = {
    "version": "version of the table format: 1",
    "title": "what the table is about",
    "time_model": "how a pass is timed: bound, estimate or measured",
    "preset": "named parameter values to start from: a name or a list",
    "defaults": "inputs of every row that does not say otherwise",
    "grid": "lists of inputs; every combination is a row",
    "rows": "rows one by one; a list inside a row expands",
    "parameters": "per method: values in place of its defaults",
    "models": "models of this table, or changes to built-in ones",
    "gpus": "GPUs of this table, or changes to built-in ones",
    "prices": "$/GPU-hour by GPU",
    "profiles": "acceptance profiles: marginal or conditional rates per draft position, or lengths by gamma",
    "trees": "draft trees: rates by rank, and nodes per depth, a topology, or how it grows",
    "curves": "measured points, read with curve(\"name\", x)",
    "hardware": "constants of the estimate: a file that scenario calibrate wrote, or sets by name",
    "measured": "measured pass times [rows, ms] by name, each for a model and a GPU",
    "columns": "columns of this table: a formula each",
    "show": "further columns to work out: best_gamma, break_even, acceptance, or single ones",
    "where": "a condition; rows that fail it are left out of the output",
    "sort": "a column to sort the output by; -column is descending",
    "summary": "what the summary sheet shows",
    "overrides": "by row id and column: a number in place of the computed one",
}
MAX_ROWS = 5_000_000


@dataclass(frozen=True)
class Formula:
    """A formula of the table with its place."""

    text: str
    node: Node


@dataclass(frozen=True)
class Summary:
    """What the Summary sheet shows: metrics as rows, the values of one input as columns.

    ``where`` fixes other inputs to a value at the start; the sheet's drop-downs change them. ``nodes`` holds
    the place of each name by (``rows``, ``columns`` or ``where``, name).
    """

    rows: tuple[str, ...] = ()
    columns: str = ""
    where: Mapping[str, float | str] = field(default_factory=dict)
    nodes: Mapping[tuple[str, str], Node] = field(default_factory=dict)


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
    columns: dict[str, tuple[Column, Node]] = field(default_factory=dict)
    where: Formula | None = None
    sort: tuple[tuple[str, bool], ...] = ()
    summary: Summary = field(default_factory=Summary)
    summary_node: Node | None = None
    sort_nodes: tuple[Node, ...] = ()
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


def load(path: str | Path | Mapping[str, Any], host: Host, *, max_rows: int = MAX_ROWS) -> Table:
    """The table in a YAML file, or given as a mapping of the same keys.

    Raises :class:`TableError` (or :class:`FormulaError`) with everything that is wrong.
    """
    from scenario.tables.reader import Reader

    source, node = from_mapping(path) if isinstance(path, Mapping) else yamltree.read(path, stop=False)
    return Reader(source, node, host, max_rows).table()


def from_mapping(data: Mapping[Any, Any]) -> tuple[Source, Node]:
    """A tree for a table given as Python data; a value's place is its path. Numpy and other scalars become plain ones."""
    count = 0

    def build(value: Any, path: str, depth: int) -> Node:
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
            return Node(value, 0, 0, path=path)
        if isinstance(value, numbers.Real | Decimal):
            return Node(float(value), 0, 0, path=path)
        if isinstance(value, Mapping | Sequence) and count + len(value) > yamltree.MAX_NODES:
            raise TableError(Problem(f"the table holds more than {yamltree.MAX_NODES:,} values", place=path))
        if isinstance(value, Mapping):
            return mapping(value, path, depth)
        if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
            return Node([build(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)], 0, 0, path=path)
        hint = "a set has no order; give a list" if isinstance(value, set | frozenset) else ""
        raise TableError(Problem(f"a table holds numbers, texts, lists and mappings, not {type(value).__name__}", hint, place=path))

    def mapping(value: Mapping[Any, Any], path: str, depth: int) -> Node:
        node = Node({}, 0, 0, path=path)
        for key, item in value.items():
            name = str(key)
            below = f"{path}.{name}" if path else name
            if name in node.value:
                raise TableError(Problem(f"the key '{name}' stands here a second time", place=path))
            node.keys[name] = Node(name, 0, 0, path=below)
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


def _widest(one: Parameter, other: Parameter) -> Parameter:
    if kinds.is_text(one) != kinds.is_text(other):
        return one  # they are two parameters, each of its own method
    if one.kind == other.kind == "choice":
        return replace(one, choices=tuple(dict.fromkeys((*one.choices, *other.choices))))
    lows = [(p.above, True) if p.above is not None else (0.0 if p.kind == "flag" else p.low, False) for p in (one, other)]
    highs = [1.0 if p.kind == "flag" else p.high for p in (one, other)]
    low, opened = (None, False) if any(end is None for end, _ in lows) else min((end, mark) for end, mark in lows if end is not None)
    return replace(
        one, kind=one.kind if one.kind == other.kind else "number", low=None if opened else low, above=low if opened else None,
        high=None if None in highs else max(high for high in highs if high is not None),
    )  # fmt: skip


def unknown_column(source: Source, node: Node | None, name: str, known: Sequence[str]) -> Problem:
    """The problem of naming a column that is not there."""
    return source.problem(node, f"unknown column '{name}'", nearest(name, known))
