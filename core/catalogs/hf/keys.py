"""The keys of a config.json: read one by one, with the family's defaults, and noted as used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scenario.catalogs.hf.families import (
    ALIASES,
    ENCODERS,
    FAMILIES,
    INHERITED,
    NESTED,
    UNSUPPORTED,
    WARN,
    Family,
)  # fmt: skip
from scenario.common.errors import nearest


@dataclass
class ConfigReading:
    """What a config says. ``fields`` are catalog fields, ``how`` says where each is from; ``errors`` must be empty to use them."""

    fields: dict[str, float] = field(default_factory=dict)
    how: dict[str, str] = field(default_factory=dict)
    family: str = ""
    weights: str = "bf16"
    warnings: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class ConfigKeys:
    """The keys of a config, each noted as used when it is asked for, and what has been made of them so far."""

    def __init__(self, config: Mapping[str, Any], family: str) -> None:
        self.out = ConfigReading()
        self.used: set[str] = set()
        self.keys = self.text_part(config)
        self.spec = self.find_family(family)
        self.layers = 0

    # -- the config ------------------------------------------------------------------------------------

    def text_part(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The language model's keys; a multimodal config nests them."""
        nested = next((key for key in NESTED if isinstance(config.get(key), Mapping)), "")
        for key in ENCODERS:
            if config.get(key):
                self.out.warnings.append(f"{key}: the encoder is not part of the parameters counted")
        if not nested:
            return {key: value for key, value in config.items() if key not in ENCODERS}
        inner = config[nested]
        if isinstance(inner.get("text_config"), Mapping):
            inner = inner["text_config"]
        keys = dict(inner)
        for key in INHERITED:
            if key in config and keys.get(key) is None:
                keys[key] = config[key]
        if not keys.get("model_type"):
            keys["model_type"] = config.get("model_type")
        for key, value in config.items():
            if key not in keys and key not in (*ENCODERS, *NESTED) and key in (*UNSUPPORTED, *WARN):
                keys[key] = value
        return keys

    def find_family(self, family: str) -> Family:
        said = str(family or self.keys.get("model_type") or "")
        name = said.removesuffix("_text") if said.removesuffix("_text") in (*FAMILIES, *ALIASES) else said
        name = ALIASES.get(name, name)
        found = FAMILIES.get(name)
        self.out.family = name
        if found is None:
            near = nearest(name, FAMILIES)
            self.out.errors.append(
                (f"model_type '{said}' is not a family that is known" if said else "the config has no model_type")
                + (f"; {near}" if near else "") + ": give family: llama (or another one) beside hf_config to have it read as such")  # fmt: skip
            return FAMILIES["llama"]
        if found.warn:
            self.out.warnings.append(found.warn)
        return found

    def get(self, *names: str, default: Any = None) -> Any:
        """The first of these keys that is set, else the family's default."""
        self.used.update(names)
        for name in names:
            if self.keys.get(name) is not None:
                return self.keys[name]
        for name in names:
            if name in self.spec.defaults:
                return self.spec.defaults[name]
        return default

    def count(self, *names: str, default: float | None = None, needed: bool = False) -> float:
        """A whole number of the config."""
        value = self.get(*names)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e15 and value == int(value):
            if all(self.keys.get(name) is None for name in names):
                self.out.warnings.append(f"{names[0]} is not given: {value:g}, as the family has it by default")
            if value == 0 and needed:
                self.out.errors.append(f"{names[0]} is 0")
            return float(value)
        if value is not None:
            self.out.errors.append(f"{names[0]} is {json.dumps(value)[:60]}, not a whole number")
        elif needed:
            self.out.errors.append(f"{names[0]} is missing")
        return float(default or 0)

    def flag(self, *names: str, default: bool = False) -> bool:
        return bool(self.get(*names, default=default))

    def put(self, name: str, value: float, how: str) -> None:
        if value:
            self.out.fields[name] = float(value)
            self.out.how[name] = how
