"""Builds the :class:`~scenario.book.book.Book` of a table: which columns there are, and each one's formula."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from scenario.book import assumptions, by_method, column_facts, optional_columns, output_choices, own_columns, row_inputs
from scenario.book.assumptions import find_lookup
from scenario.book.book import ANSWER, KEY, Book, Field, calc, limits
from scenario.book.scope import CORE_TEXT, NUMBER, Pending, Scope
from scenario.common.errors import FormulaError, Problem, nearest
from scenario.common.yamltree import YamlNode as Place
from scenario.formulas import expr, facts, graph
from scenario.formulas.expr import Name, Node, Number
from scenario.formulas.facts import Facts
from scenario.formulas.to_excel import compile_excel
from scenario.formulas.to_text import compile_text
from scenario.model import answers, serving, shared
from scenario.model.kinds import parameter_facts
from scenario.model.spec import Column
from scenario.registry import contract, ownership
from scenario.registry.loaded import Host
from scenario.tables.table import Table


def assemble(table: Table, host: Host) -> Book:
    """The book of a checked table. Raises :class:`FormulaError` with every fault of the table's formulas."""
    own = ownership.for_table(host, ownership.parts(table.stacks.values()))
    scope = Scope(own_columns.apart(table, own), own)
    optional_columns.prepare(scope)
    assumptions.add_scalars(scope)
    scope.tables = assumptions.entity_tables(scope)
    row_inputs.core_inputs(scope)
    scope.functions = scope.timing.functions(scope.functions)
    scope.functions["prefill_ms"] = prefill_function(scope)
    row_inputs.input_fields(scope)
    row_inputs.override_fields(scope)
    resolve(scope, formulas(scope))
    output_choices.check_sort(scope)
    where = output_choices.condition(scope)
    rows, columns = output_choices.summary_rows(scope), output_choices.summary_columns(scope)
    view = output_choices.summary_view(scope)
    if scope.problems:
        raise FormulaError(sorted(scope.problems, key=lambda problem: (problem.line, problem.column)))
    arguments = {name: Facts(low=0, high=1e15, open_low=name == "rows") for name in contract.TIME_FUNCTION[0]}
    pass_ms = facts.check(scope.functions["forward_ms"][1], {**scope.env, **arguments})
    table, named = scope.table, {slot: ["", *(method.name for method in methods)] for slot, methods in scope.methods.items()}
    return Book(
        table, scope.scalars, scope.tables, scope.fields, table.vectors, assumptions.every_stack(scope), named["quantization"],
        named["drafting"], scope.time_models, own.methods, pass_ms, where, table.sort, rows, columns, table.summary.where,
        ownership.seen(own, scope.used, scope.time_models, table.presets), view,
    )  # fmt: skip


def prefill_function(scope: Scope) -> tuple[tuple[str, ...], Node]:
    """A pass over one prompt: as any other, with the arithmetic and the GPUs of that prompt, alone."""
    arguments, body = scope.functions["forward_ms"]
    attention = expr.parse("prefill_attention_tflop * 1e12 / prefill_tokens")
    return arguments, expr.substitute(body, {
        "flops_per_token": Name("prefill_flops_per_token"), "attention_flops_per_token": attention, "gpus": Name("prefill_gpus"),
        "batch": Number(1),
    })  # fmt: skip


def formulas(scope: Scope) -> Pending:
    """Every computed column with its tree, functions written out, methods chosen between."""
    pending: Pending = {}
    for name, (parameter, node) in scope.delayed.items():
        column = Column("", parameter.unit, parameter.doc, parameter.title, parameter.source, parameter.format)
        pending[name] = (column, node)
    pending |= by_method.derived(scope)
    pending |= {name: (column, shared_tree(scope, name, column)) for name, column in scope.columns.items()}
    pending |= scope.timing.extra()
    for name, method in by_method.own_columns(scope).items():
        pending[name] = (method.columns[name], by_method.answers(scope, name, None))
    # Vanilla decoding at the stored weights computes in BF16, whatever the method computes in.
    plain = {"peak_tflops": scope.tree(scope.columns["peak_tflops"].formula)}
    baselines = [name for name in pending if name.startswith(("baseline_ms", "baseline_interference_ms"))]
    pending |= {name: (pending[name][0], expr.substitute(pending[name][1], plain)) for name in baselines}
    row = optional_columns.what_if(scope, pending)
    if "gpus_needed" in pending:
        pending |= optional_columns.sized(scope, row)
    asked = sorted(scope.asked - set(pending))
    pending |= {name: optional_columns.asked_for(scope, name, row) for name in asked}
    return {**pending, **dict(added(scope, pending))}


def shared_tree(scope: Scope, name: str, column: Column) -> Node:
    """The tree of a column of every row: the time models' answer, the methods', or the engine's own."""
    answer = scope.timing.answers(name, column, scope.functions)
    if answer is not None:
        return answer
    return by_method.answers(scope, name, column) if name in shared.OPEN else scope.tree(column.formula)


