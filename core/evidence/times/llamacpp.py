"""llama-bench in every form of its output, llama-batched-bench, and the timings in answers of llama-server and Ollama."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from scenario.catalogs import aliases
from scenario.evidence.times.entry import EntryKind, LeftOut, Row, Said, finite, first, number
from scenario.evidence.times.files import PRINTED
from scenario.model.entities import FORMATS

_CACHE = {"f16": "fp16", "f32": "", "bf16": "bf16"}
NEAR = 0.06
"""Relative distance of a file's bits per weight within which a format stands for it."""
ALL_LAYERS = 900
"""From here on a number of GPU layers means all of them, whatever the model."""


def _bench(row: Row) -> Said:
    prompt, made, depth = (number(row, name, 0) for name in ("n_prompt", "n_gen", "n_depth"))
    rate = number(row, "avg_ts")
    _refuse_elsewhere(row)
    if rate <= 0:
        raise LeftOut("no tokens per second")
    if prompt and made:
        raise LeftOut("prompt and generation in one number cannot be told apart")
    said = f"{PurePath(str(row.get('model_filename') or '')).name} {row.get('model_type') or ''}"
    common = {
        "model": PurePath(str(first(row, "model_filename", "model_type") or "")).name.removesuffix(".gguf"), "model_type": str(row.get("model_type") or ""),
        "gpu": str(row.get("gpu_info") or ""), "engine": "llamacpp", "batch": 1, "gpus": 1, "layers_on_gpu": number(row, "n_gpu_layers", ALL_LAYERS),
        "params": number(row, "model_n_params", 0),
        **_weights(said, number(row, "model_size", 0), number(row, "model_n_params", 0)), **_cache(row),
    }  # fmt: skip
    return {**common, **_timed(prompt, made, depth, rate)}


def _timed(prompt: float, made: float, depth: float, rate: float) -> Said:
    if made:
        return {"isl": 0, "osl": made, "context": depth + made / 2, "tpot_ms": 1000 / rate}
    return {"isl": prompt, "osl": 1, "context": depth + prompt / 2, "prefill_ms": prompt * 1000 / rate}


def _refuse_elsewhere(row: Row) -> None:
    """Raise where not all the work was one GPU's."""
    backend, device = str(row.get("backends") or row.get("backend") or ""), str(row.get("gpu_info") or "")
    if re.fullmatch(r"(?i)(cpu|blas|rpc|accelerate|,|\s)+", backend):
        raise LeftOut(f"it ran on the CPU (backend {backend})")
    if str(row.get("no_kv_offload") or "0").lower() in ("true", "1"):
        raise LeftOut("the KV cache was kept in the host's memory (no_kv_offload)")
    if number(row, "n_cpu_moe", 0) > 0:
        raise LeftOut(f"partly offloaded: the experts of {number(row, 'n_cpu_moe'):g} layers stayed in the host's memory (n_cpu_moe)")
    if str(row.get("split_mode") or "layer") != "none" and device.count(",") and not device.count("("):
        raise LeftOut(f"its layers were split over several devices ({device}), one after the other, which is not modelled")


def _weights(said: str, size: float, params: float) -> Said:
    """The format that the name states, checked against the file's bits per weight, or the one that has them."""
    bits = size * 8 / params if size and params else 0.0
    stated = aliases.stated(said)
    if stated and stated.weights:
        off = bits / FORMATS[stated.weights][0] - 1 if bits else 0.0
        if abs(off) > 0.25:
            return {"asked": f"the name says {stated.weights}, the file has {bits:.2f} bits per weight"}
        return {"weights": stated.weights, "activations": "bf16"}
    near = min(FORMATS, key=lambda name: abs(FORMATS[name][0] - bits)) if bits else ""
    if near and abs(FORMATS[near][0] / bits - 1) <= NEAR:
        return {"weights": near, "activations": "bf16"}
    return {"asked": stated.asked if stated else f"a file of {bits:.2f} bits per weight is of no known format" if bits
            else "neither name nor size says the format of the weights"}  # fmt: skip


def _cache(row: Row) -> Said:
    keys, values = (str(row.get(name) or "f16").lower() for name in ("type_k", "type_v"))
    if keys != values:
        raise LeftOut(f"keys in {keys} and values in {values}: a cache of two formats is not modelled")
    name = _CACHE.get(keys, keys)
    if name not in FORMATS:
        raise LeftOut(f"a KV cache in {keys} is of no known format")
    return {"kv": name}


