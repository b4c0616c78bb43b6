"""The formula language: text in, a checked syntax tree out. Nothing here evaluates anything.

A formula is a small subset of Python's expression syntax (``+ - * / // % **``, comparisons,
``and or not``, ``a if c else b``, calls of known functions, numbers, quoted text, names). Python's own
parser reads it; every node that is not on the allow-list below is refused with its place.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

from scenario.errors import FormulaError, Problem

MAX_LENGTH = 4000
MAX_DEPTH = 60
MAX_NODES = 4000
MAX_CALLS = 16
UNLIMITED = 1e15
"""What stands for "no limit" in a number column; shown as the word ``unlimited``."""
CONSTANTS: dict[str, float] = {"unlimited": UNLIMITED}

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")

Span = tuple[int, int]
"""Line and column (both from 1) inside the formula's own text."""


@dataclass(frozen=True)
class Node:
    """A node of the tree; ``facts`` is filled in by :func:`scenario.facts.check`."""

    span: Span = field(default=(0, 0), compare=False, kw_only=True)
    facts: Any = field(default=None, compare=False, kw_only=True, repr=False)


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


BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**", ast.FloorDiv: "//", ast.Mod: "%",
}  # fmt: skip
COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
LITERALS: dict[str, Callable[[Span], Node]] = {
    "blank": lambda span: Blank(span=span),
    "true": lambda span: Flag(True, span=span),
    "false": lambda span: Flag(False, span=span),
}
REFUSED: dict[type[ast.AST], str] = {
    ast.Attribute: "a formula has no attributes; write a plain column name",
    ast.Subscript: "a formula has no subscripts; at(profile, n) reads a profile, curve(name, x) a curve",
    ast.Lambda: "a formula has no lambda",
    ast.Tuple: "a number has a decimal point, not a comma; a function needs its name before the brackets",
    ast.List: "a formula has no lists; acceptance profiles and curves hold series of numbers",
    ast.BitXor: "a power is written ** (2 ** 3), not ^",
    ast.BitAnd: "write 'and'",
    ast.BitOr: "write 'or'",
    ast.Invert: "write 'not'",
    ast.Is: "compare with ==",
    ast.In: "write a == \"x\" or a == \"y\"",
}  # fmt: skip


