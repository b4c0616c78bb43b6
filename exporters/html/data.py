"""What a page holds of a result: assumptions, catalogs, formulas as data, rows of inputs, and the engine's own values to check by.

Everything is plain JSON. Names in formulas are columns or assumptions; catalog tables are computed in the page like the
rows, so that an edit of a GPU or of an assumption of the models reaches everything that follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import TopologicalSorter

import polars as pl
import yaml

from scenario import UNLIMITED, Book, EntityTable, Field, Result, Scalar, __version__, compile_js, compile_text, names

Json = dict[str, object]

CHECKED = (
    "tpot_ms",
    "tokens_per_s",
    "tokens_per_s_per_gpu",
    "speedup",
    "usd_per_million_tokens",
    "memory_gb",
    "round_ms",
    "max_batch",
)
"""Columns whose engine values go along, for the line that says how many cells of the page equal them."""
MAIN = (
    "tokens_per_round",
    "tpot_ms",
    "tokens_per_s",
    "speedup",
    "usd_per_million_tokens",
    "memory_gb",
    "fits",
    "max_batch",
    "status",
)
"""Results that the page's table shows first; the others are a choice away."""


def payload(result: Result) -> Json:
    """The page's data. Raises :class:`scenario.FormulaError` for a formula that the page cannot compute."""
    book = result.book
    fields = needed_fields(book)
    lookups = {(f.lookup.table, f.lookup.field) for f in fields.values() if f.lookup}
    keys = {f.lookup.key: f.lookup.table for f in fields.values() if f.lookup}
    tables = {
        name: needed_columns(table, [field for owner, field in lookups if owner == name])
        for name, table in book.tables.items()
    }
    read = {
        name
        for f in [*fields.values(), *(f for table in tables.values() for f in table.values())]
        if f.node
        for name in names(f.node)
    }
    return {
        "version": __version__, "title": book.table.title, "file": book.table.shown_as,
        "table": yaml.safe_load(result.source_text()) or {},
        "scalars": [scalar(item, book) for item in book.scalars.values() if item.name in read],
        "tables": [entity_table(book.tables[name], columns) for name, columns in tables.items() if columns],
        "fields": [row_field(item, book, keys) for item in fields.values()],
        "vectors": vectors(book),
        "rows": rows(book, fields.values()),
        "where": compile_js(book.where) if book.where is not None else None,
        "sort": [[name, down] for name, down in book.sort],
        "public": [item.name for item in book.public],
        "main": [name for name in (*MAIN, *book.table.columns) if name in fields],
        "models": sorted(model for model in book.time_models),
        "unlimited": UNLIMITED,
        "check": {name: result.full[name].to_list() for name in CHECKED if name in fields} | {"id": result.full["id"].to_list()},
    }  # fmt: skip


def needed_fields(book: Book) -> dict[str, Field]:
    """The public columns and all that they and ``where`` read, in the order of computing."""
    reads: dict[str, set[str]] = {}
    stack = [item.name for item in book.public] + (list(names(book.where)) if book.where is not None else [])
    stack += [item.name for item in book.fields.values() if item.role == "input"]
    while stack:
        name = stack.pop()
        if name in book.fields and name not in reads:
            item = book.fields[name]
            found = [item.lookup.key] if item.lookup else names(item.node) if item.node is not None else []
            reads[name] = {source for source in found if source in book.fields}
            stack += reads[name]
    order = TopologicalSorter({name: reads[name] for name in book.fields if name in reads}).static_order()
    return {name: book.fields[name] for name in order}


def needed_columns(table: EntityTable, wanted: Iterable[str]) -> dict[str, Field]:
    """The columns of a catalog table that rows look up, and those that they follow from, in the order of computing."""
    reads: dict[str, set[str]] = {}
    stack = list(wanted)
    while stack:
        name = stack.pop()
        if name not in reads:
            node = table.fields[name].node
            reads[name] = {source for source in names(node) if source in table.fields} if node is not None else set()
            stack += reads[name]
    order = TopologicalSorter({name: reads[name] for name in table.fields if name in reads}).static_order()
    return {name: table.fields[name] for name in order}


def field_data(item: Field) -> Json:
    """What the page knows of any column."""
    data: Json = {"name": item.name, "kind": "text" if item.facts.type == "none" else item.facts.type, "unit": item.unit, "title": item.title,
                  "doc": item.doc, "source": item.source, "format": item.format}  # fmt: skip
    if item.node is not None:
        data |= {"tree": compile_js(item.node), "text": compile_text(item.node)}
    if item.limit:
        data["limit"] = True
    return {key: value for key, value in data.items() if value != ""}


