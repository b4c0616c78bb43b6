"""Rows as CSV: a header of input names, one scenario per line, everything else at its default.

A file that ``-o x.csv`` wrote is read too: its output columns are left out, and that is said.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from scenario.catalogs.catalog import number_hint
from scenario.common import inputs, texts
from scenario.common.errors import Problem, TableError
from scenario.common.yamltree import Source, YamlNode
from scenario.model import entities, features, serving, shared
from scenario.model.spec import Parameter
from scenario.registry.loaded import Host
from scenario.tables.reader import CORE, Reader
from scenario.tables.rows import CONTEXT_FROM, Expander
from scenario.tables.table import MAX_ROWS, TEXT_NAMES, VERSION, Table, is_text_input, known_inputs

_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\Z")
_GROUPED = re.compile(r"[-+]?[0-9]{1,3}(\.[0-9]{3})+(,[0-9]+)?\Z|[-+]?[0-9]{1,3}(,[0-9]{3})+\.[0-9]+\Z")
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+\Z")
_MARKS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}
MANY = 20
"""Problems that are listed; a file that is wrong throughout is wrong in every line."""

Cell = tuple[str, int]
"""Text, and the column at which it starts."""


@dataclass(frozen=True)
class CsvHeader:
    """The columns of a file: those that are read by position, and those left out."""

    read: dict[int, str]
    outputs: tuple[str, ...] = ()


def load(path: str | Path, host: Host, *, max_rows: int = MAX_ROWS) -> Table:
    """The table whose rows are the lines of a CSV file. Raises :class:`TableError` with every problem's line and column."""
    raw = inputs.read(path, inputs.TABLE)
    source = Source(str(path), _text(raw, str(path)), hashlib.sha256(raw).hexdigest())
    lines = _lines(source)
    first = next(lines, None)
    if first is None:
        source.stop()
        raise TableError(Problem("the file is empty", "the first line names the inputs: model,gpu,batch,context,method", str(path)))
    number, heads = first
    _separator(source, number, heads)
    known = known_inputs(host)
    header = _header(source, number, heads, known, host)
    source.stop()
    texts = [is_text_input(header.read.get(index, ""), known) for index in range(len(heads))]
    numbers: list[int] = []
    rows: list[list[Cell]] = []
    for number, cells in lines:
        if len(cells) == 1 and not cells[0][0]:
            continue
        if len(cells) != len(heads):
            _width(source, number, cells, texts)
            if len(source.problems) >= MANY:
                source.problems.append(Problem("... and perhaps more; reading stopped here", file=source.file))
                source.stop()
            continue
        numbers.append(number)
        rows.append(cells)
        if len(numbers) > max_rows:
            raise TableError(Problem(f"the file holds more than {max_rows:,} rows", "allow more with --max-rows", source.file))
    if not rows and not source.problems:
        source.problems.append(Problem("the file has a header and no rows", file=source.file))
    if not rows:
        source.stop()
    table = _CsvReader(source, host, max_rows, known, header, numbers, rows).table()
    return replace(table, notes=(*table.notes, *_notes(header)))


