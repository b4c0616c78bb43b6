"""How far off the estimate is on what it has never seen: fits the shipped constants, judges them, writes docs/accuracy.md.

    make accuracy DATA=folder        or  python benchmarks/accuracy.py DATA [--docs FILE] [--hardware FILE] [--terms]

DATA holds ``silicon/measured_serving*.csv`` and ``specdec/measured_speedups*.csv``. ``--terms`` also leaves out one term of the
formula at a time, which takes as long again for each.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path

import hardware
import numpy as np
import serving
import silicon
import speculation

from scenario.evidence import calibrate
from scenario.registry import host

TERMS: dict[str, Mapping[str, float]] = {
    "no launches": {"launch_us": 1e-6}, "no host work per token": {"sequence_us": 1e-6}, "no time per row of experts": {"moe_row_us": 1e-9},
    "no bytes of all-reduces": {"link_share": 1e3}, "prompts of mixtures as their arithmetic": {"moe_prefill": 1.0},
}  # fmt: skip
TWENTY, SEED = 20, 0
FEW = 30


def row(*cells: object) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def head(*cells: str) -> list[str]:
    return [row(*cells), row(*("---" for _ in cells))]


def percent(values: np.ndarray, kind: str = "mean") -> str:
    if not len(values):
        return ""
    return f"{np.mean(values) if kind == 'mean' else np.median(values):.1%}"


def grouped(errors: np.ndarray, first: np.ndarray, held: np.ndarray, groups: np.ndarray) -> Iterable[str]:
    """One line per group: rows, errors of TPOT and TTFT, share of rows inside the interval."""
    for group in np.unique(groups):
        mine = groups == group
        bias = np.mean(errors[mine])
        yield row(group, mine.sum(), percent(np.abs(np.expm1(errors[mine]))), percent(np.abs(np.expm1(errors[mine])), "median"),
                  f"{np.expm1(bias):+.1%}", percent(held[mine]), percent(np.abs(first[mine])))  # fmt: skip


def twenty(data: serving.Serving, without_model: np.ndarray) -> np.ndarray:
    """TPOT of the other rows of each cell, after 20 of its rows: constants fitted to these, from those of models left out.

    The fit without the model stands in as the expectation: its errors on the 20 rows become the factor of the cell, shrunk as in a fit.
    """
    cells, found = data.cells(), np.full(len(data.points), np.nan)
    measured = np.array([p.tpot_ms for p in data.points])
    share = (serving.NOISE[0] / serving.CELL[0]) ** 2
    for cell in np.unique(cells):
        mine = np.random.default_rng(SEED).permutation(np.flatnonzero(cells == cell))
        seen, rest = mine[:TWENTY], mine[TWENTY:]
        off = np.log(measured[seen] / without_model[seen])
        found[rest] = without_model[rest] * np.exp(off.sum() / (len(seen) + share))
    return found


def serving_page(data: serving.Serving, sample: silicon.Sample, terms: bool) -> tuple[list[str], serving.Fitted]:
    tpot, ttft = (np.array([getattr(p, name) for p in data.points]) for name in ("tpot_ms", "ttft_ms"))
    labels, cells, mixture = data.levels(), data.cells(), data.mixture
    by = {"model": np.array([p.model for p in data.points]), "GPU family with its engine": labels[2],
          "weight format": np.array([p.weights for p in data.points])}  # fmt: skip
    other, cell = np.log1p(hardware.OTHER_ERROR), np.log1p(hardware.CELL_ERROR)
    lines = ["## Serving, by groups left out", "",
             f"{sample.given:,} rows given, {len(data.points):,} used: {len(np.unique(by['model']))} models (DeepSeek-V3 and R1 are one), "
             f"{len(np.unique(cells))} cells of model, format, GPU and engine. A group is predicted by constants that have seen none of it. "
             "Duplicates are one row, and so never on both sides.", "",
             *head("left out", "groups", "TPOT mean", "median", "dense", "experts", f"within x/÷ {1 + hardware.OTHER_ERROR}",
                   f"worst group of {FEW}", "TTFT mean", "median")]  # fmt: skip
    detail: list[str] = []
    out: dict[str, np.ndarray] = {}
    for name, groups in by.items():
        found, first = serving.left_out(data, groups)
        out[name] = found
        errors, late = np.log(found / tpot), first / ttft - 1
        size, held = np.abs(np.expm1(errors)), np.abs(errors) < other
        large = [np.mean(held[cells == group]) for group in np.unique(cells) if (cells == group).sum() >= FEW]
        lines.append(row(name, len(np.unique(groups)), percent(size), percent(size, "median"), percent(size[~mixture]), percent(size[mixture]),
                         percent(held), f"{min(large):.0%}", percent(np.abs(late)), percent(np.abs(late), "median")))  # fmt: skip
        if name == "model":
            detail = [*head("cell (its model left out)", "rows", "TPOT mean", "median", "bias", "within", "TTFT mean"),
                      *grouped(errors, late, held, cells)]  # fmt: skip
    known = twenty(data, out["model"])
    after = np.isfinite(known)
    size = np.abs(known[after] / tpot[after] - 1)
    held = np.abs(np.log(known[after] / tpot[after])) < cell
    large = [np.mean(held[cells[after] == group]) for group in np.unique(cells[after]) if (cells[after] == group).sum() >= FEW]
    fitted = serving.fit(data)
    inside, early = fitted.predict(data)
    lines += [row("model, then 20 rows of the cell", "", percent(size), percent(size, "median"), percent(size[~mixture[after]]),
                  percent(size[mixture[after]]), f"{np.mean(held):.1%} (x/÷ {1 + hardware.CELL_ERROR})", f"{min(large):.0%}", "", ""),
              row("nothing (fitted rows)", "", percent(np.abs(inside / tpot - 1)), percent(np.abs(inside / tpot - 1), "median"),
                  percent(np.abs(inside / tpot - 1)[~mixture]), percent(np.abs(inside / tpot - 1)[mixture]), "", "",
                  percent(np.abs(early / ttft - 1)), percent(np.abs(early / ttft - 1), "median")), ""]  # fmt: skip
    lines += ["Left out before anything was fitted:", "", *(f"* {count}: {why}" for why, count in sample.left_out.most_common()), ""]
    lines += ["### By cell", "", *detail, ""]
    if terms:
        lines += ["### What each term gains", "", *head("models left out", "TPOT mean", "dense", "experts")]
        sizes = {"as it is": np.abs(out["model"] / tpot - 1)}
        for name, fixed in TERMS.items():
            found, _ = serving.left_out(data, by["model"], lambda part, fixed=fixed: serving.fit(part, fixed))
            sizes[name] = np.abs(found / tpot - 1)
        lines += [row(name, percent(size), percent(size[~mixture]), percent(size[mixture])) for name, size in sizes.items()] + [""]
    return lines, fitted


def ranks_page(fitted: serving.Fitted, ranks: serving.Serving) -> list[str]:
    tpot = np.array([p.tpot_ms for p in ranks.points])
    found, _ = fitted.predict(ranks)
    errors, cells = np.log(found / tpot), ranks.cells()
    return ["### Attention on data-parallel ranks", "",
            "Never fitted. Each rank's host serves its own sequences; charged for all of them the form was 30 % too slow at large batches.", "",
            *head("cell", "rows", "TPOT mean", "bias"),
            *(row(cell, (cells == cell).sum(), percent(np.abs(np.expm1(errors[cells == cell]))), f"{np.expm1(np.mean(errors[cells == cell])):+.1%}")
              for cell in np.unique(cells)), ""]  # fmt: skip


def speculation_page(rows: list[speculation.Row], whole: calibrate.System) -> list[str]:
    measured = np.array([item.speedup for item in rows])
    found = speculation.left_out(rows, whole)
    spread = 1 + np.asarray(whole.predict({})["speedup_error"], dtype=float)
    low, high = found / spread, found * spread
    held, called = (low <= measured) & (measured <= high), (low > 1) | (high < 1)
    wrong = ((low > 1) & (measured < 1)) | ((high < 1) & (measured > 1))
    sources = np.array([item.source for item in rows])
    lines = ["## Speculation, by sources left out", "", f"{len(rows)} published speedups whose acceptance is known. The constants of an engine come from its "
             "other sources, or from what was expected of it.", "", *head("source left out", "rows", "mean error", "bias", "held", "called", "called wrong")]  # fmt: skip
    for name, mine in [("all", np.ones(len(rows), dtype=bool)), *((source, sources == source) for source in np.unique(sources))]:
        error = found[mine] / measured[mine] - 1
        lines.append(row(name, mine.sum(), percent(np.abs(error)), f"{np.mean(error):+.1%}", percent(held[mine]), percent(called[mine]), int(wrong[mine].sum())))
    return [*lines, ""]


PREFACE = """\
# How far off the estimate is

