"""A table's columns as one SQL statement over a table of inputs, for rows that live in a warehouse.

Assumptions are literals, catalog tables are small lists of values that are joined by their keys, and each level of columns is
a common table expression over the one before. The rows come from a table with the names of the inputs as its columns:
``id``, ``model``, ``gpu``, ``method``, ``batch`` and what else the table gives; an input that it lacks is blank.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from sqlglot import exp

from scenario.book.book import Book, Field
from scenario.engine.evaluator import entity_frame
from scenario.formulas import graph
from scenario.formulas.expr import names
from scenario.formulas.to_sql import TYPES, compile_sql, literal, when


def inputs(book: Book) -> dict[str, str]:
    """The columns that the statement reads from the table of inputs, each with its SQL type."""
    return {plain(item): TYPES[item.facts.type] for item in book.fields.values() if item.role == "input"}


def plain(item: Field) -> str:
    """The name under which a table gives an input."""
    return item.name.removesuffix("_given")


def statement(book: Book, source: str, dialect: str, given: Collection[str] | None = None) -> str:
    """One SELECT that gives the public columns of ``book`` for the rows of the table ``source``.

    ``given`` are the inputs that the table has (all of the book's unless named). Raises ValueError for an unknown dialect.
    """
    fields = needed(book)
    reads = {name: sources(item, fields) for name, item in fields.items()}
    order = [name for name in graph.order(reads) if fields[name].role != "input"]
    levels = graph.levels(order, {name: [one for one in reads[name] if fields[one].role != "input"] for name in order})
    query = exp.select(*(prepared(item, given) for item in fields.values() if item.role == "input")).from_(exp.to_table(source))
    ctes = [("s0", query)]
    for number, level in enumerate(levels, 1):
        ctes.append((f"s{number}", layer(book, [fields[name] for name in level], f"s{number - 1}")))
    final = exp.select(*(exp.column(item.name, quoted=True) for item in book.public)).from_(ctes[-1][0])
    if book.where is not None:
        final = final.where(when([(compile_sql(book.where, reader(book), book.vectors), exp.true())], exp.false()))
    for name, query in ctes:
        final = final.with_(name, as_=query)
    return str(final.sql(dialect=dialect, pretty=True))


def needed(book: Book) -> dict[str, Field]:
    """The fields that the public columns and ``where`` come from."""
    found: dict[str, Field] = {}
    stack = [item.name for item in book.public] + (names(book.where) if book.where is not None else [])
    while stack:
        name = stack.pop()
        if name in book.fields and name not in found:
            item = found[name] = book.fields[name]
            stack += [item.lookup.key] if item.lookup else names(item.node) if item.node is not None else []
    return found


def sources(item: Field, fields: Collection[str]) -> list[str]:
    """The fields that one is computed from."""
    read = [item.lookup.key] if item.lookup else names(item.node) if item.node is not None else []
    return [name for name in read if name in fields]


def prepared(item: Field, given: Collection[str] | None) -> exp.Expr:
    """An input as the formulas want it; blank where the table of inputs lacks it."""
    kind = TYPES[item.facts.type]
    value: exp.Expr = exp.column(plain(item), quoted=True) if given is None or plain(item) in given else exp.null()
    return exp.alias_(exp.cast(value, kind), item.name, quoted=True)


def reader(book: Book) -> Callable[[str, str], exp.Expression]:
    """What a name stands for: an assumption's value, or a column of the level below."""

    def column(name: str, kind: str) -> exp.Expression:
        if name in book.scalars and name not in book.fields:
            return literal(book.scalars[name].value, kind)
        return exp.column(name, quoted=True)

    return column


def layer(book: Book, level: Iterable[Field], below: str) -> exp.Select:
    """The columns of one level beside all those below it."""
    query = exp.select(exp.Column(this=exp.Star(), table=exp.to_identifier(below))).from_(below)
    column = reader(book)
    joined: dict[tuple[str, str], list[Field]] = {}
    for item in level:
        if item.lookup:
            joined.setdefault((item.lookup.table, item.lookup.key), []).append(item)
        elif item.node is not None:
            value = exp.cast(compile_sql(item.node, column, book.vectors), TYPES[item.facts.type])
            query = query.select(exp.alias_(value, item.name, quoted=True))
    for number, ((table, key), items) in enumerate(joined.items()):
        name = f"t{number}"
        query = query.select(*(exp.alias_(exp.column(item.name, table=name, quoted=True), item.name, quoted=True) for item in items))
        on = exp.EQ(this=exp.column(key, table=below, quoted=True), expression=exp.column("#key", table=name, quoted=True))
        query = query.join(catalog(book, table, items).subquery(name), on=on, join_type="left")
    return query


def catalog(book: Book, table: str, items: list[Field]) -> exp.Query:
    """The values of some catalog columns, entry by entry."""
    frame = entity_frame(book, book.tables[table]).select("name", *{item.lookup.field for item in items if item.lookup})
    rows: list[exp.Select] = []
    for entry in frame.iter_rows(named=True):
        row: list[exp.Expr] = [exp.alias_(literal(entry["name"]), "#key", quoted=True)]
        for item in items:
            assert item.lookup is not None
            value = entry[item.lookup.field]
            row.append(exp.alias_(exp.cast(literal(value, item.facts.type), TYPES[item.facts.type]), item.name, quoted=True))
        rows.append(exp.select(*row))
    query: exp.Query = rows[0]
    for row_ in rows[1:]:
        query = exp.union(query, row_, distinct=False, copy=False)
    return query
