"""Same helper name in a quantization and in a draft; same parameter with other kind/unit."""
from scenario import Column, Method, Parameter, hookimpl


@hookimpl
def scenario_methods():
    yield Method("qz", doc="d", source="s", parameters={"window": Parameter(64, 1, 1000, "weights", "w", kind="integer")}, columns={"weight_bits": Column("overhead + 4","bit","d"), "overhead": Column("32/window", "bit", "bits of overhead")})
    yield Method("dr", doc="d", source="s", parameters={"window": Parameter(0.5, 0, 1, "ms", "w")}, columns={"draft_ms": Column("overhead * 2 * batch","ms","d"), "overhead": Column("window", "ms", "fixed overhead")})
