"""What differs between two tables: one entry per input, each able to carry the old table towards the new one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scenario.catalogs import series
from scenario.catalogs.catalog import Catalog, Entry
from scenario.formulas.vectors import Vectors
from scenario.model import entities, serving, shared
from scenario.registry.host import Host
from scenario.tables.table import Table

Apply = Callable[[Table], Table]


@dataclass(frozen=True)
class Change:
    """One input that differs. ``apply`` makes the old table take the new value; None when no number depends on it.

    ``kind`` is what it belongs to (``default``, ``parameter``, ``model``, ``GPU``, ``price``, ``row``, ``column``, ...),
    ``rows`` the rows it holds in, if it is an input of rows.
    """

    kind: str
    name: str
    old: Any
    new: Any
    rows: int | None = None
    apply: Apply | None = field(default=None, compare=False, repr=False)
    group: str = field(default="", compare=False, repr=False)

    @property
    def label(self) -> str:
        """The change in few words, such as ``price h100-sxm``."""
        return self.name if self.kind in ("title", "where", "sort", "summary", "time_model", "preset") else f"{self.kind} {self.name}"


def table_changes(old: Table, new: Table, host: Host) -> list[Change]:
    """Everything outside the rows that differs."""
    found = [*_texts(old, new), *_defaults(old, new), *_parameters(old, new, host)]
    found += [*_entities(old, new, "models", "model", entities.MODEL_FIELDS), *_entities(old, new, "gpus", "GPU", entities.GPU_FIELDS)]
    return [*found, *_prices(old, new), *_vectors(old, new), *_columns(old, new)]


def _texts(old: Table, new: Table) -> Iterator[Change]:
    if old.title != new.title and _title(old) != _title(new):
        yield Change("title", "title", _title(old), _title(new))
    if old.time_model != new.time_model:
        yield Change("time_model", "time_model", old.time_model, new.time_model, apply=lambda t: replace(t, time_model=new.time_model))
    if old.presets != new.presets:
        yield Change("preset", "preset", ", ".join(old.presets) or None, ", ".join(new.presets) or None,
                     apply=lambda t: replace(t, presets=new.presets))  # fmt: skip
    was, now = (table.where.text if table.where else None for table in (old, new))
    if was != now:
        yield Change("where", "where", was, now)
    if old.sort != new.sort:
        was, now = (", ".join(f"-{name}" if down else name for name, down in table.sort) or None for table in (old, new))
        yield Change("sort", "sort", was, now)
    for part in ("rows", "columns", "where"):
        mine, theirs = (getattr(table.summary, part) for table in (old, new))
        if mine != theirs:
            yield Change("summary", f"summary {part}", _plain(mine), _plain(theirs))


def _title(table: Table) -> str | None:
    """The title that the table gives itself; one without is called after its file."""
    return None if table.title == Path(table.file).stem else table.title


def _plain(value: Any) -> str | None:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item}" for key, item in value.items()) or None
    return (value if isinstance(value, str) else ", ".join(value)) or None


def _defaults(old: Table, new: Table) -> Iterator[Change]:
    known = {**shared.INPUTS, **serving.INPUTS, **shared.SCALARS}
    for name in dict.fromkeys([*old.defaults, *new.defaults]):
        default = known[name].default if name in known else None
        was, now = old.defaults.get(name, default), new.defaults.get(name, default)
        if was != now:
            yield Change("default", name, was, now, apply=_set_default(name, new.defaults.get(name)))


def _set_default(name: str, value: float | str | None) -> Apply:
    return lambda table: replace(table, defaults=_with(table.defaults, name, value))


def _with(values: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """``values`` with one set, or taken out when it is None."""
    found = {**values, name: value}
    return {key: item for key, item in found.items() if item is not None}


def _parameters(old: Table, new: Table, host: Host) -> Iterator[Change]:
    for method, name in dict.fromkeys((m, n) for table in (old, new) for m, values in table.parameters.items() for n in values):
        typed, retyped = (table.parameters.get(method, {}).get(name) for table in (old, new))
        was = _untyped(old, host, method, name) if typed is None else typed
        now = _untyped(new, host, method, name) if retyped is None else retyped
        if was != now or (typed != retyped and _preset(old, host, method, name) != _preset(new, host, method, name)):
            yield Change("parameter", f"{method}.{name}", was, now, apply=_set_parameter(method, name, retyped))


def _untyped(table: Table, host: Host, method: str, name: str) -> Any:
    """A parameter's value where the table types none; a derived one has no single value."""
    preset = _preset(table, host, method, name)
    parameter = host.methods[method].parameters[name]
    return preset if preset is not None else None if parameter.derive else parameter.default


def _preset(table: Table, host: Host, method: str, name: str) -> Any:
    found = [host.presets[preset] for preset in table.presets if preset in host.presets]
    return next((p.values[name] for p in reversed(found) if p.method == method and name in p.values), None)


