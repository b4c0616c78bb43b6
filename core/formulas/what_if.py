"""What a column would be if others were different: its own tree with them put in their place.

Answers about other draft lengths and other batches come from here, so that they cannot part from the columns of the row.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from scenario.formulas.expr import If, Name, Node, rebuild, substitute
from scenario.formulas.to_text import compile_text

Trees = Mapping[str, Node]


class WhatIf:
    """The columns of a row as trees, whether or not the row can run; those in ``held`` stay as they are in the row.

    ``spelled`` has the trees of some as people read them, with the functions not yet written out.
    """

    def __init__(self, trees: Trees, spelled: Trees, held: Collection[str] = ()) -> None:
        self.trees = {name: running(tree) for name, tree in trees.items()}
        self.texts = {**self.trees, **{name: running(tree) for name, tree in spelled.items()}}
        self.readers: dict[str, set[str]] = {}
        for name, tree in self.trees.items():
            if name not in held:
                for read in tree.names:
                    self.readers.setdefault(read, set()).add(name)

    def dependents(self, changed: Collection[str]) -> set[str]:
        """The columns that read one of ``changed``, or read one that does."""
        found: set[str] = set()
        stack = list(changed)
        while stack:
            new = self.readers.get(stack.pop(), set()) - found - set(changed)
            found |= new
            stack += new
        return found

    def instead(self, node: Node, values: Trees) -> tuple[Node, str]:
        """A formula where the names in ``values`` are those, and the same as people read it.

        Columns that depend on them are written out, all others are read. A formula that is one name stands for that column.
        """
        changing = self.dependents(values)
        found, shown = (_put(node, values, changing, texts) for texts in (self.trees, self.texts))
        return found, compile_text(shown)


def _put(node: Node, values: Trees, changing: set[str], texts: Trees) -> Node:
    done = dict(values)

    def put(node: Node, above: frozenset[str]) -> Node:
        for name in node.names:
            # A column that comes back to itself is left: the order of the columns tells of the circle.
            if name in changing and name not in done and name not in above:
                done[name] = put(texts[name], above | {name})
        return substitute(node, {name: done[name] for name in node.names if name in done})

    root = node.id if isinstance(node, Name) else ""
    return put(texts.get(root, node), frozenset({root}))


def running(node: Node) -> Node:
    """``node`` without its conditions on ``fits``: what a row gives whether or not it can run."""
    if "fits" not in node.names:
        return node
    node = rebuild(node, running)
    return node.then if isinstance(node, If) and "fits" in node.test.names else node
