"""The estimate and the measured time model: their terms by hand, their constants, and the workbook."""

from __future__ import annotations

import math

import pytest
from openpyxl import load_workbook
from spreadsheet import needs_soffice, recalculate

import scenario
from scenario import TableError
from scenario.catalogs import hardware

ROW = {"model": "llama-3.1-70b", "gpu": "h100-sxm", "gpus": 4, "batch": 16, "context": 2000, "method": "vanilla"}
# Constants of this test, not of any hardware.
MINE = {
    "engine": "vllm", "gpus": ["h100-sxm"], "weight_mbu": 0.8, "kv_mbu": 0.7, "gemm_mfu": 0.6, "quantized_mfu": 0.5, "expert_mbu": 0.5,
    "launch_us": 5, "step_ms": 1.0, "moe_row_us": 0.3, "sequence_us": 10, "link_share": 0.5, "moe_prefill": 1.5, "queue_share": 0.1,
    "first_token_ms": 40, "first_passes": 3, "time_factor": 1, "spec_round_ms": 0.4, "row_us": 2, "draft_pass_us": 100, "draft_layer_us": 30,
    "tree_round_ms": 0.5, "tree_row_us": 3, "time_error": 0.2, "speedup_error": 0.1, "ttft_error": 0.5, "data_batch": 64, "data_context": 4000,
    "data_gpus": 8, "points": 30,
}  # fmt: skip


def run(row: dict, **keys):
    return scenario.run({"version": 1, "time_model": "estimate", "hardware": {"mine": MINE}, "rows": [row], **keys}).full.row(0, named=True)


def dense_step(rows: float, batch: float) -> float:
    """A pass of Llama-3.1-70B over four H100 at 2,000 tokens, written out from the published configuration."""
    d, layers, ffn, vocab, kv = 8192, 80, 28672, 128256, 1024
    layer = 2 * d * d + 2 * d * kv + 3 * d * ffn + 2 * d
    streamed = layers * layer + d + vocab * d  # the input embedding is only looked up
    bandwidth, rate, gpus = 3.35e12, 989e12, 4
    read = streamed * 2 / (bandwidth * gpus * 0.8)
    compute = 2 * rows * streamed / (rate * gpus * 0.6)
    cache = max(batch * 2000 * 2 * kv * layers * 2 / (bandwidth * gpus * 0.7), rows * 4 * d * 2000 * layers / (rate * gpus * 0.6))
    reduce = 2 * layers * 2 * (3 / 4) * rows * d * 2 / (450e9 * 0.5)  # a ring moves 2 (n-1)/n of the bytes
    # Nine kernels of a layer's attention and norms, two of its network; FP32 logits are swept over twice.
    return 1000 * (math.hypot(read, compute) + cache + reduce + 1e-3 + 80 * 11 * 5e-6 + rows * vocab * 8 / (bandwidth * gpus))


def test_a_dense_step_is_the_sum_written_out():
    """A plain step is its pass and the host work of one token per sequence."""
    assert run(ROW)["baseline_ms"] == pytest.approx(dense_step(16, 16) + 16 * 0.010, rel=1e-9)


def test_a_verify_pass_computes_every_row_but_reads_the_cache_once():
    """A round pays host work per token put out and per drafted row, and what every round costs."""
    found = run({**ROW, "method": "eagle"}, parameters={"eagle": {"gamma": 3, "alpha": 0.5}})
    tokens = 1 + 0.5 + 0.25 + 0.125
    host = 16 * tokens * 0.010 + 0.4 + 16 * 3 * 0.002
    assert found["verify_ms"] == pytest.approx(dense_step(64, 16) + host, rel=1e-9)


def test_a_tree_costs_more_than_a_chain_of_as_many_rows():
    """A round that verifies a tree has a fixed time and one per row on top."""
    row = {**ROW, "method": "eagle-2", "batch": 2}
    found = run(row, parameters={"eagle-2": {"gamma": 3, "nodes": 20}})
    host = 2 * found["tokens_per_round"] * 0.010 + 0.4 + 2 * 20 * 0.002 + 0.5 + 2 * 21 * 0.003
    assert found["verify_ms"] == pytest.approx(dense_step(42, 2) + host, rel=1e-9)


