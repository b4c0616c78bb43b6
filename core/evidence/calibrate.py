"""Fits the constants of the estimate to measurements: few constants, weak priors, a robust loss.

The formulas are those of the time model itself, computed over numpy arrays while the constants vary; nothing of the
estimate is written twice. scipy and numpy come with the extra ``scenario-engine[calibrate]``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from scenario import result
from scenario.book.assemble import assemble
from scenario.catalogs.catalog import Catalog
from scenario.common.errors import ScenarioError
from scenario.evidence.measurements import Measurement
from scenario.formulas.expr import names
from scenario.model import entities
from scenario.registry.loaded import Host
from scenario.tables import reader

try:
    import numpy as np
    from scipy.optimize import least_squares
except ImportError as error:
    raise ScenarioError(f"calibrating needs numpy and scipy ({error.name} is missing): pip install 'scenario-engine[calibrate]'") from None

from scenario.formulas.to_numpy import Array, evaluate

PRIORS: dict[str, tuple[float, float]] = {
    "weight_mbu": (0.82, 0.12), "kv_mbu": (0.70, 0.35), "gemm_mfu": (0.65, 0.2), "expert_mbu": (0.60, 0.3), "step_ms": (0.8, 0.7),
    "layer_us": (18, 0.7), "moe_layer_us": (15, 0.8), "sequence_us": (7, 0.7), "hop_us": (7, 0.7), "link_share": (0.4, 0.5),
    "prefill_share": (1.0, 0.3), "first_token_ms": (50, 0.7), "queue_share": (0.1, 0.8),
}  # fmt: skip
"""Where each constant is expected and how far off it may be (standard deviation of its logarithm) before data counts."""
FIRST_TOKEN = ("first_token_ms", "queue_share")
SPREAD, FIRST_SPREAD = 0.08, 0.1
"""Scatter of measured TPOT and TTFT that is normal, as a relative error; beyond it an error counts linearly."""
FEW = 8
"""Points below which a set of constants is mostly its prior."""
FOLDS = 5
USABLE = 0.92
"""Share of the memory that weights and KV cache may take before an engine makes requests wait."""


@dataclass
class System:
    """Measured points and the formulas that predict them. ``values`` holds what does not depend on the constants."""

    points: list[Measurement]
    values: dict[str, Array]
    formulas: list[tuple[str, Any]]
    vectors: Any

    def predict(self, constants: Mapping[str, float]) -> dict[str, Array]:
        """Every column that depends on the constants, for all points."""
        found = {**self.values, **{f"hardware_{name}": value for name, value in constants.items()}}
        with np.errstate(all="ignore"):
            for name, node in self.formulas:
                found[name] = np.broadcast_to(evaluate(node, found, self.vectors), (len(self.points),))
        return found

    def part(self, index: Array) -> System:
        """Some of the points."""
        values = {name: value[index] if isinstance(value, np.ndarray) and value.ndim else value for name, value in self.values.items()}
        return System([self.points[i] for i in index], values, self.formulas, self.vectors)


def system(points: Sequence[Measurement], host: Host, knee: float | None = None, known: Catalog | None = None) -> System:
    """The formulas of the estimate for these points, as arrays. ``known`` has the models and GPUs that a user's table adds."""
    keys = ("model", "gpu", "gpus", "batch", "context", "isl", "osl", "weights", "kv", "activations")
    engines = ("any", "vllm", "sglang", "trtllm", "llamacpp")
    rows = [{**{key: getattr(p, key) for key in keys}, "batch": round(p.batch), "method": "vanilla", "engine": p.engine if p.engine in engines else "other"}
            for p in points]  # fmt: skip
    data: dict[str, Any] = {"version": 1, "time_model": "estimate", "rows": rows, **(known.added() if known else {})}
    if knee is not None:
        data["parameters"] = {"estimate": {"knee": knee}}
    read = reader.load(data, host)
    # A table's batches are whole; how many requests ran together in a measurement may be a mean.
    read = replace(read, rows=read.rows.with_columns(pl.Series("batch", [p.batch for p in points], dtype=pl.Float64)))
    book = assemble(read, host)
    frame = result.evaluate(book, host).full
    constants = {f"hardware_{name}" for name in entities.HARDWARE_CONSTANTS}
    moved, formulas = set(constants), []
    for name, item in book.fields.items():
        if item.node is not None and moved & set(names(item.node)) and name != "hardware":
            moved.add(name)
            formulas.append((name, item.node))
    wanted = {"tpot_ms", "ttft_ms", "prefill_ms", "interference_ms"}
    needed = set(wanted)
    for name, node in reversed(formulas):
        if name in needed:
            needed |= set(names(node))
    values: dict[str, Array] = dict(book.constants)
    for name in frame.columns:
        series = frame[name]
        if name not in moved:
            text = series.dtype == pl.String
            values[name] = np.array(series.to_list(), dtype=object) if text else series.cast(pl.Float64).to_numpy()
    return System(list(points), values, [(name, node) for name, node in formulas if name in needed], book.vectors)


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

    @property
    def name(self) -> str:
        return f"my-{self.gpu}-{self.engine}"


