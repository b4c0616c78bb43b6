"""The sheet Answer being written: where each model's row stands, for the blocks that read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from scenario import Result
from scenario.exporters.xlsx.cells import Sheet
from scenario.exporters.xlsx.layout import Layout

MOST = 12
"""Models that the page has room for; others are chosen in the blue cells."""
TOP = 17
"""The header row of the table of models."""
NONE = "none"


@dataclass
class Answer:
    """The page being written: where each model's row stands, and what the cells show at first."""

    result: Result
    layout: Layout
    sheet: Sheet
    models: list[str] = field(default_factory=list)
    places: list[int | None] = field(default_factory=list)
    """The row of Scenarios (from 1) of each model's cheapest row."""
    columns: dict[str, str] = field(default_factory=dict)
    """Letters of the table of models, by column of Scenarios."""

    @property
    def rows(self) -> range:
        """The rows of the table of models."""
        return range(TOP + 1, TOP + 1 + len(self.models))

    @property
    def last(self) -> int:
        return TOP + len(self.models)

    def value(self, name: str, index: int) -> Any:
        """What a column of Scenarios says in a model's cheapest row."""
        place = self.places[index]
        return None if place is None else self.result.full[name][place - 1]
