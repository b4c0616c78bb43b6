"""What the parts of a book's assembly share: the table, what is known so far, and the problems found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scenario.book import selection
from scenario.book.book import EntityTable, Field, Scalar
from scenario.book.selection import Selection
from scenario.book.timing import Timing
from scenario.common.errors import Problem
from scenario.formulas import expr
from scenario.formulas.expr import Node
from scenario.formulas.facts import Facts
from scenario.formulas.partial import without
from scenario.model import stacks
from scenario.model.kinds import parameter_facts
from scenario.model.spec import Column, Method, Parameter
from scenario.registry import contract
from scenario.registry.loaded import Host
from scenario.tables.table import Table

CORE_TEXT = ("model", "gpu", "method")
NUMBER = {"quantization": "quant_no", "drafting": "draft_no"}
"""The column that holds the number of a row's method, by slot."""

Pending = dict[str, tuple[Column, Node]]
"""Columns with their trees, functions written out."""


@dataclass
class Scope:
    """One assembly. ``scalars``, ``tables``, ``fields`` and ``env`` (the facts of every name) grow as it goes on.

    ``mentioned`` are the names that the table reads or shows, ``parameters`` those of methods that it has columns or cells for,
    ``absent`` what formulas read in place of the others, ``asked`` the optional columns. ``delayed`` is what applies where a row
    says nothing, still without facts; ``sure`` says whether a derived parameter has a value in every row of its method.
    """

    table: Table
    host: Host
    model: Selection = field(init=False)
    timing: Timing = field(init=False)
    inputs: Mapping[str, Parameter] = field(init=False)
    columns: dict[str, Column] = field(init=False)
    functions: dict[str, tuple[tuple[str, ...], Node]] = field(init=False)
    used: set[str] = field(init=False)
    mentioned: set[str] = field(default_factory=set)
    parameters: dict[str, Parameter] = field(default_factory=dict)
    absent: dict[str, Node] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    scalars: dict[str, Scalar] = field(default_factory=dict)
    tables: dict[str, EntityTable] = field(default_factory=dict)
    fields: dict[str, Field] = field(default_factory=dict)
    env: dict[str, Facts] = field(default_factory=dict)
    delayed: dict[str, tuple[Parameter, Node]] = field(default_factory=dict)
    sure: dict[str, bool] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.model = selection.select(self.table, self.host)
        own = {f.name: (tuple(f.arguments), expr.parse(f.formula)) for f in self.model.functions}
        self.functions = {**contract.function_trees(self.host), **own}
        self.timing = Timing(self.table, self.host, self.model)
        self.inputs, self.columns = self.timing.inputs(), self.timing.columns()
        self.used = {part for stack in self.table.stacks.values() for part in (stack.quantization, stack.drafting) if part}
        slots = {name: stacks.slots(method) for name, method in self.host.methods.items()}
        self.methods = {slot: [method for name, method in self.host.methods.items() if slot in slots[name]] for slot in NUMBER}
        """The methods that fill a slot, in the order of their numbers."""

    @property
    def time_models(self) -> list[str]:
        """The time models that rows use."""
        return [model.name for model in self.timing.models]

    def add(self, item: Field) -> None:
        """Have a column, whose facts are known from now on."""
        self.fields[item.name] = item
        self.env[item.name] = item.facts

    def add_scalar(self, scalar: Scalar, blank: bool) -> None:
        """Have an assumption."""
        self.scalars[scalar.name] = scalar
        self.env[scalar.name] = parameter_facts(scalar.parameter, blank=blank)

    def tree(self, text: str) -> Node:
        """A formula as a tree, functions written out, without what this table has no cell for."""
        return without(expr.expand(expr.parse(text), self.functions, text=text), self.absent)

    def uses(self, name: str) -> bool:
        """Whether the table says anything about a parameter."""
        presets = [(self.host.presets[preset].method, self.host.presets[preset].values) for preset in self.table.presets]
        typed = (*self.table.parameters.items(), *presets)
        given = {self.own_names(method).get(key, key) for method, values in typed for key in values}
        return name in self.table.rows.columns or name in self.mentioned or name in given

    def own_names(self, method: str) -> Mapping[str, str]:
        """What a method's private names are called in this table, where that is another name."""
        return (self.host.names or {}).get(method, {})

    def owners(self, parameter: str) -> list[Method]:
        """The methods that have a parameter."""
        return [method for method in self.host.methods.values() if parameter in method.parameters]

    def slot_of(self, column: str) -> str:
        """The slot whose methods answer a question, or have a column of this name; empty where none does."""
        return next((slot for slot, methods in self.methods.items() for method in methods if column in method.columns), "")


def scalar_name(method: Method, parameter: str) -> str:
    """The name of a method's parameter among the assumptions: ``eagle_alpha``."""
    return f"{method.name}_{parameter}".replace("-", "_").replace(".", "_")
