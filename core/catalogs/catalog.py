"""Models, GPUs and prices: the built-in ones and a table's own, each with its source."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from scenario.catalogs import plausible
from scenario.common import inputs, yamltree
from scenario.common.errors import TableError
from scenario.common.yamltree import Source, YamlNode
from scenario.model import entities
from scenario.model.kinds import value_problem
from scenario.model.spec import Parameter

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
        warnings = self.notes.get("warnings", ())
        return _cited(self.source, self.date, self.verified) + (f" [{'; '.join(warnings)}]" if warnings else "")


@dataclass(frozen=True)
class Price:
    """What one GPU costs, in $/GPU-hour; None where it is said to have no price."""

    usd_per_hour: float | None
    source: str = ""
    date: str = ""
    verified: bool = True
    origin: str = "catalog"

    @property
    def cited(self) -> str:
        """Source and date in one line, ``unverified`` said."""
        return ("no price: " if self.usd_per_hour is None else "") + _cited(self.source, self.date, self.verified)


def _cited(source: str, date: str, verified: bool) -> str:
    return " ".join(part for part in (source, f"({date})" if date else "", "" if verified else "[unverified]") if part)


@dataclass(frozen=True)
class Catalog:
    """The models, GPUs and prices a run may name."""

    models: Mapping[str, Entry]
    gpus: Mapping[str, Entry]
    prices: Mapping[str, Price]

    def added(self) -> dict[str, dict[str, dict[str, float]]]:
        """The models and GPUs that are not built in, as the sections of a table."""
        sections = {"models": self.models, "gpus": self.gpus}
        return {kind: {name: {field: value for field, value in entry.values.items() if value is not None}
                       for name, entry in found.items() if entry.origin != "catalog"} for kind, found in sections.items()}  # fmt: skip


def of_table(path: str) -> Catalog:
    """The built-in catalog with the models and GPUs of a table file laid over it. Raises :class:`TableError`."""
    source, root = yamltree.parse(inputs.read(path, inputs.TABLE), path)
    sections = root.value if isinstance(root.value, dict) else {}
    if "models" not in sections and "gpus" not in sections:
        source.say(root, "there are neither models nor gpus in it", "models: {mine: {hf_config: ./config.json}}")
    found = merge(builtin(), source, {key: node for key, node in sections.items() if key in ("models", "gpus", "prices")})
    source.stop()
    return found


@lru_cache(maxsize=1)
def builtin() -> Catalog:
    """The catalog that comes with the package."""
    folder = resources.files("scenario.scenarios")
    trees: dict[str, tuple[Source, YamlNode]] = {}
    for kind in ("models", "gpus", "prices"):
        trees[kind] = yamltree.parse((folder / f"{kind}.yaml").read_bytes(), f"{kind}.yaml")
    empty = Catalog({}, {}, {})
    parts: dict[str, Any] = {}
    for kind, (source, node) in trees.items():
        merged = merge(replace(empty, gpus=parts.get("gpus", {})), source, {kind: node.value[kind]}, origin="catalog")
        source.stop()
        parts[kind] = getattr(merged, kind)
    return Catalog(**parts)


def merge(base: Catalog, source: Source, sections: Mapping[str, YamlNode], *, origin: str = "table") -> Catalog:
    """``base`` with the ``models``, ``gpus`` and ``prices`` of a file laid over it. A price of null is no price.

    An entry of a known name changes the fields it gives and keeps the others. Problems are noted in
    ``source``; the result is only complete when it has none.
    """
    models = _entries(base.models, source, sections.get("models"), "model", entities.MODEL_FIELDS, origin)
    gpus = _entries(base.gpus, source, sections.get("gpus"), "GPU", entities.GPU_FIELDS, origin)
    prices = dict(base.prices)
    for name, entry in mapping(source, sections.get("gpus"), "gpus").items():
        if name in gpus and isinstance(entry.value, dict) and "usd_per_hour" in entry.value:  # counts before the catalog's price
            given = gpus[name]
            prices[name] = Price(given.values["usd_per_hour"], "the table" if origin == "table" else given.source, origin=origin)
            gpus = {**gpus, name: replace(given, values={**given.values, "usd_per_hour": None})}
    for name, node in mapping(source, sections.get("prices"), "prices").items():
        if name not in gpus:
            source.unknown(sections["prices"].keys.get(name, node), name, "GPU", list(gpus))
            continue
        price = _price(source, node, origin)
        if price:
            prices[name] = price
    return Catalog(models, gpus, prices)


def mapping(source: Source, node: YamlNode | None, what: str) -> dict[str, YamlNode]:
    """The entries of a mapping, or none with a problem noted."""
    if node is None or node.value is None:
        return {}
    if not isinstance(node.value, dict):
        source.say(node, f"'{what}' is a mapping of names, not {node.kind}")
        return {}
    return node.value


def _entries(
    base: Mapping[str, Entry], source: Source, node: YamlNode | None, what: str, fields: Mapping[str, Parameter], origin: str
) -> dict[str, Entry]:
    found = dict(base)
    notes = entities.MODEL_NOTES if what == "model" else entities.GPU_NOTES
    for name, entry in mapping(source, node, f"{what.lower()}s").items():
        key = node.keys.get(name, entry) if node else entry
        if base and name not in found:  # a faulty entry is known all the same: rows that name it have no fault of their own
            found[name] = replace(next(iter(base.values())), name=name)
        if not NAME.match(name):
            source.say(key, f"'{name}' is not a good name for a {what}", "letters, digits and . _ -")
            continue
        if same_but_case(source, key, name, {other: part for other, part in found.items() if other != name}, what):
            continue
        built = _entry(base.get(name), source, key, name, entry, what, fields, notes, origin)
        if built:
            found[name] = built
    return found


def _entry(
    old: Entry | None, source: Source, key: YamlNode, name: str, node: YamlNode, what: str,
    fields: Mapping[str, Parameter], notes: tuple[str, ...], origin: str,
) -> Entry | None:  # fmt: skip
    if not isinstance(node.value, dict):
        source.say(node, f"a {what} is a mapping of its fields, not {node.kind}")
        return None
    before = len(source.problems)
    values: dict[str, float | None] = dict(old.values) if old else blank_values(fields)
    said: dict[str, Any] = {}
    configured = what == "model" and "hf_config" in node.value
    if configured:
        values, said = _from_config(source, node, fields)
    for field_name, cell in node.value.items():
        if configured and field_name == "hf_config":
            continue
        if field_name in (*BESIDE, *notes):
            said[field_name] = note(source, field_name, cell)
        elif field_name not in fields:
            place = node.keys.get(field_name, cell)
            source.unknown(place, field_name, f"{what} field", [*fields, *BESIDE, *notes])
        else:
            values |= _value(source, field_name, fields[field_name], cell)
    if len(source.problems) > before:
        return None
    missing = [field for field in _required(what, values) if not values.get(field)]
    if missing:
        source.say(key, f"{what} '{name}' lacks {', '.join(missing)}")
        return None
    if what == "model" and not _parts_fit(source, key, node, values):
        return None
    if what == "GPU" and origin == "table":
        said["warnings"] = plausible.remarks(values, ((known.name, known.values) for known in builtin().gpus.values()))
    return _built(old, name, values, said, origin, notes, configured)


BESIDE = ("title", "source", "date", "unverified")
"""What an entry says beside its numbers."""


def blank_values(fields: Mapping[str, Parameter]) -> dict[str, float | None]:
    """The values of an entry that says nothing."""
    return {field: p.default for field, p in fields.items()}  # type: ignore[misc]


def _value(source: Source, name: str, parameter: Parameter, cell: YamlNode) -> dict[str, float | None]:
    """The value that a cell gives to a field, if it gives one; a blank is the field's default."""
    if cell.value is None:
        return {name: parameter.default}  # type: ignore[dict-item]
    value = number(source, name, parameter, cell)
    return {} if value is None else {name: value}


