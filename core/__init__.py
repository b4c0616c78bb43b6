"""scenario: how fast does this model decode on this GPU, this way, and what does a million tokens cost?

    import scenario
    result = scenario.run("table.yaml")
    result.frame                  # a polars DataFrame, one row per scenario
    result.to_excel("costs.xlsx") # the same numbers as live formulas

What is listed in ``__all__`` is public; plugins and exporters import nothing else (their tests: ``scenario.testing``). The rest of the
package may change. Heavy parts load when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from scenario.errors import FormulaError, OutputError, PluginError, Problem, ScenarioError, TableError
from scenario.spec import Column, Exporter, Function, Method, NamedColumn, Parameter, Preset, TimeModel

if TYPE_CHECKING:
    from scenario.api import check, run
    from scenario.book import Book, EntityTable, Field, Scalar
    from scenario.expr import UNLIMITED, names
    from scenario.hooks import hookimpl
    from scenario.result import Result
    from scenario.to_excel import compile_excel
    from scenario.to_polars import compile_polars
    from scenario.to_text import compile_text
    from scenario.xlsx_extras import Added, told_lost, unmark
    from scenario.xlsx_left import Witness

__version__ = "0.1.0"

_LAZY = {
    "run": "api", "check": "api", "hookimpl": "hooks", "Result": "result", "Book": "book", "Field": "book",
    "EntityTable": "book", "Scalar": "book", "UNLIMITED": "expr", "compile_excel": "to_excel", "compile_polars": "to_polars", "names": "expr",
    "compile_text": "to_text", "unmark": "xlsx_extras", "told_lost": "xlsx_extras", "Added": "xlsx_extras", "Witness": "xlsx_left",
}  # fmt: skip

__all__ = [
    "UNLIMITED", "Added", "Book", "Column", "EntityTable", "Exporter", "Field", "FormulaError", "Function", "Method", "NamedColumn",
    "OutputError", "Parameter", "PluginError", "Preset", "Problem", "Result", "Scalar", "ScenarioError", "TableError",
    "TimeModel", "Witness", "check", "compile_excel", "compile_polars", "compile_text", "hookimpl", "names", "run", "told_lost",
    "unmark",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(importlib.import_module(f"scenario.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'scenario' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
