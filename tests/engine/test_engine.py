"""The evaluator: slices, order, blanks, and the same numbers whatever a frame happens to hold in common."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from scenario import api
from scenario.book.book import Lookup
from scenario.common.errors import TableError
from scenario.engine.evaluator import Evaluator
from scenario.formulas.partial import fold
from scenario.formulas.to_python import evaluate
from scenario.model import shared

MODELS = ["llama-3.1-8b", "llama-3.3-70b", "gemma-2-27b", "qwen3-30b-a3b"]
GPUS = ["h100-sxm", "a100-80gb", "l40s"]
METHODS = ["vanilla", "small-model", "medusa", "eagle", "ngram", "mtp", "int4", "int4+eagle"]
TABLE = {
    "version": 1,
    "profiles": {"measured": [0.8, 0.5, 0.3]},
    "rows": [
        {"model": MODELS, "gpu": GPUS, "method": METHODS, "batch": 1, "context": 1024},
        {"model": MODELS[0], "gpu": GPUS[0], "method": "small-model", "batch": 1, "context": 0, "draft": "llama-3.2-1b",
         "acceptance": "measured"},
    ],
    "columns": {"per_day": {"formula": "usd_per_hour * gpus * 24"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    """An evaluator of a table that uses every method, a draft model, a profile and a column of its own."""
    return Evaluator(api.check(TABLE)[0])


def sweep(count: int, seed: int = 0) -> pl.DataFrame:
    """Random rows in which every input is blank here and there."""
    random = np.random.default_rng(seed)

    def pick(values: list, blank: float = 0.0) -> list:
        chosen = [values[i] for i in random.integers(0, len(values), count)]
        return [None if random.random() < blank else value for value in chosen]

    return pl.DataFrame({
        "id": [f"row {i}" for i in range(count)], "model": pick(MODELS), "gpu": pick(GPUS), "method": pick(METHODS),
        "batch": pick([1.0, 8.0, 200.0]), "context": pick([0.0, 2048.0, 9999.0]), "gpus": pick([1.0, 4.0], 0.3),
        "weights": pick(["bf16", "fp8"], 0.5), "kv": pick(["bf16", "int8"], 0.5), "mfu": pick([0.5, 1.0], 0.5),
        "alpha": pick([0.0, 0.5, 1.0], 0.3), "gamma": pick([0.0, 3.0, 16.0], 0.3), "usd_per_hour": pick([0.0, 2.5], 0.7),
        "draft": pick(["llama-3.2-1b", "qwen3-0.6b"], 0.6), "draft_cost": pick([0.05], 0.8),
        "acceptance": pick(["measured"], 0.8),
    }, schema_overrides={"gamma": pl.Float64, "draft_cost": pl.Float64})  # fmt: skip


def by_row(evaluator: Evaluator, row: dict) -> dict:
    """One row by the reference back end: every formula of the book as it stands."""
    from scenario.formulas import graph
    from scenario.formulas.expr import names

    book = evaluator.book
    needs = {f.name: [f.lookup.key] if f.lookup else names(f.node) if f.node else [] for f in book.fields.values()}
    values: dict = dict(book.constants)
    for name in graph.order(needs):
        item = book.fields[name]
        if isinstance(item.lookup, Lookup):
            found = evaluator.entities[item.lookup.table].row(by_predicate=pl.col("name") == values[item.lookup.key], named=True) \
                if values[item.lookup.key] is not None else {}  # fmt: skip
            values[name] = found.get(item.lookup.field)
        elif item.node is not None:
            values[name] = evaluate(item.node, values, book.vectors)
        else:
            values[name] = row.get(name, row.get(name.removesuffix("_given")))
    return {name: values[name] for name in book.fields}


def assert_close(one: pl.DataFrame, other: pl.DataFrame) -> None:
    """Equal to 1e-13: polars divides by a constant through its reciprocal, so a last digit depends on what is constant."""
    assert_frame_equal(one, other, check_exact=False, rel_tol=1e-13, abs_tol=0)


def test_rows_equal_the_reference_row_by_row(evaluator: Evaluator) -> None:
    """Whatever the plan folds, reads from tables or shares, each row is what its formulas give on their own."""
    rows = sweep(120)
    got = evaluator.run(rows).to_dicts()
    for ours, row in zip(got, rows.to_dicts(), strict=True):
        theirs = by_row(evaluator, row)
        for name, value in theirs.items():
            if isinstance(value, float):
                assert ours[name] == pytest.approx(value, rel=1e-12, abs=1e-300), (name, row)
            else:
                assert ours[name] == value, (name, row)


@pytest.mark.parametrize("size", [1, 7, 1000, 100_000])
def test_slices_give_the_same_as_one_go(evaluator: Evaluator, size: int) -> None:
    """A frame in slices of any size has the same values in the same order."""
    rows = sweep(300, seed=1)
    sliced, whole = pl.concat(evaluator.slices(rows, size=size)), evaluator.run(rows)
    assert_close(sliced, whole)
    if size > 1:
        assert_frame_equal(sliced, whole, check_exact=True)


def test_the_order_of_rows_is_kept(evaluator: Evaluator) -> None:
    """Row i of the result is row i of the input."""
    rows = sweep(500, seed=2)
    assert evaluator.run(rows)["id"].to_list() == rows["id"].to_list()


def test_rows_past_one_batch_of_the_engine_keep_their_place_and_values(evaluator: Evaluator) -> None:
    """Polars streams 100,000 rows or so at a time: a frame of several batches is its parts one after the other."""
    few = sweep(50_000, seed=7)
    many = pl.concat([few] * 6).with_columns(id=pl.int_range(6 * few.height).cast(pl.String))
    got = evaluator.run(many)
    assert_frame_equal(got["id"].to_frame(), many["id"].to_frame())
    once = evaluator.run(few).drop("id")
    for start in range(0, many.height, few.height):
        assert_frame_equal(got.drop("id").slice(start, few.height), once, check_exact=True)


@pytest.mark.parametrize("key", ["method", "model", "gpu", "weights", "alpha", "draft", "batch"])
def test_what_rows_have_in_common_does_not_change_them(evaluator: Evaluator, key: str) -> None:
    """Rows of one model, method or alpha have the values they have among others."""
    rows = sweep(2000, seed=3)
    mixed = evaluator.run(rows)
    for (value,), _ in rows.group_by(key):
        chosen = pl.Series((rows[key] == value).fill_null(False)) if value is not None else rows[key].is_null()
        assert_close(evaluator.run(rows.filter(chosen)), mixed.filter(chosen))


def test_every_row_alone_equals_itself_among_others(evaluator: Evaluator) -> None:
    """A frame of one row, where everything is constant, gives the same row."""
    rows = sweep(40, seed=4)
    mixed = evaluator.run(rows)
    for index in range(rows.height):
        twice = pl.concat([rows.slice(index, 1)] * 2)
        assert_close(evaluator.run(twice).slice(1), mixed.slice(index, 1))
        assert_close(evaluator.run(rows.slice(index, 1)), mixed.slice(index, 1))


def test_named_columns_are_those_of_the_full_result(evaluator: Evaluator) -> None:
    """Asking for some columns computes these alone, in the order asked, with the same values."""
    rows = sweep(3000, seed=5)
    names = [*reversed(shared.ORDER), "per_day"]
    assert_frame_equal(evaluator.run(rows, columns=names), evaluator.run(rows).select(names), check_exact=True)
    assert evaluator.run(rows, columns=["speedup"]).columns == ["speedup"]


def test_no_rows_give_no_rows(evaluator: Evaluator) -> None:
    """An empty frame comes back empty, with every column and its type."""
    rows = sweep(3)
    empty = evaluator.run(rows.clear())
    assert empty.height == 0
    assert empty.schema == evaluator.run(rows).schema


def test_blank_inputs_take_the_defaults(evaluator: Evaluator) -> None:
    """A column of blanks and a column that is not there are the same thing."""
    rows = sweep(50, seed=6).with_columns(alpha=pl.lit(None, pl.Float64), weights=pl.lit(None, pl.String))
    assert_frame_equal(evaluator.run(rows), evaluator.run(rows.drop("alpha", "weights")), check_exact=True)


def test_no_value_is_nan_or_infinite(evaluator: Evaluator) -> None:
    """What cannot be computed is blank, in the last corner of a sweep too."""
    got = evaluator.run(sweep(5000, seed=7)).select(pl.selectors.float())
    assert all(series.drop_nulls().is_finite().all() for series in got)


def test_progress_ends_at_all_rows(evaluator: Evaluator) -> None:
    """Progress is told in rising steps that end with every row done."""
    told: list[tuple[int, int]] = []
    evaluator.run(sweep(10), progress=lambda done, rows: told.append((done, rows)))
    assert told == [(10, 10)]


def test_a_hundred_thousand_rows(evaluator: Evaluator) -> None:
    """A large frame, repeated from a small one, repeats the small one's values."""
    rows = sweep(1000, seed=8)
    small = evaluator.run(rows, columns=shared.ORDER)
    large = evaluator.run(pl.concat([rows] * 100), columns=shared.ORDER)
    assert_frame_equal(large.tail(1000), small, check_exact=True)
    assert large.height == 100_000


