"""Workbooks that use profiles, trees, measured lengths and answers, recalculated by LibreOffice: cells equal polars, also after edits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openpyxl
import pytest
from spreadsheet import needs_soffice, recalculate

import scenario
from scenario.questions.variants import compute, sensitivity
from scenario.registry.host import load
from scenario.workbooks.read_back import load as load_workbook

HOST = load(third_party=False)
TABLE: dict[str, Any] = {
    "version": 1,
    "title": "Drafting",
    "profiles": {"chat": {"conditional": [0.7, 0.65, 0.6]}, "code": [0.9, 0.8, 0.7], "told": {"lengths": [1.7, 2.1, 2.3]}},
    "trees": {
        "grown": {"rates": [[0.75, 0.12, 0.05], [0.69, 0.12, 0.05, 0.02]], "grow": {"depth": 6, "top_k": 10, "nodes": 40}},
        "small": {"rates": [0.7, 0.1], "topology": [[0], [1], [0, 0], [0, 1], [0, 0, 0]]},
    },
    "parameters": {"medusa": {"tree": "small", "gamma": 3}, "mtp": {"acceptance_length": 1.85, "measured_gamma": 1}, "ngram": {"acceptance": "chat"}},
    "show": ["best_gamma", "break_even", "acceptance", "ridge_headroom"],
    "defaults": {"gpus": 4, "context": 500},
    "rows": [
        {"model": ["llama-3-8b", "mixtral-8x7b"], "gpu": "h100-sxm", "batch": [1, 64],
         "method": ["vanilla", "eagle", "int4+eagle", "medusa", "fp8+eagle-3", "lookahead", "suffix", "eagle-2", "mtp", "mtp-modules",
                    "parallel-draft", "ngram", "small-model"]},
        {"id": "auto", "model": "llama-3-8b", "gpu": "h100-sxm", "batch": 4, "method": "eagle", "gamma": "auto", "acceptance": "chat"},
        {"id": "old", "model": "llama-3-8b", "gpu": "a100-80gb", "batch": 4, "method": "fp8"},
        {"id": "place", "model": "llama-3-8b", "gpu": "h100-sxm", "batch": 4, "method": "eagle", "acceptance": {"conditional": [0.8, 0.7]}},
        {"id": "tree", "model": "llama-3-8b", "gpu": "h100-sxm", "batch": 4, "method": "eagle", "tree": "grown", "gamma": 6},
        {"id": "share", "model": "llama-3-8b", "gpu": "h100-sxm", "batch": 4, "method": "eagle", "accepted_share": 0.5, "gamma": 5},
        {"id": "draft", "model": "llama-3-8b", "gpu": "h100-sxm", "batch": 4, "method": "small-model", "draft": "llama-3.2-1b",
         "draft_bits": 8, "draft_gpus": 1, "acceptance": "told"},
    ],
}  # fmt: skip
TOLERANCE = 1e-9


def cells(path: Path) -> dict[tuple[str, str], Any]:
    """Every cell's value by sheet and address; the texts of blanks aside."""
    book = openpyxl.load_workbook(path, data_only=True)
    return {(sheet.title, cell.coordinate): cell.value for sheet in book for line in sheet.iter_rows() for cell in line
            if cell.value not in (None, "")}  # fmt: skip


def differ(one: Any, other: Any) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) > TOLERANCE * max(1, abs(one))
    return bool(one != other)


def same(shown: Path, recalculated: Path) -> list[Any]:
    a, b = cells(shown), cells(recalculated)
    return [(place, a.get(place), b.get(place)) for place in {*a, *b} if differ(a.get(place), b.get(place))]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scenario.run(TABLE, host=HOST).to_excel(tmp_path_factory.mktemp("drafting") / "drafting.xlsx")


@needs_soffice
def test_every_cell_is_what_polars_says(written: Path, tmp_path: Path) -> None:
    """All sheets, the ones by gamma and by batch and the trees among them: recalculated cells equal the engine's within 1e-9."""
    assert len(cells(written)) > 15_000
    assert {"By gamma", "By batch", "Trees", "Profiles"} <= {sheet for sheet, _ in cells(written)}
    assert not same(written, recalculate(written, tmp_path))[:20]


