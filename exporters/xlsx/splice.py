"""Finishes the file that openpyxl began: shown values for its formulas, and the rows of the large sheet.

openpyxl writes formulas without values, so that previews and data tools would read blanks; and it is slow
for many rows. Here the saved skeleton is copied part by part: small sheets get their values put in, the
scenario sheet its rows, which polars puts together as text, column by column.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, BinaryIO

import polars as pl

from scenario.exporters.xlsx.cells import escape, value_xml

ROW = "\x00"
"""Stands for the row number in a formula template."""
SLICE = 2_000
LEVEL = 6
SHARE = 1_000
"""Rows from which a column's formula is written once and shared: half the text, and quicker to open."""

_FORMULA_CELL = re.compile(r'<c r="([A-Z]+[0-9]+)"([^>]*)><f>(.*?)</f><v ?/?>(?:</v>)?</c>', re.DOTALL)


@dataclass(frozen=True)
class ColumnXml:
    """One column of the large sheet: its letter, style, and formula template (empty for an input).

    Of kind ``xml`` the frame holds the cells themselves, with the row number left open.
    """

    name: str
    letter: str
    style: int
    formula: str
    kind: str


@dataclass(frozen=True)
class Rows:
    """The rows of a large sheet: their XML, the range that the sheet then has, and one in which numbers may
    stand as text."""

    xml: Iterator[bytes]
    dimension: str
    ignored: str


def written_at() -> datetime:
    """When the file is written: now, or at ``SOURCE_DATE_EPOCH``, with which a table always gives the same bytes.

    https://reproducible-builds.org/specs/source-date-epoch/
    """
    said = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(said), UTC) if said.isdecimal() and len(said) < 12 else datetime.now(UTC)


def finish(skeleton: BinaryIO, out: BinaryIO, shown: Mapping[str, Mapping[str, Any]], large: Mapping[str, Rows],
           texts: Collection[str] = ()) -> None:  # fmt: skip
    """Copy the workbook ``skeleton`` to ``out`` with values and rows put in.

    ``shown`` maps a sheet's part name to what its formulas show by cell, ``large`` the part name of a large sheet
    to its rows. ``texts`` are the parts of sheets of text, on which a number may stand as one without a warning mark.
    """
    stamp = written_at()
    with (
        zipfile.ZipFile(skeleton) as source,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as target,
    ):
        for info in source.infolist():
            entry = zipfile.ZipInfo(
                info.filename, (max(stamp.year, 1980), *stamp.timetuple()[1:6])
            )  # zip begins at 1980
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = info.external_attr
            with target.open(entry, "w", force_zip64=info.filename in large) as part:
                for chunk in _chunks(info.filename, source.read(info), shown, large, texts):
                    part.write(chunk)


