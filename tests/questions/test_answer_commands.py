"""The commands best, sensitivity and compare: what they choose, and what they say stops the rest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import scenario
from scenario.cli.commands import main
from scenario.common.errors import ScenarioError
from scenario.questions import best as search
from scenario.questions import variants
from scenario.registry.host import load
from scenario.tables import reader as tables

HOST = load(third_party=False)
TABLE = {
    "version": 1, "title": "Which",
    "grid": {"model": ["llama-3-8b", "llama-3-70b"], "gpu": ["h100-sxm"], "gpus": [1, 4], "batch": [1, 16, 64, 256], "context": [2000],
             "method": ["vanilla", "eagle", "int4"]},
}  # fmt: skip
ROW = "llama-3-8b_b16_eagle_gpus-1"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "t.yaml"
    path.write_text(yaml.safe_dump(TABLE), encoding="utf-8")
    return str(path)


def test_best_is_the_cheapest_row_that_holds_the_limits() -> None:
    """For each model, the lowest price among the rows with at most 8 ms per token, found by looking at every row."""
    found = search.best(tables.load(TABLE, HOST), HOST, "tpot_ms <= 8 and batch >= 16", ["model"], "usd_per_million_tokens")
    rows = list(scenario.run(TABLE, host=HOST).frame.iter_rows(named=True))
    for choice in found.choices:
        own = [row for row in rows if row["model"] == choice.group["model"] and row["usd_per_million_tokens"] is not None]
        holding = [row for row in own if row["tpot_ms"] <= 8 and row["batch"] >= 16]
        wanted = min(holding, key=lambda row: row["usd_per_million_tokens"])
        assert choice.row is not None
        assert choice.row["id"] == wanted["id"]
        cheaper = [row for row in own if row["usd_per_million_tokens"] < wanted["usd_per_million_tokens"]]
        if not cheaper:
            assert choice.stop is None
            continue
        assert choice.stop is not None
        assert choice.stop.row["id"] == max(cheaper, key=lambda row: row["usd_per_million_tokens"])["id"]
        assert len(choice.stop.reasons) == (choice.stop.row["tpot_ms"] > 8) + (choice.stop.row["batch"] < 16)


def test_best_says_why_nothing_will_do(file: str) -> None:
    """Where no row holds the limits, the cheapest one is named with the limit that stops it and its value."""
    done = CliRunner().invoke(main, ["best", file, "--where", "tpot_ms <= 0.01", "--by", "model"])
    assert done.exit_code == 0, done.output
    assert re.search(r"llama-3-70b: none of 24 rows will do; llama-3-70b_b256_\w+_gpus-4 at", done.output)
    assert "is stopped by tpot_ms <= 0.01; tpot_ms is" in done.output


def test_best_of_another_column(file: str) -> None:
    """--of -tokens_per_s asks for the highest throughput."""
    found = search.best(tables.load(TABLE, HOST), HOST, "", [], "-tokens_per_s")
    rows = scenario.run(TABLE, host=HOST).frame
    assert found.choices[0].row is not None
    assert found.choices[0].row["tokens_per_s"] == rows["tokens_per_s"].max()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--where", "tpot_mss <= 2"], "did you mean 'tpot_ms'"), (["--where", "tpot_ms + 1"], "is not a condition"),
     (["--by", "modell"], "did you mean 'model'"), (["--of", "prise"], "there is no column 'prise'"), (["--where", "tpot_ms <="], "cannot be read")],
)  # fmt: skip
def test_best_refuses_what_it_does_not_know(file: str, arguments: list[str], said: str) -> None:
    """A misspelt column, input or condition is an error with exit code 2, and what was meant."""
    done = CliRunner().invoke(main, ["best", file, *arguments])
    assert done.exit_code == 2
    assert said in done.output


def test_sensitivity_moves_one_input_at_a_time() -> None:
    """Each end is the price of a table in which that input alone was changed; prices scale as 1.1 with the hourly price."""
    _, found = variants.sensitivity(tables.load(TABLE, HOST), HOST, ROW, "usd_per_million_tokens", 0.1, {"gamma": (1, 8)})
    swings = {swing.name: swing for swing in found.swings}
    assert swings["usd_per_hour"].at_high == pytest.approx(1.1 * found.base, rel=1e-12)
    assert (swings["gamma"].low, swings["gamma"].high) == (1, 8)
    base = {"model": "llama-3-8b", "gpu": "h100-sxm", "gpus": 1, "batch": 16, "context": 2000, "method": "eagle"}
    for name, swing in swings.items():
        for value, price in ((swing.low, swing.at_low), (swing.high, swing.at_high)):
            if value is not None:
                alone = scenario.run({"version": 1, "rows": [{**base, name: value}]}, host=HOST).frame
                assert price == pytest.approx(alone["usd_per_million_tokens"][0], rel=1e-12), name
    assert swings["mbu"].high is None  # 1 is the limit
    assert "mfu" in found.still
    sizes = [swing.size for swing in found.swings]
    assert sizes == sorted(sizes, reverse=True)


def test_sensitivity_on_the_terminal_and_in_a_file(file: str, tmp_path: Path) -> None:
    """Bars on the terminal, and a workbook on request."""
    done = CliRunner().invoke(main, ["sensitivity", file, "--row", ROW, "-o", str(tmp_path / "s.xlsx")])
    assert done.exit_code == 0, done.output
    assert "###" in done.output
    assert (tmp_path / "s.xlsx").exists()
    for arguments, said in ((["--row", "nix"], "there is no row 'nix'"), (["--range", "alpha=1"], "two numbers are needed"),
                            (["--range", "alfa=0.1:0.2"], "did you mean 'alpha'"), (["--range", "batch=0:5"], "batch: 0 is out of range"),
                            (["--range", "batch=1:2.5"], "a whole number is needed"), (["--range", "alpha=0.5:nan"], "not a number that can be used"),
                            (["--range", "gpus=0:2"], "gpus: 0 is out of range"), (["--of", "status"], "not a column of numbers")):  # fmt: skip
        done = CliRunner().invoke(main, ["sensitivity", file, *arguments])
        assert done.exit_code == 2
        assert said in done.output


def test_compare_puts_each_method_on_the_same_row() -> None:
    """Each line is what a table with that method gives; a value typed for one method does not reach the others."""
    row = {"id": "a", "model": "llama-3-8b", "gpu": "h100-sxm", "batch": 8, "context": 1000, "method": "eagle", "alpha": 0.9, "gamma": 6}
    read = tables.load({"version": 1, "rows": [row]}, HOST)
    found = {line["method"]: line for line in variants.compare(read, HOST, "a", ["eagle", "int4+eagle", "ngram", "vanilla"]).frame.iter_rows(named=True)}
    for method, line in found.items():
        own = row if "eagle" in method else {key: value for key, value in row.items() if key not in ("alpha", "gamma")}
        alone = scenario.run({"version": 1, "rows": [{**own, "method": method}]}, host=HOST).frame
        assert line["tpot_ms"] == pytest.approx(alone["tpot_ms"][0], rel=1e-12)
    with pytest.raises(ScenarioError, match="unknown method 'eagel'"):
        variants.compare(read, HOST, "a", ["eagel"])


def test_compare_on_the_terminal(file: str) -> None:
    """All methods by default, the fastest first."""
    done = CliRunner().invoke(main, ["compare", file, "--row", ROW])
    assert done.exit_code == 0, done.output
    lines = [line.split()[0] for line in done.output.splitlines() if line.split()]
    assert set(HOST.methods) <= set(lines)
    assert lines.index("eagle") < lines.index("vanilla")
