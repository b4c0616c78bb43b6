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
from openpyxl.formatting.rule import CellIsRule
from openpyxl.styles import PatternFill
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation
from spreadsheet import needs_soffice, recalculate
from workbooks import edit, header, row_of

import scenario
from scenario.cli.commands import main
from scenario.workbooks.form.marks import LAID_OUT
from scenario.workbooks.form.witness import BEGIN, Witness, places, runs

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
    """What ``scenario run`` says of a workbook, without the file's name, what it says of looks, and the last line."""
    done = CliRunner().invoke(main, ["run", str(path), "-o", str(path.parent / "new.xlsx")])
    assert done.exit_code == 0, done.output
    lines = [line.removeprefix(f"{path}: ") for line in done.stderr.splitlines() if not line.startswith("wrote ")]
    assert lines.count(LAID_OUT) <= 1
    return [line for line in lines if line != LAID_OUT]


def changed(written: Path, tmp_path: Path, act: Callable[[Any], None]) -> Path:
    """A copy saved by openpyxl after ``act`` had its way."""
    book = openpyxl.load_workbook(written)
    act(book)
    book.save(tmp_path / "changed.xlsx")
    return tmp_path / "changed.xlsx"


KINDS: dict[str, dict[str, Any]] = {
    "plain": TABLE,
    "served": {
        "version": 1, "title": "Served; 'estimated'", "defaults": {"gpu": "h100-sxm", "engine": "vllm", "isl": 1000, "osl": 200},
        "grid": {"model": ["llama-3.1-8b", "qwen3-8b"], "batch": [1, 8], "method": ["vanilla", "eagle"]}, "time_model": "estimate",
        "columns": {"margin": {"formula": "3 - usd_per_million_tokens", "unit": "$", "doc": "a 'b' : c"}}, "where": "batch < 100", "sort": "-tpot_ms",
    },
    "own catalog": {
        "version": 1, "defaults": {"context": 512, "gpu": "h100-sxm"}, "prices": {"h100-sxm": {"usd_per_hour": 1.5, "source": "our contract"}},
        "models": {"mine": {"hidden": 4096, "layers": 40, "heads": 32, "kv_heads": 8, "head_dim": 128, "ffn": 14336, "vocab": 128256, "source": "ours"}},
        "profiles": {"a": [0.8, 0.6, 0.4], "b": {"lengths": [1.7, 2.2], "source": "a log", "doc": "two"}},
        "curves": {"kernel": {"points": [[1, 1.0], [64, 1.5], [256, 3.0]], "source": "made up"}},
        "columns": {"slowed_ms": "step_ms * curve(\"kernel\", batch)"},
        "grid": {"model": ["mine"], "batch": [1, 256], "method": ["vanilla", "eagle"], "acceptance": ["a"], "gamma": [3]},
        "rows": [{"model": "mine", "batch": 4, "method": "small-model", "draft": "llama-3.2-1b", "alpha": 0.7, "id": "_x0041_ & <b>"}],
    },
}  # fmt: skip


