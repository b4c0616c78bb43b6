"""Speculative sampling, simulated: the proof that the output is the target's and that rounds are as long as computed.

One round (Leviathan et al. 2023, Chen et al. 2023): the draft proposes tokens; token x is kept with chance
min(1, p(x)/q(x)); the first one that is not is replaced by a draw from the positive part of p - q, and ends the
round; when all are kept, one more token is drawn from p. With a tree every node may have several children, tried one
after the other against what is left of p (SpecInfer, arXiv:2305.09781; EAGLE, arXiv:2401.15077; without
replacement as in Sequoia, arXiv:2402.12374). Everything is vectorised over many rounds that run side by side.

Needs numpy: ``pip install "scenario-engine[simulate]"``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Language:
    """What target and draft say next: ``target[c, x]`` is the chance of token x after token c.

    ``draft[d, c, x]`` is the draft's at depth d of a round (its last depth goes on); where the next token depends
    on nothing, there is one context c for all. Every row sums to 1.
    """

    target: Array
    draft: Array

    @property
    def vocab(self) -> int:
        return int(self.target.shape[1])

    def context(self, last: Ints) -> Ints:
        """The row of the tables that speaks after the tokens ``last``."""
        return last if self.target.shape[0] > 1 else np.zeros_like(last)

    def q(self, depth: int) -> Array:
        """The draft's table at a depth."""
        return np.asarray(self.draft[min(depth, self.draft.shape[0] - 1)])

    def greedy(self) -> Language:
        """The same at temperature 0: all weight on each row's likeliest token."""
        return Language(_peak(self.target), self.draft)


def language(target: npt.ArrayLike, draft: npt.ArrayLike) -> Language:
    """A language from given tables: one distribution, or one per context (and for the draft one per depth).

    Raises ValueError where a table is no distribution or the two do not fit each other.
    """
    p, q = np.asarray(target, dtype=np.float64), np.asarray(draft, dtype=np.float64)
    p = p[None, :] if p.ndim == 1 else p
    q = q[None, None, :] if q.ndim == 1 else q[None, :, :] if q.ndim == 2 else q
    if p.ndim != 2 or q.ndim != 3:
        raise ValueError("target is one distribution or one per token, draft the same or a list of such")
    if q.shape[1:] != p.shape or (p.shape[0] > 1 and p.shape[0] != p.shape[1]):
        raise ValueError(f"target has the shape {p.shape} and draft {q.shape[1:]}: both need one row in all, or one per token")
    for name, table in (("target", p), ("draft", q)):
        if not np.isfinite(table).all() or (table < 0).any() or (np.abs(table.sum(-1) - 1) > 1e-6).any():
            raise ValueError(f"{name}: every distribution holds chances that sum to 1")
    return Language(p / p.sum(-1, keepdims=True), q / q.sum(-1, keepdims=True))


def drawn(vocab: int, closeness: float, rng: np.random.Generator) -> Language:
    """A random language in which each token depends on the one before; ``closeness`` 1 makes the draft the target."""
    target = rng.dirichlet(np.full(vocab, 0.5), size=vocab)
    other = rng.dirichlet(np.full(vocab, 0.5), size=vocab)
    return Language(target, (closeness * target + (1 - closeness) * other)[None])


def accepting(rates: Sequence[float], vocab: int = 8) -> Language:
    """A language whose draft token at depth d is kept with chance ``rates[d]``, given those before it were.

    The draft follows the target with that chance and else says a token that the target never does: the overlap
    sum(min(p, q)) is then the rate itself.
    """
    weights = np.arange(1.0, vocab)
    target = np.append(weights / weights.sum(), 0.0)
    never = np.zeros(vocab)
    never[-1] = 1.0
    return Language(target[None], np.array([[rate * target + (1 - rate) * never] for rate in rates or [0.0]]))


@dataclass(frozen=True)
class DraftTree:
    """The shape of a draft: ``children[n]`` are the numbers of node n's children in the order they are tried.

    Node 0 is the last token of the text, so the tree holds ``nodes`` drafted tokens and ``nodes + 1`` rows to verify.
    """

    children: tuple[tuple[int, ...], ...]

    @property
    def nodes(self) -> int:
        return len(self.children) - 1

    @property
    def depth(self) -> int:
        deepest = [0] * len(self.children)
        for node, below in enumerate(self.children):
            for child in below:
                deepest[child] = deepest[node] + 1
        return max(deepest)


def tree(widths: Sequence[int]) -> DraftTree:
    """A full tree: every node at depth d has ``widths[d]`` children. ``[1] * gamma`` is a chain."""
    children: list[tuple[int, ...]] = [()]
    level = [0]
    for width in widths:
        following: list[int] = []
        for node in level:
            new = range(len(children), len(children) + width)
            children[node] = tuple(new)
            children += [()] * width
            following += new
        level = following
    return DraftTree(tuple(children))


def topology(paths: Sequence[Sequence[int]]) -> DraftTree:
    """A tree from its paths of ranks, as Medusa's configurations write them: ``[[0], [1], [0, 0]]``."""
    numbers: dict[tuple[int, ...], int] = {(): 0}
    children: list[list[int]] = [[]]
    for path in sorted((tuple(path) for path in paths), key=lambda path: (len(path), path)):
        if not path or path[:-1] not in numbers or path in numbers or path[-1] != len(children[numbers[path[:-1]]]):
            raise ValueError(f"path {list(path)}: its parent and its elder siblings must be in the tree, once")
        numbers[path] = len(children)
        children[numbers[path[:-1]]].append(len(children))
        children.append([])
    return DraftTree(tuple(tuple(below) for below in children))


