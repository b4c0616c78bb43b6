"""Nothing that somebody put into a workbook is lost without a word: what cannot be carried over is told by its cell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from spreadsheet import needs_soffice, recalculate
from workbooks import edit

import scenario
from scenario.cli import main
from scenario.xlsx_left import BEGIN, Witness, places, runs

TABLE: dict[str, Any] = {
    "version": 1, "title": "left", "defaults": {"context": 512},
    "grid": {"model": ["llama-3-8b", "qwen3-8b"], "gpu": ["h100-sxm", "h200"], "batch": [1, 8, 64], "method": ["vanilla", "eagle", "ngram"]},
    "profiles": {"chat": {"rates": [0.8, 0.6], "source": "made up"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table as a workbook."""
    return scenario.run(TABLE).to_excel(tmp_path_factory.mktemp("left") / "costs.xlsx")


def told(path: Path) -> list[str]:
    """What ``scenario run`` says of a workbook, without the file's name and the last line."""
    done = CliRunner().invoke(main, ["run", str(path), "-o", str(path.parent / "new.xlsx")])
    assert done.exit_code == 0, done.output
    return [line.removeprefix(f"{path}: ") for line in done.stderr.splitlines() if not line.startswith("wrote ")]


def changed(written: Path, tmp_path: Path, act: Callable[[Any], None]) -> Path:
    """A copy saved by openpyxl after ``act`` had its way."""
    book = openpyxl.load_workbook(written)
    act(book)
    book.save(tmp_path / "changed.xlsx")
    return tmp_path / "changed.xlsx"


@needs_soffice
def test_an_untouched_file_has_nothing_to_tell(written: Path, tmp_path: Path) -> None:
    """As written, or saved by openpyxl or LibreOffice: no cell is taken for somebody's."""
    assert told(written) == []
    assert told(changed(written, tmp_path, lambda book: None)) == []
    assert told(recalculate(written, tmp_path)) == []


CELLS: dict[str, tuple[str, str, Any, str]] = {
    "a note on README": ("README", "D3", "ask Kim", "README: not carried over, as this sheet is made anew: D3"),
    "a changed text on README": ("README", "A2", "Our numbers.", "README: not carried over, as this sheet is made anew: A2"),
    "a formula on Summary": ("Summary", "L20", "=C5*2", "Summary: not carried over, as this sheet is made anew: L20"),
    "a number on Summary": ("Summary", "L20", 17.25, "Summary: not carried over, as this sheet is made anew: L20"),
    "a note on Checks": ("Checks", "F9", "see mail", "Checks: not carried over, as this sheet is made anew: F9"),
    "a note beside the charts": ("Charts", "P3", "nice", "Charts: not carried over, as this sheet is made anew: P3"),
    "a point of a chart": ("Chart data", "Z3", 3.5, "Chart data: not carried over, as this sheet is made anew: Z3"),
    "beside the assumptions": ("Assumptions", "K9", "why?", "Assumptions: not carried over, as this sheet is made anew: K9"),
    "below the GPUs": ("GPUs", "C70", 5, "GPUs!C70: not carried over, as its row has no name"),
    "below the profiles": ("Profiles", "D40", 0.5, "Profiles!D40: not carried over, as its row has no profile"),
    "beside the methods": ("Methods", "J8", "?", "Methods: not carried over, as this sheet is made anew: J8"),
    "beside the formulas": ("Formulas", "M8", "?", "Formulas: not carried over, as this sheet is made anew: M8"),
    "on Source": ("Source", "C2", "?", "Source: not carried over, as this sheet is made anew: C2"),
}


@pytest.mark.parametrize("what", CELLS)
def test_a_cell_that_is_left_behind_is_named(what: str, written: Path, tmp_path: Path) -> None:
    """Its sheet and address are said, and nothing else."""
    sheet, cell, value, said = CELLS[what]
    assert told(changed(written, tmp_path, lambda book: setattr(book[sheet][cell], "value", value))) == [said]


def test_a_formula_on_summary_that_was_typed_over_is_named(written: Path, tmp_path: Path) -> None:
    """A number in place of a formula of Summary does not come along."""
    assert told(edit(written, tmp_path / "typed.xlsx", {("Summary", "C12"): 99})) == ["Summary: not carried over, as this sheet is made anew: C12"]


def test_a_row_put_in_above_adds_nothing(written: Path, tmp_path: Path) -> None:
    """What has only moved is not taken for new."""
    assert told(changed(written, tmp_path, lambda book: book["README"].insert_rows(1))) == []


