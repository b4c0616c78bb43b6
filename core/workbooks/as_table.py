"""The table that a workbook stands for, with the rows of its Scenarios sheet in place of grid and rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from scenario.common.yamltree import Source, YamlNode
from scenario.model import kinds, shared
from scenario.registry.loaded import Host
from scenario.tables.reader import CORE, Reader
from scenario.tables.rows import CONTEXT_FROM, Expander
from scenario.workbooks.cells import letter
from scenario.workbooks.form import OVERRIDE
from scenario.workbooks.found import ANY
from scenario.workbooks.kept import Overrides
from scenario.workbooks.scenario_rows import RowReader
from scenario.workbooks.sheets import at

MOST = 20
"""Blank cells of one input that are told one by one."""


class WorkbookReader(Reader):
    """Reads the tree like any table, with the rows of the sheet in place of grid and rows."""

    def __init__(
        self, source: Source, root: YamlNode, host: Host, max_rows: int, found: RowReader, left_out: YamlNode | None = None
    ) -> None:
        super().__init__(source, root, host, max_rows)
        self.found, self.left_out = found, left_out

    def given_rows(self, defaults: Mapping[str, float | str]) -> pl.DataFrame:
        """The rows of the sheet as inputs; those that ``where`` kept out of the workbook are rows of the table still."""
        expander = Expander(self, defaults)
        columns = {name: self.column(name, values) for name, values in self.found.values.items() if self.says(name, values)}
        changed = self.typed_over(columns)
        plain = [series for series in changed if not series.name.endswith(OVERRIDE)]
        frame = pl.DataFrame(columns).with_columns(plain)
        self.required(frame, defaults)
        self.repeated(frame)
        if not self.source.problems:
            self.together(frame, expander)
        if self.source.problems:
            return pl.DataFrame()
        kept = [series for series in (*columns.values(), *changed) if series.name.endswith(OVERRIDE)]
        frame = expander.with_ids(frame.select(pl.exclude(f"^.*{OVERRIDE}$"))).with_columns(kept)
        if self.left_out is None:
            return frame
        # What was edited may let them in.
        others = Expander(self, defaults).frame(self.left_out.value.get("grid"), self.left_out.value.get("rows"))
        if self.source.problems:
            return pl.DataFrame()
        return pl.concat([frame, others.filter(~pl.col("id").is_in(frame["id"].to_list()))], how="diagonal_relaxed")

    @staticmethod
    def says(name: str, values: list[Any]) -> bool:
        """Whether a column is more than blank cells that need not be there."""
        return name == "id" or name in CORE or any(value is not None for value in values)

    def typed_over(self, columns: Mapping[str, pl.Series]) -> list[pl.Series]:
        """Values typed over formulas: faults, or carried as columns of their own when they are to be kept."""
        overrides = Overrides(self.found, self.as_input)
        if self.found.owner.overrides != "keep":
            if self.found.owner.overrides != "ignore":
                overrides.refuse()
            return []
        return [
            pl.Series(name, values, dtype=columns[name].dtype if name in columns else self.type_of(name), strict=False)
            for name, values in overrides.keep(columns).items()
        ]

    def type_of(self, name: str) -> type[pl.Float64] | type[pl.String]:
        """What a column holds: numbers or names."""
        parameter = self.found.known.get(name, ANY)
        return pl.String if parameter is None or kinds.is_text(parameter) else pl.Float64

    def as_input(self, name: str, value: Any, place: str) -> Any:
        """A value typed over the column of what applies: it becomes the row's input, checked like one."""
        parameter, node = self.found.known[name], at(value, place)
        return self.core(name, node) if parameter is None else self.value(name, parameter, node)

    def column(self, name: str, values: list[Any]) -> pl.Series:
        """An input as a column; each name is checked once."""
        if self.type_of(name) == pl.Float64:
            return pl.Series(name, values, dtype=pl.Float64, strict=False)
        names: dict[Any, Any] = {None: None}
        for value, place in self.found.first[name].items():
            names[value] = value if name == "id" else self.as_input(name, value, place)
        return pl.Series(name, [names.get(value) for value in values], dtype=pl.String)

    def required(self, frame: pl.DataFrame, defaults: Mapping[str, float | str]) -> None:
        """Say which cells are blank that need a value."""
        title = self.found.header.sheet.title
        served = {"isl", "osl"} <= {*frame.columns, *defaults}  # then the context follows from both
        for name in shared.REQUIRED:
            if name in defaults or (served and name == "context"):
                continue
            if name not in frame.columns and name not in self.found.inputs:
                self.source.say(at(None, title), f"there is no column '{name}', and it has no default")
                continue
            column = letter(self.found.inputs[name])
            for number in self.blanks(frame, name, defaults)[:MOST]:
                place = f"{title}!{column}{number}"
                if not any(problem.place == place for problem in self.source.problems):
                    said = f"{name} is blank and has no default"
                    self.source.say(at(None, place), said, "type a value, or clear the whole row")

    def blanks(self, frame: pl.DataFrame, name: str, defaults: Mapping[str, float | str]) -> list[int]:
        """The rows of the sheet in which a needed input is blank."""
        empty = frame[name].is_null() if name in frame.columns else pl.repeat(True, frame.height, eager=True)
        parts = [part for part in CONTEXT_FROM if part not in defaults]
        if name == "context" and all(part in frame.columns for part in parts):  # or it follows from these
            lacking = pl.repeat(False, frame.height, eager=True)
            for part in parts:
                lacking |= frame[part].is_null()
            empty &= lacking
        return [number for number, gone in zip(self.found.numbers, empty.to_list(), strict=True) if gone]

    def repeated(self, frame: pl.DataFrame) -> None:
        """Say which ids stand twice."""
        seen: dict[str, int] = {}
        for number, name in zip(self.found.numbers, frame["id"].to_list(), strict=True):
            if name is None:
                continue
            if name in seen:
                place = f"{self.found.header.sheet.title}!{letter(self.found.inputs['id'])}{number}"
                said = f"the id '{name}' stands in row {seen[name]} already; an id names one row"
                self.source.say(at(None, place), said, "clear the cell: a new id is made")
            seen.setdefault(name, number)

    def together(self, frame: pl.DataFrame, expander: Expander) -> None:
        """Checks that need two inputs of a row at once, once per combination."""
        names = [name for name in ("weights", *sorted(expander.shared_by)) if name in frame.columns]
        for name in names:
            for method, value, place in self.pairs(frame, name):
                cells = {"method": [(method, at(method, place))], name: [(value, at(value, place))]}
                if name == "weights":
                    expander.twice_quantized(at(None, place), cells)
                else:
                    expander.ranges(cells)

    def pairs(self, frame: pl.DataFrame, name: str) -> Iterator[tuple[Any, Any, str]]:
        """Each method with each value of an input that a row has it with, and the first place."""
        column = f"{self.found.header.sheet.title}!{letter(self.found.inputs[name])}"
        pairs = frame.with_row_index("#").group_by("method", name, maintain_order=True).agg(pl.col("#").first())
        for method, value, index in pairs.iter_rows():
            yield method, value, f"{column}{self.found.numbers[index]}"