@needs_soffice
@pytest.mark.parametrize("kind", KINDS)
def test_an_untouched_file_has_nothing_to_tell(kind: str, tmp_path: Path) -> None:
    """As written, or saved by openpyxl or LibreOffice, of several kinds of tables: no cell is taken for somebody's."""
    path = scenario.run(KINDS[kind]).to_excel(tmp_path / "costs.xlsx")
    assert told(path) == []
    assert told(changed(path, tmp_path, lambda book: None)) == []
    assert told(recalculate(path, tmp_path)) == []
    assert told((tmp_path / "recalculated" / "new.xlsx").rename(tmp_path / "second.xlsx")) == []


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
    "in the first row": ("Scenarios", "T1", "mine", "Scenarios: not carried over, as this sheet is made anew: T1"),
    "another title": ("Scenarios", "A1", "mine", "Scenarios: not carried over, as this sheet is made anew: A1"),
    "above a header": ("Scenarios", "A3", "mine", "Scenarios: not carried over, as this sheet is made anew: A3"),
    "a number above a header": ("Models", "E1", 7, "Models: not carried over, as this sheet is made anew: E1"),
    "a formula above a header": ("GPUs", "B4", "=1+1", "GPUs: not carried over, as this sheet is made anew: B4"),
    "between title and table": ("Assumptions", "B3", "mine", "Assumptions: not carried over, as this sheet is made anew: B3"),
    "above the profiles": ("Profiles", "A3", "mine", "Profiles: not carried over, as this sheet is made anew: A3"),
    "a profile without numbers": ("Profiles", "A60", "mine", "Profiles: not carried over, as this sheet is made anew: A60"),
    "below the formats": ("Formats", "A60", "mine", "Formats: not carried over, as this sheet is made anew: A60"),
    "a format's name": ("Formats", "B7", "mine", "Formats: not carried over, as this sheet is made anew: B7"),
    "a number below the formats": ("Formats", "C60", 4.5, "Formats: not carried over, as this sheet is made anew: C60"),
    "a method's title": ("Methods", "B7", "mine", "Methods: not carried over, as this sheet is made anew: B7"),
    "below the methods": ("Methods", "A90", "mine", "Methods: not carried over, as this sheet is made anew: A90"),
    "an assumption's meaning": ("Assumptions", "F8", "mine", "Assumptions: not carried over, as this sheet is made anew: F8"),
    "an assumption's source": ("Assumptions", "H8", "our logs", "Assumptions: not carried over, as this sheet is made anew: H8"),
    "an assumption's unit": ("Assumptions", "D8", "s", "Assumptions: not carried over, as this sheet is made anew: D8"),
    "a formula's meaning": ("Formulas", "H8", "mine", "Formulas: not carried over, as this sheet is made anew: H8"),
    "on Lists": ("Lists", "H8", "mine", "Lists: not carried over, as this sheet is made anew: H8"),
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
    for sheet in ("README", "Scenarios", "GPUs"):
        assert told(changed(written, tmp_path, lambda book, sheet=sheet: book[sheet].insert_rows(1))) == []


def test_what_is_typed_beside_prices_and_models_comes_along(written: Path, tmp_path: Path) -> None:
    """Titles and sources of models, GPUs, prices and profiles; a price keeps its source when it is changed once more."""
    gpus, models, profiles = (header(written, sheet) for sheet in ("GPUs", "Models", "Profiles"))
    gpu, model = row_of(written, "GPUs", "name", "h100-sxm"), row_of(written, "Models", "name", "qwen3-8b")
    typed = {
        ("GPUs", f"{gpus['usd_per_hour']}{gpu}"): 1.25, ("GPUs", f"{gpus['price_source']}{gpu}"): "our contract", ("GPUs", f"B{gpu}"): "our H100",
        ("GPUs", f"{gpus['price_source']}{gpu + 1}"): "offer of May", ("GPUs", f"{gpus['source']}{gpu}"): "our test",
        ("Models", f"B{model}"): "my Qwen", ("Models", f"{models['source']}{model}"): "config.json of ours",
        ("Profiles", f"{profiles['source']}{row_of(written, 'Profiles', 'profile', 'chat')}"): "our logs",
    }  # fmt: skip

    def act(book: Any) -> None:
        for (sheet, cell), value in typed.items():
            book[sheet][cell].value = value

    assert told(changed(written, tmp_path, act)) == []
    book = openpyxl.load_workbook(tmp_path / "new.xlsx")
    assert {place: book[place[0]][place[1]].value for place in typed} == typed
    again = edit(tmp_path / "new.xlsx", tmp_path / "again.xlsx", {("GPUs", f"{gpus['usd_per_hour']}{gpu}"): 1.5})
    assert told(again) == []
    sheet = openpyxl.load_workbook(tmp_path / "new.xlsx")["GPUs"]
    assert [sheet[f"{gpus[name]}{gpu}"].value for name in ("usd_per_hour", "price_source")] == [1.5, "our contract"]


