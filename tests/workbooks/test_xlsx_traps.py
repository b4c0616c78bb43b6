"""The 24 traps of spreadsheet files, each with a test against what is written here or read back."""

from __future__ import annotations

import io
import re
import time
import zipfile
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import openpyxl
import polars as pl
import pytest
from openpyxl.utils import range_boundaries
from workbooks import edit, header, parts, row_of, scenarios

import scenario
from scenario import output
from scenario.exporters import xlsx as exporter
from scenario.exporters.xlsx import cells as _cells
from scenario.exporters.xlsx import extras as _extras
from scenario.exporters.xlsx import splice as _splice
from scenario.registry import host
from scenario.workbooks import read_back as xlsx_table

NASTY = "=cmd|' /C calc'!A0"
ROW = {"model": "llama-3-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "vanilla"}
TABLE: dict[str, Any] = {
    "version": 1, "title": NASTY,
    "rows": [{**ROW, "id": "=1+1"}, {**ROW, "id": "+1+1", "batch": 2}, {**ROW, "id": "@SUM(A1)", "batch": 4, "method": "eagle"},
             {**ROW, "id": "#N/A", "batch": 8}, {**ROW, "id": "_x0041_", "batch": 16}, {**ROW, "id": "1234", "batch": 32},
             {**ROW, "id": "llama on 70b", "model": "llama-3-70b"}],
    "profiles": {"chat": {"rates": [0.8, 0.6], "source": "-2+3", "doc": "x" * 40_000}},
    "curves": {"kernel": {"points": [[1, 1.0], [64, 1.2]], "doc": NASTY}},
    "models": {"mine": {"hidden": 1024, "layers": 4, "heads": 8, "kv_heads": 8, "head_dim": 128, "vocab": 1000, "ffn": 4096, "title": NASTY}},
    "columns": {"root": {"formula": "sqrt(batch - 2)", "doc": NASTY}, "loss": "log(batch - 1)"},
}  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table full of texts that look like something else."""
    return scenario.run(TABLE).to_excel(tmp_path_factory.mktemp("traps") / "costs.xlsx")


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """So many rows that formulas are shared."""
    table = {**{key: part for key, part in TABLE.items() if key != "rows"}, "grid": {**{name: [value] for name, value in ROW.items()}, "batch": list(range(1, 1102))}}
    return scenario.run(table).to_excel(tmp_path_factory.mktemp("traps") / "long.xlsx")


def xml(path: Path) -> dict[str, str]:
    """Every XML part of a workbook."""
    with zipfile.ZipFile(path) as book:
        return {name: book.read(name).decode() for name in book.namelist() if name.endswith((".xml", ".rels"))}


def formulas(path: Path) -> list[str]:
    """Every formula text of a workbook: cells, conditional formats, validations, names."""
    found: list[str] = []
    for text in xml(path).values():
        found += re.findall(r"<f(?: [^>]*)?>([^<]+)</f>|<formula[12]?>([^<]*)</formula|<calculatedColumnFormula>([^<]*)<|<definedName [^>]*>([^<]*)<", text)
    return [next(part for part in parts_ if part) for parts_ in found if any(parts_)]


def cells(path: Path) -> Any:
    """Every cell of every sheet."""
    for sheet in openpyxl.load_workbook(path).worksheets:
        for row in sheet.iter_rows():
            yield from (cell for cell in row if cell.value is not None)


def test_text_never_becomes_a_formula(written: Path) -> None:
    """Trap 1: a text that begins with = stays text on every sheet, and as CSV gets no more power than it had."""
    found = [cell for cell in cells(written) if str(cell.value).startswith(NASTY[:6])]
    assert len(found) > 6
    assert all(cell.data_type == "s" for cell in found)
    assert scenarios(written)["id"][0] == "=1+1"


def test_signs_in_front_of_text_are_text(written: Path) -> None:
    """Trap 2: +, - and @ in front of a text are text."""
    assert scenarios(written)["id"][1:3] == ["+1+1", "@SUM(A1)"]
    assert any(cell.value == "-2+3" and cell.data_type == "s" for cell in cells(written))


def test_the_name_of_an_error_is_text(written: Path) -> None:
    """Trap 3: the text #N/A is no error cell, and comes back as the text it is."""
    cell = openpyxl.load_workbook(written)["Scenarios"]["A9"]
    assert (cell.value, cell.data_type) == ("#N/A", "s")
    assert scenario.run(written).full["id"][3] == "#N/A"


def test_what_is_no_number_is_blank(written: Path) -> None:
    """Trap 4: the root of a negative number and the logarithm of 0 show nothing, not nan, inf or 0."""
    shown = scenarios(written)
    assert [value or None for value in shown["root"][:2]] == [None, 0 or None]
    assert shown["loss"][0] in (None, "")
    for text in xml(written).values():
        assert not re.search(r"<v>-?(?:nan|inf|NaN|Infinity)</v>", text)


def test_numbers_beyond_a_double_are_refused(tmp_path: Path) -> None:
    """Trap 5: a whole number that a spreadsheet would round silently is not written as if it were exact."""
    with pytest.raises(scenario.TableError):
        scenario.run({**TABLE, "rows": [{**ROW, "batch": 2**53 + 1}]})


def test_control_characters_are_cleaned(tmp_path: Path) -> None:
    """Trap 6: characters that XML cannot hold become U+FFFD, whichever way a text is written; a table that has one is refused."""
    bad = "a\x0bb\x00c\ud800d\uffff"
    assert _cells.clean(bad) == "a\ufffdb\ufffdc\ufffdd\ufffd"
    text = pl.select(_splice.value_text(pl.lit("a\x0bb\uffffc"), "text")).item()
    assert text == "a\ufffdb\ufffdc"
    with pytest.raises(scenario.TableError, match="title: there is a control character"):
        scenario.run({**TABLE, "title": "a\x0bb"})


def test_long_texts_fit_a_cell_and_lose_nothing(written: Path) -> None:
    """Trap 7: no cell holds more than 32,767 characters; what is longer comes back whole from the sheet Source."""
    assert max(len(str(cell.value)) for cell in cells(written)) <= 32_767
    table, _ = xlsx_table.load(written, host.load(()))
    assert table.vectors.profiles["chat"].doc == "x" * 40_000


@pytest.mark.parametrize("value", [datetime(2026, 1, 2, tzinfo=UTC), date(1899, 1, 1), date(2026, 1, 2)])
def test_dates_are_texts_or_refused(value: date, tmp_path: Path) -> None:
    """Traps 8 and 9: a date where a number belongs is refused; beside a price, with a time zone or before 1900, it is text."""
    with pytest.raises(scenario.TableError):
        scenario.run({**TABLE, "rows": [{**ROW, "batch": value}]})
    path = scenario.run({**TABLE, "prices": {"h100-sxm": {"usd_per_hour": 2, "date": value.isoformat()}}}).to_excel(tmp_path / "x.xlsx")
    year = str(value.year)
    found = [cell for cell in cells(path) if cell.parent.title == "GPUs" and year in str(cell.value)]
    assert all(cell.data_type == "s" for cell in found)


def test_sheet_names_are_valid_and_unique(written: Path) -> None:
    """Trap 10: names of sheets are short, plain, unique whatever the case, and never History; added ones are made so."""
    titles = openpyxl.load_workbook(written, read_only=True).sheetnames
    assert len({title.lower() for title in titles}) == len(titles)
    assert all(re.fullmatch(r"[^\[\]:*?/\\]{1,31}", title) and title.strip("'") == title and title.lower() != "history" for title in titles)
    given = ["x" * 32, "a/b", "'q'", "History", "Costs", "costs", ""]
    taken: set[str] = set()
    for title in given:
        taken.add(_extras._title(title, taken).lower())
    assert taken == {"x" * 31, "a_b", "q", "history_", "costs", "costs (2)", "sheet"}


def test_too_many_rows_are_refused_before_the_work() -> None:
    """Trap 11: a table that a sheet cannot hold is refused at once, with what to use instead."""
    writer = host.load(()).exporters["xlsx"]
    assert exporter.MAX_ROWS + 5 == 1_048_576
    output.check_size(writer, 1_048_571)
    with pytest.raises(scenario.OutputError) as caught:
        output.check_size(writer, 1_048_572)
    assert "write .parquet or .csv" in str(caught.value)


def test_too_many_rows_take_no_time(tmp_path: Path) -> None:
    """Trap 11: on the command line too, with a file that would be computed for minutes."""
    from click.testing import CliRunner

    from scenario.cli.commands import main

    axis = list(range(1, 1026))
    grid = {**{name: [value] for name, value in ROW.items()}, "batch": axis, "context": axis}
    (tmp_path / "t.yaml").write_text(f"version: 1\ngrid: {grid}\n")
    start = time.monotonic()
    done = CliRunner().invoke(main, ["run", str(tmp_path / "t.yaml"), "-o", str(tmp_path / "x.xlsx")])
    assert done.exit_code == 2
    assert "1,050,625 rows do not fit" in done.output
    assert time.monotonic() - start < 60
    assert not (tmp_path / "x.xlsx").exists()


def test_table_headers_are_unique_texts_equal_to_the_cells(written: Path, long: Path) -> None:
    """Trap 12: the columns of every table are the header cells, letter by letter, and differ by more than capital letters."""
    for path in (written, long):
        count = 0
        for sheet in openpyxl.load_workbook(path).worksheets:
            for table in sheet.tables.values():
                left, top, right, bottom = range_boundaries(table.ref)
                heads = [sheet.cell(top, column).value for column in range(left, right + 1)]
                assert heads == [column.name for column in table.tableColumns]
                assert all(isinstance(head, str) and 0 < len(head) <= 255 and "\n" not in head for head in heads)
                assert len({head.lower() for head in heads}) == len(heads)
                assert bottom > top
                assert table.autoFilter is None or table.autoFilter.ref == table.ref
                count += 1
        assert count >= 8
    for columns in ({"Batch": "1 + 1"}, {"one": "1", "One": "2"}, {"summary_key": "1"}, {"batch": "1"}):
        with pytest.raises(scenario.ScenarioError):
            scenario.run({**TABLE, "columns": columns})


def test_table_names_and_defined_names_are_valid(written: Path) -> None:
    """Trap 13: names begin with a letter, hold no odd character, look like no cell, and are unique in the whole file."""
    book = openpyxl.load_workbook(written)
    names = [*book.defined_names, *(name for sheet in book.worksheets for name in sheet.tables)]
    assert len(names) > 20
    assert len({name.lower() for name in names}) == len(names)
    for name in names:
        assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]{0,254}", name)
        assert not re.fullmatch(r"[A-Za-z]{1,3}[0-9]+|[Rr][0-9]*[Cc][0-9]*|[RrCc]", name)
    ids = re.findall(r'<table [^>]*?\bid="(\d+)"', "".join(text for name, text in xml(written).items() if "tables/" in name))
    assert len(set(ids)) == len(ids)


