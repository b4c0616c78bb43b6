"""Hostile and unlucky workbooks: one clear line, bounded time and memory, nothing lost."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from click.testing import CliRunner
from workbooks import bounded, header, parts, scenarios

import scenario
from scenario.cli.commands import main
from scenario.registry import host
from scenario.workbooks import read_back as xlsx_table

ROW = {"id": "a", "model": "llama-3-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "vanilla"}
TABLE: dict[str, Any] = {"version": 1, "title": "Hostile", "rows": [ROW, {**ROW, "id": "b", "batch": 8, "method": "eagle"}]}
DOCTYPE = b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
Change = Callable[[str, bytes], bytes | None]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rows as a workbook."""
    return scenario.run(TABLE).to_excel(tmp_path_factory.mktemp("hostile") / "costs.xlsx")


@pytest.fixture(scope="module")
def shared(written: Path) -> Path:
    """The same with its texts in the part for shared texts, as most programs write them."""
    texts: list[bytes] = []

    def act(name: str, data: bytes) -> bytes:
        def move(match: re.Match[bytes]) -> bytes:
            texts.append(match[2])
            return match[1] + b't="s"><v>%d</v></c>' % (len(texts) - 1)

        return re.sub(rb'(<c [^>]*)t="inlineStr"><is>(.*?)</is></c>', move, data) if name.startswith("xl/worksheets/sheet") else data

    path = rezip(written, written.with_name("between.xlsx"), act)
    body = b"<sst>" + b"".join(b"<si>" + text + b"</si>" for text in texts) + b"</sst>"
    return rezip(path, written.with_name("shared.xlsx"), lambda _, data: data, {"xl/sharedStrings.xml": body})


@pytest.fixture(scope="module")
def plugins() -> Any:
    """The plugins."""
    return host.load(())


def refused(path: Path, plugins: Any, seconds: float = 20) -> str:
    """What is said of a file that cannot be read: a few lines, in time."""
    with pytest.raises(scenario.ScenarioError) as caught, bounded(seconds):
        xlsx_table.load(path, plugins)
    assert caught.value.exit_code == 2
    assert len(caught.value.problems) == 1
    assert len(str(caught.value).splitlines()) <= 2
    return str(caught.value)


