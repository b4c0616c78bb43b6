"""TensorRT-LLM's iteration statistics: one JSON object a line, or a list of them, as its /metrics endpoint answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scenario.evidence.acceptance.tally import LineReader


class Iterations(LineReader):
    """``specDecodingStats`` of each iteration; accepted tokens leave the bonus token out."""

    marks = (b"specDecodingStats",)

    def line(self, text: str) -> None:
        start = min((place for place in (text.find("{"), text.find("[{")) if place >= 0), default=-1)
        try:
            self.document(json.JSONDecoder().raw_decode(text[start:])[0] if start >= 0 else None)
        except ValueError:
            return

    def document(self, data: Any) -> bool:
        """Whether there are iterations in here, which are then taken in."""
        rows = [row for row in (data if isinstance(data, list) else [data]) if isinstance(row, dict)]
        found = [row for row in rows if isinstance(row.get("specDecodingStats"), dict)]
        for row in found:
            self.iteration(row, row["specDecodingStats"])
        return bool(found)

    def iteration(self, row: Mapping[str, Any], stats: Mapping[str, Any]) -> None:
        """With attention data parallelism every rank reports the same; only the first counts."""
        if row.get("attentionDpRank") not in (None, 0):
            return
        if "draftOverhead" in stats:
            self.report.refuse("TensorRT-LLM draftOverhead")
        try:
            rounds, drafted, accepted = (float(stats.get(name) or 0) for name in
                                         ("numRequestsWithDraftTokens", "numDraftTokens", "numAcceptedTokens"))  # fmt: skip
            batch = int((row.get("inflightBatchingStats") or {}).get("numGenRequests") or row.get("numActiveRequests") or rounds)
        except (AttributeError, TypeError, ValueError):
            return
        if rounds > 0:
            self.report.source("TensorRT-LLM iteration statistics").add(batch, rounds, drafted, accepted)


READERS = (Iterations,)
