"""The table that a workbook stands for, with the rows of its Scenarios sheet in place of grid and rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from scenario.common.yamltree import Node, Source
from scenario.model import kinds, shared
from scenario.registry.loaded import Host
from scenario.tables.reader import CORE, Reader
from scenario.tables.rows import CONTEXT_FROM, Expander
from scenario.workbooks.cells import letter
from scenario.workbooks.form import GIVEN, KEY, OVERRIDE, POSITION
from scenario.workbooks.found import ANY, show
from scenario.workbooks.scenario_rows import RowReader


class WorkbookReader(Reader):
    """Reads the tree like any table, with the rows of the sheet in place of grid and rows."""

    def __init__(self, source: Source, root: Node, host: Host, max_rows: int, found: RowReader, left_out: Node | None = None) -> None:
        super().__init__(source, root, host, max_rows)
        self.found, self.left_out = found, left_out

    def given_rows(self, defaults: Mapping[str, float | str]) -> pl.DataFrame:
        found = self.found
        expander = Expander(self, defaults)
        columns: dict[str, pl.Series] = {}
        for name, values in found.values.items():
            if name != "id" and all(value is None for value in values) and name not in CORE:
                continue
            columns[name] = self.column(name, values, expander)
        changed = self.overrides(columns)
        plain = [series for series in changed if not series.name.endswith(OVERRIDE)]
        frame = pl.DataFrame(columns).with_columns(plain)
        self.required(frame, defaults)
        self.repeated(frame)
        if self.source.problems:
            return pl.DataFrame()
        self.together(frame, expander)
        if self.source.problems:
            return pl.DataFrame()
        typed = [series for series in changed if series.name.endswith(OVERRIDE)]
        kept = [series for name, series in columns.items() if name.endswith(OVERRIDE)]
        frame = expander.with_ids(frame.select(pl.exclude(f"^.*{OVERRIDE}$"))).with_columns([*kept, *typed])
        if self.left_out is None:
            return frame
        # Rows that where kept out of the workbook are rows of the table still: what was edited may let them in.
        others = Expander(self, defaults).frame(self.left_out.value.get("grid"), self.left_out.value.get("rows"))
        if self.source.problems:
            return pl.DataFrame()
        return pl.concat([frame, others.filter(~pl.col("id").is_in(frame["id"].to_list()))], how="diagonal_relaxed")

    def overrides(self, columns: Mapping[str, pl.Series]) -> list[pl.Series]:
        """Values typed over formulas: faults, or carried as columns of their own when they are to be kept."""
        found, sheet = self.found, self.found.header.sheet.title
        changed: dict[str, list[Any]] = {}
        lost = 0
        kept = found.owner.overrides == "keep"
        if found.owner.overrides == "ignore":
            return []
        listed = 0
        for typed in found.owner.found.typed:
            if typed.broken:
                continue
            place = f"{typed.sheet}!{typed.cell}"
            what = f"{show(typed.value)} is typed over the formula of '{typed.column}'"
            if typed.formula is not None:
                what = f"the formula of '{typed.column}' was changed"
            applied = typed.column + GIVEN in found.header.columns
            number = isinstance(typed.value, float) and not typed.column.endswith((POSITION, KEY))
            if kept and typed.sheet == sheet and isinstance(typed.row, int) and (number or (applied and isinstance(typed.value, str) and typed.value)):
                name = typed.column if applied else typed.column + OVERRIDE
                value = self.as_input(name, typed.value, place) if applied else typed.value
                series = changed.setdefault(name, columns[name].to_list() if name in columns else [None] * len(found.numbers))
                series[typed.row] = value
                if value is not None and lost < 20:
                    lost += 1
                    found.owner.found.notes.append(f"{place}: {what}; its value {show(typed.value)} is kept")
            elif kept:
                self.source.say(Node(None, 0, 0, path=place), f"{what}, and cannot be kept", "copy the formula back from a neighbouring row")
            elif listed < 20:
                listed += 1
                self.source.say(Node(None, 0, 0, path=place), what,
                                "copy the formula back from a neighbouring row, or keep the value with --keep-overrides")  # fmt: skip
        if lost == 20:
            found.owner.found.notes.append(f"{sheet}: and so are all others, {len(found.owner.found.typed):,} in all")
        return [
            pl.Series(name, values, dtype=columns[name].dtype if name in columns else self.type_of(name), strict=False)
            for name, values in changed.items()
        ]

    def type_of(self, name: str) -> type[pl.Float64] | type[pl.String]:
        parameter = self.found.known.get(name, ANY)
        return pl.String if parameter is None or kinds.is_text(parameter) else pl.Float64

    def as_input(self, name: str, value: Any, place: str) -> Any:
        """A value typed over the column of what applies: it becomes the row's input, checked like one."""
        parameter, node = self.found.known[name], Node(value, 0, 0, path=place)
        return self.core(name, node) if parameter is None else self.value(name, parameter, node)

    def column(self, name: str, values: list[Any], expander: Expander) -> pl.Series:
        parameter = self.found.known[name]
        if name.endswith(OVERRIDE):
            return pl.Series(name, values, dtype=pl.Float64, strict=False)
        if parameter is not None and not kinds.is_text(parameter):
            return pl.Series(name, values, dtype=pl.Float64, strict=False)
        canonical: dict[Any, Any] = {None: None}
        for value, place in self.found.first[name].items():
            node = Node(value, 0, 0, path=place)
            if name == "id":
                canonical[value] = value
            elif parameter is None:
                canonical[value] = self.core(name, node)
            else:
                canonical[value] = self.value(name, parameter, node)
        return pl.Series(name, [canonical.get(value) for value in values], dtype=pl.String)

    def required(self, frame: pl.DataFrame, defaults: Mapping[str, float | str]) -> None:
        sheet, numbers = self.found.header.sheet.title, self.found.numbers
        served = {"isl", "osl"} <= {*frame.columns, *defaults}  # then the context follows from both
        for name in shared.REQUIRED:
            if name in defaults or (served and name == "context"):
                continue
            if name not in frame.columns:
                if name not in self.found.inputs:
                    self.source.say(Node(None, 0, 0, path=sheet), f"there is no column '{name}', and it has no default")
                    continue
                frame = frame.with_columns(pl.lit(None).alias(name))
            empty_cells = frame[name].is_null()
            if name == "context" and all(part in defaults or part in frame.columns for part in CONTEXT_FROM):
                parts = [frame[part].is_null() for part in CONTEXT_FROM if part not in defaults]
                empty_cells = empty_cells & (parts[0] | parts[-1]) if parts else pl.Series([False]).new_from_index(0, frame.height)
            blank = [number for number, empty in zip(numbers, empty_cells.to_list(), strict=True) if empty]
            for number in blank[:20]:
                place = f"{sheet}!{letter(self.found.inputs[name])}{number}"
                if not any(problem.place == place for problem in self.source.problems):
                    self.source.say(Node(None, 0, 0, path=place), f"{name} is blank and has no default", "type a value, or clear the whole row")

    def repeated(self, frame: pl.DataFrame) -> None:
        seen: dict[str, int] = {}
        for number, name in zip(self.found.numbers, frame["id"].to_list(), strict=True):
            if name is None:
                continue
            if name in seen:
                column = letter(self.found.inputs["id"])
                self.source.say(Node(None, 0, 0, path=f"{self.found.header.sheet.title}!{column}{number}"),
                                f"the id '{name}' stands in row {seen[name]} already; an id names one row",
                                "clear the cell: a new id is made")  # fmt: skip
            seen.setdefault(name, number)

    def together(self, frame: pl.DataFrame, expander: Expander) -> None:
        """Checks that need two inputs of a row at once, once per combination."""
        names = [name for name in ("weights", *sorted(expander.shared_by)) if name in frame.columns]
        for name in names:
            pairs = frame.with_row_index("#").group_by("method", name, maintain_order=True).agg(pl.col("#").first())
            for method, value, index in pairs.iter_rows():
                place = f"{self.found.header.sheet.title}!{letter(self.found.inputs[name])}{self.found.numbers[index]}"
                cells = {"method": [(method, Node(method, 0, 0, path=place))], name: [(value, Node(value, 0, 0, path=place))]}
                if name == "weights":
                    expander.twice_quantized(Node(None, 0, 0, path=place), cells)
                else:
                    expander.ranges(cells)
