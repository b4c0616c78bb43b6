"""Reads measured serving and decoding times from what benchmarks write.

Understood: the CSV of NVIDIA's aiconfigurator silicon sample, ``vllm bench serve`` JSON, sglang ``bench_serving``
JSON lines, ``llama-bench`` JSON and CSV, ``trtllm-bench`` reports, genai-perf / AIPerf exports, and a plain CSV with
``batch``, ``context`` and ``ms``. What a file does not say (model, GPU, GPUs, weights) is given beside it; what
neither says is an error, never a guess.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scenario.catalogs.catalog import Catalog
from scenario.common import inputs
from scenario.common.errors import Problem, TableError, nearest
from scenario.model import kinds, serving, shared
from scenario.model.entities import FORMATS

Given = Mapping[str, Any]
"""What the command says about all rows: model, gpu, gpus, weights, activations, kv, engine, batch."""


@dataclass(frozen=True)
class Measurement:
    """One measured point. Times in ms; ``isl`` and ``osl`` are 0 and 1 for decoding alone, ``context`` then counts.

    ``tpot_ms`` is the time per output token (or of one decode step), ``ttft_ms`` the time to the first token,
    ``prefill_ms`` that of a prompt alone; 0 where it was not measured.
    """

    place: str
    model: str
    gpu: str
    gpus: float
    engine: str
    batch: float
    context: float
    isl: float = 0
    osl: float = 1
    weights: str = "bf16"
    kv: str = "bf16"
    activations: str = "bf16"
    tpot_ms: float = 0
    ttft_ms: float = 0
    prefill_ms: float = 0

    @property
    def group(self) -> tuple[str, str]:
        """What constants belong to: GPU and engine."""
        return self.gpu, self.engine


@dataclass
class Reading:
    """What came out of some files: points, and why others were left out (place and reason)."""

    points: list[Measurement]
    skipped: list[tuple[str, str]]


def read(paths: Sequence[str], given: Given, catalog: Catalog) -> Reading:
    """All points of the files. Raises :class:`TableError` for a file that is not understood."""
    result = Reading([], [])
    for path in paths:
        raw = inputs.unpacked(inputs.read(path, inputs.MEASUREMENTS), path, inputs.MEASUREMENTS)
        try:
            text = raw.decode("utf-8", "replace").lstrip("\ufeff")
            rows = list(_rows(text, path))
        except (csv.Error, RecursionError) as error:
            raise TableError(Problem(f"cannot be read: {error}", file=path)) from None
        if not rows:
            raise TableError(Problem("there are no measurements in here", file=path))
        for number, row in rows:
            place = f"{Path(path).name}:{number}"
            reader = next((reader for fits, reader in _READERS if fits(row)), None)
            if reader is None:
                raise TableError(Problem(f"entry {number} is of no known format", "known: " + KNOWN, file=path))
            try:
                if MORE in row:
                    raise _LeftOut(f"it has more cells than the header: {', '.join(map(str, row[MORE]))}")
                point = _complete(place, {**_said(reader, row), **{k: v for k, v in given.items() if v is not None}}, catalog)
            except _LeftOut as reason:
                result.skipped.append((place, str(reason)))
                continue
            except TableError as error:
                raise error.at(file=f"{path}:{number}") from None
            result.points.append(point)
    return result


KNOWN = "silicon CSV, vllm bench serve JSON, sglang bench_serving JSONL, llama-bench, trtllm-bench, genai-perf, CSV of batch,context,ms"


MORE = "\0more"
"""The key of cells beyond the header's, which no header has."""


class _LeftOut(Exception):
    """Why an entry is no measurement that can be used."""


def _said(reader: Callable[[Mapping[str, Any]], dict[str, Any]], row: Mapping[str, Any]) -> dict[str, Any]:
    """What one entry says; one that is of the format in part only is left out with the reason."""
    try:
        return reader(row)
    except KeyError as error:
        raise _LeftOut(f"there is no {error.args[0]} in it") from None
    except (AttributeError, TypeError, ValueError, ArithmeticError, IndexError) as error:
        raise _LeftOut(f"it is not as the format has it: {error}") from None


