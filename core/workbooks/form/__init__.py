"""What a workbook looks like: its sheets, their tables, where rows begin. The reader and the built-in writer go by the same.

A new sheet is one entry of :data:`SHEETS`. How what an analyst added is marked stands in :mod:`.marks`; how it is told what
a sheet held when it was written, in :mod:`.witness`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from scenario.book.book import ANSWER, KEY, EntityTable, Field, Scalar
from scenario.book.summary import Line, Shown, SummaryView, Text
from scenario.engine.summary import NO_FIT, NO_ROW, SummaryValues, joined
from scenario.formulas.expr import Node
from scenario.formulas.vectors import POSITIONS
from scenario.model.labels import LABELS

FIRST = 6
"""The first row of data of every sheet with a table; its header is the row above."""
SOURCE_FIRST = 4
"""The row of the sheet Source in which the table's text begins."""
PIECE = 30_000
"""Characters of a line of the table that stand in one cell of Source; what is more stands in the cells beside it."""
PIECES = 20
"""Cells of Source that one line may take."""
ALL_CHECKS = "all_checks"
"""The name of the cell that says whether all checks are good."""
POSITION = "_row"
"""The end of the name of a column that says where an entry stands on its sheet; only the workbook has such columns."""
DEFAULT = "default_"
"""The beginning of the name of an assumption that is a row's default."""
CHOICE_OF_COLUMN, CHOICE_OF_ROW = "summary column ", "summary row "
"""What a cell of Summary chooses that names a scenario or a metric: its id, or its number without headings, follows."""
LISTS_HEAD = 4
"""The row of Lists with the titles of a summary's scenarios; its metrics follow below."""
GIVEN, OVERRIDE = "_given", "_override"
"""The ends of the names of columns for what a row itself gives, and for a value typed over a formula that is kept."""


class Back(Enum):
    """What is read of a sheet when its workbook comes back."""

    CELLS = "cells"
    """Cell by cell."""
    CHOICES = "choices"
    """Nothing, or which rows it was made to show: it is made anew."""
    TEXT = "text"
    """The table as text."""


@dataclass(frozen=True)
class SheetForm:
    """One sheet that a workbook may have of its own."""

    title: str
    about: str
    back: Back = Back.CHOICES
    columns: tuple[str, ...] = ()
    """The header of its table, where that is the same in every workbook; of the others, the columns that its reader needs."""
    catalog: str = ""
    """The catalog table that it shows."""
    returns: bool = False
    """Whether rows that somebody deletes come back, because the engine or Source still has them."""

    @property
    def table(self) -> str:
        """The name of the Excel table over its rows."""
        return "T_" + (self.catalog or self.title.lower().replace(" ", "_"))


_STEPS = range(1, POSITIONS + 1)
SHEETS = (
    SheetForm("Answer", "What to run: of each model the cheapest row within limits, what a volume takes, rent or own."),
    SheetForm("README", "What the workbook is."),
    SheetForm("Summary", "The metrics side by side; drop-downs choose what is shown."),
    SheetForm("Charts", "Pass time, speedup, price and the Pareto view; drop-downs choose model and GPU."),
    SheetForm("Chart data", "What the charts draw."),
    SheetForm("Scenarios", "One row per scenario: inputs at the left, then what applies, lookups, and every computed column.", Back.CELLS, ("id",)),
    SheetForm("Assumptions", "Every constant with value, unit, range, meaning and source.", Back.CELLS,
              ("group", "name", "value", "unit", "allowed", "meaning", "from", "source")),
    SheetForm("Models", "Architectures and what follows from them.", Back.CELLS, ("name",), "models", returns=True),
    SheetForm("GPUs", "Memory, bandwidth, peak rates, prices.", Back.CELLS, ("name",), "gpus", returns=True),
    SheetForm("Methods", "Decoding methods and stacks.", Back.CELLS, ("name",), "methods"),
    SheetForm("Formats", "Bits of each number format.", Back.CELLS, ("name",), "formats"),
    SheetForm("Hardware", "Constants of the estimate by GPU and engine, with their error and source.", Back.CELLS, ("name",), "hardware", returns=True),
    SheetForm("Time models", "How a pass is timed.", Back.CELLS, ("name",), "time_models"),
    SheetForm("Encoders", "What turns images into tokens.", catalog="encoders"),
    SheetForm("Profiles", "Acceptance by draft position.", Back.CELLS,
              ("profile", *(f"p{k}" for k in _STEPS), *(f"E{n}" for n in range(POSITIONS + 1)), *(f"a{k}" for k in _STEPS), "given", "doc", "source"),
              returns=True),
    SheetForm("Trees", "Draft trees node by node."),
    SheetForm("Curves", "Measured points.", Back.CELLS, ("curve", "x", "y", "slope", "doc", "source"), returns=True),
    SheetForm("By gamma", "What each number of draft tokens would give."),
    SheetForm("By batch", "What drafting gains at each batch."),
    SheetForm("Sensitivity", "What each input's low and high value make of the price, with its chart."),
    SheetForm("Formulas", "Every column's formula as text: the single source of truth.", Back.CELLS,
              ("sheet", "column", "kind", "unit", "formula", "in the first row", "number format", "meaning", "source")),
    SheetForm("Checks", "What could be wrong, checked live.", columns=("check", "found", "status", "what to do")),
    SheetForm("Lists", "What the Summary's drop-downs offer."),
    SheetForm("Source", "The table as text, for reading the workbook back.", Back.TEXT),
)  # fmt: skip
"""The sheets that a workbook may have of its own; others are the analyst's."""


def limits_at() -> dict[str, str]:
    """The cells of the sheet Answer that hold limits, as formulas on other sheets refer to them."""
    return {name: f"Answer!$B${row}" for row, name in enumerate(("tpot", "ttft", "lossless", "budget", "hours", "tokens"), 9)}


BY_TITLE = {sheet.title: sheet for sheet in SHEETS}
TITLES = {sheet.catalog: sheet.title for sheet in SHEETS if sheet.catalog}
"""The title of each catalog table's sheet."""

__all__ = [
    "ALL_CHECKS", "ANSWER", "BY_TITLE", "CHOICE_OF_COLUMN", "CHOICE_OF_ROW", "DEFAULT", "FIRST", "GIVEN", "KEY", "LABELS", "LISTS_HEAD", "NO_FIT", "NO_ROW", "OVERRIDE", "PIECE", "PIECES", "POSITION",
    "POSITIONS", "SHEETS", "SOURCE_FIRST", "TITLES", "Back", "EntityTable", "Field", "Line", "Node", "Scalar", "SheetForm", "Shown",
    "SummaryValues", "SummaryView", "Text", "joined", "limits_at",
]  # fmt: skip
