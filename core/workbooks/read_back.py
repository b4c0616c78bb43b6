"""A workbook that comes back, as the table it stands for: inputs, assumptions, catalogs and the analyst's rows.

What an input cell says counts; formulas do not, unless a value stands in place of one. The rest of the table
(title, own columns, summary) comes from the sheet Source. Every fault is named by sheet and cell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

from scenario.book import selection
from scenario.book.assemble import assemble
from scenario.book.book import Book
from scenario.catalogs import catalog
from scenario.common import inputs
from scenario.common.yamltree import Source, YamlNode
from scenario.model import stacks
from scenario.registry.loaded import Host
from scenario.tables.reader import Reader
from scenario.tables.table import MAX_ROWS, Table
from scenario.workbooks.archive import Workbook
from scenario.workbooks.as_table import WorkbookReader
from scenario.workbooks.cells import rows as rows_of
from scenario.workbooks.extras import read_extras
from scenario.workbooks.form import ALL_CHECKS, GIVEN
from scenario.workbooks.found import Header, Reading
from scenario.workbooks.left import Used, left_behind, names_left
from scenario.workbooks.read_assumptions import read_assumptions, unused_time_models
from scenario.workbooks.read_catalogs import read_catalogs
from scenario.workbooks.read_formulas import read_formulas
from scenario.workbooks.read_series import read_curves, read_profiles
from scenario.workbooks.read_source import read_source
from scenario.workbooks.read_summary import read_choices
from scenario.workbooks.scenario_rows import RowReader
from scenario.workbooks.sheets import Sheets, at

OPTIONAL = {"isl": 0, "osl": 1, "engine": "any"}
"""Inputs that a workbook has columns for only where its table asked for them, with values that any table may have."""


def load(
    path: str | Path, host: Host, *, max_rows: int = MAX_ROWS, shown: bool = False, overrides: str = "refuse"
) -> tuple[Table, Reading]:
    """The table that a workbook stands for. Raises :class:`TableError` with every bad cell by its address.

    ``shown`` also collects what the computed cells showed. ``overrides`` says what becomes of values typed
    over formulas: ``refuse`` them, ``keep`` them as columns ``<name>_override``, or ``ignore`` them.
    """
    with Workbook(path) as book:
        digest = hashlib.sha256(inputs.read(path, inputs.WORKBOOK)).hexdigest()
        return _table(Sheets(book, host, digest, max_rows, shown, overrides))


def _table(sheets: Sheets) -> tuple[Table, Reading]:
    header = sheets.header("Scenarios", ("id",), required=True)
    assert header is not None
    found = sheets.found
    found.header = header
    root = read_source(sheets)
    base = found.base = _base(sheets, root, header)
    unused = unused_time_models(sheets, base)
    written = _base(sheets, root, header, unused) if unused else base
    for read in (read_assumptions, read_catalogs, read_profiles, read_curves):
        read(sheets, root, base)
    read_formulas(sheets, root, written)
    rows = RowReader(sheets, header, base)
    rows.read()
    read_choices(sheets, root, rows, base)
    left_out = None if sheets.keep_shown else sheets.left_out
    table = WorkbookReader(sheets.source, root, sheets.host, sheets.max_rows, rows, left_out).table()
    table.extras = read_extras(sheets, base)
    # The header's comments are the workbook's own, wherever it has moved.
    heads = {(header.row, column) for name, column in header.columns.items() if name in sheets.written}
    sheets.used[header.sheet.title] = Used(header.row, heads)
    names = {*base.scalars, ALL_CHECKS}
    if "assumptions" in sheets.places:
        names |= set(sheets.places["assumptions"].rows.values())
    left = left_behind(sheets.workbook, sheets.witnesses, sheets.told, sheets.used)
    found.notes = list(dict.fromkeys([*found.notes, *table.extras.notes, *left, *names_left(sheets.workbook, names)]))
    return table, found


def _base(sheets: Sheets, root: YamlNode, header: Header, without: Collection[str] = ()) -> Book:
    """What the engine would assume by the Source sheet alone: what cells say is compared with this.

    It has the features and the optional inputs whose columns the workbook has, and all time models but those left out.
    """
    known, host = catalog.builtin(), sheets.host
    row = {"model": next(iter(known.models)), "gpu": next(iter(known.gpus)), "batch": 1, "context": 0,
           "method": next(iter(host.methods))}  # fmt: skip
    row |= {name: value for name, value in OPTIONAL.items() if {name, name + GIVEN} & header.columns.keys()}
    models = [name for name in host.time_models if name not in without] if "time_model" + GIVEN in header.columns else []
    listed = [{**row, "time_model": model} for model in models] or [row]
    cells = [YamlNode({name: at(value, "rows") for name, value in one.items()}, 0, 0) for one in listed]
    parts = {key: node for key, node in root.value.items() if key != "summary"}  # which may start at rows that are not here
    with_row = YamlNode({**parts, "rows": YamlNode(cells, 0, 0)}, 0, 0, keys=dict(root.keys))
    table = Reader(Source(f"{sheets.workbook.path}, sheet Source", ""), with_row, host, sheets.max_rows).table()
    table.features = selection.seen(header.columns)
    table.stacks |= _offered(sheets)
    return assemble(table, host)


def _offered(sheets: Sheets) -> dict[str, stacks.Stack]:
    """The methods and stacks that the sheet Methods lists: those that the workbook's formulas know."""
    part = sheets.workbook.sheet("Methods")
    cells = [cell for row in rows_of(sheets.workbook, part) for cell in row.cells.values()] if part else []
    found = [stacks.parse(cell.value, sheets.host.methods)[0] for cell in cells if isinstance(cell.value, str)]
    return {stack.name: stack for stack in found if stack}
