"""EAGLE-3: a head over three hidden states of the target, with a vocabulary of its own, drafts a chain or a tree."""

from scenario import Column, Method, Parameter, hookimpl

EAGLE3 = "Li et al. 2025, arXiv:2503.01840"
BENCH = "https://specdecode-bench.github.io/"


@hookimpl
def scenario_methods():
    # The first layer reads the embedding beside the hidden state, so that q, k and v are twice as wide; three hidden states are fused.
    body = "block_active_params + attention_params / 2 + hidden * kv_heads * head_dim + 3 * hidden * hidden"
    yield Method(
        name="eagle-3",
        title="EAGLE-3 head",
        doc="One wide decoder layer over the target's low, middle and high features drafts gamma tokens through a reduced LM head.",
        source=EAGLE3,
        parameters={
            "alpha": Parameter(0.65, 0, 1, "", "Chance that a draft token is accepted, given those before it were.",
                               f"{BENCH}: 0.61 to 0.71 in chains of 3 on Llama-3.1-8B"),
            "gamma": Parameter(3, 0, 16, "tokens", "Draft tokens per round, or the depth of the tree.", f"{EAGLE3}, tables 3 and 5", "integer"),
            "acceptance": Parameter(None, doc="Acceptance profile: its name, or marginal rates per position; takes the place of alpha.",
                                    kind="profile"),
            "head_vocab": Parameter(32000, 1, 1e7, "tokens", "Vocabulary of the draft's own LM head; at most the model's.",
                                     "draft_vocab_size of the published EAGLE-3 heads for Llama-3.1-8B", "integer"),
            "tree": Parameter(None, doc="Draft tree verified instead of a chain; gamma is its depth.", kind="tree", quiet=True),
            "draft_cost": Parameter(
                None, 0, 10, "", "Time of one draft pass over that of one target step.",
                f"0.107 to 0.111 on 8B, {BENCH} figure 4; derived from the layer, the fusion and the reduced LM head unless typed",
                derive=f"draft_forward_ms({body}, {body}, min(head_vocab, vocab) * hidden, 1, 16, gpus, cache_gb_of(kv_width))"
                " / baseline_ms"),
        },
        columns={
            "rows_per_sequence": Column("tree_rows(tree, gamma) + 1 if not is_blank(tree) else gamma + 1", "rows",
                                        "The drafts and the token before them."),
            "tokens_per_round": Column("tree_tokens(tree, gamma) if not is_blank(tree) else chain_tokens(acceptance, alpha, gamma)",
                                       "tokens", "A chain of drafts, or a tree of them."),
            "draft_ms": Column("gamma * draft_cost * baseline_ms", "ms", "One pass of the head per token."),
            "draft_weight_gb": Column(f"({body} + min(head_vocab, vocab) * hidden) * 16 / 8e9", "GB",
                                      "The layer, the fusion matrix and the LM head in BF16."),
            "draft_kv_bytes_per_token": Column("kv_width * kv_bits / 8", "bytes", "The cache of one layer."),
        },
    )  # fmt: skip
