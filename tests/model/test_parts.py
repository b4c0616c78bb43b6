"""Memory, several GPUs, number formats, prompts and images: against independent calculation, papers and makers' figures."""

from __future__ import annotations

import math
from typing import Any

import openpyxl
import pytest
from spreadsheet import needs_soffice, recalculate

import scenario
from scenario.api import bundled

BASE = {"model": "llama-3-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "vanilla"}
GPUS = {"h100-sxm": {"memory_gb": 80, "nvlink_gb_s": 900, "watts": 700}}
PRICES = {"h100-sxm": 2.5}


def run(*rows: dict[str, Any], **sections: Any) -> list[dict[str, Any]]:
    """Rows on the article's H100 (80e9 bytes, 3.35 TB/s, 989 TFLOP/s), batch 1 and context 0 unless said otherwise."""
    sections = {"gpus": GPUS, "prices": PRICES, **sections}
    full = [{**BASE, **row} for row in rows]
    full = [{name: value for name, value in row.items() if value != "derived"} for row in full]
    return list(scenario.run({"version": 1, "rows": full, **sections}).frame.iter_rows(named=True))


def one(**inputs: Any) -> dict[str, Any]:
    return run(inputs)[0]


# -- what a model holds and caches -----------------------------------------------------------------------------------------------------


def test_plain_tables_carry_no_columns_of_parts_that_they_do_not_use() -> None:
    """No communication, request, image or format columns appear until one of their inputs is given."""
    row = one()
    for name in ("comm_ms", "tp", "ttft_ms", "prompt_tokens", "image_tokens", "activations", "format_tflops", "gpus_needed"):
        assert name not in row


@pytest.mark.parametrize(("context", "tokens"), [(64, 64), (128, 128), (8192, 128)])
def test_windows_cap_the_cache(context: int, tokens: int) -> None:
    """gpt-oss keeps at most 128 tokens in 12 of its 24 layers of 8 heads of 64."""
    row = one(model="gpt-oss-20b", context=context)
    assert row["kv_gb"] == pytest.approx((12 * context + 12 * tokens) * 2 * 8 * 64 * 2 / 1e9, rel=1e-12)


def test_sliding_and_full_layers_of_different_widths() -> None:
    """Gemma 4 26B: 25 sliding layers of 8 heads of 256 with a window of 1024, 5 full ones of 2 heads of 512."""
    row = one(model="gemma-4-26b-a4b", context=16384)
    assert row["kv_gb"] == pytest.approx((25 * 1024 * 2 * 8 * 256 + 5 * 16384 * 2 * 2 * 512) * 2 / 1e9, rel=1e-12)


@pytest.mark.parametrize("context", [0, 1000, 200_000])
def test_linear_layers_hold_a_constant_state(context: int) -> None:
    """Qwen3-Next: 36 layers keep 32 states of 128 x 128 and three convolution columns of 8192; 12 layers cache 2 heads of 256."""
    row = one(model="qwen3-next-80b-a3b", context=context)
    state = 36 * (32 * 128 * 128 + 3 * (2 * 16 * 128 + 32 * 128)) * 2
    assert row["kv_gb"] == pytest.approx((state + 12 * context * 2 * 2 * 256 * 2) / 1e9, rel=1e-12)


def test_formats_of_the_cache_count_their_scales() -> None:
    """An FP8 cache with a 32-bit scale per token and head of 128 takes 8.25 bits per value; with one scale per tensor 8."""
    plain, scaled, integer = (one(context=4096, kv=kv)["kv_gb"] for kv in ("fp8", "fp8-token", "int8-group"))
    assert plain == pytest.approx(4096 * 65536 / 1e9, rel=1e-12)
    assert scaled / plain == pytest.approx(8.25 / 8, rel=1e-12)
    assert integer / plain == pytest.approx(8.125 / 8, rel=1e-12)


# -- memory ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["llama-3-8b", "gpt-oss-20b", "gemma-3-27b", "qwen3-next-80b-a3b", "deepseek-v3", "mistral-7b-v0.1"])
@pytest.mark.parametrize("method", ["vanilla", "eagle"])
@pytest.mark.parametrize(("batch", "gpus"), [(1, 32), (64, 32), (300, 24)])
def test_largest_context_and_batch_are_the_edge(model: str, method: str, batch: int, gpus: int) -> None:
    """The largest context and batch fit, one token or sequence more does not: dense, windowed, hybrid and latent models."""
    inputs = {"model": model, "method": method, "gpus": gpus, "batch": batch, "context": 3000}
    row = one(**inputs)
    longest, most = row["max_context"], row["max_batch"]
    if longest == scenario.UNLIMITED:
        assert model == "mistral-7b-v0.1"  # every layer has a window
        assert method == "vanilla"
        assert one(**{**inputs, "context": 1_000_000})["fits"]
    else:
        at, past = run({**inputs, "context": longest}, {**inputs, "context": longest + 1})
        assert (at["fits"], past["fits"]) == (True, False)
    at, past = run({**inputs, "batch": max(most, 1)}, {**inputs, "batch": most + 1})
    assert (at["fits"], past["fits"]) == (most >= 1, False)


@pytest.mark.parametrize(
    ("inputs", "term", "status"),
    [({"context": 4096}, "none", "ok"), ({"model": "llama-3-70b"}, "weights", "does not fit: weights"),
     ({"batch": 200, "context": 4096}, "KV cache", "does not fit: KV cache")],
)  # fmt: skip
def test_breaking_term(inputs: dict[str, Any], term: str, status: str) -> None:
    """The first term with which the memory is full is named."""
    row = one(**inputs)
    assert (row["breaking_term"], row["status"]) == (term, status)


def test_activations_are_counted_for_a_stated_chunk() -> None:
    """Per token of a chunk: 4 hidden widths, queries and attention output, gate and up, two bytes each; none by default."""
    assert one()["activation_gb"] == 0
    row = run({"context": 4096}, defaults={"prefill_chunk": 8192})[0]
    assert row["activation_gb"] == pytest.approx(8192 * (4 * 4096 + 2 * 4096 + 2 * 14336) * 2 / 1e9, rel=1e-12)
    assert row["max_batch"] == math.floor((80e9 - 8_030_261_248 * 2 - row["activation_gb"] * 1e9) / (4096 * 131072))
    full = run({"gpus": 2, "model": "llama-3-70b"}, defaults={"prefill_chunk": 400_000})[0]
    assert full["breaking_term"] == "activations"


# -- several GPUs ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("batch", "context", "gpus"), [(1, 0, 2), (1, 131072, 4), (40, 16384, 8), (400, 32768, 64)])
def test_automatic_count_is_the_smallest_power_of_two_that_fits(batch: int, context: int, gpus: int) -> None:
    """gpus: auto takes 1, 2, 4, ... until weights and cache fit; half as many do not, and the price is that of all."""
    row = one(model="llama-3-70b", batch=batch, context=context, gpus="auto")
    assert row["gpus"] == gpus
    assert row["fits"]
    assert not one(model="llama-3-70b", batch=batch, context=context, gpus=gpus // 2)["fits"]
    same = one(model="llama-3-70b", batch=batch, context=context, gpus=gpus)
    assert row["usd_per_million_tokens"] == same["usd_per_million_tokens"]


def test_tensor_parallel_pass_of_a_dense_model() -> None:
    """Llama-3-70B on 8 GPUs: an eighth of the bytes each, and 160 ring all-reduces of batch x 8192 BF16 values over 450 GB/s."""
    row = one(model="llama-3-70b", batch=16, context=4096, tp=8)
    cache = 16 * 4096 * 80 * 2 * 8 * 128 * 2
    assert row["gpus"] == 8
    assert row["weight_gb_per_gpu"] == pytest.approx(70_553_706_496 * 2 / 8 / 1e9, rel=1e-12)
    assert row["kv_gb_per_gpu"] == pytest.approx(cache / 8 / 1e9, rel=1e-12)
    sent = 160 * 2 * 7 / 8 * 16 * 8192 * 2
    assert row["allreduce_gb"] == pytest.approx(sent / 1e9, rel=1e-12)
    assert row["comm_ms"] == pytest.approx(sent / 450e9 * 1e3, rel=1e-12)  # a bound: the bytes, without the latency of any hop
    assert row["step_ms"] == pytest.approx((70_553_706_496 * 2 + cache) / (8 * 3.35e12) * 1e3 + row["comm_ms"], rel=1e-12)


def test_one_way_parallel_is_the_ideal_pool() -> None:
    """tp 1 changes nothing but the columns shown; a row without sizes beside rows that have them stays ideally pooled."""
    plain = one(batch=16, context=4096, gpus=8)
    sized, pooled = run({"batch": 16, "context": 4096, "tp": 1}, {"batch": 16, "context": 4096, "gpus": 8})
    alone = one(batch=16, context=4096)
    for name in ("step_ms", "verify_ms", "baseline_ms", "weight_gb", "kv_gb", "memory_gb", "max_batch", "max_context", "tokens_per_s",
                 "usd_per_million_tokens", "status"):  # fmt: skip
        assert sized[name] == pytest.approx(alone[name], rel=1e-12) if isinstance(alone[name], float) else sized[name] == alone[name]
        assert pooled[name] == pytest.approx(plain[name], rel=1e-12) if isinstance(plain[name], float) else pooled[name] == plain[name]
    assert pooled["comm_ms"] == sized["comm_ms"] == 0


@pytest.mark.parametrize(("model", "tp", "copies"), [("llama-3-70b", 8, 1), ("llama-3-70b", 16, 2), ("qwen3-30b-a3b", 8, 2), ("deepseek-v3", 8, 8)])
def test_cache_is_copied_where_heads_run_out(model: str, tp: int, copies: int) -> None:
    """KV heads fewer than tp are replicated; a latent has no heads to split, so every GPU holds it."""
    pooled = one(model=model, batch=4, context=1000, gpus=tp)
    assert one(model=model, batch=4, context=1000, tp=tp)["kv_gb"] == pytest.approx(copies * pooled["kv_gb"], rel=1e-12)


def test_pooled_rows_say_what_tensor_parallelism_would_hold() -> None:
    """R1 in FP8 on 8 H200 at context 8192: 929 sequences pooled, 116 with tp 8, which holds a latent on every GPU; the row says so."""
    base = {"model": "deepseek-r1", "gpu": "h200", "context": 8192, "weights": "fp8"}
    few, many, sized, dense, alone = run({**base, "gpus": 8, "batch": 64}, {**base, "gpus": 8, "batch": 200}, {**base, "tp": 8, "batch": 64},
                                         {"gpus": 8, "context": 8192}, {"context": 8192}, gpus={"h200": {"memory_gb": 150.754}})  # fmt: skip
    assert (few["max_batch"], few["max_batch_tp"], sized["max_batch"], sized["max_batch_tp"]) == (929, 116, 116, 116)
    said = [row["placement"] for row in (few, many, sized, dense, alone)]
    assert said == ["pooled: as tp fewer sequences fit", "pooled: as tp it does not fit", "tensor parallel", "pooled", "one GPU"]


@pytest.mark.parametrize("chunk", [0, 8192])
@pytest.mark.parametrize(("model", "method", "gpus"), [("qwen3-30b-a3b", "eagle", 8), ("deepseek-v3", "mtp", 16), ("gpt-oss-20b", "vanilla", 16)])
def test_the_batch_that_tensor_parallelism_holds_is_that_of_the_placed_row(model: str, method: str, gpus: int, chunk: int) -> None:
    """What a pooled row says of tp is what the row with tp gives, activations and lookahead included."""
    inputs = {"model": model, "method": method, "context": 5000, "weights": "fp8", "gpu": "h200"}
    pooled, placed = run({**inputs, "gpus": gpus}, {**inputs, "tp": gpus}, defaults={"prefill_chunk": chunk})
    assert pooled["max_batch_tp"] == placed["max_batch"]


def test_nodes_are_a_tree_and_not_servers() -> None:
    """nodes: 2 on a row whose method has no tree is refused with the gpus that were meant; beside a method that has one it is its size."""
    with pytest.raises(scenario.TableError, match=r"(?s)size of a draft tree.*gpus: 16"):
        run({"gpus": 8, "nodes": 2})
    assert run({"method": "medusa", "nodes": 2})[0]["rows_per_sequence"] == 3


def test_pipeline_reads_the_weights_once_per_micro_batch() -> None:
    """With pp 4 a step takes as long as on one GPU while weights set its time: stages wait for one another; memory is shared."""
    alone, staged = one(model="llama-3-8b", batch=8), one(model="llama-3-8b", batch=8, pp=4)
    hand_over = 3 * (8 / 4 * 4096 * 2 / 450e9) * 1e3
    assert staged["step_ms"] == pytest.approx(alone["step_ms"] + hand_over, rel=1e-12)
    assert staged["weight_gb_per_gpu"] == pytest.approx(alone["weight_gb"] / 4, rel=1e-12)


def test_replicas_hold_the_model_each() -> None:
    """dp 4 serves four times the batch in the same time with four times the weights."""
    alone, four = one(batch=8, context=2048), one(batch=32, context=2048, dp=4)
    assert four["step_ms"] == pytest.approx(alone["step_ms"], rel=1e-12)
    assert four["weight_gb"] == pytest.approx(4 * alone["weight_gb"], rel=1e-12)
    assert four["tokens_per_s"] == pytest.approx(4 * alone["tokens_per_s"], rel=1e-12)


def test_expert_parallel_mixture() -> None:
    """DeepSeek-V3 in FP8 on 32 GPUs, dp 32 and ep 32: 8 experts a GPU, everything else on each, tokens sent to 8 experts and back."""
    row = one(model="deepseek-v3", weights="fp8", batch=1024, context=0, dp=32, ep=32, gpu="h200")
    experts = 58 * 256 * 3 * 7168 * 2048
    rest = 671_026_419_200 - experts
    assert row["params"] == 671_026_419_200
    assert row["weight_gb_per_gpu"] == pytest.approx((rest + experts / 32) / 1e9, rel=1e-12)
    sent = 58 * 2 * 31 / 32 * 1024 / 32 * 8 * 7168 * 2
    assert row["alltoall_gb"] == pytest.approx(sent / 1e9, rel=1e-12)
    # 32 GPUs are more than a node of 8: the network of 50 GB/s each.
    assert row["comm_ms"] == pytest.approx(sent / 50e9 * 1e3, rel=1e-12)
    touched = 256 * (1 - (1 - 8 / 256) ** 1024)
    read = rest + experts / 32 * touched / 256
    assert row["step_ms"] == pytest.approx(read / 4.8e12 * 1e3 + row["comm_ms"], rel=1e-9)


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [({"tp": 2, "ep": 4}, "ep is more than tp x dp"), ({"tp": 64}, "tp is more than the query heads"), ({"pp": 64}, "pp is more than the layers")],
)
def test_impossible_sizes_are_refused(sizes: dict[str, int], reason: str) -> None:
    """A row with sizes that no engine could run says so, and has no speed."""
    row = one(model="mixtral-8x7b", **sizes)
    assert row["status"] == f"refused: {reason}"
    assert row["tokens_per_s"] is None
    assert row["usd_per_million_tokens"] is None


def test_groups_within_a_node_use_its_link() -> None:
    """Without NVLink the host link counts; past the node the network."""
    gpus = {"l40s": {"pcie_gb_s": 32, "node_gpus": 4, "network_gb_s": 25}}
    inside, across = run({"gpu": "l40s", "batch": 64, "tp": 4}, {"gpu": "l40s", "batch": 64, "tp": 8}, gpus=gpus)
    assert (inside["tensor_link_gb_s"], across["tensor_link_gb_s"]) == (32, 25)


# -- formats and energy ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpu", "weights", "activations", "rate", "status"),
    [("h100-sxm", "fp8", "bf16", 989, "ok"), ("h100-sxm", "fp8", "fp8", 1979, "ok"), ("h100-sxm", "int8", "int8", 1979, "ok"),
     ("b200", "nvfp4", "fp4", 9000, "ok"), ("a100-80gb", "fp8", "fp8", 312, "refused: this GPU has no FP8 rate"),
     ("h100-sxm", "nvfp4", "fp4", 989, "refused: this GPU has no FP4 rate"),
     ("h100-sxm", "bf16", "fp8", 1979, "refused: activations need weights of their kind, as small or smaller")],
)  # fmt: skip
def test_rate_follows_the_formats(gpu: str, weights: str, activations: str, rate: float, status: str) -> None:
    """Weights alone leave the BF16 rate; weights and activations take the chip's own, or are refused where it has none."""
    row = one(gpu=gpu, weights=weights, activations=activations, batch=512, context=128)
    assert row["peak_tflops"] == rate if "peak_tflops" in row else True
    assert row["status"] == status
    assert (row["tokens_per_s"] is None) == (status != "ok")
    if status == "ok":
        flops = 512 * (2 * 7_504_924_672 + 4 * 4096 * 128 * 32)
        assert row["verify_ms"] >= flops / (rate * 1e9) * (1 - 1e-12)


