"""Acceptance inside JSON: benchmark results, answers of servers, iteration statistics, Prometheus' HTTP API."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from scenario.evidence.acceptance.printed import add_block
from scenario.evidence.acceptance.tally import AcceptanceReport
from scenario.evidence.acceptance.vllm import add_histogram

MARKS = (b"spec_decode_", b"accept_length", b"decoding_stats", b"acceptance_length", b"spec_verify_ct", b"draft_n_accepted",
         b"acceptance_histogram", b"specDecodingStats", b'"resultType"')  # fmt: skip
"""Bytes of which a JSON text about drafts has at least one."""
_DEEPEST = 12

Row = Mapping[str, Any]


def take(data: Any, report: AcceptanceReport) -> bool:
    """Whether there was anything about drafts in a JSON value, which is then taken in."""
    taken = False
    for row in _dicts(data, 0):
        for key, read in _KINDS.items():
            if row.get(key) not in (None, ""):
                try:
                    taken = read(row, report) or taken
                except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError):
                    report.note(f"an entry with {key} is not laid out as it should be, and is passed over")
    return taken


def _dicts(data: Any, depth: int) -> Iterator[Row]:
    if depth > _DEEPEST:
        return
    if isinstance(data, dict):
        yield data
    for part in data.values() if isinstance(data, dict) else data if isinstance(data, list) else ():
        if isinstance(part, dict | list):
            yield from _dicts(part, depth + 1)


def _vllm(row: Row, report: AcceptanceReport) -> bool:
    names = {"length": "acceptance_length", "rounds": "num_drafts", "drafted": "draft_tokens", "accepted": "accepted_tokens"}
    block = {name: float(row.get(f"spec_decode_{key}") or 0) for name, key in names.items()}
    block["batch"] = float(row.get("max_concurrency") or 0)
    add_block(report, block, [float(rate) for rate in row.get("spec_decode_per_position_acceptance_rates") or ()])
    return True


def _sglang(row: Row, report: AcceptanceReport) -> bool:
    length = float(row["accept_length"])
    if length <= 1:
        return False
    said = row.get("server_info")
    info: Row = said if isinstance(said, dict) else {}
    source = report.source("SGLang benchmark result")
    if float(info.get("speculative_eagle_topk") or 1) > 1:
        report.refuse("SGLang draft tokens")
    elif info.get("speculative_num_draft_tokens"):
        source.depth = int(info["speculative_num_draft_tokens"]) - 1
    source.add(int(float(row.get("max_concurrency") or 0)), float(row.get("total_output_tokens") or length) / length, 0,
               float(row.get("total_output_tokens") or length) * (1 - 1 / length))  # fmt: skip
    return True


def _tensorrt(row: Row, report: AcceptanceReport) -> bool:
    stats = row["decoding_stats"]
    if not isinstance(stats, dict) or not stats.get("acceptance_length"):
        return False
    drafted, length, rate = (_mean(stats, name) for name in ("draft_lengths", "acceptance_length", "draft_token_acceptance_rate"))
    # Whether the length has the bonus token in it shows against the rate.
    accepted = min((length - 1, length), key=lambda value: abs(value - rate * drafted)) if rate and drafted else length - 1
    batch = (row.get("request_info") or {}).get("avg_num_concurrent_requests") or 0
    report.source("TensorRT-LLM benchmark report").add(round(batch), 1, drafted, max(accepted, 0))
    return True


def _mean(row: Row, name: str) -> float:
    entry = row.get(name) or 0
    return float(next((entry[key] for key in ("average", "avg", "mean") if key in entry), 0) if isinstance(entry, dict) else entry)


def _aiperf(row: Row, report: AcceptanceReport) -> bool:
    if not isinstance(row["acceptance_length"], dict) or "unit" not in row["acceptance_length"]:
        return False
    length, rate = _mean(row, "acceptance_length"), _mean(row, "draft_acceptance_rate")
    if length <= 1:
        return False
    report.source("AIPerf export").add(0, 1, (length - 1) / (rate / 100 if rate > 1 else rate) if rate else 0, length - 1)
    return True


def _sglang_answer(row: Row, report: AcceptanceReport) -> bool:
    rounds, made = float(row["spec_verify_ct"]), float(row.get("completion_tokens") or 0)
    if not rounds > 0 or made < rounds:
        return False
    report.source("SGLang request answers").add(1, rounds, 0, made - rounds)
    return True


def _llama_timings(row: Row, report: AcceptanceReport) -> bool:
    report.refuse("llama.cpp timings")
    report.source("llama.cpp requests").add_share(float(row.get("draft_n") or 0), float(row["draft_n_accepted"]))
    return True


def _histogram(row: Row, report: AcceptanceReport) -> bool:
    add_histogram(report, "vLLM request histograms", [int(count) for count in row["acceptance_histogram"]])
    return True


_KINDS: dict[str, Callable[[Row, AcceptanceReport], bool]] = {
    "spec_decode_acceptance_length": _vllm, "accept_length": _sglang, "decoding_stats": _tensorrt, "acceptance_length": _aiperf,
    "spec_verify_ct": _sglang_answer, "draft_n_accepted": _llama_timings, "acceptance_histogram": _histogram,
}  # fmt: skip
