"""Acceptance in every dialect, against the cited data and against sums by hand."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path
from typing import Any

import pytest

import scenario
from scenario import ScenarioError
from scenario.registry.host import load

HOST = load(third_party=False)
with (Path(__file__).parents[1] / "data" / "acceptance_per_position.csv").open(encoding="utf-8") as stream:
    MEASURED = list(csv.DictReader(stream))
TRACES = [line for line in MEASURED if line["kind"] == "conditional" and line["values"]]
FALLING = [line for line in MEASURED if line["kind"].startswith("marginal")]


def row(method: Any = "eagle", **inputs: Any) -> dict[str, Any]:
    return {"model": "llama-3-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": method, **inputs}


def one(method: str = "eagle", table: dict[str, Any] | None = None, **inputs: Any) -> dict[str, Any]:
    made = {"version": 1, "rows": [row(method, **inputs)], **(table or {})}
    return scenario.run(made, host=HOST).frame.row(0, named=True)


def rates(line: dict[str, str]) -> list[float]:
    return [float(rate) for rate in line["values"].split("/")]


@pytest.mark.parametrize("line", TRACES, ids=lambda line: f"{line['method']}-{line['dataset']}-{line['k']}")
def test_conditional_rates_give_the_measured_length(line: dict[str, str]) -> None:
    """Conditional rates per position of the cited traces give the acceptance length that the same traces report."""
    found = one(acceptance={"conditional": rates(line)}, gamma=int(line["k"]))
    assert found["tokens_per_round"] == pytest.approx(float(line["E_or_AL"]), abs=0.003)
    assert found["acceptance_source"] == "profile"


@pytest.mark.parametrize("line", FALLING, ids=lambda line: line["source"])
def test_marginal_rates_add_up(line: dict[str, str]) -> None:
    """Marginal rates, as vLLM prints them, add up to the accepted tokens; the share is theirs by position."""
    own = rates(line)
    found = one(acceptance=own, gamma=len(own))
    assert found["accepted_per_round"] == pytest.approx(sum(own), rel=1e-12)
    assert found["accepted_of_drafted"] == pytest.approx(sum(own) / len(own), rel=1e-12)


def test_every_dialect_of_one_measurement_means_the_same() -> None:
    """Alpha 0.7 with 4 drafts, told as rates, lengths and shares, gives 2.7731 tokens a round each time."""
    powers = [0.7**k for k in range(1, 5)]
    lengths = [1 + total for total in itertools.accumulate(powers)]
    told: list[dict[str, Any]] = [
        {"alpha": 0.7}, {"acceptance": powers}, {"acceptance": {"marginal": powers}}, {"acceptance": {"conditional": [0.7] * 4}},
        {"acceptance": {"lengths": lengths}}, {"acceptance_length": lengths[-1]}, {"accepted_length": lengths[-1] - 1},
        {"accepted_share": (lengths[-1] - 1) / 4}, {"acceptance_length": lengths[1], "measured_gamma": 2},
    ]  # fmt: skip
    for dialect in told:
        found = one(table={"show": "acceptance"}, gamma=4, **dialect)
        assert found["tokens_per_round"] == pytest.approx(2.7731, abs=1e-9), dialect
        assert found["alpha_equivalent"] == pytest.approx(0.7, abs=1e-9), dialect
        assert found["accepted_of_drafted"] == pytest.approx((lengths[-1] - 1) / 4, abs=1e-9), dialect


@pytest.mark.parametrize("gamma", [1, 2, 3, 5, 8, 16])
def test_alpha_is_found_from_any_length(gamma: int) -> None:
    """The alpha that gives a measured length is found to 1e-9 from nothing accepted to nearly all."""
    alphas = [0.0, 0.05, 0.3, 0.5, 0.77, 0.9, 0.97, 0.99, 0.999]
    lengths = [sum(alpha**k for k in range(gamma + 1)) for alpha in alphas]
    made = {"version": 1, "rows": [row(gamma=gamma, acceptance_length=lengths)]}
    assert scenario.run(made, host=HOST).frame["alpha"].to_list() == pytest.approx(alphas, abs=1e-9)


def test_ends_of_a_measured_length() -> None:
    """All accepted is alpha 1; more than gamma + 1 tokens cannot be, and gives no number."""
    assert one(acceptance_length=4, gamma=3)["alpha"] == 1
    assert one(acceptance_length=4.2, gamma=3)["tokens_per_round"] is None


@pytest.mark.parametrize(
    ("parameters", "inputs", "tokens"),
    [({"acceptance": [0.9, 0.8]}, {"alpha": 0.5}, 1.75), ({"alpha": 0.5}, {"acceptance": [0.9, 0.8]}, 2.7),
     ({"acceptance_length": 1.6}, {"alpha": 0.5}, 1.75), ({"acceptance": [0.9, 0.8]}, {"acceptance_length": 1.6}, 1.6),
     ({"acceptance": [0.9, 0.8]}, {}, 2.7), ({"accepted_share": 0.4}, {}, 1.8)],
)  # fmt: skip
def test_what_a_row_says_comes_first(parameters: dict[str, Any], inputs: dict[str, Any], tokens: float) -> None:
    """A row's own dialect takes the place of another one that is set for all rows."""
    found = one(table={"parameters": {"eagle": {**parameters, "gamma": 2}}}, **inputs)
    assert found["tokens_per_round"] == pytest.approx(tokens, abs=1e-9)


