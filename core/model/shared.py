"""The inputs every row has and the columns every row gets, written once for all methods.

The time of a pass comes from a time model (``forward_ms``); methods override the *open questions*.
Units: GB is 1e9 bytes, so GB / (TB/s) and GFLOP / (TFLOP/s) are milliseconds.
"""

from __future__ import annotations

from scenario.model import acceptance, features, parallel
from scenario.model.entities import FORMATS
from scenario.model.spec import Column, Function, Parameter

FORMAT_NAMES = tuple(FORMATS)
_BOUND = "Roofline: Williams, Waterman, Patterson 2009, doi:10.1145/1498765.1498785."

INPUTS: dict[str, Parameter] = {
    "batch": Parameter(None, 1, 1e7, "sequences", "Sequences decoded together.", kind="integer"),
    "context": Parameter(None, 0, 1e9, "tokens",
                         "Mean KV cache length per sequence while decoding; 0 is the weights-only bound."),
    "gpus": Parameter(1, 0, 1e6, "GPUs", "GPUs that serve the model together. Without tp, pp, ep or dp: in the bound memory, "
                      "bandwidth and FLOP/s are pooled ideally, in the estimate it is tp. auto: the smallest power of two that holds the row.",
                      kind="integer", choices=("auto",)),
    "weights": Parameter("bf16", kind="choice", also="formats", choices=(*FORMAT_NAMES, features.PUBLISHED), doc="Format the weights are stored in; "
                         "published: as the model's checkpoint stores them."),
    "kv": Parameter("bf16", kind="choice", also="formats", choices=FORMAT_NAMES, doc="Format of the KV cache."),
    "mfu": Parameter(1, None, 1, "", "Attainable share of the peak FLOP/s; 1 makes the time a bound.", above=0),
    "mbu": Parameter(1, None, 1, "", "Attainable share of the peak bandwidth; 1 makes the time a bound.", above=0),
    "memory_utilization": Parameter(1, None, 1, "", "Share of GPU memory the engine may use (vLLM calls it "
                                    "gpu_memory_utilization); 1 is all of it.", above=0),
    "utilization": Parameter(1, None, 1, "", "Share of the hours paid for in which the GPUs work.", above=0),
    "usd_per_hour": Parameter(None, 0, 1e6, "$/GPU-hour", "Price of one GPU.", derive="gpu_usd_per_hour"),
    **features.INPUTS,
}  # fmt: skip
"""Inputs of a row. ``batch`` and ``context`` have no default: a workload is never guessed."""
REQUIRED = ("model", "gpu", "batch", "context", "method")

SCALARS: dict[str, Parameter] = {
    "lora_rank": Parameter(16, 1, 1e5, "", "Rank of the LoRA adapters counted.", kind="integer"),
    "layer_launch_us": Parameter(50, 0, 1e5, "us", "Time to launch one layer of a small draft in the estimate, whatever its size.",
                                 source="50 to 100 us per layer: a 28-layer 0.6B draft of Qwen3-8B on an H100 costs "
                                 "0.375 of a step, https://specdecode-bench.github.io/ figure 4"),
    "prefill_chunk": Parameter(0, 0, 1e7, "tokens", "Prompt tokens that one pass carries at most (vLLM: max_num_batched_tokens, 2048 to "
                               "8192), whose activations need memory; 0 counts no activations, as the article does.", kind="integer"),
    **features.SCALARS,
}  # fmt: skip
"""Assumptions that hold for the whole table."""

READY = '"no time: a number that it needs is blank" if is_blank(tpot_ms) else "ok" if not is_blank(usd_per_hour) else "no price for this GPU"'
"""The status of a row that can run."""
_SPEC = "Leviathan, Kalman, Matias 2023, arXiv:2211.17192"

