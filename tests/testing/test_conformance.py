"""The kit ``scenario.testing``: built-in methods pass it, and every kind of broken method is told what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from scenario import Column, Method, Parameter
from scenario.registry import host
from scenario.testing import check_method, method_problems, simulate_chain, simulate_draft, simulate_tree
from scenario.testing.conformance import PROPERTIES

BUILT_IN = host.load(third_party=False).methods

GOOD = Method(
    "sample", title="Sample", doc="A chain of drafts.", source="A paper, arXiv:0000.00000",
    parameters={
        "alpha": Parameter(0.7, 0, 1, doc="Chance that a draft token is accepted."),
        "gamma": Parameter(3, 0, 8, "tokens", "Draft tokens per round.", kind="integer"),
    },
    columns={
        "rows_per_sequence": Column("gamma + 1", "rows", "The drafts and the token before them."),
        "tokens_per_round": Column("geometric(alpha, gamma)", "tokens", "A chain."),
        "draft_ms": Column("gamma * 0.1 * baseline_ms", "ms", "One pass per token."),
    },
)  # fmt: skip


def with_column(name: str, formula: str, unit: str) -> Method:
    return replace(GOOD, columns={**GOOD.columns, name: Column(formula, unit, "Changed by a test.")})


def chain(values: Mapping[str, float], rng: np.random.Generator, rounds: int) -> Any:
    return simulate_chain([values["alpha"]] * int(values["gamma"]), rounds, rng)


def hits(values: Mapping[str, float], rng: np.random.Generator, rounds: int) -> Any:
    drafted = chain(values, rng, rounds)
    return np.where(rng.random(rounds) < values["hit_rate"], drafted, 1)


def one_token(values: Mapping[str, float], rng: np.random.Generator, rounds: int) -> Any:
    return np.ones(rounds)


def guesses(values: Mapping[str, float], rng: np.random.Generator, rounds: int) -> Any:
    """Lookahead decoding: of several guessed n-grams the one that holds longest is kept."""
    many = int(values["guesses"])
    rounds = rounds if many < 100 else rounds // 20
    best = np.zeros(rounds)
    for _ in range(many):
        best = np.maximum(best, (np.cumprod(rng.random((rounds, int(values["ngram"]) - 1)) < values["alpha"], axis=1)).sum(axis=1))
    return np.where(rng.random(rounds) < values["hit_rate"], 1 + best, 1)


SIMULATIONS = {"lookahead": guesses}
"""How the rounds of a method are played that is not told from its parameters: hits, a chain, or one token."""


def simulation(name: str) -> Any:
    known = set(BUILT_IN[name].parameters)
    return SIMULATIONS.get(name) or (hits if {"alpha", "gamma", "hit_rate"} <= known else chain if {"alpha", "gamma"} <= known else one_token)


def together(name: str) -> Any:
    """Which values make sense together: a tree holds at least one node per depth, and Medusa without heads has no tree."""
    least = 1 if name == "medusa" else 0
    return (lambda values: values["nodes"] >= values["gamma"] >= least) if {"nodes", "gamma"} <= set(BUILT_IN[name].parameters) else None


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_methods_conform(name: str) -> None:
    """Each built-in method keeps every property, its rounds being as long as in a simulation of its acceptance."""
    skip = ["description"] if name == "vanilla" else []
    check_method(BUILT_IN[name], simulation=simulation(name), where=together(name), skip=skip)


def test_a_good_method_passes_with_its_simulation() -> None:
    """The sample that the other tests break has no problem of its own."""
    assert method_problems(GOOD, simulation=chain) == []


BROKEN: dict[str, tuple[Method, str]] = {
    "no Method": ("eagle", "[contract] str where Method is due"),  # type: ignore[dict-item]
    "name taken": (replace(GOOD, name="eagle"), "[contract] there is another method named 'eagle': choose another name"),
    "bad name": (replace(GOOD, name="My Method"), "[contract] 'My Method' is not a good name for a method"),
    "wrong API": (replace(GOOD, api=99), "[contract] 'sample' is written for plugin contract 99; this is contract 1"),
    "unknown column": (with_column("tokens_per_round", "geometric(alpha, gama)", "tokens"), "unknown name 'gama'"),
    "syntax": (with_column("tokens_per_round", "1 + (alpha", "tokens"), "a bracket is never closed"),
    "misspelt question": (with_column("token_per_round", "2", "tokens"),
                          "'token_per_round' is no open question, and no formula of the method reads it did you mean 'tokens_per_round'?"),
    "no source": (replace(GOOD, source=""), "[description] the method has no source"),
    "no doc": (replace(GOOD, columns={**GOOD.columns, "draft_ms": Column("gamma", "ms")}), "[description] column draft_ms has no doc"),
    "no limit": (replace(GOOD, parameters={**GOOD.parameters, "gamma": Parameter(3, None, 8, "tokens", "Drafts.", kind="integer")}),
                 "[description] parameter gamma has no lower limit"),
    "unit": (with_column("draft_ms", "gamma * 0.1 * baseline_ms", "s"), "[units] column draft_ms is in 's', the engine reads 'ms'"),
    "too many tokens": (with_column("tokens_per_round", "2 * geometric(alpha, gamma)", "tokens"),
                        "a row gives at most one token"),
    "too few tokens": (with_column("tokens_per_round", "alpha * geometric(alpha, gamma)", "tokens"),
                       "[ranges] tokens_per_round is 0 at alpha 0; it is a number of at least 1"),
    "blank": (with_column("draft_ms", "log(alpha) * baseline_ms if alpha < 1 else 0", "ms"), "[ranges] draft_ms is"),
    "gamma 0 costs": (with_column("draft_ms", "(gamma + 1) * baseline_ms", "ms"),
                      "[limits] with gamma 0 it is vanilla decoding: draft_ms must be 0, not 5.43"),
    "gamma 0 gains": (with_column("tokens_per_round", "1 + alpha", "tokens"),
                      "[limits] with gamma 0 it is vanilla decoding: tokens_per_round must be 1, not 1.7"),
    "alpha 0 gains": (with_column("tokens_per_round", "geometric(max(alpha, 0.5), gamma)", "tokens"),
                      "[limits] nothing is accepted at alpha 0: tokens_per_round must be 1, not 1.875"),
    "falls": (with_column("tokens_per_round", "1 + gamma * alpha * (1 - alpha)", "tokens"),
              "[monotone] tokens_per_round falls from 1.75 to 1.70312 when alpha rises from 0.5 to 0.625"),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_method_is_told_what_is_wrong(what: str) -> None:
    """Each fault gives one message that names the property, the place and the numbers, in one line."""
    method, said = BROKEN[what]
    problems = method_problems(method)
    assert any(said in problem for problem in problems), problems
    assert all("\n" not in problem and problem.startswith("[") for problem in problems)
    with pytest.raises(AssertionError, match="does not hold up"):
        check_method(method)


def test_a_simulation_that_raises_is_a_message() -> None:
    """What the author's own simulation raises is told like any other fault, with the row at which it did."""

    def broken(values: Any, rng: Any, rounds: int) -> Any:
        return values["beta"]

    problems = method_problems(GOOD, simulation=broken)
    assert any("[simulation] the simulation ends in KeyError: 'beta', at" in one for one in problems), problems


