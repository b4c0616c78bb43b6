"""What an analyst added to a workbook means the same in the new file, or is said not to."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from click.testing import CliRunner
from openpyxl.utils import get_column_letter
from spreadsheet import needs_soffice, recalculate
from workbooks import header

import scenario
from scenario.cli.commands import main
from scenario.workbooks.form.marks import OldSheet, unmark
from scenario.workbooks.marking import Marker

TABLE: dict[str, Any] = {
    "version": 1, "title": "extras", "defaults": {"context": 512},
    "grid": {"model": ["llama-3-8b"], "gpu": ["h100-sxm"], "batch": [1, 8, 64, 128], "method": ["vanilla"]},
}  # fmt: skip
LAST = 9
"""The last row of Scenarios."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table as a workbook."""
    return scenario.run(TABLE).to_excel(tmp_path_factory.mktemp("extras") / "costs.xlsx")


@pytest.fixture(scope="module")
def own(written: Path) -> Callable[[int], str]:
    """The letters of the n-th column beside the table, from 1."""
    width = len(header(written, "Scenarios"))
    return lambda n: get_column_letter(width + n)


def changed(written: Path, tmp_path: Path, act: Callable[[Any], None]) -> Path:
    """A copy saved by openpyxl, which keeps no values of formulas."""
    book = openpyxl.load_workbook(written)
    act(book)
    book.save(tmp_path / "changed.xlsx")
    return tmp_path / "changed.xlsx"


def told(path: Path) -> str:
    """What ``scenario run`` says of a workbook; the new one is ``new.xlsx`` beside it."""
    done = CliRunner().invoke(main, ["run", str(path), "-o", str(path.parent / "new.xlsx")])
    assert done.exit_code == 0, done.output
    return done.stderr


def new(path: Path, **how: Any) -> Any:
    """The new workbook."""
    return openpyxl.load_workbook(path.parent / "new.xlsx", **how)


# -- references -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "Scenarios!"])
@pytest.mark.parametrize("place", ["A6", "$A6", "A$6", "$A$6", "A6:B7", "$A6:B$7", "A$6:$B7", "$A$6:$B$7", "A:B", "$A:B", "A:$B", "$A:$B"])
def test_what_is_fixed_of_an_address_stays_fixed(prefix: str, place: str) -> None:
    """Each $ stands before what it stood before, wherever that has moved to."""
    sheet = OldSheet("Scenarios", {"A": "id", "B": "model"}, {6: "0", 7: "1"}, 5)
    text = Marker({"scenarios": sheet}).mark(f"SUM({prefix}{place})+1", None if prefix else sheet)
    assert text is not None
    assert unmark(text, lambda _, column, row: ({"id": "D", "model": "E"}[column], {"0": 16, "1": 17}.get(row, 5))) == (
        "SUM(" + prefix + place.replace("A", "D").replace("B", "E").replace("6", "16").replace("7", "17") + ")+1"
    )


@pytest.mark.parametrize("text", ["SUM(6:6)", "SUM($6:7)", "SUM(Scenarios!6:6)", "SUM(Summary!A1)", "SUM('Time models'!A1:B2)"])
def test_whole_rows_and_unread_sheets_cannot_be_told(text: str) -> None:
    """Rows have no name of their own in a formula."""
    sheet = OldSheet("Scenarios", {"A": "id", "B": "model"}, {6: "0", 7: "1"}, 5)
    assert Marker({"scenarios": sheet}).mark(text, sheet) is None
    assert Marker({"scenarios": sheet}).mark("SUM(6:6)", None) == "SUM(6:6)"


def test_own_columns_keep_their_order(written: Path, own: Callable[[int], str], tmp_path: Path) -> None:
    """By their place in the header, whichever of them is filled first; a range over them covers the same ones."""
    def act(book: Any) -> None:
        sheet, mine = book["Scenarios"], book.create_sheet("Mine")
        for n, name in enumerate(("u", "v", "blank", "w"), 1):
            sheet[f"{own(n)}5"].value = name
        sheet[f"{own(1)}8"].value = 3
        for row in range(6, LAST + 1):
            sheet[f"{own(2)}{row}"].value = f"=B{row}*2"
            sheet[f"{own(4)}{row}"].value = f'={own(1)}{row}+{own(2)}{row}+N(IF({own(1)}{row}="",0,1))'
        mine["A1"].value = f"=SUM(Scenarios!{own(1)}6:{own(4)}{LAST})"
        mine["A2"].value = f'=VLOOKUP("x",Scenarios!A5:{own(2)}{LAST},{len(header(written, "Scenarios")) + 2},FALSE)'

    path = changed(written, tmp_path, act)
    assert "cannot be told" not in told(path)
    book = new(path)
    assert [book["Scenarios"][f"{own(n)}5"].value for n in range(1, 5)] == ["u", "v", "blank", "w"]
    assert book["Scenarios"][f"{own(1)}8"].value == 3
    assert book["Mine"]["A1"].value == f"=SUM(Scenarios!{own(1)}6:{own(4)}{LAST})"
    assert book["Mine"]["A2"].value == openpyxl.load_workbook(path)["Mine"]["A2"].value


