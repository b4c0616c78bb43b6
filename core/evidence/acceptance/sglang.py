"""SGLang's decode lines. ``accept len`` includes the bonus token; ``accept rate`` changed its meaning and is never read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from scenario.evidence.acceptance.tally import AcceptanceReport, LineReader
from scenario.evidence.acceptance.vllm import value_of


@dataclass
class _Rank:
    """One data-parallel rank: whether it has only just started, and its first line since."""

    fresh: bool = False
    held: tuple[int, float] | None = None


class Decoding(LineReader):
    """A line covers a fixed number of steps of all running sequences.

    The first one after a start that the log shows covers the warm-up: it is left out unless it is all there is.
    """

    marks = (b"Decode batch", b"server_args=", b"fired up")

    def __init__(self, report: AcceptanceReport) -> None:
        super().__init__(report)
        self.start()

    def start(self) -> None:
        self.ranks: dict[str, _Rank] = {}
        self.started = False
        self.depth = 0

    def line(self, text: str) -> None:
        if "Decode batch" in text:
            self.decode(text)
        else:
            self.began(text)

    def began(self, text: str) -> None:
        """The engine starts, and may say how it drafts."""
        self.started = True
        self.ranks = {name: _Rank(True, rank.held) for name, rank in self.ranks.items()}
        tokens, branches = (re.search(rf"speculative_{name}=(\d+)", text) for name in ("num_draft_tokens", "eagle_topk"))
        if tokens and branches and int(branches[1]) > 1:
            self.report.refuse("SGLang draft tokens")
        elif tokens:
            self.depth = int(tokens[1]) - 1

    def decode(self, text: str) -> None:
        length, running = value_of(text, "accept len"), value_of(text, "#running-req")
        if "accept rate" in text:
            self.report.refuse("SGLang accept rate")
        if length is None or running is None or length < 1 or running < 1:
            return
        found = re.search(r"\b(DP\d+)\b", text)
        rank = self.ranks.setdefault(found[1] if found else "", _Rank(self.started))
        if rank.fresh:
            rank.fresh, rank.held = False, (int(running), length)
        else:
            self.add(int(running), length)

    def add(self, running: int, length: float) -> None:
        source = self.report.source("SGLang decode lines")
        source.depth = source.depth or self.depth
        source.add(running, running, 0, running * (length - 1))

    def finish(self) -> None:
        held = [rank.held for rank in self.ranks.values() if rank.held]
        if held and "SGLang decode lines" in self.report.sources:
            self.report.note("SGLang's first decode line after a start covers the warm-up and is left out")
        elif held:
            self.report.note("SGLang's only decode line is the first after a start, which covers the warm-up: measure longer")
            for running, length in held:
                self.add(running, length)
        self.start()


READERS = (Decoding,)
