"""The sections that define series and constants by name: profiles, trees, curves, hardware and measured times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path as File
from typing import Any

from scenario.catalogs import draft_trees, hardware, series
from scenario.catalogs.hardware import Constants
from scenario.common.yamltree import YamlNode
from scenario.formulas.vectors import POSITIONS, Curve, Profile, Tree
from scenario.model import entities, serving
from scenario.tables.section import Path, Section, Writing, said_of
from scenario.tables.table import Table
from scenario.tables.terms import NAMES, NOTES, SCALAR, TEXT, Schema, mapping, named, value_of
from scenario.tables.values import ValueReader

CITED: Schema = {"source": SCALAR, "doc": SCALAR}


def _with_vector(table: Table, part: str, name: str, value: Any) -> Table:
    return replace(table, vectors=replace(table.vectors, **{part: {**getattr(table.vectors, part), name: value}}))


# -- profiles -----------------------------------------------------------------------------------------------


def _read_profiles(reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
    """The table's own profiles, and those that methods have as defaults."""
    reader.profiles = series.profiles(reader.source, node)
    for method in reader.host.methods.values():
        for parameter in method.parameters.values():
            name = parameter.default
            if parameter.kind == "profile" and isinstance(name, str):
                made = Profile(name, tuple(series.rates_of(name) or ()), parameter.source, parameter.doc)
                reader.profiles.setdefault(name, made)
    return {}


def _profiles(writing: Writing) -> Mapping[str, Profile]:
    """Those with a name; the others are lists of rates, given where they are used."""
    found = writing.table.vectors.profiles
    return {name: p for name, p in found.items() if series.rates_of(name.rpartition(":")[2]) is None and p.rates}


def _write_profiles(writing: Writing) -> Any:
    return {name: said_of({"rates" if p.given == "marginal" else p.given: list(p.values or p.rates), **writing.cited(p)})
            for name, p in _profiles(writing).items()}  # fmt: skip


def _profile_facts(mine: Writing, _: Writing) -> Any:
    """Profiles by their marginal rates, however they were given."""
    return {name: {"rates": list(p.rates), **said_of(mine.cited(p))} for name, p in _profiles(mine).items()}


def _profile_schema(_: object) -> Schema:
    rate = {"type": "number", "minimum": 0, "maximum": 1}
    rates = {"anyOf": [rate, {"type": "array", "minItems": 1, "maxItems": POSITIONS, "items": rate}]}
    lengths = {"type": "array", "minItems": 1, "maxItems": POSITIONS, "items": {"type": "number", "minimum": 1}}
    given = {name: lengths if name == "lengths" else rates for name in series.KINDS}
    one = {"oneOf": [{"required": [name]} for name in series.KINDS]}
    return named({"anyOf": [rates, mapping({**given, **CITED}, **one)]}, propertyNames=NAMES)


def _take_profile(table: Table, other: Table, path: Path) -> Table:
    return _with_vector(table, "profiles", path[0], other.vectors.profiles[path[0]])


# -- trees --------------------------------------------------------------------------------------------------


def _read_trees(reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
    reader.trees = draft_trees.trees(reader.source, node)
    return {}


def _topology(tree: Tree) -> list[list[int]]:
    """Every node as the ranks on its way from the root."""
    paths: list[list[int]] = []
    for parent, rank, _ in tree.nodes:
        paths.append([*(paths[parent] if parent >= 0 else []), rank])
    return paths


def _write_trees(writing: Writing) -> Any:
    return {name: {"rates": [list(row) for row in tree.rates], "topology": _topology(tree), **said_of(writing.cited(tree))}
            for name, tree in writing.table.vectors.trees.items()}  # fmt: skip


def _take_tree(table: Table, other: Table, path: Path) -> Table:
    tree = theirs = other.vectors.trees[path[0]]
    if len(path) == 2:
        mine = table.vectors.trees[path[0]]
        tree = replace(mine, rates=theirs.rates) if path[1] == "rates" else replace(mine, nodes=theirs.nodes)
    return _with_vector(table, "trees", path[0], tree)


def _tree_schema(_: object) -> Schema:
    def whole(low: int, high: int) -> Schema:
        return {"type": "integer", "minimum": low, "maximum": high}

    nodes, row = draft_trees.MAX_NODES, {"type": "array", "minItems": 1, "items": {"type": "number", "minimum": 0, "maximum": 1}}
    way = {"type": "array", "minItems": 1, "maxItems": POSITIONS, "items": whole(0, nodes)}
    shapes: dict[str, Schema] = {
        "nodes_per_depth": {"type": "array", "minItems": 1, "maxItems": POSITIONS, "items": whole(1, nodes)},
        "topology": {"type": "array", "minItems": 1, "items": way},
        "grow": mapping({"depth": whole(1, POSITIONS), "top_k": whole(1, 64), "nodes": whole(1, nodes)}, required=["depth", "top_k", "nodes"]),
    }
    rates = {"rates": {"anyOf": [row, {"type": "array", "minItems": 1, "items": row}]}}
    one = {"oneOf": [{"required": [name]} for name in draft_trees.SHAPES]}
    return named(mapping({**rates, **shapes, **CITED}, required=["rates"], **one), propertyNames=NAMES)


# -- curves and measured times ------------------------------------------------------------------------------

_POINT: Schema = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}}
_POINTS: Schema = {"type": "array", "minItems": 2, "items": _POINT}


