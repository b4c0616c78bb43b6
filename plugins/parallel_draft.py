"""A parallel block drafter: one pass of the head drafts all positions at once."""

from scenario import Column, Method, Parameter, Preset, hookimpl

PEAGLE = "P-EAGLE, vLLM blog"
# Name, drafts, tokens per round with the bonus, task.
LENGTHS = (
    ("parallel-draft-gpt-oss-20b-humaneval", 7, 3.94, "HumanEval"),
    ("parallel-draft-gpt-oss-20b-speed-bench", 7, 3.38, "SPEED-Bench"),
    ("parallel-draft-gpt-oss-20b-mt-bench", 7, 3.70, "MT-Bench"),
)


@hookimpl
def scenario_methods():
    body = "block_active_params + attention_params / 2 + hidden * kv_heads * head_dim + 3 * hidden * hidden"
    yield Method(
        name="parallel-draft",
        title="Parallel block drafter",
        doc="Placeholders for gamma positions go through an EAGLE-3 sized head together, so that drafting costs one pass however "
        "many tokens are drafted.",
        source=PEAGLE,
        parameters={
            "alpha": Parameter(0.78, 0, 1, "", "Chance that a draft token is accepted, given those before it were.",
                               f"{PEAGLE}: gpt-oss-20b, 3 drafts give 2.87 to 3.02 tokens a round (0.78 to 0.81)"),
            "gamma": Parameter(7, 0, 16, "tokens", "Draft tokens per round.", f"{PEAGLE}: 3 and 7", "integer"),
            "acceptance": Parameter(None, doc="Acceptance profile: its name, or marginal rates per position; takes the place of alpha.",
                                    kind="profile"),
            "draft_cost": Parameter(None, 0, 10, "", "Time of the one drafting pass over that of one target step.",
                                    "Derived from a wide layer with its fusion, the LM head and a launch unless typed"),
        },
        columns={
            "rows_per_sequence": Column("gamma + 1", "rows", "The drafts and the token before them."),
            "tokens_per_round": Column("chain_tokens(acceptance, alpha, gamma)", "tokens", "A chain of drafts."),
            "draft_ms": Column(
                "0 if gamma < 1 else draft_cost * baseline_ms if not is_blank(draft_cost) else"
                f" draft_forward_ms({body}, gamma * ({body}) + (gamma - 1) * embedding_params, embedding_params, 1, 16, gpus,"
                " cache_gb_of(kv_width))", "ms", "One pass for all positions."),
            "draft_weight_gb": Column(f"({body}) * 16 / 8e9", "GB", "One wide layer and its fusion in BF16."),
            "draft_kv_bytes_per_token": Column("kv_width * kv_bits / 8", "bytes", "The cache of one layer."),
        },
    )  # fmt: skip


@hookimpl
def scenario_presets():
    for name, drafts, length, task in LENGTHS:
        values = {"acceptance_length": length, "measured_gamma": drafts, "gamma": drafts}
        yield Preset(name, "parallel-draft", values, f"Acceptance length, {task}.", PEAGLE)
