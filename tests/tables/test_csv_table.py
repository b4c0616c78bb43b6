"""Rows as CSV: what is read, and what is refused with line and column."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from click.testing import CliRunner

import scenario
from scenario import api
from scenario.cli.commands import main
from scenario.common.errors import TableError
from scenario.registry import host
from scenario.tables.csv_table import load
from scenario.tables.table import Table

HOST = host.load(third_party=False)
HEAD = "model,gpu,batch,context,method"
LINE = "llama-3-8b,h100-sxm,8,1024,eagle"


def read(tmp_path: Path, text: str | bytes) -> Table:
    """The table of a CSV text."""
    path = tmp_path / "t.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load(path, HOST)


def refused(tmp_path: Path, text: str | bytes) -> str:
    """What is said of a CSV text that cannot be read."""
    with pytest.raises(TableError) as caught:
        read(tmp_path, text)
    return str(caught.value)


def test_a_csv_is_the_table_of_its_rows(tmp_path: Path) -> None:
    """A CSV gives the numbers of the same rows in YAML; blank cells leave the default."""
    path = tmp_path / "t.csv"
    path.write_text(f"{HEAD},alpha,weights\n{LINE},0.8,\n{LINE.replace('eagle', 'vanilla')},,fp8\n\n", encoding="utf-8")
    rows = [{"model": "llama-3-8b", "gpu": "h100-sxm", "batch": 8, "context": 1024, "method": "eagle", "alpha": 0.8},
            {"model": "llama-3-8b", "gpu": "h100-sxm", "batch": 8, "context": 1024, "method": "vanilla", "weights": "fp8"}]  # fmt: skip
    mine, theirs = scenario.run(path), scenario.run({"version": 1, "rows": rows})
    assert mine.frame.drop("id").equals(theirs.frame.drop("id"))
    assert mine.book.table.title == "t"


def test_quotes_spaces_and_marks(tmp_path: Path) -> None:
    """Cells in quotes, spaces after commas, a byte order mark and Windows line ends are read."""
    table = read(tmp_path, b'\xef\xbb\xbfid, model,gpu,batch,context,method\r\n"a, ""b""", llama-3-8b ,h100-sxm, 8 ,1e3,vanilla\r\n')
    assert table.rows.row(0) == ('a, "b"', "llama-3-8b", "h100-sxm", 8.0, 1000.0, "vanilla")


def test_texts_stay_texts(tmp_path: Path) -> None:
    """Ids that look like numbers or words keep their letters; the quote that disarms a formula is taken off."""
    ids = ["007", "1e3", "true", "no", "'=1+1", "'-x", "'quoted'"]
    table = read(tmp_path, f"id,{HEAD}\n" + "".join(f"{name},{LINE}\n" for name in ids))
    assert table.rows["id"].to_list() == ["007", "1e3", "true", "no", "=1+1", "-x", "'quoted'"]


@pytest.mark.parametrize(("cell", "said", "hint"), [
    ('"0,72"', "a number is needed, not '0,72'", "a number has a decimal point: 0.72"),
    ('"1.234,5"', "a number is needed, not '1.234,5'", "1234.5"),
    ('"1,234.5"', "a number is needed, not '1,234.5'", "1234.5"),
    ("50%", "a number is needed, not '50%'", "0.5"),
    ("$3", "a number is needed, not '$3'", "3"),
    ("1_000", "a number is needed, not '1_000'", ""),
    ("nan", "a number is needed, not 'nan'", ""),
    ("true", "a number is needed, not 'true'", ""),
    ("1e999", "inf is not a number that can be used", ""),
    ("1.5", "out of range", ""),
])  # fmt: skip
def test_cells_that_are_no_numbers(tmp_path: Path, cell: str, said: str, hint: str) -> None:
    """A cell that is no number is refused at its line and column, with the number that was meant."""
    message = refused(tmp_path, f"{HEAD},alpha\n{LINE},0.5\n{LINE},{cell}\n")
    column = len(LINE) + 2 + cell.startswith('"')
    assert f"t.csv:3:{column}: alpha: " in message
    assert said in message
    assert hint in message


