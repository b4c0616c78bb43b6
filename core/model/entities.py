"""The catalog's own tables: what a model, a GPU and a number format are, and what follows from it.

Model arithmetic: decoder layers of attention (grouped-query or multi-head latent), a SwiGLU feed-forward
network or routed experts, and norms, as laid out in the models' config.json files.
"""

from __future__ import annotations

from scenario.model.spec import Column, Parameter

Fields = dict[str, Parameter]


def _count(doc: str, default: float | None = 0, unit: str = "", low: float = 0, high: float = 1e7) -> Parameter:
    return Parameter(default, low, high, unit, doc, kind="integer")


def _size(doc: str, unit: str, default: float | None = None, high: float = 1e6) -> Parameter:
    return Parameter(default, None, high, unit, doc, above=0)


def _flag(doc: str, default: float = 0) -> Parameter:
    return _count(f"1 when {doc}, else 0.", default, high=1)


MODEL_FIELDS: Fields = {
    "hidden": _count("Width of the residual stream.", None, low=1),
    "layers": _count("Decoder layers.", None, low=1, high=1e4),
    "heads": _count("Query heads.", None, low=1, high=1e5),
    "kv_heads": _count("Key and value heads (grouped-query attention).", high=1e5),
    "head_dim": _count("Width of one head."),
    "ffn": _count("Inner width of the dense feed-forward network."),
    "vocab": _count("Rows of the embedding table.", None, low=1),
    "tied": _flag("the LM head is the embedding table"),
    "gated": _flag("feed-forward networks and experts have a gate (three matrices, not two)", 1),
    "qk_norm": _flag("queries and keys of every attention layer are normalised per head"),
    "qk_norm_wide": _flag("queries and keys are normalised over all heads together"),
    "qkv_bias": _flag("query, key and value projections have biases"),
    "o_bias": _flag("the attention's output projection has a bias"),
    "mlp_bias": _flag("dense feed-forward networks have biases"),
    "attention_gate": _flag("the query projection also makes a gate of the same width"),
    "value_from_key": _flag("full-attention layers have no value projection: keys serve as values"),
    "sinks": _flag("every query head has a learned attention sink"),
    "norms_per_layer": _count("Norm vectors of the hidden width per layer.", 2, high=16),
    "moe_layers": _count("Layers whose feed-forward network is a mixture of experts.", high=1e4),
    "experts": _count("Routed experts per such layer.", high=1e6),
    "experts_per_token": _count("Routed experts that work on one token.", high=1e6),
    "shared_experts": _count("Experts that work on every token.", high=1e4),
    "expert_ffn": _count("Inner width of one expert."),
    "shared_ffn": _count("Inner width of the shared experts together; 0: as many experts as there are shared ones."),
    "shared_gate": _flag("the shared expert's output is scaled by a gate"),
    "router_bias": _flag("the router has a bias per expert"),
    "expert_bias": _flag("every expert has biases"),
    "kv_lora_rank": _count("Rank of the KV latent (multi-head latent attention); 0 without."),
    "q_lora_rank": _count("Rank of the query latent; 0 without."),
    "qk_nope_dim": _count("Width of a query/key head without rotary part (latent attention)."),
    "qk_rope_dim": _count("Width of the rotary part of a head (latent attention)."),
    "v_head_dim": _count("Width of a value head, where it is not that of a key head."),
    "window_tokens": _count("Tokens that a sliding-window layer attends to.", unit="tokens", high=1e9),
    "window_layers": _count("Layers with sliding-window attention.", high=1e4),
    "window_kv_heads": _count("Key and value heads of sliding-window layers; 0: as in the others.", high=1e5),
    "window_head_dim": _count("Width of a head in sliding-window layers; 0: as in the others."),
    "linear_layers": _count("Layers with linear attention or a state-space mixer in place of attention.", high=1e4),
    "linear_inner": _count("Width of such a mixer's values (its inner width)."),
    "linear_projection": _count("Values that such a mixer's input projection makes per token."),
    "linear_keys": _count("Width of its keys and queries (B and C), convolved with the values."),
    "linear_state_dim": _count("State values that it keeps per value channel."),
    "linear_conv": _count("Kernel length of its convolution; 0 without.", high=1e3),
    "linear_extra_params": _count("Its other parameters: biases, decay rates, norms, low-rank projections.", high=1e12),
    "linear_state_bits": _count("Bits of one state value.", 16, "bit", low=1, high=64),
    "no_mixer_layers": _count("Layers that are a feed-forward network alone.", high=1e4),
    "no_ffn_layers": _count("Layers without a feed-forward network.", high=1e4),
    "lookup_params": _count("Parameters that are only looked up: position tables, per-layer embeddings.", high=1e12),
    "extra_params": _count("Other parameters that the arithmetic leaves out.", high=1e12),
    "mtp_layers": _count("Multi-token-prediction blocks; counted apart.", high=1e3),
    "stored_bits": Parameter(16, 0, 64, "bit", "Bits per quantized parameter of the published checkpoint, scales included; 16 when "
                             "it is not quantized.", above=0),
    "stored_attention": _flag("the published checkpoint quantizes attention and state mixers", 1),
    "stored_ffn": _flag("it quantizes dense feed-forward networks and shared experts", 1),
    "stored_embeddings": _flag("it quantizes embedding and LM head"),
    "context_length": _count("Longest context the model was made for.", unit="tokens", high=1e9),
}

