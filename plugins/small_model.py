"""Speculative decoding with a small draft model: it drafts gamma tokens, the target verifies them in one pass."""

from scenario import Column, Method, Parameter, Preset, hookimpl

LEVIATHAN = "Leviathan, Kalman, Matias 2023, arXiv:2211.17192"
# Name, alpha, draft cost (None: not published), pair of models.
PAIRS = (
    ("t5-small-for-t5-xxl-translation", 0.75, 0.02, "T5-small for T5-XXL, English to German, greedy"),
    ("t5-base-for-t5-xxl-translation", 0.8, 0.04, "T5-base for T5-XXL, English to German, greedy"),
    ("t5-large-for-t5-xxl-translation", 0.82, 0.11, "T5-large for T5-XXL, English to German, greedy"),
    ("t5-small-for-t5-xxl-summaries", 0.65, 0.02, "T5-small for T5-XXL, CNN/DM, greedy"),
    ("t5-base-for-t5-xxl-summaries", 0.73, 0.04, "T5-base for T5-XXL, CNN/DM, greedy"),
    ("t5-large-for-t5-xxl-summaries", 0.74, 0.11, "T5-large for T5-XXL, CNN/DM, greedy"),
    ("lamda-100m-for-lamda-137b", 0.61, None, "LaMDA 100M for LaMDA 137B, greedy"),
    ("lamda-2b-for-lamda-137b", 0.71, None, "LaMDA 2B for LaMDA 137B, greedy"),
    ("lamda-8b-for-lamda-137b", 0.75, None, "LaMDA 8B for LaMDA 137B, greedy"),
)  # fmt: skip


@hookimpl
def scenario_methods():
    yield Method(
        name="small-model",
        title="Small draft model",
        doc="A small model drafts one token at a time; its cost is typed (draft_cost) or follows from the named draft.",
        source=LEVIATHAN,
        parameters={
            "alpha": Parameter(0.7, 0, 1, "", "Chance that a draft token is accepted, given those before it were.",
                               f"{LEVIATHAN}, table 3: 0.53 to 0.82"),
            "gamma": Parameter(4, 0, 16, "tokens", "Draft tokens per round.", "vLLM documentation: 4 to 5", "integer"),
            "acceptance": Parameter(None, doc="Acceptance profile: its name, or marginal rates per position; "
                                    "takes the place of alpha.", kind="profile"),
            "draft": Parameter(None, doc="Draft model, by its catalog name.", kind="model"),
            "draft_cost": Parameter(
                0.1, 0, 10, "", "Time of one draft pass over that of one target step.",
                f"{LEVIATHAN}, table 4: 0.02 to 0.11; measured up to 0.375, https://specdecode-bench.github.io/",
                derive="draft_forward_ms(draft_params - draft_embedding_params - draft_lm_head_params,"
                " draft_active_params - draft_embedding_params - draft_lm_head_params, draft_embedding_params, draft_layers,"
                " draft_bits, draft_gpus, cache_gb_of(draft_layers * draft_kv_width)) / baseline_ms"),
            "draft_bits": Parameter(16, None, 32, "bit", "Bits per weight of the draft.", above=0, quiet=True),
            "draft_gpus": Parameter(None, 1, 1e6, "GPUs", "GPUs that share a pass of the draft (its own tensor-parallel size); "
                                    "blank: all.", kind="integer", derive="gpus", quiet=True),
        },
        columns={
            "rows_per_sequence": Column("gamma + 1", "rows", "The drafts and the token before them."),
            "tokens_per_round": Column("chain_tokens(acceptance, alpha, gamma)", "tokens", "A chain of drafts.",
                                       source=f"{LEVIATHAN}, equation 1"),
            "draft_ms": Column("gamma * draft_cost * baseline_ms", "ms", "One pass of the draft per token.",
                               source=f"{LEVIATHAN}, theorem 3.8"),
            "draft_weight_gb": Column("coalesce(draft_params * draft_bits / 8e9, 0)", "GB", "The draft as it is stored."),
            "draft_kv_bytes_per_token": Column("coalesce(draft_layers * draft_kv_width * kv_bits / 8, 0)", "bytes",
                                               "The draft keeps a cache of its own."),
        },
    )  # fmt: skip


@hookimpl
def scenario_presets():
    for name, alpha, cost, pair in PAIRS:
        values = {"alpha": alpha} if cost is None else {"alpha": alpha, "draft_cost": cost}
        yield Preset(name, "small-model", values, pair, f"{LEVIATHAN}, tables 3 and 4")