@pytest.mark.parametrize(("text", "said"), [
    (f"{HEAD},alpha\n{LINE},0,72\n", "t.csv:2:1: the line has 7 cells, the header 6"),
    (f"{HEAD},alpha\n{LINE},0,72\n", "is '0,72' one number? It is written with a point: 0.72"),
    (f"{HEAD}\n{LINE.rpartition(',')[0]}\n", "the line has 4 cells, the header 5"),
    (f"{HEAD}\n{LINE}\n".replace(",", ";"), "t.csv:1:6: the cells are separated by semicolons, not by commas"),
    (f"{HEAD}\n{LINE}\n".replace(",", "\t"), "separated by tabs"),
    (f"{HEAD.replace('method', 'metod')}\n{LINE}\n", "t.csv:1:25: unknown column 'metod'"),
    (f"{HEAD.replace('method', 'metod')}\n{LINE}\n", "did you mean 'method'"),
    (f"{HEAD},model\n{LINE},x\n", "t.csv:1:32: the column 'model' stands here a second time"),
    (f"{HEAD},\n{LINE},x\n", "a column has no name"),
    (f"{HEAD},lora_rank\n{LINE},8\n", "'lora_rank' is one value for the whole table"),
    (f"{HEAD}\n", "the file has a header and no rows"),
    ("", "the file is empty"),
    (f"{HEAD}\n{LINE.replace('3-8b', '3-8x')}\n", "t.csv:2:1: unknown model 'llama-3-8x'"),
    (f"{HEAD}\n{LINE.replace('eagle', 'eagel')}\n", "did you mean 'eagle'"),
    (f"{HEAD}\n{LINE.replace('1024', '')}\n", "t.csv:2:23: context is blank and has no default"),
    ("model,gpu,batch,method\nllama-3-8b,h100-sxm,1,vanilla\n", "the rows do not say which context"),
    (f"id,{HEAD}\nx,{LINE}\nx,{LINE}\n", "t.csv:3:1: the id 'x' is given a second time; an id names one row\n"),
    (f"id,{HEAD}\nx,{LINE}\nx,{LINE}\n", "first given on line 2"),
    (f'{HEAD}\n"llama,h100-sxm,8,1024,eagle\n', "t.csv:2:1: the quotes of this cell are not closed"),
    (f'{HEAD}\n"llama-3-8b"x,h100-sxm,8,1024,eagle\n', "text stands behind them"),
    (f"{HEAD},weights\n{LINE.replace('eagle', 'int4')},int4\n", "cannot quantize them again"),
    ("<!DOCTYPE html>\n<html></html>\n", "this is a web page"),
    (f"{HEAD}\n{LINE}\n".encode("utf-16"), "the file is in UTF-16, not UTF-8"),
    (f"{HEAD}\n{LINE}\n".encode() + b"\xe9,\n", "t.csv:3:1: byte 0xe9 is not UTF-8"),
    (b"PK\x03\x04rest", "a workbook or another binary file"),
    (f"{HEAD}\n{LINE}\x00\n", "control character (0x00)"),
])  # fmt: skip
def test_files_that_are_refused(tmp_path: Path, text: str | bytes, said: str) -> None:
    """Whatever is wrong with a file is said at its place with what to do."""
    assert said in refused(tmp_path, text)


def test_all_problems_come_at_once(tmp_path: Path) -> None:
    """Bad cells in several rows and columns are all reported, a value that repeats only where it stands first."""
    message = refused(tmp_path, f"{HEAD},alpha\n{LINE},x\n{LINE},x\n{LINE.replace('8,', '0,')},2\n")
    assert [part for part in ("2:34: alpha", "3:34", "4:21: batch", "4:34: alpha: 2 is out of range") if f"t.csv:{part}" in message] == [
        "2:34: alpha", "4:21: batch", "4:34: alpha: 2 is out of range"]  # fmt: skip


def test_outputs_of_an_earlier_run_are_left_out(tmp_path: Path) -> None:
    """A file that -o wrote runs again to the same numbers; its outputs are left out, and a note says so."""
    run = CliRunner().invoke
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    assert run(main, ["run", "starter", "-q", "-o", str(first)]).exit_code == 0
    done = run(main, ["run", str(first), "-o", str(second)])
    assert done.exit_code == 0, done.output
    assert "output columns of an earlier run left out" in done.stderr
    with first.open(encoding="utf-8") as one, second.open(encoding="utf-8") as other:
        old, new = list(csv.DictReader(one)), list(csv.DictReader(other))
    assert [row["id"] for row in old] == [row["id"] for row in new]
    assert set(old[0]) - set(new[0]) == {"usd_per_day"}
    for mine, theirs in zip(old, new, strict=True):
        for name in ("tpot_ms", "speedup", "usd_per_million_tokens", "memory_gb"):
            assert float(theirs[name] or "nan") == pytest.approx(float(mine[name] or "nan"), rel=1e-12, nan_ok=True)
    table = api.load_table(first, HOST)
    assert table.notes
    assert "models, GPUs and columns that its table defined are not in a CSV file" in table.notes[0]


def test_check_and_limits(tmp_path: Path) -> None:
    """``check`` reads a CSV, a folder is none, and the number of rows is limited before the work."""
    path = tmp_path / "t.csv"
    path.write_text(f"{HEAD}\n{LINE}\n{LINE}\n", encoding="utf-8")
    assert "good: 2 rows" in CliRunner().invoke(main, ["check", str(path)]).output
    with pytest.raises(TableError, match="more than 1 rows"):
        load(path, HOST, max_rows=1)
    with pytest.raises(TableError, match="folder"):
        load(tmp_path, HOST)
    with pytest.raises(TableError, match="no such file"):
        load(tmp_path / "none.csv", HOST)
