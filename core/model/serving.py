"""Columns that only some tables need: serving (prefill beside decoding, TTFT) and what an estimate says of itself.

Serving columns are there when rows give ``isl`` and ``osl``; the others when a time model that is not the bound is
used. A time model answers the *open questions* here; the answers below are those of the bound. Units: GB is 1e9
bytes, so GB / (TB/s) and GFLOP / (TFLOP/s) are milliseconds.
"""

from __future__ import annotations

from dataclasses import replace

from scenario.model import parallel
from scenario.model.spec import Column, Parameter

ENGINES = ("any", "vllm", "vllm-v0", "sglang", "trtllm", "llamacpp", "hf", "other")

INPUTS: dict[str, Parameter] = {
    "isl": Parameter(None, 0, 1e9, "tokens", "Prompt tokens of a request (input sequence length)."),
    "osl": Parameter(None, 1, 1e9, "tokens", "Output tokens of a request (output sequence length)."),
    "engine": Parameter("any", kind="choice", choices=ENGINES, doc="Serving engine, whose constants the estimate takes; any: those of the GPU."),
    "plain_tokens_per_s": Parameter(
        None, 0, 1e9, "tokens/s", "Measured speed of plain decoding at this batch, all sequences together, prompts aside; an estimate is then "
        "counted from it, and the speedup with it.", above=0, derive="blank"),
}  # fmt: skip
"""Inputs that a row may give and that are columns only then."""

CONTEXT = "isl + osl / 2"
"""Mean cache length while a request decodes, where the row gives no context."""

_REDUCED = " or ".join(f'weights == "{name}"' for name in ("fp8", "fp8-block", "fp8-token", "nvfp4", "mxfp4", "published"))
CACHE_FORMAT = f'"fp8" if engine == "trtllm" and ({_REDUCED}) else "bf16"'
"""The KV cache of a served model where the row does not say it."""
CACHE_DOC = (
    "Blank in an estimate: FP8 in TensorRT-LLM with FP8 or FP4 weights, as their published checkpoints ask for, else BF16, which vLLM "
    "and SGLang take unless told otherwise."
)

_CONTINUOUS = "Continuous batching: Yu et al. 2022 (Orca), OSDI."
_LITTLE = "Little's law: requests in flight / time of a request."

QUESTIONS: dict[str, Column] = {
    "prefill_ms": Column("prefill_gflops / (peak_tflops * gpus * mfu)", "ms", "Computing one prompt, alone on the GPUs."),
    "prefill_share": Column("1", "%", "Share of the prefill work that holds up the sequences which decode meanwhile."),
    "first_token_ms": Column("0", "ms", "Fixed time before the first token that is not computing: tokenizing, scheduling, transport."),
    "first_passes": Column("1", "", "Passes of the others that a request waits for before its first token."),
    "interference_ms": Column("others / osl * tokens_per_round * prefill_ms * prefill_share", "ms",
                              "Prefill of the other requests that arrive during one round, at a steady state; a request's own prompt "
                              "comes before its first token.", source=_CONTINUOUS),
    "baseline_interference_ms": Column("others / osl * prefill_ms * prefill_share", "ms", "The same per step of vanilla decoding.",
                                       source=_CONTINUOUS),
    "queue_share": Column("0", "%", "Share of the other requests whose prompts are computed before a request's own."),
}
"""Open questions of serving."""

