"""The time of a pass over any number of token rows, as cells: the engine's own formulas for a row that exists
only here.

The row decodes plainly at context 0 on what the Charts sheet chooses; its batch is the number of token rows.
Whatever its
time reads is worked out in a cell of its own, or in a column where it depends on the token rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl
from openpyxl.utils import get_column_letter

from scenario import Result, compile_excel, compile_polars, names
from scenario.exporters.xlsx import style as _style
from scenario.exporters.xlsx.cells import Sheet
from scenario.exporters.xlsx.layout import Layout
from scenario.workbooks.form import Field

TIME = "verify_ms"
WEIGHTS = "weight_read_gb"
CACHE = "kv_read_gb"
ROWS = ("batch", "verify_rows")
"""What the token rows are: plain decoding works on one per sequence."""
BF16, INT4 = {"method": "vanilla", "weights": "bf16"}, {"method": "int4", "weights": "bf16"}


@dataclass
class Value:
    """What a name stands for: the text that a formula writes for it, and its value for each number of token rows."""

    text: str
    values: list[Any]
    varies: bool = False


@dataclass
class Passes:
    """Writes the cells of passes. ``row`` is where the next cell goes; ``column`` the next column beside the table."""

    result: Result
    layout: Layout
    sheet: Sheet
    chosen: dict[str, tuple[str, Any]]
    rows: list[float]
    row: int
    head: int = 0
    """The header row of the table of token rows; known once every cell above it is."""
    column: int = 7
    known: dict[tuple[str, str], Value] = field(default_factory=dict)
    later: list[tuple[str, str, Field, list[Any]]] = field(default_factory=list)
    """The columns to be written: header, formula, field, values."""

    def needs(self, name: str = TIME) -> list[str]:
        """All columns of Scenarios that the time of a pass reads."""
        found: dict[str, None] = {}
        stack = [name]
        while stack:
            name = stack.pop()
            if name in found or name not in self.result.book.fields or name in self.fixed(BF16):
                continue
            found[name] = None
            stack += self.reads(self.result.book.fields[name])
        return list(found)

    @staticmethod
    def reads(item: Field) -> list[str]:
        """The names that a column reads."""
        return [item.lookup.key] if item.lookup else list(names(item.node)) if item.node is not None else []

    def fixed(self, variant: dict[str, str]) -> dict[str, Any]:
        """The inputs that the row does not take from anywhere."""
        found: dict[str, Any] = {**variant, "context": 0.0, "rows_per_sequence": 1.0}
        if "int4" not in self.layout.book.tables["methods"].names and variant == INT4:
            found |= {"method": "vanilla", "weights": "int4"}
        return found

    def value(self, name: str, variant: dict[str, str]) -> Value:
        """What a name stands for in a variant of the row; its cell is written when it is first asked for."""
        for own in ("", variant["method"]):
            if (name, own) in self.known:
                return self.known[name, own]
        book, many = self.result.book, len(self.rows)
        fixed = self.fixed(variant)
        plain = name.removesuffix("_given")
        found: Value | None = None
        if name in ROWS:
            found = Value("$A{row}", [float(row) for row in self.rows], varies=True)
        elif name in fixed:
            value = fixed[name]
            text = f'"{value}"' if isinstance(value, str) else f"{value:.15g}"
            own = variant["method"] if name in variant else ""
            self.known[name, own] = Value(text, [value] * many)
            return self.known[name, own]
        elif plain in self.chosen and (name != plain or book.fields[name].role == "input"):
            cell, value = self.chosen[plain]
            found = Value(cell, [value] * many)
        elif name in book.scalars:
            found = Value(name, [book.scalars[name].value] * many)
        elif name == "gpus_needed":  # how many a row takes depends on its batch; here on that of the first row
            first = self.result.full["gpus"][0] if self.result.full.height else 1.0
            found = Value(f"INDEX({self.layout.span('gpus')},1)", [first] * many)
        elif book.fields[name].role == "input":
            found = Value('""', [None] * many)
        if found is not None:
            self.known[name, ""] = found
            return found
        return self.cell(name, variant)

    def cell(self, name: str, variant: dict[str, str]) -> Value:
        """Write a column of Scenarios as a cell, or as a column beside the table where it depends on the token rows."""
        item = self.result.book.fields[name]
        parts = {part: self.value(part, variant) for part in self.reads(item)}
        own = variant["method"] if any((part, variant["method"]) in self.known for part in parts) else ""
        label = name + (" (INT4)" if own and variant == INT4 else "")
        text, values = self.formula(item, parts), self.values(item, parts)
        if any(part.varies for part in parts.values()):
            found = Value(f"${get_column_letter(self.column)}{{row}}", values, varies=True)
            self.column += 1
            self.later.append((label, text, item, values))
        else:
            self.sheet.put(self.row, 1, label, "scn.label")
            self.sheet.formula(self.row, 2, text, values[0], "scn.calc", _style.number_format(item))
            self.sheet.put(self.row, 3, item.unit, "scn.meta")
            found = Value(f"$B${self.row}", values)
            self.row += 1
        self.known[name, own] = found
        return found

    def formula(self, item: Field, parts: dict[str, Value]) -> str:
        """The text of a column's cell, with ``{row}`` where the row's number goes."""
        if item.lookup is None:
            assert item.node is not None
            return compile_excel(item.node, lambda name: parts[name].text, self.layout.vector_range, self.layout.empty)
        table = self.layout.book.tables[item.lookup.table]
        key = parts[item.lookup.key].text
        names = self.layout.entity_span(table, "name")
        text = f"INDEX({self.layout.entity_span(table, item.lookup.field)},MATCH({key},{names},0))"
        if table.fields[item.lookup.field].facts.blank:
            text = f'IF({text}="","",{text})'
        return f'IF({key}="","",{text})' if self.layout.book.fields[item.lookup.key].facts.blank else text

    def values(self, item: Field, parts: dict[str, Value]) -> list[Any]:
        """What the cells show at first."""
        if item.lookup is not None:
            frame = self.result.entities[item.lookup.table]
            entries = dict(zip(frame["name"].to_list(), frame[item.lookup.field].to_list(), strict=True))
            return [entries.get(key) for key in parts[item.lookup.key].values]
        book = self.result.book
        assert item.node is not None
        columns = {}
        for name, part in parts.items():
            text = isinstance(part.values[0], str) or (name in book.fields and book.fields[name].facts.type == "text")
            kind = pl.String if text else pl.Boolean if isinstance(part.values[0], bool) else pl.Float64
            columns[name] = pl.Series(part.values, dtype=kind)
        frame = pl.DataFrame({**columns, "#": self.rows}).with_columns(
            compile_polars(item.node, book.vectors, book.constants).alias("=")
        )  # type: ignore[arg-type]
        return [None if isinstance(value, float) and value != value else value for value in frame["="].to_list()]

    def time(self, variant: dict[str, str], *, reading: bool = True) -> tuple[str, list[Any]]:
        """The time of a pass: formula with ``{row}`` for the row's number, and what it shows; without
        ``reading`` that of the arithmetic."""
        item = self.result.book.fields[TIME]
        nothing = Value("0", [0.0] * len(self.rows))
        parts = {
            name: nothing if name in (WEIGHTS, CACHE) and not reading else self.value(name, variant)
            for name in self.reads(item)
        }
        return self.formula(item, parts), self.values(item, parts)

    def columns(self, first: int) -> None:
        """Write the columns beside the table whose header stands above row ``first``."""
        for column, (label, text, item, values) in enumerate(self.later, 7):
            self.sheet.put(first - 1, column, f"{label} ({item.unit})" if item.unit else label, "scn.head")
            for row, value in enumerate(values, first):
                self.sheet.formula(
                    row, column, text.replace("{row}", str(row)), value, "scn.meta", _style.number_format(item)
                )
