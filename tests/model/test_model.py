"""The engine against a second implementation of its model, written here in plain Python and SI units.

Nothing below reads the engine's formulas or its catalog: model shapes are from the models' config.json files, GPU
rates and prices from the tables that the tests themselves give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest

import scenario

EXACT = 1e-12


@dataclass(frozen=True)
class Shape:
    """A decoder as its config.json tells it; ``biases`` are the parameters beside matrices and norms that every token uses,
    ``layer_biases`` those of one layer of the last kind."""

    hidden: int
    layers: int
    heads: int
    vocab: int
    kv_heads: int = 0
    head_dim: int = 0
    ffn: int = 0
    tied: bool = False
    qk_norm: bool = False
    moe_layers: int = 0
    experts: int = 0
    top: int = 0
    shared: int = 0
    expert_ffn: int = 0
    kv_rank: int = 0
    q_rank: int = 0
    nope: int = 0
    rope: int = 0
    value: int = 0
    window: int = 0
    window_layers: int = 0
    biases: int = 0
    layer_biases: int = 0
    expert_biases: int = 0

    @property
    def attention(self) -> int:
        d = self.hidden
        if not self.kv_rank:
            q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
            return d * q + 2 * d * kv + q * d
        query = d * self.q_rank + self.q_rank * self.heads * (self.nope + self.rope)
        latent = d * (self.kv_rank + self.rope) + self.kv_rank * self.heads * (self.nope + self.value)
        return query + latent + self.heads * self.value * d

    @property
    def expert(self) -> int:
        return 3 * self.hidden * self.expert_ffn + self.expert_biases

    @property
    def vocabulary(self) -> int:
        return self.vocab * self.hidden

    def layers_with(self, experts: float) -> float:
        """Parameters of all layers and the final norm when this many routed experts per layer count."""
        norms = 2 * self.hidden + (2 * self.head_dim if self.qk_norm else 0)
        dense = (self.layers - self.moe_layers) * 3 * self.hidden * self.ffn
        sparse = self.moe_layers * (self.hidden * self.experts + (self.shared + experts) * self.expert)
        return self.layers * (self.attention + norms) + dense + sparse + self.hidden + self.biases

    @property
    def tables(self) -> int:
        """Both vocabulary tables, or the one there is."""
        return self.vocabulary * (1 if self.tied else 2)

    @property
    def params(self) -> float:
        return self.layers_with(self.experts) + self.tables

    @property
    def working(self) -> float:
        """N: what works on a token. An untied input embedding is a lookup; a tied table is the LM head."""
        return self.layers_with(self.top) + self.vocabulary

    @property
    def kv_values(self) -> int:
        """Cache values of one token and layer."""
        return self.kv_rank + self.rope if self.kv_rank else 2 * self.kv_heads * self.head_dim

    def attended(self, context: float) -> float:
        """Cached tokens that one token attends to, over all layers."""
        return (self.layers - self.window_layers) * context + self.window_layers * min(context, self.window)

    def token_flops(self, context: float) -> float:
        scores = self.nope + self.rope if self.kv_rank else self.head_dim
        values = self.value if self.kv_rank else self.head_dim
        return 2 * self.working + 2 * self.heads * (scores + values) * self.attended(context)

    def touched(self, rows: float) -> float:
        return self.experts * (1 - (1 - self.top / self.experts) ** rows) if self.experts else 0.0

    def read(self, rows: float) -> float:
        """Parameters that one pass over ``rows`` token rows reads: in the bound, the resident tables with it."""
        return self.layers_with(self.touched(rows)) + self.tables


SHAPES = {
    "llama-3-8b": Shape(4096, 32, 32, 128256, kv_heads=8, head_dim=128, ffn=14336),
    "llama-3-70b": Shape(8192, 80, 64, 128256, kv_heads=8, head_dim=128, ffn=28672),
    "llama-3.2-1b": Shape(2048, 16, 32, 128256, kv_heads=8, head_dim=64, ffn=8192, tied=True),
    "mixtral-8x7b": Shape(4096, 32, 32, 32000, kv_heads=8, head_dim=128, moe_layers=32, experts=8, top=2, expert_ffn=14336),
    "qwen3-30b-a3b": Shape(2048, 48, 32, 151936, kv_heads=4, head_dim=128, qk_norm=True, moe_layers=48, experts=128, top=8,
                           expert_ffn=768),
    # Norms of the two latents, and a bias per routed expert.
    "deepseek-v3": Shape(7168, 61, 128, 129280, ffn=18432, moe_layers=58, experts=256, top=8, shared=1, expert_ffn=2048,
                         kv_rank=512, q_rank=1536, nope=128, rope=64, value=128, biases=61 * (1536 + 512) + 58 * 256,
                         layer_biases=1536 + 512 + 256),
    # Biases of q, k, v, o and router, and a sink per head; every expert has biases of its own (gate and up 2 x 2880, down 2880).
    "gpt-oss-20b": Shape(2880, 24, 64, 201088, kv_heads=8, head_dim=64, moe_layers=24, experts=32, top=4, expert_ffn=2880,
                         window=128, window_layers=12, biases=24 * ((64 + 16) * 64 + 2880 + 64 + 32),
                         layer_biases=(64 + 16) * 64 + 2880 + 64 + 32, expert_biases=3 * 2880),
}  # fmt: skip


@dataclass(frozen=True)
class Card:
    """A GPU: bytes, bytes/s, FLOP/s, $/hour."""

    memory: float
    bandwidth: float
    flops: float
    usd: float


CARDS = {
    "h100-sxm": Card(80e9, 3.35e12, 989e12, 2.5),
    "a100-80gb": Card(80e9, 2.0e12, 312e12, 1.5),
    "mi300x": Card(192e9, 5.3e12, 1307e12, 2.0),
}
BITS = {"bf16": 16, "fp8": 8}


def table(**sections: Any) -> dict[str, Any]:
    """A table whose GPUs and prices are the ones above."""
    gpus = {
        name: {"memory_gb": card.memory / 1e9, "bandwidth_tb_s": card.bandwidth / 1e12, "bf16_tflops": card.flops / 1e12}
        for name, card in CARDS.items()
    }
    prices = {name: card.usd for name, card in CARDS.items()}
    return {"version": 1, "gpus": gpus, "prices": prices, **sections}


def run_rows(**sections: Any) -> list[dict[str, Any]]:
    return list(scenario.run(table(**sections)).frame.iter_rows(named=True))


def chain(parameters: dict[str, Any]) -> float:
    """Expected tokens of a round: the first draft counts when accepted, the second when both are, and so on, and one more."""
    gamma = parameters["gamma"]
    rates = parameters.get("acceptance")
    if rates is None:
        return sum(parameters["alpha"] ** k for k in range(gamma + 1))
    rates = list(rates)
    last = rates[-1] / rates[-2]
    while len(rates) < gamma:
        rates.append(rates[-1] * last)
    return 1 + sum(rates[:gamma])


def expected(row: dict[str, Any], given: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Every result of a row from its inputs; ``given`` are the parameters by method."""
    shape, card = SHAPES[row["model"]], CARDS[row["gpu"]]
    batch, context, gpus = row["batch"], row["context"], row["gpus"]
    bandwidth, flops = card.bandwidth * gpus * row["mbu"], card.flops * gpus * row["mfu"]
    parts = row["method"].split("+")
    drafting = next((part for part in parts if part not in ("int4", "vanilla")), "")
    own = given.get(drafting, {})
    stored, kv_bits = BITS[row["weights"]], BITS[row["kv"]]

    # Weights: stored, or in 4 bits and a scale and zero point per group
    bits, kept = float(stored), 0
    if "int4" in parts:
        int4 = given["int4"]
        bits = int4["bits"] + (int4["scale_bits"] + int4["zero_bits"]) / int4["group_size"]
        kept = shape.tables if int4["keep_head"] else 0

    def packed(count: float) -> float:
        return ((count - kept) * bits + kept * stored) / 8

    token_kv = shape.layers * shape.kv_values * kv_bits / 8
    sequence_kv = shape.attended(context) * shape.kv_values * kv_bits / 8
    kv_bytes = batch * sequence_kv
    token_flops = shape.token_flops(context)

    scoring = token_flops - 2 * shape.working

    def products(rows: float, weight_bytes: float) -> float:
        return max(weight_bytes / bandwidth, 2 * shape.working * rows / flops)

    def attention(rows: float) -> float:
        return max(kv_bytes / bandwidth, rows * scoring / flops)

    def seconds(rows: float, weight_bytes: float) -> float:
        """Kernel by kernel: matrix products, then attention."""
        return products(rows, weight_bytes) + attention(rows)

    baseline = seconds(batch, shape.read(batch) * stored / 8)

    def draft_pass(read: float, works: float, head: float, cached: float = 0, bits: float = 16) -> float:
        """One pass of a draft: bytes or arithmetic of its layers and LM head, and the bytes of its cache. A bound has no launches.

        ``read`` parameters are read, ``works`` work on a token, ``cached`` values per token are in its cache.
        """
        cache = batch * context * cached * kv_bits / 8
        return max((read + head) * bits / 8 / bandwidth, 2 * batch * (works + head) / flops) + cache / bandwidth

    # What the method verifies, gains, drafts for, and holds
    verify, tokens, drafting_time, draft_bytes, draft_kv, slots = 1.0, 1.0, 0.0, 0.0, 0.0, 0.0
    gamma = own.get("gamma", 0)
    layer = (shape.working - shape.vocabulary) / shape.layers
    head_body = layer + 2 * shape.hidden**2
    if drafting == "ngram":
        verify, slots = 1 + gamma * own["hit_rate"], gamma
        tokens = 1 + own["hit_rate"] * (chain(own) - 1)
    elif drafting == "medusa":
        verify, slots, tokens = own["nodes"] + 1, own["nodes"], chain(own)
        body, heads = gamma * shape.hidden**2, gamma * shape.vocabulary
        drafting_time, draft_bytes = draft_pass(body, body, heads), 2 * (body + heads)
    elif drafting:
        verify, slots, tokens = gamma + 1, gamma, chain(own)
        if drafting == "small-model":
            draft = SHAPES.get(own.get("draft"))
            if draft:
                draft_bytes, draft_kv = 2 * draft.params, draft.layers * draft.kv_values * kv_bits / 8
                body = draft.params - draft.tables
                one = draft_pass(body, body, draft.vocabulary, draft.layers * draft.kv_values)
        else:
            one, draft_kv = draft_pass(head_body, head_body, shape.vocabulary, shape.kv_values), shape.kv_values * kv_bits / 8
            draft_bytes = 2 * head_body
            if drafting == "mtp":  # a block like the model's last, stored like the model; a pass reads the experts that the batch touches
                block = shape.layer_biases + shape.attention + 2 * shape.hidden + (2 * shape.head_dim if shape.qk_norm else 0) + 2 * shape.hidden**2
                block += shape.hidden * shape.experts + shape.shared * shape.expert if shape.experts else 3 * shape.hidden * shape.ffn
                one = draft_pass(block + shape.touched(batch) * shape.expert, block + shape.top * shape.expert, shape.vocabulary,
                                 shape.kv_values, stored)  # fmt: skip
                draft_bytes = (block + shape.experts * shape.expert) * stored / 8
        drafting_time = gamma * (own["draft_cost"] * baseline if "draft_cost" in own else one)

    rows = batch * verify
    verify_bytes = packed(shape.read(rows))
    verifying = seconds(rows, verify_bytes)
    round_time = drafting_time + verifying
    resident = packed(shape.params)
    lookahead = batch * slots * token_kv
    draft_memory = draft_bytes + batch * (context + slots) * draft_kv
    needed, available = resident + kv_bytes + lookahead + draft_memory, card.memory * gpus * row["memory_utilization"]
    fits = needed <= available
    sequence = sequence_kv + slots * token_kv + (context + slots) * draft_kv
    room = available - resident - draft_bytes
    most: Any = max(math.floor(room / sequence), 0) if sequence else (scenario.UNLIMITED if room >= 0 else 0)
    ridge = flops / bandwidth
    rate = batch * tokens / round_time
    dense = not shape.experts
    products_bound = "compute" if 2 * shape.working * rows / flops > verify_bytes / bandwidth else "memory"
    if fits:
        status = "ok"
    elif resident > available:
        status = "does not fit: weights"
    else:
        status = f"does not fit: {'draft weights' if room < 0 else 'KV cache'}"
    return {
        "params": shape.params, "active_params": shape.layers_with(shape.top) + shape.tables, "gemm_params": shape.working,
        "flops_per_token": token_flops, "attention_flops_per_token": token_flops - 2 * shape.working,
        "kv_bytes_per_token": token_kv, "weight_bits": bits, "experts_touched": shape.touched(rows), "params_read": shape.read(rows),
        "weight_read_gb": verify_bytes / 1e9, "kv_read_gb": kv_bytes / 1e9,
        "intensity": 2 * shape.working * rows / verify_bytes, "ridge": ridge,
        "bound": "attention" if attention(rows) > products(rows, verify_bytes) else products_bound,
        "step_ms": seconds(batch, packed(shape.read(batch))) * 1e3, "baseline_ms": baseline * 1e3,
        "draft_ms": drafting_time * 1e3, "verify_ms": verifying * 1e3, "round_ms": round_time * 1e3,
        "rows_per_sequence": verify, "verify_rows": rows, "tokens_per_round": tokens, "useful_flops_share": tokens / verify,
        "achieved_mfu": rows * token_flops / (round_time * card.flops * gpus),
        "free_batch": math.floor(ridge * bits / 16 / verify) if dense else None,
        "ridge_rows": resident / bandwidth * flops / (2 * shape.working) if dense else None,
        "weight_gb": resident / 1e9, "kv_gb": kv_bytes / 1e9, "lookahead_gb": lookahead / 1e9, "draft_gb": draft_memory / 1e9,
        "memory_gb": needed / 1e9, "memory_available_gb": available / 1e9, "headroom_gb": (available - needed) / 1e9,
        "fits": fits, "max_batch": most, "status": status,
        "tpot_ms": round_time / tokens * 1e3 if fits else None, "tokens_per_s": rate if fits else None,
        "tokens_per_s_per_gpu": rate / gpus if fits else None, "speedup": tokens * baseline / round_time if fits else None,
        "usd_per_million_tokens": card.usd * gpus / (rate * row["utilization"] * 3600) * 1e6 if fits else None,
    }  # fmt: skip