def test_energy_is_board_power_over_tokens() -> None:
    """Two H100 at 700 W and 100 tokens/s use 1400 J per 100 tokens: kWh per million are 1400 / rate / 3.6."""
    row = one(model="llama-3-70b", gpus=2, batch=4)
    assert row["kwh_per_million_tokens"] == pytest.approx(1400 / row["tokens_per_s"] * 1e6 / 3.6e6, rel=1e-12)


# -- prompts -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("prompt", "printed"), [(8192, "140.55"), (131072, "6470")])
def test_prefill_lines_of_the_article(prompt: int, printed: str) -> None:
    """Llama-3-8B, causal: 8192 tokens are 140.55 TFLOP, 131072 tokens 6.47 PFLOP."""
    row = one(prompt_tokens=prompt, output_tokens=1)
    digits = len(printed.rstrip("0").replace(".", ""))
    assert float(f"{row['prefill_tflop']:.{digits}g}") == float(printed)
    exact = (2 * 7_504_924_672 * prompt + 4 * 4096 * 32 * prompt**2 / 2) / 1e12
    assert row["prefill_tflop"] == pytest.approx(exact, rel=1e-12)
    assert row["ttft_ms"] == pytest.approx(exact / 989 * 1e3, rel=1e-12)


def test_windows_cap_the_attention_of_a_prompt() -> None:
    """A token of a sliding layer attends to min(its place, window) others: the sum over the prompt, on average."""
    row = one(model="gpt-oss-20b", prompt_tokens=2048, output_tokens=1)
    pairs = 12 * 2048**2 / 2 + 12 * (128**2 / 2 + (2048 - 128) * 128)
    assert row["prefill_attention_tflop"] == pytest.approx(4 * 64 * 64 * pairs / 1e12, rel=1e-12)


