"""The catalog's own tables: what a model, a GPU and a number format are, and what follows from it.

Model arithmetic: decoder layers of attention (grouped-query or multi-head latent), a SwiGLU feed-forward
network or routed experts, and norms, as laid out in the models' config.json files.
"""

from __future__ import annotations

from scenario.spec import Column, Parameter

Fields = dict[str, Parameter]


def _count(doc: str, default: float | None = 0, unit: str = "", low: float = 0, high: float = 1e7) -> Parameter:
    return Parameter(default, low, high, unit, doc, kind="integer")


def _size(doc: str, unit: str, default: float | None = None, high: float = 1e6) -> Parameter:
    return Parameter(default, None, high, unit, doc, above=0)


MODEL_FIELDS: Fields = {
    "hidden": _count("Width of the residual stream.", None, low=1),
    "layers": _count("Decoder layers.", None, low=1, high=1e4),
    "heads": _count("Query heads.", None, low=1, high=1e5),
    "kv_heads": _count("Key and value heads (grouped-query attention).", high=1e5),
    "head_dim": _count("Width of one head."),
    "ffn": _count("Inner width of the dense feed-forward network."),
    "vocab": _count("Rows of the embedding table.", None, low=1),
    "tied": _count("1 when the LM head is the embedding table, else 0.", high=1),
    "qk_norm": _count("1 when queries and keys of every layer are normalised per head.", high=1),
    "norms_per_layer": _count("Norm vectors of the hidden width per layer.", 2, high=16),
    "moe_layers": _count("Layers whose feed-forward network is a mixture of experts.", high=1e4),
    "experts": _count("Routed experts per such layer.", high=1e6),
    "experts_per_token": _count("Routed experts that work on one token.", high=1e6),
    "shared_experts": _count("Experts that work on every token.", high=1e4),
    "expert_ffn": _count("Inner width of one expert."),
    "kv_lora_rank": _count("Rank of the KV latent (multi-head latent attention); 0 without."),
    "q_lora_rank": _count("Rank of the query latent; 0 without."),
    "qk_nope_dim": _count("Width of a query/key head without rotary part (latent attention)."),
    "qk_rope_dim": _count("Width of the rotary part of a head (latent attention)."),
    "v_head_dim": _count("Width of a value head (latent attention)."),
    "window": _count("Tokens that a sliding-window layer attends to.", unit="tokens", high=1e9),
    "window_layers": _count("Layers with sliding-window attention.", high=1e4),
    "extra_params": _count("Biases, sinks and other parameters that the arithmetic leaves out.", high=1e12),
    "max_context": _count("Longest context the model was made for.", unit="tokens", high=1e9),
}

MODEL_NOTES = ("published_weights", "stated_params", "stated_active_params", "stated_source")
"""What a catalog entry may say beside its fields, for checking and reading."""

_MLA = "Multi-head latent attention: DeepSeek-V2, arXiv:2405.04434, section 2.1."
_GQA = "Grouped-query attention: arXiv:2305.13245."