def rezip(path: Path, target: Path, change: Change, more: dict[str, bytes] | None = None, method: int = zipfile.ZIP_DEFLATED) -> Path:
    """A copy with parts changed by ``change(name, data)`` (None drops one) and more parts put in."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w", method) as out:
        for name in source.namelist():
            data = change(name, source.read(name))
            if data is not None:
                out.writestr(name, data)
        for name, data in (more or {}).items():
            out.writestr(name, data)
    return target


def on(part: str, act: Callable[[bytes], bytes | None]) -> Change:
    """A change of one part only."""
    return lambda name, data: act(data) if name == part else data


def good(path: Path, plugins: Any, batches: list[float] | None = None) -> None:
    """The file is read as the table it is."""
    table, _ = xlsx_table.load(path, plugins)
    assert table.rows["batch"].to_list() == (batches or [1.0, 8.0])


# -- not a workbook -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["csv", "html", "html table", "xml", "empty", "ole", "noise", "another zip", "an empty zip", "ods", "xlsb", "bom"])
def test_a_file_that_is_something_else_says_what_it_is(name: str, plugins: Any, tmp_path: Path) -> None:
    """CSV, HTML, an encrypted file, another zip and the like are told by what they are."""
    path = tmp_path / "costs.xlsx"
    zips = {"another zip": {"hello.txt": b"x"}, "an empty zip": {}, "ods": {"mimetype": b"application/vnd.oasis.opendocument.spreadsheet"},
            "xlsb": {"xl/workbook.bin": b"x", "_rels/.rels": b'<Relationships><Relationship Id="r" Type="x/officeDocument" '
                                                            b'Target="xl/workbook.bin"/></Relationships>'}}  # fmt: skip
    said = {"csv": "text, perhaps CSV", "html": "an HTML page", "html table": "an HTML page", "xml": "this is XML", "empty": "this is empty",
            "ole": "is encrypted, or in the old .xls format", "noise": "this is not a workbook", "another zip": "is not an .xlsx workbook",
            "an empty zip": "not a workbook", "ods": "is not an .xlsx workbook", "xlsb": "binary workbook", "bom": "text, perhaps CSV"}  # fmt: skip
    data = {"csv": b"id,model\na,b\n", "html": b"\n <!DOCTYPE html><html></html>", "html table": b"<table><tr></table>",
            "xml": b'<?xml version="1.0"?><a/>', "empty": b"", "ole": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600,
            "noise": bytes(range(256)), "bom": b"\xef\xbb\xbfid;model"}  # fmt: skip
    if name in zips:
        with zipfile.ZipFile(path, "w") as out:
            for part, content in zips[name].items():
                out.writestr(part, content)
    else:
        path.write_bytes(data[name])
    assert said[name] in refused(path, plugins)
    done = CliRunner().invoke(main, ["run", str(path), "-o", str(tmp_path / "new.xlsx")])
    assert done.exit_code == 2
    assert not (tmp_path / "new.xlsx").exists()


def test_a_folder_a_pipe_and_a_missing_file_are_refused(plugins: Any, tmp_path: Path) -> None:
    """What is no regular file is refused at once; a pipe is not waited for."""
    (tmp_path / "folder.xlsx").mkdir()
    os.mkfifo(tmp_path / "pipe.xlsx")
    assert "this is a folder" in refused(tmp_path / "folder.xlsx", plugins, 2)
    assert "this is not a file but a named pipe" in refused(tmp_path / "pipe.xlsx", plugins, 2)
    assert "there is no such file" in refused(tmp_path / "none.xlsx", plugins, 2)
    assert "this is not the name of a file" in refused(Path("a\0b.xlsx"), plugins, 2)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission_is_said(written: Path, plugins: Any, tmp_path: Path) -> None:
    """A file that may not be read is named with the reason."""
    path = tmp_path / "costs.xlsx"
    path.write_bytes(written.read_bytes())
    path.chmod(0)
    assert "cannot be read: Permission denied" in refused(path, plugins)


def test_a_file_open_elsewhere_is_read(written: Path, plugins: Any, tmp_path: Path) -> None:
    """Lock files of Excel and LibreOffice beside it do not keep a workbook from being read; a new one goes beside a locked one."""
    path = tmp_path / "costs.xlsx"
    path.write_bytes(written.read_bytes())
    for lock in ("~$costs.xlsx", ".~lock.costs.xlsx#", "~$new.xlsx"):
        (tmp_path / lock).write_bytes(b"x")
    good(path, plugins)
    (tmp_path / "new.xlsx").write_bytes(b"old")
    done = CliRunner().invoke(main, ["run", str(path), "-o", str(tmp_path / "new.xlsx")])
    assert done.exit_code == 3, done.output
    assert (tmp_path / "new.xlsx").read_bytes() == b"old"
    assert scenarios(tmp_path / "new (2).xlsx")["batch"] == [1, 8]


# -- damage ---------------------------------------------------------------------------------------------


def test_a_file_cut_off_anywhere_is_one_line(written: Path, plugins: Any, tmp_path: Path) -> None:
    """Cut at sixty places, a workbook is said to be damaged."""
    data = written.read_bytes()
    path = tmp_path / "costs.xlsx"
    for index in range(60):
        path.write_bytes(data[: len(data) * index // 60])
        assert re.search("cut off or damaged|not a workbook", refused(path, plugins))


def test_a_wrong_checksum_is_said_with_the_part(written: Path, plugins: Any, tmp_path: Path) -> None:
    """Data that does not fit its checksum is refused, also in the large sheet that is read bit by bit."""
    data = bytearray(written.read_bytes())
    with zipfile.ZipFile(written) as book:
        for part in (parts(written)["Scenarios"], "xl/workbook.xml", "xl/styles.xml"):
            changed = bytearray(data)
            where = changed.rindex(part.encode()) - 46 + 16  # the checksum in the list at the end
            changed[where] ^= 0xFF
            assert book.getinfo(part)
            (tmp_path / "costs.xlsx").write_bytes(changed)
            assert f"damaged: its part {part}" in refused(tmp_path / "costs.xlsx", plugins)


def test_a_sheet_that_ends_too_early_is_refused(written: Path, plugins: Any, tmp_path: Path) -> None:
    """A whole zip with half a sheet must not be taken for a table of fewer rows."""
    part = parts(written)["Scenarios"]
    path = rezip(written, tmp_path / "costs.xlsx", on(part, lambda data: data[: data.index(b'<row r="7"')]))
    assert f"damaged: its part {part}" in refused(path, plugins)


def test_two_hundred_damaged_files_end_in_clear_lines(shared: Path, plugins: Any, tmp_path: Path) -> None:
    """Random bytes changed in the file and inside its parts: it is read, or refused in clear lines, never anything else."""
    chance = random.Random(20)
    data = shared.read_bytes()
    with zipfile.ZipFile(shared) as book:
        content = {name: book.read(name) for name in book.namelist()}
    named = parts(shared)
    inner = [named["Scenarios"], named["Models"], named["Source"], named["Formulas"], "xl/workbook.xml", "xl/styles.xml",
             "xl/_rels/workbook.xml.rels", "xl/sharedStrings.xml", named["Assumptions"], named["Profiles"]]  # fmt: skip
    path = tmp_path / "costs.xlsx"
    refusals: list[scenario.ScenarioError] = []
    for case in range(200):
        if case % 2:
            changed = bytearray(data)
            for _ in range(chance.choice((1, 3, 20))):
                changed[chance.randrange(len(changed))] = chance.randrange(256)
            path.write_bytes(changed)
        else:
            part = inner[case // 2 % len(inner)]
            changed = bytearray(content[part])
            for _ in range(chance.choice((1, 3, 20))):
                changed[chance.randrange(len(changed))] = chance.choice(b"<>\"'/&=;09aZ \x00\xff!-[]")
            rezip(shared, path, on(part, lambda _, changed=changed: bytes(changed)), method=zipfile.ZIP_STORED)
        try:
            with bounded(20):
                xlsx_table.load(path, plugins)
        except scenario.ScenarioError as error:
            refusals.append(error)
    for error in refusals:
        assert error.exit_code == 2
        assert all(len(line.encode()) < 700 for line in str(error).splitlines())
    assert len(refusals) > 80


# -- attacks --------------------------------------------------------------------------------------------


def test_a_zip_bomb_is_refused_quickly_in_bounded_memory(shared: Path, tmp_path: Path) -> None:
    """A sheet that would unpack to gigabytes is refused in seconds with little memory, as are other swollen parts."""
    part = parts(shared)["Scenarios"]
    bombs = {"zeros.xlsx": (part, b"0", 500_000_000), "row.xlsx": (part, b"<worksheet><sheetData><row><c><v>", 49_000_000),
             "styles.xlsx": ("xl/styles.xml", b"<a/>", 48_000_000), "texts.xlsx": ("xl/sharedStrings.xml", b"<si>", 600_000_000)}  # fmt: skip
    for name, (swollen, piece, size) in bombs.items():
        with zipfile.ZipFile(shared) as source, zipfile.ZipFile(tmp_path / name, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
            for other in source.namelist():
                if other != swollen:
                    out.writestr(other, source.read(other))
            with out.open(swollen, "w", force_zip64=True) as stream:
                block = piece * (1_000_000 // len(piece))
                for _ in range(size // 1_000_000):
                    stream.write(block)
        code = (f"import atexit, resource, sys; sys.argv = ['scenario', 'check', {str(tmp_path / name)!r}]\nfrom scenario.cli import main\n"
                "resource.setrlimit(resource.RLIMIT_CPU, (30, 30))\n"
                "atexit.register(lambda: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))\nmain()")  # fmt: skip
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 2, (name, done.stderr)
        assert re.search("refused|damaged", done.stderr), (name, done.stderr)
        assert len(done.stderr.splitlines()) <= 2
        assert int(done.stdout) < 700_000, name  # in kilobytes


SLOW = {
    "tags without an end": b"<c " * 400_000, "cells without an end": b'<c r="A6">' * 400_000, "formulas without an end": b'<c r="A6"><f>' * 200_000,
    "one long word": b'<c r="A6" ' + b"a" * 2_000_000 + b"><v>1</v></c>", "values without an end": b'<c r="A6">' + b"<v>" * 500_000 + b"</c>",
    "quotes": b'<c r="N6"><f>' + b"'" * 1_000_000 + b"</f></c>", "texts without an end": b'<c r="A6" t="inlineStr">' + b"<t>" * 500_000 + b"</c>",
}  # fmt: skip


@pytest.mark.parametrize("what", SLOW)
def test_nothing_makes_the_reader_search_forever(what: str, written: Path, plugins: Any, tmp_path: Path) -> None:
    """Text that is made to be slow to take apart is not: it is read or refused within seconds of work."""
    part = parts(written)["Scenarios"]
    path = rezip(written, tmp_path / "costs.xlsx", on(part, lambda d: d.replace(b'<row r="6">', b'<row r="6">' + SLOW[what])))
    with contextlib.suppress(scenario.ScenarioError), bounded(10):
        xlsx_table.load(path, plugins)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused_in_every_part(encoding: str, shared: Path, plugins: Any, tmp_path: Path) -> None:
    """A document type, in whatever encoding and behind whatever comment, is refused."""
    named = parts(shared)
    for part in (named["Scenarios"], "xl/workbook.xml", "xl/styles.xml", "xl/sharedStrings.xml", "xl/_rels/workbook.xml.rels", "_rels/.rels",
                 "xl/tables/table1.xml"):  # fmt: skip

        def act(data: bytes) -> bytes:
            body = data[data.index(b"?>") + 2 :] if data.startswith(b"<?xml") else data
            whole = DOCTYPE.replace(b"<!DOCTYPE", b"<!--" + b"x" * 9000 + b"--><!DOCTYPE") + body
            return whole.decode().replace('version="1.0"', 'version="1.0" encoding="UTF-16"').encode("utf-16") if encoding == "utf-16" else whole

        path = rezip(shared, tmp_path / "costs.xlsx", on(part, act))
        assert f"its part {part} declares XML entities" in refused(path, plugins), part


def test_macros_and_links_to_other_files_are_left_behind_and_said(written: Path, tmp_path: Path) -> None:
    """A workbook with macros and external links is read; neither is run, followed or carried over."""
    more = {"xl/vbaProject.bin": b"x", "xl/externalLinks/externalLink1.xml": b"<externalLink/>"}
    path = rezip(written, tmp_path / "costs.xlsx", lambda _, data: data, more)
    done = CliRunner().invoke(main, ["run", str(path), "-o", str(tmp_path / "new.xlsx")])
    assert done.exit_code == 0, done.output
    assert "its macros are not carried over" in done.stderr
    assert "its links to other workbooks are not followed" in done.stderr
    with zipfile.ZipFile(tmp_path / "new.xlsx") as book:
        assert not [name for name in book.namelist() if "vba" in name or "external" in name]


def test_two_hundred_sheets_are_carried_over(written: Path, tmp_path: Path) -> None:
    """Many sheets of the analyst's own, in any script, come back under their names."""
    book = openpyxl.load_workbook(written)
    titles = [f"{name} {index}" for index in range(50) for name in ("数据", "بيانات", "Übersicht", "נתונים")]
    for index, title in enumerate(titles):
        book.create_sheet(title)["A1"] = index
    book.save(tmp_path / "costs.xlsx")
    with bounded(60):
        done = CliRunner().invoke(main, ["run", str(tmp_path / "costs.xlsx"), "-o", str(tmp_path / "new.xlsx"), "-q"])
    assert done.exit_code == 0, done.output
    new = openpyxl.load_workbook(tmp_path / "new.xlsx", read_only=True)
    assert new.sheetnames[-200:] == titles


