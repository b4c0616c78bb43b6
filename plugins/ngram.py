"""N-gram (prompt lookup) decoding: the continuation of an earlier match in the text is the draft."""

from scenario import Column, Method, Parameter, Preset, hookimpl

BENCH = "https://specdecode-bench.github.io/"
# Name, share of rounds with a match, conditional rates over all rounds (the first is divided by that share), task.
MEASURED = (
    ("ngram-llama-3.1-8b-gsm8k", 0.2, (0.075, 0.562, 0.597, 0.636, 0.71, 0.697, 0.715), "GSM8K"),
    ("ngram-llama-3.1-8b-cnn-dm", 0.4, (0.113, 0.719, 0.755, 0.782, 0.798, 0.81, 0.822), "CNN/DM"),
    ("ngram-llama-3.1-8b-sharegpt", 0.2, (0.118, 0.764, 0.791, 0.853, 0.87, 0.882, 0.896), "ShareGPT"),
    ("ngram-llama-3.1-8b-instructcoder", 0.8, (0.266, 0.878, 0.924, 0.942, 0.939, 0.963, 0.925), "InstructCoder"),
)  # fmt: skip


@hookimpl
def scenario_methods():
    yield Method(
        name="ngram",
        title="N-gram lookup",
        doc="When the last tokens occur earlier in the text (a hit), what followed there is drafted, for next to nothing.",
        source="Saxena 2023, prompt lookup decoding, https://github.com/apoorvumang/prompt-lookup-decoding",
        parameters={
            "hit_rate": Parameter(0.4, 0, 1, "", "Share of rounds in which a match is found.",
                                  f"{BENCH}: 0.2 chat, 0.4 summaries, 0.8 code edits"),
            "alpha": Parameter(0.6, 0, 1, "", "Chance that a draft token is accepted, given a hit and those before it.",
                               f"{BENCH}: 0.56 to 0.95 past the first position"),
            "gamma": Parameter(4, 0, 16, "tokens", "Draft tokens per hit.", "vLLM documentation", "integer"),
            "acceptance": Parameter(None, doc="Acceptance profile of rounds with a hit; takes the place of alpha.",
                                    kind="profile"),
        },
        columns={
            "rows_per_sequence": Column("1 + gamma * hit_rate", "rows", "Only a hit adds rows."),
            "tokens_per_round": Column("1 + hit_rate * (chain_tokens(acceptance, alpha, gamma) - 1)", "tokens",
                                       "One token, and those accepted after a hit."),
            "lookahead_tokens": Column("gamma", "tokens", "Slots are held for a hit."),
        },
    )  # fmt: skip


@hookimpl
def scenario_presets():
    for name, hits, (first, *rates), task in MEASURED:
        text = "conditional:" + "/".join(f"{rate:.12g}" for rate in (first / hits, *rates))
        yield Preset(name, "ngram", {"hit_rate": hits, "acceptance": text, "gamma": 7}, "Conditional rates by position, given a match.",
                     f"{BENCH}, traces with 7 drafts, {task}; matches: its simulator")  # fmt: skip
