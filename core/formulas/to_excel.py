"""Formulas as spreadsheet text that Excel, LibreOffice and Google Sheets compute alike.

What differs between engines is written so that it cannot matter: unary minus and powers are bracketed,
``and``/``or`` become nested IFs, texts are compared with EXACT, a blank that takes part in a comparison
is first turned into an error (``x+0``), and a cell that may fail ends in IFERROR(..., "").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container

from scenario.common.errors import FormulaError
from scenario.formulas.expr import Binary, Blank, Call, Compare, Flag, If, Logic, Name, Negate, Node, Not, Number, Text
from scenario.formulas.facts import Facts

Reference = Callable[[str], str]
"""Gives the cell reference or defined name that stands for a name."""
VectorRanges = Callable[[str, str], str]
"""Gives an absolute range: ("profiles", "names" | "lengths"), ("trees", "names" | "tokens" | "rows") or (curve name, "x" | "y" | "slope")."""

MAX_CELL = 8192
MAX_NESTING = 64


def compile_excel(
    node: Node, reference: Reference, ranges: VectorRanges | None = None, empty: Container[str] = ()
) -> str:
    """The text of a cell, without the leading ``=``, for a checked formula.

    ``empty`` holds the names whose cells may be truly empty (inputs): a reference to such a cell reads 0.
    Raises :class:`FormulaError` where the cell would be longer or deeper than a spreadsheet takes.
    """
    text = _ExcelCompiler(reference, ranges, empty).cell(node)
    _refuse_long(text)
    if _nesting(text) > MAX_NESTING:
        raise FormulaError(f"the formula nests functions deeper than the {MAX_NESTING} levels of a spreadsheet", "split it into columns")
    return text


def _refuse_long(text: str) -> None:
    if len(text) >= MAX_CELL:
        said = f"written for a spreadsheet the formula has {len(text):,} characters; a cell holds {MAX_CELL:,}"
        raise FormulaError(said, "split it into columns")


def _nesting(text: str) -> int:
    """How deep brackets stand inside one another, texts aside."""
    deepest = depth = 0
    for char in "".join(text.split('"')[::2]):
        depth += (char == "(") - (char == ")")
        deepest = max(deepest, depth)
    return deepest


def number(value: float) -> str:
    """A number as a spreadsheet writes it back: no ``.0``, at most 15 digits, ``1E-05``."""
    if value == int(value) and abs(value) < 1e16:
        return str(int(value))
    return f"{value:.15g}".replace("e", "E")


# How strongly an operator binds; an operand that binds less is put in brackets.
_RANK = {"compare": 1, "+": 3, "-": 3, "*": 4, "/": 4, "negate": 6, "**": 5, "atom": 9}
_SIGN = {"==": "=", "!=": "<>"}


class _ExcelCompiler:
    def __init__(self, reference: Reference, ranges: VectorRanges | None, empty: Container[str]) -> None:
        self.reference = reference
        self.ranges = ranges
        self.empty = empty
        self.known: dict[int, tuple[str, int]] = {}
        """Parts that are written already: some stand twice in a cell (``%``), inside one another more often than memory holds."""

    def cell(self, node: Node) -> str:
        """A whole cell: like :meth:`text`, but a blank is an empty text, not an error."""
        match node:
            case Blank():
                return '""'
            case Name(id=name):
                cell = self.reference(name)
                if name in self.empty and node.facts.blank:
                    # T() of an empty cell is an empty text; a plain reference would read 0.
                    return f"T({cell})" if node.facts.type == "text" else f'IF({cell}="","",{cell})'
                return cell
            case If(test=test, then=then, other=other) if not test.facts.blank:
                return f"IF({self.text(test)},{self.cell(then)},{self.cell(other)})"
            case Call(function="choose", args=(index, *values)) if not index.facts.blank:
                inside = index.facts.low >= 1 and index.facts.high < len(values) + 1
                chosen = self.chosen(index, [self.cell(value) for value in values])
                return chosen if inside else f'IFERROR({chosen},"")'
            case Call(function="coalesce", args=(Name(id=name), other)):
                return f'IF({self.reference(name)}="",{self.cell(other)},{self.reference(name)})'
        text = self.text(node)
        return f'IFERROR({text},"")' if node.facts.blank else text

    def text(self, node: Node) -> str:
        return self.ranked(node)[0]

    def chosen(self, index: Node, texts: list[str]) -> str:
        """CHOOSE; where several numbers give the same value, that value is written once."""
        number, distinct = self.text(index), list(dict.fromkeys(texts))
        saved = sum(map(len, texts)) - sum(map(len, distinct))
        if saved < 60:
            return f"CHOOSE({number},{','.join(texts)})"
        # Not INDEX over a list in braces, which Gnumeric does not know.
        order = ",".join(str(distinct.index(text) + 1) for text in texts)
        return f"CHOOSE(CHOOSE({number},{order}),{','.join(distinct)})"

    def operand(self, node: Node, rank: int) -> str:
        text, own = self.ranked(node)
        return text if own >= rank else f"({text})"

    def logic(self, op: str, parts: tuple[Node, ...]) -> str:
        """A chain of ``and`` or ``or`` that stops early, which a spreadsheet's own do not."""
        text = self.text(parts[-1])
        for part in reversed(parts[:-1]):
            left = self.text(part)
            text = f"IF({left},{text},FALSE)" if op == "and" else f"IF({left},TRUE,{text})"
        return text

    def ranked(self, node: Node) -> tuple[str, int]:
        """The text of a part and how strongly it binds, each part written once. Raises where no cell could hold it."""
        found = self.known.get(id(node))
        if found is None:
            found = self.known[id(node)] = self.written(node)
            _refuse_long(found[0])
        return found

    def written(self, node: Node) -> tuple[str, int]:
        atom = _RANK["atom"]
        match node:
            case Number(value=value):
                return number(value), atom if value >= 0 else _RANK["negate"]
            case Text(value=value):
                return '"' + value.replace('"', '""') + '"', atom
            case Flag(value=value):
                return ("TRUE" if value else "FALSE"), atom
            case Blank():
                return "NA()", atom
            case Name(id=name):
                cell = self.reference(name)
                return (f'IF({cell}="",NA(),{cell})' if name in self.empty and node.facts.blank else cell), atom
            case Negate(operand=operand):
                return "-" + self.operand(operand, atom), 2
            case Not(operand=Call(function="is_blank", args=(Name(id=name),))):
                return f'{self.reference(name)}<>""', _RANK["compare"]
            case Not(operand=operand):
                return f"NOT({self.text(operand)})", atom
            case Binary(op=op, left=left, right=right):
                return self.binary(node, op, left, right)
            case Compare(op=op, left=left, right=right):
                return self.compare(op, left, right)
            case Logic(op=op, parts=parts):
                return self.logic(op, parts), atom
            case If(test=test, then=then, other=other):
                return f"IF({self.text(test)},{self.text(then)},{self.text(other)})", atom
            case Call(function=function, args=args):
                rank = _RANK["compare"] if function == "is_blank" else atom
                return FUNCTIONS[function](self, args), rank
        raise AssertionError(node)

    def binary(self, node: Binary, op: str, left: Node, right: Node) -> tuple[str, int]:
        if op == "**":
            return self.power(node, left, right)
        if op == "//":
            return f"INT({self.operand(left, 4)}/{self.operand(right, 5)})", _RANK["atom"]
        if op == "%":
            # MOD refuses large quotients, and each engine rounds it in its own way.
            divisor = self.operand(right, 5)
            return f"({self.operand(left, 3)}-{divisor}*INT({self.operand(left, 4)}/{divisor}))", _RANK["atom"]
        rank = _RANK[op]
        return f"{self.operand(left, rank)}{op}{self.operand(right, rank + 1)}", rank

    def power(self, node: Binary, left: Node, right: Node) -> tuple[str, int]:
        base, exponent = left.facts, right.facts
        b, e = self.operand(left, 9), self.operand(right, 9)
        plain = text = f"{b}^{e}"
        zero = base.may_vanish
        if _may_underflow(base, exponent):
            # LibreOffice gives an error where a power becomes too small to hold.
            if (base.low >= 0 and base.high <= 1 and exponent.low >= 0) or (base.low >= 1 and exponent.high <= 0):
                text = f"EXP({self.operand(right, 5)}*LN({self.text(left)}))"
                nothing = "0" if exponent.low > 0 else f"0^{e}"
                text = f"IF({self.operand(left, 3)}=0,{nothing},{text})" if zero else text
            else:
                text = f"IF({self.operand(right, 5)}*LN(MAX(ABS({self.text(left)}),1E-300))<-708,0,{plain})"
        if base.low < 0 and not exponent.integer:
            # Some spreadsheets take odd roots of negative numbers.
            text = f"IF(AND({self.operand(left, 3)}<0,{self.operand(right, 3)}<>INT({self.text(right)})),NA(),{text})"
        if zero and exponent.may_be(0):
            # Excel has no 0^0; Python, polars and LibreOffice say 1.
            one = f"1+0*{b}" if base.blank else "1"
            text = f"IF({self.operand(right, 3)}=0,{one},{text})"
        return text, (_RANK["**"] if text == plain else _RANK["atom"])

    def compare(self, op: str, left: Node, right: Node) -> tuple[str, int]:
        if left.facts.type == "text":
            a, b = (f'IF({self.text(x)}="",NA(),{self.text(x)})' if x.facts.blank else self.text(x) for x in (left, right))
            same = f"EXACT({a},{b})"
            return (same if op == "==" else f"NOT({same})"), _RANK["atom"]
        return f"{self.solid(left)}{_SIGN.get(op, op)}{self.solid(right)}", _RANK["compare"]

    def solid(self, node: Node) -> str:
        """A number that is an error where it is blank: an empty text counts as larger than any number."""
        text = self.operand(node, 3)
        return f"({text}+0)" if self.may_be_empty(node) else text

    def argument(self, node: Node) -> str:
        """An argument of MIN or MAX, which would pass over an empty text in a cell."""
        return f"{self.operand(node, 3)}+0" if self.may_be_empty(node) else self.text(node)

    def may_be_empty(self, node: Node) -> bool:
        """Whether a blank shows as an empty text here, rather than as an error."""
        match node:
            case Name(id=name):
                return bool(node.facts.blank) and name not in self.empty
            case If(then=then, other=other):
                return self.may_be_empty(then) or self.may_be_empty(other)
            case Call(function="choose" | "coalesce", args=args):
                return any(self.may_be_empty(arg) for arg in args)
        return False


