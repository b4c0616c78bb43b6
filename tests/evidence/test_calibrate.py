"""Calibration: the array back end is the engine, known constants are found again, real rows are predicted, formats are read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import scenario
from scenario import TableError
from scenario.catalogs import catalog
from scenario.cli.commands import main
from scenario.common.errors import FormulaError
from scenario.evidence import measurements
from scenario.formulas.expr import parse
from scenario.registry import host

np = pytest.importorskip("numpy")
pytest.importorskip("scipy")
from scenario.evidence import calibrate  # noqa: E402
from scenario.formulas.to_numpy import evaluate  # noqa: E402

SAMPLE = Path(__file__).parents[1] / "data" / "measured_serving_sample.csv"
TRUE = {
    "weight_mbu": 0.75, "kv_mbu": 0.8, "gemm_mfu": 0.6, "quantized_mfu": 0.45, "expert_mbu": 0.5, "launch_us": 6, "step_ms": 0, "moe_row_us": 0.2,
    "sequence_us": 12, "link_share": 0.35, "moe_prefill": 1.5, "queue_share": 0.2, "first_token_ms": 70, "first_passes": 3, "time_factor": 1,
    "spec_round_ms": 0.4, "row_us": 1, "draft_pass_us": 200, "draft_layer_us": 30, "tree_round_ms": 0.5, "tree_row_us": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def loaded():
    return host.load(third_party=False)


@pytest.fixture(scope="module")
def sample():
    return measurements.read([str(SAMPLE)], {}, catalog.builtin()).points


@pytest.fixture(scope="module")
def fitting(loaded, sample):
    """The points whose weights and KV cache fit in memory."""
    return [p for p, fits in zip(sample, calibrate.fits_memory(calibrate.system(sample, loaded)), strict=True) if fits]


def test_arrays_and_the_engine_agree(loaded, sample):
    found = calibrate.system(sample, loaded).predict(TRUE)
    rows = [{key: getattr(p, key) for key in ("model", "gpu", "gpus", "batch", "context", "isl", "osl", "weights", "kv")} for p in sample]
    mine = {**TRUE, "gpus": ["h200"], "engine": "any", "time_error": 0.1, "speedup_error": 0.1, "ttft_error": 0.1, "points": 1}
    full = scenario.run({"version": 1, "time_model": "estimate", "defaults": {"method": "vanilla"}, "hardware": {"mine": mine}, "rows": rows}).full
    for name in ("tpot_ms", "ttft_ms", "prefill_ms"):
        assert found[name] == pytest.approx(full[name].to_numpy(), rel=1e-9, nan_ok=True), name


def test_known_constants_are_found_again(loaded, fitting):
    made = calibrate.system(fitting, loaded).predict(TRUE)
    points = [replace(p, tpot_ms=float(made["tpot_ms"][i]), ttft_ms=float(made["ttft_ms"][i])) for i, p in enumerate(fitting)]
    part = calibrate.system(points, loaded)
    constants, wide, factors = calibrate.solve(part)
    errors, first = calibrate.errors_of(part, calibrate.with_factors(points, constants, factors))
    assert errors.max() < 0.05
    assert first.max() < 0.3  # TTFT scatters more, so that what was expected weighs more
    for name in ("weight_mbu", "expert_mbu", "launch_us", "link_share"):
        assert constants[name] == pytest.approx(TRUE[name], rel=0.35), name
        assert 0 < wide[name] < 1


def test_held_out_rows_are_predicted(loaded, sample, fitting):
    (fit,) = calibrate.calibrate(sample, loaded, seed=0)
    mean, median, _ = calibrate.stats(fit.errors)
    assert (fit.gpu, fit.engine, fit.points) == ("h200", "vllm", len(fitting))
    assert mean < 0.13
    assert median < 0.10
    rows = [{"model": p.model, "gpu": p.gpu, "gpus": p.gpus, "batch": p.batch, "context": p.context, "weights": p.weights, "method": "vanilla"}
            for p in fitting]  # fmt: skip
    bound = scenario.run({"version": 1, "rows": rows}).full["baseline_ms"].to_numpy()
    assert np.mean(np.abs(bound / np.array([p.tpot_ms for p in fitting]) - 1)) > 4 * mean  # what the bound misses by


def test_an_outlier_is_named_with_a_reason(loaded, fitting):
    points = [replace(fitting[0], tpot_ms=fitting[0].tpot_ms * 3), *fitting[1:]]
    (fit,) = calibrate.calibrate(points, loaded)
    assert fit.outliers[0][0] == fitting[0].place
    assert "slower than the fit" in fit.outliers[0][1]


def test_few_points_are_said_to_be_few(loaded, fitting):
    (fit,) = calibrate.calibrate(fitting[:3], loaded)
    assert "only 3 points" in fit.notes[0]


def test_rows_that_waited_for_memory_are_left_out(loaded, fitting):
    full = replace(fitting[0], gpus=1, batch=4000, place="full")
    (fit,) = calibrate.calibrate([full, *fitting], loaded)
    assert [place for place, _ in fit.left_out] == ["full"]


def test_the_command_writes_what_a_table_includes(tmp_path):
    out = tmp_path / "hardware.yaml"
    done = CliRunner().invoke(main, ["calibrate", str(SAMPLE), "-o", str(out)])
    assert done.exit_code == 0, done.output
    for part in ("held out", "median", "p90", "uncertain by", "weight_mbu", "h200"):
        assert part in done.output
    row = "{model: llama-3.1-70b, gpu: h200, gpus: 4, batch: 8, isl: 1024, osl: 1024, method: vanilla, weights: fp8}"
    (tmp_path / "t.yaml").write_text(f"version: 1\ntime_model: estimate\nhardware: hardware.yaml\nrows: [{row}]\n")
    result = scenario.run(tmp_path / "t.yaml")
    found = result.full.row(0, named=True)
    assert found["hardware"].startswith("my-h200-vllm-")  # the set of this model and format, which is like that of GPU and engine
    assert found["basis"] == "estimate (calibrated)"
    assert result.book.tables["hardware"].rows[0]["points"] > 30
    assert 0 < found["time_error"] < 0.4


GIVEN = {"gpu": "h100-sxm", "gpus": 2, "model": "llama-3.1-8b"}
VLLM = {"backend": "vllm", "model_id": "meta-llama/Llama-3.1-8B-Instruct", "max_concurrency": 8, "completed": 100, "total_input_tokens": 102400,
        "total_output_tokens": 25600, "mean_tpot_ms": 7.5, "mean_ttft_ms": 90.0}  # fmt: skip
TRTLLM = {"engine": {"model": "meta-llama/Llama-3.1-8B", "quantization": "FP8", "kv_cache_dtype": "FP8"}, "world_info": {"tp_size": 2},
          "request_info": {"avg_num_concurrent_requests": 7.8, "avg_input_length": 1024, "avg_output_length": 256},
          "streaming_metrics": {"avg_ttft_ms": 80.0, "avg_tpot_ms": 6.0}}  # fmt: skip
GENAI = {"input_config": {"model": ["llama-3.1-8b"], "perf_analyzer": {"stimulus": {"concurrency": 8}}},
         "time_to_first_token": {"unit": "ms", "avg": 88.0}, "inter_token_latency": {"unit": "ms", "avg": 7.0},
         "input_sequence_length": {"unit": "tokens", "avg": 1024.0}, "output_sequence_length": {"unit": "tokens", "avg": 256.0}}  # fmt: skip
LLAMA = [{"model_filename": "models/Llama-3.1-8B-Instruct-Q4_K_M.gguf", "gpu_info": "NVIDIA A10", "n_prompt": 512, "n_gen": 0, "avg_ts": 2048.0},
         {"model_filename": "models/Llama-3.1-8B-Instruct-Q4_K_M.gguf", "gpu_info": "NVIDIA A10", "n_prompt": 0, "n_gen": 128, "avg_ts": 80.0}]


@pytest.mark.parametrize(
    ("text", "given", "wanted"),
    [
        (json.dumps(VLLM), GIVEN, {"engine": "vllm", "batch": 8, "isl": 1024, "osl": 256, "tpot_ms": 7.5, "ttft_ms": 90, "gpus": 2}),
        (json.dumps({**VLLM, "backend": "sglang"}) + "\n" + json.dumps({**VLLM, "backend": "sglang"}), GIVEN, {"engine": "sglang", "isl": 1024}),
        (json.dumps(TRTLLM), {"gpu": "h100-sxm"}, {"engine": "trtllm", "batch": 7.8, "weights": "fp8", "kv": "fp8", "activations": "fp8", "gpus": 2}),
        (json.dumps(GENAI), {**GIVEN, "engine": "vllm"}, {"batch": 8, "tpot_ms": 7, "ttft_ms": 88, "context": 1024 + 128}),
        (json.dumps(LLAMA), {}, {"gpu": "a10", "model": "llama-3.1-8b", "weights": "q4_k_m", "prefill_ms": 250, "tpot_ms": 0}),
        ("model_filename,gpu_info,n_prompt,n_gen,avg_ts\nllama-3.1-8b-f16.gguf,NVIDIA A10,0,128,40\n", {}, {"tpot_ms": 25, "context": 64}),
        ("batch,context,ms\n4,1000,9.5\n", GIVEN, {"batch": 4, "context": 1000, "tpot_ms": 9.5, "engine": "any"}),
    ],
    ids=["vllm", "sglang", "trtllm", "genai-perf", "llama-bench json", "llama-bench csv", "plain"],
)
def test_formats(tmp_path, text, given, wanted):
    path = tmp_path / "results"
    path.write_text(text)
    point = measurements.read([str(path)], given, catalog.builtin()).points[0]
    assert {name: getattr(point, name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("text", "given", "said"),
    [
        ("batch,context,ms\n4,1000,9.5\n", {}, "never guessed"),
        (json.dumps({"a": 1}), GIVEN, "known:"),
        ("batch,context,ms\n4,1000,9.5\n", {**GIVEN, "model": "llama-9"}, "not in the catalog"),
        ("batch,context,ms\n4,1000,9.5\n", {**GIVEN, "gpu": "h100-sxn"}, "h100-sxm"),
    ],
)
def test_what_is_not_known_is_refused(tmp_path, text, given, said):
    path = tmp_path / "results"
    path.write_text(text)
    with pytest.raises(TableError, match=said):
        measurements.read([str(path)], given, catalog.builtin())


def test_a_run_without_a_limit_of_requests_is_skipped_with_the_reason(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps({**VLLM, "max_concurrency": None}))
    assert "max_concurrency" in measurements.read([str(path)], GIVEN, catalog.builtin()).skipped[0][1]


BAD = {
    "2,x,4": "context is no number: 'x'", "nan,100,5": "batch is no number that can be used: 'nan'", "1e999,1,1": "batch is no number that can be used: '1e999'",
    "4,100,7,9": "it has more cells than the header: 9", "4,100": "there is no time in it", ",100,7": "there is no batch in it", "4,100,inf": "tpot_ms is no number that",
    "4,-5,7": "context: -5 is out of range", "1e8,1,7": "batch: 100,000,000 is out of range", "0,100,7": "at least 1", "4,100,-3": "there is no time in it",
    "4,1e300,7": "context: 1e+300 is out of range",
}  # fmt: skip


@pytest.mark.parametrize("line", BAD)
def test_a_bad_line_is_skipped_with_its_place_and_reason(tmp_path, line):
    """It takes no other with it; a trailing comma and spaces are no fault."""
    path = tmp_path / "b.csv"
    path.write_text(f"batch,context,ms,\n8,100,5,\n{line}\n 9 , 100 ,6\n" if line.count(",") < 3 else f"batch,context,ms\n8,100,5\n{line}\n9,100,6\n")
    found = measurements.read([str(path)], GIVEN, catalog.builtin())
    assert [point.batch for point in found.points] == [8, 9]
    ((place, why),) = found.skipped
    assert place == "b.csv:3"
    assert BAD[line] in why


@pytest.mark.parametrize("change", [{"completed": "many"}, {"mean_tpot_ms": "fast"}, {"total_input_tokens": None}, {"max_concurrency": "NaN"},
                                    {"mean_ttft_ms": {"p50": 1}}, {"mean_ttft_ms": -1e12}, {"total_output_tokens": 1e400}])  # fmt: skip
def test_a_bad_value_in_json_is_skipped_with_the_reason(tmp_path, change):
    path = tmp_path / "r.json"
    path.write_text(json.dumps([{**VLLM, **change}, VLLM]))
    found = measurements.read([str(path)], GIVEN, catalog.builtin())
    assert len(found.points) == 1
    assert [place for place, _ in found.skipped] == ["r.json:1"]


def test_entries_of_a_format_in_part_are_skipped(tmp_path):
    for number, entry in enumerate(({key: value for key, value in VLLM.items() if key != "total_input_tokens"}, {**TRTLLM, "world_info": [2]},
                                    {**GENAI, "input_config": 3}, {"avg_ts": "x", "n_gen": 1}, {"avg_ts": 1, "n_gen": []})):  # fmt: skip
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(entry))
        assert len(measurements.read([str(path)], GIVEN, catalog.builtin()).skipped) == 1


def test_the_command_names_file_and_line(tmp_path):
    path = tmp_path / "b.csv"
    path.write_text("batch,context,ms\n2,x,4\nnan,1,1\n")
    done = CliRunner().invoke(main, ["calibrate", str(path), "--gpu", "h100-sxm", "--model", "llama-3.1-8b"])
    assert done.exit_code == 2
    assert "there are no measurements to fit to\n  b.csv:2: context is no number: 'x'; b.csv:3: batch is no number" in done.stderr
    done = CliRunner().invoke(main, ["calibrate", str(path), "--gpu", "h100-sxm"])
    assert f"{path}:2: it does not say which model" in done.stderr
    path.write_bytes(b"\x1f\x8b broken")
    done = CliRunner().invoke(main, ["calibrate", str(path), "--gpu", "h100-sxm"])
    assert (done.exit_code, "cannot be read" in done.stderr) == (2, True)


def test_a_mean_number_of_requests_is_used_as_it_is(loaded, tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(TRTLLM))
    points = measurements.read([str(path)], {"gpu": "h100-sxm"}, catalog.builtin()).points
    assert calibrate.system(points, loaded).values["batch"].tolist() == [7.8]


def test_a_time_model_that_reads_a_profile_is_refused_in_a_sentence() -> None:
    """A plugin's formula may name one; there is nothing to fit it to."""
    with pytest.raises(FormulaError, match=r"at\(\) has no place in a time model that is calibrated"):
        evaluate(parse('at("chat", 2)'), {})