def test_price_of_a_request() -> None:
    """A prompt is paid for at the pace of prefill, an answer at that of decoding; blended is per token of both."""
    row = one(batch=16, context="derived", prompt_tokens=4000, output_tokens=1000)
    assert row["context"] == 4500
    second = 2.5 / 3600
    prompt, token = row["ttft_ms"] / 1e3 * second, second / row["tokens_per_s"]
    assert row["usd_per_million_input_tokens"] == pytest.approx(prompt / 4000 * 1e6, rel=1e-12)
    assert row["usd_per_request"] == pytest.approx(prompt + 1000 * token, rel=1e-12)
    assert row["usd_per_million_blended"] == pytest.approx((prompt + 1000 * token) / 5000 * 1e6, rel=1e-12)
    assert row["request_ms"] == pytest.approx(row["ttft_ms"] + 999 * row["tpot_ms"], rel=1e-12)


def test_row_without_a_prompt_has_no_request_columns() -> None:
    """In a table of both, rows that give no prompt keep their speed and leave the request blank."""
    asked, plain = run({"prompt_tokens": 100, "output_tokens": 10}, {"context": 50})
    assert asked["usd_per_request"] > 0
    assert plain["usd_per_request"] is None
    assert plain["tokens_per_s"] > 0


def test_context_is_required_without_both_lengths() -> None:
    """A prompt alone does not say how long the answer is, so the context is asked for."""
    with pytest.raises(scenario.TableError, match="context"):
        run({"context": "derived", "prompt_tokens": 100})


