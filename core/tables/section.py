"""What is known of one key of a table: how it is read, written, described, compared, and how a change of it is applied.

:data:`scenario.tables.sections.SECTIONS` holds one :class:`Section` per key; the reader, ``export-table``, the schema,
``diff``, the reference page and the sheet Source of a workbook are loops over it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scenario.catalogs import series
from scenario.common import emit
from scenario.common.emit import Written
from scenario.common.yamltree import YamlNode
from scenario.model.spec import Parameter
from scenario.registry.loaded import Host
from scenario.tables.table import Table, known_inputs
from scenario.tables.terms import Schema, Terms
from scenario.tables.values import ValueReader

Path = tuple[str, ...]
"""The names that lead from a section to one of its values."""
Apply = Callable[[Table], Table]
NOTES = frozenset({
    "title", "source", "date", "doc", "unit", "format", "unverified", "vendor", "family", "published_weights", "stated_params",
    "stated_active_params", "stated_source",
})  # fmt: skip
"""Fields of entries on which no number depends."""
SHORT = 3
"""Fields that an entry written on one line has at most."""


@dataclass(frozen=True)
class Change:
    """One input that differs. ``apply`` makes the old table take the new value; None when no number depends on it.

    ``kind`` is what it belongs to (``default``, ``parameter``, ``model``, ``GPU``, ``price``, ``row``, ``column``, ...),
    ``rows`` the rows it holds in, if it is an input of rows. ``group`` is the entry that it is a field of.
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
        return self.name if self.name.split(" ")[0] == self.kind else f"{self.kind} {self.name}"


class Writing:
    """A table that is written or compared. ``rows`` keeps the grid and the rows, which are found together."""

    def __init__(self, table: Table, host: Host) -> None:
        self.table, self.host = table, host
        self.known: dict[str, Parameter] = known_inputs(host, scalars=True)
        self.rows: tuple[Any, Any] | None = None

    def value(self, name: str, value: Any) -> Any:
        """A value of an input as it is written: rates rather than the name made from them, a flag as true or false."""
        kind = self.known[name].kind if name in self.known else ""
        if kind == "profile" and isinstance(value, str) and series.rates_of(value) is not None:
            profile = self.table.vectors.profiles.get(value)
            return list(profile.rates) if profile else value
        if kind == "flag" and value in (0, 1):
            return bool(value)
        return "auto" if name == "gpus" and value == 0 else value

    def cited(self, item: Any) -> dict[str, str]:
        """What a series, a tree or a set says of itself: its source, unless that is the table, and its doc."""
        return {"source": item.source if item.source != self.table.source.file else "", "doc": item.doc}


def _nothing(_: Writing) -> Mapping[Path, str]:
    return {}