EDITS: dict[str, dict[str, Any]] = {
    "auto": {"method_": "fp8+eagle-3", "batch": 200}, "place": {"alpha": 0.55, "acceptance": None, "gamma": 6},
    "tree": {"tree": "small", "gamma": 2}, "share": {"accepted_share": 0.3, "gamma": 3}, "draft": {"method_": "ngram", "acceptance": "code"},
}  # fmt: skip


@needs_soffice
def test_edits_in_the_file_give_what_the_engine_gives(written: Path, tmp_path: Path) -> None:
    """Method, batch, alpha, gamma, profile, tree, a profile's rate and a tree's rate changed in cells: as in a table changed alike."""
    table = {**TABLE, "rows": [dict(row) for row in TABLE["rows"]]}
    book = openpyxl.load_workbook(written)
    sheet = book["Scenarios"]
    heads = {sheet.cell(5, column).value: column for column in range(1, sheet.max_column + 1)}
    places = {sheet.cell(row, 1).value: row for row in range(6, sheet.max_row + 1)}
    for name, changes in EDITS.items():
        row = next(row for row in table["rows"] if row.get("id") == name)
        for key, value in changes.items():
            key = key.rstrip("_")
            row[key] = value
            sheet.cell(places[name], heads.get(f"{key}_given", heads.get(key))).value = value
    profile = book["Profiles"]
    names = {profile.cell(row, 1).value: row for row in range(6, profile.max_row + 1)}
    columns = {profile.cell(5, column).value: column for column in range(1, profile.max_column + 1)}
    profile.cell(names["chat"], columns["a2"]).value = 0.5
    trees = book["Trees"]
    rate = next(cell for line in trees.iter_rows() for cell in line if cell.value == 0.7 and cell.column == 3)
    rate.value = 0.6
    book.save(tmp_path / "edited.xlsx")
    table["profiles"] = {**TABLE["profiles"], "chat": {"conditional": [0.7, 0.5, 0.6]}}
    table["trees"] = {**TABLE["trees"], "small": {"rates": [0.6, 0.1], "topology": TABLE["trees"]["small"]["topology"]}}
    wanted = scenario.run(table, host=HOST).full
    found = openpyxl.load_workbook(recalculate(tmp_path / "edited.xlsx", tmp_path), data_only=True)["Scenarios"]
    wrong = []
    for index, line in enumerate(wanted.iter_rows(named=True), 6):
        for name, column in heads.items():
            if name in line and not name.endswith("_given") and name != "id":
                value = found.cell(index, column).value
                if differ(line[name], None if value == "" else value):
                    wrong.append((line["id"], name, line[name], value))
    assert not wrong[:20]


def test_the_workbook_comes_back_as_the_same_table(written: Path) -> None:
    """Read back, the workbook gives the same numbers: profiles as they were given, trees, what is shown."""
    table, _ = load_workbook(written, HOST)
    again, first = compute(table, HOST).frame, scenario.run(TABLE, host=HOST).frame
    assert again.columns == first.columns
    for name in ("tokens_per_round", "rows_per_sequence", "round_ms", "best_gamma", "break_even_batch", "alpha_equivalent", "status"):
        assert not [pair for pair in zip(again[name], first[name], strict=True) if differ(*pair)], name
    assert {name: profile.given for name, profile in table.vectors.profiles.items()}["chat"] == "conditional"


@needs_soffice
def test_the_sensitivity_sheet_is_live(tmp_path: Path) -> None:
    """The tornado's numbers are read from the rows: recalculated they stay, and the largest swing is on top."""
    from scenario.tables import reader as tables

    read = tables.load({**TABLE, "rows": TABLE["rows"][1:]}, HOST)
    result, found = sensitivity(read, HOST, "share", "usd_per_million_tokens", 0.1, {"accepted_share": (0.2, 0.8)})
    assert [swing.size for swing in found.swings] == sorted((swing.size for swing in found.swings), reverse=True)
    assert found.swings[0].name == "accepted_share"
    path = result.to_excel(tmp_path / "s.xlsx")
    assert openpyxl.load_workbook(path)["Sensitivity"]._charts
    assert not same(path, recalculate(path, tmp_path))[:20]
