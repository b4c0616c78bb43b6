"""Strategies that make hostile inputs out of good ones: they keep the structure and break one thing after the other."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from fuzz.harness import Case
from hypothesis import strategies as st

from scenario.api import bundled

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"

ODD_NUMBERS = st.sampled_from([0, -1, 1, 0.5, 1e-300, 1e300, 1e308, -1e308, 1e15, 2**53 + 1, 10**400, 1e-9, 16, 17, 1e5, float("nan"),
                               float("inf"), True, False, None])  # fmt: skip
ODD_TEXTS = st.sampled_from([
    "", " ", "~", "null", "=1+1", "@x", "'", '"', "\\", "{{}}", "[", "a: b", "#", "*a", "&a", "!!python/object:os.system x", "\x1b[2J", "\x00",
    "\u202e", "\ud7ff", "\uffff", "é" * 300, "x" * 40_000, "../../etc/passwd", "/dev/zero", "/dev/stdin", "1e400", "0x10", "1_000", "12:30:45",
    "1,5", "vanilla", "eagle+eagle", "int4+fp8+eagle+mtp", "+", "++", "h100-sxm", "llama-3.1-8b", "unlimited", "blank", "tpot_ms",
    "tpot_ms / 0", "batch ** batch ** batch", "__import__('os')", "(" * 300, "-" * 5000 + "1", "if", "1 if 1 else 1", "lookup(batch)", "\n\n", "\t",
    "<b>", "|", "</script>", "_x0041_", "$A$1", "Sheet1!A1", "[1]x", "#REF!", "R1C1", "TRUE", "nan", "inf",
])  # fmt: skip
NAMES = ["model", "gpu", "batch", "context", "method", "gpus", "alpha", "gamma", "version", "rows", "grid", "defaults", "columns", "formula", "unit",
         "doc", "title", "models", "gpus", "prices", "profiles", "parameters", "where", "sort", "show", "time_model", "hardware", "source", "trees",
         "curves", "summary", "isl", "osl", "engine", "activations", "tp", "nodes", "points", "measured", "functions", "notes", "presets"]  # fmt: skip
VALUES: st.SearchStrategy[Any] = st.one_of(
    ODD_NUMBERS, ODD_TEXTS, st.text(max_size=30), st.floats(), st.integers(-10, 200), st.sampled_from(NAMES),
    st.lists(st.one_of(ODD_NUMBERS, ODD_TEXTS), max_size=4), st.dictionaries(st.sampled_from(NAMES), st.one_of(ODD_NUMBERS, ODD_TEXTS), max_size=3),
)  # fmt: skip


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values of a tree."""
    found = [path] if path else []
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        found += places(value, (*path, key))
    return found


@st.composite
def broken(draw: st.DrawFn, tree: Any, most: int = 3) -> Any:
    """A copy of a tree with one to three values replaced, removed, renamed, doubled or put elsewhere."""
    tree = json.loads(json.dumps(tree, default=str))
    for _ in range(draw(st.integers(1, most))):
        all_places = places(tree)
        if not all_places:
            return draw(VALUES)
        *path, key = draw(st.sampled_from(all_places))
        parent = tree
        for step in path:
            parent = parent[step]
        act = draw(st.sampled_from(["value", "value", "value", "remove", "rename", "double", "move", "key"]))
        if act == "value":
            parent[key] = draw(VALUES)
        elif act == "remove":
            del parent[key]
        elif act == "double" and isinstance(parent, list):
            parent.insert(key, parent[key])
        elif act in ("rename", "double") and isinstance(parent, dict):
            parent[draw(st.sampled_from(NAMES) | ODD_TEXTS)] = parent[key] if act == "double" else parent.pop(key)
        elif act == "move":
            value = parent[key]
            *other, last = draw(st.sampled_from(all_places))
            if other[: len(path) + 1] != [*path, key]:
                _put(tree, other, last, value)
        elif act == "key" and isinstance(parent, dict):
            parent[draw(st.sampled_from(NAMES))] = draw(VALUES)
    return tree


def _put(tree: Any, path: list[Any], key: Any, value: Any) -> None:
    for step in path:
        try:
            tree = tree[step]
        except (KeyError, IndexError, TypeError):
            return
    if isinstance(tree, dict) or (isinstance(tree, list) and isinstance(key, int) and key < len(tree)):
        tree[key] = json.loads(json.dumps(value, default=str))