def test_a_sweep_streams_to_parquet(evaluator: Evaluator, tmp_path: Path) -> None:
    """The lazy form writes a file slice by slice that holds what a run gives."""
    rows = sweep(1000, seed=9)
    evaluator.scan(rows, shared.ORDER, size=100).sink_parquet(tmp_path / "sweep.parquet")
    assert_frame_equal(pl.read_parquet(tmp_path / "sweep.parquet"), evaluator.run(rows, columns=shared.ORDER), check_exact=True)
    some = evaluator.scan(rows, size=100).filter(pl.col("fits")).select("id", "speedup").head(5).collect()
    assert_frame_equal(some, evaluator.run(rows).filter("fits").select("id", "speedup").head(5), check_exact=True)


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("a * 1 + b / 1", "a + b"),
        ("coalesce(none, a, b)", "a"),
        ("a if two > 1 else b", "a"),
        ("choose(two, a, b)", "b"),
        ("choose(n, two, two)", "2"),
        ("choose(none, 1, 2)", "blank"),
        ("choose(none, a, b)", "blank"),
        ("two ** two * a", "4 * a"),
        ("a + none", "blank"),
        ("is_blank(a) or a > b", "a > b"),
    ],
)
def test_folding(formula: str, expected: str) -> None:
    """A formula becomes what is left of it once some names are known."""
    from scenario.formulas import expr, facts
    from scenario.formulas.facts import Facts
    from scenario.formulas.to_text import compile_text

    env = {"a": Facts(), "b": Facts(), "two": Facts(), "none": Facts(blank=True), "n": Facts(low=1, high=2, integer=True)}
    node = facts.check(expr.parse(formula), env, formula)
    done = fold(node, {"two": 2.0, "none": None}, lambda part: evaluate(part, {}))
    assert compile_text(done) == expected