METHODS = ["vanilla", "small-model", "medusa", "eagle", "ngram", "mtp", "int4",
           *(f"int4+{name}" for name in ("small-model", "medusa", "eagle", "ngram", "mtp"))]  # fmt: skip
W4A16 = {"bits": 4, "group_size": 128, "scale_bits": 16, "zero_bits": 16, "keep_head": 0}
TYPED = {
    "small-model": {"alpha": 0.8, "gamma": 4, "draft_cost": 0.1}, "eagle": {"alpha": 0.77, "gamma": 5, "draft_cost": 0.06},
    "mtp": {"alpha": 0.88, "gamma": 1, "draft_cost": 0.03}, "medusa": {"alpha": 0.62, "gamma": 3, "nodes": 20},
    "ngram": {"alpha": 0.7, "gamma": 6, "hit_rate": 0.35}, "int4": W4A16,
}  # fmt: skip
DERIVED = {
    "small-model": {"alpha": 0.65, "gamma": 3, "draft": "llama-3.2-1b"}, "eagle": {"alpha": 0.8, "gamma": 2},
    "mtp": {"alpha": 0.85, "gamma": 2}, "medusa": {"alpha": 0.5, "gamma": 5, "nodes": 63},
    "ngram": {"alpha": 1, "gamma": 3, "hit_rate": 0.8}, "int4": {**W4A16, "group_size": 64, "zero_bits": 0, "keep_head": 1},
}  # fmt: skip
FALLING = [0.8, 0.6, 0.42]
PROFILES = {
    **DERIVED, "small-model": {"acceptance": FALLING, "gamma": 5, "draft_cost": 0.07}, "eagle": {"acceptance": FALLING, "gamma": 2},
    "medusa": {"acceptance": FALLING, "gamma": 3, "nodes": 40}, "ngram": {"acceptance": FALLING, "gamma": 4, "hit_rate": 0.5},
}  # fmt: skip
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]]]] = {
    "peak rates, one node": ({"gpus": 8}, TYPED),
    "one GPU, where much does not fit": ({"memory_utilization": 0.9}, PROFILES),
    "attainable rates, FP8 weights and cache": (
        {"gpus": 4, "mfu": 0.6, "mbu": 0.8, "weights": "fp8", "kv": "fp8", "utilization": 0.7}, DERIVED),
}  # fmt: skip


