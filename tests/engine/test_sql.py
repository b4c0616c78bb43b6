"""The statement of `export-sql`, run by DuckDB over the table's inputs, gives the engine's numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner
from formula_backends import VECTORS, load_cases, same

import scenario
from scenario.api import bundled
from scenario.cli.commands import main
from scenario.cli.sql import DIALECTS
from scenario.engine import sql
from scenario.formulas import functions, to_sql
from scenario.formulas.to_sql import compile_sql, literal

BUNDLED = sorted(bundled())
ESTIMATE = {"version": 1, "time_model": "estimate", "defaults": {"gpu": "h100-sxm", "context": 1024},
            "profiles": {"chat": {"rates": [0.8, 0.6, 0.4], "source": "made up"}},
            "grid": {"model": ["llama-3.1-8b"], "batch": [1, 16, 64], "method": ["vanilla", "eagle"], "acceptance": ["chat"]},
            "where": "fits"}  # fmt: skip


def computed(statement: str, inputs: Any, folder: Path) -> dict[str, dict[str, Any]]:
    """The rows that DuckDB gives, by id."""
    inputs.write_parquet(folder / "inputs.parquet")
    with duckdb.connect() as connection:
        connection.execute(f"create table scenario_inputs as select * from read_parquet('{folder / 'inputs.parquet'}')")
        cursor = connection.execute(statement)
        names = [column[0] for column in cursor.description]
        return {row["id"]: row for row in (dict(zip(names, values, strict=True)) for values in cursor.fetchall())}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BUNDLED, "estimate"])
def test_duckdb_computes_what_the_engine_does(name: str, tmp_path: Path) -> None:
    """Every public cell of every bundled table to 1e-12, and the rows that `where` keeps."""
    result = scenario.run(ESTIMATE if name == "estimate" else name)
    inputs = result.book.table.rows
    got = computed(sql.statement(result.book, "scenario_inputs", "duckdb", given=inputs.columns), inputs, tmp_path)
    assert set(got) == set(result.frame["id"])
    for row in result.frame.iter_rows(named=True):
        for column, value in row.items():
            other = got[row["id"]][column]
            assert other == value or abs(other - value) <= 1e-12 * abs(value), (row["id"], column, other, value)


def test_every_case_gives_the_stated_value() -> None:
    """The cases that say what a formula means hold in DuckDB too."""
    kinds = {"number": "number", "text": "text", "flag": "flag"}
    asked = []
    cases = load_cases(errors=False)
    for case in cases:
        def column(name: str, kind: str, case: Any = case) -> Any:
            return literal(case.values[name], kinds.get(kind, "number"))

        asked.append(compile_sql(case.tree(), column, VECTORS).sql(dialect="duckdb"))
    with duckdb.connect() as connection:
        got = [connection.execute(f"select {text}").fetchone() for text in asked]
    wrong = [f"{case}: {found}, stated {case.value!r}" for case, found in zip(cases, got, strict=True) if not same(found and found[0], case.value)]
    assert not wrong


def test_the_back_end_has_every_function() -> None:
    """No function of the language is without an entry."""
    elsewhere = {"choose", "at", "tree_tokens", "tree_rows", "curve"}  # written out by the compiler itself
    assert {name for name, spec in functions.FUNCTIONS.items() if not spec.lint} == {*to_sql.FUNCTIONS, *elsewhere}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_command_writes_a_statement(dialect: str, tmp_path: Path) -> None:
    """One SELECT that reads the table of inputs by its name, in each dialect."""
    out = tmp_path / "costs.sql"
    done = CliRunner().invoke(main, ["export-sql", "article-mtp", "--dialect", dialect, "--inputs", "lake_rows", "-o", str(out)])
    assert done.exit_code == 0, done.output
    text = out.read_text(encoding="utf-8")
    assert text.startswith("WITH ")
    assert text.count(";") == 1
    assert "lake_rows" in text