def _may_underflow(base: Facts, exponent: Facts) -> bool:
    sizes = [max(abs(base.low), 1e-12), max(abs(base.high), 1e-12)] + ([1e-12] if base.may_vanish else [])
    return (min(sizes) < 1 and exponent.high * -math.log10(min(sizes)) > 290) or (
        max(sizes) > 1 and -exponent.low * math.log10(max(sizes)) > 290
    )


def _coalesce(self: _ExcelCompiler, args: tuple[Node, ...]) -> str:
    sure = next((index for index, arg in enumerate(args) if not arg.facts.blank), len(args) - 1)
    if sure == 0:
        return self.operand(args[0], _RANK["atom"])
    text = self.text(args[sure])
    for arg in reversed(args[:sure]):
        if isinstance(arg, Name):
            cell = self.reference(arg.id)
            text = f'IF({cell}="",{text},{cell})'
        elif arg.facts.type == "number":
            text = f"IFERROR({self.argument(arg)},{text})"
        else:
            value = self.text(arg)
            text = f'IF(IFERROR({value},"")="",{text},{value})'
    return text


def _is_blank(self: _ExcelCompiler, args: tuple[Node, ...]) -> str:
    (x,) = args
    if isinstance(x, Name):
        return f'{self.reference(x.id)}=""'
    if not x.facts.blank:
        return "FALSE"
    return f'IFERROR({self.text(x)},"")=""'