def _number(row: Mapping[str, Any], name: str, default: float | None = None) -> float:
    """A number of an entry, which is needed unless there is a default."""
    said = row.get(name)
    if said in (None, "") and default is not None:
        return default
    return _finite(name, row[name])


def _finite(name: str, said: Any) -> float:
    try:
        value = float(said)
    except (TypeError, ValueError, OverflowError):
        raise _LeftOut(f"{name} is no number: {said!r}") from None
    if not math.isfinite(value):
        raise _LeftOut(f"{name} is no number that can be used: {said!r}")
    return value


def _rows(text: str, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The entries, each with its line, or in one JSON text with its number."""
    start = text.lstrip()[:1]
    if start in ("{", "["):
        try:
            data = json.loads(text)
        except ValueError:
            yield from _json_lines(text, path)
            return
        found = data if isinstance(data, list) else [data]
        yield from ((number, row) for number, row in enumerate(found, 1) if isinstance(row, dict))
        return
    lines = csv.DictReader(io.StringIO(text), restkey=MORE)
    for row in lines:
        cells = {str(key).strip(): (value or "").strip() for key, value in row.items() if not isinstance(value, list)}
        more = [cell.strip() for cell in row.get(MORE) or () if isinstance(row.get(MORE), list) and cell.strip()]
        yield lines.line_num, {**cells, **({MORE: more} if more else {})}


def _json_lines(text: str, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except ValueError:
                raise TableError(Problem(f"line {number} is not JSON", file=path, line=number)) from None
            if isinstance(row, dict):
                yield number, row


# -- the formats: what one entry says, under the names of Measurement ---------------------------------------------------


def _silicon(row: Mapping[str, Any]) -> dict[str, Any]:
    precision = row.get("precision") or "bf16"
    if _number(row, "pp_size", 1) > 1:
        raise _LeftOut("pipeline parallelism is not modelled")
    if _number(row, "attention_dp_size", 1) > 1:
        raise _LeftOut("data-parallel attention is not modelled")
    modes = {"bf16": "bf16", "fp16": "bf16", "fp8": "fp8", "fp4": "nvfp4", "nvfp4": "nvfp4", "mxfp4": "mxfp4"}
    if precision not in modes:
        raise _LeftOut(f"precision {precision} is unknown")
    weights = "mxfp4" if "gpt-oss" in row["model_path"] and precision == "fp4" else modes[precision]
    activations = {"fp8": "fp8", "nvfp4": "fp4"}.get(weights, "bf16")
    return {
        "model": row["model_path"], "gpu": row["system"], "gpus": row["tp_size"], "engine": row["backend"], "isl": row["isl"],
        "osl": row["osl"], "batch": row["batch_size"], "weights": weights, "activations": activations,
        "tpot_ms": row["silicon_tpot_ms"], "ttft_ms": row["silicon_ttft_ms"],
    }  # fmt: skip


def _vllm(row: Mapping[str, Any]) -> dict[str, Any]:
    done = _number(row, "completed", 0)
    if not done > 0:
        raise _LeftOut("no request was completed")
    batch = row.get("max_concurrency")
    if not batch:
        raise _LeftOut("max_concurrency is not set: how many requests ran together is not known")
    sglang = "sglang" in str(row.get("backend", "")) or "total_output_tokens_retokenized" in row
    info = row.get("server_info") if isinstance(row.get("server_info"), dict) else {}
    assert isinstance(info, dict)
    return {
        "model": row.get("model_id") or info.get("model_path"), "engine": "sglang" if sglang else "vllm", "batch": batch,
        "gpus": row.get("tensor_parallel_size") or row.get("tp_size") or info.get("tp_size"), "isl": _number(row, "total_input_tokens") / done,
        "osl": _number(row, "total_output_tokens") / done, "tpot_ms": row["mean_tpot_ms"], "ttft_ms": row.get("mean_ttft_ms") or 0,
    }  # fmt: skip


def _llama(row: Mapping[str, Any]) -> dict[str, Any]:
    prompt, made, depth = (_number(row, name, 0) for name in ("n_prompt", "n_gen", "n_depth"))
    rate = _number(row, "avg_ts")
    if rate <= 0:
        raise _LeftOut("no tokens per second")
    if prompt and made:
        raise _LeftOut("prompt and generation in one number cannot be told apart")
    name = str(row.get("model_filename") or row.get("model_type") or "")
    common = {"model": Path(name).stem, "gpu": str(row.get("gpu_info") or ""), "engine": "llamacpp", "batch": 1, "gpus": 1}
    bits = re.search(r"(?i)[-_. ](bf16|f16|q8_0|q4_[0k]\w*)", name + " " + str(row.get("model_type") or ""))
    formats = {"bf16": "bf16", "f16": "bf16", "q8_0": "int8"}
    if bits:
        common["weights"] = formats.get(bits[1].lower(), "int4")
    if made:
        return {**common, "isl": 0, "osl": made, "context": depth + made / 2, "tpot_ms": 1000 / rate}
    return {**common, "isl": prompt, "osl": 1, "context": depth + prompt / 2, "prefill_ms": prompt * 1000 / rate}


def _trtllm(row: Mapping[str, Any]) -> dict[str, Any]:
    times, requests, world, engine = (row.get(n) or {} for n in ("streaming_metrics", "request_info", "world_info", "engine"))
    if not times.get("avg_tpot_ms"):
        raise _LeftOut("the report has no streaming metrics: run trtllm-bench with --streaming")
    formats = {"FP8": "fp8", "NVFP4": "nvfp4", "W4A16_AWQ": "int4"}
    weights = formats.get(str(engine.get("quantization") or ""), "bf16")
    return {
        "model": engine.get("model"), "gpus": world.get("tp_size"), "engine": "trtllm", "batch": requests["avg_num_concurrent_requests"],
        "isl": requests["avg_input_length"], "osl": requests["avg_output_length"], "weights": weights,
        "activations": {"fp8": "fp8", "nvfp4": "fp4"}.get(weights, "bf16"), "tpot_ms": times["avg_tpot_ms"],
        "ttft_ms": times.get("avg_ttft_ms") or 0, "kv": "fp8" if str(engine.get("kv_cache_dtype")).upper() == "FP8" else "bf16",
    }  # fmt: skip


def _genai(row: Mapping[str, Any]) -> dict[str, Any]:
    def mean(name: str) -> float:
        entry = row.get(name)
        if not isinstance(entry, dict) or entry.get("avg") is None:
            raise _LeftOut(f"there is no average {name}")
        unit = {"ms": 1.0, "s": 1000.0, "sec": 1000.0, "us": 1e-3, "ns": 1e-6}.get(str(entry.get("unit", "ms")), 1.0)
        return _finite(name, entry["avg"]) * (unit if "latency" in name or "time" in name else 1.0)

    config = row.get("input_config") or {}
    models = config.get("model") or config.get("model_names") or [None]
    stimulus = (config.get("perf_analyzer") or {}).get("stimulus") or {}
    batch = stimulus.get("concurrency") or config.get("concurrency") or (config.get("loadgen") or {}).get("concurrency")
    if not batch:
        raise _LeftOut("the export does not say the concurrency")
    return {
        "model": models[0] if isinstance(models, list) else models, "batch": batch, "isl": mean("input_sequence_length"),
        "osl": mean("output_sequence_length"), "tpot_ms": mean("inter_token_latency"), "ttft_ms": mean("time_to_first_token"),
    }  # fmt: skip


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    if not row["batch"]:
        raise _LeftOut("there is no batch in it")
    found = {name: value for name, value in row.items() if name in Measurement.__dataclass_fields__ and value != ""}
    return {"isl": 0, "osl": 1, "engine": "any", "gpus": 1, **found, "tpot_ms": row["ms"]}


_READERS: list[tuple[Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any]], dict[str, Any]]]] = [
    (lambda row: "silicon_tpot_ms" in row, _silicon),
    (lambda row: "mean_tpot_ms" in row and "total_output_tokens" in row, _vllm),
    (lambda row: "avg_ts" in row and "n_gen" in row, _llama),
    (lambda row: "request_info" in row and "world_info" in row, _trtllm),
    (lambda row: "inter_token_latency" in row and "input_sequence_length" in row, _genai),
    (lambda row: {"batch", "context", "ms"} <= row.keys(), _plain),
]


# -- names and numbers ------------------------------------------------------------------------------------------------


def _complete(place: str, found: dict[str, Any], catalog: Catalog) -> Measurement:
    values: dict[str, Any] = {}
    for name in ("model", "gpu", "gpus", "engine", "batch"):
        if found.get(name) in (None, ""):
            raise TableError(Problem(f"it does not say which {name}; that is never guessed", f"give it with --{name}"))
    values["model"] = model_name(str(found["model"]), catalog)
    values["gpu"] = gpu_name(str(found["gpu"]), catalog)
    values["engine"] = {"trt-llm": "trtllm", "tensorrt-llm": "trtllm"}.get(str(found["engine"]).lower(), str(found["engine"]).lower())
    for name in ("weights", "kv", "activations"):
        values[name] = str(found.get(name) or "bf16")
        if name != "activations" and values[name] not in FORMATS:
            raise _LeftOut(f"unknown format '{values[name]}' of {name}; {nearest(values[name], FORMATS) or 'known: ' + ', '.join(FORMATS)}")
    for name in ("gpus", "batch", "isl", "osl", "tpot_ms", "ttft_ms", "prefill_ms"):
        values[name] = _finite(name, found.get(name) or 0)
    values["context"] = _finite("context", found["context"]) if found.get("context") not in (None, "") else values["isl"] + values["osl"] / 2
    point = Measurement(place, **values)
    if not (point.tpot_ms > 0 or point.prefill_ms > 0) or not point.tpot_ms < 1e7:
        raise _LeftOut("there is no time in it")
    if point.osl < 1 or point.batch < 1 or point.gpus < 1:
        raise _LeftOut("batch, output length and GPUs are at least 1")
    for name in ("gpus", "batch", "context", "isl", "osl"):
        parameter = {**shared.INPUTS, **serving.INPUTS}[name]
        # How many requests ran together may be a mean.
        said = kinds.value_problem(replace(parameter, kind="number") if name == "batch" else parameter, values[name])
        if said:
            raise _LeftOut(f"{name}: {said}")
    if not 0 <= point.ttft_ms < 1e9 or not 0 <= point.prefill_ms < 1e9 or point.tpot_ms < 0:
        raise _LeftOut("its times are out of range")
    rate = catalog.gpus[point.gpu].values
    if point.activations in ("fp8", "fp4") and not rate.get(f"{point.activations}_tflops"):
        point = replace(point, activations="bf16")  # weight-only there: expanded before the arithmetic
    return point


def model_name(said: str, catalog: Catalog) -> str:
    """The catalog's name of a model that a benchmark names by its path or file."""
    if said in catalog.models:
        return said
    name = said.rstrip("/").rpartition("/")[2].lower().replace("_", "-")
    name = re.sub(r"^meta-", "", name)
    while name not in catalog.models:
        shorter = re.sub(r"[-.](instruct|chat|it|hf|fp8|bf16|f16|nvfp4|mxfp4|awq|gptq|int4|dynamic|kv|2507|i?q\d(?:-[a-z0-9]{1,2})*|gguf|\d{4}|v0\.\d)$", "", name)
        if shorter == name:
            raise TableError(Problem(f"the model '{said}' is not in the catalog", nearest(name, catalog.models) or "name it with --model"))
        name = shorter
    return name


def gpu_name(said: str, catalog: Catalog) -> str:
    """The catalog's name of a GPU."""
    name = said.lower().replace("_", "-").strip()
    name = re.sub(r"^nvidia[- ]", "", name).replace(" ", "-")
    for candidate in (name, name.removesuffix("-sxm"), f"{name}-sxm", re.sub(r"-(\d+gb).*$", "", name)):
        if candidate in catalog.gpus:
            return candidate
    raise TableError(Problem(f"the GPU '{said}' is not in the catalog", nearest(name, catalog.gpus) or "name it with --gpu"))