def parse(text: str) -> Node:
    """The tree of one formula.

    Raises :class:`FormulaError` with the place (line and column inside ``text``), what is wrong and,
    where it can be told, what was meant.
    """
    if not isinstance(text, str):
        raise FormulaError("a formula is a text")
    if len(text) > MAX_LENGTH:
        raise FormulaError(f"the formula has {len(text):,} characters; the limit is {MAX_LENGTH:,}")
    if not text.strip():
        raise FormulaError("the formula is empty")
    _refuse_early(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Brackets let a formula run over several lines; they shift the first line by one column.
            tree = ast.parse(f"({text}\n)", mode="eval").body
    except SyntaxError as error:
        raise _syntax_problem(text, error) from None
    except (RecursionError, MemoryError, ValueError) as error:
        raise FormulaError(f"the formula cannot be read: {type(error).__name__}") from None
    reader = _Reader(text)
    node = reader.read(tree, 0)
    if reader.problems:
        raise FormulaError(reader.problems)
    return node


def problem(text: str, span: Span, message: str, hint: str = "") -> Problem:
    """A problem at ``span`` of a formula, with the line of the formula and the mark."""
    line, column = span
    lines = text.splitlines() or [""]
    source = lines[line - 1] if 0 < line <= len(lines) else ""
    return Problem(message, hint, line=line, column=column, source=source, caret=column if source else 0)


def _refuse_early(text: str) -> None:
    """What Python's parser would take badly, or read as something else, is refused before it."""
    depth = 0
    quote = ""
    line, start = 1, 0
    for index, char in enumerate(text):
        span = (line, index - start + 1)
        if char == "\n":
            line, start = line + 1, index + 1
        if quote:
            if char == "\\":
                raise FormulaError(problem(text, span, "a text in a formula has no backslash"))
            quote = "" if char == quote else quote
            continue
        if char in "\"'":
            quote = char
        elif char in "([{":
            depth += 1
            if depth > MAX_DEPTH:
                raise FormulaError(problem(text, span, f"the formula is nested deeper than {MAX_DEPTH} levels"))
        elif char in ")]}":
            depth -= 1
            if depth < 0:
                raise FormulaError(problem(text, span, f"there is no opening bracket for this '{char}'"))
        elif char in "#;\\`$?!" and text[index : index + 2] != "!=":
            raise FormulaError(problem(text, span, f"'{char}' has no meaning in a formula"))
    if text.lstrip().startswith("="):
        raise FormulaError(problem(text, (1, 1), "a formula is written without the '=' in front"))


def _syntax_problem(text: str, error: SyntaxError) -> FormulaError:
    line = error.lineno or 1
    column = (error.offset or 1) - (1 if line == 1 else 0)
    lines = text.splitlines() or [""]
    if line > len(lines):
        line, column = len(lines), len(lines[-1]) + 1
    column = min(max(column, 1), len(lines[line - 1]) + 1)
    hint = ""
    if re.search(r"\bif\b", text, re.IGNORECASE) and "else" not in text:
        hint = "a choice is written: value if condition else other"
    elif "%" in text and re.search(r"[0-9]\s*%\s*($|[-+*/)])", text):
        hint = "a percentage is written as a number: 0.5"
    elif "=" in text and not re.search(r"[<>=!]=", text):
        hint = "two values are compared with =="
    elif "<>" in text:
        hint = "'not equal' is written !="
    message = "the formula cannot be read here"
    if "never closed" in str(error.msg):
        message = "a bracket is never closed"
    elif "unterminated string" in str(error.msg):
        message = "a text is never closed"
    return FormulaError(problem(text, (line, column), message, hint))


class _Reader:
    """Turns Python's tree into ours, collecting every problem on the way."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.problems: list[Problem] = []

    def span(self, node: Any) -> Span:
        line = getattr(node, "lineno", 1)
        offset = getattr(node, "col_offset", 0)
        source = ("(" if line == 1 else "") + (self.lines[line - 1] if line <= len(self.lines) else "")
        column = len(source.encode()[:offset].decode(errors="ignore")) + (0 if line == 1 else 1)
        return line, max(column, 1)

    def refuse(self, node: Any, message: str, hint: str = "", at: Any = None) -> Node:
        self.problems.append(problem(self.text, self.span(at or node), message, hint))
        return Blank()

    def read(self, node: ast.AST, depth: int) -> Node:
        span = self.span(node)
        if depth > MAX_DEPTH:
            return self.refuse(node, f"the formula is nested deeper than {MAX_DEPTH} levels")
        below = depth + 1
        match node:
            case ast.Constant():
                return self.constant(node, span)
            case ast.Name(id=name):
                if name in LITERALS:
                    return LITERALS[name](span)
                if name in CONSTANTS:
                    return Number(CONSTANTS[name], span=span)
                if not NAME.match(name):
                    return self.refuse(node, f"'{name}' is not a name: letters, digits and _ , a letter first")
                return Name(name, span=span)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return Negate(self.read(operand, below), span=span)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.read(operand, below)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Not(self.read(operand, below), span=span)
            case ast.BinOp(op=op) if type(op) in BINARY:
                return self.binary(node, span, depth)
            case ast.BoolOp(op=op, values=values):
                name = "and" if isinstance(op, ast.And) else "or"
                return Logic(name, tuple(self.read(value, below) for value in values), span=span)
            case ast.Compare(left=left, ops=ops, comparators=rights):
                return self.compare(node, left, ops, rights, span, below)
            case ast.IfExp(test=test, body=then, orelse=other):
                # A chain of `else` counts as one level: it reads as a list of cases.
                tail = self.read(other, depth if isinstance(other, ast.IfExp) else below)
                return If(self.read(test, below), self.read(then, below), tail, span=span)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
                if keywords or any(isinstance(arg, ast.Starred) for arg in args):
                    return self.refuse(node, "a function takes its arguments by position")
                return Call(name, tuple(self.read(arg, below) for arg in args), span=span)
            case ast.Call(func=func):
                return self.refuse(node, "only a named function can be called", at=func)
        op = getattr(node, "op", node)
        return self.refuse(
            node, f"{type(node).__name__} is not part of the formula language", REFUSED.get(type(op), "")
        )

    def binary(self, node: ast.BinOp, span: Span, depth: int) -> Node:
        # A long sum leans to the left; walking its spine in a loop keeps the depth that of what is written.
        spine: list[ast.BinOp] = []
        left: ast.AST = node
        while isinstance(left, ast.BinOp) and type(left.op) in BINARY and not isinstance(left.op, ast.Pow):
            spine.append(left)
            left = left.left
        if not spine:
            return Binary("**", self.read(node.left, depth + 1), self.read(node.right, depth + 1), span=span)
        if len(spine) > MAX_DEPTH * 4:
            return self.refuse(node, f"the formula has a chain of {len(spine)} operations; the limit is {MAX_DEPTH * 4}")
        tree = self.read(left, depth + 1)
        for step in reversed(spine):
            tree = Binary(BINARY[type(step.op)], tree, self.read(step.right, depth + 1), span=self.span(step))
        return tree

    def compare(
        self, node: ast.AST, left: ast.AST, ops: list[ast.cmpop], rights: list[ast.expr], span: Span, depth: int
    ) -> Node:
        parts: list[Node] = []
        first = self.read(left, depth)
        for op, right in zip(ops, rights, strict=True):
            if type(op) not in COMPARE:
                return self.refuse(node, f"'{type(op).__name__.lower()}' is not part of the formula language",
                                   REFUSED.get(type(op), "compare with =="))  # fmt: skip
            second = self.read(right, depth)
            parts.append(Compare(COMPARE[type(op)], first, second, span=span))
            first = second
        return parts[0] if len(parts) == 1 else Logic("and", tuple(parts), span=span)

    def constant(self, node: ast.Constant, span: Span) -> Node:
        value = node.value
        if isinstance(value, bool):
            return Flag(value, span=span)
        if isinstance(value, str):
            if len(value) > 255:
                return self.refuse(node, "a text in a formula has at most 255 characters")
            return Text(value, span=span)
        if value is None:
            return Blank(span=span)
        if not isinstance(value, int | float):
            return self.refuse(node, f"{type(value).__name__} values are not part of the formula language")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if abs(number) > 9.99e307:
            return self.refuse(node, "this number is larger than any that a spreadsheet holds (about 1e308)")
        if 0 < abs(number) < 2.3e-308:
            return self.refuse(node, "this number is smaller than any that a spreadsheet holds (about 2.3e-308)")
        if float(f"{number:.15g}") != number or (isinstance(value, int) and int(number) != value):
            return self.refuse(node, "this number has more than 15 digits; a spreadsheet keeps 15")
        return Number(number, span=span)


def children(node: Node) -> Iterator[Node]:
    """The nodes directly below ``node``, from left to right as written in the tree."""
    for item in fields(node):
        if item.name in ("span", "facts"):
            continue
        value = getattr(node, item.name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from value


def walk(node: Node) -> Iterator[Node]:
    """``node`` and everything below it."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(list(children(top))))


def names(node: Node) -> list[str]:
    """The names a formula reads, each once, in reading order."""
    return list(dict.fromkeys(item.id for item in walk(node) if isinstance(item, Name)))


def rebuild(node: Node, change: Callable[[Node], Node]) -> Node:
    """A copy of ``node`` whose direct children went through ``change``."""
    parts: dict[str, Any] = {}
    for item in fields(node):
        value = getattr(node, item.name)
        if item.name in ("span", "facts"):
            continue
        if isinstance(value, Node):
            parts[item.name] = change(value)
        elif isinstance(value, tuple):
            parts[item.name] = tuple(change(part) for part in value)
    return replace(node, **parts) if parts else node


def substitute(node: Node, values: dict[str, Node]) -> Node:
    """``node`` with every name in ``values`` replaced by its tree."""
    if isinstance(node, Name):
        return values.get(node.id, node)
    return rebuild(node, lambda child: substitute(child, values))


def expand(node: Node, functions: dict[str, tuple[tuple[str, ...], Node]], *, text: str = "", depth: int = 0) -> Node:
    """``node`` with every call of a function that is itself a formula replaced by that formula.

    ``functions`` maps a name to its argument names and body. Raises :class:`FormulaError` on a wrong
    number of arguments, on a function that calls itself, and when the result grows past ``MAX_NODES``.
    """
    if depth > MAX_CALLS:
        raise FormulaError(problem(text, node.span, "a function ends up calling itself"))
    node = rebuild(node, lambda child: expand(child, functions, text=text, depth=depth))
    if isinstance(node, Call) and node.function in functions:
        arguments, body = functions[node.function]
        if len(arguments) != len(node.args):
            said = f"{node.function}({', '.join(arguments)}) takes {len(arguments)} arguments, not {len(node.args)}"
            raise FormulaError(problem(text, node.span, said))
        body = substitute(body, dict(zip(arguments, node.args, strict=True)))
        node = expand(body, functions, text=text, depth=depth + 1)
        if sum(1 for _ in walk(node)) > MAX_NODES:
            raise FormulaError(problem(text, node.span, f"the formula grows past {MAX_NODES} parts when written out"))
    return node
