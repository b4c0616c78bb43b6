"""The Scenarios sheet of a workbook that comes back: its rows of inputs, and what stands in place of formulas."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

from scenario.book.book import Book
from scenario.common.errors import nearest
from scenario.common.yamltree import Node
from scenario.model import kinds, serving, shared
from scenario.model.spec import Parameter
from scenario.tables.reader import CORE, Reader
from scenario.workbooks.cell_formulas import canonical
from scenario.workbooks.cells import Cell, Row, Sought, letter, rows
from scenario.workbooks.extras import formula_of
from scenario.workbooks.form import FIRST, GIVEN, OVERRIDE
from scenario.workbooks.found import ANY, BAD, UNKNOWN, Header, Typed, listing
from scenario.workbooks.sheets import Sheets

WHOLE = 20_000
"""Up to this many rows every formula is compared; in longer sheets a row's are when it lacks some or has some of its own."""
_SHARED = re.compile(rb'<c r="([A-Z]{1,3})[0-9]{1,7}"[^>]{0,60}><f t="shared" si="([0-9]{1,9})"/>')
"""A cell that shares its formula with others, as the exporter writes it: its column and which formula."""
_LITERAL = re.compile(r"(?<![\w$.])[0-9]+(?![\w.])")


class RowReader:
    """The Scenarios sheet: inputs by column, and values that stand in place of formulas."""

    def __init__(self, owner: Sheets, header: Header, base: Book) -> None:
        self.owner, self.header, self.base = owner, header, base
        self.known: dict[str, Parameter | None] = {"id": None, **dict.fromkeys((*CORE, "time_model"))}
        specs = Reader(owner.source, Node({}, 0, 0), owner.host, owner.max_rows).parameters
        self.known |= {**shared.INPUTS, **serving.INPUTS, **specs}
        self.inputs = self.input_columns()
        self.values: dict[str, list[Any]] = {}
        self.fine: dict[tuple[str, int], tuple[Cell, Any]] = {}
        self.numbers: list[int] = []
        self.first: dict[str, dict[Any, str]] = {name: {} for name in self.inputs}

    def input_columns(self) -> dict[str, int]:
        """The columns of the sheet that are inputs, by the input's own name."""
        columns = self.header.columns
        found: dict[str, int] = {}
        for name in self.known:
            if name + GIVEN in columns:
                found[name] = columns[name + GIVEN]
            elif name in columns and (name in ("id", *CORE, "isl", "osl") or name in shared.REQUIRED):
                found[name] = columns[name]
        for name in columns:
            if name.endswith(OVERRIDE):
                found[name] = columns[name]
                self.known[name] = ANY
        self.written: dict[str, str] = {}
        self.literals: set[str] = set()
        self.heads: set[str] = set()
        gone = [name for name in self.expected() if name.removesuffix(GIVEN) not in found]
        for name in gone:
            near = next((head for head in columns if head not in self.heads and (head.lower() == name.lower() or nearest(head, [name]))), "")
            place = f"{self.header.sheet.title}!{letter(columns[near])}{self.header.row}" if near else self.header.sheet.title
            said = f"the header '{near}' is not known" if near else f"the column '{name}' is gone"
            self.owner.say(place, said, f"did you mean '{name}'?" if near else "put it back, with this header")
        if gone:  # formulas that read it look changed, and are not
            self.written = {}
        return found

    def expected(self) -> list[str]:
        """The input columns that the workbook had when it was written; ``written`` gets the formulas of its first row."""
        header = self.owner.header("Formulas", ("column", "kind"))
        if header is None:
            return []
        listed: list[tuple[str, str, str]] = []
        for row in self.owner.body(header):
            cells = [row.cells.get(header.columns.get(key, 0)) for key in ("sheet", "kind", "column", "in the first row")]
            sheet, kind, name, formula = ("" if cell is None else str(cell.value) for cell in cells)
            if sheet == "Scenarios" and name:
                listed.append((kind, name, formula))
        # Formulas may have been sorted, so that its order no longer tells the columns.
        columns = next((witness.columns for witness in self.owner.witnesses if witness.columns), [name for _, name, _ in listed])
        self.heads = set(columns)
        letters = {letter(index): name for index, name in enumerate(columns, 1)}
        self.written = {name: canonical(formula, letters, FIRST) for _, name, formula in listed if formula}
        self.literals = {number for _, _, formula in listed for number in _LITERAL.findall(formula)}
        return [name for kind, name, _ in listed if kind == "input"]

    def read(self) -> None:
        owner, header, reading = self.owner, self.header, self.owner.found
        formulas = self.formula_columns()
        self.letters = {letter(column): name for name, column in header.columns.items()}
        self.seen: dict[tuple[str, str], bool] = {}
        self.masters: dict[int, tuple[str, str]] = {}
        self.shared: dict[tuple[str, int, str], bool] = {}
        by_column = {column: name for name, column in self.inputs.items()}
        others = {c: n for n, c in header.columns.items() if c not in {*formulas.values(), *by_column} and n}
        hidden: list[int] = []
        loose: dict[str, str] = {}
        width = max(header.columns.values())
        written = next((witness.columns for witness in owner.witnesses if witness.columns), None)
        reading.extra_columns.update({name: {} for name in others.values() if written and name not in written})
        shown: dict[str, list[Any]] = {name: [] for name in formulas} if owner.keep_shown else {}
        given: dict[str, dict[int, Any]] = {name: {} for name in self.inputs}
        for row in rows(owner.workbook, header.sheet, sought=self.sought({*by_column, *others}, sorted(formulas.values()))):
            if row.number <= header.row:
                continue
            index = len(self.numbers)
            filled = [(by_column[column], cell) for column, cell in row.cells.items() if column in by_column]
            if row.whole or len(filled) < len(row.cells):
                for column in row.cells:
                    if column > width or column not in header.named:
                        loose.setdefault(letter(column), f"{letter(column)}{row.number}")
                    elif column in others and not filled:
                        loose.setdefault(f"{others[column]} {row.number}", f"{letter(column)}{row.number}")
                    elif column in others:
                        reading.extra_columns.setdefault(others[column], {})[index] = row.cells[column]
            if not filled:
                continue
            if index >= owner.max_rows:
                raise owner.workbook.refuse(f"the workbook has more than {owner.max_rows:,} rows", "allow more with --max-rows")
            if row.hidden:
                hidden.append(row.number)
            self.numbers.append(row.number)
            for name, cell in filled:
                # Cells that look the same are one object; one that was in order once is in order again.
                fine = self.fine.get((name, id(cell)))
                given[name][index] = fine[1] if fine else self.checked(name, cell, row.number)
            if row.whole and row.formulas:
                self.compare(row, formulas)
            for name, values in shown.items():
                there = row.cells.get(formulas[name])
                if there is not None and there.kind == "none":
                    values.append(UNKNOWN)
                else:
                    values.append(None if there is None or (there.kind == "text" and there.value == "") else there.value)
        for name, found in given.items():
            self.values[name] = [None] * len(self.numbers)
            for index, value in found.items():
                self.values[name][index] = value
        reading.rows, reading.shown = self.numbers, shown
        if loose:
            reading.notes.append(f"{header.sheet.title}: not carried over, because they stand outside the columns with a header or the rows "
                                 f"with inputs: {listing(list(loose.values()))}")  # fmt: skip
        broken = list(dict.fromkeys(item.column for item in reading.typed if item.broken))
        if broken:
            reading.notes.append(f"{header.sheet.title}: the formulas of {listing(broken)} refer to what was deleted (#REF!); they are put back")
        if hidden:
            reading.notes.append(f"{header.sheet.title}: hidden rows count as well ({listing(hidden)}); delete a row to leave it out")
        for area in self.merged():
            owner.say(f"{header.sheet.title}!{area}", "merged cells: only the first of them holds a value", "unmerge them and fill each cell")
        if not self.numbers and owner.left_out is None:
            owner.say(header.sheet.title, "there are no rows below the header")

    def sought(self, columns: set[int], formulas: list[int]) -> Sought | None:
        """Which rows are read and compared whole: not those whose formulas are the very ones of a row that was in order."""
        self.alike: list[tuple[bytes, bytes]] = []
        self.candidate = self.alike
        if self.owner.keep_shown:
            return None
        last = max((int(end) for end in re.findall(r":[A-Z]+([0-9]+)(?: |$)", " ".join(self.header.sheet.tables.values()))), default=0)
        # In a longer sheet it has to do that a row holds as many formulas as it should, none of them in its own words.
        whole = self.header.row + (WHOLE if last <= self.header.row + WHOLE else 2)

        def wanted(row: int, text: bytes, found: int, pointing: int) -> bool:
            if row > whole:
                return 0 < found < len(formulas) or (bool(self.alike) and pointing != found)
            shared = _SHARED.findall(text)
            self.candidate = shared if len(shared) == found else []
            return not found or shared != self.alike or len(shared) != found

        until = max(columns)
        return Sought(columns, until, bisect_right(formulas, until), wanted)

    def formula_columns(self) -> dict[str, int]:
        """The computed columns that the sheet shows: those that had a formula when the workbook was written."""
        computed = set(self.written) or {name for name, item in self.base.fields.items() if item.role != "input"}
        inputs = set(self.inputs.values())
        return {name: column for name, column in self.header.columns.items() if column not in inputs and name in computed}

    def compare(self, row: Row, formulas: Mapping[str, int]) -> None:
        """Note values typed over formulas, and formulas that are not the ones that were written."""
        before = len(self.owner.found.typed)
        for name, column in formulas.items():
            cell = row.cells.get(column)
            place = f"{letter(column)}{row.number}"
            if cell is None or (cell.formula is not None and self.unchanged(name, cell, place, row.number)):
                continue
            index = len(self.numbers) - 1
            text = cell.formula if cell.shared is None else self.masters.get(cell.shared, ("", ""))[0]
            broken = "#REF!" in (text or "")
            self.owner.found.typed.append(Typed(self.header.sheet.title, place, index, name, cell.value, cell.formula, broken))
        self.alike = self.candidate if len(self.owner.found.typed) == before else []

    def unchanged(self, name: str, cell: Cell, place: str, row: int) -> bool:
        if cell.shared is None or cell.formula:
            formula_of(cell, place, self.masters)  # keeps the formula for those that share it
            return self.same(name, cell.formula or "", row)
        text, origin = self.masters.get(cell.shared, ("", ""))
        key = name, cell.shared, origin
        if not origin:  # its first cell was overwritten, and what it said went with it: nothing speaks against the engine's
            return True
        if key not in self.shared:
            # Filled down it is the same formula; filled to the right it reads other columns.
            same_column = origin.rstrip("0123456789") == place.rstrip("0123456789")
            here = text if same_column else formula_of(cell, place, self.masters) or ""
            self.shared[key] = self.same(name, here, int(origin.lstrip(ascii_uppercase)) if same_column else row)
        return self.shared[key]

    def same(self, name: str, text: str, row: int) -> bool:
        """Whether a formula that stands in a row is the one that was written."""
        if not self.written:  # the sheet Formulas is gone: nobody knows what was written
            return "#REF!" not in text
        if len(text) > 9_000:  # more than a spreadsheet takes
            return False
        # Most rows say the same; a row whose number may be taken for a number of the formula is looked at itself.
        key = name, text if str(row) in self.literals else text.replace(str(row), "#")
        if key not in self.seen:
            self.seen[key] = canonical(text, self.letters, row) == self.written.get(name, "")
        return self.seen[key]

    def merged(self) -> list[str]:
        """Merged areas that touch the rows."""
        areas = re.findall(rb'<mergeCell ref="([A-Z]{1,3}[0-9]{1,7}:[A-Z]{1,3}([0-9]{1,7}))"', self.header.sheet.tail)
        return [area.decode() for area, last in areas if int(last) > self.header.row][:20]

    def checked(self, name: str, cell: Cell, row: int) -> Any:
        """One input value; kept with its cell where there is nothing to say about it."""
        before = len(self.owner.source.problems) + len(self.owner.found.notes)
        value = self.taken(name, cell, row)
        if before == len(self.owner.source.problems) + len(self.owner.found.notes) and len(self.fine) < 50_000:
            self.fine[name, id(cell)] = cell, value
        return value

    def taken(self, name: str, cell: Cell, row: int) -> Any:
        """The value of an input cell; names are checked once per distinct value by the table's reader."""
        parameter = self.known[name]
        place = f"{self.header.sheet.title}!{letter(self.inputs[name])}{row}"
        value = self.owner.cell_value(place, cell, parameter)
        if value is BAD or value is None:
            return None
        if isinstance(value, str):
            self.first[name].setdefault(value, place)
        elif parameter is not None:
            said = kinds.value_problem(parameter, value)
            if said:
                self.owner.say(place, f"{name}: {said}")
                return None
        return value
