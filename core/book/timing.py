"""Which time models, serving columns and hardware constants a table needs, and their formulas.

A table that uses none of them gets nothing from here: its columns are those of the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from scenario.book.selection import Selection
from scenario.catalogs import hardware
from scenario.formulas import expr
from scenario.formulas.expr import Binary, Call, Compare, If, Logic, Name, Node, Number, Text
from scenario.model import serving, shared
from scenario.model.spec import Column, Parameter, TimeModel
from scenario.registry import contract
from scenario.registry.loaded import Host
from scenario.tables.table import Table, time_models

UNMEASURED = "no measurement for this model and GPU"
"""The status of a row that could run, and of which nothing says how fast."""
Tree = Callable[[str], Node]
FLOOR = 1e-9
"""Shortest pass in ms that measured points may lead to."""


class Timing:
    """The part of a book that depends on how passes are timed. ``models`` are the time models that rows use."""

    def __init__(self, table: Table, host: Host, model: Selection) -> None:
        self.table, self.host, self.model = table, host, model
        self.models: list[TimeModel] = time_models(table, host)
        self.estimates = any(model.name != "bound" for model in self.models)
        named = {*table.rows.columns, *table.defaults}
        self.serving = bool({"isl", "osl"} & named)
        self.plain = "plain_tokens_per_s" in named
        self.measured = any(self.is_measured(model) for model in self.models)
        self.parallel = model.uses("parallel")
        self.sets = hardware.merged(table.hardware) if self.estimates else ()

    @staticmethod
    def is_measured(model: TimeModel) -> bool:
        """Whether a time model reads the table's measured points."""
        return "measured_ms" in model.formula

    def inputs(self) -> dict[str, Parameter]:
        """The inputs of this table's rows."""
        optional = {"isl": self.serving, "osl": self.serving, "engine": self.estimates, "plain_tokens_per_s": self.plain}
        extra = {name: parameter for name, parameter in serving.INPUTS.items() if optional[name] or name in self.table.defaults}
        found = {**self.model.inputs, **extra}
        if self.serving:
            found["context"] = replace(found["context"], derive=serving.CONTEXT)
        if any(model.name == "estimate" for model in self.models) and "kv" not in self.table.defaults:
            found["kv"] = replace(found["kv"], default=None, derive=serving.CACHE_FORMAT, doc=f"{found['kv'].doc} {serving.CACHE_DOC}")
        return found

    def parameters(self) -> list[tuple[TimeModel, str, Parameter]]:
        """The constants of the used time models, each a scalar of the table."""
        return [(model, key, parameter) for model in self.models for key, parameter in model.parameters.items()]

    def functions(self, known: Mapping[str, tuple[tuple[str, ...], Node]]) -> dict[str, tuple[tuple[str, ...], Node]]:
        """``known`` with the functions that stand for time: a pass, a draft pass, measured points."""
        found = dict(known)
        if self.measured:
            found["measured_ms"] = (("rows",), self.points())
        if "transfer_ms" in found:
            arguments, sent = found["transfer_ms"]
            arms = [self.tree(model, model.communication, found) if model.communication else sent for model in self.models]
            found["transfer_ms"] = (arguments, self.choice(arms))
        found["forward_ms"] = (contract.TIME_FUNCTION[0], self.choice([self.tree(model, model.formula, found) for model in self.models]))
        if any(model.draft for model in self.models):
            plain = found["draft_forward_ms"][1]
            arms = [self.tree(model, model.draft, found) if model.draft else plain for model in self.models]
            found["draft_forward_ms"] = (contract.DRAFT_FUNCTION, self.choice(arms))
        return found

    def tree(self, model: TimeModel, text: str, functions: Mapping[str, tuple[tuple[str, ...], Node]]) -> Node:
        """A formula of a time model; its parameters are scalars."""
        names: dict[str, Node] = {key: Name(scalar_name(model, key)) for key in model.parameters}
        return expr.substitute(expr.expand(expr.parse(text), dict(functions), text=text), names)

    def choice(self, arms: list[Node]) -> Node:
        """One of several formulas, by the row's time model."""
        same = all(arm == arms[0] for arm in arms)
        return arms[0] if same else Call("choose", (Name("time_model_no"), *arms))

    def columns(self) -> dict[str, Column]:
        """The columns of this table: those of its selection, and what serving and estimates add or replace."""
        found = dict(self.model.columns)
        if self.serving:
            found |= serving.PARALLEL if self.parallel else serving.COLUMNS
        if self.estimates:
            found |= serving.ESTIMATE_COLUMNS
            if self.model.uses("activations"):
                found |= {name: replace(found[name], formula=formula) for name, formula in serving.TYPED.items()}
        if any(set(serving.HOST.values()) & set(model.columns) for model in self.models):
            found |= {name: replace(found[name], formula=f"{found[name].formula} + {host}") for name, host in serving.HOST.items()}
            if self.plain:
                found |= serving.from_plain(found, self.serving)
        if self.estimates and self.serving:
            found |= serving.FIRST_COLUMNS
        if self.measured:
            ready = f'"{UNMEASURED}" if measured_high < 1 and is_blank(verify_ms) else {shared.READY}'
            found["status"] = replace(found["status"], formula=found["status"].formula.replace(shared.READY, ready))
        return found

    def answers(self, name: str, column: Column, functions: Mapping[str, tuple[tuple[str, ...], Node]]) -> Node | None:
        """The formula of an open question of time models; None for any other column."""
        if name not in serving.EVERY_QUESTION:
            return None
        arms: list[Node] = []
        for model in self.models:
            if name == "basis" and name not in model.columns:
                arms.append(Text(model.name))
            else:
                arms.append(self.tree(model, model.columns.get(name, column).formula, functions))
        found = self.choice(arms)
        if name == "prefill_ms" and self.parallel:  # one replica works on a prompt, and communicates
            share: dict[str, Node] = {key: Binary("/", Name(key), Name("replicas")) for key in ("gpus", "weight_gb")}
            sent = expr.expand(expr.parse(serving.PREFILL_TRANSFER), dict(functions), text=serving.PREFILL_TRANSFER)
            found = Binary("+", expr.substitute(found, share), sent)
        if name == "prefill_ms" and any("prompt_factor" in model.columns for model in self.models):
            found = Binary("*", Name("prompt_factor"), found)
        return found

    def extra(self) -> dict[str, tuple[Column, Node]]:
        """Columns that only time models read."""
        found: dict[str, tuple[Column, Node]] = {}
        if self.sets:
            doc = "The set of constants that applies: the table's own first, then by GPU and engine."
            found["hardware"] = (Column("", doc=doc), hardware.chosen(self.sets))
        if self.measured:
            for name, pick, other in (("measured_low", 0, 1e18), ("measured_high", -1, 0.0)):
                what = "Fewest" if pick == 0 else "Most"
                node = self.by_points([Number(curve.points[pick][0]) for curve, _ in self.table.measured], Number(other))
                found[name] = (Column("", "rows", f"{what} token rows that were measured for this model and GPU."), node)
        return found

    def points(self) -> Node:
        """The measured time of a pass over ``rows``; blank where nothing was measured."""
        curves = [Call("max", (Call("curve", (Text(curve.name), Name("rows"))), Number(FLOOR))) for curve, _ in self.table.measured]
        return self.by_points(list(curves), expr.Blank())

    def by_points(self, values: list[Node], other: Node) -> Node:
        """The value of the first measured series that holds for the row."""
        result = other
        for value, (_, where) in reversed(list(zip(values, self.table.measured, strict=True))):
            tests: list[Node] = [Compare("==", Name(key), Text(text)) for key, text in where.items() if isinstance(text, str)]
            if isinstance(where.get("gpus"), float):
                apart = Call("abs", (Binary("-", Name("gpus"), Number(float(where["gpus"]))),))
                tests.append(Compare("<", apart, Number(0.5)))
            result = If(tests[0] if len(tests) == 1 else Logic("and", tuple(tests)), value, result) if tests else value
        return result


def scalar_name(owner: TimeModel, parameter: str) -> str:
    """The name of a time model's constant among the assumptions: ``estimate_knee``."""
    return f"{owner.name}_{parameter}".replace("-", "_").replace(".", "_")
