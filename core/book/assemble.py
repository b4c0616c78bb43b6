"""Builds the :class:`~scenario.book.book.Book` of a table: which columns there are, and each one's formula."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from scenario.book import own_columns, selection
from scenario.book.assumptions import CORE_TEXT, NUMBER
from scenario.book.book import Book, Field, Scalar, calc, limits
from scenario.book.optional_columns import scalar_name
from scenario.book.row_inputs import RowInputs
from scenario.book.timing import Timing
from scenario.common.errors import FormulaError, Problem, nearest
from scenario.formulas import expr, facts, graph
from scenario.formulas.expr import Blank, Call, Name, Node, Number
from scenario.formulas.facts import Facts
from scenario.formulas.prune import without
from scenario.formulas.to_text import compile_text
from scenario.model import answers, serving, shared, stacks
from scenario.model.kinds import parameter_facts
from scenario.model.spec import Column, Method
from scenario.registry import contract, ownership
from scenario.registry.host import Host
from scenario.tables.table import Table, parameter_specs, unknown_column

SUMMARY_ROWS = (
    "weight_gb", "kv_bytes_per_token", "flops_per_token", "step_ms", "tokens_per_round", "round_ms", "tpot_ms",
    "tokens_per_s", "speedup", "memory_gb", "max_batch", "usd_per_million_tokens", "status",
)  # fmt: skip


def assemble(table: Table, host: Host) -> Book:
    """The book of a checked table. Raises :class:`FormulaError` with every fault of the table's formulas."""
    used = ownership.parts(table.stacks.values())
    own = ownership.for_table(host, used)
    return _Assembler(own_columns.apart(table, own), own).book()


class _Assembler(RowInputs):
    def __init__(self, table: Table, host: Host) -> None:
        self.table, self.host = table, host
        self.model = selection.select(table, host)
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
            summary_columns, self.table.summary.where, ownership.seen(self.host, self.used, self.time_models, self.table.presets),
        )  # fmt: skip

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
        # Vanilla decoding at the stored weights computes in BF16, whatever the method computes in.
        plain = {"peak_tflops": self.tree(self.columns["peak_tflops"].formula)}
        baselines = [name for name in pending if name.startswith(("baseline_ms", "baseline_interference_ms"))]
        pending |= {name: (pending[name][0], expr.substitute(pending[name][1], plain)) for name in baselines}
        row = self.what_if(pending)
        if "gpus_needed" in pending:
            pending |= self.sized(row)
        pending |= {name: self.answer(name, row) for name in sorted(self.asked - set(pending))}
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
        known = [*pending, *self.known_lookups()]
        for loop in graph.circles({name: expr.names(tree) for name, (_, tree) in pending.items()}):
            self.problems.append(graph.said(loop, self.place))
            for name in loop:  # the others are checked all the same
                pending.pop(name, None)
                self.env[name] = Facts(blank=True)
        order = graph.order({name: expr.names(tree) for name, (_, tree) in pending.items()}, self.place)
        unlimited: set[str] = set()
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
            if name.endswith("_derived") or name.startswith("sizing_") or (name in self.asked and name not in answers.SHOWN):
                item = replace(item, public=False, sheet=answers.sheet_of(name))
            if name in self.delayed:
                parameter = self.delayed[name][0]
                if name in self.model.finish:
                    parameter = replace(parameter, low=1, format="")
                declared = parameter_facts(parameter, blank=node.facts.blank)
                item = replace(item, facts=declared, parameter=parameter, text=compile_text(node))
            if name in shared.OPEN or name in own or name in serving.EVERY_QUESTION or not column.formula:
                item = replace(item, text=compile_text(node))
            self.add(replace(item, limit=limits(node, unlimited)))
            if self.fields[name].limit:
                unlimited.add(name)
        self.fields = {name: self.fields[name] for name in self.in_order(order)}

    def in_order(self, order: list[str]) -> list[str]:
        inputs = [name for name, item in self.fields.items() if item.role == "input"]
        lookups = [name for name, item in self.fields.items() if item.role == "lookup"]
        effective = [name for name in order if name in self.fields and (name in self.delayed)]
        calcs = [name for name, item in self.fields.items() if item.role == "calc" and name not in effective]
        return [*inputs, *lookups, *effective, *calcs]

    def check(self, name: str, tree: Node, text: str, known: list[str]) -> Node:
        """Facts for a tree; the arms of a choice by method are checked with that method's parameters set."""
        typed = self.typed(name)
        node = self.check_arms(name, tree, text, known)
        if not typed.endswith("_given"):
            self.series(node, text)
        return self.first_of(typed, node) if typed else node

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
