"""Where everything stands in the workbook: the addresses that formulas are compiled against.

Row formulas refer to their own row with the column fixed (``$D12``), scalars by defined names that point at
one cell, catalog values by position in an absolute range. No structured references, no dynamic arrays:
LibreOffice and Google Sheets would fail on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from openpyxl.utils import get_column_letter

from scenario import UNLIMITED, Book, compile_excel
from scenario.exporters.xlsx.splice import ROW
from scenario.workbooks.form import ANSWER, FIRST, KEY, POSITION, POSITIONS, TITLES, EntityTable, Field, limits_at

SPARE = 50
"""Free rows below a catalog table that lookups already cover."""
CORE = ("model", "gpu", "method")
RESULTS = (
    "status",
    "fits",
    "bound",
    "tokens_per_round",
    "round_ms",
    "tpot_ms",
    "tokens_per_s",
    "speedup",
    "memory_gb",
    "max_batch",
    "usd_per_million_tokens",
    "basis",
    "tpot_low_ms",
    "tpot_high_ms",
    "tokens_per_s_low",
    "tokens_per_s_high",
    "speedup_low",
    "speedup_high",
    "verdict",
    "usd_low",
    "usd_high",
    "ttft_ms",
    "ttft_low_ms",
    "ttft_high_ms",
    "requests_per_s",
)
"""What people come for stands right beside the inputs; the working follows further right."""


@dataclass(frozen=True)
class SheetColumn:
    """One column of the Scenarios sheet.

    ``band`` is INPUT, RESULT, MORE INPUT (inputs that no row gives yet), APPLIED (what applies to the row),
    LOOKUP or CALC; ``formula`` the template with the
    row number left open, empty for an input. ``item`` is None for a helper column that only the workbook has.
    """

    name: str
    band: str
    letter: str
    formula: str = ""
    item: Field | None = None
    doc: str = ""


@dataclass
class Layout:
    """The addresses of one workbook. ``rows`` is how many scenarios it holds."""

    book: Book
    rows: int
    columns: dict[str, SheetColumn] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    helpers: dict[str, dict[str, SheetColumn]] = field(default_factory=dict)
    """The columns of the sheets that stand beside Scenarios row for row, by sheet and name."""

    @property
    def last(self) -> int:
        return FIRST + max(self.rows, 1) - 1

    @property
    def computed_runs(self) -> list[tuple[str, str]]:
        """The letters of the first and last column of each unbroken run of computed columns."""
        runs: list[tuple[str, str]] = []
        fresh = True
        for column in self.columns.values():
            if column.formula:
                runs = [*runs, (column.letter, column.letter)] if fresh else [*runs[:-1], (runs[-1][0], column.letter)]
            fresh = not column.formula
        return runs

    def span(self, name: str) -> str:
        """The absolute range of a column of Scenarios, with its sheet."""
        letter = self.columns[name].letter
        return f"Scenarios!${letter}${FIRST}:${letter}${self.last}"

    def entity_letter(self, table: EntityTable, name: str) -> str:
        """The column of a catalog sheet in which a field stands: name, title, inputs, computed, sources."""
        order = [
            "name",
            "title",
            *(f.name for f in table.inputs),
            *(f.name for f in table.columns),
            *entity_notes(table),
        ]
        return str(get_column_letter(order.index(name) + 1))

    def entity_span(self, table: EntityTable, name: str) -> str:
        """The absolute range of a catalog column, spare rows included."""
        letter = self.entity_letter(table, name)
        return f"{sheet_ref(TITLES[table.name])}!${letter}${FIRST}:${letter}${FIRST + len(table.rows) + SPARE - 1}"

    def vector_range(self, series: str, part: str) -> str:
        """The ranges that ``at()`` and ``curve()`` read."""
        if series == "profiles":
            last = FIRST + len(self.book.vectors.profiles) + SPARE - 1
            if part == "names":
                return f"Profiles!$A${FIRST}:$A${last}"
            first = 2 + POSITIONS  # after the name and the rates
            return f"Profiles!${get_column_letter(first)}${FIRST}:${get_column_letter(first + POSITIONS)}${last}"
        if series == "trees":
            last = FIRST + max(len(self.book.vectors.trees), 1) - 1
            if part == "names":
                return f"Trees!$A${FIRST}:$A${last}"
            first = 4 if part == "tokens" else 4 + POSITIONS + 1  # tree, nodes, depth, then tokens, then rows
            return f"Trees!${get_column_letter(first)}${FIRST}:${get_column_letter(first + POSITIONS)}${last}"
        start = FIRST
        for name, curve in self.book.vectors.curves.items():
            if name == series:
                letter = {"x": "B", "y": "C", "slope": "D"}[part]
                return f"Curves!${letter}${start}:${letter}${start + len(curve.points) - 1}"
            start += len(curve.points)
        raise KeyError(series)

    @property
    def empty(self) -> set[str]:
        """Names whose cells may be truly empty."""
        given = {item.name for item in self.book.fields.values() if item.role == "input"}
        return given | set(self.book.scalars)


def entity_notes(table: EntityTable) -> list[str]:
    """What a catalog sheet says beside its numbers."""
    return [key for key in ("doc", "price_source", "source") if any(key in row for row in table.rows)]


def sheet_ref(title: str) -> str:
    """A sheet's name as a formula writes it."""
    return f"'{title}'" if " " in title else title


