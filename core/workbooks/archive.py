"""Opens workbooks that come back from the world: safely, whatever program saved them, without changing them.

Only what is needed is read: sheet names, tables, shared texts, which number formats are dates. A file that is
not what it says, is encrypted, or would unpack to something enormous is refused in one line.
"""

from __future__ import annotations

import contextlib
import lzma
import re
import struct
import zipfile
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any
from xml.etree import ElementTree
from xml.parsers import expat

from scenario.common import inputs
from scenario.common.errors import Problem, TableError

MAX_TREE = 16_000_000
"""Largest part that is taken apart whole, in bytes."""
MAX_TEXTS = 512_000_000
"""Largest part of shared texts, in bytes."""
MAX_EVENTS = 40_000_000
"""Tags and pieces of text in it."""
MAX_ROW = 64_000_000
"""Largest row, in bytes."""
MAX_SHEET = 6_000_000_000
MAX_RATIO = 400
CHUNK = 8_000_000
AHEAD = 2
"""Pieces that are unpacked before they are asked for."""

DAMAGED = (
    ElementTree.ParseError, expat.ExpatError, LookupError, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error,
    lzma.LZMAError, struct.error, OSError, EOFError, ValueError, RuntimeError, OverflowError,
)  # fmt: skip
"""What a damaged file raises in the libraries that read it."""

_NS = re.compile(r"\{[^}]*\}")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ODD = re.compile(
    rb"<!\[CDATA\[|<!--|<(?:row|c|f|v)\b[^>]{0,200}=\s{0,9}'|<\w{1,20}:(?:row|c|worksheet)\b|<(?:row|c)\b[^>]{0,200}\s=|</(?:row|c|v|f)\s"
)
_BUILT_IN = {1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 11: "0.00E+00", 14: "yyyy-mm-dd", 22: "yyyy-mm-dd hh:mm"}
_DATE_FORMATS = {14, 15, 16, 17, 18, 19, 20, 21, 22, 45, 46, 47}


def legible(text: str) -> str:
    """A text without characters that no cell, terminal or file can hold."""
    return _CONTROL.sub("\ufffd", text)


class _Entities(Exception):
    """A part declares a document type, and with it perhaps entities."""


class _XmlBuilder(ElementTree.TreeBuilder):
    """Builds a tree without namespaces; refuses document types, in whatever encoding they come."""

    def start(self, tag: str, attrs: dict[str, str], /) -> ElementTree.Element:
        return super().start(_NS.sub("", tag), attrs)

    def end(self, tag: str, /) -> ElementTree.Element:
        return super().end(_NS.sub("", tag))

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise _Entities


