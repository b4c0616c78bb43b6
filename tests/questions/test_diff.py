"""What changed between two tables, and which change moved what; expected numbers are worked out here by hand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import yaml
from click.testing import CliRunner

from scenario import api
from scenario.cli.commands import main
from scenario.questions import diff_report
from scenario.questions.diff import Diff, compare
from scenario.questions.diff_columns import Movement
from scenario.registry import host
from scenario.tables.export_table import to_yaml
from scenario.tables.reader import load

HOST = host.load(third_party=False)
# Llama-3-8B has 8,030,261,248 parameters; an H100 reads 3.35 TB/s. In BF16 at batch 1 and context 0 reading sets the step.
STEP = 2 * 8_030_261_248 / 3.35e12
BASE: dict[str, Any] = {
    "version": 1, "title": "t", "defaults": {"model": "llama-3-8b", "gpu": "h100-sxm", "context": 0, "method": "vanilla"},
    "grid": {"batch": [1, 2]}, "prices": {"h100-sxm": 2},
}  # fmt: skip


def base(**changed: Any) -> dict[str, Any]:
    """The base table with sections replaced; None takes one out."""
    found = {**BASE, **changed}
    return {key: value for key, value in found.items() if value is not None}


def compared(old: dict[str, Any], new: dict[str, Any], **options: Any) -> Diff:
    """The difference of two tables given as data."""
    return compare(load(old, HOST), load(new, HOST), HOST, **options)


def movement(found: Diff, column: str) -> Movement:
    """How one column moved."""
    return next(item for item in found.movements if item.column == column)


def shares(found: Diff, column: str) -> dict[str, float | None]:
    """The relative share of each change in one column."""
    return {share.label: share.relative for share in movement(found, column).shares}


def test_the_same_table_differs_in_nothing() -> None:
    """A table against itself is equal, and no output moved."""
    found = compared(BASE, BASE)
    assert found.equal
    assert found.matched == 2


def test_one_price_moves_the_price_alone() -> None:
    """Half as much again per hour is half as much again per token, and nothing else moves."""
    found = compared(BASE, base(prices={"h100-sxm": 3}))
    assert [(c.kind, c.name, c.old, c.new) for c in found.changes] == [("price", "h100-sxm", 2.0, 3.0)]
    assert [item.column for item in found.movements] == ["usd_per_million_tokens"]
    moved = found.movements[0]
    # batch 1 and 2 take the same time, so the second costs half
    per_token = [2 / 3600 * STEP * 1e6, 2 / 3600 * STEP / 2 * 1e6]
    assert moved.old == pytest.approx(sum(per_token) / 2, rel=1e-12)
    assert moved.change == pytest.approx(sum(per_token) / 4, rel=1e-12)
    assert moved.relative == pytest.approx(0.5, rel=1e-12)
    assert shares(found, "usd_per_million_tokens") == {"price h100-sxm": pytest.approx(0.5, rel=1e-12)}


def test_two_factors_interact() -> None:
    """x1.5 and x2 are x3 together: +50 %, +100 %, and the +50 % that only both make."""
    found = compared(BASE, base(prices={"h100-sxm": 3}, defaults={**BASE["defaults"], "utilization": 0.5}))
    expected = {"default utilization": 1.0, "price h100-sxm": 0.5, "interaction": 0.5}
    assert shares(found, "usd_per_million_tokens") == {name: pytest.approx(value, rel=1e-12) for name, value in expected.items()}
    assert list(shares(found, "usd_per_million_tokens")) == list(expected)
    assert movement(found, "usd_per_million_tokens").relative == pytest.approx(2.0, rel=1e-12)


def test_a_default_moves_only_the_rows_that_leave_it_open() -> None:
    """A row that writes the old default out keeps it when the default changes."""
    rows = [{"id": "open", "batch": 1}, {"id": "fixed", "batch": 1}]
    old = base(grid=None, rows=rows, defaults={**BASE["defaults"], "mbu": 0.8})
    kept = [{"id": "open", "batch": 1}, {"id": "fixed", "batch": 1, "mbu": 0.8}]
    found = compared(old, base(grid=None, rows=kept, defaults={**BASE["defaults"], "mbu": 0.4}), by_row=True)
    assert [c.label for c in found.changes] == ["default mbu"]
    assert movement(found, "step_ms").rows == 1
    assert movement(found, "step_ms").old == pytest.approx(STEP / 0.8 * 1000, rel=1e-12)
    assert shares(found, "step_ms") == {"default mbu": pytest.approx(1.0, rel=1e-12)}
    assert set(found.moved["id"]) == {"open"}


def test_a_default_written_into_every_row_is_no_change() -> None:
    """What counts is the value that applies: defaults moved into the rows leave every row as it was."""
    rows = [{"batch": batch, "context": 0, "mfu": 1} for batch in (1, 2)]
    defaults = {key: value for key, value in BASE["defaults"].items() if key != "context"}
    found = compared(BASE, base(grid=None, rows=rows, defaults=defaults))
    assert [c.label for c in found.changes] == ["default context"]
    assert not found.movements


def test_inputs_of_rows() -> None:
    """An input changed in one row of two is told with its row count, and moves that row only."""
    rows = [{"id": "a", "batch": 1}, {"id": "b", "batch": 1}]
    other = [{"id": "a", "batch": 1}, {"id": "b", "batch": 4, "gpus": 2}]
    found = compared(base(grid=None, rows=rows), base(grid=None, rows=other))
    assert [(c.label, c.old, c.new, c.rows) for c in found.changes] == [("row batch", 1.0, 4.0, 1), ("row gpus", 1.0, 2.0, 1)]
    # tokens/s: batch x4, two GPUs halve the step: x8 in all, of which +300 % and +100 % alone
    expected = {"row batch": 3.0, "row gpus": 1.0, "interaction": 3.0}
    assert shares(found, "tokens_per_s") == {name: pytest.approx(value, rel=1e-12) for name, value in expected.items()}


def test_rows_are_known_by_id_else_by_what_they_are() -> None:
    """A new model renames all rows of a grid; they are still the same rows, and the new model's appeared."""
    old = base(defaults={"gpu": "h100-sxm", "context": 0, "method": "vanilla"}, grid={"model": ["llama-3-8b"], "batch": [1, 2]})
    new = base(defaults=old["defaults"], grid={"model": ["llama-3.1-8b", "llama-3-8b"], "batch": [2, 1, 4]})
    found = compared(old, new)
    assert found.matched == 2
    assert [row["id"] for row in found.appeared] == [f"llama-3.1-8b_b{n}" for n in (2, 1, 4)] + ["llama-3-8b_b4"]
    assert not found.gone
    assert not found.movements
    assert {(c.kind, c.name) for c in found.changes} == {("row", "id"), ("row", "order")}
    back = compared(new, old)
    assert len(back.gone) == 4
    assert not back.appeared