def test_rows_that_come_back_are_told(written: Path, tmp_path: Path) -> None:
    """A model or GPU whose row is deleted is in the new file again."""
    def act(book: Any) -> None:
        for sheet, name in (("Models", "gpt-oss-120b"), ("GPUs", "a100-80gb"), ("Profiles", "chat")):
            page = book[sheet]
            for row in page.iter_rows(min_row=6):
                if row[0].value == name:
                    for cell in row:
                        cell.value = None

    said = told(changed(written, tmp_path, act))
    for sheet, name in (("Models", "gpt-oss-120b"), ("GPUs", "a100-80gb"), ("Profiles", "chat")):
        assert f"{sheet}: there is no row for {name}; what the engine or the sheet Source says of it comes back" in said


@needs_soffice
@pytest.mark.parametrize("by", ["openpyxl", "LibreOffice"])
def test_names_are_told_and_looks_in_one_line(by: str, written: Path, tmp_path: Path) -> None:
    """Names of somebody's are told by name; of colours, formats and what is hidden one line says that they are made anew."""
    def act(book: Any) -> None:
        sheet = book["Scenarios"]
        sheet["B7"].fill = PatternFill("solid", fgColor="00FF00")
        sheet.conditional_formatting.add("M6:M9", CellIsRule(operator="greaterThan", formula=["10"], fill=PatternFill(bgColor="FF0000")))
        sheet.column_dimensions["F"].hidden = True
        book["Models"].sheet_state = "hidden"
        book.defined_names["my_name"] = DefinedName("my_name", attr_text="Scenarios!$E$6")

    path = changed(written, tmp_path, act)
    said = told(path if by == "openpyxl" else recalculate(path, tmp_path))
    assert said == ["names that are not the workbook's own are not carried over: my_name"]


@needs_soffice
@pytest.mark.parametrize("by", ["openpyxl", "LibreOffice"])
def test_the_looks_of_an_own_sheet(by: str, written: Path, tmp_path: Path) -> None:
    """Merged cells, what is frozen, hidden, or read from the right come along; comments are told by their cells."""
    def act(book: Any) -> None:
        sheet = book.create_sheet("Mine")
        sheet["B2"].value = "merged"
        sheet["C5"].value = 3
        sheet.merge_cells("B2:C3")
        sheet.freeze_panes = "B4"
        sheet.sheet_view.rightToLeft = True
        sheet.sheet_state = "hidden"
        rule = DataValidation(type="list", formula1='"a,b"')
        rule.add("E1")
        sheet.add_data_validation(rule)
        sheet.conditional_formatting.add("A1:A9", CellIsRule(operator="greaterThan", formula=["1"], fill=PatternFill(bgColor="FF0000")))
        sheet["C5"].comment = Comment("why?", "Kim")

    path = changed(written, tmp_path, act)
    assert told(path if by == "openpyxl" else recalculate(path, tmp_path)) == [
        "the sheet 'Mine' is carried over: values, formulas, number formats, widths, merged cells; "
        "not its fonts, colours, conditional formats or validations",
        "Mine: the comments at C5 are not carried over",
    ]
    new = next(iter(path.parent.rglob("new.xlsx")))
    sheet = openpyxl.load_workbook(new)["Mine"]
    assert [str(area) for area in sheet.merged_cells.ranges] == ["B2:C3"]
    assert (sheet["B2"].value, sheet["C5"].value) == ("merged", 3)
    assert (bool(sheet.sheet_view.rightToLeft), sheet.sheet_state) == (True, "hidden")
    assert sheet.freeze_panes == ("B4" if by == "openpyxl" else None)  # LibreOffice without a window keeps no panes itself


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
