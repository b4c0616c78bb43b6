"""From Python and in notebooks: results show themselves in a few lines, and the questions are functions."""

from __future__ import annotations

import html.parser
import inspect

import polars as pl
import pytest

import scenario

ROW = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "context": 0}
TABLE = {"version": 1, "title": "<b>Bold & brave</b>", "defaults": ROW, "grid": {"batch": [1, 64, 256], "method": ["vanilla", "eagle"]},
         "columns": {"own": "tpot_ms * 2"}}  # fmt: skip


@pytest.fixture(scope="module")
def result() -> scenario.Result:
    """A small result."""
    return scenario.run(TABLE)


def test_a_result_is_short_as_text(result: scenario.Result) -> None:
    """One line, whatever the table's size: rows, columns, and what its times are."""
    assert len(repr(result)) < 300
    assert "6 rows" in repr(result)
    assert "lower bound" in repr(result)


def test_a_result_is_a_compact_table_in_a_notebook(result: scenario.Result) -> None:
    """Well-formed HTML with the first rows, the table's own columns and the notes; a title is a text."""
    text = result._repr_html_()
    tags: list[str] = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(text)
    assert tags.count("tr") == 7
    assert "b" not in tags
    assert "own" in text
    assert "lower bound" in text
    assert len(scenario.run("starter")._repr_html_()) < 20_000


def test_columns_by_name(result: scenario.Result) -> None:
    """A column is had by its name; a misspelt one says what was meant."""
    assert len(result) == 6
    assert isinstance(result["tpot_ms"], pl.Series)
    with pytest.raises(KeyError, match="speedup"):
        result["speedupp"]
    assert result.to_polars().equals(result.frame)


def test_a_page_and_its_charts_come_inline(result: scenario.Result) -> None:
    """A frame that may run its scripts and nothing else; a chart alone is the same page with one figure."""
    shown = result.page()._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts allow-downloads"')
    assert "<b>Bold" not in shown
    for chart in ("pareto", "price", "passes", "speedup"):
        assert "data-only=" in getattr(result.plot, chart)().text


def test_questions_are_functions() -> None:
    """best, compare, sensitivity, explain and diff give what the commands print; each has a docstring and types."""
    best = scenario.best(TABLE, where="tpot_ms <= 5")
    assert best.choices
    assert set(scenario.compare(TABLE, methods=["vanilla", "int4"]).frame["method"]) == {"vanilla", "int4"}
    assert scenario.sensitivity(TABLE).swings
    assert "speedup =" in scenario.explain(TABLE, "speedup", row="b1_eagle")
    assert scenario.diff(TABLE, {**TABLE, "defaults": {**ROW, "mfu": 0.5}}) is not None
    for name in ("best", "compare", "sensitivity", "explain", "diff", "models", "gpus", "methods"):
        function = getattr(scenario, name)
        assert function.__doc__
        assert all(p.annotation is not inspect.Parameter.empty for p in inspect.signature(function).parameters.values())


def test_catalogs_are_frames() -> None:
    """Models, GPUs and methods, one row each."""
    assert "llama-3.1-8b" in scenario.models()["name"].to_list()
    h100 = scenario.gpus().filter(pl.col("name") == "h100-sxm")
    assert h100["bandwidth_tb_s"].item() == pytest.approx(3.35)
    assert "eagle" in scenario.methods()["name"].to_list()