FUNCTIONS: tuple[Function, ...] = (
    Function("geometric", ("alpha", "gamma"), "(1 - alpha ** (gamma + 1)) / (1 - alpha) if alpha < 1 else gamma + 1",
             "Expected tokens per round of a chain of gamma drafts, each accepted with chance alpha; bonus included.",
             f"{_SPEC}, equation 1"),
    Function("chain_tokens", ("acceptance", "alpha", "gamma"),
             "at(acceptance, gamma) if not is_blank(acceptance) else geometric(alpha, gamma)",
             "Expected tokens per round of a chain: from the acceptance profile when there is one, else from alpha.",
             f"{_SPEC}, equation 1"),
    Function("experts_hit", ("rows",),
             "experts * (1 - exp(rows * log(max(1 - experts_per_token / experts, 1e-15)))) if experts > 0 else 0",
             "Routed experts of a layer that a number of token rows touch, under uniform routing: n (1 - (1 - k/n)^m).",
             "Expected distinct draws; the power is written with exp and log, which spreadsheets do not underflow."),
    Function("expert_params_hit", ("rows",), "moe_layers * expert_params * experts_hit(rows)",
             "Parameters of routed experts read in one pass over this many token rows."),
    Function("params_hit", ("rows",), "unrouted_params + embedding_params + lm_head_params + moe_layers * expert_params * experts_hit(rows)",
             "Parameters read in one pass over this many token rows."),
    Function("packed_gb", ("count",),
             "(max(count - unquantized_params, 1) * weight_bits + unquantized_params * weights_bits) / 8e9",
             "Bytes of this many parameters as the method stores them, in GB."),
    Function("as_stored_gb", ("count",), "count * weights_bits / 8e9", "Bytes of this many parameters as they are stored, in GB."),
    *acceptance.FUNCTIONS,
    Function("draft_forward_ms", ("read", "active", "head", "layers_", "bits_", "gpus_", "cache_gb"),
             "max((read + head) * bits_ / 8e9 / (gpu_bandwidth_tb_s * gpus_ * mbu), "
             "2 * batch * (active + head) / (gpu_bf16_tflops * gpus_ * mfu * 1e9)) + cache_gb / (gpu_bandwidth_tb_s * gpus_ * mbu)",
             "One forward pass of a draft in the bound: reading its layers and LM head, or their arithmetic; then reading its cache. "
             "Time models may have their own.", _BOUND),
    Function("gemm_ms", ("rows", "weight_gb"),
             "max(weight_gb / (gpu_bandwidth_tb_s * gpus * mbu), rows * 2 * gemm_params / (peak_tflops * gpus * mfu * 1e9))",
             "Matrix products of one pass in the bound: reading the weights, or the arithmetic of the token rows.", _BOUND),
    Function("attention_ms", ("rows", "kv_gb"),
             "max(kv_gb / (gpu_bandwidth_tb_s * gpus * mbu), rows * attention_flops_per_token / (peak_tflops * gpus * mfu * 1e9))",
             "Attention of one pass in the bound: reading the KV cache once, or the arithmetic of every token row.", _BOUND),
    Function("cache_copies", ("size",), "size if kv_lora_rank > 0 else max(size / max(kv_heads, 1), 1)",
             "Copies of a sequence's cache on a tensor-parallel group: KV heads fewer than its GPUs are replicated, a latent is on every one."),
    Function("chunk_gb", ("size",),
             "prefill_chunk * (4 * hidden + (heads * (qk_head_dim + value_head_dim) + (1 + gated) * max(ffn, experts_per_token * expert_ffn"
             " + shared_width)) / size) * 2 / 1e9",
             "Activations of a prefill chunk on each GPU of a tensor-parallel group, in BF16."),
    Function("draft_pass_ms", ("body", "head", "layers_"), "draft_forward_ms(body, body, head, layers_, 16, gpus, 0)",
             "One forward pass of a BF16 draft without a cache, on all GPUs."),
    Function("cache_gb_of", ("values",), "values * kv_bits / 8e9 * batch * context",
             "KV cache of all sequences when a token holds this many values, in GB."),
)  # fmt: skip