def test_comments_and_charts_are_told(written: Path, tmp_path: Path) -> None:
    """A comment on a cell, and a chart on one of the workbook's own sheets."""
    def act(book: Any) -> None:
        book["Scenarios"]["F9"].comment = Comment("why so slow?", "Kim")
        chart = BarChart()
        chart.add_data(Reference(book["GPUs"], min_col=3, min_row=5, max_row=9))
        book["Charts"].add_chart(chart, "P40")

    said = told(changed(written, tmp_path, act))
    assert "Scenarios: the comments at F9 are not carried over" in said
    assert "Charts: a chart or picture added to it cannot be carried over" in said


def test_what_summary_was_made_to_show_it_shows_again(written: Path, tmp_path: Path) -> None:
    """The choices of its drop-downs come along; one that no row has any more is said."""
    labels = [row[0] for row in openpyxl.load_workbook(written)["Summary"].iter_rows(min_row=4, max_row=9, max_col=1, values_only=True)]
    places = {name: f"C{4 + labels.index(name)}" for name in ("model", "GPU", "batch")}
    path = edit(written, tmp_path / "chosen.xlsx", {
        ("Summary", places["model"]): "qwen3-8b", ("Summary", places["GPU"]): "h200", ("Summary", places["batch"]): 64,
    })  # fmt: skip
    assert told(path) == []
    new = openpyxl.load_workbook(tmp_path / "new.xlsx", data_only=True)["Summary"]
    assert [new[places[name]].value for name in ("model", "GPU", "batch")] == ["qwen3-8b", "h200", 64]
    shown = {new.cell(row, 1).value: new.cell(row, 3).value for row in range(8, new.max_row + 1)}
    frame = scenario.run(TABLE).frame.filter(model="qwen3-8b", gpu="h200", batch=64, method="vanilla")
    assert shown["TPOT"] == pytest.approx(frame["tpot_ms"][0], rel=1e-12)
    path = edit(written, tmp_path / "other.xlsx", {("Summary", places["batch"]): 77})
    assert told(path) == [f"Summary!{places['batch']}: no row has batch 77; the Summary of the new file begins with another"]


def test_a_damaged_line_is_passed_over(written: Path, tmp_path: Path) -> None:
    """What Source says of the sheets may be changed at will: then it tells less, or more, and nothing fails."""
    row = row_of_line(written, "Summary")
    for text in (BEGIN + "{", BEGIN + "[1]", BEGIN + '{"sheet": "Summary", "width": "x", "comments": 1, "drawings": {}}', BEGIN + "[" * 5000, "# mine"):
        told(changed(written, tmp_path, lambda book, text=text: setattr(book["Source"].cell(row, 1), "value", text)))


def row_of_line(path: Path, sheet: str) -> int:
    """The row of Source that says what stood on a sheet."""
    lines = openpyxl.load_workbook(path)["Source"].iter_rows(max_col=1, values_only=True)
    return next(row for row, (text,) in enumerate(lines, 1) if str(text).startswith(f'{BEGIN}{{"sheet": "{sheet}"'))


@given(st.lists(st.tuples(st.sampled_from(["A", "B", "ZZ"]), st.integers(1, 60)), max_size=40))
def test_places_in_short_are_the_places(cells: list[tuple[str, int]]) -> None:
    """Runs are written out to the very cells that they stand for."""
    wanted = {f"{column}{row}" for column, row in cells}
    assert set(places(runs(wanted))) == wanted


def test_a_witness_comes_back_as_it_was() -> None:
    """Its line holds all of it."""
    one = Witness("Summary", 8, {Witness.digest("a"), Witness.digest(1.5)}, {"C12", "C13"}, {"A5"}, 2, {"C4": "model"})
    assert Witness.of(one.line()) == one
    bare = Witness("GPUs", 3, None, set(), set(), 0)
    assert Witness.of(bare.line()) == bare


def test_the_sheet_formulas_may_be_sorted(written: Path, tmp_path: Path) -> None:
    """Its filter buttons invite to it: the rows of Scenarios are as before, and a formula that was changed is still found."""
    def act(book: Any, cell: str = "") -> None:
        sheet = book["Formulas"]
        rows = sorted(([cell.value for cell in row] for row in sheet.iter_rows(min_row=6)), key=lambda row: str(row[1]), reverse=True)
        for number, values in enumerate(rows, 6):
            for column, value in enumerate(values, 1):
                sheet.cell(number, column).value = value
                sheet.cell(number, column).data_type = "s"
        if cell:
            book["Scenarios"][cell].value = "=E7*2"

    assert told(changed(written, tmp_path, act)) == []
    column = next(cell.coordinate for cell in openpyxl.load_workbook(written)["Scenarios"][5] if cell.value == "tpot_ms").rstrip("5")
    done = CliRunner().invoke(main, ["run", str(changed(written, tmp_path, lambda book: act(book, f"{column}7"))), "-o", str(tmp_path / "new.xlsx")])
    assert done.exit_code == 2
    assert f"Scenarios!{column}7: the formula of 'tpot_ms' was changed" in done.stderr
    assert done.stderr.count("was changed") == 1