def test_drop_downs_are_ranges(written: Path) -> None:
    """Trap 14: lists to choose from are ranges of cells that hold all the choices, however many models there are."""
    book = openpyxl.load_workbook(written)
    count = 0
    for sheet in book.worksheets:
        for validation in sheet.data_validations.dataValidation:
            if validation.type == "list":
                title, _, area = validation.formula1.rpartition("!")
                source = book[title.strip("'")]
                left, top, _, bottom = range_boundaries(area.replace("$", ""))
                assert source.cell(top, left).value is not None or source.title == "Profiles"
                assert bottom >= top
                count += 1
            assert not validation.formula1.startswith("=")
    assert count > 8


def test_formulas_are_written_as_files_want_them(written: Path) -> None:
    """Trap 15: commas between arguments, points in numbers, English names, no sign of equality in front, no more than 8,192 characters."""
    found = formulas(written)
    assert len(found) > 500
    for text in found:
        bare = re.sub(r'"[^"]*"', '""', text)
        assert not bare.startswith("=")
        assert ";" not in bare.replace("&lt;", "").replace("&gt;", "").replace("&amp;", "").replace("&quot;", "")
        assert len(text) < 8_192
        assert set(re.findall(r"([A-Z][A-Z0-9.]+)\(", bare)) <= KNOWN, text


