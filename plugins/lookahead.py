"""Lookahead decoding: the target fills a window of guesses itself and verifies the n-grams that it has seen."""

from scenario import Column, Method, Parameter, hookimpl

LOOKAHEAD = "Fu et al. 2024, arXiv:2402.02057"
LONGEST = 8
# Equation 5 of the paper: with b candidates at once, position i is reached unless all of them fail before.
POSITIONS = " + ".join(f"(1 - (1 - alpha ** {i}) ** guesses if ngram > {i} else 0)" for i in range(1, LONGEST))


@hookimpl
def scenario_methods():
    yield Method(
        name="lookahead",
        title="Lookahead decoding",
        doc="No draft: one wide pass both refines a window of future tokens and verifies the n-grams collected on the way.",
        source=LOOKAHEAD,
        parameters={
            "alpha": Parameter(0.425, 0, 1, "", "Chance that a token of a guessed n-gram is right, given those before it are.",
                               f"{LOOKAHEAD}, fit to Llama-2-7B-chat"),
            "hit_rate": Parameter(0.322, 0, 1, "", "Share of passes in which there are n-grams to verify.",
                                  f"{LOOKAHEAD}: one pass in 3.106"),
            "ngram": Parameter(5, 2, LONGEST, "tokens", "Tokens in an n-gram.", f"{LOOKAHEAD}: 5 for 7B", "integer"),
            "lookahead_window": Parameter(15, 1, 1024, "tokens", "Width of the window of guesses.", f"{LOOKAHEAD}: 15 for 7B", "integer"),
            "guesses": Parameter(15, 1, 1024, "n-grams", "N-grams verified in one pass.", f"{LOOKAHEAD}: as many as the window", "integer"),
        },
        columns={
            "rows_per_sequence": Column("(lookahead_window + guesses) * (ngram - 1)", "rows", "Window and n-grams go through one pass."),
            "tokens_per_round": Column(f"1 + hit_rate * ({POSITIONS})", "tokens", "The next token, and those of the best n-gram.",
                                       source=f"{LOOKAHEAD}, equation 5"),
        },
    )  # fmt: skip
