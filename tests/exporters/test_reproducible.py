"""The same table gives the same file."""

from __future__ import annotations

from pathlib import Path

import pytest

import scenario
from scenario.exporters.xlsx import splice


def test_a_table_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With SOURCE_DATE_EPOCH a table's workbook is byte for byte the same, whatever the clock says."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first = scenario.run("article-mtp").to_excel(tmp_path / "first.xlsx").read_bytes()

    class Later(splice.datetime):
        @classmethod
        def now(cls, tz=None):  # type: ignore[no-untyped-def]
            return cls(2035, 1, 2, 3, 4, 5, tzinfo=tz)

    monkeypatch.setattr(splice, "datetime", Later)
    assert scenario.run("article-mtp").to_excel(tmp_path / "second.xlsx").read_bytes() == first
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert scenario.run("article-mtp").to_excel(tmp_path / "third.xlsx").read_bytes() != first