COLUMNS: dict[str, Column] = {
    "others": Column("max(batch - 1, 0)", "requests", "Requests in flight beside one."),
    "prompt_gpus": Column("gpus", "GPUs", "GPUs that work on one prompt."),
    "prompt_weight_gb": Column("packed_gb(params_hit(1))", "GB", "Weights that a pass of one prompt reads at least, whatever else it computes."),
    "prompt_attention_gflops": Column(
        "isl * (2 * heads * (qk_head_dim + value_head_dim) * (full_layers * isl / 2 + window_layers * min(isl / 2, window_tokens))) / 1e9",
        "GFLOP", "Attention of one prompt, in which a token attends to half the prompt on average."),
    "prefill_gflops": Column("isl * 2 * (gemm_params - embedding_params) / 1e9 + prompt_attention_gflops", "GFLOP",
                             "Arithmetic of one prompt: its tokens through the layers, and attention."),
    **QUESTIONS,
    "baseline_tpot_ms": Column("baseline_ms + baseline_interference_ms", "ms", "Time per output token of vanilla decoding."),
    "tpot_ms": Column("(round_ms + interference_ms) / tokens_per_round if fits and supported > 0 else blank", "ms",
                      "Time per output token (TPOT), prefill of arriving requests included.", source=_CONTINUOUS),
    "ttft_ms": Column("first_token_ms + first_passes * round_ms + prefill_ms * (1 + queue_share * others)"
                      " if fits and supported > 0 else blank", "ms",
                      "Time to the first token: a fixed part, passes under way, the own prompt and part of the others'."),
    "request_ms": Column("ttft_ms + (osl - 1) * tpot_ms", "ms", "A whole request, first token to last."),
    "baseline_request_ms": Column(
        "first_token_ms + first_passes * baseline_ms + prefill_ms * (1 + queue_share * others) + (osl - 1) * baseline_tpot_ms", "ms",
        "A whole request with vanilla decoding."),
    "requests_per_s": Column("batch / request_ms * 1000", "requests/s", "Finished requests per second.", source=_LITTLE),
    "tokens_per_s": Column("batch * osl / request_ms * 1000", "tokens/s", "Output tokens per second, all sequences.", source=_LITTLE),
    "speedup": Column("baseline_request_ms / request_ms if fits and supported > 0 else blank", "x",
                      "Tokens per second against vanilla decoding at the stored weights, prefill included."),
}  # fmt: skip
"""Serving: the columns that come with ``isl`` and ``osl``; those of shared names take their place."""

PREFILL_TRANSFER = "transfer_ms(isl * replicas * pipeline_size)"
"""Communication of one prompt on its replica, where a table gives parallel sizes."""


PARALLEL: dict[str, Column] = {
    **COLUMNS,
    "others": Column("max(batch / replicas - 1, 0)", "requests", "Requests in flight beside one, on its replica."),
    "prompt_gpus": Column("gpus / replicas", "GPUs", "GPUs that work on one prompt: one replica."),
    "prompt_weight_gb": Column("packed_gb(params_hit(replicas))", "GB", "Weights that a pass of one prompt reads at least on its replica."),
}
"""The same with parallel sizes: each replica works on the prompts of its own sequences."""

_STORED = 'weights == "published" and weights_bits'
_FP8 = " or ".join([*(f'weights == "{name}"' for name in ("fp8", "fp8-block", "fp8-token")), f"({_STORED} > 7.9 and weights_bits < 9)"])
_NVFP4 = f'(weights == "nvfp4" or ({_STORED} > 4.4 and weights_bits < 4.6))'
_MXFP4 = f'(weights == "mxfp4" or ({_STORED} < 4.3 and moe_layers > 0))'
_HAS_8 = "not is_blank(gpu_fp8_tflops)"
_HAS_4 = "not is_blank(gpu_fp4_tflops)"
_MIXED = "moe_layers > 0 and {bits} < 6"

ESTIMATE_QUESTIONS: dict[str, Column] = {
    "basis": Column('"bound"', "", "What the times rest on: bound, estimate (measured model, default, calibrated, outside the data), "
                    "measured or extrapolated."),
    "time_error": Column("blank", "%", "How far off TPOT may be, as a factor of 1 and this: from measurements of models left out."),
    "speedup_error": Column("blank", "%", "The same for a speedup, in which part of the error cancels."),
    "inside_data": Column("1", "", "1 where batch, context and GPUs are within what was measured, else 0."),
    "prompt_factor": Column("1", "", "What a prompt takes over what its arithmetic and its transfers say."),
    "step_host_ms": Column("0", "ms", "Host work of one plain step, which is paid per token put out."),
    "round_host_ms": Column("0", "ms", "Host work of one round: per token put out, and what speculation adds."),
}
"""Open questions of a time model about itself."""

