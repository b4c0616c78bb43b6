"""Lookahead decoding (Fu et al. 2024, arXiv:2402.02057): scenario run table.yaml -p my_draft.py"""

from scenario import Column, Method, Parameter, hookimpl


@hookimpl
def scenario_methods():
    yield Method(
        name="my-lookahead",
        title="Lookahead decoding",
        doc="The target fills a window of guesses in the same pass and keeps the n-grams that hold.",
        source="arXiv:2402.02057; the chance of a hit is an assumption to be measured.",
        parameters={
            "hit": Parameter(default=0.4, low=0, high=1, doc="Chance that a guessed n-gram is kept."),
            "ngram": Parameter(default=4, low=2, high=8, unit="tokens", doc="Tokens in a guessed n-gram.", kind="integer"),
            "guesses": Parameter(default=10, low=1, high=1000, doc="Guesses verified in one pass.", kind="integer"),
        },
        columns={
            "tokens_per_round": Column("1 + hit * (ngram - 1)", unit="tokens", doc="Expected tokens kept."),
            "rows_per_sequence": Column("guesses * (ngram - 1)", unit="rows", doc="One wide pass."),
        },
    )