def agree(name: str, found: Any, wanted: Any, scale: float = 0) -> bool:
    if name == "max_batch" and wanted is not None and wanted > 1e6:  # where a whole number falls on the edge, rounding decides
        return abs(found - wanted) <= 1
    if wanted is None or isinstance(wanted, str | bool):
        return bool(found == wanted) and type(found) is type(wanted)
    return found is not None and math.isclose(found, wanted, rel_tol=EXACT, abs_tol=EXACT * scale)


@pytest.mark.parametrize("setting", SETTINGS)
def test_engine_agrees_with_a_second_implementation(setting: str) -> None:
    """Dense, mixture and latent-attention models, all methods and stacks: every column within 1e-12."""
    defaults, parameters = SETTINGS[setting]
    grid = {"model": list(SHAPES), "gpu": list(CARDS), "batch": [1, 24, 300], "context": [0, 4096], "method": METHODS}
    rows = run_rows(defaults=defaults, parameters=parameters, grid=grid)
    assert len(rows) == len(SHAPES) * len(CARDS) * 3 * 2 * len(METHODS)
    wrong = []
    for row in rows:
        for name, value in expected(row, parameters).items():
            # A difference of two sizes is as exact as the sizes are.
            scale = row["memory_available_gb"] + row["memory_gb"] if name == "headroom_gb" else 0
            if name == "attention_flops_per_token":
                scale = row["flops_per_token"]
            if not agree(name, row[name], value, scale):
                wrong.append(f"{row['id']}: {name} is {row[name]!r}, not {value!r}")
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:20])
    assert {row["bound"] for row in rows} == {"compute", "memory", "attention"}
    assert {row["fits"] for row in rows} == {True, False}


