"""Suffix decoding: what followed the same suffix earlier, in this text or in past answers, is the draft."""

from scenario import Column, Method, Parameter, hookimpl

ARCTIC = "https://www.snowflake.com/en/engineering-blog/fast-speculative-decoding-vllm-arctic/"


@hookimpl
def scenario_methods():
    yield Method(
        name="suffix",
        title="Suffix decoding",
        doc="A suffix tree over the prompt and past answers drafts long continuations on the CPU when there is a match (a hit).",
        source="SuffixDecoding, arXiv:2411.04975",
        parameters={
            "hit_rate": Parameter(0.6, 0, 1, "", "Share of rounds in which a match is found.",
                                  "assumption: between chat (0.2) and code edits (0.8) in https://specdecode-bench.github.io/"),
            "alpha": Parameter(0.8, 0, 1, "", "Chance that a draft token is accepted, given a hit and those before it.",
                               "https://specdecode-bench.github.io/: 0.56 to 0.95 past the first position of n-gram drafts"),
            "gamma": Parameter(8, 0, 16, "tokens", "Draft tokens per hit.", "assumption", "integer"),
            "acceptance": Parameter(None, doc="Acceptance profile of rounds with a hit; takes the place of alpha.", kind="profile"),
            "draft_token_us": Parameter(20, 0, 1e5, "us", "CPU time per draft token.", ARCTIC),
        },
        columns={
            "rows_per_sequence": Column("1 + gamma * hit_rate", "rows", "Only a hit adds rows."),
            "tokens_per_round": Column("1 + hit_rate * (chain_tokens(acceptance, alpha, gamma) - 1)", "tokens",
                                       "One token, and those accepted after a hit."),
            "draft_ms": Column("batch * gamma * hit_rate * draft_token_us / 1000", "ms", "The CPU drafts one sequence after the other.",
                               source=ARCTIC),
            "lookahead_tokens": Column("gamma", "tokens", "Slots are held for a hit."),
        },
    )  # fmt: skip
