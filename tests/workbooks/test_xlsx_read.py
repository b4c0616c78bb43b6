"""A workbook comes back: from other programs, with good and bad cells, with what an analyst added."""

from __future__ import annotations

import hashlib
import re
import shutil
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from click.testing import CliRunner, Result
from openpyxl.worksheet.worksheet import Worksheet
from spreadsheet import needs_soffice
from workbooks import edit, header, recalculate_all, row_of, same, scenarios

import scenario
from scenario.cli.commands import main
from scenario.registry import host
from scenario.workbooks import read_back as xlsx_table

TABLE: dict[str, Any] = {
    "version": 1,
    "title": "Reading back",
    "defaults": {"context": 1024},
    "rows": [
        {"id": "a", "model": "llama-3-8b", "gpu": "h100-sxm", "batch": 1, "method": "vanilla"},
        {"id": "b", "model": "llama-3-8b", "gpu": "h100-sxm", "batch": 8, "method": "eagle", "alpha": 0.7},
        {"id": "c", "model": "llama-3-8b", "gpu": "a100-80gb", "batch": 64, "method": "eagle", "acceptance": "chat"},
        {"id": "d", "model": "mixtral-8x7b", "gpu": "h200", "batch": 16, "method": "int4+mtp", "weights": "bf16"},
    ],
    "profiles": {"chat": {"rates": [0.8, 0.6, 0.4], "source": "made up"}},
    "curves": {"kernel": {"points": [[1, 1.0], [64, 1.2], [256, 3.0]], "source": "made up"}},
    "columns": {"slowed_ms": {"formula": 'verify_ms * curve("kernel", batch)', "unit": "ms"}, "twice": "batch * 2"},
}
Loaded = tuple[Any, Any]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table as a workbook."""
    return scenario.run(TABLE).to_excel(tmp_path_factory.mktemp("read") / "costs.xlsx")


@pytest.fixture(scope="module")
def loaded_host() -> Any:
    """The plugins."""
    return host.load(())


@pytest.fixture
def change(written: Path, tmp_path: Path) -> Callable[..., Path]:
    """Makes a copy changed by a function of the openpyxl workbook, as that program would save it."""

    def save(act: Callable[[Any], None], name: str = "changed.xlsx") -> Path:
        book = openpyxl.load_workbook(written)
        act(book)
        book.save(tmp_path / name)
        return tmp_path / name

    return save


def run(path: Path, *options: str, out: str = "new.xlsx") -> Result:
    """``scenario run`` of a workbook through the command line, to a new file beside it."""
    return CliRunner().invoke(main, ["run", str(path), "-o", str(path.parent / out), "-q", *options])


def told(path: Path, *options: str) -> str:
    """What ``scenario run`` says of a workbook when it is not told to be quiet."""
    done = CliRunner().invoke(main, ["run", str(path), "-o", str(path.parent / "new.xlsx"), *options])
    assert done.exit_code == 0, done.output
    return done.stderr


def typed(written: Path, tmp_path: Path, cells: dict[str, Any], sheet: str = "Scenarios") -> Path:
    """A copy with values typed into cells given as ``header row``, such as ``batch 6``."""
    letters = header(written, sheet)
    edits = {(sheet, f"{letters[place.split()[0]]}{place.split()[1]}"): value for place, value in cells.items()}
    return edit(written, tmp_path / "typed.xlsx", edits)


def cell_of(written: Path, place: str, sheet: str = "Scenarios") -> str:
    """The address of ``header row``."""
    name, row = place.split()
    return f"{header(written, sheet)[name]}{row}"


def raw(path: Path, target: Path, sheet: str, cell: str, xml: str) -> Path:
    """A copy in which a cell is replaced by XML."""
    from workbooks import parts

    part = parts(path)[sheet]
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        for name in source.namelist():
            data = source.read(name)
            if name == part:
                text = data.decode()
                found = re.search(rf'<c r="{cell}"[^>]*?(?:/>|>.*?</c>)', text, re.DOTALL)
                assert found
                data = (text[: found.start()] + xml + text[found.end() :]).encode()
            out.writestr(name, data)
    return target


def insert_row(sheet: Worksheet, at: int) -> None:
    """Insert a row as Excel does for what matters here: tables move along, formulas follow."""
    from openpyxl.formula.translate import Translator

    moved = []
    for row in sheet.iter_rows(min_row=at):
        moved += [(cell, cell.value) for cell in row]
    for cell, value in reversed(moved):
        target = sheet.cell(cell.row + 1, cell.column)
        if isinstance(value, str) and cell.data_type == "f":
            target.value = Translator(value, origin=cell.coordinate).translate_formula(target.coordinate)
        else:
            target.value = value
        cell.value = None
    for table in sheet.tables.values():
        table.ref = re.sub(r"[0-9]+", lambda m: str(int(m[0]) + 1), table.ref)
        table.autoFilter.ref = table.ref


def same_numbers(path: Path, other: Path) -> None:
    """The computed columns of two workbooks are the same."""
    first, second = scenarios(path), scenarios(other)
    assert list(first) == list(second)
    for name, values in first.items():
        assert all(same(a, b) for a, b in zip(values, second[name], strict=True)), name


# -- other programs -------------------------------------------------------------------------------------


def test_a_file_saved_by_openpyxl_comes_back(written: Path, tmp_path: Path) -> None:
    """openpyxl drops every shown value and rewrites the styles; inputs and formulas are there, and that suffices."""
    openpyxl.load_workbook(written).save(tmp_path / "saved.xlsx")
    assert openpyxl.load_workbook(tmp_path / "saved.xlsx", data_only=True)["Scenarios"]["Z6"].value is None
    done = run(tmp_path / "saved.xlsx")
    assert done.exit_code == 0, done.output
    same_numbers(written, tmp_path / "new.xlsx")


@needs_soffice
def test_a_file_saved_by_libreoffice_comes_back(written: Path, tmp_path: Path) -> None:
    """LibreOffice writes styles, shared texts and formulas its own way; an edit made there is read."""
    edited = typed(written, tmp_path, {"batch 6": 32})
    plain, moved = recalculate_all([shutil.copy(written, tmp_path / "plain.xlsx"), edited], tmp_path)
    for path, out in ((plain, "plain-new.xlsx"), (moved, "moved-new.xlsx")):
        done = run(path, out=out)
        assert done.exit_code == 0, done.output
    same_numbers(written, plain.parent / "plain-new.xlsx")
    assert scenarios(moved.parent / "moved-new.xlsx")["batch"] == [32, 8, 64, 16]
    assert CliRunner().invoke(main, ["check", str(plain)]).exit_code == 0
    assert CliRunner().invoke(main, ["check", str(moved)]).exit_code == 0  # it recalculated


def test_the_source_file_is_never_written(written: Path, tmp_path: Path) -> None:
    """Reading back leaves the file's bytes as they are, and refuses to write onto it, by whatever name."""
    copy = Path(shutil.copy(written, tmp_path / "costs.xlsx"))
    before = hashlib.sha256(copy.read_bytes()).hexdigest()
    assert run(copy).exit_code == 0
    (tmp_path / "link.xlsx").symlink_to(copy)
    for out in ("costs.xlsx", "link.xlsx", "../" + tmp_path.name + "/costs.xlsx"):
        done = run(copy, out=out)
        assert done.exit_code == 2
        assert "replace a file that this command reads" in done.output
    assert hashlib.sha256(copy.read_bytes()).hexdigest() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["costs.xlsx", "link.xlsx", "new.xlsx"]


