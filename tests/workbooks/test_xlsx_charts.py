"""The charts draw what the engine computes, for what their blue cells choose, before and after edits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ironcalc
import openpyxl
import pytest
from spreadsheet import needs_soffice
from workbooks import differences, edit, header, recalculate_all, row_of, same

import scenario


def rows(model: str, gpu: str = "h200", method: str = "vanilla", **more: Any) -> list[dict[str, Any]]:
    """Rows of one model at three batches."""
    return [{"model": model, "gpu": gpu, "batch": batch, "method": method, **more} for batch in (1, 4, 16)]


def table(model: str, gpus: Any, **parts: Any) -> dict[str, Any]:
    """A table whose rows all give ``gpus``."""
    return {"version": 1, "defaults": {"context": 0, "weights": "bf16"}, "rows": rows(model, gpus=gpus), **parts}


TABLES: dict[str, dict[str, Any]] = {
    "dense": table("llama-3-8b", 1),
    "dense on two": table("llama-3-70b", 2, defaults={"context": 0, "mfu": 0.6}),
    "mixtral": table("mixtral-8x7b", 2),
    "deepseek": table("deepseek-v3", 16),
    "deepseek by default": {**table("deepseek-v3", None), "defaults": {"context": 0, "gpus": 16}},
    "deepseek estimated": table("deepseek-v3", 16, time_model="estimate"),
    "parallel": {**table("deepseek-v3", None, time_model="estimate"), "rows": rows("deepseek-v3", tp=8, pp=2)},
    "linear layers": table("qwen3-next-80b-a3b", 4),
    "as many as needed": table("llama-3-70b", "auto"),
    "int4 of another kind": table("llama-3-8b", 1, parameters={"int4": {"bits": 3, "group_size": 64, "keep_head": 1}}),
    "rows that give mfu": {**table("llama-3-8b", 1), "rows": rows("llama-3-8b", mfu=0.5)},
}


def pass_times(path: Path) -> dict[float, tuple[Any, Any]]:
    """BF16 and INT4 pass times by token rows, as the chart's cells show them."""
    sheet = openpyxl.load_workbook(path, data_only=True)["Chart data"]
    at = next(row for row in range(1, 300) if sheet.cell(row, 1).value == "token rows m")
    return {sheet.cell(row, 1).value: (sheet.cell(row, 2).value, sheet.cell(row, 3).value) for row in range(at + 1, at + 14)}


def engine(given: dict[str, Any], method: str, **more: Any) -> list[float]:
    """The engine's verify passes of the same rows."""
    listed = [{**row, "method": method, **more} for row in given["rows"]]
    return [float(value) for value in scenario.run({**given, "rows": listed}).frame["verify_ms"]]


@needs_soffice
def test_pass_times_are_the_engines(tmp_path: Path) -> None:
    """Dense models, experts, several GPUs, both time models: each point is the engine's verify pass, also recalculated."""
    paths = [scenario.run(given).to_excel(tmp_path / f"t{number}.xlsx") for number, given in enumerate(TABLES.values())]
    for (what, given), path, anew in zip(TABLES.items(), paths, recalculate_all(paths, tmp_path), strict=True):
        assert differences(path, anew) == [], what
        shown = pass_times(anew)
        for index, method in enumerate(("vanilla", "int4")):
            for m, expected in zip((1, 4, 16), engine(given, method), strict=True):
                assert shown[m][index] == pytest.approx(expected, rel=1e-9), f"{what}: {method} at {m} rows"


@needs_soffice
def test_edits_move_the_pass_times(tmp_path: Path) -> None:
    """The blue cells of Charts and the INT4 assumptions move the chart as the engine would."""
    given = table("llama-3-8b", 1)
    path = scenario.run(given).to_excel(tmp_path / "t.xlsx")
    place = {row[0].value: f"B{row[0].row}" for row in openpyxl.load_workbook(path)["Charts"].iter_rows(min_row=4, max_row=9, max_col=1)}
    bits = f"{header(path, 'Assumptions')['value']}{row_of(path, 'Assumptions', 'name', 'int4_bits')}"
    edits = {
        "other": {("Charts", place["model"]): "deepseek-v3", ("Charts", place["gpus"]): 16},
        "bits": {("Assumptions", bits): 8},
    }
    other, wide = recalculate_all([edit(path, tmp_path / f"{name}.xlsx", cells) for name, cells in edits.items()], tmp_path)
    assert [pass_times(other)[m][0] for m in (1, 4, 16)] == pytest.approx(engine(table("deepseek-v3", 16), "vanilla"), rel=1e-9)
    expected = engine({**given, "parameters": {"int4": {"bits": 8}}}, "int4")
    assert [pass_times(wide)[m][1] for m in (1, 4, 16)] == pytest.approx(expected, rel=1e-9)


def batches(path: Path) -> tuple[list[Any], dict[str, dict[Any, Any]]]:
    """The batches of the chart, and speedups by method and batch."""
    sheet = openpyxl.load_workbook(path, data_only=True)["Chart data"]
    at = next(row for row in range(1, 200) if str(sheet.cell(row, 1).value).startswith("speedup"))
    found: dict[str, dict[Any, Any]] = {}
    xs = []
    for row in range(at + 2, at + 60):
        x = sheet.cell(row, 1).value
        if not isinstance(x, int | float):
            break
        xs.append(x)
        for column in (2, 3):
            value = sheet.cell(row, column).value
            if isinstance(value, int | float):
                found.setdefault(str(sheet.cell(at + 1, column).value), {})[x] = value
    return xs, found


