"""A checked table as YAML, as a person would have written it."""

from __future__ import annotations

from scenario.registry.loaded import Host
from scenario.tables.row_sections import GRID, ROWS
from scenario.tables.section import Writing
from scenario.tables.sections import SECTIONS
from scenario.tables.table import Table


def to_yaml(table: Table, host: Host, *, rows: bool = True) -> str:
    """The YAML of a table: read again, it gives the same rows, ids, values and formulas.

    Rows that are a product are a ``grid``; an id is written where it is not the one the reader would give.
    An input that no row gives is left out. ``rows=False`` leaves out the rows and what names them
    (``overrides``): the rest of a table whose rows are kept elsewhere.
    """
    writing = Writing(table, host)
    return "\n".join(line for section in SECTIONS if rows or not section.by_row for line in section.lines(writing)) + "\n"


def rows_yaml(table: Table, host: Host) -> list[str]:
    """The lines of ``grid`` and ``rows`` alone."""
    writing = Writing(table, host)
    return [*GRID.lines(writing), *ROWS.lines(writing)]
