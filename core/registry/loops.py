"""Answers that would go round in a circle: found when a plugin is loaded, not by the first table that has its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from scenario.common.errors import Problem
from scenario.formulas import expr, graph
from scenario.model import shared
from scenario.model.spec import Column, Method, Parameter, TimeModel
from scenario.registry import contract
from scenario.registry.loaded import Host

Trees = Mapping[str, tuple[tuple[str, ...], expr.Node]]


def of(item: object, host: Host) -> Iterator[Problem]:
    """The circles that an item of a plugin would bring; only methods and time models can."""
    if isinstance(item, Method):
        yield from of_method(item, host)
    elif isinstance(item, TimeModel):
        yield from of_time_model(item, host)


def of_method(method: Method, host: Host) -> Iterator[Problem]:
    """The circles in what a method answers, with the engine's columns between."""
    functions = {**contract.function_trees(host), "forward_ms": contract.TIME_FUNCTION, **contract.MEASURED}
    own = {name: column.formula for name, column in method.columns.items() if isinstance(column, Column)}
    own |= {name: item.derive for name, item in method.parameters.items() if isinstance(item, Parameter) and item.derive}
    yield from _circles({**_engine(), **_reads(own, functions)}, own, f"method '{method.name}'")


def of_time_model(model: TimeModel, host: Host) -> Iterator[Problem]:
    """The circles that arise when passes are timed by this model."""
    functions = {**contract.function_trees(host), **contract.MEASURED}
    functions["forward_ms"] = contract.TIME_FUNCTION[0], expr.expand(expr.parse(model.formula), functions, text=model.formula)
    engine = _reads({name: column.formula for name, column in shared.COLUMNS.items()}, functions)
    yield from _circles(engine, engine, f"time model '{model.name}'")


@lru_cache(maxsize=1)
def _engine() -> dict[str, list[str]]:
    """What each of the engine's columns reads, however passes are timed."""
    functions = {**contract.function_trees(Host()), "forward_ms": contract.TIME_FUNCTION, **contract.MEASURED}
    return _reads({name: column.formula for name, column in shared.COLUMNS.items()}, functions)


def _reads(formulas: Mapping[str, str], functions: Trees) -> dict[str, list[str]]:
    return {name: expr.names(expr.expand(expr.parse(text), dict(functions), text=text)) for name, text in formulas.items() if text}


def _circles(reads: Mapping[str, list[str]], own: Mapping[str, object], owner: str) -> Iterator[Problem]:
    # What the item itself brings comes first, so that a circle is told from there.
    for loop in graph.circles({**{name: reads[name] for name in own if name in reads}, **reads}):
        problem = graph.said(loop, lambda name: Problem("", place=f"{owner}, column '{name}'"))
        yield replace(problem, message=problem.message.replace("columns go", "its answer goes"))
