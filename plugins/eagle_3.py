"""EAGLE-3: a head over three hidden states of the target, with a vocabulary of its own, drafts a chain or a tree."""

from scenario import Column, Method, Parameter, Preset, hookimpl

EAGLE3 = "Li et al. 2025, arXiv:2503.01840"
BENCH = "https://specdecode-bench.github.io/"
# Name, rates by position (conditional: each given that those before were accepted), drafts, source.
MEASURED = (
    ("eagle-3-llama-3.1-8b-gsm8k", "conditional:0.661/0.65/0.633/0.653/0.621/0.649/0.65", 7,
     "https://specdecode-bench.github.io/, traces with 7 drafts, GSM8K"),
    ("eagle-3-llama-3.1-8b-cnn-dm", "conditional:0.631/0.625/0.64/0.66/0.679/0.725/0.721", 7,
     "https://specdecode-bench.github.io/, traces with 7 drafts, CNN/DM"),
    ("eagle-3-llama-3.1-8b-sharegpt", "conditional:0.597/0.587/0.638/0.686/0.728/0.751/0.755", 7,
     "https://specdecode-bench.github.io/, traces with 7 drafts, ShareGPT"),
    ("eagle-3-llama-3.1-8b-instructcoder", "conditional:0.594/0.629/0.685/0.741/0.764/0.8/0.783", 7,
     "https://specdecode-bench.github.io/, traces with 7 drafts, InstructCoder"),
    ("eagle-3-llama-3.1-8b-gsm8k-3", "conditional:0.673/0.653/0.64", 3,
     "https://specdecode-bench.github.io/, traces with 3 drafts, GSM8K"),
    ("eagle-3-llama-3.1-8b-cnn-dm-3", "conditional:0.648/0.639/0.651", 3,
     "https://specdecode-bench.github.io/, traces with 3 drafts, CNN/DM"),
    ("eagle-3-llama-3.1-8b-sharegpt-3", "conditional:0.621/0.614/0.66", 3,
     "https://specdecode-bench.github.io/, traces with 3 drafts, ShareGPT"),
    ("eagle-3-llama-3.1-8b-instructcoder-3", "conditional:0.63/0.669/0.71", 3,
     "https://specdecode-bench.github.io/, traces with 3 drafts, InstructCoder"),
    ("eagle-3-minimax-m3", "0.76/0.56/0.43", 3,
     "vLLM blog on AMD and EAGLE-3, SPEED-Bench"),
    ("eagle-3-minicpm3", "0.58/0.34/0.22/0.15/0.11", 5,
     "vLLM pull request 24243"),
)  # fmt: skip
# Name, drafts, tokens per round with the bonus, task.
LENGTHS = (
    ("eagle-3-gpt-oss-20b-humaneval", 3, 2.65, "HumanEval"),
    ("eagle-3-gpt-oss-20b-mt-bench", 3, 2.70, "MT-Bench"),
)


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


@hookimpl
def scenario_presets():
    for name, rates, drafts, source in MEASURED:
        yield Preset(name, "eagle-3", {"acceptance": rates, "gamma": drafts}, "Measured rates by position.", source)
    for name, drafts, length, task in LENGTHS:
        values = {"acceptance_length": length, "measured_gamma": drafts, "gamma": drafts}
        yield Preset(name, "eagle-3", values, f"Acceptance length, {task}.", "P-EAGLE, vLLM blog, its baseline")