def test_a_simulation_that_disagrees_is_reported() -> None:
    """A formula that counts every draft as accepted is caught by playing the rounds."""
    wrong = with_column("tokens_per_round", "1 + alpha * gamma", "tokens")
    problems = method_problems(wrong, simulation=chain)
    assert any("[simulation] the simulation gives 2.5" in one and "the formula says 3.1" in one for one in problems), problems


def test_off_names_the_values_without_a_draft() -> None:
    """A method whose draft length has a name of its own is held to the same limit once the kit knows that name."""
    parameters = {"alpha": GOOD.parameters["alpha"], "depth": GOOD.parameters["gamma"]}
    columns = {name: replace(column, formula=column.formula.replace("gamma", "depth")) for name, column in GOOD.columns.items()}
    renamed = replace(GOOD, parameters=parameters, columns={**columns, "draft_ms": Column("1", "ms", "A look-up, even for nothing.")})
    assert method_problems(renamed) == []
    assert "[limits] with depth 0 it is vanilla decoding: draft_ms must be 0, not 1" in method_problems(renamed, off={"depth": 0})


def test_properties_can_be_left_out_by_name() -> None:
    """``skip`` leaves a property out, and refuses a name that is none."""
    assert method_problems(replace(GOOD, source=""), skip=["description"]) == []
    with pytest.raises(ValueError, match="there is no property"):
        method_problems(GOOD, skip=["descripton"])


def test_excel_is_compared_through_another_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault planted in the Excel text alone is found by the kit, named with both values."""
    from scenario.testing import conformance

    real = conformance.compile_excel
    monkeypatch.setattr(conformance, "compile_excel", lambda *args: real(*args).replace("+1", "+2"))
    problems = list(dict.fromkeys(problem.split(" is ")[0] for problem in method_problems(GOOD)))
    assert "[excel] rows_per_sequence" in problems
    assert all(problem.startswith("[excel]") for problem in problems)


def test_the_properties_are_those_documented() -> None:
    """The docstring of the kit names every property that there is."""
    doc = method_problems.__doc__ or ""
    assert [name for name in PROPERTIES if f"``{name}``" not in doc] == []


def test_chain_of_falling_chances() -> None:
    """Chances .75, .69, .65, .64, .64 given those before (EAGLE, LLaMA2-Chat 70B, MT-bench) make 2.97 tokens a round."""
    tokens = simulate_chain([0.75, 0.69, 0.65, 0.64, 0.64], 200_000, np.random.default_rng(1))
    # 1 + .75 + .5175 + .336375 + .21528 + .137779
    assert tokens.mean() == pytest.approx(2.956934, abs=5 * tokens.std() / 200_000**0.5)


def test_tree_of_two_depths() -> None:
    """Paths [0], [1], [0, 0] with chances (.6, .2) and (.5): 1 + .6 + .2 + .6 x .5 = 2.1 tokens a round."""
    tokens = simulate_tree([[0.6, 0.2], [0.5]], [[0], [1], [0, 0]], 40_000, np.random.default_rng(1))
    assert tokens.mean() == pytest.approx(2.1, abs=5 * tokens.std() / 200)


def test_distributions_given() -> None:
    """p = (.6, .4), q = (.5, .5): two children that differ are always enough, two that may repeat miss one time in twenty."""
    rng = np.random.default_rng(1)
    assert simulate_draft([0.6, 0.4], [0.5, 0.5], [2], 1_000, rng).mean() == 2
    tokens = simulate_draft([0.6, 0.4], [0.5, 0.5], [2], 40_000, rng, replacement=True)
    assert tokens.mean() == pytest.approx(1.95, abs=5 * tokens.std() / 200)
