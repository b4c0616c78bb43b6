"""Which inputs, columns and functions a table has: the shared ones, and those of the features that it uses."""

from __future__ import annotations

from collections.abc import Iterable
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
    given = {name for name in table.rows.columns if table.rows[name].null_count() < table.rows.height} | set(table.defaults)
    watched = {name for feature in features.FEATURES for name in feature.values}
    values = {name: {*table.rows[name].unique().to_list(), table.defaults.get(name)} if name in table.rows.columns
              else {table.defaults.get(name)} for name in watched}  # fmt: skip
    found_active = features.active(given, values)
    asked = {feature.name for feature in found_active} | table.features
    # A time model that says how long GPUs exchange data needs the columns of parallel sizes, whether or not a row gives one.
    placed = {parallel.NAME} if any(model.communication for model in time_models(table, host)) else set()
    active = [feature for feature in features.FEATURES if feature.name in asked | placed]
    unasked = frozenset(name for feature in active if feature.name not in asked for name in feature.inputs)
    on = {name for feature in active for name in (*feature.inputs, *feature.scalars)} - unasked
    inputs = {name: parameter for name, parameter in shared.INPUTS.items() if name in on or name not in features.INPUTS}
    scalars = {name: parameter for name, parameter in shared.SCALARS.items() if name in on or name not in features.SCALARS}
    columns = dict(shared.COLUMNS)
    for feature in active:
        columns |= feature.columns
    for feature in active:
        columns |= {name: column for name, column in feature.changes.items() if name in columns}
    for feature in active:
        for name, term in feature.extends.items():
            columns[name] = replace(columns[name], formula=f"{columns[name].formula} + {term}")
    finish: dict[str, list[str]] = {}
    for feature in active:
        for name, formula in feature.finish.items():
            finish.setdefault(name, []).append(formula)
    refuse(columns, [pair for feature in active for pair in feature.refusals])
    found = Selection(active, inputs, scalars, columns, tuple(f for feature in active for f in feature.functions), finish, unasked)
    if found.uses("auto"):
        automatic = '#,##0;-#,##0;"auto"'
        inputs["gpus"] = replace(inputs["gpus"], format=automatic)
    else:
        inputs["gpus"] = replace(inputs["gpus"], low=1)
    if found.uses("requests") and "context" not in table.defaults:
        rows = table.rows
        if "context" not in rows.columns or rows["context"].null_count():
            inputs["context"] = replace(inputs["context"], derive="prefill_tokens + output_tokens / 2",
                                        doc=f"{inputs['context'].doc} Blank: the prompt and half the output.")  # fmt: skip
    return found


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
