"""EAGLE: a one-layer head over the target's hidden states drafts a chain of tokens."""

from scenario import Column, Method, Parameter, Preset, hookimpl

EAGLE = "Li et al. 2024, arXiv:2401.15077"
# Name, rates by position (conditional: each given that those before were accepted), drafts, source.
MEASURED = (
    ("eagle-vicuna-7b", "conditional:0.79/0.74/0.72/0.73/0.67", 5,
     "Li et al. 2024, arXiv:2401.15077, table 2, greedy, MT-bench, Vicuna 7B"),
    ("eagle-vicuna-13b", "conditional:0.79/0.74/0.72/0.74/0.7", 5,
     "Li et al. 2024, arXiv:2401.15077, table 2, greedy, MT-bench, Vicuna 13B"),
    ("eagle-vicuna-33b", "conditional:0.74/0.69/0.67/0.67/0.66", 5,
     "Li et al. 2024, arXiv:2401.15077, table 2, greedy, MT-bench, Vicuna 33B"),
    ("eagle-llama2-chat-7b", "conditional:0.76/0.69/0.67/0.68/0.68", 5,
     "Li et al. 2024, arXiv:2401.15077, table 2, greedy, MT-bench, LLaMA2-Chat 7B"),
    ("eagle-llama2-chat-13b", "conditional:0.77/0.69/0.69/0.7/0.71", 5,
     "Li et al. 2024, arXiv:2401.15077, table 2, greedy, MT-bench, LLaMA2-Chat 13B"),
)  # fmt: skip


@hookimpl
def scenario_methods():
    yield Method(
        name="eagle",
        title="EAGLE head",
        doc="One decoder layer and a fusion matrix draft gamma tokens, one after the other, through the target's LM head.",
        source=EAGLE,
        parameters={
            "alpha": Parameter(0.75, 0, 1, "", "Chance that a draft token is accepted, given those before it were.",
                               f"{EAGLE}, table 2: 0.74 to 0.79 at the first position"),
            "gamma": Parameter(4, 0, 16, "tokens", "Draft tokens per round.", f"{EAGLE}: chains of 5", "integer"),
            "acceptance": Parameter(None, doc="Acceptance profile: its name, or marginal rates per position; "
                                    "takes the place of alpha.", kind="profile"),
            "draft_cost": Parameter(
                None, 0, 10, "", "Time of one draft pass over that of one target step.",
                "0.107 to 0.131 on 8B, 0.05 on 70B, https://specdecode-bench.github.io/ figure 4; derived from one layer, "
                "the fusion matrix, the LM head and a launch unless typed",
                derive="draft_forward_ms(block_active_params + 2 * hidden * hidden, block_active_params + 2 * hidden * hidden,"
                " embedding_params, 1, 16, gpus, cache_gb_of(kv_width)) / baseline_ms"),
            "tree": Parameter(None, doc="Draft tree verified instead of a chain; gamma is its depth.", kind="tree", quiet=True),
        },
        columns={
            "rows_per_sequence": Column("tree_rows(tree, gamma) + 1 if not is_blank(tree) else gamma + 1", "rows",
                                        "The drafts and the token before them."),
            "tokens_per_round": Column("tree_tokens(tree, gamma) if not is_blank(tree) else chain_tokens(acceptance, alpha, gamma)",
                                       "tokens", "A chain of drafts, or a tree of them."),
            "draft_ms": Column("gamma * draft_cost * baseline_ms", "ms", "One pass of the head per token."),
            "draft_weight_gb": Column("(block_active_params + 2 * hidden * hidden) * 16 / 8e9", "GB",
                                      "One layer and the fusion matrix in BF16; the LM head is the target's."),
            "draft_kv_bytes_per_token": Column("kv_width * kv_bits / 8", "bytes", "The cache of one layer."),
        },
    )  # fmt: skip


@hookimpl
def scenario_presets():
    yield Preset(
        "eagle-llama2-chat-70b", "eagle", {"acceptance": "0.75/0.5175/0.336375/0.21528/0.1377792", "gamma": 5},
        "EAGLE on LLaMA2-Chat 70B, MT-bench, greedy: conditional rates .75 .69 .65 .64 .64 as marginal ones.",
        f"{EAGLE}, table 2",
    )  # fmt: skip
    for name, rates, drafts, source in MEASURED:
        yield Preset(name, "eagle", {"acceptance": rates, "gamma": drafts}, "Measured rates by position.", source)
