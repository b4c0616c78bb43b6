"""The Scenarios sheet of a workbook that comes back: its rows of inputs, and what stands in place of formulas."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import Any, Protocol

import polars as pl

from scenario import contract, serving, shared
from scenario.book import Book
from scenario.host import Host
from scenario.reader import CORE, Reader
from scenario.rows import CONTEXT_FROM, Expander
from scenario.spec import Parameter
from scenario.xlsx_cells import Cell, Row, Sought, letter, rows
from scenario.xlsx_extras import formula_of
from scenario.xlsx_formula import canonical
from scenario.xlsx_zip import SheetPart, Workbook
from scenario.yamltree import Node, Source

FIRST = 6
"""The first data row that the exporter writes."""
WHOLE = 20_000
"""Up to this many rows every formula is compared; in longer sheets a row's are when it lacks some or has some of its own."""
_SHARED = re.compile(rb'<c r="([A-Z]{1,3})[0-9]{1,7}"[^>]{0,60}><f t="shared" si="([0-9]{1,9})"/>')
"""A cell that shares its formula with others, as the exporter writes it: its column and which formula."""


@dataclass
class Header:
    """Where a sheet's table stands: the row of its header, and the column (1 = A) of each name."""

    sheet: SheetPart
    row: int
    columns: dict[str, int]
    named: set[int] = field(default_factory=set)
    """All columns that have a header, repeated ones too."""

    def place(self, name: str, row: int) -> str:
        """``Sheet!C7`` for a column by name."""
        return f"{self.sheet.title}!{letter(self.columns[name])}{row}"


@dataclass
class Typed:
    """A constant, or another formula, where a formula of the engine belongs."""

    sheet: str
    cell: str
    row: int | str
    """Which scenario, counted from 0, or the catalog entry's name."""
    column: str
    value: Any
    formula: str | None
    broken: bool = False
    """The formula refers to something that was deleted; the engine's formula is put back."""


@dataclass
class Reading:
    """What was found beside the table itself."""

    notes: list[str] = field(default_factory=list)
    typed: list[Typed] = field(default_factory=list)
    shown: dict[str, list[Any]] = field(default_factory=dict)
    """What the computed columns of Scenarios showed, by column; only when asked for."""
    rows: list[int] = field(default_factory=list)
    """The sheet row of each scenario."""
    header: Header | None = None
    extra_columns: dict[str, dict[int, Cell]] = field(default_factory=dict)
    """Columns of Scenarios that are not the engine's: name -> scenario, counted from 0 -> cell."""
    base: Book | None = None
    """What the workbook was made from, as far as its sheet Source tells."""
    places: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """The cells of changed assumptions: (sheet, row name, column) -> address."""
    other_formulas: dict[str, str] = field(default_factory=dict)
    """The engine's columns of which the sheet Formulas says something else than the engine: name -> address."""


_LITERAL = re.compile(r"(?<![\w$.])[0-9]+(?![\w.])")


class _Bad:
    """Marks a cell with a problem."""


BAD: Any = _Bad()
UNKNOWN: Any = _Bad()
"""What a formula shows whose value the file does not hold."""
RATE = Parameter(None, 0, 1)
ANY = Parameter(None)


