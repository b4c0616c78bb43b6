"""Constants of real hardware and engines that an estimate multiplies its formula with, each set with its source.

A set holds for some GPUs and one engine. The bundled sets are in ``scenarios/hardware.yaml``; a table brings its
own under ``hardware:``, inline or from a file that ``scenario calibrate`` wrote, and these go first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from scenario.catalogs import catalog
from scenario.common import yamltree
from scenario.common.yamltree import Source
from scenario.common.yamltree import YamlNode as Tree
from scenario.formulas.expr import Compare, If, Logic, Name, Node, Text
from scenario.model import shared
from scenario.model.entities import HARDWARE_FIELDS as FIELDS
from scenario.model.serving import ENGINES

MAX_SETS = 60
"""Sets that one table may choose between: spreadsheets nest at most 64 conditions."""




@dataclass(frozen=True)
class Constants:
    """One set of constants. ``gpus`` is empty for any GPU, ``models`` and ``weights`` for any; ``engine`` is ``any`` for any engine."""

    name: str
    title: str
    gpus: tuple[str, ...]
    engine: str
    values: Mapping[str, float]
    source: str = ""
    doc: str = ""
    uncertainty: Mapping[str, float] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    weights: tuple[str, ...] = ()

    @property
    def row(self) -> dict[str, Any]:
        """The set as a row of its catalog table."""
        return {"name": self.name, "title": self.title, **self.values, "doc": self.doc, "source": self.source}


@lru_cache(maxsize=1)
def builtin() -> tuple[Constants, ...]:
    """The sets that come with the package, the most particular first; the last one holds for everything."""
    text = (resources.files("scenario.scenarios") / "hardware.yaml").read_bytes()
    source, node = yamltree.parse(text, "hardware.yaml")
    found = entries(source, node.value["hardware"], (), None, own=False)
    source.stop()
    return particular_first(found)


def particular_first(sets: tuple[Constants, ...]) -> tuple[Constants, ...]:
    """Sets that hold for some models only go before those that hold for any."""
    return tuple(sorted(sets, key=lambda item: not item.models))


def included(source: Source, node: Tree | None, folder: Path, gpus: Mapping[str, Any]) -> tuple[Constants, ...]:
    """The sets of a table: inline ones, or those of the file (or files) that it names."""
    if node is None or node.value is None:
        return ()
    if isinstance(node.value, dict):
        return entries(source, node, builtin(), gpus)
    found: list[Constants] = []
    for item in node.value if isinstance(node.value, list) else [node]:
        if not isinstance(item.value, str):
            source.say(item, f"hardware is a file name or a mapping of sets, not {item.kind}")
            continue
        path = folder / item.value
        if not path.is_file():
            source.say(item, f"there is no file {item.value}", "scenario calibrate MEASUREMENTS -o hardware.yaml writes one")
            continue
        inner, root = yamltree.read(path)
        body = root.value.get("hardware") if isinstance(root.value, dict) else None
        if body is None:
            source.say(item, f"{item.value} has no hardware: section")
            continue
        found += entries(inner, body, builtin(), gpus)
        inner.stop()
    return tuple(found)


def entries(
    source: Source, node: Tree, base: tuple[Constants, ...], gpus: Mapping[str, Any] | None, own: bool = True
) -> tuple[Constants, ...]:
    """The checked sets of a mapping; a constant that a set leaves out is that of the bundled set it is like or resembles.

    ``own`` sets are a user's: they count as calibrated unless they say otherwise.
    """
    found: list[Constants] = []
    for name, entry in catalog.mapping(source, node, "hardware").items():
        key = node.keys.get(name, entry)
        if not catalog.NAME.match(name):
            source.say(key, f"'{name}' is not a good name for a set of constants", "letters, digits and . _ -")
            continue
        built = _entry(source, key, name, entry, (*found, *base), gpus, own)
        if built:
            found.append(built)
    return tuple(found)


WEIGHTS = dict.fromkeys(map(str, shared.INPUTS["weights"].choices))
NOTES = ("title", "source", "doc")
LISTS = ("gpus", "models", "weights")
KNOWN = (*NOTES, *LISTS, "engine", "like", "uncertainty", *FIELDS)


def _entry(source: Source, key: Tree, name: str, node: Tree, base: tuple[Constants, ...], gpus: Mapping[str, Any] | None,
           own: bool) -> Constants | None:  # fmt: skip
    if not isinstance(node.value, dict):
        source.say(node, f"a set of constants is a mapping, not {node.kind}")
        return None
    values, said, wide = _said(source, node, gpus)
    old = next((item for item in base if item.name == name), None)
    like = _like(source, node, said, base)
    engine = str(said.get("engine") or (old.engine if old else "any"))
    listed = {part: tuple(said.get(part) or (getattr(old, part) if old else ())) for part in LISTS}
    if old:  # a bundled set with some values changed
        values = {**old.values, **values}
        said = {"title": old.title, "doc": old.doc, "source": f"{old.source} (changed by the table)", **said}
    elif like or (base and own):
        near = like or resembling(base, listed["gpus"], engine)
        values = {**near.values, **({"calibrated": 1.0, "cell": 0.0} if own else {}), **values}
        said = {"source": near.source, **said} if like and not own else said
    missing = [part for part in FIELDS if part not in values]
    if missing:
        source.say(key, f"the set '{name}' lacks {', '.join(missing)}")
        return None
    return Constants(name, str(said.get("title") or name), listed["gpus"], engine, values, str(said.get("source") or source.file),
                     str(said.get("doc") or ""), wide, listed["models"], listed["weights"])  # fmt: skip


def _said(source: Source, node: Tree, gpus: Mapping[str, Any] | None) -> tuple[dict[str, float], dict[str, Any], dict[str, float]]:
    """What a set says: its constants, its notes and lists, and how uncertain its constants are."""
    values: dict[str, float] = {}
    said: dict[str, Any] = {}
    wide: dict[str, float] = {}
    for part, cell in node.value.items():
        if part in FIELDS:
            value = catalog.number(source, part, FIELDS[part], cell)
            if value is not None:
                values[part] = value
        elif part in LISTS:
            said[part] = _list(source, cell, gpus if part == "gpus" else WEIGHTS if part == "weights" else None)
        elif part == "uncertainty":
            wide = {n: float(c.value) for n, c in catalog.mapping(source, cell, part).items() if isinstance(c.value, int | float)}
        elif part == "engine":
            if cell.value not in ENGINES:
                source.unknown(cell, cell.shown, "engine", list(ENGINES))
            said[part] = cell.value
        elif part in (*NOTES, "like"):
            said[part] = catalog.note(source, part, cell)
        elif part in REMOVED:
            source.say(node.keys.get(part, cell), f"'{part}' is no constant of the estimate any more", REMOVED[part])
        else:
            source.unknown(node.keys.get(part, cell), part, "constant", list(KNOWN))
    return values, said, wide


REMOVED = {
    "layer_us": "launch_us is the time of one kernel; kernels are counted from the model",
    "moe_layer_us": "launch_us and moe_row_us took its place",
    "hop_us": "an all-reduce's launch is counted among the kernels, its bytes by link_share",
    "prefill_share": "it is 1 - queue_share",
}
"""Constants of files that earlier versions of ``scenario calibrate`` wrote; calibrate again."""


def _like(source: Source, node: Tree, said: Mapping[str, Any], base: tuple[Constants, ...]) -> Constants | None:
    """The set that one says it is like."""
    if "like" not in said:
        return None
    found = next((item for item in base if item.name == said["like"]), None)
    if found is None:
        source.unknown(node.value["like"], str(said["like"]), "set of constants", [item.name for item in base])
    return found


def _list(source: Source, cell: Tree, known: Mapping[str, Any] | None) -> list[str]:
    names = [str(item.value) for item in cell.value] if isinstance(cell.value, list) else [cell.shown]
    for name in names:
        if known is not None and name not in known:
            source.unknown(cell, name, "number format" if known is WEIGHTS else "GPU", list(known))
    return names


def resembling(base: tuple[Constants, ...], gpus: tuple[str, ...], engine: str) -> Constants:
    """The bundled set that holds for these GPUs and this engine, or comes nearest."""
    def score(item: Constants) -> tuple[bool, bool]:
        return bool(set(item.gpus) & set(gpus)), item.engine == engine

    base = tuple(item for item in base if not item.models)
    for item in base:
        if score(item) == (True, True):
            return item
    near = [item for item in base if item.engine == "any" and set(item.gpus) & set(gpus)]
    return (near or [base[-1]])[0]


def merged(own: tuple[Constants, ...]) -> tuple[Constants, ...]:
    """The sets of a table: its own, then the bundled ones, those of the same name changed in place."""
    changed = {item.name: item for item in own}
    known = {item.name for item in builtin()}
    mine = particular_first(tuple(item for item in own if item.name not in known))
    return (*mine, *(changed.get(item.name, item) for item in builtin()))


def chosen(sets: tuple[Constants, ...]) -> Node:
    """Which set applies, as a formula of ``gpu`` and ``engine``: the first one that holds."""
    result: Node = Text(sets[-1].name)
    bundled = {item.name for item in builtin()}
    for item in reversed(sets[:-1]):
        tests: list[Node] = []
        for name, listed in (("gpu", item.gpus), ("model", item.models), ("weights", item.weights)):
            is_one = [Compare("==", Name(name), Text(text)) for text in listed]
            tests += [is_one[0] if len(is_one) == 1 else Logic("or", tuple(is_one))] if is_one else []
        if item.engine != "any":
            same: Node = Compare("==", Name("engine"), Text(item.engine))
            # One's own measurements hold for rows that name no engine, too.
            tests.append(Logic("or", (same, Compare("==", Name("engine"), Text("any")))) if item.name not in bundled else same)
        test = tests[0] if len(tests) == 1 else Logic("and", tuple(tests))
        result = If(test, Text(item.name), result) if tests else Text(item.name)
    return result