@needs_soffice
def test_a_range_that_would_cover_others_is_not_carried(written: Path, own: Callable[[int], str], tmp_path: Path) -> None:
    """A column put into the table stands beside it in the new file: a range over both keeps its value, one beside it lives."""
    letters = header(written, "Scenarios")

    def act(book: Any) -> None:
        mine = book.create_sheet("Mine")
        book["Scenarios"].cell(5, len(letters) + 1).value = "mine"
        book["Scenarios"][f"{own(1)}6"].value = 5
        book["Scenarios"][f"{letters['method']}6"].value = "small-model"  # which puts columns of its own in
        mine["A1"].value = f"=SUM(Scenarios!{letters['batch']}6:{own(1)}6)"
        mine["A2"].value = f"=SUM(Scenarios!{letters['batch']}6:{letters['batch']}{LAST})"
        mine["A3"].value = f"=COUNTA(Scenarios!A:{own(1)})"
        mine["A4"].value = f"=OFFSET(Scenarios!{letters['batch']}6,1,0)"
        mine["A5"].value = f'=INDIRECT("Scenarios!{letters["batch"]}7")'
        mine["A6"].value = f"=SUM(Scenarios!{letters['batch']}6:INDEX(Scenarios!{letters['batch']}:{letters['batch']},7))"
        mine["A7"].value = "=OFFSET(B1,1,0)"
        mine["A8"].value = "=SUM(T_scenarios[mine])"

    path = changed(written, tmp_path, act)
    again = recalculate(path, tmp_path)
    shown = [openpyxl.load_workbook(again, data_only=True)["Mine"][f"A{row}"].value for row in (1, 3, 4, 5, 6)]
    assert "Mine!A1, A3, A4, A5, A6: formulas that refer to what cannot be told in a new file; their values are kept" in told(again)
    mine = new(again)["Mine"]
    assert [mine[f"A{row}"].value for row in (1, 3, 4, 5, 6)] == shown
    assert mine["A2"].value == f"=SUM(Scenarios!{letters['batch']}6:{letters['batch']}{LAST})"
    assert mine["A7"].value == "=OFFSET(B1,1,0)"
    assert mine["A8"].value.startswith("=SUM(")


def test_what_goes_by_positions_lives_where_nothing_moves(written: Path, tmp_path: Path) -> None:
    """OFFSET, INDIRECT and a range up to a computed end come along when all stands where it stood."""
    texts = ["=OFFSET(Scenarios!E6,1,0)", '=INDIRECT("Scenarios!E7")', "=SUM(Scenarios!E$6:INDEX(Scenarios!E:E,7))"]

    def act(book: Any) -> None:
        for row, text in enumerate(texts, 1):
            book.create_sheet("Mine") if row == 1 else None
            book["Mine"][f"A{row}"].value = text

    path = changed(written, tmp_path, act)
    assert "cannot be told" not in told(path)
    assert [cell.value for cell in new(path)["Mine"]["A"]] == texts


def test_rows_sorted_anew(written: Path, own: Callable[[int], str], tmp_path: Path) -> None:
    """A range over all rows still is one; a range over some of them, which now stand in another order, keeps its value."""
    path = scenario.run({**TABLE, "sort": "-batch"}).to_excel(tmp_path / "sorted.xlsx")

    def act(book: Any) -> None:
        sheet, mine = book["Scenarios"], book.create_sheet("Mine")
        column = header(written, "Scenarios")["batch"]
        sheet[f"{column}6"].value = 4
        sheet[f"{own(1)}5"].value = "share"
        for row in range(6, LAST + 1):
            sheet[f"{own(1)}{row}"].value = f"={column}{row}/SUM({column}$6:{column}${LAST})"
        mine["A1"].value = f"=SUM(Scenarios!{column}6:{column}7)"
        mine["A2"].value = f"=Scenarios!{column}6"
        mine["A3"].value = f"=SUM(Scenarios!{column}5:{column}{LAST})"

    path = changed(path, tmp_path, act)
    assert re.search(r"Mine!A1: formulas that refer to what cannot be told in a new file; the file holds no values", told(path))
    book, column = new(path), header(path.parent / "new.xlsx", "Scenarios")["batch"]
    assert [book["Scenarios"][f"{column}{row}"].value for row in range(6, LAST + 1)] == [64, 8, 4, 1]
    assert book["Mine"]["A1"].value == f"=SUM(Scenarios!{column}6:{column}7)"
    assert book["Mine"]["A1"].data_type == "s"
    assert book["Mine"]["A2"].value == f"=Scenarios!{column}8"
    assert book["Mine"]["A3"].value == f"=SUM(Scenarios!{column}5:{column}{LAST})"
    assert book["Scenarios"][f"{own(1)}6"].value == f"={column}6/SUM({column}$6:{column}${LAST})"


