"""N-gram (prompt lookup) decoding: the continuation of an earlier match in the text is the draft."""

from scenario import Column, Method, Parameter, hookimpl

BENCH = "https://specdecode-bench.github.io/"


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