MODEL_NOTES = ("published_weights", "stated_params", "stated_active_params", "stated_source", "family")
"""What a catalog entry may say beside its fields, for checking and reading."""

_MLA = "Multi-head latent attention: DeepSeek-V2, arXiv:2405.04434, section 2.1."
_GQA = "Grouped-query attention: arXiv:2305.13245."
_SSM = "Mamba-2: arXiv:2405.21060; gated delta networks: arXiv:2412.06464."

MODEL_COLUMNS: dict[str, Column] = {
    "qk_head_dim": Column("qk_nope_dim + qk_rope_dim if kv_lora_rank > 0 else head_dim",
                          doc="Width of a query and key head.", source=_MLA),
    "value_head_dim": Column("v_head_dim if v_head_dim > 0 else head_dim", doc="Width of a value head.", source=_MLA),
    "window_kv": Column("window_kv_heads if window_kv_heads > 0 else kv_heads", doc="Key and value heads of a sliding-window layer."),
    "window_qk_dim": Column("window_head_dim if window_head_dim > 0 else qk_head_dim",
                            doc="Width of a query and key head of a sliding-window layer."),
    "window_value_dim": Column("window_head_dim if window_head_dim > 0 else value_head_dim",
                               doc="Width of a value head of a sliding-window layer."),
    "attention_params": Column(
        "(hidden * q_lora_rank + q_lora_rank * heads * qk_head_dim if q_lora_rank > 0 else hidden * heads * qk_head_dim)"
        " + hidden * (kv_lora_rank + qk_rope_dim) + kv_lora_rank * heads * (qk_nope_dim + v_head_dim)"
        " + heads * v_head_dim * hidden"
        " if kv_lora_rank > 0 else hidden * heads * qk_head_dim * (1 + attention_gate) + hidden * kv_heads * qk_head_dim"
        " + hidden * kv_heads * value_head_dim * (1 - value_from_key) + heads * value_head_dim * hidden",
        unit="parameters", doc="Attention matrices of one full-attention layer.", source=f"{_GQA} {_MLA}"),
    "attention_other_params": Column(
        "(q_lora_rank + kv_lora_rank if kv_lora_rank > 0 else 0) + qk_norm * 2 * qk_head_dim + qk_norm_wide * (heads + kv_heads) * qk_head_dim + sinks * heads"
        " + qkv_bias * (heads * qk_head_dim * (1 + attention_gate) + kv_heads * (qk_head_dim + value_head_dim)) + o_bias * hidden",
        unit="parameters", doc="Biases, sinks and query, key and latent norms of one full-attention layer."),
    "window_attention_params": Column(
        "attention_params if window_kv_heads < 1 and window_head_dim < 1 else hidden * heads * window_qk_dim * (1 + attention_gate)"
        " + hidden * window_kv * (window_qk_dim + window_value_dim) + heads * window_value_dim * hidden",
        unit="parameters", doc="Attention matrices of one sliding-window layer.", source=_GQA),
    "window_other_params": Column(
        "attention_other_params if window_kv_heads < 1 and window_head_dim < 1 else qk_norm * 2 * window_qk_dim"
        " + qk_norm_wide * (heads + window_kv) * window_qk_dim + sinks * heads"
        " + qkv_bias * (heads * window_qk_dim * (1 + attention_gate) + window_kv * (window_qk_dim + window_value_dim)) + o_bias * hidden",
        unit="parameters", doc="Biases, sinks and norms of one sliding-window layer."),
    "linear_params": Column("hidden * linear_projection + linear_inner * hidden", unit="parameters",
                            doc="Input and output projection of one linear-attention or state-space mixer.", source=_SSM),
    "linear_other_params": Column("linear_conv * (linear_inner + linear_keys) + linear_extra_params", unit="parameters",
                                  doc="Convolution and small parameters of one such mixer.", source=_SSM),
    "ffn_params": Column("(2 + gated) * hidden * ffn + mlp_bias * ((1 + gated) * ffn + hidden)", unit="parameters",
                         doc="Dense feed-forward network of one layer.", source="SwiGLU: arXiv:2002.05202."),
    "expert_bias_params": Column("expert_bias * ((1 + gated) * expert_ffn + hidden)", unit="parameters", doc="Biases of one routed expert."),
    "expert_params": Column("(2 + gated) * hidden * expert_ffn + expert_bias_params", unit="parameters",
                            doc="One routed expert.", source="Mixtral: arXiv:2401.04088."),
    "shared_width": Column("shared_ffn if shared_ffn > 0 else shared_experts * expert_ffn",
                           doc="Inner width of the shared experts together."),
    "shared_params": Column("(2 + gated) * hidden * shared_width + shared_gate * hidden", unit="parameters",
                            doc="The shared experts of one layer.", source="DeepSeekMoE: arXiv:2401.06066."),
    "router_params": Column("(hidden + router_bias) * experts", unit="parameters", doc="The router of one layer."),
    "norm_params": Column("norms_per_layer * hidden", unit="parameters", doc="Norms of one layer."),
    "embedding_params": Column("vocab * hidden", unit="parameters", doc="The input embedding table."),
    "lm_head_params": Column("0 if tied > 0 else vocab * hidden", unit="parameters",
                             doc="The LM head's own table; 0 when it is the embedding table."),
    "dense_layers": Column("max(layers - moe_layers - no_ffn_layers, 0)", doc="Layers with a dense feed-forward network."),
    "full_layers": Column("max(layers - window_layers - linear_layers - no_mixer_layers, 0)",
                          doc="Layers that attend to the whole context."),
    "mixer_params": Column(
        "full_layers * (attention_params + attention_other_params) + window_layers * (window_attention_params + window_other_params)"
        " + linear_layers * (linear_params + linear_other_params)",
        unit="parameters", doc="Attention and state mixers of all layers."),
    "unrouted_params": Column(
        "mixer_params + layers * norm_params + dense_layers * ffn_params + moe_layers * (router_params + shared_params)"
        " + hidden + extra_params + lookup_params",
        unit="parameters", doc="Everything but embedding, LM head and routed experts; the final norm included."),
    "params": Column("unrouted_params + moe_layers * experts * expert_params + embedding_params + lm_head_params",
                     unit="parameters", doc="All parameters."),
    "active_params": Column(
        "unrouted_params + moe_layers * experts_per_token * expert_params + embedding_params + lm_head_params",
        unit="parameters", doc="Parameters used by one token, the input embedding counted."),
    "gemm_params": Column("mixer_params + layers * norm_params + dense_layers * ffn_params + moe_layers * (router_params + shared_params)"
                          " + hidden + extra_params + moe_layers * experts_per_token * expert_params + embedding_params",
                          unit="parameters", doc="Parameters that work on a token: the active ones and one vocabulary table, "
                          "the LM head's; an input embedding of its own is only looked up."),
    "block_params": Column("(unrouted_params + moe_layers * experts * expert_params) / layers", unit="parameters",
                           doc="An average layer, as held in memory."),
    "block_active_params": Column("(unrouted_params + moe_layers * experts_per_token * expert_params) / layers",
                                  unit="parameters", doc="An average layer, as one token uses it."),
    "block_dense_params": Column(
        "attention_params + attention_other_params + norm_params + (router_params + shared_params if moe_layers > 0 else ffn_params)",
        unit="parameters", doc="One layer of the last kind (mixture of experts, where the model has them), routed experts left out."),
    "mtp_params": Column(
        "mtp_layers * (attention_params + attention_other_params + norm_params + 2 * hidden * hidden + 3 * hidden"
        " + (router_params + shared_params + experts * expert_params if moe_layers > 0 else ffn_params))",
        unit="parameters", doc="Multi-token-prediction blocks with their projections; not part of params.",
        source="DeepSeek-V3, arXiv:2412.19437, section 2.2."),
    "kv_width": Column("kv_lora_rank + qk_rope_dim if kv_lora_rank > 0 else kv_heads * (qk_head_dim + value_head_dim)", unit="values",
                       doc="KV cache values per token and full-attention layer: keys and values, or the latent and its rotary part.",
                       source=f"{_GQA} {_MLA}"),
    "window_kv_width": Column("kv_width if window_kv_heads < 1 and window_head_dim < 1 else window_kv * (window_qk_dim + window_value_dim)",
                              unit="values", doc="KV cache values per token and sliding-window layer.", source=_GQA),
    "state_bytes": Column(
        "linear_layers * (linear_inner * linear_state_dim * linear_state_bits"
        " + (linear_inner + linear_keys) * max(linear_conv - 1, 0) * 16) / 8",
        unit="bytes", doc="State of all linear layers per sequence, whatever its length; the convolution's in 16 bits.", source=_SSM),
    "quantized_params": Column(
        "stored_attention * (full_layers * attention_params + window_layers * window_attention_params + linear_layers * linear_params)"
        " + stored_ffn * (dense_layers * ffn_params + moe_layers * shared_params)"
        " + stored_embeddings * (embedding_params + lm_head_params) + moe_layers * experts * (2 + gated) * hidden * expert_ffn",
        unit="parameters", doc="Parameters that the published checkpoint holds at stored_bits, when it is quantized."),
    "kept_params": Column("max(params - quantized_params - moe_layers * experts * expert_bias_params, 0)", unit="parameters",
                          doc="Parameters that a quantized checkpoint keeps in 16 bits, the experts' biases apart: embeddings, routers, norms."),
    "stored_gb": Column("(quantized_params * stored_bits + (kept_params + moe_layers * experts * expert_bias_params) * 16) / 8e9", unit="GB",
                        doc="Size of the published checkpoint, without prediction blocks and encoders."),
    "lora_attention_params": Column(
        "lora_rank * ((full_layers + window_layers) * ("
        "(hidden + 2 * q_lora_rank + heads * qk_head_dim if q_lora_rank > 0 else hidden + heads * qk_head_dim)"
        " + hidden + 2 * kv_lora_rank + qk_rope_dim + heads * (qk_nope_dim + v_head_dim) + heads * v_head_dim + hidden)"
        " if kv_lora_rank > 0 else"
        " full_layers * (4 * hidden + (1 + attention_gate) * heads * qk_head_dim + kv_heads * qk_head_dim"
        " + heads * value_head_dim + kv_heads * value_head_dim - value_from_key * (hidden + kv_heads * value_head_dim))"
        " + window_layers * (4 * hidden + (1 + attention_gate) * heads * window_qk_dim + window_kv * window_qk_dim"
        " + heads * window_value_dim + window_kv * window_value_dim))"
        " + lora_rank * linear_layers * (2 * hidden + linear_projection + linear_inner)",
        unit="parameters", doc="LoRA adapters on the attention matrices (q k v o, or the latent ones) and on state mixers.",
        source="LoRA: arXiv:2106.09685; r (d_in + d_out) per matrix."),
    "lora_all_params": Column(
        "lora_attention_params + (2 + gated) * lora_rank * (dense_layers * (hidden + ffn)"
        " + moe_layers * (experts * (hidden + expert_ffn) + (shared_experts * (hidden + expert_ffn) if shared_ffn < 1"
        " else hidden + shared_ffn)))",
        unit="parameters", doc="LoRA adapters on attention and feed-forward matrices (every expert counted).",
        source="LoRA: arXiv:2106.09685."),
}  # fmt: skip

