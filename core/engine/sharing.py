"""Work that several formulas have in common, done once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from scenario.formulas.expr import Call, Compare, If, Logic, Name, Node, rebuild, walk
from scenario.formulas.facts import FLAG
from scenario.formulas.partial import Literal, literal


def share(columns: Mapping[str, tuple[Node, str]]) -> dict[str, tuple[Node, str]]:
    """The columns (formula and type each) and one more for each part that several hold, or one holds twice."""
    result = dict(columns)
    seen = Counter(part.signature for node, _ in columns.values() for part in walk(node) if not is_leaf(part))
    # A part that is a whole column already needs no other.
    owners = {node.signature: name for name, (node, _) in reversed([*columns.items()]) if not is_leaf(node)}

    def inside(node: Node) -> Node:
        # What stands only in this part gains nothing from a column of its own.
        return rebuild(node, lambda child: go(child, seen[node.signature]))

    def go(node: Node, times: int) -> Node:
        if is_leaf(node):
            return node
        key = node.signature
        if seen[key] <= times:
            return rebuild(node, lambda child: go(child, times))
        if key not in owners:
            owners[key] = f"#={len(owners)}"
            result[owners[key]] = inside(node), node.facts.type
        return Name(owners[key], facts=node.facts)

    for name, (node, kind) in columns.items():
        own = owners.get(node.signature) == name
        result[name] = (inside(node) if own else go(node, 1)), kind
    return result


def tests(node: Node) -> Node:
    """A choice by a number that is always one of the cases, as a chain of tests; the tests can then be shared."""
    if not (isinstance(node, Call) and node.function == "choose"):
        return node
    index, arms = node.args[0], node.args[1:]
    if index.facts.blank or index.facts.low < 1 or index.facts.high > len(arms) or not index.facts.integer:
        return node
    cases: dict[Any, list[int]] = {}
    for number, arm in enumerate(arms, 1):
        cases.setdefault(arm.signature, []).append(number)
    *ordered, last = sorted(cases.values(), key=len)
    result = arms[last[0] - 1]
    for numbers in reversed(ordered):
        found = tuple(Compare("==", index, literal(number), facts=FLAG) for number in numbers)
        test = found[0] if len(found) == 1 else Logic("or", found, facts=FLAG)
        result = If(test, arms[numbers[0] - 1], result, facts=node.facts)
    return result


def is_leaf(node: Node) -> bool:
    """Whether there is nothing to compute."""
    return isinstance(node, Name | Literal)
