"""Writes the constants that the package ships: ``scenarios/hardware.yaml``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from serving import BLACKWELL, FIXED, HOPPER, Fitted, Serving

SOURCE = "https://github.com/ai-dynamo/aiconfigurator (public silicon sample, Apache-2.0)"
GPUS = {"hopper": HOPPER, "blackwell": BLACKWELL}
CELL_ERROR, OTHER_ERROR, FIRST_ERROR = 0.25, 0.45, 1.2
"""Half-widths of the intervals, as low = t / (1 + e) and high = t (1 + e): a measured model and format; everything else; TTFT."""
FEWEST = 15
"""Points from which a model and format have a set of their own."""
HEADER = """\
# Constants of the estimate: what its formula is multiplied with. Fitted by `make accuracy` to public serving measurements of all
# groups together: each constant is one value for all, with deviations by GPU family and by engine that are shrunk to none, and a factor
# for each model and format on a GPU and engine. The most particular set that holds for a row applies: see docs/estimate.md.
# time_error, speedup_error and ttft_error are the half-widths of intervals that were checked on groups left out: docs/accuracy.md.
# spec_round_ms, row_us, draft_*, tree_*: fitted to published speedups, by engine; step_ms of eager and V0 engines with them.

hardware:
"""


def yaml(data: Serving, fitted: Fitted, speculation: Mapping[str, Mapping[str, float]]) -> str:
    """The file. ``speculation`` holds the constants of speculation by engine."""
    lines = [HEADER]
    labels = data.levels()
    for family, gpus in GPUS.items():
        for engine in np.unique(labels[1][labels[0] == family]):
            mine = (labels[0] == family) & (labels[1] == engine)
            values = _constants(fitted, family, str(engine), f"{family} {engine}") | speculation[str(engine)]
            error = 0.2 if family == "hopper" and engine in ("vllm", "sglang") else 0.6
            lines += _entry(f"{family}-{engine}", f"{family.title()}, {engine}", str(engine), gpus, values, _reach(data, mine, error))
    every = np.ones(len(data.points), dtype=bool)
    for engine, title in (("vllm-v0", "vLLM V0 (before 0.8)"), ("hf", "Eager (Hugging Face transformers)")):
        values = _constants(fitted, "", "", "") | speculation[engine]
        lines += _entry(engine, f"{title}, any GPU", engine, (), values, _reach(data, every, 0.6 if engine == "vllm-v0" else 0.5))
    for family, gpus in GPUS.items():
        values = _constants(fitted, family, "", "") | speculation["vllm"]
        lines += _entry(family, f"{family.title()}, any engine", "any", gpus, values, _reach(data, labels[0] == family, 0.6))
    lines += _entry("generic", "Any GPU, any engine", "any", (), _constants(fitted, "", "", "") | speculation["vllm"], _reach(data, every, 0.6))
    return "".join(f"{line}\n" for line in [*lines, "", "# Models and formats that were measured.", *_cells(data, fitted)])


def _constants(fitted: Fitted, family: str, engine: str, both: str) -> dict[str, float]:
    found = {**fitted.passes.constants([np.array([family]), np.array([engine]), np.array([both])]), **fitted.first.constants([np.array([engine])])}
    return {**{name: float(value[0]) for name, value in found.items()}, **FIXED}


def _reach(data: Serving, mine: np.ndarray, speedup_error: float) -> dict[str, float]:
    points = [p for p, one in zip(data.points, mine, strict=True) if one]
    return {"time_error": OTHER_ERROR, "speedup_error": speedup_error, "ttft_error": FIRST_ERROR,
            "data_batch": max(p.batch for p in points), "data_context": max(p.context for p in points),
            "data_gpus": max(p.gpus for p in points), "points": len(points), "calibrated": 0, "cell": 0}  # fmt: skip


def _entry(name: str, title: str, engine: str, gpus: Iterable[str], values: Mapping[str, float], facts: Mapping[str, float]) -> list[str]:
    lines = [f"  {name}:", f"    title: {title}", *([f"    gpus: [{', '.join(gpus)}]"] if gpus else []), f"    engine: {engine}"]
    lines += [f"    {key}: {value:.4g}" for key, value in values.items()]
    lines += [f"    {key}: {value:g}" for key, value in facts.items()]
    return [*lines, f'    source: "{SOURCE}"']


def _cells(data: Serving, fitted: Fitted) -> Iterable[str]:
    """A factor for each model and format with enough points on a GPU and engine."""
    cells = data.cells()
    for cell in np.unique(cells):
        mine = cells == cell
        if mine.sum() < FEWEST:
            continue
        model, weights, gpu, engine = str(cell).split(" ")
        family = str(data.levels()[0][mine][0])
        factor = float(np.exp(fitted.passes.offset(0, np.array([cell]))[0]))
        formats = f"{weights}, published" if weights == "mxfp4" else weights
        yield from (f"  {gpu}-{engine}-{model}-{weights}:", f"    title: {model} in {weights} on {gpu}, {engine}", f"    like: {family}-{engine}",
                    f"    gpus: [{gpu}]", f"    engine: {engine}", f"    models: [{model}]", f"    weights: [{formats}]",
                    f"    time_factor: {factor:.4g}", f"    time_error: {CELL_ERROR}", f"    points: {int(mine.sum())}", "    cell: 1")  # fmt: skip
