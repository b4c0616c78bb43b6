"""One row's reading of a formula: which arm of a choice, which of several sources, which case applies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scenario.formulas.expr import Call, If, Name, Node, names, rebuild
from scenario.formulas.to_python import evaluate
from scenario.formulas.to_text import PLAIN, compile_text
from scenario.formulas.vectors import Vectors

if TYPE_CHECKING:
    from scenario.book.book import Book
from scenario.formulas.nodes import Value

SLOTS = {"quant_no": "quantizations", "draft_no": "draftings"}
"""The columns whose number chooses between methods, and where the book lists those methods."""


@dataclass
class Resolved:
    """A formula as it applies to one row.

    ``symbolic`` is the formula with the choices between methods and between sources decided, ``taken`` the
    same with every case decided as well. ``methods`` names the methods that answered, ``cases`` the conditions
    that decided, ``reads`` the names that take part.
    """

    symbolic: Node
    taken: Node
    methods: list[str] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)


def resolve(node: Node, values: Mapping[str, Value], book: Book) -> Resolved:
    """The formula ``node`` as it applies to a row with these ``values``."""
    found = Resolved(node, node)
    found.symbolic = _choices(node, values, book, found.methods)
    tests: list[Node] = []
    found.taken = _cases(found.symbolic, values, book.vectors, tests)
    found.cases = [f"{compile_text(test, signs=PLAIN)} is {'true' if evaluate(test, values, book.vectors) else 'false'}" for test in tests]
    found.reads = list(dict.fromkeys(name for part in (*tests, found.taken) for name in names(part)))
    return found


def number_owner(book: Book, name: str, number: int) -> str:
    """Who the ``number``-th arm of a choice by ``name`` belongs to: a method or time model, or nothing."""
    if name == "time_model_no" and 1 <= number <= len(book.time_models):
        return f"time model {book.time_models[number - 1]}"
    listed: list[str] = getattr(book, SLOTS[name]) if name in SLOTS else []
    if not 1 <= number <= len(listed):
        return ""
    return listed[number - 1] and f"method {listed[number - 1]}"


def _choices(node: Node, values: Mapping[str, Value], book: Book, methods: list[str]) -> Node:
    while isinstance(node, Call) and node.function in ("choose", "coalesce"):
        if node.function == "choose":
            number = evaluate(node.args[0], values, book.vectors)
            if number is None or not 1 <= int(number) < len(node.args):
                break
            owner = number_owner(book, node.args[0].id, int(number)) if isinstance(node.args[0], Name) else ""
            if owner and owner not in methods:
                methods.append(owner)
            node = node.args[int(number)]
        else:
            node = next((arg for arg in node.args if evaluate(arg, values, book.vectors) is not None), node.args[-1])
    return rebuild(node, lambda child: _choices(child, values, book, methods))


def _cases(node: Node, values: Mapping[str, Value], vectors: Vectors, tests: list[Node]) -> Node:
    while isinstance(node, If):
        test = evaluate(node.test, values, vectors)
        if test is None:
            break
        if node.test not in tests:
            tests.append(node.test)
        node = node.then if test else node.other
    return rebuild(node, lambda child: _cases(child, values, vectors, tests))
