"""Measured pass times: T(m) as points of the table, read linearly between them."""

from collections.abc import Iterator

from scenario import Column, Parameter, TimeModel, hookimpl

INSIDE = (
    "verify_rows >= measured_low and verify_rows <= measured_high and batch >= measured_low and abs(weight_bits - weights_bits) < 1e-9"
)
"""Whether both passes of a row, the verify pass and vanilla decoding's, lie within what was measured, with weights as measured."""


@hookimpl
def scenario_time_models() -> Iterator[TimeModel]:
    yield TimeModel(
        name="measured",
        title="Measured",
        doc="Points (token rows, ms) given under measured: for a model and a GPU, linear between them; the nearest slope goes on "
        "beyond them, and the row says extrapolated: no error is known there. A row without points has no time, and its status says so.",
        formula="measured_ms(rows)",
        communication="0",
        parameters={"error": Parameter(0.05, 0, 1, "", "Relative error of times between the measured points; beyond them none is known.", "what repeated runs of a server differ by")},
        columns={
            "prefill_ms": Column("measured_ms(isl)", "ms"),
            "unsized_tp": Column("gpus", "GPUs", "What was measured was placed somehow: memory is that of tensor parallelism."),
            "basis": Column(f'"no measurement" if measured_high < 1 else "measured" if {INSIDE} else "extrapolated"'),
            "time_error": Column(f"error if {INSIDE} else blank"),
            "speedup_error": Column(f"error if {INSIDE} else blank"),
        },
        source="the table's own points",
    )  # fmt: skip
