"""Parts of the model together with time models: prompts, parallel sizes and formats, timed by estimate and measured points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import scenario
from scenario import TableError
from scenario.cli.commands import main

ROW = {"model": "llama-3.1-70b", "gpu": "h100-sxm", "batch": 8, "context": 2000, "method": "vanilla"}
POINTS = {"m": {"model": "llama-3.1-70b", "gpu": "h100-sxm", "points": [[1, 20], [64, 25], [4000, 300]]}}
REQUEST = {"prompt_tokens": 4000, "output_tokens": 200}
SERVED = {"isl": 4000, "osl": 200}


def run(*rows: dict[str, Any], **sections: Any) -> list[dict[str, Any]]:
    table = {"version": 1, "rows": [{**ROW, **row} for row in rows], **sections}
    return list(scenario.run(table).full.iter_rows(named=True))


def test_a_prompt_is_timed_by_the_time_model_of_its_row() -> None:
    """Rows of one table: measured points are read at the prompt's tokens; the others are as in tables of their own."""
    rows = run(*({**REQUEST, "gpus": 8, "time_model": name} for name in ("bound", "estimate", "measured")), measured=POINTS)
    alone = [run({**REQUEST, "gpus": 8}, time_model=name)[0] for name in ("bound", "estimate")]
    assert [row["ttft_ms"] for row in rows] == pytest.approx([*(row["ttft_ms"] for row in alone), 300.0], rel=1e-12)


def test_the_estimate_of_a_prompt_does_not_depend_on_the_batch() -> None:
    one, many = run({**REQUEST, "gpus": 8, "batch": 1}, {**REQUEST, "gpus": 8, "batch": 32}, time_model="estimate")
    assert one["ttft_ms"] == pytest.approx(many["ttft_ms"], rel=1e-12)
    assert one["ttft_ms"] > run({**REQUEST, "gpus": 8})[0]["ttft_ms"]


SIZES = ("gpus_given", "tp", "tp_given", "pp", "pp_given", "dp", "dp_given", "ep", "ep_given", "id")


@pytest.mark.parametrize(
    ("inputs", "gpus"),
    [({}, 8), ({"batch": 200, **REQUEST}, 4), ({**SERVED, "method": "eagle"}, 8), ({"model": "deepseek-v3", "weights": "fp8", "method": "mtp"}, 16),
     ({"model": "qwen3-30b-a3b", "method": "medusa"}, 8), ({"model": "llama-3.1-8b"}, 64)],
    ids=str,
)  # fmt: skip
def test_gpus_alone_are_tensor_parallel_in_the_estimate(inputs: dict[str, Any], gpus: int) -> None:
    """`gpus: n` and `tp: n` are the same row bit for bit: times, copies of caches, limits, also past a node and past the heads."""
    (plain,), (sized,) = (run({**inputs, name: gpus}, time_model="estimate") for name in ("gpus", "tp"))
    assert {name: value for name, value in plain.items() if name not in SIZES} == {name: sized[name] for name in plain if name not in SIZES}
    assert plain["comm_ms"] > 0


def test_the_estimates_all_reduces_past_a_node() -> None:
    """16 GPUs in two nodes of 8: one network hop up and down and its start, and the bytes over the network; launches are in the pass."""
    constants = {"engine": "any", "gpus": ["h100-sxm"], "link_share": 0.5}
    (row,) = run({"gpus": 16}, time_model="estimate", hardware={"mine": constants})
    sent = 160 * 2 * 15 / 16 * 8 * 8192 * 2
    assert row["comm_ms"] == pytest.approx(sent / (50e9 * 0.5) * 1e3 + 160 * (6.6 + 2 * 2.7) / 1e3, rel=1e-12)


def test_gpus_alone_pool_in_the_bound_beside_an_estimate() -> None:
    """Rows of both time models in one table: the bound's has no communication and one cache, the estimate's has eight of a latent."""
    bound, estimate = run(*({"model": "deepseek-v3", "weights": "fp8", "gpus": 8, "time_model": name} for name in ("bound", "estimate")))
    assert (bound["comm_ms"], bound["kv_copies"], estimate["kv_copies"]) == (0, 1, 8)


