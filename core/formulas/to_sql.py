"""Formulas as SQL expressions, for tables of rows that live in a warehouse; sqlglot writes them in each one's dialect.

Every number is a double. A blank is NULL; what may fail by its facts gives NULL there, and what SQL sees differently is
written out: LEAST and GREATEST pass over NULL, AND and OR go on past one, series are CASEs over their positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from scenario.formulas.expr import Binary, Call, Compare, Flag, If, Logic, Name, Negate, Node, Not, Number, Text
from scenario.formulas.facts import may_fail
from scenario.formulas.vectors import Curve, Vectors

LARGEST = exp.Literal.number("1.7976931348623157e308")
TYPES = {"number": "double", "text": "text", "flag": "boolean", "none": "double"}
"""The SQL type of a column, by the type of its formula."""

Sql = exp.Expression
Column = Callable[[str, str], Sql]
"""The expression of a name of a type: a column, or the value of an assumption."""


def compile_sql(node: Node, column: Column, vectors: Vectors | None = None) -> Sql:
    """The expression of a checked formula; render it with ``.sql(dialect=...)``."""
    return _SqlCompiler(column, vectors or Vectors()).compile(node)


def literal(value: float | str | bool | None, kind: str = "number") -> Sql:
    """A constant of a type (``number``, ``text`` or ``flag``)."""
    if value is None:
        return exp.cast(exp.null(), TYPES[kind])
    if isinstance(value, bool):
        return exp.true() if value else exp.false()
    if isinstance(value, str):
        return exp.Literal.string(value)
    number = exp.cast(exp.Literal.number(repr(abs(float(value)))), "double")
    return exp.Neg(this=number) if value < 0 else number


class _SqlCompiler:
    """One walk over a tree; ``column`` gives names their expressions."""

    def __init__(self, column: Column, vectors: Vectors) -> None:
        self.column, self.vectors = column, vectors

    def compile(self, node: Node, kind: str = "number") -> Sql:
        """The expression of a part; a bare blank takes the type ``kind``."""
        if node.facts.type == "none":
            return literal(None, kind)
        match node:
            case Number(value=value) | Text(value=value) | Flag(value=value):
                return literal(value)
            case Name(id=name):
                return self.column(name, node.facts.type)
            case Negate(operand=operand):
                return exp.Neg(this=exp.paren(self.compile(operand)))
            case Not(operand=operand):
                return exp.Not(this=exp.paren(self.compile(operand, "flag")))
            case Binary():
                return self.binary(node)
            case Compare(op=op, left=left, right=right):
                return exp.paren(_COMPARE[op](this=self.compile(left), expression=self.compile(right)))
            case Logic(op=op, parts=parts):
                return self.logic(op, parts)
            case If():
                return self.choice(node)
            case Call(function=function, args=args):
                return self.call(node, function, args)
        raise AssertionError(node)

    def binary(self, node: Binary) -> Sql:
        left, right = self.compile(node.left), self.compile(node.right)
        if node.op in ("/", "//", "%"):
            divisor = exp.Nullif(this=right, expression=literal(0.0)) if node.right.facts.may_vanish else right
            quotient: Sql = exp.paren(exp.Div(this=exp.paren(left), expression=exp.paren(divisor), typed=False, safe=False))
            whole = exp.Floor(this=quotient)
            rest = exp.paren(exp.Sub(this=left.copy(), expression=exp.Mul(this=exp.paren(right.copy()), expression=whole.copy())))
            result = {"/": quotient, "//": whole, "%": rest}[node.op]
        elif node.op == "**":
            result = exp.Pow(this=left, expression=right)
        else:
            result = exp.paren(_ARITHMETIC[node.op](this=left, expression=right))
        return finite(result) if may_fail(node.op, node.left.facts, node.right.facts) else result

    def logic(self, op: str, parts: tuple[Node, ...]) -> Sql:
        # A blank on the left is blank, whatever follows; SQL would go on to what decides it.
        join = exp.And if op == "and" else exp.Or
        result = self.compile(parts[-1], "flag")
        for part in reversed(parts[:-1]):
            left = self.compile(part, "flag")
            both = exp.paren(join(this=left, expression=result))
            result = when([(known([left]), both)]) if part.facts.blank else both
        return result

    def choice(self, node: If) -> Sql:
        kind = node.facts.type
        test = self.compile(node.test, "flag")
        then, other = self.compile(node.then, kind), self.compile(node.other, kind)
        if node.test.facts.blank:
            return when([(test, then), (exp.Not(this=exp.paren(test.copy())), other)])
        return when([(test, then)], other)

    def call(self, node: Call, function: str, args: tuple[Node, ...]) -> Sql:
        kind = node.facts.type
        if function == "choose":
            index = exp.Cast(this=exp.Trunc(this=self.compile(args[0])), to=exp.DataType.build("double"))
            arms = [(exp.EQ(this=index.copy(), expression=literal(float(k))), self.compile(arg, kind)) for k, arg in enumerate(args[1:], 1)]
            return when(arms)
        if function in ("at", "tree_tokens", "tree_rows", "curve"):
            return self.series(function, args)
        done = [self.compile(arg, kind if function == "coalesce" else "number") for arg in args]
        result = FUNCTIONS[function](*done)
        if function in ("min", "max") and any(arg.facts.blank for arg in args):
            return when([(known([sql for sql, arg in zip(done, args, strict=True) if arg.facts.blank]), result)])
        if function == "sqrt" and args[0].facts.low < 0:
            return when([(exp.GTE(this=done[0].copy(), expression=literal(0.0)), result)])
        if function == "log" and (args[0].facts.low < 0 or args[0].facts.may_be(0)):
            return when([(exp.GT(this=done[0].copy(), expression=literal(0.0)), result)])
        return finite(result) if function == "exp" and node.facts.high >= 1e300 else result

    def series(self, function: str, args: tuple[Node, ...]) -> Sql:
        """A profile or tree by name and position, or a curve by its points."""
        x = self.compile(args[1])
        if function == "curve":
            assert isinstance(args[0], Text)
            return finite(line(self.vectors.curve(args[0].value), x))
        name, table = self.compile(args[0], "text"), self.vectors.by_depth(function)
        place = exp.Floor(this=x)
        arms = []
        for key, values in table.items():
            inner = [(exp.EQ(this=place.copy(), expression=literal(float(n))), literal(value)) for n, value in enumerate(values)]
            arms.append((exp.EQ(this=name.copy(), expression=literal(key)), when(inner)))
        return when(arms) if arms else literal(None)


def when(arms: Sequence[tuple[Sql, Sql]], other: Sql | None = None) -> Sql:
    """CASE WHEN ... THEN ... ELSE ... END."""
    return exp.Case(ifs=[exp.If(this=test, true=value) for test, value in arms], default=other)


def known(parts: list[Sql]) -> Sql:
    """Whether none of them is NULL."""
    return exp.paren(exp.and_(*(exp.Not(this=exp.Is(this=exp.paren(part.copy()), expression=exp.null())) for part in parts)))


def finite(value: Sql) -> Sql:
    """The value, NULL where it is infinite or no number."""
    return when([(exp.LTE(this=exp.Abs(this=value.copy()), expression=LARGEST.copy()), value)])


def line(curve: Curve, x: Sql) -> Sql:
    """Linear between a curve's points, the nearest slope beyond them."""
    def part(k: int) -> Sql:
        (x0, y0), slope = curve.points[k], curve.slopes[k]
        run = exp.paren(exp.Sub(this=x.copy(), expression=literal(x0)))
        return exp.paren(exp.Add(this=literal(y0), expression=exp.Mul(this=run, expression=exp.paren(literal(slope)))))

    ends = range(1, len(curve.points))
    arms = [(exp.LT(this=x.copy(), expression=literal(curve.points[k][0])), part(k - 1)) for k in ends]
    return when(arms, part(len(curve.points) - 1))


_ARITHMETIC = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}
_COMPARE = {"<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE, "==": exp.EQ, "!=": exp.NEQ}
FUNCTIONS: dict[str, Callable[..., Sql]] = {
    "min": lambda *parts: exp.Least(this=parts[0], expressions=list(parts[1:])),
    "max": lambda *parts: exp.Greatest(this=parts[0], expressions=list(parts[1:])),
    "abs": lambda x: exp.Abs(this=x), "sqrt": lambda x: exp.Sqrt(this=x), "exp": lambda x: exp.Exp(this=x), "log": lambda x: exp.Ln(this=x),
    "floor": lambda x: exp.Floor(this=x), "ceil": lambda x: exp.Ceil(this=x), "trunc": lambda x: exp.Trunc(this=x),
    "coalesce": lambda *parts: exp.Coalesce(this=parts[0], expressions=list(parts[1:])),
    "is_blank": lambda x: exp.paren(exp.Is(this=exp.paren(x), expression=exp.null())),
}  # fmt: skip
