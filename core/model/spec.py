"""What plugins are made of: frozen descriptions, no behaviour.

A plugin is a module whose hooks return these. Formulas are text in the language of
:mod:`scenario.formulas.expr`; every one may read the shared columns, the parameters and the catalog fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

API = 1
"""The version of the plugin contract that this package offers."""


@dataclass(frozen=True)
class Column:
    """A computed column: formula, unit and one line that says what it means.

    ``unit`` is as people say it (``ms``, ``GB``, ``tokens/s``); empty for a ratio or text. ``title`` is a
    header for people, made from the name when empty; ``format`` a spreadsheet number format, chosen by
    unit when empty; ``source`` the paper or document that the formula comes from.
    """

    formula: str
    unit: str = ""
    doc: str = ""
    title: str = ""
    source: str = ""
    format: str = ""


@dataclass(frozen=True)
class Parameter:
    """An input that a user may set per row, per table or not at all.

    ``default`` applies when nobody sets it: a number or text, or None for no value. ``derive`` is a
    formula that is tried before the default (blank results fall through). ``low`` and ``high`` are
    inclusive limits; ``above`` is a limit that is not reached (``above=0``: must be positive).
    ``kind`` is ``number``, ``integer``, ``flag`` (0 or 1), ``model`` (a catalog name, whose fields then
    read as ``<parameter>_<field>``), ``profile`` (an acceptance profile or a list of marginal rates), ``tree`` (a
    draft tree) or ``choice`` (one of ``choices``). A ``quiet`` one takes no column and no cell in tables that do not
    mention it; formulas then read its default, or blank. ``also`` is the kind of other names that are taken for a choice
    (``formats``: what engines call them, see ``scenario.catalogs.aliases``).
    """

    default: float | str | None = None
    low: float | None = None
    high: float | None = None
    unit: str = ""
    doc: str = ""
    source: str = ""
    kind: str = "number"
    above: float | None = None
    derive: str = ""
    choices: tuple[str, ...] = ()
    title: str = ""
    format: str = ""
    quiet: bool = False
    also: str = ""


@dataclass(frozen=True)
class Method:
    """A decoding method: what it asks (``parameters``) and what it answers (``columns``).

    ``columns`` maps the engine's open questions (see ``scenario list columns``) to their formulas, ``helpers`` further
    names: columns of this method's rows alone, which its formulas may read. (A name that a formula of the method reads may
    stand under ``columns`` as well, as in plugins written before ``helpers`` was there.) Questions about weights make it
    a quantization that stacks with a drafting method (``int4+eagle``).
    """

    name: str
    title: str = ""
    doc: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    columns: Mapping[str, Column] = field(default_factory=dict)
    source: str = ""
    api: int = API
    helpers: Mapping[str, Column] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Helpers are columns, too: whoever reads ``columns`` has both."""
        if self.helpers and isinstance(self.columns, Mapping) and isinstance(self.helpers, Mapping):
            object.__setattr__(self, "columns", {**self.helpers, **self.columns})


@dataclass(frozen=True)
class TimeModel:
    """How long one forward pass takes, in ms, as a formula of ``rows``, ``weight_gb`` and ``kv_gb``.

    ``rows`` are the token rows of the pass, ``weight_gb`` and ``kv_gb`` what it reads, in GB. ``draft`` is the time of
    one pass of a draft in ms, as a formula of the arguments of ``draft_forward_ms``; empty: that of the bound.
    ``communication`` is the time in ms that GPUs exchange data in a pass of ``rows`` rows, as a formula of the columns and
    functions of parallel sizes; empty: that of the bound. A time model that says it must leave it out of ``formula``, and
    its tables always have those columns. ``parameters`` are constants of the whole table (``estimate_knee``). ``columns``
    answers the open questions of serving, of placement and of the estimate (``prefill_ms``, ``unsized_tp``, ``basis``,
    ``time_error``, ...: see ``scenario list columns``); those left out have the bound's answer.
    """

    name: str
    formula: str
    title: str = ""
    doc: str = ""
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    columns: Mapping[str, Column] = field(default_factory=dict)
    draft: str = ""
    source: str = ""
    api: int = API
    communication: str = ""


@dataclass(frozen=True)
class Function:
    """A formula with arguments, which other formulas call by name; it is written out before compiling."""

    name: str
    arguments: tuple[str, ...]
    formula: str
    doc: str = ""
    source: str = ""
    api: int = API


@dataclass(frozen=True)
class Preset:
    """Named parameter values for one method, with their source; chosen by a table's ``preset:``."""

    name: str
    method: str
    values: Mapping[str, float | str]
    doc: str = ""
    source: str = ""
    api: int = API


@dataclass(frozen=True)
class NamedColumn:
    """A column that a plugin adds for all rows."""

    name: str
    column: Column
    api: int = API


@dataclass(frozen=True)
class Exporter:
    """A file format: ``write(result, stream)`` writes bytes; ``suffixes`` are its file endings.

    ``result`` is a :class:`scenario.Result`, ``stream`` a binary file. ``text`` says that the format may go to a terminal (``-o -``).
    """

    name: str
    suffixes: tuple[str, ...]
    write: Callable[..., None]
    doc: str = ""
    text: bool = False
    max_rows: int | None = None
    api: int = API
