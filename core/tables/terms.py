"""The pieces that the JSON schema of a table is made of, out of the registries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from scenario.catalogs import aliases
from scenario.model import kinds, shared
from scenario.model.spec import Parameter
from scenario.registry.loaded import Host
from scenario.tables.table import known_inputs

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}
"""A text, or what is taken for one."""
FORMULA: Schema = {"$ref": "#/definitions/formula"}
NAMES: Schema = {"pattern": r"^[A-Za-z0-9][A-Za-z0-9._-]*$"}
"""What a thing that a table defines may be called."""
NOTES: Schema = {"title": SCALAR, "source": SCALAR, "date": SCALAR, "unverified": {"type": "boolean"}}
NONE: Schema = {"type": "null"}


class Terms:
    """What a table may say under this set of plugins."""

    def __init__(self, host: Host) -> None:
        self.host = host

    @cached_property
    def inputs(self) -> dict[str, Schema]:
        """Every input of a row by name; what tells which rows there are may not be blank for want of a default."""
        found: dict[str, Schema] = {name: {"anyOf": [{"$ref": f"#/definitions/{name}"}, NONE]} for name in ("model", "gpu", "method")}
        found["time_model"] = {"enum": [*self.host.time_models, None], "description": "How a pass is timed."}
        return found | {name: value_of(p, name) for name, p in known_inputs(self.host).items()}

    @cached_property
    def axes(self) -> dict[str, Schema]:
        """The same where a list makes several rows."""
        return {name: _one_or_many(value) for name, value in self.inputs.items()}

    @cached_property
    def defaults(self) -> dict[str, Schema]:
        """What every row may leave to ``defaults``."""
        scalars = {name: value_of(p, name) for name, p in shared.SCALARS.items()}
        return {name: self.inputs[name] for name in ("model", "gpu", "method", *known_inputs(None))} | scalars


def mapping(properties: Mapping[str, Schema], **more: Any) -> Schema:
    """A mapping of these names and no others."""
    return {"type": "object", "properties": dict(properties), "additionalProperties": False, **more}


def named(value: Schema, **more: Any) -> Schema:
    """A mapping of names to such values, or nothing."""
    return {"type": ["object", "null"], "additionalProperties": value, **more}


def one_of(names: Iterable[Any]) -> Schema:
    """One of these, a list of them, or nothing."""
    listed = {"enum": list(names)}
    return {"anyOf": [listed, {"type": "array", "items": listed}, NONE]}


def known_names(names: Iterable[str], doc: str) -> Schema:
    """A text; those that are known are offered."""
    return {"description": doc, "anyOf": [{"enum": list(names)}, TEXT]}


def value_of(parameter: Parameter, name: str = "", *, blank: bool = True) -> Schema:
    """What a value of a parameter may be; ``blank``: nothing, for the default."""
    said = (parameter.doc, f"Unit: {parameter.unit}." if parameter.unit else "",
            f"Default: {parameter.default}." if parameter.default is not None else "")  # fmt: skip
    doc = " ".join(part for part in said if part)
    shape = _NAMED.get(parameter.kind) or _number(parameter, name)
    if parameter.kind == "choice":
        shape = {"enum": aliases.spellings(parameter.also, parameter.choices) if parameter.also else list(parameter.choices)}
    found: Schema = {"description": doc} if doc else {}
    return {**found, **(_or_blank(shape) if blank else shape)}


_RATES: Schema = {"anyOf": [TEXT, {"type": "number", "minimum": 0, "maximum": 1},
                            {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}}]}  # fmt: skip
_NAMED: dict[str, Schema] = {
    "model": {"$ref": "#/definitions/model"}, "tree": TEXT,
    "profile": {"anyOf": [*_RATES["anyOf"], {"type": "object", "minProperties": 1, "maxProperties": 1}]},
    "flag": {"enum": [0, 1, True, False]},
}  # fmt: skip


def _or_blank(shape: Schema) -> Schema:
    if "enum" in shape:
        return {"enum": [*shape["enum"], None]}
    if isinstance(shape.get("type"), str):
        return {**shape, "type": [shape["type"], "null"]}
    return {"anyOf": [*shape.get("anyOf", [shape]), NONE]}


def _number(parameter: Parameter, name: str) -> Schema:
    """A number within its limits, or a word in its place."""
    limits = kinds.parameter_facts(parameter)
    words = [*parameter.choices, *(["auto"] if name == "gamma" else [])]
    found: Schema = {"type": "integer" if parameter.kind == "integer" else "number"}
    if limits.low > -1e15:
        found["exclusiveMinimum" if limits.open_low else "minimum"] = max(limits.low, 1) if name == "gpus" else limits.low
    if limits.high < 1e15:
        found["maximum"] = limits.high
    return {"anyOf": [found, {"enum": words}]} if words else found


def _one_or_many(value: Schema) -> Schema:
    return {"description": value.get("description", ""), "anyOf": [value, {"type": "array", "minItems": 1, "items": value}]}
