"""YAML as a tree in which every value knows its line and column.

Only plain data is read: mappings, lists, numbers, text, true/false, null. No tags, no duplicate keys, no
YAML 1.1 surprises (``on`` is a text, ``1:30`` is a text, ``1e6`` is a number). Aliases may not blow up.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from scenario.common import inputs, texts
from scenario.common.errors import Problem, TableError, nearest

MAX_DEPTH = 40
MAX_NODES = 3_000_000

_INT = re.compile(r"[-+]?[0-9][0-9_]*\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?\Z")
_WORDS = {"true": True, "True": True, "false": False, "False": False, "null": None, "Null": None, "~": None, "": None}


@dataclass(eq=False)
class YamlNode:
    """A value with its place. ``value`` is a scalar, a dict of name -> :class:`YamlNode`, or a list of them.

    ``keys`` holds the place of each key of a mapping. ``offset`` is the column at which the text of a
    scalar itself starts (past a quote), or 0 when it does not stand on one line as it is. ``path`` leads to
    a value of a table that was given as Python data and has no lines.
    """

    value: Any
    line: int
    column: int
    offset: int = 0
    keys: dict[str, YamlNode] = field(default_factory=dict)
    size: int = 1
    path: str = ""

    @property
    def shown(self) -> str:
        """The value in few words, for a message."""
        return show(self.plain())

    @property
    def kind(self) -> str:
        """The kind of value in plain words."""
        if self.value is None:
            return "empty"
        if self.value == "":
            return "an empty text"
        kinds = {dict: "a mapping", list: "a list", str: "a text", bool: "true/false"}
        return kinds.get(type(self.value), "a number")

    def plain(self) -> Any:
        """The value as ordinary Python data."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value


def show(value: Any) -> str:
    """A plain value as a table writes it, cut short."""
    if isinstance(value, dict):
        said = "{" + ", ".join(f"{key}: {show(item)}" for key, item in list(value.items())[:4]) + "}"
    elif isinstance(value, list):
        said = "[" + ", ".join(show(item) for item in value[:8]) + (", ..." if len(value) > 8 else "") + "]"
    elif value is None or isinstance(value, bool):
        said = {None: "", True: "true", False: "false"}[value]
    elif isinstance(value, int | float):
        said = f"{float(value):.12g}" if isinstance(value, float) or abs(value) < 1e300 else "inf" if value > 0 else "-inf"
    else:
        said = str(value)
    return said if len(said) <= 80 else said[:77] + "..."


class Source:
    """One file's text, and the problems found in it so far. ``sha256`` is that of the bytes read."""

    def __init__(self, file: str, text: str, sha256: str = "") -> None:
        self.file, self.sha256 = file, sha256
        self.lines = text.splitlines()
        self.problems: list[Problem] = []

    def say(self, node: YamlNode | None, message: str, hint: str = "") -> None:
        """Note a problem at ``node``."""
        self.problems.append(self.problem(node, message, hint))

    def text(self, node: YamlNode | None, what: str) -> str:
        """A text, or an empty one with a problem noted."""
        if node is None or node.value is None:
            return ""
        if isinstance(node.value, dict | list):
            self.say(node, f"{what} is a text, not {node.kind}")
            return ""
        return node.value if isinstance(node.value, str) else node.shown

    def problem(self, node: YamlNode | None, message: str, hint: str = "") -> Problem:
        if node is None or not node.line:
            return Problem(message, hint, self.file, place=node.path if node else "")
        return Problem(message, hint, self.file, node.line, node.column, self.line(node.line), node.column)

    def line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def formula_problem(self, node: YamlNode, inner: Problem) -> Problem:
        """A problem inside a formula, moved from the formula's own text to its place in the file."""
        if node.offset and inner.line == 1 and inner.column:
            column = node.offset + inner.column - 1
            return Problem(inner.message, inner.hint, self.file, node.line, column, self.line(node.line), column)
        if not node.line:
            return Problem(inner.message, inner.hint, self.file, 0, 0, inner.source, inner.caret, inner.place or node.path)
        return Problem(inner.message, inner.hint, self.file, node.line, node.column, inner.source or self.line(node.line),
                       inner.caret if inner.source else node.column)  # fmt: skip

    def unknown(self, node: YamlNode | None, name: str, what: str, known: list[str]) -> None:
        """Note an unknown name, with what was probably meant or what there is."""
        hint = nearest(name, known)
        if not hint and known:
            listed = sorted(known)
            hint = "known: " + ", ".join(listed[:12]) + (", ..." if len(listed) > 12 else "")
            lists = {"model": "models", "GPU": "gpus", "method": "methods"}
            hint += f" (scenario list {lists[what]})" if what in lists and len(listed) > 12 else ""
        self.say(node, f"unknown {what} '{show(name)}'", hint)

    def stop(self) -> None:
        """Raise all problems noted, if any."""
        if self.problems:
            raise TableError(sorted(self.problems, key=lambda item: (item.line, item.column)))


