"""Several GPUs by their sizes: tensor, pipeline, expert and data parallel. Active when one of them is given, and in every table
whose time model says how long GPUs exchange data.

A pass of ``rows`` rows runs on ``dp`` replicas of ``tp x pp`` GPUs. Each replica's pipeline works on ``pp`` micro-batches at
once, so that every stage reads its weights ``pp`` times per round. Work is spread evenly; a time is that of all GPUs together,
so sizes below count all of them, copies included.
"""

from __future__ import annotations

from scenario.model.optional_part import Feature, optional
from scenario.model.spec import Column, Function, Parameter

_RING = "Ring all-reduce: 2 (n-1)/n of the message per GPU; Patarasuk, Yuan 2009, doi:10.1016/j.jpdc.2008.09.002."
_MEGATRON = "Megatron-LM, arXiv:1909.08053: two all-reduces per layer."
_NCCL = "NCCL's own cost model (src/graph/tuning.cc): ring, low-latency protocol; the bound leaves it out"

NAME = "parallel"
_UNSIZED = "is_blank(tp) and is_blank(pp) and is_blank(ep) and is_blank(dp)"
QUESTIONS: dict[str, Column] = {
    "unsized_tp": Column("1", "GPUs", "Tensor-parallel size of a row that gives GPUs and no parallel sizes; 1: memory, bandwidth and "
                         "FLOP/s are pooled ideally."),
}
"""Open questions of time models about where a model is placed."""
MAX_BATCH = (
    "min(max(floor((memory_available_gb - fixed_gb + activation_gb - gpus * chunk_gb(gpus)) / tp_sequence_gb), 0), max_batch)"
    " if tp_sequence_gb > 0 else max_batch"
)
"""The largest batch of a row whose GPUs are pooled, if they were tensor parallel."""
POOLED = (
    '"pooled: as tp it does not fit" if fits and batch > max_batch_tp else "pooled: as tp fewer sequences fit" if max_batch_tp < max_batch'
    ' else "pooled"'
)
"""The placement of such a row."""

