"""Long sheets are read by their inputs, with the formulas of rows that are alike compared once: nothing is missed by that."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from openpyxl.utils import get_column_letter
from workbooks import header, parts

import scenario
from scenario.common.errors import TableError
from scenario.registry import host
from scenario.workbooks import read_back as xlsx_table
from scenario.workbooks import row_formulas as xlsx_rows

ROWS = 1_120
LAST = 5 + ROWS


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Enough rows for the exporter to write each formula once."""
    grid = {"model": ["llama-3-8b", "qwen3-8b"], "gpu": ["h100-sxm"], "batch": list(range(1, 81)),
            "method": ["vanilla", "small-model", "eagle", "medusa", "ngram", "mtp", "int4+eagle"]}  # fmt: skip
    path = scenario.run({"version": 1, "defaults": {"context": 512}, "grid": grid}).to_excel(tmp_path_factory.mktemp("long") / "long.xlsx")
    with zipfile.ZipFile(path) as book:
        assert book.read(parts(path)["Scenarios"]).count(b'<f t="shared" si="') > ROWS * 50
    return path


@pytest.fixture(params=["compared", "counted"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways of reading: that of sheets up to 20,000 rows, and that of longer ones."""
    if request.param == "counted":
        monkeypatch.setattr(xlsx_rows, "WHOLE", 0)
    return str(request.param)


@pytest.fixture
def change(written: Path, tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """A copy with cells replaced by XML, or put at the end of their row: keys are ``header row``, values what follows the address."""
    letters = header(written, "Scenarios")
    letters["beyond"] = get_column_letter(len(letters) + 3)

    def save(cells: dict[str, str]) -> Path:
        with zipfile.ZipFile(written) as source, zipfile.ZipFile(tmp_path / "changed.xlsx", "w", zipfile.ZIP_DEFLATED) as out:
            for name in source.namelist():
                text = source.read(name).decode() if name.endswith(".xml") else ""
                if name == parts(written)["Scenarios"]:
                    for place, inside in cells.items():
                        column, row = place.split()
                        address = f"{letters[column]}{row}"
                        cell = f'<c r="{address}"{inside}</c>'
                        text, done = re.subn(rf'<c r="{address}"[^>]*?(?:/>|>.*?</c>)', lambda _, cell=cell: cell, text, count=1, flags=re.DOTALL)
                        if not done:
                            text, done = re.subn(rf'(<row r="{row}".*?)</row>', lambda m, cell=cell: f"{m[1]}{cell}</row>", text, count=1, flags=re.DOTALL)
                        assert done == 1
                out.writestr(name, text.encode() if text else source.read(name))
        return tmp_path / "changed.xlsx"

    return save


def read(path: Path, overrides: str = "refuse") -> tuple[Any, list[str], list[str]]:
    """The table that a workbook holds (None if refused), what was said beside it, and its faults by place."""
    loaded = host.load()
    try:
        table, found = xlsx_table.load(path, loaded, overrides=overrides)
    except TableError as error:
        return None, [], [f"{problem.place}: {problem.message}" for problem in error.problems]
    return table, found.notes, []


def place(written: Path, name: str, row: int) -> str:
    """``Scenarios!K900``"""
    return f"Scenarios!{header(written, 'Scenarios')[name]}{row}"


def test_all_rows_come_back_as_they_were(written: Path, way: str) -> None:
    """Untouched, the sheet gives the same rows and the same results, and nothing is said."""
    table, notes, faults = read(written)
    assert (notes, faults) == ([], [])
    assert table.rows.height == ROWS
    again = scenario.run(str(written)).full
    first = scenario.run({"version": 1, "defaults": {"context": 512}, "rows": [
        {"model": model, "gpu": "h100-sxm", "batch": batch, "method": method}
        for model in ("llama-3-8b", "qwen3-8b") for batch in range(1, 81)
        for method in ("vanilla", "small-model", "eagle", "medusa", "ngram", "mtp", "int4+eagle")
    ]}).full  # fmt: skip
    assert again["tpot_ms"].equals(first["tpot_ms"])


@pytest.mark.parametrize("row", [6, 7, 8, 500, LAST])
def test_a_value_over_a_formula_is_found_wherever_it_stands(row: int, written: Path, way: str, change: Any) -> None:
    """In the first rows, in the middle and in the last row, with its address."""
    _, _, faults = read(change({f"tokens_per_s {row}": "><v>3</v>"}))
    assert faults == [f"{place(written, 'tokens_per_s', row)}: 3 is typed over the formula of 'tokens_per_s'"]


def test_an_input_that_is_a_formula_keeps_its_value(written: Path, way: str, change: Any) -> None:
    """The value of a formula in an input is taken and said, also where the row's other formulas are counted only."""
    table, notes, _ = read(change({"batch 900": "><f>2*20</f><v>40</v>"}))
    assert table.rows["batch"][894] == 40
    assert any(note.startswith(f"{place(written, 'batch', 900)}: the value 40 of a formula") for note in notes)


def test_one_formula_too_few_and_one_too_many_in_a_row_are_both_found(written: Path, way: str, change: Any) -> None:
    """A row that has as many formulas as it should, in the wrong places, is not taken for one in order."""
    for name in ("status", "tokens_per_s", "weight_gb"):  # left of, among and right of the inputs
        path = change({"batch 900": "><f>2*20</f><v>40</v>", f"{name} 900": "><v>3</v>"})
        _, _, faults = read(path)
        assert faults == [f"{place(written, name, 900)}: 3 is typed over the formula of '{name}'"]


def test_a_formula_of_ones_own_is_found_where_it_begins(written: Path, way: str, change: Any) -> None:
    """A formula that somebody wrote and filled down is one message that names where it begins."""
    other = {f"tpot_ms {row}": '><f t="shared" si="900"/><v>2</v>' for row in range(801, 811)}
    column = header(written, "Scenarios")["tpot_ms"]
    _, _, faults = read(change({"tpot_ms 800": f'><f t="shared" ref="{column}800:{column}810" si="900">E800*2</f><v>2</v>', **other}))
    assert faults[0].startswith(f"{place(written, 'tpot_ms', 800)}")
    assert ": the formula of 'tpot_ms' was changed" in faults[0]
    assert len(faults) == 1


def test_the_formula_of_another_column_is_found(written: Path, change: Any) -> None:
    """A cell that shares the formula of a column it does not belong to is a changed formula."""
    with zipfile.ZipFile(written) as book:
        text = book.read(parts(written)["Scenarios"]).decode()
    column = header(written, "Scenarios")["round_ms"]
    run = re.search(rf'<c r="{column}900"[^>]*><f t="shared" si="(\d+)"/>', text)
    assert run
    _, _, faults = read(change({"tpot_ms 900": f'><f t="shared" si="{run[1]}"/><v>2</v>'}))
    assert len(faults) == 1
    assert faults[0].startswith(f"{place(written, 'tpot_ms', 900)}: the formula of 'tpot_ms' was changed")


def test_a_note_beside_the_table_is_not_passed_over(written: Path, way: str, change: Any) -> None:
    """A cell outside the columns with a header is named, in whichever row it stands."""
    _, notes, _ = read(change({f"beyond {LAST - 3}": ' t="inlineStr"><is><t>ask Kim</t></is>'}))
    assert len(notes) == 1
    assert f"{get_column_letter(len(header(written, 'Scenarios')) + 3)}{LAST - 3}" in notes[0]


def test_merged_cells_below_are_named(written: Path, way: str, tmp_path: Path) -> None:
    """What stands below the rows is looked at as well."""
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(tmp_path / "merged.xlsx", "w") as out:
        for name in source.namelist():
            data = source.read(name)
            if name == parts(written)["Scenarios"]:
                data = data.replace(b"</sheetData>", b'</sheetData><mergeCells count="1"><mergeCell ref="A900:B901"/></mergeCells>', 1)
            out.writestr(name, data)
    _, _, faults = read(tmp_path / "merged.xlsx")
    assert faults == ["Scenarios!A900:B901: merged cells: only the first of them holds a value"]


def test_a_value_that_is_kept_stands_in_its_row(written: Path, way: str, change: Any) -> None:
    """With --keep-overrides the value belongs to the very row in which it was typed."""
    table, notes, _ = read(change({"tokens_per_round 700": "><v>3</v>"}), overrides="keep")
    assert table.rows.height == ROWS
    assert [index for index, value in enumerate(table.rows["tokens_per_round_override"]) if value is not None] == [694]
    assert any("its value 3 is kept" in note for note in notes)