MODEL_COLUMNS: dict[str, Column] = {
    "qk_head_dim": Column("qk_nope_dim + qk_rope_dim if kv_lora_rank > 0 else head_dim",
                          doc="Width of a query and key head.", source=_MLA),
    "value_head_dim": Column("v_head_dim if kv_lora_rank > 0 else head_dim", doc="Width of a value head.", source=_MLA),
    "attention_params": Column(
        "(hidden * q_lora_rank + q_lora_rank * heads * qk_head_dim if q_lora_rank > 0 else hidden * heads * qk_head_dim)"
        " + hidden * (kv_lora_rank + qk_rope_dim) + kv_lora_rank * heads * (qk_nope_dim + v_head_dim)"
        " + heads * v_head_dim * hidden"
        " if kv_lora_rank > 0 else 2 * hidden * heads * head_dim + 2 * hidden * kv_heads * head_dim",
        unit="parameters", doc="Attention matrices of one layer.", source=f"{_GQA} {_MLA}"),
    "ffn_params": Column("3 * hidden * ffn", unit="parameters", doc="Dense SwiGLU network of one layer.",
                         source="SwiGLU: arXiv:2002.05202."),
    "expert_params": Column("3 * hidden * expert_ffn", unit="parameters", doc="One expert.",
                            source="Mixtral: arXiv:2401.04088."),
    "norm_params": Column("norms_per_layer * hidden + 2 * head_dim * qk_norm", unit="parameters",
                          doc="Norms of one layer."),
    "embedding_params": Column("vocab * hidden", unit="parameters", doc="The input embedding table."),
    "lm_head_params": Column("0 if tied > 0 else vocab * hidden", unit="parameters",
                             doc="The LM head's own table; 0 when it is the embedding table."),
    "dense_layers": Column("max(layers - moe_layers, 0)", doc="Layers with a dense feed-forward network."),
    "full_layers": Column("max(layers - window_layers, 0)", doc="Layers that attend to the whole context."),
    "unrouted_params": Column(
        "layers * (attention_params + norm_params) + dense_layers * ffn_params"
        " + moe_layers * (hidden * experts + shared_experts * expert_params) + hidden + extra_params",
        unit="parameters", doc="Everything but embedding, LM head and routed experts; the final norm included."),
    "params": Column("unrouted_params + moe_layers * experts * expert_params + embedding_params + lm_head_params",
                     unit="parameters", doc="All parameters."),
    "active_params": Column(
        "unrouted_params + moe_layers * experts_per_token * expert_params + embedding_params + lm_head_params",
        unit="parameters", doc="Parameters used by one token, the input embedding counted."),
    "gemm_params": Column("unrouted_params + moe_layers * experts_per_token * expert_params + embedding_params",
                          unit="parameters", doc="Parameters that work on a token: the active ones and one vocabulary table, "
                          "the LM head's; an input embedding of its own is only looked up."),
    "block_params": Column("(unrouted_params + moe_layers * experts * expert_params) / layers", unit="parameters",
                           doc="An average layer, as held in memory."),
    "block_active_params": Column("(unrouted_params + moe_layers * experts_per_token * expert_params) / layers",
                                  unit="parameters", doc="An average layer, as one token uses it."),
    "block_dense_params": Column(
        "attention_params + norm_params + (hidden * experts + shared_experts * expert_params if moe_layers > 0 else ffn_params)",
        unit="parameters", doc="One layer of the last kind (mixture of experts, where the model has them), routed experts left out."),
    "kv_width": Column("kv_lora_rank + qk_rope_dim if kv_lora_rank > 0 else 2 * kv_heads * head_dim", unit="values",
                       doc="KV cache values per token and layer: keys and values, or the latent and its rotary part.",
                       source=f"{_GQA} {_MLA}"),
    "lora_attention_params": Column(
        "lora_rank * layers * ("
        "(hidden + 2 * q_lora_rank + heads * qk_head_dim if q_lora_rank > 0 else hidden + heads * qk_head_dim)"
        " + hidden + 2 * kv_lora_rank + qk_rope_dim + heads * (qk_nope_dim + v_head_dim) + heads * v_head_dim + hidden"
        " if kv_lora_rank > 0 else 2 * (hidden + heads * head_dim) + 2 * (hidden + kv_heads * head_dim))",
        unit="parameters", doc="LoRA adapters on the attention matrices (q k v o, or the latent ones).",
        source="LoRA: arXiv:2106.09685; r (d_in + d_out) per matrix."),
    "lora_all_params": Column(
        "lora_attention_params + 3 * lora_rank * (dense_layers * (hidden + ffn)"
        " + moe_layers * (experts + shared_experts) * (hidden + expert_ffn))",
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
    "watts": _size("Board power.", "W"),
    "usd_per_hour": Parameter(None, 0, 1e6, "$/GPU-hour", "Price of one GPU."),
}
GPU_REQUIRED = ("memory_gb", "bandwidth_tb_s", "bf16_tflops")
GPU_NOTES = ("vendor",)

FORMATS: dict[str, tuple[float, str]] = {
    "bf16": (16, "bfloat16"),
    "fp16": (16, "IEEE half precision"),
    "fp8": (8, "8-bit floating point (E4M3), scales not counted"),
    "int8": (8, "8-bit integer, scales not counted"),
    "mxfp4": (4.25, "4-bit floating point with an 8-bit scale per 32 values (OCP MX v1.0)"),
    "nvfp4": (4.5, "4-bit floating point with an 8-bit scale per 16 values"),
    "int4": (4.25, "4-bit integer, group of 128 with 16-bit scale and zero point"),
}
"""Number formats that weights and the KV cache are stored in: bits per value, and what they are."""
FORMAT_FIELDS: Fields = {
    "bits": _size("Bits per value, scales included.", "bit", high=64),
}


def _share(doc: str, high: float = 1.0) -> Parameter:
    return Parameter(None, None, high, "", doc, above=0)


def _time(doc: str, unit: str) -> Parameter:
    return Parameter(None, 0, 1e6, unit, doc)


HARDWARE_CONSTANTS: Fields = {
    "weight_mbu": _share("Share of the peak bandwidth at which weights are read."),
    "kv_mbu": _share("Share of the peak bandwidth at which the KV cache is read."),
    "gemm_mfu": _share("Share of the peak rate that matrix products reach, in decoding and in prefill."),
    "expert_mbu": _share("Share of the peak bandwidth at which routed experts are read."),
    "step_ms": _time("Fixed time of a step: scheduling, sampling, launching.", "ms"),
    "layer_us": _time("Fixed time of a layer: its kernels' launches and tails.", "us"),
    "moe_layer_us": _time("Further fixed time of a layer of experts: routing, gathering, scattering.", "us"),
    "sequence_us": _time("Time per running sequence and step: scheduling, sampling, bookkeeping.", "us"),
    "hop_us": _time("Latency of one all-reduce per doubling of the GPUs.", "us"),
    "link_share": _share("Share of the GPU-to-GPU link that an all-reduce reaches."),
    "prefill_share": _share("Share of the prefill work that holds up decoding sequences.", 2.0),
    "first_token_ms": _time("Fixed part of the time to the first token.", "ms"),
    "queue_share": _share("Share of the other requests whose prompts come before a request's own.", 10.0),
    "draft_pass_us": _time("Fixed time of one pass of a draft beyond its layers' launches.", "us"),
}
"""What ``scenario calibrate`` fits."""

HARDWARE_ERRORS: Fields = {
    "time_error": Parameter(None, 0, 10, "", "Relative error of TPOT that nine of ten held-out measurements stay within."),
    "speedup_error": Parameter(None, 0, 10, "", "The same for a speedup over vanilla decoding."),
    "ttft_error": Parameter(None, 0, 10, "", "The same for the time to the first token."),
    "points": Parameter(None, 0, 1e12, "", "Measurements that the set was fitted to.", kind="integer"),
    "calibrated": Parameter(None, kind="flag", doc="1 when the set comes from the user's own measurements."),
}
HARDWARE_FIELDS: Fields = {**HARDWARE_CONSTANTS, **HARDWARE_ERRORS}