def _at(series: str, part: str) -> Callable[[_ExcelCompiler, tuple[Node, ...]], str]:
    return lambda self, args: _by_depth(self, args, series, part)


def _by_depth(self: _ExcelCompiler, args: tuple[Node, ...], series: str, part: str) -> str:
    assert self.ranges is not None
    row = f"MATCH({self.text(args[0])},{self.ranges(series, 'names')},0)"
    n = self.text(args[1])
    column = f"{self.operand(args[1], 3)}+1" if args[1].facts.integer else f"INT({n})+1"
    found = f"INDEX({self.ranges(series, part)},{row},{column})"
    facts = args[1].facts
    if facts.low < 0:
        found = f"IF(INT({n})<0,NA(),{found})"
    return found


def _curve(self: _ExcelCompiler, args: tuple[Node, ...]) -> str:
    assert self.ranges is not None
    assert isinstance(args[0], Text)
    xs, ys, slopes = (self.ranges(args[0].value, part) for part in ("x", "y", "slope"))
    x = self.operand(args[1], 3)
    row = f"IFERROR(MATCH({self.text(args[1])},{xs},1),1)"
    return f"(INDEX({ys},{row})+({x}-INDEX({xs},{row}))*INDEX({slopes},{row}))"


def _plain(name: str) -> Callable[[_ExcelCompiler, tuple[Node, ...]], str]:
    return lambda self, args: f"{name}({','.join(self.text(arg) for arg in args)})"


def _extreme(name: str) -> Callable[[_ExcelCompiler, tuple[Node, ...]], str]:
    return lambda self, args: f"{name}({','.join(self.argument(arg) for arg in args)})"


FUNCTIONS: dict[str, Callable[[_ExcelCompiler, tuple[Node, ...]], str]] = {
    "min": _extreme("MIN"), "max": _extreme("MAX"), "abs": _plain("ABS"), "sqrt": _plain("SQRT"),
    "exp": _plain("EXP"), "log": _plain("LN"), "floor": _plain("INT"), "trunc": _plain("TRUNC"),
    "ceil": lambda self, args: f"(-INT(-{self.operand(args[0], 9)}))",
    "choose": lambda self, args: self.chosen(args[0], [self.text(arg) for arg in args[1:]]),
    "coalesce": _coalesce, "is_blank": _is_blank, "at": _at("profiles", "lengths"), "curve": _curve,
    "tree_tokens": _at("trees", "tokens"), "tree_rows": _at("trees", "rows"),
}  # fmt: skip
