"""Rows as CSV: a header of input names, one scenario per line, everything else at its default.

A file that ``-o x.csv`` wrote is read too: its output columns are left out, and that is said.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from scenario import contract, entities, shared
from scenario.errors import Problem, TableError
from scenario.host import Host
from scenario.reader import Reader
from scenario.rows import TEXT_NAMES
from scenario.spec import Parameter
from scenario.table import MAX_ROWS, VERSION, Table, parameter_specs
from scenario.yamltree import MAX_BYTES, Node, Source

_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\Z")
_GROUPED = re.compile(r"[-+]?[0-9]{1,3}(\.[0-9]{3})+(,[0-9]+)?\Z|[-+]?[0-9]{1,3}(,[0-9]{3})+\.[0-9]+\Z")
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+\Z")
_MARKS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_MANY = 20
"""Problems that are listed; a file that is wrong throughout is wrong in every line."""

Cell = tuple[str, int, bool]
"""Text, the column at which it starts, and whether it was in quotes."""


@dataclass(frozen=True)
class Header:
    """The columns of a file: those that are read by position, and those left out."""

    read: dict[int, str]
    outputs: tuple[str, ...] = ()


def load(path: str | Path, host: Host, *, max_rows: int = MAX_ROWS) -> Table:
    """The table whose rows are the lines of a CSV file. Raises :class:`TableError` with every problem's line and column."""
    raw = _bytes(path)
    source = Source(str(path), _text(raw, str(path)), hashlib.sha256(raw).hexdigest())
    lines = _lines(source)
    first = next(lines, None)
    if first is None:
        raise TableError(Problem("the file is empty", "the first line names the inputs: model,gpu,batch,context,method", str(path)))
    heads = first[1]
    _separator(source, first[0], heads)
    known: dict[str, Parameter] = {**shared.INPUTS, **parameter_specs(host)}
    header = _header(source, first[0], heads, known, host)
    source.stop()
    texts = {name for name in header.read.values() if name in TEXT_NAMES or known[name].kind in contract.TEXT_KINDS}
    rows: list[Node] = []
    for number, cells in lines:
        if len(cells) == 1 and not cells[0][0]:
            continue
        if len(cells) != len(heads):
            _width(source, number, cells, [header.read.get(index, "") in texts for index in range(len(heads))])
        elif row := _row(source, number, cells, header, texts):
            rows.append(row)
        if len(source.problems) >= _MANY:
            source.problems.append(Problem("... and perhaps more; reading stopped here", file=source.file))
            raise TableError(source.problems)
    if not rows and not source.problems:
        source.problems.append(Problem("the file has a header and no rows", file=source.file))
    source.stop()
    root = Node({"version": Node(VERSION, 0, 0), "rows": Node(rows, 2, 1)}, 1, 1)
    table = Reader(source, root, host, max_rows).table()
    return replace(table, notes=_notes(header))


def _notes(header: Header) -> tuple[str, ...]:
    if not header.outputs:
        return ()
    names = ", ".join(header.outputs[:4]) + (", ..." if len(header.outputs) > 4 else "")
    count = len(header.outputs)
    return (f"{count} output column{'s' if count > 1 else ''} of an earlier run left out: {names}",)


def _bytes(path: str | Path) -> bytes:
    try:
        if Path(path).is_dir():
            raise TableError(Problem("this is a folder, not a table", file=str(path)))
        with Path(path).open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise TableError(Problem("there is no such file", file=str(path))) from None
    except (OSError, ValueError) as error:
        raise TableError(Problem(f"cannot be read: {getattr(error, 'strerror', None) or error}", file=str(path))) from None
    if len(raw) > MAX_BYTES:
        raise TableError(Problem(f"the file is larger than the limit of {MAX_BYTES / 1e6:.0f} MB", file=str(path)))
    return raw


def _text(raw: bytes, file: str) -> str:
    hint = "save it as CSV in UTF-8 (in Excel: CSV UTF-8)"
    for mark, name in _MARKS.items():
        if raw.startswith(mark):
            raise TableError(Problem(f"the file is in {name}, not UTF-8", hint, file))
    if raw.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"PAR1")):
        raise TableError(Problem("this is a workbook or another binary file under the name of a CSV file", "", file))
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = (raw[: error.start].decode("utf-8", "replace") + "x").splitlines()
        raise TableError(Problem(f"byte {raw[error.start]:#04x} is not UTF-8", hint, file, len(before), len(before[-1]))) from None
    bad = _CONTROL.search(text)
    if bad:
        before = (text[: bad.start()] + "x").splitlines()
        said = f"there is a control character ({ord(bad[0]):#04x}) in the file"
        raise TableError(Problem(said, "this is not a CSV file", file, len(before), len(before[-1])))
    return text


def _lines(source: Source) -> Iterator[tuple[int, list[Cell]]]:
    """The cells of each line with their columns; a cell in quotes may not run over the line's end."""
    for number, line in enumerate(source.lines, 1):
        if '"' not in line:
            cells, at = [], 1
            for part in line.split(","):
                lead = len(part) - len(part.lstrip(" "))
                cells.append((part.strip(" "), at + lead, False))
                at += len(part) + 1
            yield number, cells
            continue
        found = _quoted(line)
        if isinstance(found, int):
            source.say(Node(None, number, found), "the quotes of this cell are not closed, or text stands behind them",
                       'a quote inside a cell is written twice: ""')  # fmt: skip
            found = []
        if found:
            yield number, found