def row_field(item: Field, book: Book, keys: Mapping[str, str]) -> Json:
    """A column of the rows; inputs say what may be typed."""
    data = field_data(item)
    if item.lookup:
        data |= {"table": item.lookup.table, "key": item.lookup.key, "field": item.lookup.field}
    elif item.role == "input":
        plain = item.name.removesuffix("_given")
        choices = keys.get(item.name) or keys.get(plain)
        data |= {"input": plain, "blank": item.facts.blank, **limits(item, book)}
        if choices:
            data["choices"] = book.tables[choices].names
    return data


def limits(item: Field | Scalar, book: Book) -> Json:
    """The values that an input takes: ends (``above``: one that is not reached), whole numbers, choices."""
    parameter = item.parameter
    if parameter is None:
        return {}
    found: Json = {"low": parameter.low, "high": parameter.high, "above": parameter.above}
    if parameter.kind in ("integer", "flag"):
        found["whole"] = True
    if parameter.kind == "flag":
        found |= {"low": 0, "high": 1}
    named = {
        "model": lambda: book.tables["models"].names,
        "profile": lambda: list(book.vectors.profiles),
        "tree": lambda: list(book.vectors.trees),
    }
    if parameter.kind in named:
        found["choices"] = named[parameter.kind]()
    if parameter.choices and parameter.kind == "choice":
        found["choices"] = list(parameter.choices)
    return {key: value for key, value in found.items() if value is not None}


def scalar(item: Scalar, book: Book) -> Json:
    """An assumption, and where in the table file it is set."""
    text = item.parameter.kind in ("model", "profile", "tree", "choice") or isinstance(item.value, str)
    plain = item.name.removeprefix("default_")
    if item.owner:
        prefix = f"{item.owner}_".replace("-", "_").replace(".", "_")
        group, path = item.owner, ["parameters", item.owner, item.name.removeprefix(prefix)]
    else:
        group, path = "General", ["time_model"] if plain == "time_model" else ["defaults", plain]
    data: Json = {"name": item.name, "label": path[-1], "group": group, "path": path, "kind": "text" if text else "number", "value": item.value,
                  "unit": item.parameter.unit, "doc": item.parameter.doc, "source": item.source, "origin": item.origin, **limits(item, book)}  # fmt: skip
    if plain in ("model", "gpu", "method"):
        data["choices"] = book.tables[f"{plain}s"].names
    if item.name.endswith("_default") and item.owner:
        data["fixed"] = True  # the fallback of a derived value: the table file has no key for it
    return data


def entity_table(table: EntityTable, columns: Mapping[str, Field]) -> Json:
    """A catalog table: its entries, the typed values of the columns needed, and the formulas of the others."""
    typed = [name for name, item in columns.items() if item.node is None]
    fields = []
    for item in columns.values():
        data = field_data(item)
        if item.node is None and item.parameter is not None:
            low = {key: getattr(item.parameter, key) for key in ("low", "high", "above")}
            data |= {key: value for key, value in low.items() if value is not None}
        fields.append(data)
    return {
        "name": table.name, "names": table.names, "titles": [str(row.get("title") or row["name"]) for row in table.rows],
        "sources": [str(row.get("source") or "") for row in table.rows], "fields": fields,
        "inputs": {name: [row.get(name) for row in table.rows] for name in typed},
    }  # fmt: skip


def vectors(book: Book) -> Json:
    """Profiles and trees by depth, curves by their points."""
    found: Json = {name: [[key, list(values)] for key, values in book.vectors.by_depth(name).items()]
                   for name in ("at", "tree_tokens", "tree_rows")}  # fmt: skip
    found["curve"] = [
        [c.name, [x for x, _ in c.points], [y for _, y in c.points]] for c in book.vectors.curves.values()
    ]
    return found


def rows(book: Book, fields: Iterable[Field]) -> Json:
    """The given inputs of every row of the table, those that ``where`` leaves out included."""
    frame = book.table.rows
    inputs = {}
    for item in fields:
        if item.role == "input":
            source = item.name if item.name in frame.columns else item.name.removesuffix("_given")
            if source in frame.columns:
                inputs[item.name] = (
                    frame[source].to_list()
                    if frame[source].dtype != pl.Boolean
                    else frame[source].cast(pl.Float64).to_list()
                )
    return {"length": frame.height, "inputs": inputs}
