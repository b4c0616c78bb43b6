"""Measured pass times: T(m) as points of the table, read linearly between them."""

from collections.abc import Iterator

from scenario import Column, Parameter, TimeModel, hookimpl


@hookimpl
def scenario_time_models() -> Iterator[TimeModel]:
    yield TimeModel(
        name="measured",
        title="Measured",
        doc="Points (token rows, ms) given under measured: for a model and a GPU, linear between them; the nearest slope goes on "
        "beyond them, and the row says extrapolated. A row without points has no time.",
        formula="measured_ms(rows)",
        parameters={"error": Parameter(0.05, 0, 1, "", "Relative error of the measured times.", "what repeated runs of a server differ by")},
        columns={
            "prefill_ms": Column("measured_ms(isl)", "ms"),
            "basis": Column('"no measurement" if measured_high < 1 else "measured" if verify_rows >= measured_low'
                            ' and verify_rows <= measured_high and batch >= measured_low'
                            ' and abs(weight_bits - weights_bits) < 1e-9 else "extrapolated"'),
            "time_error": Column("error"),
            "speedup_error": Column("error"),
        },
        source="the table's own points",
    )  # fmt: skip
