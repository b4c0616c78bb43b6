"""Random formulas: the back ends agree, and what is known beforehand of a formula holds of its values."""

from __future__ import annotations

import functools
import math
import random
from pathlib import Path
from typing import Any

import pytest
from formula_backends import VECTORS, Sheets, by_polars, by_python, same, wrong
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from spreadsheet import needs_soffice

from scenario.common.errors import FormulaError
from scenario.formulas import facts, functions, to_excel, to_polars, to_python
from scenario.formulas.expr import Binary, Blank, Call, Compare, Flag, If, Logic, Name, Negate, Node, Not, Number, Text, parse, walk
from scenario.formulas.facts import Facts
from scenario.formulas.to_text import compile_text

# Every name with its facts and the values it may take; halves and quarters, so that many results are exact.
NAMES: dict[str, tuple[Facts, list[Any]]] = {
    "a": (Facts(), [0.0, 1.0, -1.0, 2.5, -0.75, 1000.0, 1e200, -1e200, 1e-200]),
    "b": (Facts(blank=True), [None, 0.0, 1.0, -2.0, 0.5, 7.0]),
    "p": (Facts(low=0, high=100, open_low=True), [1e-30, 0.25, 1.0, 3.0, 100.0]),
    "q": (Facts(low=0, high=1, open_high=True, blank=True), [None, 0.0, 0.5, 0.75, 1 - 2**-53]),
    "u": (Facts(low=0, high=1), [0.0, 0.5, 1.0]),
    "n": (Facts(low=0, high=16, integer=True), [0.0, 1.0, 2.0, 5.0, 16.0]),
    "k": (Facts(low=1, high=3, integer=True), [1.0, 2.0, 3.0]),
    "z": (Facts(low=-4, high=4, integer=True, blank=True), [None, -4.0, -1.0, 0.0, 3.0]),
    "neg": (Facts(low=-8, high=0, open_high=True), [-8.0, -0.5, -1e-30]),
    "t": (Facts("text"), ["chat", "code"]),
    "s": (Facts("text", blank=True), [None, "chat", "Chat", "else"]),
    "f": (Facts("flag", blank=True), [None, True, False]),
    "g": (Facts("flag"), [True, False]),
}
ENV = {name: item[0] for name, item in NAMES.items()}
NUMBERS = [name for name, item in NAMES.items() if item[0].type == "number"]
VALUES = st.fixed_dictionaries({name: st.sampled_from(item[1]) for name, item in NAMES.items()})
LITERALS = [0.0, 1.0, 2.0, 3.0, 0.5, 0.25, 10.0, 1e9, 1e-6]


@functools.cache
def trees(kind: str, depth: int) -> st.SearchStrategy[Node]:
    """Random trees of a kind (number, text, flag) that are at most ``depth`` deep."""
    names = st.sampled_from([name for name, item in NAMES.items() if item[0].type == kind]).map(Name)
    leaves = {
        "number": st.one_of(names, names, st.sampled_from(LITERALS).map(Number), st.just(Blank())),
        "text": st.one_of(names, st.sampled_from(["chat", "other"]).map(Text)),
        "flag": st.one_of(names, st.booleans().map(Flag)),
    }[kind]
    if depth == 0:
        return leaves
    number, text, flag, own = (trees(k, depth - 1) for k in ("number", "text", "flag", kind))
    several = st.lists(own, min_size=1, max_size=3)
    either = [
        leaves,
        st.builds(If, flag, own, own),
        st.builds(lambda index, rest: Call("choose", (index, *rest)), number, several),
        st.builds(lambda rest: Call("coalesce", tuple(rest)), st.lists(own, min_size=2, max_size=3)),
    ]
    if kind == "number":
        unary = st.sampled_from(["abs", "sqrt", "exp", "log", "floor", "ceil", "trunc"])
        either += [
            st.builds(Negate, number),
            st.builds(Binary, st.sampled_from(["+", "-", "*", "/"]), number, number),
            st.builds(Binary, st.sampled_from(["//", "%", "**", "**"]), number, number),
            st.builds(lambda name, x: Call(name, (x,)), unary, number),
            st.builds(lambda name, rest: Call(name, (*rest,)), st.sampled_from(["min", "max"]), st.lists(number, min_size=2, max_size=3)),
            st.builds(lambda name, x: Call("at", (name, x)), st.just(Name("t")) | st.just(Text("chat")), number),
            st.builds(lambda name, x: Call("curve", (Text(name), x)), st.sampled_from(list(VECTORS.curves)), number),
        ]
    if kind == "flag":
        ordered = st.builds(Compare, st.sampled_from(["<", "<=", ">", ">="]), number, number)
        either += [
            ordered, ordered,
            st.builds(Compare, st.sampled_from(["==", "!="]), text, text),
            st.builds(Compare, st.sampled_from(["==", "!="]), st.sampled_from(["n", "k", "z"]).map(Name), st.just(Number(1.0))),
            st.builds(Not, flag),
            st.builds(lambda op, rest: Logic(op, tuple(rest)), st.sampled_from(["and", "or"]), st.lists(flag, min_size=2, max_size=3)),
            st.builds(lambda x: Call("is_blank", (x,)), number | text | flag),
        ]  # fmt: skip
    return st.one_of(either)


