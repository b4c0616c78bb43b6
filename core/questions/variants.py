"""Tables made of changes to one row of another table, and what the commands ask of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl

from scenario import result
from scenario.book.assemble import assemble
from scenario.book.book import Field
from scenario.common.errors import Problem, TableError, nearest
from scenario.common.yamltree import YamlNode
from scenario.model import kinds, stacks
from scenario.model.spec import Column, Parameter
from scenario.registry.loaded import Host
from scenario.result import Result, Sensitivity, Swing
from scenario.tables.table import Formula, Table, is_text_input, known_inputs, parameter_specs


def find_row(table: Table, row: str | None) -> str:
    """The id of the row that was asked for, or of the first."""
    ids = table.rows["id"].to_list()
    if row is not None and row not in ids:
        raise TableError(Problem(f"there is no row '{row}'", nearest(row, ids) or "ids: " + ", ".join(ids[:8]), table.file))
    return row if row is not None else ids[0]


def around(table: Table, host: Host, row: str, changes: Mapping[str, Mapping[str, float | str | None]], show: Sequence[str] = ()) -> Table:
    """A table of copies of ``row``, one per change: new id -> inputs and their new values (None: not given)."""
    known = known_inputs(host)
    base = table.rows.filter(pl.col("id") == row).row(0, named=True)
    lines = [{**base, **change, "id": name} for name, change in changes.items()]
    kinds_of = {name: pl.String if is_text_input(name, known) else pl.Float64 for line in lines for name in line}
    frame = pl.DataFrame({name: pl.Series([line.get(name) for line in lines], dtype=kind) for name, kind in kinds_of.items()})
    used = dict(table.stacks)
    for name in frame["method"].drop_nulls().unique().to_list():
        found = stacks.parse(name, host.methods)[0]
        if found:
            used[found.name] = found
    return replace(table, rows=frame, stacks=used, where=None, sort=(), sort_nodes=(), show=(*table.show, *show))


def compute(table: Table, host: Host) -> Result:
    """The computed rows of such a table."""
    return result.evaluate(assemble(table, host), host)


def with_limits(table: Table, limits: Sequence[str]) -> Table:
    """``table`` with a hidden condition column per limit: limit_1, limit_2, ..."""
    place = YamlNode(None, 0, 0, path="--where")
    extra = {f"limit_{index}": (Column(text), place) for index, text in enumerate(limits, 1)}
    return replace(table, columns={**table.columns, **extra})


def numbers(table: Table, host: Host) -> dict[str, Parameter]:
    """The inputs of a row that are numbers, by name."""
    from scenario.model import shared

    known = {**shared.INPUTS, **parameter_specs(host)}
    known["gpus"] = replace(known["gpus"], low=1)  # 0 stands for auto, which is not a size to vary
    return {name: p for name, p in known.items() if kinds.is_number(p)}


def ends(parameter: Parameter, value: float, share: float) -> tuple[float | None, float | None]:
    """The value less and more ``share`` of it, within the allowed range; whole numbers move by 1 at least."""
    facts = kinds.parameter_facts(parameter)
    step = value * share
    if facts.integer:
        step = max(float(round(step)), 1.0)
    found = [value - step, value + step]
    low = found[0] if facts.may_be(found[0]) else None
    high = found[1] if facts.may_be(found[1]) else None
    return (low if step else None), (high if step else None)


def sensitivity(
    table: Table, host: Host, row: str, metric: str, share: float, ranges: Mapping[str, tuple[float, float]]
) -> tuple[Result, Sensitivity]:
    """One input at a time: what its low and its high value make of ``metric``, all else as in ``row``."""
    row = find_row(table, row)
    base = compute(around(table, host, row, {row: {}}, ()), host)
    fields = {item.name: item for item in base.book.public}
    if metric not in fields or fields[metric].facts.type != "number":
        raise TableError(Problem(f"'{metric}' is not a column of numbers", nearest(metric, fields), table.file))
    known = numbers(table, host)
    _check_ranges(ranges, known)
    values = base.full.row(0, named=True)
    tried = list(_swings(row, values, known, share, ranges))
    changes: dict[str, dict[str, float | str | None]] = {row: {}}
    for swing in tried:
        changes |= {f"{swing.name} {end}": {swing.name: to} for end, to in (("low", swing.low), ("high", swing.high)) if to is not None}
    computed = compute(around(table, host, row, changes, ()), host)
    at = dict(zip(computed.full["id"].to_list(), computed.full[metric].to_list(), strict=True))
    middle = at[row]
    if middle is None:
        why = f": {values['status']}" if values["status"] not in (None, "ok") else ""
        raise TableError(Problem(f"{metric} of the row '{row}' is blank{why}", "choose another --row or --of", table.file))
    found = _ranked(row, fields[metric], middle, [_reached(swing, at, middle) for swing in tried])
    return replace(computed, sensitivity=found), found


def _check_ranges(ranges: Mapping[str, tuple[float, float]], known: Mapping[str, Parameter]) -> None:
    """Refuse a range of what is no input, or beyond what it may be."""
    for name, span in ranges.items():
        if name not in known:
            raise TableError(Problem(f"--range {name}: there is no such input", nearest(name, known)))
        for end in span:
            if said := kinds.value_problem(known[name], end):
                raise TableError(Problem(f"--range {name}: {said}"))


def _swings(
    row: str, values: Mapping[str, object], known: Mapping[str, Parameter], share: float, ranges: Mapping[str, tuple[float, float]]
) -> Iterator[Swing]:
    """The inputs that the row uses, with the ends that each is moved to."""
    measured = not str(values.get("acceptance_source") or "constant").startswith("constant")
    for name, parameter in known.items():
        value = values.get(name)
        if name in ranges:
            if not isinstance(value, float):
                raise TableError(Problem(f"--range {name}: the row '{row}' does not use it", "its method has no such parameter"))
            yield Swing(name, parameter.unit, value, *ranges[name])
        elif isinstance(value, float) and not (name == "alpha" and measured):  # where acceptance was measured, alpha follows from it
            yield Swing(name, parameter.unit, value, *ends(parameter, value, share))


def _reached(swing: Swing, at: Mapping[str, float | None], middle: float) -> Swing:
    """A swing with what the metric is at its ends; an end that there is not leaves it where it was."""
    low, high = (at.get(f"{swing.name} {end}", middle) for end in ("low", "high"))
    return replace(swing, at_low=low, at_high=high)


def _ranked(row: str, metric: Field, middle: float, done: Sequence[Swing]) -> Sensitivity:
    """The largest swing first; those that move nothing apart."""
    moving = [swing for swing in done if swing.size > 1e-12 * abs(middle) or None in (swing.at_low, swing.at_high)]
    still = tuple(swing.name for swing in done if swing not in moving)
    return Sensitivity(row, metric.name, metric.unit, middle, tuple(sorted(moving, key=lambda swing: -swing.size)), still)


def compare(table: Table, host: Host, row: str, methods: Sequence[str]) -> Result:
    """The row under each method; what it gives for its own method's parameters stays with that method."""
    row = find_row(table, row)
    given = table.rows.filter(pl.col("id") == row)["method"][0] or table.defaults.get("method")
    own = set(str(given).split("+"))
    owners = _owners(host)
    changes: dict[str, dict[str, float | str | None]] = {}
    for name in methods:
        stack, said, unknown = stacks.parse(name, host.methods)
        if stack is None:
            raise TableError(Problem(said, host.missing("method", unknown, host.methods) if unknown else ""))
        kept = own & {stack.quantization, stack.drafting}
        foreign = [key for key in table.rows.columns if key in owners and not owners[key] & kept]
        changes[stack.name] = {**dict.fromkeys(foreign), "method": stack.name}
    return compute(around(table, host, row, changes, ("best_gamma", "break_even_batch")), host)


def _owners(host: Host) -> dict[str, set[str]]:
    """The methods that declare each parameter."""
    owners: dict[str, set[str]] = {}
    for method in host.methods.values():
        for name in method.parameters:
            owners.setdefault(name, set()).add(method.name)
    return owners


__all__ = ["Formula", "Sensitivity", "Swing", "around", "compare", "compute", "find_row", "sensitivity", "with_limits"]
