"""Memory of training a whole model, or LoRA adapters beside frozen weights. Active when ``training_bytes`` is given."""

from __future__ import annotations

from scenario.model.optional_part import Feature
from scenario.model.spec import Column, Parameter

_ADAM = "Mixed-precision Adam: Rajbhandari et al. 2020, arXiv:1910.02054, section 3.1 (2 + 2 + 4 + 4 + 4 bytes)."
_LORA = "LoRA: arXiv:2106.09685; the frozen weights stay in BF16."

FEATURE = Feature(
    "training", "Memory of weights, gradients and optimizer in training; activations are left out.",
    inputs={"training_bytes": Parameter(16, 2, 64, "bytes", "Bytes that training holds per trained parameter: weight and gradient in BF16, "
                                        "master copy and two moments of Adam in FP32.", source=_ADAM)},
    columns={
        "training_gb": Column("params * training_bytes / 1e9", "GB", "Training every parameter.", source=_ADAM),
        "frozen_gb": Column("params * 16 / 8e9", "GB", "Frozen weights in BF16, beside which adapters are trained.", source=_LORA),
        "lora_attention_state_gb": Column("lora_attention_params * training_bytes / 1e9", "GB",
                                          "Training state of LoRA adapters on the attention matrices.", source=_LORA),
        "lora_all_state_gb": Column("lora_all_params * training_bytes / 1e9", "GB",
                                    "Training state of LoRA adapters on attention and feed-forward matrices.", source=_LORA),
        "lora_training_gb": Column("frozen_gb + lora_all_state_gb", "GB", "Training LoRA adapters on all of these matrices.", source=_LORA),
    },
)  # fmt: skip
