"""What readers of benchmark entries share: numbers, reasons for leaving one out, signs of speculative decoding."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
Said = dict[str, Any]
"""What an entry says, under the names of :class:`~scenario.evidence.measurements.Measurement`; ``length`` where it drafted."""


@dataclass(frozen=True)
class EntryKind:
    """One kind of entry: its name, whether an entry is of it, and what it says."""

    name: str
    fits: Callable[[Row], bool]
    read: Callable[[Row], Said]


class LeftOut(Exception):
    """Why an entry is no measurement that can be used."""


def number(row: Row, name: str, default: float | None = None) -> float:
    """A number of an entry, which is needed unless there is a default."""
    said = row.get(name)
    if said in (None, "") and default is not None:
        return default
    return finite(name, row[name])


def finite(name: str, said: Any) -> float:
    """A number that can be used. Raises :class:`LeftOut`."""
    try:
        value = float(said)
    except (TypeError, ValueError, OverflowError):
        raise LeftOut(f"{name} is no number: {said!r}") from None
    if not math.isfinite(value):
        raise LeftOut(f"{name} is no number that can be used: {said!r}")
    return value


def part(row: Row, *names: str) -> Row:
    """A mapping inside an entry, empty where there is none. Raises :class:`LeftOut` where something else is there."""
    for name in names:
        found = row.get(name)
        if found is not None and not isinstance(found, Mapping):
            raise LeftOut(f"it is not as the format has it: {name} is no mapping")
        row = found or {}
    return row


def first(row: Row, *names: str) -> Any:
    """The first of these that says something."""
    return next((row[name] for name in names if row.get(name) not in (None, "", "null", "None")), None)


_DRAFTS = re.compile(r"(?i)specul|spec_dec|spec_accept|draft|accept(?:ance)?[ _](?:len|rate)|^mtp$|eagle|medusa|num_nextn|decoding_stats")
_OFF = ("", "none", "null", "false", "off", "0", "vanilla", "no")


def drafted(row: Any, depth: int = 0) -> str:
    """The key that shows that an entry was measured with speculative decoding; empty where none does."""
    if depth > 6 or not isinstance(row, dict | list):
        return ""
    if isinstance(row, list):
        return next((found for item in row[:4] if (found := drafted(item, depth + 1))), "")
    if "speculative_algorithm" in row:  # decides: the settings beside it have defaults
        return "speculative_algorithm" if _says("", row["speculative_algorithm"]) else ""
    for key, value in row.items():
        if _DRAFTS.search(str(key)) and _says(key, value):
            return str(key)
    return next((found for value in row.values() if (found := drafted(value, depth + 1))), "")


def _says(key: str, value: Any) -> bool:
    if isinstance(value, bool | None.__class__):
        return bool(value)
    if isinstance(value, int | float):
        return value > 1 if "len" in str(key) else value > 0
    if isinstance(value, str):
        return value.strip().lower() not in _OFF
    if isinstance(value, Mapping):
        return any(_says(key, inner) for inner in value.values())
    return bool(value)


def length_of(row: Row) -> float:
    """Tokens per round of an entry that drafted; 0 where it does not say."""
    for name in ("spec_decode_acceptance_length", "accept_length", "acceptance_length"):
        value = row.get(name)
        if isinstance(value, Mapping):
            value = first(value, "avg", "average", "mean")
        if isinstance(value, int | float) and value > 1:
            return float(value)
    stats = row.get("decoding_stats")
    return length_of(stats) if isinstance(stats, Mapping) else 0.0


CHUNKED = 1.25
"""Time between chunks over time per token from which on chunks hold several tokens."""


def several_tokens(itl_ms: float, tpot_ms: float) -> bool:
    """Whether chunks held several tokens each, as with drafts or where the engine sends only every few tokens."""
    return itl_ms > CHUNKED * tpot_ms > 0


FORMATS = {
    "fp8": ("fp8", "fp8"), "fp8_block_scales": ("fp8-block", "fp8"), "nvfp4": ("nvfp4", "fp4"), "fp4": ("nvfp4", "fp4"),
    "modelopt_fp4": ("nvfp4", "fp4"), "modelopt": ("fp8", "fp8"), "mxfp4": ("mxfp4", "bf16"), "w4a16_awq": ("int4", "bf16"),
    "w4a16_gptq": ("int4", "bf16"), "w4a16_mxfp4": ("mxfp4", "bf16"), "awq": ("int4", "bf16"), "awq_marlin": ("int4", "bf16"),
    "w8a16": ("int8", "bf16"), "w8a8_int8": ("int8", "int8"), "w8a8_sq_per_channel": ("int8", "int8"), "w8a8_fp8": ("fp8", "fp8"),
    "int8": ("int8", "bf16"), "bf16": ("bf16", "bf16"), "fp16": ("bf16", "bf16"), "none": ("", ""), "": ("", ""), "no_quant": ("", ""),
}  # fmt: skip
"""What engines call a checkpoint's quantization: format of the weights and of the activations; empty: not quantized, or not said."""


def quantization(said: Any) -> Said:
    """Weights and activations of what an engine calls the quantization; nothing where it says none."""
    name = "" if said is None else str(said).strip().lower().rpartition(".")[2]
    if name not in FORMATS:
        return {"asked": f"quantization {said} says no format of the weights"}
    weights, activations = FORMATS[name]
    return {"weights": weights, "activations": activations} if weights else {}
