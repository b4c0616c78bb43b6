"""The ``trees`` section of a table: draft trees by nodes per depth, by topology, or grown as EAGLE-2 grows them."""

from __future__ import annotations

from scenario.catalogs.series import is_number, named
from scenario.common.yamltree import Source, YamlNode
from scenario.formulas.vectors import POSITIONS, Tree

MAX_NODES = 1024
SHAPES = {
    "nodes_per_depth": "how many nodes each depth has: [4, 8, 8]",
    "topology": "every node as the ranks on its way: [[0], [1], [0, 0]]",
    "grow": "as EAGLE-2 grows it: {depth: 6, top_k: 10, nodes: 60}",
}
"""The ways to give a tree's shape."""


def trees(source: Source, node: YamlNode | None) -> dict[str, Tree]:
    """The checked ``trees`` section."""
    found = {}
    for name, entry in named(source, node, "tree").items():
        if not isinstance(entry.value, dict):
            source.say(entry, f"a tree is a mapping of rates and a shape, not {entry.kind}", "{rates: [0.7, 0.1], topology: [[0], [1]]}")
            continue
        for key, cell in entry.value.items():
            if key not in ("rates", "source", "doc", *SHAPES):
                source.unknown(entry.keys.get(key, cell), key, "tree field", ["rates", *SHAPES, "source", "doc"])
        shapes = [key for key in SHAPES if key in entry.value]
        rates = _rates(source, entry)
        if len(shapes) != 1:
            said = "says its shape twice" if shapes else "has no shape"
            source.say(entry, f"tree '{name}' {said}", "give one of " + "; ".join(f"{key}: {doc}" for key, doc in SHAPES.items()))
        elif rates:
            nodes = _SHAPED[shapes[0]](source, entry.value[shapes[0]], rates)
            if nodes and len(nodes) > MAX_NODES:
                source.say(entry.value[shapes[0]], f"a tree has at most {MAX_NODES:,} nodes, not {len(nodes):,}")
            elif nodes:
                notes = {key: str(entry.value[key].value) for key in ("source", "doc") if key in entry.value}
                found[name] = Tree(name, tuple(nodes), rates, notes.get("source", source.file), notes.get("doc", ""))
    return found


Nodes = list[tuple[int, int, int]]
Rates = tuple[tuple[float, ...], ...]


def _rates(source: Source, entry: YamlNode) -> Rates | None:
    """The chance of each guess by depth and rank."""
    cell = entry.value.get("rates")
    if cell is None:
        source.say(entry, "a tree needs rates: how often the draft's first, second, ... guess is right, per depth",
                   "rates: [0.7, 0.1, 0.05] for all depths, or one such list per depth")  # fmt: skip
        return None
    plain = cell.plain()
    rows = plain if isinstance(plain, list) and plain and all(isinstance(row, list) for row in plain) else [plain]
    for row in rows:
        if not isinstance(row, list) or not row or not all(is_number(rate) and 0 <= rate <= 1 for rate in row):
            source.say(cell, "rates are lists of numbers from 0 to 1: the draft's first guess, its second, ...")
            return None
        if sum(row) > 1 + 1e-9:
            source.say(cell, f"the rates of one depth add up to {sum(row):g}; only one guess can be right")
            return None
    return tuple(tuple(float(rate) for rate in row) for row in rows)


def _whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _by_depth(source: Source, cell: YamlNode, rates: Rates) -> Nodes | None:
    """The most likely children of the nodes of each depth."""
    counts = cell.plain()
    if not isinstance(counts, list) or not 1 <= len(counts) <= POSITIONS or not all(_whole(count, 1, MAX_NODES) for count in counts):
        source.say(cell, f"nodes_per_depth is a list of 1 to {POSITIONS} whole numbers, such as [4, 8, 8]")
        return None
    tree = Tree("", (), rates)
    nodes: Nodes = []
    before: list[tuple[int, float]] = [(-1, 1.0)]
    for depth, count in enumerate(counts, 1):
        ranks = len(rates[min(depth, len(rates)) - 1])
        children = sorted(((share * tree.rate(depth, rank), parent, rank) for parent, share in before for rank in range(ranks)),
                          key=lambda child: (-child[0], child[1], child[2]))  # fmt: skip
        if count > len(children):
            source.say(cell, f"depth {depth} cannot have {count} nodes: its parents have {len(children)} children, one per given rate")
            return None
        before = []
        for share, parent, rank in children[:count]:
            before.append((len(nodes), share))
            nodes.append((parent, rank, depth))
    return nodes


def _topology(source: Source, cell: YamlNode, rates: Rates) -> Nodes | None:
    """The nodes on the given ways from the root."""
    paths = cell.plain()
    if not isinstance(paths, list) or not paths or not all(
        isinstance(path, list) and 1 <= len(path) <= POSITIONS and all(_whole(rank, 0, MAX_NODES) for rank in path) for path in paths
    ):  # fmt: skip
        source.say(cell, "a topology is a list of ways from the root: the rank taken at each depth, such as [[0], [1], [0, 0]]")
        return None
    places: dict[tuple[int, ...], int] = {(): -1}
    nodes: Nodes = []
    for path in sorted((tuple(path) for path in paths), key=lambda path: (len(path), path)):
        if path in places:
            source.say(cell, f"the topology has the node {list(path)} twice")
            return None
        if path[:-1] not in places:
            source.say(cell, f"the topology has the node {list(path)} but not its parent {list(path[:-1])}")
            return None
        places[path] = len(nodes)
        nodes.append((places[path[:-1]], path[-1], len(path)))
    return nodes


def _grown(source: Source, cell: YamlNode, rates: Rates) -> Nodes | None:
    """EAGLE-2: at each depth the top_k likeliest nodes get top_k children each; of all nodes the likeliest are kept.

    Source: arXiv:2406.16858, section 4.
    """
    sizes = cell.plain()
    wanted = {"depth": POSITIONS, "top_k": 64, "nodes": MAX_NODES}
    if not isinstance(sizes, dict) or set(sizes) != set(wanted) or not all(_whole(sizes[key], 1, high) for key, high in wanted.items()):
        source.say(cell, f"grow takes depth (to {POSITIONS}), top_k (to 64) and nodes (to {MAX_NODES:,}): {{depth: 6, top_k: 10, nodes: 60}}")
        return None
    tree = Tree("", (), rates)
    every: list[tuple[float, int, int, int]] = []  # path probability, parent, rank, depth
    front: list[tuple[float, int]] = [(1.0, -1)]
    for depth in range(1, sizes["depth"] + 1):
        ranks = min(sizes["top_k"], len(rates[min(depth, len(rates)) - 1]))
        first = len(every)
        every += [(share * tree.rate(depth, rank), parent, rank, depth) for share, parent in front for rank in range(ranks)]
        grown = sorted(range(first, len(every)), key=lambda index: (-every[index][0], index))
        front = [(every[index][0], index) for index in grown[: sizes["top_k"]]]
    best = sorted(range(len(every)), key=lambda index: (-every[index][0], every[index][3], index))[: sizes["nodes"]]
    place = {-1: -1} | {old: new for new, old in enumerate(sorted(best))}
    # A parent is at least as likely as its children and comes first, so it is kept whenever one of them is.
    return [(place[every[old][1]], every[old][2], every[old][3]) for old in sorted(best)]


_SHAPED = {"nodes_per_depth": _by_depth, "topology": _topology, "grow": _grown}
