"""Formulas as polars expressions: the engine's back end.

Every number is Float64. An operation that may fail (by its facts) gives null there, so that NaN and
infinity never arise and ``null`` means blank, as in the other back ends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping

import polars as pl

from scenario.expr import Binary, Blank, Call, Compare, Flag, If, Logic, Name, Negate, Node, Not, Number, Text
from scenario.facts import may_fail
from scenario.vectors import POSITIONS, Vectors

BLANK = {
    "number": pl.lit(None, dtype=pl.Float64), "text": pl.lit(None, dtype=pl.String), "flag": pl.lit(None, dtype=pl.Boolean),
    "none": pl.lit(None),
}  # fmt: skip
"""No value, by the type of what has none."""


def compile_polars(node: Node, vectors: Vectors | None = None, constants: Mapping[str, float | str | None] | None = None) -> pl.Expr:
    """The expression of a checked formula.

    ``constants`` gives the names that hold one value for all rows (scalars of the table); every other
    name is a column of the frame.
    """
    compiler = _Compiler(vectors or Vectors(), constants or {})
    return BLANK["number"] if node.facts.type == "none" else compiler.compile(node)


class _Compiler:
    def __init__(self, vectors: Vectors, constants: Mapping[str, float | str | None]) -> None:
        self.vectors = vectors
        self.constants = constants

    def compile(self, node: Node) -> pl.Expr:
        match node:
            case Number(value=value) | Text(value=value) | Flag(value=value):
                return pl.lit(value)
            case Blank():
                return BLANK["none"]
            case Name(id=name):
                if name in self.constants:
                    value = self.constants[name]
                    return BLANK[node.facts.type] if value is None else pl.lit(value)
                return pl.col(name)
            case Negate(operand=operand):
                return -self.number(operand)
            case Not(operand=operand):
                return ~self.flag(operand)
            case Binary():
                return self.binary(node)
            case Compare(op=op, left=left, right=right):
                return _COMPARE[op](self.compile(left), self.compile(right))
            case Logic(op=op, parts=parts):
                return self.logic(op, list(parts))
            case If():
                return self.choice(node)
            case Call(function=function, args=args):
                return self.call(node, function, args)
        raise AssertionError(node)

    def typed(self, node: Node, kind: str) -> pl.Expr:
        """Like :meth:`compile`; a bare blank takes the type that is needed there."""
        return BLANK[kind] if node.facts.type == "none" else self.compile(node)

    def number(self, node: Node) -> pl.Expr:
        return self.typed(node, "number")

    def flag(self, node: Node) -> pl.Expr:
        return self.typed(node, "flag")

    def binary(self, node: Binary) -> pl.Expr:
        a, b = self.number(node.left), self.number(node.right)
        op, divisor = node.op, node.right.facts
        if op in ("/", "//", "%"):
            result = a / b
            if op != "/":
                result = result.floor() if op == "//" else a - b * result.floor()
            if divisor.may_vanish:
                result = pl.when(b != 0).then(result)
        else:
            result = _ARITHMETIC[op](a, b)
        return _finite(result) if may_fail(op, node.left.facts, divisor) else result

    def logic(self, op: str, parts: list[Node]) -> pl.Expr:
        # Spreadsheets are made to stop early by nested IFs; a blank on the left is blank, whatever follows.
        result = self.flag(parts[-1])
        for part in reversed(parts[:-1]):
            left = self.flag(part)
            both = left & result if op == "and" else left | result
            result = pl.when(left.is_not_null()).then(both) if part.facts.blank else both
        return result

    def choice(self, node: If) -> pl.Expr:
        ends = list(_ends(node))
        if not node.facts.blank and all(isinstance(end, Text) for end in ends):
            # Numbers are chosen much faster than texts: choose the text's place, then read it there.
            texts = list(dict.fromkeys(end.value for end in ends if isinstance(end, Text)))
            return _read(pl.Series(texts), self.place(node, texts))
        test = self.flag(node.test)
        then, other = (self.typed(arm, node.facts.type) for arm in (node.then, node.other))
        if node.test.facts.blank:
            return pl.when(test).then(then).when(~test).then(other)
        return pl.when(test).then(then).otherwise(other)

    def place(self, node: Node, texts: list[str]) -> pl.Expr:
        if isinstance(node, Text):
            return pl.lit(texts.index(node.value), dtype=pl.UInt32)
        assert isinstance(node, If)
        return pl.when(self.compile(node.test)).then(self.place(node.then, texts)).otherwise(self.place(node.other, texts))

    def call(self, node: Call, function: str, args: tuple[Node, ...]) -> pl.Expr:
        if function == "choose":
            return self.choose(node, args)
        if function in ("at", "curve"):
            return self.series(node, function, args)
        kind = node.facts.type if function == "coalesce" else "number"
        done = [self.typed(arg, kind) for arg in args]
        result = FUNCTIONS[function](*done)
        if function in ("min", "max"):
            maybe = [expr for expr, arg in zip(done, args, strict=True) if arg.facts.blank]
            if maybe:
                known = functools.reduce(lambda a, b: a & b, [expr.is_not_null() for expr in maybe])
                return pl.when(known).then(result)
        elif function == "sqrt" and args[0].facts.low < 0:
            return pl.when(done[0] >= 0).then(result)
        elif function == "log" and (args[0].facts.low < 0 or args[0].facts.may_be(0)):
            return pl.when(done[0] > 0).then(result)
        elif function == "exp" and node.facts.high >= 1e300:
            return _finite(result)
        return result

    def choose(self, node: Call, args: tuple[Node, ...]) -> pl.Expr:
        index, values = args[0], [self.typed(arg, node.facts.type) for arg in args[1:]]
        if isinstance(index, Name) and index.id in self.constants:
            given = self.constants[index.id]
            chosen = -1 if given is None else int(float(given)) - 1
            return values[chosen] if 0 <= chosen < len(values) else BLANK[node.facts.type]
        number = self.number(index)
        if not index.facts.integer:
            number = FUNCTIONS["trunc"](number)
        # Cases that give the same value share one branch.
        cases: dict[Node, list[int]] = {}
        for position, arg in enumerate(args[1:], 1):
            cases.setdefault(arg, []).append(position)
        inside = index.facts.low >= 1 and index.facts.high < len(args) and not index.facts.blank
        ordered = sorted(cases.values(), key=len)
        chain: pl.Expr | None = None
        last = ordered.pop() if inside else None
        for positions in ordered:
            test = functools.reduce(lambda a, b: a | b, [number == position for position in positions])
            value = values[positions[0] - 1]
            chain = (pl if chain is None else chain).when(test).then(value)  # type: ignore[attr-defined, union-attr]
        if last is None:
            return chain if chain is not None else BLANK[node.facts.type]
        rest = values[last[0] - 1]
        return rest if chain is None else chain.otherwise(rest)  # type: ignore[attr-defined, union-attr]

    def series(self, node: Call, function: str, args: tuple[Node, ...]) -> pl.Expr:
        if isinstance(args[0], Text):
            (self.vectors.profile if function == "at" else self.vectors.curve)(args[0].value)
        done = [self.typed(args[0], "text"), self.number(args[1])]
        if function == "at":
            return self.at(done)
        result = self.curve(done[1], args[0])
        return _finite(result) if node.facts.high >= 1e300 else result

    def at(self, done: list[pl.Expr]) -> pl.Expr:
        if not self.vectors.profiles:
            return BLANK["number"]
        lengths = pl.Series(self.vectors.flat_lengths(), dtype=pl.Float64)
        starts = {name: float(index * (POSITIONS + 1)) for index, name in enumerate(self.vectors.profiles)}
        start = done[0].replace_strict(starts, default=None, return_dtype=pl.Float64)
        n = done[1].floor()
        inside = (n >= 0) & (n <= POSITIONS)
        return _read(lengths, pl.when(inside).then(start + n).cast(pl.UInt32))

    def curve(self, x: pl.Expr, name: Node) -> pl.Expr:
        assert isinstance(name, Text)
        curve = self.vectors.curve(name.value)
        xs, ys, slopes = (
            pl.Series(values, dtype=pl.Float64)
            for values in ([p[0] for p in curve.points], [p[1] for p in curve.points], curve.slopes)
        )
        found = pl.lit(xs).search_sorted(x.fill_null(0.0), side="right").cast(pl.Int64) - 1
        index = pl.max_horizontal(found, pl.lit(0)).cast(pl.UInt32)
        return _read(ys, index) + (x - _read(xs, index)) * _read(slopes, index)


def _ends(node: Node) -> Iterator[Node]:
    """What a chain of ``if`` can give."""
    for part in (node.then, node.other) if isinstance(node, If) else ():
        yield from _ends(part)
    if not isinstance(node, If):
        yield node


def _read(series: pl.Series, index: pl.Expr) -> pl.Expr:
    """The entry of ``series`` at ``index``, for each row."""
    found = pl.lit(series).gather(index)
    # Where the index reads no column it is one value, and so is what is found: not a column with one row.
    return found if index.meta.root_names() else found.first()


def _finite(result: pl.Expr) -> pl.Expr:
    return pl.when(result.is_finite()).then(result)


_COMPARE: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip
_ARITHMETIC: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "**": lambda a, b: a**b,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., pl.Expr]] = {
    "min": pl.min_horizontal, "max": pl.max_horizontal, "abs": lambda x: x.abs(), "sqrt": lambda x: x.sqrt(),
    "exp": lambda x: x.exp(), "log": lambda x: x.log(), "floor": lambda x: x.floor(), "ceil": lambda x: x.ceil(),
    "trunc": lambda x: pl.when(x < 0).then(x.ceil()).otherwise(x.floor()), "coalesce": pl.coalesce, "is_blank": lambda x: x.is_null(),
}  # fmt: skip
