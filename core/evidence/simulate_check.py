"""What a simulation must give: exact lengths of rounds, the target's own text, and tests of a run against both."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from scenario.evidence.simulate import Array, DraftTree, Ints, Language, Run

MOST_BRANCHES = 20_000
"""Orders of siblings that are gone through one by one for an exact length."""


def expected_tokens(lang: Language, shape: DraftTree, *, greedy: bool = False, replacement: bool = False, start: int = 0) -> float | None:
    """Tokens of the first round after ``start``, exactly: 1 and the chance of every node to be kept.

    None where too many orders of siblings would have to be gone through.
    """
    widest = max(len(below) for below in shape.children)
    if not greedy and not replacement and lang.vocab ** max(widest - 1, 0) * lang.target.shape[0] > MOST_BRANCHES:
        return None
    passing: dict[int, list[Array]] = {}

    def ranks(depth: int) -> list[Array]:
        """Per rank the chances [c, x] that after context c the child of this rank is token x and kept."""
        at = min(depth, lang.draft.shape[0] - 1)
        if at not in passing:
            rows = [_ranks(p, q, widest, greedy, replacement) for p, q in zip(lang.target, lang.q(at), strict=True)]
            passing[at] = [np.array([row[rank] for row in rows]) for rank in range(widest)]
        return passing[at]

    first = np.zeros(lang.vocab)
    first[start] = 1.0
    total = 1.0
    stack = [(0, first, 0)]
    while stack:
        node, reached, depth = stack.pop()
        for rank, child in enumerate(shape.children[node]):
            table = ranks(depth)[rank]
            kept = reached @ table if table.shape[0] > 1 else reached.sum() * table[0]
            total += float(kept.sum())
            stack.append((child, kept, depth + 1))
    return total


def _ranks(p: Array, q: Array, widest: int, greedy: bool, replacement: bool) -> list[Array]:
    found = [np.zeros_like(p) for _ in range(max(widest, 1))]
    if greedy:
        best = int(np.argmax(p))
        rank = int(np.flatnonzero(np.argsort(-q, kind="stable") == best)[0])
        if rank < len(found):
            found[rank][best] = 1.0
        return found

    def go(rest: Array, offered: Array, rank: int, weight: float) -> None:
        if rank == len(found) or weight < 1e-15 or offered.sum() <= 0:
            return
        overlap = np.minimum(rest, offered)
        found[rank] += weight * overlap
        refused = offered - overlap
        left = np.maximum(rest - offered, 0.0)
        if refused.sum() < 1e-15 or left.sum() <= 0:
            return
        left = left / left.sum()
        if replacement:
            go(left, offered, rank + 1, weight * float(refused.sum()))
            return
        if rank + 1 == len(found):
            return
        for x in np.flatnonzero(refused > 0):
            smaller = offered.copy()
            smaller[x] = 0.0
            if smaller.sum() > 0:
                go(left, smaller / smaller.sum(), rank + 1, weight * float(refused[x]))

    go(p, q, 0, 1.0)
    return found


def overlap(lang: Language) -> float:
    """The mean chance that a first draft token is kept, over the contexts: beta = sum(min(p, q)) = 1 - TV(p, q)."""
    return float(np.minimum(lang.target, lang.q(0)).sum(-1).mean())


def greedy_text(lang: Language, start: Ints, keep: int) -> Ints:
    """What the target alone says at temperature 0 after each of the tokens ``start``."""
    best = np.argmax(lang.target, axis=-1)
    text, last = [], start
    for _ in range(keep):
        last = best[lang.context(last)]
        text.append(last)
    return np.stack(text, axis=1)


@dataclass(frozen=True)
class Verdict:
    """Observed text against the target's: total variation with what sampling noise alone would give, and chi-square."""

    total_variation: float
    noise: float
    chi_square: float
    degrees: int
    p_value: float
    samples: int

    @property
    def same(self) -> bool:
        """Whether the text may be the target's: one honest run in a million fails by chance."""
        return self.p_value > 1e-6


def text_verdict(lang: Language, run: Run, start: int = 0) -> Verdict:
    """Compare the first tokens of every sequence, taken together, with the target decoding alone.

    There must have been as many rounds as tokens are compared: every round gives at least one.
    """
    keep = run.first.shape[1]
    table = lang.target if lang.target.shape[0] > 1 else np.repeat(lang.target, lang.vocab, axis=0)
    joint: Array = table[start]
    for _ in range(keep - 1):
        joint = (joint.reshape(-1, lang.vocab)[:, :, None] * table[None]).reshape(-1)
    codes = run.first @ (lang.vocab ** np.arange(keep - 1, -1, -1))
    observed = np.bincount(codes, minlength=joint.size).astype(np.float64)
    return compare(observed, joint)


def compare(observed: Array, chances: Array) -> Verdict:
    """Counts against chances; cells expected less than five times are put together for the chi-square test."""
    samples = float(observed.sum())
    wanted = chances * samples
    variation = 0.5 * float(np.abs(observed / samples - chances).sum())
    noise = 0.5 * float(np.sqrt(2 * chances * (1 - chances) / (math.pi * samples)).sum())
    large = wanted >= 5
    cells = [(observed[large], wanted[large])]
    if not large.all() and wanted[~large].sum() > 0:
        cells.append((observed[~large].sum(keepdims=True), wanted[~large].sum(keepdims=True)))
    seen, due = (np.concatenate(part) for part in zip(*cells, strict=True))
    impossible = bool((observed[chances <= 0] > 0).any())
    chi = math.inf if impossible else float(((seen - due) ** 2 / due).sum())
    degrees = max(seen.size - 1, 0)
    p_value = 0.0 if impossible else chi_square_tail(chi, degrees) if degrees else 1.0
    return Verdict(variation, noise, chi, degrees, p_value, int(samples))


def chi_square_tail(chi: float, degrees: int) -> float:
    """The chance of a chi-square value of at least ``chi``: the regularised incomplete gamma function Q(k/2, x/2).

    Series below the mean, continued fraction above (Abramowitz and Stegun 6.5.29 and 6.5.31).
    """
    a, x = degrees / 2, chi / 2
    if x <= 0:
        return 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while abs(term) > abs(total) * 1e-16:
            n += 1
            term *= x / n
            total += term
        return max(0.0, 1 - front * total)
    b = x + 1 - a
    c, d = 1e300, 1 / b
    value = d
    for i in range(1, 10_000):
        step = -i * (i - a)
        b += 2
        d = 1 / (step * d + b)
        c = b + step / c
        value *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return min(1.0, front * value)


def mean_and_error(tokens: Array) -> tuple[float, float]:
    """The mean over sequences and its standard error."""
    flat = np.asarray(tokens, dtype=np.float64).ravel()
    return float(flat.mean()), float(flat.std() / math.sqrt(flat.size))
