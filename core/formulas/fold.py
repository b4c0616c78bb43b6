"""Formulas made smaller by what is known of a frame: names that hold one value in every row.

A folded formula does the same arithmetic in the same order: what becomes constant is computed by the same
back end, and only parts that cannot matter are dropped, so that no bit of a row depends on what other rows hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from scenario.formulas.expr import Binary, Blank, Call, Compare, Flag, If, Logic, Name, Negate, Node, Not, Number, Text, rebuild
from scenario.formulas.facts import FLAG, NOTHING, TEXT, Facts, arithmetic
from scenario.formulas.nodes import Value

NEUTRAL = {"*": 1, "/": 1, "+": 0, "-": 0}
"""The right-hand number that leaves the left one as it is."""

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


def fold(
    node: Node, constants: Mapping[str, Value], compute: Callable[[Node], Value],
    same: Mapping[str, str] | None = None, cases: Mapping[str, Call] | None = None,
) -> Node:  # fmt: skip
    """``node`` with the names in ``constants`` replaced by their values, and what follows from that worked out.

    ``compute`` gives the value of a formula without names, ``same`` the older column that a column repeats,
    ``cases`` the columns that are a choice themselves: inside a choice by the same number, their case is known.
    """
    same, cases = same or {}, cases or {}

    def go(node: Node) -> Node:
        if isinstance(node, Name):
            if node.id in constants:
                return literal(constants[node.id])
            return replace(node, id=same[node.id]) if node.id in same else node
        if isinstance(node, Literal):
            return node
        if isinstance(node, If):
            return branch(node)
        if isinstance(node, Call) and node.function == "choose":
            return choice(node)
        if isinstance(node, Call) and node.function == "coalesce":
            return first(node)
        node = rebuild(node, go)
        if isinstance(node, Logic):
            return settled(node)
        if isinstance(node, Call) and node.function == "is_blank" and not node.args[0].facts.blank:
            return literal(False)
        if all(isinstance(child, Literal) for child in node.children):
            return literal(compute(node))
        if isinstance(node, Binary | Compare | Negate | Not) and any(isinstance(child, Blank) for child in node.children):
            return Blank(facts=NOTHING)
        return shorter(node) if isinstance(node, Binary) else node

    def branch(node: If) -> Node:
        test = go(node.test)
        if isinstance(test, Flag):
            return go(node.then if test.value else node.other)
        if isinstance(test, Blank):
            return test
        return replace(node, test=test, then=go(node.then), other=go(node.other))

    def choice(node: Call) -> Node:
        index = go(node.args[0])
        if isinstance(index, Blank):
            return index
        if isinstance(index, Number):
            place = int(index.value)
            return go(node.args[place]) if 1 <= place < len(node.args) else Blank(facts=NOTHING)
        arms = [arm(index, place, node.args[place]) for place in range(1, len(node.args))]
        sure = not index.facts.blank and index.facts.low >= 1 and index.facts.high < len(node.args)
        if isinstance(arms[0], Literal) and all(arm == arms[0] for arm in arms) and (sure or isinstance(arms[0], Blank)):
            return arms[0]
        return replace(node, args=(index, *arms))

    def arm(index: Node, place: int, node: Node) -> Node:
        known = {}
        for name, other in cases.items():
            if other.args[0] == index and place < len(other.args) and isinstance(other.args[place], Literal):
                known[name] = getattr(other.args[place], "value", None)
        return fold(node, {**constants, **known}, compute, same, cases) if known else go(node)

    def first(node: Call) -> Node:
        kept: list[Node] = []
        for arg in node.args:
            done = go(arg)
            if not isinstance(done, Blank):
                kept.append(done)
            if not done.facts.blank:  # what follows never counts
                break
        return kept[0] if len(kept) == 1 else replace(node, args=tuple(kept)) if kept else Blank(facts=NOTHING)

    return go(node)


def settled(node: Logic) -> Node:
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
    left, right = node.left, node.right
    if isinstance(right, Number) and right.value == NEUTRAL.get(node.op) and (node.op != "+" or left.facts.low >= 0):
        return left
    if isinstance(left, Number) and left.value == NEUTRAL.get(node.op) and node.op in ("*", "+") and (node.op == "*" or right.facts.low >= 0):
        return right
    return replace(node, facts=arithmetic(node.op, left.facts, right.facts))