SILICON = {"backend": "trtllm", "model_path": "deepseek-ai/DeepSeek-V3", "system": "b200_sxm", "precision": "fp8", "isl": "1024", "osl": "1024",
           "batch_size": "16", "pp_size": "1", "moe_tp_size": "8", "moe_ep_size": "8", "silicon_ttft_ms": "200", "silicon_tpot_ms": "15"}  # fmt: skip


@pytest.mark.parametrize(
    ("row", "gpus"),
    [
        ({"id": "2026_deepseek_c16_tp8_ep8_1", "tp_size": "64"}, 8),
        ({"id": "2026_deepseek_c16_tp8_0_ep8_0_1", "tp_size": "8"}, 8),
        ({"id": "2026_deepseek_c16_tp8_ep1_1", "tp_size": "8"}, 8),
        ({"id": "dsr1_cfg199", "tp_size": "64"}, "tp_size 64 is tp x ep, or 64 GPUs: nothing says which"),
        ({"id": "2026_deepseek_c16_tp8_ep8_1", "tp_size": "16"}, "tp_size is 16, its id says tp8_ep8"),
        ({"id": "2026_deepseek_c16_tp8_ep8_1", "tp_size": "1", "attention_dp_size": "64"}, "attention_dp_size counts ranks of two kinds"),
    ],
)
def test_gpus_of_the_silicon_sample_are_those_of_its_id(tmp_path, row, gpus):
    """tp_size is the product of tp and ep in some rows: put right by the id, or left out with the reason."""
    row = {**SILICON, **row}
    path = tmp_path / "s.csv"
    path.write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n")
    found = measurements.read([str(path)], {}, catalog.builtin())
    if isinstance(gpus, str):
        assert gpus in found.skipped[0][1]
    else:
        assert (found.points[0].gpus, found.points[0].kv) == (gpus, "fp8")


