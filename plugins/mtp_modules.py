"""Multi-token prediction with a block of its own for every position, instead of one that is used again."""

from scenario import Column, Method, Parameter, Preset, hookimpl

DEEPSEEK = "DeepSeek-V3 technical report, arXiv:2412.19437, section 2.2"
# Name, rates by position (conditional: each given that those before were accepted), drafts, source.
MEASURED = (
    ("mtp-multi-layer-gsm8k", "0.7568/0.6011/0.4976/0.4113/0.3538/0.298/0.2608/0.2229", 8,
     "vLLM pull request 48892, GSM8K"),
)  # fmt: skip


@hookimpl
def scenario_methods():
    read = "block_dense_params + (experts_hit(batch) * expert_params if moe_layers > 0 else 0) + 2 * hidden * hidden"
    active = "block_dense_params + (experts_per_token * expert_params if moe_layers > 0 else 0) + 2 * hidden * hidden"
    yield Method(
        name="mtp-modules",
        title="MTP, a module per position",
        doc="gamma prediction blocks trained for their own positions draft one token each: later ones hold up better than one block "
        "used again, and each takes memory and a cache.",
        source=DEEPSEEK,
        parameters={
            "alpha": Parameter(0.82, 0, 1, "", "Chance that a draft token is accepted, given those before it were.",
                               "vLLM pull request 48892, 8 positions on GSM8K: conditional rates .76 to .88, 4.0 tokens at gamma 8"),
            "gamma": Parameter(3, 0, 16, "tokens", "Blocks, which is the number of draft tokens.", "assumption", "integer"),
            "acceptance": Parameter(None, doc="Acceptance profile: its name, or marginal rates per position; takes the place of alpha.",
                                    kind="profile"),
            "draft_cost": Parameter(
                None, 0, 10, "", "Time of one draft pass over that of one target step.",
                "Derived from one block, its projection and the shared LM head, read as the model is stored, unless typed",
                derive=f"draft_forward_ms({read}, {active}, embedding_params, 1, weights_bits, gpus, cache_gb_of(kv_width)) / baseline_ms"),
        },
        columns={
            "rows_per_sequence": Column("gamma + 1", "rows", "The drafts and the token before them."),
            "tokens_per_round": Column("chain_tokens(acceptance, alpha, gamma)", "tokens", "1 + a1 + a1 a2 ..."),
            "draft_ms": Column("gamma * draft_cost * baseline_ms", "ms", "One pass of each block."),
            "draft_weight_gb": Column(
                "gamma * (block_dense_params + (experts * expert_params if moe_layers > 0 else 0) + 2 * hidden * hidden)"
                " * weights_bits / 8e9", "GB", "Every block with all its experts and its projection, stored like the model."),
            "draft_kv_bytes_per_token": Column("gamma * kv_width * kv_bits / 8", "bytes", "A cache for every block."),
        },
    )  # fmt: skip


@hookimpl
def scenario_presets():
    for name, rates, drafts, source in MEASURED:
        yield Preset(name, "mtp-modules", {"acceptance": rates, "gamma": drafts}, "Measured rates by position.", source)