@dataclass(frozen=True)
class Section:
    """One key of a table.

    ``read`` checks it and gives fields of the :class:`Table`; ``write`` gives it as plain data, None when the table does not
    have it; ``schema`` is its JSON schema. ``facts`` is what is compared with another table, if that is not what is
    written; ``take`` sets the value at a path to another table's, and is None where no number depends on the section.

    ``levels`` counts the names before a value: 0 for ``title``, 1 for ``defaults``, 2 for the fields of ``models``.
    ``main`` is the field that stands for a whole entry. ``entries`` says that its names are things that come and go:
    ``still`` when that alone moves nothing, ``moving`` when it may. A ``formula`` is written in quotes. Sections that are
    ``by_row`` are compared row by row. ``stage`` is when it is read: 0 what others name, 2 what names rows.
    """

    key: str
    doc: str
    read: Callable[[ValueReader, YamlNode | None], Mapping[str, Any]]
    write: Callable[[Writing], Any]
    schema: Callable[[Terms], Schema]
    facts: Callable[[Writing, Writing], Any] | None = None
    take: Callable[[Table, Table, Path], Table] | None = None
    levels: int = 0
    kind: str = ""
    main: str = ""
    entries: str = ""
    formula: bool = False
    by_row: bool = False
    stage: int = 1
    remarks: Callable[[Writing], Mapping[Path, str]] = _nothing
    spaced: bool = True

    # -- written ---------------------------------------------------------------------------------------

    def lines(self, writing: Writing) -> list[str]:
        """The section as YAML; no lines when the table does not have it."""
        data, remarks = self.write(writing), self.remarks(writing)
        if data is None or data in ({}, []):
            return []
        if isinstance(data, dict):
            return emit.section(self.key, (line for name, item in data.items() for line in self._entry(name, item, remarks)))
        if isinstance(data, list) and self.by_row:
            return emit.section(self.key, (f"  - {emit.flow(item)}" for item in data))
        value = Written(emit.formula(data)) if self.formula else data
        return [*([""] if self.spaced else []), *emit.entry(self.key, value, comment=remarks.get((), ""))]

    def _entry(self, name: str, item: Any, remarks: Mapping[Path, str]) -> Iterator[str]:
        """One named part: on one line where it is short, else a line for each field."""
        remark = remarks.get((name,), "")
        if not isinstance(item, dict):
            yield from emit.entry(name, item, 2, remark)
            return
        said = {key: Written(emit.formula(part)) if self.formula and key == self.main else part for key, part in item.items()}
        inner = any((name, key) in remarks for key in said)
        if [*said] == [self.main]:
            yield from emit.entry(name, said[self.main], 2, remark)
        elif not inner and len(said) <= SHORT and len(emit.flow(said)) < emit.WIDTH:
            yield from emit.entry(name, said, 2, remark)
        else:
            yield f"  {emit.text(name)}:" + (f"  # {emit.remark(remark)}" if remark else "")
            for key, part in said.items():
                yield from emit.entry(key, part, 4, remarks.get((name, key), ""))

    # -- compared --------------------------------------------------------------------------------------

    def changes(self, old: Writing, new: Writing) -> Iterator[Change]:
        """What differs, value by value; a named thing that only one table has is one change."""
        if self.by_row:
            return
        mine, theirs = self._facts(old, new), self._facts(new, old)
        if not self.levels:
            yield from self._change((), mine, theirs, new)
            return
        for name in dict.fromkeys([*mine, *theirs]):
            was, now = mine.get(name), theirs.get(name)
            if self.levels == 1 or (self.entries and (was is None or now is None)):
                yield from self._change((name,), was, now, new)
                continue
            was, now = was or {}, now or {}
            for key in dict.fromkeys([*was, *now]):
                yield from self._change((name, key), was.get(key), now.get(key), new)

    def only_in(self, mine: Writing, other: Writing) -> list[str]:
        """The entries that only one of two tables has."""
        known = self._facts(other, mine)
        return [name for name in self._facts(mine, other) if name not in known]

    def _facts(self, mine: Writing, other: Writing) -> Any:
        found = self.facts(mine, other) if self.facts else self.write(mine)
        return {} if found is None and self.levels else found

    def _change(self, path: Path, was: Any, now: Any, new: Writing) -> Iterator[Change]:
        if was == now:
            return
        whole = len(path) < self.levels
        take = self.take
        still = path[-1:] and path[-1] in NOTES if not whole else self.entries == "still"
        apply = None if take is None or still else lambda table: take(table, new.table, path)
        kind = self.kind or self.key
        group = f"{kind} {path[0]}" if path else ""
        yield Change(kind, self._name(path), self._told(was), self._told(now), apply=apply, group=group)

    def _name(self, path: Path) -> str:
        """How a change is called beside its kind."""
        if not path:
            return self.key
        if len(path) == 2 and path[1] != self.main:
            return f"{path[0]}{': ' if self.main else '.'}{path[1]}"
        return path[0] if self.levels == 2 or self.kind else f"{self.key} {path[0]}"

    def _told(self, value: Any) -> Any:
        """A value as a cell of a report."""
        if isinstance(value, dict) and self.entries:
            return told(value[self.main]) if self.main in value else "there"
        return told(value)


def told(value: Any) -> Any:
    """A number or text as it is, a list or a mapping as a text; None for nothing."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {item}" for key, item in value.items()) or None
    if not isinstance(value, list | tuple):
        return value
    return (", ".join(value) if all(isinstance(item, str) for item in value) else str(list(value))) or None


def with_value(values: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    """``values`` with one set, or taken out when it is None."""
    found = {**values, name: value}
    return {key: item for key, item in found.items() if item is not None}


def said_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """``values`` without what is empty."""
    return {key: value for key, value in values.items() if value not in ("", [], {}, None)}
