"""A workbook that nobody touched comes back without a word, whatever its table uses; what is put into live rows is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from click.testing import CliRunner
from openpyxl.utils import get_column_letter
from spreadsheet import needs_soffice
from workbooks import edit, recalculate_all

import scenario
from scenario.api import bundled
from scenario.cli.commands import main

ROW = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": [1, 8], "context": 1024, "method": ["vanilla", "eagle"]}
POINTS = {"mine": {"model": "llama-3.1-8b", "gpu": "h100-sxm", "points": [[1, 6], [64, 9]]}}
SERVED = {**{key: value for key, value in ROW.items() if key != "context"}, "isl": 500, "osl": 200}
TREE = {"small": {"rates": [0.7, 0.1], "topology": [[0], [1], [0, 0]]}}

KINDS: dict[str, dict[str, Any]] = {
    "plain": {"rows": [ROW]},
    "by gamma": {"rows": [ROW], "show": ["best_gamma"]},
    "by batch": {"rows": [ROW], "show": ["break_even"]},
    "everything asked": {"rows": [ROW], "show": ["best_gamma", "break_even", "acceptance"]},
    "automatic drafts": {"rows": [{**ROW, "gamma": "auto"}]},
    "automatic GPUs": {"rows": [{**ROW, "gpus": "auto"}]},
    "many rows": {"rows": [{**ROW, "batch": list(range(1, 700))}], "show": ["break_even"]},
    "trees": {"rows": [{**ROW, "method": "eagle", "tree": "small"}], "trees": TREE},
    "profiles": {"rows": [{**ROW, "acceptance": "chat"}], "profiles": {"chat": [0.8, 0.5]}},
    "curves": {"rows": [ROW], "curves": {"step": [[1, 2], [9, 4]]}, "columns": {"x": 'curve("step", batch)'}},
    "encoders": {"rows": [{**ROW, "context": 0, "encoder": "qwen2-vl", "prompt_tokens": 100, "output_tokens": 10}]},
    "parallel": {"rows": [{**ROW, "tp": 2, "dp": 2}]},
    "estimate": {"time_model": "estimate", "rows": [ROW]},
    "estimate of serving": {"time_model": "estimate", "rows": [{**SERVED, "engine": "vllm"}]},
    "hardware": {"time_model": "estimate", "rows": [ROW], "hardware": {"mine": {"gpus": ["h100-sxm"], "gemm_mfu": 0.6, "source": "a test"}}},
    "measured": {"time_model": "measured", "measured": POINTS, "rows": [ROW]},
    "measured, some rows": {"measured": POINTS, "rows": [{**ROW, "time_model": ["bound", "measured"]}]},
    "measured and estimate": {"measured": POINTS, "rows": [{**ROW, "time_model": ["measured", "estimate"]}]},
    "every time model": {"measured": POINTS, "rows": [{**ROW, "time_model": ["bound", "measured", "estimate"]}]},
    "nothing measured": {"time_model": "measured", "rows": [{**ROW, "gamma": "auto"}]},
    "formats": {"rows": [{**ROW, "weights": ["fp8", "bf16"], "activations": ["bf16", "fp8"], "method": "vanilla"}]},
    "an unsupported format": {"rows": [{**ROW, "gpu": "a100-80gb", "method": "fp8", "context": 0, "prompt_tokens": 9, "output_tokens": 9}]},
}  # fmt: skip


def told(path: Path, tmp_path: Path) -> list[str]:
    """What ``scenario run`` says of a workbook, without the file's name and the last line."""
    done = CliRunner().invoke(main, ["run", str(path), "-o", str(tmp_path / "new.xlsx")])
    assert done.exit_code == 0, done.output
    return [line.removeprefix(f"{path}: ") for line in done.stderr.splitlines() if not line.startswith("wrote ")]


@pytest.mark.parametrize("kind", KINDS)
def test_an_untouched_workbook_has_nothing_to_tell(kind: str, tmp_path: Path) -> None:
    """As written, and as openpyxl saves it."""
    path = scenario.run({"version": 1, "title": kind, **KINDS[kind]}).to_excel(tmp_path / "costs.xlsx")
    assert told(path, tmp_path) == []
    openpyxl.load_workbook(path).save(tmp_path / "saved.xlsx")
    assert told(tmp_path / "saved.xlsx", tmp_path) == []


