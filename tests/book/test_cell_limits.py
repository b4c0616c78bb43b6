"""What no spreadsheet takes is found when a table is checked, at the column that says it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from scenario.cli.commands import main

HEAD = "version: 1\nrows: [{model: llama-3.1-8b, gpu: h100-sxm, batch: 1, context: 0, method: vanilla}]\ncolumns:\n"


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_formula_that_no_cell_holds_is_found_at_check(command: str, tmp_path: Path) -> None:
    """A remainder writes its left side twice: fifty inside one another are 2^50 pieces, refused at once with line and column."""
    formula = "(" * 50 + "batch" + " % 3)" * 50
    table, out = tmp_path / "t.yaml", tmp_path / "out.xlsx"
    table.write_text(f"{HEAD}  good: {{formula: 'batch % 3'}}\n  deep: {{formula: '{formula}'}}\n")
    done = CliRunner().invoke(main, [command, str(table), *(["-o", str(out)] if command == "run" else [])])
    assert done.exit_code == 2
    assert f"{table}:5:19: written for a spreadsheet the formula has" in done.stderr
    assert "a cell holds 8,192" in done.stderr
    assert not out.exists()
