"""Constants of speculation by engine: fitted to published speedups whose acceptance is known, and judged with the source left out.

    DATA/specdec/measured_speedups*.csv: 89 rows of seven sources, each with its address
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scenario.evidence import calibrate, pooled
from scenario.registry.loaded import Host
from scenario.tables import reader

CENTRE = {"spec_round_ms": 0.3, "row_us": 1.0, "draft_pass_us": 250.0, "draft_layer_us": 35.0, "tree_round_ms": 0.6, "tree_row_us": 2.0}
WIDTH = {"spec_round_ms": 0.5, "row_us": 0.2, "draft_pass_us": 0.5, "draft_layer_us": 0.4, "tree_round_ms": 0.7, "tree_row_us": 0.5}
"""Priors of engines with CUDA graphs: EAGLE passes of 8B and 70B, time breakdown of https://specdecode-bench.github.io/ figure 4."""
OWN = {
    "vllm-v0": {"spec_round_ms": 4.0, "row_us": 30.0, "draft_pass_us": 1000.0, "draft_layer_us": 35.0, "step_ms": 3.0, "sequence_us": 35.0},
    "hf": {"spec_round_ms": 1.5, "draft_pass_us": 300.0, "draft_layer_us": 210.0, "tree_round_ms": 1.8, "tree_row_us": 2.0, "step_ms": 0.8,
           "sequence_us": 2.0, "launch_us": 60.0},
}  # fmt: skip
"""Priors of engines whose host works between kernels: the scheduler of vLLM V0, eager transformers (24.5 tokens/s of 7B on a 3090)."""
OWN_WIDTH = {"spec_round_ms": 0.8, "row_us": 1.5, "draft_pass_us": 0.7, "draft_layer_us": 0.5, "tree_round_ms": 0.7, "tree_row_us": 0.5,
             "step_ms": 0.7, "sequence_us": 0.7, "launch_us": 0.3}  # fmt: skip
NOISE = 0.07
GPUS = {"a40": {"memory_gb": 48.3, "bandwidth_tb_s": 0.696, "bf16_tflops": 149.7}}
CONTEXT = 600
"""Mean context assumed where a source prints none."""


@dataclass(frozen=True)
class Row:
    """One published speedup: where it is from, what was run, and what came out."""

    source: str
    engine: str
    inputs: Mapping[str, Any]
    tokens: float
    rows: float
    speedup: float
    kind: str
    """chain, tree or mixture"""


def read(folder: Path) -> list[Row]:
    """The rows whose acceptance is known."""
    found = []
    for name in ("measured_speedups.csv", "measured_speedups_2.csv"):
        with open(folder / "specdec" / name, encoding="utf-8") as stream:
            for row in csv.DictReader(stream):
                if row["measured_speedup"]:
                    found += [item for reads in _SOURCES for item in reads(row)]
    return found


def _value(pattern: str, text: str) -> float:
    match = re.search(pattern, text)
    if match is None:
        raise ValueError(f"no {pattern} in {text!r}")
    return float(match[1])


def _row(row: Mapping[str, str], source: str, engine: str, model: str, gpu: str, tokens: float, rows: float, passes: int, kind: str,
         **more: Any) -> Row:  # fmt: skip
    inputs = {"model": model, "gpu": gpu, "batch": int(row["batch"]), "context": CONTEXT, "engine": engine, "gamma": passes, "method": "eagle-3", **more}
    return Row(source, engine, inputs, tokens, rows, float(row["measured_speedup"]), kind)


def _vllm(row: Mapping[str, str]) -> Iterator[Row]:
    said = row["alpha_or_tau"]
    if row["source"].startswith("SpecDecode") and "E=" in said:
        drafts, ngram = int(row["gamma_or_tree"][2:]), "n-gram" in row["method"]
        hits = _value(r"q=([\d.]+)", said) if ngram else 1.0
        more = {"method": "ngram"} if ngram else {}
        yield _row(row, "vLLM, Llama-3.1-8B", "vllm", "llama-3.1-8b", "h100-sxm", _value(r"E=([\d.]+)", said), 1 + drafts * hits, drafts, "chain", **more)


def _sglang(row: Mapping[str, str]) -> Iterator[Row]:
    if row["source"].startswith("SpecDecode") and "AL=" in row["alpha_or_tau"]:
        drafts, tree = int(_value(r"k=(\d+)", row["gamma_or_tree"])), "tree" in row["gamma_or_tree"]
        yield _row(row, "SGLang, Qwen3-8B", "sglang", "qwen3-8b", "h100-sxm", _value(r"AL=([\d.]+)", row["alpha_or_tau"]),
                   drafts if tree else drafts + 1, 3 if drafts <= 6 else 5, "tree" if tree else "chain")  # fmt: skip


def _parallel(row: Mapping[str, str]) -> Iterator[Row]:
    if "P-EAGLE" in row["source"]:
        parallel = "P-EAGLE" in row["method"]
        tokens = _value(r"AL\(K=7\)=([\d.]+)" if parallel else r"AL\(K=3\)=([\d.]+)", row["alpha_or_tau"])
        yield _row(row, "vLLM, gpt-oss-20b", "vllm", "gpt-oss-20b", "b200", tokens, 8 if parallel else 4, 1 if parallel else 3, "mixture", weights="published")