ANY = st.sampled_from(["number", "number", "text", "flag"]).flatmap(lambda kind: trees(kind, 3))


def check(tree: Node) -> Node:
    try:
        return facts.check(tree, ENV)
    except FormulaError:  # constants without a value, comparisons with blank: refused, rightly
        assume(False)
        raise


def steady(tree: Node, values: dict[str, Any]) -> bool:
    """Whether the value stays the same when every fraction and operation is a little less exact than it is.

    Where it does not (a difference of nearly equal numbers, the floor of what is nearly whole) engines
    that differ in the last digit may rightly differ in the result.
    """
    exact = to_python._arithmetic, dict(to_python.FUNCTIONS)
    seen = [by_python(tree, values)]
    try:
        chance = random.Random(1)
        for signs in ((1,), (-1,), (-1, 1)):

            def shaken(value: float, signs: tuple[int, ...] = signs) -> float:
                return value * (1 + chance.choice(signs) * 2e-13)

            to_python._arithmetic = lambda op, a, b, shaken=shaken: shaken(exact[0](op, a, b))  # type: ignore[assignment]
            for name in ("sqrt", "exp", "log"):
                to_python.FUNCTIONS[name] = lambda x, name=name, shaken=shaken: shaken(exact[1][name](x))
            fractions = {name for name, value in values.items() if type(value) is float and value != int(value)}
            seen.append(by_python(tree, {name: shaken(value) if name in fractions else value for name, value in values.items()}))
    finally:
        to_python._arithmetic = exact[0]
        to_python.FUNCTIONS.update(exact[1])
    return all(same(value, seen[0]) for value in seen)


def modest(tree: Node, values: dict[str, Any]) -> bool:
    """Whether nothing on the way is so large or small that a spreadsheet engine calls it infinite or nothing."""
    for node in walk(tree):
        value = by_python(node, values)
        if type(value) is float and value and not 1e-12 < abs(value) < 1e150:
            return False
    return all(node.facts.type != "number" or not _overflows(node, values) for node in walk(tree))


def _overflows(node: Node, values: dict[str, Any]) -> bool:
    if isinstance(node, Call) and node.function == "exp":
        x = by_python(node.args[0], values)
        return x is not None and abs(x) > 600
    if not isinstance(node, Binary):
        return False
    a, b = by_python(node.left, values), by_python(node.right, values)
    if a is None or b is None:
        return False
    with_result = to_python._arithmetic(node.op, a, b)
    return math.isinf(with_result) or (with_result == 0 and a != 0 and node.op in ("*", "/", "**"))


@settings(max_examples=700, derandomize=True, deadline=None)
@given(ANY, VALUES)
def test_polars_agrees_with_the_reference(tree: Node, values: dict[str, Any]) -> None:
    """A random formula has the same value in polars, as columns and as constants, as in plain Python."""
    tree = check(tree)
    wanted = by_python(tree, values)
    got = by_polars(tree, values, ENV)
    if wrong((compile_text(tree), value, wanted) for value in got):
        assume(steady(tree, values))
    assert not wrong((compile_text(tree), value, wanted) for value in got)


@settings(max_examples=700, derandomize=True, deadline=None)
@given(ANY, VALUES)
def test_facts_hold_of_values(tree: Node, values: dict[str, Any]) -> None:
    """Where no blank is announced none comes, and every number lies within the announced bounds and is whole if said so."""
    checked = check(tree)
    reached(checked, values)


