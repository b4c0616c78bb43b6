"""A summary whose columns are scenarios of their own: its rows, its texts, its faults, and what keeps it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import ironcalc
import jsonschema
import openpyxl
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from workbooks import edit

import scenario
from scenario.api import bundled
from scenario.cli.commands import main
from scenario.common.numbers import show_formatted
from scenario.engine.summary import fixed, joined
from scenario.registry import host
from scenario.tables.export_table import to_yaml
from scenario.tables.schema import table_schema

DEFAULTS = {"gpu": "h100-sxm", "context": 0, "batch": 1, "method": "vanilla"}
TABLE: dict[str, Any] = {
    "version": 1, "title": "a", "defaults": DEFAULTS,
    "summary": {
        "top": {"default_gpu": "GPU"},
        "variants": {"long": {"context": 131072}, "fast": {"method": "small-model"}},
        "columns": [
            {"id": "a", "title": "A", "model": "llama-3-8b"},
            {"id": "b", "title": "B", "model": "llama-3-70b", "gpus": 4, "variants": {"fast": {"method": "eagle"}}},
        ],
        "rows": [
            "weight_gb",
            {"heading": "speed"},
            {"title": "cache", "of": "long", "show": "kv_gb", "format": '0.0 "GB"'},
            {"title": "at batch {default_batch}", "of": "fast", "text": "{tpot_ms:2} ms, {speedup / 2 @ long:1}", "cells": {"b": "none"}},
            {"title": "words", "when": [{"if": "not fits", "text": "does not fit"}, {"if": "gpus > 1", "text": "{gpus} GPUs"}], "show": "step_ms"},
        ],
        "notes": ["A has {layers @ a:0} layers."],
    },
}  # fmt: skip


def changed(**parts: Any) -> dict[str, Any]:
    return {**TABLE, "summary": {**TABLE["summary"], **parts}}


def test_each_column_is_a_row_and_one_more_for_each_variant_that_is_read() -> None:
    """Rows are made for what cells read, with the inputs of the column, then of the variant, then of its own variant."""
    frame = scenario.run(TABLE).frame
    found = {row["id"]: (row["model"], row["method"], row["context"], row["gpus"]) for row in frame.iter_rows(named=True)}
    assert found == {
        "a": ("llama-3-8b", "vanilla", 0, 1), "b": ("llama-3-70b", "vanilla", 0, 4), "a-long": ("llama-3-8b", "vanilla", 131072, 1),
        "b-long": ("llama-3-70b", "vanilla", 131072, 4), "a-fast": ("llama-3-8b", "small-model", 0, 1),
    }  # fmt: skip


def test_rows_that_the_table_writes_itself_stand_in_place_of_made_ones() -> None:
    """A row with the id of a made one is not made a second time, and its inputs count."""
    result = scenario.run({**TABLE, "rows": [{"id": "a-long", "model": "llama-3-8b", "context": 1024}, {"id": "own", "model": "llama-3-8b"}]})
    contexts = dict(result.frame.select("id", "context").iter_rows())
    assert (contexts["a-long"], contexts["own"], contexts["b-long"]) == (1024, 0, 131072)


def test_what_cells_show() -> None:
    """Cells hold numbers of their own row, texts with numbers put in, or the words of the first condition that holds."""
    result = scenario.run(TABLE)
    values, view = result.summary, result.book.summary
    assert values is not None
    assert view is not None
    rows = {row["id"]: row for row in result.frame.iter_rows(named=True)}
    got = {values.text(line.title): [values.cell(cell) for cell in line.cells] for line in view.lines if not line.extra}
    assert got["weights"] == [rows["a"]["weight_gb"], rows["b"]["weight_gb"]]
    assert got["cache"] == [rows["a-long"]["kv_gb"], rows["b-long"]["kv_gb"]]
    assert got["at batch 1"] == [f"{rows['a-fast']['tpot_ms']:.2f} ms, 0.5", "none"]
    assert got["words"] == [rows["a"]["step_ms"], "4 GPUs"]
    assert got["speed"] == []
    assert values.text(view.notes[0]) == "A has 32 layers."


FAULTS = {
    "a column without an id": ({"columns": [{"model": "llama-3-8b"}]}, "a column of the summary is a mapping of inputs with an id"),
    "a column twice": ({"columns": [TABLE["summary"]["columns"][0]] * 2}, "the column 'a' stands in the summary twice"),
    "no column": ({"columns": []}, "a summary needs a column"),
    "a variant that is not there": ({"rows": [{"title": "x", "show": "batch", "of": "lonk"}]}, "unknown variant of column 'a' 'lonk'"),
    "an input that is not there": ({"variants": {"long": {"contekst": 1}}}, "unknown input 'contekst'"),
    "a metric that is not there": ({"rows": ["weigth_gb"]}, "'weigth_gb'"),
    "a formula that cannot be read": ({"rows": [{"title": "x", "show": "1 +"}]}, "'1 +'"),
    "a brace that is open": ({"rows": [{"title": "x", "text": "{batch"}]}, "has a brace that is not closed"),
    "a template that reads what is not there": ({"rows": [{"title": "x", "text": "{bacth}"}]}, "'bacth'"),
    "a row that is not there": ({"notes": ["{batch @ c}"]}, "there is no row 'c'"),
    "a note that reads no row": ({"notes": ["{batch}"]}, "'batch'"),
    "an assumption that is not there": ({"top": {"default_gpuu": "GPU"}}, "there is no assumption 'default_gpuu'"),
    "a condition that is none": ({"rows": [{"title": "x", "show": "batch", "when": [{"if": "batch", "text": "y"}]}]}, "'batch' is no condition"),
    "a number format that is none": ({"rows": [{"title": "x", "show": "batch", "format": "0.0 GB"}]}, "is not a number format"),
    "a key that is unknown": ({"rows": [{"titel": "x", "show": "batch"}]}, "unknown key of a metric 'titel'"),
    "a title twice": ({"rows": ["batch", {"title": "batch", "show": "1"}]}, "two metrics are called 'batch'"),
    "nothing to show": ({"rows": [{"title": "x"}]}, "a metric shows something"),
    "a cell of no column": ({"rows": [{"title": "x", "show": "1", "cells": {"c": "-"}}]}, "unknown column of the summary 'c'"),
    "where": ({"where": {"batch": 1}}, "where has no meaning in a summary"),
}  # fmt: skip


@pytest.mark.parametrize("what", FAULTS)
def test_a_fault_is_told_in_a_sentence(what: str) -> None:
    """Whatever is wrong in such a summary is named with what is meant, and nothing runs."""
    parts, said = FAULTS[what]
    with pytest.raises(scenario.ScenarioError) as caught:
        scenario.run(changed(**parts))
    assert said in str(caught.value)


def test_faults_have_their_line(tmp_path: Path) -> None:
    """A fault in a file is told with the line and column of what is wrong, all at once."""
    path = tmp_path / "t.yaml"
    path.write_text(yaml.safe_dump(changed(rows=["weigth_gb", {"title": "x", "text": "{bacth}"}])), encoding="utf-8")
    with pytest.raises(scenario.ScenarioError) as caught:
        scenario.run(path)
    lines = path.read_text(encoding="utf-8").split("\n")
    assert sorted(problem.line for problem in caught.value.problems) == [
        number for number, line in enumerate(lines, 1) if "weigth_gb" in line or "{bacth}" in line]  # fmt: skip


@pytest.mark.parametrize("source", [TABLE, "series"])
def test_export_and_workbook_keep_it(source: Any, tmp_path: Path) -> None:
    """The table written as YAML, and the workbook read back, have the same rows, the same summary and the same values."""
    result = scenario.run(source)
    path = tmp_path / "again.yaml"
    path.write_text(to_yaml(result.book.table, result.host), encoding="utf-8")
    for again in (scenario.run(path), scenario.run(result.to_excel(tmp_path / "again.xlsx"))):
        assert again.frame.equals(result.frame)
        assert again.book.table.summary.table is not None
        assert again.book.table.summary.table.said == result.book.table.summary.table.said  # type: ignore[union-attr]


def test_the_schema_accepts_what_run_accepts() -> None:
    """Editors accept both bundled tables of the series and the table here, and refuse an unknown key."""
    schema = json.loads(json.dumps(table_schema(host.load())))
    for table in (TABLE, *(yaml.safe_load(bundled()[name].read_text(encoding="utf-8")) for name in ("series", "series-zh"))):
        jsonschema.validate(table, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(changed(rows=[{"titel": "x"}]), schema)


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.floats(-1e9, 1e9), st.integers(-2, 4), st.booleans()), min_size=1, max_size=8))
def test_numbers_in_texts_are_as_a_spreadsheet_has_them(cases: list[tuple[float, int, bool]]) -> None:
    """A number shown with decimals is what FIXED makes of it, one shown whole what joining makes of it."""
    model = ironcalc.create("x", "en", "UTC", "en")
    for row, (value, digits, thousands) in enumerate(cases, 1):
        value = float(f"{value:.6g}") or 0.0
        model.set_user_input(0, row, 1, f"=FIXED({value!r},{digits},{'FALSE' if thousands else 'TRUE'})")
        model.set_user_input(0, row, 2, f'={value!r}&""')
    model.evaluate()
    for row, (value, digits, thousands) in enumerate(cases, 1):
        value = float(f"{value:.6g}") or 0.0
        assert fixed(value, digits, thousands) == model.get_cell_value(0, row, 1)
        if abs(value) > 1e-3 or not value:
            assert joined(value) == model.get_cell_value(0, row, 2)


def test_a_terminal_shows_the_summary(tmp_path: Path) -> None:
    """A run without -o prints the assumptions, each metric by scenario with its words and notes, and says how to see the rows."""
    path = tmp_path / "t.yaml"
    path.write_text(yaml.safe_dump(TABLE), encoding="utf-8")
    done = CliRunner().invoke(main, ["run", str(path)])
    assert done.exit_code == 0, done.output
    lines = [re.sub(" {2,}", "|", line.strip()) for line in done.stdout.splitlines()]
    assert lines[1] == "assumes: GPU h100-sxm"
    assert lines[2] == "A|B"
    assert "speed" in lines
    assert any(line.startswith("cache|17.2 GB|42.9 GB") for line in lines), done.output  # 131072 x 131072 and 327680 bytes
    assert any(line.startswith("words|") and line.endswith("|4 GPUs") for line in lines), done.output
    assert "A has 32 layers." in lines
    assert lines[-1].startswith("5 rows; ")
    assert lines[-1].endswith("; the rows: -o - prints them, -o rows.csv and -o costs.xlsx write them")


@pytest.mark.parametrize(("value", "code", "expected"), [
    (8030261248.0, '0.00,,,"B"', "8.03B"), (0.1256, "0.0%", "12.6%"), (1234567.0, "#,##0", "1,234,567"), (2.5, "0", "3"), (-2.5, "0", "-3"),
    (0.5, "0.00##", "0.50"), (0.123456, "0.00##", "0.1235"), (12.0, '0.0 "GB"', "12.0 GB"), (3.0, '"~"0"x"', "~3x"), (-0.001, "0.0", "0.0"),
    (5.0, "0.0#", "5.0"), (1500.0, "#,##0.0,", "1.5"), (3.0, "General", "3"), (7.25, '$#,##0.00;"no"', "$7.25"),
])  # fmt: skip
def test_number_formats_as_text(value: float, code: str, expected: str) -> None:
    """A number under a format reads as a spreadsheet shows it: literals, thousands, scaling commas, percent, optional decimals."""
    assert show_formatted(value, code) == expected


CHOSEN = {"columns": {"a": "b"}, "rows": {"1": 3, "2": "tpot_ms"}}


def test_what_a_reader_chose_to_see_comes_back(tmp_path: Path) -> None:
    """Another scenario and other metrics chosen from the drop-downs show again in the next workbook, and in the one after."""
    first = scenario.run(TABLE).to_excel(tmp_path / "first.xlsx")
    places = {cell.value: cell.coordinate for row in openpyxl.load_workbook(first)["Summary"].iter_rows() for cell in row if cell.value}
    top = int(places["A"][1:])
    names = [openpyxl.load_workbook(first, data_only=True)["Summary"].cell(row, 1).value for row in range(top + 1, top + 6)]
    rows = {name: top + 1 + place for place, name in enumerate(names)}
    edits = {("Summary", places["A"]): "B", ("Summary", f"A{rows['weights']}"): "at batch 1", ("Summary", f"A{rows['cache']}"): "TPOT"}
    path = edit(first, tmp_path / "edited.xlsx", edits)
    for name in ("second.xlsx", "third.xlsx"):
        done = CliRunner().invoke(main, ["run", str(path), "-o", str(tmp_path / name)])
        assert done.exit_code == 0, done.output
        path = tmp_path / name
        sheet = openpyxl.load_workbook(path, data_only=True)["Summary"]
        assert [sheet.cell(top, column).value for column in (2, 3)] == ["B", "B"]
        shown = [sheet.cell(rows[line], 1).value for line in ("weights", "cache", "words")]
        assert shown == ["at batch 1", "TPOT", "words"]
    table = scenario.run(path).book.table.summary.table
    assert table is not None
    assert table.said["chosen"] == CHOSEN


def test_a_choice_that_is_not_there_is_said(tmp_path: Path) -> None:
    """A metric or a scenario of another name is named by its cell, and the summary shows its own again."""
    first = scenario.run(TABLE).to_excel(tmp_path / "first.xlsx")
    places = {cell.value: cell.coordinate for row in openpyxl.load_workbook(first)["Summary"].iter_rows() for cell in row if cell.value}
    path = edit(first, tmp_path / "edited.xlsx", {("Summary", places["A"]): "Z"})
    done = CliRunner().invoke(main, ["run", str(path), "-o", str(tmp_path / "new.xlsx")])
    assert f"Summary!{places['A']}: no scenario of this summary is called Z;" in done.output


@pytest.mark.parametrize(("chosen", "said"), [
    ({"columns": {"a": "z"}}, "'z'"), ({"rows": {"9": 1}}, "from 1 to 4"), ({"rows": {"1": 7}}, "from 1 to 4"), ({"lines": {}}, "'lines'"),
    ({"columns": [1]}, "is a mapping"),
])  # fmt: skip
def test_a_wrong_choice_is_refused(chosen: dict[str, Any], said: str) -> None:
    """A choice of what is not there is a fault of the table, with its place."""
    with pytest.raises(scenario.TableError, match=re.escape(said)):
        scenario.run(changed(chosen=chosen))