def joined(cells: Iterable[str]) -> str:
    """The formula of a row's key: a text, also where it is of one number."""
    parts = list(cells)
    return '&"|"&'.join(parts) + ('&""' if len(parts) == 1 else "") or '""'


Planned = tuple[str, str, Field | None, str]
"""A column before it has its place: name, band, field, meaning of one that only the workbook has."""


def lay_out(book: Book, rows: int, key: tuple[str, ...]) -> Layout:
    """Give every column its place and its formula. ``key`` names the columns the Summary finds rows by."""
    layout = Layout(book, rows, key=key)
    plan = _plan(book)
    addresses = _Letters(book, {name: get_column_letter(index) for index, (name, *_) in enumerate(plan, 1)})
    for helper in (item for item in book.fields.values() if item.sheet):
        beside = layout.helpers.setdefault(helper.sheet, {})
        letter = get_column_letter(len(beside) + 2)
        addresses.letters[helper.name], addresses.elsewhere[helper.name] = letter, helper.sheet
        beside[helper.name] = SheetColumn(helper.name, "CALC", letter, "", helper)
    for name, band, item, doc in plan:
        formula = _own_formula(layout, addresses, name) if item is None else _formula(layout, addresses, item)
        layout.columns[name] = SheetColumn(name, band, addresses.letters[name], formula, item, doc)
    for sheet, beside in layout.helpers.items():
        reference = partial(addresses.reference, here=sheet)
        for name, column in beside.items():
            assert column.item is not None
            assert column.item.node is not None
            text = compile_excel(column.item.node, reference, layout.vector_range, layout.empty)
            beside[name] = replace(column, formula=text)
    return layout


@dataclass
class _Letters:
    """Where columns stand: their letters, and the sheet of those that do not stand on Scenarios."""

    book: Book
    letters: dict[str, str]
    elsewhere: dict[str, str] = field(default_factory=dict)

    def reference(self, name: str, here: str = "") -> str:
        """A name as a formula on the sheet ``here`` (Scenarios: empty) refers to it."""
        if name in self.book.scalars:
            return name
        there = self.elsewhere.get(name, "")
        sheet = f"{sheet_ref(there or 'Scenarios')}!" if there != here else ""
        return f"{sheet}${self.letters[name]}{ROW}"


def _plan(book: Book) -> list[Planned]:
    """The columns of Scenarios from the left."""
    inputs, lookups, calcs = (
        [item for item in book.fields.values() if item.role == role] for role in ("input", "lookup", "calc")
    )
    applied = _applied(book, calcs)
    results = [book.fields[name] for name in (*RESULTS, *book.table.columns) if name in book.fields]
    # Inputs that no row gives stand behind the results, so that what is used and what comes of it meet the eye
    # together.
    used = _used(book, inputs)
    plan = _banded("INPUT", used) + _banded("RESULT", results)
    plan += _banded("MORE INPUT", [item for item in inputs if item not in used])
    # From here on a column stands right of what it reads, so far as that goes: catalog entries that the row names,
    # then what applies to it, then the entries that this in turn names.
    for core in (True, False):
        plan += _banded("APPLIED", [item for item in applied if (item.name in CORE) is core])
        plan += _lookups([key for key in _keys(book) if (key[1] in CORE) is core], lookups)
    done = {name for name, *_ in plan}
    plan += _banded("CALC", [item for item in calcs if item.name not in done and not item.sheet])
    plan += [(ANSWER, "CALC", None, "The row's price, where it keeps within the limits on the sheet Answer.")]
    return [*plan, (KEY, "CALC", None, "What the Summary finds the row by.")]


def _banded(band: str, items: list[Field]) -> list[Planned]:
    return [(item.name, band, item, "") for item in items]


def _applied(book: Book, calcs: list[Field]) -> list[Field]:
    """What applies to a row, be it given by the row, the table or a method: inputs that are worked out first."""
    own = [item for item in calcs if item.parameter is not None]
    return own + [item for item in calcs if item.parameter is None and f"{item.name}_given" in book.fields]