def _parts_fit(source: Source, key: YamlNode, node: YamlNode, values: Mapping[str, float | None]) -> bool:
    """Whether no field of a model is more than what it is a part of; the first that is more is noted."""
    for part, whole in _PARTS:
        if (values[part] or 0) > (values[whole] or 0):
            place = next((node.value[field] for field in (part, whole) if field in node.value), key)
            source.say(place, f"{part} ({values[part]:g}) cannot be more than {whole} ({values[whole] or 0:g})")
            return False
    return True


def _built(
    old: Entry | None, name: str, values: Mapping[str, float | None], said: Mapping[str, Any], origin: str,
    notes: tuple[str, ...], configured: bool,
) -> Entry:  # fmt: skip
    """An entry with what is said of it; what is not said is that of the entry it changes."""
    title, date, verified, source = name, "", True, "the table" if origin == "table" else ""
    kept: Mapping[str, Any] = {}
    if old:
        title, verified = old.title, old.verified
        date = "" if "source" in said else old.date
        source = f"{old.source} (changed by the table)" if old.source else source
        kept = {} if configured else old.notes
    notes_said = {**kept, **{note: said[note] for note in (*notes, "warnings") if note in said}}
    return Entry(name, str(said.get("title") or title), values, str(said.get("source") or source), str(said.get("date") or date),
                 verified and not said.get("unverified", False), origin, notes_said)  # fmt: skip