class _CsvReader(Reader):
    """Reads the rows column by column: a value is checked once, where it stands first."""

    def __init__(
        self, source: Source, host: Host, max_rows: int, known: Mapping[str, Parameter], header: CsvHeader, numbers: list[int], rows: list[list[Cell]]
    ) -> None:
        root = YamlNode({"version": YamlNode(VERSION, 0, 0)}, 1, 1)
        super().__init__(source, root, host, max_rows)
        self.known, self.header, self.numbers, self.cells = known, header, numbers, rows
        self.places = {name: index for index, name in header.read.items()}

    def node(self, name: str, row: int, value: Any = None) -> YamlNode:
        """The place of a cell."""
        return YamlNode(value, self.numbers[row], self.cells[row][self.places[name]][1])

    def given_rows(self, defaults: Mapping[str, float | str]) -> pl.DataFrame:
        expander = Expander(self, defaults)
        columns = []
        for index, name in self.header.read.items():
            texts = [cells[index][0] for cells in self.cells]
            first = dict(zip(reversed(texts), range(len(texts) - 1, -1, -1), strict=True))
            values = {text: self.converted(name, text, row) for text, row in sorted(first.items(), key=lambda item: item[1])}
            columns.append(pl.Series(name, [values[text] for text in texts], dtype=expander.dtype(name), strict=False))
        frame = pl.DataFrame([column for column in columns if column.name in ("id", *CORE) or column.null_count() < len(column)])
        for name in CORE:
            if name not in frame.columns:
                frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias(name))
        self.required(frame)
        self.repeated(frame)
        if not self.source.problems:
            self.together(frame, expander)
        if self.source.problems:
            return pl.DataFrame()
        return expander.with_ids(frame)

    def converted(self, name: str, text: str, row: int) -> Any:
        """The value of a cell, or None for a blank or with a problem noted."""
        if not text:
            return None
        node = self.node(name, row)
        if is_text_input(name, self.known):
            # The quote keeps a spreadsheet program from running a text as a formula.
            node.value = text[1:] if text[:1] == "'" and text[1:2] in ("=", "+", "-", "@") else text
            if name == "id":
                found: dict[str, Any] = {}
                Expander(self, {}).row_id(node, node, "a row", found)
                return found["id"][0][0] if found else None
            return self.core(name, node) if name in TEXT_NAMES else self.value(name, self.known[name], node)
        if self.known[name].kind == "flag" and text in ("true", "false"):
            return float(text == "true")
        if name == "gpus" and text == "auto":
            return 0.0
        if not _NUMBER.match(text):
            self.source.say(node, f"{name}: a number is needed, not '{text[:60]}'", _hint(text))
            return None
        node.value = float(text)
        return self.value(name, self.known[name], node)

    def required(self, frame: pl.DataFrame) -> None:
        """The inputs that are never guessed are there and filled."""
        for name in shared.REQUIRED:
            if name == "context" and any(all(part in self.places for part in pair) for pair in (CONTEXT_FROM, ("isl", "osl"))):
                continue
            if name not in self.places:
                hint = "0 is the weights-only bound" if name == "context" else f"add a column {name}"
                self.source.say(YamlNode(None, 1, 1), f"the rows do not say which {name}; that is never guessed", hint)
                continue
            index = self.places[name]
            blank = [row for row, cells in enumerate(self.cells) if not cells[index][0]]
            for row in blank[:MANY]:
                self.source.say(self.node(name, row), f"{name} is blank and has no default; it is never guessed")

    def repeated(self, frame: pl.DataFrame) -> None:
        if "id" not in frame.columns:
            return
        for row in frame["id"].is_first_distinct().not_().arg_true().to_list()[:MANY]:
            name = frame["id"][row]
            if name is not None:
                line = self.numbers[int(frame["id"].index_of(name) or 0)]
                said = f"the id '{name}' is given a second time; an id names one row"
                self.source.say(self.node("id", row), said, f"it is first given on line {line}")

    def together(self, frame: pl.DataFrame, expander: Expander) -> None:
        """What depends on two inputs of a row, once per combination."""
        for name in [name for name in ("weights", *sorted(expander.shared_by)) if name in frame.columns]:
            pairs = frame.with_row_index("#").group_by("method", name, maintain_order=True).agg(pl.col("#").first())
            for method, value, row in pairs.iter_rows():
                place = self.node(name, row)
                cells = {"method": [(method, place)], name: [(value, place)]}
                if name == "weights":
                    expander.twice_quantized(place, cells)
                else:
                    expander.ranges(cells)


