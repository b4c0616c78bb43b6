"""Fits the constants of the estimate to measurements: few constants, weak priors, a robust loss.

The formulas are those of the time model itself, computed over numpy arrays while the constants vary; nothing of the
estimate is written twice. numpy comes with the extra ``scenario-engine[calibrate]``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from scenario import result
from scenario.book.assemble import assemble
from scenario.catalogs import hardware
from scenario.catalogs.catalog import Catalog
from scenario.common.errors import ScenarioError
from scenario.evidence.measurements import Measurement
from scenario.formulas import graph
from scenario.formulas.expr import names
from scenario.model import entities
from scenario.model.serving import ENGINES
from scenario.registry.loaded import Host
from scenario.tables import reader, table

try:
    import numpy as np

    from scenario.evidence import pooled
except ImportError as error:
    raise ScenarioError(f"calibrating needs numpy ({error.name} is missing): pip install 'scenario-engine[calibrate]'") from None

from scenario.formulas.to_numpy import Array, evaluate

WIDTHS: dict[str, float] = {
    "weight_mbu": 0.12, "expert_mbu": 0.3, "kv_mbu": 0.2, "gemm_mfu": 0.25, "quantized_mfu": 0.25, "launch_us": 0.25, "step_ms": 0.5,
    "moe_row_us": 0.5, "sequence_us": 0.5, "link_share": 0.4, "moe_prefill": 0.3, "queue_share": 0.6, "first_token_ms": 0.7, "first_passes": 0.5,
}  # fmt: skip
"""How far each constant may be from that of the bundled set (standard deviation of its logarithm) before data counts."""
FIRST_TOKEN = ("first_token_ms", "first_passes", "queue_share")
SPREAD, FIRST_SPREAD = 0.08, 0.3
"""Scatter of the logarithms of measured TPOT and TTFT that is normal; beyond it an error counts linearly."""
CELL_SPREAD, FIRST_CELL_SPREAD = 0.07, 0.2
"""How far one model and format may be off on its own."""
HIGH = {"weight_mbu": 1.0, "expert_mbu": 1.0, "kv_mbu": 1.0, "gemm_mfu": 1.0, "quantized_mfu": 1.0, "link_share": 1.0, "queue_share": 0.9}
"""Largest values: no server reads or computes faster than the bound has it."""
QUEUE_MS = 1000
"""Wait for a first token that no load need explain: start of a server, first compilations."""
FEW = 8
"""Points below which a set of constants is mostly its prior."""
FOLDS = 5
USABLE = 0.92
"""Share of the memory that weights and KV cache may take before an engine makes requests wait."""


def _numbers(values: Array) -> bool:
    return all(value is None or isinstance(value, int | float) for value in values)


@dataclass
class System:
    """Measured points and the formulas that predict them. ``values`` holds what does not depend on the constants."""

    points: list[Measurement]
    values: dict[str, Array]
    formulas: list[tuple[str, Any]]
    vectors: Any

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.values["id"])

    def predict(self, constants: Mapping[str, Array]) -> dict[str, Array]:
        """Every column that depends on the constants, for all points."""
        found = {**self.values, **{f"hardware_{name}": value for name, value in constants.items()}}
        with np.errstate(all="ignore"):
            for name, node in self.formulas:
                value = np.broadcast_to(evaluate(node, found, self.vectors), (self.count,))
                # A choice with blank arms comes as objects.
                found[name] = value.astype(float) if value.dtype == object and _numbers(value) else value
        return found

    def part(self, index: Array) -> System:
        """Some of the points."""
        values = {name: value[index] if isinstance(value, np.ndarray) and value.ndim else value for name, value in self.values.items()}
        return System([self.points[i] for i in index] if self.points else [], values, self.formulas, self.vectors)


def system(points: Sequence[Measurement], host: Host, knee: float | None = None, known: Catalog | None = None) -> System:
    """The formulas of the estimate for these points, as arrays. ``known`` has the models and GPUs that a user's table adds."""
    keys = ("model", "gpu", "context", "isl", "osl", "weights", "kv")
    rows = [{**{key: getattr(p, key) for key in keys}, "tp": p.gpus / p.dp, "dp": p.dp, "ep": p.gpus, "batch": round(p.batch), "method": "vanilla",
             "engine": p.engine if p.engine in ENGINES else "other"} for p in points]  # fmt: skip
    data: dict[str, Any] = {"version": 1, "time_model": "estimate", "rows": rows, **(known.added() if known else {})}
    if knee is not None:
        data["parameters"] = {"estimate": {"knee": knee}}
    read = reader.load(data, host)
    # A table's batches are whole; how many requests ran together in a measurement may be a mean.
    read = replace(read, rows=read.rows.with_columns(pl.Series("batch", [p.batch for p in points], dtype=pl.Float64)))
    return arrays(read, host, ("tpot_ms", "ttft_ms", "prefill_ms", "interference_ms", "verify_ms"), list(points))