def one(method: str = "vanilla", parameters: dict[str, Any] | None = None, **inputs: Any) -> dict[str, Any]:
    """A single row: Llama-3-8B on an H100, batch 1, context 0, unless said otherwise."""
    row = {"model": "llama-3-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": method, **inputs}
    return run_rows(rows=[row], parameters=parameters or {})[0]


def test_cache_flips_the_verdict_of_speculation() -> None:
    """Batch 256, gamma 3, E 2.9, c 0.06: 1.53 times with a cache of 1024 tokens, a loss of 0.85 without."""
    own = {"small-model": {"acceptance": [0.8, 0.6, 0.5], "gamma": 3, "draft_cost": 0.06}}
    with_cache = one("small-model", own, batch=256, context=1024)
    without = one("small-model", own, batch=256, context=0)
    assert with_cache["tokens_per_round"] == pytest.approx(2.9, rel=EXACT)
    assert (f"{with_cache['speedup']:.2f}", f"{without['speedup']:.2f}") == ("1.53", "0.85")


def test_arithmetic_does_not_hide_behind_reads_of_the_cache() -> None:
    """8B, context 2048, batch 240, four drafts at alpha 0.8 and c 0.1: 1.72 times kernel by kernel, where one max() would say 2.40."""
    row = one("small-model", {"small-model": {"alpha": 0.8, "gamma": 4, "draft_cost": 0.1}}, batch=240, context=2048)
    assert f"{row['tokens_per_round'] * row['baseline_ms'] / row['round_ms']:.2f}" == "1.72"  # a little too much for 80e9 bytes
    assert row["bound"] == "attention"
    pooled = max((row["weight_read_gb"] + row["kv_read_gb"]) / 3.35, row["verify_rows"] * row["flops_per_token"] / 989e9)
    plain = max((row["weight_read_gb"] + row["kv_read_gb"]) / 3.35, 240 * row["flops_per_token"] / 989e9)
    assert f"{row['tokens_per_round'] * plain / (0.4 * plain + pooled):.2f}" == "2.40"


