"""Requests: what reading the prompt takes, and with it what a request costs. Active when a prompt or an output length is given."""

from __future__ import annotations

from scenario.model.optional_part import Feature, optional
from scenario.model.spec import Column

_CAUSAL = "Causal attention: a token attends to those before it, half of the square on average."

FEATURE = Feature(
    "requests", "Prompt and output lengths: time to the first token, and prices per request and per input and output token.",
    inputs={
        "prompt_tokens": optional("Tokens of the prompt.", "tokens", high=1e9),
        "output_tokens": optional("Tokens that are generated per request.", "tokens", high=1e9),
    },
    columns={
        "prefill_tokens": Column("prompt_tokens", "tokens", "Tokens that prefill works on."),
        "prefill_attention_tflop": Column(
            "(2 * heads * ((qk_head_dim + value_head_dim) * full_layers * prefill_tokens ** 2 / 2"
            " + (window_qk_dim + window_value_dim) * window_layers * min(prefill_tokens, window_tokens)"
            " * (prefill_tokens - min(prefill_tokens, window_tokens) / 2))"
            " + 4 * linear_layers * linear_inner * linear_state_dim * prefill_tokens) / 1e12", "TFLOP",
            "Scores and weighted values of the whole prompt, windows capped.", source=_CAUSAL),
        "prefill_tflop": Column("2 * gemm_params * prefill_tokens / 1e12 + prefill_attention_tflop", "TFLOP",
                                "Arithmetic of the prompt, the LM head counted for every token."),
        "prefill_flops_per_token": Column("prefill_tflop * 1e12 / prefill_tokens", "FLOP", "The same per token of the prompt."),
        "prefill_weight_gb": Column("packed_gb(params_hit(prefill_tokens))", "GB", "Weights that prefill reads."),
        "prefill_gpus": Column("gpus", "GPUs", "GPUs that work on one prompt."),
        "prefill_comm_ms": Column("0", "ms", "Communication of prefill."),
        "encoder_ms": Column("0", "ms", "Image encoder of the prompt."),
        "ttft_ms": Column("encoder_ms + prefill_ms(prefill_tokens, prefill_weight_gb, 0) + prefill_comm_ms"
                          " if fits and supported > 0 else blank", "ms",
                          "Time to first token: one prompt alone on the GPUs, without waiting; a lower bound."),
        "request_ms": Column("ttft_ms + (output_tokens - 1) * tpot_ms", "ms", "A request from its start to its last token."),
        "usd_per_million_input_tokens": Column("usd_per_hour * prefill_gpus * ttft_ms / prompt_tokens / 3600 / utilization * 1000", "$/1M tokens",
                                               "Price of a million prompt tokens, at the pace of prefill alone."),
        "usd_per_request": Column("(prompt_tokens * usd_per_million_input_tokens + output_tokens * usd_per_million_tokens) / 1e6",
                                  "$/request", "Price of one request: its prompt at the pace of prefill, its output at that of decoding."),
        "usd_per_million_blended": Column("usd_per_request / (prompt_tokens + output_tokens) * 1e6", "$/1M tokens",
                                          "Price of a million tokens, prompt and output together."),
    },
)  # fmt: skip
