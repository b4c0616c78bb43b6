"""The inputs of a book's rows: what may be typed, and what applies where nothing is."""

from __future__ import annotations

from dataclasses import replace

from scenario.book import by_method, optional_columns
from scenario.book.book import Field
from scenario.book.scope import CORE_TEXT, Scope
from scenario.formulas import expr, facts
from scenario.formulas.expr import Call, Compare, If, Name, Node, Number
from scenario.formulas.facts import Facts
from scenario.formulas.to_text import compile_text
from scenario.model import acceptance
from scenario.model.kinds import UNBOUNDED, parameter_facts
from scenario.model.spec import Parameter

CORE_DOCS = {"model": "The target model.", "gpu": "The GPU it runs on.", "method": "The decoding method, or a stack."}


def core_inputs(scope: Scope) -> None:
    """The row's name, its model, its GPU and its method."""
    scope.add(Field("id", "input", Facts("text"), title="Scenario", doc="The row's name; opaque."))
    for name in CORE_TEXT:
        doc = CORE_DOCS[name]
        if name in scope.table.defaults:
            scope.add(Field(f"{name}_given", "input", Facts("text", blank=True), doc=f"{doc} Blank: the default.", public=False))
            effective(scope, name, Field(name, "calc", Facts("text"), doc=doc), Name(f"default_{name}"))
        else:
            scope.add(Field(name, "input", Facts("text"), doc=doc))


def effective(scope: Scope, name: str, item: Field, fallback: Node) -> None:
    """The column that formulas read: what the row gives, else the fallback."""
    tree = Call("coalesce", (Name(f"{name}_given"), fallback)) if f"{name}_given" in scope.fields else fallback
    node = facts.check(tree, scope.env)
    declared = item.facts
    if declared.type == "number" and node.facts.blank:
        declared = replace(declared, blank=True)
    elif declared.type == "text":
        declared = replace(declared, blank=node.facts.blank)
    scope.add(replace(item, node=node, text=compile_text(node), facts=declared))


def input_fields(scope: Scope) -> None:
    """The inputs of every row, the time model, and the parameters of methods."""
    for name, parameter in scope.inputs.items():
        add_input(scope, name, parameter)
    if len(scope.time_models) > 1:
        parameter = Parameter(kind="choice", choices=tuple(scope.time_models), doc="How a pass is timed.")
        add_given(scope, "time_model", parameter)
        scope.delayed["time_model"] = (parameter, Name("default_time_model"))
    for name, parameter in scope.parameters.items():
        add_parameter(scope, name, parameter)
    for name in (name for name in acceptance.DIALECTS if name in scope.delayed):
        parameter, node = scope.delayed[name]
        scope.delayed[name] = (parameter, optional_columns.dialect(scope, name, node))
    if "auto_gamma" in scope.delayed:
        best_gamma(scope)


def add_input(scope: Scope, name: str, parameter: Parameter) -> None:
    """An input of every row; one that has a default may be left blank."""
    has_default = f"default_{name}" in scope.scalars
    if not has_default and not parameter.derive:
        scope.add(Field(name, "input", parameter_facts(parameter, blank=False), parameter.unit, doc=parameter.doc,
                        source=parameter.source, parameter=parameter))  # fmt: skip
        return
    add_given(scope, name, parameter)
    fallback: Node = Name(f"default_{name}") if has_default else scope.tree(parameter.derive)
    if name in scope.model.finish:
        fallback = Call("coalesce", (Name(f"{name}_given"), fallback))
    for formula in scope.model.finish.get(name, ()):
        fallback = expr.substitute(scope.tree(formula), {"asked": fallback})
    scope.delayed[name] = (parameter, fallback)


def add_parameter(scope: Scope, name: str, parameter: Parameter) -> None:
    """A parameter of methods: a column to type it in, and one of what applies, where this table has them."""
    owners = scope.owners(name)
    shared_by_used = (len(owners) > 1 or parameter.kind == "model") and any(owner.name in scope.used for owner in owners)
    if name in scope.table.rows.columns or shared_by_used:
        add_given(scope, name, parameter)
    if by_method.has_column(scope, name):
        scope.delayed[name] = (parameter, by_method.parameter(scope, name))


def best_gamma(scope: Scope) -> None:
    """Where a row asks for it the best number of draft tokens applies, else the one that is set."""
    parameter, node = scope.delayed["gamma"]
    scope.delayed["set_gamma"] = (parameter, node)
    # A method without drafts has no auto_gamma either: what its row gives holds.
    on = Compare(">", Call("coalesce", (Name("auto_gamma"), Number(0))), Number(0))
    best = Call("coalesce", (Name("best_gamma"), Name("set_gamma")))  # without a time there is no best, but memory all the same
    scope.delayed["gamma"] = (parameter, If(on, best, Name("set_gamma")))


def add_given(scope: Scope, name: str, parameter: Parameter) -> None:
    """The column in which a row gives an input that may be blank."""
    scope.add(Field(f"{name}_given", "input", parameter_facts(parameter, blank=True), parameter.unit,
                   doc=f"{parameter.doc} Blank: the default applies.", parameter=parameter, public=False, format=parameter.format))  # fmt: skip


def override_fields(scope: Scope) -> None:
    """Values typed in place of computed ones: inputs that are blank where the formula holds."""
    for column in scope.table.rows.columns:
        if column.endswith("_override"):
            name = column.removesuffix("_override")
            scope.add(Field(column, "input", Facts(low=-UNBOUNDED, high=UNBOUNDED, blank=True), public=False, title=f"override of {name}",
                           doc=f"A value that stands in place of the formula of {name}; blank: the formula holds."))  # fmt: skip
