"""``vllm bench serve`` and SGLang's ``bench_serving``: JSON, JSON lines and the printed block."""

from __future__ import annotations

from typing import Any

from scenario.evidence.times.entry import EntryKind, LeftOut, Row, Said, finite, first, number, part, quantization, several_tokens
from scenario.evidence.times.files import PRINTED


def _served(row: Row) -> Said:
    done = number(row, "completed", 0)
    if not done > 0:
        raise LeftOut("no request was completed")
    info = part(row, "server_info") if isinstance(row.get("server_info"), dict) else {}
    sglang = "sglang" in str(row.get("backend", "")) or "total_output_tokens_retokenized" in row
    tpot = finite("mean_tpot_ms", row["mean_tpot_ms"])
    found = {
        "model": first(row, "model_id", "model") or first(info, "model_path"), "engine": "sglang" if sglang else "vllm",
        "batch": row.get("max_concurrency"), "gpus": first(row, "tensor_parallel_size", "tp_size", "tp") or first(info, "tp_size"),
        "isl": number(row, "total_input_tokens") / done, "osl": number(row, "total_output_tokens") / done, "tpot_ms": tpot,
        "ttft_ms": row.get("mean_ttft_ms") or 0, "chunked": several_tokens(finite("mean_itl_ms", row.get("mean_itl_ms") or 0), tpot),
        "no_batch": "max_concurrency is not set: how many requests ran together is not known",
    }  # fmt: skip
    return {**found, **_settings(info)}


def _settings(info: Row) -> Said:
    """What SGLang's server says of its own settings."""
    if number(info, "pp_size", 1) > 1:
        raise LeftOut("pipeline parallelism is not modelled")
    cache = str(first(info, "kv_cache_dtype") or "")
    return {**quantization(info.get("quantization")), **({"kv": cache} if cache else {})}


def _block(row: Row) -> Said:
    """The printed block of either."""
    def amount(*names: str) -> Any:
        return first(row, *names)

    done = finite("successful requests", amount("successful requests") or 0)
    if not done > 0:
        raise LeftOut("no request was completed")
    tpot, itl = amount("mean tpot (ms)"), amount("mean itl (ms)")
    length = amount("acceptance length", "accept length")
    batch = amount("maximum request concurrency", "max request concurrency", "--max_concurrency")
    sglang = "sglang" in str(amount("backend", "--backend")) or amount("total generated tokens (retokenized)") is not None
    if tpot is None and itl is None:
        raise LeftOut("there is no mean TPOT in it")
    value = finite("mean TPOT", tpot if tpot is not None else itl)
    return {
        "model": amount("--model", "model"), "engine": "sglang" if sglang else "vllm", "batch": batch if batch != "not set" else None,
        "gpus": amount("--tensor_parallel_size"), "isl": finite("total input tokens", amount("total input tokens")) / done,
        "osl": finite("total generated tokens", amount("total generated tokens")) / done, "tpot_ms": value,
        "ttft_ms": amount("mean ttft (ms)") or 0, "length": finite("acceptance length", length or 0),
        "chunked": several_tokens(finite("mean ITL", itl or 0), value),
        "no_batch": "the request concurrency is not printed: how many requests ran together is not known",
    }  # fmt: skip


def _one_batch(row: Row) -> Said:
    """SGLang's bench_one_batch: times of one static batch, in seconds."""
    return {"model": first(row, "model_path", "model"), "engine": "sglang", "batch": row["batch_size"], "gpus": first(row, "tp_size", "tp"),
            "isl": 0, "osl": row["output_len"], "context": number(row, "input_len") + number(row, "output_len") / 2,
            "tpot_ms": finite("median_decode_latency", row["median_decode_latency"]) * 1000}  # fmt: skip


def _no_time(row: Row) -> Said:
    raise LeftOut("a throughput or latency run says no time per token: use bench serve with --max-concurrency")


KINDS = (
    EntryKind("vllm bench serve, sglang bench_serving (JSON)", lambda row: "mean_tpot_ms" in row and "total_output_tokens" in row, _served),
    EntryKind("the printed block of bench serve", lambda row: row.get(PRINTED) == "block" and "successful requests" in row, _block),
    EntryKind("sglang bench_one_batch", lambda row: "median_decode_latency" in row and "batch_size" in row, _one_batch),
    EntryKind("vllm bench throughput or latency", lambda row: "avg_latency" in row or {"elapsed_time", "tokens_per_second"} <= row.keys(), _no_time),
)
