"""What a summary's cells and texts say for computed rows: the values that a workbook shows at first, and a terminal prints."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal

import polars as pl

from scenario.book.book import Book
from scenario.book.summary import Shown, SummaryView, Text
from scenario.common.numbers import show_formatted, show_number, show_value
from scenario.formulas.expr import UNLIMITED, Node
from scenario.formulas.to_polars import compile_polars

NO_ROW, NO_FIT = "no such row", "does not fit"
Value = float | str | bool | None


def joined(value: Value) -> str:
    """A value as a spreadsheet joins it to a text: 15 digits, no decimals where there are none; a blank is nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(f"{value:.15g}"))


def fixed(value: float, digits: int, thousands: bool = False) -> str:
    """A number with so many decimals, halves away from zero, as FIXED shows it; -1 rounds to tens."""
    rounded = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    rounded = rounded if value else abs(rounded)  # no minus before a zero, which a spreadsheet does not know
    return f"{rounded:{',' if thousands else ''}.{max(digits, 0)}f}"


class SummaryValues:
    """The values of a summary over ``full``, the computed rows of its book."""

    def __init__(self, book: Book, full: pl.DataFrame, view: SummaryView) -> None:
        self.book = book
        self.places = {name: index for index, name in enumerate(full["id"].to_list())}
        self.fits = full["fits"].to_list()
        nodes: dict[int, Node] = {id(node): node for node, _ in view.nodes}
        made: dict[str, pl.Expr] = {
            str(key): compile_polars(node, book.vectors, book.constants) for key, node in nodes.items()
        }  # type: ignore[arg-type]
        height = max(full.height, 1)
        frame = full if full.height else pl.DataFrame({name: [None] for name in full.columns}, schema=full.schema)
        columns: Mapping[str, pl.Series] = frame.with_columns(**made).select([*made]).to_dict() if made else {}
        self.values = {
            int(key): series.to_list() if len(series) == height else series.to_list() * height
            for key, series in columns.items()
        }

    def value(self, node: Node, row: str) -> Value:
        """What a formula is in a row; None where it is blank. With no row it reads assumptions alone."""
        found = self.values[id(node)][self.places[row] if row else 0]
        return None if isinstance(found, float) and found != found else found

    def there(self, row: str) -> bool:
        """Whether the table still has a row."""
        return not row or row in self.places

    def text(self, text: Text) -> str:
        """A template with its numbers put in."""
        if not all(self.there(piece.row) for piece in text):
            return NO_ROW
        parts = []
        for piece in text:
            value = self.value(piece.node, piece.row) if piece.node is not None else piece.text
            if isinstance(value, int | float) and not isinstance(value, bool) and piece.digits is not None:
                parts.append(fixed(float(value), piece.digits, piece.thousands))
            else:
                parts.append(joined(value))
        return "".join(parts)

    def cell(self, cell: Shown) -> Value:
        """What a cell shows: a number, or words."""
        if not self.there(cell.row):
            return NO_ROW
        for test, said in cell.when:
            if self.value(test, cell.row) is True:
                return self.text(said)
        if cell.node is None:
            return self.text(cell.text)
        found = self.value(cell.node, cell.row)
        if found is None and self.fits[self.places[cell.row]] is False:
            return NO_FIT
        return found

    def shown(self, cell: Shown) -> str:
        """A cell as text: words as they are, a number under the cell's own format, else in few digits with its column's unit."""
        value = self.cell(cell)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return show_value(value)
        if cell.format:
            return show_formatted(value, cell.format)
        item = self.book.fields.get(cell.field)
        if item is None:
            return show_number(value)
        if item.unit == "%":
            return f"{value:.1%}"
        said = show_value(value, unlimited=UNLIMITED if item.limit else None)
        return f"${said}" if item.unit.startswith("$") else f"{said}x" if item.unit == "x" else f"{said} {item.unit}".rstrip()