def same_but_case(source: Source, key: YamlNode, name: str, known: Mapping[str, Any], what: str) -> bool:
    """Note a name that differs from a known one by case only: a spreadsheet would take one for the other."""
    other = next((other for other in known if other.lower() == name.lower() and other != name), None) if name not in known else None
    if other is not None:
        source.say(key, f"{what} '{name}' differs from '{other}' by capital letters only, and spreadsheets take no notice of those",
                   f"write '{other}' to change that one, or choose another name")  # fmt: skip
    return other is not None


def _from_config(source: Source, node: YamlNode, fields: Mapping[str, Parameter]) -> tuple[dict[str, float | None], dict[str, Any]]:
    """What the Hugging Face config that an entry names says: values of all fields, and notes. Other keys of the entry come after."""
    from scenario.catalogs.hf import config as hf

    cell = node.value["hf_config"]
    values = blank_values(fields)
    if not isinstance(cell.value, str):
        source.say(cell, f"hf_config is the path of a config.json, not {cell.kind}")
        return values, {}
    family = node.value["family"].value if "family" in node.value else ""
    path = Path(source.file).parent / cell.value
    try:
        reading = hf.load(path, family if isinstance(family, str) else "")
    except TableError as error:
        for problem in error.problems:
            source.say(cell, f"{cell.value}: {problem.message}", problem.hint)
        return values, {}
    for name, value in reading.fields.items():
        said = value_problem(fields[name], value)
        if said:
            source.say(cell, f"{cell.value}: {name}: {said}")
        values[name] = value
    return values, {"source": f"config.json: {cell.value}", "family": reading.family, "published_weights": reading.weights,
                    "warnings": tuple(reading.warnings)}  # fmt: skip


_PARTS = (("kv_heads", "heads"), ("moe_layers", "layers"), ("window_layers", "layers"), ("linear_layers", "layers"),
          ("no_ffn_layers", "layers"), ("no_mixer_layers", "layers"), ("experts_per_token", "experts"))  # fmt: skip
"""Fields of a model that are part of another one."""


def number(source: Source, name: str, parameter: Parameter, cell: YamlNode) -> float | None:
    """A checked number of the catalog, or None with a problem noted."""
    value = cell.value
    if isinstance(value, dict | list):
        source.say(cell, f"{name} is one number, not {cell.kind}")
        return None
    if isinstance(value, bool) and parameter.high == 1:
        return float(value)
    problem = value_problem(parameter, value)
    if problem:
        source.say(cell, f"{name}: {problem}", number_hint(value))
        return None
    return float(value)


