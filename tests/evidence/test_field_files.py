"""Files that people have: what they say is read as they say it, or left out with the reason. Right answers: the threads in data/SOURCES.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from scenario import TableError
from scenario.catalogs import catalog
from scenario.cli.commands import main
from scenario.evidence import logs, measurements
from scenario.model.entities import FORMATS

FIELD = Path(__file__).parents[1] / "data" / "field"
GIVEN = {"gpu": "h100-sxm", "gpus": 1, "engine": "vllm"}


def accepted(pattern: str) -> logs.AcceptanceReport:
    return logs.read([str(path) for path in sorted(FIELD.glob(pattern))])


def written(tmp_path: Path, text: str, name: str = "log") -> str:
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def times(paths: list[str], **given: object) -> measurements.Measured:
    return measurements.read(paths, {**GIVEN, **given}, catalog.builtin())


def of(pattern: str, **given: object) -> measurements.Measured:
    return times([str(path) for path in sorted(FIELD.glob(pattern))], **given)


@pytest.mark.parametrize(
    ("pattern", "length", "rates", "gamma"),
    [
        ("01*/*.log", 2.92, [0.805, 0.632, 0.483], 3),
        ("02*/ngram.txt", 4.587, [0.81, 0.74, 0.70, 0.68, 0.66], 5),
        ("02*/eagle3.txt", 3.535, [], 7),
        ("05*/metrics.txt", 3.10, [0.8, 0.575, 0.425, 0.3], 4),
        ("05*/promql-table.txt", 3.10, [0.8, 0.575, 0.425, 0.3], 4),
        ("05*/query_api.json", 3.10, [0.8, 0.575, 0.425, 0.3], 4),
        ("06*/eagle3-k3-c1.json", 2.79, [0.77, 0.59, 0.43], 3),
        ("06*/sglang-eagle3.jsonl", 2.52, [], 3),
        ("06*/trtllm-eagle.json", 2.40, [], 3),
        ("11*/bench.txt", 3.49, [], 8),
        ("14*/*.json", 2.61, [], 3),
    ],
)
def test_acceptance_is_read_as_the_file_says_it(pattern, length, rates, gamma):
    """Length, rates by position and depth are those that stand in the file."""
    report = accepted(pattern)
    assert report.best
    assert report.best.total.length == pytest.approx(length, abs=0.005)
    assert report.best.total.rates == pytest.approx(rates)
    assert report.parameters("eagle")["gamma"] == gamma


def test_ngram_runs_say_how_many_steps_had_a_draft():
    """Steps without a draft give the hit rate, and tokens per step are those that vLLM prints as normalized."""
    report = accepted("02*/ngram.txt")
    assert report.hit_rate == pytest.approx(993 / (993 + 821))
    assert report.tokens_per_step == pytest.approx(2.96, abs=0.005)


def test_lines_of_several_processes_keep_their_own_batch():
    """A process's metrics belong to the running requests of that process, whoever wrote between."""
    found = accepted("04*/vllm.log").sources["vLLM log lines"].batches
    assert {batch: tally.length for batch, tally in found.items()} == pytest.approx({1: 1.96, 8: 2.98}, abs=0.005)


def test_engines_of_one_process_are_told_apart(tmp_path):
    """Where both kinds of line name the engine, they are matched by it."""
    line = "INFO 07-20 18:11:49 [loggers.py:271] Engine {}: Avg prompt throughput: 0.1 tokens/s, Running: {} reqs, Waiting: 0 reqs\n"
    spec = "INFO 07-20 18:11:49 [metrics.py:101] Engine {}: SpecDecoding metrics: Mean acceptance length: {}, Accepted: 100 tokens, Drafted: 300 tokens\n"
    text = line.format("000", 2) + line.format("001", 8) + spec.format("000", "2.00") + spec.format("001", "1.50")
    found = logs.read([written(tmp_path, text)]).sources["vLLM log lines"].batches
    assert {batch: tally.length for batch, tally in found.items()} == pytest.approx({2: 2.0, 8: 1.5})


