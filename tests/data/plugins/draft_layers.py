"""A block-diffusion drafter whose depth is a parameter."""
from scenario import Column, Method, Parameter, hookimpl


@hookimpl
def scenario_methods():
    yield Method("dflash", title="DFlash", doc="One pass drafts.", source="x",
        parameters={"alpha": Parameter(0.8,0,1,doc="a"), "gamma": Parameter(8,0,16,"tokens","g",kind="integer"), "draft_layers": Parameter(5, 1, 100, "layers", "Layers of the drafter.", kind="integer")},
        columns={"rows_per_sequence": Column("gamma + 1","rows","r"), "tokens_per_round": Column("geometric(alpha, gamma)","tokens","t"),
                 "draft_ms": Column("min(gamma, 1) * draft_layers / layers * baseline_ms", "ms","d")})
