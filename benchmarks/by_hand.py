"""The rivals of the evaluator: the same columns written by hand in polars, in numpy and in plain Python.

Each takes the same input frame and catalog and returns every column of ``ORDER``. They
are written the way a practised person writes them for just these methods and inputs: what the input frame
does not vary (formats, shares, prices) is a constant, and no input is checked.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from scenario.model import shared

BEYOND = ("kwh_per_million_tokens", "activation_gb", "breaking_term", "max_context")
ORDER = tuple(name for name in shared.ORDER if name not in BEYOND)
"""The shared columns that every contender computes."""
MFU = MBU = MEMORY_UTILIZATION = UTILIZATION = 1.0
WEIGHTS_BITS = KV_BITS = 16.0
LAUNCH_US = 50.0
INT4_BITS = 4 + (16 + 16) / 128
UNLIMITED = 1e15
NODES, HIT_RATE, SMALL_DRAFT_COST = 64.0, 0.4, 0.1
ONE_LAYER_COST = 0.1
"""The cost of an EAGLE or MTP pass over a step: typed in the table, so that every contender has the same plain formula."""
ALPHA = {"small-model": 0.7, "medusa": 0.6, "eagle": 0.75, "ngram": 0.6, "mtp": 0.85, "int4+eagle": 0.75}
GAMMA = {"small-model": 4.0, "medusa": 4.0, "eagle": 4.0, "ngram": 4.0, "mtp": 1.0, "int4+eagle": 4.0}
MODEL_COLUMNS = [
    "params", "active_params", "gemm_params", "embedding_params", "lm_head_params", "layers", "hidden",
    "lora_attention_params", "lora_all_params", "block_dense_params", "block_active_params", "full_layers", "window_layers",
    "window_tokens", "heads", "qk_head_dim", "value_head_dim", "kv_width", "experts", "experts_per_token", "unrouted_params",
    "moe_layers", "expert_params",
]  # fmt: skip
GPU_COLUMNS = ["bandwidth_tb_s", "bf16_tflops", "memory_gb", "usd_per_hour"]


def in_polars(rows: pl.DataFrame, models: pl.DataFrame, gpus: pl.DataFrame, engine: str = "auto") -> pl.DataFrame:
    """(a) Joins for the catalog, when/then by method, one ``with_columns`` per stage, all lazy."""
    c, lit, when = pl.col, pl.lit, pl.when
    method = c("method")
    drafts = {name: method == name for name in ("small-model", "medusa", "ngram", "mtp")}
    drafts["eagle"] = method.is_in(["eagle", "int4+eagle"])
    int4 = method.is_in(["int4", "int4+eagle"])
    # What follows from the model alone is worked out on the catalog, once per model.
    models = models.select("name", *MODEL_COLUMNS).with_columns(
        kv_bytes_per_token=c("layers") * c("kv_width") * KV_BITS / 8,
        fixed_params=c("unrouted_params") + c("embedding_params") + c("lm_head_params"),
        miss=1 - c("experts_per_token") / when(c("experts") > 0).then("experts").otherwise(1),
        routed=c("moe_layers") * c("expert_params") * c("experts"),
    )
    gpus = gpus.select(c("name"), *[c(n).alias(f"gpu_{n}") for n in GPU_COLUMNS[:3]], "usd_per_hour")

    def params_hit(tokens: pl.Expr) -> pl.Expr:
        return c("fixed_params") + c("routed") * (1 - c("miss") ** tokens)

    def forward(tokens: pl.Expr, weights: pl.Expr) -> pl.Expr:
        return pl.max_horizontal((weights + c("kv_read_gb")) / c("bandwidth"), tokens * c("flops_per_token") / c("flops"))

    def draft_pass(body: pl.Expr, head: pl.Expr, layers: int) -> pl.Expr:
        compute = 2 * c("batch") * (body + head) / c("flops")
        return pl.max_horizontal(2 * body / (c("bandwidth") * 1e9), compute, layers * LAUNCH_US / 1000) + 2 * head / (c("bandwidth") * 1e9)

    chain = when(c("alpha") < 1).then((1 - c("alpha") ** (c("gamma") + 1)) / (1 - c("alpha"))).otherwise(c("gamma") + 1)
    plan = (
        rows.lazy()
        .join(models.lazy(), left_on="model", right_on="name", how="left", maintain_order="left")
        .join(gpus.lazy(), left_on="gpu", right_on="name", how="left", maintain_order="left")
        .with_columns(
            alpha=pl.coalesce("alpha", method.replace_strict(ALPHA, default=None, return_dtype=pl.Float64)),
            gamma=pl.coalesce("gamma", method.replace_strict(GAMMA, default=None, return_dtype=pl.Float64)),
            bandwidth=c("gpu_bandwidth_tb_s") * c("gpus") * MBU, flops=c("gpu_bf16_tflops") * c("gpus") * MFU * 1e9,
            weight_bits=when(int4).then(INT4_BITS).otherwise(WEIGHTS_BITS),
            attended=c("full_layers") * c("context") + c("window_layers") * pl.min_horizontal("context", "window_tokens"),
            weights=lit("bf16"), kv=lit("bf16"), mfu=lit(MFU), mbu=lit(MBU), utilization=lit(UTILIZATION),
        )
        .with_columns(
            rows_per_sequence=when(drafts["small-model"] | drafts["eagle"] | drafts["mtp"]).then(c("gamma") + 1)
            .when(drafts["medusa"]).then(NODES + 1).when(drafts["ngram"]).then(1 + c("gamma") * HIT_RATE).otherwise(1.0),
            chain=chain,
            attention_flops_per_token=2 * c("heads") * (c("qk_head_dim") + c("value_head_dim")) * c("attended"),
            kv_sequence_gb=c("kv_width") * KV_BITS / 8e9 * c("attended"),
            batch_params=params_hit(c("batch")),
            ridge=c("gpu_bf16_tflops") * MFU / (c("gpu_bandwidth_tb_s") * MBU),
            weight_gb=c("params") * c("weight_bits") / 8e9,
            memory_available_gb=c("gpu_memory_gb") * c("gpus") * MEMORY_UTILIZATION,
        )
        .with_columns(
            flops_per_token=2 * c("gemm_params") + c("attention_flops_per_token"),
            kv_read_gb=c("batch") * c("kv_sequence_gb"), verify_rows=c("batch") * c("rows_per_sequence"),
            tokens_per_round=when(drafts["ngram"]).then(1 + HIT_RATE * (c("chain") - 1))
            .when(c("gamma").is_null()).then(1.0).otherwise(c("chain")),
            lookahead=when(drafts["ngram"]).then("gamma").otherwise(c("rows_per_sequence") - 1),
            draft_weight_gb=when(drafts["eagle"]).then((c("block_active_params") + 2 * c("hidden") ** 2) * 16 / 8e9)
            .when(drafts["medusa"]).then(c("gamma") * (c("hidden") ** 2 + c("embedding_params")) * 16 / 8e9)
            .when(drafts["mtp"]).then(((c("block_dense_params") + c("experts") * c("expert_params")) + 2 * c("hidden") ** 2) * WEIGHTS_BITS / 8e9).otherwise(0.0),
            draft_kv=when(drafts["eagle"] | drafts["mtp"]).then(c("kv_width") * KV_BITS / 8).otherwise(0.0),
        )
        .with_columns(
            experts_touched=c("experts") * (1 - c("miss") ** c("verify_rows")),
            baseline_ms=forward(c("batch"), c("batch_params") * WEIGHTS_BITS / 8e9),
            step_ms=forward(c("batch"), c("batch_params") * c("weight_bits") / 8e9),
            kv_gb=c("kv_read_gb"),
            lookahead_gb=c("batch") * c("lookahead") * c("kv_bytes_per_token") / 1e9,
            draft_gb=c("draft_weight_gb") + c("batch") * (c("context") + c("lookahead")) * c("draft_kv") / 1e9,
            sequence_gb=c("kv_sequence_gb") + c("lookahead") * c("kv_bytes_per_token") / 1e9
            + (c("context") + c("lookahead")) * c("draft_kv") / 1e9,
            useful_flops_share=c("tokens_per_round") / c("rows_per_sequence"),
            free_batch=when(c("experts") < 1).then((c("ridge") * c("weight_bits") / 16 / c("rows_per_sequence")).floor()),
        )
        .with_columns(
            params_read=c("fixed_params") + c("moe_layers") * c("expert_params") * c("experts_touched"),
            draft_cost=when(drafts["eagle"] | drafts["mtp"]).then(ONE_LAYER_COST)
            .when(drafts["small-model"]).then(SMALL_DRAFT_COST),
            memory_gb=c("weight_gb") + c("kv_gb") + c("lookahead_gb") + c("draft_gb"),
        )
        .with_columns(
            weight_read_gb=c("params_read") * c("weight_bits") / 8e9,
            draft_ms=when(drafts["medusa"])
            .then(draft_pass(c("gamma") * c("hidden") ** 2, c("gamma") * c("embedding_params"), 0))
            .when(c("draft_cost").is_not_null()).then(c("gamma") * c("draft_cost") * c("baseline_ms")).otherwise(0.0),
            fits=c("memory_gb") <= c("memory_available_gb"), headroom_gb=c("memory_available_gb") - c("memory_gb"),
            max_batch=when(c("sequence_gb") > 0)
            .then(((c("memory_available_gb") - c("weight_gb") - c("draft_weight_gb")) / c("sequence_gb")).floor().clip(0))
            .when(c("weight_gb") + c("draft_weight_gb") <= c("memory_available_gb")).then(UNLIMITED).otherwise(0.0),
        )
        .with_columns(
            intensity=c("verify_rows") * c("flops_per_token") / ((c("weight_read_gb") + c("kv_read_gb")) * 1e9),
            verify_ms=forward(c("verify_rows"), c("weight_read_gb")),
            status=when("fits").then(when(c("usd_per_hour").is_not_null()).then(lit("ok")).otherwise(lit("no price for this GPU")))
            .when(c("weight_gb") > c("memory_available_gb")).then(lit("does not fit: weights"))
            .when(c("weight_gb") + c("draft_weight_gb") > c("memory_available_gb")).then(lit("does not fit: draft weights"))
            .otherwise(lit("does not fit: KV cache")),
        )
        .with_columns(
            round_ms=c("draft_ms") + c("verify_ms"),
            bound=when(c("intensity") > c("ridge")).then(lit("compute")).otherwise(lit("memory")),
        )
        .with_columns(
            tpot_ms=when("fits").then(c("round_ms") / c("tokens_per_round")),
            tokens_per_s=when("fits").then(c("batch") * c("tokens_per_round") / c("round_ms") * 1000),
            speedup=when("fits").then(c("tokens_per_round") * c("baseline_ms") / c("round_ms")),
        )
        .with_columns(
            tokens_per_s_per_gpu=c("tokens_per_s") / c("gpus"),
            usd_per_million_tokens=c("usd_per_hour") * c("gpus") / (c("tokens_per_s") * (UTILIZATION * 3600)) * 1e6,
        )
    )  # fmt: skip
    return plan.select(ORDER).collect(engine=engine)  # type: ignore[call-overload]


def in_numpy(rows: pl.DataFrame, models: pl.DataFrame, gpus: pl.DataFrame) -> dict[str, Any]:
    """(b) Whole-array arithmetic; catalog values by index, masks by method. Blank is NaN."""
    names = ["vanilla", "small-model", "medusa", "eagle", "ngram", "mtp", "int4", "int4+eagle"]

    def codes(column: str, values: list[str]) -> np.ndarray:
        # numpy has no fast way from strings to indices; polars' is lent to it.
        return rows[column].cast(pl.Enum(values)).to_physical().to_numpy()

    model, gpu = codes("model", models["name"].to_list()), codes("gpu", gpus["name"].to_list())
    method = codes("method", names)
    m = {name: models[name].to_numpy().astype(float) for name in MODEL_COLUMNS}
    g = {name: gpus[name].to_numpy().astype(float) for name in GPU_COLUMNS}
    batch, context, n = rows["batch"].to_numpy(), rows["context"].to_numpy(), rows["gpus"].to_numpy()
    o: dict[str, Any] = {name: rows[name] for name in ("id", "model", "gpu", "method")}
    o |= {"batch": batch, "context": context, "gpus": n}
    fill = np.array
    alpha, gamma = rows["alpha"].to_numpy(), rows["gamma"].to_numpy()
    alpha = np.where(np.isnan(alpha), fill([ALPHA.get(k, np.nan) for k in names])[method], alpha)
    gamma = np.where(np.isnan(gamma), fill([GAMMA.get(k, np.nan) for k in names])[method], gamma)
    o |= {"alpha": alpha, "gamma": gamma, "usd_per_hour": g["usd_per_hour"][gpu]}
    o |= {"weights": np.full(len(batch), "bf16", object), "kv": np.full(len(batch), "bf16", object)}
    o |= {"mfu": np.full(len(batch), MFU), "mbu": np.full(len(batch), MBU), "utilization": np.full(len(batch), UTILIZATION)}
    for name in MODEL_COLUMNS[:9]:
        o[name] = m[name][model]
    eagle, medusa, ngram, mtp = (method == 3) | (method == 7), method == 2, method == 4, method == 5
    small, one_layer_rows = method == 1, (method == 3) | (method == 7) | (method == 5)
    o["weight_bits"] = weight_bits = fill([WEIGHTS_BITS] * 6 + [INT4_BITS] * 2)[method]
    bandwidth, flops = g["bandwidth_tb_s"][gpu] * (n * MBU), g["bf16_tflops"][gpu] * (n * (MFU * 1e9))
    attended = m["full_layers"][model] * context + m["window_layers"][model] * np.minimum(context, m["window_tokens"][model])
    o["attention_flops_per_token"] = (2 * m["heads"] * (m["qk_head_dim"] + m["value_head_dim"]))[model] * attended
    o["flops_per_token"] = flops_per_token = 2 * o["gemm_params"] + o["attention_flops_per_token"]
    o["kv_bytes_per_token"] = (m["layers"] * m["kv_width"] * KV_BITS / 8)[model]
    kv_sequence_gb = (m["kv_width"] * KV_BITS / 8e9)[model] * attended
    o["kv_read_gb"] = o["kv_gb"] = batch * kv_sequence_gb
    rows_per_sequence = np.ones(len(batch))
    chained = small | one_layer_rows
    rows_per_sequence[chained] = gamma[chained] + 1
    rows_per_sequence[medusa] = NODES + 1
    rows_per_sequence[ngram] = 1 + gamma[ngram] * HIT_RATE
    o["rows_per_sequence"] = rows_per_sequence
    tokens = np.ones(len(batch))
    drafting = chained | medusa | ngram
    a, k = alpha[drafting], gamma[drafting] + 1
    with np.errstate(invalid="ignore", divide="ignore"):
        tokens[drafting] = np.where(a < 1, (1 - a**k) / (1 - a), k)
    tokens[ngram] = 1 + HIT_RATE * (tokens[ngram] - 1)
    o["tokens_per_round"] = tokens
    lookahead = rows_per_sequence - 1
    lookahead[ngram] = gamma[ngram]
    o["verify_rows"] = verify_rows = batch * rows_per_sequence
    fixed = (m["unrouted_params"] + m["embedding_params"] + m["lm_head_params"])[model]
    routed = (m["moe_layers"] * m["expert_params"])[model]
    # Only mixtures of experts have experts to miss.
    moe = np.flatnonzero((m["experts"] > 0)[model])
    experts = m["experts"][model[moe]]
    miss = 1 - m["experts_per_token"][model[moe]] / experts
    o["experts_touched"] = touched = np.zeros(len(batch))
    touched[moe] = experts * (1 - miss ** verify_rows[moe])
    batch_params = fixed.copy()
    batch_params[moe] += routed[moe] * experts * (1 - miss ** batch[moe])
    o["params_read"] = fixed + routed * touched
    o["weight_read_gb"] = o["params_read"] * weight_bits / 8e9
    o["intensity"] = verify_rows * flops_per_token / ((o["weight_read_gb"] + o["kv_read_gb"]) * 1e9)
    o["ridge"] = (g["bf16_tflops"] * MFU / (g["bandwidth_tb_s"] * MBU))[gpu]
    o["bound"] = fill(["memory", "compute"], object)[(o["intensity"] > o["ridge"]).astype(np.int8)]

    def forward(count: np.ndarray, weight_gb: np.ndarray) -> np.ndarray:
        return np.maximum((weight_gb + o["kv_read_gb"]) / bandwidth, count * flops_per_token / flops)

    o["baseline_ms"] = forward(batch, batch_params * (WEIGHTS_BITS / 8e9))
    o["step_ms"] = forward(batch, batch_params * weight_bits / 8e9)
    o["verify_ms"] = forward(verify_rows, o["weight_read_gb"])

    def draft_pass(mask: np.ndarray, body: np.ndarray, head: np.ndarray, layers: int) -> np.ndarray:
        rate = bandwidth[mask] * 1e9
        compute = 2 * batch[mask] * (body + head) / flops[mask]
        return np.maximum(np.maximum(2 * body / rate, compute), layers * LAUNCH_US / 1000) + 2 * head / rate

    square = m["hidden"] ** 2
    o["draft_cost"] = cost = np.full(len(batch), np.nan)
    o["draft_ms"] = draft_ms = np.zeros(len(batch))
    where = np.flatnonzero(one_layer_rows)
    cost[where] = ONE_LAYER_COST
    cost[small] = SMALL_DRAFT_COST
    draft_ms[chained] = gamma[chained] * cost[chained] * o["baseline_ms"][chained]
    where = np.flatnonzero(medusa)
    heads = gamma[where]
    draft_ms[where] = draft_pass(where, heads * square[model[where]], heads * o["embedding_params"][where], 0)
    o["round_ms"] = draft_ms + o["verify_ms"]
    o["weight_gb"] = o["params"] * weight_bits / 8e9
    draft_weight_gb, draft_kv = np.zeros(len(batch)), np.zeros(len(batch))
    draft_weight_gb[where] = heads * (square + m["embedding_params"])[model[where]] * 16 / 8e9
    draft_weight_gb[eagle] = ((m["block_active_params"] + 2 * square) * 16 / 8e9)[model[eagle]]
    draft_weight_gb[mtp] = (((m["block_dense_params"] + m["experts"] * m["expert_params"]) + 2 * square) * WEIGHTS_BITS / 8e9)[model[mtp]]
    draft_kv[one_layer_rows] = (m["kv_width"] * KV_BITS / 8)[model[one_layer_rows]]
    lookahead_gb = lookahead * o["kv_bytes_per_token"] / 1e9
    draft_kv_gb = (context + lookahead) * draft_kv / 1e9
    o["draft_gb"] = draft_weight_gb + batch * draft_kv_gb
    o["memory_gb"] = o["weight_gb"] + o["kv_gb"] + batch * lookahead_gb + o["draft_gb"]
    o["memory_available_gb"] = available = g["memory_gb"][gpu] * (n * MEMORY_UTILIZATION)
    o["headroom_gb"] = available - o["memory_gb"]
    o["fits"] = fits = o["memory_gb"] <= available
    sequence_gb = kv_sequence_gb + lookahead_gb + draft_kv_gb
    held = o["weight_gb"] + draft_weight_gb
    with np.errstate(invalid="ignore", divide="ignore"):
        most = np.maximum(np.floor((available - o["weight_gb"] - draft_weight_gb) / sequence_gb), 0)
    o["max_batch"] = np.where(sequence_gb > 0, most, np.where(held <= available, UNLIMITED, 0))
    unpriced = np.isnan(g["usd_per_hour"])[gpu]
    status = np.where(fits, unpriced, np.where(o["weight_gb"] > available, 2, np.where(held > available, 3, 4))).astype(np.int8)
    o["status"] = fill(["ok", "no price for this GPU", "does not fit: weights", "does not fit: draft weights",
                        "does not fit: KV cache"], object)[status]  # fmt: skip
    o["tpot_ms"] = np.where(fits, o["round_ms"] / tokens, np.nan)
    o["tokens_per_s"] = np.where(fits, batch * tokens / o["round_ms"] * 1000, np.nan)
    o["tokens_per_s_per_gpu"] = o["tokens_per_s"] / n
    o["speedup"] = np.where(fits, tokens * o["baseline_ms"] / o["round_ms"], np.nan)
    o["free_batch"] = np.floor(o["ridge"] * weight_bits / 16 / rows_per_sequence)
    o["free_batch"][moe] = np.nan
    o["useful_flops_share"] = tokens / rows_per_sequence
    o["usd_per_million_tokens"] = o["usd_per_hour"] * n / (o["tokens_per_s"] * (UTILIZATION * 3600)) * 1e6
    return o


def in_python(rows: list[dict[str, Any]], models: dict[str, dict[str, Any]], gpus: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """(c) One row after the other."""
    return [_row(row, models[row["model"]], gpus[row["gpu"]]) for row in rows]


def _row(r: dict[str, Any], m: dict[str, Any], g: dict[str, Any]) -> dict[str, Any]:
    method, batch, context, n = r["method"], r["batch"], r["context"], r["gpus"]
    alpha = ALPHA.get(method) if r["alpha"] is None else r["alpha"]
    gamma = GAMMA.get(method) if r["gamma"] is None else r["gamma"]
    draft = "eagle" if method == "int4+eagle" else method
    bits = INT4_BITS if method in ("int4", "int4+eagle") else WEIGHTS_BITS
    bandwidth, flops = g["bandwidth_tb_s"] * n * MBU, g["bf16_tflops"] * n * MFU * 1e9

    def experts_hit(count: float) -> float:
        return m["experts"] * (1 - (1 - m["experts_per_token"] / m["experts"]) ** count) if m["experts"] else 0.0

    def params_hit(count: float) -> float:
        fixed = m["unrouted_params"] + m["embedding_params"] + m["lm_head_params"]
        return fixed + m["moe_layers"] * m["expert_params"] * experts_hit(count)

    def draft_pass(body: float, head: float, layers: int) -> float:
        compute = 2 * batch * (body + head) / flops
        return max(2 * body / (bandwidth * 1e9), compute, layers * LAUNCH_US / 1000) + 2 * head / (bandwidth * 1e9)

    attended = m["full_layers"] * context + m["window_layers"] * min(context, m["window_tokens"])
    attention = 2 * m["heads"] * (m["qk_head_dim"] + m["value_head_dim"]) * attended
    per_token = 2 * m["gemm_params"] + attention
    kv_token = m["layers"] * m["kv_width"] * KV_BITS / 8
    kv_sequence = m["kv_width"] * KV_BITS / 8e9 * attended
    kv = batch * kv_sequence
    chain = None
    if gamma is not None:
        chain = (1 - alpha ** (gamma + 1)) / (1 - alpha) if alpha < 1 else gamma + 1
    step_params = params_hit(batch)

    def forward(count: float, weight_gb: float) -> float:
        return max((weight_gb + kv) / bandwidth, count * per_token / flops)

    baseline = forward(batch, step_params * WEIGHTS_BITS / 8e9)
    per_sequence = tokens = 1.0
    cost: float | None = None
    draft_ms = draft_weight = draft_kv = 0.0
    square = m["hidden"] * m["hidden"]
    if draft in ("small-model", "eagle", "mtp"):
        per_sequence, tokens = gamma + 1, chain
        cost = SMALL_DRAFT_COST
        if draft != "small-model":
            cost = ONE_LAYER_COST
            kept, width = (m["block_active_params"], 16) if draft == "eagle" else ((m["block_dense_params"] + m["experts"] * m["expert_params"]), WEIGHTS_BITS)
            draft_weight = (kept + 2 * square) * width / 8e9
            draft_kv = m["kv_width"] * KV_BITS / 8
        draft_ms = gamma * cost * baseline
    elif draft == "medusa":
        per_sequence, tokens = NODES + 1, chain
        draft_ms = draft_pass(gamma * square, gamma * m["embedding_params"], 0)
        draft_weight = gamma * (square + m["embedding_params"]) * 16 / 8e9
    elif draft == "ngram":
        per_sequence, tokens = 1 + gamma * HIT_RATE, 1 + HIT_RATE * (chain - 1)
    lookahead = gamma if draft == "ngram" else per_sequence - 1
    verify_rows = batch * per_sequence
    read = params_hit(verify_rows)
    weight_read = read * bits / 8e9
    intensity = verify_rows * per_token / ((weight_read + kv) * 1e9)
    ridge = g["bf16_tflops"] * MFU / (g["bandwidth_tb_s"] * MBU)
    verify = forward(verify_rows, weight_read)
    round_ms = draft_ms + verify
    weight_gb = m["params"] * bits / 8e9
    draft_gb = draft_weight + batch * (context + lookahead) * draft_kv / 1e9
    memory = weight_gb + kv + batch * lookahead * kv_token / 1e9 + draft_gb
    available = g["memory_gb"] * n * MEMORY_UTILIZATION
    fits = memory <= available
    sequence = kv_sequence + lookahead * kv_token / 1e9 + (context + lookahead) * draft_kv / 1e9
    if sequence > 0:
        max_batch = float(max(math.floor((available - weight_gb - draft_weight) / sequence), 0))
    else:
        max_batch = UNLIMITED if weight_gb + draft_weight <= available else 0.0
    price = g["usd_per_hour"]
    if fits:
        status = "ok" if price is not None else "no price for this GPU"
    elif weight_gb > available:
        status = "does not fit: weights"
    else:
        status = "does not fit: draft weights" if weight_gb + draft_weight > available else "does not fit: KV cache"
    speed = batch * tokens / round_ms * 1000 if fits else None
    return {
        "id": r["id"], "model": r["model"], "gpu": r["gpu"], "batch": batch, "context": context, "method": method, "gpus": n,
        "weights": "bf16", "kv": "bf16", "mfu": MFU, "mbu": MBU, "alpha": alpha, "gamma": gamma, "draft_cost": cost,
        "usd_per_hour": price, "params": m["params"], "active_params": m["active_params"], "gemm_params": m["gemm_params"],
        "embedding_params": m["embedding_params"], "lm_head_params": m["lm_head_params"], "layers": m["layers"],
        "hidden": m["hidden"], "weight_bits": bits, "lora_attention_params": m["lora_attention_params"],
        "lora_all_params": m["lora_all_params"], "flops_per_token": per_token, "attention_flops_per_token": attention,
        "kv_bytes_per_token": kv_token, "experts_touched": experts_hit(verify_rows), "params_read": read,
        "weight_read_gb": weight_read, "kv_read_gb": kv, "intensity": intensity, "ridge": ridge,
        "bound": "compute" if intensity > ridge else "memory", "step_ms": forward(batch, step_params * bits / 8e9),
        "baseline_ms": baseline, "draft_ms": draft_ms, "verify_ms": verify, "round_ms": round_ms,
        "tpot_ms": round_ms / tokens if fits else None, "rows_per_sequence": per_sequence, "verify_rows": verify_rows,
        "tokens_per_round": tokens, "tokens_per_s": speed, "tokens_per_s_per_gpu": speed / n if fits else None,
        "speedup": tokens * baseline / round_ms if fits else None,
        "free_batch": float(math.floor(ridge * bits / 16 / per_sequence)) if m["experts"] < 1 else None,
        "useful_flops_share": tokens / per_sequence, "utilization": UTILIZATION,
        "usd_per_million_tokens": price * n / (speed * UTILIZATION * 3600) * 1e6 if fits and price is not None else None,
        "weight_gb": weight_gb, "kv_gb": kv, "draft_gb": draft_gb, "memory_gb": memory, "memory_available_gb": available,
        "headroom_gb": available - memory, "fits": fits, "max_batch": max_batch, "status": status,
    }  # fmt: skip