@pytest.mark.parametrize("name", sorted(bundled()))
def test_a_bundled_table_has_nothing_to_tell(name: str, tmp_path: Path) -> None:
    """Nor have those that come along."""
    assert told(scenario.run(name).to_excel(tmp_path / "costs.xlsx"), tmp_path) == []


def test_the_workbook_of_a_sensitivity_has_nothing_to_tell(tmp_path: Path) -> None:
    """Its sheet is made for the command, and its rows are rows."""
    path = tmp_path / "costs.xlsx"
    done = CliRunner().invoke(main, ["sensitivity", "starter", "-o", str(path), "-q"])
    assert done.exit_code == 0, done.output
    assert told(path, tmp_path) == []


@needs_soffice
def test_what_libreoffice_saved_has_nothing_to_tell(tmp_path: Path) -> None:
    """It writes every cell anew."""
    kinds = ("everything asked", "every time model", "trees", "encoders")
    paths = [scenario.run({"version": 1, "title": kind, **KINDS[kind]}).to_excel(tmp_path / f"{number}.xlsx") for number, kind in enumerate(kinds)]
    for path in recalculate_all(paths, tmp_path):
        assert told(path, tmp_path) == []


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workbook with both sheets of helper columns."""
    return scenario.run({"version": 1, **KINDS["everything asked"]}).to_excel(tmp_path_factory.mktemp("asked") / "costs.xlsx")


@pytest.mark.parametrize("sheet", ["By gamma", "By batch"])
def test_a_constant_in_the_live_rows_is_told(sheet: str, asked: Path, tmp_path: Path) -> None:
    """Where a formula belongs, a number or a text does not come along."""
    for value in (1.25, "better"):
        path = edit(asked, tmp_path / "typed.xlsx", {(sheet, "C7"): value})
        assert told(path, tmp_path) == [f"{sheet}: not carried over, as this sheet is made anew: C7"]


def change(asked: Path, tmp_path: Path, act: Callable[[Any], None]) -> list[str]:
    """What is told after ``act`` had its way with the sheet By batch."""
    book = openpyxl.load_workbook(asked)
    act(book["By batch"])
    book.save(tmp_path / "changed.xlsx")
    return told(tmp_path / "changed.xlsx", tmp_path)


def test_what_stands_beside_and_above_live_rows_is_told(asked: Path, tmp_path: Path) -> None:
    """A formula, a number and a note, each by its cell; formulas filled down are as those of the sheet, and a moved row is none."""
    beside = get_column_letter(openpyxl.load_workbook(asked)["By batch"].max_column + 2)
    for cell, value in ((f"{beside}7", "=B7*2"), (f"{beside}9", 4), ("C1", "why?")):
        said = [f"By batch: not carried over, as this sheet is made anew: {cell}"]
        assert change(asked, tmp_path, lambda sheet, cell=cell, value=value: setattr(sheet[cell], "value", value)) == said
    assert change(asked, tmp_path, lambda sheet: setattr(sheet["B10"], "value", str(sheet["B9"].value).replace("9", "10"))) == []
    assert change(asked, tmp_path, lambda sheet: sheet.insert_rows(1)) == []


def test_a_number_of_a_time_model_that_was_changed_is_told(tmp_path: Path) -> None:
    """The engine's applies, and only that one is named."""
    path = scenario.run({"version": 1, **KINDS["measured and estimate"]}).to_excel(tmp_path / "costs.xlsx")
    names = {row[0].value: row for row in openpyxl.load_workbook(path)["Time models"].iter_rows(min_row=6) if row[0].value}
    assert {name: row[2].value for name, row in names.items()} == {"bound": 1, "estimate": 2, "measured": 3}
    cell = names["measured"][2].coordinate
    said = f"Time models: the numbers of measured are not this engine's (Time models!{cell}); the engine's apply"
    assert told(edit(path, tmp_path / "typed.xlsx", {("Time models", cell): 7}), tmp_path) == [said]