def added(scope: Scope, pending: Pending) -> Iterator[tuple[str, tuple[Column, Node]]]:
    """The columns that plugins add for all rows, and those of the table, each under a name of its own."""
    taken = {*pending, *scope.fields, *scope.parameters, *scope.model.scalars, *CORE_TEXT}
    helpers = [f"{key}_row" for key in (*CORE_TEXT, "weights", "kv", "encoder", "time_model", *scope.parameters)]
    cased = {known.lower(): known for known in (*taken, KEY, ANSWER, *helpers)}
    extra: list[tuple[str, Column, Place | None]] = [(name, item.column, None) for name, item in scope.host.columns.items()]
    for name, column, place in [*extra, *((name, column, node) for name, (column, node) in scope.table.columns.items())]:
        said = name_problem(scope, name, taken, cased)
        if said:
            scope.problems.append(scope.table.source.problem(place, f"'{name}' {said}; choose another"))
            continue
        cased[name.lower()] = name
        yield name, (column, scope.tree(column.formula))


def name_problem(scope: Scope, name: str, taken: set[str], cased: dict[str, str]) -> str:
    """Why a column cannot have a name; empty if it can. ``cased`` are known names by their small letters."""
    if name in taken or find_lookup(scope, name):
        return "is the name of a shared column or input"
    found = find_lookup(scope, name.lower())
    other = cased.get(name.lower()) or (found.name if found else "")
    if other and other != name:  # headers of a spreadsheet's table are one if only their capital letters differ
        return f"differs from '{other}' by capital letters only"
    return "is a name that the workbook needs" if other or name.endswith(("_given", "_override")) else ""


def overridden(scope: Scope, pending: Pending) -> None:
    """Make room for values in place of lookups, and refuse those that stand for nothing that is computed."""
    for column in [name for name in scope.fields if name.endswith("_override")]:
        name = column.removesuffix("_override")
        found = find_lookup(scope, name)
        if name in pending and name not in scope.delayed:
            continue
        if found is not None and found.facts.type == "number":
            scope.add(replace(found, name=f"{name}_catalog", public=False))
            pending[name] = Column(f"{name}_catalog", found.unit, found.doc), Name(f"{name}_catalog")
            continue
        source = scope.table.source
        section = source.problem(None, f"'{name}' is not a computed column, so nothing can stand in its place")
        hint = nearest(name, [*pending, *assumptions.known_lookups(scope)])
        scope.problems.append(replace(section, place="overrides", hint=hint))


def resolve(scope: Scope, pending: Pending) -> None:
    """Add every lookup and every computed column with its facts, each after those that it reads."""
    overridden(scope, pending)
    shown = [name for text in optional_columns.summary_formulas(scope) for name in expr.names(expr.parse(text))]
    for name in [*NUMBER.values(), *shared.ORDER, *(name for _, tree in pending.values() for name in tree.names), *shown]:
        if name not in scope.fields and name not in pending and name not in scope.scalars:
            found = find_lookup(scope, name)
            if found:
                scope.add(found)
    known = [*pending, *assumptions.known_lookups(scope)]

    def place(name: str) -> Problem:
        return column_facts.place_of(scope, name)

    for loop in graph.circles({name: tree.names for name, (_, tree) in pending.items()}):
        scope.problems.append(graph.said(loop, place))
        for name in loop:  # the others are checked all the same
            pending.pop(name, None)
            scope.env[name] = Facts(blank=True)
    order = graph.order({name: tree.names for name, (_, tree) in pending.items()}, place)
    unlimited: set[str] = set()
    for name in order:
        item = computed(scope, name, *pending[name], known)
        if item:
            item = replace(item, limit=limits(item.node, unlimited)) if item.node else item
            unlimited |= {name} if item.limit else set()
            scope.add(item)
    scope.fields = {name: scope.fields[name] for name in in_order(scope, order)}


def computed(scope: Scope, name: str, column: Column, tree: Node, known: list[str]) -> Field | None:
    """A computed column; None where its formula is wrong, which is noted."""
    try:
        node = column_facts.check(scope, name, tree, column.formula, known)
        if name in scope.table.columns:  # what no spreadsheet takes is told here, with its place, and not once all is computed
            compile_excel(node, lambda _: "A1", lambda *_: "A1:A2")
    except FormulaError as error:
        scope.problems += [column_facts.located(scope, name, problem) for problem in error.problems]
        scope.env[name] = Facts(blank=True)
        return None
    if f"{name}_override" in scope.fields and node.facts.type != "number":
        said = f"'{name}' is not a number, so no number can stand in its place"
        scope.problems.append(Problem(said, place="overrides"))
    item = calc(name, column, node, column.formula or compile_text(node))
    if name.endswith("_derived") or name.startswith("sizing_") or (name in scope.asked and name not in answers.SHOWN):
        item = replace(item, public=False, sheet=answers.sheet_of(name))
    if name in scope.delayed:
        parameter = scope.delayed[name][0]
        if name in scope.model.finish:
            parameter = replace(parameter, low=1, format="")
        item = replace(item, facts=parameter_facts(parameter, blank=node.facts.blank), parameter=parameter)
    own = name in shared.OPEN or name in serving.EVERY_QUESTION or name in by_method.own_columns(scope)
    return replace(item, text=compile_text(node)) if own or name in scope.delayed or not column.formula else item


def in_order(scope: Scope, order: list[str]) -> list[str]:
    """The columns as they stand in a file: inputs, lookups, what applies, what is computed."""
    inputs = [name for name, item in scope.fields.items() if item.role == "input"]
    lookups = [name for name, item in scope.fields.items() if item.role == "lookup"]
    effective = [name for name in order if name in scope.fields and (name in scope.delayed)]
    calcs = [name for name, item in scope.fields.items() if item.role == "calc" and name not in effective]
    return [*inputs, *lookups, *effective, *calcs]