FEATURE = Feature(
    NAME, "Tensor, pipeline, expert and data parallel sizes in place of ideal pooling.",
    inputs={
        "tp": optional("Tensor-parallel size: GPUs that share every layer.", "GPUs", high=1e4),
        "pp": optional("Pipeline stages: GPUs that hold different layers.", "GPUs", high=1e4),
        "ep": optional("Expert-parallel size: GPUs that the experts are spread over; blank: as tp.", "GPUs", high=1e4),
        "dp": optional("Data-parallel size: replicas of attention and dense layers.", "GPUs", high=1e4),
    },
    scalars={
        "collective_us": Parameter(6.6, 0, 1e4, "us", "Time that starting one collective takes, however small it is.", source=_NCCL),
        "dispatch_bits": Parameter(16, 4, 32, "bit", "Bits per value sent to experts and back.", kind="integer"),
    },
    columns={
        **QUESTIONS,
        "tensor_size": Column(f"coalesce(tp, 1) if not ({_UNSIZED}) else unsized_tp", "GPUs", "GPUs that share every layer."),
        "pipeline_size": Column("coalesce(pp, 1)", "GPUs", "Pipeline stages."),
        "replicas": Column("coalesce(dp, 1)", "", "Replicas of attention and dense layers."),
        "expert_size": Column("coalesce(ep, tensor_size)", "GPUs", "GPUs that the experts of a layer are spread over."),
        "expert_copies": Column("max(tensor_size * replicas / expert_size, 1)", "", "Copies of every expert."),
        "weight_reads": Column("replicas * pipeline_size", "", "How often the GPUs together read a replica's weights per pass."),
        "kv_copies": Column("cache_copies(tensor_size)", "",
                            "Copies of a sequence's cache: KV heads fewer than tp are replicated, a latent is on every GPU."),
        "params_read": Column("params_hit(verify_rows)", "parameters", "Parameters that a replica reads in one verify pass."),
        "weight_read_gb": Column("weight_reads * packed_gb(params_read)", "GB", "Weights that all GPUs read in one verify pass."),
        "baseline_weight_gb": Column("weight_reads * as_stored_gb(params_hit(batch))", "GB",
                                     "Weights that vanilla decoding reads per step, as stored, on all GPUs."),
        "step_weight_gb": Column("weight_reads * packed_gb(params_hit(batch))", "GB",
                                 "Weights that one plain decode step reads with this method's weights, on all GPUs."),
        "kv_sequence_gb": Column(
            "kv_copies * (full_layers * kv_width * context + window_layers * window_kv_width * min(context, window_tokens)) * kv_bits / 8e9"
            " + state_bytes / 1e9", "GB", "KV cache of one sequence, copies included, and the state of linear layers."),
        "lookahead_gb": Column("batch * lookahead_tokens * kv_copies * kv_bytes_per_token / 1e9", "GB",
                               "KV slots for tokens being verified, copies included."),
        "weight_gb": Column("replicas * packed_gb(unrouted_params + embedding_params + lm_head_params"
                            " + expert_copies / replicas * moe_layers * experts * expert_params)", "GB",
                            "Weights held on all GPUs, copies included."),
        "draft_gb": Column("replicas * draft_weight_gb + batch * (context + lookahead_tokens) * draft_kv_bytes_per_token / 1e9", "GB",
                           "Weights and KV cache of the drafts, one per replica."),
        "fixed_gb": Column("weight_gb + replicas * draft_weight_gb + activation_gb", "GB", "Memory that does not grow with the batch."),
        "activation_gb": Column(
            "tensor_size * pipeline_size * replicas * chunk_gb(tensor_size)", "GB",
            "Estimate, on all GPUs: per token of a prefill chunk the residual stream in and out of two blocks, and a share of "
            "queries, attention output and the inner values of the network, in BF16."),
        "sequence_gb": Column("kv_sequence_gb + lookahead_tokens * kv_copies * kv_bytes_per_token / 1e9"
                              " + (context + lookahead_tokens) * draft_kv_bytes_per_token / 1e9", "GB",
                              "Memory that one more sequence takes."),
        "room_per_sequence_gb": Column(
            "max((memory_available_gb - fixed_gb) / batch - lookahead_tokens * (kv_copies * kv_bytes_per_token"
            " + draft_kv_bytes_per_token) / 1e9 - state_bytes / 1e9, 0)", "GB",
            "Memory that each sequence of this batch may fill with context."),
        "far_token_gb": Column("(kv_copies * full_layers * kv_width * kv_bits / 8 + draft_kv_bytes_per_token) / 1e9", "GB",
                               "Cache that one more token takes past every window: full-attention layers and the draft."),
        "near_token_gb": Column("far_token_gb + kv_copies * window_layers * window_kv_width * kv_bits / 8e9", "GB",
                                "Cache that one more token takes inside the window."),
        "max_batch_tp": Column(
            f"max_batch if tensor_size * pipeline_size * replicas > 1 else {MAX_BATCH}", "sequences",
            "Largest batch that fits when the GPUs are placed: with tp on all of them where the row gives no parallel sizes."),
        "placement": Column(
            '"one GPU" if gpus < 2 else "parallel sizes" if pipeline_size * replicas > 1 else "tensor parallel" if tensor_size > 1'
            f" else {POOLED}", "", "What the GPUs of a row are: pooled, tensor parallel, or placed by several parallel sizes."),
        "weight_gb_per_gpu": Column("weight_gb / gpus", "GB", "Weights on one GPU."),
        "kv_gb_per_gpu": Column("(kv_gb + lookahead_gb) / gpus", "GB", "KV cache on one GPU."),
        "memory_gb_per_gpu": Column("memory_gb / gpus", "GB", "Memory needed on one GPU."),
        "link_gb_s": Column("coalesce(gpu_nvlink_gb_s / 2, gpu_pcie_gb_s, gpu_network_gb_s)", "GB/s",
                            "Link inside a node, one direction: NVLink, else PCIe."),
        "tensor_link_gb_s": Column("link_gb_s if tensor_size <= gpu_node_gpus else gpu_network_gb_s", "GB/s",
                                   "Slowest link of a tensor-parallel group."),
        "expert_link_gb_s": Column("link_gb_s if expert_size <= gpu_node_gpus else gpu_network_gb_s", "GB/s",
                                   "Slowest link of an expert-parallel group."),
        "expert_hop_us": Column("gpu_link_us if expert_size <= gpu_node_gpus else gpu_network_us", "us", "Latency of its hops."),
        "stage_link_gb_s": Column("link_gb_s if tensor_size * pipeline_size <= gpu_node_gpus else gpu_network_gb_s", "GB/s",
                                  "Link between pipeline stages."),
        "stage_hop_us": Column("gpu_link_us if tensor_size * pipeline_size <= gpu_node_gpus else gpu_network_us", "us",
                               "Latency between pipeline stages."),
        "alltoall_layers": Column("moe_layers if expert_size > tensor_size else 0", "layers",
                                  "Layers whose experts are reached by all-to-all; others end in an all-reduce."),
        "allreduces": Column("max(layers - no_mixer_layers, 0) + dense_layers + max(moe_layers - alltoall_layers, 0)", "",
                             "All-reduces of one pass.", source=_MEGATRON),
        "allreduce_gb": Column("allreduce_bytes_gb(verify_rows)", "GB", "What each GPU sends in the all-reduces of one verify pass.",
                               source=_RING),
        "alltoall_gb": Column("alltoall_bytes_gb(verify_rows)", "GB", "What each GPU sends to experts and back in one verify pass."),
        "comm_ms": Column("transfer_ms(verify_rows)", "ms", "Communication of one verify pass, not hidden behind arithmetic."),
        "step_comm_ms": Column("transfer_ms(batch)", "ms", "Communication of one plain decode step."),
        "baseline_ms": Column("forward_ms(batch, baseline_weight_gb, kv_read_gb) + step_comm_ms", "ms",
                              "One decode step of vanilla decoding at the stored weights, communication included."),
        "step_ms": Column("forward_ms(batch, step_weight_gb, kv_read_gb) + step_comm_ms", "ms",
                          "One plain decode step with this method's weights, communication included."),
        "verify_ms": Column("forward_ms(verify_rows, weight_read_gb, kv_read_gb) + comm_ms", "ms",
                            "One verify pass of the target, communication included."),
    },
    changes={
        "prefill_gpus": Column("gpus / replicas", "GPUs", "GPUs that work on one prompt: one replica."),
        "prefill_weight_gb": Column("packed_gb(params_hit(prefill_tokens * replicas))", "GB", "Weights that one replica's prefill reads."),
        "prefill_comm_ms": Column("transfer_ms(prefill_tokens * replicas * pipeline_size)", "ms", "Communication of prefill."),
    },
    functions=(
        Function("rows_of_one", ("rows",), "max(rows / (expert_copies * pipeline_size), min(rows, 1))",
                 "Token rows that one copy of the experts works on at once; not less than one row, where there is one."),
        Function("expert_params_hit", ("rows",),
                 "expert_copies / replicas * moe_layers * expert_params * experts_hit(rows_of_one(rows))",
                 "Parameters of routed experts that a replica reads in one pass over this many token rows of all replicas."),
        Function("params_hit", ("rows",),
                 "unrouted_params + embedding_params + lm_head_params + expert_copies / replicas * moe_layers * expert_params"
                 " * experts_hit(rows_of_one(rows))",
                 "Parameters that a replica reads in one pass over this many token rows of all replicas."),
        Function("allreduce_bytes_gb", ("rows",),
                 "allreduces * 2 * (tensor_size - 1) / tensor_size * rows / (replicas * pipeline_size) * hidden * 2 / 1e9",
                 "What each GPU sends in the all-reduces of a pass.", _RING),
        Function("alltoall_bytes_gb", ("rows",),
                 "alltoall_layers * 2 * (expert_size - 1) / expert_size * rows / (tensor_size * replicas * pipeline_size)"
                 " * experts_per_token * hidden * dispatch_bits / 8e9",
                 "What each GPU sends to experts and back in a pass."),
        Function("transfer_bytes_ms", ("rows",),
                 "(allreduce_bytes_gb(rows) / tensor_link_gb_s + alltoall_bytes_gb(rows) / expert_link_gb_s"
                 " + (pipeline_size - 1) * (rows / (replicas * pipeline_size) * hidden * 2 / 1e9) / stage_link_gb_s) * 1000",
                 "What the links need at least for the bytes of a pass: all-reduces, all-to-alls, and handing on between stages."),
        Function("transfer_ms", ("rows",), "transfer_bytes_ms(rows)",
                 "Communication of a pass: in the bound the bytes over the links, without latencies."),
    ),
    finish={"gpus": f"asked if {_UNSIZED} else coalesce(tp, 1) * coalesce(pp, 1) * coalesce(dp, 1)"},
    refusals=(
        ("expert_size > tensor_size * replicas", '"refused: ep is more than tp x dp"'),
        ("tensor_size > heads", '"refused: tp is more than the query heads"'),
        ("pipeline_size > layers", '"refused: pp is more than the layers"'),
        ("moe_layers > 0 and expert_size > experts", '"refused: ep is more than the experts"'),
    ),
)  # fmt: skip
