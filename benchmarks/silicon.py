"""The public serving sample, cleaned: what its rows mean, which are kept, and why the others are not.

    DATA/silicon/*.csv: https://github.com/ai-dynamo/aiconfigurator (public silicon sample, Apache-2.0)
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from scenario.catalogs import catalog
from scenario.evidence import measurements
from scenario.evidence.measurements import Measurement

FORMATS = {"": "bf16", "fp8": "fp8", "fp4": "nvfp4"}
SPECULATIVE = ("1.1.0rc2.post2", "1.2.0rc6.post3")
"""Versions of TensorRT-LLM whose DeepSeek rows of 2026 are up to twice as fast as the same settings elsewhere: MTP was on."""


@dataclass
class Sample:
    """Points that are used, those with attention on data-parallel ranks apart, and how many rows were left out for what."""

    points: list[Measurement] = field(default_factory=list)
    ranks: list[Measurement] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    given: int = 0


def read(folder: Path) -> Sample:
    """All rows of ``silicon/measured_serving*.csv``, duplicates once."""
    found, seen = Sample(), set()
    known = catalog.builtin()
    for path in sorted((folder / "silicon").glob("measured_serving*.csv")):
        with open(path, encoding="utf-8") as stream:
            for number, row in enumerate(csv.DictReader(stream), 2):
                found.given += 1
                point, why = _point(f"{path.name}:{number}", row, known)
                key = (point.engine, point.gpu, point.model, point.weights, point.isl, point.osl, f"{point.tpot_ms:.5g}", f"{point.ttft_ms:.5g}")
                why = "listed before" if key in seen else why
                seen.add(key)
                if why:
                    found.left_out[why] += 1
                else:
                    (found.ranks if point.dp > 1 else found.points).append(point)
    return found


def _point(place: str, row: dict[str, str], known: catalog.Catalog) -> tuple[Measurement, str]:
    model = measurements.model_name("deepseek-v3" if "deepseek" in row["model_path"].lower() else _family(row["model_path"]), known)
    gpu = measurements.gpu_name(row["system"], known)
    weights = "mxfp4" if "gpt-oss" in model and row["precision"] == "fp4" else FORMATS[row["precision"]]
    gpus, ranks, batch = _placed(row, bool(known.models[model].values.get("moe_layers")))
    isl, osl = float(row["isl"]), float(row["osl"])
    kv = "fp8" if row["backend"] == "trtllm" and weights != "bf16" else "bf16"
    point = Measurement(place, model, gpu, gpus, row["backend"], batch, isl + osl / 2, isl, osl, weights, kv,
                        tpot_ms=float(row["silicon_tpot_ms"]), ttft_ms=float(row["silicon_ttft_ms"]), dp=ranks)  # fmt: skip
    why = ""
    if model == "deepseek-v3" and row["backend"] == "trtllm" and row["id"].startswith("2026") and row["backend_version"] in SPECULATIVE:
        why = "DeepSeek on TensorRT-LLM, almost certainly with MTP on"
    elif not re.search(r"_c\d+_", row["id"]):
        why = "its id states no concurrency"
    elif osl < 2 * batch:
        why = "osl under twice the batch: requests come in bursts"
    elif row["backend_version"].startswith("1.3.0") and ranks > 1:
        why = "attention on data-parallel ranks of a release candidate: 85 ms whatever the load"
    return point, why


def _family(path: str) -> str:
    """The catalog's name of a model; releases of the same shape are one model."""
    name = path.split("/")[-1].lower()
    return {"minimax-m2.5": "minimax-m2", "qwen3-235b-a22b-fp8": "qwen3-235b-a22b"}.get(name, path)


def _placed(row: dict[str, str], mixture: bool) -> tuple[float, float, float]:
    """GPUs, data-parallel ranks of attention, and requests that run together on all of them.

    In some rows tp_size is tp x ep of the id; with ranks, batch_size is that of one of ``attention_dp_size``, which is tp x ep too.
    """
    tp, ranks = int(row["tp_size"]), int(float(row["attention_dp_size"] or 1))
    split, spread = int(row["moe_tp_size"] or 1) or 1, int(row["moe_ep_size"] or 1) or 1
    batch = float(row["batch_size"])
    stated = re.search(r"_c(\d+)_", row["id"])
    named = re.search(r"_tp(\d+)(?:_0)?_ep(\d+)(?:_|$)", row["id"])
    if not mixture:
        return tp, 1, batch
    if ranks > 1:
        gpus = int(named[1]) if named else tp if tp == ranks else spread if split == spread else split * spread
        return gpus, gpus, batch * ranks
    if named:
        gpus, ranks = int(named[1]), 1
    elif "cfg" in row["id"] and split == spread > 1 and tp == split * spread:
        gpus, ranks = spread, 1
    else:
        gpus = max(tp, split * spread)
        ranks = gpus // tp
    if stated and ranks == 1 and float(stated[1]) != batch:  # a batch by rank, without saying so
        return gpus, round(float(stated[1]) / batch), float(stated[1])
    return gpus, ranks, batch