def test_cache_is_read_once_per_sequence_not_per_row() -> None:
    """All rows of a verify pass share one read of the cache, while attention arithmetic counts for every row."""
    plain = one(batch=16, context=4096)
    drafted = one("small-model", {"small-model": {"alpha": 0.8, "gamma": 7, "draft_cost": 0.1}}, batch=16, context=4096)
    assert drafted["kv_read_gb"] == plain["kv_read_gb"] == pytest.approx(16 * 4096 * 131072 / 1e9, rel=EXACT)
    assert drafted["intensity"] == pytest.approx(8 * plain["intensity"], rel=EXACT)


MEASURED = {
    # E 2.355; gamma * c 0.294; 8 + 24/100 = 8.24 bits are 0.515 of 16.
    "small-model": {"acceptance": [0.6, 0.4, 0.2, 0.155], "gamma": 4, "draft_cost": 0.0735},
    "int4": {"bits": 8, "scale_bits": 24, "zero_bits": 0, "group_size": 100},
}


def test_stack_is_what_was_measured() -> None:
    """FP16 1.82x, INT4 1.50x, together 2.91x: the draft does not shrink with the target, so gains do not multiply."""
    drafted, packed, both = (one(method, MEASURED) for method in ("small-model", "int4", "int4+small-model"))
    assert drafted["tokens_per_round"] == pytest.approx(2.355, rel=EXACT)
    assert packed["step_ms"] / packed["baseline_ms"] == pytest.approx(0.515, rel=EXACT)
    assert f"{drafted['speedup']:.2f}" == "1.82"
    assert f"{both['speedup'] / packed['speedup']:.2f}" == "1.50"
    assert f"{both['speedup']:.2f}" == "2.91"
    assert f"{drafted['speedup'] * packed['speedup']:.2f}" == "3.53"