@pytest.mark.parametrize(("alpha", "gamma", "cost", "limit"), [(0.8, 4, 0.1, 0.6207), (0.9, 3, 0.05, 0.8292)])
def test_host_work_does_not_make_a_draft_pay_at_any_batch(alpha, gamma, cost, limit):
    """Far beyond the knee a speedup is not above E / (gamma c + gamma + 1) by much, however long host work is (the article: 0.62)."""
    mine = {**MINE, "sequence_us": 500, "data_batch": 1e5}
    table = {"hardware": {"mine": mine}, "parameters": {"eagle": {"alpha": alpha, "gamma": gamma, "draft_cost": cost}}}
    row = {**ROW, "method": "eagle", "batch": 8192, "context": 0, "gpus": 1, "model": "llama-3.1-8b"}
    found = scenario.run({"version": 1, "time_model": "estimate", "rows": [row], **table}).full.row(0, named=True)
    assert found["speedup"] <= 1.0
    without = {**mine, "sequence_us": 0, "moe_row_us": 0, "row_us": 0, "launch_us": 0, "step_ms": 0, "spec_round_ms": 0}
    bare = scenario.run({"version": 1, "time_model": "estimate", "rows": [row], **table, "hardware": {"mine": without}}).full.row(0, named=True)
    assert bare["speedup"] == pytest.approx(limit, rel=0.05)


def test_experts_and_the_rest_have_formats_of_their_own():
    """gpt-oss-120b: routed experts in 4.25 bits, attention, routers and LM head in 16, as its checkpoint and as MXFP4 in general."""
    row = {"model": "gpt-oss-120b", "gpu": "h100-sxm", "batch": 8, "context": 0, "method": "vanilla"}
    d, layers, experts, k, ffn, vocab = 2880, 36, 128, 4, 2880, 201088
    hit = experts * (1 - (1 - k / experts) ** 8)
    mlp = 3 * d * ffn + 3 * ffn  # weights of one expert and its biases, about
    attention = layers * (2 * d * 64 * 64 + 2 * d * 8 * 64)
    routed = layers * hit * mlp
    read = (routed * 4.25 / 8 / 0.5 + (attention + layers * d * experts + vocab * d) * 2 / 0.8) / 3.35e12
    wide = attention + layers * d * experts + vocab * d
    compute = 2 * 8 * (layers * k * mlp / 0.5 + wide / 0.6) / 989e12
    fixed = 1e-3 + layers * 16 * 5e-6 + layers * 8 * 0.3e-6 + 8 * vocab * 8 / 3.35e12 + 8 * 10e-6
    wanted = 1000 * (math.hypot(read, compute) + fixed)
    for weights in ("mxfp4", "published"):
        assert run({**row, "weights": weights})["baseline_ms"] == pytest.approx(wanted, rel=0.03), weights  # biases and norms apart


def test_replicas_share_the_host_work():
    """Attention on data-parallel ranks: each rank's host works on its own sequences."""
    row = {"model": "qwen3-30b-a3b", "gpu": "h100-sxm", "batch": 64, "context": 0, "method": "vanilla", "ep": 4}
    found = [run({**row, "tp": 4, "dp": 1})["step_host_ms"], run({**row, "tp": 1, "dp": 4})["step_host_ms"]]
    assert found == pytest.approx([64 * 0.010, 16 * 0.010])


def test_serving_adds_the_prefill_of_arriving_requests():
    found = run({**ROW, "isl": 1500, "osl": 1000})
    d, layers, ffn, kv = 8192, 80, 28672, 1024
    layer = 2 * d * d + 2 * d * kv + 3 * d * ffn + 2 * d
    flops = 1500 * (2 * (layers * layer + d) + 4 * d * 1500 / 2 * layers)
    prefill = 1000 * (flops / (989e12 * 4 * 0.6) + 2 * layers * 2 * (3 / 4) * 1500 * d * 2 / (450e9 * 0.5))
    assert found["prefill_ms"] == pytest.approx(prefill, rel=1e-9)
    step = dense_step(16, 16) + 16 * 0.010
    assert found["tpot_ms"] == pytest.approx(step + 15 / 1000 * prefill * 0.9, rel=1e-9)  # its own prompt holds no request up
    assert found["ttft_ms"] == pytest.approx(40 + 3 * step + prefill * (1 + 0.1 * 15), rel=1e-9)
    assert found["tokens_per_s"] == pytest.approx(16 * 1000 / (found["ttft_ms"] + 999 * found["tpot_ms"]) * 1000, rel=1e-9)
    assert found["speedup"] == pytest.approx(1)
    assert (found["ttft_low_ms"], found["ttft_high_ms"]) == pytest.approx((found["ttft_ms"] / 1.5, found["ttft_ms"] * 1.5))