def reached(node: Node, values: dict[str, Any]) -> None:
    """Checks the facts of a node and of all below it that its value depends on."""
    value, known = by_python(node, values), node.facts
    said = (compile_text(node), values, value, known)
    assert value is not None or known.blank, said
    if type(value) is float:
        slack = 1e-12 * max(abs(value), 1e-300)
        assert known.low - slack <= value <= known.high + slack, said
        assert not (known.open_low and value <= known.low), said
        assert not (known.open_high and value >= known.high), said
        assert not known.integer or value == math.floor(value), said
    match node:
        case If(test=test, then=then, other=other):
            reached(test, values)
            if (held := by_python(test, values)) is not None:
                reached(then if held else other, values)
        case Logic(op=op, parts=parts):
            for part in parts:
                reached(part, values)
                if by_python(part, values) is not (op == "and"):
                    break
        case Call(function="choose" | "coalesce", args=args):
            reached(args[0], values)
        case Binary(left=left, right=right) | Compare(left=left, right=right):
            reached(left, values)
            reached(right, values)
        case Call(args=args):
            for arg in args:
                reached(arg, values)


@settings(max_examples=500, derandomize=True, deadline=None)
@given(ANY)
def test_text_gives_the_tree_back(tree: Node) -> None:
    """The text of a random formula parses to that formula."""
    assert parse(compile_text(tree)) == tree


@pytest.fixture(scope="module")
def cells() -> tuple[Sheets, dict[int, tuple[str, Any]]]:
    """Random formulas as cells, with computed and with empty blanks, and the reference's values by row."""
    sheets, rows = Sheets(), {}

    @settings(max_examples=700, derandomize=True, deadline=None, database=None)
    @given(ANY, VALUES)
    def collect(tree: Node, values: dict[str, Any]) -> None:
        tree = check(tree)
        if modest(tree, values) and steady(tree, values):
            for missing in (False, True):
                row = sheets.add(tree, values, missing=missing)
                rows[row] = compile_text(tree), by_python(tree, values)

    collect()
    assert len(rows) > 600
    return sheets, rows


def differences(cells: tuple[Sheets, dict[int, tuple[str, Any]]], got: dict[int, Any]) -> list[str]:
    sheets, rows = cells
    assert sheets.sheet is not None
    return wrong((f"{text} [{sheets.sheet.cell(row, 1).value}]", got[row], wanted) for row, (text, wanted) in rows.items())


def test_ironcalc_agrees_with_the_reference(cells: tuple[Sheets, dict[int, tuple[str, Any]]], tmp_path: Path) -> None:
    """Random formulas have their values in an independent spreadsheet engine."""
    assert not differences(cells, cells[0].by_ironcalc(tmp_path))


@needs_soffice
def test_libreoffice_agrees_with_the_reference(cells: tuple[Sheets, dict[int, tuple[str, Any]]], tmp_path: Path) -> None:
    """Random formulas have their values in LibreOffice."""
    assert not differences(cells, cells[0].by_libreoffice(tmp_path))


def test_every_function_is_in_every_back_end() -> None:
    """A function of the language is either in a back end's table or one of those it computes by itself."""
    known = set(functions.FUNCTIONS) - {"round"}  # refused everywhere: see the lint cases
    assert set(to_excel.FUNCTIONS) == known
    series = {"at", "curve", "tree_tokens", "tree_rows"}
    assert set(to_polars.FUNCTIONS) == known - series - {"choose"}
    assert set(to_python.FUNCTIONS) == known - series - {"choose", "coalesce", "is_blank"}
    assert functions.FUNCTIONS["round"].lint


@pytest.mark.parametrize("name", [name for name in functions.FUNCTIONS if name != "round"])
def test_every_function_works_in_every_back_end(name: str) -> None:
    """Each function, called as its signature says, compiles for every back end and prints itself."""
    wanted = functions.FUNCTIONS[name]
    example = {"text": '"chat"', "literal": '"step"', "number": "k", "any": "k"}
    count = max(wanted.arity[0], 1)
    text = f"{name}({', '.join(example[wanted.kind(index)] for index in range(count))})"
    tree = facts.check(parse(text), ENV, text)
    value = by_python(tree, {"k": 1.0})
    assert value is not None
    assert all(same(got, value) for got in by_polars(tree, {"k": 1.0}, ENV))
    assert compile_text(tree) == text
    sheets = Sheets()
    sheets.add(tree, {"k": 1.0})
