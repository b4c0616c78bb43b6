"""The assumptions of a book: scalars with their sources, and the tables that rows refer to by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from scenario.book import timing
from scenario.book.book import EntityTable, Field, Lookup, Scalar, calc, entity_inputs, entity_rows, time_model_rows
from scenario.book.scope import CORE_TEXT, NUMBER, Scope, scalar_name
from scenario.formulas import expr, facts, graph
from scenario.formulas.nodes import Value
from scenario.model import acceptance, answers, entities, images, shared, stacks
from scenario.model.spec import Column, Method, Parameter


def add_scalars(scope: Scope) -> None:
    """The constants of the whole table: defaults, parameters of time models and methods."""
    defaults, source = scope.table.defaults, scope.table.shown_as
    text = {name: Parameter(kind="choice", doc=f"The {name} of rows that do not name one.") for name in CORE_TEXT}
    for name, parameter in {**text, **scope.inputs, **scope.model.scalars}.items():
        alias = name if name in shared.SCALARS else f"default_{name}"
        if name in defaults:
            scope.add_scalar(Scalar(alias, defaults[name], parameter, "table", source), False)
        elif parameter.default is not None:
            scope.add_scalar(Scalar(alias, parameter.default, parameter, "default", parameter.source or "engine default"), False)
    if len(scope.time_models) > 1:
        parameter = Parameter(kind="choice", choices=tuple(scope.time_models), doc="How a pass is timed.")
        scope.add_scalar(Scalar("default_time_model", scope.table.time_model, parameter, "table", source), False)
    for model, key, parameter in scope.timing.parameters():
        typed = scope.table.parameters.get(model.name, {})
        origin, said = ("table", source) if key in typed else ("default", parameter.source)
        value = as_float(typed.get(key, parameter.default))
        name = timing.scalar_name(model, key)
        scope.add_scalar(Scalar(name, value, parameter, origin, said, model.name), parameter.default is None)
    for method in scope.host.methods.values():
        add_parameters(scope, method)


def as_float(value: float | str | None) -> float | str | None:
    """A number as the engine holds it."""
    return float(value) if isinstance(value, int | float) else value


def given(scope: Scope, method: Method) -> dict[str, tuple[float | str, str, str]]:
    """What the table or its presets set of a method's parameters; a dialect that is set takes the place of the others."""
    names = scope.own_names(method.name)
    found: dict[str, tuple[float | str, str, str]] = {}
    for preset in (scope.host.presets[name] for name in scope.table.presets):
        if preset.method == method.name:
            source = f"{preset.source} (preset {preset.name})"
            found |= {names.get(key, key): (value, "preset", source) for key, value in preset.values.items()}
    typed = scope.table.parameters.get(method.name, {})
    return found | {names.get(key, key): (value, "table", scope.table.shown_as) for key, value in typed.items()}


def add_parameters(scope: Scope, method: Method) -> None:
    """The parameters of a method as scalars."""
    found = given(scope, method)
    said = [key for key in acceptance.DIALECTS if found.get(key, ("", ""))[1] == "table"]
    said = said or [key for key in acceptance.DIALECTS if key in found]
    for key, parameter in method.parameters.items():
        if key not in scope.parameters or (parameter.quiet and key not in found):
            continue
        name = scalar_name(method, key)
        value: float | str | None = parameter.default if not parameter.derive else None
        origin, source = ("default" if value is not None else "unset"), parameter.source
        if said and key in acceptance.DIALECTS and key not in said and key != "alpha":
            value, origin = None, "unset"
        elif key in found:
            value, origin, source = found[key]
        maybe = parameter.default is None or bool(parameter.derive)
        scope.add_scalar(Scalar(name, as_float(value), parameter, origin, source, method.name), maybe)
        if parameter.derive and parameter.default is not None:
            # A derived value that turns out blank falls back on the default, which is then an assumption.
            fallback = replace(parameter, doc=f"{parameter.doc} Used when it cannot be derived.")
            scalar = Scalar(f"{name}_default", parameter.default, fallback, "default", parameter.source, method.name)
            scope.add_scalar(scalar, False)


def every_stack(scope: Scope) -> list[stacks.Stack]:
    """What the method of a row may be."""
    return stacks.every(scope.host.methods)


def method_row(scope: Scope, stack: stacks.Stack) -> dict[str, Value]:
    """A stack as a row of the methods table."""
    names = [part for part in dict.fromkeys((stack.quantization, stack.drafting)) if part] or [stack.name]
    parts = [scope.host.methods[name] for name in names]
    return {
        "name": stack.name, "title": " + ".join(part.title or part.name for part in parts),
        "quant_no": float(number(scope, "quantization", stack.quantization)),
        "draft_no": float(number(scope, "drafting", stack.drafting)),
        "source": "; ".join(part.source for part in parts if part.source), "doc": " ".join(part.doc for part in parts),
    }  # fmt: skip