class _Texts:
    """Collects shared texts; what they say of pronunciation is left out."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.parts: list[str] = []
        self.open = False
        self.phonetic = 0
        self.events = self.depth = 0

    def start(self, tag: str, attrs: dict[str, str]) -> None:
        self.events += 1
        self.depth += 1
        if self.depth > 30 or self.events > MAX_EVENTS:
            raise EOFError
        tag = _NS.sub("", tag)
        self.open = tag == "t"
        self.phonetic += tag == "rPh"

    def data(self, text: str) -> None:
        self.events += 1
        if self.open and not self.phonetic:
            self.parts.append(text)

    def end(self, tag: str) -> None:
        tag = _NS.sub("", tag)
        self.depth -= 1
        self.open = False
        self.phonetic -= tag == "rPh"
        if tag == "si":
            self.found.append("".join(self.parts))
            self.parts = []

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise _Entities


@dataclass
class SheetPart:
    """A sheet: its title, its part in the file, its tables (name -> range), whether it is hidden."""

    title: str
    part: str
    tables: dict[str, str] = field(default_factory=dict)
    hidden: bool = False
    tail: bytes = b""
    """What stands below the last row, once the rows have been read."""


class Workbook:
    """An opened workbook. Use as a context manager; the file itself is only ever read."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.notes: list[str] = []
        self.zip = self._open(Path(path))
        self.names = set(self.zip.namelist())
        self.texts: list[str] | None = None
        self.cells: dict[tuple[bytes, bytes], Any] = {}
        """Cells that :mod:`scenario.workbooks.cells` has taken apart, by attributes and inside: most look like others."""
        self.formats: dict[int, str] = {}
        """Number format by cell style; empty for the general one."""
        try:
            self.main = self._main()
            self.parts = dict(self.relations(self.main).values())
            self.sheets = self._sheets()
            self.dates = self._date_styles()
        except TableError:
            self.zip.close()
            raise

    def __enter__(self) -> Workbook:
        return self

    def __exit__(self, *error: object) -> None:
        self.zip.close()

    def refuse(self, message: str, hint: str = "") -> TableError:
        """An error about the whole file."""
        return TableError(Problem(message, hint, self.path))

    @contextlib.contextmanager
    def whole(self, part: str) -> Iterator[None]:
        """Whatever a damaged part makes a library raise becomes one clear line."""
        try:
            yield
        except _Entities:
            raise self.refuse(f"its part {part} declares XML entities; such a file is refused") from None
        except DAMAGED as error:
            said = f"the workbook is damaged: its part {part} cannot be read ({type(error).__name__})"
            raise self.refuse(said, "save it again from the program that made it, or copy it again from where it came from") from None

    def _open(self, path: Path) -> zipfile.ZipFile:
        with inputs.opened(path, inputs.WORKBOOK) as stream:
            start = stream.read(512)
        if start[:4] != b"PK\x03\x04":
            said, hint = _other_kind(start)
            raise self.refuse(said, hint)
        try:
            archive = zipfile.ZipFile(path)
        except (*DAMAGED, NotImplementedError):
            raise self.refuse("the workbook is cut off or damaged", "copy it again from where it came from") from None
        said, hint = _refused(archive)
        if said:
            archive.close()
            raise self.refuse(said, hint)
        names = archive.namelist()
        if any(name.endswith("vbaProject.bin") for name in names):
            self.notes.append("its macros are not carried over")
        if any(name.startswith("xl/externalLinks/") for name in names):
            self.notes.append("its links to other workbooks are not followed")
        return archive

    def read(self, part: str) -> bytes:
        """A small part as bytes."""
        with self.whole(part), self.zip.open(part) as stream:
            data = stream.read(MAX_TREE + 1)
        if len(data) > MAX_TREE:
            raise self.refuse(f"its part {part} is larger than {MAX_TREE / 1e6:,.0f} MB; it is refused")
        return data

    def tree(self, part: str) -> ElementTree.Element:
        """A small part parsed, namespaces taken off."""
        data = self.read(part)
        with self.whole(part):
            parser = ElementTree.XMLParser(target=_XmlBuilder())
            parser.feed(data)
            root: ElementTree.Element = parser.close()
            return root

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """The parts that a part refers to: id -> (kind, target part)."""
        where = PurePosixPath(part)
        rels = _normal(str(where.parent / "_rels" / f"{where.name}.rels"))
        if rels not in self.names:
            return {}
        found = {}
        for item in self.tree(rels):
            target = item.get("Target", "").replace("\\", "/")
            if item.get("TargetMode") == "External":
                continue
            path = target.lstrip("/") if target.startswith("/") else _normal(str(where.parent / target))
            found[item.get("Id", "")] = (item.get("Type", "").rsplit("/", 1)[-1], path)
        return found

    def _main(self) -> str:
        """The part that lists the sheets, wherever the program that saved the file has put it."""
        for kind, target in self.relations("").values():
            if kind == "officeDocument" and target in self.names:
                if target.endswith(".bin"):
                    raise self.refuse("this is a binary workbook (.xlsb)", "save it as .xlsx")
                return target
        if "xl/workbook.xml" not in self.names:
            raise self.refuse("the workbook is damaged: it has no list of sheets", "save it again from the program that made it")
        return "xl/workbook.xml"

    def _sheets(self) -> list[SheetPart]:
        relations = self.relations(self.main)
        found = []
        for item in self.tree(self.main).iter("sheet"):
            rel = next((value for key, value in item.attrib.items() if key.endswith("id") and key != "sheetId"), "")
            kind, part = relations.get(rel, ("", ""))
            if kind == "worksheet" and part in self.names:
                hidden = item.get("state", "visible") != "visible"
                found.append(SheetPart(legible(item.get("name", "")), part, self._tables(part), hidden))
        if not found:
            raise self.refuse("the workbook has no sheets")
        return found

    def _tables(self, part: str) -> dict[str, str]:
        """The tables of a sheet: name -> range."""
        targets = [target for kind, target in self.relations(part).values() if kind == "table" and target in self.names]
        tables = map(self.tree, targets)
        return {table.get("displayName") or table.get("name") or "": table.get("ref", "") for table in tables}

    def _date_styles(self) -> set[int]:
        """The cell styles that show a number as a date or time."""
        part = self.parts.get("styles", "xl/styles.xml")
        if part not in self.names:
            return set()
        root = self.tree(part)
        codes = {_whole(item.get("numFmtId")): item.get("formatCode", "") for item in root.iter("numFmt")}
        cells = root.find("cellXfs")
        dates = set()
        for index, item in enumerate(cells if cells is not None else []):
            number = _whole(item.get("numFmtId"))
            self.formats[index] = legible(codes.get(number, "") or _BUILT_IN.get(number, ""))
            if _shows_date(codes[number]) if number in codes else number in _DATE_FORMATS:
                dates.add(index)
        return dates

    def shared_text(self, index: int) -> str | None:
        """A text that cells refer to by number; None when there is no such text."""
        if self.texts is None:
            part = self.parts.get("sharedStrings", "xl/sharedStrings.xml")
            self.texts = self._shared_texts(part) if part in self.names else []
        return self.texts[index] if index < len(self.texts) else None

    def _shared_texts(self, part: str) -> list[str]:
        texts = _Texts()
        with self.whole(part), self.zip.open(part) as stream:
            parser = ElementTree.XMLParser(target=texts)
            size = 0
            while data := stream.read(CHUNK):
                size += len(data)
                if size > MAX_TEXTS:
                    raise self.refuse(f"its part {part} is larger than {MAX_TEXTS / 1e6:,.0f} MB; it is refused")
                before = texts.events
                parser.feed(data)
                if texts.events == before:  # a tag of megabytes
                    raise EOFError
            parser.close()
        return texts.found

    def sheet(self, title: str) -> SheetPart | None:
        """A sheet by title, case aside."""
        return next((sheet for sheet in self.sheets if sheet.title.lower() == title.lower()), None)

    def chunks(self, part: str) -> Iterator[bytes]:
        """A sheet's XML in pieces of whole rows: in UTF-8, names without prefixes, attributes in double quotes."""
        with self.whole(part), self.zip.open(part) as stream:
            first = stream.read(CHUNK)
            pieces = _pieces(first, stream)
            rest = b""
            for piece in pieces if _usual(first) else _rewritten(pieces):
                rest += piece
                cut = rest.rfind(b"<row")
                if cut > 0:
                    yield rest[:cut]
                    rest = rest[cut:]
                if len(rest) > MAX_ROW:
                    raise self.refuse(f"a row in its part {part} is larger than {MAX_ROW / 1e6:,.0f} MB; it is refused")
            if not rest.rstrip().endswith((b"</worksheet>", b"/>")):
                raise EOFError
            yield rest


