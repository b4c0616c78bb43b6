"""A table written back as YAML: the same table, in the words of a person."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from scenario import api
from scenario.catalogs import catalog
from scenario.cli.commands import main
from scenario.common import emit, texts, yamltree
from scenario.common.errors import TableError
from scenario.common.yamltree import YamlNode
from scenario.registry import host
from scenario.tables.blocks import leading, split
from scenario.tables.export_table import to_yaml
from scenario.tables.reader import load
from scenario.tables.table import Table, from_mapping

HOST = host.load(third_party=False)
ROW = {"model": "llama-3-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "vanilla"}


def read(text: str, tmp_path: Path) -> Table:
    """The table that a YAML text stands for."""
    path = tmp_path / "again.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path, HOST)


def said(table: Table) -> dict[str, Any]:
    """Everything a table says, without its file and places."""
    known = catalog.builtin()
    rows = table.rows
    given_rows = rows.select([name for name in rows.columns if name == "id" or rows[name].null_count() < rows.height])
    return {
        "rows": {name: given_rows[name].to_list() for name in sorted(given_rows.columns)}, "title": table.title,
        "defaults": table.defaults, "parameters": table.parameters, "presets": table.presets, "time_model": table.time_model,
        "columns": {name: column for name, (column, _) in table.columns.items()}, "where": table.where and table.where.text,
        "sort": table.sort, "summary": (table.summary.rows, table.summary.columns, dict(table.summary.where)),
        "entries": {n: (e.title, dict(e.values), e.source, e.date, e.verified, dict(e.notes))
                    for found, old in ((table.catalog.models, known.models), (table.catalog.gpus, known.gpus))
                    for n, e in found.items() if n not in old or e.values != old[n].values},
        "prices": {n: p for n, p in table.catalog.prices.items() if p != known.prices.get(n)},
        "profiles": {n: p.rates for n, p in table.vectors.profiles.items()}, "curves": {n: c.points for n, c in table.vectors.curves.items()},
    }  # fmt: skip


def returns(table: Table, tmp_path: Path) -> str:
    """The YAML of a table, after checking that it gives the table back and is written the same again."""
    text = to_yaml(table, HOST)
    again = read(text, tmp_path)
    assert said(again) == said(table)
    assert to_yaml(again, HOST) == text
    return text


@pytest.mark.parametrize("name", sorted(api.bundled()))
def test_bundled_tables_return(name: str, tmp_path: Path) -> None:
    """Every bundled table comes back the same, grids as grids."""
    text = returns(load(api.bundled()[name], HOST), tmp_path)
    assert ("\ngrid:" in text) == ("\ngrid:" in api.bundled()[name].read_text(encoding="utf-8"))


def test_everything_at_once(tmp_path: Path) -> None:
    """All sections of a table come back, with sources and awkward texts."""
    table = load({
        "version": 1, "title": "= no: \"title\" # really\n, 50 % ไทย \u2028 \x85", "preset": "eagle-llama2-chat-70b",
        "defaults": {"context": 1e-05, "weights": "fp8", "lora_rank": 8},
        "grid": {"model": ["llama-3-8b", "mine"], "gpu": ["h100-sxm", "box"], "batch": [1, 8], "method": ["vanilla", "eagle"]},
        "rows": [
            {"id": "on", **ROW}, {"id": "1e3", **ROW, "batch": 2}, {"id": "Größe: 4 # x", **ROW, "batch": 3},
            {"id": "pair", **ROW, "batch": [4, 5]}, {**ROW, "method": "eagle", "acceptance": [[0.9, 0.8], "named", [0.123456789012345, 0.1]]},
        ],
        "parameters": {"eagle": {"alpha": 0.8}, "int4": {"keep_head": True}},
        "models": {
            "mine": {"hidden": 4096, "layers": 32, "heads": 32, "kv_heads": 8, "head_dim": 128, "ffn": 14336, "vocab": 128256, "tied": True,
                     "source": "a: b", "date": "2026-01-02", "title": "no"},
            "llama-3-8b": {"vocab": 128257, "unverified": True},
        },
        "gpus": {"box": {"memory_gb": 24, "bandwidth_tb_s": 1.008, "bf16_tflops": 165.2}, "h100-sxm": {"memory_gb": 80, "fp8_tflops": None}},
        "prices": {"box": {"usd_per_hour": 0.34, "source": "us", "date": "2026-11-01"}, "h100-sxm": 2.5},
        "profiles": {"named": [0.8, 0.6], "cited": {"rates": [0.7], "source": "here", "doc": "there"}},
        "curves": {"t": [[1, 4.8], [64, 5.1]]},
        "columns": {"a": "usd_per_hour * 24", "b": {"formula": "'x' if bound == 'compute' else \"y\"", "doc": "1e3"}, "c": 5},
        "where": "fits and speedup > 1", "sort": ["model", "-tokens_per_s"],
        "summary": {"rows": ["tpot_ms", "a"], "columns": "batch", "where": {"model": "mine", "batch": 8}},
        "overrides": {"on": {"tpot_ms": 7.5}, "Größe: 4 # x": {"tpot_ms": 8, "round_ms": 9.25}},
    }, HOST)  # fmt: skip
    text = returns(table, tmp_path)
    assert "  batch: [1, 8]\n" in text
    assert '{id: "on", ' in text
    assert "id: pair, " in text
    assert "acceptance: [[0.9, 0.8], named, [0.123456789012345, 0.1]]" in text
    assert "  h100-sxm: {memory_gb: 80, fp8_tflops: null}  # in the catalog: memory_gb 85.52, fp8_tflops 1979" in text
    assert '  box: {usd_per_hour: 0.34, source: us, date: "2026-11-01"}' in text
    assert "  context: 1e-05\n" in text
    bare = to_yaml(table, HOST, rows=False)
    assert "\ngrid:" not in bare
    assert "\nrows:" not in bare
    assert "\noverrides:" not in bare
    assert "\nprices:" in bare


def test_new_and_known_entries_say_no_more_than_they_must(tmp_path: Path) -> None:
    """A known model gives only the changed fields; an unchanged one is not written at all."""
    table = load({"version": 1, "rows": [ROW], "models": {"llama-3-70b": {"layers": 80}, "llama-3-8b": {"layers": 31}}}, HOST)
    text = returns(table, tmp_path)
    assert "models:\n  llama-3-8b: {layers: 31}  # in the catalog: layers 32\n" in text


def test_ids_are_written_only_where_they_are_not_made_up(tmp_path: Path) -> None:
    """Rows whose ids the reader makes up have none in the file; a row in the middle of a product that has one splits it."""
    rows: list[dict[str, Any]] = [{**ROW, "batch": batch, "method": method} for batch in (1, 2, 3, 4) for method in ("vanilla", "eagle")]
    plain = load({"version": 1, "rows": rows}, HOST)
    assert "rows:" not in returns(plain, tmp_path)
    rows[5] = {"id": "special", **rows[5]}
    text = returns(load({"version": 1, "rows": rows}, HOST), tmp_path)
    assert text.count("{id:") == 1
    assert "  batch: [1, 2]\n" in text


def test_ids_from_elsewhere_all_stay(tmp_path: Path) -> None:
    """A table whose ids are opaque keeps every one, and the order of its rows."""
    table = load({"version": 1, "grid": {**{key: [value] for key, value in ROW.items()}, "batch": [1, 2, 4]}}, HOST)
    table = replace(table, rows=table.rows.with_columns(id=pl.Series(["c", "a", "b"])).reverse())
    text = returns(table, tmp_path)
    assert [line.split(",")[0] for line in text.splitlines() if "{id:" in line] == ["  - {id: b", "  - {id: a", "  - {id: c"]


def test_columns_in_another_order_still_make_a_grid(tmp_path: Path) -> None:
    """The axes are found whatever the order of the columns, as after a workbook."""
    table = load({"version": 1, "defaults": {"context": 0}, "grid": {
        "gpu": ["h100-sxm"], "method": ["vanilla", "eagle"], "model": ["llama-3-8b", "llama-3-70b"], "batch": [1, 8, 64]}}, HOST)  # fmt: skip
    moved = table.rows.select("id", "batch", "gpu", "model", "method")
    text = to_yaml(replace(table, rows=moved), HOST)
    assert read(text, tmp_path).rows.select(moved.columns).equals(moved)
    assert text.count("\n  ") >= 4


def test_products_are_found_as_counted_by_hand() -> None:
    """A frame built by loops gives back the lists of the loops, and the rest in blocks."""
    rows = [{"a": a, "b": b, "c": None} for a in (1.0, 2.0, 3.0) for b in ("x", "y")] + [{"a": 9.0, "b": b, "c": 1.0} for b in ("x", "y", "z")]
    frame = pl.DataFrame(rows)
    block = leading(frame)
    assert (block.size, block.axes) == (6, (("a", (1.0, 2.0, 3.0)), ("b", ("x", "y"))))
    rest = split(frame.slice(6), [False] * 3, 2)
    assert [(part.start, part.size, part.axes) for part in rest] == [(0, 3, (("b", ("x", "y", "z")),))]


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back_exactly(value: float) -> None:
    """Every float returns to the last bit, without a needless .0."""
    text = emit.number(value)
    node = yamltree.parse(f"x: {text}", "t")[1].value["x"]
    assert math.copysign(1, float(node.value)) == math.copysign(1, value)
    assert float(node.value) == value
    assert not text.endswith(".0") or value == 0


SEEN = st.text().filter(lambda text: not texts.CONTROL.search(text))
"""Texts that a table may hold: any but those with control characters."""


@settings(max_examples=400, deadline=None)
@given(SEEN | st.sampled_from(["on", "no", "NULL", "~", "1e3", "0x1F", "1_000", "1:30", ".5", "-", "- a", "=1", "a: b", "a #b", "#", "<<", "...",
                                    "---", "2026-01-01", "{a}", "[a]", "a, b", "@x", "%x", "&a", "*a", "!a", "|", ">", "'", '"', " a", "a ", "a:"]))
def test_texts_read_back_exactly(value: str) -> None:
    """Every text returns as a text, alone, as a key and inside a list, also for a reader of plain YAML 1.1."""
    import yaml

    value = value.encode("utf-8", "replace").decode()
    block = yamltree.parse(f"x: {emit.text(value, flow=False)}", "t")[1].value["x"]
    inner = yamltree.parse(f"x: {emit.flow([value, {'k': value}])}", "t")[1].value["x"].plain()
    assert block.value == value
    assert inner == [value, {"k": value}]
    assert yaml.safe_load(f"x: {emit.text(value, flow=False)}\ny: {emit.flow([value])}") == {"x": value, "y": [value]}
    if value != "<<":
        assert list(yamltree.parse(f"{emit.text(value)}: 1", "t")[1].value) == [value]
    assert yamltree.parse(f"x: {emit.formula(value)}", "t")[1].value["x"].value == value


INPUTS = {
    "model": st.sampled_from(["llama-3-8b", "llama-3-70b", "deepseek-v3"]), "gpu": st.sampled_from(["h100-sxm", "h200"]),
    "batch": st.sampled_from([1, 2, 8, 1e6]), "context": st.sampled_from([0, 0.1, 1024, 1e-5]) | st.floats(0, 1e6),
    "method": st.sampled_from(["vanilla", "eagle", "int4", "int4+eagle"]),
}  # fmt: skip
OPTIONAL = {
    "gpus": st.sampled_from([1, 8]), "weights": st.sampled_from(["bf16", "fp8"]), "kv": st.sampled_from(["bf16", "fp8", None]),
    "alpha": st.floats(0, 1), "mfu": st.floats(0.01, 1), "usd_per_hour": st.sampled_from([2, 2.5, None]),
    "acceptance": st.sampled_from(["p", "0.5/0.25"]),
}  # fmt: skip


def listed(values: Any) -> Any:
    """One value, or a list of different ones."""
    return values | st.lists(values, min_size=1, max_size=3, unique=True)


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    """A table of grids and rows, some with ids, given and made up, some that clash with what others would be called."""

    def inputs(shape: Any) -> dict[str, Any]:
        names = [*INPUTS, *draw(st.lists(st.sampled_from(list(OPTIONAL)), unique=True, max_size=3))]
        if "acceptance" in names:  # which says the same as alpha: both in one place may contradict each other
            names = [name for name in names if name != "alpha"]
        cells = {name: draw(shape({**INPUTS, **OPTIONAL}[name])) for name in names}
        return {name: cells[name] for name in draw(st.permutations(names))}

    found: dict[str, Any] = {"version": 1, "title": draw(SEEN.filter(str.strip)), "profiles": {"p": [0.8, 0.5]}}
    if draw(st.booleans()):
        found["grid"] = {name: cells if isinstance(cells, list) else [cells] for name, cells in inputs(listed).items()}
    ids = draw(st.permutations(["on", "a-1", "a", "b1_vanilla", "é # x", "row", "llama-3-8b", "x-2", "7"]))
    rows = []
    for index in range(draw(st.integers(0 if "grid" in found else 1, 5))):
        row = inputs(listed if draw(st.booleans()) else lambda values: values)
        if index < len(ids) and draw(st.booleans()):
            row = {"id": ids[index], **row}
        rows += [row] * draw(st.integers(1, 2) if "id" not in row else st.just(1))
    if rows:
        found["rows"] = rows
    found["defaults"] = draw(st.fixed_dictionaries({}, optional={"context": st.floats(0, 1e6), "mfu": st.floats(0.01, 1), "method": INPUTS["method"]}))
    found["parameters"] = draw(st.fixed_dictionaries({}, optional={"eagle": st.fixed_dictionaries({"alpha": st.floats(0, 1)})}))
    return found


@settings(max_examples=150, deadline=None)
@given(tables())
def test_any_table_returns(tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]) -> None:
    """Rows, their order and ids, defaults, parameters and formulas return, and the text is a fixed point."""
    data["title"] = data["title"].encode("utf-8", "replace").decode()
    try:
        table = load(data, HOST)
    except TableError as error:
        clash = "second time" in str(error)
        if clash:
            return
        raise
    text = to_yaml(table, HOST)
    folder = tmp_path_factory.mktemp("t")
    again = read(text, folder)
    assert said(again) == said(table)
    assert to_yaml(again, HOST) == text


def test_the_command_writes_whole_files_and_never_its_source(tmp_path: Path) -> None:
    """``export-table`` writes a table that runs, prints one without -o, and refuses to replace what it reads."""
    run = CliRunner().invoke
    target = tmp_path / "out.yaml"
    done = run(main, ["export-table", "starter", "-o", str(target)])
    assert done.exit_code == 0, done.output
    assert said(load(target, HOST)) == said(load(api.bundled()["starter"], HOST))
    printed = run(main, ["export-table", str(target)])
    assert printed.stdout == target.read_text(encoding="utf-8")
    before = target.read_bytes()
    link = tmp_path / "link.yaml"
    link.symlink_to(target)
    for output in (target, link):
        refused = run(main, ["export-table", str(target), "-o", str(output)])
        assert refused.exit_code == 2
        assert "replace a file that this command reads" in refused.output
    assert target.read_bytes() == before
    assert run(main, ["export-table", str(tmp_path / "none.yaml")]).exit_code == 2


def test_a_mapping_is_a_table_too() -> None:
    """The places of a table given as Python data play no part in what is written."""
    source, node = from_mapping({"version": 1, "rows": [ROW]})
    assert isinstance(node, YamlNode)
    assert source.file == "table"
    assert to_yaml(load({"version": 1, "rows": [ROW]}, HOST), HOST).startswith("version: 1\ntitle: table\n\nrows:\n  - {model: llama-3-8b, ")
