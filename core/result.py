"""What a run gives back: the frame, and everything needed to show where each number comes from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from scenario import output as files
from scenario.book.book import Book
from scenario.engine.evaluator import Evaluator
from scenario.registry.host import Host

LEFT_OUT = "#| "
"""How the lines of a table begin that give rows which ``where`` left out."""
MOST_LEFT_OUT = 5_000
"""Rows that are kept that way."""


@dataclass(frozen=True)
class Swing:
    """What one input does to a metric: its value in the row, and the low and high ones tried (None: not tried)."""

    name: str
    unit: str
    base: float
    low: float | None
    high: float | None
    at_low: float | None = None
    at_high: float | None = None

    @property
    def size(self) -> float:
        """How far apart the two ends lie, the row's own value aside where an end was not tried or has no value."""
        return abs((self.at_high or 0.0) - (self.at_low or 0.0)) if self.at_low is not None and self.at_high is not None else 0.0


@dataclass(frozen=True)
class Sensitivity:
    """The swings of a metric around a row, the largest first. ``still`` are inputs that do not move it."""

    row: str
    metric: str
    unit: str
    base: float
    swings: tuple[Swing, ...]
    still: tuple[str, ...] = ()


@dataclass
class Result:
    """A computed table.

    ``full`` holds every column of the book for the rows that are output (after ``where`` and ``sort``);
    ``left_out`` counts the rows that ``where`` dropped. ``entities`` are the computed catalog tables.
    """

    book: Book
    full: pl.DataFrame
    entities: dict[str, pl.DataFrame]
    left_out: int
    host: Host
    sensitivity: Sensitivity | None = None
    """What ``scenario sensitivity`` found; its rows are the variants then."""
    lost: list[str] = field(default_factory=list)
    """What the last file that was written could not hold of what an analyst had added to the workbook."""

    @property
    def frame(self) -> pl.DataFrame:
        """One row per scenario with the shared columns and the table's own, under their plain names."""
        return self.full.select([item.name for item in self.book.public])

    @property
    def units(self) -> dict[str, str]:
        """The unit of every column of :attr:`frame`; empty for counts, ratios and text."""
        return {item.name: item.unit for item in self.book.public}

    def source_text(self) -> str:
        """The table as YAML without its rows: what a workbook keeps to be read back. Those that ``where`` left out are remarks."""
        from scenario.tables.export_table import rows_yaml, to_yaml

        table = self.book.table
        text = to_yaml(table, self.host, rows=False)
        if not 0 < self.left_out <= MOST_LEFT_OUT:
            return text
        others = table.rows.filter(~pl.col("id").is_in(self.full["id"].to_list()))
        return text + "".join(f"{LEFT_OUT}{line}\n" for line in rows_yaml(replace(table, rows=others), self.host))

    def to(self, path: str | Path, format: str | None = None) -> Path:
        """Write to ``path`` in the format of its ending, or ``format``. Returns where it was written.

        Raises :class:`scenario.OutputError`; what stood at ``path`` is then untouched.
        """
        exporter = files.exporter_for(self.host, str(path), format)
        return files.write(Path(path), exporter, self)

    def to_excel(self, path: str | Path) -> Path:
        """Write the live workbook."""
        return self.to(path, "xlsx")

    def to_csv(self, path: str | Path) -> Path:
        """Write the frame as CSV."""
        return self.to(path, "csv")

    def to_parquet(self, path: str | Path) -> Path:
        """Write the frame as Parquet."""
        return self.to(path, "parquet")

    def to_markdown(self, path: str | Path) -> Path:
        """Write the frame as a markdown table."""
        return self.to(path, "markdown")


def evaluate(book: Book, host: Host, progress=None) -> Result:  # type: ignore[no-untyped-def]
    """Run a book: compute, filter, sort."""
    evaluator = Evaluator(book)
    full = evaluator.run(book.table.rows, progress)
    total = full.height
    if book.where is not None:
        full = evaluator.where(book.where, full)
    if book.sort:
        full = full.sort([name for name, _ in book.sort], descending=[down for _, down in book.sort], nulls_last=True,
                         maintain_order=True)  # fmt: skip
    # Sums add up in the order of the pieces: in one piece they are the same, to the last digit, however rows were computed.
    return Result(book, full.rechunk(), evaluator.entities, total - full.height, host)
