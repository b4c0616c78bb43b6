"""Formulas without the parts that ask about inputs a table does not have."""

from __future__ import annotations

from collections.abc import Mapping

from scenario.formulas.expr import Binary, Blank, Call, Compare, Flag, If, Logic, Negate, Node, Not, rebuild, substitute


def without(node: Node, absent: Mapping[str, Node]) -> Node:
    """``node`` with the names in ``absent`` replaced, and what follows from a blank among them worked out.

    Only what cannot matter goes: a blank in a sum is blank, ``coalesce`` passes over it, ``is_blank`` knows it.
    """
    replaced = substitute(node, dict(absent)) if absent else node
    return node if replaced == node else prune(replaced)


def prune(node: Node) -> Node:
    """``node`` with its literal blanks and conditions worked out."""
    node = rebuild(node, prune)
    match node:
        case Call(function="is_blank", args=(Blank(),)):
            return Flag(True, span=node.span)
        case Call(function="coalesce", args=args):
            kept = tuple(arg for arg in args if not isinstance(arg, Blank))
            if len(kept) < 2:
                return kept[0] if kept else Blank(span=node.span)
            return Call("coalesce", kept, span=node.span)
        case Call(function="at" | "min" | "max" | "tree_tokens" | "tree_rows", args=args) if any(isinstance(arg, Blank) for arg in args):
            return Blank(span=node.span)
        case Not(operand=Flag(value=value)):
            return Flag(not value, span=node.span)
        case Binary(left=left, right=right) | Compare(left=left, right=right) if isinstance(left, Blank) or isinstance(right, Blank):
            return Blank(span=node.span)
        case Negate(operand=Blank()) | Not(operand=Blank()):
            return Blank(span=node.span)
        case If(test=Flag(value=value), then=then, other=other):
            return then if value else other
        case If(test=Blank()):
            return Blank(span=node.span)
        case Logic(op=op, parts=parts):
            return _settled(node, op, parts)
    return node


def _settled(node: Logic, op: str, parts: tuple[Node, ...]) -> Node:
    kept = list(parts)
    while len(kept) > 1 and isinstance(kept[0], Flag):
        if kept[0].value != (op == "and"):
            return kept[0]
        kept.pop(0)
    return kept[0] if len(kept) == 1 else Logic(op, tuple(kept), span=node.span)