ESTIMATE_COLUMNS: dict[str, Column] = {
    "quantized_pass": Column(
        f'1 if (({_FP8}) and {_HAS_8}) or ({_NVFP4} and {_HAS_4}) else 0', "",
        "1 where the arithmetic is in fewer than 16 bits: each product is then preceded by a kernel that quantizes its input."),
    "matmul_tflops": Column(
        f'max(peak_tflops, gpu_fp8_tflops if ({_FP8}) and {_HAS_8} else gpu_fp4_tflops if {_NVFP4} and {_HAS_4}'
        f' else gpu_fp8_tflops if {_MXFP4} and {_HAS_8} and {_HAS_4} else gpu_bf16_tflops)', "TFLOP/s",
        "Peak dense rate of the products with quantized weights: that of their format where the GPU has one, else BF16's."),
    "wide_params": Column(
        f"embedding_params + moe_layers * router_params + ((mixer_params if {_MIXED.format(bits='weights_bits')} else 0)"
        f" + (dense_layers * ffn_params + moe_layers * shared_params if {_MIXED.format(bits='weights_bits')} and weights_bits < 4.4 else 0))",
        "parameters", "Parameters that work on a token in 16 bits beside quantized ones: LM head and routers; in mixtures of 4 bits "
        "attention as well, and dense and shared networks unless the format is NVFP4."),
    "kernels": Column(
        "9 * layers + (6 * layers if kv_lora_rank > 0 else 0) + layers * max(qk_norm, qk_norm_wide) + 2 * dense_layers + 7 * moe_layers"
        " + (2 * moe_layers if shared_width > 0 else 0) + 4 * linear_layers + 2 * layers * quantized_pass", "",
        "Kernels of one pass, counted by hand: norms, products, rotation, attention, cache writes, routing, all-reduces."),
    "draft_tree": Column("1 if rows_per_sequence > coalesce(gamma, 1e6) + 1.5 else 0", "", "1 where a tree is verified, not a chain."),
    **ESTIMATE_QUESTIONS,
    "tpot_low_ms": Column("tpot_ms / (1 + time_error)", "ms", "TPOT may be as low as this."),
    "tpot_high_ms": Column("tpot_ms * (1 + time_error)", "ms", "TPOT may be as high as this."),
    "tokens_per_s_low": Column("tokens_per_s / (1 + time_error)", "tokens/s", "Throughput may be as low as this."),
    "tokens_per_s_high": Column("tokens_per_s * (1 + time_error)", "tokens/s", "Throughput may be as high as this."),
    "speedup_low": Column('speedup if method == "vanilla" else speedup / (1 + speedup_error)', "x", "The speedup may be as low as this."),
    "speedup_high": Column('speedup if method == "vanilla" else speedup * (1 + speedup_error)', "x", "The speedup may be as high as this."),
    "verdict": Column('"baseline" if method == "vanilla" else "outside the data" if inside_data < 1 and speedup_high >= 1'
                      ' else "better" if speedup_low > 1 else "worse" if speedup_high < 1 else "too close to call"', "",
                      "Whether the method beats vanilla decoding: said only where the whole interval is on one side of 1, and never "
                      "better outside the data."),
    "usd_low": Column("usd_per_million_tokens / (1 + time_error)", "$/1M tokens", "The price may be as low as this."),
    "usd_high": Column("usd_per_million_tokens * (1 + time_error)", "$/1M tokens", "The price may be as high as this."),
}  # fmt: skip
"""What an estimate says of itself; present when a time model other than the bound is used."""
HOST: dict[str, str] = {"baseline_ms": "step_host_ms", "step_ms": "step_host_ms", "verify_ms": "round_host_ms"}
"""The host work that a pass has on top, where a time model says how long it takes."""
PLAIN: dict[str, Column] = {
    "plain_ratio": Column("batch / plain_tokens_per_s * 1000 / ({model}) if not is_blank(plain_tokens_per_s) else 1", "x",
                          "The measured step of plain decoding over the one that the time model has."),
    "plain_gap_ms": Column("max(batch / plain_tokens_per_s * 1000 - ({model}), 0) if not is_blank(plain_tokens_per_s) else 0", "ms",
                           "What a measured step takes beyond the time model's: host work, which is paid per token put out."),
}  # fmt: skip
"""Columns of tables that give a measured speed of plain decoding. A server that is faster than the model is faster in all passes."""
FAR_OFF = 1.5
"""Ratio from which a measured speed of plain decoding is too far from the model's for a verdict."""