def _read_curves(reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
    reader.curves = series.curves(reader.source, node)
    return {}


def _curve(writing: Writing, curve: Curve) -> dict[str, Any]:
    return {"points": [list(point) for point in curve.points], **said_of(writing.cited(curve))}


def _write_curves(writing: Writing) -> Any:
    measured = {curve.name for curve, _ in writing.table.measured}
    return {name: _curve(writing, curve) for name, curve in writing.table.vectors.curves.items() if name not in measured}


def _take_curve(table: Table, other: Table, path: Path) -> Table:
    return _with_vector(table, "curves", path[0], other.vectors.curves[path[0]])


def _read_measured(reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
    found = series.measured(reader.source, node, reader.catalog)
    reader.curves = {**reader.curves, **{curve.name: curve for curve, _ in found}}
    return {"measured": found}


def _write_measured(writing: Writing) -> Any:
    return {curve.name: {**where, **_curve(writing, curve)} for curve, where in writing.table.measured}


def _take_measured(table: Table, other: Table, path: Path) -> Table:
    """A field's value, or with the name alone the whole entry, or that there is none."""
    name = path[0]
    mine, theirs = ({curve.name: (curve, where) for curve, where in side.measured} for side in (table, other))
    if len(path) == 1 or name not in mine or name not in theirs:
        found = {key: item for key, item in {**mine, **theirs}.items() if key != name or key in theirs}
    elif path[1] == "points":
        found = {**mine, name: (theirs[name][0], mine[name][1])}
    else:
        where = {key: value for key, value in mine[name][1].items() if key != path[1]}
        found = {**mine, name: (mine[name][0], where | {key: value for key, value in theirs[name][1].items() if key == path[1]})}
    kept = [item for key, item in found.items() if key in mine or key == name]
    curves = {key: curve for key, curve in table.vectors.curves.items() if key not in mine} | {curve.name: curve for curve, _ in kept}
    return replace(table, measured=tuple(kept), vectors=replace(table.vectors, curves=curves))


def _measured_schema(_: object) -> Schema:
    point = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number", "exclusiveMinimum": 0}}
    points = {"type": "array", "minItems": 2, "items": point}
    return named(mapping({"model": TEXT, "gpu": TEXT, "gpus": {"type": "number"}, "points": points, **CITED}, required=["points"]),
                 propertyNames=NAMES)  # fmt: skip


# -- constants of hardware ----------------------------------------------------------------------------------


def _read_hardware(reader: ValueReader, node: YamlNode | None) -> Mapping[str, Any]:
    return {"hardware": hardware.included(reader.source, node, File(reader.source.file).parent, reader.catalog.gpus)}


def _write_hardware(writing: Writing) -> Any:
    return {item.name: {**said_of({**{part: list(getattr(item, part)) for part in hardware.LISTS}, "engine": item.engine}), **item.values,
                        **said_of({"uncertainty": dict(item.uncertainty), "title": item.title, **writing.cited(item)})}
            for item in writing.table.hardware}  # fmt: skip


def _take_hardware(table: Table, other: Table, path: Path) -> Table:
    """A field's value, or with the name alone the whole set, or that there is none."""
    mine, theirs = ({item.name: item for item in side.hardware} for side in (table, other))
    name = path[0]
    if len(path) == 1:
        mine = {key: item for key, item in {**mine, name: theirs.get(name)}.items() if item}
    else:
        mine[name] = _with_constant(mine[name], theirs[name], path[1])
    return replace(table, hardware=tuple(mine.values()))


def _with_constant(mine: Constants, theirs: Constants, field: str) -> Constants:
    if field in (*hardware.LISTS, "engine", "uncertainty"):
        return replace(mine, **{field: getattr(theirs, field)})
    return replace(mine, values={**mine.values, field: theirs.values[field]})


def _hardware_schema(_: object) -> Schema:
    constants = {name: value_of(parameter, name, blank=False) for name, parameter in entities.HARDWARE_FIELDS.items()}
    lists = {key: {"anyOf": [TEXT, {"type": "array", "items": TEXT}]} for key in hardware.LISTS}
    notes = {key: NOTES[key] for key in ("title", "source")} | {"doc": SCALAR, "like": TEXT}
    body = mapping({**constants, **lists, "engine": {"enum": list(serving.ENGINES)}, "uncertainty": named({}), **notes})
    return {"anyOf": [TEXT, {"type": "array", "items": TEXT}, named(body, propertyNames=NAMES)]}


PROFILES = Section(
    "profiles", "acceptance profiles: marginal or conditional rates per draft position, or lengths by gamma", _read_profiles,
    _write_profiles, _profile_schema, _profile_facts, _take_profile, levels=2, kind="profile", main="rates", entries="still", stage=0,
)  # fmt: skip
TREES = Section(
    "trees", "draft trees: rates by rank, and nodes per depth, a topology, or how it grows", _read_trees, _write_trees, _tree_schema,
    take=_take_tree, levels=2, kind="tree", entries="still", stage=0,
)  # fmt: skip
CURVES = Section(
    "curves", 'measured points, read with curve("name", x)', _read_curves, _write_curves,
    lambda _: named({"anyOf": [_POINTS, mapping({"points": _POINTS, **CITED}, required=["points"])]}, propertyNames=NAMES),
    take=_take_curve, levels=2, kind="curve", main="points", entries="still", stage=0,
)  # fmt: skip
HARDWARE = Section(
    "hardware", "constants of the estimate: a file that scenario calibrate wrote, or sets by name", _read_hardware, _write_hardware,
    _hardware_schema, take=_take_hardware, levels=2, kind="hardware", entries="moving", stage=0,
)  # fmt: skip
MEASURED = Section(
    "measured", "measured pass times [rows, ms] by name, each for a model and a GPU", _read_measured, _write_measured, _measured_schema,
    take=_take_measured, levels=2, kind="measured", entries="moving", stage=0,
)  # fmt: skip
