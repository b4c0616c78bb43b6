"""The conformance kit for plugin authors.

    from scenario.testing import check_method
    from my_package import METHOD

    def test_method():
        check_method(METHOD)

:func:`check_method` raises AssertionError with one message per property that does not hold; nothing here needs pytest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from scenario.common.errors import ScenarioError
from scenario.model.spec import Method
from scenario.testing import conformance
from scenario.testing.conformance import CHANCES, OFF, Simulation

if TYPE_CHECKING:
    import numpy as np

__all__ = ["check_method", "method_problems", "simulate_chain", "simulate_draft", "simulate_tree"]


def check_method(
    method: Method, *, simulation: Simulation | None = None, where: Callable[[Mapping[str, float]], bool] | None = None,
    rises_with: Sequence[str] = CHANCES, off: Mapping[str, float] = OFF, skip: Iterable[str] = (), plugins: Sequence[str] = (), model: str = "llama-3.1-8b",
    gpu: str = "h100-sxm",
) -> None:  # fmt: skip
    """Raise AssertionError unless ``method`` keeps its contract. The arguments are those of :func:`method_problems`."""
    found = method_problems(method, simulation=simulation, where=where, rises_with=rises_with, off=off, skip=skip, plugins=plugins,
                            model=model, gpu=gpu)  # fmt: skip
    if found:
        name = getattr(method, "name", method)
        raise AssertionError("\n".join([f"method '{name}' does not hold up:", *(f"  {line}" for line in found)]))


def method_problems(
    method: Method, *, simulation: Simulation | None = None, where: Callable[[Mapping[str, float]], bool] | None = None,
    rises_with: Sequence[str] = CHANCES, off: Mapping[str, float] = OFF, skip: Iterable[str] = (), plugins: Sequence[str] = (), model: str = "llama-3.1-8b",
    gpu: str = "h100-sxm",
) -> list[str]:  # fmt: skip
    """What is wrong with a method, one message per failed property, each headed by the property's name in brackets.

    The properties: ``contract`` (names, ranges, formulas), ``description``, ``units``, ``ranges`` (1 to
    rows_per_sequence tokens a round, nothing negative or blank), ``limits`` (gamma 0 is vanilla, acceptance 0 gives one
    token a round), ``monotone``, ``excel`` (needs ironcalc) and ``simulation``.

    ``simulation(values, rng, rounds)`` draws the tokens of so many rounds for parameter values with a numpy generator
    (:func:`simulate_chain` and :func:`simulate_tree` help). ``where(values)`` says which values make sense together.
    ``rises_with`` names the parameters of which more is never worse, ``off`` the values with which nothing is drafted. ``skip`` leaves properties out, by name.
    ``plugins`` are what ``-p`` takes, for functions that the method's formulas call.
    """
    unknown = set(skip) - set(conformance.PROPERTIES)
    if unknown:
        raise ValueError(f"skip: there is no property {sorted(unknown)}; properties: {', '.join(conformance.PROPERTIES)}")
    subject = conformance.Subject(
        method, conformance.bench(method, plugins), model, gpu, where, simulation, tuple(rises_with), off,
    )  # fmt: skip
    found = conformance.prepare(subject)
    if found:
        return found
    for name, check in conformance.PROPERTIES.items():
        if name in skip:
            continue
        try:
            found += [f"[{name}] {message}" for message in check(subject)]
        except ScenarioError as error:
            found.append(f"[{name}] {' '.join(str(error).split())}")
    return found


def simulate_chain(rates: Sequence[float], rounds: int, rng: np.random.Generator) -> Any:
    """Tokens of so many rounds of speculative sampling with a chain of drafts, the bonus token included.

    ``rates[k]`` is the chance that draft k is kept, given that those before it were. Each round is played token by token
    on distributions that overlap by these rates, with the accept-or-resample step of Leviathan et al. 2023.
    """
    from scenario.evidence import simulate

    shape = simulate.tree([1] * len(rates))
    return simulate.run(simulate.accepting(list(rates)), shape, rounds, 1, rng, keep=1).tokens[0]


def simulate_draft(
    target: Any, draft: Any, widths: Sequence[int], rounds: int, rng: np.random.Generator, *, replacement: bool = False
) -> Any:
    """Tokens of so many rounds on distributions given, with ``widths[d]`` children per node at depth d of the draft."""
    from scenario.evidence import simulate

    lang = simulate.language(target, draft)
    return simulate.run(lang, simulate.tree(widths), rounds, 1, rng, replacement=replacement, keep=1).tokens[0]


def simulate_tree(acceptance: Sequence[Sequence[float]], paths: Sequence[Sequence[int]], rounds: int, rng: np.random.Generator) -> Any:
    """Tokens of so many rounds with a tree of drafts, the bonus token included.

    ``acceptance[d][r]`` is the chance that at depth d the child of rank r is the right one, given that the tree was
    right so far (a depth's chances sum to at most 1); ``paths`` are the tree's nodes as paths of ranks, as Medusa writes
    them: ``[[0], [1], [0, 0]]``.
    """
    import numpy as np

    nodes = {tuple(path) for path in paths}
    tokens = np.ones(rounds)
    for number in range(rounds):
        path: tuple[int, ...] = ()
        while len(path) < len(acceptance):
            dice = rng.random()
            rank = 0
            for rank, chance in enumerate((*acceptance[len(path)], 1.0)):  # noqa: B007
                dice -= chance
                if dice < 0:
                    break
            path = (*path, rank)
            if path not in nodes:
                break
            tokens[number] += 1
    return tokens
