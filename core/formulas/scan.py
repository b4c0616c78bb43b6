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
    opened: list[tuple[str, Span]] = []
    quote, quoted = "", (1, 1)
    line, start = 1, 0
    for index, char in enumerate(text):
        span = (line, index - start + 1)
        if char == "\n":
            if quote:
                break
            line, start = line + 1, index + 1
        elif not char.isprintable() and char != "\t":
            name = unicodedata.name(char, "a control character").lower()
            raise FormulaError(problem(text, span, f"U+{ord(char):04X} ({name}) has no place in a formula"))
        elif quote:
            if char == "\\":
                raise FormulaError(problem(text, span, "a text in a formula has no backslash"))
            if char == quote:
                if span == (quoted[0], quoted[1] + 1):
                    said = "an empty text is not part of the formula language"
                    raise FormulaError(problem(text, quoted, said, "what has no value is written blank"))
                quote = ""
        elif char in "\"'":
            quote, quoted = char, span
        elif char in "([{":
            opened.append((char, span))
            if len(opened) > deepest:
                raise FormulaError(problem(text, span, f"the formula is nested deeper than {deepest} levels"))
        elif char in _PAIRS:
            if not opened or opened[-1][0] != _PAIRS[char]:
                raise FormulaError(problem(text, span, f"there is no opening bracket for this '{char}'"))
            opened.pop()
        elif not char.isascii():
            hint = f"write {_MEANT[char]}" if char in _MEANT else "names and numbers are written with plain letters and digits"
            raise FormulaError(problem(text, span, f"'{char}' has no meaning in a formula", hint))
        elif char in "#;\\`$?!" and text[index : index + 2] != "!=":
            raise FormulaError(problem(text, span, f"'{char}' has no meaning in a formula"))
    if text.lstrip().startswith("="):
        raise FormulaError(problem(text, (1, 1), "a formula is written without the '=' in front"))
    if quote:
        raise FormulaError(problem(text, quoted, "a text is never closed"))
    if opened:
        raise FormulaError(problem(text, opened[-1][1], "a bracket is never closed"))


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