def free(part: System) -> list[str]:
    """The constants of TPOT that these points say something about."""
    p = part.points
    asks = {
        "expert_mbu": bool(np.any(part.values["experts"] > 0)), "moe_layer_us": bool(np.any(part.values["experts"] > 0)),
        "hop_us": any(m.gpus > 1 for m in p), "link_share": any(m.gpus > 1 for m in p),
        "prefill_share": any(m.isl > 0 and m.tpot_ms > 0 for m in p), "kv_mbu": any(m.context > 0 for m in p),
    }  # fmt: skip
    return [name for name in PRIORS if name not in FIRST_TOKEN and asks.get(name, True)]


def _robust(error: Array) -> Array:
    """Residuals whose squares grow linearly once they are large (pseudo-Huber)."""
    return np.sign(error) * np.sqrt(2 * (np.sqrt(1 + error * error) - 1))


def _residuals(part: System, constants: Mapping[str, float]) -> Array:
    """Logarithmic errors of TPOT and of prompts alone."""
    found = part.predict(constants)
    tpot = np.array([p.tpot_ms for p in part.points])
    prefill = np.array([p.prefill_ms for p in part.points])
    with np.errstate(all="ignore"):
        ratio = np.where(tpot > 0, found["tpot_ms"] / np.where(tpot > 0, tpot, 1), found["prefill_ms"] / np.where(prefill > 0, prefill, 1))
        return np.nan_to_num(np.log(ratio), nan=0.0, posinf=5.0, neginf=-5.0)


def _minimum(free_names: Sequence[str], start: Mapping[str, float], errors: Any, spread: float) -> tuple[dict[str, float], dict[str, float]]:
    middle = np.log([PRIORS[name][0] for name in free_names])
    width = np.array([PRIORS[name][1] for name in free_names])
    fields = entities.HARDWARE_CONSTANTS
    high = np.array([math.log(fields[name].high or 1e6) for name in free_names])
    low = middle - 6

    def cost(x: Array) -> Array:
        return np.concatenate([_robust(errors({**start, **dict(zip(free_names, np.exp(x), strict=True))}) / spread), (x - middle) / width])

    found = least_squares(cost, np.clip(middle, low, high - 1e-3), bounds=(low, high))
    # Points that scatter more than is normal say less.
    scatter = max(1.0, float(np.median(np.abs(errors({**start, **dict(zip(free_names, np.exp(found.x), strict=True))})))) / 0.6745 / spread)
    spreads = np.minimum(scatter * np.sqrt(np.diag(np.linalg.pinv(found.jac.T @ found.jac))), width)
    return ({**start, **dict(zip(free_names, (float(v) for v in np.exp(found.x)), strict=True))},
            dict(zip(free_names, (float(v) for v in spreads), strict=True)))  # fmt: skip


def solve(part: System, fixed: Mapping[str, float] | None = None) -> tuple[dict[str, float], dict[str, float]]:
    """Constants and their relative uncertainty: those of TPOT first, then those of the first token.

    ``fixed`` constants keep the value given.
    """
    start = {**{name: middle for name, (middle, _) in PRIORS.items()}, **(fixed or {})}
    asked = [name for name in free(part) if name not in (fixed or {})]
    constants, wide = _minimum(asked, start, lambda c: _residuals(part, c), SPREAD)
    first = np.array([p.ttft_ms for p in part.points])
    if (first > 0).sum() >= 2:
        def errors(c: Mapping[str, float]) -> Array:
            # Relative, not logarithmic: a few requests that queued for long must not raise all the others.
            return np.where(first > 0, part.predict(c)["ttft_ms"] / np.where(first > 0, first, 1) - 1, 0.0)

        constants, more = _minimum(FIRST_TOKEN, constants, errors, FIRST_SPREAD)
        wide |= more
    return constants, wide


