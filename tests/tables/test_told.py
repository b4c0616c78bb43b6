"""What people write by other names, or in vain, is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import scenario
from scenario.catalogs import aliases
from scenario.cli.commands import main
from scenario.registry import host
from scenario.tables.rows import RATE
from scenario.tables.table import known_inputs

ROW = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "vanilla"}


def refused(**inputs: object) -> str:
    """What is said of a row with these inputs."""
    with pytest.raises(scenario.TableError) as caught:
        scenario.run({"version": 1, "rows": [{**ROW, **inputs}]})
    return str(caught.value)


@pytest.mark.parametrize(("theirs", "ours"), [
    ("concurrency", "batch"), ("max-concurrency", "batch"), ("input_len", "isl"), ("random_output_len", "osl"), ("max_model_len", "context"),
    ("num_speculative_tokens", "gamma"), ("tensor_parallel_size", "tp"), ("kv_cache_dtype", "kv"), ("accept_length", "acceptance_length"),
])  # fmt: skip
def test_inputs_of_other_tools_are_told_by_their_name_here(theirs: str, ours: str) -> None:
    """An input under the name of a benchmark tool or a server is refused with its name here."""
    assert f"it is called {ours} here" in refused(**{theirs: 1})


def test_a_rate_of_requests_is_no_batch() -> None:
    """Requests per second are told for what they are."""
    assert "Little's law" in refused(qps=3)


@pytest.mark.parametrize(("written", "meant"), [("128k", "131072 tokens, or 128000"), ("8K", "8192 tokens, or 8000"), ("1M", "1048576 tokens, or 1000000"),
                                                ("10k", "write the number out: 10000")])  # fmt: skip
def test_thousands_of_tokens_are_written_out(written: str, meant: str) -> None:
    """128k of a context is 131,072 tokens on model cards: both readings are offered."""
    assert meant in refused(context=written)


def test_an_input_that_no_method_of_the_row_reads_is_told(tmp_path: Path) -> None:
    """A written row that gives another method's parameter says so, with its line; rows that share it with a method that reads it do not."""
    path = tmp_path / "t.yaml"
    start = "version: 1\ndefaults: {model: llama-3.1-8b, gpu: h100-sxm, batch: 1, context: 0}\nrows:\n"
    path.write_text(start + "  - {method: vanilla, gamma: 4}\n  - {method: [vanilla, eagle], gamma: 4}\n  - {method: eagle, hit_rate: 0.3}\n", encoding="utf-8")
    done = CliRunner().invoke(main, ["run", str(path), "-o", str(tmp_path / "t.csv")])
    assert done.exit_code == 0
    told = [line for line in done.stderr.splitlines() if "changes nothing" in line]
    assert told == [f"{path}: line 4: gamma: 4 changes nothing, vanilla does not read it",
                    f"{path}: line 6: hit_rate: 0.3 changes nothing, eagle does not read it"]  # fmt: skip


def test_a_context_beyond_the_models_own_is_told(tmp_path: Path) -> None:
    """Llama 3 8B was made for 8,192 tokens (max_position_embeddings of its config.json): what asks for more is told, what does not is not."""
    path = tmp_path / "t.yaml"
    start = "version: 1\ndefaults: {model: llama-3-8b, gpu: h100-sxm, batch: 1, method: vanilla}\nrows:\n"
    path.write_text(start + "  - {context: [8192, 8193, 20000]}\n  - {prompt_tokens: 8000, output_tokens: 500}\n  - {model: llama-3.1-8b, context: 20000}\n",
                    encoding="utf-8")  # fmt: skip
    done = CliRunner().invoke(main, ["run", str(path), "-o", str(tmp_path / "t.csv")])
    assert [line for line in done.stderr.splitlines() if "made for" in line] == [
        f"{path}: llama-3-8b was made for 8,192 tokens; 3 rows ask for up to 20,000"]  # fmt: skip


def test_every_listed_name_leads_to_an_input() -> None:
    """What names.yaml lists under inputs stands for an input of the engine or its methods, and is none itself."""
    known = known_inputs(host.load(third_party=False))
    listed = aliases.listed()["inputs"]
    assert len(listed) > 50
    assert {*listed.values()} - {*known} == {RATE}
    assert {*listed} & {aliases.plain(name, "inputs") for name in known} == set()
