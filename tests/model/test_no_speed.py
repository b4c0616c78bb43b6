"""Rows that have no speed say why, and show neither a time nor a price: unsupported formats, nothing measured, extrapolated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openpyxl
import pytest
import yaml
from click.testing import CliRunner
from spreadsheet import needs_soffice
from workbooks import differences, recalculate_all

import scenario
from scenario.cli.commands import main

REQUESTS = [{"context": 1000}, {"prompt_tokens": 1000, "output_tokens": 200}, {"isl": 1000, "osl": 200}]
UNMEASURED = "no measurement for this model and GPU"
POINTS = {"mine": {"model": "llama-3.1-8b", "gpu": "h100-sxm", "points": [[1, 6], [64, 9]]}}
ROW = {"model": "qwen3-8b", "gpu": "a100-80gb", "batch": 1, "context": 1000}
MEASURED: dict[str, Any] = {"version": 1, "title": "points", "time_model": "measured", "measured": POINTS}
UNTIMED = {**MEASURED, "rows": [{**ROW, "id": "a", "method": "mtp", "gamma": "auto"}, {**ROW, "id": "b", "method": "vanilla"}]}


@pytest.mark.parametrize("model", ["bound", "estimate"])
@pytest.mark.parametrize("method", ["fp8", "fp8+eagle"])
@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_a_row_whose_format_the_gpu_lacks_shows_what_one_that_does_not_fit_shows(request_: dict, method: str, model: str) -> None:
    """Every column that is blank where the memory is too small is blank where the number format is missing."""
    row = {"gpu": "a100-80gb", "batch": 4, "method": method, "time_model": model, **request_}
    table = {"version": 1, "show": ["best_gamma", "break_even"], "rows": [{**row, "model": name} for name in ("llama-3.1-8b", "llama-3.1-405b")]}
    small, large = scenario.run(table).full.iter_rows(named=True)
    assert small["status"] == "not supported: this GPU lacks the number format"
    assert large["status"].startswith("does not fit")
    assert [name for name in small if small[name] is not None and large[name] is None] == []


@pytest.mark.parametrize("measured", [{}, {"measured": POINTS}], ids=["no points", "points of another model"])
@pytest.mark.parametrize("asked", [{"method": "vanilla"}, {"method": "mtp", "gamma": "auto"}, {"method": "int4+eagle", "gamma": "auto"}], ids=str)
@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_a_row_without_measurement_says_so(request_: dict, asked: dict, measured: dict) -> None:
    """Its status says it in words; memory does not wait for a time."""
    row = {"model": "qwen3-8b", "gpu": "a100-80gb", "batch": [1, 4], **request_, **asked}
    full = scenario.run({"version": 1, "time_model": "measured", **measured, "rows": [row]}).full
    assert full["status"].to_list() == [UNMEASURED] * 2
    assert full["fits"].to_list() == [True] * 2
    assert full["memory_gb"].null_count() == 0
    assert full["tpot_ms"].null_count() == full["usd_per_million_tokens"].null_count() == 2


def test_a_row_that_does_not_fit_says_that_first() -> None:
    """No measurement would help it; and a row of another time model is not concerned."""
    rows = [{**ROW, "method": "vanilla", "model": "llama-3.1-405b"}, {**ROW, "method": "vanilla", "time_model": "bound"}]
    assert scenario.run({**MEASURED, "rows": rows}).full["status"].to_list() == ["does not fit: weights", "ok"]


def test_beyond_the_points_no_error_is_known() -> None:
    """Between the points the error holds and a verdict is passed; beyond them there is neither."""
    row = {**ROW, "model": "llama-3.1-8b", "gpu": "h100-sxm", "method": "eagle"}
    inside, beyond = scenario.run({**MEASURED, "rows": [{**row, "batch": [1, 200]}]}).full.iter_rows(named=True)
    assert (inside["basis"], inside["time_error"], inside["verdict"]) == ("measured", 0.05, "better")
    assert (beyond["basis"], beyond["status"]) == ("extrapolated", "ok")
    assert beyond["speedup"] is not None
    blank = ("time_error", "speedup_error", "tpot_low_ms", "tpot_high_ms", "speedup_low", "usd_high", "verdict")
    assert [beyond[name] for name in blank] == [None] * len(blank)


def said(tmp_path: Path, table: dict[str, Any], *command: str) -> str:
    """What a command says of a table."""
    path = tmp_path / "table.yaml"
    path.write_text(yaml.safe_dump(table), encoding="utf-8")
    done = CliRunner().invoke(main, [command[0], str(path), *command[1:]])
    return " ".join((done.output if done.exit_code == 0 else done.stderr).split())


def test_every_command_gives_the_reason(tmp_path: Path) -> None:
    """No number is claimed, and None and ok are no reasons."""
    ran = said(tmp_path, UNTIMED, "run")
    assert "2 rows; no times: nothing was measured" in ran
    assert "all fit" not in ran
    assert "nine of ten" not in ran
    assert f"a is stopped by {UNMEASURED}" in said(tmp_path, UNTIMED, "best")
    for row in ("a", "b"):
        assert f"is blank: {UNMEASURED}" in said(tmp_path, UNTIMED, "sensitivity", "--row", row)
    row = {**ROW, "method": "vanilla"}
    assert "is blank choose another --row" in said(tmp_path, {"version": 1, "rows": [row], "show": ["break_even"]}, "sensitivity", "--of", "break_even_batch")
    assert "break_even_batch, which is blank there" in said(tmp_path, {"version": 1, "rows": [row], "show": ["break_even"]}, "best", "--of", "break_even_batch")


def test_the_last_line_tells_measured_from_extrapolated(tmp_path: Path) -> None:
    """Only those between the points have an error."""
    row = {**ROW, "model": "llama-3.1-8b", "gpu": "h100-sxm", "method": "vanilla"}
    line = said(tmp_path, {**MEASURED, "rows": [{**row, "batch": [1, 200]}, {**ROW, "method": "vanilla"}]}, "run")
    assert "times are measured: nine of ten measurements lie within 5%; extrapolated: nothing says how far off; no times in 1 of them: nothing was measured" in line


@needs_soffice
def test_the_workbook_of_rows_without_speed_has_no_error(tmp_path: Path) -> None:
    """Every cell, those of Summary among them, recalculates to what is shown."""
    mixed = {**MEASURED, "rows": [*UNTIMED["rows"], {**ROW, "id": "c", "model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": [1, 200], "method": "eagle"},
                                  {**ROW, "id": "d", "method": "fp8", "time_model": "bound"}]}  # fmt: skip
    paths = [scenario.run(table).to_excel(tmp_path / f"{name}.xlsx") for name, table in (("untimed", UNTIMED), ("mixed", mixed))]
    for path, anew in zip(paths, recalculate_all(paths, tmp_path), strict=True):
        assert differences(path, anew) == []
        cells = [cell.value for row in openpyxl.load_workbook(anew, data_only=True)["Summary"].iter_rows() for cell in row]
        assert not any(str(value).startswith("#") for value in cells)
        assert "does not fit" not in cells
        assert UNMEASURED in cells
