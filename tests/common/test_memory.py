"""Out of memory is a sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from scenario.cli.commands import main
from scenario.common import memory

SMALL = "version: 1\nrows: [{model: llama-3.1-8b, gpu: h100-sxm, batch: 1, context: 0, method: vanilla}]\n"


def test_more_rows_than_there_is_memory_for_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame that surely does not fit is refused before it is computed: one line, exit code 1, nothing written."""
    table, out = tmp_path / "t.yaml", tmp_path / "out.csv"
    table.write_text(SMALL)
    monkeypatch.setattr(memory, "available", lambda: 100.0)
    done = CliRunner().invoke(main, ["run", str(table), "-o", str(out)])
    assert (done.exit_code, done.stderr) == (1, "there is not enough memory for this many rows\n")
    assert not out.exists()


def test_a_limit_of_the_system_counts() -> None:
    """What is available is never more than the process's limit of address space."""
    code = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({2 << 30}, {2 << 30})); from scenario.common import memory; print(memory.available())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) <= 2 << 30
    assert memory.available() > 0
