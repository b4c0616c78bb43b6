"""The syntax tree of formulas: its nodes, and ways to walk and change it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

Value = float | str | bool | None
"""What a formula gives; None is blank."""
Span = tuple[int, int]
"""Line and column (both from 1) inside the formula's own text."""


@dataclass(frozen=True)
class Node:
    """A node of the tree; ``facts`` is filled in by :func:`scenario.formulas.facts.check`."""

    span: Span = field(default=(0, 0), compare=False, kw_only=True)
    facts: Any = field(default=None, compare=False, kw_only=True, repr=False)

    # A node never changes, and planning asks these of the same nodes over and over.

    @functools.cached_property
    def children(self) -> tuple[Node, ...]:
        """The nodes directly below, from left to right as written in the tree."""
        found: list[Node] = []
        for name in _parts(type(self)):  # type: ignore[arg-type]  # mypy doubts that a class can be hashed
            value = getattr(self, name)
            if isinstance(value, Node):
                found.append(value)
            elif isinstance(value, tuple):
                found.extend(value)
        return tuple(found)

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The names read, each once, in reading order."""
        return tuple(dict.fromkeys(name for child in self.children for name in child.names))

    @functools.cached_property
    def signature(self) -> Signature:
        """What makes two formulas the same work: also their facts, as one may need a guard that the other does not."""
        own = tuple(value for name in _parts(type(self)) if not isinstance(value := getattr(self, name), Node | tuple))  # type: ignore[arg-type]
        return Signature((type(self), own, self.facts, *(child.signature for child in self.children)))


class Signature:
    """A key for a formula and its facts; it keeps its hash, which would else cost a walk at every look-up."""

    __slots__ = ("hash", "parts")

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts, self.hash = parts, hash(parts)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Signature) and self.hash == other.hash and self.parts == other.parts)


@dataclass(frozen=True)
class Number(Node):
    value: float


@dataclass(frozen=True)
class Text(Node):
    value: str


@dataclass(frozen=True)
class Flag(Node):
    value: bool


@dataclass(frozen=True)
class Blank(Node):
    """The literal ``blank``: no value."""


@dataclass(frozen=True)
class Name(Node):
    id: str

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Its own."""
        return (self.id,)


@dataclass(frozen=True)
class Negate(Node):
    operand: Node


@dataclass(frozen=True)
class Not(Node):
    operand: Node


@dataclass(frozen=True)
class Binary(Node):
    op: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Compare(Node):
    op: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Logic(Node):
    """``and`` / ``or`` of two or more parts, read from the left and stopping early."""

    op: str
    parts: tuple[Node, ...]


@dataclass(frozen=True)
class If(Node):
    test: Node
    then: Node
    other: Node


@dataclass(frozen=True)
class Call(Node):
    function: str
    args: tuple[Node, ...]


@functools.cache
def _parts(kind: type[Any]) -> tuple[str, ...]:
    """The attributes in which a kind of node may hold others; asked for at every step of a walk, hence kept."""
    return tuple(item.name for item in fields(kind) if item.name not in ("span", "facts"))


def walk(node: Node) -> Iterator[Node]:
    """``node`` and everything below it."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(top.children))


def names(node: Node) -> list[str]:
    """The names a formula reads, each once, in reading order."""
    return list(node.names)


def rebuild(node: Node, change: Callable[[Node], Node]) -> Node:
    """``node`` with its direct children gone through ``change``; itself where that changes none of them."""
    parts: dict[str, Any] = {}
    for name in _parts(type(node)):  # type: ignore[arg-type]  # mypy doubts that a class can be hashed
        value = getattr(node, name)
        if isinstance(value, Node):
            done: Any = change(value)
            if done is not value:
                parts[name] = done
        elif isinstance(value, tuple):
            done = tuple(change(part) for part in value)
            if any(new is not old for new, old in zip(done, value, strict=True)):
                parts[name] = done
    return replace(node, **parts) if parts else node


def substitute(node: Node, values: dict[str, Node], span: Span | None = None) -> Node:
    """``node`` with every name in ``values`` replaced by its tree; with ``span``, all else stands there."""
    if isinstance(node, Name) and node.id in values:
        return values[node.id]
    node = rebuild(node, lambda child: substitute(child, values, span))
    return node if span is None else replace(node, span=span)


def measure(node: Node, most: int) -> tuple[int, int]:
    """How many parts ``node`` has and how deep they are nested; counting ends soon after ``most`` parts."""
    parts, height = 0, 0
    stack = [(node, 1)]
    while stack and parts <= most:
        top, level = stack.pop()
        parts, height = parts + 1, max(height, level)
        stack.extend((child, level + 1) for child in top.children)
    return parts, height
