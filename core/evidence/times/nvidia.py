"""genai-perf and AIPerf (JSON and CSV), trtllm-bench (JSON report and printed), the silicon sample of aiconfigurator."""

from __future__ import annotations

import re
from typing import Any

from scenario.evidence.times.entry import EntryKind, LeftOut, Row, Said, finite, first, number, part, quantization, several_tokens
from scenario.evidence.times.files import PRINTED

_MS = {"ms": 1.0, "s": 1000.0, "sec": 1000.0, "seconds": 1000.0, "us": 1e-3, "µs": 1e-3, "ns": 1e-6}


def _genai(row: Row) -> Said:
    def mean(name: str) -> float:
        entry = row.get(name)
        if not isinstance(entry, dict) or entry.get("avg") is None:
            raise LeftOut(f"there is no average {name}")
        unit = _MS.get(str(entry.get("unit") or "ms").lower(), 1.0)
        return finite(name, entry["avg"]) * (unit if "latency" in name or "time" in name else 1.0)

    config = part(row, "input_config")
    endpoint = part(config, "endpoint")
    models = first(endpoint, "model_names", "model") or first(config, "model", "model_names", "models") or [None]
    streaming = endpoint.get("streaming")
    if streaming is False:
        raise LeftOut("the run did not stream: times per token were not measured")
    batch = (first(part(config, "perf_analyzer", "stimulus"), "concurrency") or first(config, "concurrency")
             or first(part(config, "loadgen"), "concurrency"))  # fmt: skip
    chunk = row.get("inter_chunk_latency")
    tpot = mean("inter_token_latency")
    return {
        "model": models[0] if isinstance(models, list) else models, "batch": batch, "isl": mean("input_sequence_length"),
        "osl": mean("output_sequence_length"), "tpot_ms": tpot, "ttft_ms": mean("time_to_first_token"),
        "chunked": several_tokens(finite("inter_chunk_latency", chunk["avg"]), tpot) if isinstance(chunk, dict) and "avg" in chunk else False,
        "no_batch": "the export does not say the concurrency",
    }  # fmt: skip


def _trtllm(row: Row) -> Said:
    times, requests, world, engine = (part(row, name) for name in ("streaming_metrics", "request_info", "world_info", "engine"))
    if not times.get("avg_tpot_ms"):
        raise LeftOut("the report has no streaming metrics: run trtllm-bench with --streaming")
    if number(world, "pp_size", 1) > 1:
        raise LeftOut("pipeline parallelism is not modelled")
    return {
        "model": engine.get("model"), "gpus": world.get("tp_size"), "engine": "trtllm", "batch": requests["avg_num_concurrent_requests"],
        "isl": requests["avg_input_length"], "osl": requests["avg_output_length"], "tpot_ms": times["avg_tpot_ms"],
        "ttft_ms": times.get("avg_ttft_ms") or 0, **_stored(engine.get("quantization"), engine.get("kv_cache_dtype")),
    }  # fmt: skip


def _stored(said: Any, cache: Any) -> Said:
    kv = str(cache or "").lower()
    return {**quantization(said), "kv": {"none": "", "auto": ""}.get(kv, kv)}


def _printed(row: Row) -> Said:
    """trtllm-bench on the terminal."""
    def value(*names: str) -> Any:
        said = first(row, *names)
        return str(said).split()[0].replace(",", "") if said is not None else None

    tpot = value("average time-per-output-token [tpot] (ms)", "average time per output token (ms)")
    if tpot is None:
        raise LeftOut("it prints no time per output token: run trtllm-bench with --streaming")
    return {
        "model": value("model"), "gpus": value("tp size"), "engine": "trtllm", "batch": value("number of concurrent requests"),
        "isl": value("average input length (tokens)"), "osl": value("average output length (tokens)"), "tpot_ms": tpot,
        "ttft_ms": value("average time-to-first-token [ttft] (ms)") or 0, **_stored(value("quantization"), value("kv cache dtype")),
        "no_batch": "the number of concurrent requests is not printed",
    }  # fmt: skip


def _silicon(row: Row) -> Said:
    precision = row.get("precision") or "bf16"
    if number(row, "pp_size", 1) > 1:
        raise LeftOut("pipeline parallelism is not modelled")
    if number(row, "attention_dp_size", 1) > 1:
        raise LeftOut("attention_dp_size counts ranks of two kinds here, and batch_size is that of one: give batch and GPUs of all in a plain CSV")
    modes = {"bf16": "bf16", "fp16": "bf16", "fp8": "fp8", "fp4": "nvfp4", "nvfp4": "nvfp4", "mxfp4": "mxfp4"}
    if precision not in modes:
        raise LeftOut(f"precision {precision} is unknown")
    weights = "mxfp4" if "gpt-oss" in row["model_path"] and precision == "fp4" else modes[precision]
    return {
        "model": row["model_path"], "gpu": row["system"], "gpus": _tensor_parallel(row), "engine": row["backend"], "isl": row["isl"],
        "osl": row["osl"], "batch": row["batch_size"], "weights": weights, "activations": {"fp8": "fp8", "nvfp4": "fp4"}.get(weights, "bf16"),
        "tpot_ms": row["silicon_tpot_ms"], "ttft_ms": row["silicon_ttft_ms"],
    }  # fmt: skip


def _tensor_parallel(row: Row) -> float:
    """The GPUs of a row: tp_size, which in some rows is the product of the sizes that the id has as ``tpX_epY``."""
    size = number(row, "tp_size")
    named = re.search(r"_tp(\d+)(?:_0)?_ep(\d+)(?:_|$)", str(row.get("id") or ""))
    if named:
        if size not in (tensor := float(named[1]), tensor * float(named[2])):
            raise LeftOut(f"tp_size is {size:g}, its id says {named[0].strip('_')}")
        return tensor
    split, spread = number(row, "moe_tp_size", 1), number(row, "moe_ep_size", 1)
    if split == spread > 1 and size == split * spread > 8:
        raise LeftOut(f"tp_size {size:g} is tp x ep, or {size:g} GPUs: nothing says which")
    return size


KINDS = (
    EntryKind("silicon CSV of aiconfigurator", lambda row: "silicon_tpot_ms" in row, _silicon),
    EntryKind("trtllm-bench (JSON report)", lambda row: "request_info" in row and "world_info" in row, _trtllm),
    EntryKind("trtllm-bench (printed)", lambda row: row.get(PRINTED) == "block" and "tp size" in row, _printed),
    EntryKind("genai-perf, AIPerf (JSON, CSV)", lambda row: "inter_token_latency" in row and "input_sequence_length" in row, _genai),
)
