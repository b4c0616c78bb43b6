from scenario import Column, Method, hookimpl


@hookimpl
def scenario_methods():
    yield Method("m2", doc="d", source="s", columns={"pass_ms": Column("0.1 * baseline_ms", "ms", "d"), "draft_ms": Column("pass_ms * 2", "ms", "d")})
