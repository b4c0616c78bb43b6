"""What stands over formulas of a workbook that comes back: refused, or kept as values of the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl

from scenario.workbooks.form import ANSWER, GIVEN, KEY, OVERRIDE, POSITION
from scenario.workbooks.found import Typed, show
from scenario.workbooks.left import listed
from scenario.workbooks.scenario_rows import RowReader
from scenario.workbooks.sheets import at

MOST = 20
"""Faults and notes that are told one by one."""
AS_INPUT = Callable[[str, Any, str], Any]
"""The value of an input by name, value and place, checked."""


class Overrides:
    """Values and formulas that stand in place of those that were written."""

    def __init__(self, found: RowReader, as_input: AS_INPUT) -> None:
        self.found, self.as_input = found, as_input
        self.owner, self.title = found.owner, found.header.sheet.title
        self.typed = [item for item in self.owner.found.typed if not (item.broken or item.moved)]
        base = self.owner.found.base
        self.own = base.table.columns if base is not None else {}
        """The table's own columns."""

    def refuse(self) -> None:
        """Note a fault for each column and kind of change, by its cells."""
        for number, items in enumerate(self._alike()):
            if number == MOST:
                break
            first = items[0]
            hint = "copy the formula back from a neighbouring row, or keep the value with --keep-overrides"
            if first.formula is not None and first.column in self.own:
                hint = "change it on the sheet Formulas: its text there counts, for every row"
            place = f"{first.sheet}!{listed(item.cell for item in items)}"
            self.owner.source.say(at(None, place), self._what(items), hint)

    def _alike(self) -> Iterator[list[Typed]]:
        """What stands over the formulas of one column; changed formulas apart from values."""
        groups: dict[tuple[str, str, bool], list[Typed]] = {}
        for item in self.typed:
            groups.setdefault((item.sheet, item.column, item.formula is not None), []).append(item)
        yield from groups.values()

    def _what(self, items: list[Typed]) -> str:
        first = items[0]
        if first.formula is not None:
            return f"the formula of '{first.column}' was changed"
        if len(items) > 1:
            return f"{len(items)} values are typed over the formulas of '{first.column}'"
        return f"{show(first.value)} is typed over the formula of '{first.column}'"

    def keep(self, columns: Mapping[str, pl.Series]) -> dict[str, list[Any]]:
        """The values that are kept, by the column that carries them; faults where one cannot be."""
        changed: dict[str, list[Any]] = {}
        kept = 0
        for item in self.typed:
            place, what = f"{item.sheet}!{item.cell}", self._what([item])
            if not self._can_be_kept(item):
                hint = "copy the formula back from a neighbouring row"
                self.owner.source.say(at(None, place), f"{what}, and cannot be kept", hint)
                continue
            name = item.column if self._applied(item) else item.column + OVERRIDE
            value = self.as_input(name, item.value, place) if self._applied(item) else item.value
            if name not in changed:
                changed[name] = columns[name].to_list() if name in columns else [None] * len(self.found.numbers)
            changed[name][int(item.row)] = value
            if value is not None and kept < MOST:
                kept += 1
                self.owner.note(f"{place}: {what}; its value {show(item.value)} is kept")
        if kept == MOST:
            self.owner.note(f"{self.title}: and so are all others, {len(self.typed):,} in all")
        return changed

    def _applied(self, item: Typed) -> bool:
        """Whether its column shows what applies to the row: a value there becomes the row's input."""
        return item.column + GIVEN in self.found.header.columns

    def _can_be_kept(self, item: Typed) -> bool:
        if item.sheet != self.title or not isinstance(item.row, int):
            return False
        number = isinstance(item.value, float) and not item.column.endswith((POSITION, KEY, ANSWER))
        return number or (self._applied(item) and isinstance(item.value, str) and bool(item.value))