def _quoted(line: str) -> list[Cell] | int:
    """The cells of a line with quotes, or the column of the cell that is broken."""
    cells: list[Cell] = []
    at = 0
    while True:
        while at < len(line) and line[at] == " ":
            at += 1
        start = at
        if at < len(line) and line[at] == '"':
            parts, at = [], at + 1
            while True:
                end = line.find('"', at)
                if end < 0:
                    return start + 1
                parts.append(line[at:end])
                at = end + 1
                if at < len(line) and line[at] == '"':
                    parts.append('"')
                    at += 1
                    continue
                break
            rest = line.find(",", at)
            rest = len(line) if rest < 0 else rest
            if line[at:rest].strip(" "):
                return start + 1
            cells.append(("".join(parts), start + 2, True))
        else:
            rest = line.find(",", at)
            rest = len(line) if rest < 0 else rest
            cells.append((line[at:rest].strip(" "), start + 1, False))
        if rest >= len(line):
            return cells
        at = rest + 1


def _separator(source: Source, number: int, heads: Sequence[Cell]) -> None:
    """Refuse a file that is separated by something else."""
    line = source.line(number)
    for sign, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if line.count(sign) > line.count(",") and len(heads) <= line.count(sign):
            hint = "save it with commas between the cells and points in the numbers"
            source.say(Node(None, number, line.index(sign) + 1), f"the cells are separated by {name}, not by commas", hint)
            source.stop()
    if line.lstrip().lower().startswith(("<!doctype", "<html", "<?xml")):
        raise TableError(Problem("this is a web page under the name of a CSV file", "", source.file, number, 1))


def _header(source: Source, number: int, heads: Sequence[Cell], known: dict[str, Parameter], host: Host) -> Header:
    inputs = [*TEXT_NAMES, *known]
    results = outputs(host) - set(inputs)
    # In a file that a run wrote, the columns of the table itself stand behind the shared ones.
    names = [name for name, _, _ in heads]
    behind = max((names.index(name) for name in ("status", "tpot_ms", "memory_gb") if name in names), default=len(names))
    read: dict[int, str] = {}
    left: list[str] = []
    for index, (name, column, _) in enumerate(heads):
        node = Node(name, number, column)
        if name in read.values() or name in left:
            source.say(node, f"the column '{name}' stands here a second time")
        elif name in inputs:
            read[index] = name
        elif name in results or (name and index > behind):
            left.append(name)
        elif not name:
            source.say(node, "a column has no name", "the first line names an input for every column")
        elif name in shared.SCALARS:
            source.say(node, f"'{name}' is one value for the whole table, not an input of a row", "it can be given in a YAML table")
        else:
            source.unknown(node, name, "column", inputs)
    if not read and not source.problems:
        source.say(Node(None, number, 1), "the first line names no input", "such as model,gpu,batch,context,method")
    return Header(read, tuple(left))


def outputs(host: Host) -> set[str]:
    """The names of columns that a run computes or looks up."""
    found = {*shared.ORDER, *shared.COLUMNS, *entities.MODEL_COLUMNS, *entities.MODEL_FIELDS, *host.columns}
    found |= {f"gpu_{name}" for name in entities.GPU_FIELDS} | {"weights_bits", "kv_bits"}
    return found | {name for method in host.methods.values() for name in method.columns}


def _width(source: Source, number: int, cells: Sequence[Cell], texts: Sequence[bool]) -> None:
    """Say that a line has too many or too few cells, and which two are one number if that mends it."""
    best = ""
    if len(cells) == len(texts) + 1:
        for index, ((whole, _, _), (part, _, _)) in enumerate(zip(cells, cells[1:], strict=False)):
            if whole.lstrip("+-").isdigit() and part.isdigit():
                joined = [cell[0] for cell in (*cells[:index], (f"{whole}.{part}", 0, False), *cells[index + 2 :])]
                if all(text or not cell or _NUMBER.match(cell) for cell, text in zip(joined, texts, strict=True)):
                    best = f"is '{whole},{part}' one number? It is written with a point: {whole}.{part}"
    source.say(Node(None, number, 1), f"the line has {len(cells)} cells, the header {len(texts)}", best)


def _row(source: Source, number: int, cells: Sequence[Cell], header: Header, texts: set[str]) -> Node | None:
    values: dict[str, Node] = {}
    keys: dict[str, Node] = {}
    good = True
    for index, name in header.read.items():
        text, column, quoted = cells[index]
        node = Node(None, number, column)
        keys[name] = node
        if name in texts:
            # The quote that keeps a spreadsheet program from running a text as a formula.
            node.value = (text[1:] if text[:1] == "'" and text[1:2] in ("=", "+", "-", "@") else text) or None
        elif text in ("true", "false"):
            node.value = text == "true"
        elif _NUMBER.match(text):
            node.value = float(text)
        elif text:
            source.say(node, f"{name}: a number is needed, not '{text[:60]}'", _hint(text))
            good = False
        values[name] = node
    return Node(values, number, 1, keys=keys) if good else None


def _hint(text: str) -> str:
    from scenario.catalog import number_hint

    if _GROUPED.match(text):
        last = max(text.rfind(","), text.rfind("."))
        whole, part = text[:last], text[last + 1 :]
        if "," in text:
            plain = re.sub("[.,]", "", whole) + "." + part
            return f"a number has a decimal point and nothing between the thousands: {plain}"
    if _DECIMAL_COMMA.match(text) and len(text.partition(",")[2]) != 3:
        return f"a number has a decimal point: {text.replace(',', '.')}"
    return number_hint(text)
