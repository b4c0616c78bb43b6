"""What is known about a formula before any number flows: type, range, whether it may be blank.

Every name comes with :class:`Facts` (a declared range for inputs, the computed one for columns), and
:func:`check` carries them through the tree by interval arithmetic. That is what lets the back ends
guard exactly the operations that can fail: a division by something that is never zero needs no guard,
neither in polars nor in a workbook cell. One rule holds everywhere: *what cannot be computed is blank*.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import replace

from scenario.common.errors import FormulaError, Problem, nearest
from scenario.formulas import expr, functions
from scenario.formulas.expr import Binary, Blank, Call, Compare, Flag, If, Logic, Name, Negate, Node, Not, Number, Text
from scenario.formulas.intervals import HUGE, TINY, End, Facts, arithmetic, interval, may_fail, power

__all__ = [
    "FLAG", "HUGE", "MIRROR", "NOTHING", "TEXT", "TINY", "End", "Env", "Facts", "arithmetic", "check", "interval", "may_fail", "power",
    "refine", "unite",
]  # fmt: skip

TEXT = Facts("text")
FLAG = Facts("flag")
NOTHING = Facts("none", blank=True)

MOST_PROBLEMS = 50

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
        self.unreached = 0

    def say(self, node: Node, message: str, hint: str = "") -> None:
        if len(self.problems) < MOST_PROBLEMS:
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
                self.constant(node, f"{a.facts.low:g} {op} {b.facts.low:g}", [a.facts, b.facts], facts)
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
                holds = _decided(condition)
                yes = self.branch(then, refine(env, condition, True), holds is not False)
                no = self.branch(other, refine(env, condition, False), holds is not True)
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

    def branch(self, node: Node, env: Env, reached: bool) -> Node:
        """A branch of a choice; in one that is never taken, constants without a value do no harm."""
        self.unreached += not reached
        done = self.check(node, env)
        self.unreached -= not reached
        return done

    def constant(self, node: Node, shown: str, parts: list[Facts], result: Facts) -> None:
        """Says so where constants alone have no value, such as 1 / 0."""
        fixed = all(part.low == part.high and not part.blank and part.type == "number" for part in parts)
        if fixed and result.blank and not self.unreached:
            self.say(node, f"{shown} has no value that a spreadsheet can hold")

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
            if kind == "text" and args[-1].facts.type not in ("text", "none"):
                self.say(arg, f"{node.function}() needs the name of a {function.names[index]} here")
            if kind == "literal" and not isinstance(arg, Text):
                self.say(arg, f"{node.function}() needs the name of a {function.names[index]} in quotes here")
        low, high = function.arity
        if not low <= len(args) <= high:
            said = str(low) if low == high else f"{low} to {high}" if high <= 99 else f"at most {high}" if len(args) > high else f"at least {low}"
            self.say(node, f"{function.signature} takes {said} arguments, not {len(args)}")
            return replace(node, args=tuple(args), facts=Facts(blank=True))
        if function.lint:
            self.say(node, function.lint)
        facts = self.union(node, args[function.values_from :]) if function.values_from is not None else Facts()
        result = function.facts([arg.facts for arg in args], facts)
        if set(function.kinds) == {"number"}:
            shown = f"{node.function}({', '.join(f'{arg.facts.low:g}' for arg in args)})"
            self.constant(node, shown, [arg.facts for arg in args], result)
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


def _decided(test: Node) -> bool | None:
    """Whether a condition holds, or does not, whatever the values are; None when that depends."""
    match test:
        case Flag(value=value):
            return value
        case Not(operand=operand):
            inner = _decided(operand)
            return None if inner is None else not inner
        case Compare(op=op, left=left, right=right) if left.facts.type == right.facts.type == "number":
            a, b = left.facts, right.facts
            if a.blank or b.blank or op in ("==", "!="):
                return None
            if op in (">", ">="):
                a, b, op = b, a, MIRROR[op]
            if a.high < b.low or (op == "<=" and a.high == b.low):
                return True
            return False if a.low > b.high or (op == "<" and a.low == b.high) else None
    return None


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
MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


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
            for here, there, sign in ((left, right, op), (right, left, MIRROR[op])):
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
