"""What other programs say of the workbook: a validator of the file format, and Gnumeric as a third engine."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import warnings
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from workbooks import same

import scenario
from scenario.exporters.xlsx.splice import _FONT_ORDER

BUNDLED = ("starter", "series", "article-batch")
STATUS = {("Answer", "B3"), ("README", "B4")}
"""Cells that show what Checks says."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Some bundled tables as workbooks."""
    folder = tmp_path_factory.mktemp("programs")
    return {name: scenario.run(name).to_excel(folder / f"{name}.xlsx") for name in BUNDLED}


@pytest.mark.skipif(shutil.which("openxml-audit") is None, reason="openxml-audit is not installed")
@pytest.mark.parametrize("name", BUNDLED)
def test_every_part_is_valid(name: str, written: dict[str, Path]) -> None:
    """openxml-audit finds no error by the schemas of ECMA-376 and the rules of Office."""
    done = subprocess.run(["openxml-audit", "-m", "0", "-o", "json", str(written[name])], capture_output=True, text=True, check=False)
    (found,) = json.loads(done.stdout)
    assert [item for item in found["errors"] if item["severity"] == "error"] == []
    assert found["valid"] is True


@pytest.mark.parametrize("name", BUNDLED)
def test_what_the_validator_once_found(name: str, written: dict[str, Path]) -> None:
    """The parts of each font stand in the order of CT_Font, and each scatter chart says its style."""
    with zipfile.ZipFile(written[name]) as book:
        fonts = re.findall(r"<font>(.*?)</font>", book.read("xl/styles.xml").decode())
        charts = [book.read(part).decode() for part in book.namelist() if part.startswith("xl/charts/chart")]
    orders = [[_FONT_ORDER.index(part) for part in re.findall(r"<(\w+)", font)] for font in fonts]
    assert len(orders) > 10
    assert all(order == sorted(order) for order in orders)
    assert charts
    assert all(text.count("<scatterChart>") == text.count("<scatterStyle ") for text in charts)


def cells(path: Path) -> dict[tuple[str, str], Any]:
    """What each cell shows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Gnumeric writes no default style
        book = openpyxl.load_workbook(path, data_only=True)
    return {(sheet.title, cell.coordinate): cell.value for sheet in book.worksheets for row in sheet.iter_rows() for cell in row}


@pytest.mark.skipif(shutil.which("ssconvert") is None, reason="Gnumeric (ssconvert) is not installed")
@pytest.mark.parametrize("name", BUNDLED)
def test_gnumeric_computes_the_same(name: str, written: dict[str, Path], tmp_path: Path) -> None:
    """Recalculated by Gnumeric each formula gives the engine's value; Checks aside, whose questions over ranges it does not know."""
    target = tmp_path / "gnumeric.xlsx"
    subprocess.run(["ssconvert", "--recalc", str(written[name]), str(target)], capture_output=True, check=True)
    shown, anew = cells(written[name]), cells(target)
    book = openpyxl.load_workbook(written[name])
    formulas = [(sheet.title, cell.coordinate) for sheet in book.worksheets for row in sheet.iter_rows() for cell in row if cell.data_type == "f"]
    compared = [place for place in formulas if place[0] != "Checks" and place not in STATUS]
    assert len(compared) > 1000
    assert [(place, shown[place], anew.get(place)) for place in compared if not same(shown[place] or None, anew.get(place) or None)] == []


@pytest.mark.parametrize("name", [*BUNDLED, "request-cost", "image-cost"])
def test_no_formula_is_longer_than_one_can_read(name: str) -> None:
    """No formula of a bundled table has more than 1,000 characters, and none reads a list in braces, which not every program knows."""
    stream = io.BytesIO()
    result = scenario.run(name)
    result.host.exporters["xlsx"].write(result, stream)
    found = [str(cell.value) for sheet in openpyxl.load_workbook(stream).worksheets for row in sheet.iter_rows() for cell in row if cell.data_type == "f"]
    assert len(found) > 1000
    assert max(map(len, found)) <= 1000
    assert not any("{" in re.sub(r'"[^"]*"', "", text) for text in found)