def test_the_context_of_a_served_request_is_its_prompt_and_half_its_output():
    row = {key: value for key, value in ROW.items() if key != "context"}
    assert run({**row, "isl": 1500, "osl": 1000})["context"] == 2000


def test_fp8_weights_compute_at_the_fp8_rate_where_the_gpu_has_one():
    """The activations of an estimate follow the weights, unless the row says otherwise."""
    row = {**ROW, "weights": "fp8", "batch": 2000, "context": 10}
    rates = [run(row), run({**row, "activations": "bf16"}), run({**row, "gpu": "a100-80gb"})]
    assert [found["matmul_tflops"] for found in rates] == [1979, 989, 312]
    assert [found["quantized_pass"] for found in rates] == [1, 0, 0]


@pytest.mark.parametrize(("row", "wanted"), [
    ({"engine": "trtllm", "weights": "fp8"}, "fp8"), ({"engine": "trtllm"}, "bf16"), ({"engine": "vllm", "weights": "fp8"}, "bf16"),
    ({"engine": "trtllm", "weights": "fp8", "kv": "bf16"}, "bf16"),
])  # fmt: skip
def test_the_cache_has_the_engine_s_format_unless_the_row_says_one(row, wanted):
    """TensorRT-LLM holds FP8 caches for FP8 and FP4 checkpoints; vLLM and SGLang hold BF16 ones."""
    assert run({**ROW, **row})["kv"] == wanted


def test_rows_say_what_they_rest_on():
    table = {
        "version": 1, "hardware": {"mine": MINE}, "measured": {"mine": {"model": "llama-3.1-8b", "gpu": "h100-sxm", "points": [[1, 6.0], [9, 10.0]]}},
        "defaults": {"context": 0, "method": "vanilla", "model": "llama-3.1-8b", "gpu": "h100-sxm"},
        "rows": [
            {"batch": 1, "time_model": "bound"}, {"batch": 1, "time_model": "estimate", "engine": "sglang"}, {"batch": 1, "time_model": "estimate"},
            {"batch": 1, "time_model": "estimate", "engine": "sglang", "model": "qwen3-32b"}, {"batch": 900, "time_model": "estimate", "engine": "sglang"},
            {"batch": 5, "time_model": "measured"}, {"batch": 13, "time_model": "measured"},
            {"batch": 5, "time_model": "measured", "gpu": "h200"},
        ],
    }  # fmt: skip
    full = scenario.run(table).full
    said = ["bound", "estimate (default)", "estimate (calibrated)", "estimate (measured model)", "estimate (outside the data)", "measured",
            "extrapolated", "no measurement"]  # fmt: skip
    assert full["basis"].to_list() == said
    assert full["baseline_ms"].to_list()[5:] == [8.0, 12.0, None]  # between two points, past them, nowhere
    cell, other, outside = (full["time_error"][row] for row in (3, 1, 4))
    assert cell < other < outside


def test_outside_the_data_nothing_is_called_better():
    """A batch, a context or GPUs beyond the measurements: worse may be said, better never."""
    fast, slow = {"alpha": 0.95, "draft_cost": 0.01}, {"alpha": 0.0, "draft_cost": 1.0}
    rows = [{**ROW, "method": "eagle", **how, "context": context} for how in (fast, slow) for context in (2000, 5000)]
    full = scenario.run({"version": 1, "time_model": "estimate", "hardware": {"mine": MINE}, "rows": rows}).full
    assert full["verdict"].to_list() == ["better", "outside the data", "worse", "worse"]