def _other_kind(start: bytes) -> tuple[str, str]:
    """What a file is that is no zip archive, by its first bytes; and what to do."""
    if start[:8] == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
        return "the workbook is encrypted, or in the old .xls format", "remove its password, or save it as .xlsx"
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    kind = ""
    if not start:
        kind = "empty"
    elif text.startswith((b"<!doctype html", b"<html", b"<table")):
        kind = "an HTML page"
    elif text.startswith(b"<?xml"):
        kind = "XML"
    elif b"\x00" not in start:
        kind = "text, perhaps CSV"
    hint = "open it in a spreadsheet program and save it as .xlsx"
    return (f"this is {kind}, not a workbook" if kind else "this is not a workbook"), hint


def _refused(archive: zipfile.ZipFile) -> tuple[str, str]:
    """Why a zip archive is refused, if it is, and what to do: it is too large, locked, or no workbook."""
    total = 0
    for info in archive.infolist():
        total += info.file_size
        too_dense = info.file_size > 50_000_000 and info.file_size > MAX_RATIO * max(info.compress_size, 1)
        if too_dense or total > MAX_SHEET:
            return f"the workbook would unpack to {total / 1e9:,.1f} GB or more; it is refused", ""
        if info.flag_bits & 1:
            return "the workbook is encrypted", "remove its password"
    if not any(name.startswith("xl/") or name.endswith("workbook.xml") for name in archive.namelist()):
        return "this zip file is not an .xlsx workbook", "open it in a spreadsheet program and save it as .xlsx"
    return "", ""


