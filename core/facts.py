"""What is known about a formula before any number flows: type, range, whether it may be blank.

Every name comes with :class:`Facts` (a declared range for inputs, the computed one for columns), and
:func:`check` carries them through the tree by interval arithmetic. That is what lets the back ends
guard exactly the operations that can fail: a division by something that is never zero needs no guard,
neither in polars nor in a workbook cell. One rule holds everywhere: *what cannot be computed is blank*.

An open end at zero stands for at least ``TINY``: no quantity here is smaller without being zero.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from scenario import expr, functions
from scenario.errors import FormulaError, Problem, nearest
from scenario.expr import Binary, Blank, Call, Compare, Flag, If, Logic, Name, Negate, Node, Not, Number, Text

TINY = 1e-30
HUGE = 1.7e308

End = tuple[float, bool]
"""A bound and whether it is open (not reached)."""


@dataclass(frozen=True)
class Facts:
    """Type (``number``, ``text``, ``flag``, ``none`` for a bare blank), range, blankness.

    ``low``/``high`` with ``open_low``/``open_high`` bound a number that is not blank.
    """

    type: str = "number"
    low: float = -HUGE
    high: float = HUGE
    open_low: bool = False
    open_high: bool = False
    blank: bool = False
    integer: bool = False

    @property
    def ends(self) -> tuple[End, End]:
        return (self.low, self.open_low), (self.high, self.open_high)

    def may_be(self, value: float) -> bool:
        """Whether the number can take exactly ``value``."""
        above = value > self.low or (value == self.low and not self.open_low)
        below = value < self.high or (value == self.high and not self.open_high)
        return above and below

    @property
    def negative(self) -> bool:
        return self.low < 0


TEXT = Facts("text")
FLAG = Facts("flag")
NOTHING = Facts("none", blank=True)

Env = Mapping[str, Facts]


def check(node: Node, env: Env, text: str = "", known: Iterable[str] = ()) -> Node:
    """The tree with facts on every node.

    ``env`` gives the facts of each name, ``known`` further names to suggest for a misspelt one. Raises
    :class:`FormulaError` with every unknown name, unknown function, wrong type, float equality and
    rounding that the formula holds.
    """
    checker = _Checker(text, [*env, *known])
    result = checker.check(node, env)
    if checker.problems:
        raise FormulaError(sorted(checker.problems, key=lambda item: (item.line, item.column)))
    return result


class _Checker:
    def __init__(self, text: str, known: list[str]) -> None:
        self.text = text
        self.known = known
        self.problems: list[Problem] = []

    def say(self, node: Node, message: str, hint: str = "") -> None:
        self.problems.append(expr.problem(self.text, node.span, message, hint))

    def check(self, node: Node, env: Env) -> Node:
        match node:
            case Number(value=value):
                whole = value == int(value) if abs(value) < 1e300 else True
                return replace(node, facts=Facts(low=value, high=value, integer=whole))
            case Text():
                return replace(node, facts=TEXT)
            case Flag():
                return replace(node, facts=FLAG)
            case Blank():
                return replace(node, facts=NOTHING)
            case Name(id=name):
                return replace(node, facts=self.name(node, name, env))
            case Negate(operand=operand):
                below = self.number(operand, env)
                got = below.facts
                facts = Facts("number", -got.high, -got.low, got.open_high, got.open_low, got.blank, got.integer)
                return replace(node, operand=below, facts=facts)
            case Not(operand=operand):
                below = self.flag(operand, env)
                return replace(node, operand=below, facts=replace(FLAG, blank=below.facts.blank))
            case Binary(op=op, left=left, right=right):
                a, b = self.number(left, env), self.number(right, env)
                facts = arithmetic(op, a.facts, b.facts)
                constant = a.facts.low == a.facts.high and b.facts.low == b.facts.high
                if constant and facts.blank and not (a.facts.blank or b.facts.blank):
                    self.say(node, f"{a.facts.low:g} {op} {b.facts.low:g} has no value that a spreadsheet can hold")
                return replace(node, left=a, right=b, facts=facts)
            case Compare():
                return self.compare(node, env)
            case Logic(op=op, parts=parts):
                done: list[Node] = []
                for part in parts:
                    done.append(self.flag(part, env))
                    env = refine(env, done[-1], op == "and")
                blank = any(part.facts.blank for part in done)
                return replace(node, parts=tuple(done), facts=replace(FLAG, blank=blank))
            case If(test=test, then=then, other=other):
                condition = self.flag(test, env)
                yes = self.check(then, refine(env, condition, True))
                no = self.check(other, refine(env, condition, False))
                facts = self.union(node, [yes, no])
                if condition.facts.blank:
                    facts = replace(facts, blank=True)
                return replace(node, test=condition, then=yes, other=no, facts=facts)
            case Call():
                return self.call(node, env)
        raise AssertionError(node)

    def name(self, node: Node, name: str, env: Env) -> Facts:
        if name in env:
            return env[name]
        hint = nearest(name, self.known) or (
            f"'{name}' is a function: write {name}(...)" if name in functions.FUNCTIONS else ""
        )
        self.say(node, f"unknown name '{name}'", hint)
        return Facts(blank=True)

    def typed(self, node: Node, env: Env, wanted: str, say: str) -> Node:
        done = self.check(node, env)
        if done.facts.type not in (wanted, "none"):
            self.say(done, say.format(_show(done)))
            return replace(done, facts=Facts(wanted, blank=True))
        return done

    def number(self, node: Node, env: Env) -> Node:
        return self.typed(node, env, "number", "a number is needed here, and {} is not one")

    def flag(self, node: Node, env: Env) -> Node:
        return self.typed(node, env, "flag", "a condition is needed here, and {} is not one")

    def compare(self, node: Compare, env: Env) -> Node:
        a, b = self.check(node.left, env), self.check(node.right, env)
        kinds = {a.facts.type, b.facts.type} - {"none"}
        if "none" in (a.facts.type, b.facts.type):
            self.say(node, "a comparison with blank is never true", "is_blank(x) asks whether x is blank")
        elif len(kinds) > 1:
            self.say(node, f"{_show(a)} and {_show(b)} are of different kinds and cannot be compared")
        elif kinds == {"flag"}:
            self.say(node, "a condition is used as it is: write x or not x")
        elif kinds == {"text"} and node.op not in ("==", "!="):
            self.say(node, "texts are only compared with == and !=")
        elif kinds == {"number"} and node.op in ("==", "!=") and not (a.facts.integer and b.facts.integer):
            self.say(
                node,
                "fractions are never exactly equal: a spreadsheet and an engine differ in the last digit",
                "compare with a tolerance: abs(a - b) < 1e-9",
            )
        blank = a.facts.blank or b.facts.blank
        return replace(node, left=a, right=b, facts=replace(FLAG, blank=blank))

    def union(self, node: Node, parts: list[Node]) -> Facts:
        found = [part.facts for part in parts if part.facts.type != "none"]
        if not found:
            return NOTHING
        if len({facts.type for facts in found}) > 1:
            self.say(node, "the branches give values of different kinds: " + ", ".join(_show(part) for part in parts))
        return unite([part.facts for part in parts])

    def call(self, node: Call, env: Env) -> Node:
        function = functions.FUNCTIONS.get(node.function)
        if function is None:
            known = [*functions.FUNCTIONS, *self.known]
            self.say(node, f"unknown function '{node.function}'", nearest(node.function, known))
            return replace(node, facts=Facts(blank=True))
        args = []
        for index, arg in enumerate(node.args):
            kind = function.kind(index)
            args.append(self.number(arg, env) if kind == "number" else self.check(arg, env))
            if kind == "text" and args[-1].facts.type != "text":
                self.say(arg, f"{node.function}() needs the name of a {function.names[index]} here")
        low, high = function.arity
        if not low <= len(args) <= high:
            said = str(low) if low == high else f"at least {low}" if high > 99 else f"{low} to {high}"
            self.say(node, f"{function.signature} takes {said} arguments, not {len(args)}")
            return replace(node, args=tuple(args), facts=Facts(blank=True))
        if function.lint:
            self.say(node, function.lint)
        facts = self.union(node, args[function.values_from :]) if function.values_from is not None else Facts()
        result = function.facts([arg.facts for arg in args], facts)
        return replace(node, args=tuple(args), facts=result)


def _show(node: Node) -> str:
    match node:
        case Name(id=name):
            return f"'{name}' ({node.facts.type})"
        case Number(value=value):
            return f"{value:g}"
        case Text(value=value):
            return f'"{value}"'
    return {"number": "a number", "text": "a text", "flag": "a condition", "none": "blank"}[node.facts.type]


def unite(parts: list[Facts]) -> Facts:
    """The facts of a value that is one of ``parts``."""
    found = [facts for facts in parts if facts.type != "none"]
    blank = any(facts.blank for facts in parts)
    if not found:
        return NOTHING
    if found[0].type != "number":
        return Facts(found[0].type, blank=blank)
    low = min(((facts.low, facts.open_low) for facts in found), key=lambda end: (end[0], end[1]))
    high = max(((facts.high, facts.open_high) for facts in found), key=lambda end: (end[0], not end[1]))
    whole = all(facts.integer for facts in found)
    return Facts("number", low[0], high[0], low[1], high[1], blank, whole)


def refine(env: Env, test: Node, holds: bool) -> Env:
    """What is known of the names once ``test`` is known to hold, or not to."""
    learned: dict[str, Facts] = {}
    _learn(env, test, holds, learned)
    return ChainMap(learned, dict(env) if not isinstance(env, ChainMap) else env) if learned else env  # type: ignore[arg-type]


_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def _learn(env: Env, test: Node, holds: bool, out: dict[str, Facts]) -> None:
    match test:
        case Not(operand=operand):
            _learn(env, operand, not holds, out)
        case Logic(op=op, parts=parts) if holds == (op == "and"):
            for part in parts:
                _learn(env, part, holds, out)
        case Call(function="is_blank", args=(Name(id=name),)) if not holds and name in env:
            out[name] = replace(out.get(name, env[name]), blank=False)
        case Compare(op=op, left=left, right=right):
            for here, there, sign in ((left, right, op), (right, left, _MIRROR[op])):
                if isinstance(here, Name) and here.id in env and env[here.id].type == "number":
                    facts = out.get(here.id, env[here.id])
                    out[here.id] = _narrow(facts, sign if holds else _OPPOSITE[sign], there.facts)
                elif isinstance(here, Name) and here.id in env:
                    out[here.id] = replace(out.get(here.id, env[here.id]), blank=False)


def _narrow(facts: Facts, op: str, by: Facts) -> Facts:
    facts = replace(facts, blank=False)
    if op in ("<", "<=", "=="):
        end = (by.high, by.open_high or op == "<")
        if (end[0], not end[1]) < (facts.high, not facts.open_high):
            facts = replace(facts, high=end[0], open_high=end[1])
    if op in (">", ">=", "=="):
        end = (by.low, by.open_low or op == ">")
        if (end[0], end[1]) > (facts.low, facts.open_low):
            facts = replace(facts, low=end[0], open_low=end[1])
    if op == "!=" and by.low == by.high:
        if by.low == facts.low:
            facts = replace(facts, open_low=True)
        if by.low == facts.high:
            facts = replace(facts, open_high=True)
    return facts


def arithmetic(op: str, a: Facts, b: Facts) -> Facts:
    """The facts of ``a op b``; blank when an operand may be blank or the operation may fail."""
    blank = a.blank or b.blank
    whole = a.integer and b.integer and op in ("+", "-", "*", "//", "%")
    if op in ("+", "-"):
        if op == "-":
            b = replace(b, low=-b.high, high=-b.low, open_low=b.open_high, open_high=b.open_low)
        low, high = (a.low + b.low, a.open_low or b.open_low), (a.high + b.high, a.open_high or b.open_high)
        return interval(low, high, blank, whole)
    if op == "*":
        return interval(*_product(a.ends, b.ends), blank, whole)
    if op == "**":
        return _power(a, b, blank)
    if b.may_be(0) or b.low < 0 < b.high:
        if op == "%":
            return interval(*_modulo(b), True, whole)
        return Facts(blank=True, integer=whole)
    if op == "%":
        return interval(*_modulo(b), blank, whole)
    result = interval(*_product(a.ends, _reciprocal(b)), blank, whole)
    if op == "//":
        low, high = math.floor(max(result.low, -1e300)), math.floor(min(result.high, 1e300))
        return interval((float(low), False), (float(high), False), result.blank, True)
    return result


def interval(low: End, high: End, blank: bool, integer: bool = False) -> Facts:
    """Facts with these ends; a bound past the largest double means that the value may overflow."""
    lower, upper = low[0], high[0]
    if not (lower >= -HUGE and upper <= HUGE):
        blank = True
    lower = -HUGE if math.isnan(lower) else min(max(lower, -HUGE), HUGE)
    upper = HUGE if math.isnan(upper) else max(min(upper, HUGE), -HUGE)
    return Facts("number", lower, upper, low[1], high[1], blank, integer)


def _modulo(b: Facts) -> tuple[End, End]:
    return (min(b.low, 0.0), False), (max(b.high, 0.0), False)


def _reciprocal(b: Facts) -> tuple[End, End]:
    def flip(end: End, sign: float) -> End:
        return (1 / end[0], end[1]) if end[0] else (sign / TINY, True)

    return flip((b.high, b.open_high), -1.0), flip((b.low, b.open_low), 1.0)


def _times(a: End, b: End) -> End:
    if (a[0] == 0 and not a[1]) or (b[0] == 0 and not b[1]):
        return 0.0, False
    return a[0] * b[0], a[1] or b[1]


def _product(a: tuple[End, End], b: tuple[End, End]) -> tuple[End, End]:
    ends = [_times(x, y) for x in a for y in b]
    return min(ends, key=lambda end: (end[0], end[1])), max(ends, key=lambda end: (end[0], not end[1]))


def power(base: float, exponent: float) -> float:
    """``base ** exponent`` for floats, with ``nan`` where it has no real value and ``inf`` past the range.

    ``0 ** 0`` is 1, as in Python and polars.
    """
    try:
        result = float(base) ** float(exponent)
    except ZeroDivisionError:
        return math.nan
    except OverflowError:
        return math.inf
    return math.nan if isinstance(result, complex) else result


def _power(a: Facts, b: Facts, blank: bool) -> Facts:
    if (a.may_be(0) or a.low < 0 < a.high) and b.low < 0:
        return Facts(blank=True)
    whole = a.integer and b.integer and b.low >= 0
    if a.low >= 0:
        bases = [max(a.low, TINY) if a.open_low else a.low, a.high]
        corners = [power(base, exponent) for base in bases for exponent in (b.low, b.high)]
        if a.low < 1 < a.high:
            corners.append(1.0)
        if b.low < 0 < b.high:
            corners.append(1.0)
        low, high = min(corners), max(corners)
        positive = a.open_low or a.low > 0
        return interval((low if positive else min(low, 0.0), positive and low <= TINY), (high, False), blank, whole)
    size = max(abs(a.low), abs(a.high))
    most = max(power(max(size, TINY), b.low), power(max(size, TINY), b.high), 1.0)
    return interval((-most, False), (most, False), blank or not b.integer, whole)