def number(scope: Scope, slot: str, method: str) -> int:
    """The number of a method in its slot; 1 is none."""
    return [known.name for known in scope.methods[slot]].index(method) + 2 if method else 1


def entity_tables(scope: Scope) -> dict[str, EntityTable]:
    """The catalog tables, models to hardware, that rows refer to."""
    rows = entity_rows(scope.table.catalog, published=scope.model.uses("published"))
    slots = {NUMBER[slot]: Parameter(1, 1, len(methods) + 1, kind="integer") for slot, methods in scope.methods.items()}
    methods = tuple(method_row(scope, stack) for stack in every_stack(scope))
    fields = entities.MODEL_FIELDS
    tables = {
        "models": entity_table(scope, "models", fields, fields, entities.MODEL_COLUMNS, rows["models"]),
        "gpus": EntityTable("gpus", entity_inputs(entities.GPU_FIELDS, entities.GPU_REQUIRED), (), rows["gpus"]),
        "methods": EntityTable("methods", entity_inputs(slots, NUMBER.values()), (), methods),
        "formats": EntityTable("formats", entity_inputs(entities.FORMAT_FIELDS, entities.FORMAT_FIELDS), (), rows["formats"]),
    }
    if scope.model.uses("images"):
        fields = images.ENCODER_FIELDS
        tables["encoders"] = entity_table(scope, "encoders", fields, fields, images.ENCODER_COLUMNS, images.encoders())
    if len(scope.time_models) > 1:
        known = {"time_model_no": Parameter(1, 1, len(scope.time_models), kind="integer")}
        inputs = entity_inputs(known, known)
        tables["time_models"] = EntityTable("time_models", inputs, (), time_model_rows(scope.timing.models))
    if scope.timing.sets:
        inputs = entity_inputs(entities.HARDWARE_FIELDS, entities.HARDWARE_FIELDS)
        tables["hardware"] = EntityTable("hardware", inputs, (), tuple(item.row for item in scope.timing.sets))
    return tables


def entity_table(
    scope: Scope, name: str, given: Mapping[str, Parameter], required: Iterable[str], computed: Mapping[str, Column],
    rows: tuple[Mapping[str, Value], ...],
) -> EntityTable:  # fmt: skip
    """A catalog table whose computed columns follow from its typed ones and the shared scalars."""
    inputs = entity_inputs(given, required)
    env = {known: scope.env[known] for known in scope.model.scalars} | {item.name: item.facts for item in inputs}
    trees = {column: expr.parse(computed[column].formula) for column in computed}
    columns: dict[str, Field] = {}
    for column in graph.order({key: expr.names(tree) for key, tree in trees.items()}):
        node = facts.check(trees[column], env, computed[column].formula)
        env[column] = node.facts
        columns[column] = calc(column, computed[column], node, computed[column].formula)
    return EntityTable(name, inputs, tuple(columns[column] for column in computed), rows)


PLACES = (
    ("gpu_", "gpus", "gpu"), ("weights_", "formats", "weights"), ("kv_", "formats", "kv"),
    ("weights_format_", "formats", "weights"), ("encoder_", "encoders", "encoder"), ("", "models", "model"),
    ("", "methods", "method"), ("", "time_models", "time_model"), ("hardware_", "hardware", "hardware"),
)  # fmt: skip
"""Where names that are no columns are looked up, in this order: how they begin, the table, and the column of its key."""


def find_lookup(scope: Scope, name: str) -> Field | None:
    """The catalog field that a name stands for, if any."""
    drafts = [(f"{key}_", "models", key) for key, parameter in scope.parameters.items() if parameter.kind == "model"]
    for prefix, table, key in (*drafts, *PLACES):
        found = scope.tables[table].fields.get(name[len(prefix) :]) if name.startswith(prefix) and table in scope.tables else None
        if found is not None:
            maybe = found.facts.blank or key in scope.parameters or key == "encoder"
            return Field(name, "lookup", replace(found.facts, blank=maybe), found.unit, found.title, found.doc, found.source,
                         found.format, text=f"{key}: {found.name}", lookup=Lookup(table, key, found.name),
                         public=name in shared.ORDER)  # fmt: skip
    return None


def known_lookups(scope: Scope) -> list[str]:
    """Names that a formula may read though they are no columns, for a hint at a name that is not known."""
    gpus = (f"gpu_{name}" for name in scope.tables["gpus"].fields)
    found = [*answers.SHOWN, *scope.tables["models"].fields, *gpus, "weights_bits", "kv_bits"]
    return [*found, *scope.parameters, *(f.name for f in shared.FUNCTIONS), *scope.host.functions]
