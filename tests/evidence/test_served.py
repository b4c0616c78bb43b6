"""Commands that start servers: the row is what the engines' documentation says of their flags."""

from __future__ import annotations

import pytest
import yaml
from click.testing import CliRunner

import scenario
from scenario import TableError
from scenario.catalogs import catalog
from scenario.cli.commands import main
from scenario.evidence import served

MTP = "speculative_config: {decoding_type: MTP, num_nextn_predict_layers: 3}\nkv_cache_config: {dtype: fp8}\n"


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 4 --kv-cache-dtype fp8_e4m3 "
         """--speculative-config '{"model": "yuhuili/EAGLE3-LLaMA3.3-Instruct-70B", "num_speculative_tokens": 3, "method": "eagle3"}'""",
         {"model": "llama-3.1-70b", "engine": "vllm", "tp": 4, "gpus": 4, "kv": "fp8", "method": "eagle-3", "gamma": 3}),
        ("CUDA_VISIBLE_DEVICES=0 python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-32B --speculative_model Qwen/Qwen3-0.6B --num_speculative_tokens=5",
         {"model": "qwen3-32b", "method": "small-model", "draft": "qwen3-0.6b", "gamma": 5}),
        ("vllm serve Qwen/Qwen3-32B-FP8 --speculative-config.method ngram --speculative-config.num_speculative_tokens 4",
         {"model": "qwen3-32b", "weights": "fp8", "method": "ngram", "gamma": 4}),
        ("vllm serve deepseek-ai/DeepSeek-V3 --tensor-parallel-size 8 --enable-expert-parallel "
         """--speculative-config '{"method": "deepseek_mtp", "num_speculative_tokens": 1}'""",
         {"method": "mtp", "gamma": 1, "tp": 8, "ep": 8, "gpus": 8, "weights": "fp8"}),
        ("python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --speculative-algorithm EAGLE --speculative-num-steps 3 "
         "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4", {"model": "deepseek-r1", "engine": "sglang", "method": "mtp", "gamma": 3}),
        ("python3 -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --speculative-algorithm STANDALONE "
         "--speculative-draft-model-path meta-llama/Llama-3.2-1B-Instruct --speculative-num-steps 4",
         {"method": "small-model", "draft": "llama-3.2-1b", "gamma": 4}),
        ("trtllm-serve deepseek-ai/DeepSeek-V3 --tp_size 8 --extra_llm_api_options options.yaml", {"engine": "trtllm", "kv": "fp8", "method": "mtp", "gamma": 3}),
        ("llama-server -m models/Qwen3-8B-Q4_K_M.gguf -md Qwen3-0.6B-Q8_0.gguf --draft-max 16 -ngl 99 -ctk q8_0 -ctv q8_0",
         {"engine": "llamacpp", "model": "qwen3-8b", "weights": "q4_k_m", "kv": "q8_0", "method": "small-model", "draft": "qwen3-0.6b", "draft_bits": 8.5}),
        ("vllm serve openai/gpt-oss-20b", {"method": "vanilla", "weights": "mxfp4"}),
    ],
)  # fmt: skip
def test_flags_are_taken_as_the_engine_means_them(tmp_path, command, wanted):
    """Each flag that changes what is computed is in the row under the name that it has here."""
    (tmp_path / "options.yaml").write_text(MTP)
    row = served.read(command, catalog.builtin(), tmp_path).row
    assert {name: row.get(name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("command", "note"),
    [
        ("vllm serve Qwen/Qwen3-8B --something-new 3", "--something-new"),
        ("vllm serve someone/thing", "not in the catalog"),
        ("vllm serve TheBloke/Llama-2-7B-Chat-GPTQ", "GPTQ"),
        ("""vllm serve Qwen/Qwen3-8B --speculative-config '{"method": "mlp_speculator", "num_speculative_tokens": 3}'""", "mlp_speculator"),
        ("llama-server -m Qwen3-8B-Q4_K_M.gguf -ngl 20", "partly offloaded"),
        ("python -m sglang.launch_server --model-path Qwen/Qwen3-8B --speculative-algorithm EAGLE3", "gamma"),
    ],
)
def test_what_is_not_taken_is_said(command, note):
    """A flag, a model or a method that is not known is named beside the row."""
    assert any(note in said for said in served.read(command, catalog.builtin()).notes)


@pytest.mark.parametrize(("command", "said"), [
    ("ls -la", "no command that starts a server"), ("vllm serve 'Qwen", "taken apart"), ("vllm serve x --speculative-config {bad", "not JSON"), ("vllm serve", "no model"),
])  # fmt: skip
def test_what_is_no_command_is_refused(command, said):
    """One clear message."""
    with pytest.raises(TableError, match=said):
        served.read(command, catalog.builtin())


def test_the_written_table_runs(tmp_path):
    """With GPU, batch and context stated the table is whole; without them it says so and is refused when it is run."""
    out = tmp_path / "t.yaml"
    command = "vllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size 2"
    done = CliRunner().invoke(main, ["from-command", command, "--gpu", "h100-sxm", "--batch", "8", "--context", "2000", "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert scenario.run(out).frame["tpot_ms"][0] > 0
    done = CliRunner().invoke(main, ["from-command", command])
    assert "state gpu, batch, context" in done.stdout
    assert yaml.safe_load(done.stdout)["rows"] == [{"engine": "vllm", "model": "llama-3.1-8b", "tp": 2, "gpus": 2, "method": "vanilla"}]
