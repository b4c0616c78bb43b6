"""A blank stays a blank: a price taken away in the workbook is no price anywhere, and what cannot be blanked is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from spreadsheet import needs_soffice
from workbooks import edit, header, recalculate_all, row_of

import scenario
from scenario.cli.commands import main

TABLE: dict[str, Any] = {
    "version": 1, "defaults": {"context": 0},
    "rows": [{"model": "llama-3-8b", "gpu": gpu, "batch": 1, "method": "vanilla"} for gpu in ("h100-sxm", "a100-80gb", "own")],
    "gpus": {"own": {"memory_gb": 80, "bandwidth_tb_s": 2, "bf16_tflops": 300, "usd_per_hour": 1.5}},
}  # fmt: skip


def cli(*arguments: str | Path) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


def status(found: scenario.Result, gpu: str) -> tuple[Any, Any]:
    row = found.frame.filter(found.frame["gpu"] == gpu).row(0, named=True)
    return row["status"], row["usd_per_million_tokens"]


@pytest.mark.parametrize("parts", [
    {"gpus": {**TABLE["gpus"], "h100-sxm": {"usd_per_hour": None}}}, {"prices": {"h100-sxm": None}},
    {"prices": {"h100-sxm": {"usd_per_hour": None, "source": "not for rent"}}},
])  # fmt: skip
def test_a_table_takes_a_price_away(parts: dict[str, Any]) -> None:
    """null is no price, under gpus and under prices."""
    found = scenario.run({**TABLE, **parts})
    assert status(found, "h100-sxm") == ("no price for this GPU", None)
    assert status(found, "a100-80gb")[0] == "ok"


def test_a_price_under_gpus_counts_before_the_catalogs() -> None:
    """What a table says of a GPU is not passed over because the catalog has a price of its own."""
    found = scenario.run({**TABLE, "gpus": {**TABLE["gpus"], "h100-sxm": {"usd_per_hour": 100}}})
    price = scenario.run({**TABLE, "prices": {"h100-sxm": 100}})
    assert status(found, "h100-sxm") == status(price, "h100-sxm")
    assert status(found, "own")[0] == "ok"


def cell(path: Path, gpu: str, column: str = "usd_per_hour") -> tuple[str, str]:
    """Where a GPU's field stands."""
    return "GPUs", f"{header(path, 'GPUs')[column]}{row_of(path, 'GPUs', 'name', gpu)}"


@needs_soffice
@pytest.mark.parametrize("gpu", ["h100-sxm", "own"])
def test_a_blanked_price_comes_back_as_none(gpu: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The recalculated workbook, the engine, the next workbook, its table and diff agree that the GPU has no price."""
    path = scenario.run(TABLE).to_excel(tmp_path / "costs.xlsx")
    blank = recalculate_all([edit(path, tmp_path / "blank.xlsx", {cell(path, gpu): None})], tmp_path)[0]
    assert cli("check", blank) == 0
    assert cli("run", blank, "-q", "-o", tmp_path / "new.xlsx") == 0
    assert status(scenario.run(tmp_path / "new.xlsx"), gpu) == ("no price for this GPU", None)
    assert cli("export-table", tmp_path / "new.xlsx", "-o", tmp_path / "new.yaml") == 0
    assert status(scenario.run(tmp_path / "new.yaml"), gpu) == ("no price for this GPU", None)
    assert cli("diff", tmp_path / "new.yaml", blank) == 0
    capsys.readouterr()
    cli("diff", path, blank)
    said = capsys.readouterr().out
    assert f"price {gpu}" in said
    assert "say the same" not in said


def test_a_blanked_price_of_nothing_is_no_price(tmp_path: Path) -> None:
    """A GPU that costs 0 and one without a price are two things."""
    path = scenario.run({**TABLE, "prices": {"own": 0}}).to_excel(tmp_path / "costs.xlsx")
    blank = edit(path, tmp_path / "blank.xlsx", {cell(path, "own"): None})
    assert status(scenario.run(path), "own") == ("ok", 0)
    assert status(scenario.run(blank), "own") == ("no price for this GPU", None)


@pytest.mark.parametrize("value", [None, 9, "eight"])
def test_a_format_cannot_be_changed_or_blanked(value: Any, tmp_path: Path) -> None:
    """A cell of Formats that no longer says what was written is refused, not put back."""
    path = scenario.run(TABLE).to_excel(tmp_path / "costs.xlsx")
    place = f"{header(path, 'Formats')['bits']}{row_of(path, 'Formats', 'name', 'fp8')}"
    with pytest.raises(scenario.TableError, match=rf"Formats!{place}.*cannot be changed"):
        scenario.run(edit(path, tmp_path / "edited.xlsx", {("Formats", place): value}))
