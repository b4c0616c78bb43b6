"""The bound is a bound: no row of it is slower than the same row of the estimate, nor than what a server was seen to do."""

from __future__ import annotations

from typing import Any

import pytest

import scenario
from scenario.registry.host import load

HOST = load(third_party=False)
ROOM = {name: {"memory_gb": 100_000} for name in ("h100-sxm", "h200", "b200", "a10")}  # so that every row runs
MODELS = ["llama-3.1-8b", "qwen2.5-7b", "qwen3-0.6b", "mixtral-8x7b", "deepseek-v3", "gpt-oss-120b", "qwen3-next-80b-a3b"]
METHODS = ["vanilla", "eagle", "eagle-3", "medusa", "mtp", "ngram", "suffix", "int4+eagle", "lookahead", "parallel-draft"]
TIMES = ("baseline_ms", "step_ms", "verify_ms", "draft_ms", "round_ms", "tpot_ms", "ttft_ms", "request_ms")
SETTINGS: dict[str, dict[str, Any]] = {
    "weights alone": {"context": 0},
    "cache": {"context": 4096},
    "pooled against tensor parallel": {"context": 4096, "gpus": 8},
    "tensor parallel": {"context": 2048, "tp": 4},
    "experts spread past a node": {"context": 1000, "tp": 4, "dp": 8, "ep": 32},
    "pipeline": {"context": 1000, "tp": 2, "pp": 4},
    "served": {"isl": 1024, "osl": 256},
    "long prompts, short answers": {"isl": 8000, "osl": 64, "gpus": 8},
    "FP8": {"context": 1000, "weights": "fp8", "activations": "fp8"},
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_time_of_the_bound_is_above_the_estimates(setting: str) -> None:
    """Models, GPUs, methods and batches, in between as well: every time of every row."""
    inputs = SETTINGS[setting]
    methods = [name for name in METHODS if not ("weights" in inputs and "int4" in name)]
    grid = {"model": MODELS, "gpu": list(ROOM), "batch": [1, 2, 7, 24, 64, 150, 800], "method": methods}
    table = {"version": 1, "gpus": ROOM, "defaults": inputs, "grid": grid}
    bound, estimate = (scenario.run({**table, "time_model": name}, host=HOST).full for name in ("bound", "estimate"))
    checked = [name for name in TIMES if name in bound.columns]
    assert bound["tpot_ms"].null_count() < bound.height / 2  # sizes that a model has no heads or experts for are refused
    for name in checked:
        above = bound[name] > estimate[name] * (1 + 1e-12)
        worst = bound.filter(above.fill_null(False)).select("id", name)
        assert worst.is_empty(), f"{name}: {worst}"


# tt-inference-server issue 143: one request at a time, Qwen2.5-72B in BF16 on two H100 with vLLM, 128 output tokens: ms per token by prompt.
LONE = {128: 30.9, 1024: 31.0, 4096: 31.1, 8192: 31.3}


@pytest.mark.parametrize("prompt", LONE)
def test_a_lone_request_is_not_held_up_by_its_own_prompt(prompt: int) -> None:
    """The step of decoding alone, in both time models; the bound is below what was measured, the estimate's error that of unseen models."""
    row = {"model": "qwen2.5-72b", "gpu": "h100-sxm", "gpus": 2, "batch": 1, "method": "vanilla"}
    served = {**row, "isl": prompt, "osl": 128}
    for name in ("bound", "estimate"):
        engine = {"engine": "vllm"} if name == "estimate" else {}
        found, alone = (scenario.run({"version": 1, "time_model": name, "rows": [{**inputs, **engine}]}, host=HOST).full.row(0, named=True)
                        for inputs in (served, {**row, "context": prompt + 64}))  # fmt: skip
        assert found["tpot_ms"] == pytest.approx(alone["step_ms"], rel=1e-12)
        if name == "bound":
            assert found["tpot_ms"] < LONE[prompt]
        else:
            assert found["tpot_ms"] == pytest.approx(LONE[prompt], rel=0.14)  # dense models left out: mean 9 %, docs/accuracy.md
            assert found["tpot_low_ms"] < LONE[prompt] < found["tpot_high_ms"]


def test_prompts_of_others_are_free_until_arithmetic_fills_a_pass() -> None:
    """8B, eight requests of 512 tokens for 512: seven prompt tokens a step hide behind the weights; of 4096 for 64 they do not.

    Beyond the 316 token rows that an H100 computes while it reads these weights, 7 x 4096 / 64 + 8 rows take their arithmetic.
    """
    row = {"model": "llama-3-8b", "gpu": "h100-sxm", "batch": 8, "method": "vanilla"}
    rows = [{**row, "isl": 512, "osl": 512}, {**row, "isl": 4096, "osl": 64}]
    few, many = scenario.run({"version": 1, "rows": rows}, host=HOST).full.iter_rows(named=True)
    assert few["interference_ms"] == 0
    working = 8_030_261_248 - 525_336_576  # one vocabulary table works on a token, of a prompt token none
    arrived = 7 / 64 * 4096
    compute = (2 * working * 8 + 2 * (working - 525_336_576) * arrived) / 989e9
    products = max(compute, 8_030_261_248 * 2 / 3.35e9)
    scores = 4 * 32 * 128 * 32
    cache = 8 * (4096 + 32) * 131072 / 3.35e9
    attention = max(cache, (8 * scores * (4096 + 32) + arrived * scores * 4096 / 2) / 989e9)
    assert many["tpot_ms"] == pytest.approx(products + attention, rel=1e-9)
    assert many["tpot_ms"] > few["tpot_ms"]
