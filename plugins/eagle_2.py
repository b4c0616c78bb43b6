"""EAGLE-2: the EAGLE head grows a tree whose shape follows the draft's own confidence."""

from scenario import Column, Method, Parameter, hookimpl

EAGLE2 = "Li et al. 2024, arXiv:2406.16858"


@hookimpl
def scenario_methods():
    head = "block_active_params + 2 * hidden * hidden"
    yield Method(
        name="eagle-2",
        title="EAGLE-2 dynamic tree",
        doc="gamma passes of the EAGLE head expand the most likely nodes; the best of all nodes are verified as one tree.",
        source=EAGLE2,
        parameters={
            "alpha": Parameter(0.81, 0, 1, "", "Chance that the tree holds the right token at a depth, given that it did before.",
                               "Gives 4.06 tokens a round at depth 6; arXiv:2503.01840, table 1 measures 3.33 to 5.41, mostly about 4.1"),
            "gamma": Parameter(6, 0, 16, "tokens", "Depth of the tree.", "arXiv:2503.01840, appendix A: 6", "integer"),
            "acceptance": Parameter(None, doc="Acceptance profile by depth; takes the place of alpha.", kind="profile"),
            "nodes": Parameter(60, 1, 1024, "tokens", "Nodes of the tree that is verified.",
                               "arXiv:2503.01840, appendix A: 60 for 7B and 8B, 50 for 13B, 48 for 70B", "integer"),
            "tree": Parameter(None, doc="Tree that is verified; takes the place of nodes and alpha.", kind="tree", quiet=True),
            "draft_cost": Parameter(
                None, 0, 10, "", "Time of one draft pass over that of one target step.",
                "Derived as for EAGLE; the nodes of a depth go through one pass, which memory or launches set the time of",
                derive=f"draft_forward_ms({head}, {head}, embedding_params, 1, 16, gpus, cache_gb_of(kv_width)) / baseline_ms"),
        },
        columns={
            "rows_per_sequence": Column("tree_rows(tree, gamma) + 1 if not is_blank(tree) else nodes + 1 if gamma > 0 else 1", "rows",
                                        "Every node of the tree is a row to verify."),
            "tokens_per_round": Column("tree_tokens(tree, gamma) if not is_blank(tree) else chain_tokens(acceptance, alpha, gamma)",
                                       "tokens", "One token per depth that the tree holds, and the bonus."),
            "draft_ms": Column("gamma * draft_cost * baseline_ms", "ms", "One pass of the head per depth."),
            "draft_weight_gb": Column(f"({head}) * 16 / 8e9", "GB", "One layer and the fusion matrix in BF16."),
            "draft_kv_bytes_per_token": Column("kv_width * kv_bits / 8", "bytes", "The cache of one layer."),
        },
    )  # fmt: skip
