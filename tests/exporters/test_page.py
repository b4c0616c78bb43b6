"""The live page computes what the engine computes, before and after every kind of edit, and its texts can do nothing."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, columns, needs_browser, opened
from click.testing import CliRunner
from formula_backends import VECTORS, by_python, load_cases, same

import scenario
from scenario.api import bundled
from scenario.cli.commands import main
from scenario.formulas import functions, to_js
from scenario.formulas.to_js import compile_js

pytestmark = [needs_browser, pytest.mark.slow]
BUNDLED = sorted(bundled())
NEVER_MISSING = {"id", "tokens_per_round", "tpot_ms", "tokens_per_s", "speedup", "usd_per_million_tokens", "memory_gb", "max_batch", "status"}
ESTIMATE = {"version": 1, "time_model": "estimate", "defaults": {"gpu": "h100-sxm", "context": 1024, "engine": "vllm"},
            "grid": {"model": ["llama-3.1-8b"], "batch": [1, 16, 64], "method": ["vanilla", "eagle"]},
            "where": "fits", "sort": ["-tpot_ms"]}  # fmt: skip


@pytest.fixture(scope="module")
def started() -> Iterator[Any]:
    """One browser for the module."""
    with chromium() as found:
        yield found


@pytest.fixture
def browser(started: Any) -> Iterator[Any]:
    """The browser, whose pages are closed after the test."""
    yield started
    for context in started.contexts:
        context.close()


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter's page."""
    return written("starter", tmp_path_factory.mktemp("starter"))


def written(table: Any, folder: Path) -> Path:
    """The page of a table."""
    return scenario.run(table).to(folder / "page.html")


def differences(page: Any, table: Any) -> list[str]:
    """Public cells of the page that are not what the engine computes for a table, to 1e-9."""
    result = scenario.run(table)
    mine = columns(page)
    place = {name: index for index, name in enumerate(mine["id"])}
    found = []
    for row in result.frame.iter_rows(named=True):
        at = place[row["id"]]
        for name, value in row.items():
            if name not in mine and name not in NEVER_MISSING:  # a method that no row had brings columns of its own
                continue
            got = mine[name][at]
            close = got is not None and value is not None and isinstance(value, float) and abs(got - value) <= 1e-9 * max(abs(value), 1e-300)
            if got != value and not close:
                found.append(f"{row['id']} {name}: page {got!r}, engine {value!r}")
    return found


def test_the_page_knows_every_function_of_the_language(browser: Any, starter: Path) -> None:
    """The list of the back end is the language's, but for what no formula may hold, and the page's runtime has an entry for each."""
    assert {name for name, spec in functions.FUNCTIONS.items() if not spec.lint} == to_js.FUNCTIONS
    assert set(opened(browser, starter).evaluate("Engine.functions")) >= to_js.FUNCTIONS


def test_every_case_gives_the_stated_value(browser: Any, starter: Path) -> None:
    """The cases that say what a formula means hold in the browser too."""
    cases = load_cases(errors=False)
    vectors: dict[str, Any] = {name: [[key, list(values)] for key, values in VECTORS.by_depth(name).items()] for name in ("at", "tree_tokens", "tree_rows")}
    vectors["curve"] = [[c.name, [x for x, _ in c.points], [y for _, y in c.points]] for c in VECTORS.curves.values()]
    asked = [[compile_js(case.tree()), case.values, {name: fact.type for name, fact in case.facts.items()}] for case in cases]
    got = opened(browser, starter).evaluate(
        """([asked, vectors]) => { const known = Engine.vectorsOf(vectors); return asked.map(([tree, values, kinds]) => {
             const read = (name) => () => (values[name] === null ? (kinds[name] === "number" ? NaN : null) : values[name]);
             const v = Engine.closure(tree, read, known)(0); return Engine.isBlank(v) ? null : v; }); }""", [asked, vectors])  # fmt: skip
    wrong = [f"{case}: {value!r}, stated {case.value!r}" for case, value in zip(cases, got, strict=True) if not same(value, case.value)]
    assert not wrong
    assert all(same(by_python(case.tree(), case.values), case.value) for case in cases)


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_table_shows_the_engines_numbers(browser: Any, tmp_path: Path, name: str) -> None:
    """Every public cell of every bundled table, and the page says so itself."""
    page = opened(browser, written(name, tmp_path))
    assert not differences(page, name)
    assert page.text_content("#check").startswith("✓")


