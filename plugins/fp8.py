"""FP8 weights and activations (W8A8): half the bytes of BF16, and arithmetic at the GPU's FP8 rate."""

from scenario import Column, Method, hookimpl


@hookimpl
def scenario_methods():
    yield Method(
        name="fp8",
        title="FP8 weights and activations",
        doc="Weights and activations in 8-bit floating point, so that passes are timed at the FP8 rate. GPUs without FP8 arithmetic "
        "cannot run it: such rows have no speed.",
        source="FP8 formats for deep learning, arXiv:2209.05433",
        columns={
            "weight_bits": Column("8", "bit", "Scales are per tensor or channel and not counted."),
            "peak_tflops": Column("coalesce(gpu_fp8_tflops, gpu_bf16_tflops)", "TFLOP/s",
                                  "The FP8 rate; where there is none the row is not supported."),
            "supported": Column("0 if is_blank(gpu_fp8_tflops) else 1", "", "Whether the GPU has FP8 arithmetic."),
        },
    )  # fmt: skip
