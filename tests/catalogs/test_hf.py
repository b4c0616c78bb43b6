"""Hugging Face configs: what the reader makes of them against what makers state, and what it says of keys it does not know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from stated import CONFIGS, DOCUMENT, active_counts, computed, document, reading, stated_configs, to_digits

import scenario
from scenario.catalogs.hf import config as hf
from scenario.cli.commands import main

STATED = stated_configs()
MIXTURES = [name for name, said in STATED.items() if said["active_params"]]
LLAMA = json.loads((CONFIGS / "meta-llama--Meta-Llama-3.1-8B.json").read_text(encoding="utf-8"))
DEEPSEEK = json.loads((CONFIGS / "deepseek-ai--DeepSeek-V3.json").read_text(encoding="utf-8"))


def models(**named: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The columns of models given by their fields."""
    row = {"model": "llama-3-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "vanilla"}
    frame = scenario.run({"version": 1, "models": named, "rows": [row]}).entities["models"]
    return {item["name"]: item for item in frame.iter_rows(named=True)}


@pytest.mark.parametrize("config", STATED)
def test_total_parameters_are_the_stated_ones(config: str) -> None:
    """Read from its config alone, every model has the parameters its maker states, to the digits stated."""
    assert not reading(config).errors
    assert to_digits(computed()[config]["params"], STATED[config]["params"]), computed()[config]["params"]


@pytest.mark.parametrize("config", MIXTURES)
def test_active_parameters_are_the_stated_ones(config: str) -> None:
    """One of the ways in which makers count active parameters gives their figure."""
    counts = active_counts(computed()[config])
    assert any(to_digits(count, STATED[config]["active_params"]) for count in counts.values()), counts


def test_documentation_shows_every_model_and_config() -> None:
    """docs/catalog.md is what the tests' data and the engine give today."""
    assert DOCUMENT.read_text(encoding="utf-8") == document(), "python tests/stated.py writes it anew"


@pytest.mark.parametrize(
    ("config", "model"),
    [("meta-llama--Meta-Llama-3.1-8B", "llama-3.1-8b"), ("meta-llama--Meta-Llama-3.1-405B", "llama-3.1-405b"),
     ("mistralai--Mixtral-8x7B-v0.1", "mixtral-8x7b"), ("deepseek-ai--DeepSeek-V3", "deepseek-v3"), ("Qwen--Qwen3-0.6B", "qwen3-0.6b"),
     ("Qwen--Qwen3-30B-A3B", "qwen3-30b-a3b"), ("openai--gpt-oss-20b", "gpt-oss-20b"), ("google--gemma-4-26B-A4B", "gemma-4-26b-a4b")],
)  # fmt: skip
def test_config_gives_what_the_catalog_holds(config: str, model: str) -> None:
    """A catalog entry and its model's config are the same model in every computed column."""
    differing = {name for name, value in computed()[model].items() if value != computed()[config][name]} - {"name", "title"}
    assert not differing


def test_prediction_blocks_are_counted_apart_and_to_the_last_parameter() -> None:
    """GLM-4.5-Air's checkpoint of 110,468,824,832 holds a prediction block with copies of both vocabulary tables."""
    row = computed()["zai-org--GLM-4.5-Air"]
    assert row["params"] + row["mtp_params"] + 2 * row["embedding_params"] == 110_468_824_832
    deepseek = computed()["deepseek-ai--DeepSeek-V3"]
    assert deepseek["mtp_layers"] == 1
    assert to_digits(deepseek["params"], "671e9")


@pytest.mark.parametrize(
    ("config", "size", "unit"),
    # Sizes of the published checkpoints: model cards of gpt-oss (12.8 GiB) and Kimi K2.5 (594 GB), two bytes per parameter else.
    [("openai--gpt-oss-20b", "12.8", 1024**3 / 1e9), ("moonshotai--Kimi-K2.5", "594", 1), ("meta-llama--Meta-Llama-3.1-8B", "16.06", 1)],
)
def test_stored_size_is_that_of_the_checkpoint(config: str, size: str, unit: float) -> None:
    """Quantized parts with their scales, and what stays in 16 bits, make the size of the published files."""
    assert to_digits(computed()[config]["stored_gb"] / unit, size)


def test_gpt_oss_120b_checkpoint() -> None:
    """The model card gives 60.8 GiB: MXFP4 experts with BF16 biases, attention, router and vocabulary tables."""
    assert to_digits(computed()["gpt-oss-120b"]["stored_gb"] * 1e9 / 1024**3, "60.8")


@pytest.mark.parametrize(
    ("quantization", "bits", "kept"),
    [({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, 4 + 20 / 128, "embeddings"),
     ({"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": True, "desc_act": False}, 4 + 20 / 32, "embeddings"),
     ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 8, "embeddings"),
     ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8 + 32 / 16384, "embeddings"),
     ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float", "strategy": "channel"}}},
       "ignore": ["lm_head"]}, 8, "embeddings"),
     ({"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["lm_head", "model.layers.0.self_attn*"]}, 4.5, "attention"),
     ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 4.5, "embeddings")],
)  # fmt: skip
def test_quantized_checkpoints(quantization: dict[str, Any], bits: float, kept: str) -> None:
    """Bits per weight count scales and zero points; embeddings, norms and whatever is left out stay in 16 bits."""
    found = hf.read({**LLAMA, "quantization_config": quantization})
    assert not found.errors
    assert found.fields["stored_bits"] == bits
    row = models(mine=found.fields)["mine"]
    attention = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024)
    body = 32 * 3 * 4096 * 14336 + (0 if kept == "attention" else attention)
    assert row["quantized_params"] == body
    assert row["stored_gb"] == pytest.approx((body * bits + (8_030_261_248 - body) * 16) / 8e9, rel=1e-12)