def test_a_measurement_counts_once_and_not_while_requests_queue(loaded, fitting):
    """The same point from two lines is one; a TTFT beyond all prompts of the batch is of requests that waited."""
    again, waited = replace(fitting[1], place="again"), replace(fitting[2], place="waited", ttft_ms=1e6)
    (fit,) = calibrate.calibrate([*fitting, again, waited], loaded)
    assert [(place, why.split(" ms ")[-1]) for place, why in fit.left_out] == [
        ("again", "the same measurement stands before"), ("waited", "is beyond all prompts of the batch: requests queued")]  # fmt: skip
    assert fit.points == len(fitting)


def test_a_model_of_its_own_keeps_its_factor(loaded, fitting):
    """One model that is a fifth slower than the others of its GPU and engine has a factor, which a table's rows of it take."""
    slow = [replace(p, tpot_ms=p.tpot_ms * 1.2) for p in fitting if p.model == fitting[0].model]
    others = [p for p in fitting if p.model != fitting[0].model]
    if not others:
        others = [replace(p, model="llama-3.3-70b", place=f"other {p.place}") for p in fitting]
    (fit,) = calibrate.calibrate([*slow, *others], loaded)
    mine = [factor for cell, factor in fit.factors.items() if cell.startswith(f"{fitting[0].model} ")]
    rest = [factor for cell, factor in fit.factors.items() if not cell.startswith(f"{fitting[0].model} ")]
    assert min(mine) > max(rest) * 1.08
