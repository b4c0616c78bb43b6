"""The sheets Profiles and Curves of a workbook that comes back: series of numbers with a note and a source beside them."""

from __future__ import annotations

from dataclasses import dataclass, field

from scenario.book.book import Book
from scenario.catalogs import series
from scenario.common.yamltree import YamlNode
from scenario.formulas.vectors import POSITIONS, Profile
from scenario.workbooks.cells import Cell, Row
from scenario.workbooks.found import ANY, RATE, Header
from scenario.workbooks.sheets import Sheets, at, mapping_at

SAID = ("doc", "source")
DIALECTS = {"marginal": ("p", "rates", RATE), "conditional": ("a", "conditional", RATE), "lengths": ("E", "lengths", ANY)}
"""How a profile may be given: the letter of its columns, its key in a table, what its numbers may be."""

Said = dict[str, Cell | None]


def read_profiles(sheets: Sheets, root: YamlNode, base: Book) -> None:
    """Put the profiles that the sheet gives otherwise than the engine into the table's tree."""
    header = sheets.header("Profiles", ("profile", "p1"))
    if header is None:
        return
    seen: set[str] = set()
    for row in sheets.body(header, "profile"):
        name = header.text(row, "profile")
        if name:
            seen.add(name)
            _profile(sheets, root, header, row, name, base.vectors.profiles.get(name))
    sheets.come_back(header, seen, base.vectors.profiles)


def _profile(sheets: Sheets, root: YamlNode, header: Header, row: Row, name: str, old: Profile | None) -> None:
    mark, key, _ = DIALECTS[old.given if old else "marginal"]
    rates = _rates(sheets, header, row, old.given if old else "marginal")
    said = {note: header.cell(row, note) for note in SAID}
    if not rates:
        return
    sheets.use(header, row, (name for name in header.columns if name != "given"))
    if old is None and series.name_of(rates) == name:
        return  # given in place by a row, which says the same
    if old is None or list(old.values or old.rates) != rates or _said_anew(sheets, "Profiles", said):
        place = header.place(f"{mark}1", row.number)
        _series(sheets, root, ("profiles", name, key), at([at(rate, place) for rate in rates], place), said)


def _rates(sheets: Sheets, header: Header, row: Row, given: str) -> list[float]:
    """The numbers that are given, up to the first that follows from them."""
    mark, _, parameter = DIALECTS[given]
    rates: list[float] = []
    for k in range(1, POSITIONS + 1):
        cell = header.cell(row, f"{mark}{k}")
        if cell is None or cell.formula is not None:
            break
        value = sheets.value(header, row, f"{mark}{k}", parameter)
        if isinstance(value, float):
            rates.append(value)
    return rates


def _said_anew(sheets: Sheets, sheet: str, said: Said) -> bool:
    """Whether somebody typed a note or a source beside numbers."""
    return any(sheets.edited(sheet, cell) is not None for cell in said.values())


def _series(sheets: Sheets, root: YamlNode, path: tuple[str, str, str], values: YamlNode, said: Said) -> None:
    """Put a profile or a curve into the tree, with what the sheet says beside its numbers."""
    section, name, key = path
    old = root.value.get(section)
    known = old.value.get(name) if old is not None and isinstance(old.value, dict) else None
    bare = known is not None and not isinstance(known.value, dict)  # the table had no notes beside it
    parts = {}
    for note, cell in said.items():
        text = cell is not None and isinstance(cell.value, str) and cell.value
        if text and (not bare or sheets.edited(section.capitalize(), cell)):
            parts[note] = at(text, values.path)
    if parts or key not in ("rates", "points"):
        values = mapping_at({key: values, **parts}, values.path)
    sheets.set(root, (section, name), values)


@dataclass
class _Curve:
    """The points of one curve as the sheet gives them."""

    place: str
    said: Said
    points: list[list[float]] = field(default_factory=list)


def read_curves(sheets: Sheets, root: YamlNode, base: Book) -> None:
    """Put the curves that the sheet gives otherwise than the table into its tree."""
    header = sheets.header("Curves", ("curve", "x", "y")) if base.vectors.curves else None
    if header is None:
        return
    measured = {curve.name for curve, _ in base.table.measured}
    curves = _points(sheets, header, measured)
    for name, curve in curves.items():
        old = base.vectors.curves.get(name)
        same = old is not None and [list(point) for point in old.points] == curve.points
        if same and (name in measured or not _said_anew(sheets, "Curves", curve.said)):
            continue
        nodes = at([at([at(value, curve.place) for value in pair], curve.place) for pair in curve.points], curve.place)
        if name in measured:
            sheets.set(root, ("measured", name, "points"), nodes)
        else:
            _series(sheets, root, ("curves", name, "points"), nodes, curve.said)
    sheets.come_back(header, curves, base.vectors.curves)


def _points(sheets: Sheets, header: Header, measured: set[str]) -> dict[str, _Curve]:
    """The curves by name; what is said of a curve stands in its first row."""
    curves: dict[str, _Curve] = {}
    for row in sheets.body(header, "curve"):
        cell = header.cell(row, "curve")
        if cell is None or not isinstance(cell.value, str):
            continue
        pair = [sheets.value(header, row, axis, ANY) for axis in ("x", "y")]
        if not all(isinstance(value, float) for value in pair):
            continue
        first = cell.value not in curves
        sheets.use(header, row, ("curve", "x", "y", "slope", *(SAID if first and cell.value not in measured else ())))
        said = {note: header.cell(row, note) for note in SAID}
        curve = curves.setdefault(cell.value, _Curve(header.place("x", row.number), said))
        curve.points.append(pair)
    return curves