def test_metrics_without_a_line_of_their_process_have_no_batch(tmp_path):
    """Another process's running requests are never taken."""
    text = ("(A pid=1) INFO Engine 000: Running: 4 reqs, Waiting: 0 reqs\n"
            "(B pid=2) INFO SpecDecoding metrics: Mean acceptance length: 2.00, Accepted: 10 tokens, Drafted: 30 tokens\n")  # fmt: skip
    assert list(logs.read([written(tmp_path, text)]).sources["vLLM log lines"].batches) == [0]


SGLANG = "[2025-10-22 10:27:5{} TP0] Decode batch. #running-req: 1, #token: 108, accept len: {}, gen throughput (token/s): 9.0, #queue-req: 0,\n"


@pytest.mark.parametrize(
    ("text", "length"),
    [
        (SGLANG.format(1, "2.20"), 2.2),
        ("server_args=ServerArgs(x=1)\n" + SGLANG.format(1, "2.20"), 2.2),
        (SGLANG.format(1, "2.20") + SGLANG.format(2, "2.40"), 2.3),
        ("server_args=ServerArgs(x=1)\n" + SGLANG.format(1, "1.20") + SGLANG.format(2, "2.40"), 2.4),
    ],
    ids=["a lone line", "a lone line after a start", "a log without its start", "a start"],
)
def test_no_line_of_sglang_is_dropped_but_the_first_after_a_start(tmp_path, text, length):
    """The line of the warm-up goes only where the log shows the start and other lines follow."""
    report = logs.read([written(tmp_path, text)])
    assert report.best
    assert report.best.total.length == pytest.approx(length)


def test_sglang_says_its_depth_when_it_starts_unless_it_drafts_a_tree(tmp_path):
    """A chain's draft tokens give gamma; a tree's give none."""
    start = "server_args=ServerArgs(speculative_algorithm='EAGLE', speculative_num_steps=3, speculative_eagle_topk={}, speculative_num_draft_tokens={})\n"
    chain = logs.read([written(tmp_path, start.format(1, 4) + SGLANG.format(1, "1.1") + SGLANG.format(2, "2.4"))])
    assert chain.parameters("eagle")["gamma"] == 3
    tree = logs.read([written(tmp_path, start.format(4, 16) + SGLANG.format(1, "1.1") + SGLANG.format(2, "2.4"))])
    assert "SGLang draft tokens" in tree.refused
    with pytest.raises(TableError, match="--gamma"):
        tree.parameters("eagle")


@pytest.mark.parametrize(
    ("text", "length", "gamma"),
    [
        ("statistics draft: #calls = 10, #gen drafts = 10, #acc drafts = 9, #gen tokens = 40, #acc tokens = 15\n", 2.5, 4),
        ("[Metric(name='vllm:x')]\nCounter(name='vllm:spec_decode_num_drafts', labels={}, value=10)\n"
         "Counter(name='vllm:spec_decode_num_draft_tokens', labels={}, value=20)\nCounter(name='vllm:spec_decode_num_accepted_tokens', labels={}, value=15)\n"
         "Vector(name='vllm:spec_decode_num_accepted_tokens_per_pos', labels={}, values=[9, 6])\n", 2.5, 2),
        ('vllm:spec_decode_num_drafts_total{engine="0"} => 10 @[1756737000]\nvllm:spec_decode_num_accepted_tokens_total{engine="0"} => 15 @[1756737000]\n'
         'vllm:spec_decode_num_draft_tokens_total{engine="0"} => 20 @[1756737000]\n', 2.5, 2),
        ('{"meta_info": {"spec_verify_ct": 10, "completion_tokens": 25}}\n', 2.5, None),
        ('{\n "acceptance_histogram": [\n  4,\n  0,\n  6\n ]\n}\n', 2.2, 2),
        ('[{"iter": 1, "specDecodingStats": {"numDraftTokens": 6, "numAcceptedTokens": 3, "numRequestsWithDraftTokens": 2}}, '
         '{"iter": 2, "specDecodingStats": {"numDraftTokens": 6, "numAcceptedTokens": 3, "numRequestsWithDraftTokens": 2}}]', 2.5, 3),
        ("============ Serving Benchmark Result ============\nBackend:    sglang\nMax request concurrency:   4\nAccept length:      2.50\n", 2.5, None),
    ],
    ids=["llama.cpp statistics", "get_metrics", "promtool", "sglang answer", "pretty JSON", "trtllm list", "sglang printed"],
)  # fmt: skip
def test_other_outputs_of_the_same_engines(tmp_path, text, length, gamma):
    """Each form gives the same numbers as the counts in it."""
    report = logs.read([written(tmp_path, text)])
    assert report.best
    assert report.best.total.length == pytest.approx(length)
    assert (report.parameters("eagle", 4 if gamma is None else None)["gamma"]) == (gamma or 4)


