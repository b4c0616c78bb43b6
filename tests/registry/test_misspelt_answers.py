"""Answers under a wrong name: refused when the plugin is loaded, with the name that was meant; helpers are declared."""

from __future__ import annotations

from pathlib import Path

import pytest

import scenario
from scenario import PluginError

HEAD = "from scenario import Column, Method, Parameter, hookimpl\n@hookimpl\ndef scenario_methods():\n    yield Method('mine', doc='d', source='s', {})\n"
ROW = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "mine"}


def run(tmp_path: Path, arguments: str) -> dict[str, object]:
    plugin = tmp_path / "mine.py"
    plugin.write_text(HEAD.replace("{}", arguments), encoding="utf-8")
    return scenario.run({"version": 1, "rows": [ROW]}, plugins=[str(plugin)]).full.row(0, named=True)


@pytest.mark.parametrize(("wrong", "meant"), [("draft_time_ms", "draft_ms"), ("tokens_per_rounds", "tokens_per_round"),
                                               ("row_per_sequence", "rows_per_sequence"), ("draft_weights_gb", "draft_weight_gb")])  # fmt: skip
def test_a_misspelt_answer_is_refused_with_the_name_meant(wrong: str, meant: str, tmp_path: Path) -> None:
    """Else the method would draft for nothing, or hold nothing, in silence."""
    with pytest.raises(PluginError, match=f"(?s){wrong}.*did you mean '{meant}'"):
        run(tmp_path, f"columns={{'rows_per_sequence': Column('2', 'rows', 'r'), '{wrong}': Column('1.5', 'x', 'y')}}")


def test_helpers_are_declared_and_read(tmp_path: Path) -> None:
    """A declared helper may have a name near a question's, and a helper of older plugins stands among the answers."""
    declared = run(tmp_path, "helpers={'draft_pass': Column('0.1 * baseline_ms', 'ms', 'p')}, columns={'draft_ms': Column('3 * draft_pass', 'ms', 'd')}")
    before = run(tmp_path, "columns={'draft_pass': Column('0.1 * baseline_ms', 'ms', 'p'), 'draft_ms': Column('3 * draft_pass', 'ms', 'd')}")
    for row in (declared, before):
        assert row["draft_ms"] == pytest.approx(0.3 * row["baseline_ms"], rel=1e-12)


def test_an_answer_is_no_helper(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="draft_ms"):
        run(tmp_path, "helpers={'draft_ms': Column('1', 'ms', 'd')}")
