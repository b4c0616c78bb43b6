"""Text that comes from elsewhere, made harmless for where it goes: a terminal, XML, markdown, a CSV file.

A title, a unit or a file's name may hold anything. On a terminal an escape sequence clears the screen or forges a line,
in markdown a ``<script>`` runs, in XML a control character makes a file that no program opens, and a spreadsheet runs
what begins with ``=``.
"""

from __future__ import annotations

import re

QUOTED = 200
"""Characters of a value that a message quotes."""

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"  # controls (a terminal obeys them), halves of pairs (nothing can write them)
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"  # direction and line marks: they forge the order of what is read
)
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
CONTROL = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What YAML 1.2 (5.1, printable characters) does not allow in a file; XML 1.0 (2.2) is narrower by no character that matters."""
_MARKDOWN = re.compile(r"([\\`*\[\]|])")
_QUOTES = re.compile(rf"'[^'\n]{{{QUOTED + 1},}}'")
_ENDLESS = re.compile(rf"\S{{{QUOTED + 20},}}")


def escaped(char: str) -> str:
    r"""A character by its number, as YAML and Python write it: ``\x1b``, ``\u202e``."""
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def for_terminal(text: str) -> str:
    """``text`` with what a terminal would obey written out; line ends and tabs stay."""
    return _UNSEEN.sub(lambda found: escaped(found[0]), text)


def for_line(text: str) -> str:
    """``text`` on one line, for a terminal."""
    return for_terminal(" ".join(text.split("\n"))).replace("\t", " ")


def for_xml(text: str) -> str:
    """``text`` without characters that XML 1.0 has no way to write."""
    return _NOT_XML.sub("\ufffd", text)


def escape_markdown(text: str) -> str:
    """``text`` on one line that markdown shows as it is: no link, no cell, no HTML."""
    plain = _MARKDOWN.sub(r"\\\1", for_line(text))
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def short(text: str, most: int = QUOTED) -> str:
    """The beginning of a text, with dots where there was more."""
    return text if len(text) <= most else text[: most - 3] + "..."


def for_message(text: str) -> str:
    """A message for people: harmless, and no value in it longer than :data:`QUOTED`."""
    text = _QUOTES.sub(lambda found: f"'{short(found[0][1:-1])}'", text)
    return for_terminal(_ENDLESS.sub(lambda found: short(found[0]), text))
