"""Formulas as polars expressions: the engine's back end.

Every number is Float64. An operation that may fail (by its facts) gives null there, so that NaN and
infinity never arise and ``null`` means blank, as in the other back ends.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from scenario.formulas.expr import Binary, Blank, Call, Compare, Flag, If, Logic, Name, Negate, Node, Not, Number, Text
from scenario.formulas.facts import MIRROR, may_fail
from scenario.formulas.nodes import Value
from scenario.formulas.to_python import evaluate
from scenario.formulas.vectors import POSITIONS, Vectors

BLANK = {
    "number": pl.lit(None, dtype=pl.Float64), "text": pl.lit(None, dtype=pl.String), "flag": pl.lit(None, dtype=pl.Boolean),
    "none": pl.lit(None),
}  # fmt: skip
"""No value, by the type of what has none."""


@dataclass(frozen=True)
class Whole:
    """What makes a column of the right side of a division or a power, though it may hold one value in every row.

    By one value polars multiplies with the reciprocal, and raises by repeated products: a row's last digit would then follow
    from whether the others agree with it. ``zero`` is a column of zeros in the frame; ``names`` are columns that are stored
    as such, whatever they hold: what is computed may come out as one value.
    """

    zero: str
    names: Collection[str] = ()

    def column(self, node: Binary, a: pl.Expr, b: pl.Expr) -> pl.Expr:
        """The right side ``b`` of an operation; ``a`` is the left one."""
        if b.meta.root_names():
            return b if self.sure(node.right) else b + pl.col(self.zero)
        value = value_of(b)
        if value is None or not a.meta.root_names() or (node.op != "**" and abs(math.frexp(float(value))[0]) == 0.5):
            return b  # the reciprocal of a power of two is exact
        return pl.col(self.zero) + value

    def sure(self, node: Node) -> bool:
        """Whether arithmetic comes out as a column: where one side is one, the result is."""
        match node:
            case Name(id=name):
                return name in self.names
            case Binary(op="+" | "-" | "*" | "/"):
                return self.sure(node.left) or self.sure(node.right)
        return False


def compile_polars(
    node: Node, vectors: Vectors | None = None, constants: Mapping[str, Value] | None = None, whole: Whole | None = None
) -> pl.Expr:
    """The expression of a checked formula.

    ``constants`` gives the names that hold one value for all rows (scalars of the table); every other
    name is a column of the frame. With ``whole`` no bit of a row depends on what
    other rows hold.
    """
    compiler = _PolarsCompiler(vectors or Vectors(), constants or {}, whole)
    return BLANK["number"] if node.facts.type == "none" else compiler.compile(node)


class _PolarsCompiler:
    def __init__(self, vectors: Vectors, constants: Mapping[str, Value], whole: Whole | None) -> None:
        self.vectors, self.constants, self.whole = vectors, constants, whole

    def compile(self, node: Node) -> pl.Expr:
        match node:
            case Number(value=value) | Text(value=value) | Flag(value=value):
                return pl.lit(value)
            case Blank():
                return BLANK["none"]
            case Name(id=name):
                if name in self.constants:
                    constant = self.constants[name]
                    return BLANK[node.facts.type] if constant is None else pl.lit(constant)
                return pl.col(name)
            case Negate(operand=operand):
                return -self.number(operand)
            case Not(operand=operand):
                return ~self.flag(operand)
            case Binary():
                return self.binary(node)
            case Compare(op=op, left=left, right=right):
                return _compare(op, self.compile(left), self.compile(right))
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

    def binary(self, node: Binary, caught: bool = False) -> pl.Expr:
        """The operation, null where it fails; with ``caught`` what is not finite is made null further out."""
        op, divisor = node.op, node.right.facts
        guarded = may_fail(op, node.left.facts, divisor)
        # No such operation makes a number of infinity or NaN on these sides: one test, on the result, is enough.
        passes = caught or guarded
        a = self.operand(node.left, passes and op in "+-*/")
        b = self.operand(node.right, passes and op in "+-*")
        if op == "**" and not (a.meta.root_names() or b.meta.root_names()):
            return pl.lit(_settled(op, value_of(a), value_of(b)), dtype=pl.Float64)
        if op in EXACT and self.whole:
            b = self.whole.column(node, a, b)
        if op in ("/", "//", "%"):
            result = a / b
            if op != "/":
                result = result.floor() if op == "//" else a - b * result.floor()
            if divisor.may_vanish and not passes:
                result = _where(b != 0, result, BLANK["number"])
        else:
            result = _ARITHMETIC[op](a, b)
        return _finite(result) if guarded and not caught else result

    def operand(self, node: Node, caught: bool) -> pl.Expr:
        return self.binary(node, caught) if isinstance(node, Binary) else self.number(node)

    def logic(self, op: str, parts: list[Node]) -> pl.Expr:
        # Spreadsheets are made to stop early by nested IFs; a blank on the left is blank, whatever follows.
        result = self.flag(parts[-1])
        for part in reversed(parts[:-1]):
            left = self.flag(part)
            both = left & result if op == "and" else left | result
            result = _where(left.is_not_null(), both, BLANK["flag"]) if part.facts.blank else both
        return result

    def choice(self, node: If) -> pl.Expr:
        ends = list(_ends(node))
        if not node.facts.blank and all(isinstance(end, Text) for end in ends):
            # Numbers are chosen much faster than texts: choose the text's place, then read it there.
            texts = list(dict.fromkeys(end.value for end in ends if isinstance(end, Text)))
            return entry(pl.Series(texts), self.place(node, texts))
        test = self.flag(node.test)
        then, other = (self.typed(arm, node.facts.type) for arm in (node.then, node.other))
        if node.test.facts.blank and test.meta.root_names():
            return pl.when(test).then(then).when(~test).then(other)
        if node.test.facts.blank and pl.select(test).item() is None:
            return BLANK[node.facts.type]
        return _where(test, then, other)

    def place(self, node: Node, texts: list[str]) -> pl.Expr:
        if isinstance(node, Text):
            return pl.lit(texts.index(node.value), dtype=pl.UInt32)
        assert isinstance(node, If)
        return _where(self.compile(node.test), self.place(node.then, texts), self.place(node.other, texts))

    def call(self, node: Call, function: str, args: tuple[Node, ...]) -> pl.Expr:
        if function == "choose":
            return self.choose(node, args)
        if function in ("at", "curve", "tree_tokens", "tree_rows"):
            return self.series(node, function, args)
        kind = node.facts.type if function == "coalesce" else "number"
        done = [self.typed(arg, kind) for arg in args]
        result = FUNCTIONS[function](*done)
        if function in ("min", "max"):
            maybe = [expr for expr, arg in zip(done, args, strict=True) if arg.facts.blank]
            if maybe:
                known = functools.reduce(lambda a, b: a & b, [expr.is_not_null() for expr in maybe])
                return _where(known, result, BLANK["number"])
        elif function == "sqrt" and args[0].facts.low < 0:
            return _where(done[0] >= 0, result, BLANK["number"])
        elif function == "log" and (args[0].facts.low < 0 or args[0].facts.may_be(0)):
            return _where(done[0] > 0, result, BLANK["number"])
        elif function == "exp" and node.facts.high >= 1e300:
            return _finite(result)
        return result

    def choose(self, node: Call, args: tuple[Node, ...]) -> pl.Expr:
        index, values = args[0], [self.typed(arg, node.facts.type) for arg in args[1:]]
        number = self.number(index)
        if not index.facts.integer:
            number = FUNCTIONS["trunc"](number)
        if not number.meta.root_names():
            chosen = pl.select(number).item()
            return values[int(chosen) - 1] if chosen is not None and 1 <= chosen <= len(values) else BLANK[node.facts.type]
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
            lookup = {"at": self.vectors.profile, "curve": self.vectors.curve}.get(function, self.vectors.tree)
            lookup(args[0].value)
        done = [self.typed(args[0], "text"), self.number(args[1])]
        if function != "curve":
            return self.at(done, self.vectors.by_depth(function))
        result = self.curve(done[1], args[0])
        return _finite(result) if node.facts.high >= 1e300 else result

    def at(self, done: list[pl.Expr], series: Mapping[str, Sequence[float]]) -> pl.Expr:
        if not series:
            return BLANK["number"]
        lengths = pl.Series([value for values in series.values() for value in values], dtype=pl.Float64)
        starts = {name: float(index * (POSITIONS + 1)) for index, name in enumerate(series)}
        start = done[0].replace_strict(starts, default=None, return_dtype=pl.Float64)
        n = done[1].floor()
        inside = (n >= 0) & (n <= POSITIONS)
        return entry(lengths, pl.when(inside).then(start + n).cast(pl.UInt32))

    def curve(self, x: pl.Expr, name: Node) -> pl.Expr:
        assert isinstance(name, Text)
        curve = self.vectors.curve(name.value)
        xs, ys, slopes = (
            pl.Series(values, dtype=pl.Float64)
            for values in ([p[0] for p in curve.points], [p[1] for p in curve.points], curve.slopes)
        )
        found = pl.lit(xs).search_sorted(x.fill_null(0.0), side="right").cast(pl.Int64) - 1
        index = pl.max_horizontal(found, pl.lit(0)).cast(pl.UInt32)
        return entry(ys, index) + (x - entry(xs, index)) * entry(slopes, index)


def value_of(constant: pl.Expr) -> Value:
    """The value of an expression that reads no column."""
    return pl.select(constant).item()  # type: ignore[no-any-return]


def _settled(op: str, a: Value, b: Value) -> Value:
    """The value of an operation on two values, the same as in a row of columns."""
    return None if a is None or b is None else evaluate(Binary(op, Number(float(a)), Number(float(b))), {})


def _ends(node: Node) -> Iterator[Node]:
    """What a chain of ``if`` can give."""
    for part in (node.then, node.other) if isinstance(node, If) else ():
        yield from _ends(part)
    if not isinstance(node, If):
        yield node


def _coalesce(*parts: pl.Expr) -> pl.Expr:
    first, rest = parts[0], parts[1:]
    if not rest:
        return first
    # With one value in front polars gives one row, whatever comes after.
    return pl.coalesce(*parts) if first.meta.root_names() else _where(first.is_not_null(), first, _coalesce(*rest))


def _where(test: pl.Expr, then: pl.Expr, other: pl.Expr) -> pl.Expr:
    """``then`` in the rows where ``test`` holds, else ``other``; a test that reads no column is decided at once.

    Polars would leave one row of a column that such a test passes over.
    """
    if test.meta.root_names():
        return pl.when(test).then(then).otherwise(other)
    return then if pl.select(test).item() else other


def entry(series: pl.Series, index: pl.Expr) -> pl.Expr:
    """The entry of ``series`` at ``index``, for each row."""
    if series.null_count() and series.dtype == pl.Float64:
        # Polars takes twice as long to gather numbers with blanks among them as numbers and, apart, which are blank.
        known = pl.lit(series.is_not_null().cast(pl.UInt8)).gather(index) != 0
        found: pl.Expr = pl.when(known).then(pl.lit(series.fill_null(0.0)).gather(index))
    else:
        found = pl.lit(series).gather(index)
    # Where the index reads no column it is one value, and so is what is found: not a column with one row.
    return found if index.meta.root_names() else found.first()


def _filled(function: Callable[..., pl.Expr]) -> Callable[..., pl.Expr]:
    # Blanks make these many times slower; what stands in their rows does not count, or the caller makes it blank again.
    return lambda *parts: function(*(part.fill_null(0.0) if part.meta.root_names() else part for part in parts))


def _finite(result: pl.Expr) -> pl.Expr:
    return _where(result.is_finite(), result, BLANK["number"])


def _compare(op: str, a: pl.Expr, b: pl.Expr) -> pl.Expr:
    # With a literal on the left of a choice that takes the same branch in every row, polars 2.1 gives one row.
    return _COMPARE[op](a, b) if a.meta.root_names() else _COMPARE[MIRROR[op]](b, a)


_COMPARE: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
}  # fmt: skip
EXACT = ("/", "//", "%", "**")
"""Operations of which polars gives other last digits by a literal than by a column of it."""
_ARITHMETIC: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "**": lambda a, b: a**b,
}  # fmt: skip
FUNCTIONS: dict[str, Callable[..., pl.Expr]] = {
    "min": _filled(pl.min_horizontal), "max": _filled(pl.max_horizontal), "abs": lambda x: x.abs(), "sqrt": lambda x: x.sqrt(),
    "exp": lambda x: x.exp(), "log": lambda x: x.log(), "floor": lambda x: x.floor(), "ceil": lambda x: x.ceil(),
    "trunc": lambda x: pl.when(x < 0).then(x.ceil()).otherwise(x.floor()), "coalesce": _coalesce, "is_blank": lambda x: x.is_null(),
}  # fmt: skip
