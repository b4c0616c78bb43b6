"""What analysts do to a workbook: sort, note, total, append, paste, fill down, go through another format."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from click.testing import CliRunner, Result
from openpyxl.utils import column_index_from_string, get_column_letter
from spreadsheet import SOFFICE, needs_soffice, recalculate
from workbooks import edit, header, scenarios

import scenario
from scenario.cli.commands import main

TABLE: dict[str, Any] = {
    "version": 1, "defaults": {"context": 512}, "columns": {"margin": "3 - usd_per_million_tokens"},
    "grid": {"model": ["llama-3-8b"], "gpu": ["h100-sxm", "h200"], "batch": [1, 8, 64], "method": ["vanilla", "eagle", "ngram"]},
}  # fmt: skip
LAST = 23
"""The last row of its sheet Scenarios."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table as a workbook."""
    return scenario.run(TABLE).to_excel(tmp_path_factory.mktemp("edits") / "costs.xlsx")


def changed(written: Path, tmp_path: Path, act: Callable[[Any], None]) -> Path:
    """A copy saved by openpyxl after ``act`` had its way."""
    book = openpyxl.load_workbook(written)
    act(book)
    book.save(tmp_path / "changed.xlsx")
    return tmp_path / "changed.xlsx"


def call(*words: str) -> Result:
    """The command line."""
    return CliRunner().invoke(main, list(words))


def run(path: Path) -> tuple[Result, list[dict[str, Any]]]:
    """What ``scenario run`` says of a workbook, and the rows of the new one."""
    target = path.parent / "new.xlsx"
    done = call("run", str(path), "-o", str(target))
    return done, scenario.run(str(target)).frame.to_dicts() if done.exit_code == 0 else []


def test_assumptions_may_be_sorted(written: Path, tmp_path: Path) -> None:
    """Each is found by its name: the numbers and the inputs are as before, and one that was edited moves its rows."""
    def act(book: Any) -> None:
        sheet = book["Assumptions"]
        rows = sorted(([cell.value for cell in row] for row in sheet.iter_rows(min_row=6)), key=lambda row: str(row[1]), reverse=True)
        for number, values in enumerate(rows, 6):
            for column, value in enumerate(values, 1):
                sheet.cell(number, column).value = 0.5 if values[1] == "default_mbu" and column == 3 else value

    done, rows = run(changed(written, tmp_path, act))
    assert done.exit_code == 0, done.output
    anew = scenario.run({**TABLE, "defaults": {"context": 512, "mbu": 0.5}}).frame.to_dicts()
    assert [row["tpot_ms"] for row in rows] == [row["tpot_ms"] for row in anew]


@pytest.mark.parametrize("what", ["a note", "a total", "a number", "a number beside", "a note in the column of models"])
def test_what_stands_below_the_table_is_no_scenario(what: str, written: Path, tmp_path: Path) -> None:
    """A note, a total, or a sum is named by its cells, and the rows are those of before."""
    columns = header(written, "Scenarios")
    price, beside = columns["usd_per_million_tokens"], get_column_letter(column_index_from_string(columns["summary_key"]) + 2)
    cells: dict[str, dict[str, Any]] = {
        "a note": {f"A{LAST + 3}": "Prices as of May"},
        "a total": {f"A{LAST + 1}": "Total", f"{price}{LAST + 1}": f"=SUM({price}6:{price}{LAST})",
                    f"{columns['batch']}{LAST + 1}": f"=SUM({columns['batch']}6:{columns['batch']}{LAST})"},
        "a number": {f"{price}{LAST + 2}": 3.5},
        "a number beside": {f"{beside}7": 1, f"{beside}8": 2, f"{beside}9": 3},
        "a note in the column of models": {f"{columns['model']}{LAST + 2}": "see the mail of May"},
    }  # fmt: skip

    def act(book: Any) -> None:
        for cell, value in cells[what].items():
            book["Scenarios"][cell].value = value

    done, rows = run(changed(written, tmp_path, act))
    assert done.exit_code == 0, done.output
    line = next(line for line in done.stderr.splitlines() if "not carried over, because they stand outside" in line)
    said = line.rpartition(": ")[2]
    assert said == (f"{beside}7:{beside}9" if what == "a number beside" else ", ".join(sorted(cells[what], key=lambda cell: (len(cell), cell))))
    assert [row["id"] for row in rows] == scenario.run(TABLE).frame["id"].to_list()


