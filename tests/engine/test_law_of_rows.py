"""The law of rows: a row's numbers are its own, to the last bit, whatever stands beside it."""

from __future__ import annotations

import struct
from functools import cache
from itertools import combinations

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from scenario import ScenarioError, run
from scenario.model import stacks
from scenario.registry import host

HOST = host.load(third_party=False)
METHODS = sorted(stack.name for stack in stacks.every(HOST.methods))
DRAFTS = [name for name in METHODS if any("alpha" in HOST.methods[part].parameters for part in name.split("+"))]
MODELS = ["llama-3.1-8b", "llama-3.1-70b", "qwen3-30b-a3b", "deepseek-v3", "gemma-2-27b"]
ENCODERS = ["clip-336", "siglip-896"]
TABLE = {
    "version": 1,
    "trees": {"wide": {"rates": [[0.7, 0.1], [0.6, 0.1]], "nodes_per_depth": [2, 3]}},
    "measured": {"mine": {"model": "llama-3.1-8b", "gpu": "h100-sxm", "points": [[1, 5.1], [64, 6.3], [512, 19.7]]}},
    "defaults": {"context": 700},
    "columns": {"odd": "batch ** gamma / mbu - (context + 0.1) % (mfu * 7) + 3 ** mbu"},
}
"""What the rows stand in. ``odd`` has the operations of which polars rounds values and columns otherwise."""

PARTS: list[dict[str, st.SearchStrategy[object]]] = [
    {},
    {"tp": st.sampled_from([2, 4, 8]), "gpus": st.just(8)},
    {"tp": st.just(4), "pp": st.just(2), "gpus": st.just(8)},
    {"dp": st.just(3), "ep": st.just(6), "tp": st.just(2), "gpus": st.just(6)},
    {"gpus": st.sampled_from([2, 3, 8, "auto"])},
    {"weights": st.sampled_from(["published", "fp8", "int4"])},
    {"activations": st.sampled_from(["bf16", "fp8", "int8"]), "weights": st.sampled_from(["fp8", "int8"])},
    {"prompt_tokens": st.sampled_from([100, 3000]), "output_tokens": st.sampled_from([50, 333])},
    {"encoder": st.sampled_from(ENCODERS), "images": st.sampled_from([1, 3]), "prompt_tokens": st.just(100), "output_tokens": st.just(7)},
    {"mbu": st.sampled_from([0.7, 0.83]), "mfu": st.sampled_from([0.37, 0.6])},
    {"kv": st.sampled_from(["fp8", "bf16"]), "memory_utilization": st.just(0.9), "usd_per_hour": st.sampled_from([1.3, 2.7])},
]  # fmt: skip
"""Inputs that bring a part of the model into the table, each a choice of its own."""
DIALECTS: list[dict[str, st.SearchStrategy[object]]] = [
    {}, {"alpha": st.sampled_from([0.3, 0.81])}, {"gamma": st.sampled_from([0, 2, 3, 7, 16, "auto"])},
    {"alpha": st.just(0.6), "gamma": st.sampled_from([1, 5])}, {"acceptance_length": st.sampled_from([1.7, 2.9])},
    {"accepted_share": st.just(0.41), "gamma": st.just(4)}, {"acceptance": st.just("0.8 0.5 0.3")}, {"tree": st.just("wide")},
]  # fmt: skip


@st.composite
def rows(draw: st.DrawFn) -> dict[str, object]:
    """One row: a method, a time model, one part of the model, one way to say what is accepted."""
    found: dict[str, object] = {
        "model": draw(st.sampled_from(MODELS)), "gpu": draw(st.sampled_from(["h100-sxm", "a100-80gb", "b200"])),
        "method": draw(st.sampled_from(METHODS)), "batch": draw(st.sampled_from([1, 3, 64, 500])),
        "time_model": draw(st.sampled_from(["bound", "estimate", "measured"])),
    }  # fmt: skip
    if draw(st.booleans()):
        found["context"] = draw(st.sampled_from([0, 1, 5000, 33333]))
    for part in (draw(st.sampled_from(PARTS)), draw(st.sampled_from(DIALECTS if found["method"] in DRAFTS else DIALECTS[:1]))):
        found |= {name: draw(values) for name, values in part.items()}
    return found


