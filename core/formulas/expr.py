"""The formula language: text in, a syntax tree out. Nothing here evaluates anything.

A formula is a small subset of Python's expression syntax (``+ - * / // % **``, comparisons,
``and or not``, ``a if c else b``, calls of known functions, numbers, quoted text, names). Python's own
parser reads it; every node that is not on the allow-list below is refused with its place.
"""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Callable
from typing import Any

from scenario.common.errors import FormulaError, Problem
from scenario.formulas.nodes import Binary, Blank, Call, Compare, Flag, If, Logic, Name, Negate, Node, Not, Number, Span, Text
from scenario.formulas.scan import problem, refuse_early, syntax_problem

from scenario.formulas.nodes import measure, names, rebuild, substitute, walk  # isort: skip

__all__ = [
    "CONSTANTS", "NAME", "UNLIMITED", "Binary", "Blank", "Call", "Compare", "Flag", "If", "Logic", "Name", "Negate", "Node",
    "Not", "Number", "Span", "Text", "expand", "names", "parse", "problem", "rebuild", "substitute", "walk",
]  # fmt: skip

MAX_LENGTH = 4000
MAX_DEPTH = 60
MAX_HEIGHT = 150
MAX_NODES = 4000
MAX_CALLS = 16
UNLIMITED = 1e15
"""What stands for "no limit" in a number column; shown as the word ``unlimited``."""
CONSTANTS: dict[str, float] = {"unlimited": UNLIMITED}

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")

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
_UNARY: dict[type[ast.unaryop], Callable[..., Node]] = {ast.USub: Negate, ast.Not: Not}
_COMPREHENSION = ("a comprehension", "")
REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Attribute: ("an attribute", "a formula has no attributes; write a plain column name"),
    ast.Subscript: ("a subscript", "a formula has no subscripts; at(profile, n) reads a profile, curve(name, x) a curve"),
    ast.Lambda: ("lambda", ""),
    ast.Tuple: ("a comma here", "a number has a decimal point, not a comma; a function needs its name before the brackets"),
    ast.List: ("a list", "a formula has no lists; acceptance profiles and curves hold series of numbers"),
    ast.Set: ("a set", ""), ast.Dict: ("a dict", ""),
    ast.ListComp: _COMPREHENSION, ast.SetComp: _COMPREHENSION, ast.DictComp: _COMPREHENSION, ast.GeneratorExp: _COMPREHENSION,
    ast.NamedExpr: ("':='", "a formula gives nothing a name"),
    ast.JoinedStr: ('f"..."', "a text is written as it is, in quotes"),
    ast.Await: ("await", ""), ast.Yield: ("yield", ""), ast.YieldFrom: ("yield", ""), ast.Starred: ("'*' in front", ""),
    ast.BitXor: ("'^'", "a power is written ** (2 ** 3), not ^"),
    ast.BitAnd: ("'&'", "write 'and'"), ast.BitOr: ("'|'", "write 'or'"), ast.Invert: ("'~'", "write 'not'"),
    ast.MatMult: ("'@'", ""), ast.LShift: ("'<<'", ""), ast.RShift: ("'>>'", ""),
    ast.Is: ("'is'", "compare with =="), ast.IsNot: ("'is not'", "compare with !="),
    ast.In: ("'in'", "write a == \"x\" or a == \"y\""), ast.NotIn: ("'not in'", "write a != \"x\" and a != \"y\""),
}  # fmt: skip


def parse(text: str) -> Node:
    """The tree of one formula.

    Raises :class:`FormulaError` with the place (line and column inside ``text``), what is wrong and,
    where it can be told, what was meant.
    """
    if not isinstance(text, str):
        raise FormulaError("a formula is a text")
    if len(text) > MAX_LENGTH:
        raise FormulaError(problem(text, (1, 1), f"the formula has {len(text):,} characters; the limit is {MAX_LENGTH:,}"))
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise FormulaError("the formula is empty")
    refuse_early(text, MAX_DEPTH)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Brackets let a formula run over several lines; they shift the first line by one column.
            tree = ast.parse(f"({text}\n)", mode="eval").body
    except SyntaxError as error:
        raise syntax_problem(text, error) from None
    except (RecursionError, MemoryError, ValueError) as error:
        said = "the formula is nested too deeply" if isinstance(error, RecursionError | MemoryError) else "the formula cannot be read"
        raise FormulaError(problem(text, (1, 1), said)) from None
    reader = _Reader(text)
    node = reader.read(tree, 0)
    if not reader.problems:
        _refuse_height(node, text)
    if reader.problems:
        raise FormulaError(reader.problems)
    return node


