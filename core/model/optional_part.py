"""What a part of the model is that a table may ask for; see :mod:`scenario.model.features` for all of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from scenario.model.spec import Column, Function, Parameter


@dataclass(frozen=True)
class Feature:
    """One part of the model.

    It is active when a row or a default gives one of ``inputs``, or a value in ``values`` (by input). Rows that do not use it keep
    their numbers bit for bit: its formulas are those of the shared columns with a factor of 1, a term of 0 or another branch.
    ``columns`` are added or
    replaced, ``changes`` only replaced where the column is there, ``extends`` add a term to a column's formula; ``functions`` are added or replaced. ``finish`` gives an input
    its effective value: a formula of ``asked``, which is what the row or the default says. ``refusals`` are pairs of a condition
    and a text formula: a row that meets one has a status, and no speed.
    """

    name: str
    doc: str
    inputs: Mapping[str, Parameter] = field(default_factory=dict)
    values: Mapping[str, Collection[float | str]] = field(default_factory=dict)
    scalars: Mapping[str, Parameter] = field(default_factory=dict)
    columns: Mapping[str, Column] = field(default_factory=dict)
    changes: Mapping[str, Column] = field(default_factory=dict)
    extends: Mapping[str, str] = field(default_factory=dict)
    functions: tuple[Function, ...] = ()
    finish: Mapping[str, str] = field(default_factory=dict)
    refusals: tuple[tuple[str, str], ...] = ()


def optional(doc: str, unit: str = "", low: float = 1, high: float = 1e6, kind: str = "integer") -> Parameter:
    """An input that may stay blank."""
    return Parameter(None, low, high, unit, doc, kind=kind, derive="blank")
