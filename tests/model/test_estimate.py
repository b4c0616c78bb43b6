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
    "engine": "vllm", "gpus": ["h100-sxm"], "weight_mbu": 0.8, "kv_mbu": 0.7, "gemm_mfu": 0.6, "expert_mbu": 0.5, "step_ms": 1.0, "layer_us": 20,
    "moe_layer_us": 30, "sequence_us": 10, "hop_us": 5, "link_share": 0.5, "prefill_share": 0.9, "first_token_ms": 40, "queue_share": 0.1,
    "draft_pass_us": 100, "time_error": 0.2, "speedup_error": 0.1, "ttft_error": 0.5, "points": 30,
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
    reduce = 2 * layers * (5e-6 * 2 + 2 * (3 / 4) * rows * d * 2 / (450e9 * 0.5))  # log2(4) = 2; a ring moves 2 (n-1)/n of the bytes
    return 1000 * (math.hypot(read, compute) + cache + reduce + 1e-3 + 80 * 20e-6 + batch * 10e-6)


def test_a_dense_step_is_the_sum_written_out():
    assert run(ROW)["baseline_ms"] == pytest.approx(dense_step(16, 16), rel=1e-9)


def test_a_verify_pass_computes_every_row_but_reads_the_cache_once():
    found = run({**ROW, "method": "eagle"}, parameters={"eagle": {"gamma": 3}})
    assert found["verify_ms"] == pytest.approx(dense_step(64, 16), rel=1e-9)


def test_serving_adds_the_prefill_of_arriving_requests():
    found = run({**ROW, "isl": 1500, "osl": 1000})
    d, layers, ffn, kv = 8192, 80, 28672, 1024
    layer = 2 * d * d + 2 * d * kv + 3 * d * ffn + 2 * d
    flops = 1500 * (2 * (layers * layer + d) + 4 * d * 1500 / 2 * layers)
    prefill = 1000 * (flops / (989e12 * 4 * 0.6) + 2 * layers * (5e-6 * 2 + 2 * (3 / 4) * 1500 * d * 2 / (450e9 * 0.5)))
    assert found["prefill_ms"] == pytest.approx(prefill, rel=1e-9)
    step = dense_step(16, 16)
    assert found["tpot_ms"] == pytest.approx(step + 15 / 1000 * prefill * 0.9, rel=1e-9)  # its own prompt holds no request up
    assert found["ttft_ms"] == pytest.approx(40 + step + prefill * (1 + 0.1 * 15), rel=1e-9)
    assert found["tokens_per_s"] == pytest.approx(16 * 1000 / (found["ttft_ms"] + 999 * found["tpot_ms"]) * 1000, rel=1e-9)
    assert found["speedup"] == pytest.approx(1)
    assert (found["ttft_low_ms"], found["ttft_high_ms"]) == pytest.approx((found["ttft_ms"] / 1.5, found["ttft_ms"] * 1.5))


def test_the_context_of_a_served_request_is_its_prompt_and_half_its_output():
    row = {key: value for key, value in ROW.items() if key != "context"}
    assert run({**row, "isl": 1500, "osl": 1000})["context"] == 2000


def test_fp8_activations_compute_at_the_fp8_rate():
    slow = run({**ROW, "weights": "fp8", "batch": 2000, "context": 10})
    fast = run({**ROW, "weights": "fp8", "batch": 2000, "context": 10, "activations": "fp8"})
    assert (slow["peak_tflops"], fast["peak_tflops"]) == (989, 1979)


def test_rows_say_what_they_rest_on():
    table = {
        "version": 1, "hardware": {"mine": MINE}, "measured": {"mine": {"model": "llama-3.1-8b", "gpu": "h100-sxm", "points": [[1, 6.0], [9, 10.0]]}},
        "defaults": {"context": 0, "method": "vanilla", "model": "llama-3.1-8b", "gpu": "h100-sxm"},
        "rows": [
            {"batch": 1, "time_model": "bound"}, {"batch": 1, "time_model": "estimate", "engine": "sglang"}, {"batch": 1, "time_model": "estimate"},
            {"batch": 5, "time_model": "measured"}, {"batch": 13, "time_model": "measured"},
            {"batch": 5, "time_model": "measured", "gpu": "h200"},
        ],
    }  # fmt: skip
    full = scenario.run(table).full
    said = ["bound", "estimate (default)", "estimate (calibrated)", "measured", "extrapolated", "no measurement"]
    assert full["basis"].to_list() == said
    assert full["baseline_ms"].to_list()[3:] == [8.0, 12.0, None]  # between two points, past them, nowhere


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
        assert item.values["points"] >= 80
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
