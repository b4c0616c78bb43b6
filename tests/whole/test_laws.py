"""The laws over every bundled table, as a user would see them: files written, read back, and compared bit for bit."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import openpyxl
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import scenario
from scenario.tables.export_table import to_yaml
from scenario.tables.table import Summary


def bundled() -> list[str]:
    """The bundled tables: what `scenario run NAME` takes."""
    from scenario import api

    return sorted(api.bundled())


@pytest.mark.parametrize("name", bundled())
def test_a_row_of_a_bundled_table_has_the_same_bits_alone(name: str, tmp_path: Path) -> None:
    """Rows written out into a table of their own, one by one and in another order, give what they gave among all."""
    result = scenario.run(name)
    table = result.book.table
    chance = random.Random(name)
    ids = chance.sample(result.frame["id"].to_list(), min(3, len(result)))
    for number, chosen in enumerate([*([one] for one in ids), ids[::-1]]):
        path = tmp_path / f"{number}.yaml"
        rows = pl.concat([table.rows.filter(pl.col("id") == one) for one in chosen])
        path.write_text(to_yaml(replace(table, rows=rows, sort=(), summary=Summary()), result.host), encoding="utf-8")
        alone = scenario.run(path).frame
        assert alone["id"].to_list() == chosen
        among = pl.concat([result.frame.filter(pl.col("id") == one) for one in chosen])
        shared = [column for column in among.columns if column in alone.columns]
        assert {"tpot_ms", "usd_per_million_tokens", "memory_gb", "max_batch", "status"} <= set(shared)
        assert_frame_equal(alone.select(shared), among.select(shared), check_exact=True)


def test_a_row_deleted_in_the_workbook_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    """The workbook of a table, less one of its rows, comes back with the numbers of the others unchanged."""
    result = scenario.run("starter")
    path = result.to(tmp_path / "costs.xlsx")
    book = openpyxl.load_workbook(path)
    sheet = book["Scenarios"]
    gone = result.frame["id"][3]
    (row,) = [cell.row for cell in sheet["A"] if cell.value == gone]
    sheet.delete_rows(row)
    book.save(path)
    back = scenario.run(path).frame
    wanted = result.frame.filter(pl.col("id") != gone)
    assert_frame_equal(back.select(wanted.columns), wanted, check_exact=True)
