"""Formulas as polars expressions: the engine's back end.

Every number is Float64. An operation that may fail (by its facts) gives null there, so that NaN and
infinity never arise and ``null`` means blank, as in the other back ends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import polars as pl

from scenario.expr import Binary, Blank, Call, Compare, Flag, If, Logic, Name, Negate, Node, Not, Number, Text
from scenario.vectors import POSITIONS, Vectors

NULL = pl.lit(None)


def compile_polars(node: Node, vectors: Vectors | None = None, constants: Mapping[str, float | str] | None = None) -> pl.Expr:
    """The expression of a checked formula.

    ``constants`` gives the names that hold one value for all rows (scalars of the table); every other
    name is a column of the frame.
    """
    return _Compiler(vectors or Vectors(), constants or {}).compile(node)


class _Compiler:
    def __init__(self, vectors: Vectors, constants: Mapping[str, float | str]) -> None:
        self.vectors = vectors
        self.constants = constants

    def compile(self, node: Node) -> pl.Expr:
        match node:
            case Number(value=value) | Text(value=value) | Flag(value=value):
                return pl.lit(value)
            case Blank():
                return NULL
            case Name(id=name):
                if name in self.constants:
                    return pl.lit(self.constants[name])
                return pl.col(name)
            case Negate(operand=operand):
                return -self.compile(operand)
            case Not(operand=operand):
                return ~self.compile(operand)
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

    def binary(self, node: Binary) -> pl.Expr:
        a, b = self.compile(node.left), self.compile(node.right)
        op, divisor = node.op, node.right.facts
        if op in ("/", "//", "%"):
            result = a / b
            if op != "/":
                result = result.floor() if op == "//" else a - b * result.floor()
            if divisor.may_be(0) or divisor.low < 0 < divisor.high:
                result = pl.when(b != 0).then(result)
        else:
            result = _ARITHMETIC[op](a, b)
        overflows = node.facts.blank and not (node.left.facts.blank or node.right.facts.blank)
        overflows = overflows or node.facts.low <= -1e300 or node.facts.high >= 1e300
        return _finite(result) if overflows else result

    def logic(self, op: str, parts: list[Node]) -> pl.Expr:
        # Spreadsheets are made to stop early by nested IFs; a blank on the left is blank, whatever follows.
        result = self.compile(parts[-1])
        for part in reversed(parts[:-1]):
            left = self.compile(part)
            both = left & result if op == "and" else left | result
            result = pl.when(left.is_not_null()).then(both) if part.facts.blank else both
        return result

    def choice(self, node: If) -> pl.Expr:
        test = self.compile(node.test)
        then, other = self.compile(node.then), self.compile(node.other)
        if node.test.facts.blank:
            return pl.when(test).then(then).when(~test).then(other)
        return pl.when(test).then(then).otherwise(other)

    def call(self, node: Call, function: str, args: tuple[Node, ...]) -> pl.Expr:
        if function == "choose":
            return self.choose(args)
        done = [self.compile(arg) for arg in args]
        if function == "at":
            return self.at(done, args)
        if function == "curve":
            return self.curve(done, args)
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

    def choose(self, args: tuple[Node, ...]) -> pl.Expr:
        index, values = args[0], [self.compile(arg) for arg in args[1:]]
        if isinstance(index, Name) and index.id in self.constants:
            chosen = int(float(self.constants[index.id])) - 1
            return values[chosen] if 0 <= chosen < len(values) else NULL
        number = self.compile(index)
        if not index.facts.integer:
            number = number.trunc() if hasattr(number, "trunc") else number.sign() * number.abs().floor()
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
            chain = (pl if chain is None else chain).when(test).then(value)  # type: ignore[attr-defined]
        if last is None:
            return chain if chain is not None else NULL
        rest = values[last[0] - 1]
        return rest if chain is None else chain.otherwise(rest)  # type: ignore[attr-defined]

    def at(self, done: list[pl.Expr], args: tuple[Node, ...]) -> pl.Expr:
        if not self.vectors.profiles:
            return pl.lit(None, dtype=pl.Float64)
        lengths = pl.lit(pl.Series(self.vectors.flat_lengths(), dtype=pl.Float64))
        starts = {name: float(index * (POSITIONS + 1)) for index, name in enumerate(self.vectors.profiles)}
        start = done[0].replace_strict(starts, default=None, return_dtype=pl.Float64)
        n = done[1].floor()
        inside = (n >= 0) & (n <= POSITIONS)
        return lengths.gather(pl.when(inside).then(start + n).cast(pl.UInt32))

    def curve(self, done: list[pl.Expr], args: tuple[Node, ...]) -> pl.Expr:
        assert isinstance(args[0], Text)
        curve = self.vectors.curves[args[0].value]
        xs, ys, slopes = (
            pl.Series(values, dtype=pl.Float64)
            for values in ([p[0] for p in curve.points], [p[1] for p in curve.points], curve.slopes)
        )
        x = done[1]
        found = pl.lit(xs).search_sorted(x.fill_null(0.0), side="right").cast(pl.Int64) - 1
        index = pl.max_horizontal(found, pl.lit(0)).cast(pl.UInt32)
        return pl.lit(ys).gather(index) + (x - pl.lit(xs).gather(index)) * pl.lit(slopes).gather(index)


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
    "trunc": lambda x: pl.when(x < 0).then(x.ceil()).otherwise(x.floor()),
    "coalesce": pl.coalesce, "is_blank": lambda x: x.is_null(),
}  # fmt: skip
