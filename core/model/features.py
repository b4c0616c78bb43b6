"""Parts of the model that a table asks for by giving one of their inputs; other tables do not carry their columns.

A feature brings inputs, columns and functions of its own, and may put others in place of shared ones: the formulas stay one
text each, and the workbook of a table that gives no ``tp`` has no communication columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from scenario.model import images, parallel, prefill, training
from scenario.model.optional_part import Feature
from scenario.model.spec import Column, Function, Parameter

PUBLISHED = "published"


def _stored() -> Feature:
    return Feature(
        "published", "Weights as the published checkpoint stores them.", values={"weights": {PUBLISHED}},
        columns={
            "weights_bits": Column(f'stored_bits if weights == "{PUBLISHED}" else weights_format_bits', "bit",
                                   "Bits per quantized parameter as it is stored, scales included."),
            "kept_16bit_params": Column(f'kept_params if weights == "{PUBLISHED}" else 0', "parameters",
                                        "Parameters that the checkpoint keeps in 16 bits, beside the quantized ones."),
        },
        functions=(
            Function("as_stored_gb", ("count",), "(max(count - kept_16bit_params, 1) * weights_bits + kept_16bit_params * 16) / 8e9",
                     "Bytes of this many parameters as they are stored, in GB."),
            Function("packed_gb", ("count",),
                     "(max(count - unquantized_params - kept_16bit_params, 1) * weight_bits + unquantized_params * weights_bits"
                     " + kept_16bit_params * 16) / 8e9", "Bytes of this many parameters as the method stores them, in GB."),
            Function("kept_16bit", (), "unquantized_params + kept_16bit_params",
                     "Parameters that stay in 16 bits beside quantized ones."),
        ),
    )  # fmt: skip


_FLOATS = " or ".join(f'weights == "{name}"' for name in ("fp8", "fp8-block", "fp8-token", "mxfp4", "nvfp4", PUBLISHED))
_INTEGERS = " or ".join(f'weights == "{name}"' for name in ("int8", "int8-group", "int4", PUBLISHED))
_FOURS = " or ".join(f'weights == "{name}"' for name in ("mxfp4", "nvfp4", PUBLISHED))


def _activations() -> Feature:
    return Feature(
        "activations", "Arithmetic in FP8, INT8 or FP4: at the chip's rate for it, and refused where there is none.",
        inputs={"activations": Parameter("bf16", kind="choice", choices=("bf16", "fp8", "int8", "fp4"),
                                         doc="Format of the activations: with bf16, weights of any format are expanded and computed "
                                         "at the BF16 rate; with others the chip's rate for that format counts.")},
        columns={
            "format_tflops": Column('gpu_bf16_tflops if activations == "bf16" else gpu_fp8_tflops if activations == "fp8"'
                                    ' else gpu_int8_tops if activations == "int8" else gpu_fp4_tflops', "TFLOP/s",
                                    "The chip's dense rate for the activations' format; blank without one."),
            "peak_tflops": Column("coalesce(format_tflops, gpu_bf16_tflops)", "TFLOP/s",
                                  "Peak dense rate of the format the arithmetic is in."),
        },
        refusals=(
            ("is_blank(format_tflops)",
             '"refused: this GPU has no FP8 rate" if activations == "fp8" else "refused: this GPU has no INT8 rate"'
             ' if activations == "int8" else "refused: this GPU has no FP4 rate"'),
            (f'not (activations == "bf16" or (activations == "fp8" and ({_FLOATS})) or (activations == "int8" and ({_INTEGERS}))'
             f' or (activations == "fp4" and ({_FOURS})))', '"refused: activations need weights of their kind, as small or smaller"'),
        ),
    )  # fmt: skip


AUTO_SIZES = tuple(2**power for power in range(11))


def _auto() -> Feature:
    steps = "".join(f"{size} if memory_gb <= {size} * memory_per_gpu_gb else " for size in AUTO_SIZES[:-1])
    return Feature(
        "auto", "The smallest power of two of GPUs that holds the row.", values={"gpus": {0.0}},
        columns={
            "memory_per_gpu_gb": Column("gpu_memory_gb * memory_utilization", "GB", "Memory that one GPU offers."),
            "gpus_needed": Column(f"{steps}{AUTO_SIZES[-1]}", "GPUs", f"Smallest power of two of GPUs that holds the row, "
                                  f"at most {AUTO_SIZES[-1]}."),
        },
        finish={"gpus": "asked if asked >= 1 else gpus_needed"},
    )  # fmt: skip


FEATURES: tuple[Feature, ...] = (_stored(), _activations(), _auto(), parallel.FEATURE, prefill.FEATURE, images.FEATURE, training.FEATURE)
"""Every feature, in the order in which they act on one another."""
INPUTS: dict[str, Parameter] = {name: parameter for feature in FEATURES for name, parameter in feature.inputs.items()}
COLUMNS: dict[str, Column] = {name: column for feature in FEATURES for name, column in {**feature.changes, **feature.columns}.items()}
"""The columns of all features, those that replace a shared one included."""
SCALARS: dict[str, Parameter] = {name: parameter for feature in FEATURES for name, parameter in feature.scalars.items()}


def active(given: Iterable[str], values: Mapping[str, Collection[float | str | None]]) -> list[Feature]:
    """The features that a table uses: ``given`` are the inputs that it gives, ``values`` what it gives them."""
    names = set(given)
    return [feature for feature in FEATURES
            if names & set(feature.inputs) or any(set(values.get(name, ())) & set(wanted) for name, wanted in feature.values.items())]  # fmt: skip