GPU_FIELDS: Fields = {
    "memory_gb": _size("Memory as the driver reports it.", "GB"),
    "bandwidth_tb_s": _size("Peak memory bandwidth.", "TB/s"),
    "bf16_tflops": _size("Peak dense BF16 tensor rate.", "TFLOP/s"),
    "fp8_tflops": _size("Peak dense FP8 tensor rate; blank without FP8.", "TFLOP/s"),
    "int8_tops": _size("Peak dense INT8 tensor rate; blank without INT8.", "TOP/s"),
    "fp4_tflops": _size("Peak dense FP4 tensor rate; blank without FP4.", "TFLOP/s"),
    "nvlink_gb_s": _size("GPU-to-GPU link, both directions; blank without.", "GB/s"),
    "pcie_gb_s": _size("Host link, one direction.", "GB/s"),
    "node_gpus": _count("GPUs that this link joins; larger groups go over the network.", 8, "GPUs", low=1, high=1e5),
    "link_us": _size("Latency of one hop over that link.", "us", 0.6, 1e4),
    "network_gb_s": _size("Network of one GPU, one direction: a 400 Gb/s adapter each, as in DGX H100.", "GB/s", 50),
    "network_us": _size("Latency of one hop over the network.", "us", 2.7, 1e4),
    "watts": _size("Board power.", "W"),
    "usd_per_hour": Parameter(None, 0, 1e6, "$/GPU-hour", "Price of one GPU."),
}
GPU_REQUIRED = ("memory_gb", "bandwidth_tb_s", "bf16_tflops")
GPU_NOTES = ("vendor",)