def test_a_falling_statistic_counts_on(tmp_path):
    """llama.cpp's statistics grow until the server starts anew."""
    line = "statistics draft-mtp: #calls(b,g,a) = 1 2 3, #gen drafts = {}, #acc drafts = 1, #gen tokens = {}, #acc tokens = {}\n"
    text = line.format(5, 10, 5) + line.format(10, 20, 10) + line.format(2, 4, 4)
    total = logs.read([written(tmp_path, text)]).sources["llama.cpp statistics"].total
    assert (total.rounds, total.drafted, total.accepted) == (12, 24, 14)


def test_what_is_seen_and_does_not_suffice_is_not_denied(tmp_path):
    """A share of accepted tokens alone is told as what it is."""
    path = written(tmp_path, '{"timings": {"draft_n": 259, "draft_n_accepted": 167}}\n')
    done = CliRunner().invoke(main, ["acceptance", path])
    assert done.exit_code == 2
    assert "does not say how many tokens a round gains" in done.stderr
    assert "draft_n_accepted/draft_n" in done.stderr


# -- times ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["06*/eagle3*.json", "06*/sglang*", "06*/trtllm*", "11*/*", "14*/*"])
def test_speculative_runs_are_never_plain_steps(pattern):
    """A run with drafts is left out with the reason, and kept apart with its length."""
    found = of(pattern, model="llama-3.1-8b")
    assert not found.points
    assert "speculative run" in found.skipped[0][1]
    assert found.speculative[0].length > 2


def test_the_plain_run_beside_them_is_one():
    """Without a sign of drafts the time per token is a step's."""
    assert [p.tpot_ms for p in of("06*/vanilla-c1.json").points] == [7.07]


def test_chunks_of_several_tokens_are_a_sign_of_drafts(tmp_path):
    """A result that says nothing of drafts but came in chunks of several tokens is left out."""
    row = json.loads((FIELD / "06-vllm-bench-json-speculative-run" / "vanilla-c1.json").read_text())
    path = written(tmp_path, json.dumps({**row, "mean_tpot_ms": 4.09, "mean_itl_ms": 11.4}))
    found = times([path])
    assert not found.points
    assert "chunks" in found.skipped[0][1]


def test_bits_of_a_gguf_file_are_those_of_its_type():
    """Each file's format has the bits that its size has, within what the embeddings' own types change."""
    found = of("07*/*.json")
    rows = json.loads((FIELD / "07-llama-bench-quant-names" / "one.json").read_text())
    for point, row in zip(found.points, rows, strict=True):
        assert FORMATS[point.weights][0] == pytest.approx(row["model_size"] * 8 / row["model_n_params"], rel=0.05), row["model_type"]
    assert [point.weights for point in found.points] == ["q5_k_m", "q6_k", "q4_k_m", "iq4_xs", "q3_k_m", "q8_0", "q2_k", "bf16"]


def test_a_name_that_the_size_contradicts_is_asked_about(tmp_path):
    """A Q4 file of 8.5 bits per weight is not taken for a Q4 one."""
    row = json.loads((FIELD / "07-llama-bench-quant-names" / "one.json").read_text())[2]
    found = times([written(tmp_path, json.dumps([{**row, "model_size": 8536247500}]))])
    assert not found.points
    assert "bits per weight" in found.skipped[0][1]


def test_partly_offloaded_runs_are_left_out():
    """Layers in the host's memory are no GPU's time; the cache's own format is read."""
    found = of("08*/*.json")
    assert [why.split(":")[0] for _, why in found.skipped] == ["partly offloaded", "partly offloaded"]
    assert [(point.kv, FORMATS[point.kv][0]) for point in found.points] == [("q8_0", 8.5)]