def plain(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def show(value: Any) -> str:
    return plain(value) if isinstance(value, float | int) and not isinstance(value, bool) else "blank" if value is None else str(value)


def listing(items: Sequence[Any]) -> str:
    """The first few of many things."""
    return ", ".join(map(str, items[:8])) + (", ..." if len(items) > 8 else "")


class Owner(Protocol):
    """What the rows need of the reader of the whole workbook."""

    workbook: Workbook
    source: Source
    host: Host
    found: Reading
    max_rows: int
    keep_shown: bool
    overrides: str

    def say(self, place: str, message: str, hint: str = "") -> None: ...
    def header(self, title: str, table: str, needed: tuple[str, ...], *, required: bool = False) -> Header | None: ...
    def body(self, header: Header) -> Iterator[Row]: ...
    def cell_value(self, place: str, cell: Cell | None, parameter: Parameter | None) -> Any: ...


class RowReader:
    """The Scenarios sheet: inputs by column, and values that stand in place of formulas."""

    def __init__(self, owner: Owner, header: Header, base: Book) -> None:
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
            if f"{name}_given" in columns:
                found[name] = columns[f"{name}_given"]
            elif name in columns and (name in ("id", *CORE, "isl", "osl") or name in shared.REQUIRED):
                found[name] = columns[name]
        for name in columns:
            if name.endswith("_override"):
                found[name] = columns[name]
                self.known[name] = ANY
        self.written: dict[str, str] = {}
        self.literals: set[str] = set()
        for name in self.expected():
            plain = name.removesuffix("_given")
            if plain not in found:
                self.owner.say(self.header.sheet.title, f"the column '{name}' is gone", "put it back, with this header; its cells may be blank")
        return found

    def expected(self) -> list[str]:
        """The input columns that the workbook had when it was written; ``written`` gets the formulas of its first row."""
        header = self.owner.header("Formulas", "T_formulas", ("column", "kind"))
        if header is None:
            return []
        listed: list[tuple[str, str, str]] = []
        for row in self.owner.body(header):
            cells = [row.cells.get(header.columns.get(key, 0)) for key in ("sheet", "kind", "column", "in the first row")]
            sheet, kind, name, formula = ("" if cell is None else str(cell.value) for cell in cells)
            if sheet == "Scenarios" and name:
                listed.append((kind, name, formula))
        letters = {letter(index): name for index, (_, name, _) in enumerate(listed, 1)}
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
        if not self.numbers:
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
            said = contract.value_problem(parameter, value)
            if said:
                self.owner.say(place, f"{name}: {said}")
                return None
        return value


class WorkbookReader(Reader):
    """Reads the tree like any table, with the rows of the sheet in place of grid and rows."""

    def __init__(self, source: Source, root: Node, host: Host, max_rows: int, found: RowReader) -> None:
        super().__init__(source, root, host, max_rows)
        self.found = found

    def given_rows(self, defaults: Mapping[str, float | str]) -> pl.DataFrame:
        found = self.found
        expander = Expander(self, defaults)
        columns: dict[str, pl.Series] = {}
        for name, values in found.values.items():
            if name != "id" and all(value is None for value in values) and name not in CORE:
                continue
            columns[name] = self.column(name, values, expander)
        changed = self.overrides(columns)
        plain = [series for series in changed if not series.name.endswith("_override")]
        frame = pl.DataFrame(columns).with_columns(plain)
        self.required(frame, defaults)
        self.repeated(frame)
        if self.source.problems:
            return pl.DataFrame()
        self.together(frame, expander)
        if self.source.problems:
            return pl.DataFrame()
        typed = [series for series in changed if series.name.endswith("_override")]
        kept = [series for name, series in columns.items() if name.endswith("_override")]
        return expander.with_ids(frame.select(pl.exclude("^.*_override$"))).with_columns([*kept, *typed])

    def overrides(self, columns: Mapping[str, pl.Series]) -> list[pl.Series]:
        """Values typed over formulas: faults, or carried as columns of their own when they are to be kept."""
        found, sheet = self.found, self.found.header.sheet.title
        changed: dict[str, list[Any]] = {}
        lost = 0
        kept = found.owner.overrides == "keep"
        if found.owner.overrides == "ignore":
            return []
        listed = 0
        for typed in found.owner.found.typed:
            if typed.broken:
                continue
            place = f"{typed.sheet}!{typed.cell}"
            what = f"{show(typed.value)} is typed over the formula of '{typed.column}'"
            if typed.formula is not None:
                what = f"the formula of '{typed.column}' was changed"
            applied = f"{typed.column}_given" in found.header.columns
            number = isinstance(typed.value, float) and not typed.column.endswith(("_row", "summary_key"))
            if kept and typed.sheet == sheet and isinstance(typed.row, int) and (number or (applied and isinstance(typed.value, str) and typed.value)):
                name = typed.column if applied else f"{typed.column}_override"
                value = self.as_input(name, typed.value, place) if applied else typed.value
                series = changed.setdefault(name, columns[name].to_list() if name in columns else [None] * len(found.numbers))
                series[typed.row] = value
                if value is not None and lost < 20:
                    lost += 1
                    found.owner.found.notes.append(f"{place}: {what}; its value {show(typed.value)} is kept")
            elif kept:
                self.source.say(Node(None, 0, 0, path=place), f"{what}, and cannot be kept", "copy the formula back from a neighbouring row")
            elif listed < 20:
                listed += 1
                self.source.say(Node(None, 0, 0, path=place), what,
                                "copy the formula back from a neighbouring row, or keep the value with --keep-overrides")  # fmt: skip
        if lost == 20:
            found.owner.found.notes.append(f"{sheet}: and so are all others, {len(found.owner.found.typed):,} in all")
        return [
            pl.Series(name, values, dtype=columns[name].dtype if name in columns else self.type_of(name), strict=False)
            for name, values in changed.items()
        ]

    def type_of(self, name: str) -> type[pl.Float64] | type[pl.String]:
        parameter = self.found.known.get(name, ANY)
        return pl.String if parameter is None or parameter.kind in contract.TEXT_KINDS else pl.Float64

    def as_input(self, name: str, value: Any, place: str) -> Any:
        """A value typed over the column of what applies: it becomes the row's input, checked like one."""
        parameter, node = self.found.known[name], Node(value, 0, 0, path=place)
        return self.core(name, node) if parameter is None else self.value(name, parameter, node)

    def column(self, name: str, values: list[Any], expander: Expander) -> pl.Series:
        parameter = self.found.known[name]
        if name.endswith("_override"):
            return pl.Series(name, values, dtype=pl.Float64, strict=False)
        if parameter is not None and parameter.kind not in contract.TEXT_KINDS:
            return pl.Series(name, values, dtype=pl.Float64, strict=False)
        canonical: dict[Any, Any] = {None: None}
        for value, place in self.found.first[name].items():
            node = Node(value, 0, 0, path=place)
            if name == "id":
                canonical[value] = value
            elif parameter is None:
                canonical[value] = self.core(name, node)
            else:
                canonical[value] = self.value(name, parameter, node)
        return pl.Series(name, [canonical.get(value) for value in values], dtype=pl.String)

    def required(self, frame: pl.DataFrame, defaults: Mapping[str, float | str]) -> None:
        sheet, numbers = self.found.header.sheet.title, self.found.numbers
        served = {"isl", "osl"} <= {*frame.columns, *defaults}  # then the context follows from both
        for name in shared.REQUIRED:
            if name in defaults or (served and name == "context"):
                continue
            if name not in frame.columns:
                if name not in self.found.inputs:
                    self.source.say(Node(None, 0, 0, path=sheet), f"there is no column '{name}', and it has no default")
                    continue
                frame = frame.with_columns(pl.lit(None).alias(name))
            empty_cells = frame[name].is_null()
            if name == "context" and all(part in defaults or part in frame.columns for part in CONTEXT_FROM):
                parts = [frame[part].is_null() for part in CONTEXT_FROM if part not in defaults]
                empty_cells = empty_cells & (parts[0] | parts[-1]) if parts else pl.Series([False]).new_from_index(0, frame.height)
            blank = [number for number, empty in zip(numbers, empty_cells.to_list(), strict=True) if empty]
            for number in blank[:20]:
                place = f"{sheet}!{letter(self.found.inputs[name])}{number}"
                if not any(problem.place == place for problem in self.source.problems):
                    self.source.say(Node(None, 0, 0, path=place), f"{name} is blank and has no default", "type a value, or clear the whole row")

    def repeated(self, frame: pl.DataFrame) -> None:
        seen: dict[str, int] = {}
        for number, name in zip(self.found.numbers, frame["id"].to_list(), strict=True):
            if name is None:
                continue
            if name in seen:
                column = letter(self.found.inputs["id"])
                self.source.say(Node(None, 0, 0, path=f"{self.found.header.sheet.title}!{column}{number}"),
                                f"the id '{name}' stands in row {seen[name]} already; an id names one row",
                                "clear the cell: a new id is made")  # fmt: skip
            seen.setdefault(name, number)

    def together(self, frame: pl.DataFrame, expander: Expander) -> None:
        """Checks that need two inputs of a row at once, once per combination."""
        names = [name for name in ("weights", *sorted(expander.shared_by)) if name in frame.columns]
        for name in names:
            pairs = frame.with_row_index("#").group_by("method", name, maintain_order=True).agg(pl.col("#").first())
            for method, value, index in pairs.iter_rows():
                place = f"{self.found.header.sheet.title}!{letter(self.found.inputs[name])}{self.found.numbers[index]}"
                cells = {"method": [(method, Node(method, 0, 0, path=place))], name: [(value, Node(value, 0, 0, path=place))]}
                if name == "weights":
                    expander.twice_quantized(Node(None, 0, 0, path=place), cells)
                else:
                    expander.ranges(cells)
