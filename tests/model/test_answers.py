"""Break-even points and the best draft length, against tries of every batch, alpha and length."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import scenario
from scenario.registry.host import load

HOST = load(third_party=False)
BASE = {"model": "llama-3-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "eagle"}


def run(rows: list[dict[str, Any]], **table: Any) -> pl.DataFrame:
    return scenario.run({"version": 1, "rows": [{**BASE, **row} for row in rows], **table}, host=HOST).frame


def one(table: dict[str, Any] | None = None, **inputs: Any) -> dict[str, Any]:
    return run([inputs], **(table or {})).row(0, named=True)


CASES: list[dict[str, Any]] = [
    {"draft_cost": 0.05, "alpha": 0.75, "gamma": 4}, {"draft_cost": 0.1, "alpha": 0.6, "gamma": 2}, {"draft_cost": 0.3, "alpha": 0.5, "gamma": 4},
    {"draft_cost": 0.05, "alpha": 0.7, "gamma": 5, "context": 500}, {"draft_cost": 0.2, "alpha": 0.8, "gamma": 3, "mfu": 0.6, "mbu": 0.8},
    {"method": "int4+eagle", "draft_cost": 0.02, "alpha": 0.7, "gamma": 3}, {"method": "fp8+eagle", "draft_cost": 0.04, "alpha": 0.8, "gamma": 3},
    {"method": "ngram", "hit_rate": 0.3, "alpha": 0.6, "gamma": 5}, {"method": "suffix"}, {"alpha": 0.8, "gamma": 4}, {"method": "medusa", "alpha": 0.7},
    {"method": "eagle-3", "alpha": 0.7, "gamma": 3, "mfu": 0.5}, {"method": "int4+suffix", "alpha": 0.9},
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_break_even_batch_is_the_last_that_pays(case: dict[str, Any]) -> None:
    """Exact for a dense model without a cache, from whatever batch one asks: there a round beats plain steps, one more loses.

    With a cache it is the largest power of two that pays.
    """
    found = run([{**case, "batch": [1, 7, 64, 78, 79, 128, 300]}], show="break_even_batch")["break_even_batch"].to_list()
    tried = run([{**case, "batch": list(range(1, 400)) if not case.get("context") else [2**k for k in range(14)]}])
    gain = tried["tokens_per_round"] * tried["step_ms"] / tried["round_ms"]
    pays = [batch for batch, value in zip(tried["batch"], gain, strict=True) if value >= 1]
    assert found == [max(pays, default=0)] * 7


def test_break_even_batch_of_a_draft_that_does_not_scale_with_the_step() -> None:
    """Suffix decoding takes 20 us of CPU a token: E 2.997 steps of 4.794 ms pay for 0.096 + 0.0880 ms a sequence up to batch 78."""
    rows = run([{"model": "llama-3.1-8b", "method": "suffix", "batch": [1, 64, 78, 79, 128]}], show="break_even_batch")
    assert rows["break_even_batch"].to_list() == [78] * 5


def test_break_even_batch_with_a_long_cache_never_comes() -> None:
    """Where reading the cache outweighs the arithmetic of the drafts no batch that is tried hurts: the last of them is said."""
    assert one({"show": "break_even_batch"}, draft_cost=0.05, alpha=0.8, gamma=2, context=8000, gpus=8)["break_even_batch"] == 8192


def test_break_even_batch_of_a_mixture_is_bracketed() -> None:
    """A mixture has no closed form: the largest power of two that pays, by trying them; at batch 1 it may not pay yet."""
    case = {"model": "mixtral-8x7b", "gpus": 4, "method": "mtp", "alpha": 0.85, "gamma": 2, "draft_cost": 0.05}
    found = one({"show": "break_even_batch"}, **case)["break_even_batch"]
    powers = [2**k for k in range(14)]
    tried = run([{**case, "batch": powers}])
    gain = (tried["tokens_per_round"] * tried["step_ms"] / tried["round_ms"]).to_list()
    assert found == max(batch for batch, value in zip(powers, gain, strict=True) if value >= 1)


@pytest.mark.parametrize("case", [*CASES, {"draft_cost": 0.1, "gamma": 4, "batch": 120}, {"draft_cost": 0.1, "gamma": 4, "batch": 300}], ids=str)
def test_break_even_alpha_makes_a_round_worth_its_time(case: dict[str, Any]) -> None:
    """With that alpha a round is exactly as fast as plain steps; blank means that even alpha 1 is too little."""
    found = one({"show": "break_even_alpha"}, **case)["break_even_alpha"]
    if found is None:
        best = one(**{**case, "alpha": 1})
        assert best["tokens_per_round"] * best["step_ms"] < best["round_ms"]
        return
    again = one(**{**case, "alpha": found})
    assert again["tokens_per_round"] * again["step_ms"] == pytest.approx(again["round_ms"], rel=1e-8)


@pytest.mark.parametrize("method", ["small-model", "eagle", "eagle-3", "medusa", "ngram", "suffix", "mtp", "mtp-modules", "parallel-draft",
                                    "int4+eagle", "fp8+eagle-3"])  # fmt: skip
@pytest.mark.parametrize("batch", [1, 40, 200])
def test_best_gamma_is_the_best_of_17_tables(method: str, batch: int) -> None:
    """Tried one by one, no number of draft tokens from 0 to 16 is faster; one more and one less cost what they cost there."""
    found = one({"show": "best_gamma"}, method=method, batch=batch)
    tried = run([{"method": method, "batch": batch, "gamma": list(range(17))}])
    times = (tried["round_ms"] / tried["tokens_per_round"]).to_list()
    best = min(range(17), key=lambda gamma: times[gamma])
    assert found["best_gamma"] == best
    assert found["best_tpot_ms"] == pytest.approx(times[best], rel=1e-12)
    for name, other in (("one_more_cost", best + 1), ("one_less_cost", best - 1)):
        if 0 <= other <= 16:
            assert found[name] == pytest.approx(times[other] / times[best] - 1, abs=1e-12)
        else:
            assert found[name] is None


RANGES = """
from scenario import Column, Method, Parameter, hookimpl

