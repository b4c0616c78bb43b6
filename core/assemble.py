"""Builds the :class:`~scenario.book.Book` of a table: which columns there are, and each one's formula."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from scenario import acceptance, answers, contract, entities, expr, facts, graph, images, selection, serving, shared, stacks, timing
from scenario.asked import Asked, scalar_name
from scenario.book import Book, EntityTable, Field, Lookup, Scalar, Value, entity_inputs, entity_rows, time_model_rows
from scenario.contract import parameter_facts
from scenario.errors import FormulaError, Problem, nearest
from scenario.expr import Blank, Call, Compare, If, Name, Node, Number
from scenario.facts import Facts
from scenario.host import Host
from scenario.prune import without
from scenario.spec import Column, Method, Parameter
from scenario.table import Table, parameter_specs, unknown_column
from scenario.timing import Timing
from scenario.to_text import compile_text
from scenario.vectors import Vectors

CORE_TEXT = ("model", "gpu", "method")
NUMBER = {"quantization": "quant_no", "drafting": "draft_no"}
SUMMARY_ROWS = (
    "weight_gb", "kv_bytes_per_token", "flops_per_token", "step_ms", "tokens_per_round", "round_ms", "tpot_ms",
    "tokens_per_s", "speedup", "memory_gb", "max_batch", "usd_per_million_tokens", "status",
)  # fmt: skip


def assemble(table: Table, host: Host) -> Book:
    """The book of a checked table. Raises :class:`FormulaError` with every fault of the table's formulas."""
    return _Assembler(table, host).book()