def test_a_row_that_begins_to_fit() -> None:
    """More memory turns blanks into numbers: told as steps, with the change that does it."""
    old = base(defaults={**BASE["defaults"], "model": "llama-3-70b"})
    found = compared(old, {**old, "gpus": {"h100-sxm": {"memory_gb": 200}}, "prices": {"h100-sxm": 3}})
    assert movement(found, "fits").turned == ((False, True, 2),)
    assert movement(found, "tpot_ms").turned == ((None, "a number", 2),)
    assert movement(found, "tpot_ms").numbers == 0
    assert [(s.label, s.turned, s.rows) for s in movement(found, "tpot_ms").shares] == [("GPU h100-sxm.memory_gb", 2, 0)]
    assert diff_report.causes(movement(found, "status"), turned=True) == "GPU h100-sxm.memory_gb (2 rows)"


def test_no_limit_is_a_word() -> None:
    """A batch that becomes unlimited (no KV per sequence) is a step, not a movement by 1e15."""
    found = compared(base(defaults={**BASE["defaults"], "context": 1024}), BASE)
    assert movement(found, "max_batch").turned == (("a number", "unlimited", 2),)
    assert movement(found, "max_batch").change is None


def test_formulas_of_columns_and_what_is_shown() -> None:
    """A changed formula moves its column; title, where, sort, summary, units and new columns are told and move nothing."""
    old = base(columns={"day": "usd_per_hour * 24", "gone": "1", "kept": {"formula": "2", "unit": "ms"}}, where="fits", sort="batch")
    new = base(columns={"day": "usd_per_hour * 12", "week": "day * 7", "kept": {"formula": "2", "unit": "s"}}, title="u", sort="-batch",
               summary={"rows": ["tpot_ms"], "columns": "batch"})  # fmt: skip
    found = compared(old, new)
    assert {(c.kind, c.name, c.old, c.new) for c in found.changes} == {
        ("title", "title", "t", "u"), ("where", "where", "fits", None), ("sort", "sort", "batch", "-batch"),
        ("summary", "summary rows", None, "tpot_ms"), ("summary", "summary columns", None, "batch"),
        ("column", "day", "usd_per_hour * 24", "usd_per_hour * 12"), ("column", "gone", "1", None), ("column", "week", None, "day * 7"),
        ("column", "kept: unit", "ms", "s"),
    }  # fmt: skip
    assert [item.column for item in found.movements] == ["day"]
    assert movement(found, "day").change == -24.0
    assert shares(found, "day") == {"column day": -0.5}


