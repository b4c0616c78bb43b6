"""The sections that hold for a whole table: version, title, time model, presets, defaults and parameters of methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path as File
from typing import Any

from scenario.common import emit
from scenario.common.yamltree import YamlNode
from scenario.model.spec import Method, Parameter, TimeModel
from scenario.registry.loaded import Host
from scenario.tables.section import Path, Section, Writing, with_value
from scenario.tables.table import VERSION, Table, known_inputs
from scenario.tables.terms import SCALAR, Schema, Terms, mapping, one_of, value_of
from scenario.tables.values import CORE, ValueReader, items

Values = dict[str, float | str]


def _read_version(reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
    if node is None:
        reader.source.say(reader.root, "the table has no version", f"write version: {VERSION}")
    elif isinstance(node.value, bool | dict | list) or node.value != VERSION:
        said = f"version {node.shown} of the table format is unknown" if node.shown else "the version is blank"
        if isinstance(node.value, str) and node.value == str(VERSION):
            said = f"the version is a text; a number is needed: version: {VERSION}"
        reader.source.say(node, said, f"this program reads version {VERSION}")
    return {}


def _untitled(table: Table) -> bool:
    """Whether a table is called after its file."""
    return table.title == File(table.file).stem


def _title_facts(mine: Writing, other: Writing) -> str | None:
    return None if _untitled(mine.table) or mine.table.title == other.table.title else mine.table.title


# -- how a pass is timed ------------------------------------------------------------------------------------


def _read_time_model(reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
    known = reader.host.time_models
    if node is None or node.value is None:
        if "bound" in known:
            return {"time_model": "bound"}
        hint = f"give one with time_model: {', '.join(known)}" if known else ""
        reader.source.say(reader.root, "the table says no time_model, and the default, 'bound', is not there", hint)
    elif not isinstance(node.value, str) or node.value not in known:
        reader.source.say(node, f"unknown time model '{node.shown}'", reader.host.missing("time model", node.shown, known))
    else:
        return {"time_model": node.value}
    return {"time_model": ""}


# -- presets ------------------------------------------------------------------------------------------------


def _read_presets(reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
    found = [name for item in items(node) if (name := _preset_name(reader, item))]
    for name in found:
        preset = reader.host.presets[name]
        for parameter, value in preset.values.items():
            if node and reader.host.methods[preset.method].parameters[parameter].kind == "profile":
                reader.profile_value(replace(node, value=value))
    return {"presets": tuple(found)}


def _preset_name(reader: ValueReader, item: YamlNode) -> str | None:
    known = reader.host.presets
    if isinstance(item.value, str) and item.value not in known:
        reader.source.say(item, f"unknown preset '{item.shown}'", reader.host.missing("preset", item.value, known))
        return None
    return reader.name_of("preset", item, known)


def _write_presets(writing: Writing) -> Any:
    names = writing.table.presets
    return names[0] if len(names) == 1 else list(names)


def _preset_remark(writing: Writing) -> Mapping[Path, str]:
    about = writing.host.presets.get(writing.table.presets[0]) if len(writing.table.presets) == 1 else None
    return {(): about.source} if about else {}


# -- defaults -----------------------------------------------------------------------------------------------


def _read_defaults(reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
    known = known_inputs(None, scalars=True)
    found: Values = {}
    for name, cell in reader.section(node, "defaults").items():
        if name not in known and name not in CORE:
            _not_a_default(reader, name, node.keys.get(name, cell) if node else cell, cell, known)
        elif cell.value is not None:  # blank: as if it were not there
            value = reader.input(name, known, cell)
            if value is not None:
                found[name] = value
    return {"defaults": found}


def _not_a_default(reader: ValueReader, name: str, key: YamlNode, cell: YamlNode, known: Mapping[str, Parameter]) -> None:
    owners = [method.name for method in reader.host.methods.values() if name in method.parameters]
    if owners:
        reader.source.say(key, f"'{name}' belongs to a method, not to all rows", f"parameters: {{{owners[0]}: {{{name}: {cell.shown}}}}}")
    elif name in reader.keys:
        reader.source.say(key, f"'{name}' is a key of the table itself, not a default", f"write {name}: at the left margin")
    else:
        reader.source.unknown(key, name, "default", [*CORE, *known])


def _write_defaults(writing: Writing) -> Any:
    return {name: writing.value(name, value) for name, value in writing.table.defaults.items()}


def _default_facts(mine: Writing, other: Writing) -> Any:
    known = known_inputs(None, scalars=True)
    applied = {name: known[name].default for name in other.table.defaults if name in known} | mine.table.defaults
    return {name: mine.value(name, value) for name, value in applied.items()}


def _default_remarks(writing: Writing) -> Mapping[Path, str]:
    return {(name,): said for name in writing.table.defaults if (said := default_of(writing.known.get(name)))}


def default_of(parameter: Parameter | None) -> str:
    """A remark that says the default in place of which a value stands, and where that is from."""
    if parameter is None or not parameter.source:
        return ""
    default = parameter.default if isinstance(parameter.default, str) else emit.number(parameter.default or 0)
    said = "derived" if parameter.derive else "none" if parameter.default is None else default
    return f"default {said}: {parameter.source}"


# -- parameters of methods and time models ------------------------------------------------------------------


def _owner(host: Host, name: str) -> Method | TimeModel | None:
    return host.methods.get(name) or host.time_models.get(name)


def _read_parameters(reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
    found: dict[str, Values] = {}
    for method, body in reader.section(node, "parameters").items():
        owner = _owner(reader.host, method)
        if owner is None:
            _unknown_method(reader, method, node.keys.get(method, body) if node else body, body)
        elif own := _parameters_of(reader, owner, body):
            found[method] = own
    return {"parameters": found}


def _unknown_method(reader: ValueReader, method: str, key: YamlNode, body: YamlNode) -> None:
    hint = reader.host.missing("method", method, reader.host.methods)
    if "+" in method:
        hint = "parameters are set for each method of a stack on its own"
    elif method in reader.parameters:
        owner = next(m.name for m in reader.host.methods.values() if method in m.parameters)
        hint = f"parameters stand below their method: {{{owner}: {{{method}: {body.shown}}}}}"
    reader.source.say(key, f"unknown method '{method}'", hint)


def _parameters_of(reader: ValueReader, owner: Method | TimeModel, body: YamlNode) -> Values:
    specs, found = owner.parameters, Values()
    for name, cell in reader.section(body, f"parameters of {owner.name}").items():
        if name not in specs:
            reader.source.unknown(body.keys.get(name, cell), name, f"parameter of {owner.name}", list(specs))
        elif name == "gamma" and cell.value == "auto" and "auto_gamma" in specs:
            found["auto_gamma"] = 1.0
        elif cell.value is not None and (value := reader.value(name, specs[name], cell)) is not None:
            found[name] = value
    gamma = found.get("gamma", specs["gamma"].default if "gamma" in specs else None)
    places = {name: [(value, body.value.get(name, body))] for name, value in found.items()}
    reader.dialects(places, f"parameters of {owner.name}", float(gamma) if isinstance(gamma, int | float) else None)
    return found


def _write_parameters(writing: Writing) -> Any:
    found = writing.table.parameters
    return {method: {name: writing.value(name, value) for name, value in values.items()} for method, values in found.items() if values}


def _parameter_facts(mine: Writing, other: Writing) -> Any:
    """What applies of every parameter that either table sets."""
    found: dict[str, Values] = {}
    for side in (mine, other):
        for method, values in side.table.parameters.items():
            typed = mine.table.parameters.get(method, {})
            found.setdefault(method, {}).update({name: mine.value(name, typed.get(name, _untyped(mine, method, name))) for name in values})
    return found


def _untyped(writing: Writing, method: str, name: str) -> Any:
    """A parameter's value where the table types none: its preset's, else its default; a derived one has no single value."""
    found = [writing.host.presets[preset] for preset in writing.table.presets if preset in writing.host.presets]
    presets = [preset.values[name] for preset in found if preset.method == method and name in preset.values]
    owner = _owner(writing.host, method)
    if presets or owner is None:
        return presets[-1] if presets else None
    parameter = owner.parameters[name]
    return None if parameter.derive else parameter.default


def _parameter_remarks(writing: Writing) -> Mapping[Path, str]:
    found: dict[Path, str] = {}
    for method, values in writing.table.parameters.items():
        owner = _owner(writing.host, method)
        specs = owner.parameters if owner else {}
        found |= {(method, name): said for name in values if (said := default_of(specs.get(name)))}
    return found


def _take_parameter(table: Table, other: Table, path: Path) -> Table:
    method, name = path
    typed = with_value(table.parameters.get(method, {}), name, other.parameters.get(method, {}).get(name))
    return replace(table, parameters={**table.parameters, method: typed})


def _parameter_schema(terms: Terms) -> Schema:
    owners: list[Method | TimeModel] = [*terms.host.methods.values(), *terms.host.time_models.values()]
    bodies = {owner.name: {"description": owner.doc, **mapping({name: value_of(p, name) for name, p in owner.parameters.items()})}
              for owner in owners}  # fmt: skip
    return mapping({name: {**body, "type": ["object", "null"]} for name, body in bodies.items()}, type=["object", "null"])


VERSION_KEY = Section(
    "version", f"version of the table format: {VERSION}", _read_version, lambda _: VERSION, lambda _: {"const": VERSION}, spaced=False,
)  # fmt: skip
TITLE = Section(
    "title", "what the table is about", lambda reader, node: {"title": reader.text(node, "title") or File(reader.source.file).stem},
    lambda writing: writing.table.title, lambda _: SCALAR, _title_facts, spaced=False,
)  # fmt: skip
TIME_MODEL = Section(
    "time_model", "how a pass is timed: bound, estimate or measured", _read_time_model,
    lambda writing: None if writing.table.time_model == "bound" else writing.table.time_model,
    lambda terms: {"enum": [*terms.host.time_models, None]}, lambda mine, _: mine.table.time_model,
    lambda table, other, _: replace(table, time_model=other.time_model), spaced=False,
)  # fmt: skip
PRESET = Section(
    "preset", "named parameter values to start from: a name or a list", _read_presets, _write_presets,
    lambda terms: one_of(terms.host.presets), take=lambda table, other, _: replace(table, presets=other.presets), remarks=_preset_remark,
    spaced=False,
)  # fmt: skip
DEFAULTS = Section(
    "defaults", "inputs of every row that does not say otherwise", _read_defaults, _write_defaults,
    lambda terms: mapping(terms.defaults, type=["object", "null"]), _default_facts,
    lambda table, other, path: replace(table, defaults=with_value(table.defaults, path[0], other.defaults.get(path[0]))),
    levels=1, kind="default", remarks=_default_remarks,
)  # fmt: skip
PARAMETERS = Section(
    "parameters", "per method: values in place of its defaults", _read_parameters, _write_parameters, _parameter_schema, _parameter_facts,
    _take_parameter, levels=2, kind="parameter", remarks=_parameter_remarks,
)  # fmt: skip
