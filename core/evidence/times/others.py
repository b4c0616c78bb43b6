"""guidellm, inference-perf, InferenceX (InferenceMAX), and a plain CSV."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from scenario.evidence.times.entry import EntryKind, LeftOut, Row, Said, finite, first, number, part, quantization


def _mean(row: Row, *names: str) -> float | None:
    """The mean of successful requests, as either layout has it."""
    for name in names:
        found = part(row, name)
        inner = part(found, "successful") or found
        if inner.get("mean") is not None:
            return finite(name, inner["mean"])
    return None


def _guidellm(row: Row) -> Said:
    metrics, report = part(row, "metrics"), part(row, "report")
    strategy = part(row, "config", "strategy") or part(row, "args", "strategy") or part(row, "config", "profile", "strategy")
    kind = str(strategy.get("type_") or strategy.get("type") or "")
    batch = 1 if kind == "synchronous" else first(strategy, "streams", "max_concurrency") or _mean(metrics, "request_concurrency", "requests_concurrency")
    tpot = _mean(metrics, "inter_token_latency_ms")
    if tpot is None:
        raise LeftOut("there is no mean inter_token_latency_ms of successful requests")
    backend = part(row, "config", "backend") or part(row, "benchmarker", "backend") or part(report, "args") or part(row, "worker")
    return {
        "model": first(backend, "model", "backend_model") or first(part(report, "args"), "model"), "batch": batch,
        "isl": _mean(metrics, "prompt_token_count") or 0, "osl": _mean(metrics, "output_token_count") or 1, "tpot_ms": tpot,
        "ttft_ms": _mean(metrics, "time_to_first_token_ms") or 0, "no_batch": "it says neither streams nor the mean concurrency",
    }  # fmt: skip


def _inference_perf(row: Row) -> Said:
    """Times in seconds; with a fixed rate the mean number of requests in flight follows from it (Little's law)."""
    done, load = part(row, "successes"), part(row, "load_summary")
    latency = part(done, "latency")
    tpot, first_token, whole = (_mean(latency, name) for name in ("time_per_output_token", "time_to_first_token", "request_latency"))
    if tpot is None:
        raise LeftOut("there is no mean time_per_output_token: the run did not stream")
    rate = first(load, "achieved_rate", "requested_rate")
    batch = first(load, "concurrency", "concurrency_level") or (finite("achieved_rate", rate) * whole if rate and whole else None)
    return {
        "model": first(part(row, "report", "config"), "model") or first(row, "model"), "batch": max(float(batch), 1.0) if batch else None,
        "isl": _mean(done, "prompt_tokens", "prompt_len") or 0, "osl": _mean(done, "output_tokens", "output_len") or 1, "tpot_ms": tpot * 1000,
        "ttft_ms": (first_token or 0) * 1000, "no_batch": "it says neither the concurrency nor the rate of requests",
    }  # fmt: skip


def _inferencex(row: Row) -> Said:
    """Results of InferenceX: times in seconds."""
    if str(row.get("dp_attention") or "false").lower() == "true":
        raise LeftOut("data-parallel attention is not modelled")
    if str(row.get("disagg") or "false").lower() == "true":
        raise LeftOut("prefill and decoding on machines of their own are not modelled")
    engine = str(row.get("framework") or "")
    return {
        "model": row.get("model") or row.get("infmax_model_prefix"), "gpu": row["hw"], "gpus": row["tp"], "batch": row["conc"],
        "engine": "trtllm" if "trt" in engine else engine, "isl": row["isl"], "osl": row["osl"], **quantization(row.get("precision")),
        "tpot_ms": number(row, "mean_tpot") * 1000, "ttft_ms": number(row, "mean_ttft", 0) * 1000,
    }  # fmt: skip


PLAIN: Collection[str] = ("model", "gpu", "gpus", "engine", "batch", "context", "isl", "osl", "weights", "kv", "activations", "ttft_ms", "prefill_ms")


def _plain(row: Row) -> Said:
    if not row["batch"]:
        raise LeftOut("there is no batch in it")
    found: dict[str, Any] = {name: value for name, value in row.items() if name in PLAIN and value != ""}
    return {"isl": 0, "osl": 1, "engine": "any", "gpus": 1, **found, "tpot_ms": row["ms"]}


KINDS = (
    EntryKind("guidellm", lambda row: isinstance(row.get("metrics"), dict) and "inter_token_latency_ms" in row["metrics"], _guidellm),
    EntryKind("inference-perf", lambda row: isinstance(row.get("successes"), dict) and "latency" in row["successes"], _inference_perf),
    EntryKind("InferenceX", lambda row: {"hw", "conc", "mean_tpot"} <= row.keys(), _inferencex),
    EntryKind("CSV of batch,context,ms", lambda row: {"batch", "context", "ms"} <= row.keys(), _plain),
)