def test_methods_profiles_curves_and_models() -> None:
    """Parameters, presets, profiles, curves and catalog fields each answer for what they move."""
    eagle = {**BASE["defaults"], "method": "eagle"}
    old = base(defaults=eagle, profiles={"p": [0.8]}, curves={"c": [[0, 0], [1, 1]]}, columns={"k": 'curve("c", batch)'},
               parameters={"eagle": {"acceptance": "p", "gamma": 1, "draft_cost": 0.1}}, models={"mine": {**SHAPE}})  # fmt: skip
    new = {**old, "profiles": {"p": [0.4]}, "curves": {"c": [[0, 0], [1, 3]]}, "models": {"llama-3-8b": {"extra_params": 0}},
           "parameters": {"eagle": {"acceptance": "p", "gamma": 1, "draft_cost": 0.2}}}  # fmt: skip
    found = compared(old, new)
    assert {c.label for c in found.changes} == {"profile p", "curve c", "model mine", "parameter eagle.draft_cost"}
    assert movement(found, "tokens_per_round").change == pytest.approx(-0.4, rel=1e-12)  # 1 + 0.8 to 1 + 0.4
    assert shares(found, "tokens_per_round") == {"profile p": pytest.approx(-0.4 / 1.8, rel=1e-12)}
    assert shares(found, "k") == {"curve c": pytest.approx(2.0, rel=1e-12)}
    # a round is 1.1 steps, then 1.2; per token over 1.8, then 1.4
    both = movement(found, "tpot_ms")
    assert both.relative == pytest.approx(1.2 / 1.4 / (1.1 / 1.8) - 1, rel=1e-9)
    assert shares(found, "tpot_ms")["parameter eagle.draft_cost"] == pytest.approx(1.2 / 1.1 - 1, rel=1e-9)
    wider = compared(base(), base(models={"llama-3-8b": {"extra_params": 8_030_261_248}}))
    assert shares(wider, "weight_gb") == {"model llama-3-8b.extra_params": pytest.approx(1.0, rel=1e-12)}
    preset = compared(base(defaults=eagle), base(defaults=eagle, preset="eagle-llama2-chat-70b"))
    assert [c.label for c in preset.changes] == ["preset"]
    assert list(shares(preset, "tokens_per_round")) == ["preset"]


SHAPE = {"hidden": 64, "layers": 2, "heads": 2, "kv_heads": 2, "head_dim": 32, "ffn": 128, "vocab": 100}


def test_overrides_are_changes() -> None:
    """A value put in place of a computed one is told by column and moves what reads it."""
    rows = [{"id": "a", "batch": 1}, {"id": "b", "batch": 1}]
    old = base(grid=None, rows=rows)
    found = compared(old, {**old, "overrides": {"a": {"tpot_ms": 10}}})
    assert [(c.label, c.old, c.new, c.rows) for c in found.changes] == [("override tpot_ms", None, 10.0, 1)]
    assert movement(found, "tpot_ms").new == 10.0
    assert shares(found, "tpot_ms") == {"override tpot_ms": pytest.approx(10 / (STEP * 1000) - 1, rel=1e-12)}


