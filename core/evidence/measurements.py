"""Reads measured serving and decoding times from what benchmarks write (``times/`` has one module per tool).

What a file does not say (model, GPU, GPUs, weights) is given beside it; what neither says is an error, never a guess. A run with
speculative decoding is no plain step: it is kept apart, under ``speculative``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scenario.catalogs import aliases, sizes
from scenario.catalogs.catalog import Catalog
from scenario.common import inputs
from scenario.common.errors import Problem, TableError, nearest
from scenario.evidence.times import files, llamacpp, nvidia, others, vllm
from scenario.evidence.times.entry import EntryKind, LeftOut, Row, Said, drafted, finite, length_of
from scenario.model import kinds, serving, shared
from scenario.model.entities import FORMATS

Given = Mapping[str, Any]
"""What the command says about all rows: model, gpu, gpus, weights, activations, kv, engine, batch."""


@dataclass(frozen=True)
class Measurement:
    """One measured point. Times in ms; ``isl`` and ``osl`` are 0 and 1 for decoding alone, ``context`` then counts.

    ``tpot_ms`` is the time per output token (or of one decode step), ``ttft_ms`` the time to the first token,
    ``prefill_ms`` that of a prompt alone; 0 where it was not measured. ``length`` is the tokens per round of a run
    with speculative decoding (0: not said, or a plain run); ``dp`` the data-parallel ranks of attention.
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
    length: float = 0
    dp: float = 1

    @property
    def group(self) -> tuple[str, str]:
        """What constants belong to: GPU and engine."""
        return self.gpu, self.engine


@dataclass
class Measured:
    """What came out of some files: plain points, why others were left out (place and reason), and speculative runs."""

    points: list[Measurement]
    skipped: list[tuple[str, str]]
    speculative: list[Measurement] = field(default_factory=list)


_KINDS: tuple[EntryKind, ...] = (*nvidia.KINDS, *vllm.KINDS, *llamacpp.KINDS, *others.KINDS)
KNOWN = "; ".join(kind.name for kind in _KINDS)


def read(paths: Sequence[str], given: Given, catalog: Catalog) -> Measured:
    """All points of the files. Raises :class:`TableError` for a file that is not understood."""
    result = Measured([], [])
    if given.get("model") is not None:
        model_name(str(given["model"]), catalog)
    for path in paths:
        for number, row in _entries(path):
            place = f"{Path(path).name}:{number}"
            kind = next((kind for kind in _KINDS if kind.fits(row)), None)
            if kind is None:
                raise TableError(Problem(f"entry {number} is of no known format", "known: " + KNOWN, file=path))
            try:
                _take(result, place, kind, row, given, catalog)
            except LeftOut as reason:
                result.skipped.append((place, str(reason)))
            except TableError as error:
                raise error.at(file=f"{path}:{number}") from None
    return result


def _entries(path: str) -> list[tuple[int, dict[str, Any]]]:
    raw = inputs.unpacked(inputs.read(path, inputs.MEASUREMENTS), path, inputs.MEASUREMENTS)
    try:
        rows = list(files.entries(raw.decode("utf-8", "replace").lstrip("\ufeff"), path))
    except (csv.Error, RecursionError) as error:
        raise TableError(Problem(f"cannot be read: {error}", file=path)) from None
    if not rows:
        raise TableError(Problem("there are no measurements in here", file=path))
    return rows


def _take(result: Measured, place: str, kind: EntryKind, row: Row, given: Given, catalog: Catalog) -> None:
    """Add what one entry says. Raises :class:`LeftOut` with the reason where it is no plain point."""
    if files.MORE in row:
        raise LeftOut(f"it has more cells than the header: {', '.join(map(str, row[files.MORE]))}")
    said = _said(kind, row)
    said["named"] = said.get("model")
    said.update({name: value for name, value in given.items() if value is not None})
    if given.get("weights") is not None:
        said.pop("asked", None)
    key = drafted(row)
    length = said.pop("length", 0) or length_of(row)
    chunked = said.pop("chunked", False)
    if not (key or length or chunked):
        result.points.append(_complete(place, said, catalog))
        return
    try:
        point = replace(_complete(place, said, catalog), length=length)
    except (LeftOut, TableError):
        point = None
    if point is not None and (key or length):
        result.speculative.append(point)
    named = f" of {point.model}" if point else ""
    if key or length:
        shown = f" of {length:.2f} tokens a round" if length else f" ({key})"
        raise LeftOut(f"a speculative run{named}{shown}: its time per token is no plain step's")
    raise LeftOut("chunks held several tokens (time between chunks over time per token): a speculative run, or an engine that sends every few "
                  "tokens; its time per token is not taken for a plain step's")  # fmt: skip


def _said(kind: EntryKind, row: Row) -> Said:
    """What one entry says; one that is of the format in part only is left out with the reason."""
    try:
        return dict(kind.read(row))
    except KeyError as error:
        raise LeftOut(f"there is no {error.args[0]} in it") from None
    except (AttributeError, TypeError, ValueError, ArithmeticError, IndexError) as error:
        raise LeftOut(f"it is not as the format has it: {error}") from None


# -- names and numbers ------------------------------------------------------------------------------------------------


