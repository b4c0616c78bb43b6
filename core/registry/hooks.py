"""The hooks: what a plugin may add. None takes an argument; each returns an iterable of descriptions."""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from scenario.model.spec import Exporter, Function, Method, NamedColumn, Preset, TimeModel

PROJECT = "scenario"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin module as a hook."""


@hookspec
def scenario_methods() -> Iterable[Method]:  # type: ignore[empty-body]
    """Decoding methods."""


@hookspec
def scenario_time_models() -> Iterable[TimeModel]:  # type: ignore[empty-body]
    """Ways to time a forward pass."""


@hookspec
def scenario_columns() -> Iterable[NamedColumn]:  # type: ignore[empty-body]
    """Columns for every row."""


@hookspec
def scenario_functions() -> Iterable[Function]:  # type: ignore[empty-body]
    """Functions that are formulas."""


@hookspec
def scenario_presets() -> Iterable[Preset]:  # type: ignore[empty-body]
    """Named parameter values with a source."""


@hookspec
def scenario_exporters() -> Iterable[Exporter]:  # type: ignore[empty-body]
    """File formats."""
