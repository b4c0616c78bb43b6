"""vLLM's log lines: V1 intervals, by process and engine; V0 counters and stage times; histograms of requests."""

from __future__ import annotations

import re
from collections.abc import Sequence

from scenario.evidence.acceptance.tally import POSITIONS, AcceptanceReport, LineReader

_PROCESS = re.compile(r"\(([^()]*pid=[^()]*)\)")
_ENGINE = re.compile(r"\bEngine (\d+)\b")


def value_of(text: str, name: str) -> float | None:
    """The number after ``name:`` in a log line."""
    found = re.search(rf"(?<![\w-]){re.escape(name)}: ?([\d.]+)", text)
    return float(found[1].rstrip(".")) if found else None


def process_of(text: str) -> str:
    """Which process wrote a line: its pid, else what stands before the level (a container's name)."""
    found = _PROCESS.search(text)
    if found:
        return found[1]
    before = re.split(r"\b(?:INFO|DEBUG|WARNING)\b", text, maxsplit=1)
    return before[0].strip() if len(before) > 1 else ""


class Intervals(LineReader):
    """V1's ``SpecDecoding metrics``: each line counts the tokens since the last one of its process."""

    marks = (b"SpecDecoding metrics", b"Running:")

    def __init__(self, report: AcceptanceReport) -> None:
        super().__init__(report)
        self.running: dict[tuple[str, str], int] = {}

    def start(self) -> None:
        self.running = {}

    def line(self, text: str) -> None:
        engine = _ENGINE.search(text)
        process, number = process_of(text), engine[1] if engine else ""
        running = re.search(r"Running: (\d+) reqs", text)
        if running:
            self.running[process, number] = self.running[process, ""] = int(running[1])
        if "SpecDecoding metrics" in text:
            self.metrics(text, self.running.get((process, number), self.running.get((process, ""), 0)))

    def metrics(self, text: str, batch: int) -> None:
        """One interval of one engine."""
        length, accepted, drafted = (value_of(text, name) for name in ("Mean acceptance length", "Accepted", "Drafted"))
        if "acceptance rate: " in text.replace("Per-position acceptance rate", ""):
            self.report.refuse("vLLM average draft acceptance rate")
        said = re.search(r"Per-position acceptance rate: ([\d., ]+)", text)
        rates = [float(part) for part in said[1].replace(" ", "").strip(",").split(",") if part] if said else []
        if length is None or accepted is None or drafted is None or length < 1:
            return
        rounds = rounds_of(length, accepted, drafted, len(rates))
        if rounds:
            self.report.source("vLLM log lines").add(batch, rounds, drafted, accepted, rates)


def rounds_of(length: float, accepted: float, drafted: float, places: int) -> float:
    """Rounds behind a length that is printed with two decimals; 0 where nothing says how many.

    Where every draft was full the drafted tokens give them exactly.
    """
    full = drafted / places if places else 0.0
    if full and abs(1 + accepted / full - length) <= 0.0051:
        return full
    return accepted / (length - 1) if length > 1 and accepted > 0 else full


class Histograms(LineReader):
    """Counts of rounds with 0, 1, 2 ... accepted tokens: the best input of all."""

    marks = (b"acceptance_histogram",)

    def line(self, text: str) -> None:
        for found in re.finditer(r"acceptance_histogram\W{1,4}\[([\d,\s]+)\]", text):
            add_histogram(self.report, "vLLM request histograms", [int(part) for part in found[1].split(",") if part.strip()])


def add_histogram(report: AcceptanceReport, name: str, counts: Sequence[int]) -> None:
    """Add rounds given by how many tokens each accepted."""
    rounds = sum(counts)
    if not rounds or len(counts) > POSITIONS:
        return
    reached = [sum(counts[k:]) for k in range(1, len(counts))]
    report.source(name).add(0, rounds, rounds * (len(counts) - 1), sum(reached), [count / rounds for count in reached])


class Counters(LineReader):
    """V0's ``Speculative metrics``: counters that only grow, so the last line of each process counts."""

    marks = (b"Speculative metrics:",)
    names = ("Number of speculative tokens", "Number of draft tokens", "Number of emitted tokens")

    def __init__(self, report: AcceptanceReport) -> None:
        super().__init__(report)
        self.last: dict[str, list[float]] = {}

    def line(self, text: str) -> None:
        self.report.refuse("vLLM V0 draft acceptance rate")
        values = [value_of(text, name) for name in self.names]
        if any(value is None for value in values):
            return
        found, process = [float(value or 0) for value in values], process_of(text)
        if process in self.last and found[1] < self.last[process][1]:  # the server was started anew
            self.done(self.last[process])
        self.last[process] = found

    def finish(self) -> None:
        for counters in self.last.values():
            self.done(counters)
        self.last = {}

    def done(self, counters: Sequence[float]) -> None:
        """Count one process's whole life."""
        depth, drafted, emitted = counters
        if depth >= 1 and drafted:
            rounds = drafted / depth
            self.report.source("vLLM V0 log lines").add(0, rounds, drafted, max(emitted - rounds, 0))


class Stages(LineReader):
    """V0's stage times: what a proposed token costs beside scoring."""

    marks = (b"SpecDecodeWorker stage times",)

    def __init__(self, report: AcceptanceReport) -> None:
        super().__init__(report)
        self.proposing = self.scoring = 0.0

    def line(self, text: str) -> None:
        found = [re.search(rf"{name}=([\d.]+)", text) for name in ("average_time_per_proposal_tok_ms", "scoring_time_ms")]
        if found[0] and found[1] and float(found[1][1]) > 0:
            self.proposing += float(found[0][1])
            self.scoring += float(found[1][1])
            self.report.draft_cost = self.proposing / self.scoring


READERS = (Intervals, Histograms, Counters, Stages)
