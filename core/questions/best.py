"""The cheapest row under limits, by group, and what stops the next cheaper one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from scenario.book.book import Field
from scenario.common.errors import FormulaError, Problem, nearest
from scenario.common.numbers import show_value
from scenario.formulas import expr
from scenario.formulas.expr import Logic, Name
from scenario.formulas.to_text import compile_text
from scenario.questions.variants import compute, with_limits
from scenario.registry import contract
from scenario.registry.loaded import Host
from scenario.result import Result
from scenario.tables.table import Table


@dataclass(frozen=True)
class Stop:
    """A cheaper row that does not count, and why: each failed limit with the values it reads, or the row's status."""

    row: dict[str, Any]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """The best row of a group (None when no row holds the limits) and the next better one that is stopped."""

    group: dict[str, Any]
    row: dict[str, Any] | None
    stop: Stop | None
    rows: int


@dataclass(frozen=True)
class Best:
    """The choices by group, with what they are about."""

    title: str
    metric: str
    lowest: bool
    limits: tuple[str, ...]
    by: tuple[str, ...]
    fields: dict[str, Field]
    shown: tuple[str, ...]
    choices: tuple[Choice, ...]


def best(table: Table, host: Host, where: str, by: Sequence[str], metric: str) -> Best:
    """The best rows of ``table``. Raises :class:`FormulaError` for a bad condition, column or input."""
    lowest, metric = not metric.startswith("-"), metric.removeprefix("-")
    limits = _limits(where, host) if where.strip() else []
    result = compute(with_limits(table, limits), host)
    fields = {item.name: item for item in result.book.public if not item.name.startswith("limit_")}
    _check_names((metric, *by), limits, fields, result)
    marks = [pl.col(f"limit_{index}").fill_null(False) for index in range(1, len(limits) + 1)]
    holds = pl.all_horizontal(marks) if marks else pl.lit(True)
    frame = result.full.with_columns((holds & pl.col(metric).is_not_null()).alias("#holds"))
    frame = frame.sort(metric, descending=not lowest, nulls_last=True, maintain_order=True)
    choices = [_choice(dict(zip(by, key, strict=True)), part, metric, limits, fields) for key, part in _groups(frame, result.full, by)]
    shown = _shown(table, result.full, fields, by, metric, limits)
    return Best(table.title, metric, lowest, tuple(limits), tuple(by), fields, shown, tuple(choices))


def _check_names(columns: Sequence[str], limits: Sequence[str], fields: Mapping[str, Field], result: Result) -> None:
    for name in columns:
        if name not in fields:
            raise FormulaError(Problem(f"there is no column '{name}'", nearest(name, fields)))
    for index, limit in enumerate(limits, 1):
        if result.book.fields[f"limit_{index}"].facts.type != "flag":
            raise FormulaError(Problem(f"'{limit}' is not a condition", "such as tpot_ms <= 20"))


def _groups(frame: pl.DataFrame, table: pl.DataFrame, by: Sequence[str]) -> list[tuple[tuple[Any, ...], pl.DataFrame]]:
    """The rows by the values of some columns, in the table's order."""
    if not by:
        return [((), frame)]
    order = {key: index for index, key in enumerate(dict.fromkeys(table.select(by).iter_rows()))}
    groups = frame.partition_by(list(by), maintain_order=True, as_dict=True)
    return sorted(groups.items(), key=lambda pair: order.get(pair[0], 0))


NAMED = ("model", "gpu", "method", "batch", "context", "gpus", "weights", "kv")


def _shown(table: Table, frame: pl.DataFrame, fields: Mapping[str, Field], by: Sequence[str], metric: str,
           limits: Sequence[str]) -> tuple[str, ...]:  # fmt: skip
    """The columns that tell rows apart, the metric, and what the limits read."""
    varying = [name for name in (*NAMED, *table.rows.columns) if name in fields and frame[name].n_unique() > 1]
    read = [name for limit in limits for name in expr.names(expr.parse(limit)) if name in fields]
    return tuple(dict.fromkeys((*by, *varying, metric, *read)))


def _limits(where: str, host: Host) -> list[str]:
    """The parts of a condition that must all hold."""
    contract.parse_formula(where, host, {"forward_ms": contract.TIME_FUNCTION})
    node = expr.parse(where)
    parts = node.parts if isinstance(node, Logic) and node.op == "and" else (node,)
    return [compile_text(part) for part in parts]


def _choice(group: dict[str, Any], frame: pl.DataFrame, metric: str, limits: Sequence[str], fields: dict[str, Field]) -> Choice:
    """The best row of a group that holds the limits, and why the next better one does not (or the best of all, if none does)."""
    holding = frame.filter(pl.col("#holds"))
    row = holding.row(0, named=True) if holding.height else None
    place = frame["#holds"].arg_max() if row is not None else frame.height
    better = frame.head(place or 0).filter(pl.col(metric).is_not_null())  # in order
    other = None
    if better.height:
        other = better.row(better.height - 1 if row is not None else 0, named=True)
    elif row is None and frame.height:
        other = frame.row(0, named=True)
    return Choice(group, row, _stop(other, limits, fields, metric) if other is not None else None, frame.height)


def _stop(row: dict[str, Any], limits: Sequence[str], fields: dict[str, Field], metric: str) -> Stop:
    reasons = []
    for index, limit in enumerate(limits, 1):
        if row[f"limit_{index}"] is not True:
            names = [name for name in expr.names(expr.parse(limit)) if name in row]
            reasons.append(limit + "".join(f"; {name} is {_value(fields.get(name), row[name])}" for name in names))
    return Stop(row, tuple(reasons) or (why_blank(row, metric),))


def why_blank(row: dict[str, Any], metric: str) -> str:
    """Why a row has no value of a metric: its status, unless that finds nothing wrong."""
    status = row.get("status")
    return str(status) if status not in (None, "ok") else f"{metric}, which is blank there"


def _value(item: Field | None, value: Any) -> str:
    said = show_value(value, digits=4, blank="blank")
    return f"{said} {item.unit}" if item is not None and item.unit and isinstance(value, float) else said


__all__ = ["Best", "Choice", "Name", "Stop", "best"]