def edits(page: Any, seed: int) -> list[Any]:
    """Some inputs of every kind with other values that they may take."""
    targets = page.evaluate(
        """() => { const {data, model} = scenarioPage, out = [];
             for (const s of data.scalars) if (!s.fixed) out.push([["s", s.name], s, s.value]);
             for (const t of data.tables) for (const f of t.fields) if (f.tree === undefined && t.name === "gpus")
               for (const n of new Set(model.book.rows.columns.get("gpu").values)) out.push([["e", t.name, n, f.name], f, t.inputs[f.name][t.names.indexOf(n)]]);
             for (const f of data.fields) if (f.input !== undefined && f.name !== "id") for (const id of model.ids.slice(0, 40)) out.push([["r", id, f.name], f, null]);
             return out; }""")  # fmt: skip
    chance = random.Random(seed)
    changes = []
    for path, spec, first in chance.sample(targets, min(12, len(targets))):
        if spec.get("choices"):
            value: Any = chance.choice(spec["choices"])
        elif spec["kind"] == "number":
            low = spec.get("low", spec.get("above", 0)) or 0
            now = first if isinstance(first, int | float) else chance.choice([1, 2, 4])
            value = min(max(now * chance.choice([0.5, 0.75, 2]), low + (1 if "above" in spec else 0)), spec.get("high", 1e9))
            value = round(value) if spec.get("whole") else value
        else:
            continue
        changes.append([path, value])
    return changes


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["starter", "request-cost", "estimate"])
def test_an_edited_page_equals_the_engine_on_its_yaml(browser: Any, tmp_path: Path, name: str, seed: int) -> None:
    """After edits of assumptions, GPUs and rows the page's table, run by the engine, gives what the page shows; a link too; reset brings back."""
    path = written(ESTIMATE if name == "estimate" else name, tmp_path)
    page = opened(browser, path)
    before = columns(page)
    made = [change for change in edits(page, seed) if page.evaluate("(c) => scenarioPage.model.set([c])", change) == ""]
    assert made
    text = page.evaluate("scenarioPage.yaml()")
    table = tmp_path / "edited.yaml"
    table.write_text(text, encoding="utf-8")
    assert not differences(page, table), made
    link = page.evaluate("location.hash")
    again = opened(browser, path, fragment=link)
    assert columns(again) == columns(page)
    page.click("#reset")
    assert columns(page) == before


def test_undo_takes_back_one_edit(browser: Any, starter: Path) -> None:
    """Undo gives the numbers of the step before."""
    page = opened(browser, starter)
    first = columns(page)
    page.evaluate("scenarioPage.model.set([[['s', 'default_mfu'], 0.5]])")
    second = columns(page)
    page.evaluate("scenarioPage.model.set([[['s', 'eagle_alpha'], 0.9]])")
    page.click("#undo")
    assert columns(page) == second != first
    page.click("#undo")
    assert columns(page) == first


@pytest.mark.parametrize(("path", "value", "said"), [
    (["s", "default_mfu"], 1.5, "at most 1"), (["s", "default_mfu"], 0, "above 0"), (["s", "eagle_gamma"], 1.5, "whole"),
    (["r", "llama-3.1-8b_h100-sxm_b1_vanilla", "batch"], None, "needed"), (["s", "default_weights"], "bf17", "choices"),
    (["s", "no_such"], 1, "no such input"), (["e", "gpus", "__proto__", "memory_gb"], 1, "no such input"),
])  # fmt: skip
def test_an_edit_outside_its_range_is_refused(browser: Any, starter: Path, path: list[str], value: Any, said: str) -> None:
    """What the engine would refuse, the page does too: nothing changes, and a link with it is followed without it."""
    page = opened(browser, starter)
    before = columns(page)
    assert said in page.evaluate("(c) => scenarioPage.model.set([c])", [path, value])
    assert columns(page) == before


def test_a_csv_comes_back(browser: Any, starter: Path, tmp_path: Path) -> None:
    """The page's CSV is a table that the engine takes, with the rows that it showed."""
    page = opened(browser, starter)
    page.fill("#find", "eagle speedup>2")
    (tmp_path / "rows.csv").write_text(page.evaluate("scenarioPage.csv()"), encoding="utf-8")
    got = scenario.run(tmp_path / "rows.csv").frame
    wanted = scenario.run("starter").frame
    wanted = wanted.filter((wanted["speedup"] > 2) & wanted["method"].str.contains("eagle"))
    assert got["id"].to_list() == wanted["id"].to_list()


