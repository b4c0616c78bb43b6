"""The status on README is not OK where the engine refuses the file, and stays OK where it does not."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from spreadsheet import needs_soffice
from workbooks import edit, header, parts, recalculate_all, row_of

import scenario
from scenario.api import bundled
from scenario.catalogs.catalog import _PARTS
from scenario.exporters.xlsx import checks as _checks
from scenario.registry import host
from scenario.tables.rows import QUANTIZED
from scenario.workbooks import check as xlsx_check

TABLE: dict[str, Any] = {
    "version": 1, "defaults": {"context": 0},
    "rows": [{"model": model, "gpu": "h100-sxm", "batch": 1, "method": method, "id": f"{model} {method}", "gamma": 4 if method == "eagle" else None}
             for model in ("llama-3-8b", "mixtral-8x7b") for method in ("vanilla", "int4", "eagle")],
}  # fmt: skip
REFUSED: dict[str, tuple[str, str, str, Any]] = {
    "alpha of 1.5": ("Assumptions", "eagle_alpha", "value", 1.5),
    "half a draft token": ("Assumptions", "eagle_gamma", "value", 2.5),
    "an alpha of text": ("Assumptions", "eagle_alpha", "value", "0,8"),
    "an mfu of 0": ("Assumptions", "default_mfu", "value", 0),
    "no mfu": ("Assumptions", "default_mfu", "value", None),
    "an unknown format": ("Assumptions", "default_kv", "value", "fp9"),
    "half a sequence": ("Scenarios", "llama-3-8b vanilla", "batch", 1.5),
    "half a token in a row": ("Scenarios", "llama-3-8b eagle", "gamma_given", 2.5),
    "weights that are quantized twice": ("Scenarios", "llama-3-8b int4", "weights_given", "mxfp4"),
    "bandwidth below 0": ("GPUs", "h100-sxm", "bandwidth_tb_s", -1),
    "bandwidth 0": ("GPUs", "h100-sxm", "bandwidth_tb_s", 0),
    "no memory": ("GPUs", "h100-sxm", "memory_gb", None),
    "a price of text": ("GPUs", "h100-sxm", "usd_per_hour", "2,69"),
    "no vocabulary": ("Models", "llama-3-8b", "vocab", 0),
    "half a layer": ("Models", "llama-3-8b", "layers", 32.5),
    "text for a width": ("Models", "llama-3-8b", "hidden", "4k"),
    "more experts per token than there are": ("Models", "mixtral-8x7b", "experts_per_token", 9),
    "no experts": ("Models", "mixtral-8x7b", "experts", 0),
    "another format": ("Formats", "fp8", "bits", 9),
    "an id that stands twice": ("Scenarios", "llama-3-8b int4", "id", "llama-3-8b vanilla"),
}
FINE: dict[str, tuple[str, str, str, Any]] = {
    "an mfu of one half": ("Assumptions", "default_mfu", "value", 0.5),
    "no price": ("GPUs", "h100-sxm", "usd_per_hour", None),
    "no FP8 rate": ("GPUs", "h100-sxm", "fp8_tflops", None),
    "other weights": ("Scenarios", "llama-3-8b vanilla", "weights_given", "mxfp4"),
    "an id in capital letters": ("Scenarios", "llama-3-8b int4", "id", "LLAMA-3-8B VANILLA"),
    "a flag": ("Assumptions", "int4_keep_head", "value", 1),
}


def place(path: Path, sheet: str, name: str, column: str) -> tuple[str, str]:
    """The cell of a named row and column."""
    key = "id" if sheet == "Scenarios" else "name"
    return sheet, f"{header(path, sheet)[column]}{row_of(path, sheet, key, name)}"


def status(path: Path) -> Any:
    """What README shows."""
    return openpyxl.load_workbook(path, data_only=True)["README"]["B4"].value


@needs_soffice
def test_the_status_tells_what_the_engine_refuses(tmp_path: Path) -> None:
    """Edited and recalculated, README says CHECK exactly where the engine refuses the file."""
    path = scenario.run(TABLE).to_excel(tmp_path / "costs.xlsx")
    edits = {**REFUSED, **FINE}
    paths = [edit(path, tmp_path / f"e{number}.xlsx", {place(path, *where[:3]): where[3]}) for number, where in enumerate(edits.values())]
    for (what, _), edited, anew in zip(edits.items(), paths, recalculate_all(paths, tmp_path), strict=True):
        assert status(anew) == ("CHECK" if what in REFUSED else "OK"), what
        if what in REFUSED:
            with pytest.raises(scenario.TableError):
                scenario.run(edited)
        else:
            scenario.run(edited)


@needs_soffice
def test_bundled_tables_are_in_order(tmp_path: Path) -> None:
    """No check of an untouched workbook finds anything, also after a recalculation."""
    paths = [scenario.run(name).to_excel(tmp_path / f"{name}.xlsx") for name in bundled()]
    assert [status(path) for path in recalculate_all(paths, tmp_path)] == ["OK"] * len(paths)


def test_the_checks_speak_of_the_engines_own_rules() -> None:
    """What the sheet checks of parts and formats is what the engine checks."""
    assert _checks.PARTS == _PARTS
    assert {"mxfp4", "nvfp4", "int4", "nf4", "q4_k_m", "published"} <= set(QUANTIZED)
    assert not {"bf16", "fp16", "fp8", "int8", "q8_0"} & set(QUANTIZED)


def test_inputs_of_catalogs_are_validated(tmp_path: Path) -> None:
    """Every blue cell of Models and GPUs has its limits, an excluded one included, and says them in words."""
    book = openpyxl.load_workbook(scenario.run(TABLE).to_excel(tmp_path / "costs.xlsx"))
    for title in ("Models", "GPUs"):
        sheet = book[title]
        covered = {area.min_col for item in sheet.data_validations.dataValidation for area in item.sqref.ranges}
        blue = {cell.column for cell in sheet[6] if cell.style == "scn.input"}
        assert blue
        assert blue <= covered
    mfu = place(tmp_path / "costs.xlsx", "Assumptions", "default_mfu", "value")[1]
    found = next(item for item in book["Assumptions"].data_validations.dataValidation if mfu in item.sqref)
    assert "above 0" in found.error
    assert f"{mfu}>0" in found.formula1


def causes(path: Path, row: int) -> dict[str, str]:
    """The causes of the differences in a row of Scenarios, by column."""
    found = xlsx_check.check(path, host.load())
    return {item.column: item.cause for item in found.differences if re.fullmatch(rf"Scenarios![A-Z]+{row}", item.place)}


def altered(path: Path, target: Path, cell: str, value: float) -> Path:
    """A copy in which a formula shows another value."""
    part = parts(path)["Scenarios"]
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as out:
        for name in source.namelist():
            text = source.read(name)
            if name == part:
                text, count = re.subn(rf'(<c r="{cell}"[^>]*><f>[^<]*</f><v>)[^<]*'.encode(), rf"\g<1>{value}".encode(), text)
                assert count == 1
            out.writestr(name, text)
    return target


def test_check_says_no_cause_that_is_not_so(tmp_path: Path) -> None:
    """A value altered by hand is no edited input; an input and an assumption that both changed are both named."""
    path = scenario.run(TABLE).to_excel(tmp_path / "costs.xlsx")
    row = row_of(path, "Scenarios", "id", "llama-3-8b eagle")
    letters = header(path, "Scenarios")
    found = causes(altered(path, tmp_path / "altered.xlsx", f"{letters['tpot_ms']}{row}", 9.75), row)
    assert found == {"tpot_ms": "the cell shows another value than its formula gives; recalculate the file"}
    alpha = place(path, "Assumptions", "eagle_alpha", "value")
    found = causes(edit(path, tmp_path / "both.xlsx", {("Scenarios", f"{letters['batch']}{row}"): 3, alpha: 0.5}), row)
    assert found["tokens_per_round"] == f"changed assumption, not recalculated: {'!'.join(alpha)}"
    assert found["tokens_per_s"] == ("an input of the row was edited, and the file not recalculated: batch; "
                                     f"and changed assumption, not recalculated: {'!'.join(alpha)}")  # fmt: skip
    price = place(path, "GPUs", "h200", "usd_per_hour")
    assert causes(edit(path, tmp_path / "other.xlsx", {price: 99}), row) == {}


@needs_soffice
def test_check_knows_what_was_done_to_catalog_sheets(tmp_path: Path) -> None:
    """A method's number and a model without formulas are the causes of what follows from them, also after a recalculation."""
    path = scenario.run(TABLE).to_excel(tmp_path / "costs.xlsx")
    row = row_of(path, "Scenarios", "id", "llama-3-8b eagle")
    number = place(path, "Methods", "eagle", "draft_no")
    method = edit(path, tmp_path / "method.xlsx", {number: 1})
    book = openpyxl.load_workbook(path)
    sheet = book["Models"]
    last = sheet.max_row + 1
    for column in range(1, 60):
        cell = sheet.cell(row_of(path, "Models", "name", "llama-3-8b"), column)
        if cell.data_type != "f":
            sheet.cell(last, column, "mine" if column == 1 else cell.value)
    book["Scenarios"][f"B{row}"] = "mine"
    book.save(tmp_path / "model.xlsx")
    by_method, by_model = recalculate_all([method, tmp_path / "model.xlsx"], tmp_path)
    found = causes(by_method, row)
    assert found
    assert all(cause.startswith(f"{'!'.join(number)} does not hold the engine's number") for cause in found.values())
    told = {item.cause for item in xlsx_check.check(by_model, host.load()).differences if item.row == "Models: entries without formulas"}
    assert told == {"this check finds something"}
    found = causes(by_model, row)
    assert found
    assert all(cause.startswith("the formulas of mine are missing from Models!") for cause in found.values())
    assert status(by_model) == "CHECK"