def errors_of(part: System, constants: Mapping[str, float]) -> tuple[Array, Array]:
    """Relative errors of TPOT (or prompts alone), and of TTFT where it was measured (nan elsewhere)."""
    first = np.array([p.ttft_ms if p.ttft_ms > 0 else math.nan for p in part.points])
    with np.errstate(all="ignore"):
        return np.abs(np.expm1(_residuals(part, constants))), np.abs(part.predict(constants)["ttft_ms"] / first - 1)


def fits_memory(part: System) -> Array:
    """Whether weights and KV cache of all requests fit with what an engine keeps for itself."""
    return part.values["memory_gb"] <= USABLE * part.values["memory_available_gb"]


def calibrate(points: Sequence[Measurement], host: Host, seed: int = 0, known: Catalog | None = None) -> list[Fit]:
    """One fit per GPU and engine, with errors on points left out of it (k folds, seeded)."""
    whole = system(points, host, known=known)
    fits = fits_memory(whole)
    found = []
    for group in dict.fromkeys(p.group for p in points):
        members = np.array([i for i, p in enumerate(points) if p.group == group])
        used = members[fits[members]]
        left = [(points[i].place, "weights and KV cache do not fit: requests waited for memory") for i in members if not fits[i]]
        if not len(used):
            continue
        found.append(_one(whole.part(used), group, left, seed))
    return found


def _one(part: System, group: tuple[str, str], left: list[tuple[str, str]], seed: int) -> Fit:
    constants, wide = solve(part)
    count = len(part.points)
    fitted, _ = errors_of(part, constants)
    order = np.random.default_rng(seed).permutation(count)
    folds = min(FOLDS if count >= 2 * FEW else count, count)
    errors, first = np.full(count, math.nan), np.full(count, math.nan)
    for fold in range(folds if count > 1 else 0):
        out = order[fold::folds]
        kept = np.setdiff1d(order, out)
        errors[out], first[out] = errors_of(part.part(out), solve(part.part(kept))[0])
    notes = []
    if count < FEW:
        notes.append(f"only {count} point{'s' if count != 1 else ''}: too few for {len(free(part))} constants; mostly the prior speaks")
    asked = free(part)
    loose = [name for name in asked if wide[name] > 0.8 * PRIORS[name][1]]
    if loose:
        notes.append("hardly determined by these points: " + ", ".join(loose))
    edge = [name for name in asked if constants[name] > 0.98 * (entities.HARDWARE_CONSTANTS[name].high or math.inf)]
    if edge:
        notes.append("at the limit of what is possible: " + ", ".join(edge) + "; the formula or the peak rates do not suit these points")
    fit = Fit(*group, constants, wide, count, fitted, errors, first, left_out=left, notes=notes)
    fit.outliers = _outliers(part, constants, fitted)
    return fit


def _outliers(part: System, constants: Mapping[str, float], errors: Array) -> list[tuple[str, str]]:
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
        fitted = [name for name in PRIORS if name in fit.uncertainty]
        lines += [f"  {fit.name}:", f"    title: {fit.gpu} with {fit.engine}, calibrated", f"    gpus: [{fit.gpu}]", f"    engine: {fit.engine}"]
        lines += [f"    {name}: {fit.constants[name]:.4g}" for name in fitted]
        lines.append("    uncertainty: {" + ", ".join(f"{name}: {fit.uncertainty[name]:.2g}" for name in fitted) + "}")
        lines += [f"    time_error: {held[2] if held else 1.0:.3g}"] + ([f"    ttft_error: {first[2]:.3g}"] if first else [])
        lines += [f"    points: {fit.points}", f"    source: {_quoted(source)}"]
        if fit.notes:
            lines.append(f"    doc: {_quoted('; '.join(fit.notes))}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