def test_shares_and_interaction_make_up_the_movement() -> None:
    """For many changes at once, in every column and row, the shares and the interaction sum to the movement."""
    old = base(grid={"model": ["llama-3-8b", "deepseek-v3"], "batch": [1, 64], "method": ["eagle", "int4", "ngram"]},
               defaults={"gpu": "h100-sxm", "context": 512, "gpus": 32})  # fmt: skip
    new = {**old, "defaults": {"gpu": "h100-sxm", "context": 2048, "gpus": 16, "mfu": 0.5}, "parameters": {"eagle": {"alpha": 0.5}},
           "gpus": {"h100-sxm": {"bandwidth_tb_s": 3}}, "models": {"llama-3-8b": {"layers": 30}}}  # fmt: skip
    found = compared(old, new, by_row=True)
    assert len(found.changes) == 6
    checked = 0
    for row in found.moved.iter_rows(named=True):
        if row["change"] is not None:
            assert sum(share["change"] for share in row["shares"]) == pytest.approx(row["change"], rel=1e-9, abs=1e-12)
            assert float(row["new"]) - float(row["old"]) == pytest.approx(row["change"], rel=1e-9, abs=1e-12)
            checked += 1
    assert checked > 100
    for item in found.movements:
        if item.numbers and item.change is not None:
            total = sum(share.change or 0 for share in item.shares)
            assert total == pytest.approx(item.change, rel=1e-6, abs=1e-9 * abs(item.old or 1))


def test_very_many_changes_are_taken_together() -> None:
    """Past the cap the fields of an entry become one change, then the last ones one; a note says so; nothing is lost."""
    fields = {"layers": 30, "hidden": 2048, "ffn": 1024, "vocab": 1000}
    new = base(models={"llama-3-8b": fields}, prices={"h100-sxm": 3}, defaults={**BASE["defaults"], "context": 8, "mfu": 0.5})
    found = compared(BASE, new, max_runs=4)
    labels = {share.label for item in found.movements for share in item.shares}
    assert "model llama-3-8b" in labels
    assert not any("more than" in label for label in labels)
    assert found.notes == ["7 inputs changed, more than the 4 that are tried one by one: the fields of one model or GPU are taken together"]
    few = compared(BASE, new, max_runs=2)
    assert "as one" in few.notes[0]
    assert any("other changes" in share.label for item in few.movements for share in item.shares)


def test_a_change_that_cannot_stand_alone_is_interaction() -> None:
    """A formula that would run in a circle until another one changes too is not attributed, and a note says so."""
    found = compared(base(columns={"x": "y * 2", "y": "batch"}), base(columns={"x": "batch * 3", "y": "x + 1"}))
    assert shares(found, "x") == {"column x": 0.5}
    # y goes from batch to 3 batch + 1, at batch 1 and 2: +300 % and +250 %
    assert shares(found, "y") == {"interaction": 2.75}
    assert found.notes == ["column y cannot be changed alone; what it moves counts as interaction"]


def write(path: Path, data: dict[str, Any]) -> str:
    """The path of a table written as YAML."""
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    return str(path)


def test_the_command_and_its_exit_codes(tmp_path: Path) -> None:
    """0 when equal, 1 when different, 2 when something cannot be read or written; -q is silent."""
    run = CliRunner().invoke
    old, new = write(tmp_path / "old.yaml", BASE), write(tmp_path / "new.yaml", base(prices={"h100-sxm": 3}))
    same = run(main, ["diff", old, old])
    assert (same.exit_code, same.output) == (0, "old.yaml and old.yaml say the same: 2 rows\n")
    other = run(main, ["diff", old, new, "--by-row"])
    assert other.exit_code == 1
    assert "+50.0%" in other.output
    assert run(main, ["diff", old, new, "-q"]).output == ""
    for arguments in ([old, str(tmp_path / "none.yaml")], [old, new, "-o", str(tmp_path / "x.doc")], [old, new, "-o", new],
                      [old, new, "-o", str(tmp_path / "no" / "x.md")], [old, new, "--format", "x"]):  # fmt: skip
        assert run(main, ["diff", *arguments]).exit_code == 2, arguments
    assert load(new, HOST).catalog.prices["h100-sxm"].usd_per_hour == 3


