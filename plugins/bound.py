"""The bound: a pass takes at least its memory time and at least its compute time."""

from scenario import TimeModel, hookimpl


@hookimpl
def scenario_time_models():
    yield TimeModel(
        name="bound",
        title="Roofline bound",
        doc="The larger of reading weights and KV cache once and of the arithmetic; a lower bound on the time.",
        formula="max((weight_gb + kv_gb) / (gpu_bandwidth_tb_s * gpus * mbu),"
        " rows * flops_per_token / (peak_tflops * gpus * mfu * 1e9))",
        source="Roofline: Williams, Waterman, Patterson 2009, doi:10.1145/1498765.1498785.",
    )