def arrays(read: table.Table, host: Host, wanted: Sequence[str], points: list[Measurement]) -> System:
    """The formulas of a table's estimate that these columns need, over arrays, constants still open."""
    book = assemble(read, host)
    frame = result.evaluate(book, host).full
    constants = {f"hardware_{name}" for name in entities.HARDWARE_CONSTANTS}
    trees = {name: item.node for name, item in book.fields.items() if item.node is not None and name != "hardware"}
    order = [name for name in graph.order({name: names(tree) for name, tree in trees.items()}) if name in trees]
    moved, formulas = set(constants), []
    for name in order:
        if moved & set(names(trees[name])):
            moved.add(name)
            formulas.append((name, trees[name]))
    needed = set(wanted)
    for name, node in reversed(formulas):
        if name in needed:
            needed |= set(names(node))
    values: dict[str, Array] = dict(book.constants)
    for name in frame.columns:
        series = frame[name]
        if name not in moved or name in constants:
            text = series.dtype == pl.String
            values[name] = np.array(series.to_list(), dtype=object) if text else series.cast(pl.Float64).to_numpy()
    return System(points, values, [(name, node) for name, node in formulas if name in needed], book.vectors)


@dataclass
class Fit:
    """Fitted constants of one group. ``errors`` are those of held-out points (relative, absolute value)."""

    gpu: str
    engine: str
    constants: dict[str, float]
    uncertainty: dict[str, float]
    points: int
    fitted: Array
    errors: Array
    first_errors: Array
    outliers: list[tuple[str, str]] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    factors: dict[str, float] = field(default_factory=dict)
    reach: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"my-{self.gpu}-{self.engine}"


def free(part: System) -> list[str]:
    """The constants that these points say something about."""
    p = part.points
    several = any(m.gpus > 1 for m in p)
    mixture = bool(np.any(part.values["experts"] > 0))
    served = any(m.isl > 0 for m in p)
    first = sum(m.ttft_ms > 0 for m in p) >= 2
    bits = {m.weights for m in p}
    asks = {
        "expert_mbu": mixture, "moe_row_us": mixture, "moe_prefill": mixture and served, "link_share": several,
        "kv_mbu": any(m.context > 0 for m in p), "queue_share": served, "first_token_ms": first, "first_passes": first,
        "quantized_mfu": bool(bits - {"bf16", "fp16"}), "gemm_mfu": bool(bits & {"bf16", "fp16"}) or mixture,
    }  # fmt: skip
    return [name for name in WIDTHS if asks.get(name, True)]


def wanted(points: Sequence[Measurement]) -> list[Array]:
    """Logarithms of what was measured: TPOT (or a prompt alone), and TTFT; nan where it was not."""
    def log(values: list[float]) -> Array:
        found = np.array(values, dtype=float)
        return np.log(np.where(found > 0, found, np.nan))

    return [log([p.tpot_ms or p.prefill_ms for p in points]), log([p.ttft_ms for p in points])]


def predictor(part: System, fixed: Mapping[str, Array]) -> pooled.Predict:
    """The logarithms that a system predicts, beside constants that stay as they are."""
    alone = np.array([not p.tpot_ms > 0 for p in part.points])

    def predict(constants: Mapping[str, Array]) -> Array:
        found = part.predict({**fixed, **constants})
        with np.errstate(all="ignore"):
            time = np.where(alone, found["prefill_ms"], found["tpot_ms"])
            return np.nan_to_num(np.log(np.concatenate([time, found["ttft_ms"]])), nan=0.0, posinf=20.0, neginf=-20.0)

    return predict


def cells(points: Sequence[Measurement]) -> Array:
    """The model and format of each point."""
    return np.array([f"{p.model} {p.weights}" for p in points])


