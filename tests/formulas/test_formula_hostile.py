"""Text that is no formula: it is refused at its place, quickly, and in no other way."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenario.common.errors import FormulaError
from scenario.formulas import facts
from scenario.formulas.expr import MAX_CALLS, MAX_LENGTH, Call, Name, expand, names, parse, walk
from scenario.formulas.facts import Facts
from scenario.formulas.to_excel import compile_excel
from scenario.formulas.to_polars import compile_polars
from scenario.formulas.to_python import evaluate
from scenario.formulas.to_text import compile_text

LARGE = {
    "brackets": "(" * 10_000 + "x" + ")" * 10_000,
    "brackets that fit the length": "(" * 1_900 + "x" + ")" * 1_900,
    "brackets without an end": "(" * 3_900,
    "calls": "abs(" * 700 + "x" + ")" * 700,
    "minus signs": "-" * 3_900 + "x",
    "not": "not " * 900 + "x > 1",
    "powers": "x" + "**x" * 1_300,
    "a sum": "x" + "+x" * 1_900,
    "choices": "1 if x > 1 else " * 240 + "2",
    "choices in front": "(" * 65 + "1" + " if x > 1 else 2)" * 65,
    "a megabyte": "x + " * 250_000 + "x",
    "a huge whole number": "9" * 3_900,
    "many decimals": "0." + "1" * 3_900,
    "lists": "[" * 100 + "]" * 100,
    "attributes": "x" + ".a" * 1_900,
    "subscripts": "x" + "[0]" * 1_300,
    "one long name": "x" * 3_900 + "é",
    "lambdas": "lambda:" * 500 + "1",
    "quotes": '"' * 3_001,
    "comparisons of texts": '"a"' + '<"a"' * 900,
}


def checked(text: str) -> object:
    return facts.check(parse(text), {"x": Facts()}, text)


@pytest.mark.parametrize("what", LARGE)
def test_large_text_is_refused_quickly(what: str) -> None:
    """A text built to exhaust a parser ends in a FormulaError with a place, within two seconds."""
    start = time.perf_counter()
    with pytest.raises(FormulaError) as raised:
        checked(LARGE[what])
    assert time.perf_counter() - start < 2
    assert raised.value.problems[0].line == 1
    assert len(str(raised.value.problems[0])) < 1_000


def test_longest_formulas_go_through_every_back_end() -> None:
    """A formula at the limits of length and nesting is computed, written and printed without running out of stack."""
    for text in ("x" + "+x" * 140, "abs(" * 55 + "x" + ")" * 55, "1 if x > 1 else " * 50 + "2", "x > 1 and " * 60 + "x > 2"):
        tree = facts.check(parse(text), {"x": Facts(low=0, high=9)}, text)
        assert evaluate(tree, {"x": 1.0}) in (141.0, 1.0, 2.0, False)
        assert parse(compile_text(tree)) == tree
        assert compile_excel(tree, lambda name: name)
        compile_polars(tree)


def test_a_cell_too_deep_for_a_spreadsheet_is_refused() -> None:
    """A formula that no spreadsheet could open is refused when it is written as a cell, not saved as a broken file."""
    text = "1 if x > 1 else " * 70 + "2"
    with pytest.raises(FormulaError, match="64 levels"):
        compile_excel(facts.check(parse(text), {"x": Facts()}, text), lambda name: name)
    text = "x" + "+x" * 100
    with pytest.raises(FormulaError, match="8,192"):
        compile_excel(facts.check(parse(text), {"x": Facts()}, text), lambda name: "Assumptions!" + "$" * 80)


def test_what_is_not_text_is_refused() -> None:
    """A number where a formula belongs is a FormulaError, not a crash."""
    with pytest.raises(FormulaError, match="a formula is a text"):
        parse(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["\ud800", "x + \ud800", "'\ud800'", "x\u2028+ 1", "x +\u0085 1", "\ufeffx"])
def test_broken_unicode_is_refused_at_its_place(text: str) -> None:
    """Half a surrogate, or a line break of another kind, is refused at its place and printed safely."""
    with pytest.raises(FormulaError) as raised:
        parse(text)
    assert raised.value.problems[0].line == 1
    str(raised.value).encode()


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.text(max_size=60))
def test_any_text_parses_or_is_refused(text: str) -> None:
    """Whatever is typed either is a formula or raises FormulaError."""
    try:
        parse(text)
    except FormulaError as error:
        str(error).encode()


PIECES = ["x", "y", "1", "2.5", "1e9", '"a"', "'", '"', "(", ")", "[", "]", "{", "}", "+", "-", "*", "**", "/", "//", "%", "^",
          "<", "<=", "==", "!=", "=", ":=", ",", ".", ":", ";", "and", "or", "not", "if", "else", "is", "in", "lambda", "for",
          "await", "yield", "min(", "choose(", "at(", "blank", "true", "f'", "b'", "0x", "_", "__class__", "é", "\n", "\t", " ", "\\",
          "@", "~", "->", "...", "*x", "#", "1_0", "1j", "None", "async", "print"]  # fmt: skip


@settings(max_examples=600, derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join) | st.lists(st.sampled_from(PIECES), max_size=10).map("".join))
def test_pieces_of_python_parse_or_are_refused(text: str) -> None:
    """Python's own words in any order are a formula, which every back end takes, or raise FormulaError at a place."""
    env = {"x": Facts(low=0, high=9), "y": Facts(blank=True)}
    try:
        tree = facts.check(parse(text), env, text)
    except FormulaError as error:
        refused = error.problems
    else:
        refused = ()
    if refused:
        assert all(problem.line >= 1 and problem.column >= 1 for problem in refused) or not text.strip()
        return
    assert parse(compile_text(tree)) == tree
    if not any(isinstance(node, Call) and node.function in ("at", "curve") for node in walk(tree)):
        evaluate(tree, {"x": 1.0, "y": None})
        compile_polars(tree)
        compile_excel(tree, lambda name: name)


