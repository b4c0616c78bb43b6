"""The JSON schema of tables (draft-07), made from the registries, for editors that complete and check YAML.

It is a little looser than the program: names defined in the table itself, and everything about formulas, are left to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scenario.catalogs import catalog
from scenario.model import entities, kinds, serving, shared, stacks
from scenario.model.spec import Method, Parameter, TimeModel
from scenario.registry.host import Host
from scenario.tables.table import KEYS, VERSION, parameter_specs

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
NOTES: Schema = {"title": TEXT, "source": TEXT, "date": {"type": ["string", "number"]}, "unverified": {}}


def table_schema(host: Host) -> Schema:
    """The schema of a table for this set of plugins; keys that it does not know in detail are only described."""
    sections = _sections(host)
    known = catalog.builtin()
    keys = {name: {"description": _sentence(text), **sections.get(name, {})} for name, text in KEYS.items()}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "A table of scenarios",
        "type": "object",
        "required": ["version"],
        "anyOf": [{"required": ["grid"]}, {"required": ["rows"]}],
        "properties": keys,
        "additionalProperties": False,
        "definitions": {
            "model": _named(known.models, "A model of the catalog or of this table."),
            "gpu": _named(known.gpus, "A GPU of the catalog or of this table."),
            "method": _named([stack.name for stack in stacks.every(host.methods)], "A decoding method, or a stack such as int4+eagle."),
            "formula": {"type": ["string", "number"], "description": "Arithmetic on columns, parameters and catalog fields."},
        },
    }


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _named(names: Iterable[str], doc: str) -> Schema:
    return {"description": doc, "anyOf": [{"enum": list(names)}, TEXT]}


def _parameter(parameter: Parameter, *, blank: bool = True) -> Schema:
    """What a value of a parameter may be; ``blank``: nothing, for the default."""
    doc = " ".join(part for part in (parameter.doc, f"Unit: {parameter.unit}." if parameter.unit else "",
                                     f"Default: {parameter.default}." if parameter.default is not None else "") if part)  # fmt: skip
    found: Schema = {"description": doc} if doc else {}
    kind = parameter.kind
    if kind == "choice":
        return {**found, "enum": [*parameter.choices, *([None] if blank else [])]}
    if kind == "model":
        return {**found, "$ref": "#/definitions/model"}
    if kind == "profile":
        return {**found, "type": ["string", "array", "number", *(["null"] if blank else [])]}
    types = ["integer"] if kind == "integer" else ["number", "boolean"] if kind == "flag" else ["number"]
    limits = kinds.parameter_facts(parameter)
    if parameter.choices:  # a number, or a word in its place
        number = {"type": "integer", "minimum": max(limits.low, 1), "maximum": limits.high}
        return {**found, "anyOf": [number, {"enum": [*parameter.choices, *([None] if blank else [])]}]}
    if limits.low > -1e15:
        found["exclusiveMinimum" if limits.open_low else "minimum"] = limits.low
    if limits.high < 1e15:
        found["maximum"] = limits.high
    return {**found, "type": [*types, *(["null"] if blank else [])]}


def _one_or_many(value: Schema) -> Schema:
    return {"description": value.get("description", ""), "anyOf": [value, {"type": "array", "minItems": 1, "items": value}]}


def _inputs(host: Host) -> Schema:
    """Every input of a row by name."""
    names: dict[str, Schema] = {"model": {"$ref": "#/definitions/model"}, "gpu": {"$ref": "#/definitions/gpu"},
                                "method": {"$ref": "#/definitions/method"}}  # fmt: skip
    names["time_model"] = {"enum": list(host.time_models), "description": "How a pass is timed."}
    return names | {name: _parameter(p) for name, p in (shared.INPUTS | serving.INPUTS | parameter_specs(host)).items()}


def _entries(fields: Mapping[str, Parameter], notes: Iterable[str]) -> Schema:
    fields_of = {name: _parameter(p) for name, p in fields.items()} | NOTES | {name: {} for name in notes}
    return {"type": "object", "additionalProperties": {"type": "object", "properties": fields_of}}


def _sections(host: Host) -> dict[str, Schema]:
    inputs = _inputs(host)
    axes = {name: _one_or_many(value) for name, value in inputs.items()}
    no_method = {name: value for name, value in inputs.items() if name in shared.INPUTS or name in serving.INPUTS or name in ("model", "gpu", "method")}
    owners: list[Method | TimeModel] = [*host.methods.values(), *host.time_models.values()]
    formula: Schema = {"$ref": "#/definitions/formula"}
    texts = dict.fromkeys(("unit", "doc", "title", "format", "source"), TEXT)
    column = {"type": "object", "properties": {"formula": formula, **texts}, "required": ["formula"], "additionalProperties": False}
    price = {"type": "object", "properties": {"usd_per_hour": {"type": ["number", "null"], "minimum": 0}, **NOTES}, "required": ["usd_per_hour"]}
    series = {"type": "array", "minItems": 1, "items": {"type": "number", "minimum": 0, "maximum": 1}}
    point = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}}
    points = {"type": "array", "minItems": 2, "items": point}
    listed = {"type": ["string", "array"], "items": TEXT}
    return {
        "hardware": {"anyOf": [TEXT, {"type": "array", "items": TEXT}, {"type": "object"}]},
        "measured": {"type": "object", "additionalProperties": {"type": "object", "required": ["points"]}},
        "version": {"const": VERSION},
        "title": {"type": ["string", "number"]},
        "time_model": {"enum": list(host.time_models)},
        "preset": {"anyOf": [_named(host.presets, ""), {"type": "array", "items": _named(host.presets, "")}]},
        "defaults": {
            "type": "object", "additionalProperties": False,
            "properties": no_method | {name: _parameter(p, blank=False) for name, p in shared.SCALARS.items()},
        },
        "grid": {"type": "object", "properties": axes, "additionalProperties": False},
        "rows": {"type": "array", "minItems": 1, "items": {
            "type": "object", "properties": {"id": {"type": ["string", "number"], "description": "The row's name."}, **axes},
            "additionalProperties": False}},
        "parameters": {"type": "object", "additionalProperties": False, "properties": {
            owner.name: {"type": "object", "description": owner.doc, "additionalProperties": False,
                         "properties": {name: _parameter(p) for name, p in owner.parameters.items()}}
            for owner in owners}},
        "models": _entries(entities.MODEL_FIELDS, entities.MODEL_NOTES),
        "gpus": _entries(entities.GPU_FIELDS, entities.GPU_NOTES),
        "prices": {"type": "object", "additionalProperties": {"anyOf": [{"type": ["number", "null"], "minimum": 0}, price]}},
        "profiles": {"type": "object", "additionalProperties": {"anyOf": [series, {
            "type": "object", "properties": {"rates": series, "source": TEXT, "doc": TEXT}, "required": ["rates"],
            "additionalProperties": False}]}},
        "curves": {"type": "object", "additionalProperties": {"anyOf": [points, {
            "type": "object", "properties": {"points": points, "source": TEXT, "doc": TEXT}, "required": ["points"],
            "additionalProperties": False}]}},
        "columns": {"type": "object", "additionalProperties": {"anyOf": [formula, column]}},
        "overrides": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {"type": "number"}}},
        "where": formula,
        "sort": listed,
        "summary": {"type": "object", "additionalProperties": False, "properties": {
            "rows": listed, "columns": TEXT, "where": {"type": "object"}}},
    }  # fmt: skip

