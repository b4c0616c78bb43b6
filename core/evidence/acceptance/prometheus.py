"""Counters of vLLM and gauges of SGLang and TensorRT-LLM as Prometheus shows them.

Read are the text of ``/metrics``, tables of ``series | value`` and ``series => value @[time]``, the JSON of the HTTP API (instant and
range queries), and vLLM's ``Metric(name=..., value=...)`` as Python prints it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from scenario.evidence.acceptance.tally import POSITIONS, AcceptanceReport, LineReader

_SERIES = re.compile(
    r"""\s*["']?((?:vllm|sglang|trtllm)[:_])?([a-z_]+?)(_total)?(\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?["']?(?:\s*(?:\||=>|,)\s*|\s+)"""
    r"""["']?([-+]?[0-9][0-9.eE+-]*|NaN)["']?""")  # fmt: skip
_OBJECT = re.compile(r"(?:Counter|Gauge|Vector|Metric)\(name='vllm:([a-z_]+?)(?:_total)?'.*?values?=(\[[^\]]*\]|[-+0-9.eE]+)\)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_COUNTERS = ("spec_decode_num_drafts", "spec_decode_num_draft_tokens", "spec_decode_num_accepted_tokens",
             "spec_decode_num_accepted_tokens_per_pos", "generation_tokens")  # fmt: skip
_GAUGES = ("spec_accept_length", "avg_spec_accept_length")


class Metrics(LineReader):
    """Series summed over engines at their last value; a counter that falls was started anew and counts on."""

    marks = (b"spec_decode", b"generation_tokens", b"spec_accept_length", b"spec_verify_calls")

    def __init__(self, report: AcceptanceReport) -> None:
        super().__init__(report)
        self.start()

    def start(self) -> None:
        self.last: dict[str, dict[str, float]] = {}
        self.before: dict[str, dict[str, float]] = {}
        self.lengths: list[float] = []

    def line(self, text: str) -> None:
        if text.lstrip().startswith("#"):
            return
        for found in _OBJECT.finditer(text):
            values = [float(part) for part in found[2].strip("[]").split(",") if part.strip()]
            places = [f'{{position="{place}"}}' for place in range(len(values))] if found[2].startswith("[") else [""]
            for place, value in zip(places, values, strict=True):
                self.value(found[1], place, value)
        series = _SERIES.match(text)
        if series and series[5] != "NaN":
            self.value(series[2], series[4] or "", float(series[5]))

    def document(self, data: Any) -> bool:
        """Whether this is an answer of Prometheus' HTTP API, which is then taken in."""
        result = data.get("data", {}) if isinstance(data, dict) and data.get("status") == "success" else {}
        rows = result.get("result") if isinstance(result, dict) else None
        if not isinstance(rows, list):
            return False
        for row in rows:
            labels = row.get("metric") if isinstance(row, dict) else None
            if isinstance(labels, dict):
                name = re.sub(r"^(vllm|sglang|trtllm)[:_]|_total$", "", str(labels.get("__name__", "")))
                text = "{" + ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()) if key != "__name__") + "}"
                for value in _samples(row):
                    self.value(name, text, value)
        return True

    def value(self, name: str, labels: str, value: float) -> None:
        """One sample of one series."""
        if name in _GAUGES:
            if value >= 1 and 'engine_type="draft"' not in labels:
                self.lengths.append(value)
            return
        if name in ("spec_decode_drafted_tokens", "spec_decode_draft_tokens", "spec_decode_accepted_tokens"):
            self.report.refuse("TensorRT-LLM token counters")
        if name not in _COUNTERS:
            return
        series = self.last.setdefault(name, {})
        if value < series.get(labels, 0):
            done = self.before.setdefault(name, {})
            done[labels] = done.get(labels, 0) + series[labels]
        series[labels] = value

    def finish(self) -> None:
        if self.lengths:
            source = self.report.source("SGLang Prometheus gauges")
            for length in self.lengths:
                source.add(0, 1, 0, length - 1)
            self.report.note("SGLang's gauges show the last interval only; every sample counts the same")
        whole = {name: {key: value + self.before.get(name, {}).get(key, 0) for key, value in found.items()}
                 for name, found in self.last.items()}  # fmt: skip
        self.start()
        total = {name: sum(found.values()) for name, found in whole.items()}
        rounds, accepted = total.get("spec_decode_num_drafts", 0), total.get("spec_decode_num_accepted_tokens", 0)
        if rounds:
            rates = [count / rounds for count in _by_position(whole.get("spec_decode_num_accepted_tokens_per_pos", {}))]
            self.report.source("vLLM Prometheus counters").add(0, rounds, total.get("spec_decode_num_draft_tokens", 0), accepted, rates)
            self.report.saw_hits(total.get("generation_tokens", 0), rounds, accepted)


def _samples(row: Mapping[str, Any]) -> Iterator[float]:
    values = row.get("values") if isinstance(row.get("values"), list) else [row.get("value")]
    for pair in values or ():
        if isinstance(pair, list) and len(pair) == 2:
            try:
                yield float(pair[1])
            except (TypeError, ValueError):
                continue


def _by_position(series: Mapping[str, float]) -> list[float]:
    places: dict[int, float] = {}
    for labels, value in series.items():
        place = dict(_LABEL.findall(labels)).get("position", "")
        if place.isdecimal() and int(place) < POSITIONS:
            places[int(place)] = places.get(int(place), 0) + value
    return [places.get(k, 0) for k in range(max(places) + 1)] if places else []


READERS = (Metrics,)
