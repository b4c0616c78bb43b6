"""Reads acceptance of drafts out of engine logs: per position, length, hit rate, draft cost, by batch.

Logs are read line by line, plain or gzipped, mixed and with any lines between; memory does not grow with their size.
A field whose meaning is not the same in every version of an engine is never read: it is listed as refused.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from scenario.common import inputs
from scenario.common.errors import Problem, TableError

LONGEST = 1 << 20
"""Longest line that is read; the rest of a longer one is passed over."""
BATCHES = 4096
"""Different batches that are kept apart."""
POSITIONS = 64

_CARES = re.compile(
    rb"SpecDecoding metrics|Running:|Speculative metrics|SpecDecodeWorker stage times|Decode batch|server_args=|fired up|"
    rb"draft acceptance|n_draft|n_predict|n_drafted|n_accept|spec_decode_num|generation_tokens_total|acceptance_histogram|specDecodingStats"
)


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
            self.positions += [0.0] * (len(rates) - len(self.positions))
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


@dataclass
class Source:
    """What one kind of line said: all rounds, and by batch (0: not known)."""

    name: str
    total: Tally = field(default_factory=Tally)
    batches: dict[int, Tally] = field(default_factory=dict)
    lines: int = 0
    partial: bool = False
    """Whether only the share of accepted tokens is known, not the length."""

    def add(self, batch: int, rounds: float, drafted: float, accepted: float, rates: Sequence[float] = ()) -> None:
        self.lines += 1
        self.total.add(rounds, drafted, accepted, rates)
        if batch in self.batches or len(self.batches) < BATCHES:
            self.batches.setdefault(batch, Tally()).add(rounds, drafted, accepted, rates)


@dataclass
class Report:
    """What the logs say. ``refused`` maps fields that were seen and not read to the reason."""

    sources: dict[str, Source]
    refused: dict[str, str]
    notes: list[str]
    draft_cost: float | None = None
    hit_rate: float | None = None
    lines: int = 0
    wanted: str = ""

    @property
    def best(self) -> Source | None:
        """The source to believe: the exact ones first; those of one engine count the same rounds and are not added up.

        ``wanted`` is part of the name of a source that is asked for.
        """
        usable = [self.sources[name] for name in _EXACT if name in self.sources and self.sources[name].total.rounds]
        ranked = [source for source in usable if self.wanted.lower() in source.name.lower()]
        return ranked[0] if ranked else None

    def parameters(self, method: str, gamma: int | None = None) -> dict[str, object]:
        """The ``parameters`` of a method. Raises :class:`TableError` when the logs do not say enough."""
        best = self.best
        if best is None or best.total.length is None:
            raise TableError(Problem("the logs do not say how many tokens a round gains", "; ".join(self.notes + list(self.refused.values()))))
        drafted = best.total.gamma
        depth = gamma or (round(drafted) if drafted else len(best.total.rates))
        if not depth:
            raise TableError(Problem("the logs do not say how many tokens are drafted per round", "give it with --gamma"))
        if not gamma and drafted and abs(drafted - depth) > 0.02:
            depth = max(len(best.total.rates), depth)
        found: dict[str, object] = {"gamma": depth}
        gained = best.total.length - 1
        if method == "ngram" and self.hit_rate is not None:
            found["hit_rate"] = round(self.hit_rate, 4)
        if best.total.rates:
            found["acceptance"] = [round(rate, 4) for rate in best.total.rates[:16]]
        else:
            found["alpha"] = round(alpha_of(gained + 1, depth), 4)
        if self.draft_cost is not None and best.name.startswith("vLLM"):  # the stage times are vLLM's
            found["draft_cost"] = round(self.draft_cost, 4)
        return found


_EXACT = ("vLLM request histograms", "vLLM Prometheus counters", "vLLM log lines", "vLLM V0 log lines", "TensorRT-LLM iteration statistics",
          "SGLang decode lines", "llama.cpp speculative summary")  # fmt: skip
_REFUSED = {
    "vLLM average draft acceptance rate": "it is accepted/drafted, which is not alpha; the length and the rates per position are used",
    "vLLM V0 draft acceptance rate": "it counts tokens accepted after the first rejection; emitted tokens are used instead",
    "SGLang accept rate": "its meaning changed between versions; accept len is used",
    "llama.cpp draft acceptance rate": "accepted/generated alone does not say how many tokens a round gains: the number of rounds is missing",
    "TensorRT-LLM draftOverhead": "of which time it is a share is not documented; give draft_cost yourself",
}


class Reader:
    """Takes lines in; every format has a method that knows its marks."""

    def __init__(self) -> None:
        self.report = Report({}, {}, [])
        self.running = 0
        self.fresh = True
        self.counters: dict[str, dict[str, float]] = {}
        self.base: dict[str, dict[str, float]] = {}
        self.v0: list[float] = []
        self.block: dict[str, float] = {}
        self.stage = [0.0, 0.0, 0.0]

    def source(self, name: str) -> Source:
        return self.report.sources.setdefault(name, Source(name))

    def refuse(self, name: str) -> None:
        self.report.refused.setdefault(name, _REFUSED[name])

    def start_file(self) -> None:
        """A new log: the engine starts anew, and so do its counters."""
        self.running, self.fresh, self.block = 0, True, {}
        self.flush()

    def line(self, raw: bytes) -> None:
        if not _CARES.search(raw):
            return
        text = raw.decode("utf-8", "replace")
        for mark, read in self._marks:
            if mark in text:
                read(self, text)
                return
        self.block_line(text)

    # -- vLLM -------------------------------------------------------------------------------------------

    def vllm_engine(self, text: str) -> None:
        found = re.search(r"Running: (\d+) reqs", text)
        if found:
            self.running = int(found[1])

    def vllm(self, text: str) -> None:
        length, accepted, drafted = (_number(text, name) for name in ("Mean acceptance length", "Accepted", "Drafted"))
        if "acceptance rate: " in text.replace("Per-position acceptance rate", ""):
            self.refuse("vLLM average draft acceptance rate")
        rates = re.search(r"Per-position acceptance rate: ([\d., ]+)", text)
        positions = [float(part) for part in rates[1].replace(" ", "").strip(",").split(",") if part] if rates else []
        if length is None or accepted is None or drafted is None or length < 1:
            return
        if length > 1 and accepted > 0:
            rounds = accepted / (length - 1)
        elif positions and drafted:
            rounds = drafted / len(positions)
        else:
            return
        self.source("vLLM log lines").add(self.running, rounds, drafted, accepted, positions)

    def histogram(self, text: str) -> None:
        for found in re.finditer(r"acceptance_histogram\W{1,4}\[([\d,\s]+)\]", text):
            counts = [int(part) for part in found[1].split(",") if part.strip()]
            rounds = sum(counts)
            if not rounds or len(counts) > POSITIONS:
                continue
            reached = [sum(counts[k:]) for k in range(1, len(counts))]
            source = self.source("vLLM request histograms")
            source.add(self.running, rounds, rounds * (len(counts) - 1), sum(reached), [count / rounds for count in reached])

    def prometheus(self, text: str) -> None:
        found = re.match(r"\s*(?:vllm:)?([a-z_]+?)(?:_total)?(\{[^}]*\})?\s+([-+0-9.eE]+)", text.strip())
        if not found or text.lstrip().startswith("#"):
            return
        name, labels, value = found[1], found[2] or "", float(found[3])
        if name not in ("spec_decode_num_drafts", "spec_decode_num_draft_tokens", "spec_decode_num_accepted_tokens",
                        "spec_decode_num_accepted_tokens_per_pos", "generation_tokens"):  # fmt: skip
            return
        last = self.counters.setdefault(name, {})
        if value < last.get(labels, 0):  # the server was started anew
            done = self.base.setdefault(name, {})
            done[labels] = done.get(labels, 0) + last[labels]
        last[labels] = value

    def flush(self) -> None:
        """Take in what only the last line of a log says."""
        if self.counters:
            whole = {name: {key: value + self.base.get(name, {}).get(key, 0) for key, value in found.items()}
                     for name, found in self.counters.items()}  # fmt: skip
            total = {name: sum(found.values()) for name, found in whole.items()}
            rounds, accepted = total.get("spec_decode_num_drafts", 0), total.get("spec_decode_num_accepted_tokens", 0)
            places: dict[int, float] = {}
            for key, value in whole.get("spec_decode_num_accepted_tokens_per_pos", {}).items():
                place = re.search(r'position="(\d+)"', key)
                if place and int(place[1]) < POSITIONS:
                    places[int(place[1])] = places.get(int(place[1]), 0) + value
            if rounds:
                rates = [places.get(k, 0) / rounds for k in range(max(places) + 1)] if places else []
                self.source("vLLM Prometheus counters").add(0, rounds, total.get("spec_decode_num_draft_tokens", 0), accepted, rates)
                made = total.get("generation_tokens", 0)
                if made > accepted + rounds * 0.999:
                    self.report.hit_rate = min(rounds / (made - accepted), 1.0)
        self.counters, self.base = {}, {}
        if self.v0:
            self.v0_done()

    # -- vLLM V0: counters that only grow -----------------------------------------------------------------

    def v0_line(self, text: str) -> None:
        self.refuse("vLLM V0 draft acceptance rate")
        names = ("Number of speculative tokens", "Number of draft tokens", "Number of emitted tokens")
        values = [_number(text, name) for name in names]
        if any(value is None for value in values):
            return
        found = [float(value or 0) for value in values]
        if self.v0 and found[1] < self.v0[1]:
            self.v0_done()
        self.v0 = found

    def v0_done(self) -> None:
        depth, drafted, emitted = self.v0
        self.v0 = []
        if depth >= 1 and drafted:
            rounds = drafted / depth
            self.source("vLLM V0 log lines").add(0, rounds, drafted, emitted - rounds)

    def stages(self, text: str) -> None:
        found = [re.search(rf"{name}=([\d.]+)", text) for name in ("average_time_per_proposal_tok_ms", "scoring_time_ms")]
        if found[0] and found[1] and float(found[1][1]) > 0:
            self.stage[0] += float(found[0][1])
            self.stage[1] += float(found[1][1])
            self.report.draft_cost = self.stage[0] / self.stage[1]

    # -- SGLang, llama.cpp, TensorRT-LLM ------------------------------------------------------------------

    def sglang_start(self, text: str) -> None:
        self.fresh = True

    def sglang(self, text: str) -> None:
        length, running = _number(text, "accept len"), _number(text, "#running-req")
        if "accept rate" in text:
            self.refuse("SGLang accept rate")
        if length is None or running is None:
            return
        if self.fresh:  # the first line after the start covers the warm-up
            self.fresh = False
            return
        if length >= 1 and running >= 1:  # a line covers a fixed number of steps of all running sequences
            self.source("SGLang decode lines").add(int(running), running, 0, running * (length - 1))

    def llama(self, text: str) -> None:
        found = re.search(r"\(\s*(\d+) accepted /\s*(\d+) generated\)", text)
        self.refuse("llama.cpp draft acceptance rate")
        if found:
            source = self.source("llama.cpp requests")
            source.partial = True
            source.lines += 1
            source.total.accepted += int(found[1])
            source.total.drafted += int(found[2])

    def block_line(self, text: str) -> None:
        found = re.search(r"\b(n_draft|n_predict|n_drafted|n_accept)\s*=\s*(\d+)", text)
        if not found:
            return
        self.block[found[1]] = float(found[2])
        if {"n_predict", "n_drafted", "n_accept"} <= self.block.keys() and found[1] == "n_accept":
            made, drafted, accepted = (self.block[name] for name in ("n_predict", "n_drafted", "n_accept"))
            if made > accepted:
                self.source("llama.cpp speculative summary").add(1, made - accepted, drafted, accepted)
            self.block = {}

    def tensorrt(self, text: str) -> None:
        start = text.find("{")
        try:
            row = json.JSONDecoder().raw_decode(text[start:])[0]
        except ValueError:
            return
        stats = row.get("specDecodingStats")
        if not isinstance(stats, dict) or row.get("attentionDpRank") not in (None, 0):
            return
        if "draftOverhead" in stats:
            self.refuse("TensorRT-LLM draftOverhead")
        rounds = float(stats.get("numRequestsWithDraftTokens") or 0)
        if rounds:
            batch = (row.get("inflightBatchingStats") or {}).get("numGenRequests") or row.get("numActiveRequests") or rounds
            self.source("TensorRT-LLM iteration statistics").add(int(batch), rounds, float(stats.get("numDraftTokens") or 0),
                                                                  float(stats.get("numAcceptedTokens") or 0))  # fmt: skip

    _marks: tuple[tuple[str, Callable[[Reader, str], None]], ...] = (
        ("SpecDecoding metrics:", vllm), ("acceptance_histogram", histogram), ("Speculative metrics:", v0_line),
        ("SpecDecodeWorker stage times", stages), ("specDecodingStats", tensorrt), ("Decode batch", sglang), ("server_args=", sglang_start),
        ("fired up", sglang_start), ("draft acceptance rate", llama), ("Running:", vllm_engine), ("spec_decode_num", prometheus),
        ("generation_tokens_total", prometheus),
    )  # fmt: skip


def _number(text: str, name: str) -> float | None:
    found = re.search(rf"(?<![\w-]){re.escape(name)}: ?([\d.]+)", text)
    return float(found[1].rstrip(".")) if found else None


def lines_of(stream: BinaryIO, file: str = "-") -> Iterator[bytes]:
    """The lines of a stream, gzipped or not; what is too long is cut, so that memory stays bounded.

    Raises :class:`TableError` for more bytes than a log may have: a pipe that never ends, what a small file unpacks to.
    """
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)  # type: ignore[type-var]
    source: BinaryIO = gzip.GzipFile(fileobj=buffered) if buffered.peek(2)[:2] == b"\x1f\x8b" else buffered  # type: ignore[assignment]
    cut, size = False, 0
    while line := source.readline(LONGEST):
        size += len(line)
        if size > inputs.LOG.limit:
            raise inputs.too_large(file, inputs.LOG)
        if not cut:
            yield line
        cut = not line.endswith(b"\n") and len(line) == LONGEST


def read(paths: Sequence[str]) -> Report:
    """The acceptance in some logs; ``-`` is standard input."""
    reader = Reader()
    for path in paths:
        reader.start_file()
        try:
            with inputs.opened(path, inputs.LOG) as stream:
                for line in lines_of(stream, path):
                    reader.report.lines += 1
                    reader.line(line)
        except (OSError, EOFError, zlib.error) as error:
            said = getattr(error, "strerror", None) or str(error)
            raise TableError(Problem(f"cannot be read: {said}", file=path)) from None
    reader.flush()
    report = reader.report
    vllm = [name for name in report.sources if name.startswith("vLLM") and "V0" not in name]
    if len(vllm) > 1:
        report.notes.append(f"{' and '.join(vllm)} count the same rounds: only the first is used, they are not added up")
    engines = {name.split()[0] for name, source in report.sources.items() if source.total.rounds}
    if len(engines) > 1:
        report.notes.append(f"logs of several engines ({', '.join(sorted(engines))}) are not added up: --source chooses between them")
    if any(source.partial for source in report.sources.values()):
        report.notes.append("llama.cpp requests give only accepted/generated; the summary with n_predict and n_accept gives the length")
    return report


def alpha_of(length: float, gamma: int) -> float:
    """The chance per draft token that gives this length with gamma drafts (the same at every position)."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(middle**k for k in range(gamma + 1)) < length else (low, middle)
    return (low + high) / 2