QUANTIZATION: dict[str, Column] = {
    "weight_bits": Column("weights_bits", "bit", "Bits per quantized parameter, scales included."),
    "unquantized_params": Column("0", "parameters", "Parameters that a quantizing method leaves as they are stored."),
    "peak_tflops": Column("gpu_bf16_tflops", "TFLOP/s", "Peak dense rate of the format the method computes in."),
    "supported": Column("1", "", "1 where the GPU computes in the method's number format, else 0."),
}
DRAFTING: dict[str, Column] = {
    "rows_per_sequence": Column("1", "rows", "Token rows that the target verifies per sequence and round."),
    "tokens_per_round": Column("1", "tokens", "Expected tokens per sequence and round, the bonus token included."),
    "draft_ms": Column("0", "ms", "Drafting time per round."),
    "draft_weight_gb": Column("0", "GB", "Weights that the draft holds."),
    "draft_kv_bytes_per_token": Column("0", "bytes", "KV cache that the draft holds per token."),
    "lookahead_tokens": Column("rows_per_sequence - 1", "tokens", "KV slots held ahead of the context per sequence."),
}
OPEN: dict[str, Column] = QUANTIZATION | DRAFTING
"""The engine's open questions, with the answer of vanilla decoding."""

COLUMNS: dict[str, Column] = {
    "attention_flops_per_token": Column(
        "2 * heads * ((qk_head_dim + value_head_dim) * full_layers * context"
        " + (window_qk_dim + window_value_dim) * window_layers * min(context, window_tokens))"
        " + 4 * linear_layers * linear_inner * linear_state_dim", "FLOP",
        "Scores and weighted values of one token against the cache, which a window caps; linear layers update and read their state.",
        source="4 heads head_dim per cached token and layer."),
    "flops_per_token": Column("2 * gemm_params + attention_flops_per_token", "FLOP", "Arithmetic of one token row.",
                              source="Kaplan et al. 2020, arXiv:2001.08361, table 1."),
    "kv_bytes_per_token": Column("(full_layers * kv_width + window_layers * window_kv_width) * kv_bits / 8", "bytes",
                                 "KV cache of one token, all layers that keep one."),
    "kv_sequence_gb": Column(
        "(full_layers * kv_width * context + window_layers * window_kv_width * min(context, window_tokens)) * kv_bits / 8e9 + state_bytes / 1e9",
        "GB", "KV cache of one sequence at its context, windows capped, and the state of linear layers."),
    **OPEN,
    "verify_rows": Column("batch * rows_per_sequence", "rows", "Token rows of one verify pass."),
    "experts_touched": Column("experts_hit(verify_rows)", "experts", "Routed experts per layer that a verify pass reads."),
    "params_read": Column("params_hit(verify_rows)", "parameters", "Parameters read in one verify pass."),
    "weight_read_gb": Column("packed_gb(params_read)", "GB", "Weights read in one verify pass."),
    "kv_read_gb": Column("batch * kv_sequence_gb", "GB", "KV cache read in one pass: once per sequence, whatever its rows."),
    "intensity": Column("verify_rows * 2 * gemm_params / (weight_read_gb * 1e9)", "FLOP/byte",
                        "Arithmetic intensity of the verify pass's matrix products.", source=_BOUND),
    "ridge": Column("peak_tflops * mfu / (gpu_bandwidth_tb_s * mbu)", "FLOP/byte",
                    "Ridge point: the intensity from which arithmetic, not memory, sets the time.", source=_BOUND),
    "bound": Column('"attention" if attention_ms(verify_rows, kv_read_gb) > gemm_ms(verify_rows, weight_read_gb)'
                    ' else "compute" if intensity > ridge else "memory"', "",
                    "What limits the verify pass: arithmetic or weight reads of the matrix products, or attention where that takes longer.",
                    source=_BOUND),
    "ridge_rows": Column("weight_gb * peak_tflops * mfu / (gpu_bandwidth_tb_s * mbu * 2 * gemm_params) * 1e9"
                         " if experts < 1 else blank", "rows",
                         "Token rows at which memory time and compute time meet (context 0, dense).", source=_BOUND),
    "baseline_weight_gb": Column("as_stored_gb(params_hit(batch))", "GB",
                                 "Weights that vanilla decoding reads per step, as stored."),
    "step_weight_gb": Column("packed_gb(params_hit(batch))", "GB",
                             "Weights that one plain decode step reads with this method's weights."),
    "baseline_ms": Column("forward_ms(batch, baseline_weight_gb, kv_read_gb)", "ms",
                          "One decode step of vanilla decoding at the stored weights."),
    "step_ms": Column("forward_ms(batch, step_weight_gb, kv_read_gb)", "ms",
                      "One plain decode step with this method's weights."),
    "verify_ms": Column("forward_ms(verify_rows, weight_read_gb, kv_read_gb)", "ms", "One verify pass of the target."),
    "round_ms": Column("draft_ms + verify_ms", "ms", "One round: drafting, then verifying.",
                       source=f"{_SPEC}, theorem 3.8, with the verify pass timed at its own rows."),
    "tpot_ms": Column("round_ms / tokens_per_round if fits and supported > 0 else blank", "ms", "Time per output token (TPOT)."),
    "tokens_per_s": Column("batch * tokens_per_round / round_ms * 1000 if fits and supported > 0 else blank", "tokens/s",
                           "Output tokens per second, all sequences."),
    "tokens_per_s_per_gpu": Column("tokens_per_s / gpus", "tokens/s", "Output tokens per second and GPU."),
    "speedup": Column("tokens_per_round * baseline_ms / round_ms if fits and supported > 0 else blank", "x",
                      "Tokens per second against vanilla decoding at the stored weights.", source=f"{_SPEC}, theorem 3.8"),
    "free_batch": Column("floor(ridge * weight_bits / 16 / rows_per_sequence) if experts < 1 else blank", "sequences",
                         "Largest batch at which verifying costs no more than decoding (context 0, dense)."),
    "useful_flops_share": Column("tokens_per_round / rows_per_sequence", "%", "Share of the verified rows that become tokens."),
    "achieved_mfu": Column("verify_rows * flops_per_token / (round_ms * peak_tflops * gpus * 1e9)", "%",
                           "Share of the peak FLOP/s that a round uses (MFU).", source="MFU: PaLM, arXiv:2204.02311, appendix B."),
    "weight_gb": Column("packed_gb(params)", "GB", "Weights held in memory, every expert included."),
    "kv_gb": Column("batch * kv_sequence_gb", "GB", "KV cache of all sequences at their context."),
    "lookahead_gb": Column("batch * lookahead_tokens * kv_bytes_per_token / 1e9", "GB", "KV slots for tokens being verified."),
    "draft_gb": Column("draft_weight_gb + batch * (context + lookahead_tokens) * draft_kv_bytes_per_token / 1e9", "GB",
                       "Weights and KV cache of the draft."),
    "activation_gb": Column(
        "chunk_gb(1)", "GB",
        "Estimate: per token of a prefill chunk the residual stream in and out of two blocks, queries, attention output and the inner "
        "values of the network, in BF16."),
    "fixed_gb": Column("weight_gb + draft_weight_gb + activation_gb", "GB", "Memory that does not grow with the batch."),
    "memory_gb": Column("weight_gb + kv_gb + lookahead_gb + draft_gb + activation_gb", "GB", "Memory needed."),
    "memory_available_gb": Column("gpu_memory_gb * gpus * memory_utilization", "GB", "Memory that the GPUs offer."),
    "headroom_gb": Column("memory_available_gb - memory_gb", "GB", "Memory left over; negative when it does not fit."),
    "fits": Column("memory_gb <= memory_available_gb", "", "Whether weights, KV cache and draft fit."),
    "sequence_gb": Column("kv_sequence_gb + lookahead_tokens * kv_bytes_per_token / 1e9"
                          " + (context + lookahead_tokens) * draft_kv_bytes_per_token / 1e9", "GB",
                          "Memory that one more sequence takes."),
    "max_batch": Column(
        "max(floor((memory_available_gb - fixed_gb) / sequence_gb), 0) if sequence_gb > 0"
        " else unlimited if fixed_gb <= memory_available_gb else 0", "sequences",
        "Largest batch that fits at this context."),
    "tp_sequence_gb": Column("sequence_gb + (cache_copies(gpus) - 1)"
                             " * (kv_sequence_gb - state_bytes / 1e9 + lookahead_tokens * kv_bytes_per_token / 1e9)", "GB",
                             "The same with tensor parallelism on all GPUs, copies of the cache included."),
    "max_batch_tp": Column(
        parallel.MAX_BATCH, "sequences",
        "Largest batch that fits when the GPUs are placed: with tp on all of them where the row gives no parallel sizes."),
    "placement": Column(f'"one GPU" if gpus < 2 else {parallel.POOLED}', "",
                        "What the GPUs of a row are: pooled (memory, bandwidth and FLOP/s together, nothing exchanged), or placed by parallel "
                        "sizes; a pooled row says where tensor parallelism on them holds less."),
    "room_per_sequence_gb": Column(
        "max((memory_available_gb - fixed_gb) / batch - lookahead_tokens * (kv_bytes_per_token + draft_kv_bytes_per_token) / 1e9"
        " - state_bytes / 1e9, 0)", "GB", "Memory that each sequence of this batch may fill with context."),
    "far_token_gb": Column("(full_layers * kv_width * kv_bits / 8 + draft_kv_bytes_per_token) / 1e9", "GB",
                           "Cache that one more token takes past every window: full-attention layers and the draft."),
    "near_token_gb": Column("far_token_gb + window_layers * window_kv_width * kv_bits / 8e9", "GB",
                            "Cache that one more token takes inside the window."),
    "max_context": Column(
        "floor(room_per_sequence_gb / near_token_gb * (1 + 1e-12)) if near_token_gb > 0 and room_per_sequence_gb <= window_tokens * near_token_gb"
        " else floor((room_per_sequence_gb - window_tokens * (near_token_gb - far_token_gb)) / far_token_gb * (1 + 1e-12)) if far_token_gb > 0"
        " else unlimited if fixed_gb <= memory_available_gb else 0", "tokens",
        "Largest context that fits at this batch, whatever context the model was made for; a token counts that fits to the last digit."),
    "breaking_term": Column(
        '"none" if memory_gb <= memory_available_gb else "weights" if weight_gb > memory_available_gb'
        ' else "draft weights" if fixed_gb - activation_gb > memory_available_gb'
        ' else "activations" if fixed_gb > memory_available_gb'
        ' else "KV cache" if weight_gb + activation_gb + kv_gb > memory_available_gb or draft_gb <= 0'
        ' else "lookahead and draft KV cache"', "", "The first term, in this order, with which the memory is full."),
    "status": Column(
        '("not supported: this GPU lacks the number format" if supported < 1 else ' + READY + ") if fits"
        ' else "does not fit: weights" if weight_gb > memory_available_gb'
        ' else "does not fit: draft weights" if fixed_gb - activation_gb > memory_available_gb'
        ' else "does not fit: activations" if fixed_gb > memory_available_gb'
        ' else "does not fit: KV cache"', "", "Whether the row can run, and if not, which term breaks it."),
    "usd_per_million_tokens": Column("usd_per_hour * gpus / (tokens_per_s * utilization * 3600) * 1e6", "$/1M tokens",
                                     "Price of a million output tokens."),
    "kwh_per_million_tokens": Column("gpu_watts * gpus / tokens_per_s / 3.6", "kWh/1M tokens",
                                     "Energy of a million output tokens at full board power, without host and cooling."),
}  # fmt: skip