def test_llama_bench_prints_markdown():
    """The family and the number of parameters name the model where the file is not named."""
    found = of("09*/*.md").points
    assert [(p.model, p.weights) for p in found] == [("llama-2-7b", "fp16"), ("llama-2-7b", "fp16"), ("llama-2-7b", "q8_0")]
    assert found[0].prefill_ms == pytest.approx(512 / 11048.22 * 1000)
    assert found[2].tpot_ms == pytest.approx(1000 / 98.13)


@pytest.mark.parametrize(
    ("text", "tpot", "batch", "context"),
    [
        ("INSERT INTO llama_bench (build_commit, model_filename, model_type, gpu_info, n_prompt, n_gen, n_depth, avg_ts) "
         "VALUES ('a', 'm/llama-3.1-8b-f16.gguf', 'llama 8B F16', 'NVIDIA A10', '0', '128', '512', '40.0');\n", 25, 1, 512 + 64),
        ('{"model_filename": "llama-3.1-8b-f16.gguf", "n_prompt": 0, "n_gen": 128, "avg_ts": 40}\n' * 2, 25, 1, 64),
        ("  Device 0: NVIDIA A10, compute capability 8.6, VMM: yes\n| model | size | params | backend | ngl | type_k | type_v | test | t/s |\n"
         "| --- | ---: | ---: | --- | --: | --- | --- | --- | ---: |\n| llama 8B Q8_0 | 7.95 GiB | 8.03 B | CUDA | 99 | q8_0 | q8_0 | tg128 @ d512 | 40.00 ± 0.1 |\n",
         25, 1, 512 + 64),
        ("|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |\n|---|---|---|---|---|---|---|---|---|---|\n"
         "|   128 |    128 |    8 |   2048 |    0.100 |  1280.00 |    3.200 |   320.00 |    3.300 |   310.00 |\n", 25, 8, 192),
    ],
    ids=["sql", "jsonl", "markdown with depth", "batched-bench"],
)  # fmt: skip
def test_every_form_of_llama_bench(tmp_path, text, tpot, batch, context):
    """The same run is the same point in each form of the output."""
    point = times([written(tmp_path, text)], model="llama-3.1-8b", weights="q8_0").points[0]
    assert (point.tpot_ms, point.batch, point.context) == pytest.approx((tpot, batch, context))


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"n_gpu_layers": 32}, "32 of 33 layers"), ({"no_kv_offload": True}, "host's memory"), ({"backends": "CPU"}, "CPU"),
        ({"gpu_info": "NVIDIA A10, NVIDIA A10"}, "several devices"), ({"type_k": "q8_0", "type_v": "f16"}, "two formats"), ({"n_cpu_moe": 4}, "experts"),
    ],
)  # fmt: skip
def test_llama_bench_runs_that_are_not_one_gpus_are_left_out(tmp_path, row, why):
    """Each reason is said."""
    whole = {"model_filename": "llama-3.1-8b-f16.gguf", "gpu_info": "NVIDIA A10", "n_prompt": 0, "n_gen": 128, "avg_ts": 40, "n_gpu_layers": 99}
    found = times([written(tmp_path, json.dumps([{**whole, **row}]))])
    assert not found.points
    assert why in found.skipped[0][1]


def test_guidellm_and_what_it_does_not_say():
    """Streams are the batch, inter-token latency the time per token; the model is given beside it."""
    point = of("13*/*.json", model="meta-llama/Llama-3.1-8B-Instruct").points[0]
    assert (point.model, point.batch, point.tpot_ms, point.isl) == ("llama-3.1-8b", 8, 9.2, 946.8)
    with pytest.raises(TableError, match="which model"):
        of("13*/*.json")


