"""LayerSkip: the first layers of the target draft, all of them verify (Elhoushi et al. 2024, arXiv:2404.16710)."""

from scenario import Column, Method, Parameter, hookimpl

METHOD = Method(
    name="layerskip",
    title="LayerSkip",
    doc="The first exit_layer layers and the LM head draft gamma tokens; one pass of all layers verifies them.",
    source="Elhoushi et al. 2024, arXiv:2404.16710",
    parameters={
        "alpha": Parameter(0.7, 0, 1, doc="Chance that a draft token is accepted.", source="An assumption: measure it."),
        "gamma": Parameter(6, 0, 16, "tokens", "Draft tokens per round.", "An assumption.", "integer"),
        "exit_layer": Parameter(8, 1, 1000, "layers", "Layers that draft.", "An assumption: a quarter of 32.", "integer"),
    },
    columns={
        "rows_per_sequence": Column("gamma + 1", "rows", "The drafts and the token before them."),
        "tokens_per_round": Column("geometric(alpha, gamma)", "tokens", "The drafts accepted, and one more."),
        "draft_ms": Column("gamma * min(exit_layer / layers, 1) * step_ms", "ms", "That share of the layers per draft."),
    },
)


@hookimpl
def scenario_methods():
    yield METHOD