def _refuse_height(node: Node, text: str) -> int:
    """The number of parts; :class:`FormulaError` where they are too many or nested too deep."""
    parts, height = measure(node, MAX_NODES)
    if parts > MAX_NODES:
        raise FormulaError(problem(text, node.span, f"the formula grows past {MAX_NODES} parts when written out"))
    if height > MAX_HEIGHT:
        said = f"the formula is a chain or nest of more than {MAX_HEIGHT} steps"
        raise FormulaError(problem(text, node.span, said, "split it into columns"))
    return parts


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

    def foreign(self, node: Any, what: ast.AST) -> Node:
        noun, hint = REFUSED.get(type(what), (type(what).__name__, ""))
        return self.refuse(node, f"{noun} is not part of the formula language", hint)

    def read(self, node: ast.AST, depth: int) -> Node:
        span = self.span(node)
        if depth > MAX_DEPTH:
            return self.refuse(node, f"the formula is nested deeper than {MAX_DEPTH} levels")
        below = depth + 1
        match node:
            case ast.Constant():
                return self.constant(node, span)
            case ast.Name(id=name):
                return self.name(node, name, span)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not() as op, operand=operand):
                inner = self.read(operand, below)
                return inner if isinstance(op, ast.UAdd) else _UNARY[type(op)](inner, span=span)
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
            case ast.Call():
                return self.call(node, span, below)
        return self.foreign(node, getattr(node, "op", node))

    def name(self, node: ast.Name, name: str, span: Span) -> Node:
        if name in LITERALS:
            return LITERALS[name](span)
        if name in CONSTANTS:
            return Number(CONSTANTS[name], span=span)
        return Name(name, span=span) if NAME.match(name) else self.unnameable(node, name)

    def call(self, node: ast.Call, span: Span, below: int) -> Node:
        if not isinstance(node.func, ast.Name):
            return self.refuse(node, "only a named function can be called", at=node.func)
        if not NAME.match(node.func.id):
            return self.unnameable(node, node.func.id)
        if node.keywords or any(isinstance(arg, ast.Starred) for arg in node.args):
            return self.refuse(node, "a function takes its arguments by position")
        return Call(node.func.id, tuple(self.read(arg, below) for arg in node.args), span=span)

    def unnameable(self, node: ast.AST, name: str) -> Node:
        return self.refuse(node, f"'{name}' is not a name: letters, digits and _ , a letter first")

    def binary(self, node: ast.BinOp, span: Span, depth: int) -> Node:
        # A long sum leans to the left; walking its spine in a loop keeps the depth that of what is written.
        spine: list[ast.BinOp] = []
        left: ast.AST = node
        while isinstance(left, ast.BinOp) and type(left.op) in BINARY and not isinstance(left.op, ast.Pow):
            spine.append(left)
            left = left.left
        if not spine:
            return Binary("**", self.read(node.left, depth + 1), self.read(node.right, depth + 1), span=span)
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
                return self.foreign(node, op)
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
            if '"' in value and "'" in value:
                return self.refuse(node, "a text in a formula holds ' or \", not both")
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


Functions = dict[str, tuple[tuple[str, ...], Node]]


def expand(node: Node, functions: Functions, *, text: str = "") -> Node:
    """``node`` with every call of a function that is itself a formula replaced by that formula.

    ``functions`` maps a name to its argument names and body; what comes from a body stands at the place of the
    call. Raises :class:`FormulaError` on a wrong number of arguments, on a function that calls itself, and
    when the result grows past ``MAX_NODES`` or ``MAX_HEIGHT``.
    """
    try:
        node = _expand(node, functions, text, (), [MAX_NODES * 8])
    except RecursionError:
        raise FormulaError(problem(text, node.span, "the formula is nested too deeply when written out")) from None
    _refuse_height(node, text)
    return node


def _expand(node: Node, functions: Functions, text: str, path: tuple[str, ...], left: list[int]) -> Node:
    # ``left`` is how many parts may still be written: functions that double at each step stop early.
    node = rebuild(node, lambda child: _expand(child, functions, text, path, left))
    if not isinstance(node, Call) or node.function not in functions:
        return node
    if node.function in path:
        loop = " -> ".join((*path[path.index(node.function) :], node.function))
        raise FormulaError(problem(text, node.span, f"a function ends up calling itself: {loop}"))
    if len(path) >= MAX_CALLS:
        raise FormulaError(problem(text, node.span, f"functions call each other more than {MAX_CALLS} deep"))
    arguments, body = functions[node.function]
    if len(arguments) != len(node.args):
        said = f"{node.function}({', '.join(arguments)}) takes {len(arguments)} arguments, not {len(node.args)}"
        raise FormulaError(problem(text, node.span, said))
    body = substitute(body, dict(zip(arguments, node.args, strict=True)), node.span)
    left[0] -= _refuse_height(body, text)
    if left[0] < 0:
        raise FormulaError(problem(text, node.span, f"the formula grows past {MAX_NODES} parts when written out"))
    return _expand(body, functions, text, (*path, node.function), left)