def test_automatic_gpus_of_the_estimate_count_the_copies() -> None:
    """auto takes the smallest power of two on which tensor parallelism holds the row; half as many do not."""
    inputs = {"model": "deepseek-v3", "weights": "fp8", "batch": 100, "context": 8192}
    (row,) = run({**inputs, "gpus": "auto"}, time_model="estimate")
    assert run({**inputs, "gpus": row["gpus"]}, time_model="estimate")[0]["memory_gb"] == row["memory_gb"]
    assert [run({**inputs, "tp": size}, time_model="estimate")[0]["fits"] for size in (row["gpus"] / 2, row["gpus"])] == [False, True]


def test_measured_passes_have_their_communication_in_them() -> None:
    (measured,) = run({"tp": 8}, time_model="measured", measured=POINTS)
    assert measured["comm_ms"] == 0
    assert measured["verify_ms"] == pytest.approx(20 + 5 * 7 / 63, rel=1e-12)


@pytest.mark.parametrize("time_model", ["bound", "measured"])
def test_replicas_serve_the_prompts_of_their_own_sequences(time_model: str) -> None:
    """Two replicas of four GPUs with eight sequences are as fast as one replica with four."""
    two, one = run({"tp": 4, "dp": 2, "batch": 8, **SERVED}, {"tp": 4, "dp": 1, "batch": 4, **SERVED}, time_model=time_model, measured=POINTS)
    names = ("prefill_ms", "interference_ms") if time_model == "measured" else ("prefill_ms", "interference_ms", "tpot_ms", "ttft_ms")
    assert [two[name] for name in names] == pytest.approx([one[name] for name in names], rel=1e-12)


def test_a_request_is_described_by_one_pair() -> None:
    with pytest.raises(TableError, match="both isl and prompt_tokens"):
        run({**REQUEST, **SERVED, "gpus": 8})


def test_arithmetic_that_the_gpu_lacks_is_refused_by_the_estimate_too() -> None:
    (row,) = run({"gpu": "a100-80gb", "gpus": 4, "weights": "fp8", "activations": "fp8", **SERVED}, time_model="estimate")
    assert row["status"] == "refused: this GPU has no FP8 rate"
    assert row["tpot_ms"] is None
    assert row["ttft_ms"] is None


TABLES = {
    "prompts": "rows:\n"
    "- {model: llama-3.1-70b, gpu: h100-sxm, batch: 8, context: 20, method: vanilla, tp: 8, prompt_tokens: 400, output_tokens: 20,"
    " time_model: estimate}\n"
    "- {model: llama-3.1-70b, gpu: h100-sxm, batch: 8, context: 10, method: eagle, tp: 4, prompt_tokens: 400, output_tokens: 200,"
    " weights: fp8, activations: fp8, time_model: bound}\n",
    "served": "time_model: estimate\nrows:\n"
    "- {model: llama-3.1-70b, gpu: h100-sxm, batch: 8, method: eagle, tp: 4, dp: 2, isl: 1000, osl: 200, engine: vllm}\n"
    "- {model: llama-3.1-70b, gpu: h100-sxm, batch: 8, method: vanilla, tp: 8, isl: 1000, osl: 200, weights: fp8, activations: fp8}\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_workbooks_of_both_come_back(name: str, tmp_path: Path) -> None:
    """The table, the workbook and the table read from it show the same, and nothing is said to be missing."""
    table = tmp_path / "table.yaml"
    table.write_text(f"version: 1\n{TABLES[name]}", encoding="utf-8")

    def command(source: str, target: str) -> str:
        done = CliRunner().invoke(main, ["run", str(tmp_path / source), "-o", str(tmp_path / target)])
        assert done.exit_code == 0, done.output
        return done.stderr

    command("table.yaml", "one.xlsx")
    command("table.yaml", "one.csv")
    said = command("one.xlsx", "two.csv")
    assert "is gone" not in said
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
