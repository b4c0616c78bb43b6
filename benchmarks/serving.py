"""The shipped constants of serving: fitted to all groups of the cleaned sample together, and judged on groups left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from silicon import Sample

from scenario.evidence import calibrate, pooled
from scenario.evidence.measurements import Measurement
from scenario.registry.loaded import Host

HOPPER = ("h100-sxm", "h100-pcie", "h100-nvl", "h200", "h20", "gh200")
BLACKWELL = ("b200", "gb200", "b300")
FAMILY = {**dict.fromkeys(HOPPER, "hopper"), **dict.fromkeys(BLACKWELL, "blackwell")}
CENTRE = {
    "weight_mbu": 0.87, "expert_mbu": 0.9, "kv_mbu": 0.9, "gemm_mfu": 0.74, "quantized_mfu": 0.55, "launch_us": 4.2, "moe_row_us": 0.3,
    "sequence_us": 17.0, "link_share": 0.42, "moe_prefill": 1.3, "queue_share": 0.1, "first_token_ms": 33.0, "first_passes": 6.0,
}  # fmt: skip
WIDTH = {
    "weight_mbu": 0.2, "expert_mbu": 0.3, "kv_mbu": 0.3, "gemm_mfu": 0.3, "quantized_mfu": 0.4, "launch_us": 0.02, "moe_row_us": 1.0,
    "sequence_us": 1.0, "link_share": 0.7, "moe_prefill": 0.3, "queue_share": 0.8, "first_token_ms": 0.7, "first_passes": 0.5,
}  # fmt: skip
"""Priors: about where a constant is. launch_us is held near what leaving models and speculation sources out ask for (free it is 5.3)."""
FIXED = {"step_ms": 0.0, "time_factor": 1.0}
"""What serving rows do not tell apart from launches."""
FAMILY_SPREAD, ENGINE_SPREAD, SET_SPREAD = {**dict.fromkeys(CENTRE, 0.1), "launch_us": 0.02}, {"queue_share": 0.5, "first_token_ms": 0.5}, {"expert_mbu": 0.2}
NOISE, CELL = (0.08, 0.3), (0.07, 0.2)
FULL, PATIENCE = 0.95, 0.1
Labels = np.ndarray


@dataclass
class Serving:
    """The points of a sample with their formulas, and the groups that they belong to."""

    part: calibrate.System

    @property
    def points(self) -> list[Measurement]:
        return self.part.points

    def levels(self) -> list[Labels]:
        """GPU family, engine, and both together, of each point."""
        family = np.array([FAMILY[p.gpu] for p in self.points])
        engine = np.array([p.engine for p in self.points])
        return [family, engine, np.char.add(np.char.add(family, " "), engine)]

    def cells(self) -> Labels:
        """Model, format, GPU and engine of each point."""
        return np.array([f"{p.model} {p.weights} {p.gpu} {p.engine}" for p in self.points])

    @property
    def mixture(self) -> np.ndarray:
        return self.part.values["experts"] > 0

    def only(self, index: np.ndarray) -> Serving:
        return Serving(self.part.part(np.flatnonzero(index)))


def load(sample: Sample, host: Host, points: Sequence[Measurement] | None = None) -> Serving:
    """Points whose weights and cache fit and whose requests did not queue; what is left out is counted in the sample."""
    points = sample.points if points is None else points
    whole = Serving(calibrate.system(points, host))
    full = whole.part.values["memory_gb"] > FULL * whole.part.values["memory_available_gb"]
    sample.left_out["weights and cache take over 95 % of the memory"] += int(full.sum())
    kept = whole.only(~full)
    found = kept.part.predict({**CENTRE, **FIXED})
    batch, osl, tpot, ttft = (np.array([getattr(p, name) for p in kept.points]) for name in ("batch", "osl", "tpot_ms", "ttft_ms"))
    # A first token later than all prompts of the batch and a tenth of the request: it waited for a place.
    waited = ttft > 1.5 * (batch * found["prefill_ms"] + 6 * found["verify_ms"]) + PATIENCE * osl * tpot
    sample.left_out["TTFT beyond all prompts of the batch: requests queued"] += int(waited.sum())
    return kept.only(~waited)


@dataclass
class Fitted:
    """Constants of serving: those of passes, and those of the first token, which have a fit of their own."""

    passes: pooled.Solution
    held: Mapping[str, float]
    first: pooled.Solution

    def predict(self, data: Serving) -> tuple[np.ndarray, np.ndarray]:
        """TPOT and TTFT of points, in groups that the fit has seen or not."""
        labels = data.levels()
        constants = {**self.passes.constants(labels), **{name: np.full(len(data.points), value) for name, value in self.held.items()}}
        constants |= self.first.constants([labels[1]])
        constants["time_factor"] = np.exp(self.passes.offset(0, data.cells()))
        found = data.part.predict(constants)
        return found["tpot_ms"], found["ttft_ms"]


def fit(data: Serving, fixed: Mapping[str, float] | None = None) -> Fitted:
    """Constants from these points. ``fixed`` ones keep the value given."""
    labels, ones = data.levels(), np.ones(len(data.points))
    held = {**FIXED, **(fixed or {})}
    centre = {name: value for name, value in CENTRE.items() if name not in held}
    spreads = (FAMILY_SPREAD, ENGINE_SPREAD, SET_SPREAD)
    passes = pooled.solve(pooled.PooledFit(
        calibrate.predictor(data.part, {name: value * ones for name, value in held.items()}), calibrate.wanted(data.points), NOISE, data.cells(),
        CELL, [pooled.Level(label, spread) for label, spread in zip(labels, spreads, strict=True)], pooled.Priors(centre, WIDTH, calibrate.HIGH),
    ))  # fmt: skip
    return Fitted(passes, held, _first(data, {**passes.constants(labels), **{name: value * ones for name, value in held.items()}}))


def _first(data: Serving, constants: Mapping[str, np.ndarray]) -> pooled.Solution:
    """The fixed parts of the first token by relative errors, so that a few that waited long do not raise all the others."""
    ttft = np.array([p.ttft_ms for p in data.points])
    names = ("first_token_ms", "first_passes")
    held = {name: value for name, value in constants.items() if name not in names}

    def ratio(mine: Mapping[str, np.ndarray]) -> np.ndarray:
        return data.part.predict({**held, **mine})["ttft_ms"] / ttft

    level = pooled.Level(data.levels()[1], {"first_token_ms": 0.5})
    priors = pooled.Priors({name: CENTRE[name] for name in names}, {name: WIDTH[name] for name in names}, {})
    return pooled.solve(pooled.PooledFit(ratio, [np.ones(len(ttft))], (0.1,), data.cells(), (1e-6,), [level], priors))


def left_out(data: Serving, groups: Labels, fitting: Callable[[Serving], Fitted] = fit) -> tuple[np.ndarray, np.ndarray]:
    """TPOT and TTFT of every point, predicted without its group."""
    tpot, ttft = np.zeros(len(groups)), np.zeros(len(groups))
    for group in np.unique(groups):
        mine = groups == group
        tpot[mine], ttft[mine] = fitting(data.only(~mine)).predict(data.only(mine))
    return tpot, ttft
