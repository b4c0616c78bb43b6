"""Medusa: extra heads on the target's last hidden state guess several positions at once, verified as a tree."""

from scenario import Column, Method, Parameter, hookimpl

MEDUSA = "Cai et al. 2024, arXiv:2401.10774"


@hookimpl
def scenario_methods():
    yield Method(
        name="medusa",
        title="Medusa heads",
        doc="gamma heads guess the next gamma positions in one go; a tree of their best guesses is verified.",
        source=MEDUSA,
        parameters={
            "alpha": Parameter(0.6, 0, 1, "", "Chance that the tree holds the right token at a depth, given that it did before.",
                               "Gives 2.31 tokens a round with 4 heads; Spec-Bench measures 2.32 for Vicuna-7B"),
            "gamma": Parameter(4, 0, 16, "tokens", "Heads, which is the depth of the tree.", f"{MEDUSA}, section 2.1", "integer"),
            "acceptance": Parameter(None, doc="Acceptance profile by depth; takes the place of alpha.", kind="profile"),
            "nodes": Parameter(64, 1, 1024, "tokens", "Nodes of the tree that is verified.", f"{MEDUSA}, section 3.3.1",
                               "integer"),
            "tree": Parameter(None, doc="Tree that is verified; takes the place of nodes and alpha.", kind="tree", quiet=True),
            "shared_head": Parameter(0, doc="1 when the heads end in the target's LM head instead of a vocabulary table each.",
                                     kind="flag", quiet=True),
        },
        columns={
            "rows_per_sequence": Column("tree_rows(tree, gamma) + 1 if not is_blank(tree) else nodes + 1 if gamma > 0 else 1", "rows",
                                        "Every node of the tree is a row to verify."),
            "tokens_per_round": Column("tree_tokens(tree, gamma) if not is_blank(tree) else chain_tokens(acceptance, alpha, gamma)", "tokens",
                                       "One token per depth that the tree holds, and the bonus."),
            "draft_ms": Column("draft_pass_ms(gamma * hidden * hidden, (min(gamma, 1) if shared_head > 0 else gamma) * embedding_params, 0)", "ms",
                               "All heads are read once: a square layer and a vocabulary table each.", source=MEDUSA),
            "draft_weight_gb": Column("gamma * (hidden * hidden + (0 if shared_head > 0 else embedding_params)) * 16 / 8e9", "GB",
                                      "The heads in BF16."),
        },
    )  # fmt: skip