Made by `make accuracy DATA=folder` from public measurements: serving rows of https://github.com/ai-dynamo/aiconfigurator (public silicon
sample, Apache-2.0), published speedups with their addresses in the data. The form of the formula was chosen on the same rows, by what
leaving models out says; constants are always held out. Errors are relative. What is unexplained and what was tried: the last section.
"""
TRIED = """\
## What is unexplained, and what was tried

* **TTFT** stays above its target of 28 %. What a benchmark's load generator does (all requests at once, or spread) moves it by factors and
  stands in no file; SGLang computes waiting prompts first. A relative loss, queue shares by engine and a fixed part by engine were kept; a
  power of the batch, time per pass and batch, launches of eager prefill and reading the weights in prefill gained nothing.
* **Qwen3-235B on H200 with vLLM 0.12** takes twice what the same form says at small batches, and gpt-oss-120b on B200 with
  TensorRT-LLM a quarter less: kernels of one version, no term found.
* **SGLang with mixtures of experts**: Qwen3-30B-A3B speeds up by 0.72 to 0.93 where 0.9 to 1.25 is estimated; no verdict is called there.
* Tried on serving and dropped, for leaving models out gained 0.2 points or less, or lost: factors by 4-bit format, a factor for
  the arithmetic of experts, skewed routing, a latent cache's own efficiency, a latency per all-reduce, a fixed time per step, the square root of
  the rows of mixtures (the rows themselves do as well, and hold in speculation), time per touched expert, own efficiencies of attention and
  prefill, sets of constants by engine for all but expert_mbu, queue_share and first_token_ms.
* To go below: repeated runs of one setting by version (spread alone is 5 to 17 %), the KV cache's format in the files, and more mixtures.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--docs", type=Path, default=Path("docs/accuracy.md"))
    parser.add_argument("--hardware", type=Path, help="write the shipped constants here, normally scenarios/hardware.yaml")
    parser.add_argument("--terms", action="store_true", help="leave out one term at a time as well")
    asked = parser.parse_args()
    loaded = host.load(third_party=False)
    sample = silicon.read(asked.data)
    data = serving.load(sample, loaded)
    counted = sample.left_out.copy()
    served, fitted = serving_page(data, sample, asked.terms)
    ranks = ranks_page(fitted, serving.load(sample, loaded, sample.ranks))
    sample.left_out = counted
    rows = speculation.read(asked.data)
    whole = speculation.system(rows, loaded)
    text = "\n".join([PREFACE, *served, *ranks, *speculation_page(rows, whole), TRIED])
    asked.docs.write_text(text, encoding="utf-8")
    if asked.hardware:
        found = speculation.fit(rows, whole, np.arange(len(rows)))
        asked.hardware.write_text(hardware.yaml(data, fitted, found), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