def _keys(book: Book) -> list[tuple[str, str]]:
    """The catalog tables that rows look something up in, each with the column that names the entry."""
    return list(dict.fromkeys((item.lookup.table, item.lookup.key) for item in book.fields.values() if item.lookup))


def _used(book: Book, inputs: list[Field]) -> list[Field]:
    """The inputs that some row gives, or must give."""
    rows = book.table.rows
    given = {name for name in rows.columns if rows[name].null_count() < rows.height}
    return [item for item in inputs if item.name.removesuffix("_given") in given or not item.facts.blank]


def _own_formula(layout: Layout, addresses: _Letters, name: str) -> str:
    """The formula of a column that only the workbook has: the row's key, or where its entry of a catalog stands."""
    book = layout.book
    if name == KEY:
        return joined(addresses.reference(part) for part in layout.key)
    if name == ANSWER:
        return _within_limits(layout, addresses)
    by = name.removesuffix(POSITION)
    table = next(table for table, key in _keys(book) if key == by)
    found = f"MATCH({addresses.reference(by)},{layout.entity_span(book.tables[table], 'name')},0)"
    # A blank key has no entry. IF(key="","",...) would say so better, but LibreOffice computes it wrongly in
    # some long columns; a name that is not found is counted on the sheet Checks instead.
    return f'IFERROR({found},"")' if book.fields[by].facts.blank else found


def _within_limits(layout: Layout, addresses: _Letters) -> str:
    """The price of a row that can run and keeps within the limits of the sheet Answer, else the number that means no limit."""
    cells, fields = limits_at(), layout.book.fields
    ref = addresses.reference
    if not layout.rows:  # there is no sheet Answer
        return f"{UNLIMITED:.0f}"
    most = f'IF({cells["tpot"]}="",TRUE,{ref("tpot_ms")}<={cells["tpot"]})'
    tests = [f'{ref("status")}="ok"', most]
    if "ttft_ms" in fields:
        tests.append(f'IF({cells["ttft"]}="",TRUE,AND({ref("ttft_ms")}<>"",{ref("ttft_ms")}<={cells["ttft"]}))')
    tests.append(f'IF({cells["budget"]}="",TRUE,{ref("usd_per_hour")}*{ref("gpus")}*{cells["hours"]}<={cells["budget"]})')
    stored = layout.entity_span(layout.book.tables["models"], "stored_bits")
    whole = ",".join(f'{ref("kv")}="{row["name"]}"' for row in layout.book.tables["formats"].rows if float(str(row["bits"])) >= 16)
    same = [f"{ref('weight_bits')}>=INT(INDEX({stored},{ref('model' + POSITION)}))", f"OR({whole})"]
    same += [f"{ref('quant_no')}<=1"] if "quant_no" in fields else []
    tests.append(f'IF({cells["lossless"]}="yes",AND({",".join(same)}),TRUE)')
    price = ref("usd_per_million_tokens")
    # One row with an error must not take the answer of all others along; Checks counts its other cells.
    return f'IFERROR(IF({price}="",{UNLIMITED:.0f},IF(AND({",".join(tests)}),{price},{UNLIMITED:.0f})),{UNLIMITED:.0f})'


def _formula(layout: Layout, addresses: _Letters, item: Field) -> str:
    """The formula of a column of Scenarios; empty for an input."""
    if item.lookup is not None:
        by, source, row = item.lookup.key, item.lookup.field, addresses.reference(item.lookup.key + POSITION)
        entity = layout.book.tables[item.lookup.table]
        formula = f"INDEX({layout.entity_span(entity, source)},{row})"
        if entity.fields[source].facts.blank:
            formula = f'IF({formula}="","",{formula})'
        return f'IF({row}="","",{formula})' if layout.book.fields[by].facts.blank else formula
    if item.node is None:
        return ""
    return compile_excel(item.node, addresses.reference, layout.vector_range, layout.empty)


def _lookups(keys: list[tuple[str, str]], lookups: list[Field]) -> list[Planned]:
    """For each key the position of its entry, then what is read from there."""
    found: list[Planned] = []
    for table, by in keys:
        found.append((by + POSITION, "LOOKUP", None, f"Where {by} stands on the sheet {TITLES[table]}."))
        found += [(item.name, "LOOKUP", item, "") for item in lookups if item.lookup and item.lookup.key == by]
    return found


def entity_formula(layout: Layout, table: EntityTable, item: Field) -> str:
    """The template of a computed catalog column."""
    assert item.node is not None
    scalars = layout.book.scalars
    return compile_excel(
        item.node,
        lambda name: name if name in scalars else f"${layout.entity_letter(table, name)}{ROW}",
        layout.vector_range,
        set(scalars),
    )
