"""Opens workbooks that come back from the world: safely, whatever program saved them, without changing them.

Only what is needed is read: sheet names, tables, shared texts, which number formats are dates. A file that is
not what it says, is encrypted, or would unpack to something enormous is refused in one line.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from xml.etree import ElementTree

from scenario.errors import Problem, TableError

MAX_PART = 256_000_000
"""Largest part that is read whole, in bytes."""
MAX_SHEET = 6_000_000_000
MAX_RATIO = 400
CHUNK = 8_000_000

_NS = re.compile(r"\{[^}]*\}")
_BUILT_IN = {1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 14: "yyyy-mm-dd", 22: "yyyy-mm-dd hh:mm"}
_DATE_FORMATS = {14, 15, 16, 17, 18, 19, 20, 21, 22, 45, 46, 47}


@dataclass
class SheetPart:
    """A sheet: its title, its part in the file, its tables (name -> range), whether it is hidden."""

    title: str
    part: str
    tables: dict[str, str] = field(default_factory=dict)
    hidden: bool = False


class Workbook:
    """An opened workbook. Use as a context manager; the file itself is only ever read."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.notes: list[str] = []
        self.zip = self._open(Path(path))
        self.texts: list[str] | None = None
        self.formats: dict[int, str] = {}
        """Number format by cell style; empty for the general one."""
        try:
            self.sheets = self._sheets()
            self.dates = self._date_styles()
        except TableError:
            self.zip.close()
            raise
        except (ElementTree.ParseError, KeyError, zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, IndexError) as error:
            self.zip.close()
            raise self.refuse("the workbook is damaged", f"save it again from the program that made it ({type(error).__name__})") from None

    def __enter__(self) -> Workbook:
        return self

    def __exit__(self, *error: object) -> None:
        self.zip.close()

    def refuse(self, message: str, hint: str = "") -> TableError:
        """An error about the whole file."""
        return TableError(Problem(message, hint, self.path))

    def _open(self, path: Path) -> zipfile.ZipFile:
        try:
            with path.open("rb") as stream:
                start = stream.read(512)
        except OSError as error:
            raise self.refuse(f"cannot be read: {error.strerror or error}") from None
        if start[:8] == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
            raise self.refuse("the workbook is encrypted, or in the old .xls format", "remove its password, or save it as .xlsx")
        if start[:4] != b"PK\x03\x04":
            kind = "an HTML page" if start.lstrip().lower().startswith((b"<!doctype html", b"<html", b"<table")) else ""
            kind = kind or ("empty" if not start else "XML" if start.lstrip()[:5] == b"<?xml" else "")
            if not kind and b"\x00" not in start:
                kind = "text, perhaps CSV"
            said = f"this is {kind}, not a workbook" if kind else "this is not a workbook"
            raise self.refuse(said, "open it in a spreadsheet program and save it as .xlsx")
        try:
            archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            raise self.refuse("the workbook is cut off or damaged", "copy it again from where it came from") from None
        total = 0
        for info in archive.infolist():
            total += info.file_size
            sheet = info.filename.startswith("xl/worksheets/")
            too_dense = info.file_size > 50_000_000 and info.file_size > MAX_RATIO * max(info.compress_size, 1)
            if too_dense or total > MAX_SHEET or (not sheet and info.file_size > MAX_PART and not info.filename.endswith("sharedStrings.xml")):
                archive.close()
                raise self.refuse(f"the workbook would unpack to {total / 1e9:,.1f} GB or more; it is refused")
            if info.flag_bits & 1:
                archive.close()
                raise self.refuse("the workbook is encrypted", "remove its password")
        names = set(archive.namelist())
        if "xl/workbook.xml" not in names and not any(name.endswith("workbook.xml") for name in names):
            archive.close()
            raise self.refuse("this zip file is not an .xlsx workbook")
        if "xl/vbaProject.bin" in names:
            self.notes.append("its macros are not carried over")
        if any(name.startswith("xl/externalLinks/") for name in names):
            self.notes.append("its links to other workbooks are not followed")
        return archive

    def read(self, part: str) -> bytes:
        """A part as bytes. Raises KeyError when there is none."""
        with self.zip.open(part) as stream:
            data = stream.read(MAX_PART * 2 + 1)
        if len(data) > MAX_PART * 2:
            raise self.refuse(f"its part {part} is larger than {MAX_PART * 2 / 1e6:,.0f} MB")
        self.safe(data[:4096], part)
        return data

    def safe(self, start: bytes, part: str) -> None:
        """Refuse XML that declares entities: a workbook has no use for them."""
        if b"<!DOCTYPE" in start or b"<!ENTITY" in start:
            raise self.refuse(f"its part {part} declares XML entities; such a file is refused")

    def tree(self, part: str) -> ElementTree.Element:
        """A small part parsed, namespaces taken off."""
        data = self.read(part)
        if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
            self.safe(b"<!DOCTYPE", part)
        root = ElementTree.fromstring(data)
        for element in root.iter():
            element.tag = _NS.sub("", element.tag)
        return root

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """The parts that a part refers to: id -> (kind, target part)."""
        where = PurePosixPath(part)
        rels = str(where.parent / "_rels" / f"{where.name}.rels")
        if rels not in self.zip.namelist():
            return {}
        found = {}
        for item in self.tree(rels):
            target = item.get("Target", "")
            if item.get("TargetMode") == "External":
                continue
            path = target.lstrip("/") if target.startswith("/") else _normal(str(where.parent / target))
            found[item.get("Id", "")] = (item.get("Type", "").rsplit("/", 1)[-1], path)
        return found

    def _sheets(self) -> list[SheetPart]:
        root = self.tree("xl/workbook.xml")
        relations = self.relations("xl/workbook.xml")
        found = []
        for item in root.iter("sheet"):
            rel = next((value for key, value in item.attrib.items() if key.endswith("id") and key != "sheetId"), "")
            kind, part = relations.get(rel, ("", ""))
            if kind != "worksheet" or part not in self.zip.namelist():
                continue
            sheet = SheetPart(item.get("name", ""), part, hidden=item.get("state", "visible") != "visible")
            for kind, target in self.relations(part).values():
                if kind == "table" and target in self.zip.namelist():
                    table = self.tree(target)
                    sheet.tables[table.get("displayName") or table.get("name") or ""] = table.get("ref", "")
            found.append(sheet)
        if not found:
            raise self.refuse("the workbook has no sheets")
        return found

    def _date_styles(self) -> set[int]:
        """The cell styles that show a number as a date or time."""
        if "xl/styles.xml" not in self.zip.namelist():
            return set()
        root = self.tree("xl/styles.xml")
        custom = {}
        for item in root.iter("numFmt"):
            code = re.sub(r'"[^"]*"|\\.|\[[^\]]*\]', "", item.get("formatCode", ""))
            custom[int(item.get("numFmtId", "0"))] = bool(re.search(r"[ymdhs]", code.lower())) and "general" not in code.lower()
        codes = {int(item.get("numFmtId", "0")): item.get("formatCode", "") for item in root.iter("numFmt")}
        cells = root.find("cellXfs")
        dates = set()
        for index, item in enumerate(cells if cells is not None else []):
            number = int(item.get("numFmtId", "0"))
            self.formats[index] = codes.get(number, "") or _BUILT_IN.get(number, "")
            if number in _DATE_FORMATS or custom.get(number, False):
                dates.add(index)
        return dates

    def shared_text(self, index: int) -> str:
        """A text that cells refer to by number."""
        if self.texts is None:
            self.texts = []
            if "xl/sharedStrings.xml" in self.zip.namelist():
                with self.zip.open("xl/sharedStrings.xml") as stream:
                    self.safe(stream.read(4096), "xl/sharedStrings.xml")
                with self.zip.open("xl/sharedStrings.xml") as stream:
                    parts: list[str] = []
                    phonetic = 0
                    for event, item in ElementTree.iterparse(stream, ("start", "end")):
                        tag = _NS.sub("", item.tag)
                        if tag in ("rPh", "phoneticPr"):
                            phonetic += 1 if event == "start" else -1
                        if event == "start":
                            continue
                        if tag == "t" and not phonetic:
                            parts.append(item.text or "")
                        elif tag == "si":
                            self.texts.append("".join(parts))
                            parts = []
                            item.clear()
        return self.texts[index] if index < len(self.texts) else ""

    def sheet(self, title: str) -> SheetPart | None:
        """A sheet by title, case aside."""
        return next((sheet for sheet in self.sheets if sheet.title.lower() == title.lower()), None)

    def chunks(self, part: str) -> Iterator[bytes]:
        """A sheet's XML in pieces that each end at the end of a row."""
        with self.zip.open(part) as stream:
            rest = b""
            first = True
            prefix = b""
            while True:
                data = stream.read(CHUNK)
                if first:
                    self.safe(data[:4096], part)
                    found = re.search(rb"<(\w+):worksheet\b", data[:4096])
                    prefix = found.group(1) if found else b""
                    first = False
                rest += re.sub(rb"(</?)" + prefix + rb":", rb"\1", data) if prefix else data
                if not data:
                    yield rest
                    return
                cut = rest.rfind(b"</row>")
                if cut > 0 and not prefix:
                    yield rest[: cut + 6]
                    rest = rest[cut + 6 :]


def _normal(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
