"""What a table asks for beside the columns of every row: dialects of acceptance, answers, families of helper columns.

A mixin of the assembler: which optional parameters and columns a table has, and their formulas.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace

from scenario.book.book import Field, Scalar
from scenario.book.selection import Selection
from scenario.formulas import expr
from scenario.formulas.expr import Binary, Blank, Call, Compare, If, Logic, Name, Node, Number
from scenario.formulas.to_text import compile_text
from scenario.formulas.vectors import POSITIONS
from scenario.formulas.what_if import WhatIf
from scenario.model import acceptance, answers, features, serving, shared
from scenario.model.spec import Column, Method, Parameter
from scenario.registry.host import Host
from scenario.tables.table import Table, parameter_specs


def scalar_name(method: Method, parameter: str) -> str:
    """The name of a method's parameter among the assumptions: ``eagle_alpha``."""
    return f"{method.name}_{parameter}".replace("-", "_").replace(".", "_")


Pending = Mapping[str, tuple[Column, Node]]
"""Columns with their trees, functions written out."""


class Asked(ABC):
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
    model: Selection
    columns: dict[str, Column]
    delayed: dict[str, tuple[Parameter, Node]]

    @abstractmethod
    def tree(self, text: str) -> Node:
        """A formula as a tree, functions written out."""

    @abstractmethod
    def answers(self, name: str, default: Column | None) -> Node:
        """The methods' answers to an open question, chosen by the row's method."""

    @abstractmethod
    def fallback(self, method: Method, name: str) -> Node:
        """The value of a method's parameter where the row gives none."""

    @abstractmethod
    def has_column(self, name: str) -> bool:
        """Whether a method parameter is a column."""

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
        presets = [(self.host.presets[name].method, self.host.presets[name].values) for name in self.table.presets]
        set_ = {self.own_names(method).get(key, key) for method, values in (*self.table.parameters.items(), *presets) for key in values}
        return name in self.table.rows.columns or name in self.mentioned or name in set_

    def own_names(self, method: str) -> Mapping[str, str]:
        """What a method's private names are called in this table, where that is another name."""
        return (self.host.names or {}).get(method, {})

    def absences(self) -> dict[str, Node]:
        """What formulas read in place of parameters that this table has no cell for."""
        found: dict[str, Node] = {}
        for name, parameter in parameter_specs(self.host).items():
            if name not in self.parameters:
                found[name] = self.unset(parameter)
        for name in ("alpha", "gamma", "hit_rate", *acceptance.DIALECTS, *acceptance.ADDED):
            if name not in self.parameters:
                found.setdefault(name, Blank())
        found |= dict.fromkeys(self.model.unasked, Blank())
        if "auto_gamma" not in self.parameters:
            found["set_gamma"] = Name("gamma") if "gamma" in self.parameters else Blank()
        return found

    def unset(self, parameter: Parameter) -> Node:
        """What a parameter is that has no cell of its own."""
        if parameter.derive:
            return self.tree(parameter.derive)
        return Number(float(parameter.default)) if isinstance(parameter.default, int | float) else Blank()

    def asked_columns(self) -> set[str]:
        """The columns of :mod:`scenario.model.answers` that this table has."""
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
        found = answers.closure(wanted, reads, self.gammas())
        return found - set(self.absent) - set(self.table.columns)

    def gammas(self) -> range:
        """The draft lengths that are tried: from the fewest to the most that a method of the table allows."""
        limits = [self.gamma_limits(self.host.methods[name]) for name in self.used if "gamma" in self.host.methods[name].parameters]
        return range(min(low for low, _ in limits), max(high for _, high in limits) + 1) if limits else answers.GAMMAS

    @staticmethod
    def gamma_limits(method: Method) -> tuple[int, int]:
        """The fewest and the most draft tokens that a method allows, of those that are tried."""
        parameter = method.parameters["gamma"]
        low, high = parameter.low or 0, answers.MOST_GAMMA if parameter.high is None else parameter.high
        return min(max(int(low), 0), answers.MOST_GAMMA), min(max(int(high), 0), answers.MOST_GAMMA)

    def longest(self) -> str:
        """The most draft tokens that the row's method allows, of those that are tried."""
        methods = [self.host.methods[name] for name in self.slot_methods["drafting"]]
        most = [self.gamma_limits(method)[1] if "gamma" in method.parameters else POSITIONS for method in methods]
        return str(POSITIONS) if {*most} <= {POSITIONS} else f"choose(draft_no, {', '.join(str(number) for number in (POSITIONS, *most))})"

    def tried(self, gamma: int, tree: Node) -> Node:
        """A time by draft length, or no limit where the row's method does not allow that length or its rates do not reach so far."""
        arms: list[Node] = [tree]
        for name in self.slot_methods["drafting"]:
            method = self.host.methods[name]
            low, high = self.gamma_limits(method) if name in self.used and "gamma" in method.parameters else (0, answers.MOST_GAMMA)
            reached = tree if gamma <= POSITIONS else Call("coalesce", (tree, Number(expr.UNLIMITED)))
            arms.append(reached if low <= gamma <= high else Number(expr.UNLIMITED))
        return tree if all(arm == tree for arm in arms) else Call("choose", (Name("draft_no"), *arms))

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

    def typed(self, name: str) -> str:
        """The input column whose value stands before a column's formula; empty where there is none."""
        given = f"{name.removeprefix('set_')}_given"
        if given in self.fields and name not in self.model.finish and not (name == "gamma" and "auto_gamma" in self.delayed):
            return given
        return f"{name}_override" if f"{name}_override" in self.fields else ""

    def whole(self, name: str, node: Node) -> Node:
        """A column's tree with the value that may be typed in its place."""
        typed = self.typed(name)
        return Call("coalesce", (Name(typed), node)) if typed else node

    def what_if(self, pending: Pending) -> WhatIf:
        """The columns of the row itself, to ask of other draft lengths and batches.

        The GPUs stay those of the row, also where their number follows from the memory needed.
        """
        open_ = {*shared.OPEN, *serving.EVERY_QUESTION}
        trees = {name: self.whole(name, tree) for name, (_, tree) in pending.items()}
        spelled = {name: self.whole(name, expr.parse(self.columns[name].formula)) for name in self.columns if name not in open_}
        return WhatIf(trees, spelled, self.model.finish)

    def sized(self, row: WhatIf) -> dict[str, tuple[Column, Node]]:
        """Columns that find the number of GPUs before what rests on it is known: by the most drafts there may be, and the caches' copies."""
        found: dict[str, tuple[Column, Node]] = {}
        values: dict[str, Node] = {}
        if "auto_gamma" in self.delayed:
            most = Column(f"{self.longest()} if coalesce(auto_gamma, 0) > 0 else set_gamma", "tokens", "Draft tokens that the GPUs have memory for.")
            found[answers.SIZING] = most, self.tree(most.formula)
            values = {"gamma": Name(answers.SIZING)}
        by_size = "memory_gb" in row.dependents(["gpus"])
        needed: Node = Number(float(features.AUTO_SIZES[-1]))
        for size in reversed(features.AUTO_SIZES[:-1]):
            name = answers.sized(size if by_size else 0)
            if name not in found:
                tree, text = row.instead(Name("memory_gb"), {**values, **({"gpus": Number(float(size))} if by_size else {})})
                on = f" on {size} GPU{'s' if size > 1 else ''}" if by_size else ""
                found[name] = Column(text, "GB", f"Memory needed{on}; with the most draft tokens where their number follows from the GPUs."), tree
            test = Compare("<=", Name(name), Binary("*", Number(float(size)), Name("memory_per_gpu_gb")))
            needed = If(test, Number(float(size)), needed)
        if not values and not by_size:
            return {}
        return {**found, "gpus_needed": (replace(self.columns["gpus_needed"], formula=compile_text(needed)), needed)}

    def answer(self, name: str, row: WhatIf) -> tuple[Column, Node]:
        """An asked-for column and its tree; ``row`` are the columns of the row itself."""
        if name in answers.BY_GAMMA:
            family, gamma = answers.BY_GAMMA[name]
            unit, doc = answers.MEANINGS[family]
            column = Column("", unit, f"{doc} with {gamma} draft tokens per round.")
            values: dict[str, Node] = {"gamma": Number(float(gamma))}
            if family == "tpot_ms":
                values |= {source: Name(f"{part}_g{gamma}") for part, source in answers.SOURCES.items()}
                tree, text = row.instead(Name("tpot_ms"), values)
                return replace(column, formula=text), self.tried(gamma, tree)
            return column, row.instead(Name(answers.SOURCES[family]), values)[0]
        column = (answers.ASKED | answers.by_gamma(self.gammas()))[name]
        if name in ("best_round_ms", "best_speedup"):
            values = {"gamma": Name("best_gamma"), **{source: Name(f"best_{part}") for part, source in answers.SOURCES.items()}}
            values |= {"round_ms": Name("best_round_ms")} if name == "best_speedup" else {}
            tree, text = row.instead(Name(name.removeprefix("best_")), values)
            return replace(column, formula=text), tree
        if name in answers.BY_BATCH:
            family, batch = answers.BY_BATCH[name]
            values = {"batch": Number(float(batch))}
            if family == "speedup":
                values |= {step: Name(f"{step}_b{batch}") for step in answers.STEPS}
            tree, text = row.instead(expr.parse(answers.GAIN) if family == "speedup" else Name(family), values)
            return replace(column, formula=text), tree
        if name in answers.CROSSING:
            tree, text = row.instead(expr.parse(answers.GAIN), {"batch": expr.parse(answers.CROSSING[name])})
            return replace(column, formula=text), tree
        if name == "acceptance_source":
            return column, self.tree(self.source_text())
        if name == "break_even_batch":
            column = replace(column, formula=self.break_even_text())
        return column, self.tree(column.formula)

    def break_even_text(self) -> str:
        """The formula of ``break_even_batch``: in closed form only where that is exact."""
        bracket = "blank if draft_no < 2 else break_even_bracket"
        if "bound" not in self.time_models:
            return bracket
        tests = ["experts < 1", "kv_sequence_gb <= 0"]
        tests += ['time_model == "bound"'] if len(self.time_models) > 1 else []
        return f"blank if draft_no < 2 else break_even_closed if {' and '.join(tests)} else break_even_bracket"

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
            name, default = scalar_name(method, "alpha"), method.parameters["alpha"].default
            said = f'"constant alpha (default)" if abs({name} - {default}) < 1e-12 else "constant alpha"' if default else '"constant alpha"'
            arms.append(" ".join([*parts, said]))
        return f"choose(draft_no, {', '.join(arms)})"

    def inline(self, method: Method) -> dict[str, Node]:
        """What the formulas of a method read for its parameters that are no columns in this table."""
        return {key: self.fallback(method, key) for key in method.parameters if key in self.parameters and not self.has_column(key)}