class _Assembler(Asked):
    def __init__(self, table: Table, host: Host) -> None:
        self.table, self.host = table, host
        self.model = selection.select(table)
        own = {f.name: (tuple(f.arguments), expr.parse(f.formula)) for f in self.model.functions}
        self.functions = {**contract.function_trees(host), **own}
        self.scalars: dict[str, Scalar] = {}
        self.fields: dict[str, Field] = {}
        self.env: dict[str, Facts] = {}
        self.problems: list[Problem] = []
        self.sure: dict[str, bool] = {}  # whether a derived parameter has a value in every row of its method
        self.mentioned = self.mentions()
        self.parameters = {name: p for name, p in parameter_specs(host).items() if not p.quiet or self.uses(name)}
        self.timing = Timing(table, host, self.model)
        self.inputs = self.timing.inputs()
        self.columns = self.timing.columns()
        self.time_models = [model.name for model in self.timing.models]
        used_stacks = table.stacks.values()
        self.used = {part for stack in used_stacks for part in (stack.quantization, stack.drafting) if part}
        slots = {name: stacks.slots(method) for name, method in host.methods.items()}
        self.slot_methods = {slot: [name for name in host.methods if slot in slots[name]] for slot in NUMBER}
        self.absent: dict[str, Node] = {}
        self.absent = self.absences()
        self.asked = self.asked_columns()

    # -- the pieces, in the order in which they depend on each other -----------------------------------

    def book(self) -> Book:
        self.shared_scalars()
        self.method_scalars()
        tables = self.entity_tables()
        self.tables = tables
        self.core_inputs()
        own = self.own_columns()
        self.functions = self.timing.functions(self.functions)
        self.functions["prefill_ms"] = self.prefill_function()
        self.input_fields()
        self.override_fields()
        pending = self.formulas(own)
        self.resolve(pending, own)
        where = self.condition()
        summary_rows, summary_columns = self.summary()
        if self.problems:
            raise FormulaError(sorted(self.problems, key=lambda problem: (problem.line, problem.column)))
        arguments = {name: Facts(low=0, high=1e15, open_low=name == "rows") for name in contract.TIME_FUNCTION[0]}
        pass_ms = facts.check(self.functions["forward_ms"][1], {**self.env, **arguments})
        return Book(
            self.table, self.scalars, tables, self.fields, self.table.vectors, self.stacks, ["", *self.slot_methods["quantization"]],
            ["", *self.slot_methods["drafting"]], self.time_models, self.host.methods, pass_ms, where, self.table.sort, summary_rows,
            summary_columns, self.table.summary.where, tuple((p.name, p.origin) for p in self.host.plugins if p.state == "loaded"),
        )  # fmt: skip

    @property
    def stacks(self) -> list[stacks.Stack]:
        return stacks.every(self.host.methods)

    def scalar(self, scalar: Scalar, blank: bool) -> None:
        self.scalars[scalar.name] = scalar
        self.env[scalar.name] = parameter_facts(scalar.parameter, blank=blank)

    def shared_scalars(self) -> None:
        defaults = self.table.defaults
        text = {name: Parameter(kind="choice", doc=f"The {name} of rows that do not name one.") for name in CORE_TEXT}
        for name, parameter in {**text, **self.inputs, **self.model.scalars}.items():
            given = name in defaults
            if not given and (parameter.default is None):
                continue
            value = defaults[name] if given else parameter.default
            alias = name if name in shared.SCALARS else f"default_{name}"
            source = self.table.shown_as if given else parameter.source or "engine default"
            self.scalar(Scalar(alias, value, parameter, "table" if given else "default", source), False)
        if len(self.time_models) > 1:
            parameter = Parameter(kind="choice", choices=tuple(self.time_models), doc="How a pass is timed.")
            self.scalar(Scalar("default_time_model", self.table.time_model, parameter, "table", self.table.shown_as), False)
        for model, key, parameter in self.timing.parameters():
            typed = self.table.parameters.get(model.name, {})
            origin, source = ("table", self.table.shown_as) if key in typed else ("default", parameter.source)
            value = typed.get(key, parameter.default)
            value = float(value) if isinstance(value, int | float) else value
            self.scalar(Scalar(timing.scalar_name(model, key), value, parameter, origin, source, model.name), parameter.default is None)

    def method_scalars(self) -> None:
        presets = {}
        for name in self.table.presets:
            preset = self.host.presets[name]
            presets.update({(preset.method, key): (value, preset) for key, value in preset.values.items()})
        for method in self.host.methods.values():
            typed = self.table.parameters.get(method.name, {})
            said = [key for key in acceptance.DIALECTS if key in typed]
            said = said or [key for key in acceptance.DIALECTS if (method.name, key) in presets]
            for key, parameter in method.parameters.items():
                if key not in self.parameters or (parameter.quiet and key not in typed and (method.name, key) not in presets):
                    continue
                name = scalar_name(method, key)
                value: float | str | None = parameter.default if not parameter.derive else None
                origin, source = ("default", parameter.source) if value is not None else ("unset", parameter.source)
                if (method.name, key) in presets:
                    value, preset = presets[method.name, key]
                    origin, source = "preset", f"{preset.source} (preset {preset.name})"
                if said and key in acceptance.DIALECTS and key not in said and key != "alpha":
                    value, origin, source = None, "unset", parameter.source
                if key in typed:
                    value, origin, source = typed[key], "table", self.table.shown_as
                value = float(value) if isinstance(value, int | float) else value
                maybe = parameter.default is None or bool(parameter.derive)
                self.scalar(Scalar(name, value, parameter, origin, source, method.name), maybe)
                if parameter.derive and parameter.default is not None:
                    # A derived value that turns out blank falls back on the default, which is then an assumption.
                    fallback = replace(parameter, doc=f"{parameter.doc} Used when it cannot be derived.")
                    self.scalar(Scalar(f"{name}_default", parameter.default, fallback, "default", parameter.source, method.name), False)

    def entity_tables(self) -> dict[str, EntityTable]:
        rows = entity_rows(self.table.catalog, published=self.model.uses("published"))
        numbers = entity_inputs({NUMBER[s]: Parameter(1, 1, len(m) + 1, kind="integer") for s, m in self.slot_methods.items()},
                                NUMBER.values())  # fmt: skip
        methods: list[Mapping[str, Value]] = []
        for stack in self.stacks:
            parts = [self.host.methods[part] for part in dict.fromkeys((stack.quantization, stack.drafting)) if part]
            parts = parts or [self.host.methods[stack.name]]
            methods.append({
                "name": stack.name, "title": " + ".join(part.title or part.name for part in parts),
                "quant_no": float(self.number("quantization", stack.quantization)),
                "draft_no": float(self.number("drafting", stack.drafting)),
                "source": "; ".join(part.source for part in parts if part.source),
                "doc": " ".join(part.doc for part in parts),
            })  # fmt: skip
        tables = {
            "models": self.entity_table("models", entities.MODEL_FIELDS, entities.MODEL_FIELDS, entities.MODEL_COLUMNS, rows["models"]),
            "gpus": EntityTable("gpus", entity_inputs(entities.GPU_FIELDS, entities.GPU_REQUIRED), (), rows["gpus"]),
            "methods": EntityTable("methods", numbers, (), tuple(methods)),
            "formats": EntityTable("formats", entity_inputs(entities.FORMAT_FIELDS, entities.FORMAT_FIELDS), (), rows["formats"]),
        }
        if self.model.uses("images"):
            required = [name for name, parameter in images.ENCODER_FIELDS.items()]
            tables["encoders"] = self.entity_table("encoders", images.ENCODER_FIELDS, required, images.ENCODER_COLUMNS, images.encoders())
        if len(self.time_models) > 1:
            number = {"time_model_no": Parameter(1, 1, len(self.time_models), kind="integer")}
            tables["time_models"] = EntityTable(
                "time_models", entity_inputs(number, number), (), time_model_rows(self.timing.models)
            )
        if self.timing.sets:
            rows_ = tuple(item.row for item in self.timing.sets)
            tables["hardware"] = EntityTable("hardware", entity_inputs(entities.HARDWARE_FIELDS, entities.HARDWARE_FIELDS), (), rows_)
        return tables

    def entity_table(
        self, name: str, given: Mapping[str, Parameter], required: Iterable[str], computed: Mapping[str, Column],
        rows: tuple[Mapping[str, Any], ...],
    ) -> EntityTable:  # fmt: skip
        """A catalog table whose computed columns follow from its typed ones and the shared scalars."""
        inputs = entity_inputs(given, required)
        env = {name: self.env[name] for name in self.model.scalars} | {item.name: item.facts for item in inputs}
        trees = {name: expr.parse(column.formula) for name, column in computed.items()}
        columns: dict[str, Field] = {}
        for name_ in graph.order({name: expr.names(tree) for name, tree in trees.items()}):
            node = facts.check(trees[name_], env, computed[name_].formula)
            env[name_] = node.facts
            columns[name_] = calc(name_, computed[name_], node, computed[name_].formula)
        return EntityTable(name, inputs, tuple(columns[name] for name in computed), rows)

    def number(self, slot: str, method: str) -> int:
        return self.slot_methods[slot].index(method) + 2 if method else 1

    # -- inputs ----------------------------------------------------------------------------------------

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
        self.delayed: dict[str, tuple[Parameter, Node]] = {}
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
            on = Compare(">", Name("auto_gamma"), Number(0))
            self.delayed["gamma"] = (parameter, If(on, Name("best_gamma"), Name("set_gamma")))

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

    # -- formulas --------------------------------------------------------------------------------------

    def tree(self, text: str) -> Node:
        return without(expr.expand(expr.parse(text), self.functions, text=text), self.absent)

    def prefill_function(self) -> tuple[tuple[str, ...], Node]:
        """A pass over one prompt: as any other, with the arithmetic and the GPUs of that prompt, alone."""
        arguments, body = self.functions["forward_ms"]
        attention = expr.parse("prefill_attention_tflop * 1e12 / prefill_tokens")
        return arguments, expr.substitute(body, {
            "flops_per_token": Name("prefill_flops_per_token"), "attention_flops_per_token": attention, "gpus": Name("prefill_gpus"),
            "batch": Number(1),
        })  # fmt: skip

    def own_columns(self) -> dict[str, list[Method]]:
        """Columns that methods bring for their own rows, if a row uses them."""
        own: dict[str, list[Method]] = {}
        for method in self.host.methods.values():
            if method.name in self.used:
                for name in method.columns:
                    if name not in shared.OPEN:
                        own.setdefault(name, []).append(method)
        return own

    def formulas(self, own: Mapping[str, list[Method]]) -> dict[str, tuple[Column, Node]]:
        """Every computed column with its tree, functions written out, methods chosen between."""
        pending: dict[str, tuple[Column, Node]] = {}
        for name, (parameter, node) in self.delayed.items():
            column = Column("", parameter.unit, parameter.doc, parameter.title, parameter.source, parameter.format)
            pending[name] = (column, node)
        for method, key, parameter in self.derived():
            doc = f"{key} of {method.name} as it follows from the model and the GPU; {parameter.doc}"
            tree = expr.substitute(self.tree(parameter.derive), self.inline(method))
            slot = next(slot for slot, methods in self.slot_methods.items() if method.name in methods)
            arms = [Blank(), *(tree if name == method.name else Blank() for name in self.slot_methods[slot])]
            choice = Call("choose", (Name(NUMBER[slot]), *arms))
            pending[f"{scalar_name(method, key)}_derived"] = (Column(parameter.derive, parameter.unit, doc), choice)
        for name, column in self.columns.items():
            answer = self.timing.answers(name, column, self.functions)
            pending[name] = (column, answer or (self.answers(name, column) if name in shared.OPEN else self.tree(column.formula)))
        pending |= self.timing.extra()
        for name, methods in own.items():
            pending[name] = (methods[0].columns[name], self.answers(name, None))
        for name in sorted(self.asked - set(pending)):
            pending[name] = self.answer(name, own)
        # Vanilla decoding at the stored weights computes in BF16, whatever the method computes in.
        plain = {"peak_tflops": self.tree(self.columns["peak_tflops"].formula)}
        baselines = [name for name in pending if name.startswith("baseline_ms")]
        pending |= {name: (pending[name][0], expr.substitute(pending[name][1], plain)) for name in baselines}
        taken = {*pending, *self.fields, *self.parameters, *self.model.scalars, *CORE_TEXT}
        helpers = [f"{key}_row" for key in (*CORE_TEXT, "weights", "kv", "encoder", "time_model", *self.parameters)]
        cased = {known.lower(): known for known in (*taken, "summary_key", *helpers)}
        extra = [(n, c.column, None) for n, c in self.host.columns.items()]
        for name, column, place in [*extra, *((n, c, node) for n, (c, node) in self.table.columns.items())]:
            if name in taken or self.find_lookup(name):
                self.problems.append(self.table.source.problem(place, f"'{name}' is the name of a shared column or input; choose another"))
                continue
            found = self.find_lookup(name.lower())
            other = cased.get(name.lower()) or (found.name if found else "")
            if other or name.endswith(("_given", "_override")):
                # Headers of a spreadsheet's table are one if only their capital letters differ.
                said = "is a name that the workbook needs" if not other or other == name else f"differs from '{other}' by capital letters only"
                self.problems.append(self.table.source.problem(place, f"'{name}' {said}; choose another"))
                continue
            cased[name.lower()] = name
            pending[name] = (column, self.tree(column.formula))
        return pending

    def answers(self, name: str, default: Column | None) -> Node:
        slot = next((s for s in NUMBER for m in self.slot_methods[s] if name in self.host.methods[m].columns), "")
        first: Node = self.tree(default.formula) if default else Blank()
        if not slot:
            return first
        arms = [first]
        for method in (self.host.methods[m] for m in self.slot_methods[slot]):
            if name not in method.columns:
                arms.append(first)
                continue
            arm = self.tree(method.columns[name].formula)
            arms.append(expr.substitute(arm, self.inline(method)))
        return Call("choose", (Name(NUMBER[slot]), *arms))

    def find_lookup(self, name: str) -> Field | None:
        """The catalog field that a name stands for, if any."""
        keys = {"": ("models", "model"), "gpu_": ("gpus", "gpu"), "weights_": ("formats", "weights"), "kv_": ("formats", "kv"),
                "weights_format_": ("formats", "weights"), "encoder_": ("encoders", "encoder")}  # fmt: skip
        choices = [(prefix, *where) for prefix, where in keys.items() if prefix] + [("", *keys[""])]
        choices += [("", "methods", "method"), ("", "time_models", "time_model"), ("hardware_", "hardware", "hardware")]
        choices = [(f"{n}_", "models", n) for n, p in self.parameters.items() if p.kind == "model"] + choices
        for prefix, table, key in choices:
            if name.startswith(prefix) and table in self.tables:
                found = self.tables[table].fields.get(name[len(prefix) :])
                if found is None:
                    continue
                maybe = found.facts.blank or key in self.parameters or key == "encoder"
                return Field(name, "lookup", replace(found.facts, blank=maybe), found.unit, found.title, found.doc, found.source,
                             found.format, text=f"{key}: {found.name}", lookup=Lookup(table, key, found.name),
                             public=name in shared.ORDER)  # fmt: skip
        return None

    def overridden(self, pending: dict[str, tuple[Column, Node]], own: Mapping[str, list[Method]]) -> None:
        """Make room for values in place of lookups, and refuse those that stand for nothing that is computed."""
        for column in [name for name in self.fields if name.endswith("_override")]:
            name = column.removesuffix("_override")
            found = self.find_lookup(name)
            if name in pending and name not in self.delayed:
                continue
            if found is not None and found.facts.type == "number":
                self.add(replace(found, name=f"{name}_catalog", public=False))
                pending[name] = Column(f"{name}_catalog", found.unit, found.doc), Name(f"{name}_catalog")
                continue
            source = self.table.source
            section = source.problem(None, f"'{name}' is not a computed column, so nothing can stand in its place")
            hint = nearest(name, [*pending, *self.known_lookups()])
            self.problems.append(replace(section, place="overrides", hint=hint))

    def resolve(self, pending: dict[str, tuple[Column, Node]], own: Mapping[str, list[Method]]) -> None:
        self.overridden(pending, own)
        for name in [*NUMBER.values(), *shared.ORDER, *(n for _, tree in pending.values() for n in expr.names(tree))]:
            if name not in self.fields and name not in pending and name not in self.scalars:
                found = self.find_lookup(name)
                if found:
                    self.add(found)
        try:
            order = graph.order({name: expr.names(tree) for name, (_, tree) in pending.items()}, self.place)
        except FormulaError as error:
            raise FormulaError([*self.problems, *error.problems]) from None
        known = [*pending, *self.known_lookups()]
        for name in order:
            column, tree = pending[name]
            try:
                node = self.check(name, tree, column.formula, known)
            except FormulaError as error:
                self.problems += [self.located(name, problem) for problem in error.problems]
                self.env[name] = Facts(blank=True)
                continue
            if f"{name}_override" in self.fields and node.facts.type != "number":
                self.problems.append(Problem(f"'{name}' is not a number, so no number can stand in its place", place="overrides"))
            item = calc(name, column, node, column.formula or compile_text(node))
            if name.endswith("_derived") or (name in self.asked and name not in answers.SHOWN):
                item = replace(item, public=False, sheet=answers.sheet_of(name))
            if name in self.delayed:
                parameter = self.delayed[name][0]
                if name in self.model.finish:
                    parameter = replace(parameter, low=1, format="")
                declared = parameter_facts(parameter, blank=node.facts.blank)
                item = replace(item, facts=declared, parameter=parameter, text=compile_text(node))
            if name in shared.OPEN or name in own or name in serving.EVERY_QUESTION or not column.formula:
                item = replace(item, text=compile_text(node))
            self.add(item)
        self.fields = {name: self.fields[name] for name in self.in_order(order)}

    def in_order(self, order: list[str]) -> list[str]:
        inputs = [name for name, item in self.fields.items() if item.role == "input"]
        lookups = [name for name, item in self.fields.items() if item.role == "lookup"]
        effective = [name for name in order if name in self.fields and (name in self.delayed)]
        calcs = [name for name, item in self.fields.items() if item.role == "calc" and name not in effective]
        return [*inputs, *lookups, *effective, *calcs]

    def known_lookups(self) -> list[str]:
        found = [*answers.SHOWN, *self.tables["models"].fields, *(f"gpu_{name}" for name in self.tables["gpus"].fields), "weights_bits", "kv_bits"]
        return [*found, *self.parameters, *(f.name for f in shared.FUNCTIONS), *self.host.functions]

    def check(self, name: str, tree: Node, text: str, known: list[str]) -> Node:
        """Facts for a tree; the arms of a choice by method are checked with that method's parameters set."""
        given = f"{name.removeprefix('set_')}_given"
        if given in self.fields and name not in self.model.finish and not (name == "gamma" and "auto_gamma" in self.delayed):
            inner = self.check_arms(name, tree, text, known)
            return self.first_of(given, inner)
        node = self.check_arms(name, tree, text, known)
        self.series(node, text)
        override = f"{name}_override"
        return self.first_of(override, node) if override in self.fields else node

    def series(self, node: Node, text: str) -> None:
        """Refuse a curve or a profile that a formula names and the table does not have."""
        for item in expr.walk(node):
            if isinstance(item, Call) and item.function in ("curve", "at") and isinstance(item.args[0], expr.Text):
                known = self.table.vectors.curves if item.function == "curve" else self.table.vectors.profiles
                asked, kind = item.args[0].value, "curve" if item.function == "curve" else "acceptance profile"
                if asked not in known:
                    hint = nearest(asked, known) or f"name one under {'curves' if kind == 'curve' else 'profiles'}:"
                    raise FormulaError(expr.problem(text, item.args[0].span, f"unknown {kind} '{asked}'", hint))

    def first_of(self, typed: str, inner: Node) -> Node:
        """The value of an input column where it has one, else the formula."""
        tree = Call("coalesce", (replace(Name(typed), facts=self.env[typed]), inner))
        return replace(tree, facts=replace(facts.unite([self.env[typed], inner.facts]), blank=inner.facts.blank))

    def check_arms(self, name: str, tree: Node, text: str, known: list[str]) -> Node:
        slot = next((s for s, n in NUMBER.items() if isinstance(tree, Call) and tree.function == "choose" and tree.args[0] == Name(n)), "")
        if not slot or not isinstance(tree, Call):
            return facts.check(tree, self.env, text, known)
        number = facts.check(tree.args[0], self.env)
        done: list[Node] = []
        for index, arm in enumerate(tree.args[1:]):
            env = self.env
            if index:
                env = self.method_env(self.host.methods[self.slot_methods[slot][index - 1]])
            done.append(facts.check(arm, env, text, known))
        united = facts.unite([arm.facts for arm in done])
        if name.endswith("_derived"):
            self.sure[name] = not next((arm.facts.blank for arm in done if not isinstance(arm, Blank)), True)
        if all(arm == done[0] for arm in done):
            return done[0]
        return replace(tree, args=(number, *done), facts=united)

    def method_env(self, method: Method) -> dict[str, Facts]:
        """What is known of every name in the rows of one method, whose parameters are set there."""
        sure = {}
        for key, parameter in method.parameters.items():
            if key in self.env:
                blank = parameter.default is None and not self.sure.get(f"{scalar_name(method, key)}_derived", False)
                blank = blank or (key == "alpha" and "measured_alpha" in self.asked) or (key == "gamma" and "auto_gamma" in self.delayed)
                sure[key] = parameter_facts(parameter, blank=blank)
        return {**self.env, **sure}

    def place(self, name: str) -> Problem:
        if name in self.table.columns:
            return self.table.source.problem(self.table.columns[name][1], "")
        return Problem("", place=f"column '{name}'")

    def located(self, name: str, problem: Problem) -> Problem:
        if name in self.table.columns:
            return self.table.source.formula_problem(self.table.columns[name][1], problem)
        owner = self.host.columns.get(name)
        return replace(problem, place=f"column '{name}'" + (" of a plugin" if owner else ""))

    # -- what acts at export ---------------------------------------------------------------------------

    def condition(self) -> Node | None:
        source = self.table.source
        public = [item.name for item in self.fields.values() if item.public]
        self.problems += [
            unknown_column(source, node, name, public)
            for (name, _), node in zip(self.table.sort, self.table.sort_nodes, strict=True)
            if name not in self.fields and name not in self.table.columns
        ]  # fmt: skip
        where = self.table.where
        if where is None:
            return None
        try:
            tree = self.tree(where.text)
            names = {*self.fields, *self.scalars, *(name for name in self.table.columns if name in self.env)}
            node = facts.check(tree, {name: self.env[name] for name in names}, where.text)
        except FormulaError as error:
            self.problems += [source.formula_problem(where.node, problem) for problem in error.problems]
            return None
        if node.facts.type != "flag":
            self.problems.append(source.problem(where.node, "where is a condition, such as fits and speedup > 1"))
        return node

    def summary(self) -> tuple[tuple[str, ...], str]:
        table, source = self.table, self.table.source
        asked = table.summary
        public = [item.name for item in self.fields.values() if item.public]
        metrics = asked.rows or tuple(name for name in (*SUMMARY_ROWS, *serving.SUMMARY) if name in self.fields) + tuple(table.columns)
        self.problems += [unknown_column(source, asked.nodes.get(("rows", name)), name, public)
                          for name in metrics if name not in public and name not in table.columns]  # fmt: skip
        inputs = [name for name in ("model", "gpu", "method", "batch", "context", *self.inputs, *self.parameters) if name in self.fields]
        across = asked.columns
        if across and across not in inputs:
            self.problems.append(unknown_column(source, asked.nodes.get(("columns", across)), across, inputs))
        self.problems += [unknown_column(source, asked.nodes.get(("where", name)), name, inputs) for name in asked.where if name not in inputs]
        if not across:
            varying = [name for name in table.rows.columns if name in inputs and table.rows[name].n_unique() > 1]
            across = next((name for name in ("method", "model", "gpu", *varying) if name in varying), "model")
        return metrics, across


def calc(name: str, column: Column, node: Node, text: str) -> Field:
    """A computed field."""
    return Field(name, "calc", node.facts, column.unit, column.title, column.doc, column.source, column.format, node, text)


__all__ = ["Vectors", "assemble", "scalar_name"]
