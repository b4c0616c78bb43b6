"""The sheet Assumptions of a workbook that comes back: what it says otherwise than the engine goes into the table."""

from __future__ import annotations

from collections.abc import Iterator

from scenario.book import timing
from scenario.book.book import Book, Scalar
from scenario.book.scope import scalar_name
from scenario.common.errors import nearest
from scenario.common.yamltree import YamlNode
from scenario.model import shared
from scenario.workbooks.cells import Cell
from scenario.workbooks.form import BY_TITLE, DEFAULT
from scenario.workbooks.found import BAD, listing, show
from scenario.workbooks.sheets import Sheets, at

Found = dict[str, tuple[str, Cell | None]]
"""The place and the cell of each assumption's value."""


def read_assumptions(sheets: Sheets, root: YamlNode, base: Book) -> None:
    """Put the values of the sheet Assumptions into the table's tree; say which rows are gone, and which are not known."""
    found = _found(sheets)
    if found is None:
        return
    for name, scalar in base.scalars.items():
        if name in found:
            _take(sheets, root, base, scalar, *found[name])
    gone = list(_gone(sheets, base, found))
    if gone:
        sheets.note(f"Assumptions: there is no row for {listing(gone)}")
    for name in found.keys() - base.scalars.keys():
        _unknown(sheets, root, base, name, *found[name])


def _found(sheets: Sheets) -> Found | None:
    header = sheets.header("Assumptions", ("name", "value"))
    if header is None:
        return None
    sheets.not_carried(header, BY_TITLE["Assumptions"].columns)
    found: Found = {}
    place_of = sheets.remember("Assumptions", header)
    for row in sheets.body(header, "name"):
        name = header.cell(row, "name")
        if name is not None and isinstance(name.value, str) and name.value:
            place_of.rows[row.number] = name.value
            sheets.use(header, row, ("name", "value"))
            found[name.value] = header.place("value", row.number), header.cell(row, "value")
    return found


def _gone(sheets: Sheets, base: Book, found: Found) -> Iterator[str]:
    unused = unused_time_models(sheets, base) if base.scalars.keys() - found.keys() else set()
    for name, scalar in base.scalars.items():
        if name not in found and scalar.owner not in unused:
            yield f"{name} ({show(scalar.value)} applies)"


def unused_time_models(sheets: Sheets, base: Book) -> set[str]:
    """The time models that no row of the workbook used when it was written: it has no constants of theirs."""
    if "time_models" not in base.tables or sheets.workbook.sheet("Time models") is None:
        return set()
    header = sheets.header("Time models", ("name",))
    there = {header.text(row, "name") for row in sheets.body(header)} if header else set()
    return set(sheets.host.time_models) - there


def _take(sheets: Sheets, root: YamlNode, base: Book, scalar: Scalar, place: str, cell: Cell | None) -> None:
    name, parameter = scalar.name, scalar.parameter
    value = sheets.value_of(place, cell, parameter)
    if value is BAD or value == scalar.value:
        return
    if value is None:
        if not (parameter.derive or parameter.default is None):
            sheets.say(place, f"{name} is blank", f"type a value; the default is {show(parameter.default)}")
    elif name.endswith("_default") and scalar.owner:
        sheets.say(place, f"{name} is the fallback of a derived value and cannot be changed here",
                   f"type the value as {name.removesuffix('_default')}")  # fmt: skip
    else:
        sheets.found.places["Assumptions", name, "value"] = place
        sheets.set(root, _path(sheets, name, scalar.owner, base), at(value, place))


def _path(sheets: Sheets, name: str, owner: str, base: Book) -> tuple[str, ...]:
    """Where a table says the value of an assumption."""
    if not owner:
        short = name.removeprefix(DEFAULT)
        return (short,) if short == "time_model" else ("defaults", short)
    if owner not in base.methods:
        return "parameters", owner, name.removeprefix(timing.scalar_name(sheets.host.time_models[owner], ""))
    method = base.methods[owner]
    # As in this table, and as the author calls it.
    own = zip(method.parameters, sheets.host.methods[owner].parameters, strict=True)
    return "parameters", owner, next(plain for key, plain in own if scalar_name(method, key) == name)


def _unknown(sheets: Sheets, root: YamlNode, base: Book, name: str, place: str, cell: Cell | None) -> None:
    """A row that the sheet Source does not explain: a default all the same, or nothing that this engine knows."""
    short = name.removeprefix(DEFAULT)
    parameter = {**shared.INPUTS, **shared.SCALARS}.get(short) if short != name else None
    if parameter is None:
        hint = nearest(name, base.scalars)
        said = f"{place}: '{name}' is not an assumption of this engine and is passed over"
        sheets.note(f"{said}; {hint}" if hint else said)
        return
    value = sheets.value_of(place, cell, parameter)
    if value is not BAD and value is not None:
        sheets.set(root, ("defaults", short), at(value, place))
