"""The inputs of a book's rows: what may be typed, and what applies where nothing is."""

from __future__ import annotations

from dataclasses import replace

from scenario.book.assumptions import CORE_TEXT, NUMBER, Assumptions
from scenario.book.book import Field
from scenario.book.optional_columns import scalar_name
from scenario.formulas import expr, facts
from scenario.formulas.expr import Blank, Call, Compare, If, Name, Node, Number
from scenario.formulas.facts import Facts
from scenario.formulas.to_text import compile_text
from scenario.model import acceptance
from scenario.model.kinds import parameter_facts
from scenario.model.spec import Method, Parameter


class RowInputs(Assumptions):
    """Input columns and the columns of what applies."""

    delayed: dict[str, tuple[Parameter, Node]]
    """What applies where a row says nothing: a parameter and its formula, still without facts, by name."""

    def core_inputs(self) -> None:
        self.add(Field("id", "input", Facts("text"), title="Scenario", doc="The row's name; opaque."))
        for name in CORE_TEXT:
            doc = {"model": "The target model.", "gpu": "The GPU it runs on.", "method": "The decoding method, or a stack."}[name]
            if name in self.table.defaults:
                self.add(Field(f"{name}_given", "input", Facts("text", blank=True), doc=f"{doc} Blank: the default.", public=False))
                self.effective(name, Field(name, "calc", Facts("text"), doc=doc), Name(f"default_{name}"))
            else:
                self.add(Field(name, "input", Facts("text"), doc=doc))

    def add(self, item: Field) -> None:
        self.fields[item.name] = item
        self.env[item.name] = item.facts

    def effective(self, name: str, item: Field, fallback: Node) -> None:
        """The column that formulas read: what the row gives, else the fallback."""
        tree = Call("coalesce", (Name(f"{name}_given"), fallback)) if f"{name}_given" in self.fields else fallback
        node = facts.check(tree, self.env)
        declared = item.facts
        if declared.type == "number" and node.facts.blank:
            declared = replace(declared, blank=True)
        elif declared.type == "text":
            declared = replace(declared, blank=node.facts.blank)
        self.add(replace(item, node=node, text=compile_text(node), facts=declared))

    def input_fields(self) -> None:
        self.delayed = {}
        given = set(self.table.rows.columns)
        for name, parameter in self.inputs.items():
            has_default = f"default_{name}" in self.scalars
            if not has_default and not parameter.derive:
                self.add(Field(name, "input", parameter_facts(parameter, blank=False), parameter.unit, doc=parameter.doc,
                               source=parameter.source, parameter=parameter))  # fmt: skip
                continue
            self.given(name, parameter)
            fallback: Node = Name(f"default_{name}") if has_default else self.tree(parameter.derive)
            if name in self.model.finish:
                fallback = Call("coalesce", (Name(f"{name}_given"), fallback))
            for formula in self.model.finish.get(name, ()):
                fallback = expr.substitute(self.tree(formula), {"asked": fallback})
            self.delayed[name] = (parameter, fallback)
        if len(self.time_models) > 1:
            parameter = Parameter(kind="choice", choices=tuple(self.time_models), doc="How a pass is timed.")
            self.given("time_model", parameter)
            self.delayed["time_model"] = (parameter, Name("default_time_model"))
        for name, parameter in self.parameters.items():
            owners = [method for method in self.host.methods.values() if name in method.parameters]
            shared_by_used = len(owners) > 1 or parameter.kind == "model"
            if name in given or (shared_by_used and any(method.name in self.used for method in owners)):
                self.given(name, parameter)
            if self.has_column(name):
                self.delayed[name] = (parameter, self.by_method(name))
        for name in (name for name in acceptance.DIALECTS if name in self.delayed):
            self.delayed[name] = (self.delayed[name][0], self.dialect(name, self.delayed[name][1]))
        if "auto_gamma" in self.delayed:
            parameter, node = self.delayed["gamma"]
            self.delayed["set_gamma"] = (parameter, node)
            # A method without drafts has no auto_gamma either: what its row gives holds.
            on = Compare(">", Call("coalesce", (Name("auto_gamma"), Number(0))), Number(0))
            best = Call("coalesce", (Name("best_gamma"), Name("set_gamma")))  # without a time there is no best, but memory all the same
            self.delayed["gamma"] = (parameter, If(on, best, Name("set_gamma")))

    def derived(self) -> list[tuple[Method, str, Parameter]]:
        """The parameters with a formula behind them, each of which has a helper column."""
        return [(m, key, p) for m in self.host.methods.values() for key, p in m.parameters.items()
                if p.derive and scalar_name(m, key) in self.scalars]

    def override_fields(self) -> None:
        """Values typed in place of computed ones: inputs that are blank where the formula holds."""
        for column in self.table.rows.columns:
            if column.endswith("_override"):
                name = column.removesuffix("_override")
                self.add(Field(column, "input", Facts(low=-1e15, high=1e15, blank=True), public=False, title=f"override of {name}",
                               doc=f"A value that stands in place of the formula of {name}; blank: the formula holds."))  # fmt: skip

    def has_column(self, name: str) -> bool:
        """Whether a method parameter is a column: it is shared, used, or given; else formulas read the scalar."""
        owners = [method.name for method in self.host.methods.values() if name in method.parameters]
        if self.parameters[name].kind == "model":  # catalog lookups need a column for their key
            return True
        asked = name == "hit_rate" and "break_even_length" in self.asked
        return len(owners) > 1 or asked or f"{name}_given" in self.fields or any(owner in self.used for owner in owners)

    def given(self, name: str, parameter: Parameter) -> None:
        self.add(Field(f"{name}_given", "input", parameter_facts(parameter, blank=True), parameter.unit,
                       doc=f"{parameter.doc} Blank: the default applies.", parameter=parameter, public=False, format=parameter.format))  # fmt: skip

    def by_method(self, name: str) -> Node:
        """The value of a parameter where the row gives none, by the row's method."""
        slot = next(slot for slot, methods in self.slot_methods.items() for m in methods if name in self.host.methods[m].parameters)
        arms: list[Node] = [Blank()]
        for method in (self.host.methods[m] for m in self.slot_methods[slot]):
            arms.append(self.fallback(method, name) if name in method.parameters else Blank())
        return Call("choose", (Name(NUMBER[slot]), *arms))

    def fallback(self, method: Method, name: str) -> Node:
        parameter = method.parameters[name]
        scalar = Name(scalar_name(method, name))
        if scalar.id not in self.scalars:
            return self.unset(parameter)
        if not parameter.derive:
            return scalar
        parts: list[Node] = [scalar, Name(f"{scalar.id}_derived")]
        if parameter.default is not None:
            parts.append(Name(f"{scalar.id}_default"))
        return Call("coalesce", tuple(parts))
