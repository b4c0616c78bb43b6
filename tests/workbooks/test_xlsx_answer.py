"""The first page answers: the cheapest row within the limits that stand in its cells, what a volume takes, rent or own."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pytest
from click.testing import CliRunner
from spreadsheet import needs_soffice
from workbooks import differences, edit, recalculate_all

import scenario
from scenario.cli.commands import main
from scenario.exporters.xlsx.checks import formula_areas

TABLE: dict[str, Any] = {
    "version": 1, "title": "answers", "defaults": {"context": 2048},
    "grid": {"model": ["llama-3.1-8b", "deepseek-v3"], "gpu": ["h100-sxm", "h200"], "batch": [1, 8, 64, 256], "gpus": [1, 8],
             "method": ["vanilla", "eagle", "int4", "fp8"]},
}  # fmt: skip
LIMITS = {"tpot": "B9", "lossless": "B11", "budget": "B12", "hours": "B13", "tokens": "B14"}
CASES: dict[str, dict[str, Any]] = {
    "no limit": {}, "fast": {"tpot": 4}, "lossless": {"lossless": "yes"}, "cheap": {"budget": 2500}, "faster than any": {"tpot": 0.001},
    "all": {"tpot": 20, "lossless": "yes", "budget": 25000},
}  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table as a workbook."""
    return scenario.run(TABLE).to_excel(tmp_path_factory.mktemp("answer") / "costs.xlsx")


def lines(path: Path, head: str) -> dict[str, dict[str, Any]]:
    """The lines of a table on the page by model; ``head`` is what its second column is called."""
    sheet = openpyxl.load_workbook(path, data_only=True)["Answer"]
    top = next(row for row in range(1, 60) if sheet.cell(row, 2).value == head and sheet.cell(row, 1).value == "model")
    names = [cell.value for cell in sheet[top] if cell.value]
    return {sheet.cell(row, 1).value: {name: sheet.cell(row, column).value for column, name in enumerate(names, 1)} for row in (top + 1, top + 2)}


def block(path: Path) -> dict[str, Any]:
    """The block of costs by its labels."""
    sheet = openpyxl.load_workbook(path, data_only=True)["Answer"]
    return {sheet.cell(row, 1).value: sheet.cell(row, 2).value for row in range(1, 80) if sheet.cell(row, 1).value}


def kept(given: dict[str, Any]) -> pl.DataFrame:
    """The rows that keep within limits, by the frame of the command line."""
    frame = scenario.run(TABLE).frame.with_row_index("#", 1).filter((pl.col("status") == "ok") & pl.col("usd_per_million_tokens").is_not_null())
    if "tpot" in given:
        frame = frame.filter(pl.col("tpot_ms") <= given["tpot"])
    if "budget" in given:
        frame = frame.filter(pl.col("usd_per_hour") * pl.col("gpus") * 730 <= given["budget"])
    if given.get("lossless") == "yes":  # here all weights are stored as published or in more bits, so methods alone tell
        frame = frame.filter(pl.col("method").is_in(["vanilla", "eagle"]))
    return frame


@needs_soffice
def test_the_cheapest_row_within_the_limits(written: Path, tmp_path: Path) -> None:
    """For each set of limits the row of least price by an independent search, in the file and recalculated; else it says that there is none."""
    paths = [edit(written, tmp_path / f"{number}.xlsx", {("Answer", LIMITS[key]): value for key, value in given.items()})
             for number, given in enumerate(CASES.values())]  # fmt: skip
    for (what, given), path in zip(CASES.items(), recalculate_all(paths, tmp_path), strict=True):
        frame, found = kept(given), lines(path, "GPU")
        for model in ("llama-3.1-8b", "deepseek-v3"):
            mine = frame.filter(pl.col("model") == model).sort("usd_per_million_tokens", maintain_order=True)
            shown = found[model]
            if mine.is_empty():
                assert shown["row of Scenarios"] == "none", what
                assert shown["GPU"] in (None, ""), what
                continue
            best = mine.row(0, named=True)
            assert shown["row of Scenarios"] == best["#"], what
            for head, name in (("GPU", "gpu"), ("method", "method"), ("batch", "batch"), ("TPOT (ms)", "tpot_ms"),
                               ("$ per 1M tokens", "usd_per_million_tokens")):  # fmt: skip
                assert shown[head] == pytest.approx(best[name], rel=1e-9) if isinstance(best[name], float) else shown[head] == best[name], what
            assert shown["$ per month"] == pytest.approx(best["usd_per_hour"] * best["gpus"] * 730, rel=1e-9), what
    assert any(kept(given).filter(pl.col("model") == "deepseek-v3").is_empty() for given in CASES.values())


