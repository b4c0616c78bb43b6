"""Models, GPUs and prices: the built-in ones and a table's own, each with its source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import resources
from typing import Any

from scenario import entities, yamltree
from scenario.contract import value_problem
from scenario.spec import Parameter
from scenario.yamltree import Node, Source

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


@dataclass(frozen=True)
class Entry:
    """One model or GPU: ``values`` by field (None where it has none), ``notes`` beside them.

    ``origin`` is ``catalog`` or ``table``; ``verified`` is False when no source of the facts could be read.
    """

    name: str
    title: str
    values: Mapping[str, float | None]
    source: str = ""
    date: str = ""
    verified: bool = True
    origin: str = "catalog"
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cited(self) -> str:
        """Source and date in one line, ``unverified`` said."""
        parts = [self.source, f"({self.date})" if self.date else "", "" if self.verified else "[unverified]"]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class Price:
    """What one GPU costs, in $/GPU-hour."""

    usd_per_hour: float
    source: str = ""
    date: str = ""
    verified: bool = True
    origin: str = "catalog"

    cited = Entry.cited


@dataclass(frozen=True)
class Catalog:
    """The models, GPUs and prices a run may name."""

    models: Mapping[str, Entry]
    gpus: Mapping[str, Entry]
    prices: Mapping[str, Price]


@lru_cache(maxsize=1)
def builtin() -> Catalog:
    """The catalog that comes with the package."""
    folder = resources.files("scenario.scenarios")
    trees: dict[str, tuple[Source, Node]] = {}
    for kind in ("models", "gpus", "prices"):
        trees[kind] = yamltree.parse((folder / f"{kind}.yaml").read_bytes(), f"{kind}.yaml")
    empty = Catalog({}, {}, {})
    parts: dict[str, Any] = {}
    for kind, (source, node) in trees.items():
        merged = merge(replace(empty, gpus=parts.get("gpus", {})), source, {kind: node.value[kind]}, origin="catalog")
        source.stop()
        parts[kind] = getattr(merged, kind)
    return Catalog(**parts)


def merge(base: Catalog, source: Source, sections: Mapping[str, Node], *, origin: str = "table") -> Catalog:
    """``base`` with the ``models``, ``gpus`` and ``prices`` of a file laid over it.

    An entry of a known name changes the fields it gives and keeps the others. Problems are noted in
    ``source``; the result is only complete when it has none.
    """
    models = _entries(base.models, source, sections.get("models"), "model", entities.MODEL_FIELDS, origin)
    gpus = _entries(base.gpus, source, sections.get("gpus"), "GPU", entities.GPU_FIELDS, origin)
    prices = dict(base.prices)
    for name, node in mapping(source, sections.get("prices"), "prices").items():
        if name not in gpus:
            source.unknown(sections["prices"].keys.get(name, node), name, "GPU", list(gpus))
            continue
        price = _price(source, node, origin)
        if price:
            prices[name] = price
    return Catalog(models, gpus, prices)


def mapping(source: Source, node: Node | None, what: str) -> dict[str, Node]:
    """The entries of a mapping, or none with a problem noted."""
    if node is None or node.value is None:
        return {}
    if not isinstance(node.value, dict):
        source.say(node, f"'{what}' is a mapping of names, not {node.kind}")
        return {}
    return node.value


def _entries(
    base: Mapping[str, Entry], source: Source, node: Node | None, what: str, fields: Mapping[str, Parameter], origin: str
) -> dict[str, Entry]:
    found = dict(base)
    notes = entities.MODEL_NOTES if what == "model" else entities.GPU_NOTES
    for name, entry in mapping(source, node, f"{what.lower()}s").items():
        key = node.keys.get(name, entry) if node else entry
        if not NAME.match(name):
            source.say(key, f"'{name}' is not a good name for a {what}", "letters, digits and . _ -")
            continue
        built = _entry(base.get(name), source, key, name, entry, what, fields, notes, origin)
        if built:
            found[name] = built
    return found


def _entry(
    old: Entry | None, source: Source, key: Node, name: str, node: Node, what: str,
    fields: Mapping[str, Parameter], notes: tuple[str, ...], origin: str,
) -> Entry | None:  # fmt: skip
    if not isinstance(node.value, dict):
        source.say(node, f"a {what} is a mapping of its fields, not {node.kind}")
        return None
    values: dict[str, float | None] = dict(old.values) if old else {field: p.default for field, p in fields.items()}  # type: ignore[misc]
    said: dict[str, Any] = {}
    for field_name, cell in node.value.items():
        place = node.keys.get(field_name, cell)
        if field_name in ("title", "source", "date", "unverified", *notes):
            said[field_name] = cell.value
        elif field_name not in fields:
            source.unknown(place, field_name, f"{what} field", [*fields, "title", "source", "date", "unverified", *notes])
        elif cell.value is None:
            values[field_name] = fields[field_name].default  # type: ignore[assignment]
        else:
            value = float(cell.value) if isinstance(cell.value, bool) and fields[field_name].high == 1 else cell.value
            problem = value_problem(fields[field_name], value)
            if problem:
                source.say(cell, f"{field_name}: {problem}")
            else:
                values[field_name] = float(value)
    missing = [field for field in _required(what, values) if not values.get(field)]
    if missing and not source.problems:
        source.say(key, f"{what} '{name}' lacks {', '.join(missing)}")
        return None
    default = f"{old.source} (changed by the table)" if old and old.source else "the table" if origin == "table" else ""
    notes_said = {**(old.notes if old else {}), **{note: said[note] for note in notes if note in said}}
    return Entry(
        name, str(said.get("title") or (old.title if old else name)), values, str(said.get("source") or default),
        str(said.get("date") or (old.date if old and "source" not in said else "")),
        not said.get("unverified", False) and (old is None or old.verified), origin, notes_said,
    )  # fmt: skip


def _required(what: str, values: Mapping[str, float | None]) -> list[str]:
    if what == "GPU":
        return list(entities.GPU_REQUIRED)
    needed = ["hidden", "layers", "heads", "vocab"]
    needed += ["qk_rope_dim", "v_head_dim"] if values.get("kv_lora_rank") else ["kv_heads", "head_dim"]
    if values.get("moe_layers"):
        needed += ["experts", "experts_per_token", "expert_ffn"]
    if (values.get("moe_layers") or 0) < (values.get("layers") or 0):
        needed.append("ffn")
    return needed


_PRICE = entities.GPU_FIELDS["usd_per_hour"]


def _price(source: Source, node: Node, origin: str) -> Price | None:
    said: dict[str, Any] = {}
    cell = node
    if isinstance(node.value, dict):
        for name, value in node.value.items():
            if name not in ("usd_per_hour", "source", "date", "unverified"):
                source.unknown(node.keys.get(name, value), name, "price field", ["usd_per_hour", "source", "date", "unverified"])
            said[name] = value.value
        if "usd_per_hour" not in node.value:
            source.say(node, "a price needs usd_per_hour")
            return None
        cell = node.value["usd_per_hour"]
    problem = value_problem(_PRICE, cell.value)
    if problem:
        source.say(cell, f"the price of a GPU-hour in dollars: {problem}")
        return None
    default = "the table" if origin == "table" else ""
    return Price(float(cell.value), str(said.get("source") or default), str(said.get("date") or ""),
                 not said.get("unverified", False), origin)  # fmt: skip
