"""What an analyst added to a workbook that a table was read from: plain data that the table carries to the next workbook."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Added:
    """One cell that was added: ``formula`` with marks in it, or None for a constant; ``format`` its number format.

    ``text`` is its formula as it stood. Of kind ``none`` it is a formula whose value the file did not hold.
    """

    kind: str
    value: str | float | bool
    formula: str | None = None
    format: str = ""
    text: str = ""

    @property
    def kept(self) -> str | float | bool:
        """What stands in the cell once its formula cannot: the value it had; its text when the file held no value."""
        return f"={self.text}" if self.kind == "none" and self.text else self.value


@dataclass
class AddedSheet:
    """A sheet of the analyst's own: cells by (row, column), widths by column, merged areas, the first cell that scrolls."""

    title: str
    cells: dict[tuple[int, int], Added] = field(default_factory=dict)
    widths: dict[int, float] = field(default_factory=dict)
    merged: list[str] = field(default_factory=list)
    frozen: str = ""
    right_to_left: bool = False
    hidden: bool = False


@dataclass
class OldSheet:
    """Where things stood in the old file: a sheet's columns by letter and rows by number."""

    title: str
    columns: dict[str, str]
    rows: dict[int, str]
    header: int


@dataclass
class Extras:
    """All that was added. ``columns`` are columns of Scenarios: name -> row number (from 0) -> cell."""

    columns: dict[str, dict[int, Added]] = field(default_factory=dict)
    sheets: list[AddedSheet] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    places: list[OldSheet] = field(default_factory=list)
    """Where things stood, of the sheets that formulas may refer to."""
