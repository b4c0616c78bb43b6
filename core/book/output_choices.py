"""What a table says of its output: which rows are kept, how they are sorted, and what the summary shows."""

from __future__ import annotations

from scenario.book.scope import Scope
from scenario.book.summary import Builder, SummaryView
from scenario.common.errors import FormulaError
from scenario.formulas import facts
from scenario.formulas.expr import Node
from scenario.model import serving
from scenario.model.labels import label
from scenario.tables.table import unknown_column

SUMMARY_ROWS = (
    "weight_gb", "kv_bytes_per_token", "flops_per_token", "step_ms", "tokens_per_round", "round_ms", "tpot_ms",
    "tokens_per_s", "speedup", "memory_gb", "max_batch", "usd_per_million_tokens", "status",
)  # fmt: skip


def public(scope: Scope) -> list[str]:
    """The columns that may be named."""
    return [item.name for item in scope.fields.values() if item.public]


def check_sort(scope: Scope) -> None:
    """Note a problem for each column to sort by that is not there."""
    table = scope.table
    scope.problems += [unknown_column(table.source, node, name, public(scope))
                       for (name, _), node in zip(table.sort, table.sort_nodes, strict=True)
                       if name not in scope.fields and name not in table.columns]  # fmt: skip


def condition(scope: Scope) -> Node | None:
    """The checked condition of the rows that are kept."""
    source, where = scope.table.source, scope.table.where
    if where is None:
        return None
    try:
        tree = scope.tree(where.text)
        names = {*scope.fields, *scope.scalars, *(name for name in scope.table.columns if name in scope.env)}
        node = facts.check(tree, {name: scope.env[name] for name in names}, where.text)
    except FormulaError as error:
        scope.problems += [source.formula_problem(where.node, problem) for problem in error.problems]
        return None
    if node.facts.type != "flag":
        scope.problems.append(source.problem(where.node, "where is a condition, such as fits and speedup > 1"))
    return node


def summary_rows(scope: Scope) -> tuple[str, ...]:
    """The metrics of the summary."""
    table, asked = scope.table, scope.table.summary
    usual = tuple(name for name in (*SUMMARY_ROWS, *serving.SUMMARY) if name in scope.fields) + tuple(table.columns)
    rows, known = asked.rows or usual, public(scope)
    scope.problems += [unknown_column(table.source, asked.nodes.get(("rows", name)), name, known)
                       for name in rows if name not in known and name not in table.columns]  # fmt: skip
    return rows


def summary_columns(scope: Scope) -> str:
    """The input whose values are the columns of the summary: the one asked for, or one that varies."""
    table, asked = scope.table, scope.table.summary
    known = ("model", "gpu", "method", "batch", "context", *scope.inputs, *scope.parameters)
    inputs = [name for name in known if name in scope.fields]
    named = [("columns", asked.columns)] if asked.columns else []
    scope.problems += [unknown_column(table.source, asked.nodes.get(place), place[1], inputs)
                       for place in (*named, *(("where", name) for name in asked.where)) if place[1] not in inputs]  # fmt: skip
    if asked.columns:
        return asked.columns
    varying = [name for name in table.rows.columns if name in inputs and table.rows[name].n_unique() > 1]
    return next((name for name in ("method", "model", "gpu", *varying) if name in varying), "model")


def summary_view(scope: Scope) -> SummaryView | None:
    """The summary whose columns are scenarios of their own, checked."""
    asked = scope.table.summary.table
    if asked is None:
        return None
    titles = {name: label(name, item.title) for name, item in scope.fields.items()}
    names = {*scope.fields, *scope.scalars}
    known = {name: fact for name, fact in scope.env.items() if name in names}
    builder = Builder(scope.tree, known, scope.scalars, titles, scope.table.rows["id"].to_list(), scope.table.source)
    found = builder.view(asked, [name for name in SUMMARY_ROWS if name in scope.fields])
    scope.problems += builder.problems
    return found