def test_a_method_is_better_only_beyond_the_error():
    table = {"version": 1, "time_model": "estimate", "hardware": {"mine": {**MINE, "speedup_error": 0.2}}, "rows": [
        {**ROW, "method": "eagle", "draft_cost": 0.05, "alpha": alpha, "batch": 1} for alpha in (0.0, 0.25, 0.9)]}  # fmt: skip
    full = scenario.run({**table, "parameters": {"eagle": {"gamma": 1}}}).full
    assert full["verdict"].to_list() == ["too close to call", "too close to call", "better"]
    assert full["speedup_low"][2] == pytest.approx(full["speedup"][2] / 1.2)
    assert full["tpot_high_ms"][0] == pytest.approx(full["tpot_ms"][0] * 1.2)


def test_a_bound_table_has_none_of_these_columns():
    full = scenario.run({"version": 1, "rows": [ROW]}).full
    assert not {"basis", "hardware", "isl", "engine", "prefill_ms", "time_error", "verdict", "time_model"} & set(full.columns)


def test_the_knee_is_an_assumption_of_the_table():
    result = scenario.run({"version": 1, "time_model": "estimate", "rows": [ROW], "parameters": {"estimate": {"knee": 1}}})
    assert (result.book.scalars["estimate_knee"].value, result.book.scalars["estimate_knee"].origin) == (1, "table")


def test_bundled_constants_name_their_source_and_error():
    for item in hardware.builtin():
        assert item.source.startswith("https://")
        assert 0 < item.values["time_error"] < 0.6
        assert item.values["points"] >= (80 if not item.models else 15)
    assert hardware.builtin()[-1].gpus == ()


def test_an_edited_bundled_set_keeps_its_place():
    table = {"version": 1, "time_model": "estimate", "rows": [{**ROW, "engine": "vllm"}], "hardware": {"hopper-vllm": {"step_ms": 5}}}
    found = scenario.run(table).full.row(0, named=True)
    assert (found["hardware"], found["hardware_step_ms"], found["basis"]) == ("hopper-vllm", 5, "estimate (default)")


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"rows": [{**ROW, "isl": 100}]}, "no osl"),
        ({"rows": [{**ROW, "isl": 1, "osl": 1}, ROW]}, "some rows give isl and some do not"),
        ({"rows": [ROW], "hardware": {"x": {"weight_mbu": 1.5}}}, "out of range"),
        ({"rows": [ROW], "hardware": {"x": {"wieght_mbu": 0.5}}}, "weight_mbu"),
        ({"rows": [ROW], "hardware": "nowhere.yaml"}, "there is no file nowhere.yaml"),
        ({"rows": [ROW], "measured": {"x": {"points": [[1, 5], [2, -1]]}}}, "more than 0 ms"),
        ({"rows": [{**ROW, "engine": "vlm"}]}, "vllm"),
    ],
)
def test_wrong_tables_are_named(table, said):
    with pytest.raises(TableError, match=said):
        scenario.run({"version": 1, "time_model": "estimate", **table})


TABLE = {
    "version": 1, "time_model": "estimate", "defaults": {"isl": 1024, "osl": 256, "engine": "vllm"},
    "hardware": {"mine": {**MINE, "gpus": ["h200"]}},
    "measured": {"points": {"model": "llama-3.1-8b", "gpu": "h100-sxm", "points": [[1, 6], [64, 9], [256, 14]]}},
    "grid": {"model": ["llama-3.1-8b", "gpt-oss-120b", "deepseek-v3"], "gpu": ["h100-sxm", "h200", "a10"], "gpus": [1, 8], "batch": [1, 64],
             "method": ["vanilla", "eagle", "int4+ngram"]},
    "rows": [{"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": [4, 200], "method": ["vanilla", "eagle"], "time_model": ["bound", "measured"],
              "isl": 512, "osl": 100, "engine": "any", "activations": "fp8"}],
}  # fmt: skip