def test_a_million_empty_rows_take_bounded_time(written: Path, plugins: Any, tmp_path: Path) -> None:
    """Rows that were formatted but never filled are passed over, with cells in them or without."""
    part = parts(written)["Scenarios"]
    empty = {"bare": "".join(f'<row r="{row}"/>' for row in range(8, 1_000_000, 2)),
             "styled": "".join(f'<row r="{row}" s="1" customFormat="1"><c r="A{row}" s="1"/></row>' for row in range(8, 100_000))}  # fmt: skip
    for rows in empty.values():
        path = rezip(written, tmp_path / "costs.xlsx", on(part, lambda data, rows=rows: data.replace(b"</sheetData>", rows.encode() + b"</sheetData>")))
        with bounded(40):
            good(path, plugins)


# -- unusual but good -----------------------------------------------------------------------------------


def test_names_in_any_script_come_back(tmp_path: Path, plugins: Any) -> None:
    """Ids and titles in other scripts, right to left, with combining marks and emoji, are what they were."""
    names = ["قالب ١", "场景一", "עברית", "Ünïcode é", "🙂 smile", "<&>\"'", "_x0041_", "=1+1", "  padded  ".strip()]
    table = {"version": 1, "title": "عنوان <&> 标题", "rows": [{**ROW, "id": name, "batch": n + 1} for n, name in enumerate(names)]}
    path = scenario.run(table).to_excel(tmp_path / "költség.xlsx")
    read, _ = xlsx_table.load(path, plugins)
    assert read.rows["id"].to_list() == names
    assert read.title == table["title"]


