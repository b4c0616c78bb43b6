"""The series of a table: acceptance profiles and measured curves, by name or in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scenario import vectors
from scenario.catalog import NAME, Catalog, mapping, same_but_case
from scenario.yamltree import Node, Source


def profiles(source: Source, node: Node | None) -> dict[str, vectors.Profile]:
    """The checked ``profiles`` section."""
    found = {}
    for name, entry in _named(source, node, "profile").items():
        body, notes = _body(source, entry, "rates", "profile")
        rates = profile_rates(source, body) if body else None
        if rates is not None and body is not None and falling(source, body, rates):
            found[name] = vectors.Profile(name, tuple(rates), notes.get("source", source.file), notes.get("doc", ""))
    return found


def curves(source: Source, node: Node | None) -> dict[str, vectors.Curve]:
    """The checked ``curves`` section."""
    found = {}
    for name, entry in _named(source, node, "curve").items():
        body, notes = _body(source, entry, "points", "curve")
        if body is None:
            continue
        points = body.plain()
        if not isinstance(points, list) or len(points) < 2 or not all(_is_point(point) for point in points):
            source.say(body, "a curve is a list of at least two points, such as [[1, 4.8], [64, 5.1]]")
        elif any(later[0] <= earlier[0] for earlier, later in zip(points, points[1:], strict=False)):
            source.say(body, "the x values of a curve must rise")
        else:
            pairs = tuple((float(x), float(y)) for x, y in points)
            found[name] = vectors.Curve(name, pairs, notes.get("source", source.file), notes.get("doc", ""))
    return found


def measured(source: Source, node: Node | None, known: Catalog) -> tuple[tuple[vectors.Curve, dict[str, str | float]], ...]:
    """The checked ``measured`` section: pass times in ms by token rows, each with what it holds for (model, GPU, GPUs)."""
    found = []
    for name, entry in _named(source, node, "measured time").items():
        if not isinstance(entry.value, dict) or "points" not in entry.value:
            source.say(entry, f"'{name}' needs points: [[rows, ms], ...], and the model and gpu they were measured on")
            continue
        where: dict[str, str | float] = {}
        for key, cell in entry.value.items():
            if key in ("model", "gpu"):
                names = list(known.models if key == "model" else known.gpus)
                if cell.value not in names:
                    source.unknown(cell, cell.shown, key, names)
                where[key] = cell.shown
            elif key == "gpus" and _is_number(cell.value):
                where[key] = float(cell.value)
            elif key not in ("points", "source", "doc"):
                source.unknown(entry.keys.get(key, cell), key, "measured field", ["model", "gpu", "gpus", "points", "source", "doc"])
        plain = Node({key: cell for key, cell in entry.value.items() if key in ("points", "source", "doc")}, entry.line, entry.column)
        curve = curves(source, Node({name: plain}, entry.line, entry.column)).get(name)
        if curve and curve.points[0][0] <= 0:
            source.say(entry, f"'{name}': token rows are at least 1")
        elif curve and any(ms <= 0 for _, ms in curve.points):
            source.say(entry, f"'{name}': a pass takes more than 0 ms")
        elif curve:
            found.append((curve, where))
    return tuple(found)


def _is_point(point: object) -> bool:
    return isinstance(point, list) and len(point) == 2 and all(_is_number(value) and abs(value) < 1e30 for value in point)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _named(source: Source, node: Node | None, what: str) -> Mapping[str, Node]:
    found: dict[str, Node] = {}
    for name, entry in mapping(source, node, f"{what}s").items():
        if not NAME.match(name) or rates_of(name) is not None:
            key = node.keys.get(name, entry) if node else entry
            source.say(key, f"'{name}' is not a good name for a {what}", "a letter, then letters, digits and . _ -")
        elif not same_but_case(source, node.keys.get(name, entry) if node else entry, name, found, what):
            found[name] = entry
    return found


def _body(source: Source, entry: Node, key: str, what: str) -> tuple[Node | None, dict[str, str]]:
    """The numbers of an entry that is either just them, or a mapping with them and notes."""
    if not isinstance(entry.value, dict):
        return entry, {}
    before = len(source.problems)
    notes = {}
    for name, node in entry.value.items():
        if name not in (key, "source", "doc"):
            source.unknown(entry.keys.get(name, node), name, f"{what} field", [key, "source", "doc"])
        elif name != key and isinstance(node.value, dict | list):
            source.say(node, f"{name} is one text, not {node.kind}")
        elif name != key and node.value is not None:
            notes[name] = str(node.value)
    if key not in entry.value:
        if len(source.problems) == before:
            source.say(entry, f"a {what} needs {key}")
        return None, {}
    return entry.value[key], notes


def profile_rates(source: Source, node: Node) -> list[float] | None:
    """The numbers of a profile, or None with a problem noted."""
    values = node.value if isinstance(node.value, list) else [node]
    if not values or not all(_is_number(value.value) for value in values):
        source.say(node, "a profile is a list of marginal acceptance rates, such as [0.8, 0.6, 0.5]")
        return None
    if len(values) > vectors.POSITIONS:
        source.say(node, f"a profile has at most {vectors.POSITIONS} rates, not {len(values)}")
        return None
    return [min(max(value.value, -1e300), 1e300) * 1.0 for value in values]


def falling(source: Source, node: Node, rates: Sequence[float]) -> bool:
    """Whether these are marginal rates; a problem is noted if not."""
    said, hint = fault(rates), ""
    if "rise" in said:
        hint = "these may be conditional rates: multiply them up (p_k = p_(k-1) * a_k)"
    if said:
        source.say(node, said, hint)
    return not said


def fault(rates: Sequence[float]) -> str:
    """What keeps ``rates`` from being a profile, or an empty text."""
    if len(rates) > vectors.POSITIONS:
        return f"a profile has at most {vectors.POSITIONS} rates, not {len(rates)}"
    if not all(0 <= rate <= 1 for rate in rates):
        return "acceptance rates lie between 0 and 1"
    if any(later > earlier for earlier, later in zip(rates, rates[1:], strict=False)):
        return "marginal acceptance rates never rise with the position"
    return ""


def rates_of(text: str) -> list[float] | None:
    """The rates in a text such as ``0.8/0.6/0.5``; None when it is something else."""
    try:
        return [float(part) for part in text.split("/")]
    except ValueError:
        return None


def name_of(rates: Sequence[float]) -> str:
    """The name of a profile that has none: its rates."""
    return "/".join(f"{rate:.12g}" for rate in rates)