# -- bad cells ------------------------------------------------------------------------------------------

BAD = {
    "text in a number": ("batch 6", "many", "'many' is text where a number belongs", "type the number"),
    "a decimal comma": ("alpha_given 7", "0,72", "'0,72' is text where a number belongs", "a number has a decimal point: 0.72"),
    "a percentage as text": ("alpha_given 7", "72%", "'72%' is text where a number belongs", "a percentage is written as a number: 0.72"),
    "a thousands separator": ("batch 6", "1,024", "'1,024' is text where a number belongs", "a number has no separators: 1024"),
    "an unknown model": ("model 6", "llama-3-9b", "unknown model 'llama-3-9b'", "did you mean"),
    "an unknown GPU": ("gpu 6", "h100", "unknown GPU 'h100'", "did you mean"),
    "an unknown method": ("method 7", "eagel", "unknown method 'eagel'", "did you mean 'eagle'"),
    "an unknown format": ("weights_given 6", "fp3", "'fp3' is not one of", "did you mean"),
    "an unknown profile": ("acceptance_given 8", "caht", "unknown acceptance profile 'caht'", "did you mean 'chat'?"),
    "out of range": ("alpha_given 7", 1.5, "1.5 is out of range", ""),
    "not whole": ("gpus_given 6", 1.5, "a whole number is needed, not 1.5", ""),
    "a blank required number": ("batch 6", None, "batch is blank and has no default", "type a value"),
    "a blank required name": ("model 7", None, "model is blank and has no default", "type a value"),
    "blanks only": ("batch 6", "   ", "batch is blank and has no default", "type a value"),
    "a huge number": ("batch 6", 1e308, "1e+308 is not a number that can be used", ""),
    "a negative number": ("batch 6", -4, "out of range", ""),
    "a zero batch": ("batch 6", 0, "out of range", ""),
    "the same id twice": ("id 7", "a", "the id 'a' stands in row 6 already", "clear the cell"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_cell_is_named_with_what_to_do(what: str, written: Path, tmp_path: Path) -> None:
    """The error says sheet, cell, what is wrong and what to do; nothing is written and the exit code is 2."""
    place, value, message, hint = BAD[what]
    path = typed(written, tmp_path, {place: value})
    done = run(path)
    assert done.exit_code == 2, done.output
    assert f"Scenarios!{cell_of(written, place)}: " in done.stderr
    assert message in done.stderr
    assert hint in done.stderr
    assert not (tmp_path / "new.xlsx").exists()


RAW = {
    "TRUE": ('t="b"><v>1</v></c>', "TRUE stands where a number belongs"),
    "FALSE": ('t="b"><v>0</v></c>', "FALSE stands where a number belongs"),
    "an error": ('t="e"><v>#DIV/0!</v></c>', "the cell shows #DIV/0!"),
    "a formula without a value": ("><f>2*3</f></c>", "an input holds a formula without a value"),
    "a formula with an error": ('t="e"><f>1/0</f><v>#DIV/0!</v></c>', "the cell shows #DIV/0!"),
    "an ISO date": ('t="d"><v>2026-01-02</v></c>', "a date stands where a number belongs"),
    "a missing shared text": ('t="s"><v>99999</v></c>', "the cell shows nothing: its text is missing from the file"),
    "not a number": ("><v>NaN</v></c>", "'NaN' is text where a number belongs"),
    "infinity": ("><v>1e999</v></c>", "'1e999' is text where a number belongs"),
}


@pytest.mark.parametrize("what", RAW)
def test_other_kinds_of_cells_are_named_too(what: str, written: Path, tmp_path: Path) -> None:
    """A flag, an error, a date or a formula without a value in an input is an error with its address."""
    cell = cell_of(written, "batch 6")
    rest, message = RAW[what]
    done = run(raw(written, tmp_path / "raw.xlsx", "Scenarios", cell, f'<c r="{cell}" {rest}'))
    assert done.exit_code == 2, done.output
    assert f"Scenarios!{cell}: {message}" in done.stderr


def test_a_date_is_told_from_a_number_by_its_format(written: Path, change: Callable[..., Path]) -> None:
    """A number that a cell shows as a date is refused; one shown as a percentage is the number it is."""
    batch, alpha = cell_of(written, "batch 6"), cell_of(written, "alpha_given 7")
    done = run(change(lambda book: setattr(book["Scenarios"][batch], "value", datetime(2026, 1, 2))))
    assert f"Scenarios!{batch}: a date stands where a number belongs" in done.stderr

    def percent(book: Any) -> None:
        book["Scenarios"][alpha].value, book["Scenarios"][alpha].number_format = 0.72, "0.0%"

    path = change(percent)
    assert run(path).exit_code == 0
    assert scenarios(path.parent / "new.xlsx")["alpha_given"] == [None, 0.72, None, None]


def test_the_value_of_a_formula_in_an_input_is_taken_and_said(written: Path, tmp_path: Path) -> None:
    """An analyst may compute an input; its value counts, and the message says that the formula stays behind."""
    cell = cell_of(written, "batch 6")
    path = raw(written, tmp_path / "raw.xlsx", "Scenarios", cell, f'<c r="{cell}"><f>8*3</f><v>24</v></c>')
    assert f"Scenarios!{cell}: the value 24 of a formula in an input is taken" in told(path)
    assert scenarios(tmp_path / "new.xlsx")["batch"][0] == 24


def test_all_faults_are_told_at_once(written: Path, tmp_path: Path) -> None:
    """Every bad cell of several sheets is in one message."""
    alpha = f"C{row_of(written, 'Assumptions', 'name', 'eagle_alpha')}"
    layers = f"{header(written, 'Models')['layers']}{row_of(written, 'Models', 'name', 'llama-3-8b')}"
    cells = {("Scenarios", cell_of(written, "batch 6")): "x", ("Scenarios", cell_of(written, "gpu 8")): "y",
             ("Assumptions", alpha): "0,7", ("Models", layers): "many"}  # fmt: skip
    done = run(edit(written, tmp_path / "typed.xlsx", cells))
    for sheet, cell in cells:
        assert f"{sheet}!{cell}: " in done.stderr


# -- the sheet changes shape ----------------------------------------------------------------------------


def test_a_merged_cell_is_named(change: Callable[..., Path]) -> None:
    """Merged cells hold one value for several rows, which cannot be meant."""
    path = change(lambda book: book["Scenarios"].merge_cells("B6:B7"))
    done = run(path)
    assert done.exit_code == 2
    assert "Scenarios!B6:B7: merged cells" in done.stderr
    assert "unmerge them" in done.stderr


def test_a_hidden_row_is_read_and_said(change: Callable[..., Path]) -> None:
    """A row hidden by a filter still is a scenario, and the message says so."""
    path = change(lambda book: setattr(book["Scenarios"].row_dimensions[7], "hidden", True))
    assert "Scenarios: hidden rows count as well (7)" in told(path)
    assert len(scenarios(path.parent / "new.xlsx")["id"]) == 4


def test_a_deleted_input_column_is_named(written: Path, change: Callable[..., Path]) -> None:
    """Without its header an input cannot be found; the message names the column."""
    for name in ("batch", "alpha_given"):
        cell = cell_of(written, f"{name} 5")
        done = run(change(lambda book, cell=cell: setattr(book["Scenarios"][cell], "value", None)))
        assert done.exit_code == 2
        assert f"Scenarios: the column '{name}' is gone" in done.stderr
        assert "put it back, with this header" in done.stderr


def test_a_deleted_computed_column_comes_back(written: Path, change: Callable[..., Path], tmp_path: Path) -> None:
    """What was computed is made anew, also where other formulas show #REF! for it; that is said."""
    gone = cell_of(written, "round_ms 5")

    def act(book: Any) -> None:
        sheet = book["Scenarios"]
        for row in range(5, 10):
            sheet[f"{gone[:-1]}{row}"].value = None
            for cell in sheet[row]:
                if cell.data_type == "f":
                    cell.value = re.sub(rf"\${gone[:-1]}[0-9]+", "#REF!", cell.value)

    path = change(act)
    assert re.search(r"the formulas of (\w+, )*tpot_ms(, \w+)* refer to what was deleted \(#REF!\)", told(path))
    same_numbers(written, tmp_path / "new.xlsx")


def test_a_renamed_sheet_is_found_by_its_table(written: Path, change: Callable[..., Path], tmp_path: Path) -> None:
    """A renamed Scenarios sheet is found by the table on it; without the table the message lists the sheets."""
    path = change(lambda book: setattr(book["Scenarios"], "title", "Fälle"))
    assert run(path).exit_code == 0
    same_numbers(written, tmp_path / "new.xlsx")

    def bare(book: Any) -> None:
        book["Scenarios"].title = "Scenario"
        del book["Scenario"].tables["T_scenarios"]

    done = run(change(bare))
    assert done.exit_code == 2
    assert "there is no sheet 'Scenarios'" in done.stderr
    assert "did you mean 'Scenario'?" in done.stderr


def test_a_row_above_the_header_moves_everything(written: Path, change: Callable[..., Path], tmp_path: Path) -> None:
    """The header is looked for, so an inserted row above it changes nothing; faults name the new address."""
    path = change(lambda book: insert_row(book["Scenarios"], 3))
    assert run(path).exit_code == 0
    same_numbers(written, tmp_path / "new.xlsx")
    letters = header(written, "Scenarios")

    def act(book: Any) -> None:
        insert_row(book["Scenarios"], 3)
        book["Scenarios"][f"{letters['batch']}7"].value = "x"

    assert f"Scenarios!{letters['batch']}7: " in run(change(act)).stderr


def test_a_sheet_without_a_header_says_so(change: Callable[..., Path]) -> None:
    """When the header row is deleted the message says to put it back."""
    done = run(change(lambda book: book["Scenarios"].delete_rows(5)))
    assert done.exit_code == 2
    assert "the sheet 'Scenarios' has no header row with id" in done.stderr


def test_inputs_are_found_wherever_they_stand(written: Path, change: Callable[..., Path], tmp_path: Path) -> None:
    """Input columns may be moved: they are known by their headers."""
    letters = header(written, "Scenarios")

    def swap(book: Any) -> None:
        sheet = book["Scenarios"]
        for row in range(3, 10):
            a, b = sheet[f"{letters['alpha_given']}{row}"], sheet[f"{letters['weights_given']}{row}"]
            a.value, b.value = b.value, a.value
        for row in range(6, 10):
            for cell in sheet[row]:
                if cell.data_type == "f":
                    text = re.sub(rf"\$({letters['alpha_given']}|{letters['weights_given']})(?=[0-9])",
                                  lambda m: "$" + letters["weights_given" if m[1] == letters["alpha_given"] else "alpha_given"], cell.value)  # fmt: skip
                    cell.value = text

    path = change(swap)
    done = run(path)
    assert done.exit_code == 0, done.output
    same_numbers(written, tmp_path / "new.xlsx")


def test_sorted_rows_keep_what_belongs_together(written: Path, tmp_path: Path) -> None:
    """Rows in another order are the same scenarios in that order."""
    letters = header(written, "Scenarios")
    values = scenarios(written)
    inputs = [name for name in values if name.endswith("_given") or name in ("id", "model", "gpu", "method", "batch")]
    order = [3, 1, 0, 2]
    path = edit(written, tmp_path / "sorted.xlsx",
                {("Scenarios", f"{letters[name]}{6 + at}"): values[name][source] for name in inputs for at, source in enumerate(order)})  # fmt: skip
    assert run(path).exit_code == 0
    new = scenarios(tmp_path / "new.xlsx")
    for name, column in values.items():
        assert all(same(column[source], new[name][at]) for at, source in enumerate(order)), name


def test_two_columns_of_one_header_are_refused(written: Path, change: Callable[..., Path]) -> None:
    """If a header stands twice nobody can say which column counts."""
    cell = cell_of(written, "twice 5")
    done = run(change(lambda book: setattr(book["Scenarios"][cell], "value", "batch")))
    assert done.exit_code == 2
    assert re.search(r"Scenarios![A-Z]+5: the header 'batch' stands in [A-Z]+5 already", done.stderr)


# -- rows, models, assumptions --------------------------------------------------------------------------


def test_added_rows_need_inputs_only(written: Path, change: Callable[..., Path], tmp_path: Path) -> None:
    """Rows typed below the table become scenarios: without formulas, and with formulas filled down; ids are made up."""
    letters = header(written, "Scenarios")

    def act(book: Any) -> None:
        from openpyxl.formula.translate import Translator

        sheet = book["Scenarios"]
        for row, batch in ((10, 128), (11, 256)):
            for name, value in {"model": "llama-3-70b", "gpu": "h200", "batch": batch, "method": "medusa"}.items():
                sheet[f"{letters[name]}{row}"].value = value
        for cell in list(sheet[9]):
            if cell.data_type == "f":
                target = f"{cell.column_letter}11"
                sheet[target].value = Translator(cell.value, origin=cell.coordinate).translate_formula(target)

    path = change(act)
    done = run(path)
    assert done.exit_code == 0, done.output
    rows = [*TABLE["rows"], *({"model": "llama-3-70b", "gpu": "h200", "batch": batch, "method": "medusa"} for batch in (128, 256))]
    expected, shown = scenario.run({**TABLE, "rows": rows}).full, scenarios(tmp_path / "new.xlsx")
    assert len(set(shown["id"])) == 6
    for name in ("tpot_ms", "speedup", "slowed_ms", "usd_per_million_tokens"):
        assert all(same(a, b) for a, b in zip(expected[name].to_list(), shown[name], strict=True)), name


def test_models_and_gpus_can_be_added(written: Path, change: Callable[..., Path], tmp_path: Path) -> None:
    """A new row on Models and on GPUs, with a price, is a model and a GPU of the new table."""
    models, gpus, letters = header(written, "Models"), header(written, "GPUs"), header(written, "Scenarios")

    def act(book: Any) -> None:
        for sheet, columns, base, name in (("Models", models, "llama-3-8b", "my-8b"), ("GPUs", gpus, "h100-sxm", "my-gpu")):
            page, row = book[sheet], row_of(written, sheet, "name", base)
            last = max(cell.row for cell in page["A"] if cell.value)
            for letter in columns.values():
                cell = page[f"{letter}{row}"]
                if cell.data_type != "f":
                    page[f"{letter}{last + 1}"].value = cell.value
            page[f"A{last + 1}"].value = name
            if sheet == "Models":
                page[f"{columns['layers']}{last + 1}"].value = 40
            else:
                page[f"{columns['usd_per_hour']}{last + 1}"].value = 1.25
        book["Scenarios"][f"{letters['model']}6"].value = "my-8b"
        book["Scenarios"][f"{letters['gpu']}6"].value = "my-gpu"

    done = run(change(act))
    assert done.exit_code == 0, done.output
    known = scenario.run(TABLE).book.table.catalog
    model = {key: value for key, value in known.models["llama-3-8b"].values.items() if value is not None}
    gpu = {key: value for key, value in known.gpus["h100-sxm"].values.items() if value is not None and key != "usd_per_hour"}
    rows = [{**TABLE["rows"][0], "model": "my-8b", "gpu": "my-gpu"}, *TABLE["rows"][1:]]
    table = {**TABLE, "rows": rows, "models": {"my-8b": {**model, "layers": 40}}, "gpus": {"my-gpu": gpu}, "prices": {"my-gpu": 1.25}}
    expected, shown = scenario.run(table).full, scenarios(tmp_path / "new.xlsx")
    for name in ("tpot_ms", "usd_per_hour", "usd_per_million_tokens", "kv_bytes_per_token"):
        assert all(same(a, b) for a, b in zip(expected[name].to_list(), shown[name], strict=True)), name


def test_a_new_model_that_lacks_fields_is_named(written: Path, change: Callable[..., Path]) -> None:
    """A row on Models with a name only says what it lacks, at its cell; so does a field that is cleared."""
    last = max(cell.row for cell in openpyxl.load_workbook(written)["Models"]["A"] if cell.value)
    done = run(change(lambda book: setattr(book["Models"][f"A{last + 1}"], "value", "mine")))
    assert done.exit_code == 2
    assert f"Models!A{last + 1}: model 'mine' lacks hidden, layers" in done.stderr
    layers = f"{header(written, 'Models')['layers']}{row_of(written, 'Models', 'name', 'llama-3-8b')}"
    done = run(change(lambda book: setattr(book["Models"][layers], "value", None)))
    assert done.exit_code == 2
    assert f"Models!{layers}: model 'llama-3-8b' lacks layers" in done.stderr


def test_rates_and_curve_points_can_be_changed(written: Path, tmp_path: Path) -> None:
    """Changed rates and points count, and keep the source that stands beside them."""
    rate = f"{header(written, 'Profiles')['p1']}{row_of(written, 'Profiles', 'profile', 'chat')}"
    path = edit(written, tmp_path / "typed.xlsx", {("Profiles", rate): 0.9, ("Curves", "C7"): 1.6})
    assert run(path).exit_code == 0
    profiles = {"chat": {"rates": [0.9, 0.6, 0.4], "source": "made up"}}
    curves = {"kernel": {"points": [[1, 1.0], [64, 1.6], [256, 3.0]], "source": "made up"}}
    expected, shown = scenario.run({**TABLE, "profiles": profiles, "curves": curves}).full, scenarios(tmp_path / "new.xlsx")
    for name in ("tokens_per_round", "slowed_ms", "tpot_ms"):
        assert all(same(a, b) for a, b in zip(expected[name].to_list(), shown[name], strict=True)), name
    table, _ = xlsx_table.load(path, host.load(()))
    assert table.vectors.profiles["chat"].source == "made up"
    assert table.vectors.curves["kernel"].source == "made up"
    done = run(edit(written, tmp_path / "typed.xlsx", {("Profiles", rate): 1.2}))
    assert f"Profiles!{rate}" in done.stderr
    done = run(edit(written, tmp_path / "typed.xlsx", {("Curves", "B7"): 0.5}))
    assert "Curves!B6: the x values of a curve must rise" in done.stderr


def test_an_own_formula_can_be_changed_on_formulas(written: Path, tmp_path: Path) -> None:
    """The text on the sheet Formulas counts for the table's own columns; a bad one is named; the engine's are not changed."""
    cell = f"E{row_of(written, 'Formulas', 'column', 'twice')}"
    path = edit(written, tmp_path / "typed.xlsx", {("Formulas", cell): "batch * 3"})
    assert run(path).exit_code == 0
    assert scenarios(tmp_path / "new.xlsx")["twice"] == [3, 24, 192, 48]
    done = run(edit(written, tmp_path / "typed.xlsx", {("Formulas", cell): "batch * "}))
    assert done.exit_code == 2
    assert f"Formulas!{cell}" in done.stderr
    engine = f"E{row_of(written, 'Formulas', 'column', 'tpot_ms')}"
    said = told(edit(written, tmp_path / "typed.xlsx", {("Formulas", engine): "round_ms"}))
    assert f"Formulas!{engine}: the engine's formulas of tpot_ms are used" in said


@pytest.mark.parametrize("sheet", ["Source", "Formulas", "Profiles", "Assumptions", "Models", "Summary", "README", "Checks", "Methods"])
def test_a_deleted_sheet_is_survived_and_said(sheet: str, change: Callable[..., Path], tmp_path: Path) -> None:
    """The rows come back without the other sheets; what is lost with a sheet is said."""
    path = change(lambda book: book.remove(book[sheet]))
    done = CliRunner().invoke(main, ["run", str(path), "-o", str(tmp_path / "new.xlsx")])
    assert done.exit_code == 0, done.output
    if sheet not in ("Summary", "README", "Checks"):
        assert f"the sheet {sheet} is gone" in done.stderr or f"the sheet '{sheet}' is gone" in done.stderr
    shown = scenarios(tmp_path / "new.xlsx")
    assert shown["batch"] == [1, 8, 64, 16]
    assert ("twice" in shown) == (sheet != "Source")


# -- values over formulas -------------------------------------------------------------------------------


def test_a_value_over_a_formula_is_refused(written: Path, tmp_path: Path) -> None:
    """A typed-over formula is an error with its cell and both ways out."""
    cell = cell_of(written, "tokens_per_round 7")
    done = run(typed(written, tmp_path, {"tokens_per_round 7": 3}))
    assert done.exit_code == 2
    assert f"Scenarios!{cell}: 3 is typed over the formula of 'tokens_per_round'" in done.stderr
    assert "--keep-overrides" in done.stderr


def test_kept_overrides_are_visible_and_live(written: Path, tmp_path: Path) -> None:
    """With --keep-overrides the value stands in a column of its own that all that follows reads, and comes back again."""
    path = typed(written, tmp_path, {"tokens_per_round 7": 3})
    assert "its value 3 is kept" in told(path, "--keep-overrides")
    shown, before = scenarios(tmp_path / "new.xlsx"), scenarios(written)
    assert shown["tokens_per_round_override"] == [None, 3, None, None]
    assert shown["tokens_per_round"][1] == 3
    # One round yields 3 tokens, so that the time per token is a third of the round's.
    assert shown["tpot_ms"][1] == pytest.approx(before["round_ms"][1] / 3, rel=1e-12)
    assert shown["tpot_ms"][0] == before["tpot_ms"][0]
    formula = openpyxl.load_workbook(tmp_path / "new.xlsx")["Scenarios"]
    letters = header(tmp_path / "new.xlsx", "Scenarios")
    assert f"${letters['tokens_per_round_override']}7" in formula[f"{letters['tokens_per_round']}7"].value
    again = run(tmp_path / "new.xlsx", out="again.xlsx")
    assert again.exit_code == 0, again.output
    same_numbers(tmp_path / "new.xlsx", tmp_path / "again.xlsx")


def test_a_value_over_an_applied_column_becomes_the_input(written: Path, tmp_path: Path) -> None:
    """Typed over what applies to a row, a number or a name is the row's input, and is checked like one."""
    path = typed(written, tmp_path, {"alpha 7": 0.55, "weights 6": "fp8"})
    done = run(path, "--keep-overrides")
    assert done.exit_code == 0, done.output
    shown = scenarios(tmp_path / "new.xlsx")
    assert shown["alpha_given"] == [None, 0.55, None, None]
    assert shown["weights_given"] == ["fp8", None, None, "bf16"]
    done = run(typed(written, tmp_path, {"alpha 7": 1.55}), "--keep-overrides")
    assert done.exit_code == 2
    assert f"Scenarios!{cell_of(written, 'alpha 7')}: alpha: 1.55 is out of range" in done.stderr


def test_what_cannot_be_kept_is_refused_all_the_same(written: Path, tmp_path: Path) -> None:
    """Text over a number and a value over a helper column cannot stand in place of a formula."""
    done = run(typed(written, tmp_path, {"tpot_ms 7": "fast", "model_row 6": 4}), "--keep-overrides")
    assert done.exit_code == 2
    assert done.stderr.count("cannot be kept") == 2


def test_a_changed_formula_is_found(written: Path, change: Callable[..., Path]) -> None:
    """Another formula in place of the engine's is named, also where a number of it is the row's own."""
    for place in ("tpot_ms 6", "twice 8", "twice 9"):
        cell = cell_of(written, place)
        name, row = place.split()
        letter = header(written, "Scenarios")["batch"]
        done = run(change(lambda book, cell=cell, row=row, letter=letter: setattr(book["Scenarios"][cell], "value", f"=${letter}{row}*{row}")))
        assert done.exit_code == 2, done.output
        assert f"Scenarios!{cell}: the formula of '{name}' was changed" in done.stderr


# -- what the analyst added -----------------------------------------------------------------------------


def test_own_columns_and_sheets_follow_to_their_new_addresses(written: Path, change: Callable[..., Path], tmp_path: Path) -> None:
    """Own formulas refer to the same things in the new file, though rows and columns have moved there."""
    letters = header(written, "Scenarios")
    last = openpyxl.utils.get_column_letter(len(letters) + 1)
    alpha = row_of(written, "Assumptions", "name", "eagle_alpha")
    model = row_of(written, "Models", "name", "llama-3-8b")

    def act(book: Any) -> None:
        sheet, own = book["Scenarios"], book.create_sheet("Meine Notizen")
        sheet[f"{last}5"].value = "margin"
        for row in range(6, 10):
            sheet[f"{last}{row}"].value = f"=3-${letters['step_ms']}{row}"
            sheet[f"{last}{row}"].number_format = "0.0%"
        own["A1"].value, own["A2"].value = "=cmd|' /C calc'!A0", datetime(2026, 1, 2)
        own["A1"].data_type = "s"
        own["B1"].value = f"=Scenarios!{letters['batch']}7*2"
        own["B2"].value = f"=Assumptions!$C${alpha}+0"
        own["B3"].value = f"=Models!{header(written, 'Models')['layers']}{model}"
        own["B4"].value = f"=SUM(Scenarios!{letters['batch']}6:{letters['batch']}9)"
        own["B5"].value = "=B4/2+eagle_alpha"
        own["B6"].value = f"=SUM(Scenarios!{letters['batch']}:{letters['batch']})"
        own["B7"].value = "=SUM(T_scenarios[batch])"
        own["B8"].value = "=Summary!C7"
        own["B9"].value = "=my_name*2"
        own["B10"].value = "='[1]Other book'!A1"
        own.column_dimensions["A"].width = 33
        # A row is put in front, so that everything moves down by one in the new file.
        for name in letters:
            if name.endswith("_given") or name in ("id", "model", "gpu", "batch", "method"):
                sheet[f"{letters[name]}10"].value = sheet[f"{letters[name]}6"].value
        sheet[f"{letters['id']}10"].value = "copy"
        sheet[f"{letters['method']}10"].value = "small-model"

    path = change(act)
    said = told(path)
    assert "Meine Notizen!B8, B9, B10: formulas that refer to what cannot be told in a new file" in said
    assert "the sheet 'Meine Notizen' is carried over" in said
    new, moved = openpyxl.load_workbook(tmp_path / "new.xlsx"), header(tmp_path / "new.xlsx", "Scenarios")
    assert moved["batch"] == letters["batch"]
    assert moved["step_ms"] != letters["step_ms"]
    sheet, own = new["Scenarios"], new["Meine Notizen"]
    assert sheet[f"{moved['margin']}7"].value == f"=3-${moved['step_ms']}7"
    assert sheet[f"{moved['margin']}7"].number_format == "0.0%"
    assert own["A1"].data_type == "s"
    assert own["A2"].value == datetime(2026, 1, 2)
    assert own["B1"].value == f"=Scenarios!{moved['batch']}7*2"
    new_alpha = row_of(tmp_path / "new.xlsx", "Assumptions", "name", "eagle_alpha")
    assert own["B2"].value == f"=Assumptions!$C${new_alpha}+0"
    assert own["B3"].value == f"=Models!{header(tmp_path / 'new.xlsx', 'Models')['layers']}{model}"
    assert own["B4"].value == f"=SUM(Scenarios!{moved['batch']}6:{moved['batch']}9)"
    assert own["B5"].value == "=B4/2+eagle_alpha"
    assert own["B6"].value == f"=SUM(Scenarios!{moved['batch']}:{moved['batch']})"
    assert own["B7"].value == "=SUM(T_scenarios[batch])"
    assert (own["B8"].value, own["B8"].data_type) == ("=Summary!C7", "s")  # the file held no value to keep
    assert own.column_dimensions["A"].width == 33
    assert "T_scenarios" in sheet.tables
    assert [column.name for column in sheet.tables["T_scenarios"].tableColumns][-1] == "margin"


def test_filled_down_formulas_are_carried_too(written: Path, tmp_path: Path) -> None:
    """Excel writes a formula that is filled down once for all rows; each row gets its own back."""
    letters = header(written, "Scenarios")
    last, batch = openpyxl.utils.get_column_letter(len(letters) + 1), letters["batch"]
    from workbooks import parts

    part = parts(written)["Scenarios"]
    cells = {5: f'<c r="{last}5" t="inlineStr"><is><t>half</t></is></c>',
             6: f'<c r="{last}6"><f t="shared" ref="{last}6:{last}8" si="900">{batch}6/2</f><v>0.5</v></c>',
             7: f'<c r="{last}7"><f t="shared" si="900"/><v>4</v></c>', 8: f'<c r="{last}8"><f t="shared" si="900"/><v>32</v></c>',
             9: f'<c r="{last}9"><f t="array" ref="{last}9">SUM({batch}6:{batch}9*2)</f><v>178</v></c>'}  # fmt: skip
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(tmp_path / "filled.xlsx", "w") as out:
        for name in source.namelist():
            text = source.read(name)
            if name == part:
                for row, cell in cells.items():
                    text = re.sub(rb'(<row r="%d"(?:.*?))</row>' % row, lambda m, cell=cell: m[1] + cell.encode() + b"</row>", text, count=1, flags=re.DOTALL)
            out.writestr(name, text)
    assert "1 formulas of the column 'half' cannot be carried over; their values are kept" in told(tmp_path / "filled.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "new.xlsx")["Scenarios"]
    assert [sheet[f"{last}{row}"].value for row in range(6, 10)] == [f"={batch}6/2", f"={batch}7/2", f"={batch}8/2", 178]


def test_what_cannot_be_carried_over_is_said(written: Path, change: Callable[..., Path]) -> None:
    """Cells outside the table, and own columns on the engine's other sheets, are named when they are left behind."""
    letters = header(written, "Scenarios")
    beyond = openpyxl.utils.get_column_letter(len(letters) + 2)

    def act(book: Any) -> None:
        book["Scenarios"][f"{beyond}7"].value = "a note"
        models = book["Models"]
        models.cell(5, len(header(written, "Models")) + 1).value = "my rating"

    said = told(change(act))
    assert f"{beyond}7" in said
    assert "not carried over" in said
    assert "the column 'my rating' is not carried over" in said


def test_a_header_that_was_renamed_is_told_where_it_stands(written: Path, change: Callable[..., Path]) -> None:
    """A capital letter or a slip: the cell and the name that was meant, and no complaint of formulas that read the column."""
    for name, typed in (("batch", "Batch"), ("batch", "batches"), ("alpha_given", "alpha_give")):
        cell = cell_of(written, f"{name} 5")
        done = run(change(lambda book, cell=cell, typed=typed: setattr(book["Scenarios"][cell], "value", typed)))
        assert done.exit_code == 2
        assert f"Scenarios!{cell}: the header '{typed}' is not known" in done.stderr
        assert f"did you mean '{name}'?" in done.stderr
        assert "was changed" not in done.stderr
