"""Round trips are exact: a table written, read back and written again is the same, and ``check`` says what is not."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spreadsheet import SOFFICE
from workbooks import differences, edit, header, parts, recalculate_all, row_of, same

import scenario
from scenario.api import bundled
from scenario.cli.commands import main
from scenario.questions import diff
from scenario.registry import host
from scenario.tables.export_table import to_yaml
from scenario.workbooks import read_back as xlsx_table
from scenario.workbooks.form.witness import Witness

TABLE: dict[str, Any] = {
    "version": 1,
    "title": "Round <&> trip",
    "defaults": {"context": 512},
    "rows": [{"id": f"r{batch}", "model": "llama-3-8b", "gpu": "h100-sxm", "batch": batch, "method": method, "mfu": 0.5}
             for batch, method in ((1, "vanilla"), (8, "eagle"), (64, "ngram"))],
    "profiles": {"chat": [0.8, 0.6], "sourced": {"rates": [0.7], "source": "made up", "doc": "a note"}},
    "curves": {"kernel": [[1, 1.0], [64, 1.2]]},
    "columns": {"per_day": {"formula": "usd_per_hour * 24", "unit": "$"}},
}  # fmt: skip


def sheets(path: Path) -> dict[str, bytes]:
    """The XML of every sheet but README, and what hangs on them: tables, names, charts.

    The name of the file that a value came from stands beside it; it is taken out here, and what Source says of it and of README.
    """
    file = rb"<t>([\w-]+\.(?:yaml|xlsx)|table)</t>"
    named = parts(path)
    with zipfile.ZipFile(path) as book:
        found = {title: book.read(part) for title, part in named.items() if title != "README"}
        names = {name.decode() for data in found.values() for name in re.findall(file, data)}
        found = {title: re.sub(file, b"<t>FILE</t>", data) for title, data in found.items()}
        for name in names:
            found["Source"] = re.sub(rf"(?<=[ \"]){Witness.digest(name)} ?".encode(), b"", found["Source"])
        found["Source"] = re.sub(rb"# as written: [^<]*README[^<]*", b"", found["Source"])
        found |= {name: book.read(name) for name in book.namelist() if name.startswith(("xl/tables/", "xl/charts/", "xl/workbook.xml", "xl/comments"))}
    return found


def again(path: Path) -> Path:
    """The workbook read back and written anew."""
    return scenario.run(path).to_excel(path.with_name("again.xlsx"))


def the_same(first: Path, second: Path) -> None:
    """Two workbooks are alike, byte for byte, but for where they say they come from."""
    a, b = sheets(first), sheets(second)
    assert list(a) == list(b)
    for name, data in a.items():
        assert data == b[name], f"{name}: {_apart(data, b[name])}"


def _apart(a: bytes, b: bytes) -> str:
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return f"{a[max(at - 80, 0) : at + 80]!r} became {b[max(at - 80, 0) : at + 80]!r}"


def check(path: Path, *options: str) -> Result:
    """``scenario check`` of a workbook."""
    return CliRunner().invoke(main, ["check", str(path), *options], env={"COLUMNS": "250"})


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table as a workbook."""
    return scenario.run(TABLE).to_excel(tmp_path_factory.mktemp("round") / "costs.xlsx")


@pytest.mark.parametrize("name", sorted(bundled()))
def test_a_bundled_table_comes_back_exactly(name: str, tmp_path: Path) -> None:
    """Written, read back and written again, every sheet is the same bytes, and the numbers are the same floats."""
    first = scenario.run(name)
    path = first.to_excel(tmp_path / "costs.xlsx")
    second = scenario.run(path)
    assert first.full.equals(second.full)
    assert first.book.table.rows.select(sorted(first.book.table.rows.columns)).equals(
        second.book.table.rows.select(sorted(first.book.table.rows.columns)))  # fmt: skip
    the_same(path, second.to_excel(tmp_path / "again.xlsx"))


def test_every_kind_of_part_comes_back_exactly(written: Path) -> None:
    """Profiles and curves with and without a source, own columns and odd titles are the same after a round trip."""
    the_same(written, again(written))


def test_the_exported_table_of_a_workbook_is_the_same_table(written: Path, tmp_path: Path) -> None:
    """``export-table`` of a workbook gives a YAML table that runs to the same rows, and the same workbook."""
    done = CliRunner().invoke(main, ["export-table", str(written), "-o", str(tmp_path / "table.yaml")])
    assert done.exit_code == 0, done.output
    result = scenario.run(tmp_path / "table.yaml")
    assert result.full.equals(scenario.run(written).full)
    the_same(written, result.to_excel(tmp_path / "again.xlsx"))


