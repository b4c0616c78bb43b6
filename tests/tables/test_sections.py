"""The law of sections: what ``run`` reads of a key, ``diff`` tells, ``export-table`` keeps, the schema knows and a workbook brings back."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from scenario import api
from scenario.cli.commands import main
from scenario.common.errors import ScenarioError
from scenario.questions.diff import Diff, compare
from scenario.registry import host
from scenario.tables.export_table import to_yaml
from scenario.tables.schema import table_schema
from scenario.tables.sections import SECTIONS

DATA = Path(__file__).parents[1] / "data" / "tables"
HOST = host.load(third_party=False)
SCHEMA = jsonschema.Draft7Validator(table_schema(HOST))
SHAPE = {"hidden": 64, "layers": 2, "heads": 2, "kv_heads": 2, "head_dim": 32, "ffn": 128, "vocab": 100}
MODEL, GPU = "llama-3.1-8b", "h100-sxm"
SET = {"gpus": [GPU], "engine": "vllm", "weight_mbu": 0.8, "kv_mbu": 0.7, "step_ms": 1, "uncertainty": {"tpot": 0.1}, "source": "s"}
BASE: dict[str, Any] = {
    "version": 1, "title": "t", "time_model": "estimate", "preset": "eagle-llama2-chat-70b",
    "defaults": {"gpu": GPU, "context": 1000, "engine": "vllm"},
    "grid": {"model": [MODEL], "batch": [4, 8], "method": ["eagle"]},
    "rows": [{"id": "tree", "model": "mine", "batch": 2, "method": "eagle", "tree": "t"},
             {"id": "named", "model": MODEL, "batch": 2, "method": "eagle", "acceptance": "p"}],
    "parameters": {"eagle": {"draft_cost": 0.1}, "estimate": {"knee": 2}},
    "models": {"mine": {**SHAPE, "source": "a paper"}}, "gpus": {GPU: {"memory_gb": 80}},
    "prices": {GPU: {"usd_per_hour": 2, "source": "a vendor"}},
    "profiles": {"p": {"rates": [0.8, 0.6], "source": "a log"}}, "trees": {"t": {"rates": [0.7, 0.1], "topology": [[0], [1], [0, 0]]}},
    "curves": {"c": [[0, 0], [1, 1]]}, "hardware": {"set": SET},
    "measured": {"m": {"model": MODEL, "gpu": GPU, "points": [[1, 5], [64, 6]]}},
    "columns": {"k": {"formula": 'curve("c", batch)', "unit": "x"}}, "show": ["alpha_equivalent"], "where": "batch > 1", "sort": "batch",
    "summary": {"rows": ["tpot_ms"], "columns": "batch", "where": {"model": MODEL}}, "overrides": {"named": {"draft_ms": 3}},
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A change of one value: where it stands, what it becomes, what ``diff`` calls it, and a value that nobody may give."""

    path: tuple[Any, ...]
    value: Any
    label: str
    moves: bool = True
    bad: Any = None

    @property
    def id(self) -> str:
        return ".".join(str(part) for part in self.path)


