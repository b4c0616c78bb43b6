"""Numbers of a GPU that look like another unit or a rate with sparsity: told, not refused, for a table may ask what if."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Values = Mapping[str, float | None]

FASTEST_TB_S = 60.0
"""More bandwidth than any accelerator has (Rubin: 22 TB/s); waferscale memories are no GPU's."""
LARGEST_GB = 1500.0
RATES = ("bf16_tflops", "fp8_tflops", "int8_tops", "fp4_tflops")
SAME = 0.02
"""Relative distance within which two numbers are the same fact."""


def remarks(values: Values, known: Iterable[tuple[str, Values]]) -> tuple[str, ...]:
    """What to tell of a GPU's numbers; ``known`` are the catalog's GPUs, whose rates are dense."""
    said = []
    bandwidth, memory = values.get("bandwidth_tb_s") or 0, values.get("memory_gb") or 0
    if bandwidth > FASTEST_TB_S:
        said.append(f"bandwidth_tb_s {bandwidth:g} is more than any GPU has; in GB/s it would be {bandwidth / 1000:g} TB/s")
    if memory > LARGEST_GB:
        said.append(f"memory_gb {memory:g} is more than any GPU has; in MiB it would be {memory * 2**20 / 1e9:.4g} GB")
    for name, other in known:
        if _same(bandwidth, other.get("bandwidth_tb_s")) and abs(memory / (other.get("memory_gb") or 1) - 1) < 5 * SAME:
            doubled = [rate for rate in RATES if _same((values.get(rate) or 0) / 2, other.get(rate))]
            if doubled:
                said.append(f"{', '.join(doubled)}: twice those of {name}, as datasheets give them with sparsity; dense rates are half")
                break
    return tuple(said)


def _same(one: float, other: float | None) -> bool:
    return bool(one and other) and abs(one / (other or 1) - 1) < SAME