# -- images ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoder", "tokens"),
    # Makers' papers and processors: LLaVA-1.5 576, Gemma 3 256, Qwen2.5-VL 37 x 37 of 28 px, Qwen3-VL 32 x 32 of 32 px, both between two
    # marks; Pixtral 64 rows of 64 and a break; InternVL 9 tiles and a thumbnail of 256; Llama 4 16 tiles and a thumbnail of 144.
    [("clip-336", 576), ("siglip-896", 256), ("qwen2.5-vl", 37 * 37 + 2), ("qwen3-vl", 32 * 32 + 2), ("pixtral", 64 * 65),
     ("internvl-448", 10 * 256 + 2), ("llama-4", 17 * 144 + 2)],
)  # fmt: skip
def test_tokens_of_an_image(encoder: str, tokens: int) -> None:
    """A 1024 x 1024 image becomes as many prompt tokens as its encoder's maker says, and its cache is theirs."""
    row = one(encoder=encoder, prompt_tokens=100, output_tokens=10)
    assert row["image_tokens"] == tokens
    assert row["prefill_tokens"] == 100 + tokens
    assert row["image_kv_gb"] == pytest.approx(tokens * 131072 / 1e9, rel=1e-12)


def test_encoder_arithmetic_and_size() -> None:
    """CLIP ViT-L has 0.30e9 parameters and takes about 0.38 TFLOP for 576 patches (24 layers of 1024, 4096 inside)."""
    row = one(encoder="clip-336", prompt_tokens=100, output_tokens=10)
    layers = 24 * (4 * 1024**2 + 2 * 1024 * 4096)
    patches = 3 * 14**2 * 1024
    projector = 1024 * 4096 + 4096 * 4096
    assert row["encoder_gb"] == pytest.approx(2 * (layers + patches + projector) / 1e9, rel=1e-12)
    flops = 2 * 576 * (layers + patches + projector) + 4 * 24 * 1024 * 576**2
    assert row["image_tflop"] == pytest.approx(flops / 1e12, rel=1e-12)