@needs_soffice
def test_the_page_shows_the_same_before_and_after_recalculation(written: Path, tmp_path: Path) -> None:
    """LibreOffice, which trusts no shown value here, computes each cell of the file as the engine wrote it."""
    (anew,) = recalculate_all([written], tmp_path)
    assert differences(written, anew) == []


@needs_soffice
def test_a_volume_takes_whole_replicas_on_whole_servers(written: Path, tmp_path: Path) -> None:
    """Half a trillion tokens a day: replicas, GPUs, servers of 8 and dollars by a calculation of their own."""
    tokens = 5e11
    (path,) = recalculate_all([edit(written, tmp_path / "much.xlsx", {("Answer", LIMITS["tokens"]): tokens})], tmp_path)
    found = lines(path, "replicas")
    for model, best in ((model, lines(path, "GPU")[model]) for model in found):
        replicas = math.ceil(tokens / (best["tokens/s"] * 86400))
        servers = math.ceil(replicas * best["GPUs"] / 8)
        month = servers * 8 * best["$ per month"] / best["GPUs"]
        assert replicas > 1
        shown = [found[model][head] for head in ("replicas", "GPUs", "servers", "GPUs paid", "$ per month", "$ per 1M as paid")]
        expected = [replicas, replicas * best["GPUs"], servers, servers * 8, month, month / (tokens * 365 / 12) * 1e6]
        assert shown == pytest.approx(expected, rel=1e-9)


@needs_soffice
def test_rent_or_own(written: Path, tmp_path: Path) -> None:
    """$20,000 over 5 years, 1,000 W at $0.1 and PUE 1.5, half of the hours in use, against $1.5 reserved."""
    sheet = openpyxl.load_workbook(written)["Answer"]
    at = {sheet.cell(row, 1).value: f"B{row}" for row in range(1, 80)}
    cells = {"rented, reserved": 1.5, "bought, with its share of the server": 20_000, "years of use": 5, "electricity": 0.1, "PUE": 1.5,
             "share of the hours in use": 0.5}  # fmt: skip
    (path,) = recalculate_all([edit(written, tmp_path / "own.xlsx", {("Answer", at[name]): value for name, value in cells.items()})], tmp_path)
    found = block(path)
    energy = found["board power"] / 1000 * 1.5 * 0.1
    assert found["cheapest rented"] == 1.5
    assert found["of that electricity"] == pytest.approx(energy)
    assert found["owned, in such use"] == pytest.approx(20_000 / (5 * 8760 * 0.5) + energy)
    assert found["owning is cheaper from this share on"] == pytest.approx(20_000 / (5 * 8760) / (1.5 - energy))
    assert found["paid back after"] == pytest.approx(20_000 / ((1.5 - energy) * 0.5 * 730))


def test_the_page_comes_first_and_says_what_it_rests_on(written: Path) -> None:
    """It opens first, says that times are a lower bound and of which day prices are, and every price has its dollar sign."""
    book = openpyxl.load_workbook(written, data_only=True)
    assert book.sheetnames[:2] == ["Answer", "README"]
    assert book.active.title == "Answer"
    found = block(written)
    assert found["Status"] == "OK"
    assert found["Rests on"].startswith("Times are a lower bound")
    assert "as of 2026-" in found["Prices"]
    priced = [cell for row in book["Answer"].iter_rows() for cell in row if isinstance(cell.value, float) and "$" in cell.number_format]
    assert len(priced) > 12


@needs_soffice
@pytest.mark.parametrize(("sheet", "cell"), [("Answer", "K18"), ("Summary", "C12"), ("Chart data", "B20")])
def test_a_value_typed_over_any_page_turns_the_status(sheet: str, cell: str, written: Path, tmp_path: Path) -> None:
    """A falsified price on the answer, a metric on Summary, a point of a chart: the status is CHECK, and check names the cell."""
    assert openpyxl.load_workbook(written)[sheet][cell].data_type == "f"
    path = edit(written, tmp_path / "typed.xlsx", {(sheet, cell): 0.01})
    (anew,) = recalculate_all([path], tmp_path)
    assert block(anew)["Status"] == "CHECK"
    done = CliRunner().invoke(main, ["check", str(anew)])
    assert done.exit_code == 1
    assert f"{sheet}!{cell}" in done.output


def test_cells_as_rectangles() -> None:
    """Runs of cells below one another are one area, and each cell lies in exactly one."""
    assert formula_areas(["B2", "C2", "B3", "C3", "E3", "B5"]) == ["$B$2:$C$3", "$E$3:$E$3", "$B$5:$B$5"]
