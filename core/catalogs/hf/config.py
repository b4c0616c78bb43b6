"""Reads a Hugging Face config.json: the catalog fields it stands for, how each was derived, and what is not understood.

``read`` is a pure function of the config. Every key is used, known to be harmless, or named: as an error when its meaning
would change the numbers and is not computed, else as a warning. Nothing is guessed silently.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scenario.catalogs.hf import layers as hf_layers
from scenario.catalogs.hf import quantization as hf_quant
from scenario.catalogs.hf.families import (
    HARMLESS,
    HARMLESS_ENDINGS,
    HARMLESS_VALUES,
    UNSUPPORTED,
    WARN,
)
from scenario.catalogs.hf.keys import ConfigKeys, ConfigReading
from scenario.common import inputs
from scenario.common.errors import Problem, TableError


def load(path: str | Path, family: str = "") -> ConfigReading:
    """The reading of a config.json. Raises :class:`TableError` when the file cannot be read or its errors forbid using it."""
    try:
        config = json.loads(inputs.read(path, inputs.CONFIG).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise TableError(Problem(f"this is not JSON: {str(error)[:120]}", file=str(path))) from None
    if not isinstance(config, dict):
        raise TableError(Problem("a config.json is a mapping of keys", file=str(path)))
    reading = read(config, family)
    if reading.errors:
        raise TableError([Problem(error, file=str(path)) for error in reading.errors])
    return reading


def read(config: Mapping[str, Any], family: str = "") -> ConfigReading:
    """The catalog fields of a config. ``family`` overrides its model_type."""
    reader = _ConfigReader(config, family)
    try:
        reader.run()
    except _Stop:
        pass
    except (AttributeError, KeyError, TypeError, ValueError, ArithmeticError) as error:
        reader.out.errors.append(f"the config is not laid out as one of its family is ({type(error).__name__}: {str(error)[:80]})")
    return reader.out


class _Stop(Exception):
    """ConfigReading cannot go on; the errors say why."""


class _ConfigReader(ConfigKeys):
    """From keys to catalog fields."""

    # -- the model -------------------------------------------------------------------------------------

    def run(self) -> None:
        if self.out.errors:
            raise _Stop
        self.layers = int(self.count("num_hidden_layers", "n_layer", "num_layers", "n_layers", needed=True))
        self.put("hidden", self.count("hidden_size", "n_embd", "d_model", "n_embed", needed=True), "hidden_size")
        self.put("layers", self.layers, "num_hidden_layers")
        self.put("vocab", self.count("vocab_size", "padded_vocab_size", needed=True), "vocab_size")
        self.put("heads", self.count("num_attention_heads", "n_head", "num_heads", needed=True), "num_attention_heads")
        if self.out.errors:
            raise _Stop
        self.embeddings()
        self.attention()
        kinds = self.layer_kinds()
        self.feed_forward(kinds)
        self.norms(kinds)
        self.stored()
        self.put("mtp_layers", self.count("num_nextn_predict_layers", "mtp_num_hidden_layers")
                 or (self.count("num_mtp_modules") * self.count("mtp_transformer_layers", default=1) if self.flag("use_mtp") else 0),
                 "multi-token-prediction blocks, counted apart")  # fmt: skip
        self.used.update(("num_mtp_modules", "mtp_transformer_layers", "use_mtp", "mtp_use_dedicated_embeddings", "mtp_layers_block_type"))
        self.put("context_length", self.count("max_position_embeddings", "n_positions", "max_sequence_length", "seq_length"),
                 "max_position_embeddings")  # fmt: skip
        self.left_over()

    def embeddings(self) -> None:
        given = self.get("tie_word_embeddings")
        tied = self.spec.tied if given is None else bool(given)
        self.put("tied", tied, "tie_word_embeddings" if given is not None else f"not given: the {self.spec.name} family ties them")
        if self.spec.name in ("gpt2", "gpt", "gpt_bigcode"):
            places = self.count("n_positions", "n_ctx", default=1024)
            self.put("lookup_params", places * self.out.fields["hidden"], "learned position table: n_positions x hidden")
        elif self.spec.name == "opt":
            places = self.count("max_position_embeddings", default=2048) + 2
            self.put("lookup_params", places * self.out.fields["hidden"], "learned position table: 2 more than max_position_embeddings")
            if self.count("word_embed_proj_dim") not in (0, self.out.fields["hidden"]):
                self.out.errors.append("word_embed_proj_dim: embeddings of another width than hidden_size cannot be computed")

    def attention(self) -> None:
        spec, fields = self.spec, self.out.fields
        heads = fields["heads"]
        kv_rank = self.count("kv_lora_rank")
        bias = self.flag("attention_bias", "use_bias", "use_qkv_bias", "qkv_bias", "bias", "attention_qkv_bias", default=spec.qkv_default)
        if kv_rank:
            self.put("kv_lora_rank", kv_rank, "kv_lora_rank: multi-head latent attention")
            self.put("q_lora_rank", self.count("q_lora_rank"), "q_lora_rank")
            self.put("qk_nope_dim", self.count("qk_nope_head_dim", needed=True), "qk_nope_head_dim")
            self.put("qk_rope_dim", self.count("qk_rope_head_dim", needed=True), "qk_rope_head_dim")
            self.put("v_head_dim", self.count("v_head_dim", needed=True), "v_head_dim")
            self.used.update(("num_key_value_heads", "head_dim", "qk_head_dim"))
            if bias:
                self.out.warnings.append("attention_bias: the biases of latent attention are left out")
            return
        if spec.name == "falcon" and self.flag("new_decoder_architecture"):
            kv_heads = self.count("num_kv_heads", default=heads)
            self.used.add("multi_query")
        elif self.flag("multi_query", default=spec.name in ("gpt_bigcode", "falcon")):
            kv_heads = 1.0
            self.used.add("num_kv_heads")
        else:
            kv_heads = self.count("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", default=heads)
        given = self.get("head_dim", "attention_head_dim")
        head_dim = self.count("head_dim", "attention_head_dim") if given else fields["hidden"] / heads
        if head_dim != int(head_dim):
            self.out.errors.append(f"head_dim is not given, and hidden_size {fields['hidden']:g} is no multiple of {heads:g} heads")
        if spec.name == "gemma4":
            kv_heads, head_dim = self.gemma4(kv_heads, head_dim)
        self.put("kv_heads", kv_heads, "num_key_value_heads" if self.keys.get("num_key_value_heads") else "as many as query heads")
        self.put("head_dim", head_dim, "head_dim" if given else "hidden_size / num_attention_heads")
        value = self.count("v_head_dim")
        self.put("v_head_dim", value if value != head_dim else 0, "v_head_dim")
        self.put("qkv_bias", bias, "biases of query, key and value projections")
        out = self.get("attention_out_bias", "o_bias")
        with_out = bool(out) if out is not None else bias if spec.bias == "all" else spec.o_default
        self.put("o_bias", with_out, "bias of the output projection")
        self.put("sinks", spec.sinks or self.flag("add_full_attention_sink_bias", "add_swa_attention_sink_bias"), "attention sinks")
        self.put("attention_gate", self.flag("attn_output_gate"), "the query projection also makes an output gate")
        self.qk_norm()

    def gemma4(self, kv_heads: float, head_dim: float) -> tuple[float, float]:
        """Sliding layers have the plain sizes, full ones the global ones."""
        full_dim = self.count("global_head_dim") or head_dim
        shared = self.flag("attention_k_eq_v")
        full_kv = self.count("num_global_key_value_heads") or kv_heads if shared else kv_heads
        self.used.add("num_global_key_value_heads")
        self.put("value_from_key", shared, "attention_k_eq_v, in full-attention layers")
        self.put("window_head_dim", head_dim, "head_dim")
        self.put("window_kv_heads", kv_heads, "num_key_value_heads")
        return full_kv, full_dim

    def qk_norm(self) -> None:
        spec = self.spec
        asked = self.get("use_qk_norm", "qk_layernorm", "use_qk_layernorm", "add_qk_norm")
        kind = str(self.get("qk_norm_type", default=""))
        if spec.name == "llama4":  # its norm has no parameters
            return
        if spec.qk_norm == "cohere" or (asked and spec.name == "stablelm"):
            self.put("qk_norm_wide", bool(asked), "one norm weight per head and channel")
        elif spec.qk_norm == "wide" or kind == "per_layer":
            self.put("qk_norm_wide", asked is not False, "query and key norms over all heads")
        elif (spec.qk_norm == "head" and asked is not False) or asked:
            self.put("qk_norm", 1, "query and key norms per head")

    # -- kinds of layers -------------------------------------------------------------------------------

    def layer_kinds(self) -> list[str]:
        """One of full, window, linear, none per layer, with ``+moe``, ``+ffn`` or nothing after it where the pattern says so."""
        kinds = hf_layers.kinds(self)
        if len(kinds) != self.layers:
            self.out.errors.append(f"the layer pattern names {len(kinds)} layers, num_hidden_layers says {self.layers}")
            raise _Stop
        hf_layers.windows(self, kinds)
        hf_layers.mixers(self, kinds)
        self.put("no_mixer_layers", sum(kind.startswith("none") for kind in kinds), "layers that are a feed-forward network alone")
        return kinds

    def feed_forward(self, kinds: Sequence[str]) -> None:
        spec, fields = self.spec, self.out.fields
        ffn = self.count("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "d_ff")
        if spec.name in ("gpt2", "gpt", "gpt_bigcode", "bloom", "falcon") and not ffn:
            ffn = 4 * fields["hidden"]
        if not spec.gated:
            self.out.fields["gated"], self.out.how["gated"] = 0.0, f"the {spec.name} family has no gate"
        bias = self.get("mlp_bias", "use_mlp_bias")
        if bias is None and spec.name in ("starcoder2", "ernie4_5", "ernie4_5_moe"):
            bias = self.get("use_bias", default=spec.mlp_bias)
        self.put("mlp_bias", bool(spec.mlp_bias if bias is None else bias), "biases of the feed-forward networks")
        experts = hf_layers.experts(self, kinds, ffn)
        dense = self.layers - int(fields.get("moe_layers", 0))
        if any("+" in kind for kind in kinds) or any(kind == "none" for kind in kinds):  # a pattern that names them
            without = sum("+" not in kind for kind in kinds)
            self.put("no_ffn_layers", without, "layers of the pattern without a feed-forward network")
            dense -= without
        if dense > 0:
            if not ffn:
                self.out.errors.append("intermediate_size is missing")
            self.put("ffn", hf_layers.dense_width(self, ffn, experts), "intermediate_size")

    def norms(self, kinds: Sequence[str]) -> None:
        spec, fields = self.spec, self.out.fields
        norms = spec.norms
        if spec.name == "gemma4" and fields.get("moe_layers"):
            norms = 8  # three more around the experts, and the router's scale
        if spec.name == "falcon" and self.flag("parallel_attn", default=True) and not self.flag("new_decoder_architecture"):
            norms = 2  # one norm with a bias before both
        self.used.update(("norm_bias", "layer_norm_bias", "alibi", "do_layer_norm_before", "enable_bias", "_remove_final_layer_norm"))
        if norms != 2:
            self.out.fields["norms_per_layer"], self.out.how["norms_per_layer"] = float(norms), f"norm vectors of the {spec.name} family"
        extra = fields["hidden"] if spec.final_bias else 0
        if spec.name == "bloom":
            extra += 2 * fields["hidden"]  # the norm after the embedding
        head_bias = self.flag("lm_head_bias", default=spec.name == "phi")
        if head_bias:
            extra += fields["vocab"]
        self.put("extra_params", extra, "norms outside the layers and their biases" + (" and of the LM head" if head_bias else ""))

    def stored(self) -> None:
        kind = str(self.get("torch_dtype", "dtype", default="bfloat16"))
        self.out.weights = {"float16": "fp16", "float32": "fp32"}.get(kind.removeprefix("torch."), "bf16")
        config = self.get("quantization_config", "compression_config", "quantization")
        if not config:
            return
        stored = hf_quant.read(config, bool(self.out.fields.get("experts"))) if isinstance(config, Mapping) else None
        if stored is None:
            self.out.warnings.append(f"quantization_config: method '{config.get('quant_method') if isinstance(config, Mapping) else config}' "
                                     "is not known; stored weights are taken as 16 bits")  # fmt: skip
            return
        self.out.weights = stored.name
        self.put("stored_bits", stored.bits, f"quantization_config: {stored.how}")
        for name, on in (("stored_attention", stored.attention), ("stored_ffn", stored.ffn)):
            if not on:
                self.out.fields[name], self.out.how[name] = 0.0, "left in 16 bits by quantization_config"
        self.put("stored_embeddings", stored.embeddings, "quantization_config")
        self.out.warnings += stored.problems

    def left_over(self) -> None:
        """Every key that was not used is harmless, or named."""
        for key, value in self.keys.items():
            if value in (None, False, 0, "", "none") or value == [] or value == {}:
                continue
            if value == HARMLESS_VALUES.get(key):
                continue
            if key in UNSUPPORTED:
                self.out.errors.append(f"{key} ({json.dumps(value)[:40]}): {UNSUPPORTED[key]} cannot be computed by this version")
            elif key in WARN:
                if not WARN[key].startswith("see "):
                    self.out.warnings.append(f"{key}: {WARN[key]}")
            elif key not in self.used and key not in HARMLESS and not key.endswith(HARMLESS_ENDINGS):
                self.out.warnings.append(f"{key} ({json.dumps(value, default=str)[:40]}) is not understood and left out")
