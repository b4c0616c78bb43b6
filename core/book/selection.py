"""Which inputs, columns and functions a table has: the shared ones, and those of the features that it uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from scenario.model import features, parallel, serving, shared
from scenario.model.optional_part import Feature
from scenario.model.spec import Column, Function, Parameter
from scenario.registry.loaded import Host
from scenario.tables.table import Table, time_models


@dataclass
class Selection:
    """What a table's model is made of. ``finish`` gives inputs their effective value, as formulas of ``asked``.

    ``unasked`` are the inputs of active features that the table does not give: formulas read a blank.
    """

    features: list[Feature]
    inputs: dict[str, Parameter]
    scalars: dict[str, Parameter]
    columns: dict[str, Column]
    functions: tuple[Function, ...] = ()
    finish: dict[str, list[str]] = field(default_factory=dict)
    unasked: frozenset[str] = frozenset()

    def uses(self, name: str) -> bool:
        """Whether the feature of this name is active."""
        return any(feature.name == name for feature in self.features)


def select(table: Table, host: Host) -> Selection:
    """The inputs, columns and functions of a table."""
    asked = {feature.name for feature in features.active(given(table), values(table))} | table.features
    # A time model that says how long GPUs exchange data needs the columns of parallel sizes, whether or not a row gives one.
    placed = {parallel.NAME} if any(model.communication for model in time_models(table, host)) else set()
    active = [feature for feature in features.FEATURES if feature.name in asked | placed]
    unasked = frozenset(name for feature in active if feature.name not in asked for name in feature.inputs)
    on = {name for feature in active for name in (*feature.inputs, *feature.scalars)} - unasked
    inputs, scalars = kept(shared.INPUTS, features.INPUTS, on), kept(shared.SCALARS, features.SCALARS, on)
    functions = tuple(function for feature in active for function in feature.functions)
    found = Selection(active, inputs, scalars, columns_of(active), functions, finish_of(active), unasked)
    refuse(found.columns, [pair for feature in active for pair in feature.refusals])
    adjust(found, table)
    return found


def kept(every: Mapping[str, Parameter], optional: Mapping[str, Parameter], on: set[str]) -> dict[str, Parameter]:
    """Those of ``every`` that are no part of a feature, or of one that is on."""
    return {name: item for name, item in every.items() if name in on or name not in optional}


def given(table: Table) -> set[str]:
    """The inputs that some row, or the defaults, give."""
    rows = table.rows
    return {name for name in rows.columns if rows[name].null_count() < rows.height} | set(table.defaults)


def values(table: Table) -> dict[str, set[float | str | None]]:
    """What rows and defaults give to the inputs of which single values ask for a feature."""
    watched = {name for feature in features.FEATURES for name in feature.values}
    rows = table.rows
    return {name: {*(rows[name].unique().to_list() if name in rows.columns else ()), table.defaults.get(name)} for name in watched}


def columns_of(active: list[Feature]) -> dict[str, Column]:
    """The shared columns as these features add to them, replace and extend them."""
    columns = dict(shared.COLUMNS)
    for feature in active:
        columns |= feature.columns
    for feature in active:
        columns |= {name: column for name, column in feature.changes.items() if name in columns}
    for name, term in (pair for feature in active for pair in feature.extends.items()):
        columns[name] = replace(columns[name], formula=f"{columns[name].formula} + {term}")
    return columns


def finish_of(active: list[Feature]) -> dict[str, list[str]]:
    """The formulas that give inputs their effective value."""
    finish: dict[str, list[str]] = {}
    for name, formula in (pair for feature in active for pair in feature.finish.items()):
        finish.setdefault(name, []).append(formula)
    return finish


def adjust(found: Selection, table: Table) -> None:
    """Inputs that are otherwise in this table: how many GPUs there may be, and which context a row has that gives none."""
    inputs = found.inputs
    if found.uses("auto"):
        inputs["gpus"] = replace(inputs["gpus"], format='#,##0;-#,##0;"auto"')
    else:
        inputs["gpus"] = replace(inputs["gpus"], low=1)
    missing = "context" not in table.rows.columns or table.rows["context"].null_count()
    if found.uses("requests") and "context" not in table.defaults and missing:
        doc = f"{inputs['context'].doc} Blank: the prompt and half the output."
        inputs["context"] = replace(inputs["context"], derive="prefill_tokens + output_tokens / 2", doc=doc)


def seen(names: Iterable[str]) -> frozenset[str]:
    """The features that brought some of these columns."""
    there = set(names) - set(shared.COLUMNS) - set(serving.COLUMNS)
    return frozenset(feature.name for feature in features.FEATURES if there & set(feature.inputs or feature.columns))


def refuse(columns: dict[str, Column], refusals: list[tuple[str, str]]) -> None:
    """Rows that meet a refusal do not run, and their status says why."""
    if not refusals:
        return
    fits, status = columns["fits"], columns["status"]
    anything = " or ".join(f"({condition})" for condition, _ in refusals)
    columns["fits"] = replace(fits, formula=f"{fits.formula} and not ({anything})", doc=f"{fits.doc} False as well for rows that are refused.")
    said = " else ".join(f"({text}) if {condition}" for condition, text in refusals)
    columns["status"] = replace(status, formula=f"{said} else {status.formula}")
