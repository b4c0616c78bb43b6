"""The workbook is alive: an independent program that recalculates it, before and after edits, agrees with the engine."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import ironcalc
import openpyxl
import pytest
from spreadsheet import needs_soffice
from workbooks import differences, edit, formula_cells, header, pages, recalculate_all, row_of, same, scenarios, without_empty_cells

import scenario
from scenario.api import bundled

ERRORS = {"#n/a", "#value!", "#ref!", "#div/0!", "#num!", "#name?", "#null!", "err:502"}
TABLE: dict[str, Any] = {
    "version": 1,
    "title": "=1+1 & <friends>",
    "defaults": {"context": 1024},
    "rows": [
        {"model": model, "gpu": gpu, "batch": batch, "method": method}
        for model in ("llama-3-8b", "mixtral-8x7b")
        for gpu in ("h100-sxm", "a100-80gb")
        for batch in (1, 64)
        for method in ("vanilla", "eagle", "ngram", "int4+mtp", "small-model")
    ],
    "profiles": {"chat": {"rates": [0.8, 0.6, 0.4], "source": "made up"}},
    "curves": {"kernel": {"points": [[1, 1.0], [64, 1.2], [256, 3.0]], "source": "made up"}},
    "columns": {
        "slowed_ms": {"formula": 'verify_ms * curve("kernel", batch)', "unit": "ms"},
        "label": '"deep" if layers > 40 else "shallow"',
        "guarded": "sqrt(headroom_gb) + log(speedup)",
    },
}
"""A table with every kind of piece: profiles, curves, text and blank columns, a mixture of experts, stacks."""
TABLE["rows"].append({"id": "with a profile", "model": "llama-3-8b", "gpu": "h200", "batch": 8, "method": "eagle", "acceptance": "chat", "gamma": 5})
TABLE["rows"].append({"id": "by a draft", "model": "llama-3-70b", "gpu": "h200", "gpus": 4, "batch": 8, "method": "small-model", "draft": "llama-3.2-1b"})


def changed(**parts: Any) -> dict[str, Any]:
    """The table with some top-level parts replaced."""
    return {**copy.deepcopy(TABLE), **parts}


def with_row(index: int, **cells: Any) -> dict[str, Any]:
    """The table with one row changed."""
    table = copy.deepcopy(TABLE)
    table["rows"][index] |= cells
    return table


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table as a workbook."""
    return scenario.run(TABLE).to_excel(tmp_path_factory.mktemp("live") / "table.xlsx")


def row_edit(index: int, column: str, value: Any, **cells: Any) -> tuple[Any, dict[str, Any]]:
    """An edit of one input cell of a scenario, and the table in which the same is changed."""
    return (lambda path: {("Scenarios", f"{header(path, 'Scenarios')[column]}{6 + index}"): value}), with_row(index, **cells)


def sheet_edit(sheet: str, name: str, column: str, value: Any, **parts: Any) -> tuple[Any, dict[str, Any]]:
    """An edit of one cell of an assumptions sheet, and the table in which the same is changed."""
    key = {"Profiles": "profile"}.get(sheet, "name")
    return (lambda path: {(sheet, f"{header(path, sheet)[column]}{row_of(path, sheet, key, name)}"): value}), changed(**parts)


EDITS: dict[str, tuple[Any, dict[str, Any]]] = {
    "a GPU's bandwidth": sheet_edit("GPUs", "h100-sxm", "bandwidth_tb_s", 4.0, gpus={"h100-sxm": {"bandwidth_tb_s": 4.0}}),
    "a GPU's memory, so that rows stop fitting": sheet_edit("GPUs", "h100-sxm", "memory_gb", 10, gpus={"h100-sxm": {"memory_gb": 10}}),
    "a price": sheet_edit("GPUs", "a100-80gb", "usd_per_hour", 0.5, prices={"a100-80gb": 0.5}),
    "a price taken away": sheet_edit("GPUs", "a100-80gb", "usd_per_hour", None, gpus={"a100-80gb": {"usd_per_hour": None}}),
    "a model's layers": sheet_edit("Models", "llama-3-8b", "layers", 48, models={"llama-3-8b": {"layers": 48}}),
    "a model's experts": sheet_edit("Models", "mixtral-8x7b", "experts_per_token", 4, models={"mixtral-8x7b": {"experts_per_token": 4}}),
    "a default": sheet_edit("Assumptions", "default_context", "value", 4096, defaults={"context": 4096}),
    "a default format": sheet_edit("Assumptions", "default_kv", "value", "fp8", defaults={"context": 1024, "kv": "fp8"}),
    "a method's alpha": sheet_edit("Assumptions", "eagle_alpha", "value", 0.5, parameters={"eagle": {"alpha": 0.5}}),
    "alpha of one": sheet_edit("Assumptions", "eagle_alpha", "value", 1, parameters={"eagle": {"alpha": 1}}),
    "a typed draft cost": sheet_edit("Assumptions", "mtp_draft_cost", "value", 0.2, parameters={"mtp": {"draft_cost": 0.2}}),
    "a profile's rate": sheet_edit("Profiles", "chat", "p1", 0.9, profiles={"chat": {"rates": [0.9, 0.6, 0.4]}}),
    "a row's batch": row_edit(3, "batch", 200, batch=200),
    "a row's model": row_edit(1, "model", "deepseek-v3", model="deepseek-v3"),
    "a row's GPU": row_edit(1, "gpu", "b200", gpu="b200"),
    "a row's method": row_edit(0, "method", "int4+eagle", method="int4+eagle"),
    "a row's method to one that no row had": row_edit(0, "method", "medusa", method="medusa"),
    "a row's alpha": row_edit(1, "alpha_given", 0.95, alpha=0.95),
    "a row's weights": row_edit(0, "weights_given", "fp8", weights="fp8"),
    "a row's context": row_edit(0, "context_given", 0, context=0),
    "a row's price": row_edit(0, "usd_per_hour_given", 9, usd_per_hour=9),
    "a row's draft": row_edit(4, "draft_given", "llama-3.2-3b", draft="llama-3.2-3b"),
    "a row's profile": row_edit(1, "acceptance_given", "chat", acceptance="chat"),
}


