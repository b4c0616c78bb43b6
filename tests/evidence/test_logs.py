"""Engine logs: every format, mixed, gzipped and piped; what is ambiguous is refused. The numbers follow from those in the logs."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from click.testing import CliRunner

import scenario
from scenario import TableError
from scenario.cli.commands import main
from scenario.evidence import logs

LOGS = Path(__file__).parents[1] / "data" / "logs"


def read(*names: str) -> logs.AcceptanceReport:
    return logs.read([str(LOGS / name) for name in names])


def test_vllm_lines_by_batch():
    report = read("vllm.log")
    source = report.sources["vLLM log lines"]
    assert source.total.length == pytest.approx(2.5)  # the bonus token included
    assert source.total.rates == pytest.approx([0.85, 0.65])
    assert {batch: tally.rounds for batch, tally in source.batches.items()} == pytest.approx({4: 100, 16: 300})  # 150 accepted at 1.5 a round
    assert report.parameters("eagle") == {"gamma": 2, "acceptance": [0.85, 0.65]}


def test_vllm_v0_counts_emitted_tokens_and_refuses_the_rate():
    report = read("vllm-v0.log")
    assert report.sources["vLLM V0 log lines"].total.length == pytest.approx(10560 / (13200 / 3))  # counters only grow: the last line
    assert report.draft_cost == pytest.approx(4.5 / 32)
    assert "vLLM V0 draft acceptance rate" in report.refused
    found = report.parameters("small-model")
    assert found["gamma"] == 3
    alpha = found["alpha"]
    assert 1 + alpha + alpha**2 + alpha**3 == pytest.approx(2.4, abs=1e-3)


def test_sglang_drops_the_first_line_and_never_reads_accept_rate():
    report = read("sglang.log")
    source = report.sources["SGLang decode lines"]
    assert {batch: tally.length for batch, tally in source.batches.items()} == pytest.approx({1: 2.2, 32: 3.8})
    assert "SGLang accept rate" in report.refused
    with pytest.raises(TableError, match="--gamma"):
        report.parameters("eagle")


def test_llama_cpp_needs_the_summary():
    report = read("llamacpp.log")
    total = report.sources["llama.cpp speculative summary"].total
    assert total.length == pytest.approx(69 / (69 - 44))
    assert total.gamma == pytest.approx(120 / (69 - 44))
    assert "llama.cpp draft acceptance rate" in report.refused


def test_tensorrt_skips_other_attention_ranks():
    total = read("trtllm.jsonl").sources["TensorRT-LLM iteration statistics"].total
    assert (total.length, total.gamma) == pytest.approx(((7 + 5 + 8) / 8, 3))


def test_prometheus_gives_positions_and_hit_rate():
    report = read("prometheus.txt")
    total = report.sources["vLLM Prometheus counters"].total
    assert (total.accepted, total.rounds) == (1500, 1000)  # the series per position are not added to it
    assert total.rates == [0.85, 0.65]
    assert report.hit_rate == pytest.approx(1000 / (4000 - 1500))
    assert report.parameters("ngram")["hit_rate"] == 0.4


def test_a_restarted_server_counts_on(tmp_path):
    lines = [f'vllm:spec_decode_num_{name}_total{{engine="0"}} {value}\n' for values in ((10, 15), (30, 45), (5, 10))
             for name, value in zip(("drafts", "accepted_tokens"), values, strict=True)]  # fmt: skip
    (tmp_path / "m").write_text("".join(lines))
    total = logs.read([str(tmp_path / "m")]).sources["vLLM Prometheus counters"].total
    assert (total.rounds, total.accepted) == (35, 55)


def test_a_histogram_is_exact():
    total = read("histogram.log").sources["vLLM request histograms"].total
    assert total.length == pytest.approx(1 + (1 * 1 + 3 * 3) / 43)
    assert total.rates == pytest.approx([4 / 43, 3 / 43, 3 / 43])


def test_the_same_rounds_are_not_counted_twice():
    report = read("vllm.log", "histogram.log")
    assert report.best
    assert report.best.name == "vLLM request histograms"
    assert any("same rounds" in note for note in report.notes)


def test_mixed_and_gzipped(tmp_path):
    whole = b"".join((LOGS / name).read_bytes() for name in ("vllm.log", "sglang.log", "trtllm.jsonl", "llamacpp.log"))
    path = tmp_path / "mixed.gz"
    path.write_bytes(gzip.compress(whole))
    report = logs.read([str(path)])
    assert len([s for s in report.sources.values() if s.total.rounds]) == 4
    assert any("--source" in note for note in report.notes)


def test_long_lines_and_binary_rubbish_pass_by(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"\x00\xff" * (3 << 20) + b"\n" + (LOGS / "vllm.log").read_bytes())
    assert logs.read([str(path)]).sources["vLLM log lines"].total.rounds == pytest.approx(400)


def test_the_written_block_runs(tmp_path):
    out = tmp_path / "parameters.yaml"
    done = CliRunner().invoke(main, ["acceptance", str(LOGS / "vllm.log"), "-o", str(out)])
    assert done.exit_code == 0, done.output
    head = "version: 1\nrows: [{model: llama-3.1-8b, gpu: h100-sxm, batch: 1, context: 0, method: eagle}]\n"
    (tmp_path / "t.yaml").write_text(head + out.read_text())
    assert scenario.run(tmp_path / "t.yaml").frame["tokens_per_round"][0] == pytest.approx(2.5)


def test_a_log_without_drafts_says_so(tmp_path):
    (tmp_path / "log").write_text("INFO nothing here\n")
    done = CliRunner().invoke(main, ["acceptance", str(tmp_path / "log")])
    assert done.exit_code == 2
    assert "nothing about accepted drafts" in done.output


@pytest.mark.parametrize("method", ["vanilla", "int4", "fp8"])
def test_a_method_that_drafts_nothing_takes_no_acceptance(tmp_path, method):
    out = tmp_path / "out.yaml"
    done = CliRunner().invoke(main, ["acceptance", str(LOGS / "vllm.log"), "--method", method, "-o", str(out)])
    assert done.exit_code == 2
    assert f"method '{method}' takes no acceptance" in done.stderr
    assert "eagle" in done.stderr
    assert not out.exists()


def test_a_method_without_a_parameter_for_what_was_read_is_refused(tmp_path):
    done = CliRunner().invoke(main, ["acceptance", str(LOGS / "vllm.log"), "--method", "lookahead"])
    assert done.exit_code == 2
    assert "method 'lookahead' has no parameter for what is in here: gamma, acceptance" in done.stderr