def test_markdown_and_json(tmp_path: Path) -> None:
    """Both carry the whole difference; texts of a table cannot break the page."""
    run = CliRunner().invoke
    rows = [{"id": "a | <b>", "batch": 1}]
    old = write(tmp_path / "old.yaml", base(grid=None, rows=rows))
    new = write(tmp_path / "new.yaml", base(grid=None, rows=[*rows, {"id": "new", "batch": 2}], prices={"h100-sxm": 3}, title="*x*"))
    page = run(main, ["diff", old, new, "--format", "markdown", "--by-row"]).output
    assert "| title | t | \\*x\\* |  |" in page
    assert "| new | batch 2 |" in page
    assert "| a \\| &lt;b> | usd_per_million_tokens |" in page
    assert "+50.0% |  | price h100-sxm +50.0% |" in page
    done = run(main, ["diff", old, new, "-o", str(tmp_path / "x.json"), "--by-row"])
    assert done.exit_code == 1
    data = json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))
    assert data["equal"] is False
    assert data["appeared"] == [{"id": "new", "batch": 2.0}]
    assert data["outputs"][0]["shares"][0]["label"] == "price h100-sxm"
    assert data["by_row"][0]["old"] == pytest.approx(2 / 3600 * STEP * 1e6, rel=1e-12)


def test_the_workbook_of_a_difference(tmp_path: Path) -> None:
    """The report has plain values with formats; a text that begins with = stays a text."""
    rows = [{"id": "=1+1", "batch": 1}]
    old = write(tmp_path / "old.yaml", base(grid=None, rows=rows))
    new = write(tmp_path / "new.yaml", base(grid=None, rows=rows, prices={"h100-sxm": 3}))
    target = tmp_path / "x.xlsx"
    assert CliRunner().invoke(main, ["diff", old, new, "-o", str(target), "--by-row"]).exit_code == 1
    book = openpyxl.load_workbook(target)
    assert book.sheetnames == ["Summary", "Inputs", "Outputs", "Causes", "By row"]
    assert [cell.value for cell in book["Inputs"][2]] == ["price h100-sxm", 2, 3, None]
    causes = book["Causes"][2]
    assert [cell.value for cell in causes[:3]] == ["usd_per_million_tokens", "$/1M tokens", "price h100-sxm"]
    assert causes[4].value == pytest.approx(0.5)
    assert causes[4].number_format == "+0.0%;-0.0%;0.0%"
    first = book["By row"]["A2"]
    assert (first.value, first.data_type) == ("=1+1", "s")
    assert book["Outputs"].freeze_panes == "B2"


def test_a_csv_on_either_side(tmp_path: Path) -> None:
    """A CSV of the rows is compared as a table: what its defaults would have said is said by its cells."""
    table = write(tmp_path / "t.yaml", {**BASE, "prices": None, "title": "t"})
    path = tmp_path / "t.csv"
    path.write_text("model,gpu,batch,context,method\n" + "".join(f"llama-3-8b,h100-sxm,{n},0,vanilla\n" for n in (1, 2)), encoding="utf-8")
    found = CliRunner().invoke(main, ["diff", table, str(path), "--format", "json"])
    data = json.loads(found.output)
    assert data["rows_in_both"] == 2
    assert data["outputs"] == []
    assert {change["kind"] for change in data["changes"]} == {"default"}


def test_a_title_taken_from_the_file_is_none(tmp_path: Path) -> None:
    """Two tables without a title are called after their files, which is no difference."""
    old, new = write(tmp_path / "old.yaml", base(title=None)), write(tmp_path / "new.yaml", base(title=None))
    assert CliRunner().invoke(main, ["diff", old, new]).exit_code == 0
    named = write(tmp_path / "named.yaml", BASE)
    assert "title" in CliRunner().invoke(main, ["diff", old, named]).output