KNOWN = frozenset(re.findall(r"[A-Z0-9]+", """ABS AND COUNT COUNTA COUNTBLANK COUNTIF EXACT EXP FLOOR IF IFERROR INDEX INT ISERROR ISNA ISNUMBER LN LOG10 MATCH MAX MIN NA NOT OR
               ROUND ROUNDDOWN ROUNDUP ROWS SQRT SUM SUMPRODUCT TRUNC SIGN CHOOSE POWER ISFORMULA LOG CEILING ISTEXT ISBLANK TRUE FALSE LEN
               SUBSTITUTE ROW MOD TEXT HYPERLINK ISLOGICAL SMALL"""))  # fmt: skip


def test_new_functions_have_their_prefix(written: Path) -> None:
    """Trap 16: the one function newer than the file format has its prefix everywhere, also in conditional formats."""
    found = formulas(written)
    assert any("_xlfn.ISFORMULA(" in text for text in found)
    assert not any(re.search(r"(?<!_xlfn\.)ISFORMULA\(", text) for text in found)


def test_no_ranges_where_one_value_belongs(written: Path, long: Path) -> None:
    """Trap 17: no structured references, LET, XLOOKUP or arrays that spill, and ranges only where they are summed, counted or looked up."""
    for text in [*formulas(written), *formulas(long)]:
        bare = re.sub(r"&quot;.*?&quot;|\"[^\"]*\"", '""', text)
        bare = re.sub(r"INDEX\(\{[0-9.,]+\},", "INDEX(", bare)  # one number out of a list
        assert not re.search(r"\[@|#This Row|XLOOKUP|\bLET\(|LAMBDA|FILTER\(|UNIQUE\(|SEQUENCE\(|SORT\(|\{", bare)
    assert 't="array"' not in "".join(xml(written).values())
    for text in xml(written)[parts(written)["Scenarios"]].split("<f>")[1:]:
        body = text[: text.index("</f>")]
        for match in re.finditer(r"\$[A-Z]+\$\d+:\$[A-Z]+\$\d+", body):
            before = body[: match.start()]
            assert re.search(r"(INDEX|MATCH|SUM|COUNT\w*|SUMPRODUCT|MAX|MIN|ROWS)\([^()]*(\([^()]*\)[^()]*)*$", before), body