SHAPES: dict[str, Callable[[bytes], bytes]] = {
    "prefixes": lambda d: re.sub(rb"<(/?)(?=[a-zA-Z])", rb"<\1x:", d).replace(b"xmlns=", b"xmlns:x="),
    "single quotes": lambda d: re.sub(rb"<[^>]*>", lambda tag: tag[0].replace(b'"', b"'"), d),
    "no places of cells": lambda d: re.sub(rb'<c r="[A-Z]+[0-9]+"', b"<c", d),
    "no places at all": lambda d: re.sub(rb'<c r="[A-Z]+[0-9]+"', b"<c", re.sub(rb'(<row[^>]*?) ?r="[0-9]+"', rb"\1", d)),
    "the place not in front": lambda d: re.sub(rb'<c (r="[A-Z]+[0-9]+")((?: \w+="\w*")+)', rb"<c\2 \1", d),
    "some places in front": lambda d: re.sub(rb'<c (r="[B-D][0-9]+")((?: \w+="\w*")+)', rb"<c\2 \1", d),
    "UTF-16": lambda d: d.decode().encode("utf-16") if not d.startswith(b"<?xml") else d.decode().replace("UTF-8", "UTF-16").encode("utf-16"),
    "comments": lambda d: d.replace(b"<sheetData>", b"<sheetData><!-- <row r='1'> -->"),
    "line breaks": lambda d: d.replace(b"<row ", b"<row\n").replace(b"<c ", b"<c\n "),
    "rows out of order": lambda d: re.sub(rb'(<row r="6".*?</row>)(<row r="7".*?</row>)', rb"\2\1", d, flags=re.DOTALL),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_xml_of_another_shape_is_read(shape: str, written: Path, plugins: Any, tmp_path: Path) -> None:
    """Prefixed names, other quotes and encodings, and cells without their place are the same sheet."""
    part = parts(written)["Scenarios"]

    def act(data: bytes) -> bytes:
        if "places" in shape:  # cells then follow one another without gaps
            data = data.replace(b"/><c", b"></c><c")
        return SHAPES[shape](data)

    good(rezip(written, tmp_path / "costs.xlsx", on(part, act)), plugins, [8.0, 1.0] if shape == "rows out of order" else None)


def test_parts_may_be_named_in_any_way(written: Path, plugins: Any, tmp_path: Path) -> None:
    """Targets may begin at the root or be relative, and the list of sheets may have another name."""
    path = rezip(written, tmp_path / "a.xlsx", on("xl/_rels/workbook.xml.rels", lambda d: d.replace(b'Target="/xl/', b'Target="')))
    good(path, plugins)
    path = rezip(written, tmp_path / "b.xlsx", on("xl/_rels/workbook.xml.rels", lambda d: d.replace(b'Target="/xl/', b'Target="../xl/./')))
    good(path, plugins)
    with zipfile.ZipFile(written) as source, zipfile.ZipFile(tmp_path / "c.xlsx", "w") as out:
        for name in source.namelist():
            data = source.read(name)
            if name == "_rels/.rels":
                data = data.replace(b"xl/workbook.xml", b"xl/workbook2.xml")
            out.writestr(name.replace("workbook.xml", "workbook2.xml"), data)
    good(tmp_path / "c.xlsx", plugins)


def test_missing_styles_or_texts_are_survived(written: Path, shared: Path, plugins: Any, tmp_path: Path) -> None:
    """Without styles numbers are numbers; without its shared texts a sheet that needs them is not taken for an empty one."""
    good(rezip(written, tmp_path / "a.xlsx", lambda name, data: None if name == "xl/styles.xml" else data), plugins)
    odd = rezip(written, tmp_path / "b.xlsx", on("xl/styles.xml", lambda _: b"<styleSheet><cellXfs><xf numFmtId='x'/></cellXfs></styleSheet>"))
    good(odd, plugins)
    good(shared, plugins)
    with pytest.raises(scenario.ScenarioError):
        xlsx_table.load(rezip(shared, tmp_path / "c.xlsx", lambda name, data: None if name == "xl/sharedStrings.xml" else data), plugins)


def put(written: Path, target: Path, name: str, xml: str) -> Path:
    """A copy with the first scenario's cell of a column replaced by XML."""
    cell = f"{header(written, 'Scenarios')[name]}6"
    pattern = re.compile(rb'<c r="%s"[^>]*?(?:/>|>.*?</c>)' % cell.encode(), re.DOTALL)
    return rezip(written, target, on(parts(written)["Scenarios"], lambda d: pattern.sub(xml.replace("@", cell).encode(), d, count=1)))


def test_a_text_that_no_cell_can_hold_is_cleaned(written: Path, plugins: Any, tmp_path: Path) -> None:
    """NUL, half a character pair and other unprintable characters of an id become a mark, and the table writes and reads on."""
    for text in ("a_x0000_b", "a&#0;b", "a_xD800_b", "a&#55296;b", "a&#99999999999;b", "a\x01b", "a_x0001_b"):
        path = put(written, tmp_path / "costs.xlsx", "id", f'<c r="@" t="inlineStr"><is><t>{text}</t></is></c>')
        table, _ = xlsx_table.load(path, plugins)
        assert table.rows["id"][0] == "a\ufffdb", text
    done = CliRunner().invoke(main, ["run", str(path), "-o", str(tmp_path / "new.xlsx"), "-q"])
    assert done.exit_code == 0, done.output
    assert scenarios(tmp_path / "new.xlsx")["id"][0] == "a\ufffdb"


def test_an_enormous_text_and_odd_numbers_are_one_problem_each(written: Path, plugins: Any, tmp_path: Path) -> None:
    """A text of a megabyte where a name or a number belongs is cut short in the message; numbers beyond all bounds are refused."""
    for name in ("model", "batch"):
        said = refused(put(written, tmp_path / "costs.xlsx", name, f'<c r="@" t="inlineStr"><is><t>{"x" * 1_000_000}</t></is></c>'), plugins)
        assert len(said) < 600
    for number in ("1e308", "-1e308", "1e-320", "-1", "1e15", "9" * 400):
        said = refused(put(written, tmp_path / "costs.xlsx", "batch", f'<c r="@"><v>{number}</v></c>'), plugins)
        assert f"Scenarios!{header(written, 'Scenarios')['batch']}6: " in said
    table, _ = xlsx_table.load(put(written, tmp_path / "costs.xlsx", "batch", '<c r="@"><v>1.6E+1</v></c>'), plugins)
    assert table.rows["batch"][0] == 16


def test_own_formulas_with_errors_do_no_harm(written: Path, tmp_path: Path) -> None:
    """Own sheets full of errors, broken formulas and odd names are carried over or said to be left, and the new file opens."""
    book = openpyxl.load_workbook(written)
    own = book.create_sheet("x" * 31)
    for row, text in enumerate(("=1/0", "=#REF!+1", "=((", "=A1:A2:A3", "=Scenarios!B6:", '="' + "q" * 9000 + '"', "=LET(x,1,x)", "={1,2}", "='", "=["), 1):
        own.cell(row, 1, text)
    book.save(tmp_path / "costs.xlsx")
    done = CliRunner().invoke(main, ["run", str(tmp_path / "costs.xlsx"), "-o", str(tmp_path / "new.xlsx")])
    assert done.exit_code == 0, done.output
    assert openpyxl.load_workbook(tmp_path / "new.xlsx")["x" * 31]["A1"].value == "=1/0"


def test_odd_titles_of_own_sheets_are_made_valid(written: Path, tmp_path: Path) -> None:
    """Titles that a spreadsheet would refuse, that repeat, or that are too long are changed so that the file opens."""
    book = openpyxl.load_workbook(written)
    for title in ("aaaa", "bbbb", "cccc", "dddd"):
        book.create_sheet(title)["A1"] = title
    book.save(tmp_path / "plain.xlsx")
    names = {b"aaaa": b"a/b*c", b"bbbb": b"A/B*C", b"cccc": b"c" * 60, b"dddd": b"History"}

    def act(data: bytes) -> bytes:
        for old, new in names.items():
            data = data.replace(b'name="%s"' % old, b'name="%s"' % new)
        return data

    path = rezip(tmp_path / "plain.xlsx", tmp_path / "costs.xlsx", on("xl/workbook.xml", act))
    done = CliRunner().invoke(main, ["run", str(path), "-o", str(tmp_path / "new.xlsx"), "-q"])
    assert done.exit_code == 0, done.output
    titles = openpyxl.load_workbook(tmp_path / "new.xlsx").sheetnames[-4:]
    assert titles == ["a_b_c", "A_B_C (2)", "c" * 31, "History_"]


# -- interrupted writing --------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_write_leaves_the_old_file_whole(number: signal.Signals, tmp_path: Path) -> None:
    """Ctrl-C or a kill while the workbook is written leaves what stood there, and no half-written file beside it."""
    target = tmp_path / "new.xlsx"
    target.write_bytes(b"what stood there")
    code = f"""
import os, sys, time
from scenario.exporters.xlsx import splice as _splice
real = _splice.row_chunks
def slow(*parts):
    yield from real(*parts)
    print("writing", flush=True)
    time.sleep(30)
_splice.row_chunks = slow
sys.argv = ["scenario", "run", "starter", "-o", {str(target)!r}, "-q"]
from scenario.cli.commands import main
main()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        process.send_signal(number)
        process.communicate(timeout=30)
        assert process.returncode not in (0, None)
    assert target.read_bytes() == b"what stood there"
    assert [path.name for path in tmp_path.iterdir()] == ["new.xlsx"]
