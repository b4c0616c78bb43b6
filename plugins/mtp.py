"""Multi-token prediction: an extra block trained with the model drafts the token after the next."""

from scenario import Column, Method, Parameter, Preset, hookimpl

DEEPSEEK = "DeepSeek-V3 technical report, arXiv:2412.19437, section 5.4.3"
# Name, rates by position (conditional: each given that those before were accepted), drafts, source.
MEASURED = (
    ("mtp-deepseek-v4", "0.7694/0.3807", 2,
     "vLLM pull request 41044, random prompts"),
    ("mtp-deepseek-v4-flash", "0.7002/0.2874", 2,
     "vLLM pull request 41044, random prompts, temperature 1"),
    ("mtp-qwen3.6-27b", "0.917/0.837/0.648/0.538/0.451/0.348", 6,
     "club-3090 issue 105, a live log"),
    ("mtp-gemma4-26b-a4b", "0.844/0.599/0.385/0.271", 4,
     "spark-vllm-docker issue 343, a live log"),
)  # fmt: skip


@hookimpl
def scenario_methods():
    yield Method(
        name="mtp",
        title="Multi-token prediction",
        doc="The model's own prediction block drafts gamma tokens; more than one re-uses the block and is accepted less.",
        source=DEEPSEEK,
        parameters={
            "alpha": Parameter(0.85, 0, 1, "", "Chance that a draft token is accepted, given those before it were.",
                               f"{DEEPSEEK}: 0.85 to 0.90, and 1.8 times the tokens per second"),
            "gamma": Parameter(1, 0, 16, "tokens", "Draft tokens per round.", DEEPSEEK, "integer"),
            "acceptance": Parameter(None, doc="Acceptance profile: its name, or marginal rates per position; "
                                    "takes the place of alpha.", kind="profile"),
            "draft_cost": Parameter(
                None, 0, 10, "", "Time of one draft pass over that of one target step.",
                "Derived from one block (of a mixture, the experts that the batch touches), its projection and the shared LM head, "
                "read as the model is stored, unless typed",
                derive="draft_forward_ms(block_dense_params + (experts_hit(batch) * expert_params if moe_layers > 0 else 0)"
                " + 2 * hidden * hidden, block_dense_params + (experts_per_token * expert_params if moe_layers > 0 else 0)"
                " + 2 * hidden * hidden, embedding_params, 1, weights_bits, gpus, cache_gb_of(kv_width)) / baseline_ms"),
        },
        columns={
            "rows_per_sequence": Column("gamma + 1", "rows", "The drafts and the token before them."),
            "tokens_per_round": Column("chain_tokens(acceptance, alpha, gamma)", "tokens", "1 + a1 + a1 a2 ..."),
            "draft_ms": Column("gamma * draft_cost * baseline_ms", "ms", "One pass of the block per token."),
            "draft_weight_gb": Column("(block_dense_params + (experts * expert_params if moe_layers > 0 else 0) + 2 * hidden * hidden)"
                                      " * weights_bits / 8e9", "GB",
                                      "One block with all its experts and the projection, stored like the model."),
            "draft_kv_bytes_per_token": Column("kv_width * kv_bits / 8", "bytes", "The cache of one block."),
        },
    )  # fmt: skip


@hookimpl
def scenario_presets():
    yield Preset("deepseek-v3-mtp", "mtp", {"alpha": 0.85, "gamma": 1},
                 "Second token accepted 85 to 90 % of the time; the maker reports 1.8 times the tokens per second.",
                 DEEPSEEK)  # fmt: skip
    for name, rates, drafts, source in MEASURED:
        yield Preset(name, "mtp", {"acceptance": rates, "gamma": drafts}, "Measured rates by position.", source)
