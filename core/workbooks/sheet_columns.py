"""The columns of the Scenarios sheet of a workbook that comes back: inputs, formulas, and the analyst's own."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scenario.book.book import Book
from scenario.common.errors import nearest
from scenario.common.yamltree import YamlNode
from scenario.model import serving, shared
from scenario.model.spec import Parameter
from scenario.tables.reader import CORE, Reader
from scenario.workbooks.cell_formulas import canonical
from scenario.workbooks.cells import letter
from scenario.workbooks.form import GIVEN, OVERRIDE
from scenario.workbooks.found import ANY, Header
from scenario.workbooks.sheets import Sheets

_LITERAL = re.compile(r"(?<![\w$.])[0-9]+(?![\w.])")


class Columns:
    """What each column of the sheet is; faults in its header are noted."""

    def __init__(self, owner: Sheets, header: Header, base: Book) -> None:
        self.owner, self.header = owner, header
        self.known: dict[str, Parameter | None] = {"id": None, **dict.fromkeys((*CORE, "time_model"))}
        """What each input may be; None for a name."""
        specs = Reader(owner.source, YamlNode({}, 0, 0), owner.host, owner.max_rows).parameters
        self.known |= {**shared.INPUTS, **serving.INPUTS, **specs}
        self.inputs = dict(self._inputs())
        """The columns that are inputs, by the input's own name."""
        listed = list(self._listed())
        # Formulas may have been sorted, so that its order no longer tells the columns.
        heads = owner.written or [name for _, name, _ in listed]
        self.letters = {letter(index): name for index, name in enumerate(heads, 1)}
        """The columns by letter when the workbook was written."""
        self.written = {name: canonical(formula, self.letters) for _, name, formula in listed if formula}
        """The formulas of the first row when the workbook was written, in terms of columns."""
        self.literals = {number for _, _, formula in listed for number in _LITERAL.findall(formula)}
        """The numbers in them."""
        if self._gone([name for kind, name, _ in listed if kind == "input"], set(heads)):
            self.written = {}  # formulas that read what is gone look changed, and are not
        owner.found.gone = [name for name in self.written if name not in header.columns and name in base.fields]
        self.formulas = self._formulas(base)
        """The computed columns that the sheet shows: those that had a formula when the workbook was written."""
        engine = {*self.formulas.values(), *self.inputs.values()}
        self.others = {column: name for name, column in header.columns.items() if column not in engine and name}
        """The analyst's own columns."""

    def _formulas(self, base: Book) -> dict[str, int]:
        computed = set(self.written) or {name for name, item in base.fields.items() if item.role != "input"}
        inputs = set(self.inputs.values())
        return {name: at for name, at in self.header.columns.items() if at not in inputs and name in computed}

    def _inputs(self) -> Iterator[tuple[str, int]]:
        columns = self.header.columns
        always = {"id", *CORE, "isl", "osl", *shared.REQUIRED}
        for name in list(self.known):
            if name + GIVEN in columns:
                yield name, columns[name + GIVEN]
            elif name in columns and name in always:
                yield name, columns[name]
        for name in columns:
            if name.endswith(OVERRIDE):
                self.known[name] = ANY
                yield name, columns[name]

    def _listed(self) -> Iterator[tuple[str, str, str]]:
        """Kind, name and first formula of each column that the sheet Formulas lists."""
        header = self.owner.header("Formulas", ("column", "kind"))
        for row in self.owner.body(header) if header is not None else ():
            cells = [header.cell(row, key) if header else None for key in ("sheet", "kind", "column", "in the first row")]
            sheet, kind, name, formula = ("" if cell is None else str(cell.value) for cell in cells)
            if sheet == "Scenarios" and name:
                yield kind, name, formula

    def _gone(self, expected: list[str], heads: set[str]) -> bool:
        """Whether input columns are gone that the workbook had when it was written: each is a fault."""
        columns, title = self.header.columns, self.header.sheet.title
        gone = [name for name in expected if name.removesuffix(GIVEN) not in self.inputs]
        for name in gone:
            strange = (head for head in columns if head not in heads)
            near = next((head for head in strange if head.lower() == name.lower() or nearest(head, [name])), "")
            if near:
                place = f"{title}!{letter(columns[near])}{self.header.row}"
                self.owner.say(place, f"the header '{near}' is not known", f"did you mean '{name}'?")
            else:
                self.owner.say(title, f"the column '{name}' is gone", "put it back, with this header")
        return bool(gone)