def appended(written: Path, tmp_path: Path, at: int, **inputs: Any) -> Path:
    """A copy with a row put in at a row of the sheet: only its inputs, as many people type them."""
    columns = header(written, "Scenarios")

    def act(book: Any) -> None:
        sheet = book["Scenarios"]
        if at <= LAST:
            sheet.insert_rows(at)
        for name, value in inputs.items():
            sheet[f"{columns[name]}{at}"].value = value

    return changed(written, tmp_path, act)


@pytest.mark.parametrize("at", [6, 14, LAST + 1, LAST + 4])
def test_a_row_that_is_added_counts(at: int, written: Path, tmp_path: Path) -> None:
    """Above, in the middle, right below the table or further down: it is a scenario like the others."""
    path = appended(written, tmp_path, at, id="mine", model="llama-3-8b", gpu="h200", batch=16, method="eagle")
    done, rows = run(path)
    assert done.exit_code == 0, done.output
    assert [row["id"] for row in rows].index("mine") == min(at, LAST + 1) - 6
    one = {"model": "llama-3-8b", "gpu": "h200", "batch": 16, "method": "eagle", "context": 512}
    alone = scenario.run({"version": 1, "rows": [one]}).frame
    assert next(row for row in rows if row["id"] == "mine")["tpot_ms"] == alone["tpot_ms"][0]


def test_an_appended_row_with_a_bad_model_is_named(written: Path, tmp_path: Path) -> None:
    """Its cell, and what was probably meant; nothing is written."""
    path = appended(written, tmp_path, LAST + 1, model="lama-3-8b", gpu="h200", batch=16, method="eagle")
    done, _ = run(path)
    assert done.exit_code == 2
    assert f"Scenarios!{header(written, 'Scenarios')['model']}{LAST + 1}" in done.stderr
    assert "did you mean 'llama-3-8b'" in done.stderr
    assert not (tmp_path / "new.xlsx").exists()


def test_a_falsified_summary_is_found(written: Path, tmp_path: Path) -> None:
    """A number in place of a formula there is told by its cell, with what the engine computes, and it alone."""
    place = next(cell for row in openpyxl.load_workbook(written)["Summary"].iter_rows() for cell in row
                 if cell.data_type == "f" and cell.row > 9).coordinate  # fmt: skip
    done = call("check", str(edit(written, tmp_path / "false.xlsx", {("Summary", place): 0.0001})))
    assert done.exit_code == 1
    assert f"Summary!{place}" in done.stdout
    assert "a value is typed over the formula" in done.stdout
    assert "1 cells differ" in done.stdout


@pytest.mark.parametrize("sheet", ["Models", "Checks"])
def test_a_falsified_value_is_found_on_every_sheet(sheet: str, written: Path, tmp_path: Path) -> None:
    """A formula whose stored value was changed in the file, wherever it stands."""
    place = next(cell for row in openpyxl.load_workbook(written)[sheet].iter_rows(min_row=6) for cell in row if cell.data_type == "f").coordinate
    done = call("check", str(edit(written, tmp_path / "false.xlsx", {(sheet, place): 7})))
    assert done.exit_code == 1
    assert f"{sheet}!{place}" in done.stdout


def test_check_says_how_many_cells_of_how_many_sheets_it_compared(written: Path) -> None:
    """Every formula of every sheet that the workbook has of its own."""
    book = openpyxl.load_workbook(written)
    formulas = {sheet.title: sum(cell.data_type == "f" for row in sheet.iter_rows() for cell in row) for sheet in book.worksheets}
    helpers = sum(count for title, count in formulas.items() if title == "Scenarios")
    keys = sum(name in ("summary_key", "price_within_limits") or name.endswith("_row") for name in header(written, "Scenarios")) * (LAST - 5)
    done = call("check", str(written))
    assert done.exit_code == 0, done.output
    assert f"good: {sum(formulas.values()) - keys:,} cells of 18 rows" in done.stdout, (formulas, helpers)
    assert f"on {sum(count > 0 for count in formulas.values())} sheets" in done.stdout


