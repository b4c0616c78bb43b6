"""Bad tables: each in tests/data/tables/bad has beside it the whole text that a user gets to read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy
import pytest

import scenario
from scenario import ScenarioError
from scenario.common import inputs
from scenario.common.errors import Problem, nearest

BAD = Path(__file__).parents[1] / "data" / "tables" / "bad"
GOOD_ROW = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "vanilla"}


@pytest.mark.parametrize("name", sorted(path.stem for path in BAD.glob("*.yaml")))
def test_a_bad_table_says_file_line_column_fault_and_hint(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every problem of a file is told at once, in the order of its lines, with a mark under it and what was meant."""
    monkeypatch.chdir(BAD)
    with pytest.raises(ScenarioError) as caught:
        scenario.check(f"{name}.yaml")
    assert str(caught.value) + "\n" == (BAD / f"{name}.txt").read_text(encoding="utf-8")
    assert caught.value.exit_code == 2
    places = [(problem.line, problem.column) for problem in caught.value.problems]
    assert places == sorted(places)


def test_every_expectation_has_its_table() -> None:
    """No expected message lies about without the table it belongs to, and none is empty."""
    assert {path.stem for path in BAD.glob("*.txt")} == {path.stem for path in BAD.glob("*.yaml")}
    assert all(path.read_text(encoding="utf-8").strip() for path in BAD.glob("*.txt"))


@pytest.mark.parametrize("change", [
    ({"batch": 10**400}, "rows[0].batch", "inf is not a number that can be used"),
    ({"batch": float("nan")}, "rows[0].batch", "nan is not a number that can be used"),
    ({"batch": [1, 2.5]}, "rows[0].batch[1]", "a whole number is needed, not 2.5"),
    ({"batch": numpy.array([1, -1])}, "rows[0].batch[1]", "-1 is out of range: at least 1"),
    ({"batch": {1, 2}}, "rows[0].batch", "not set"),
    ({"batch": b"1"}, "rows[0].batch", "not bytes"),
    ({"batch": range(10**12)}, "rows[0].batch", "holds more than"),
    ({"batch": object()}, "rows[0].batch", "not object"),
    ({"bach": 1}, "rows[0].bach", "unknown input 'bach'"),
    ({"weights": 10**400}, "rows[0].weights", "is not one of"),
], ids=lambda change: next(iter(change[0])) + "-" + type(next(iter(change[0].values()))).__name__)  # fmt: skip
def test_a_table_given_as_data_names_the_path_of_a_fault(change: tuple[dict[str, object], str, str]) -> None:
    """A mapping has no lines, so a problem names the keys that lead to it."""
    given, place, said = change
    with pytest.raises(ScenarioError) as caught:
        scenario.check({"version": 1, "rows": [{**GOOD_ROW, **given}]})
    problem = next(problem for problem in caught.value.problems if problem.place == place)
    assert said in problem.message


@pytest.mark.parametrize("source", [None, 5, ["x"], b"x", object()], ids=lambda source: type(source).__name__)
def test_what_is_no_table_at_all_is_said(source: object) -> None:
    """Something that is neither path nor mapping is a ScenarioError that says what a table can be."""
    with pytest.raises(ScenarioError, match="a table is a path"):
        scenario.run(source)  # type: ignore[arg-type]


def test_data_that_contains_itself_or_a_key_twice_is_refused() -> None:
    """Endless nesting and keys that are the same once they are text do not end in a traceback."""
    endless: dict[str, object] = {"version": 1}
    endless["title"] = endless
    with pytest.raises(ScenarioError, match="nested too deeply"):
        scenario.check(endless)
    with pytest.raises(ScenarioError, match="a second time"):
        scenario.check({"version": 1, "columns": {1: "1", "1": "2"}})


@pytest.mark.parametrize("path", ["missing.yaml", "x" * 5000, "a\0b", "folder", "/dev/zero"], ids=["missing", "long", "nul", "folder", "endless"])
def test_a_path_that_cannot_be_read_is_said(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that leads to no readable file of bearable size is one clear problem."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(inputs, "TABLE", inputs.Kind("a table", 1000))
    Path("folder").mkdir()
    with pytest.raises(ScenarioError) as caught:
        scenario.check(path)
    assert len(caught.value.problems) == 1


def test_the_message_for_a_huge_grid_comes_before_any_row() -> None:
    """A grid of 10^16 rows is refused at once: its size is told, its rows are never made."""
    many = list(range(1, 10_001))
    with pytest.raises(ScenarioError, match=r"10,000,000,000,000,000 rows \(batch 10,000 x context 10,000 x gpus 10,000 x usd_per_hour 10,000\)"):
        scenario.check({"version": 1, "grid": {**GOOD_ROW, "batch": many, "context": many, "gpus": many, "usd_per_hour": many}})


def test_a_long_line_is_shown_around_the_mark() -> None:
    """A line of thousands of characters is cut on both sides and the mark still points at the fault."""
    problem = Problem("bad", file="t", line=1, column=500, source="a" * 499 + "B" + "c" * 500, caret=500)
    line, mark = str(problem).splitlines()[1:3]
    assert len(line) < 130
    assert line[mark.index("^")] == "B"
    assert "..." in line


def test_suggestions_put_longer_names_first() -> None:
    """What begins as typed is meant before what merely looks alike."""
    assert nearest("h100", ["h200", "h100-sxm", "h100-pcie"]) == "did you mean 'h100-pcie' or 'h100-sxm'?"
    assert nearest("eagel", ["eagle", "medusa"]) == "did you mean 'eagle'?"
    assert nearest("zzz", ["eagle"]) == ""


def test_problems_survive_a_copy_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is named as the user named it, wherever the table lies."""
    shutil.copy(BAD / "where.yaml", tmp_path / "mine.yaml")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ScenarioError, match=r"^mine\.yaml:2:18: "):
        scenario.check("mine.yaml")
    with pytest.raises(ScenarioError) as caught:
        scenario.check(tmp_path / "mine.yaml")
    assert str(caught.value).startswith(os.fspath(tmp_path))