# -- values ---------------------------------------------------------------------------------------------


def unknown(book: Any, own: Callable[[int], str]) -> None:
    """Formulas that cannot be carried over, and one that can."""
    book["Scenarios"][f"{own(1)}5"].value = "mine"
    book["Scenarios"][f"{own(1)}6"].value = "=Summary!C7&1"
    book["Scenarios"][f"{own(1)}7"].value = "=E7*2"
    book.create_sheet("Mine")["A1"].value = "=1+Checks!B6"
    book["Mine"]["A2"].value = "=Scenarios!E7*3"
    book["Mine"]["A3"].value = "=1/0"


def test_without_values_the_text_of_a_formula_is_kept(written: Path, own: Callable[[int], str], tmp_path: Path) -> None:
    """A program that saves no values leaves nothing to keep but the text, as a text; and that is said."""
    path = changed(written, tmp_path, lambda book: unknown(book, own))
    said = told(path)
    for place in ("Mine!A1: formulas that refer to", "Scenarios: 1 formulas of the column 'mine' cannot be carried over"):
        assert re.search(f"{place}.*; the file holds no values of them, so that only their text is kept: open and save it", said)
    book = new(path)
    for cell, text in ((book["Mine"]["A1"], "=1+Checks!B6"), (book["Scenarios"][f"{own(1)}6"], "=Summary!C7&1")):
        assert (cell.value, cell.data_type) == (text, "s")
    assert book["Mine"]["A2"].value == "=Scenarios!E7*3"
    assert new(path, data_only=True)["Mine"]["A2"].value is None


@needs_soffice
def test_carried_formulas_show_the_value_they_had(written: Path, own: Callable[[int], str], tmp_path: Path) -> None:
    """So that a preview shows one; a program computes it anew when it opens the file."""
    path = recalculate(changed(written, tmp_path, lambda book: unknown(book, own)), tmp_path)
    assert "their values are kept" in told(path)
    shown, live = new(path, data_only=True), new(path)
    assert [live["Mine"][f"A{row}"].value for row in (1, 2, 3)] == [1, "=Scenarios!E7*3", "=1/0"]
    assert [shown["Mine"][f"A{row}"].value for row in (2, 3)] == [24, "#DIV/0!"]
    assert live["Scenarios"][f"{own(1)}7"].value == "=E7*2"
    assert shown["Scenarios"][f"{own(1)}7"].value == 16


def test_where_names_what_it_takes_along(own: Callable[[int], str], tmp_path: Path) -> None:
    """A row that is left out is named when something of the analyst's stands in it, and so are formulas that point at it."""
    path = scenario.run({**TABLE, "where": "batch < 100", "grid": {**TABLE["grid"], "batch": [1, 8, 64]}}).to_excel(tmp_path / "costs.xlsx")

    def act(book: Any) -> None:
        sheet, mine = book["Scenarios"], book.create_sheet("Mine")
        sheet[f"{header(path, 'Scenarios')['batch']}7"].value = 512
        sheet["A7"].value = "mid"
        sheet[f"{own(1)}5"].value, sheet[f"{own(1)}7"].value = "note", "look at this"
        sheet[f"{own(2)}5"].value, sheet[f"{own(2)}8"].value = "change", "=E8-E7"
        mine["A1"].value, mine["A2"].value, mine["A3"].value = "=Scenarios!E7", "=Scenarios!E8", "=SUM(Scenarios!E6:E8)"

    said = told(changed(path, tmp_path, act))
    assert "Scenarios: where leaves out mid (row 7), and with them what stands in columns of your own there" in said
    assert "Mine!A1, A3: formulas that refer to what cannot be told" in said
    assert f"Scenarios!{own(2)}8: formulas that refer to what cannot be told" in said
    book = new(tmp_path / "x")
    assert book["Mine"]["A2"].value == "=Scenarios!E7"
    assert book["Mine"]["A1"].value == "=Scenarios!E7"
    assert book["Mine"]["A1"].data_type == "s"