def test_rows_left_out_and_sorted_come_back(tmp_path: Path) -> None:
    """where and sort act when the file is written; reading it back keeps what is there, and loses nothing more."""
    table = {**TABLE, "where": "batch > 1", "sort": "-batch"}
    first = scenario.run(table)
    path = first.to_excel(tmp_path / "costs.xlsx")
    second = scenario.run(path)
    assert second.full["id"].to_list() == ["r64", "r8"]
    # The row that was left out took along columns that only its method needed.
    shared = [name for name in first.full.columns if name in second.full.columns]
    assert len(shared) > 100
    for name in shared:
        assert all(same(a, b) for a, b in zip(first.full[name].to_list(), second.full[name].to_list(), strict=True)), name
    new = second.to_excel(tmp_path / "again.xlsx")
    the_same(new, scenario.run(new).to_excel(tmp_path / "third.xlsx"))
    assert check(path).exit_code == 0


VALUES = {
    "batch": st.integers(1, 512), "context": st.integers(0, 100_000), "gpus": st.integers(1, 8), "mfu": st.floats(0.01, 1),
    "usd_per_hour": st.floats(0.01, 100), "alpha": st.floats(0, 1), "gamma": st.integers(1, 8), "utilization": st.floats(0.01, 1),
}  # fmt: skip
CELLS = st.fixed_dictionaries(
    {"model": st.sampled_from(["llama-3-8b", "mixtral-8x7b"]), "gpu": st.sampled_from(["h100-sxm", "a100-80gb"]), "batch": VALUES["batch"],
     "context": VALUES["context"], "method": st.sampled_from(["vanilla", "eagle", "ngram", "int4+mtp"])},
    optional={name: value for name, value in VALUES.items() if name not in ("batch", "context")},
)  # fmt: skip