def test_aiperf_names_its_model_in_the_endpoint():
    """The speculative run that it is carries the model it names."""
    assert of("14*/*.json").speculative[0].model == "qwen3-8b"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (json.dumps({"load_summary": {"achieved_rate": 4.0}, "successes": {"count": 9, "latency": {
            "request_latency": {"mean": 2.0}, "time_per_output_token": {"mean": 0.008}, "time_to_first_token": {"mean": 0.09}},
            "prompt_len": {"mean": 1000}, "output_len": {"mean": 240}}}), {"batch": 8, "tpot_ms": 8, "ttft_ms": 90, "isl": 1000}),
        ("Metric,avg,min,max\nTime To First Token (ms),\"1,146.31\",1,2\nInter Token Latency (ms),30.35,1,2\nOutput Sequence Length (tokens),174.45,1,2\n"
         "Input Sequence Length (tokens),\"3,000.05\",1,2\n", {"tpot_ms": 30.35, "ttft_ms": 1146.31, "isl": 3000.05}),
        (json.dumps({"hw": "h200", "tp": 8, "conc": 16, "model": "openai/gpt-oss-120b", "framework": "vllm", "precision": "fp4", "isl": 1024, "osl": 1024,
                     "mean_ttft": 0.2, "mean_tpot": 0.005}), {"tpot_ms": 5, "batch": 8}),
        ("============ Serving Benchmark Result ============\nSuccessful requests:     10\nMaximum request concurrency:             8\n"
         "Total input tokens:      10240\nTotal generated tokens:      1280\nMean TTFT (ms):     80\nMean TPOT (ms):    7.5\nMean ITL (ms):    7.5\n",
         {"tpot_ms": 7.5, "isl": 1024, "osl": 128}),
        (json.dumps({"model": "llama3.1:8b", "eval_count": 100, "eval_duration": 1000000000, "prompt_eval_count": 50}), {"tpot_ms": 10, "context": 100}),
    ],
    ids=["inference-perf", "genai-perf csv", "InferenceX", "printed block", "ollama"],
)  # fmt: skip
def test_other_benchmarks(tmp_path, text, wanted):
    """Units and names of each tool are taken to the same fields."""
    point = times([written(tmp_path, text)], model="llama-3.1-8b", batch=8, weights="bf16").points[0]
    assert {name: getattr(point, name) for name in wanted} == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("number", "model", "weights"),
    [(0, "llama-3.1-8b", "fp8"), (1, "llama-3.1-8b", "int4"), (2, "llama-3.1-8b", "int4"), (3, "llama-3.1-8b", "nvfp4"), (4, "qwen3-32b", "fp8"),
     (5, "gpt-oss-120b", "mxfp4"), (6, "qwen3-30b-a3b", "fp8"), (7, "deepseek-r1", "fp8"), (8, "deepseek-r1", "nvfp4")],
)  # fmt: skip
def test_the_format_in_a_models_name_is_taken(number, model, weights):
    """A name that says a format is never read as 16 bits, and a checkpoint published in another format neither."""
    point = of(f"16*/{number}-*.json").points[0]
    assert (point.model, point.weights) == (model, weights)


def test_a_format_that_the_name_says_in_part_is_asked_about(tmp_path):
    """GPTQ alone does not say how many bits; with --weights it is no question, and a model named beside does not hide it."""
    row = json.loads((FIELD / "06-vllm-bench-json-speculative-run" / "vanilla-c1.json").read_text())
    path = written(tmp_path, json.dumps({**row, "model_id": "TheBloke/Llama-2-7B-Chat-GPTQ"}))
    for given in ({}, {"model": "llama-2-7b"}):
        assert "--weights" in times([path], **given).skipped[0][1]
    assert times([path], weights="int4").points[0].weights == "int4"


def test_an_unknown_model_skips_its_lines_and_a_table_brings_it(tmp_path):
    """Others of the file are read; --models makes it known."""
    row = json.loads((FIELD / "06-vllm-bench-json-speculative-run" / "vanilla-c1.json").read_text())
    path = written(tmp_path, json.dumps([row, {**row, "model_id": "someone/mine-9b"}]))
    found = times([path])
    assert len(found.points) == 1
    assert "mine-9b" in found.skipped[0][1]
    table = written(tmp_path, "version: 1\nmodels:\n  mine-9b: {hidden: 4096, layers: 32, heads: 32, kv_heads: 8, head_dim: 128, ffn: 14336, vocab: 32000}\n", "t.yaml")
    assert len(measurements.read([path], GIVEN, catalog.of_table(table)).points) == 2
    done = CliRunner().invoke(main, ["calibrate", path, "--gpu", "NVIDIA H100 80GB HBM3", "--gpus", "1", "--models", table])
    assert done.exit_code == 0, done.output