FORMATS: dict[str, tuple[float, str]] = {
    "bf16": (16, "bfloat16"),
    "fp16": (16, "IEEE half precision"),
    "fp8": (8, "8-bit floating point (E4M3), one scale per tensor: nothing to count"),
    "fp8-block": (8 + 32 / 128**2, "8-bit floating point with a 32-bit scale per 128 x 128 block (DeepSeek-V3)"),
    "fp8-token": (8 + 32 / 128, "8-bit floating point with a 32-bit scale per 128 values, such as a token's head in a KV cache"),
    "int8": (8, "8-bit integer, one scale per tensor or row: nothing to count"),
    "int8-group": (8 + 16 / 128, "8-bit integer with a 16-bit scale per 128 values, such as a token's head in a KV cache"),
    "mxfp4": (4.25, "4-bit floating point with an 8-bit scale per 32 values (OCP MX v1.0)"),
    "nvfp4": (4.5, "4-bit floating point with an 8-bit scale per 16 values"),
    "int4": (4.25, "4-bit integer, group of 128 with 16-bit scale and zero point"),
    "nf4": (4.5, "4-bit NormalFloat of bitsandbytes, a 32-bit scale per 64 values (QLoRA, arXiv:2305.14314, without double quantization)"),
    **{name: (bits, f"GGUF {name.upper()}: blocks of 32 values with a 16-bit scale{more}") for name, bits, more in (
        ("q4_0", 4.5, ""), ("q4_1", 5, " and minimum"), ("q5_0", 5.5, ""), ("q5_1", 6, " and minimum"), ("q8_0", 8.5, ""))},
    **{name: (bits, f"GGUF {name.upper()}: bits per weight of a whole file, its mixture of types counted") for name, bits in (
        ("iq1_s", 2.0), ("iq1_m", 2.15), ("iq2_xxs", 2.38), ("iq2_xs", 2.59), ("iq2_s", 2.74), ("iq2_m", 2.93), ("iq3_xxs", 3.25),
        ("iq3_xs", 3.5), ("iq3_s", 3.66), ("iq3_m", 3.76), ("iq4_xs", 4.25), ("iq4_nl", 4.5), ("q2_k", 3.2), ("q2_k_s", 2.97), ("q3_k_s", 3.64),
        ("q3_k_m", 3.9), ("q3_k_l", 4.3), ("q4_k_s", 4.67), ("q4_k_m", 4.9), ("q5_k_s", 5.57), ("q5_k_m", 5.7), ("q6_k", 6.6))},
}  # fmt: skip
"""Number formats that weights and the KV cache are stored in: bits per value, and what they are.

Those of GGUF files after llama.cpp's table of bits per weight (tools/quantize/README.md) and the pull requests that added them.
"""
FORMAT_FIELDS: Fields = {
    "bits": _size("Bits per value, scales included.", "bit", high=64),
}


