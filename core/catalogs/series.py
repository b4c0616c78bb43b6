"""The series of a table: acceptance profiles and measured curves, by name or in place."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from scenario.catalogs.catalog import NAME, Catalog, mapping, same_but_case
from scenario.common.yamltree import Source, YamlNode
from scenario.formulas import vectors

KINDS = ("rates", "marginal", "conditional", "lengths")
"""Ways to give a profile: marginal rates (``rates`` says the same), conditional rates, or tokens per round by gamma."""


def profiles(source: Source, node: YamlNode | None) -> dict[str, vectors.Profile]:
    """The checked ``profiles`` section."""
    found = {}
    for name, entry in named(source, node, "profile").items():
        body, notes = _body(source, entry, KINDS, "profile")
        made = profile(source, body, notes["given"]) if body else None
        if made is not None:
            found[name] = replace(made, name=name, source=notes.get("source", source.file), doc=notes.get("doc", ""))
    return found


def profile(source: Source, node: YamlNode, given: str) -> vectors.Profile | None:
    """The profile that these numbers make, by the name of their rates; None with a problem noted."""
    values = profile_rates(source, node)
    if values is None:
        return None
    given = "marginal" if given == "rates" else given
    rates = marginal(values, given)
    hint = ""
    if given == "lengths":
        said = "the first length is 1 to 2, the next at most as much again: tokens per round with 1, 2, ... drafts"
        said = said if fault(rates) else ""
    else:
        said = fault(values if given == "conditional" and not all(0 <= value <= 1 for value in values) else rates)
        if "rise" in said:
            hint = "conditional rates are given as {conditional: [...]}"
    if said:
        source.say(node, said, hint)
        return None
    name = name_of(values) if given == "marginal" else f"{given}:{name_of(values)}"
    return vectors.Profile(name, tuple(rates), source.file, "Given in the table.", given, () if given == "marginal" else tuple(values))


def marginal(values: Sequence[float], given: str) -> list[float]:
    """Marginal rates out of what is given: conditional rates multiplied up, or what each draft adds to the length."""
    if given == "conditional":
        return list(itertools.accumulate(values, lambda before, rate: before * rate))
    if given == "lengths":
        return [length - before for before, length in zip([1.0, *values], values, strict=False)]
    return list(values)


def from_text(source: Source, node: YamlNode) -> vectors.Profile | None:
    """The profile that a text such as ``0.8/0.6`` or ``conditional:0.8/0.75`` spells out; None when it is a name."""
    text = str(node.value)
    given, _, numbers = text.rpartition(":")
    values = rates_of(numbers)
    if values is None or (given and given not in KINDS):
        return None
    made = replace(node, value=[replace(node, value=value) for value in values])
    return profile(source, made, given or "marginal")


def curves(source: Source, node: YamlNode | None) -> dict[str, vectors.Curve]:
    """The checked ``curves`` section."""
    found = {}
    for name, entry in named(source, node, "curve").items():
        body, notes = _body(source, entry, ("points",), "curve")
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


def measured(source: Source, node: YamlNode | None, known: Catalog) -> tuple[tuple[vectors.Curve, dict[str, str | float]], ...]:
    """The checked ``measured`` section: pass times in ms by token rows, each with what it holds for (model, GPU, GPUs)."""
    found = []
    for name, entry in named(source, node, "measured time").items():
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
            elif key == "gpus" and isinstance(cell.value, int | float) and not isinstance(cell.value, bool):
                where[key] = float(cell.value)
            elif key not in ("points", "source", "doc"):
                source.unknown(entry.keys.get(key, cell), key, "measured field", ["model", "gpu", "gpus", "points", "source", "doc"])
        plain = YamlNode({key: cell for key, cell in entry.value.items() if key in ("points", "source", "doc")}, entry.line, entry.column)
        curve = curves(source, YamlNode({name: plain}, entry.line, entry.column)).get(name)
        if curve and curve.points[0][0] <= 0:
            source.say(entry, f"'{name}': token rows are at least 1")
        elif curve and any(ms <= 0 for _, ms in curve.points):
            source.say(entry, f"'{name}': a pass takes more than 0 ms")
        elif curve:
            found.append((curve, where))
    return tuple(found)


def _is_point(point: object) -> bool:
    return isinstance(point, list) and len(point) == 2 and all(is_number(value) and abs(value) < 1e30 for value in point)


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def named(source: Source, node: YamlNode | None, what: str) -> Mapping[str, YamlNode]:
    found: dict[str, YamlNode] = {}
    for name, entry in mapping(source, node, f"{what}s").items():
        if not NAME.match(name) or rates_of(name) is not None:
            key = node.keys.get(name, entry) if node else entry
            source.say(key, f"'{name}' is not a good name for a {what}", "a letter, then letters, digits and . _ -")
        elif not same_but_case(source, node.keys.get(name, entry) if node else entry, name, found, what):
            found[name] = entry
    return found


def _body(source: Source, entry: YamlNode, keys: Sequence[str], what: str) -> tuple[YamlNode | None, dict[str, str]]:
    """The numbers of an entry that is either just them, or a mapping with them and notes; ``given`` is their key."""
    if not isinstance(entry.value, dict):
        return entry, {"given": keys[0]}
    before = len(source.problems)
    notes = {}
    for name, node in entry.value.items():
        if name not in (*keys, "source", "doc"):
            source.unknown(entry.keys.get(name, node), name, f"{what} field", [*keys, "source", "doc"])
        elif name not in keys and isinstance(node.value, dict | list):
            source.say(node, f"{name} is one text, not {node.kind}")
        elif name not in keys and node.value is not None:
            notes[name] = str(node.value)
    given = [name for name in keys if name in entry.value]
    if not given:
        if len(source.problems) == before:
            source.say(entry, f"a {what} needs {keys[0]}")
        return None, {}
    for name in given[1:]:
        said = f"the {what} is given twice, as {given[0]} and as {name}"
        source.say(entry.keys.get(name, entry.value[name]), said, "give one; the others follow from it")
    return entry.value[given[0]], {**notes, "given": given[0]}


def profile_rates(source: Source, node: YamlNode) -> list[float] | None:
    """The numbers of a profile, or None with a problem noted."""
    values = node.value if isinstance(node.value, list) else [node]
    if not values or not all(is_number(value.value) for value in values):
        source.say(node, "a profile is a list of marginal acceptance rates, such as [0.8, 0.6, 0.5]")
        return None
    if len(values) > vectors.POSITIONS:
        source.say(node, f"a profile has at most {vectors.POSITIONS} rates, not {len(values)}")
        return None
    return [min(max(value.value, -1e300), 1e300) * 1.0 for value in values]


def text_fault(text: str) -> str:
    """What keeps a text such as ``0.8/0.6`` or ``conditional:0.8/0.75`` from being a profile, or an empty text."""
    given, _, numbers = text.rpartition(":")
    values = rates_of(numbers)
    if values is None or (given and given not in KINDS):
        return f"'{text}' is not a series of rates such as 0.8/0.6/0.5"
    return fault(marginal(values, given or "marginal"))


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