def _notes(header: CsvHeader) -> tuple[str, ...]:
    if not header.outputs:
        return ()
    names = ", ".join(header.outputs[:4]) + (", ..." if len(header.outputs) > 4 else "")
    count = len(header.outputs)
    said = f"{count} output column{'s' if count > 1 else ''} of an earlier run left out ({names})"
    return (f"{said}; models, GPUs and columns that its table defined are not in a CSV file",)


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
    bad = texts.CONTROL.search(text)
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
                cells.append((part.strip(" "), at + lead))
                at += len(part) + 1
            yield number, cells
            continue
        found = _quoted(line)
        if isinstance(found, int):
            source.say(YamlNode(None, number, found), "the quotes of this cell are not closed, or text stands behind them",
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
            cells.append(("".join(parts), start + 2))
        else:
            rest = line.find(",", at)
            rest = len(line) if rest < 0 else rest
            cells.append((line[at:rest].strip(" "), start + 1))
        if rest >= len(line):
            return cells
        at = rest + 1


def _separator(source: Source, number: int, heads: Sequence[Cell]) -> None:
    """Refuse a file that is separated by something else."""
    line = source.line(number)
    for sign, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if line.count(sign) > line.count(",") and len(heads) <= line.count(sign):
            hint = "save it with commas between the cells and points in the numbers"
            source.say(YamlNode(None, number, line.index(sign) + 1), f"the cells are separated by {name}, not by commas", hint)
            source.stop()
    if line.lstrip().lower().startswith(("<!doctype", "<html", "<?xml")):
        raise TableError(Problem("this is a web page under the name of a CSV file", "", source.file, number, 1))


def _header(source: Source, number: int, heads: Sequence[Cell], known: Mapping[str, Parameter], host: Host) -> CsvHeader:
    inputs = [*TEXT_NAMES, *known]
    results = outputs(host) - set(inputs)
    # In a file that a run wrote, the columns of the table itself stand behind the shared ones.
    names = [name for name, _ in heads]
    behind = max((names.index(name) for name in ("status", "tpot_ms", "memory_gb") if name in names), default=len(names))
    read: dict[int, str] = {}
    left: list[str] = []
    for index, (name, column) in enumerate(heads):
        node = YamlNode(name, number, column)
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
        source.say(YamlNode(None, number, 1), "the first line names no input", "such as model,gpu,batch,context,method")
    return CsvHeader(read, tuple(left))


def outputs(host: Host) -> set[str]:
    """The names of columns that a run computes or looks up."""
    found = {*shared.ORDER, *shared.COLUMNS, *features.COLUMNS, *serving.COLUMNS, *serving.ESTIMATE_COLUMNS, *serving.FIRST_COLUMNS, *entities.MODEL_COLUMNS, *entities.MODEL_FIELDS, *host.columns}
    found |= {f"gpu_{name}" for name in entities.GPU_FIELDS} | {"weights_bits", "kv_bits"}
    return found | {name for method in host.methods.values() for name in method.columns}


def _width(source: Source, number: int, cells: Sequence[Cell], texts: Sequence[bool]) -> None:
    """Say that a line has too many or too few cells, and which two are one number if that mends it."""
    best = ""
    if len(cells) == len(texts) + 1:
        for index, ((whole, _), (part, _)) in enumerate(pairwise(cells)):
            if whole.lstrip("+-").isdigit() and part.isdigit():
                joined = [cell[0] for cell in (*cells[:index], (f"{whole}.{part}", 0), *cells[index + 2 :])]
                if all(text or not cell or _NUMBER.match(cell) for cell, text in zip(joined, texts, strict=True)):
                    best = f"is '{whole},{part}' one number? It is written with a point: {whole}.{part}"
    source.say(YamlNode(None, number, 1), f"the line has {len(cells)} cells, the header {len(texts)}", best)


def _hint(text: str) -> str:
    if _GROUPED.match(text):
        last = max(text.rfind(","), text.rfind("."))
        whole, part = text[:last], text[last + 1 :]
        if "," in text:
            plain = re.sub("[.,]", "", whole) + "." + part
            return f"a number has a decimal point and nothing between the thousands: {plain}"
    if _DECIMAL_COMMA.match(text) and len(text.partition(",")[2]) != 3:
        return f"a number has a decimal point: {text.replace(',', '.')}"
    return number_hint(text)