CASES: dict[str, list[Case]] = {
    "version": [],
    "title": [Case(("title",), "u", "title", moves=False, bad=["t"])],
    "time_model": [Case(("time_model",), "bound", "time_model", bad="bond")],
    "preset": [Case(("preset",), "eagle-3-llama-3.1-8b-gsm8k", "preset", bad="eagel")],
    "defaults": [Case(("defaults", "context"), 2000, "default context", bad=-1), Case(("defaults", "engine"), "sglang", "default engine", bad="vlm")],
    "grid": [Case(("grid", "batch"), [4], "", bad=[0])],
    "rows": [Case(("rows", 1, "batch"), 3, "row batch", bad=0), Case(("rows", 1, "acceptance"), [0.9, 0.5], "row acceptance", bad=[0.5, 2])],
    "parameters": [Case(("parameters", "eagle", "draft_cost"), 0.2, "parameter eagle.draft_cost", bad="x"),
                   Case(("parameters", "estimate", "knee"), 4, "parameter estimate.knee", bad="x")],
    "models": [Case(("models", "mine", "hidden"), 128, "model mine.hidden", bad=0.5),
               Case(("models", "mine", "source"), "another", "model mine.source", moves=False, bad=["a"])],
    "gpus": [Case(("gpus", GPU, "bandwidth_tb_s"), 3, f"GPU {GPU}.bandwidth_tb_s", bad=0)],
    "prices": [Case(("prices", GPU, "usd_per_hour"), 3, f"price {GPU}", bad=-1),
               Case(("prices", GPU, "source"), "another", f"price {GPU}: source", moves=False, bad=["a"])],
    "profiles": [Case(("profiles", "p", "rates"), [0.4, 0.2], "profile p", bad=[0.5, 2]),
                 Case(("profiles", "p", "source"), "another", "profile p: source", moves=False, bad=["a"])],
    "trees": [Case(("trees", "t", "rates"), [0.3, 0.1], "tree t.rates", bad=[0.5, 2]),
              Case(("trees", "t", "topology"), [[0], [1]], "tree t.topology", bad=[])],
    "curves": [Case(("curves", "c"), [[0, 0], [1, 2]], "curve c", bad=[[0, 0]])],
    "hardware": [Case(("hardware", "set", "weight_mbu"), 0.4, "hardware set.weight_mbu", bad="x"),
                 Case(("hardware", "set", "doc"), "d", "hardware set.doc", moves=False, bad=["d"])],
    "measured": [Case(("measured", "m", "points"), [[1, 5], [64, 7]], "measured m.points", moves=False, bad=[[1, 5]])],
    "columns": [Case(("columns", "k", "formula"), 'curve("c", batch) * 2', "column k", bad=None),
                Case(("columns", "k", "unit"), "y", "column k: unit", moves=False, bad=["y"])],
    "show": [Case(("show",), ["acceptance"], "show", moves=False, bad=["best_gama"])],
    "where": [Case(("where",), "batch > 0", "where", moves=False, bad=["a"])],
    "sort": [Case(("sort",), "-batch", "sort", moves=False, bad=["batch", "batch"])],
    "summary": [Case(("summary", "rows"), ["tpot_ms", "k"], "summary rows", moves=False, bad={"a": 1}),
                Case(("summary", "where", "model"), "mine", "summary where", moves=False, bad=["mine"])],
    "overrides": [Case(("overrides", "named", "draft_ms"), 4, "override draft_ms", bad="x")],
}  # fmt: skip
EVERY = [case for cases in CASES.values() for case in cases]


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The base table with one value set."""
    found = copy.deepcopy(BASE)
    at: Any = found
    for part in path[:-1]:
        at = at[part]
    at[path[-1]] = value
    return found


def difference(old: Any, new: Any) -> Diff:
    """The difference of two tables, in whatever form they are."""
    return compare(api.load_table(old, HOST), api.load_table(new, HOST, overrides="keep"), HOST)


def test_every_section_has_a_case() -> None:
    """A section without a change that the law is tried on fails; only the version can have none."""
    assert list(CASES) == [section.key for section in SECTIONS]
    assert [key for key, cases in CASES.items() if not cases] == ["version"]
    assert set(BASE) == set(CASES)


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.id)
def test_diff_names_exactly_the_change_and_its_share(case: Case) -> None:
    """One changed value is one change, and whatever moved was moved by it."""
    found = difference(BASE, changed(case.path, case.value))
    assert [change.label for change in found.changes] == [case.label] * bool(case.label)
    assert bool(case.label) or (found.gone and not found.appeared)
    assert bool(found.movements) == (case.moves and bool(case.label))
    assert {share.label for item in found.movements for share in item.shares} <= {case.label}


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.id)
def test_export_keeps_it(case: Case, tmp_path: Path) -> None:
    """The YAML of a changed table reads as that table."""
    new = changed(case.path, case.value)
    path = tmp_path / "again.yaml"
    path.write_text(to_yaml(api.load_table(new, HOST), HOST), encoding="utf-8")
    assert SCHEMA.is_valid(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert difference(new, path).changes == []


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.id)
def test_the_schema_accepts_and_refuses_what_run_does(case: Case) -> None:
    """A value that ``run`` takes is good for an editor, and one that it refuses is marked."""
    new, bad = changed(case.path, case.value), changed(case.path, case.bad)
    assert [error.message for error in SCHEMA.iter_errors(new)] == []
    api.load_table(new, HOST)
    with pytest.raises(ScenarioError):
        api.check(bad, host=HOST)
    assert not SCHEMA.is_valid(bad)


@pytest.mark.parametrize("key", [key for key, cases in CASES.items() if cases])
def test_a_workbook_brings_it_back(key: str, tmp_path: Path) -> None:
    """A changed table written as a workbook and read back is that table."""
    case = CASES[key][-1]
    new, book = changed(case.path, case.value), tmp_path / "t.xlsx"
    api.run(new, host=HOST).to_excel(book)
    assert [change.label for change in difference(new, book).changes] == []


RIGHT = {
    "hardware": "hardware mine.weight_mbu", "time-model-parameter": "parameter estimate.knee", "tree": "tree t1.rates",
    "feature-of-another-row": "model m.hidden",
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_tables_that_differ_in_one_thing(name: str) -> None:
    """The one thing is named, it explains all that moved, and a table says the same as itself."""
    old, new = (DATA / "sections" / f"{name}-{number}.yaml" for number in (1, 2))
    found = difference(old, new)
    assert [change.label for change in found.changes] == [RIGHT[name]]
    assert {share.label for item in found.movements for share in item.shares} == {RIGHT[name]}
    assert difference(old, old).equal


@pytest.mark.parametrize("path", sorted((DATA / "text_inputs").glob("*.yaml")), ids=lambda path: path.stem)
def test_questions_about_a_row_that_names_its_engine(path: Path) -> None:
    """``compare`` and ``sensitivity`` answer for rows whose inputs are texts."""
    for command in (["compare", str(path), "--methods", "vanilla,int4"], ["sensitivity", str(path), "--of", "tpot_ms"]):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
