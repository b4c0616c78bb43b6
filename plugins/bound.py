"""The bound: matrix products and attention each take at least their memory time and at least their compute time."""

from scenario import Column, TimeModel, hookimpl

PEAK = "(peak_tflops * {gpus} * mfu * 1e9)"
PROMPT_GEMM = f"isl * 2 * (gemm_params - embedding_params) / {PEAK.format(gpus='prompt_gpus')}"
PROMPT_ATTENTION = "prompt_attention_gflops / (peak_tflops * prompt_gpus * mfu)"


def held_up(tokens: str, rows: str, weights: str) -> str:
    """What arriving prompts add to a pass: their arithmetic, as far as it does not fit into the time of reading weights and cache.

    A pass reads the weights once, whatever prompts go with it.
    """
    read, compute = f"{weights} / (gpu_bandwidth_tb_s * gpus * mbu)", f"{rows} * 2 * gemm_params / {PEAK.format(gpus='gpus')}"
    cache, scores = "kv_read_gb / (gpu_bandwidth_tb_s * gpus * mbu)", f"{rows} * attention_flops_per_token / {PEAK.format(gpus='gpus')}"
    arriving = f"others / osl * {tokens}"
    return (f"max({arriving} * {PROMPT_GEMM} - max({read} - {compute}, 0), 0)"
            f" + max({arriving} * {PROMPT_ATTENTION} - max({cache} - {scores}, 0), 0)")  # fmt: skip


@hookimpl
def scenario_time_models():
    yield TimeModel(
        name="bound",
        title="Roofline bound",
        doc="Matrix products and attention run one after the other; each takes the larger of its reads and its arithmetic, at peak "
        "rates. A lower bound on the time.",
        formula="gemm_ms(rows, weight_gb) + attention_ms(rows, kv_gb)",
        columns={
            "prefill_ms": Column("max(prefill_gflops / (peak_tflops * gpus * mfu), prompt_weight_gb / (gpu_bandwidth_tb_s * gpus * mbu))"
                                 " if isl > 0 else 0", "ms"),
            "interference_ms": Column(held_up("tokens_per_round", "verify_rows", "weight_read_gb"), "ms"),
            "baseline_interference_ms": Column(held_up("1", "batch", "baseline_weight_gb"), "ms"),
            "first_passes": Column("0"),
        },
        source="Roofline: Williams, Waterman, Patterson 2009, doi:10.1145/1498765.1498785.",
    )  # fmt: skip