@pytest.mark.parametrize("varying", [{"usd_per_hour": [2, 3]}, {"utilization": [0.5, 0.6]}, {"batch": [1, 2]}, {"gpu": ["h100-sxm", "h200"]}])
@pytest.mark.parametrize("asked", [{"show": ["best_gamma"]}, {"columns": {"x": "one_more_cost"}}])
def test_a_choice_by_a_blank_is_blank_in_rows_that_share_it(varying: dict, asked: dict) -> None:
    """Rows of vanilla decoding have no draft length: what is chosen by it is blank, whatever the rows have in common."""
    row = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": 1, "context": 1000, "method": "vanilla", **varying}
    frame = api.run({"version": 1, "rows": [row], **asked}).full
    assert frame["x" if "columns" in asked else "one_more_cost"].to_list() == [None, None]


def test_an_evaluator_travels(evaluator: Evaluator) -> None:
    """To another process, say; used before or not, what comes out there is the same."""
    import pickle

    rows = sweep(50)
    wanted = evaluator.run(rows)
    assert_frame_equal(pickle.loads(pickle.dumps(evaluator)).run(rows), wanted)


@pytest.mark.parametrize("name", shared.REQUIRED)
def test_a_blank_that_has_no_default_is_refused(evaluator: Evaluator, name: str) -> None:
    """No number is made up for it, in whatever way the rows are asked for."""
    rows = sweep(20)
    holed = rows.with_columns(pl.when(pl.int_range(20) == 7).then(None).otherwise(pl.col(name)).alias(name))
    with pytest.raises(TableError, match=f"{name} is blank in row 7"):
        evaluator.run(holed)
    with pytest.raises(TableError, match=f"{name} is blank in 20 rows"):
        list(evaluator.slices(rows.drop(name)))


def test_a_blank_that_has_a_default_takes_it() -> None:
    """A table that gives a default for the GPU lets rows leave it out."""
    book = api.check({"version": 1, "defaults": {"gpu": "h100-sxm"}, "rows": [{"model": MODELS[0], "batch": 1, "context": 0, "method": "vanilla"}]})[0]
    rows = pl.DataFrame({"model": [MODELS[0]] * 2, "gpu": [None, "h100-sxm"], "batch": [1.0] * 2, "context": [0.0] * 2, "method": ["vanilla"] * 2})
    prices = Evaluator(book).run(rows)["usd_per_million_tokens"].to_list()
    assert prices[0] == prices[1] is not None