def test_image_table_halves_in_fp8() -> None:
    """The bundled table of images has FP8 beside BF16: half the weights, half the cache, the same tokens."""
    result = scenario.run(bundled()["image-cost"])
    rows = {(row["model"], row["encoder"], row["weights"]): row for row in result.frame.iter_rows(named=True)}
    assert len(rows) == 60
    for (model, encoder, weights), row in rows.items():
        if weights == "fp8":
            plain = rows[model, encoder, "bf16"]
            assert row["image_tokens"] == plain["image_tokens"]
            assert row["image_kv_gb"] == pytest.approx(plain["image_kv_gb"] / 2, rel=1e-12)
            assert row["weight_gb"] == pytest.approx(plain["weight_gb"] / 2, rel=1e-12)


# -- workbooks -----------------------------------------------------------------------------------------------------------------------

EVERYTHING = {
    "version": 1, "defaults": {"prefill_chunk": 2048, "memory_utilization": 0.9},
    "rows": [
        {"model": ["llama-3-70b", "deepseek-v3", "gpt-oss-20b"], "gpu": ["h100-sxm", "a100-80gb"], "batch": [4, 64], "context": 8192,
         "method": "vanilla", "tp": [1, 16], "weights": "published"},
        {"model": "llama-3-70b", "gpu": "h200", "batch": 8, "context": 4096, "method": ["int4+small-model", "eagle"], "tp": 2, "pp": 2, "dp": 2},
        {"model": ["deepseek-v3", "qwen3-30b-a3b"], "gpu": "h200", "batch": 64, "context": 4096, "method": "mtp", "tp": 2, "dp": 8, "ep": 16,
         "weights": ["fp8", "bf16"], "activations": ["fp8", "int8", "bf16"]},
        {"model": ["gemma-4-26b-a4b", "mistral-7b-v0.1", "qwen3-next-80b-a3b", "nemotron-3-nano-30b-a3b"], "gpu": "l40s", "gpus": ["auto", 4],
         "batch": 8, "method": "vanilla", "prompt_tokens": 2000, "output_tokens": 300, "encoder": ["siglip-896", "internvl-448", None]},
    ],
}  # fmt: skip


