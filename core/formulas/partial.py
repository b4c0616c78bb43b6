"""The partial evaluator: formulas made smaller by what is known of some of the names they read.

What becomes constant is computed by the back end that computes everything else, arithmetic keeps its order, and only parts go
that cannot matter: no bit of a value depends on what was known beforehand. Without a back end nothing is computed (the formula
stays one for people to read); only what asks about blanks and conditions is worked out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from scenario.formulas.facts import FLAG, NOTHING, TEXT, Facts, arithmetic
from scenario.formulas.nodes import (
    Binary,
    Blank,
    Call,
    Compare,
    Flag,
    If,
    Logic,
    Name,
    Negate,
    Node,
    Not,
    Number,
    Text,
    Value,
    rebuild,
)

NEUTRAL = {"*": 1, "/": 1, "+": 0, "-": 0}
"""The right-hand number that leaves the left one as it is."""
NEEDS_ALL = ("at", "min", "max", "tree_tokens", "tree_rows")
"""Functions that are blank where one argument is."""

Literal = Number | Text | Flag | Blank


def literal(value: Value) -> Literal:
    """The node that stands for a value."""
    if value is None:
        return Blank(facts=NOTHING)
    if isinstance(value, bool):
        return Flag(value, facts=FLAG)
    if isinstance(value, str):
        return Text(value, facts=TEXT)
    return Number(float(value), facts=Facts(low=float(value), high=float(value), integer=float(value).is_integer()))


def without(node: Node, absent: Mapping[str, Node]) -> Node:
    """``node`` with the names in ``absent`` replaced, and what follows from a blank among them worked out."""
    if not any(name in absent for name in node.names):
        return node
    return Partial(lambda name: absent.get(name.id, name))(node)


def fold(
    node: Node, constants: Mapping[str, Value], compute: Callable[[Node], Value],
    same: Mapping[str, str] | None = None, cases: Mapping[str, Call] | None = None,
) -> Node:  # fmt: skip
    """``node`` with the names in ``constants`` replaced by their values, and what follows from that worked out.

    ``compute`` gives the value of a formula without names, ``same`` the older column that a column repeats,
    ``cases`` the columns that are a choice themselves: inside a choice by the same number, their case is known.
    """
    same = same or {}

    def known(name: Name) -> Node:
        if name.id in constants:
            return literal(constants[name.id])
        return replace(name, id=same[name.id]) if name.id in same else name

    return Partial(known, compute, cases)(node)


class Partial:
    """A formula worked out as far as ``known`` tells of its names."""

    def __init__(
        self, known: Callable[[Name], Node], compute: Callable[[Node], Value] | None = None, cases: Mapping[str, Call] | None = None
    ) -> None:
        self.known, self.compute, self.cases = known, compute, cases or {}

    def __call__(self, node: Node) -> Node:
        match node:
            case Name():
                return self.known(node)
            case Number() | Text() | Flag() | Blank():
                return node
            case If():
                return self.branch(node)
            case Call(function="choose"):
                return self.choice(node)
            case Call(function="coalesce"):
                return self.first(node)
        return self.settled(rebuild(node, self))

    def settled(self, node: Node) -> Node:
        """What a node is whose children are worked out."""
        if isinstance(node, Logic):
            return shortened(node)
        if isinstance(node, Call) and node.function == "is_blank":
            if isinstance(node.args[0], Blank):
                return Flag(True, span=node.span, facts=FLAG)
            if node.args[0].facts is not None and not node.args[0].facts.blank:
                return literal(False)
        if isinstance(node, Not) and isinstance(node.operand, Flag):
            return Flag(not node.operand.value, span=node.span, facts=FLAG)
        if is_blank(node):
            return Blank(span=node.span, facts=NOTHING)
        if self.compute is None:
            return node
        if all(isinstance(child, Literal) for child in node.children):
            return literal(self.compute(node))
        return shorter(node) if isinstance(node, Binary) else node

    def branch(self, node: If) -> Node:
        test = self(node.test)
        if isinstance(test, Flag):
            return self(node.then if test.value else node.other)
        if isinstance(test, Blank):
            return Blank(span=node.span, facts=NOTHING)
        return replace(node, test=test, then=self(node.then), other=self(node.other))

    def choice(self, node: Call) -> Node:
        index = self(node.args[0])
        if isinstance(index, Blank):
            return index
        if isinstance(index, Number):
            place = int(index.value)
            return self(node.args[place]) if 1 <= place < len(node.args) else Blank(facts=NOTHING)
        arms = [self.arm(index, place, node.args[place]) for place in range(1, len(node.args))]
        if isinstance(arms[0], Literal) and all(arm == arms[0] for arm in arms):
            sure = index.facts and not index.facts.blank and index.facts.low >= 1 and index.facts.high < len(node.args)
            if sure or isinstance(arms[0], Blank):
                return arms[0]
        return replace(node, args=(index, *arms))

    def arm(self, index: Node, place: int, node: Node) -> Node:
        """An arm of a choice, inside which other choices by the same number are known."""
        known: dict[str, Node] = {}
        for name, other in self.cases.items():
            if other.args[0] == index and place < len(other.args) and isinstance(other.args[place], Literal):
                known[name] = literal(getattr(other.args[place], "value", None))
        if not known:
            return self(node)
        return Partial(lambda name: known[name.id] if name.id in known else self.known(name), self.compute, self.cases)(node)

    def first(self, node: Call) -> Node:
        kept: list[Node] = []
        for arg in node.args:
            done = self(arg)
            if not isinstance(done, Blank):
                kept.append(done)
            if done.facts is not None and not done.facts.blank:  # what follows never counts
                break
        if not kept:
            return Blank(span=node.span, facts=NOTHING)
        return kept[0] if len(kept) == 1 else replace(node, args=tuple(kept))


def is_blank(node: Node) -> bool:
    """Whether a node has no value because something that it needs has none."""
    needs = isinstance(node, Binary | Compare | Negate | Not) or (isinstance(node, Call) and node.function in NEEDS_ALL)
    return needs and any(isinstance(child, Blank) for child in node.children)


def shortened(node: Logic) -> Node:
    """A chain of ``and`` or ``or`` without the leading parts that are known."""
    parts = list(node.parts)
    while len(parts) > 1 and isinstance(parts[0], Flag | Blank):
        if isinstance(parts[0], Blank) or parts[0].value != (node.op == "and"):
            return parts[0]
        parts.pop(0)
    return parts[0] if len(parts) == 1 else replace(node, parts=tuple(parts))


def shorter(node: Binary) -> Node:
    """``x`` for ``x * 1``, ``x / 1``, ``x + 0`` and ``x - 0``, which are exactly x; else the node, its facts up to date.

    A sum keeps its zero where x may be negative: -0 + 0 is 0.
    """
    for side, other in ((node.right, node.left), (node.left, node.right)):
        neutral = isinstance(side, Number) and side.value == NEUTRAL.get(node.op)
        if neutral and (side is node.right or node.op in ("*", "+")) and (node.op != "+" or other.facts.low >= 0):
            return other
    return replace(node, facts=arithmetic(node.op, node.left.facts, node.right.facts))