def test_published_weights_are_a_choice_of_format() -> None:
    """Rows with published weights hold the checkpoint as it is: FP8 blocks for DeepSeek-V3, MXFP4 experts for gpt-oss."""
    rows = [{"model": ["deepseek-v3", "gpt-oss-120b", "llama-3-8b"], "gpu": "b200", "gpus": 8, "batch": 8, "context": 1024,
             "method": "vanilla", "weights": ["published", "bf16"]}]  # fmt: skip
    result = scenario.run({"version": 1, "rows": rows})
    found = {(row["model"], row["weights"]): row for row in result.frame.iter_rows(named=True)}
    stored = {row["name"]: row["stored_gb"] for row in result.entities["models"].iter_rows(named=True)}
    assert found["deepseek-v3", "published"]["weight_gb"] == pytest.approx(stored["deepseek-v3"], rel=1e-9)
    # The experts' own biases are read with their experts, at the experts' bits: a thousandth.
    assert found["gpt-oss-120b", "published"]["weight_gb"] == pytest.approx(stored["gpt-oss-120b"], rel=1e-3)
    assert found["llama-3-8b", "published"]["weight_gb"] == found["llama-3-8b", "bf16"]["weight_gb"]
    assert found["gpt-oss-120b", "published"]["weight_read_gb"] < found["gpt-oss-120b", "bf16"]["weight_read_gb"] / 3


# -- what is not understood -----------------------------------------------------------------------------------------------------


def test_published_configs_read_without_noise() -> None:
    """The configs that the maker publishes whole give no warning but that of an encoder or a state's format."""
    for name in STATED:
        said = [w for w in reading(name).warnings if "encoder" not in w and "state of linear" not in w and "not given" not in w
                and "attention_chunk_size" not in w]  # fmt: skip
        assert not said, name


def test_unknown_key_is_named() -> None:
    """A key that nobody knows is a warning with its name and value, also through a table's hf_config and in its sources."""
    found = hf.read({**LLAMA, "frobnication_layers": 3})
    assert not found.errors
    assert any("frobnication_layers (3)" in warning for warning in found.warnings)
    assert not hf.read({**LLAMA, "frobnication_layers": None, "other": False}).warnings


