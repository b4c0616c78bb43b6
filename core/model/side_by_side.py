"""What other formats and numbers of GPUs would make of a row, beside what it has itself. Worked out where mentioned."""

from __future__ import annotations

from scenario.model.entities import FORMATS
from scenario.model.spec import Column

SIZES = tuple(2**power for power in range(11))
"""Numbers of GPUs that are tried: powers of two."""
_STEPS = " else ".join(f"{size} if memory_gb <= {size} * gpu_memory_gb * memory_utilization" for size in SIZES)


def _formats() -> dict[str, Column]:
    found = {}
    for name in ("bf16", "fp8", "int4"):
        found[f"weight_{name}_gb"] = Column(
            f"params * {FORMATS[name][0]:g} / 8e9", "GB", f"All weights in {name}: {FORMATS[name][1]}."
        )
    for name in ("bf16", "fp8"):
        text = f"(full_layers * kv_width + window_layers * window_kv_width) * {FORMATS[name][0]:g} / 8"
        found[f"kv_{name}_bytes_per_token"] = Column(
            text, "bytes", f"KV cache of one token in {name}, all layers that keep one."
        )
    return found


ASKED: dict[str, Column] = {
    **_formats(),
    "fitting_gpus": Column(f"{_STEPS} else blank", "GPUs", "Smallest power of two of GPUs that holds what this row holds, its memory "
                           f"spread evenly; blank when {SIZES[-1]} do not."),
}  # fmt: skip
