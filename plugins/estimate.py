"""The estimate: the bound's terms at the efficiencies that engines reach, and the fixed times that they add."""

from collections.abc import Iterator

from scenario import Column, Function, Parameter, TimeModel, hookimpl

BANDWIDTH = "(gpu_bandwidth_tb_s * gpus)"
# What a pass reads: its weights less an input embedding of its own, which is only looked up; routed experts at their own efficiency; and
# what the parts that engines keep in 16 bits take beyond the bits of the others, where one format is given for the whole model.
# Each argument stands here as rarely as can be: other batches are asked by writing them out.
LOOKED_UP = "(embedding_params if lm_head_params > 0 else 0)"
EXPERTS_GB = "(weight_gb - weight_reads * kept_16bit() / 5e8) * expert_params_hit(rows) / max(params_hit(rows) - kept_16bit(), 1)"
WIDENED_GB = "(max(weight_reads * wide_params / 5e8 - wide_params * weight_gb / params_hit(rows), 0) if kept_16bit() < 1 else 0)"
WEIGHTS = (
    f"((weight_gb * (1 - {LOOKED_UP} / params_hit(rows)) + {WIDENED_GB}) / hardware_weight_mbu"
    f" + {EXPERTS_GB} * (1 / hardware_expert_mbu - 1 / hardware_weight_mbu)) / {BANDWIDTH}"
)
# Arithmetic: what stays in 16 bits at the BF16 rate, the rest at the rate of its format.
RATE_16 = "(gpu_bf16_tflops * gpus * hardware_gemm_mfu * 1e9)"
RATE_FEW = "(matmul_tflops * gpus * hardware_quantized_mfu * 1e9)"
COMPUTE = (
    f"2 * rows * (gemm_params / {RATE_16} if weight_gb * 8e9 > 15.9 * weight_reads * params_hit(rows)"
    f" else (gemm_params - wide_params) / {RATE_FEW} + wide_params / {RATE_16})"
)
# Latent attention in its absorbed form: scores and values against the latent itself.
ABSORBED = "((2 * kv_lora_rank + qk_rope_dim) / (qk_head_dim + value_head_dim) if kv_lora_rank > 0 else 1)"
CACHE = f"max(kv_gb / ({BANDWIDTH} * hardware_kv_mbu), rows * attention_flops_per_token * {ABSORBED} / {RATE_16})"
LOGITS = "rows * vocab * 8 / (gpu_bandwidth_tb_s * gpus * 1e9)"
FIXED = f"hardware_step_ms + (kernels * hardware_launch_us + moe_layers * rows * hardware_moe_row_us) / 1000 + {LOGITS}"
# Each kernel's launch is counted in the pass; between nodes comes a tree of hops (NCCL, src/graph/tuning.cc).
BETWEEN_NODES_US = (
    "(collective_us + 2 * gpu_network_us * log(tensor_size / gpu_node_gpus) / log(2) if tensor_size > gpu_node_gpus else 0)"
)
COMMUNICATION = (
    f"transfer_bytes_ms(rows) / hardware_link_share + (allreduces * {BETWEEN_NODES_US}"
    " + alltoall_layers * 2 * (collective_us + expert_hop_us) + (pipeline_size - 1) * stage_hop_us) / 1000"
)
PASS = f"hardware_time_factor * ((({WEIGHTS}) ** knee + ({COMPUTE}) ** knee) ** (1 / knee) + {CACHE} + {FIXED})"