def read(path: str | Path, *, stop: bool = True) -> tuple[Source, YamlNode]:
    """The tree of a YAML file. Raises :class:`TableError` for a file that cannot be read as one; see :func:`parse`."""
    raw = inputs.read(path, inputs.TABLE)
    return parse(raw, str(path), stop=stop)


def parse(raw: bytes | str, file: str, *, stop: bool = True) -> tuple[Source, YamlNode]:
    """The tree of YAML text; ``file`` is the name used in messages.

    Keys that stand twice and tags raise at once unless ``stop`` is false: then the source holds these problems, and
    whoever reads the tree adds others.
    """
    if isinstance(raw, bytes):
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            before = (raw[: error.start].decode("utf-8", "replace") + "x").splitlines()
            line, column = len(before), len(before[-1])
            hint = "save the file as UTF-8"
            if raw[:4] == b"PK\x03\x04":
                hint = "this is a workbook or zip file, not a table in YAML"
            raise TableError(Problem(f"byte {raw[error.start]:#04x} is not UTF-8", hint, file, line, column)) from None
    else:
        text = raw
    source = Source(file, text, hashlib.sha256(raw if isinstance(raw, bytes) else raw.encode(errors="replace")).hexdigest())
    bad = texts.CONTROL.search(text)
    if bad:
        before = (text[: bad.start()] + "x").splitlines()
        line, column = len(before), len(before[-1])
        raise TableError(Problem(f"there is a control character ({ord(bad[0]):#04x}) in the file", "", file, line, column))
    events = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        node = _TreeBuilder(source, events).document()
    except yaml.YAMLError as error:
        raise TableError([*source.problems, _yaml_problem(source, error)]) from None
    if stop:
        source.stop()
    return source, node


