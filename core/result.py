"""What a run gives back: the frame, and everything needed to show where each number comes from."""

from __future__ import annotations

import html
import io
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from scenario import output as files
from scenario.book.book import Book
from scenario.common.errors import OutputError, Problem, nearest
from scenario.common.numbers import show_value
from scenario.engine.evaluator import Evaluator
from scenario.engine.summary import SummaryValues
from scenario.registry.loaded import Host

if TYPE_CHECKING:
    import pandas as pd

LEFT_OUT = "#| "
"""How the lines of a table begin that give rows which ``where`` left out."""
MOST_LEFT_OUT = 5_000
"""Rows that are kept that way."""
FIRST_COLUMNS = ("id", "model", "gpu", "batch", "method", "tpot_ms", "tokens_per_s", "speedup", "usd_per_million_tokens", "memory_gb", "status")
"""What a notebook shows of a result, beside the table's own columns."""
FIRST_ROWS = 20
"""Rows that a notebook shows."""


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


@dataclass(frozen=True)
class Page:
    """A live page in a notebook, or one chart of it: its HTML is shown inside a frame that reaches no network."""

    text: str
    height: int = 900

    def _repr_html_(self) -> str:
        frame = f'<iframe sandbox="allow-scripts allow-downloads" width="100%" height="{self.height}" style="border:0" title="scenario"'
        return f'{frame} srcdoc="{html.escape(self.text, quote=True)}"></iframe>'

    def __repr__(self) -> str:
        return f"Page of {len(self.text):,} characters: show it as the last line of a notebook's cell"


@dataclass(frozen=True)
class Plots:
    """The charts of a result's live page, each alone; ``result.plot.speedup()``."""

    result: Result

    def pareto(self) -> Page:
        """Throughput per GPU against speed per user, with the line that no other row beats."""
        return self.result.page(only="pareto")

    def price(self) -> Page:
        """Dollars per million output tokens against batch."""
        return self.result.page(only="price")

    def passes(self) -> Page:
        """Time of a pass against token rows, with the ridge."""
        return self.result.page(only="pass")

    def speedup(self) -> Page:
        """Speedup over vanilla decoding against batch, and where it stops paying."""
        return self.result.page(only="speedup")


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

    def __len__(self) -> int:
        return self.full.height

    def __getitem__(self, name: str) -> pl.Series:
        """A column of :attr:`frame` by name. Raises KeyError, with the name that was probably meant."""
        names = [item.name for item in self.book.public]
        if name not in names:
            raise KeyError(f"there is no column '{name}'; {nearest(name, names) or 'result.frame.columns lists them'}")
        return self.full[name]

    def __repr__(self) -> str:
        title = self.book.table.title or "a table"
        return f"<Result: {title[:80]}: {len(self):,} rows, {len(self.book.public)} columns; {self.basis}>"

    def _repr_html_(self) -> str:
        """A compact table for notebooks: the first rows, the main columns and the table's own, and what the numbers are."""
        shown = [self.book.fields[name] for name in (*FIRST_COLUMNS, *self.book.table.columns) if name in self.book.fields]
        heads = "".join(f"<th>{html.escape(item.name)}<br><small>{html.escape(item.unit)}</small></th>" for item in shown)
        rows = self.full.select([item.name for item in shown]).head(FIRST_ROWS).iter_rows()
        body = "".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows)
        more = f"; the first {FIRST_ROWS} of {len(self):,} rows" if len(self) > FIRST_ROWS else ""
        notes = f"{html.escape(self.basis)}{more}; {len(self.book.public)} columns in result.frame"
        return f"<h4>{html.escape(self.book.table.title)}</h4><table><tr>{heads}</tr>{body}</table><p><small>{notes}</small></p>"

    @property
    def basis(self) -> str:
        """What the times are, in words."""
        words = {"bound": "times are a lower bound: no server is faster, real ones are slower",
                 "estimate": "times are an estimate, with its range in the low and high columns"}  # fmt: skip
        return "; ".join(words.get(name, f"times by the model '{name}'") for name in self.book.time_models)

    def to_polars(self) -> pl.DataFrame:
        """:attr:`frame`."""
        return self.frame

    def to_pandas(self) -> pd.DataFrame:
        """:attr:`frame` as a pandas DataFrame; blank numbers are NaN. Raises :class:`scenario.OutputError` without pandas."""
        try:
            import pandas
        except ModuleNotFoundError:
            raise OutputError(Problem("pandas is not installed", "pip install pandas")) from None
        return pandas.DataFrame({name: values.to_list() for name, values in self.frame.to_dict().items()})

    def page(self, only: str = "") -> Page:
        """The live page, inline in a notebook; ``only`` shows one chart: pareto, price, pass or speedup."""
        stream = io.BytesIO()
        self.host.exporters["html"].write(self, stream)
        text = stream.getvalue().decode()
        return Page(text.replace("<body>", f'<body data-only="{html.escape(only)}">', 1), 430) if only else Page(text)

    @property
    def plot(self) -> Plots:
        """The charts of the page, each alone."""
        return Plots(self)

    @property
    def summary(self) -> SummaryValues | None:
        """The values of the summary, if its columns are scenarios of their own."""
        view = self.book.summary
        return SummaryValues(self.book, self.full, view) if view is not None else None

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


def _cell(value: Any) -> str:
    """A cell of a notebook's table."""
    side = ' style="text-align:right"' if isinstance(value, float) else ""
    return f"<td{side}>{html.escape(show_value(value)[:120])}</td>"


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