def _chunks(name: str, data: bytes, shown: Mapping[str, Mapping[str, Any]], large: Mapping[str, Rows],
            texts: Collection[str]) -> Iterator[bytes]:  # fmt: skip
    """A part of the file as it is written."""
    if name in large:
        head, tail = _around(data.decode(), shown.get(name, {}), large[name].dimension, large[name].ignored)
        yield head.encode()
        yield from large[name].xml
        yield tail.encode()
        return
    if name in shown:
        unmarked = "A1:Z1048576" if name in texts else ""
        data = _unmarked(_with_values(data.decode(), shown[name]), unmarked).encode()
    elif name.startswith("xl/worksheets/_rels/"):
        # Some readers do not follow part names that begin at the root.
        data = data.replace(b'Target="/xl/', b'Target="../')
    elif name == "xl/styles.xml":
        data = _fonts_in_order(data.decode()).encode()
    elif name == "docProps/app.xml":
        # A program that does not know the writer recalculates; openpyxl's name would stop that.
        data = re.sub(rb"<Application>.*?</Application>", b"<Application>scenario</Application>", data)
    elif name == "docProps/core.xml":
        moment = f"{written_at():%Y-%m-%dT%H:%M:%SZ}".encode()
        data = re.sub(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*", rb"\g<1>" + moment, data)
    yield data


_FONT_ORDER = ("b", "i", "strike", "condense", "extend", "outline", "shadow", "u", "vertAlign", "sz", "color", "name", "family", "charset", "scheme")
"""The parts of a font in the order of the schema (ECMA-376, CT_Font), in which openpyxl does not write them."""


def _fonts_in_order(xml: str) -> str:
    """The style sheet with the parts of each font in the order that the schema asks for."""

    def ordered(match: re.Match[str]) -> str:
        parts = re.findall(r"<(\w+)[^>]*/>", match[1])
        found = list(zip(parts, re.findall(r"<\w+[^>]*/>", match[1]), strict=True))
        return "<font>" + "".join(text for _, text in sorted(found, key=lambda part: _FONT_ORDER.index(part[0]))) + "</font>"

    return re.sub(r"<font>((?:<\w+[^>]*/>)+)</font>", ordered, xml)


def _with_values(xml: str, shown: Mapping[str, Any]) -> str:
    def fill(match: re.Match[str]) -> str:
        cell, attributes, formula = match.groups()
        if cell not in shown:
            return match.group()
        kind, value = value_xml(shown[cell])
        return f'<c r="{cell}"{attributes}{kind}><f>{formula}</f><v>{value}</v></c>'

    return _FORMULA_CELL.sub(fill, xml)


def _around(xml: str, shown: Mapping[str, Any], dimension: str, ignored: str) -> tuple[str, str]:
    xml = _with_values(re.sub(r'<dimension ref="[^"]*"', f'<dimension ref="{dimension}"', xml), shown)
    head, _, tail = _unmarked(xml, ignored).partition("</sheetData>")
    return head, "</sheetData>" + tail


def _unmarked(xml: str, area: str) -> str:
    """The sheet with no mark at numbers that stand as text in an area."""
    if not area:
        return xml
    mark = f'<ignoredErrors><ignoredError sqref="{area}" numberStoredAsText="1"/></ignoredErrors>'
    place = re.search(r"<(drawing|legacyDrawing|tableParts)\b", xml)
    at = place.start() if place else xml.rindex("</worksheet>")
    return xml[:at] + mark + xml[at:]


def row_chunks(frame: pl.DataFrame, columns: list[ColumnXml], first: int) -> Iterator[bytes]:
    """The XML of the rows, a slice at a time; ``first`` is the sheet row of the first one."""
    last = first + frame.height - 1
    shared = frame.height > SHARE
    expression = _row_expression(columns)
    if shared:
        yield _rows_text(frame.head(1), _row_expression(columns, last), first)
        expression = _row_expression(columns, last, repeat=True)
    for start in range(1 if shared else 0, frame.height, SLICE):
        yield _rows_text(frame.slice(start, SLICE), expression, first + start)


def _rows_text(part: pl.DataFrame, expression: pl.Expr, first: int) -> bytes:
    numbers = pl.int_range(first, first + part.height, eager=True).cast(pl.String)
    text = part.lazy().with_columns(numbers.alias(ROW)).select(expression).collect().to_series()
    return "".join(text.to_list()).encode()


def _row_expression(columns: list[ColumnXml], last: int = 0, *, repeat: bool = False) -> pl.Expr:
    """A row as text. With ``last`` its formulas are the first of a shared run down to that row, or repeat it."""
    row = pl.col(ROW)
    parts: list[pl.Expr | str] = ['<row r="', row, '">']
    for index, column in enumerate(columns):
        if column.formula and repeat:
            parts += _cell(column, row, [f'<f t="shared" si="{index}"/>'])
        elif column.kind == "xml":
            parts.append(pl.col(column.name).str.replace_all(ROW, row, literal=True))
        elif column.formula:
            share = (
                [f'<f t="shared" ref="{column.letter}', row, f':{column.letter}{last}" si="{index}">']
                if last
                else ["<f>"]
            )
            parts += _cell(column, row, [*share, *_formula_text(column, row), "</f>"])
        else:
            parts.append(_constant_cell(column, row))
    parts.append("</row>")
    return pl.concat_str([pl.lit(part) if isinstance(part, str) else part for part in _joined(parts)])


def _joined(parts: list[pl.Expr | str]) -> Iterator[pl.Expr | str]:
    """Neighbouring pieces of fixed text as one."""
    text = ""
    for part in parts:
        if isinstance(part, str):
            text += part
            continue
        if text:
            yield text
            text = ""
        yield part
    if text:
        yield text


def _cell(column: ColumnXml, row: pl.Expr, formula: list[pl.Expr | str]) -> list[pl.Expr | str]:
    value = pl.col(column.name)
    kind: pl.Expr | str = ' t="str"'
    if column.kind != "text":
        # A blank is shown as an empty text: the cell's type then differs from row to row.
        own = ' t="b"' if column.kind == "flag" else ""
        kind = pl.when(value.is_null()).then(pl.lit(' t="str"')).otherwise(pl.lit(own))
    start: list[pl.Expr | str] = [f'<c r="{column.letter}', row, f'" s="{column.style}"', kind, ">"]
    return [*start, *formula, "<v>", value_text(value, column.kind).fill_null(""), "</v></c>"]


def _formula_text(column: ColumnXml, row: pl.Expr) -> list[pl.Expr | str]:
    parts: list[pl.Expr | str] = []
    for index, piece in enumerate(escape(column.formula).split(ROW)):
        parts += [row, piece] if index else [piece]
    return parts


def _constant_cell(column: ColumnXml, row: pl.Expr) -> pl.Expr:
    value = pl.col(column.name)
    start = [pl.lit(f'<c r="{column.letter}'), row, pl.lit(f'" s="{column.style}"')]
    empty = pl.concat_str([*start, pl.lit("/>")])
    if column.kind == "text":
        text = [
            pl.lit(' t="inlineStr"><is><t xml:space="preserve">'),
            value_text(value, "text"),
            pl.lit("</t></is></c>"),
        ]
    else:
        text = [pl.lit("><v>"), value_text(value, column.kind), pl.lit("</v></c>")]
    return pl.when(value.is_null()).then(empty).otherwise(pl.concat_str([*start, *text]))


def value_text(value: pl.Expr, kind: str) -> pl.Expr:
    """A column's values as the text of a cell; null stays null."""
    if kind == "text":
        text = value.str.replace_all(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x{fffe}\x{ffff}]", "\ufffd").str.replace_all(
            r"_(x[0-9A-Fa-f]{1,4}_)", "_x005F_${1}"
        )
        return text.str.slice(0, 32_767).str.replace_many(["&", "<", ">"], ["&amp;", "&lt;", "&gt;"])
    if kind == "flag":
        return pl.when(value).then(pl.lit("1")).when(~value).then(pl.lit("0"))
    return value.cast(pl.String)
