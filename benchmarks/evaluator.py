"""Times the evaluator against the same columns written by hand in polars, numpy and plain Python.

    python benchmarks/evaluator.py [--rows 1000000 10000000] [--repeats 7]

All take the same input frame and give every column of ``by_hand.ORDER``; that they agree to
1e-9 is checked before anything is timed. Within a size the contenders take turns, so that whatever else
the machine does hits all alike; the best time of each counts.
"""

from __future__ import annotations

import argparse
import gc
import resource
import time
from collections.abc import Callable
from typing import Any

import by_hand
import numpy as np
import polars as pl

from scenario import api
from scenario.engine.evaluator import Evaluator

MODELS = ["llama-3.1-8b", "llama-3.3-70b", "qwen3-32b", "mistral-7b-v0.1", "gemma-2-27b", "qwen3-30b-a3b", "deepseek-v3"]
GPUS = ["h100-sxm", "h200", "a100-80gb", "b200", "l40s"]
METHODS = ["vanilla", "small-model", "medusa", "eagle", "ngram", "mtp", "int4", "int4+eagle"]
PYTHON_ROWS = 50_000
NAMES = {"scenario": "scenario", "a": "(a) polars by hand", "b": "(b) numpy by hand", "c": "(c) Python loop"}


def make_rows(count: int) -> pl.DataFrame:
    """Random scenarios; alpha and gamma are typed in four of five rows that draft, the rest takes defaults."""
    random = np.random.default_rng(1)

    def pick(names: list[str]) -> pl.Series:
        return pl.Series(names).gather(pl.Series(random.integers(0, len(names), count)))

    frame = pl.DataFrame({
        "id": pl.select(pl.int_range(count)).to_series().cast(pl.String),
        "model": pick(MODELS), "gpu": pick(GPUS), "method": pick(METHODS),
        "batch": random.integers(1, 257, count).astype(float), "context": random.integers(0, 16385, count).astype(float),
        "gpus": 2.0 ** random.integers(0, 4, count), "alpha": random.uniform(0.3, 1.0, count),
        "gamma": random.integers(1, 9, count).astype(float), "typed": random.random(count) < 0.8,
    })  # fmt: skip
    typed = pl.col("typed") & ~pl.col("method").is_in(["vanilla", "int4"])
    return frame.with_columns(pl.when(typed).then(name).alias(name) for name in ("alpha", "gamma")).drop("typed").rechunk()


def make_evaluator() -> Evaluator:
    """An evaluator for a table that uses every method."""
    row = {"model": MODELS, "gpu": GPUS, "method": METHODS, "batch": 1, "context": 1024, "gpus": 1}
    typed = {name: {"draft_cost": by_hand.ONE_LAYER_COST} for name in ("eagle", "mtp")}
    return Evaluator(api.check({"version": 1, "rows": [row], "parameters": typed})[0])


def contenders(evaluator: Evaluator, rows: pl.DataFrame) -> dict[str, Callable[[], Any]]:
    """What is timed for these rows, by short name."""
    models, gpus = evaluator.entities["models"], evaluator.entities["gpus"]
    listed = rows.head(PYTHON_ROWS).to_dicts()
    by_model, by_gpu = ({row["name"]: row for row in frame.to_dicts()} for frame in (models, gpus))
    return {
        "scenario": lambda: evaluator.run(rows, columns=by_hand.ORDER),
        "a": lambda: by_hand.in_polars(rows, models, gpus, engine="streaming"),  # the faster of the two engines
        "b": lambda: by_hand.in_numpy(rows, models, gpus),
        "c": lambda: by_hand.in_python(listed, by_model, by_gpu),
    }


def as_frame(result: Any) -> pl.DataFrame:
    """A contender's result as a frame in the order of the shared columns."""
    if isinstance(result, dict):
        arrays = {name: v.tolist() if isinstance(v, np.ndarray) and v.dtype.kind == "O" else v for name, v in result.items()}
        return pl.DataFrame({name: arrays[name] for name in by_hand.ORDER}).with_columns(pl.selectors.float().fill_nan(None))
    return (result if isinstance(result, pl.DataFrame) else pl.DataFrame(result, infer_schema_length=None)).select(by_hand.ORDER)


def disagreements(one: pl.DataFrame, other: pl.DataFrame) -> list[str]:
    """The columns in which two frames differ by more than 1e-9 of the value, or in what is blank."""
    found = []
    for name in by_hand.ORDER:
        a, b = one[name], other[name]
        if a.dtype.is_numeric():
            differ = bool(((a - b).abs() > 1e-9 * b.abs()).any()) or bool((a.is_null() != b.is_null()).any())
        else:
            differ = bool(a.ne_missing(b).any())
        if differ:
            found.append(name)
    return found


def check(evaluator: Evaluator, rows: pl.DataFrame) -> None:
    """Stop unless all contenders give the same columns for these rows."""
    runs = contenders(evaluator, rows)
    ours = as_frame(runs["scenario"]())
    for name in "abc":
        theirs = as_frame(runs[name]())
        wrong = disagreements(ours.head(theirs.height), theirs)
        if wrong:
            raise SystemExit(f"{NAMES[name]} differs in {', '.join(wrong)}")
    print(f"all agree to 1e-9 on {rows.height:,} rows x {len(by_hand.ORDER)} columns (the Python loop on {PYTHON_ROWS:,})")


def measure(evaluator: Evaluator, count: int, repeats: int) -> dict[str, float]:
    """Seconds per row of each contender: the best of ``repeats`` turns."""
    rows = make_rows(count)
    runs = contenders(evaluator, rows)
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            result = run()
            seconds = time.perf_counter() - start
            del result
            gc.collect()
            best[name] = min(best[name], seconds / (min(count, PYTHON_ROWS) if name == "c" else count))
    return best


def main() -> None:
    """Check, time, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--repeats", type=int, default=7, help="turns at the smallest size; larger ones get 3 at most")
    options = parser.parse_args()
    evaluator = make_evaluator()
    check(evaluator, make_rows(200_000))
    times: dict[int, dict[str, float]] = {}
    for count in options.rows:
        repeats = options.repeats if count == min(options.rows) else min(options.repeats, 3)
        times[count] = measure(evaluator, count, repeats)
        print(f"\n{count:,} rows, best of {repeats}" + " (c: on the first 50,000)" * (count > PYTHON_ROWS))
        for name, seconds in times[count].items():
            ratio = "" if name == "scenario" else f"   scenario is {seconds / times[count]['scenario']:6.2f} times as fast"
            print(f"  {NAMES[name]:20} {1 / seconds:12,.0f} rows/s  {seconds * 1e9:8,.0f} ns/row{ratio}")
    if len(times) > 1:
        costs = ", ".join(f"{seconds['scenario'] * 1e9:,.0f} ns at {count:,}" for count, seconds in times.items())
        print(f"\ncost per row of scenario: {costs}")
    print(f"peak memory of the whole run, inputs and rivals included: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB")


if __name__ == "__main__":
    main()