def test_stack_verifies_with_the_packed_weights_and_drafts_as_before() -> None:
    """The INT4 target's T(m) goes into the formula; a typed draft cost stays relative to the unquantized step."""
    drafted, both = one("small-model", TYPED, batch=40), one("int4+small-model", TYPED, batch=40)
    assert both["baseline_ms"] == drafted["baseline_ms"]
    assert both["draft_ms"] == drafted["draft_ms"] == pytest.approx(4 * 0.1 * drafted["baseline_ms"], rel=EXACT)
    memory, compute = SHAPES["llama-3-8b"].params * 4.25 / 8 / 3.35e9, 2 * SHAPES["llama-3-8b"].working * 200 / 989e9
    assert compute > memory
    assert both["verify_ms"] == pytest.approx(compute, rel=EXACT)
    assert both["step_ms"] == pytest.approx(memory, rel=EXACT)


@pytest.mark.parametrize(
    ("inputs", "method", "reason"),
    [({"model": "llama-3-70b"}, "vanilla", "weights"),
     ({"batch": 200, "context": 4096}, "vanilla", "KV cache"),
     ({"gpu": "a100-80gb", "memory_utilization": 0.21}, "small-model", "draft weights")],
)  # fmt: skip
def test_rows_that_do_not_fit_have_no_speed_and_no_price(inputs: dict[str, Any], method: str, reason: str) -> None:
    """Sizes and time bounds stay, speed and price are blank, and the status says which term breaks the fit."""
    row = one(method, DERIVED, **inputs)
    assert row["status"] == f"does not fit: {reason}"
    assert row["fits"] is False
    assert row["headroom_gb"] < 0
    for name in ("tpot_ms", "tokens_per_s", "tokens_per_s_per_gpu", "speedup", "usd_per_million_tokens"):
        assert row[name] is None, name
    for name in ("weight_gb", "memory_gb", "step_ms", "baseline_ms", "verify_ms", "round_ms"):
        assert row[name] > 0, name


def test_largest_batch_is_floored_and_is_the_edge() -> None:
    """The largest batch fits and one more does not."""
    most = one(context=4096)["max_batch"]
    assert most == math.floor((80e9 - 16.060522496e9) / (4096 * 131072)) == 119
    assert one(context=4096, batch=119)["fits"]
    assert not one(context=4096, batch=120)["fits"]


def test_without_a_cache_any_batch_fits() -> None:
    """At context 0 vanilla decoding holds nothing per sequence: no limit, unless the weights alone are too large."""
    assert one()["max_batch"] == scenario.UNLIMITED
    assert one(model="llama-3-70b")["max_batch"] == 0