def solve(part: System, base: Mapping[str, float] | None = None) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Constants, their relative uncertainty, and how far off each model and format is on its own (as a factor).

    ``base`` are the constants that are expected; those that the points say nothing about keep them.
    """
    base = base or expected(part.points)
    asked = free(part)
    found = pooled.solve(pooled.PooledFit(
        predictor(part, {name: np.full(len(part.points), value) for name, value in base.items() if name not in asked}),
        wanted(part.points), (SPREAD, FIRST_SPREAD), cells(part.points), (CELL_SPREAD, FIRST_CELL_SPREAD), (),
        pooled.Priors({name: max(base[name], 1e-6) for name in asked}, {name: WIDTHS[name] for name in asked}, HIGH),
    ))  # fmt: skip
    constants = {name: float(min(value, HIGH.get(name, math.inf))) for name, value in zip(asked, np.exp(found.centre + found.glob), strict=True)}
    factors = {cell: math.exp(value) for cell, value in found.offsets[0].items()}
    return {**base, **constants}, dict(zip(asked, (float(v) for v in found.width), strict=True)), factors


def expected(points: Sequence[Measurement]) -> dict[str, float]:
    """The constants of the bundled set that these points resemble."""
    near = hardware.resembling(hardware.builtin(), (points[0].gpu,), points[0].engine)
    return {name: near.values[name] for name in entities.HARDWARE_CONSTANTS}


def with_factors(points: Sequence[Measurement], constants: Mapping[str, float], factors: Mapping[str, float]) -> dict[str, Array]:
    """Constants by point, each with the factor of its model and format."""
    mine = np.array([factors.get(cell, 1.0) for cell in cells(points)])
    return {**{name: np.full(len(points), value) for name, value in constants.items()}, "time_factor": constants["time_factor"] * mine}


def errors_of(part: System, constants: Mapping[str, Any]) -> tuple[Array, Array]:
    """Relative errors of TPOT (or prompts alone), and of TTFT where it was measured (nan elsewhere)."""
    time, first = np.split(predictor(part, {})(constants), 2)
    known, known_first = wanted(part.points)
    return np.abs(np.expm1(time - known)), np.abs(np.expm1(first - known_first))


def fits_memory(part: System) -> Array:
    """Whether weights and KV cache of all requests fit with what an engine keeps for itself."""
    return part.values["memory_gb"] <= USABLE * part.values["memory_available_gb"]


def calibrate(points: Sequence[Measurement], host: Host, seed: int = 0, known: Catalog | None = None) -> list[Fit]:
    """One fit per GPU and engine, with errors on points left out of it (k folds, seeded)."""
    whole = system(points, host, known=known)
    reasons = _reasons(whole)
    found = []
    for group in dict.fromkeys(p.group for p in points):
        members = np.array([i for i, p in enumerate(points) if p.group == group])
        used = np.array([i for i in members if not reasons[i]], dtype=int)
        left = [(points[i].place, reasons[i]) for i in members if reasons[i]]
        if len(used):
            found.append(_one(whole.part(used), group, left, seed))
    return found


def _reasons(whole: System) -> list[str]:
    """Why points are of no use: empty where they are."""
    found = whole.predict({name: whole.values[f"hardware_{name}"] for name in entities.HARDWARE_CONSTANTS})
    fits, seen, reasons = fits_memory(whole), set(), []
    for number, p in enumerate(whole.points):
        key = replace(p, place="")
        # A first token later than all prompts of the batch and a tenth of the request waited for a place.
        prompts = 1.5 * (p.batch * found["prefill_ms"][number] + 6 * found["verify_ms"][number])
        waited = p.isl > 0 and p.tpot_ms > 0 and p.ttft_ms > prompts + 0.1 * p.osl * p.tpot_ms + QUEUE_MS
        reasons.append("the same measurement stands before" if key in seen
                       else "weights and KV cache do not fit: requests waited for memory" if not fits[number]
                       else f"TTFT of {p.ttft_ms:,.0f} ms is beyond all prompts of the batch: requests queued" if waited else "")  # fmt: skip
        seen.add(key)
    return reasons


def _one(part: System, group: tuple[str, str], left: list[tuple[str, str]], seed: int) -> Fit:
    constants, wide, factors = solve(part)
    count = len(part.points)
    fitted, _ = errors_of(part, with_factors(part.points, constants, factors))
    order = np.random.default_rng(seed).permutation(count)
    folds = min(FOLDS if count >= 2 * FEW else count, count)
    errors, first = np.full(count, math.nan), np.full(count, math.nan)
    for fold in range(folds if count > 1 else 0):
        out = order[fold::folds]
        kept = np.setdiff1d(order, out)
        known, _, own = solve(part.part(kept))
        errors[out], first[out] = errors_of(part.part(out), with_factors([part.points[i] for i in out], known, own))
    notes = []
    if count < FEW:
        notes.append(f"only {count} point{'s' if count != 1 else ''}: too few for {len(free(part))} constants; mostly the prior speaks")
    asked = free(part)
    loose = [name for name in asked if wide[name] > 0.8 * WIDTHS[name]]
    if loose:
        notes.append("hardly determined by these points: " + ", ".join(loose))
    edge = [name for name in asked if constants[name] > 0.98 * HIGH.get(name, math.inf) and expected(part.points)[name] < 0.98]
    if edge:
        notes.append("at the limit of what is possible: " + ", ".join(edge) + "; the formula or the peak rates do not suit these points")
    fit = Fit(*group, constants, wide, count, fitted, errors, first, left_out=left, notes=notes, factors=factors)
    fit.reach = {"data_batch": max(p.batch for p in part.points), "data_context": max(p.context for p in part.points),
                 "data_gpus": max(p.gpus for p in part.points)}  # fmt: skip
    fit.outliers = _outliers(part, with_factors(part.points, constants, factors), fitted)
    return fit


def _outliers(part: System, constants: Mapping[str, Any], errors: Array) -> list[tuple[str, str]]:
    """Points far off the fit, with what is special about them."""
    limit = max(0.25, 3 * 1.48 * float(np.median(errors)))
    found = part.predict(constants)
    said = []
    for index in np.argsort(-errors):
        if errors[index] <= limit:
            break
        p = part.points[index]
        slower = (p.tpot_ms or p.prefill_ms) > (found["tpot_ms"][index] if p.tpot_ms else found["prefill_ms"][index])
        reasons = []
        full = part.values["memory_gb"][index] / part.values["memory_available_gb"][index]
        if p.tpot_ms and p.isl and found["interference_ms"][index] > 0.5 * found["tpot_ms"][index]:
            reasons.append(f"{found['interference_ms'][index] / found['tpot_ms'][index]:.0%} of the estimate is prefill of other requests")
        if p.ttft_ms > 20 * found["prefill_ms"][index] + 1000:
            reasons.append(f"TTFT of {p.ttft_ms:,.0f} ms: requests queued, fewer than {p.batch:g} decoded together")
        if full > 0.75:
            reasons.append(f"the memory is {full:.0%} full")
        if p.osl < 2 * p.batch and p.isl:
            reasons.append("few output tokens for its batch: arrivals come in bursts")
        why = "; ".join(reasons) or "nothing in its settings explains it: measure again"
        said.append((p.place, f"{'slower' if slower else 'faster'} than the fit by {errors[index]:.0%}: {why}"))
    return said


def stats(errors: Array) -> tuple[float, float, float] | None:
    """Mean, median and 90th percentile of the errors that are numbers."""
    known = errors[np.isfinite(errors)]
    return (float(known.mean()), float(np.median(known)), float(np.quantile(known, 0.9))) if len(known) else None


def to_yaml(found: Sequence[Fit], source: str) -> str:
    """The file that tables include with ``hardware:``."""
    lines = ["# Constants of the estimate, fitted by scenario calibrate. Include it in a table:  hardware: ./this-file.yaml",
             "# uncertainty is relative; time_error and ttft_error: nine of ten held-out points lie within.", "hardware:"]  # fmt: skip
    for fit in found:
        held, first = stats(fit.errors), stats(fit.first_errors)
        fitted = [name for name in WIDTHS if name in fit.uncertainty]
        lines += [f"  {fit.name}:", f"    title: {fit.gpu} with {fit.engine}, calibrated", f"    gpus: [{fit.gpu}]", f"    engine: {fit.engine}"]
        lines += [f"    {name}: {fit.constants[name]:.4g}" for name in fitted]
        lines.append("    uncertainty: {" + ", ".join(f"{name}: {fit.uncertainty[name]:.2g}" for name in fitted) + "}")
        lines += [f"    time_error: {held[2] if held else 1.0:.3g}"] + ([f"    ttft_error: {first[2]:.3g}"] if first else [])
        lines += [f"    {name}: {value:g}" for name, value in fit.reach.items()]
        lines += [f"    points: {fit.points}", f"    source: {_quoted(source)}"]
        if fit.notes:
            lines.append(f"    doc: {_quoted('; '.join(fit.notes))}")
        lines += _cells(fit)
    return "\n".join(lines) + "\n"


def _cells(fit: Fit) -> list[str]:
    """Sets of their own for models and formats with some points, which go before the set that they are like."""
    lines = []
    for number, (cell, factor) in enumerate(sorted(fit.factors.items()), 1):
        model, weights = cell.split(" ")
        lines += [f"  {fit.name}-{number}:", f"    title: {model} {weights}, {fit.gpu} with {fit.engine}, calibrated", f"    like: {fit.name}",
                  f"    gpus: [{fit.gpu}]", f"    engine: {fit.engine}", f"    models: [{model}]", f"    weights: [{weights}]",
                  f"    time_factor: {factor:.4g}", "    cell: 1"]  # fmt: skip
    return lines


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
