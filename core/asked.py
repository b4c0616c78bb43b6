"""What a table asks for beside the columns of every row: dialects of acceptance, answers, families of helper columns.

A mixin of the assembler: which optional parameters and columns a table has, and their formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scenario import acceptance, answers, expr, shared
from scenario.book import Field, Scalar
from scenario.expr import Blank, Call, If, Logic, Name, Node, Number
from scenario.host import Host
from scenario.spec import Column, Method, Parameter
from scenario.table import Table, parameter_specs


def scalar_name(method: Method, parameter: str) -> str:
    """The name of a method's parameter among the assumptions: ``eagle_alpha``."""
    return f"{method.name}_{parameter}".replace("-", "_").replace(".", "_")


class Asked:
    """The optional part of an assembler. The attributes and the methods below are the assembler's."""

    table: Table
    host: Host
    used: set[str]
    mentioned: set[str]
    parameters: dict[str, Parameter]
    time_models: list[str]
    slot_methods: dict[str, list[str]]
    absent: dict[str, Node]
    asked: set[str]
    scalars: dict[str, Scalar]
    fields: dict[str, Field]

    def tree(self, text: str) -> Node:
        """A formula as a tree, functions written out."""
        raise NotImplementedError

    def answers(self, name: str, default: Column | None) -> Node:
        """The methods' answers to an open question, chosen by the row's method."""
        raise NotImplementedError

    def fallback(self, method: Method, name: str) -> Node:
        """The value of a method's parameter where the row gives none."""
        raise NotImplementedError

    def has_column(self, name: str) -> bool:
        """Whether a method parameter is a column."""
        raise NotImplementedError

    def mentions(self) -> set[str]:
        """The names that the table and the plugins' columns read or show."""
        table = self.table
        texts = [column.formula for column, _ in table.columns.values()] + ([table.where.text] if table.where else [])
        texts += [named.column.formula for named in self.host.columns.values()]
        found = {name for text in texts for name in expr.names(expr.parse(text))}
        shown = [part for name in table.show for part in answers.GROUPS.get(name, (name,))]
        return found | {name for name, _ in table.sort} | {*table.summary.rows, table.summary.columns, *table.summary.where, *shown}

    def uses(self, name: str) -> bool:
        """Whether the table says anything about a parameter."""
        presets = (self.host.presets[preset].values for preset in self.table.presets)
        places = (self.table.rows.columns, self.mentioned, *self.table.parameters.values(), *presets)
        return any(name in place for place in places)

    def absences(self) -> dict[str, Node]:
        """What formulas read in place of parameters that this table has no cell for."""
        found: dict[str, Node] = {}
        for name, parameter in parameter_specs(self.host).items():
            if name not in self.parameters:
                found[name] = self.unset(parameter)
        for name in ("alpha", "gamma", "hit_rate", *acceptance.DIALECTS, *acceptance.ADDED):
            if name not in self.parameters:
                found.setdefault(name, Blank())
        if "auto_gamma" not in self.parameters:
            found["set_gamma"] = Name("gamma") if "gamma" in self.parameters else Blank()
        return found

    def unset(self, parameter: Parameter) -> Node:
        """What a parameter is that has no cell of its own."""
        if parameter.derive:
            return self.tree(parameter.derive)
        return Number(float(parameter.default)) if isinstance(parameter.default, int | float) else Blank()

    def asked_columns(self) -> set[str]:
        """The columns of :mod:`scenario.answers` that this table has."""
        drafting = [self.host.methods[name] for name in self.used if "alpha" in self.host.methods[name].parameters]
        wanted = set(self.mentioned) | (set(answers.ALWAYS) if drafting else set())
        if any(name in self.parameters for name in acceptance.LENGTHS):
            wanted.add("measured_alpha")
        if drafting and self.uses("acceptance"):
            wanted.add("alpha_equivalent")
        if "auto_gamma" in self.parameters:
            wanted.add("best_gamma")
        reads = {"break_even_batch": ["break_even_closed", "break_even_bracket"]}
        if any(name in self.parameters for name in acceptance.LENGTHS):
            reads["acceptance_source"] = ["measured_length"]
        found = answers.closure(wanted, reads)
        return found - set(self.absent) - set(self.table.columns)

    def dialect(self, name: str, fallback: Node) -> Node:
        """How much is accepted where the row does not say it this way: not at all, when it says it in another."""
        if name == "alpha":
            measured = "measured_alpha" in self.asked
            return If(Call("is_blank", (Name("measured_length"),)), fallback, Name("measured_alpha")) if measured else fallback
        others = [f"{other}_given" for other in acceptance.DIALECTS if other != name and f"{other}_given" in self.fields]
        tests = tuple(Call("is_blank", (Name(other),)) for other in others)
        if not tests:
            return fallback
        return If(tests[0] if len(tests) == 1 else Logic("and", tests), fallback, Blank())

    def answer(self, name: str, own: Mapping[str, list[Method]]) -> tuple[Column, Node]:
        """An asked-for column and its tree."""
        if name in answers.BY_GAMMA:
            family, gamma = answers.BY_GAMMA[name]
            unit, doc = answers.MEANINGS[family]
            column = Column("", unit, f"{doc} with {gamma} draft tokens per round.")
            if family == "tpot_ms":
                text = answers.TPOT_G.format(gamma)
                return replace(column, formula=text), self.tree(text)
            source = answers.SOURCES[family]
            inner = {key: self.answers(key, None) for key in own}
            tree = self.answers(source, shared.OPEN[source])
            for _ in range(3 if inner else 0):
                tree = expr.substitute(tree, inner)
            return column, expr.substitute(tree, {"gamma": Number(float(gamma))})
        column = answers.ASKED[name]
        if name == "acceptance_source":
            return column, self.tree(self.source_text())
        if name == "break_even_batch":
            bound = ' and time_model == "bound"' if len(self.time_models) > 1 else ""
            column = replace(column, formula=f"blank if draft_no < 2 else break_even_closed if experts < 1{bound} else break_even_bracket")
        return column, self.tree(column.formula)

    def source_text(self) -> str:
        """The formula that says where the row's acceptance comes from."""
        arms = ["blank"]
        for method in (self.host.methods[name] for name in self.slot_methods["drafting"]):
            if "alpha" not in method.parameters:
                arms.append("blank")
                continue
            parts = [f'"{name}" if not is_blank({of}) else' for name, of in (("tree", "tree"), ("profile", "acceptance"))
                     if of in method.parameters and of in self.parameters]  # fmt: skip
            parts += ['"measured length" if not is_blank(measured_length) else'] if "measured_length" in self.asked else []
            parts += ['"constant alpha" if not is_blank(alpha_given) else'] if "alpha_given" in self.fields else []
            default = self.scalars[scalar_name(method, "alpha")].origin == "default"
            arms.append(" ".join([*parts, '"constant alpha (default)"' if default else '"constant alpha"']))
        return f"choose(draft_no, {', '.join(arms)})"

    def inline(self, method: Method) -> dict[str, Node]:
        """What the formulas of a method read for its parameters that are no columns in this table."""
        return {key: self.fallback(method, key) for key in method.parameters if key in self.parameters and not self.has_column(key)}