def _share(doc: str, high: float = 1.0) -> Parameter:
    return Parameter(None, None, high, "", doc, above=0)


def _time(doc: str, unit: str) -> Parameter:
    return Parameter(None, 0, 1e6, unit, doc)


def _times(doc: str) -> Parameter:
    return Parameter(None, None, 1e3, "x", doc, above=0)


HARDWARE_CONSTANTS: Fields = {
    "weight_mbu": _share("Share of the peak bandwidth at which weights are read."),
    "expert_mbu": _share("Share of the peak bandwidth at which routed experts are read."),
    "kv_mbu": _share("Share of the peak bandwidth at which the KV cache is read."),
    "gemm_mfu": _share("Share of the peak rate that matrix products of 16-bit weights reach."),
    "quantized_mfu": _share("The same of quantized weights, at the rate of the format that they are computed in."),
    "launch_us": _time("Time of one kernel of a pass beyond its bytes and arithmetic: launch, ramp and tail.", "us"),
    "step_ms": _time("Fixed time of a pass: scheduling, preparing its inputs.", "ms"),
    "moe_row_us": _time("Time per token row and layer of experts: routing, gathering, scattering, many small groups.", "us"),
    "sequence_us": _time("Host work per token that is put out: sampling, detokenizing, streaming, bookkeeping.", "us"),
    "link_share": _share("Share of the GPU-to-GPU link that an all-reduce reaches."),
    "moe_prefill": _times("How many times as long a mixture's prompt takes as its arithmetic says."),
    "queue_share": _share("Share of the other requests whose prompts come before a request's own; the rest of their "
                          "prefill holds up the sequences that decode."),
    "first_token_ms": _time("Fixed part of the time to the first token.", "ms"),
    "first_passes": _times("Passes of the running batch that a new request waits for."),
    "time_factor": _times("What a pass takes over what the other constants say, where this model and format were measured."),
    "spec_round_ms": _time("Fixed time of a speculative round beyond the passes: proposing, rejecting, bookkeeping.", "ms"),
    "row_us": _time("Host time per drafted row that is verified.", "us"),
    "draft_pass_us": _time("Fixed time of one pass of a draft.", "us"),
    "draft_layer_us": _time("Fixed time of one layer of a draft: its launches.", "us"),
    "tree_round_ms": _time("Further fixed time of a round that verifies a tree.", "ms"),
    "tree_row_us": _time("Further time per row of such a round: its mask.", "us"),
}
"""What measurements of servers and of speculation say; ``scenario calibrate`` fits those of serving."""

HARDWARE_ERRORS: Fields = {
    "time_error": Parameter(None, 0, 10, "", "How far off TPOT may be: low = t / (1 + e), high = t (1 + e)."),
    "speedup_error": Parameter(None, 0, 10, "", "The same for the speedup of a chain on a dense model."),
    "ttft_error": Parameter(None, 0, 10, "", "The same for the time to the first token."),
    "data_batch": _count("Largest batch that was measured.", None, "sequences"),
    "data_context": _count("Longest mean context that was measured.", None, "tokens", high=1e9),
    "data_gpus": _count("Most GPUs that were measured together.", None, "GPUs"),
    "points": Parameter(None, 0, 1e12, "", "Measurements that the set was fitted to.", kind="integer"),
    "calibrated": Parameter(None, kind="flag", doc="1 when the set comes from the user's own measurements."),
    "cell": Parameter(None, kind="flag", doc="1 when this model and format were measured on this GPU and engine."),
}
HARDWARE_FIELDS: Fields = {**HARDWARE_CONSTANTS, **HARDWARE_ERRORS}