def test_pasted_values_are_told_by_column(written: Path, tmp_path: Path) -> None:
    """108 values over 6 columns: 6 messages with their ranges, not 108."""
    columns = header(written, "Scenarios")
    shown = scenarios(written)
    names = ("round_ms", "tpot_ms", "tokens_per_s", "speedup", "memory_gb", "usd_per_million_tokens")

    def act(book: Any) -> None:
        for name in names:
            for row in range(6, LAST + 1):
                book["Scenarios"][f"{columns[name]}{row}"].value = shown[name][row - 6]

    path = changed(written, tmp_path, act)
    done = call("run", str(path), "-o", str(tmp_path / "new.xlsx"))
    assert done.exit_code == 2
    assert done.stderr.count("18 values are typed over the formulas of") == 6
    for name in names:
        assert f"Scenarios!{columns[name]}6:{columns[name]}{LAST}: 18 values are typed over the formulas of '{name}'" in done.stderr
    checked = call("check", str(path))
    assert checked.exit_code == 1
    assert "108: a value is typed over the formula" in checked.stdout


def test_an_own_formula_that_is_filled_down_is_one_message(written: Path, tmp_path: Path) -> None:
    """With where to change it: on the sheet Formulas, which then does what was meant."""
    columns = header(written, "Scenarios")
    own, price = columns["margin"], columns["usd_per_million_tokens"]

    def act(book: Any) -> None:
        for row in range(6, LAST + 1):
            book["Scenarios"][f"{own}{row}"].value = f"=5-${price}{row}"

    done = call("run", str(changed(written, tmp_path, act)), "-o", str(tmp_path / "new.xlsx"))
    assert done.exit_code == 2
    assert done.stderr.count("was changed") == 1
    assert f"Scenarios!{own}6:{own}{LAST}: the formula of 'margin' was changed" in done.stderr
    assert "change it on the sheet Formulas" in done.stderr

    def there(book: Any) -> None:
        sheet = book["Formulas"]
        cell = next(row for row in sheet.iter_rows(min_row=6) if row[1].value == "margin")[4]
        cell.value = "5 - usd_per_million_tokens"

    after, rows = run(changed(written, tmp_path, there))
    assert after.exit_code == 0, after.output
    assert all(row["margin"] == 5 - row["usd_per_million_tokens"] for row in rows)


def test_causes_are_true_where_columns_or_formulas_are_gone(written: Path, tmp_path: Path) -> None:
    """A deleted column is not 'typed over', nor its readers; a cleared formula is not 'not recalculated'."""
    columns = header(written, "Scenarios")
    done = call("check", str(changed(written, tmp_path, lambda book: book["Scenarios"].delete_cols(column_index_from_string(columns["round_ms"])))))
    assert "typed over" not in done.stdout
    assert "formula was changed" not in done.stdout
    assert "the columns round_ms are gone, and not compared" in done.stderr
    path = edit(written, tmp_path / "cleared.xlsx", {("Scenarios", f"{columns['tpot_ms']}7"): None})
    done = call("check", str(path))
    assert done.exit_code == 1
    assert f"Scenarios!{columns['tpot_ms']}7" in done.stdout
    assert "the formula is gone" in done.stdout
    assert "recalculate" not in done.stdout


@needs_soffice
def test_through_ods_and_back(written: Path, tmp_path: Path) -> None:
    """Saved as .ods, and that as .xlsx: nothing is told, every cell is compared, and all are good."""
    profile = f"-env:UserInstallation={(tmp_path.resolve() / 'soffice-profile').as_uri()}"
    first = recalculate(written, tmp_path)  # sets up the profile
    subprocess.run([str(SOFFICE), profile, "--headless", "--convert-to", "ods", "--outdir", str(tmp_path), str(first)],
                   capture_output=True, timeout=300, check=True)  # fmt: skip
    back = recalculate(tmp_path / "costs.ods", tmp_path)
    checked, fresh = call("check", str(back)), call("check", str(written))
    assert checked.exit_code == 0, checked.output
    assert checked.stdout.partition("good")[2] == fresh.stdout.partition("good")[2]
    done, rows = run(back)
    assert done.exit_code == 0, done.output
    assert [row["tpot_ms"] for row in rows] == scenario.run(TABLE).frame["tpot_ms"].to_list()