@st.composite
def scarred(draw: st.DrawFn, data: bytes, most: int = 4) -> bytes:
    """Bytes with pieces removed, doubled, swapped or replaced."""
    pieces = [b"", b"\x00", b"\xff\xfe", b"\t", b"\n", b"- ", b": ", b"{", b"}", b"[", b"]", b"'", b'"', b"#", b"&a ", b"*a", b"<<: *a", b"!!x ",
              b"|", b">", b"%", b"---\n", b"...\n", b",", b";", b"1e999", b"-", b"\xf0\x9f\x98\x80", b"\xe2\x80\xa8", b"\x85", b"\r"]  # fmt: skip
    for _ in range(draw(st.integers(1, most))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        act = draw(st.sampled_from(["replace", "remove", "double", "cut"]))
        if act == "replace":
            data = data[:start] + draw(st.sampled_from(pieces)) + data[end:]
        elif act == "remove":
            data = data[:start] + data[end:]
        elif act == "double":
            data = data[:end] + data[start:end] * draw(st.integers(1, 3)) + data[end:]
        elif draw(st.integers(0, 9)) == 0:
            data = data[:start]
    return data


@cache
def bases(kind: str) -> list[Any]:
    """Good inputs of a kind."""
    if kind == "table":
        found = [(path.read_bytes(), yaml.safe_load(path.read_text(encoding="utf-8"))) for path in bundled().values()]
        small = [pair for pair in found if len(pair[0]) < 6000]
        return [*small, *(_plain(made) for made in TABLES)]
    if kind == "config":
        return [json.loads(path.read_text(encoding="utf-8")) for path in sorted((DATA / "hf_configs").glob("*.json"))]
    if kind == "log":
        return [path.read_bytes() for path in sorted((DATA / "logs").iterdir()) if path.is_file()]
    assert kind == "measured"
    return [path.read_bytes() for path in [DATA / "measured_serving_sample.csv", DATA / "draft_cost.csv", *sorted((DATA / "measured").glob("*"))] if path.is_file()]


def _plain(made: dict[str, Any]) -> tuple[bytes, Any]:
    return yaml.safe_dump(made, sort_keys=False, allow_unicode=True).encode(), made


ROW = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": [1, 8], "context": 2048, "method": ["vanilla", "eagle", "int4+eagle"]}
TABLES = [
    {"version": 1, "rows": [ROW]},
    {"version": 1, "title": "All", "defaults": {"context": 0, "gpu": "h100-sxm"}, "parameters": {"eagle": {"gamma": 3, "alpha": 0.7}},
     "grid": {"model": ["llama-3.1-8b", "llama-3-70b"], "batch": [1, 64], "method": ["vanilla", "eagle", "mtp"], "gpus": [1, 4]},
     "columns": {"own": {"formula": "tpot_ms * 2 if batch > 4 else blank", "unit": "ms", "doc": "twice"}, "two": "own + 1"},
     "where": "fits", "sort": ["-tpot_ms"], "show": ["alpha_equivalent"]},
    {"version": 1, "time_model": "estimate", "rows": [{**ROW, "engine": "vllm", "isl": 512, "osl": 128}],
     "hardware": {"mine": {"gpus": ["h100-sxm"], "gemm_mfu": 0.6, "source": "x"}}},
    {"version": 1, "models": {"mine": {"hidden": 4096, "layers": 32, "heads": 32, "kv_heads": 8, "head_dim": 128, "ffn": 14336, "vocab": 128256,
                                       "tied": True, "source": "x"}},
     "gpus": {"card": {"memory_gb": 80, "bandwidth_tb_s": 3.35, "bf16_tflops": 989, "source": "x"}},
     "prices": {"card": {"usd_per_hour": 2.5, "source": "x"}}, "profiles": {"p": [0.8, 0.6, 0.5]},
     "rows": [{"model": "mine", "gpu": "card", "batch": 1, "context": 0, "method": "eagle"}]},
]  # fmt: skip

OUTPUTS = ("run", "IN", "-o", "OUT.csv")


@st.composite
def tables(draw: st.DrawFn) -> Case:
    raw, tree = draw(st.sampled_from(bases("table")))
    data = draw(scarred(raw)) if draw(st.integers(0, 3)) == 0 else _yaml(draw(broken(tree)))
    arguments = draw(st.sampled_from([OUTPUTS, OUTPUTS, OUTPUTS, ("run", "IN", "-o", "OUT.xlsx", "-q"), ("run", "IN"), ("check", "IN"),
                                      ("export-table", "IN", "-o", "OUT.yaml"), ("run", "IN", "-q", "-o", "OUT.md"), ("best", "IN"),
                                      ("compare", "IN"), ("sensitivity", "IN"), ("explain", "IN", "tpot_ms"), ("graph", "IN"), ("diff", "IN", "starter", "-q")]))  # fmt: skip
    return Case("table", "t.yaml", data, arguments)


def _yaml(tree: Any) -> bytes:
    try:
        return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=10_000).encode("utf-8", "surrogatepass")
    except yaml.YAMLError:
        return repr(tree).encode("utf-8", "surrogatepass")