def test_unlimited_is_written_as_a_word(tmp_path) -> None:
    """A file shows the word, not the number that stands for it."""
    row = {"model": "llama-3-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "vanilla"}
    path = scenario.run(table(rows=[row])).to_csv(tmp_path / "out.csv")
    assert "unlimited" in path.read_text(encoding="utf-8")


def test_a_large_number_is_a_number(tmp_path) -> None:
    """Only what a formula calls unlimited is shown as that: not every number that is as large, and not what is reckoned from it."""
    row = {"model": "llama-3-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "vanilla"}
    columns = {"per_day": "flops_per_token * tokens_per_s * 86400", "cap": "min(max_batch, 2e15)", "mine": "max_batch if fits else 0",
               "less": "max_batch - 1", "even": "1e6 * 1e9 * batch"}  # fmt: skip
    result = scenario.run({**table(rows=[row]), "columns": columns})
    path = result.to_csv(tmp_path / "out.csv")
    shown = dict(zip(*(line.split(",") for line in path.read_text(encoding="utf-8").splitlines()), strict=True))
    assert [shown[name] for name in ("max_batch", "cap", "mine")] == ["unlimited"] * 3
    assert float(shown["per_day"]) == pytest.approx(15_009_849_344 * result.frame["tokens_per_s"][0] * 86400, rel=1e-12)
    assert (float(shown["less"]), float(shown["even"])) == (999_999_999_999_999, 1e15)
    assert "unlimited" not in (result.to_markdown(tmp_path / "out.md").read_text().splitlines()[-1].split("|")[-3:])


def test_gpu_without_a_price_has_speed_but_no_cost() -> None:
    """A price is never guessed."""
    mine = {**table(), "rows": [{"model": "llama-3-8b", "gpu": "mine", "batch": 1, "context": 0, "method": "vanilla"}]}
    mine["gpus"]["mine"] = {"memory_gb": 80, "bandwidth_tb_s": 3.35, "bf16_tflops": 989}
    row = scenario.run(mine).frame.row(0, named=True)
    assert row["tokens_per_s"] > 0
    assert row["usd_per_million_tokens"] is None
    assert row["status"] == "no price for this GPU"


@pytest.mark.parametrize(("alpha", "tokens"), [(0, 1), (0.5, 1.875), (0.999999999, 4), (1, 4)])
def test_tokens_per_round_at_the_ends(alpha: float, tokens: float) -> None:
    """Nothing accepted gives 1 token a round, everything accepted gamma + 1, without a division by zero between."""
    row = one("small-model", {"small-model": {"alpha": alpha, "gamma": 3, "draft_cost": 0.1}})
    assert row["tokens_per_round"] == pytest.approx(tokens, rel=1e-8)


@pytest.mark.parametrize(("rows", "touched"), [(1, 2), (2, 3.5), (2500, 8), (100_000, 8)])
def test_experts_touched_at_the_ends(rows: int, touched: float) -> None:
    """One row touches k of n experts, thousands all of them: 0.75 ** 2500 is too small for a spreadsheet."""
    assert one(model="mixtral-8x7b", batch=rows, gpus=8)["experts_touched"] == pytest.approx(touched, rel=EXACT)


def test_speculation_is_not_free_for_a_mixture_at_batch_1() -> None:
    """Two rows read more experts than one, so verifying costs more than decoding even where memory sets the time."""
    own = {"mtp": {"alpha": 0.9, "gamma": 1, "draft_cost": 0}}
    dense, mixture = one("mtp", own), one("mtp", own, model="deepseek-v3", gpus=24)
    assert dense["verify_ms"] == dense["baseline_ms"]
    assert mixture["bound"] == "memory"
    assert mixture["verify_ms"] > mixture["baseline_ms"]
    assert mixture["free_batch"] is None


@pytest.mark.parametrize(("batch", "gain"), [(1, 16 / 4.25), (64, 16 / 4.25), (80, 16 / 4.25), (400, 1)])
def test_weight_only_int4_helps_until_the_ridge(batch: int, gain: float) -> None:
    """Full gain up to about 84 rows, none past 316: arithmetic stays in BF16."""
    assert one("int4", TYPED, batch=batch)["speedup"] == pytest.approx(gain, rel=EXACT)


def test_int4_gain_shrinks_between() -> None:
    """Between 84 and 316 rows the INT4 step is compute bound and the BF16 one is not."""
    speedup = one("int4", TYPED, batch=158)["speedup"]
    assert speedup == pytest.approx(SHAPES["llama-3-8b"].params / 3.35e12 / (SHAPES["llama-3-8b"].working * 158 / 989e12), rel=EXACT)


def test_cache_keeps_its_own_type_under_int4() -> None:
    """Weight-only quantization leaves the KV cache alone."""
    assert one("int4", TYPED, context=4096)["kv_gb"] == one(context=4096)["kv_gb"] == pytest.approx(4096 * 131072 / 1e9, rel=EXACT)