def from_plain(found: dict[str, Column], serving: bool) -> dict[str, Column]:
    """The passes of a table counted from its measured speed of plain decoding."""
    model = found["baseline_ms"].formula + (" + baseline_interference_ms" if serving else "")
    columns = {name: replace(column, formula=column.formula.format(model=model)) for name, column in PLAIN.items()}
    for name, tokens in (("baseline_ms", "1"), ("step_ms", "1"), ("verify_ms", "tokens_per_round")):
        columns[name] = replace(found[name], formula=f"({found[name].formula}) * min(plain_ratio, 1) + plain_gap_ms * {tokens}")
    verdict = found["verdict"]
    columns["verdict"] = replace(verdict, formula=f'"too close to call" if method != "vanilla" and plain_ratio > {FAR_OFF} else {verdict.formula}')
    return columns


TYPED: dict[str, str] = {"quantized_pass": '0 if activations == "bf16" else 1', "matmul_tflops": "peak_tflops"}
"""What follows from the input ``activations``, in tables that give it."""

FIRST_QUESTIONS: dict[str, Column] = {
    "ttft_error": Column("blank", "%", "Relative error of TTFT that nine of ten held-out measurements stay within."),
}
FIRST_COLUMNS: dict[str, Column] = {
    **FIRST_QUESTIONS,
    "ttft_low_ms": Column("ttft_ms / (1 + ttft_error)", "ms", "TTFT may be as low as this."),
    "ttft_high_ms": Column("ttft_ms * (1 + ttft_error)", "ms", "TTFT may be as high as this."),
}
"""The same of TTFT, where a table has both."""
EVERY_QUESTION: dict[str, Column] = {**QUESTIONS, **parallel.QUESTIONS, **ESTIMATE_QUESTIONS, **FIRST_QUESTIONS}

SUMMARY = ("basis", "tpot_low_ms", "tpot_high_ms", "tokens_per_s_low", "tokens_per_s_high", "speedup_low", "speedup_high", "verdict",
           "usd_low", "usd_high", "ttft_ms", "ttft_low_ms", "ttft_high_ms", "requests_per_s")  # fmt: skip
"""Further lines of a summary that names none."""
ORDER = (
    "isl", "osl", "engine", "activations", "basis", "hardware", "quantized_pass", "matmul_tflops", "wide_params", "kernels", "draft_tree",
    "inside_data", "prompt_factor", "step_host_ms", "round_host_ms", "prefill_ms", "interference_ms", "ttft_ms", "ttft_low_ms", "ttft_high_ms", "request_ms", "requests_per_s",
    "tpot_low_ms", "tpot_high_ms", "time_error", "tokens_per_s_low", "tokens_per_s_high", "speedup_low", "speedup_high", "verdict",
    "usd_low", "usd_high",
)
"""Where these columns stand among the shared ones: before ``tokens_per_s``."""