def test_presets_give_way_to_the_table() -> None:
    """An alpha typed in the table takes the place of a preset's profile."""
    preset = {"preset": "eagle-vicuna-7b"}
    assert one(table=preset)["tokens_per_round"] == pytest.approx(1 + sum(itertools.accumulate([0.79, 0.74, 0.72, 0.73, 0.67], lambda a, b: a * b)))
    typed = one(table={**preset, "parameters": {"eagle": {"alpha": 0.5, "gamma": 1}}})
    assert (typed["tokens_per_round"], typed["acceptance_source"]) == (1.5, "constant alpha")


def test_constant_alpha_is_flagged() -> None:
    """Each row says what its acceptance rests on; constant alpha is named as such, and a default as a default."""
    said = [one()["acceptance_source"], one(alpha=0.7)["acceptance_source"], one(acceptance=[0.5])["acceptance_source"],
            one(accepted_share=0.5)["acceptance_source"]]  # fmt: skip
    assert said == ["constant alpha (default)", "constant alpha", "profile", "measured length"]
    both = scenario.run({"version": 1, "rows": [row(["vanilla", "eagle"], alpha=0.7)]}, host=HOST).frame
    assert both["acceptance_source"].to_list() == [None, "constant alpha"]


def test_agreeing_dialects_may_stand_together() -> None:
    """Two dialects in one place that mean the same to the digits printed are no error."""
    assert one(alpha=0.7, acceptance_length=2.77, gamma=4)["tokens_per_round"] == pytest.approx(2.77, rel=0.01)
    with pytest.raises(ScenarioError, match=r"contradict each other: alpha means 2\.77, acceptance_length means 3 tokens a round at gamma 4"):
        one(alpha=0.7, acceptance_length=3, gamma=4)


def test_every_preset_is_what_the_data_say() -> None:
    """Each preset with rates has the length that its rates give by hand, and names a source."""
    for preset in HOST.presets.values():
        assert preset.source, preset.name
        text = preset.values.get("acceptance")
        if text is None:
            continue
        given, _, numbers = str(text).rpartition(":")
        own = [float(rate) for rate in numbers.split("/")]
        shares = list(itertools.accumulate(own, lambda a, b: a * b)) if given else own
        found = one(preset.method, {"preset": preset.name}, gpus=8)
        hits = preset.values.get("hit_rate", 1)
        assert found["tokens_per_round"] == pytest.approx(1 + hits * sum(shares[: int(preset.values["gamma"])]), rel=1e-9), preset.name


@pytest.mark.parametrize("task", ["gsm8k", "cnn-dm", "sharegpt", "instructcoder"])
def test_ngram_presets_give_the_measured_length(task: str) -> None:
    """With its share of matches apart, the n-gram trace still gives the length that was measured."""
    names = {"gsm8k": "GSM8K", "cnn-dm": "CNN/DM", "sharegpt": "ShareGPT", "instructcoder": "InstructCoder"}
    line = next(line for line in TRACES if line["method"] == "n-gram" and line["dataset"] == names[task])
    found = one("ngram", {"preset": f"ngram-llama-3.1-8b-{task}"})
    assert found["tokens_per_round"] == pytest.approx(float(line["E_or_AL"]), abs=0.003)


def test_a_plain_table_is_no_wider() -> None:
    """What a table does not mention takes no column and no assumption: dialects, trees, answers, helper columns."""
    book, _ = scenario.check({"version": 1, "rows": [row(gamma=3)]}, host=HOST)
    for name in ("acceptance_length", "accepted_share", "measured_alpha", "auto_gamma", "tree", "best_gamma", "tpot_ms_g0", "break_even_batch"):
        assert name not in book.fields
        assert f"eagle_{name}" not in book.scalars