def note(source: Source, name: str, cell: YamlNode) -> Any:
    """A text beside the numbers (a title, a source), or None with a problem noted."""
    if name == "unverified" and not isinstance(cell.value, bool):
        source.say(cell, f"unverified is true or false, not {cell.kind}")
    elif isinstance(cell.value, dict | list):
        source.say(cell, f"{name} is one text, not {cell.kind}")
    else:
        return cell.value
    return None


def number_hint(value: Any, unit: str = "") -> str:
    """What was meant by a text where a number in ``unit`` is due; 128k of tokens is 131,072, as model cards count a context."""
    if not isinstance(value, str):
        return ""
    text = value.strip()
    if re.fullmatch(r"[-+]?[0-9]{1,3}(,[0-9]{3})+", text):
        plain = text.replace(",", "")
        return f"a number has no separators: {plain}" + (f" (or {text.replace(',', '.')})" if text.count(",") == 1 else "")
    if re.fullmatch(r"[-+]?[0-9]+,[0-9]+", text):
        return f"a number has a decimal point: {text.replace(',', '.')}"
    if re.fullmatch(r"[-+]?[0-9.]+ ?%", text) and text.count(".") < 2:
        return f"a percentage is written as a number: {float(text.rstrip('% ')) / 100:g}"
    if re.fullmatch(r"[-+]?[0-9.]+ ?[kKmM]", text) and text.count(".") < 2:
        size = {"k": 1e3, "m": 1e6}[text[-1].lower()]
        number = float(text[:-1])
        binary = unit == "tokens" and math.log2(number).is_integer() if number > 0 else False
        as_tokens = f"{number * 1024 ** (1 if size == 1e3 else 2):.12g} tokens, or " if binary else ""
        return f"write the number out: {as_tokens}{number * size:.12g}"
    plain = text.lstrip("$")
    if plain.replace(".", "", 1).isdigit() and plain.isascii():
        value = plain.lstrip("0") or "0"
        return f"write the number alone: {f'0{value}' if value[0] == '.' else value}"
    if plain.isdigit():
        return f"write the number with plain digits: {int(plain)}"
    return ""


def _required(what: str, values: Mapping[str, float | None]) -> list[str]:
    if what == "GPU":
        return list(entities.GPU_REQUIRED)
    needed = ["hidden", "layers", "heads", "vocab"]
    attention = sum(values.get(name) or 0 for name in ("linear_layers", "no_mixer_layers")) < (values.get("layers") or 0)
    needed += ["qk_rope_dim", "v_head_dim"] if values.get("kv_lora_rank") else ["kv_heads", "head_dim"] if attention else []
    if values.get("moe_layers"):
        needed += ["experts", "experts_per_token", "expert_ffn"]
    if (values.get("moe_layers") or 0) + (values.get("no_ffn_layers") or 0) < (values.get("layers") or 0):
        needed.append("ffn")
    return needed


_PRICE = entities.GPU_FIELDS["usd_per_hour"]


def _price(source: Source, node: YamlNode, origin: str) -> Price | None:
    said: dict[str, Any] = {}
    before = len(source.problems)
    cell = node
    if isinstance(node.value, dict):
        for name, value in node.value.items():
            if name not in ("usd_per_hour", "source", "date", "unverified"):
                source.unknown(node.keys.get(name, value), name, "price field", ["usd_per_hour", "source", "date", "unverified"])
            elif name != "usd_per_hour":
                said[name] = note(source, name, value)
        if "usd_per_hour" not in node.value:
            if len(source.problems) == before:
                source.say(node, "a price needs usd_per_hour")
            return None
        cell = node.value["usd_per_hour"]
    price = None if cell.value is None else number(source, "the price of a GPU-hour in dollars", _PRICE, cell)
    if (price is None and cell.value is not None) or len(source.problems) > before:
        return None
    default = "the table" if origin == "table" else ""
    return Price(price, str(said.get("source") or default), str(said.get("date") or ""),
                 not said.get("unverified", False), origin)  # fmt: skip