ATOMS = st.sampled_from(["batch", "context", "tpot_ms", "model_params", "fits", "bound", "status", "method", "1", "0", "1e308", "1e-308", "1e20", "2", "0.1",
                         "-1", "3", '"a"', '""', "blank", "unlimited", "true", "false", "nope", "max_batch"])  # fmt: skip


def _wrap(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "<", "<=", "==", "!=", ">", ">=", "and", "or"])
    calls = st.sampled_from(["min", "max", "sqrt", "log", "log2", "exp", "ceil", "floor", "round", "abs", "if", "sum", "choose", "isblank", "len",
                             "coalesce", "clip", "interp", "lookup", "forward_ms"])  # fmt: skip
    return st.one_of(
        st.tuples(inner, operators, inner).map(" ".join), st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} if {p[1]} else {p[2]})"),
        st.tuples(calls, st.lists(inner, min_size=0, max_size=3)).map(lambda p: f"{p[0]}({', '.join(p[1])})"), inner.map(lambda p: f"not {p}"),
        inner.map(lambda p: f"-{p}"), inner.map(lambda p: f"({p})"), st.tuples(inner, inner).map(lambda p: f"{p[0]} {p[1]}"),
        st.tuples(inner, inner, inner).map(lambda p: f"{p[0]} < {p[1]} <= {p[2]}"),
    )  # fmt: skip


FORMULAS = st.recursive(ATOMS, _wrap, max_leaves=25) | st.text(max_size=60) | st.builds(lambda a, n: f"{a}(" * n + "1" + ")" * n, st.sampled_from(["", "sqrt", "-"]), st.integers(1, 90))


@st.composite
def formulas(draw: st.DrawFn) -> Case:
    texts = draw(st.lists(FORMULAS, min_size=1, max_size=3))
    table = {"version": 1, "rows": [ROW], "columns": {f"c{index}": {"formula": text} for index, text in enumerate(texts)}}
    arguments = draw(st.sampled_from([OUTPUTS, OUTPUTS, ("run", "IN", "-o", "OUT.xlsx", "-q"), ("explain", "IN", "c0", "--format", "latex", "--row", "1")]))
    return Case("formula", "t.yaml", _yaml(table), arguments)


@st.composite
def csvs(draw: st.DrawFn) -> Case:
    heads = draw(st.permutations(["model", "gpu", "batch", "context", "method", "gpus", "alpha", "id"]))
    good = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": "8", "context": "2048", "method": "eagle", "gpus": "1", "alpha": "0.8", "id": "a"}
    rows = [list(heads)] + [[good[head] if head != "id" else f"r{number}" for head in heads] for number in range(draw(st.integers(0, 3)))]
    for _ in range(draw(st.integers(0, 3))):
        row = draw(st.sampled_from(rows))
        row[draw(st.integers(0, len(row) - 1))] = draw(ODD_TEXTS | st.sampled_from(NAMES) | st.text(max_size=20))
    stream = io.StringIO()
    csv.writer(stream, delimiter=draw(st.sampled_from([",", ",", ",", ";", "\t"])), lineterminator=draw(st.sampled_from(["\n", "\r\n", "\r"]))).writerows(rows)
    data = stream.getvalue().encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16"])), "surrogatepass")
    if draw(st.booleans()):
        data = draw(scarred(data))
    return Case("csv", "t.csv", data, draw(st.sampled_from([OUTPUTS, ("check", "IN"), ("export-table", "IN", "-o", "OUT.yaml")])))


@cache
def workbook() -> dict[str, bytes]:
    """The parts of a good workbook."""
    import tempfile

    import scenario

    with tempfile.TemporaryDirectory() as folder:
        path = scenario.run(TABLES[1]).to_excel(Path(folder) / "t.xlsx")
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}


XML = [b"<v></v>", b"<v>1e999</v>", b"<v>-1</v>", b"<v>nope</v>", b"<f>1/0</f>", b'<c r="A1"/>', b'r="XFD1048576"', b't="s"', b't="e"', b't="b"', b's="9999"',
       b"&#0;", b"&x;", b"<!DOCTYPE a [<!ENTITY x 'y'>]>", b"</row>", b"<row>", b"<is><t>a</t></is>", b'ref="A1:B2"', b"_x0000_", b"&#27;[2J"]


