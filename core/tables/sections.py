"""The sections of a table, in the order in which a table is written and described."""

from __future__ import annotations

from scenario.tables.priced import GPUS, MODELS, PRICES
from scenario.tables.row_sections import GRID, OVERRIDES, ROWS
from scenario.tables.section import Section
from scenario.tables.series_sections import CURVES, HARDWARE, MEASURED, PROFILES, TREES
from scenario.tables.settings import DEFAULTS, PARAMETERS, PRESET, TIME_MODEL, TITLE, VERSION_KEY
from scenario.tables.shown import COLUMNS, SHOW, SORT, SUMMARY, WHERE

SECTIONS: tuple[Section, ...] = (
    VERSION_KEY, TITLE, TIME_MODEL, PRESET, DEFAULTS, GRID, ROWS, PARAMETERS, MODELS, GPUS, PRICES, PROFILES, TREES, CURVES, HARDWARE,
    MEASURED, COLUMNS, SHOW, WHERE, SORT, SUMMARY, OVERRIDES,
)  # fmt: skip
KEYS: tuple[str, ...] = tuple(section.key for section in SECTIONS)