@given(rows=st.lists(CELLS, min_size=1, max_size=4), title=st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn")), max_size=30))
@settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_random_tables_come_back_exactly(rows: list[dict[str, Any]], title: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever the values are, floats to the last digit, a table comes back as it was."""
    folder = tmp_path_factory.mktemp("random")
    first = scenario.run({"version": 1, "title": title, "rows": rows})
    path = first.to_excel(folder / "costs.xlsx")
    second = scenario.run(path)
    assert first.full.equals(second.full)
    assert second.book.table.title == (title.strip() or second.book.table.title)


# -- check ----------------------------------------------------------------------------------------------


def test_check_says_good(written: Path) -> None:
    """A workbook as it was written shows what the engine computes: exit code 0."""
    done = check(written)
    assert done.exit_code == 0, done.output
    assert re.search(r"good: [0-9,]+ cells of 3 rows show what the engine computes", done.output)


def test_check_finds_an_edit_that_was_not_recalculated(written: Path, tmp_path: Path) -> None:
    """An input that was changed by a program that does not compute leaves old numbers in its row only."""
    batch = header(written, "Scenarios")["batch"]
    done = check(edit(written, tmp_path / "costs.xlsx", {("Scenarios", f"{batch}7"): 16}))
    assert done.exit_code == 1
    assert f"Scenarios!{header(written, 'Scenarios')['tokens_per_s']}7" in done.output
    assert "an input of the row was edited, and the file not recalculated" in done.output
    letter = header(written, "Scenarios")["tokens_per_s"]
    assert f"Scenarios!{letter}6" not in done.output


def test_check_finds_a_value_over_a_formula(written: Path, tmp_path: Path) -> None:
    """A typed-over formula is named, and so is what follows from it, with the cell that it follows from."""
    letters = header(written, "Scenarios")
    cell = f"{letters['step_ms']}7"
    found = check(edit(written, tmp_path / "costs.xlsx", {("Scenarios", cell): 99}))
    assert found.exit_code == 1
    assert re.search(rf"Scenarios!{cell}\b.*a value is typed over the formula", found.output)


def test_check_finds_a_changed_assumption(written: Path, tmp_path: Path) -> None:
    """A changed assumption is the cause of every number that reads it, and only of those."""
    cell = f"C{row_of(written, 'Assumptions', 'name', 'default_context')}"
    done = check(edit(written, tmp_path / "costs.xlsx", {("Assumptions", cell): 4096}))
    assert done.exit_code == 1
    assert f"changed assumption, not recalculated: Assumptions!{cell}" in done.output
    price = f"{header(written, 'GPUs')['usd_per_hour']}{row_of(written, 'GPUs', 'name', 'h100-sxm')}"
    done = check(edit(written, tmp_path / "costs.xlsx", {("GPUs", price): 99}))
    assert f"changed assumption, not recalculated: GPUs!{price}" in done.output
    assert f"Scenarios!{header(written, 'Scenarios')['tpot_ms']}6" not in done.output


def test_check_needs_inputs_that_can_be_read(written: Path, tmp_path: Path) -> None:
    """A bad input is exit code 2, as is a file that is no workbook."""
    batch = header(written, "Scenarios")["batch"]
    assert check(edit(written, tmp_path / "costs.xlsx", {("Scenarios", f"{batch}7"): "x"})).exit_code == 2
    (tmp_path / "text.xlsx").write_text("id,model")
    assert check(tmp_path / "text.xlsx").exit_code == 2


def test_check_says_when_there_are_no_values_to_compare(written: Path, tmp_path: Path) -> None:
    """openpyxl drops the shown values: nothing was compared then, which is said, and is not good."""
    openpyxl.load_workbook(written).save(tmp_path / "costs.xlsx")
    done = check(tmp_path / "costs.xlsx")
    assert done.exit_code == 1
    assert re.search(r"[0-9,]+ formulas hold no value to compare \(Scenarios [0-9,]+, .*Summary", done.output)
    assert "nothing was compared: no formula holds a value" in done.output
    assert "good" not in done.output


def test_shown_values_are_the_engines(written: Path) -> None:
    """What the cells show is read back as the very floats that the engine computed."""
    _, reading = xlsx_table.load(written, host.load(()), shown=True)
    frame = scenario.run(TABLE).full
    for name in ("tpot_ms", "speedup", "usd_per_million_tokens", "status", "fits"):
        assert all(same(a, b) for a, b in zip(frame[name].to_list(), reading.shown[name], strict=True)), name
        assert frame[name].to_list() == reading.shown[name], name


PRODUCT: dict[str, Any] = {
    "version": 1, "title": "product", "defaults": {"gpu": "h100-sxm", "context": 4000},
    "grid": {"model": ["llama-3-70b", "llama-3-8b"], "batch": [1, 64, 16, 4000], "method": ["vanilla", "eagle"]},
}  # fmt: skip


@pytest.mark.parametrize("parts", [{"where": "fits"}, {"sort": "tpot_ms"}, {"where": "fits", "sort": ["-batch", "tpot_ms"]}], ids=str)
def test_what_is_sorted_or_left_out_comes_back(parts: dict[str, Any], tmp_path: Path) -> None:
    """The same rows as before, those that ``where`` left out among them; the table is a grid again; and the next file is the same."""
    table = {**PRODUCT, **parts}
    first = scenario.run(table)
    path = first.to_excel(tmp_path / "product.xlsx")
    second = scenario.run(path)
    assert set(second.book.table.rows["id"]) == set(first.book.table.rows["id"])
    assert first.frame.equals(second.frame.select(first.frame.columns))
    source = tmp_path / "table.yaml"
    source.write_text(to_yaml(second.book.table, second.host))
    written = yaml.safe_load(source.read_text())
    assert "rows" not in written
    assert {name: set(values) for name, values in written["grid"].items()} == {name: set(values) for name, values in PRODUCT["grid"].items()}
    loaded = host.load(())
    assert diff.compare(first.book.table, second.book.table, loaded).equal
    the_same(path, second.to_excel(tmp_path / "again.xlsx"))


def test_a_row_that_was_left_out_comes_in_when_it_fits(tmp_path: Path) -> None:
    """Its GPU gets more memory in the workbook: the new file has it."""
    first = scenario.run({**PRODUCT, "where": "fits"})
    path = first.to_excel(tmp_path / "product.xlsx")
    cell = f"{header(path, 'GPUs')['memory_gb']}{row_of(path, 'GPUs', 'name', 'h100-sxm')}"
    second = scenario.run(edit(path, tmp_path / "more.xlsx", {("GPUs", cell): 1_000_000}))
    assert (first.full.height, second.full.height) == (6, 16)


def test_a_workbook_without_rows_is_sound(tmp_path: Path) -> None:
    """Where nothing fits there is nothing to show: the file says OK, comes back, and is refused by nobody."""
    table = {**PRODUCT, "defaults": {"gpu": "l4", "context": 100_000_000}, "where": "fits"}
    path = scenario.run(table).to_excel(tmp_path / "none.xlsx")
    assert scenario.run(path).book.table.rows.height == 16
    if SOFFICE:
        (anew,) = recalculate_all([path], tmp_path)
        assert differences(path, anew) == []
        assert openpyxl.load_workbook(anew, data_only=True)["README"]["B4"].value == "OK"


def test_remarks_on_source_that_are_damaged_are_passed_over(tmp_path: Path) -> None:
    """Rows that were left out and can no longer be read do not come back, and that is said."""
    path = scenario.run({**PRODUCT, "where": "fits"}).to_excel(tmp_path / "product.xlsx")
    book = openpyxl.load_workbook(path)
    for row in book["Source"].iter_rows(max_col=1):
        if str(row[0].value).startswith("#| grid") or str(row[0].value).startswith("#| rows"):
            row[0].value = "#| {"
    book.save(path)
    _, reading = xlsx_table.load(path, host.load(()))
    assert "the rows that where left out (sheet Source) cannot be read any more, and do not come back" in reading.notes