@pytest.mark.parametrize("key", ["num_kv_shared_layers", "block_configs", "altup_num_inputs", "linear_attn_config"])
def test_key_that_would_change_the_numbers_is_an_error(key: str) -> None:
    """What cannot be computed is refused by name, never guessed."""
    assert any(error.startswith(key) for error in hf.read({**LLAMA, key: 10}).errors)
    assert not hf.read({**LLAMA, key: 0}).errors


def test_unknown_family_is_an_error_with_a_way_out() -> None:
    """An unknown model_type is refused; naming a family reads it as one of that."""
    mine = {**LLAMA, "model_type": "lama9"}
    assert any("lama9" in error and "family: llama" in error for error in hf.read(mine).errors)
    assert not hf.read(mine, "llama").errors
    assert any("no model_type" in error for error in hf.read({"hidden_size": 3}).errors)


@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size"])
def test_missing_key_is_an_error(key: str) -> None:
    """A size that is missing is named."""
    found = hf.read({name: value for name, value in LLAMA.items() if name != key})
    assert any(key in error for error in found.errors)


@pytest.mark.parametrize("base", [LLAMA, DEEPSEEK, *(json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8")) for name in (
    "google--gemma-4-26B-A4B", "openai--gpt-oss-20b", "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B", "Qwen--Qwen3-Next-80B-A3B"))])  # fmt: skip
def test_nonsense_is_an_error_and_never_a_crash(base: dict[str, Any]) -> None:
    """Every key with a value of a wrong kind gives fields or errors, never an exception."""
    inner = base.get("text_config", base)
    for key in inner:
        for value in ("x", -1, 1.5, [], {}, [1, "a", None], {"a": 1}, True, 10**30, None):
            changed = {**inner, key: value}
            found = hf.read({**base, "text_config": changed} if "text_config" in base else changed)
            assert found.errors or found.fields.get("hidden"), (key, value)


def test_tied_embeddings_follow_the_family_when_not_said() -> None:
    """Gemma and Cohere tie their tables without saying so, Llama does not; a nested text model inherits what the outer config says."""
    assert hf.read({k: v for k, v in LLAMA.items() if k != "tie_word_embeddings"}).fields.get("tied", 0) == 0
    assert reading("google--gemma-2-2b").fields["tied"] == 1
    nested = {"model_type": "llava", "text_config": {**LLAMA, "tie_word_embeddings": None}, "tie_word_embeddings": True}
    assert hf.read(nested).fields["tied"] == 1


def test_head_width_is_given_or_derived() -> None:
    """Without head_dim a head is hidden_size / heads; a remainder is an error."""
    assert hf.read(LLAMA).fields["head_dim"] == 128
    assert hf.read({**LLAMA, "head_dim": 64}).fields["head_dim"] == 64
    assert any("head_dim" in error for error in hf.read({**LLAMA, "num_attention_heads": 30, "num_key_value_heads": 10}).errors)


def test_window_as_long_as_the_context_is_none() -> None:
    """Phi-3 and Ministral name windows that no context reaches; Mistral 7B's window is a quarter of its context."""
    assert "window_layers" not in reading("mistralai--Ministral-8B-Instruct-2410").fields
    mistral = {**LLAMA, "model_type": "mistral", "sliding_window": 4096, "max_position_embeddings": 32768}
    assert hf.read(mistral).fields["window_layers"] == 32


def test_layer_patterns() -> None:
    """Five sliding layers to one full in Gemma, three linear to one full in Qwen3-Next, one attention layer in eight in Jamba."""
    assert reading("google--gemma-3-4b-it").fields["window_layers"] == 34 - 34 // 6
    assert reading("google--gemma-4-26B-A4B").fields["window_layers"] == 25
    assert reading("Qwen--Qwen3-Next-80B-A3B").fields["linear_layers"] == 36
    assert reading("ai21labs--AI21-Jamba-Mini-1.5").fields["linear_layers"] == 28
    assert reading("ai21labs--AI21-Jamba-Mini-1.5").fields["moe_layers"] == 16
    nemotron = reading("nvidia--Nemotron-H-8B-Base-8K").fields
    assert (nemotron["linear_layers"], nemotron["no_mixer_layers"], nemotron["no_ffn_layers"]) == (24, 24, 28)