@needs_soffice
def test_libreoffice_calculates_what_polars_did(tmp_path):
    result = scenario.run(TABLE)
    path = tmp_path / "estimate.xlsx"
    result.to_excel(path)
    book = load_workbook(recalculate(path, tmp_path), data_only=True)
    head = [cell.value for cell in book["Scenarios"][5]]
    rows = book["Scenarios"].iter_rows(min_row=6, max_row=5 + result.full.height, values_only=True)
    for index, row in enumerate(rows):
        for name, value in zip(head, row, strict=True):
            if name in result.full.columns:
                wanted = result.full[name][index]
                value = None if value == "" else value
                if isinstance(wanted, float):
                    assert value == pytest.approx(wanted, rel=1e-9, abs=1e-12), (index, name)
                else:
                    assert value == wanted, (index, name)
    written = load_workbook(path, data_only=True)
    for title in ("Summary", "Chart data"):
        for ours, theirs in zip(written[title].iter_rows(values_only=True), book[title].iter_rows(values_only=True), strict=True):
            for one, other in zip(ours, theirs, strict=True):
                if isinstance(one, float) and isinstance(other, int | float):
                    assert other == pytest.approx(one, rel=1e-9), title
    assert book["README"]["B4"].value == "OK"


def test_a_workbook_comes_back_as_the_same_table(tmp_path):
    from scenario.registry import host
    from scenario.workbooks import read_back as xlsx_table

    result = scenario.run(TABLE)
    result.to_excel(tmp_path / "a.xlsx")
    loaded = host.load(third_party=False)
    table, _ = xlsx_table.load(tmp_path / "a.xlsx", loaded)
    from scenario.book.assemble import assemble
    from scenario.result import evaluate

    again = evaluate(assemble(table, loaded), loaded)
    assert again.full["tpot_ms"].fill_null(-1).to_list() == pytest.approx(result.full["tpot_ms"].fill_null(-1).to_list(), rel=1e-12)
    assert again.full["basis"].to_list() == result.full["basis"].to_list()


def test_an_exported_table_reads_as_the_same(tmp_path):
    from scenario.registry import host
    from scenario.tables import export_table, reader

    loaded = host.load(third_party=False)
    first = reader.load(TABLE, loaded)
    path = tmp_path / "again.yaml"
    path.write_text(export_table.to_yaml(first, loaded), encoding="utf-8")
    one, other = scenario.run(TABLE).full, scenario.run(path).full
    assert other["tpot_ms"].fill_null(-1).to_list() == pytest.approx(one["tpot_ms"].fill_null(-1).to_list(), rel=1e-12)


def test_a_measured_plain_speed_is_counted_from():
    """Slower than the model: the difference is paid per token put out. Faster: all passes are. Far off: no verdict."""
    row, table = {**ROW, "method": "eagle"}, {"parameters": {"eagle": {"gamma": 3, "alpha": 0.9, "draft_cost": 0.02}}}
    plain = run(row, **table)
    step, verify, tokens = plain["baseline_ms"], plain["verify_ms"], plain["tokens_per_round"]
    slow = run({**row, "plain_tokens_per_s": 16 / (step * 1.2) * 1000}, **table)
    assert slow["baseline_ms"] == pytest.approx(step * 1.2)
    assert slow["verify_ms"] == pytest.approx(verify + 0.2 * step * tokens)
    fast = run({**row, "plain_tokens_per_s": 16 / (step * 0.7) * 1000}, **table)
    assert (fast["baseline_ms"], fast["verify_ms"]) == pytest.approx((step * 0.7, verify * 0.7))
    far = run({**row, "plain_tokens_per_s": 16 / (step * 1.6) * 1000}, **table)
    assert (plain["verdict"], far["verdict"]) == ("better", "too close to call")


def test_a_measured_plain_speed_includes_the_prompts_of_others():
    """In a served row the measured time per token has the prefill of arriving requests in it already."""
    row = {**ROW, "isl": 1500, "osl": 1000, "plain_tokens_per_s": 400}
    assert run(row)["baseline_tpot_ms"] == pytest.approx(16 / 400 * 1000)


def test_a_plain_speed_says_nothing_of_other_batches():
    """Break-even asks other batches, at which the measured speed does not hold: it is as without one."""
    row = {**ROW, "method": "eagle"}
    found = [run({**row, **typed}, show=["break_even"])["break_even_batch"] for typed in ({}, {"plain_tokens_per_s": 500})]
    assert found[0] == found[1]
