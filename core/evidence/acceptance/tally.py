"""Rounds of drafting counted up, by source and batch, and what a method's parameters follow from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from scenario.common.errors import Problem, TableError

BATCHES = 4096
"""Different batches that are kept apart."""
MOST = 1e18
"""More than any server counts of rounds or tokens."""
POSITIONS = 128
"""Positions of a draft that are kept apart."""
DEEPEST = 64
"""The deepest draft that a method takes."""


@dataclass
class Tally:
    """Sums over rounds. ``rounds`` are verify passes of one sequence with a draft; ``accepted`` leaves the bonus token out.

    ``positions`` holds the summed marginal acceptance by position over ``positioned`` rounds.
    """

    rounds: float = 0
    drafted: float = 0
    accepted: float = 0
    positions: list[float] = field(default_factory=list)
    positioned: float = 0

    def add(self, rounds: float, drafted: float, accepted: float, rates: Sequence[float] = ()) -> None:
        """Add rounds; ``rates`` are marginal."""
        self.rounds += rounds
        self.drafted += drafted
        self.accepted += accepted
        if rates:
            self.positions += [0.0] * (min(len(rates), POSITIONS) - len(self.positions))
            for place, rate in enumerate(rates[:POSITIONS]):
                self.positions[place] += rate * rounds
            self.positioned += rounds

    @property
    def length(self) -> float | None:
        """Tokens per round, the bonus token included."""
        return 1 + self.accepted / self.rounds if self.rounds else None

    @property
    def gamma(self) -> float | None:
        """Draft tokens per round; None where the log does not say."""
        return self.drafted / self.rounds if self.rounds and self.drafted else None

    @property
    def rates(self) -> list[float]:
        """Marginal acceptance by position, never rising."""
        found: list[float] = []
        for total in self.positions:
            found.append(min(total / self.positioned, found[-1] if found else 1.0))
        return found


def countable(*numbers: float) -> None:
    """Raise :class:`ValueError` unless all are numbers that a server may have counted."""
    if not all(abs(number) < MOST for number in numbers):
        raise ValueError("no count of a server")


@dataclass
class RoundSource:
    """What one kind of line said: all rounds, and by batch (0: not known)."""

    name: str
    total: Tally = field(default_factory=Tally)
    batches: dict[int, Tally] = field(default_factory=dict)
    lines: int = 0
    depth: int = 0
    """Draft tokens per round as the engine was started with, where its lines do not say; 0 unknown."""
    partial: bool = False
    """Whether only the share of accepted tokens is known, not the length."""

    def add(self, batch: int, rounds: float, drafted: float, accepted: float, rates: Sequence[float] = ()) -> None:
        """Add rounds of one line. Raises :class:`ValueError` for what no server counts, such as infinitely many."""
        countable(rounds, drafted, accepted, *rates)
        self.lines += 1
        self.total.add(rounds, drafted, accepted, rates)
        if batch in self.batches or len(self.batches) < BATCHES:
            self.batches.setdefault(batch, Tally()).add(rounds, drafted, accepted, rates)

    def add_share(self, drafted: float, accepted: float) -> None:
        """Add tokens of a line that does not say how many rounds they took; see :meth:`add`."""
        countable(drafted, accepted)
        self.partial = True
        self.lines += 1
        self.total.accepted += accepted
        self.total.drafted += drafted


@dataclass
class AcceptanceReport:
    """What the logs say. ``refused`` maps fields that were seen and not read to the reason."""

    sources: dict[str, RoundSource] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    draft_cost: float | None = None
    hit_rate: float | None = None
    lines: int = 0
    wanted: str = ""

    def source(self, name: str) -> RoundSource:
        """The source of that name, made when it is new."""
        return self.sources.setdefault(name, RoundSource(name))

    def refuse(self, name: str) -> None:
        """Say that a field was seen and is not read."""
        self.refused.setdefault(name, REFUSED[name])

    def note(self, text: str) -> None:
        """Say something once."""
        if text not in self.notes:
            self.notes.append(text)

    def saw_hits(self, made: float, rounds: float, accepted: float) -> None:
        """Note the share of steps that had a draft, from tokens put out: each step makes one token beside the accepted ones."""
        if rounds and made > accepted + rounds * 0.999:
            self.hit_rate = min(rounds / (made - accepted), 1.0)

    @property
    def best(self) -> RoundSource | None:
        """The source to believe: the exact ones first; those of one engine count the same rounds and are not added up.

        ``wanted`` is part of the name of a source that is asked for.
        """
        usable = [self.sources[name] for name in EXACT if name in self.sources and self.sources[name].total.rounds]
        ranked = [source for source in usable if self.wanted.lower() in source.name.lower()]
        return ranked[0] if ranked else None

    @property
    def tokens_per_step(self) -> float | None:
        """Tokens per step of one sequence, steps without a draft counted; None where their share is not known."""
        length = self.best.total.length if self.best else None
        return None if length is None or self.hit_rate is None else 1 + self.hit_rate * (length - 1)

    def lacking(self) -> str:
        """What was seen and does not suffice, in one line."""
        return "; ".join([*self.notes, *(f"{name}: {why}" for name, why in self.refused.items())])

    def parameters(self, method: str, gamma: int | None = None) -> dict[str, object]:
        """The ``parameters`` of a method. Raises :class:`TableError` when the logs do not say enough."""
        best = self.best
        if best is None or best.total.length is None:
            raise TableError(Problem("the logs do not say how many tokens a round gains", self.lacking()))
        depth = gamma or self._depth(best)
        if depth > DEEPEST:
            raise TableError(Problem(f"{depth} draft tokens per round are more than the {DEEPEST} that a method takes", "choose with --gamma"))
        found: dict[str, object] = {"gamma": depth}
        if method == "ngram" and self.hit_rate is not None:
            found["hit_rate"] = round(self.hit_rate, 4)
        if best.total.rates:
            found["acceptance"] = [round(rate, 4) for rate in best.total.rates[:16]]
        else:
            found["alpha"] = round(alpha_of(best.total.length, depth), 4)
        if self.draft_cost is not None and best.name.startswith("vLLM"):  # the stage times are vLLM's
            found["draft_cost"] = round(self.draft_cost, 4)
        return found

    @staticmethod
    def _depth(best: RoundSource) -> int:
        """Draft tokens per round; a mean below the number of positions means that some drafts were shorter."""
        drafted, places = best.total.gamma, len(best.total.rates)
        depth = round(drafted) if drafted else best.depth or places
        if not depth:
            raise TableError(Problem("the logs do not say how many tokens are drafted per round", "give it with --gamma"))
        return max(places, depth) if drafted and abs(drafted - depth) > 0.02 else depth


class LineReader:
    """Reads one kind of output. ``marks`` are bytes of which a line of it has at least one."""

    marks: tuple[bytes, ...] = ()

    def __init__(self, report: AcceptanceReport) -> None:
        self.report = report

    def start(self) -> None:
        """A new file: the engine starts anew, and so do its counters."""

    def line(self, text: str) -> None:
        """Take in one line that has a mark."""
        raise NotImplementedError

    def finish(self) -> None:
        """Take in what only the last line of a file says."""


Readers = Sequence[Callable[[AcceptanceReport], LineReader]]

EXACT = (
    "vLLM request histograms", "vLLM Prometheus counters", "vLLM offline print-out", "vLLM benchmark result", "vLLM log lines",
    "vLLM V0 log lines", "TensorRT-LLM iteration statistics", "TensorRT-LLM benchmark report", "SGLang request answers",
    "SGLang decode lines", "SGLang benchmark result", "SGLang Prometheus gauges", "llama.cpp request lines", "llama.cpp statistics",
    "llama.cpp speculative summary", "AIPerf export",
)  # fmt: skip
"""Sources that say how many tokens a round gains, the most exact of each engine first."""

REFUSED = {
    "vLLM average draft acceptance rate": "it is accepted/drafted, which is not alpha; the length and the rates per position are used",
    "vLLM V0 draft acceptance rate": "it counts tokens accepted after the first rejection; emitted tokens are used instead",
    "SGLang accept rate": "its meaning changed between versions; accept len is used",
    "SGLang draft tokens": "a tree was drafted: its tokens are no chain, so gamma does not follow from their number; give --gamma, the depth",
    "llama.cpp draft acceptance rate": "accepted/generated alone does not say how many tokens a round gains: the number of rounds is missing",
    "llama.cpp timings": "draft_n_accepted/draft_n alone does not say how many tokens a round gains: the number of rounds is missing",
    "TensorRT-LLM draftOverhead": "of which time it is a share is not documented; give draft_cost yourself",
    "TensorRT-LLM token counters": "accepted/drafted alone does not say how many tokens a round gains: the number of rounds is missing",
    "llama.cpp draft durations": "they are those of drafting alone; without the target's time they give no draft_cost",
}
"""Fields that are known and not read, with the reason."""


def alpha_of(length: float, gamma: int) -> float:
    """The chance per draft token that gives this length with gamma drafts (the same at every position)."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(middle**k for k in range(gamma + 1)) < length else (low, middle)
    return (low + high) / 2