# -- on the command line and in tables ----------------------------------------------------------------------------------------------


def test_table_reads_a_config_and_may_change_it(tmp_path) -> None:
    """hf_config is a path from the table's own folder; fields beside it override; what is unknown is said on stderr."""
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "config.json").write_text(json.dumps({**LLAMA, "odd_layers": 2}), encoding="utf-8")
    table = tmp_path / "table.yaml"
    table.write_text("version: 1\nmodels: {mine: {hf_config: configs/config.json, layers: 16}}\n"
                     "rows: [{model: mine, gpu: h100-sxm, batch: 1, context: 0, method: vanilla}]\n", encoding="utf-8")  # fmt: skip
    assert scenario.run(table).frame["layers"][0] == 16
    done = CliRunner().invoke(main, ["check", str(table)])
    assert done.exit_code == 0
    assert "odd_layers" in done.output


@pytest.mark.parametrize("text", ["not json", "[1]", '{"model_type": "llama"}'])
def test_bad_config_is_a_problem_at_its_place_in_the_table(tmp_path, text: str) -> None:
    """A config that cannot be used is an error of the table, at the line that names it."""
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    table = tmp_path / "table.yaml"
    table.write_text("version: 1\nmodels:\n  mine: {hf_config: config.json}\n"
                     "rows: [{model: mine, gpu: h100-sxm, batch: 1, context: 0, method: vanilla}]\n", encoding="utf-8")  # fmt: skip
    with pytest.raises(scenario.TableError) as error:
        scenario.run(table)
    assert 3 in {problem.line for problem in error.value.problems}


@pytest.mark.parametrize("config", STATED)
def test_printed_entry_is_the_model(tmp_path, config: str) -> None:
    """What add-model prints, pasted into a table, is the model of the config in every column."""
    done = CliRunner().invoke(main, ["add-model", str(CONFIGS / f"{config}.json"), "--name", "mine"])
    assert done.exit_code == 0, done.output
    entry = yaml.safe_load(done.output)["models"]
    mine = models(**entry)["mine"]
    assert {name for name, value in mine.items() if value != computed()[config][name]} <= {"name", "title"}


def test_entry_is_written_and_not_over_another_file(tmp_path) -> None:
    """-o writes a file and leaves one that is there alone, unless forced; the name comes from the file."""
    target = tmp_path / "entry.yaml"
    arguments = ["add-model", str(CONFIGS / "Qwen--Qwen3-0.6B.json"), "-o", str(target)]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    assert list(yaml.safe_load(target.read_text(encoding="utf-8"))["models"]) == ["qwen3-0.6b"]
    assert CliRunner().invoke(main, arguments).exit_code == 2
    assert CliRunner().invoke(main, [*arguments, "--force"]).exit_code == 0


def test_a_key_of_a_config_writes_no_line_of_its_own(tmp_path: Path) -> None:
    """What add-model says of a key that holds line ends stays a remark: the entry has the model and nothing else."""
    config = json.loads((CONFIGS / "Qwen--Qwen3-0.6B.json").read_text(encoding="utf-8"))
    path = tmp_path / "a: b #.json"
    path.write_text(json.dumps({**config, "x\nprices: {h100-sxm: 1}\n#": 1}), encoding="utf-8")
    done = CliRunner().invoke(main, ["add-model", str(path), "--name", "mine"])
    assert done.exit_code == 0, done.output
    written = yaml.safe_load(done.stdout)
    assert list(written) == ["models"]
    assert written["models"]["mine"]["source"] == path.name
