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
from scenario.common.yamltree import Node as Tree
from scenario.common.yamltree import Source
from scenario.formulas.expr import Compare, If, Logic, Name, Node, Text
from scenario.model.entities import HARDWARE_FIELDS as FIELDS
from scenario.model.serving import ENGINES

MAX_SETS = 60
"""Sets that one table may choose between: spreadsheets nest at most 64 conditions."""




@dataclass(frozen=True)
class Constants:
    """One set of constants. ``gpus`` is empty for any GPU; ``engine`` is ``any`` for any engine."""

    name: str
    title: str
    gpus: tuple[str, ...]
    engine: str
    values: Mapping[str, float]
    source: str = ""
    doc: str = ""
    uncertainty: Mapping[str, float] = field(default_factory=dict)

    @property
    def row(self) -> dict[str, Any]:
        """The set as a row of its catalog table."""
        return {"name": self.name, "title": self.title, **self.values, "doc": self.doc, "source": self.source}


@lru_cache(maxsize=1)
def builtin() -> tuple[Constants, ...]:
    """The sets that come with the package, the most particular first; the last one holds for everything."""
    text = (resources.files("scenario.scenarios") / "hardware.yaml").read_bytes()
    source, node = yamltree.parse(text, "hardware.yaml")
    found = entries(source, node.value["hardware"], (), None)
    source.stop()
    return found


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


def entries(source: Source, node: Tree, base: tuple[Constants, ...], gpus: Mapping[str, Any] | None) -> tuple[Constants, ...]:
    """The checked sets of a mapping; a constant that a set leaves out is that of the bundled set it resembles."""
    found = []
    for name, entry in catalog.mapping(source, node, "hardware").items():
        key = node.keys.get(name, entry)
        if not catalog.NAME.match(name):
            source.say(key, f"'{name}' is not a good name for a set of constants", "letters, digits and . _ -")
            continue
        built = _entry(source, key, name, entry, base, gpus)
        if built:
            found.append(built)
    return tuple(found)


def _entry(source: Source, key: Tree, name: str, node: Tree, base: tuple[Constants, ...], gpus: Mapping[str, Any] | None) -> Constants | None:
    if not isinstance(node.value, dict):
        source.say(node, f"a set of constants is a mapping, not {node.kind}")
        return None
    values: dict[str, float] = {}
    said: dict[str, Any] = {}
    wide: dict[str, float] = {}
    known = ("title", "source", "doc", "engine", "gpus", "uncertainty", *FIELDS)
    for part, cell in node.value.items():
        if part in FIELDS:
            value = catalog.number(source, part, FIELDS[part], cell)
            if value is not None:
                values[part] = value
        elif part == "gpus":
            said[part] = _gpus(source, cell, gpus)
        elif part == "uncertainty":
            wide = {n: float(c.value) for n, c in catalog.mapping(source, cell, part).items() if isinstance(c.value, int | float)}
        elif part == "engine":
            if cell.value not in ENGINES:
                source.unknown(cell, cell.shown, "engine", list(ENGINES))
            said[part] = cell.value
        elif part in known:
            said[part] = catalog.note(source, part, cell)
        else:
            source.unknown(node.keys.get(part, cell), part, "constant", list(known))
    old = next((item for item in base if item.name == name), None)
    listed, engine = tuple(said.get("gpus") or ()), str(said.get("engine") or "any")
    if old:  # a bundled set with some values changed
        values, listed, engine = {**old.values, **values}, listed or old.gpus, str(said.get("engine") or old.engine)
        said = {"title": old.title, "doc": old.doc, "source": f"{old.source} (changed by the table)", **said}
    elif base:
        values = {**resembling(base, listed, engine).values, "calibrated": 1.0, **values}
    missing = [part for part in FIELDS if part not in values]
    if missing:
        source.say(key, f"the set '{name}' lacks {', '.join(missing)}")
        return None
    return Constants(name, str(said.get("title") or name), listed, engine, values, str(said.get("source") or source.file),
                     str(said.get("doc") or ""), wide)  # fmt: skip


def _gpus(source: Source, cell: Tree, known: Mapping[str, Any] | None) -> list[str]:
    names = [str(item.value) for item in cell.value] if isinstance(cell.value, list) else [cell.shown]
    for name in names:
        if known is not None and name not in known:
            source.unknown(cell, name, "GPU", list(known))
    return names


def resembling(base: tuple[Constants, ...], gpus: tuple[str, ...], engine: str) -> Constants:
    """The bundled set that holds for these GPUs and this engine, or comes nearest."""
    def score(item: Constants) -> tuple[bool, bool]:
        return bool(set(item.gpus) & set(gpus)), item.engine == engine

    for item in base:
        if score(item) == (True, True):
            return item
    near = [item for item in base if item.engine == "any" and set(item.gpus) & set(gpus)]
    return (near or [base[-1]])[0]


def merged(own: tuple[Constants, ...]) -> tuple[Constants, ...]:
    """The sets of a table: its own, then the bundled ones, those of the same name changed in place."""
    changed = {item.name: item for item in own}
    known = {item.name for item in builtin()}
    return (*(item for item in own if item.name not in known), *(changed.get(item.name, item) for item in builtin()))


def chosen(sets: tuple[Constants, ...]) -> Node:
    """Which set applies, as a formula of ``gpu`` and ``engine``: the first one that holds."""
    result: Node = Text(sets[-1].name)
    bundled = {item.name for item in builtin()}
    for item in reversed(sets[:-1]):
        tests: list[Node] = []
        if item.gpus:
            is_one = [Compare("==", Name("gpu"), Text(gpu)) for gpu in item.gpus]
            tests.append(is_one[0] if len(is_one) == 1 else Logic("or", tuple(is_one)))
        if item.engine != "any":
            same: Node = Compare("==", Name("engine"), Text(item.engine))
            # One's own measurements hold for rows that name no engine, too.
            tests.append(Logic("or", (same, Compare("==", Name("engine"), Text("any")))) if item.name not in bundled else same)
        test = tests[0] if len(tests) == 1 else Logic("and", tuple(tests))
        result = If(test, Text(item.name), result) if tests else Text(item.name)
    return result