@dataclass(frozen=True)
class Run:
    """What came out: ``first`` holds the first tokens of every sequence (one row each), ``tokens`` the tokens of
    every round (rounds x sequences). A round computes ``rows`` KV positions per sequence: those of the newest token and
    of every drafted one; the refused ones are rolled back. ``kv_length`` is what each cache holds at the end: the text
    but for its newest token."""

    first: Ints
    tokens: Ints
    rows: int
    kv_length: Ints


def run(lang: Language, shape: DraftTree, sequences: int, rounds: int, rng: np.random.Generator, *, greedy: bool = False,
        replacement: bool = False, keep: int = 3, start: int | Ints = 0) -> Run:  # fmt: skip
    """Decode ``sequences`` side by side for ``rounds`` rounds, all after the token ``start`` (or one each).

    ``greedy`` is temperature 0 for both models; ``replacement`` lets siblings repeat (SpecInfer), else they differ
    (EAGLE, Sequoia). ``keep`` is how many first tokens of each sequence are returned; -1 where a sequence is shorter.
    """
    last = np.full(sequences, start, dtype=np.int64)
    first = np.full((sequences, keep), -1, dtype=np.int64)
    length = np.zeros(sequences, dtype=np.int64)
    cached = np.zeros(sequences, dtype=np.int64)
    lengths = np.zeros((rounds, sequences), dtype=np.int64)
    for number in range(rounds):
        emitted, accepted = _round(lang, shape, last, rng, greedy, replacement)
        count = (emitted >= 0).sum(0)
        for step in range(emitted.shape[0]):
            there = emitted[step] >= 0
            place = length + step
            inside = there & (place < keep)
            first[inside, place[inside]] = emitted[step, inside]
            last = np.where(there, emitted[step], last)
        length += count
        lengths[number] = count
        cached += shape.nodes + 1  # the newest token and every drafted one are computed,
        cached -= shape.nodes - accepted  # those that are not kept are rolled back
    return Run(first, lengths, shape.nodes + 1, cached)


def _round(lang: Language, shape: DraftTree, last: Ints, rng: np.random.Generator, greedy: bool, replacement: bool) -> tuple[Ints, Ints]:
    """The tokens of one round for every sequence, one row per depth (-1 where the round had ended), and drafts kept.

    Only the path that is kept is drawn: what a node's children are does not depend on nodes that are not.
    """
    count = last.size
    target = _peak(lang.target) if greedy else lang.target
    emitted = np.full((shape.depth + 1, count), -1, dtype=np.int64)
    node = np.zeros(count, dtype=np.int64)
    alive = np.ones(count, dtype=bool)
    accepted = np.zeros(count, dtype=np.int64)
    for depth in range(shape.depth + 1):
        context = lang.context(last)
        rest = target[context]  # what is left of p once children were refused
        offered = lang.q(depth)[context]
        order = np.argsort(-offered, axis=1, kind="stable") if greedy else None
        chosen = np.full(count, -1, dtype=np.int64)
        following = np.zeros(count, dtype=np.int64)
        for rank in range(max(len(below) for below in shape.children)):
            child = np.array([below[rank] if rank < len(below) else -1 for below in shape.children])[node]
            trying = alive & (chosen < 0) & (child >= 0)
            if order is not None:
                trying &= rank < lang.vocab
                x = order[:, min(rank, lang.vocab - 1)]
                kept = trying & (rest[np.arange(count), x] > 0.5)
            else:
                trying &= offered.sum(1) > 0
                x = _draw(offered, rng)
                p, q = rest[np.arange(count), x], offered[np.arange(count), x]
                kept = trying & (rng.random(count) * q < p)
                refused = trying & ~kept
                rest = np.where(refused[:, None], _positive(rest - offered, rest), rest)
                if not replacement:
                    offered = offered.copy()
                    offered[refused, x[refused]] = 0.0
                    offered = _normal(offered)
            chosen[kept], following[kept] = x[kept], child[kept]
        drafted = chosen >= 0
        own = np.argmax(rest, axis=1) if greedy else _draw(rest, rng)
        emitted[depth, alive] = np.where(drafted, chosen, own)[alive]
        last = np.where(alive, emitted[depth], last)
        alive &= drafted
        accepted += alive
        node = np.where(alive, following, node)
    return emitted, accepted


def _peak(table: Array) -> Array:
    peak: Array = np.eye(table.shape[-1])[np.argmax(table, axis=-1)]
    return peak


def _normal(table: Array) -> Array:
    total = table.sum(-1, keepdims=True)
    normal: Array = np.divide(table, total, out=np.zeros_like(table), where=total > 0)
    return normal


def _positive(difference: Array, otherwise: Array) -> Array:
    """The positive part, made a distribution; where nothing is left (it cannot be drawn from), what was there."""
    part = np.maximum(difference, 0.0)
    total = part.sum(-1, keepdims=True)
    return np.where(total > 1e-300, _normal(part), otherwise)


def _draw(table: Array, rng: np.random.Generator) -> Ints:
    """One token from each row; rows of zeros give the last token."""
    ends = np.cumsum(table, axis=1)
    ends /= np.maximum(ends[:, -1:], 1e-300)
    dice: Array = rng.random((table.shape[0], 1))
    token: Ints = np.minimum((ends <= dice).sum(axis=1), table.shape[1] - 1).astype(np.int64)
    return token