def _usual(first: bytes) -> bool:
    """Whether a sheet's XML is of the kind that spreadsheet programs write; refuses what declares entities or is no sheet."""
    begins = first[:65_536].find(b"<worksheet")
    if begins >= 0 and (b"<!DOCTYPE" in first[:begins] or b"<!ENTITY" in first[:begins]):
        raise _Entities
    if b"worksheet" not in first[:65_536].replace(b"\x00", b""):
        raise EOFError
    declared = re.search(rb"<\?xml[^>]*encoding=[\"']([^\"']*)", first[: min(max(begins, 0), 500)])
    plain = declared is None or declared.group(1).lower() in (b"utf-8", b"utf8", b"us-ascii", b"ascii")
    return begins >= 0 and plain and not _ODD.search(first)


def _pieces(first: bytes, stream: IO[bytes]) -> Iterator[bytes]:
    # Unpacking takes a good part of the time, and goes on beside the reading of what is unpacked already.
    with ThreadPoolExecutor(max_workers=1) as pool:
        ahead = deque([pool.submit(stream.read, CHUNK) for _ in range(AHEAD)])
        while first:
            yield first
            first = ahead.popleft().result()
            ahead.append(pool.submit(stream.read, CHUNK))


def _rewritten(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """XML of an unusual kind (prefixes, single quotes, comments, other encodings) as the usual one."""
    out: list[str] = []

    def escape(text: str) -> str:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    def start(name: str, attributes: dict[str, str]) -> None:
        listed = sorted(attributes.items(), key=lambda item: item[0] != "r")  # the place of a row or cell comes first
        said = "".join(f' {key.rpartition(":")[2]}="{escape(value).replace(chr(34), "&quot;")}"' for key, value in listed if key[:5] != "xmlns")
        out.append(f"<{name.rpartition(':')[2]}{said}>")

    def doctype(*declared: object) -> None:
        raise _Entities

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: out.append(f"</{name.rpartition(':')[2]}>")
    parser.CharacterDataHandler = lambda text: out.append(escape(text))
    parser.StartDoctypeDeclHandler = doctype
    silent = 0
    for piece in pieces:
        for at in range(0, len(piece), CHUNK // 8):
            parser.Parse(piece[at : at + CHUNK // 8], False)
            silent = 0 if out else silent + 1
            if silent > 3:  # a tag of megabytes, of which the parser would begin anew each time
                raise EOFError
            yield "".join(out).encode("utf-8", "replace")
            out.clear()
    parser.Parse(b"", True)
    yield "".join(out).encode("utf-8", "replace")


def _whole(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0


def _shows_date(code: str) -> bool:
    plain = re.sub(r'"[^"]*"|\\.|_.|\*.|\[[^\]]*\]', "", code).lower()
    return bool(re.search(r"[ymdhs]", plain)) and "general" not in plain


def _normal(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