ORDER: tuple[str, ...] = (
    "id", "model", "gpu", "batch", "context", "method", "gpus", "weights", "kv", "mfu", "mbu", "alpha", "gamma",
    "draft_cost", "usd_per_hour",
    "params", "active_params", "gemm_params", "embedding_params", "lm_head_params", "layers", "hidden", "weight_bits",
    "lora_attention_params", "lora_all_params",
    "flops_per_token", "attention_flops_per_token", "kv_bytes_per_token", "experts_touched", "params_read",
    "weight_read_gb", "kv_read_gb", "intensity", "ridge", "bound", "step_ms", "baseline_ms", "draft_ms", "verify_ms",
    "round_ms", "tpot_ms",
    "rows_per_sequence", "verify_rows", "tokens_per_round",
    "tokens_per_s", "tokens_per_s_per_gpu", "speedup", "free_batch", "useful_flops_share", "utilization",
    "usd_per_million_tokens", "kwh_per_million_tokens",
    "weight_gb", "kv_gb", "draft_gb", "activation_gb", "memory_gb", "memory_available_gb", "headroom_gb", "fits", "breaking_term",
    "max_batch", "max_batch_tp", "max_context", "placement", "status",
)  # fmt: skip
"""The shared columns that every row shows, in the order in which people read them."""