def _complete(place: str, found: Said, catalog: Catalog) -> Measurement:
    if found.get("batch") in (None, "") and "no_batch" in found:
        raise LeftOut(f"{found['no_batch']}; give it with --batch")
    for name in ("model", "gpu", "gpus", "engine", "batch"):
        if found.get(name) in (None, ""):
            raise TableError(Problem(f"it does not say which {name}; that is never guessed", f"give it with --{name}"))
    values: dict[str, Any] = {"model": _model(found, catalog), "gpu": gpu_name(str(found["gpu"]), catalog)}
    values["engine"] = {"trt-llm": "trtllm", "tensorrt-llm": "trtllm"}.get(str(found["engine"]).lower(), str(found["engine"]).lower())
    _refuse_offload(found, catalog, values["model"])
    values.update(_formats(found, catalog, values["model"]))
    if not found.get("kv") and values["engine"] == "trtllm" and FORMATS[values["weights"]][0] < 16:
        values["kv"] = "fp8"  # no file of a benchmark says it; it is what the engine takes for such checkpoints
    values["dp"] = finite("dp", found.get("dp") or 1)
    for name in ("gpus", "batch", "isl", "osl", "tpot_ms", "ttft_ms", "prefill_ms"):
        values[name] = finite(name, found.get(name) or 0)
    values["context"] = finite("context", found["context"]) if found.get("context") not in (None, "") else values["isl"] + values["osl"] / 2
    point = Measurement(place, **values)
    _check(point)
    rate = catalog.gpus[point.gpu].values
    if point.activations in ("fp8", "fp4") and not rate.get(f"{point.activations}_tflops"):
        point = replace(point, activations="bf16")  # weight-only there: expanded before the arithmetic
    return point


def _check(point: Measurement) -> None:
    if not (point.tpot_ms > 0 or point.prefill_ms > 0) or not point.tpot_ms < 1e7:
        raise LeftOut("there is no time in it")
    if point.osl < 1 or point.batch < 1 or point.gpus < 1:
        raise LeftOut("batch, output length and GPUs are at least 1")
    for name in ("gpus", "batch", "context", "isl", "osl"):
        parameter = {**shared.INPUTS, **serving.INPUTS}[name]
        # How many requests ran together may be a mean, and so may lengths be.
        said = kinds.value_problem(replace(parameter, kind="number") if name == "batch" else parameter, getattr(point, name))
        if said:
            raise LeftOut(f"{name}: {said}")
    if not 0 <= point.ttft_ms < 1e9 or not 0 <= point.prefill_ms < 1e9 or point.tpot_ms < 0:
        raise LeftOut("its times are out of range")


def _formats(found: Said, catalog: Catalog, model: str) -> dict[str, str]:
    """Weights, activations and cache: as said, as the model's name says, as its checkpoint is published."""
    stated = aliases.stated(str(found["model"])) or aliases.stated(str(found.get("named") or ""))
    said = str(found.get("weights") or "")
    if not said and found.get("asked"):
        raise LeftOut(f"{found['asked']}: give the format with --weights")
    if not said and stated:
        if stated.asked:
            raise LeftOut(f"the name '{found.get('named') or found['model']}' does not say enough: {stated.asked}; give the format with --weights")
        said = stated.weights
    if not said:
        said = str(catalog.models[model].notes.get("published_weights") or "bf16")
    activations = str(found.get("activations") or "")
    if not activations:
        activations = stated.activations if stated and stated.weights == said else {"fp8": "fp8", "fp8-block": "fp8", "nvfp4": "fp4"}.get(said, "bf16")
    formats = {"weights": said, "kv": str(found.get("kv") or "bf16"), "activations": activations}
    for name in ("weights", "kv"):
        known = aliases.find("formats", formats[name], FORMATS)
        if known is None:
            raise LeftOut(f"unknown format '{formats[name]}' of {name}; {nearest(formats[name], FORMATS) or 'known: ' + ', '.join(FORMATS)}")
        formats[name] = known
    return formats


def _refuse_offload(found: Said, catalog: Catalog, model: str) -> None:
    """Raise where some layers stayed in the host's memory: llama.cpp counts the output layer as one more."""
    on_gpu, layers = found.get("layers_on_gpu"), catalog.models[model].values.get("layers") or 0
    if on_gpu is not None and 0 <= on_gpu < min(layers + 1, llamacpp.ALL_LAYERS):
        raise LeftOut(f"partly offloaded: {on_gpu:g} of {layers + 1:g} layers were on the GPU (n_gpu_layers)")


def _model(found: Said, catalog: Catalog) -> str:
    """The catalog's model; by family and size where llama.cpp says no more of it."""
    try:
        return model_name(str(found["model"]), catalog)
    except TableError as error:
        kind, count = str(found.get("model_type") or ""), float(found.get("params") or 0)
        same = sizes.models_of(kind.split()[0], count, catalog) if kind and count else ()
        if same:
            return same[0]
        problem = error.problems[0]
        raise LeftOut(f"{problem.message}: {problem.hint or 'name it with --model'}; --models table.yaml brings models of your own") from None


def model_name(said: str, catalog: Catalog) -> str:
    """The catalog's name of a model that a benchmark names by its path or file."""
    found = next((found for name in aliases.bare(said) if (found := aliases.find("models", name, catalog.models))), None)
    if found is None:
        near = nearest(said.rstrip("/").rpartition("/")[2].lower(), catalog.models)
        raise TableError(Problem(f"the model '{said}' is not in the catalog", near or "name it with --model"))
    return found


def gpu_name(said: str, catalog: Catalog) -> str:
    """The catalog's name of a GPU."""
    name = aliases.plain(said, "gpus")
    for candidate in (said, name, name.removesuffix("-sxm"), f"{name}-sxm", re.sub(r"-(\d+gb).*$", "", name)):
        found = aliases.find("gpus", candidate, catalog.gpus)
        if found:
            return found
    raise TableError(Problem(f"the GPU '{said}' is not in the catalog", nearest(name, catalog.gpus) or "name it with --gpu"))