def computed(lines: list[dict[str, object]], show: tuple[str, ...] = ()) -> list[dict[str, object]]:
    """What the rows give, numbers as their bits."""
    frame = run({**TABLE, "show": list(show), "rows": [{**line, "id": f"r{place}"} for place, line in enumerate(lines)]}, host=HOST).frame
    return [{key: struct.pack("<d", value) if isinstance(value, float) else value for key, value in row.items()}
            for row in frame.to_dicts()]  # fmt: skip


@cache
def _alone(line: tuple[tuple[str, object], ...]) -> dict[str, object] | None:
    try:
        return computed([dict(line)])[0]
    except ScenarioError:
        return None


def differences(own: dict[str, object], found: dict[str, object]) -> dict[str, tuple[object, object]]:
    """The columns of a row alone that are others in company."""
    def shown(value: object) -> object:
        return struct.unpack("<d", value)[0] if isinstance(value, bytes) else value

    return {name: (shown(value), shown(found[name])) for name, value in own.items() if name != "id" and found[name] != value}


PLAIN = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "method": "eagle", "batch": 3, "time_model": "bound"}


@example(PLAIN, {**PLAIN, "gamma": 7})
@example(PLAIN, {**PLAIN, "mbu": 0.7})
@example({**PLAIN, "method": "lookahead", "gamma": 4}, {**PLAIN, "gamma": "auto"})
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows(), rows())
def test_a_row_has_the_numbers_that_it_has_alone(one: dict[str, object], other: dict[str, object]) -> None:
    """Alone, first, last and twice a row gives the same bits in every column that it has alone."""
    own = _alone(tuple(one.items()))
    assume(own is not None)
    assert own is not None
    assume(_alone(tuple(other.items())) is not None)
    first, _, last = computed([one, other, one])
    assert differences(own, first) == {}
    assert differences(own, last) == {}


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(rows(), min_size=3, max_size=6))
def test_rows_have_their_numbers_in_any_company(lines: list[dict[str, object]]) -> None:
    """In a table of several rows each gives the bits that it gives alone."""
    kept = [line for line in lines if _alone(tuple(line.items())) is not None]
    assume(len(kept) > 1)
    for line, found in zip(kept, computed(kept), strict=True):
        own = _alone(tuple(line.items()))
        assert own is not None
        assert differences(own, found) == {}


def test_what_is_asked_for_is_a_rows_own() -> None:
    """Best draft lengths and break-even points, families of columns each, are the same bits alone and in company."""
    lines = [PLAIN, {**PLAIN, "gamma": 7, "method": "suffix"}, {**PLAIN, "batch": 64, "tp": 2, "gpus": 2}]
    show = ("acceptance", "best_gamma", "break_even")
    assert differences(computed([PLAIN], show)[0], computed(lines, show)[0]) == {}



@pytest.mark.slow
@pytest.mark.parametrize("model", ["llama-3.1-8b", "deepseek-v3"])
def test_no_pair_of_methods_moves_a_number(model: str) -> None:
    """Of every two methods, each in the bound and in the estimate, both have beside the other the bits that they have alone."""
    def lines(method: str) -> list[dict[str, object]]:
        shared = {"model": model, "gpu": "h100-sxm", "gpus": 8, "batch": 24, "method": method}
        return [{**shared, "time_model": "bound"}, {**shared, "time_model": "estimate", "context": 3000}]

    own = {method: [computed([line])[0] for line in lines(method)] for method in HOST.methods}
    moved = {}
    for one, other in combinations(own, 2):
        found = computed([*lines(one), *lines(other)])
        for place, (alone, beside) in enumerate(zip([*own[one], *own[other]], found, strict=True)):
            if different := differences(alone, beside):
                moved[one, other, place] = different
    assert moved == {}