def test_cells_say_what_their_column_says(written: Path, long: Path) -> None:
    """Trap 18: the formula of each cell is that of its table's column, so that no green triangle calls it inconsistent."""
    for path in (written, long):
        book = openpyxl.load_workbook(path)
        compared = 0
        for sheet in book.worksheets:
            for table in sheet.tables.values():
                left, top, _, _ = range_boundaries(table.ref)
                for offset, column in enumerate(table.tableColumns):
                    if column.calculatedColumnFormula is not None:
                        assert sheet.cell(top + 1, left + offset).value == "=" + column.calculatedColumnFormula.attr_text
                        compared += 1
        assert compared > 50


def test_no_formula_is_unlocked(written: Path) -> None:
    """Trap 18: only inputs are unlocked; an unlocked formula would carry a green triangle too."""
    for cell in cells(written):
        if cell.data_type == "f":
            assert cell.protection.locked, f"{cell.parent.title}!{cell.coordinate}"


def test_numbers_as_text_are_not_marked(written: Path, tmp_path: Path) -> None:
    """Trap 19: ids that look like numbers stay text without a mark; a decimal comma is refused on the way back."""
    text = xml(written)[parts(written)["Scenarios"]]
    assert '<ignoredError sqref="A6:A12" numberStoredAsText="1"/>' in text
    assert all("numberStoredAsText" in xml(written)[parts(written)[title]] for title in ("README", "Formulas", "Source"))
    assert scenarios(written)["id"][5] == "1234"
    for path in (written,):
        for cell in cells(path):
            if cell.parent.title not in ("README", "Formulas", "Source") and cell.data_type == "s" and re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", str(cell.value)):
                assert cell.parent.title == "Scenarios", f"{cell.parent.title}!{cell.coordinate}"
                assert cell.column_letter == "A"
    batch = header(written, "Scenarios")["batch"]
    with pytest.raises(scenario.TableError, match="decimal point"):
        scenario.run(edit(written, tmp_path / "x.xlsx", {("Scenarios", f"{batch}6"): "0,72"}))


