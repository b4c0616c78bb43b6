"""Hostile inputs of every kind end with a good file or a clear refusal: a campaign that stays.

``make test`` tries a few of each kind, always the same; ``make test-all`` more, with new seeds; ``make fuzz`` goes on for
hours (``SCENARIO_FUZZ`` is the number of cases of each kind). What fails is saved under SCENARIO_FUZZ_FOUND; once mended, it
goes to ``tests/fuzz/corpus`` and is replayed for ever.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest
from fuzz.cases import KINDS
from fuzz.harness import CORPUS, Case, Worker, replayed, write_counts
from hypothesis import HealthCheck, Phase, given, settings

CASES = int(os.environ.get("SCENARIO_FUZZ", "0"))
FEW = {"table": 60, "formula": 30, "csv": 40, "workbook": 20, "log": 40, "config": 30, "measured": 20}
CALM = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example, HealthCheck.filter_too_much)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.stop()
    write_counts(made)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_few_hostile_inputs(kind: str, worker: Worker) -> None:
    """Exit code 0, 1 or 2, no traceback, nothing written on failure, a file that parses otherwise."""

    @settings(max_examples=FEW[kind], deadline=None, derandomize=True, database=None, suppress_health_check=CALM, phases=[Phase.generate])
    @given(KINDS[kind]())
    def each(case: Case) -> None:
        worker.judge(case)

    each()


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(KINDS))
def test_many_hostile_inputs(kind: str, worker: Worker) -> None:
    """The same with new seeds each time, and as many as SCENARIO_FUZZ asks for; it goes on after a find and tells of each once."""
    found: dict[str, str] = {}

    @settings(max_examples=CASES or 10 * FEW[kind], deadline=None, database=None, suppress_health_check=CALM, phases=[Phase.generate])
    @given(KINDS[kind]())
    def each(case: Case) -> None:
        try:
            worker.judge(case)
        except AssertionError as error:
            said = str(error)[-1500:]
            found.setdefault(re.sub(r"[0-9]+|'[^']*'", "#", said)[:300], said)

    each()
    assert not found, "\n\n".join(found.values())


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.glob("*") if path.suffix != ".args"))
def test_what_was_found_once_stays_mended(name: str, worker: Worker) -> None:
    """Each input that the campaign found, after the mistake that it showed was mended."""
    worker.judge(replayed(CORPUS / name))
