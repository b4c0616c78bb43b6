"""Workbooks in tests: edit a cell as an analyst would, recalculate with LibreOffice, compare every cell."""

from __future__ import annotations

import contextlib
import html
import re
import shutil
import signal
import subprocess
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.utils import get_column_letter
from spreadsheet import SOFFICE, recalculate


@contextlib.contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Ends what takes more than so many seconds of this process's own work: what other programs do meanwhile does not count."""

    def stop(*_: object) -> None:
        raise AssertionError(f"more than {seconds:g} seconds of work")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


Edits = Mapping[tuple[str, str], Any]
"""(sheet, cell) -> the value typed there; None clears the cell."""


def parts(path: Path) -> dict[str, str]:
    """The part of the file that holds each sheet, by title."""
    with zipfile.ZipFile(path) as book:
        rels = re.findall(r"<Relationship [^>]*>", book.read("xl/_rels/workbook.xml.rels").decode())
        sheets = re.findall(r"<sheet [^>]*>", book.read("xl/workbook.xml").decode())

    def attribute(text: str, name: str) -> str:
        found = re.search(rf'(?:^|[ :]){name}="([^"]*)"', text)
        assert found
        return found.group(1)

    targets = {attribute(rel, "Id"): attribute(rel, "Target").removeprefix("/").removeprefix("xl/") for rel in rels}
    return {html.unescape(attribute(sheet, "name")): f"xl/{targets[attribute(sheet, 'id')]}" for sheet in sheets}


def edit(path: Path, target: Path, edits: Edits) -> Path:
    """A copy of a workbook with constants typed into cells, everything else byte for byte: shown values go stale."""
    where = parts(path)
    wanted: dict[str, dict[str, Any]] = {}
    for (sheet, cell), value in edits.items():
        wanted.setdefault(where[sheet], {})[cell] = value
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        for name in source.namelist():
            data = source.read(name)
            for cell, value in wanted.get(name, {}).items():
                data = _typed(data.decode(), cell, value).encode()
            out.writestr(name, data)
    return target


def _typed(xml: str, cell: str, value: Any) -> str:
    pattern = re.compile(rf'<c r="{cell}"([^>]*?)(?:/>|>.*?</c>)', re.DOTALL)
    found = pattern.search(xml)
    assert found, f"there is no cell {cell}"
    style = re.search(r's="[0-9]+"', found.group(1))
    start = f'<c r="{cell}" {style.group() if style else ""}'
    if value is None:
        text = f"{start}/>"
    elif isinstance(value, str):
        escaped = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        text = f'{start} t="inlineStr"><is><t>{escaped}</t></is></c>'
    else:
        text = f"{start}><v>{float(value)!r}</v></c>"
    return xml[: found.start()] + text + xml[found.end() :]


def recalculate_all(paths: Iterable[Path], tmp: Path) -> list[Path]:
    """Copies of several workbooks with every formula calculated anew, in one run of LibreOffice."""
    listed = list(paths)
    first = recalculate(listed[0], tmp)  # sets up the profile
    if len(listed) > 1:
        profile = (tmp.resolve() / "soffice-profile").as_uri()
        command = [str(SOFFICE), f"-env:UserInstallation={profile}", "--headless", "--norestore", "--convert-to", "xlsx:Calc MS Excel 2007 XML",
                   "--outdir", str(first.parent), *map(str, listed[1:])]  # fmt: skip
        subprocess.run(command, capture_output=True, timeout=600, check=True)
    return [first.parent / path.name for path in listed]


def without_empty_cells(path: Path, target: Path) -> Path:
    """A copy for ironcalc, which takes a styled empty cell for the number 0."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        for name in source.namelist():
            data = source.read(name)
            if name.startswith("xl/worksheets/sheet"):
                data = re.sub(rb'<c r="[A-Z]+[0-9]+" s="[0-9]+"(?: t="n")? ?/>', b"", data)
            out.writestr(name, data)
    return target


def same(a: Any, b: Any) -> bool:
    """Equal within 1e-9 of the larger of 1 and the value; a blank is an empty text."""
    a, b = ("" if value is None else value for value in (a, b))
    if isinstance(a, int | float) and isinstance(b, int | float) and not isinstance(a, bool) and not isinstance(b, bool):
        return abs(a - b) <= 1e-9 * max(1.0, abs(a))
    return bool(a == b)


def formula_cells(path: Path) -> dict[tuple[str, str], str]:
    """Every formula of a workbook by sheet and cell."""
    book = openpyxl.load_workbook(path)
    return {(s.title, c.coordinate): str(c.value) for s in book.worksheets for row in s.iter_rows() for c in row if c.data_type == "f"}


def differences(path: Path, recalculated: Path) -> list[str]:
    """The formula cells of which a recalculation gives something else than the file shows."""
    shown, anew = (openpyxl.load_workbook(p, data_only=True) for p in (path, recalculated))
    found = []
    for (sheet, cell), formula in formula_cells(path).items():
        a, b = shown[sheet][cell].value, anew[sheet][cell].value
        if not same(a, b):
            found.append(f"{sheet}!{cell} {formula[:80]}: shows {a!r}, recalculated {b!r}")
    return found


def header(path: Path, sheet: str, row: int = 5) -> dict[str, str]:
    """The column letters of a sheet by header."""
    book = openpyxl.load_workbook(path, read_only=True)
    cells = next(book[sheet].iter_rows(min_row=row, max_row=row, values_only=True))
    return {str(name): get_column_letter(index) for index, name in enumerate(cells, 1) if name is not None}


def row_of(path: Path, sheet: str, column: str, value: str, first: int = 6) -> int:
    """The row in which a column holds a value."""
    index = openpyxl.utils.column_index_from_string(header(path, sheet)[column]) - 1
    book = openpyxl.load_workbook(path, read_only=True)
    for number, cells in enumerate(book[sheet].iter_rows(min_row=first, values_only=True), first):
        if len(cells) > index and cells[index] == value:
            return number
    raise AssertionError(f"no row of {sheet} has {column} {value}")


def scenarios(path: Path) -> dict[str, list[Any]]:
    """The columns of the Scenarios sheet as shown, by header."""
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    rows = list(book["Scenarios"].iter_rows(min_row=5, values_only=True))
    return {str(name): [row[index] if index < len(row) else None for row in rows[1:]] for index, name in enumerate(rows[0]) if name is not None}


def pages(path: Path, folder: Path) -> list[Path]:
    """The workbook printed to PNG pages, for looking at; none where the programs are missing."""
    if SOFFICE is None or shutil.which("pdftoppm") is None:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    profile = (folder.resolve() / "profile").as_uri()
    command = [SOFFICE, f"-env:UserInstallation={profile}", "--headless", "--convert-to", "pdf", "--outdir", str(folder), str(path)]
    for _ in range(2):
        subprocess.run(command, capture_output=True, timeout=300, check=False)
        if (folder / f"{path.stem}.pdf").exists():
            break
    subprocess.run(["pdftoppm", "-r", "70", "-png", str(folder / f"{path.stem}.pdf"), str(folder / path.stem)], check=True)
    shutil.rmtree(folder / "profile", ignore_errors=True)
    return sorted(folder.glob(f"{path.stem}*.png"))