def test_every_formula_carries_its_value(written: Path, long: Path, tmp_path: Path) -> None:
    """Trap 20: readers that do not compute see numbers; and a file whose values were dropped is read by its inputs."""
    for path in (written, long):
        for name, text in xml(path).items():
            if name.startswith("xl/worksheets/sheet"):
                assert not re.search(r"</f><v ?/>|</f></c>|</f><v></v></c>", re.sub(r't="str"><f[^<]*</f><v></v>|t="str"><f[^>]*>[^<]*</f><v></v>', "", text)), name
    shown = pl.read_excel(written, table_name="T_scenarios", engine="calamine") if _has_calamine() else None
    assert shown is None or shown["tpot_ms"].null_count() == 1  # the model that does not fit
    openpyxl.load_workbook(written).save(tmp_path / "dropped.xlsx")
    assert scenario.run(tmp_path / "dropped.xlsx").full["tpot_ms"].null_count() == 1


def _has_calamine() -> bool:
    import importlib.util

    return importlib.util.find_spec("fastexcel") is not None


def test_a_users_file_is_only_read(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trap 21: a workbook that comes back is never opened by the library that would drop parts of it."""
    monkeypatch.setattr(openpyxl, "load_workbook", lambda *args, **options: pytest.fail("the file was loaded"))
    before = written.read_bytes()
    scenario.run(written).to_excel(tmp_path / "new.xlsx")
    assert written.read_bytes() == before


def test_a_file_that_is_open_elsewhere_is_left_alone(tmp_path: Path) -> None:
    """Trap 22: while a spreadsheet program has the file open, the new one goes beside it."""
    target = tmp_path / "costs.xlsx"
    target.write_bytes(b"open")
    (tmp_path / "~$costs.xlsx").write_bytes(b"")
    assert scenario.run(TABLE).to_excel(target) == tmp_path / "costs (2).xlsx"
    assert target.read_bytes() == b"open"


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trap 23: a write that stops half way leaves what stood there, and nothing beside it."""
    target = tmp_path / "costs.xlsx"
    target.write_bytes(b"old")

    def stop(*args: Any) -> Any:
        yield b"<row>"
        raise KeyboardInterrupt

    monkeypatch.setattr(_splice, "row_chunks", stop)
    with pytest.raises(KeyboardInterrupt):
        scenario.run(TABLE).to_excel(target)
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["costs.xlsx"]


def test_escapes_in_text_stay_text(written: Path) -> None:
    """Trap 24: a text such as _x0041_ is escaped on the way out and comes back as it was."""
    assert "_x005F_x0041_" in xml(written)[parts(written)["Scenarios"]]
    assert scenario.run(written).full["id"][4] == "_x0041_"


def test_every_part_is_well_formed(written: Path, long: Path) -> None:
    """All parts are XML that a strict reader takes, and sheets say how large they are."""
    from xml.etree import ElementTree

    for path in (written, long):
        for text in xml(path).values():
            ElementTree.parse(io.BytesIO(text.encode()))
    assert re.search(r'<dimension ref="A1:[A-Z]+12"', xml(written)[parts(written)["Scenarios"]])
    assert row_of(written, "Profiles", "profile", "chat") == 6


def test_ids_that_are_made_need_no_escape(tmp_path: Path) -> None:
    """Trap 24: no reader takes a part of one for the code of a character, whatever the inputs and the names of GPUs are."""
    card = {"memory_gb": 80, "bandwidth_tb_s": 3, "bf16_tflops": 900}
    row = {**ROW, "gpu": ["x1", "xAB0"], "batch": [1, 2], "gpus": [1, 16], "mfu": [0.5, 1]}
    result = scenario.run({"version": 1, "gpus": {"x1": card, "xAB0": card}, "rows": [row, {**row, "model": "qwen3-8b"}]})
    assert result.full["id"][2] == "llama-3-8b-x1_b1_gpus-16_mfu-0.5"
    assert result.full["id"].is_unique().all()
    path = result.to_excel(tmp_path / "ids.xlsx")
    assert "_x005F_" not in xml(path)[parts(path)["Scenarios"]]
    assert scenario.run(path).full["id"].to_list() == result.full["id"].to_list()
