"""Random tables: whatever is thrown at the reader, nothing but a ScenarioError comes out."""

from __future__ import annotations

import json
import tempfile
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import scenario
from scenario import ScenarioError
from scenario.common import yamltree
from scenario.registry import host
from scenario.tables.sections import KEYS

HOST = host.load(third_party=False)
WORDS = [*KEYS, "model", "gpu", "batch", "context", "method", "alpha", "acceptance", "weights", "eagle", "int4+eagle", "vanilla",
         "llama-3.1-8b", "h100-sxm", "formula", "rows", "columns", "where", "rates", "points", "usd_per_hour", "id", "layers", "hidden",
         "batch * 2", "fits", "-speedup", "1 +", "nan", "bound", "int8", "eagle-llama2-chat-70b", "0.5/0.3"]  # fmt: skip
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(WORDS), st.sampled_from([1, 8, 0.5]))
TREES = st.recursive(SCALARS, lambda inner: st.one_of(
    st.lists(inner, max_size=4), st.dictionaries(st.one_of(st.sampled_from(WORDS), st.text(max_size=5)), inner, max_size=4)), max_leaves=12)  # fmt: skip
TEXT = st.text(st.characters(categories=["L", "N", "P", "Zs"], exclude_characters="<"), max_size=8)
ROW = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "eagle"}
QUICK = settings(max_examples=70, deadline=None, suppress_health_check=list(HealthCheck))


def only_scenario_errors(table: Any) -> None:
    try:
        scenario.run(table, host=HOST, max_rows=2000)
    except ScenarioError as error:
        text = str(error)
        assert "Node(" not in text
        assert text.strip()


@QUICK
@given(st.dictionaries(st.one_of(st.sampled_from(list(KEYS)), st.text(max_size=5)), TREES, max_size=6))
def test_random_trees(tree: dict[str, Any]) -> None:
    """A mapping of anything under known and unknown keys."""
    only_scenario_errors({"version": 1, **tree})


@QUICK
@given(st.sampled_from(sorted(KEYS)), TREES)
def test_random_sections_of_a_good_table(key: str, tree: Any) -> None:
    """A table that is good but for one section of anything: the checks behind the first ones are reached too."""
    only_scenario_errors({"version": 1, "rows": [ROW], key: tree})


@QUICK
@given(st.dictionaries(st.sampled_from([*ROW, *HOST.methods["eagle"].parameters, "weights", "kv", "gpus", "mfu", "id", "time_model"]), TREES))
def test_random_rows(row: dict[str, Any]) -> None:
    """A row with anything for the values of its inputs."""
    only_scenario_errors({"version": 1, "rows": [{**ROW, **row}, ROW]})


@QUICK
@given(st.binary(max_size=200))
def test_random_bytes(raw: bytes) -> None:
    """Bytes of any sort in a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.yaml"
        path.write_bytes(raw)
        only_scenario_errors(path)


@settings(QUICK, max_examples=30)
@given(st.data())
def test_a_good_file_with_a_few_characters_changed(data: st.DataObject) -> None:
    """The starter table with pieces deleted, doubled or replaced, as happens while typing."""
    text = (resources.files("scenario.scenarios") / "starter.yaml").read_text(encoding="utf-8")
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(start + 12, len(text))))
        text = text[:start] + data.draw(st.sampled_from(["", "\t", ":", "- ", "{", "}", "[", "&a ", "*a", "'", "\n", "  ", "!", "1e9", "é"])) + text[end:]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.yaml"
        path.write_text(text, encoding="utf-8")
        only_scenario_errors(path)


@QUICK
@given(st.recursive(st.one_of(st.booleans(), st.integers(-10**9, 10**9), TEXT, st.none()),
                    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXT, inner, max_size=4)), max_leaves=20))  # fmt: skip
def test_what_yaml_writes_is_read_back(tree: Any) -> None:
    """Plain data written as JSON (which is YAML) is the same after reading; numbers stay numbers, texts stay texts."""
    text = json.dumps({"data": tree}, ensure_ascii=False)
    assert yamltree.parse(text.encode(), "t")[1].plain() == {"data": tree}


@pytest.mark.parametrize(("text", "value"), [
    ("1e6", 1e6), ("1_000", 1000), ("0x10", "0x10"), ("010", "010"), ("1:30", "1:30"), ("on", "on"), ("yes", "yes"), ("~", None),
    ("2024-01-01", "2024-01-01"), ("'1'", "1"), (".5", 0.5), ("+3", 3), ("-0", 0), ("1.", 1.0), (".inf", ".inf"), ("true", True), ("!!str 5", "5"),
])  # fmt: skip
def test_plain_words_mean_what_they_look_like(text: str, value: Any) -> None:
    """No YAML 1.1 surprises: times, octals and yes/no are texts, 1e6 is a number."""
    found = yamltree.parse(f"a: {text}".encode(), "t")[1].value["a"].value
    assert found == value
    assert type(found) is type(value)


def test_every_value_knows_its_place() -> None:
    """Line and column of keys and values count from 1 in characters, after umlauts and in flow style as well."""
    node = yamltree.parse("a: 1\nü: {bö: [7, 'x']}\n".encode(), "t")[1]
    inner = node.value["ü"].value["bö"]
    assert (inner.line, inner.column) == (2, 9)
    assert [(item.line, item.column, item.offset) for item in inner.value] == [(2, 10, 10), (2, 13, 14)]
    assert (node.value["ü"].keys["bö"].line, node.value["ü"].keys["bö"].column) == (2, 5)
    assert node.plain() == {"a": 1, "ü": {"bö": [7, "x"]}}