PROMPT = (
    "isl * (2 * (gemm_params - embedding_params - (wide_params - embedding_params) * quantized_pass)"
    f" / (matmul_tflops * gpus * (hardware_quantized_mfu if quantized_pass > 0 else hardware_gemm_mfu) * 1e9)"
    f" + 2 * (wide_params - embedding_params) * quantized_pass / {RATE_16}"
    " + 2 * heads * (qk_head_dim + value_head_dim) * (full_layers * isl / 2 + window_layers * min(isl / 2, window_tokens))"
    f" / {RATE_16})"
)
DRAFT = (
    "(((read + head) * bits_ / 8e9 / (gpu_bandwidth_tb_s * gpus_ * hardware_weight_mbu)) ** 2"
    " + (2 * batch * (active + head) / (gpu_bf16_tflops * gpus_ * hardware_gemm_mfu * 1e9)) ** 2) ** 0.5"
    " + cache_gb / (gpu_bandwidth_tb_s * gpus_ * hardware_kv_mbu) + batch * vocab * 4 / (gpu_bandwidth_tb_s * gpus_ * 1e9)"
    " + (layers_ * hardware_draft_layer_us + min(layers_, 1) * hardware_draft_pass_us) / 1000"
)
TOKENS = "batch / replicas * hardware_sequence_us / 1000"
SPECULATIVE = (
    "(hardware_spec_round_ms + batch / replicas * (rows_per_sequence - 1) * hardware_row_us / 1000"
    " + draft_tree * (hardware_tree_round_ms + verify_rows * hardware_tree_row_us / 1000) if rows_per_sequence > 1 else 0)"
)

SOURCE = (
    "A roofline with fitted efficiencies; tensor parallelism: Shoeybi et al. 2019, arXiv:1909.08053, two all-reduces per layer; absorbed "
    "latent attention: DeepSeek-V2, arXiv:2405.04434, section 2.1. Constants: see the sheet Hardware; what each term gains: docs/accuracy.md."
)
# Largest factor by which a speedup may be off, by what is speculated with; docs/accuracy.md has what they hold.
SPEEDUP = "max(hardware_speedup_error, 0.5 if moe_layers > 0 else 0.3 if draft_tree > 0 else 0)"
INSIDE = "batch <= hardware_data_batch and context <= hardware_data_context and gpus <= hardware_data_gpus"


@hookimpl
def scenario_functions() -> Iterator[Function]:
    yield Function(
        "kept_16bit", (), "unquantized_params", "Parameters that stay in 16 bits beside quantized ones."
    )


@hookimpl
def scenario_time_models() -> Iterator[TimeModel]:
    yield TimeModel(
        name="estimate",
        title="Estimate",
        doc="Streamed weights and arithmetic meet in a rounded knee; KV cache, launches, sampling and all-reduces add up. "
        "Each at what engines reach on that GPU.",
        formula=PASS,
        draft=DRAFT,
        communication=COMMUNICATION,
        parameters={
            "knee": Parameter(
                2, 1, 16, "", "How sharp the knee between reading weights and computing is: 1 adds both, 16 takes the larger.",
                "Serving rows leave it open (1 to 3 differ by 0.2 points), a W4A16 kernel of its own has about 4: docs/accuracy.md",
            ),
        },
        columns={
            "step_host_ms": Column(TOKENS, "ms"),
            "round_host_ms": Column(f"{TOKENS} * tokens_per_round + {SPECULATIVE}", "ms"),
            "prefill_ms": Column(PROMPT, "ms"),
            "prompt_factor": Column("hardware_time_factor * (hardware_moe_prefill if moe_layers > 0 else 1)"),
            "unsized_tp": Column("gpus", "GPUs", "GPUs without parallel sizes are tensor parallel."),
            # What was fitted may not undercut the arithmetic of prompts at the peak rate, which is in the bound.
            "prefill_share": Column("max(1 - hardware_queue_share, hardware_gemm_mfu)"),
            "first_token_ms": Column("hardware_first_token_ms", "ms"),
            "first_passes": Column("hardware_first_passes"),
            "queue_share": Column("hardware_queue_share"),
            "basis": Column(
                f'("estimate (calibrated)" if {INSIDE} else "estimate (calibrated), outside the data") if hardware_calibrated > 0'
                f' else "estimate (outside the data)" if not ({INSIDE})'
                ' else "estimate (measured model)" if hardware_cell > 0 else "estimate (default)"'
            ),
            "time_error": Column(f"hardware_time_error if {INSIDE} else max(2 * hardware_time_error, 1)"),
            "speedup_error": Column(f"{SPEEDUP} if {INSIDE} else max({SPEEDUP}, 0.6)"),
            "ttft_error": Column(f"hardware_ttft_error if {INSIDE} else 2 * hardware_ttft_error"),
            "inside_data": Column(f"1 if {INSIDE} else 0"),
        },
        source=SOURCE,
    )  # fmt: skip