@needs_soffice
def test_a_batch_or_method_changed_in_scenarios_stays_on_the_charts(tmp_path: Path) -> None:
    """The batches and methods that the charts draw are those that stand in Scenarios."""
    listed = [*rows("llama-3-8b"), *rows("llama-3-8b", method="eagle")]
    given = {"version": 1, "defaults": {"context": 0}, "rows": listed}
    path = scenario.run(given).to_excel(tmp_path / "t.xlsx")
    letters = header(path, "Scenarios")
    edits = {("Scenarios", f"{letters['batch']}7"): 8, ("Scenarios", f"{letters['batch']}10"): 64}
    edits |= {("Scenarios", f"{letters['method']}{row}"): "ngram" for row in (9, 10, 11)}
    anew = recalculate_all([edit(path, tmp_path / "edited.xlsx", edits)], tmp_path)[0]
    changed = [{**row} for row in listed]
    changed[1]["batch"], changed[4]["batch"] = 8, 64
    for row in changed[3:]:
        row["method"] = "ngram"
    frame = scenario.run({**given, "rows": changed}).frame
    xs, found = batches(anew)
    assert sorted(set(xs)) == [1, 8, 16, 64]
    assert xs == sorted(xs)
    assert set(found) == {"vanilla", "ngram"}
    for method, batch, value in frame.select("method", "batch", "speedup").iter_rows():
        assert same(found[method][batch], value), (method, batch)
    assert sum(map(len, found.values())) == 6


def test_formats_units_and_sources(tmp_path: Path) -> None:
    """Numbers have a number format, working cells a unit, assumptions a source; texts and numbers of a row begin at the same height."""
    book = openpyxl.load_workbook(scenario.run("starter").to_excel(tmp_path / "costs.xlsx"))
    sheet = book["Assumptions"]
    heads = {cell.value: cell.column for cell in sheet[5]}
    for row in sheet.iter_rows(min_row=6, max_row=sheet.max_row):
        value, source = row[heads["value"] - 1], row[heads["source"] - 1]
        assert not isinstance(value.value, int | float) or value.number_format != "General", row[1].value
        assert source.value, row[1].value
        assert {cell.alignment.vertical for cell in row if cell.has_style} == {"top"}
    data = book["Chart data"]
    first = next(row for row in range(1, 300) if data.cell(row, 1).value == "token rows m")
    noted = {data.cell(row, 1).value: (data.cell(row, 2).number_format, data.cell(row, 3).value) for row in range(5, first - 1) if data.cell(row, 1).value}
    assert noted["gpu_bandwidth_tb_s"] == ("#,##0.00", "TB/s")
    assert noted["peak_tflops"][1] == "TFLOP/s"
    readme = book["README"]
    rows_cell = next(row[1] for row in readme.iter_rows(min_col=1, max_col=2) if row[0].value == "rows")
    assert rows_cell.alignment.horizontal == "left"


def points(path: Path) -> dict[str, tuple[Any, Any]]:
    """The working points that the chart of passes marks: token rows and milliseconds by name."""
    sheet = openpyxl.load_workbook(path, data_only=True)["Chart data"]
    at = next(row for row in range(1, 300) if sheet.cell(row, 1).value == "point")
    return {sheet.cell(row, 1).value: (sheet.cell(row, 2).value, sheet.cell(row, 3).value) for row in range(at + 1, at + 5)}


@needs_soffice
def test_both_levers_are_marked_on_the_pass_times(tmp_path: Path) -> None:
    """INT4 lowers the flat part and speculation moves right: the article's T(B) and T(5B) of Llama-3-8B, also at another batch."""
    path = scenario.run({"version": 1, "defaults": {"context": 0}, "rows": rows("llama-3-8b", "h100-sxm")}).to_excel(tmp_path / "t.xlsx")
    found = points(path)
    assert found["T(B): decode"] == (1, pytest.approx(4.79, abs=0.005))
    assert found["T((gamma+1)B): verify"] == (5, pytest.approx(4.79, abs=0.005))
    assert found["T(B) in INT4"] == (1, pytest.approx(1.27, abs=0.005))
    (other,) = recalculate_all([edit(path, tmp_path / "other.xlsx", {("Charts", "H4"): 128})], tmp_path)
    assert points(other)["T((gamma+1)B): verify"] == (640, pytest.approx(9.71, abs=0.005))
    book = openpyxl.load_workbook(path)
    names = [str(series.tx.strRef.f) for series in book["Charts"]._charts[0].series]
    assert len(names) == 8


def test_charts_say_what_they_are_of(tmp_path: Path) -> None:
    """Above the charts stand model, GPU and what times rest on; a choice that no row is of says so."""
    given = {"version": 1, "defaults": {"context": 0}, "rows": [*rows("llama-3-8b", "h100-sxm"), *rows("qwen3-8b", "h200")]}
    path = scenario.run(given).to_excel(tmp_path / "t.xlsx")
    said = {cell.value for (cell,) in openpyxl.load_workbook(path, data_only=True)["Charts"].iter_rows(max_col=1)}
    assert "llama-3-8b on h100-sxm: times are a lower bound: no server is faster, real ones are slower" in said
    model = ironcalc.load_from_xlsx(str(edit(path, tmp_path / "other.xlsx", {("Charts", "B4"): "qwen3-8b"})), "en", "UTC", "en")
    model.evaluate()
    sheet = openpyxl.load_workbook(path).sheetnames.index("Charts")
    assert any("no row of Scenarios is of this choice" in str(model.get_formatted_cell_value(sheet, row, 1)) for row in range(4, 12))