def test_functions_made_of_formulas_are_written_out() -> None:
    """A call of a formula function becomes its formula, arguments put in at once rather than one after the other."""
    functions = {"f": (("a", "b"), parse("a - b")), "g": (("x",), parse("f(x, 1) * f(1, x)"))}
    assert expand(parse("f(b, a)"), functions) == parse("b - a")
    assert expand(parse("g(f(x, y))"), functions) == parse("((x - y) - 1) * (1 - (x - y))")


def test_functions_that_go_round_are_named() -> None:
    """A formula function that ends up calling itself is refused with the way round, at the place of the call."""
    functions = {"f": (("a",), parse("1 + g(a)")), "g": (("a",), parse("f(a) * 2"))}
    with pytest.raises(FormulaError, match="f -> g -> f") as raised:
        expand(parse("1 +\n f(x)"), functions, text="1 +\n f(x)")
    assert (raised.value.problems[0].line, raised.value.problems[0].column) == (2, 2)


def test_functions_that_grow_are_stopped() -> None:
    """Formula functions that double at every step, or nest ever deeper, are refused quickly."""
    functions = {f"f{n}": (("a",), parse(f"f{n + 1}(a) + f{n + 1}(a)" if n < 14 else "a + a")) for n in range(15)}
    start = time.perf_counter()
    with pytest.raises(FormulaError, match="grows past"):
        expand(parse("f0(x)"), functions)
    wide = {"f": (("a",), parse("+".join(["a"] * 140)))}
    with pytest.raises(FormulaError, match="grows past"):
        expand(parse("f(f(f(x)))"), wide)
    deep = {f"f{n}": (("a",), parse("abs(" * 50 + (f"f{n + 1}(a)" if n < 14 else "a") + ")" * 50)) for n in range(15)}
    with pytest.raises(FormulaError):
        expand(parse("f0(x)"), deep)
    chain = {f"f{n}": (("a",), parse(f"f{n + 1}(a)")) for n in range(MAX_CALLS + 2)}
    with pytest.raises(FormulaError, match="deep"):
        expand(parse("f0(x)"), chain)
    assert time.perf_counter() - start < 5


def test_an_error_inside_a_function_points_at_its_call() -> None:
    """What is wrong inside a formula function is reported where the function is called, within the caller's text."""
    text = "1 + 2 +\n  f(x)"
    tree = expand(parse(text), {"f": (("a",), parse("a * 1000 + missing"))}, text=text)
    with pytest.raises(FormulaError) as raised:
        facts.check(tree, {"x": Facts()}, text)
    assert [(item.line, item.column) for item in raised.value.problems] == [(2, 3)]


def test_wrong_number_of_arguments_is_named() -> None:
    """A formula function called with too few arguments says which it takes."""
    with pytest.raises(FormulaError, match=r"f\(a, b\) takes 2 arguments, not 1"):
        expand(parse("f(1)"), {"f": (("a", "b"), parse("a - b"))})


def test_names_come_in_reading_order() -> None:
    """The names of a formula are listed once each, as they are read."""
    assert names(parse("b * a + max(c, a) + b")) == ["b", "a", "c"]
    assert expand(Name("x"), {}) == Name("x")


def test_all_problems_of_a_formula_are_reported() -> None:
    """Several mistakes in one formula come in one error, in reading order."""
    with pytest.raises(FormulaError) as raised:
        facts.check(parse("aa + 1 / 0 +\n bb"), {"x": Facts()}, "aa + 1 / 0 +\n bb")
    assert [(item.line, item.column) for item in raised.value.problems] == [(1, 1), (1, 6), (2, 2)]


def test_length_limit_is_exact() -> None:
    """A formula of the longest allowed length is read, one character more is not."""
    parse("x".ljust(MAX_LENGTH))
    with pytest.raises(FormulaError, match="4,001 characters"):
        parse("x".ljust(MAX_LENGTH + 1))
