"""llama.cpp: lines of llama-server's requests, its statistics by kind of draft, and the summary of llama-speculative."""

from __future__ import annotations

import re

from scenario.evidence.acceptance.tally import AcceptanceReport, LineReader

_SHARE = re.compile(r"\(\s*(\d+) accepted\s*/\s*(\d+) generated\)")
_LENGTH = re.compile(r"mean acceptance length\s*=\s*([\d.]+)")
_RATES = re.compile(r"acceptance rate per position\s*=\s*\(([\d., ]+)\)")


class Requests(LineReader):
    """``draft acceptance = ...`` of one request; since build b9490 with the mean length and the rates by position."""

    marks = (b"draft acceptance",)

    def line(self, text: str) -> None:
        share, length, rates = _SHARE.search(text), _LENGTH.search(text), _RATES.search(text)
        if not share:
            return
        accepted, drafted = int(share[1]), int(share[2])
        if length and float(length[1]) >= 1:
            places = [float(part) for part in rates[1].replace(" ", "").strip(",").split(",")] if rates else []
            rounds = accepted / (float(length[1]) - 1) if float(length[1]) > 1 and accepted else drafted / max(len(places), 1)
            if rounds:
                self.report.source("llama.cpp request lines").add(1, rounds, drafted, accepted, places)
            return
        self.report.refuse("llama.cpp draft acceptance rate")
        self.report.source("llama.cpp requests").add_share(drafted, accepted)


class Statistics(LineReader):
    """``statistics KIND: #gen drafts = ...``: counters since the server's start; the last line of each kind counts."""

    marks = (b"#gen drafts",)
    names = ("#gen drafts", "#gen tokens", "#acc tokens")

    def __init__(self, report: AcceptanceReport) -> None:
        super().__init__(report)
        self.last: dict[str, tuple[list[float], list[float]]] = {}

    def line(self, text: str) -> None:
        kind = re.search(r"statistics\s+([\w-]+):", text)
        values = [re.search(rf"{name}\s*=\s*(\d+)", text) for name in self.names]
        if not kind or not all(values):
            return
        found = [float(value[1]) for value in values if value]
        rates = re.search(r"#acc rate/pos\s*=\s*\(([\d., ]+)\)", text)
        places = [float(part) for part in rates[1].replace(" ", "").strip(",").split(",") if part] if rates else []
        if "dur(b,g,a)" in text:
            self.report.refuse("llama.cpp draft durations")
        if kind[1] in self.last and found[0] < self.last[kind[1]][0][0]:  # the server was started anew
            self.done(kind[1])
        self.last[kind[1]] = (found, places)

    def done(self, kind: str) -> None:
        """Count what one kind of draft did in one life of the server."""
        (rounds, drafted, accepted), rates = self.last.pop(kind)
        if rounds:
            self.report.source("llama.cpp statistics").add(0, rounds, drafted, accepted, rates)

    def finish(self) -> None:
        for kind in list(self.last):
            self.done(kind)


class SpeculativeSummary(LineReader):
    """What llama-speculative prints at its end, a name and a number per line."""

    marks = (b"n_draft", b"n_predict", b"n_accept")

    def __init__(self, report: AcceptanceReport) -> None:
        super().__init__(report)
        self.block: dict[str, float] = {}

    def start(self) -> None:
        self.block = {}

    def line(self, text: str) -> None:
        found = re.search(r"\b(n_draft|n_predict|n_drafted|n_accept)\s*=\s*(\d+)", text)
        if not found:
            return
        self.block[found[1]] = float(found[2])
        if {"n_predict", "n_drafted", "n_accept"} <= self.block.keys() and found[1] == "n_accept":
            made, drafted, accepted = (self.block[name] for name in ("n_predict", "n_drafted", "n_accept"))
            if made > accepted:
                self.report.source("llama.cpp speculative summary").add(1, made - accepted, drafted, accepted)
            self.block = {}


READERS = (Requests, Statistics, SpeculativeSummary)