def _yaml_problem(source: Source, error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
    text = source.line(line)
    hint = ""
    if "\t" in text[: column + 1]:
        tab = text.index("\t") + 1
        if not text[: tab - 1].strip():
            return Problem("a tab cannot indent a line", "use spaces", source.file, line, tab, text, tab)
    if "mapping values are not allowed" in said:
        hint = "a text that holds ': ' needs quotes; or the indentation is off"
    elif "undefined alias" in said or "found character" in said:
        hint = "a text that begins with * & ! % @ ` or { needs quotes"
    return Problem(f"not valid YAML: {said}", hint, source.file, line, column, text, column)


class _TreeBuilder:
    """Builds the tree from parser events with a loop of its own, so that no nesting exhausts the stack."""

    def __init__(self, source: Source, events: Iterator[Any]) -> None:
        self.source = source
        self.events = events
        self.anchors: dict[str, YamlNode | None] = {}
        self.count = 0

    def document(self) -> YamlNode:
        root: YamlNode | None = None
        stack: list[YamlNode] = []
        waiting: list[YamlNode | None] = []  # for each open mapping the key that waits for its value
        names: list[str | None] = []
        for event in self.events:
            if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                node = self.node(event, {} if isinstance(event, yaml.MappingStartEvent) else [])
                if len(stack) >= MAX_DEPTH:
                    self.fail(node, f"nested deeper than {MAX_DEPTH} levels")
                names.append(event.anchor)
                if event.anchor:
                    self.anchors[event.anchor] = None
                self.tag(event, node)
                stack.append(node)
                waiting.append(None)
                continue
            if isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                node = stack.pop()
                waiting.pop()
                anchor = names.pop()
                if anchor:
                    self.anchors[anchor] = node
            elif isinstance(event, yaml.ScalarEvent):
                node = self.scalar(event)
                if event.anchor:
                    self.anchors[event.anchor] = node
            elif isinstance(event, yaml.AliasEvent):
                node = self.alias(event)
            elif isinstance(event, yaml.DocumentStartEvent) and root is not None:
                self.fail(self.node(event, None), "a second YAML document begins here; a table is one document")
            else:
                continue
            self.grow(node)
            if not stack:
                root = node
            else:
                self.attach(stack[-1], waiting, node)
                stack[-1].size += node.size
        if root is None:
            raise TableError(Problem("the file is empty", "`scenario init` writes a table to start from", self.source.file))
        return root

    def attach(self, parent: YamlNode, waiting: list[YamlNode | None], node: YamlNode) -> None:
        if isinstance(parent.value, list):
            parent.value.append(node)
            return
        key = waiting[-1]
        if key is None:
            if isinstance(node.value, dict | list):
                self.fail(node, "a key must be a plain name")
            node.value = "" if node.value is None else str(node.value) if not isinstance(node.value, str) else node.value
            waiting[-1] = node
            return
        waiting[-1] = None
        name = key.value
        if name == "<<":
            self.merge(parent, key, node)
        elif name in parent.keys:
            first = parent.keys[name].line
            self.source.say(key, f"the key '{name}' stands here a second time", f"it is first set on line {first}")
        else:
            parent.keys[name] = key
            parent.value[name] = node  # a merged value gives way to one that is written out

    def merge(self, parent: YamlNode, key: YamlNode, node: YamlNode) -> None:
        parts = node.value if isinstance(node.value, list) else [node]
        for part in parts:
            if not isinstance(part.value, dict):
                self.source.say(key, "'<<' takes an alias of a mapping")
                continue
            for name, value in part.value.items():
                parent.value.setdefault(name, value)

    def node(self, event: Any, value: Any) -> YamlNode:
        return YamlNode(value, event.start_mark.line + 1, event.start_mark.column + 1)

    def grow(self, node: YamlNode) -> None:
        self.count += node.size if isinstance(node, YamlNode) else 1
        if self.count > MAX_NODES * 3:
            self.fail(node, f"the file holds more than {MAX_NODES:,} values once its aliases are written out")

    def fail(self, node: YamlNode, message: str) -> None:
        self.source.say(node, message)
        self.source.stop()

    def tag(self, event: Any, node: YamlNode) -> None:
        if event.tag and event.tag not in ("!", "tag:yaml.org,2002:str"):
            self.source.say(node, f"the tag '{event.tag.replace('tag:yaml.org,2002:', '!!')}' is not allowed: a table is plain data")

    def alias(self, event: Any) -> YamlNode:
        here = self.node(event, None)
        found = self.anchors.get(event.anchor)
        if found is None:
            known = event.anchor in self.anchors
            self.fail(here, f"'*{event.anchor}' refers to " + ("itself" if known else "an anchor that is not set before it"))
        assert found is not None
        return YamlNode(found.value, here.line, here.column, 0, found.keys, found.size)

    def scalar(self, event: Any) -> YamlNode:
        node = self.node(event, event.value)
        self.tag(event, node)
        bad = texts.CONTROL.search(event.value)  # written as an escape: as raw characters they are refused with the file
        if bad:
            self.source.say(node, f"there is a control character ({texts.escaped(bad[0])}) in this text")
        if event.style in (None, "") and not event.tag:
            node.value = _resolve(event.value)
        if event.start_mark.line == event.end_mark.line:
            shift = 1 if event.style in ("'", '"') else 0
            as_written = self.source.line(node.line)[node.column - 1 + shift :].startswith(event.value)
            node.offset = node.column + shift if as_written else 0
        return node


def _resolve(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _INT.match(text):
        digits = text.replace("_", "")
        if len(digits) > 300 or (len(digits.lstrip("+-")) > 1 and digits.lstrip("+-").startswith("0")):
            return text
        return int(digits)
    if _FLOAT.match(text):
        return float(text.replace("_", ""))
    return text
