"""The command ``simulate``: speculative sampling, run and compared with what the formulas say."""

from __future__ import annotations

import json
from typing import Any

import click

from scenario.cli.options import emit


@click.command()
@click.argument("file", required=False)
@click.option("--gamma", type=click.IntRange(0, 16), default=4, show_default=True, help="Draft tokens of a chain.")
@click.option("--tree", "widths", metavar="3,2,1", help="A tree instead: children per node at each depth.")
@click.option("--greedy", is_flag=True, help="Temperature 0 for target and draft.")
@click.option("--replacement", is_flag=True, help="Siblings of a tree may repeat (SpecInfer); else they differ (EAGLE).")
@click.option("--alpha", type=click.FloatRange(0, 1), default=0.8, show_default=True, help="Chance that a draft token is kept.")
@click.option("--drawn", is_flag=True, help="Draw random distributions, each token depending on the one before.")
@click.option("--closeness", type=click.FloatRange(0, 1), default=0.5, show_default=True, help="Share of the target in a drawn draft.")
@click.option("--vocab", type=click.IntRange(2, 64), default=8, show_default=True, help="Tokens of the vocabulary.")
@click.option("--sequences", type=click.IntRange(100, 5_000_000), default=100_000, show_default=True, help="Sequences side by side.")
@click.option("--rounds", type=click.IntRange(1, 1000), default=4, show_default=True, help="Rounds of each.")
@click.option("--compare", "keep", type=click.IntRange(1, 4), default=3, show_default=True, help="First tokens compared with the target's.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random numbers.")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
def simulate(file: str | None, gamma: int, widths: str | None, greedy: bool, replacement: bool, alpha: float, drawn: bool,
             closeness: float, vocab: int, sequences: int, rounds: int, keep: int, seed: int, format_: str) -> None:  # fmt: skip
    """Run speculative sampling and compare its text and its rounds with the formulas.

    FILE (YAML or JSON) may give target and draft distributions: a list of chances each, or one list per token that
    came before; and gamma, tree, greedy, replacement. Without it the draft is kept with chance ALPHA. The exit code
    is 1 when the text or the length of the rounds is not as computed.
    """
    given = _read(file) if file else {}
    try:
        import numpy as np

        from scenario.evidence import simulate as sim
        from scenario.evidence import simulate_report as report
    except ModuleNotFoundError as error:
        from scenario.common.errors import TableError

        raise TableError(f"the simulation needs {error.name}", 'pip install "scenario-engine[simulate]"') from None
    lang, settings = report.setting(given)
    name = "distributions given"
    if lang is None:
        lang = sim.drawn(vocab, closeness, np.random.default_rng(seed)) if drawn else sim.accepting([alpha], vocab)
        name = f"{vocab} tokens, drawn at random" if drawn else f"drafts kept with chance {alpha:g}"
    tree: Any = [part.strip() for part in widths.split(",")] if widths else settings.get("tree")
    depth = settings.get("gamma", gamma) if click.get_current_context().get_parameter_source("gamma").name == "DEFAULT" else gamma  # type: ignore[union-attr]
    shape, draft = report.shape_of(int(depth), tree)
    done = report.simulate(
        lang, name, shape, draft, sequences=sequences, rounds=rounds, seed=seed, greedy=greedy or bool(settings.get("greedy")),
        replacement=replacement or bool(settings.get("replacement")), keep=keep,
    )  # fmt: skip
    emit(json.dumps(done.as_dict(), indent=2) + "\n" if format_ == "json" else report.as_text(done))
    if not (done.same_text and done.same_length):
        click.get_current_context().exit(1)


def _read(file: str) -> dict[str, Any]:
    from scenario.common import yamltree
    from scenario.common.errors import Problem, TableError

    _, root = yamltree.read(file)
    given = root.plain()
    if not isinstance(given, dict):
        raise TableError(Problem("this is a mapping: target, draft, gamma, tree, greedy, replacement", file=file))
    return given
