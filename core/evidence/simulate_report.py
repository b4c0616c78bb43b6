"""The report of ``scenario simulate``: what was run, whether the text is the target's, rounds and KV positions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from scenario.common.errors import TableError, nearest
from scenario.evidence import simulate as sim
from scenario.evidence import simulate_check as check

KEYS = ("target", "draft", "gamma", "tree", "greedy", "replacement")


@dataclass(frozen=True)
class Report:
    """All numbers of one simulation; ``same_text`` and ``same_length`` are the two verdicts."""

    language: str
    draft: str
    mode: str
    sequences: int
    rounds: int
    seed: int
    tokens_compared: int
    total_variation: float
    total_variation_noise: float
    chi_square: float
    degrees_of_freedom: int
    p_value: float
    same_text: bool
    acceptance: float
    tokens_per_round: float
    standard_error: float
    exact_tokens_per_round: float | None
    geometric_tokens_per_round: float | None
    same_length: bool
    all_rounds_tokens: float
    kv_computed: int
    kv_kept: int
    kv_rolled_back: int
    text_tokens: int

    def as_dict(self) -> dict[str, Any]:
        """The numbers by name; without a number where none can be given."""
        return {name: None if value == math.inf else value for name, value in asdict(self).items()}


def setting(given: Mapping[str, Any]) -> tuple[sim.Language | None, dict[str, Any]]:
    """Language and settings of a file with the keys of ``KEYS``. Raises :class:`TableError`."""
    for name in given:
        if name not in KEYS:
            raise TableError(f"unknown key '{name}'", nearest(str(name), KEYS) or "keys: " + ", ".join(KEYS))
    lang = None
    if ("target" in given) != ("draft" in given):
        raise TableError("target and draft are given together, or not at all")
    if "target" in given:
        try:
            lang = sim.language(given["target"], given["draft"])
        except (ValueError, TypeError) as error:
            raise TableError(str(error).splitlines()[0], "a list of chances that sum to 1, or one such list per token") from None
    return lang, {name: given[name] for name in KEYS[2:] if name in given}


def shape_of(gamma: int, widths: Any) -> tuple[sim.DraftTree, str]:
    """The tree to draft and what to call it: a chain, widths per depth, or Medusa's paths of ranks."""
    if widths is None:
        return sim.tree([1] * gamma), f"chain of {gamma}"
    try:
        if widths and all(isinstance(item, list | tuple) for item in widths):
            shape = sim.topology(widths)
            return shape, f"tree of {shape.nodes} nodes, {shape.depth} deep"
        shape = sim.tree([int(width) for width in widths])
    except (ValueError, TypeError) as error:
        hint = "widths per depth such as [3, 2, 1], or paths such as [[0], [1], [0, 0]]"
        raise TableError(f"the tree cannot be used: {error}", hint) from None
    return shape, f"tree of {shape.nodes} nodes, widths {', '.join(str(int(width)) for width in widths)}"


def simulate(lang: sim.Language, name: str, shape: sim.DraftTree, draft: str, *, sequences: int, rounds: int, seed: int, greedy: bool,
             replacement: bool, keep: int) -> Report:  # fmt: skip
    """Run and compare. A failed comparison is a verdict of the report, not an error."""
    rng = np.random.default_rng(seed)
    start = rng.integers(0, lang.vocab, sequences) if greedy else np.zeros(sequences, dtype=np.int64)
    done = sim.run(lang, shape, sequences, max(rounds, keep), rng, greedy=greedy, replacement=replacement, keep=keep, start=start)
    if greedy:
        wrong = (done.first != check.greedy_text(lang, start, keep)).any(axis=1).mean()
        verdict = check.Verdict(float(wrong), 0.0, 0.0, 0, float(wrong == 0), sequences)
        lengths = [check.expected_tokens(lang, shape, greedy=True, start=token) for token in range(lang.vocab)]
        counts = np.bincount(start, minlength=lang.vocab) / sequences
        exact = float(sum(float(length or 0) * share for length, share in zip(lengths, counts, strict=True)))
        accepted = float((np.argmax(lang.target, -1) == np.argmax(lang.q(0), -1)).mean())
    else:
        verdict = check.text_verdict(lang, done)
        exact = check.expected_tokens(lang, shape, replacement=replacement)  # type: ignore[assignment]
        accepted = check.overlap(lang)
    mean, error = check.mean_and_error(done.tokens[0])
    chain = shape.nodes == shape.depth
    one_rate = lang.draft.shape[0] == 1 and lang.target.shape[0] == 1 and not greedy
    geometric = sum(accepted**k for k in range(shape.depth + 1)) if chain and one_rate else None
    computed = done.rows * done.tokens.size
    kept = int(done.kv_length.sum())
    close = exact is None or abs(mean - exact) <= 5 * error + 1e-9
    return Report(
        name, draft, ("greedy" if greedy else "sampling") + (", siblings may repeat" if replacement else ""), sequences,
        done.tokens.shape[0], seed, keep, verdict.total_variation, verdict.noise, verdict.chi_square, verdict.degrees,
        verdict.p_value, verdict.same, accepted, mean, error, exact, geometric, close, float(done.tokens.mean()), computed, kept,
        computed - kept, int(done.tokens.sum()),
    )  # fmt: skip


def as_text(report: Report) -> str:
    """The report for a terminal."""
    r = report
    same = "the target's" if r.same_text else "NOT the target's"
    lines = [
        f"speculative sampling: {r.draft}, {r.mode}; {r.language}",
        f"{r.sequences:,} sequences of {r.rounds} rounds, seed {r.seed}",
        "",
        f"text: {same}",
    ]
    if r.mode.startswith("greedy"):
        lines.append(f"  sequences whose first {r.tokens_compared} tokens differ   {r.total_variation:.2%}")
    else:
        lines += [
            f"  first {r.tokens_compared} tokens, total variation   {r.total_variation:.5f}"
            f"   (sampling noise alone: {r.total_variation_noise:.5f})",
            f"  chi-square                        {r.chi_square:.1f} with {r.degrees_of_freedom} degrees of freedom, p = {r.p_value:.3g}",
        ]
    lines += ["", f"tokens per round: {'as computed' if r.same_length else 'NOT as computed'}",
              f"  simulated, first round            {r.tokens_per_round:.4f} +- {r.standard_error:.4f}"]  # fmt: skip
    if r.exact_tokens_per_round is not None:
        lines.append(f"  exact                             {r.exact_tokens_per_round:.4f}")
    if r.geometric_tokens_per_round is not None:
        lines.append(f"  (1 - a^(gamma+1)) / (1 - a)       {r.geometric_tokens_per_round:.4f}   at a = {r.acceptance:.4g}")
    else:
        lines.append(f"  chance to keep a first draft      {r.acceptance:.4f}   (mean over contexts)")
    share = r.kv_rolled_back / r.kv_computed
    lines += [
        f"  simulated, all rounds             {r.all_rounds_tokens:.4f}",
        "",
        "KV cache positions, all sequences",
        f"  computed                          {r.kv_computed:,}",
        f"  kept                              {r.kv_kept:,}",
        f"  rolled back                       {r.kv_rolled_back:,}   ({share:.1%})",
        f"  tokens of text                    {r.text_tokens:,}   (the cache lacks the newest and holds the first)",
    ]
    return "\n".join(lines) + "\n"