@needs_soffice
def test_every_cell_is_what_the_engine_computes(tmp_path) -> None:
    """Recalculated by LibreOffice, a workbook that uses every part of the model shows the engine's values to 1e-9."""
    path = scenario.run(EVERYTHING).to_excel(tmp_path / "all.xlsx")
    ours, theirs = openpyxl.load_workbook(path, data_only=True), openpyxl.load_workbook(recalculate(path, tmp_path), data_only=True)
    wrong, seen = [], 0
    for title in ours.sheetnames:
        for row in ours[title].iter_rows():
            for cell in row:
                found = theirs[title][cell.coordinate].value
                if cell.value in (None, "") and found in (None, ""):
                    continue
                seen += 1
                numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (cell.value, found))
                same = math.isclose(cell.value, found, rel_tol=1e-9, abs_tol=1e-9) if numbers else found == cell.value
                if not same:
                    wrong.append(f"{title}!{cell.coordinate}: {cell.value!r}, recalculated {found!r}")
    assert seen > 15_000
    assert not wrong, wrong[:10]


@needs_soffice
def test_a_changed_layer_count_changes_every_cost(tmp_path) -> None:
    """Halving `layers` on the sheet Models gives, recalculated, what a table with half the layers gives."""
    grid = {"model": ["llama-3-8b"], "gpu": ["h100-sxm"], "batch": [1, 64], "context": [4096], "method": ["vanilla", "int4"]}
    path = scenario.run({"version": 1, "grid": grid}).to_excel(tmp_path / "before.xlsx")
    wanted = scenario.run({"version": 1, "grid": grid, "models": {"llama-3-8b": {"layers": 16}}}).frame
    workbook = openpyxl.load_workbook(path)
    models = workbook["Models"]
    head = {models.cell(5, column).value: column for column in range(1, models.max_column + 1)}
    line = next(row for row in range(6, models.max_row + 1) if models.cell(row, 1).value == "llama-3-8b")
    models.cell(line, head["layers"]).value = 16
    workbook.save(tmp_path / "after.xlsx")
    sheet = openpyxl.load_workbook(recalculate(tmp_path / "after.xlsx", tmp_path), data_only=True)["Scenarios"]
    names = {sheet.cell(5, column).value: column for column in range(1, sheet.max_column + 1)}
    for index, row in enumerate(wanted.iter_rows(named=True), 6):
        for name in ("params", "weight_gb", "kv_gb", "step_ms", "tpot_ms", "flops_per_token", "max_batch", "max_context", "lora_all_params",
                     "usd_per_million_tokens", "kwh_per_million_tokens"):  # fmt: skip
            assert sheet.cell(index, names[name]).value == pytest.approx(row[name], rel=1e-9), name