HOSTILE = {
    "version": 1, "title": "</script><script>document.title='owned'</script><!-- ]]> \u2028 @data@ @scripts@",
    "defaults": {"gpu": "h100-sxm", "context": 0},
    "rows": [{"id": "__proto__", "model": "llama-3.1-8b", "batch": 1, "method": "vanilla"},
             {"id": "<img src=x onerror=alert(1)>", "model": "llama-3.1-8b", "batch": 2, "method": "eagle"}],
    "columns": {"own": {"formula": "tpot_ms * 2", "title": "\"><svg onload=alert(1)>", "doc": "'--></style><script>alert(1)</script>"}},
}  # fmt: skip


def test_hostile_texts_do_nothing(browser: Any, tmp_path: Path) -> None:
    """Tags, comments, handlers and names of JavaScript's own in a table are texts, and come back as they were."""
    page = opened(browser, written(HOSTILE, tmp_path))
    assert page.title() == HOSTILE["title"]
    assert page.evaluate("document.querySelectorAll('img, svg, iframe, object').length") == 0
    assert page.evaluate("document.scripts.length") == 8
    (tmp_path / "back.yaml").write_text(page.evaluate("scenarioPage.yaml()"), encoding="utf-8")
    assert scenario.run(tmp_path / "back.yaml").frame["id"].to_list() == [row["id"] for row in HOSTILE["rows"]]  # type: ignore[index]


def test_only_the_releases_scripts_may_run(starter: Path) -> None:
    """The policy forbids everything but the hashes of the page's own scripts and styles, which no table changes."""
    def policy(path: Path) -> str:
        found = re.search(r'Content-Security-Policy" content="([^"]*)"', path.read_text(encoding="utf-8"))
        assert found
        return found[1]

    assert "default-src 'none'" in policy(starter)
    assert "unsafe" not in policy(starter)


def test_the_same_table_gives_the_same_bytes(tmp_path: Path) -> None:
    """Nothing of the time or the machine is in a page."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert written("starter", tmp_path / "a").read_bytes() == written("starter", tmp_path / "b").read_bytes()


def test_a_page_refuses_more_rows_than_a_browser_shows(tmp_path: Path) -> None:
    """A table of more rows is told which other format holds it, and nothing is written."""
    table = {"version": 1, "defaults": {"gpu": "h100-sxm", "context": 0, "method": "vanilla", "model": "llama-3.1-8b"},
             "grid": {"batch": list(range(1, 3002)), "gpus": [1, 2, 3, 4, 5, 6, 7]}}  # fmt: skip
    (tmp_path / "many.yaml").write_text(json.dumps(table), encoding="utf-8")
    done = CliRunner().invoke(main, ["run", str(tmp_path / "many.yaml"), "-q", "-o", str(tmp_path / "x.html")])
    assert done.exit_code == 2
    assert "20,000" in done.output
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("look", [{"viewport": {"width": 1200, "height": 900}}, {"viewport": {"width": 390, "height": 800}},
                                  {"viewport": {"width": 1200, "height": 900}, "color_scheme": "dark"}], ids=["desktop", "phone", "dark"])  # fmt: skip
def test_it_reads_well_everywhere(browser: Any, starter: Path, look: dict[str, Any]) -> None:
    """No sideways scrolling, nothing that axe-core calls serious; the pictures are kept in artefacts/ to be looked at."""
    page = opened(browser, starter, **look)
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= look["viewport"]["width"]
    axe = resources.files("axe_core_python") / "axe.min.js"
    page.evaluate(axe.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run().then((r) => r.violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => v.id + ': ' + v.nodes[0].html))")
    assert not found
    folder = Path(__file__).parents[2] / "artefacts"
    folder.mkdir(exist_ok=True)
    page.screenshot(path=folder / f"page-{look['viewport']['width']}-{look.get('color_scheme', 'light')}.png", full_page=True)


def test_the_keyboard_alone_edits_a_row(browser: Any, starter: Path) -> None:
    """Arrows move through the grid, Enter goes into a cell, what is typed counts."""
    page = opened(browser, starter)
    page.focus("#table tbody th")
    for key in ("ArrowRight",) * 4 + ("Enter",):
        page.keyboard.press(key)
    page.keyboard.press("Control+A")
    page.keyboard.type("16")
    page.keyboard.press("Enter")
    assert columns(page)["batch"][0] == 16


def test_a_result_shows_where_it_comes_from(browser: Any, starter: Path) -> None:
    """A click on a number opens its formula, the numbers in it, its unit and what it follows from."""
    page = opened(browser, starter)
    page.click("#table tbody tr:first-child button.cell >> nth=1")
    text = page.text_content("#explain-body")
    assert "round_ms / tokens_per_round" in text
    assert "ms" in text
    page.click("#explain-body button.link >> nth=0")
    assert "verify_ms" in page.text_content("#explain-body")
