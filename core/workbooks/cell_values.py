"""The values of input cells: a number, a name, or nothing; anything else is a fault of that cell."""

from __future__ import annotations

from typing import Any

from scenario.catalogs.catalog import number_hint
from scenario.common.errors import Problem
from scenario.common.yamltree import Source
from scenario.model import kinds
from scenario.model.spec import Parameter
from scenario.workbooks.cells import Cell, blank
from scenario.workbooks.found import BAD, Reading, plain, show

NO_NAME = {"date": "a date", "flag": "a TRUE/FALSE"}


class Faults:
    """What is wrong with a workbook, by sheet and cell, and what is said of it without being wrong."""

    def __init__(self, source: Source, found: Reading) -> None:
        self.source, self.found = source, found

    def say(self, place: str, message: str, hint: str = "") -> None:
        """Note a fault."""
        self.source.problems.append(Problem(message, hint, self.source.file, place=place))

    def bad(self, place: str, message: str, hint: str = "") -> Any:
        """Note a fault of a cell, which has no value then."""
        self.say(place, message, hint)
        return BAD

    def note(self, said: str) -> None:
        """Note what is no fault."""
        self.found.notes.append(said)

    def value_of(self, place: str, cell: Cell | None, parameter: Parameter | None) -> Any:
        """The value of an input cell: a float, a text, or None for a blank one; ``BAD`` with a fault noted."""
        if cell is None or blank(cell):
            return None
        if cell.kind == "error":
            return self.bad(place, f"the cell shows {cell.value}", "type a value")
        if cell.formula is not None and cell.value == "":
            hint = "type the value, or open and save the file in a spreadsheet program"
            return self.bad(place, "an input holds a formula without a value", hint)
        if cell.formula is not None:
            taken = f"{place}: the value {show(cell.value)} of a formula in an input is taken"
            self.note(f"{taken}; the formula is not carried over")
        if parameter is None or kinds.is_text(parameter):
            return self._name(place, cell)
        return self._number(place, cell, parameter)

    def _name(self, place: str, cell: Cell) -> Any:
        if cell.kind in NO_NAME:
            return self.bad(place, f"{NO_NAME[cell.kind]} stands where a name belongs", "type the name")
        return plain(cell.value) if cell.kind == "number" else str(cell.value).strip()

    def _number(self, place: str, cell: Cell, parameter: Parameter) -> Any:
        if cell.kind == "number" or (cell.kind == "flag" and parameter.kind == "flag"):
            return float(cell.value)
        if cell.kind == "date":
            hint = "type the number, and set the cell's format back to a number"
            return self.bad(place, "a date stands where a number belongs", hint)
        if cell.kind == "flag":
            return self.bad(place, f"{str(cell.value).upper()} stands where a number belongs", "type the number")
        text = str(cell.value)
        hint = number_hint(text) or "type the number"
        return self.bad(place, f"'{text[:40]}' is text where a number belongs", hint)
