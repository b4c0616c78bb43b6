"""The order of columns by what they read, and the loops that have none."""

from __future__ import annotations

import pytest

from scenario.common.errors import FormulaError, Problem
from scenario.formulas.graph import levels, order


def loops(reads: dict[str, list[str]]) -> list[str]:
    with pytest.raises(FormulaError) as raised:
        order(reads)
    return [problem.message.split(": ")[1] for problem in raised.value.problems]


def test_a_column_comes_after_what_it_reads() -> None:
    """Columns stand after those they read and else as given; names that are no columns are passed over."""
    assert order({"c": ["b", "input"], "a": [], "b": ["a"], "d": ["c", "a"]}) == ["a", "b", "c", "d"]
    assert order({"z": [], "y": [], "x": ["input"]}) == ["z", "y", "x"]
    assert order({}) == []


def test_a_loop_is_named_in_reading_order() -> None:
    """A loop starts at the column given first, wherever the walk came in, and goes on with what that one reads."""
    assert loops({"a": ["b"], "b": ["c"], "c": ["a"]}) == ["a -> b -> c -> a"]
    assert loops({"start": ["c"], "a": ["b"], "b": ["c"], "c": ["a"]}) == ["a -> b -> c -> a"]


def test_a_column_that_reads_itself_is_a_loop() -> None:
    """The shortest loop is one column."""
    assert loops({"a": ["a"]}) == ["a -> a"]


def test_all_loops_are_named_at_once() -> None:
    """Loops that have nothing in common, and loops that share a column, all come in one error."""
    assert loops({"a": ["b"], "b": ["a"], "c": ["d"], "d": ["c"], "e": ["e"]}) == ["a -> b -> a", "c -> d -> c", "e -> e"]
    assert loops({"a": ["b", "c"], "b": ["a"], "c": ["a"]}) == ["a -> b -> a", "a -> c -> a"]


def test_a_diamond_is_no_loop() -> None:
    """A column that is read along two ways is computed once, before both."""
    assert order({"d": ["b", "c"], "b": ["a"], "c": ["a"], "a": []}) == ["a", "b", "c", "d"]


def test_a_loop_is_reported_where_its_first_column_stands() -> None:
    """The place of the loop is that of the column with which it is written."""
    with pytest.raises(FormulaError) as raised:
        order({"x": ["b"], "a": ["b"], "b": ["a"]}, lambda name: Problem("", file="t.yaml", line={"a": 3, "b": 4}[name]))
    assert (raised.value.problems[0].file, raised.value.problems[0].line) == ("t.yaml", 3)


def test_ten_thousand_columns_in_a_row() -> None:
    """A chain of ten thousand columns is put in order, and closed to a loop it is still only an error."""
    chain = {f"c{n}": [f"c{n + 1}"] for n in range(10_000)}
    assert order(chain) == [f"c{n}" for n in reversed(range(10_000))]
    assert len(loops({**chain, "c10000": ["c0"]})) == 1


def test_levels_hold_what_can_be_computed_side_by_side() -> None:
    """A column's level is one above the highest that it reads."""
    reads = {"a": [], "b": ["a"], "c": ["a", "input"], "d": ["c", "b"], "e": []}
    assert levels(["a", "b", "c", "d", "e"], reads) == [["a", "e"], ["b", "c"], ["d"]]
