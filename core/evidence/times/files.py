"""Takes a file of any of the benchmarks' kinds apart into entries: JSON, JSON lines, CSV, SQL, markdown tables, printed blocks."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any

from scenario.common.errors import Problem, TableError

MORE = "\0more"
"""The key of cells beyond the header's, which no header has."""
PRINTED = "\0printed"
"""The key that marks an entry taken from printed lines; its value is the kind of block."""

Entries = Iterator[tuple[int, dict[str, Any]]]


def entries(text: str, path: str) -> Entries:
    """The entries, each with its line, or in one JSON text with its number."""
    start = text.lstrip()[:1]
    if start in ("{", "["):
        yield from _json(text, path)
    elif re.search(r"(?im)^\s*insert into \w+", text):
        yield from _sql(text)
    elif re.search(r"Serving Benchmark Result|\[TPOT\]|PERFORMANCE OVERVIEW", text):
        yield from _blocks(text)
    elif re.search(r"(?m)^\|.*\|\s*$", text):
        yield from _markdown(text)
    elif re.match(r"(?i)\s*metric,", text):
        yield from _metrics(text)
    else:
        yield from _csv(text)


def _json(text: str, path: str) -> Entries:
    try:
        data = json.loads(text)
    except ValueError:
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                try:
                    row = json.loads(line)
                except ValueError:
                    raise TableError(Problem(f"line {number} is not JSON", file=path, line=number)) from None
                yield from ((number, part) for part in _unfolded(row))
        return
    found = [part for row in (data if isinstance(data, list) else [data]) for part in _unfolded(row)]
    yield from enumerate(found, 1)


def _unfolded(row: Any) -> Iterator[dict[str, Any]]:
    """The entry, or those that a report holds, each with what the report says of all."""
    if not isinstance(row, dict):
        return
    inner = row.get("benchmarks")
    if isinstance(inner, list):
        rest = {key: value for key, value in row.items() if key != "benchmarks"}
        yield from ({**part, "report": rest} for part in inner if isinstance(part, dict))
    else:
        yield row


def _csv(text: str) -> Entries:
    lines = csv.DictReader(io.StringIO(text), restkey=MORE)
    for row in lines:
        cells = {str(key).strip(): (value or "").strip() for key, value in row.items() if not isinstance(value, list)}
        more = [cell.strip() for cell in row.get(MORE) or () if isinstance(row.get(MORE), list) and cell.strip()]
        yield lines.line_num, {**cells, **({MORE: more} if more else {})}


def _metrics(text: str) -> Entries:
    """genai-perf's and AIPerf's CSV: a metric a line, under the names that their JSON has."""
    found: dict[str, Any] = {}
    heads: list[str] = []
    for row in csv.reader(io.StringIO(text)):
        if row and row[0].strip().lower() == "metric":
            heads = [cell.strip().lower() for cell in row]
        elif len(row) > 1 and heads:
            said = re.match(r"\s*([^(]+?)\s*(?:\(([^)]*)\))?\s*$", row[0])
            cells = dict(zip(heads, row, strict=False))
            value = cells.get("avg", cells.get("value", "")).replace(",", "")
            if said and re.fullmatch(r"[-+0-9.eE]+", value):
                found[said[1].lower().replace(" ", "_")] = {"unit": said[2] or "", "avg": float(value)}
    if found:
        yield 1, found


def _sql(text: str) -> Entries:
    """llama-bench -o sql: one INSERT a line."""
    for number, line in enumerate(text.splitlines(), 1):
        found = re.search(r"(?i)insert into \w+ \(([^)]*)\) values \((.*)\);?\s*$", line)
        if found:
            values = next(csv.reader([found[2]], quotechar="'", skipinitialspace=True), [])
            yield number, dict(zip((name.strip() for name in found[1].split(",")), (value.strip() for value in values), strict=False))


def _markdown(text: str) -> Entries:
    """Tables between bars, each with its own header; a line that names the device holds for those after it."""
    heads: list[str] = []
    devices: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        device = re.search(r"Device \d+: (.+?)(?:,| \(|$)", line)
        if device:
            devices.append(device[1].strip())
        if not re.match(r"\s*\|.*\|\s*$", line):
            heads = heads if line.strip() == "" or not heads else []
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            continue
        if not heads or cells == heads:
            heads = cells
        elif len(cells) == len(heads):
            yield number, {**dict(zip(heads, cells, strict=True)), PRINTED: "table", "devices": devices.copy()}


def _blocks(text: str) -> Entries:
    """Blocks of ``name: value`` lines; settings printed before the first one hold for it."""
    block: dict[str, Any] = {PRINTED: "block"}
    began = 1
    whole = False
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"Serving Benchmark Result|^=+\s*$", line) is None and "=" in line and "Namespace(" in line:
            block.update({f"--{name}": value.strip("'\"") for name, value in re.findall(r"(\w+)=('[^']*'|\"[^\"]*\"|[^,)]+)", line)})
        if "Serving Benchmark Result" in line or re.search(r"=\s*\w+ (?:BACKEND|ENGINE)\b", line):
            if whole:
                yield began, block
                block = {PRINTED: "block"}
            began, whole = number, False
        said = re.match(r"[\s#]*([A-Za-z][^:=]*?)\s*:\s+(.*?)\s*$", line)
        if said:
            block[said[1].strip().lower()] = said[2]
            whole = whole or bool(re.search(r"(?i)tpot|time-per-output-token|mean itl", said[1]))
    if whole:
        yield began, block
