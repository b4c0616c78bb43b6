"""The Summary of the article's tables: what each prints, as the article has it, in the workbook and before and after an edit."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from spreadsheet import needs_soffice
from workbooks import edit, recalculate_all

from scenario.api import bundled
from scenario.engine.summary import NO_ROW

with (Path(__file__).parents[1] / "data" / "article_numbers.csv").open(encoding="utf-8") as stream:
    PRINTED = {line["id"]: line["printed"] for line in csv.DictReader(stream)}
PAIRS = ((0.6, 4), (0.8, 2), (0.8, 4), (0.8, 8), (0.9, 4))
BATCHES = (1, 8, 32, 64, 128, 256)
WANTED: dict[str, dict[str, tuple[str, ...]]] = {
    "article-variants": {
        **{f"alpha {a}, gamma {g}: speedup": (PRINTED[f"S{2 * n + 1}"], PRINTED[f"S{2 * n + 2}"]) for n, (a, g) in enumerate(PAIRS)},
        **{f"alpha {a}, gamma {g}: tokens per round": (PRINTED[f"E{n}"],) * 2 for n, (a, g) in enumerate(PAIRS, 1)},
        "useful share of its FLOPs": ("0.67", "0.67"),
    },
    "article-batch": {
        **{f"batch {b}: speedup": (PRINTED[f"B{n}"], PRINTED[f"B{n + 6}"]) for n, b in enumerate(BATCHES, 1)},
        **{f"batch {b}: verify step": (PRINTED[number],) for b, number in ((64, "T8"), (128, "T9"), (256, "T10"))},
        "ridge point": (PRINTED["T5"], PRINTED["T7"]),
        "rows at which memory time = compute time": (PRINTED["T6"],),
        "free up to a batch of": (PRINTED["X1"], PRINTED["X2"]),
        "tokens per round": (PRINTED["E3"],) * 2,
    },
    "article-mtp": {
        "tokens per round, alpha 0.85": (PRINTED["M1"],) * 3,
        "tokens per round, alpha 0.9": (PRINTED["M2"],) * 3,
        "speedup, c = 1/61 of a step, alpha 0.85": ("1.20", "1.17", "1.82"),  # the article's verdict by the bound
        "verdict by the bound, alpha 0.85": ("pays: 1.20x", "pays: 1.17x", "pays: 1.82x"),
    },
}  # fmt: skip
"""By table and line: what the article prints in each column, from the left."""


@cache
def made(table: str) -> Path:
    """The workbook that the command makes of a bundled table."""
    import tempfile

    path = Path(tempfile.mkdtemp(prefix="article-")) / f"{table}.xlsx"
    command = [sys.executable, "-m", "scenario", "run", table, "-q", "-o", str(path)]
    done = subprocess.run(command, env={**os.environ, "COLUMNS": "100"}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return path


def lines(path: Path) -> dict[str, list[Any]]:
    """The lines of a Summary as the workbook shows them, by title."""
    sheet = openpyxl.load_workbook(path, data_only=True)["Summary"]
    return {row[0]: list(row[1:]) for row in sheet.iter_rows(values_only=True) if isinstance(row[0], str)}


def compare(found: dict[str, list[Any]], wanted: dict[str, tuple[str, ...]]) -> None:
    """Every cell shows what is printed, rounded to as many digits."""
    for title, cells in wanted.items():
        for said, value in zip(cells, found[title], strict=False):
            assert (value if isinstance(value, str) else f"{value:.{len(said.partition('.')[2])}f}") == said, title


@pytest.mark.parametrize("table", WANTED)
def test_the_summary_prints_what_the_article_prints(table: str) -> None:
    """Each number of the article stands in its line and column, in the workbook that the command makes."""
    compare(lines(made(table)), WANTED[table])


def test_both_draft_costs_of_mtp_stand_side_by_side() -> None:
    """The article's draft step is a layer of 61 of the whole step; the derived one costs more and its speedup is lower, at every batch."""
    found = lines(made("article-mtp"))
    whole, given, derived = (found[title][:3] for title in ("step without speculation T(B)", "draft step, c = 1/61", "draft step, c derived"))
    assert given == pytest.approx([step / 61 for step in whole])
    assert all(one < other for one, other in zip(given, derived, strict=True))
    for alpha in ("0.85", "0.9"):
        speeds = zip(found[f"speedup, c = 1/61 of a step, alpha {alpha}"][:3], found[f"speedup, c derived, alpha {alpha}"][:3], strict=True)
        assert all(one > other > 1 for one, other in speeds)


@needs_soffice
def test_summaries_move_with_the_assumptions(tmp_path: Path) -> None:
    """Recalculated by LibreOffice they show the same; with alpha 0.6 in article-batch its first batches gain 1.65, as the variants table says."""
    sheet = openpyxl.load_workbook(made("article-batch"), read_only=True)["Assumptions"]
    places = {row[1]: number for number, row in enumerate(sheet.iter_rows(values_only=True), 1)}
    changed = edit(made("article-batch"), tmp_path / "changed.xlsx", {("Assumptions", f"C{places['small_model_alpha']}"): 0.6})
    *plain, edited = recalculate_all([*map(made, WANTED), changed], tmp_path)
    for table, path in zip(WANTED, plain, strict=True):
        compare(lines(path), WANTED[table])
    compare(lines(edited), {"batch 1: speedup": (PRINTED["S1"],) * 2, "tokens per round": (PRINTED["E1"],) * 2})


@pytest.mark.parametrize("table", sorted(bundled()))
def test_the_summary_of_every_bundled_table_opens_on_rows(table: str) -> None:
    """As the workbook is opened first, no cell of the Summary says that there is no such row, and it shows numbers."""
    sheet = openpyxl.load_workbook(made(table), data_only=True)["Summary"]
    cells = [cell for row in sheet.iter_rows(min_col=2, values_only=True) for cell in row]
    assert not [cell for cell in cells if isinstance(cell, str) and NO_ROW in cell]
    assert [cell for cell in cells if isinstance(cell, int | float)]
