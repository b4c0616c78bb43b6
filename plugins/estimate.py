"""The estimate: the bound's terms at the efficiencies that engines reach, and the fixed times that they add."""

from collections.abc import Iterator

from scenario import Column, Parameter, TimeModel, hookimpl

# Weights that no token reads: an input embedding of its own is only looked up.
EXPERTS = "expert_params_hit(rows)"
STREAMED = f"max(1 - ({EXPERTS} + (embedding_params if lm_head_params > 0 else 0)) / params_hit(rows), 0)"
WEIGHTS = (
    f"weight_gb / (gpu_bandwidth_tb_s * gpus) * ({STREAMED} / hardware_weight_mbu"
    f" + {EXPERTS} / params_hit(rows) / hardware_expert_mbu)"
)
COMPUTE = "2 * rows * gemm_params / (peak_tflops * gpus * hardware_gemm_mfu * 1e9)"
CACHE = (
    "max(kv_gb / (gpu_bandwidth_tb_s * gpus * hardware_kv_mbu),"
    " rows * attention_flops_per_token / (gpu_bf16_tflops * gpus * hardware_gemm_mfu * 1e9))"
)
FIXED = "hardware_step_ms + (layers * hardware_layer_us + moe_layers * hardware_moe_layer_us + batch * hardware_sequence_us) / 1000"
# Inside a node a latency per doubling, fitted; between nodes a tree of hops (NCCL, src/graph/tuning.cc); bytes at the share that is reached.
ALLREDUCE_US = (
    "hardware_hop_us * log(min(tensor_size, gpu_node_gpus)) / log(2)"
    " + (collective_us + 2 * gpu_network_us * log(tensor_size / gpu_node_gpus) / log(2) if tensor_size > gpu_node_gpus else 0)"
)
COMMUNICATION = (
    f"transfer_bytes_ms(rows) / hardware_link_share + (allreduces * ({ALLREDUCE_US})"
    " + alltoall_layers * 2 * (collective_us + expert_hop_us) + (pipeline_size - 1) * stage_hop_us) / 1000"
)

SOURCE = (
    "A roofline with fitted efficiencies; tensor parallelism: Shoeybi et al. 2019, arXiv:1909.08053, two all-reduces per layer; "
    "the rounded knee after kernels W4A16 against batch, arXiv:2408.11743. Constants: see the sheet Hardware."
)


@hookimpl
def scenario_time_models() -> Iterator[TimeModel]:
    yield TimeModel(
        name="estimate",
        title="Estimate",
        doc="Streamed weights and arithmetic meet in a rounded knee; KV cache, launches, sampling and all-reduces add up. "
        "Each at what engines reach on that GPU.",
        formula=f"(({WEIGHTS}) ** knee + ({COMPUTE}) ** knee) ** (1 / knee) + {CACHE} + {FIXED}",
        draft="(read * bits_ / 8e9 + cache_gb) / (gpu_bandwidth_tb_s * gpus_ * hardware_weight_mbu)"
        " + 2 * batch * (active + head) / (gpu_bf16_tflops * gpus_ * hardware_gemm_mfu * 1e9)"
        " + head * bits_ / 8e9 / (gpu_bandwidth_tb_s * gpus_ * hardware_weight_mbu)"
        " + (layers_ * layer_launch_us + min(layers_, 1) * hardware_draft_pass_us) / 1000",
        communication=COMMUNICATION,
        parameters={
            "knee": Parameter(
                2, 1, 16, "", "How sharp the knee between reading weights and computing is: 1 adds both, 16 takes the larger.",
                "Speculation by batch on a whole model asks for 1 to 2, serving rows leave it open, a W4A16 kernel of its own has about 4: "
                "docs/accuracy.md",
            ),
        },
        columns={
            "prefill_ms": Column("prefill_gflops / (peak_tflops * gpus * hardware_gemm_mfu)", "ms"),
            "unsized_tp": Column("gpus", "GPUs", "GPUs without parallel sizes are tensor parallel."),
            # What was fitted may not undercut the arithmetic of prompts at the peak rate, which is in the bound.
            "prefill_share": Column("max(hardware_prefill_share, hardware_gemm_mfu)"),
            "first_token_ms": Column("hardware_first_token_ms", "ms"),
            "queue_share": Column("hardware_queue_share"),
            "basis": Column('"estimate (calibrated)" if hardware_calibrated > 0 else "estimate (default)"'),
            "time_error": Column("hardware_time_error"),
            "speedup_error": Column("hardware_speedup_error"),
            "ttft_error": Column("hardware_ttft_error"),
        },
        source=SOURCE,
    )  # fmt: skip
