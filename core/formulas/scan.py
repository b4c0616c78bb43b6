"""A first look at a formula's text: what Python's parser would take badly, or read as something else."""

from __future__ import annotations

import re
import unicodedata

from scenario.common.errors import FormulaError, Problem
from scenario.formulas.nodes import Span

_PAIRS = {")": "(", "]": "[", "}": "{"}
_MEANT = {
    "×": "*", "·": "*", "∙": "*", "÷": "/", "−": "-", "–": "-", "—": "-", "≤": "<=", "≥": ">=", "≠": "!=", "²": "** 2",
    "³": "** 3", "“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "√": "sqrt(...)", "∧": "and", "∨": "or", "¬": "not",
}  # fmt: skip


def problem(text: str, span: Span, message: str, hint: str = "") -> Problem:
    """A problem at ``span`` of a formula, with the line of the formula and the mark."""
    line, column = span
    lines = re.split(r"\r\n|\r|\n", text[:100_000])
    source = lines[line - 1] if 0 < line <= len(lines) else ""
    # What would move the cursor or turn the writing round does not reach a terminal.
    source = "".join(char if char == "\t" or char.isprintable() else "\ufffd" for char in source)
    return Problem(message, hint, line=line, column=column, source=source, caret=column if source else 0)


def refuse_early(text: str, deepest: int) -> None:
    """Raises :class:`FormulaError` at the first character that cannot stand where it does."""
    _Scan(text, deepest).run()
    if text.lstrip().startswith("="):
        raise FormulaError(problem(text, (1, 1), "a formula is written without the '=' in front"))


class _Scan:
    """A walk over the characters of a formula: the quote and the brackets that are open."""

    def __init__(self, text: str, deepest: int) -> None:
        self.text, self.deepest = text, deepest
        self.opened: list[tuple[str, Span]] = []
        self.quote, self.quoted = "", (1, 1)

    def refuse(self, span: Span, message: str, hint: str = "") -> FormulaError:
        return FormulaError(problem(self.text, span, message, hint))

    def run(self) -> None:
        line, start = 1, 0
        for index, char in enumerate(self.text):
            span = (line, index - start + 1)
            if char == "\n":
                if self.quote:
                    break
                line, start = line + 1, index + 1
            elif not char.isprintable() and char != "\t":
                name = unicodedata.name(char, "a control character").lower()
                raise self.refuse(span, f"U+{ord(char):04X} ({name}) has no place in a formula")
            elif self.quote:
                self.inside(char, span)
            elif char in "\"'":
                self.quote, self.quoted = char, span
            else:
                self.outside(char, span, self.text[index : index + 2])
        if self.text.lstrip().startswith("="):
            return
        if self.quote:
            raise self.refuse(self.quoted, "a text is never closed")
        if self.opened:
            raise self.refuse(self.opened[-1][1], "a bracket is never closed")

    def inside(self, char: str, span: Span) -> None:
        """A character of a text."""
        if char == "\\":
            raise self.refuse(span, "a text in a formula has no backslash")
        if char == self.quote:
            if span == (self.quoted[0], self.quoted[1] + 1):
                raise self.refuse(self.quoted, "an empty text is not part of the formula language", "what has no value is written blank")
            self.quote = ""

    def outside(self, char: str, span: Span, pair: str) -> None:
        """A character of the formula itself; ``pair`` is it and the next."""
        if char in _PAIRS.values():
            self.opened.append((char, span))
            if len(self.opened) > self.deepest:
                raise self.refuse(span, f"the formula is nested deeper than {self.deepest} levels")
        elif char in _PAIRS:
            if not self.opened or self.opened[-1][0] != _PAIRS[char]:
                raise self.refuse(span, f"there is no opening bracket for this '{char}'")
            self.opened.pop()
        elif not char.isascii():
            hint = f"write {_MEANT[char]}" if char in _MEANT else "names and numbers are written with plain letters and digits"
            raise self.refuse(span, f"'{char}' has no meaning in a formula", hint)
        elif char in "#;\\`$?!" and pair != "!=":
            raise self.refuse(span, f"'{char}' has no meaning in a formula")


def syntax_problem(text: str, error: SyntaxError) -> FormulaError:
    """What Python's parser could not read, in the words of the formula language."""
    line = error.lineno or 1
    column = (error.offset or 1) - (1 if line == 1 else 0)
    lines = text.split("\n")
    if line > len(lines):
        line, column = len(lines), len(lines[-1]) + 1
    column = min(max(column, 1), len(lines[line - 1]) + 1)
    hint = ""
    if re.search(r"\bif\b", text, re.IGNORECASE) and not re.search(r"\belse\b", text):
        hint = "a choice is written: value if condition else other"
    elif "%" in text and re.search(r"[0-9]\s*%\s*($|[-+*/)])", text):
        hint = "a percentage is written as a number: 0.5"
    elif "<>" in text:
        hint = "'not equal' is written !="
    elif "&&" in text or "||" in text:
        hint = "conditions are joined with 'and' and 'or'"
    elif "=" in text and not re.search(r"[<>=!:]=", text):
        hint = "two values are compared with =="
    elif "yield" in text or ":=" in text:
        hint = "yield and := are not part of the formula language"
    return FormulaError(problem(text, (line, column), "the formula cannot be read here", hint))