@needs_soffice
def test_every_bundled_table_recalculates_to_what_it_shows(tmp_path: Path) -> None:
    """Forced to recalculate, LibreOffice finds in every formula cell of every bundled table the value that polars put there."""
    paths = [scenario.run(name).to_excel(tmp_path / f"{name}.xlsx") for name in bundled()]
    for path, anew in zip(paths, recalculate_all(paths, tmp_path), strict=True):
        assert differences(path, anew) == [], path.name
        assert len(formula_cells(path)) > 500


@needs_soffice
def test_every_kind_of_edit_moves_the_cells_as_the_engine_would(written: Path, tmp_path: Path) -> None:
    """After one input of each kind is changed in the file, its cells equal an engine run of the same change."""
    paths = [edit(written, tmp_path / f"edit{number}.xlsx", cells(written)) for number, (cells, _) in enumerate(EDITS.values())]
    for (what, (_, table)), path in zip(EDITS.items(), recalculate_all(paths, tmp_path), strict=True):
        expected = scenario.run(table).frame
        shown = scenarios(path)
        compared = 0
        for name in expected.columns:
            if name not in shown or name == "id":
                continue
            for index, (a, b) in enumerate(zip(expected[name].to_list(), shown[name], strict=True)):
                assert same(a, b), f"{what}: {name} of row {index}: engine {a!r}, workbook {b!r}"
                compared += 1
        assert compared > 2000, what


def test_ironcalc_agrees_with_every_scenario_cell(written: Path, tmp_path: Path) -> None:
    """A second independent engine computes the cells of Scenarios, Models and Summary to what they show."""
    model = ironcalc.load_from_xlsx(str(without_empty_cells(written, tmp_path / "plain.xlsx")), "en", "UTC", "en")
    model.evaluate()
    shown = openpyxl.load_workbook(written, data_only=True)
    count = 0
    for sheet, cell in formula_cells(written):
        if sheet in ("Scenarios", "Models", "Summary", "Profiles", "Curves"):
            place = shown[sheet][cell]
            got = model.get_cell_value(shown.sheetnames.index(sheet), place.row, place.column)
            assert same(place.value, got), f"{sheet}!{cell}: shows {place.value!r}, ironcalc {got!r}"
            count += 1
    assert count > 4000


def test_no_cell_shows_an_error_or_a_nan(written: Path) -> None:
    """Outside the chart feed no cell shows an error, and none says nan or inf."""
    for sheet in openpyxl.load_workbook(written, data_only=True).worksheets:
        for row in sheet.iter_rows(values_only=True):
            for value in row:
                text = str(value).lower()
                assert text not in ("nan", "inf", "-inf"), sheet.title
                assert sheet.title == "Chart data" or text not in ERRORS, sheet.title


def test_text_that_begins_like_a_formula_stays_text(written: Path) -> None:
    """A title that begins with = is text in every cell that shows it."""
    book = openpyxl.load_workbook(written)
    cells = [c for sheet in book.worksheets for row in sheet.iter_rows(max_row=3) for c in row if c.value == TABLE["title"]]
    assert len(cells) >= 3
    assert all(cell.data_type == "s" for cell in cells)


def test_pages_are_rendered_for_looking_at(written: Path) -> None:
    """The starter workbook prints to pages; they are left as artefacts of the test run."""
    folder = Path(__file__).parents[2] / "artefacts"
    path = scenario.run("starter").to_excel(written.parent / "starter.xlsx")
    found = pages(path, folder)
    if not found:
        pytest.skip("LibreOffice or pdftoppm is not installed")
    assert len(found) >= 8
    assert all(page.stat().st_size > 2000 for page in found)


@needs_soffice
def test_ids_that_look_like_patterns_are_no_duplicates(tmp_path: Path) -> None:
    """``x*`` does not stand twice because of ``xy``, nor ``A`` because of ``a``; an id that does stand twice is counted."""
    names = ["x*", "xy", ">5", "~a", "a?", "ab", "=1", "<>", "~~", "x~*"]
    rows = [{"id": name, "model": "llama-3-8b", "gpu": "h100-sxm", "batch": 1 + index, "method": "vanilla"} for index, name in enumerate(names)]
    path = scenario.run({"version": 1, "defaults": {"context": 0}, "rows": rows}).to_excel(tmp_path / "patterns.xlsx")
    twice = edit(path, tmp_path / "twice.xlsx", {("Scenarios", "A7"): "x*"})
    cased = scenario.run({"version": 1, "defaults": {"context": 0}, "rows": [*rows, {**rows[0], "id": "XY"}]}).to_excel(tmp_path / "cased.xlsx")
    plain, typed, other = recalculate_all([path, twice, cased], tmp_path)
    cell = f"B{row_of(path, 'Checks', 'check', 'Scenarios: ids that stand twice')}"
    assert openpyxl.load_workbook(plain, data_only=True)["Checks"]["C3"].value == "OK"
    assert openpyxl.load_workbook(typed, data_only=True)["Checks"][cell].value == 2
    assert openpyxl.load_workbook(other, data_only=True)["Checks"]["C3"].value == "OK"
