"""YAML text as a person writes it: numbers without noise, quotes only where they are needed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scenario.common.yamltree import _resolve

WIDTH = 110
"""A list longer than this goes on on the next line."""

_START = r"(?:-?[A-Za-z_]|[0-9/($]|\./)"
_PLAIN = re.compile(_START + r"[A-Za-z0-9_./()+*%$<>=;'^~ -]*\Z")
_PLAIN_LINE = re.compile(_START + r"[A-Za-z0-9_./()+*%$<>=;'^~ ,?!:\[\]{}&|@#-]*\Z")
_NUMBER_LIKE = re.compile(r"[-+.]?[0-9][0-9a-fA-FxXoOtTzZ_.,: +-]*\Z")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "none"}
"""Texts that some reader of YAML takes for something else."""


def number(value: float) -> str:
    """A number that reads back as the same float: 64, not 64.0."""
    if value == int(value) and abs(value) < 1e16 and (value or str(value)[0] != "-"):
        return str(int(value))
    return repr(float(value))


def text(value: str, *, flow: bool = True) -> str:
    """A text, quoted where it would read as something else. ``flow`` is inside ``[]`` or ``{}``."""
    plain = (_PLAIN if flow else _PLAIN_LINE).match(value)
    if (
        plain and value.strip() == value and value.lower() not in _WORDS and isinstance(_resolve(value), str)
        and not _NUMBER_LIKE.match(value) and ": " not in value and " #" not in value and not value.endswith(":")
    ):  # fmt: skip
        return value
    if value.isalpha() and value.lower() not in _WORDS:  # any script
        return value
    return '"' + "".join(_escaped(char) for char in value) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char == "\n":
        return "\\n"
    if char.isprintable():
        return char
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:  # half of a pair: no file can hold it
        return "\ufffd"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def formula(value: str) -> str:
    """A formula, always in quotes: those it does not use itself."""
    if '"' in value and "'" not in value and all(char.isprintable() for char in value):
        return f"'{value}'"
    return '"' + "".join(_escaped(char) for char in value) + '"'


class Written(str):
    """Text that is YAML already."""


def flow(value: Any) -> str:
    """Any value on one line: ``{model: a, batch: [1, 8]}``."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{text(str(key))}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, Written):
        return str(value)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Sequence):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return number(value)


def entry(key: str, value: Any, indent: int = 0, comment: str = "") -> list[str]:
    """The lines of ``key: value`` with the value on one line, or a long list over several."""
    head = " " * indent + f"{text(key)}: "
    said = text(value, flow=False) if isinstance(value, str) and not isinstance(value, Written) else flow(value)
    if isinstance(value, list | tuple) and len(head + said) > WIDTH:
        lines = wrapped(head + "[", [flow(item) for item in value], " " * (indent + 2))
        lines[-1] += "]"
    else:
        lines = [head + said]
    if comment:
        lines[-1 if len(lines) == 1 else 0] += f"  # {remark(comment)}"
    return lines


def wrapped(head: str, items: Sequence[str], indent: str) -> list[str]:
    """``items`` joined by commas after ``head``, over as many lines as the width asks for."""
    lines, line = [], head
    for index, item in enumerate(items):
        piece = item + ("," if index < len(items) - 1 else "")
        if len(line) + len(piece) + 1 > WIDTH and line.strip() not in ("", head.strip()):
            lines.append(line)
            line = indent + piece
        else:
            line += piece if line == head or not line.strip() else " " + piece
    return [*lines, line]


def remark(comment: str, most: int = 100) -> str:
    """A comment on one line, cut at a word."""
    words = "".join(char if char.isprintable() else " " for char in comment).split()
    said = " ".join(words)
    if len(said) <= most:
        return said
    while words and len(" ".join(words)) > most - 4:
        words.pop()
    return " ".join(words) + " ..." if words else said[: most - 4] + " ..."


def section(key: str, lines: Iterable[str], above: str = "") -> list[str]:
    """A named part of the table with an empty line before it; nothing when it is empty."""
    body = list(lines)
    if not body:
        return []
    return ["", *([f"# {above}"] if above else []), f"{key}:", *body]