@st.composite
def workbooks(draw: st.DrawFn) -> Case:
    parts = dict(workbook())
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(sorted(parts)))
        act = draw(st.sampled_from(["scar", "xml", "xml", "value", "value", "drop", "swap", "empty"]))
        if act == "scar":
            parts[name] = draw(scarred(parts[name]))
        elif act == "xml":
            at = draw(st.integers(0, len(parts[name])))
            parts[name] = parts[name][:at] + draw(st.sampled_from(XML)) + parts[name][at:]
        elif act == "value":
            pieces = parts[name].split(b"<v>")
            if len(pieces) > 1:
                index = draw(st.integers(1, len(pieces) - 1))
                value = draw(st.sampled_from([b"1e400", b"-1", b"nan", b"", b"0", b"1e-320", b"9" * 400, b"TRUE", b"x", b"2147483648"]))
                pieces[index] = value + b"</v>" + pieces[index].partition(b"</v>")[2]
                parts[name] = b"<v>".join(pieces)
        elif act == "drop":
            del parts[name]
        elif act == "swap":
            other = draw(st.sampled_from(sorted(parts)))
            parts[name], parts[other] = parts[other], parts[name]
        else:
            parts[name] = b""
        if not parts:
            break
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    data = stream.getvalue()
    if draw(st.integers(0, 5)) == 0:
        data = draw(scarred(data))
    arguments = draw(st.sampled_from([("check", "IN", "-q"), ("check", "IN"), ("run", "IN", "-o", "OUT.csv", "--keep-overrides"),
                                      ("run", "IN", "-o", "OUT.xlsx", "-q"), ("export-table", "IN", "-o", "OUT.yaml")]))  # fmt: skip
    return Case("workbook", "t.xlsx", data, arguments)


@st.composite
def logs(draw: st.DrawFn) -> Case:
    base = draw(st.sampled_from(bases("log")))
    lines = base.splitlines(keepends=True)[:60]
    for _ in range(draw(st.integers(1, 4))):
        index = draw(st.integers(0, max(len(lines) - 1, 0)))
        if lines:
            act = draw(st.sampled_from(["scar", "double", "drop", "number", "other"]))
            if act == "scar":
                lines[index] = draw(scarred(lines[index], 2))
            elif act == "double":
                lines.insert(index, lines[index])
            elif act == "drop":
                del lines[index]
            elif act == "number":
                lines[index] = _renumbered(lines[index], draw(st.integers(0, 12)), draw(st.sampled_from([b"0", b"-1", b"1e999", b"nan", b"1.2.3", b"9" * 50, b""])))
            else:
                lines[index:index] = draw(st.sampled_from(bases("log"))).splitlines(keepends=True)[:3]
    return Case("log", "t.log", b"".join(lines), draw(st.sampled_from([("acceptance", "IN"), ("acceptance", "IN", "-q", "-o", "OUT.yaml"),
                                                                       ("acceptance", "IN", "--method", "ngram", "-o", "OUT.yaml")])))  # fmt: skip


def _renumbered(line: bytes, which: int, value: bytes) -> bytes:
    import re

    found = list(re.finditer(rb"\d+(\.\d+)?", line))
    if not found:
        return line + value
    hit = found[which % len(found)]
    return line[: hit.start()] + value + line[hit.end() :]


@st.composite
def configs(draw: st.DrawFn) -> Case:
    tree = draw(broken(draw(st.sampled_from(bases("config"))), 4))
    data = json.dumps(tree).encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 5)) == 0:
        data = draw(scarred(data))
    return Case("config", "config.json", data, ("add-model", "IN", "--name", "mine", "-o", "OUT.yaml"))


@st.composite
def measured(draw: st.DrawFn) -> Case:
    base = draw(st.sampled_from(bases("measured")))
    lines = base.splitlines(keepends=True)[:40]
    for _ in range(draw(st.integers(1, 4))):
        index = draw(st.integers(0, len(lines) - 1))
        if draw(st.booleans()):
            lines[index] = draw(scarred(lines[index], 2))
        else:
            lines[index] = _renumbered(lines[index], draw(st.integers(0, 12)), draw(st.sampled_from([b"0", b"-1", b"1e999", b"nan", b"", b"x", b"9" * 50])))
    name = "t.json" if base.lstrip()[:1] in (b"{", b"[") else "t.csv"
    given = draw(st.sampled_from([(), ("--model", "llama-3.1-8b", "--gpu", "h100-sxm"), ("--gpu", "nope"), ("--batch", "0")]))
    return Case("measured", name, b"".join(lines), ("calibrate", "IN", *given, "-o", "OUT.yaml"))


KINDS: dict[str, Callable[[], st.SearchStrategy[Case]]] = {
    "table": tables, "formula": formulas, "csv": csvs, "workbook": workbooks, "log": logs, "config": configs, "measured": measured,
}  # fmt: skip