def _line(row: Row) -> Said:
    """A row of llama-bench's markdown table."""
    test = str(row["test"])
    found = re.fullmatch(r"(pp|tg) ?(\d+)(?: ?@ ?d ?(\d+))?", test)
    if not found:
        raise LeftOut("prompt and generation in one number cannot be told apart" if "+" in test else f"'{test}' is no test that is known")
    rate = finite("t/s", re.split(r"\s*(?:±|\+-|\+/-)", str(row["t/s"]))[0])
    size, params = (_amount(row.get(name)) for name in ("size", "params"))
    count = float(found[2])
    same: dict[str, Any] = {"n_prompt": count if found[1] == "pp" else 0, "n_gen": count if found[1] == "tg" else 0, "n_depth": found[3] or 0,
                            "avg_ts": rate, "model_type": row["model"], "model_size": size, "model_n_params": params,
                            "gpu_info": ", ".join(row.get("devices") or ()), "n_gpu_layers": row.get("ngl") or ALL_LAYERS,
                            "split_mode": row.get("sm"), "no_kv_offload": row.get("nkvo"), "backend": row.get("backend"),
                            "type_k": row.get("type_k"), "type_v": row.get("type_v"), "n_cpu_moe": row.get("n_cpu_moe")}  # fmt: skip
    return _bench(same)


def _amount(said: Any) -> float:
    """``12.55 GiB`` or ``6.74 B`` as a number."""
    found = re.match(r"([\d.]+) ?(KiB|MiB|GiB|TiB|[KMBT])\b", str(said or ""))
    scale = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
    return float(found[1]) * scale[found[2]] if found else 0.0


def _batched(row: Row) -> Said:
    """llama-batched-bench: pl sequences decode tg tokens each after pp of prompt, in t_tg seconds."""
    prompt, made, batch, seconds = (finite(name, first(row, *names)) for name, names in (
        ("pp", ("pp", "PP")), ("tg", ("tg", "TG")), ("pl", ("pl", "B")), ("t_tg", ("t_tg", "T_TG s"))))  # fmt: skip
    if not made or not seconds:
        raise LeftOut("no token was generated")
    return {"model": None, "gpu": ", ".join(row.get("devices") or ()) or None, "engine": "llamacpp", "batch": batch, "gpus": 1, "isl": 0, "osl": made,
            "context": prompt + made / 2, "tpot_ms": seconds * 1000 / made, "layers_on_gpu": number(row, "n_gpu_layers", ALL_LAYERS)}  # fmt: skip


def _ollama(row: Row) -> Said:
    count, spent = number(row, "eval_count"), number(row, "eval_duration")
    if not count > 0 or not spent > 0:
        raise LeftOut("no token was generated")
    # Ollama's library names a model by its size, and stores it in Q4_K_M unless the tag says otherwise.
    name = str(row.get("model") or "")
    return {"model": name.removesuffix(":latest").replace(":", "-"), "engine": "llamacpp", "batch": 1, "gpus": 1, "isl": 0, "osl": count,
            "context": number(row, "prompt_eval_count", 0) + count / 2, "tpot_ms": spent / 1e6 / count, **_tagged(name)}  # fmt: skip


def _tagged(name: str) -> Said:
    stated = aliases.stated(name.replace(":", "-"))
    return {"weights": stated.weights, "activations": "bf16"} if stated and stated.weights else {"asked": "the tag does not say the format"}


def _timings(row: Row) -> Said:
    times = row["timings"]
    made = number(times, "predicted_n")
    return {"model": first(row, "model"), "engine": "llamacpp", "batch": 1, "gpus": 1, "isl": 0, "osl": made,
            "context": number(times, "prompt_n", 0) + number(times, "cache_n", 0) + made / 2, "tpot_ms": number(times, "predicted_per_token_ms")}  # fmt: skip


KINDS = (
    EntryKind("llama-bench (JSON, JSON lines, CSV, SQL)", lambda row: "avg_ts" in row and "n_gen" in row, _bench),
    EntryKind("llama-bench (markdown)", lambda row: row.get(PRINTED) == "table" and {"model", "test", "t/s"} <= row.keys(), _line),
    EntryKind("llama-batched-bench", lambda row: {"pl", "tg", "t_tg"} <= row.keys() or {"TG", "B", "T_TG s"} <= row.keys(), _batched),
    EntryKind("answers of Ollama", lambda row: "eval_count" in row and "eval_duration" in row, _ollama),
    EntryKind("answers of llama-server", lambda row: isinstance(row.get("timings"), dict) and "predicted_per_token_ms" in row["timings"], _timings),
)
