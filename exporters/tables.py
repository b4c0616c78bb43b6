"""Plain tables: CSV and Parquet for programs, markdown for people. They carry the frame's own column names."""

from __future__ import annotations

import io
from typing import BinaryIO

import polars as pl

from scenario import UNLIMITED, Exporter, Result, escape_markdown, hookimpl, show_value

# What a spreadsheet program would run as a formula when it opens a CSV file (CWE-1236).
_RISKY = ("=", "+", "-", "@", "\t", "\r")


def words(result: Result) -> pl.DataFrame:
    """The frame with the word ``unlimited`` where a number stands for no limit."""
    frame = result.frame
    changed = []
    for name, kind in frame.schema.items():
        if kind == pl.Float64 and result.book.fields[name].limit and bool((frame[name] >= UNLIMITED).any()):
            text = pl.when(pl.col(name) >= UNLIMITED).then(pl.lit("unlimited")).otherwise(pl.col(name).cast(pl.String))
            changed.append(text.alias(name))
    return frame.with_columns(changed)


def write_csv(result: Result, stream: BinaryIO) -> None:
    """CSV in UTF-8; blank is empty, texts that a spreadsheet would run get a quote in front."""
    frame = words(result)
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    risky = [
        pl.when(pl.any_horizontal([pl.col(name).str.starts_with(sign) for sign in _RISKY]))
        .then(pl.lit("'") + pl.col(name)).otherwise(pl.col(name)).alias(name)
        for name in texts
    ]  # fmt: skip
    buffer = io.BytesIO()
    frame.with_columns(risky).write_csv(buffer)
    stream.write(buffer.getbuffer())


def write_parquet(result: Result, stream: BinaryIO) -> None:
    """Parquet with the frame's types; no limit is the number 1e15."""
    buffer = io.BytesIO()
    result.frame.write_parquet(buffer)
    stream.write(buffer.getbuffer())


def write_markdown(result: Result, stream: BinaryIO) -> None:
    """A markdown table, units in the header, numbers to the right."""
    frame = result.frame
    heads = [f"{name} ({unit})" if unit else name for name, unit in result.units.items()]
    rules = ["---:" if kind == pl.Float64 else "---" for kind in frame.schema.values()]
    lines = [f"# {escape_markdown(result.book.table.title)}", "", _row(heads), _row(rules)]
    limits = [UNLIMITED if result.book.fields[name].limit else None for name in frame.columns]
    for row in frame.iter_rows():
        lines.append(
            _row([show_value(value, unlimited=limit, blank="") for value, limit in zip(row, limits, strict=True)])
        )
    stream.write(("\n".join(lines) + "\n").encode())


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(map(escape_markdown, cells)) + " |"


@hookimpl
def scenario_exporters():  # type: ignore[no-untyped-def]
    yield Exporter("csv", (".csv",), write_csv, "Comma-separated values, UTF-8.", text=True)
    yield Exporter("parquet", (".parquet",), write_parquet, "Apache Parquet.")
    yield Exporter("markdown", (".md",), write_markdown, "A markdown table.", text=True)