ALPHA = Parameter(0.95, 0, 1, doc="Chance that a draft is kept.", source="test")
COLUMNS = {"rows_per_sequence": Column("gamma + 1", "rows", "r"), "tokens_per_round": Column("geometric(alpha, gamma)", "tokens", "t"),
           "draft_ms": Column("0.01 * gamma * baseline_ms", "ms", "d")}

@hookimpl
def scenario_methods():
    for name, low, high in (("far", 2, 32), ("near", 1, 5)):
        gamma = Parameter(low, low, high, "tokens", "Drafts.", "test", "integer")
        yield Method(name, doc="d", source="test", parameters={"alpha": ALPHA, "gamma": gamma}, columns=COLUMNS)
    cost = Parameter(None, 0, 1, doc="Cost.", source="test")
    yield Method("unknown", doc="d", source="test", parameters={"cost": cost}, columns={"draft_ms": Column("cost * baseline_ms", "ms", "d")})
"""


def test_best_gamma_covers_the_range_of_the_method_alone(tmp_path: Path) -> None:
    """Drafts of 2 to 32 and of 1 to 5 tokens: the best of each range, in one table with EAGLE and in tables of their own."""
    plugin = tmp_path / "ranges.py"
    plugin.write_text(RANGES, encoding="utf-8")

    def found(*methods: str, **inputs: Any) -> pl.DataFrame:
        table = {"version": 1, "rows": [{**BASE, "method": list(methods), "batch": [1, 40], **inputs}], "show": ["best_gamma"]}
        return scenario.run(table, plugins=[str(plugin)]).frame

    names = ("best_gamma", "best_tpot_ms", "best_speedup", "one_more_cost", "one_less_cost")
    together = found("far", "near", "eagle")
    for method, lengths in (("far", range(2, 33)), ("near", range(1, 6))):
        own = found(method)
        assert together.filter(pl.col("method") == method).select(names).equals(own.select(names))
        tried = found(method, gamma=list(lengths))
        for row in own.iter_rows(named=True):
            alike = tried.filter(pl.col("batch") == row["batch"]).sort("tpot_ms")
            assert (row["best_gamma"], row["best_tpot_ms"]) == (alike["gamma"][0], pytest.approx(alike["tpot_ms"][0], rel=1e-12))


def test_a_row_without_a_time_is_not_ok(tmp_path: Path) -> None:
    """Where nothing says what a draft costs the row has no time and its status says so; with a cost it is well."""
    plugin = tmp_path / "ranges.py"
    plugin.write_text(RANGES, encoding="utf-8")
    rows = [{**BASE, "method": "unknown"}, {**BASE, "method": "unknown", "cost": 0.1}]
    frame = scenario.run({"version": 1, "rows": rows}, plugins=[str(plugin)]).frame
    assert frame["tpot_ms"].is_null().to_list() == [True, False]
    assert frame["status"].to_list() == ["no time: a number that it needs is blank", "ok"]


def test_gamma_auto_takes_the_best_and_switches_off() -> None:
    """gamma: auto drafts as the best length says, and not at all where drafting hurts: there it is vanilla decoding."""
    rows = run([{"gamma": "auto", "batch": [1, 64, 512], "draft_cost": 0.05, "alpha": 0.7, "context": 0}], show="best_gamma")
    assert rows["gamma"].to_list() == rows["best_gamma"].to_list()
    assert rows["gamma"][0] > rows["gamma"][1] > rows["gamma"][2] == 0
    last = rows.row(2, named=True)
    assert (last["speedup"], last["tokens_per_round"], last["draft_ms"], last["rows_per_sequence"]) == (1, 1, 0, 1)
    table = run([{"batch": [1, 64, 512]}], parameters={"eagle": {"gamma": "auto", "draft_cost": 0.05, "alpha": 0.7}})
    assert table["gamma"].to_list() == rows["gamma"].to_list()


def test_headroom_to_the_ridge() -> None:
    """At batch 1 with 4 drafts 5 rows run; the H100's ridge lies at 316 rows of the 8B, hence 63 times as many."""
    found = one({"show": "ridge_headroom"}, gamma=4)
    assert found["ridge_headroom"] == pytest.approx(found["ridge_rows"] / 5 if "ridge_rows" in found else found["ridge"] / found["intensity"])
    assert math.floor(found["ridge_headroom"]) == 63