def test_an_edited_workbook(tmp_path: Path) -> None:
    """A price and a batch edited in the workbook are the changes from its table; unedited it says the same as its table."""
    run = CliRunner().invoke
    table, book = write(tmp_path / "t.yaml", BASE), tmp_path / "t.xlsx"
    assert run(main, ["run", table, "-q", "-o", str(book)]).exit_code == 0
    assert run(main, ["diff", table, str(book)]).exit_code == 0
    edited = openpyxl.load_workbook(book)
    sheet = edited["Scenarios"]
    place = {cell.value: cell for row in sheet.iter_rows() for cell in row if cell.value in ("id", "batch")}
    sheet.cell(place["batch"].row + 2, place["batch"].column).value = 4
    assert [cell for row in edited["GPUs"].iter_rows() for cell in row if cell.value == 2 and cell.data_type == "n"]
    for row in edited["GPUs"].iter_rows():
        names = [cell.value for cell in row]
        if "usd_per_hour" in names:
            column = names.index("usd_per_hour")
        elif "h100-sxm" in names:
            row[column].value = 3
    edited.save(tmp_path / "edited.xlsx")
    data = json.loads(run(main, ["diff", table, str(tmp_path / "edited.xlsx"), "--format", "json"]).stdout)
    assert [(c["kind"], c["name"], c["old"], c["new"]) for c in data["changes"]] == [
        ("row", "batch", 2.0, 4.0), ("price", "h100-sxm", 2.0, 3.0)]  # fmt: skip
    price = next(item for item in data["outputs"] if item["column"] == "usd_per_million_tokens")
    # row one +50 %; row two x1.5 / 2 = -25 %: half of it from its own batch (-50 %), +50 % from the price, -25 % together
    assert price["relative"] == pytest.approx((0.5 - 0.25) / 2, rel=1e-9)
    assert {share["label"]: pytest.approx(share["relative"], rel=1e-9) for share in price["shares"]} == {
        "price h100-sxm": 0.5, "row batch": -0.25, "interaction": -0.125}  # fmt: skip
    written = run(main, ["export-table", str(tmp_path / "edited.xlsx")]).stdout
    assert "batch: 4" in written
    assert "h100-sxm: 3 " in written


@pytest.mark.parametrize("name", sorted(api.bundled()))
def test_a_workbook_says_what_its_table_says(name: str, tmp_path: Path) -> None:
    """Every bundled table written as a workbook and read back is the same table, also as YAML."""
    table = api.load_table(name, HOST)
    book = tmp_path / "t.xlsx"
    assert CliRunner().invoke(main, ["run", name, "-q", "-o", str(book)]).exit_code == 0
    again = api.load_table(book, HOST)
    assert compare(table, again, HOST).equal
    # the order of the inputs is the workbook's own
    assert sorted(re.split(r"[\s,{}]+", to_yaml(again, HOST))) == sorted(re.split(r"[\s,{}]+", to_yaml(table, HOST)))


def test_help_imports_nothing_heavy() -> None:
    """``scenario --help`` lists the commands without polars, openpyxl or yaml."""
    code = ("import sys\nfrom scenario.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
            "print([name for name in ('polars', 'openpyxl', 'yaml', 'rich') if name in sys.modules])")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "export-table" in done.stdout
    assert "diff" in done.stdout
    assert done.stdout.rstrip().endswith("[]")


def test_only_what_can_turn_a_value_is_blamed() -> None:
    """A price alone blanks nothing: the change that does is named, also row by row; what takes two changes is said to."""
    old = base(defaults={**BASE["defaults"], "context": 2048}, rows=[{"model": "llama-3.1-8b", "batch": 200, "method": "vanilla"}], grid=None)
    new = {**old, "defaults": {**old["defaults"], "context": 8192}, "prices": {"h100-sxm": 9}}
    found = compared(old, new, by_row=True)
    assert diff_report.causes(movement(found, "usd_per_million_tokens"), turned=True) == "default context (1 row)"
    rows = {row[1]: row for row in diff_report.by_row(found)}
    assert rows["usd_per_million_tokens"][-1] == "default context"
    assert rows["status"][-1] == "default context"
    assert rows["kv_gb"][-1] == "default context +300.0%"
    less = {**old, "gpus": {"h100-sxm": {"memory_gb": 60}}, "defaults": {**old["defaults"], "weights": "fp8", "context": 1900}}
    start = {**old, "gpus": {"h100-sxm": {"memory_gb": 60}}}
    found = compared(start, less, by_row=True)
    assert diff_report.causes(movement(found, "fits"), turned=True) == "only together (1 row)"
    assert {row[1]: row for row in diff_report.by_row(found)}["tpot_ms"][-1] == "only together"
