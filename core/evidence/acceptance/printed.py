"""Blocks that people copy from a terminal: vLLM's offline examples, and the result of ``bench serve`` (vLLM, SGLang)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from scenario.evidence.acceptance.tally import AcceptanceReport, LineReader
from scenario.evidence.acceptance.vllm import rounds_of


class Offline(LineReader):
    """vLLM's ``examples/offline_inference/spec_decode.py``; n-gram runs also count the steps without a draft."""

    marks = (b"num_drafts", b"num_draft_tokens", b"num_accepted_tokens", b"total_num_output_tokens", b"mean acceptance length:",
             b"acceptance at ")  # fmt: skip
    names = "total_num_output_tokens|num_drafts|num_draft_tokens|num_accepted_tokens|mean acceptance length"

    def __init__(self, report: AcceptanceReport) -> None:
        super().__init__(report)
        self.start()

    def start(self) -> None:
        self.block: dict[str, float] = {}
        self.rates: list[float] = []

    def line(self, text: str) -> None:
        place = re.search(r"acceptance at (?:token|position|pos) (\d+)\s*:\s*([\d.]+)", text)
        if place and int(place[1]) == len(self.rates):
            self.rates.append(float(place[2]))
        found = re.match(rf"\W*({self.names})\s*[:=]\s*([\d.]+)\s*$", text)
        if found:
            if found[1] in self.block:  # the next block
                self.finish()
            self.block[found[1]] = float(found[2])

    def finish(self) -> None:
        block, rates = self.block, self.rates
        self.start()
        drafted, accepted = (block.get(name, 0.0) for name in ("num_draft_tokens", "num_accepted_tokens"))
        rounds = block.get("num_drafts") or rounds_of(block.get("mean acceptance length", 0), accepted, drafted, len(rates))
        if rounds:
            self.report.source("vLLM offline print-out").add(0, rounds, drafted, accepted, rates)
            self.report.saw_hits(block.get("total_num_output_tokens", 0), rounds, accepted)


_BLOCK = {
    "acceptance length": "length", "accept length": "length", "drafts": "rounds", "draft tokens": "drafted", "accepted tokens": "accepted",
    "number of drafts": "rounds", "number of draft tokens": "drafted", "number of accepted tokens": "accepted",
    "maximum request concurrency": "batch", "max request concurrency": "batch", "mean acceptance length": "length",
}  # fmt: skip


class Benchmark(LineReader):
    """The printed ``Serving Benchmark Result``; SGLang gives the length alone."""

    marks = (b"cceptance", b"Accept length", b"Drafts:", b"Draft tokens:", b"Accepted tokens:", b"Serving Benchmark Result", b"Position ",
             b"request concurrency", b"Number of ", b"Total generated tokens", b"Number of draft")  # fmt: skip

    def __init__(self, report: AcceptanceReport) -> None:
        super().__init__(report)
        self.start()

    def start(self) -> None:
        self.block: dict[str, float] = {}
        self.rates: list[float] = []
        self.inside = False

    def line(self, text: str) -> None:
        if "Serving Benchmark Result" in text:
            self.finish()
            self.inside = True
            return
        if not self.inside:
            return
        place = re.search(r"\bPosition (\d+)(?: \(%\))?:\s*([\d.]+)", text)
        if place and int(place[1]) == len(self.rates):
            self.rates.append(float(place[2]) / 100)
        listed = re.search(r"Per-position acceptance[^:]*:\s*([\d.]+(?:,\s*[\d.]+)*)\s*$", text)
        if listed:
            values = [float(part) for part in listed[1].split(",")]
            self.rates = [value / 100 if max(values) > 1 else value for value in values]
        found = re.match(r"\s*([A-Za-z ]+?)\s*(?:\([^)]*\))?:\s*([\d.]+)\s*$", text)
        if found and found[1].lower() in _BLOCK:
            self.block[_BLOCK[found[1].lower()]] = float(found[2])

    def finish(self) -> None:
        block, rates = self.block, self.rates
        self.start()
        add_block(self.report, block, rates)


def add_block(report: AcceptanceReport, block: Mapping[str, float], rates: list[float]) -> None:
    """Add what a benchmark says: rounds, drafted and accepted tokens (vLLM), or the length alone (SGLang), which counts as one round."""
    batch, length = int(block.get("batch", 0)), block.get("length", 0.0)
    drafted, accepted = block.get("drafted", 0.0), block.get("accepted", 0.0)
    rounds = block.get("rounds") or (rounds_of(length, accepted, drafted, len(rates)) if accepted else 0)
    if rounds:
        report.source("vLLM benchmark result").add(batch, rounds, drafted, accepted, rates)
    elif length > 1:
        report.source("SGLang benchmark result").add(batch, 1, 0, length - 1, rates)


READERS = (Offline, Benchmark)