def _v0(row: Mapping[str, str]) -> Iterator[Row]:
    if row["source"].startswith("spec-goodput") and "lpha" in row["alpha_or_tau"] and "Qwen2.5-7B" in row["target_model"]:
        drafts, said = int(row["gamma_or_tree"][2:]), row["alpha_or_tau"]
        alpha = _value(r"alpha=([\d.]+)", said) if said.startswith("alpha") else _value(r"alpha ([\d.]+)", said)
        yield _row(row, f"vLLM V0, Qwen2.5-7B, {row['table']}", "vllm-v0", "qwen2.5-7b", "a40", sum(alpha**i for i in range(drafts + 1)), drafts + 1,
                   drafts, "chain", method="small-model", draft="qwen2.5-7b", draft_bits=4.25)  # fmt: skip


def _mixture(row: Mapping[str, str]) -> Iterator[Row]:
    if row["source"].startswith("SpecForge"):
        steps, _wide, drafts = (int(part) for part in row["gamma_or_tree"].split("=")[-1].split("/"))
        yield _row(row, "SGLang, Qwen3-30B-A3B", "sglang", "qwen3-30b-a3b", "h100-sxm", float(row["alpha_or_tau"][3:]), drafts, steps, "mixture", gpus=2)


def _eager(row: Mapping[str, str]) -> Iterator[Row]:
    if row["source"].startswith("EAGLE 2401") and row["table"] in ("Table 7", "Table 3"):
        tokens = _value(r"tau=([\d.]+)", row["alpha_or_tau"])
        model, gpu = ("vicuna-7b", "rtx-3090") if "Vicuna" in row["target_model"] else ("llama-2-70b", "a100-40gb")
        if row["table"] == "Table 3":
            model, gpu = "mixtral-8x7b", "a100-80gb"
        # Layers on several GPUs work one after the other: memory of them all, the speed of one.
        yield _row(row, f"eager, {model}", "hf", model, gpu, tokens, 23, 5, "mixture" if "mixtral" in model else "tree", method="eagle")


_SOURCES = (_vllm, _sglang, _parallel, _v0, _mixture, _eager)


def system(rows: Sequence[Row], host: Host) -> calibrate.System:
    """The formulas of the speedup of these rows, with the published acceptance and rows in place of a method's own."""
    listed = [{"id": f"r{number}", **row.inputs} for number, row in enumerate(rows)]
    typed = {f"r{number}": {"tokens_per_round": row.tokens, "rows_per_sequence": row.rows} for number, row in enumerate(rows)}
    for number, row in enumerate(rows):
        if row.inputs["method"] == "ngram":
            typed[f"r{number}"]["draft_ms"] = 0
    roomy = {name: {"memory_gb": 1000} for name in ("rtx-3090", "a100-40gb", "a100-80gb", "b200", "h100-sxm")}
    data = {"version": 1, "time_model": "estimate", "rows": listed, "overrides": typed, "gpus": {**GPUS, **roomy}, "defaults": {"kv": "bf16"}}
    return calibrate.arrays(reader.load(data, host), host, ("speedup", "speedup_error", "tpot_ms"), [])


def family(engine: str) -> str:
    """Engines that share constants: those with CUDA graphs, and the two without."""
    return engine if engine in OWN else "graphs"


def fit(rows: Sequence[Row], whole: calibrate.System, index: np.ndarray) -> dict[str, dict[str, float]]:
    """Constants by engine from some rows of a system."""
    found: dict[str, dict[str, float]] = {}
    for kind in ("graphs", *OWN):
        mine = np.array([i for i in index if family(rows[i].engine) == kind], dtype=int)
        engines = ("vllm", "sglang", "trtllm") if kind == "graphs" else (kind,)
        centre = {**CENTRE, **OWN.get(kind, {})}
        width = WIDTH if kind == "graphs" else OWN_WIDTH
        if not len(mine):
            found |= {engine: dict(centre) for engine in engines}
            continue
        part, measured = whole.part(mine), np.log([rows[i].speedup for i in mine])
        label = np.array([rows[i].engine for i in mine])
        sources = np.array([rows[i].source for i in mine])

        def predict(constants: Mapping[str, np.ndarray], part: calibrate.System = part) -> np.ndarray:
            return np.log(part.predict(constants)["speedup"])

        levels = [pooled.Level(label, dict.fromkeys(centre, 0.3))] if kind == "graphs" else []
        solution = pooled.solve(pooled.PooledFit(predict, [measured], (NOISE,), sources, (1e-6,), levels, pooled.Priors(centre, width)))
        for engine in engines:
            constants = solution.constants([np.array([engine])] if levels else [])
            found[engine] = {name: float(value[0]) for name, value in constants.items()}
    return found


def predicted(rows: Sequence[Row], whole: calibrate.System, index: np.ndarray, constants: Mapping[str, Mapping[str, float]]) -> np.ndarray:
    """Speedups of some rows with constants by engine."""
    part = whole.part(index)
    names = sorted({name for values in constants.values() for name in values})
    held = {name: np.array([constants[rows[i].engine].get(name, part.values[f"hardware_{name}"][n]) for n, i in enumerate(index)]) for name in names}
    return part.predict(held)["speedup"]


def left_out(rows: Sequence[Row], whole: calibrate.System) -> np.ndarray:
    """Speedups of every row, with constants that have not seen its source."""
    sources = np.array([row.source for row in rows])
    found = np.zeros(len(rows))
    for source in np.unique(sources):
        mine = np.flatnonzero(sources == source)
        found[mine] = predicted(rows, whole, mine, fit(rows, whole, np.flatnonzero(sources != source)))
    return found
