"""What a checkpoint's quantization_config says: bits per stored weight with its scales, and what it leaves alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class StoredWeights:
    """How a checkpoint stores its weights. ``bits`` include scales and zero points; the flags say which parts have them.

    ``name`` is the nearest of the engine's number formats; ``how`` shows the arithmetic; ``problems`` is what was not understood.
    """

    bits: float
    name: str
    how: str
    attention: bool = True
    ffn: bool = True
    embeddings: bool = False
    problems: list[str] = field(default_factory=list)


def read(config: Mapping[str, Any], moe: bool) -> StoredWeights | None:
    """The stored weight type, or None when the method is not known.

    ``moe`` says that there are experts: a list that excludes attention and router then still leaves something to quantize.
    """
    method = str(config.get("quant_method") or config.get("quant_algo") or config.get("producer", {}).get("name") or "").lower()
    bits = _number(config.get("bits", config.get("w_bit")))
    group = _number(config.get("group_size", config.get("q_group_size")))
    stored: StoredWeights | None = None
    block = config.get("weight_block_size")
    if method in ("fp8", "fbgemm_fp8", "finegrained_fp8"):
        if isinstance(block, Sequence) and len(block) == 2:
            size = float(block[0]) * float(block[1])
            stored = StoredWeights(8 + 32 / size, "fp8-block", f"8 + 32 / ({block[0]} x {block[1]})")
        else:
            stored = StoredWeights(8, "fp8", "8, one scale per tensor or row")
    elif method == "mxfp4":
        stored = StoredWeights(4.25, "mxfp4", "4 + 8 / 32")
    elif method in ("awq", "gptq", "auto-round", "auto_round", "autoround") and bits:
        stored = _integer(bits, group, zero=config.get("zero_point", True) is not False or method == "gptq")
    elif method in ("compressed-tensors", "compressed_tensors"):
        stored = _compressed(config)
    elif method in ("modelopt", "modelopt_fp4", "fp8_pb_wo", "nvfp4", "fp8_static"):
        algorithm = str(config.get("quant_algo") or method).upper()
        if "NVFP4" in algorithm or "FP4" in algorithm:
            stored = StoredWeights(4.5, "nvfp4", "4 + 8 / 16")
        elif "FP8" in algorithm:
            stored = StoredWeights(8, "fp8", "8, one scale per tensor")
    elif method == "bitsandbytes":
        if config.get("load_in_4bit"):
            double = bool(config.get("bnb_4bit_use_double_quant"))
            stored = StoredWeights(4 + 8 / 64 + 32 / (64 * 256), "int4", "4 + 8 / 64 + 32 / (64 x 256)") if double else \
                StoredWeights(4 + 32 / 64, "int4", "4 + 32 / 64")  # fmt: skip
        elif config.get("load_in_8bit"):
            stored = StoredWeights(8, "int8", "8, one scale per row")
    if stored is None:
        return None
    stored.embeddings = config.get("lm_head") is True
    _exclusions(stored, config, moe)
    return stored


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _integer(bits: float, group: float, zero: bool) -> StoredWeights:
    name = "int4" if bits < 8 else "int8"
    if group <= 0:
        return StoredWeights(bits, name, f"{bits:g}, one scale per column")
    extra = bits if zero else 0
    return StoredWeights(bits + (16 + extra) / group, name, f"{bits:g} + (16 + {extra:g}) / {group:g}")


def _compressed(config: Mapping[str, Any]) -> StoredWeights | None:
    found: list[StoredWeights] = []
    for part in (config.get("config_groups") or {}).values():
        weights = part.get("weights") or {} if isinstance(part, Mapping) else {}
        bits, group = _number(weights.get("num_bits")), _number(weights.get("group_size"))
        if not bits:
            continue
        if weights.get("type") == "float" and bits < 8:
            found.append(StoredWeights(4.5, "nvfp4", "4 + 8 / 16") if group <= 16 else StoredWeights(4.25, "mxfp4", "4 + 8 / 32"))
        elif weights.get("type") == "float":
            size = weights.get("block_structure")
            if isinstance(size, Sequence) and len(size) == 2 and not isinstance(size, str):
                found.append(StoredWeights(8 + 32 / (float(size[0]) * float(size[1])), "fp8-block", f"8 + 32 / ({size[0]} x {size[1]})"))
            else:
                found.append(StoredWeights(8, "fp8", "8, one scale per tensor or row"))
        else:
            found.append(_integer(bits, group, zero=weights.get("symmetric") is False))
    if not found:
        return None
    if len({item.bits for item in found}) > 1:
        found[0].problems.append("quantization_config: groups of different formats; the first one is taken for all")
    return found[0]


_HARMLESS = re.compile(
    r"lm_head|embed|gate$|gate\b(?!_)|router|norm|vision|visual|audio|multi_modal|multimodal|mm_|projector|e_score|"
    r"mlp1|conv1d|mtp|eh_proj|a_log|dt_bias|rotary", re.IGNORECASE)  # fmt: skip


def _exclusions(stored: StoredWeights, config: Mapping[str, Any], moe: bool) -> None:
    listed: list[str] = []
    for key in ("modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules", "llm_int8_skip_modules"):
        value = config.get(key)
        listed += [str(item) for item in value] if isinstance(value, Sequence) and not isinstance(value, str) else []
    unclear = []
    for item in (re.sub(r"(\.?\*|\$)+$", "", item) for item in listed):
        if re.search(r"(self_attn|linear_attn|attention)(?!.*norm)|\.attn|mixer", item):
            stored.attention = False
        elif not re.search(r"(gate|router)$", item) and re.search(r"shared_expert|dense|\bmlp\b(?!.*\bexperts)", item):
            stored.ffn = False
        elif not _HARMLESS.search(item):
            unclear.append(item)
    if stored.name == "mxfp4" and moe:
        stored.ffn = False  # only experts are converted
    if unclear:
        stored.problems.append("quantization_config leaves out " + ", ".join(unclear[:5]) + ": counted as quantized")
    layers = {found.group(1) for item in listed if (found := re.search(r"layers\.(\d+)\.", item))}
    if layers and not (stored.attention and stored.ffn):
        stored.problems.append(f"quantization_config leaves out parts of {len(layers)} layers: counted as left out in all")
