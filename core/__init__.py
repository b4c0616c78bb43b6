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

if TYPE_CHECKING:
    from scenario.api import check, run
    from scenario.ask import best, compare, diff, explain, gpus, methods, models, sensitivity
    from scenario.book.book import Book, EntityTable, Field, Scalar
    from scenario.common.errors import FormulaError, OutputError, PluginError, Problem, ScenarioError, TableError
    from scenario.common.numbers import show_value
    from scenario.common.texts import escape_markdown
    from scenario.formulas.expr import UNLIMITED, names
    from scenario.formulas.to_excel import compile_excel
    from scenario.formulas.to_js import compile_js
    from scenario.formulas.to_polars import compile_polars
    from scenario.formulas.to_text import compile_text
    from scenario.model.spec import Column, Exporter, Function, Method, NamedColumn, Parameter, Preset, TimeModel
    from scenario.registry.hooks import hookimpl
    from scenario.result import Result

__version__ = "0.2.0"

_MODULES = {
    "api": ("run", "check"),
    "ask": ("best", "compare", "diff", "explain", "gpus", "methods", "models", "sensitivity"),
    "book.book": ("Book", "EntityTable", "Field", "Scalar"),
    "common.errors": ("FormulaError", "OutputError", "PluginError", "Problem", "ScenarioError", "TableError"),
    "common.numbers": ("show_value",),
    "common.texts": ("escape_markdown",),
    "formulas.expr": ("UNLIMITED", "names"),
    "formulas.to_excel": ("compile_excel",),
    "formulas.to_js": ("compile_js",),
    "formulas.to_polars": ("compile_polars",),
    "formulas.to_text": ("compile_text",),
    "model.spec": ("Column", "Exporter", "Function", "Method", "NamedColumn", "Parameter", "Preset", "TimeModel"),
    "registry.hooks": ("hookimpl",),
    "result": ("Result",),
}
"""Where the public names come from; nothing is imported before it is asked for (the entry point listens to signals first)."""
_LAZY = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "UNLIMITED", "Book", "Column", "EntityTable", "Exporter", "Field", "FormulaError", "Function", "Method",
    "NamedColumn", "OutputError", "Parameter", "PluginError", "Preset", "Problem", "Result", "Scalar",
    "ScenarioError", "TableError", "TimeModel", "best", "check", "compare", "compile_excel", "compile_js",
    "compile_polars", "compile_text", "diff", "escape_markdown", "explain", "gpus", "hookimpl", "methods", "models",
    "names", "run", "sensitivity", "show_value",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(importlib.import_module(f"scenario.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'scenario' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
