"""The Scenarios sheet of a workbook that comes back: its rows of inputs, and what stands in place of formulas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import polars as pl

from scenario import contract, serving, shared
from scenario.book import Book
from scenario.host import Host
from scenario.reader import CORE, Reader
from scenario.rows import CONTEXT_FROM, Expander
from scenario.spec import Parameter
from scenario.xlsx_cells import Cell, Row, letter, rows
from scenario.xlsx_formula import canonical
from scenario.xlsx_zip import SheetPart, Workbook
from scenario.yamltree import Node, Source

FIRST = 6
"""The first data row that the exporter writes."""
WHOLE = 20_000
"""Up to this many rows every formula is read and compared; beyond it a row is only when it lacks some."""


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
        self.values: dict[str, list[Any]] = {name: [] for name in self.inputs}
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
        self.shared: dict[tuple[str, int], bool] = {}
        self.gone: dict[tuple[str, int], bool] = {}
        others = {n: c for n, c in header.columns.items() if c not in {*formulas.values(), *self.inputs.values()} and n}
        hidden: list[int] = []
        loose: dict[str, str] = {}
        width = max(header.columns.values())
        shown: dict[str, list[Any]] = {name: [] for name in formulas} if owner.keep_shown else {}
        extra: dict[str, dict[int, Cell]] = {name: {} for name in others}
        until = max([*self.inputs.values(), *others.values()], default=1)
        last = max((int(end) for end in re.findall(r":[A-Z]+([0-9]+)(?: |$)", " ".join(header.sheet.tables.values()))), default=0)
        # A long sheet is read by its inputs: there, comparing every formula would take most of the time.
        whole = 10**7 if owner.keep_shown else header.row + WHOLE if last <= header.row + WHOLE else header.row + 1

        def full(row: int, found: int) -> bool:
            return row <= whole or 0 < found < len(formulas)

        wanted = {*self.inputs.values(), *others.values()}
        for row in rows(owner.workbook, header.sheet, until=until, full=full, only=wanted):
            if row.number <= header.row:
                continue
            cells = {name: row.cells.get(column) for name, column in self.inputs.items()}
            for column in row.cells:
                if column > width or column not in header.named:
                    loose.setdefault(letter(column), f"{letter(column)}{row.number}")
            if not any(cell is not None for cell in cells.values()):
                for name, column in others.items():
                    if column in row.cells:
                        loose.setdefault(f"{name} {row.number}", f"{letter(column)}{row.number}")
                continue
            if len(self.numbers) >= owner.max_rows:
                raise owner.workbook.refuse(f"the workbook has more than {owner.max_rows:,} rows", "allow more with --max-rows")
            if row.hidden:
                hidden.append(row.number)
            self.numbers.append(row.number)
            for name, cell in cells.items():
                self.values[name].append(self.checked(name, cell, row.number))
            if row.formulas and full(row.number, row.formulas):
                self.compare(row, formulas)
            for name, values in shown.items():
                cell = row.cells.get(formulas[name])
                if cell is not None and cell.kind == "none":
                    values.append(UNKNOWN)
                else:
                    values.append(None if cell is None or (cell.kind == "text" and cell.value == "") else cell.value)
            for name, found in extra.items():
                if others[name] in row.cells:
                    found[len(self.numbers) - 1] = row.cells[others[name]]
        reading.rows, reading.shown = self.numbers, shown
        reading.extra_columns = {name: found for name, found in extra.items() if found}
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

    def formula_columns(self) -> dict[str, int]:
        """The computed columns that the sheet shows: those that had a formula when the workbook was written."""
        computed = set(self.written) or {name for name, item in self.base.fields.items() if item.role != "input"}
        inputs = set(self.inputs.values())
        return {name: column for name, column in self.header.columns.items() if column not in inputs and name in computed}

    def compare(self, row: Row, formulas: Mapping[str, int]) -> None:
        """Note values typed over formulas, and formulas that are not the ones that were written."""
        for name, column in formulas.items():
            cell = row.cells.get(column)
            if cell is None or (cell.formula is not None and self.unchanged(name, cell, row.number)):
                continue
            place = f"{letter(column)}{row.number}"
            index = len(self.numbers) - 1
            broken = "#REF!" in (cell.formula or "") or self.gone.get((name, cell.shared or 0), False)
            self.owner.found.typed.append(Typed(self.header.sheet.title, place, index, name, cell.value, cell.formula, broken))

    def unchanged(self, name: str, cell: Cell, row: int) -> bool:
        if not self.written:  # the sheet Formulas is gone: nobody knows what was written
            return "#REF!" not in (cell.formula or "")
        if cell.shared is not None and not cell.formula:
            return self.shared.get((name, cell.shared), True)
        text = cell.formula or ""
        if len(text) > 9_000:  # more than a spreadsheet takes
            return False
        # Most rows say the same; a row whose number may be taken for a number of the formula is looked at itself.
        key = name, text if str(row) in self.literals else text.replace(str(row), "#")
        if key not in self.seen:
            self.seen[key] = canonical(text, self.letters, row) == self.written.get(name, "")
        if cell.shared is not None:
            self.shared[name, cell.shared] = self.seen[key]
            self.gone[name, cell.shared] = "#REF!" in text
        return self.seen[key]

    def merged(self) -> list[str]:
        """Merged areas that touch the rows."""
        found: list[str] = []
        for chunk in self.owner.workbook.chunks(self.header.sheet.part):
            if b"<mergeCell " in chunk:
                areas = re.findall(rb'<mergeCell ref="([A-Z]{1,3}[0-9]{1,7}:[A-Z]{1,3}([0-9]{1,7}))"', chunk)
                found += [area.decode() for area, last in areas if int(last) > self.header.row]
        return found[:20]

    def checked(self, name: str, cell: Cell | None, row: int) -> Any:
        """One input value; names are checked once per distinct value by the table's reader."""
        if cell is None:
            return None
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