def _set_parameter(method: str, name: str, value: Any) -> Apply:
    return lambda table: replace(table, parameters={**table.parameters, method: _with(table.parameters.get(method, {}), name, value)})


def _entities(old: Table, new: Table, part: str, what: str, fields: Mapping[str, Any]) -> Iterator[Change]:
    mine: Mapping[str, Entry] = getattr(old.catalog, part)
    theirs: Mapping[str, Entry] = getattr(new.catalog, part)
    for name in dict.fromkeys([*mine, *theirs]):
        if name not in mine or name not in theirs:
            yield Change(what, name, "there" if name in mine else None, "there" if name in theirs else None)
            continue
        for key in fields:
            was, now = mine[name].values.get(key), theirs[name].values.get(key)
            if was != now and not (key == "usd_per_hour" and (name in old.catalog.prices or name in new.catalog.prices)):
                yield Change(what, f"{name}.{key}", was, now, apply=_set_field(part, name, key, now), group=f"{what} {name}")


def _set_field(part: str, name: str, key: str, value: float | None) -> Apply:
    def apply(table: Table) -> Table:
        found: Mapping[str, Entry] = getattr(table.catalog, part)
        entry = replace(found[name], values={**found[name].values, key: value})
        entries = {**found, name: entry}
        known = table.catalog
        return replace(table, catalog=replace(known, models=entries) if part == "models" else replace(known, gpus=entries))

    return apply


def _prices(old: Table, new: Table) -> Iterator[Change]:
    for name in dict.fromkeys([*old.catalog.prices, *new.catalog.prices]):
        was, now = _price(old.catalog, name), _price(new.catalog, name)
        if was != now:
            yield Change("price", name, was, now, apply=_set_price(name, new))


def _price(found: Catalog, name: str) -> float | None:
    if name in found.prices:
        return found.prices[name].usd_per_hour
    return found.gpus[name].values.get("usd_per_hour") if name in found.gpus else None


def _set_price(name: str, new: Table) -> Apply:
    def apply(table: Table) -> Table:
        found = replace(table.catalog, prices=_with(table.catalog.prices, name, new.catalog.prices.get(name)))
        if name in new.catalog.gpus:
            values = {**found.gpus[name].values, "usd_per_hour": new.catalog.gpus[name].values.get("usd_per_hour")}
            found = replace(found, gpus={**found.gpus, name: replace(found.gpus[name], values=values)})
        return replace(table, catalog=found)

    return apply


def _vectors(old: Table, new: Table) -> Iterator[Change]:
    for part, what, numbers in (("profiles", "profile", "rates"), ("curves", "curve", "points")):
        mine, theirs = getattr(old.vectors, part), getattr(new.vectors, part)
        for name in dict.fromkeys([*mine, *theirs]):
            if part == "profiles" and series.rates_of(name) is not None:
                continue  # a list of rates, given where it is used
            was, now = (getattr(found[name], numbers) if name in found else None for found in (mine, theirs))
            if was != now:
                apply = _set_vector(part, name, theirs[name]) if name in mine and name in theirs else None
                yield Change(what, name, _listed(was), _listed(now), apply=apply)


def _listed(values: Any) -> str | None:
    return None if values is None else str([list(v) if isinstance(v, tuple) else v for v in values])


def _set_vector(part: str, name: str, value: Any) -> Apply:
    def apply(table: Table) -> Table:
        return replace(table, vectors=replace(table.vectors, **{part: {**getattr(table.vectors, part), name: value}}))

    return apply


def _columns(old: Table, new: Table) -> Iterator[Change]:
    for name in dict.fromkeys([*old.columns, *new.columns]):
        if name not in old.columns or name not in new.columns:
            gone, come = (table.columns[name][0].formula if name in table.columns else None for table in (old, new))
            yield Change("column", name, gone, come)
            continue
        was, now = old.columns[name][0], new.columns[name][0]
        if was.formula != now.formula:
            yield Change("column", name, was.formula, now.formula, apply=_set_column(name, new))
        for part in ("unit", "title", "doc", "format", "source"):
            if getattr(was, part) != getattr(now, part):
                yield Change("column", f"{name}: {part}", getattr(was, part) or None, getattr(now, part) or None)


def _set_column(name: str, new: Table) -> Apply:
    return lambda table: replace(table, columns={**table.columns, name: new.columns[name]})


def united(old: Table, new: Table) -> Table:
    """The old table with what only the new one has (models, GPUs, curves, columns, stacks), which alone moves nothing."""
    catalog = Catalog({**new.catalog.models, **old.catalog.models}, {**new.catalog.gpus, **old.catalog.gpus}, {
        **{name: price for name, price in new.catalog.prices.items() if name not in old.catalog.gpus}, **old.catalog.prices,
    })  # fmt: skip
    vectors = Vectors({**new.vectors.profiles, **old.vectors.profiles}, {**new.vectors.curves, **old.vectors.curves})
    stacks = {**new.stacks, **old.stacks}
    return replace(old, catalog=catalog, vectors=vectors, stacks=stacks, columns={**new.columns, **old.columns})
