"""Ten thousand rows, whose formulas are written once per column: two independent programs recalculate every one."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ironcalc
import polars as pl
import pytest
from spreadsheet import needs_soffice, recalculated_sheet
from workbooks import edit, header, parts, row_of, without_empty_cells

import scenario

METHODS = ["vanilla", "small-model", "eagle", "medusa", "ngram", "mtp", "int4+eagle"]
ROWS = [
    dict(zip(("model", "gpu", "batch", "alpha", "method"), row, strict=True))
    for row in itertools.product(["llama-3-8b", "qwen3-30b-a3b"], ["h100-sxm", "l4"], range(1, 181), [0.5, 0.7], METHODS)
]
TABLE: dict[str, Any] = {
    "version": 1, "defaults": {"context": 512}, "rows": ROWS,
    "profiles": {"chat": {"rates": [0.8, 0.6, 0.4], "source": "made up"}},
}  # fmt: skip
CELLS: dict[int, dict[str, Any]] = {
    0: {"model": "deepseek-v3"}, 8: {"gpu": "b200"}, 700: {"method": "eagle"}, 1406: {"batch": 4096}, 2101: {"alpha": 0.95},
    3000: {"weights": "fp8"}, 4002: {"context": 0}, 5003: {"usd_per_hour": 9}, 6000: {"kv": "fp8"}, 7002: {"acceptance": "chat", "alpha": None},
    8002: {"gamma": 7}, 9003: {"gpus": 4}, 10_079: {"model": "llama-3-70b", "gpu": "h200", "gpus": 2, "context": 8192},
}  # fmt: skip
"""Inputs of single rows that are changed, from the first row to the last."""
EDITED = {
    **TABLE, "defaults": {"context": 4096},
    "rows": [{**row, **CELLS.get(index, {})} for index, row in enumerate(ROWS)],
    "gpus": {"h100-sxm": {"bandwidth_tb_s": 4.0}, "l4": {"memory_gb": 60}}, "prices": {"l4": 0.3},
    "models": {"llama-3-8b": {"layers": 48}}, "parameters": {"eagle": {"alpha": 0.6, "gamma": 6}},
    "profiles": {"chat": {"rates": [0.9, 0.6, 0.4]}},
}  # fmt: skip


@dataclass
class Written:
    """The workbook as written, the same with every edit typed into it, and what the engine makes of both."""

    plain: Path
    edited: Path
    before: pl.DataFrame
    after: pl.DataFrame


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Both workbooks; the edited one still shows the old values."""
    folder = tmp_path_factory.mktemp("many")
    result = scenario.run(TABLE)
    path = result.to_excel(folder / "plain.xlsx")
    columns = {sheet: header(path, sheet) for sheet in ("Scenarios", "GPUs", "Models", "Assumptions", "Profiles")}

    def cell(sheet: str, key: str, name: str, column: str) -> tuple[str, str]:
        return sheet, f"{columns[sheet][column]}{row_of(path, sheet, key, name)}"

    edits: dict[tuple[str, str], Any] = {
        cell("GPUs", "name", "h100-sxm", "bandwidth_tb_s"): 4.0, cell("GPUs", "name", "l4", "memory_gb"): 60,
        cell("GPUs", "name", "l4", "usd_per_hour"): 0.3, cell("Models", "name", "llama-3-8b", "layers"): 48,
        cell("Assumptions", "name", "default_context", "value"): 4096, cell("Assumptions", "name", "eagle_alpha", "value"): 0.6,
        cell("Assumptions", "name", "eagle_gamma", "value"): 6, cell("Profiles", "profile", "chat", "p1"): 0.9,
    }  # fmt: skip
    for index, cells in CELLS.items():
        for name, value in cells.items():
            column = columns["Scenarios"].get(f"{name}_given") or columns["Scenarios"][name]
            edits["Scenarios", f"{column}{6 + index}"] = value
    return Written(path, edit(path, folder / "edited.xlsx", edits), result.full, scenario.run(EDITED).full)


def wrong(engine: pl.DataFrame, shown: pl.DataFrame) -> list[str]:
    """The cells of the computed columns in which a workbook differs from the engine; at least a hundred columns are compared."""
    found = []
    names = [name for name in engine.columns if name in shown.columns and name != "id"]
    assert len(names) > 100
    assert shown.height == engine.height == len(ROWS) > 10_000
    for name in names:
        ours, theirs = engine[name], shown[name]
        if ours.dtype == pl.Float64:
            numbers = theirs.str.strip_suffix("%").cast(pl.Float64) / pl.select(pl.when(theirs.str.ends_with("%")).then(100).otherwise(1)).to_series()
            limit = pl.select(pl.max_horizontal(pl.lit(1.0), ours.abs())).to_series() * 1e-9
            differ = ((ours - numbers).abs() > limit).fill_null(False) | (ours.is_null() != numbers.is_null())
        else:
            text = ours.cast(pl.String) if ours.dtype == pl.String else ours.cast(pl.String).str.to_uppercase()
            differ = text.fill_null("") != theirs.fill_null("")
        found += [f"{name} of row {row}: engine {ours[row]!r}, workbook {theirs[row]!r}" for row in differ.arg_true().to_list()[:3]]
    return found


@needs_soffice
def test_libreoffice_agrees_with_every_row_before_and_after_edits_of_every_kind(written: Written, tmp_path: Path) -> None:
    """Recalculated by force, every computed cell is the engine's: as written, and once a value of each kind was changed in the file."""
    assert wrong(written.before, recalculated_sheet(written.plain, tmp_path, "Scenarios", 5)) == []
    assert wrong(written.after, recalculated_sheet(written.edited, tmp_path, "Scenarios", 5)) == []


def test_ironcalc_agrees_with_every_row_after_edits_of_every_kind(written: Written, tmp_path: Path) -> None:
    """A second independent engine finds the same in every row of the edited workbook."""
    model = ironcalc.load_from_xlsx(str(without_empty_cells(written.edited, tmp_path / "plain.xlsx")), "en", "UTC", "en")
    model.evaluate()
    sheet = list(parts(written.edited)).index("Scenarios")
    names = {name: pl.Series([name]) for name in header(written.edited, "Scenarios")}
    shown = {}
    for column, name in enumerate(names, 1):
        values = [model.get_cell_value(sheet, row, column) for row in range(6, 6 + len(ROWS))]
        shown[name] = [None if value in (None, "") else str(value).upper() if isinstance(value, bool) else str(value) for value in values]
    assert wrong(written.after, pl.DataFrame(shown, schema=dict.fromkeys(shown, pl.String))) == []


def test_the_edits_reach_the_results(written: Written) -> None:
    """Every row that was edited by itself has another result than before, and the longer context reaches nearly all."""
    for index in CELLS:
        assert written.before.row(index) != written.after.row(index), index
    assert written.before["memory_gb"].ne_missing(written.after["memory_gb"]).sum() > 10_000
