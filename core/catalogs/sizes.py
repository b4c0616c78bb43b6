"""Sizes of catalog entries as the entities' formulas have them, for recognising a model by its number of parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from scenario.catalogs.catalog import Catalog, Entry
from scenario.formulas.expr import Node, parse
from scenario.formulas.to_python import evaluate
from scenario.model import entities

SAME = 0.005
"""Relative distance within which two numbers of parameters are the same model's."""


@lru_cache(maxsize=1)
def _formulas() -> Mapping[str, Node]:
    return {name: parse(column.formula) for name, column in entities.MODEL_COLUMNS.items() if not name.startswith("lora_")}


class ModelColumns(dict[str, Any]):
    """The fields of a model; a column that follows from them is computed when it is asked for."""

    def __init__(self, entry: Entry) -> None:
        super().__init__({name: parameter.default for name, parameter in entities.MODEL_FIELDS.items()})
        self.update(entry.values)

    def __missing__(self, name: str) -> Any:
        value = evaluate(_formulas()[name], self)
        self[name] = value
        return value


def models_of(family: str, params: float, catalog: Catalog) -> tuple[str, ...]:
    """Models of a family with this many parameters, where their arithmetic is the same; none where it differs."""
    wanted = re.sub(r"[^a-z0-9]", "", family.lower())
    found = [entry for name, entry in catalog.models.items()
             if wanted in re.sub(r"[^a-z0-9]", "", name.lower()) and abs(ModelColumns(entry)["params"] / params - 1) < SAME]  # fmt: skip
    apart = {tuple(value for name, value in entry.values.items() if name not in ("context_length", "stored_bits")) for entry in found}
    return tuple(entry.name for entry in found) if len(apart) == 1 else ()