def test_answers_come_with_any_mention() -> None:
    """A condition, a sort or a column that names an answer is enough."""
    rows = run([{"batch": [1, 512], "draft_cost": 0.1}], where="best_gamma > 0", columns={"twice": "2 * break_even_batch"}, sort="-best_speedup")
    assert rows.height == 1
    assert rows["twice"][0] == 2 * one({"show": "break_even_batch"}, draft_cost=0.1)["break_even_batch"]


def test_fp8_computes_at_the_fp8_rate_against_a_bf16_baseline() -> None:
    """Compute bound at batch 600, FP8 is twice as fast as BF16 by the makers' rates; memory bound it is by the bytes."""
    gpu = {"gpus": {"mine": {"memory_gb": 80, "bandwidth_tb_s": 3, "bf16_tflops": 900, "fp8_tflops": 1800, "source": "test"}}}
    speed = run([{"gpu": "mine", "method": "fp8", "batch": [1, 5000]}], **gpu)["speedup"].to_list()
    assert speed == pytest.approx([2, 2], rel=1e-12)
    cheap = run([{"gpu": "mine", "method": "fp8", "batch": 5000, "weights": "fp8"}], **gpu).row(0, named=True)
    assert cheap["speedup"] == pytest.approx(2, rel=1e-12)


def test_fp8_on_a_gpu_without_it_has_no_speed() -> None:
    """An A100 has no FP8 arithmetic: the row says so, and shows neither speed nor price."""
    found = one(method="fp8", gpu="a100-80gb")
    assert found["status"] == "not supported: this GPU lacks the number format"
    assert [found[name] for name in ("tpot_ms", "tokens_per_s", "speedup", "usd_per_million_tokens")] == [None] * 4
    assert found["fits"] is True


def test_lookahead_is_equation_5_of_its_paper() -> None:
    """1 + f (the sum over positions of the chance that one of G candidates gets there), and (W + G)(N - 1) rows."""
    found = one(method="lookahead", alpha=0.4, hit_rate=0.5, ngram=4, lookahead_window=10, guesses=6)
    assert found["tokens_per_round"] == pytest.approx(1 + 0.5 * sum(1 - (1 - 0.4**i) ** 6 for i in (1, 2, 3)), rel=1e-12)
    assert found["rows_per_sequence"] == 16 * 3


def test_parallel_drafts_cost_one_pass() -> None:
    """The drafting time does not grow with the number of tokens while memory sets it; the rows do."""
    few, many = one(method="parallel-draft", gamma=3), one(method="parallel-draft", gamma=7)
    assert few["draft_ms"] == many["draft_ms"] > 0
    assert (few["rows_per_sequence"], many["rows_per_sequence"]) == (4, 8)


def test_modules_hold_a_block_each() -> None:
    """Separate prediction blocks take memory and a cache per draft token, a block used again does not."""
    again, apart = (one(method=name, gamma=4, draft_cost=0.05, context=1000) for name in ("mtp", "mtp-modules"))
    assert apart["draft_gb"] == pytest.approx(4 * again["draft_gb"], rel=1e-12)


def test_suffix_drafts_on_the_cpu() -> None:
    """20 microseconds per draft token, one sequence after the other."""
    assert one(method="suffix", batch=32, hit_rate=0.5, gamma=8)["draft_ms"] == pytest.approx(32 * 0.5 * 8 * 0.02, rel=1e-12)
