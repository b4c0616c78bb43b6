"""A table of scenarios: YAML in, checked inputs out. Nothing is computed here.

The rows come out as a frame of what was *given*: a cell is null where the row says nothing, so that
defaults stay one value for all rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenario import catalog, contract, rows, shared, stacks, vectors, yamltree
from scenario.catalog import Catalog
from scenario.errors import FormulaError, Problem, TableError, nearest
from scenario.host import Host
from scenario.spec import Column, Parameter
from scenario.stacks import Stack
from scenario.vectors import Vectors
from scenario.yamltree import Node, Source

if TYPE_CHECKING:
    import polars as pl

VERSION = 1
KEYS: dict[str, str] = {
    "version": "version of the table format: 1",
    "title": "what the table is about",
    "time_model": "how a pass is timed: bound",
    "preset": "named parameter values to start from: a name or a list",
    "defaults": "inputs of every row that does not say otherwise",
    "grid": "lists of inputs; every combination is a row",
    "rows": "rows one by one; a list inside a row expands",
    "parameters": "per method: values in place of its defaults",
    "models": "models of this table, or changes to built-in ones",
    "gpus": "GPUs of this table, or changes to built-in ones",
    "prices": "$/GPU-hour by GPU",
    "profiles": "acceptance profiles: marginal rates per draft position",
    "curves": "measured points, read with curve(\"name\", x)",
    "columns": "columns of this table: a formula each",
    "where": "a condition; rows that fail it are left out of the output",
    "sort": "a column to sort the output by; -column is descending",
    "summary": "what the summary sheet shows",
}
TEXT_INPUTS = ("id", "model", "gpu", "method", "time_model")
MAX_ROWS = 5_000_000


@dataclass(frozen=True)
class Formula:
    """A formula of the table with its place."""

    text: str
    node: Node


@dataclass(frozen=True)
class Summary:
    """What the Summary sheet shows: metrics as rows, the values of one input as columns.

    ``where`` fixes other inputs to a value at the start; the sheet's drop-downs change them.
    """

    rows: tuple[str, ...] = ()
    columns: str = ""
    where: Mapping[str, float | str] = field(default_factory=dict)


@dataclass
class Table:
    """A checked table. ``rows`` has one row per scenario with the inputs as given (null: not given).

    ``defaults`` and ``parameters`` (by method and name) are the table's own values; ``origins`` says for
    each input name where its default comes from.
    """

    file: str
    title: str
    sha256: str
    source: Source
    catalog: Catalog
    vectors: Vectors
    rows: pl.DataFrame
    stacks: dict[str, Stack]
    time_model: str = "bound"
    presets: tuple[str, ...] = ()
    defaults: dict[str, float | str] = field(default_factory=dict)
    parameters: dict[str, dict[str, float | str]] = field(default_factory=dict)
    columns: dict[str, tuple[Column, Node]] = field(default_factory=dict)
    where: Formula | None = None
    sort: tuple[tuple[str, bool], ...] = ()
    summary: Summary = field(default_factory=Summary)
    summary_node: Node | None = None


def load(path: str | Path | Mapping[str, Any], host: Host, *, max_rows: int = MAX_ROWS) -> Table:
    """The table in a YAML file, or given as a mapping of the same keys.

    Raises :class:`TableError` (or :class:`FormulaError`) with everything that is wrong.
    """
    if isinstance(path, Mapping):
        source, node = from_mapping(path)
        digest = hashlib.sha256(repr(path).encode()).hexdigest()
    else:
        source, node = yamltree.read(path)
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return Reader(source, node, host, max_rows).table(digest)


def from_mapping(data: Mapping[str, Any]) -> tuple[Source, Node]:
    """A tree without places, for a table given as Python data. Numpy and other scalars become plain ones."""

    def build(value: Any, depth: int) -> Node:
        if depth > yamltree.MAX_DEPTH:
            raise TableError("the table is nested too deeply")
        if isinstance(value, Mapping):
            return Node({str(key): build(item, depth + 1) for key, item in value.items()}, 0, 0)
        if isinstance(value, str | bool | int | float) or value is None:
            return Node(value, 0, 0)
        if isinstance(value, Sequence | set | range) or hasattr(value, "tolist"):
            items = value.tolist() if hasattr(value, "tolist") else list(value)
            return Node([build(item, depth + 1) for item in items], 0, 0) if isinstance(items, list) else Node(items, 0, 0)
        raise TableError(f"a table holds numbers, texts, lists and mappings, not {type(value).__name__}")

    return Source("table", ""), build(data, 0)


class Reader:
    """Reads the sections of one table, noting every problem before it gives up."""

    def __init__(self, source: Source, root: Node, host: Host, max_rows: int) -> None:
        self.source, self.root, self.host, self.max_rows = source, root, host, max_rows
        self.parameters = parameter_specs(host)
        self.profiles: dict[str, vectors.Profile] = {}
        self.stacks: dict[str, Stack] = {}
        self.catalog = catalog.builtin()

    def table(self, digest: str) -> Table:
        source, root = self.source, self.root
        if not isinstance(root.value, dict):
            source.say(root, f"a table is a mapping of {', '.join(list(KEYS)[:6])} ..., not {root.kind}")
            source.stop()
        for name, node in root.value.items():
            if name not in KEYS:
                source.unknown(root.keys.get(name, node), name, "key", list(KEYS))
        self.version()
        get = root.value.get
        self.catalog = catalog.merge(self.catalog, source, {k: root.value[k] for k in ("models", "gpus", "prices") if k in root.value})
        self.profiles = {name: profile for name, profile in self.profile_section(get("profiles"))}
        curves = dict(self.curve_section(get("curves")))
        time_model = self.time_model(get("time_model"))
        presets = self.preset_names(get("preset"))
        defaults = self.defaults(get("defaults"))
        parameters = self.method_parameters(get("parameters"))
        columns = self.columns(get("columns"))
        where = self.formula(get("where"), "where")
        sort = self.sort(get("sort"))
        summary = self.summary(get("summary"))
        given = rows.Expander(self, defaults).frame(get("grid"), get("rows"))
        source.stop()
        title = get("title")
        return Table(
            source.file, str(title.value) if title and title.value is not None else Path(source.file).stem, digest, source,
            self.catalog, Vectors(self.profiles, curves), given, self.stacks, time_model, presets, defaults, parameters,
            columns, where, sort, summary, get("summary"),
        )  # fmt: skip

    def version(self) -> None:
        node = self.root.value.get("version")
        if node is None:
            self.source.say(self.root, "the table has no version", f"write version: {VERSION}")
        elif node.value != VERSION or isinstance(node.value, bool):
            self.source.say(node, f"version {node.value!r} of the table format is unknown", f"this program reads version {VERSION}")

    def section(self, node: Node | None, what: str) -> dict[str, Node]:
        return catalog.mapping(self.source, node, what)

    def value(self, name: str, parameter: Parameter, node: Node) -> float | str | None:
        """One checked value, or None with a problem noted."""
        value = node.value
        if parameter.kind == "profile" and isinstance(value, list | str):
            return self.profile_value(node)
        if isinstance(value, dict | list) or value is None:
            self.source.say(node, f"{name} is one value, not {node.kind}")
            return None
        if parameter.kind in contract.TEXT_KINDS and not isinstance(value, str):
            value = str(value).lower() if isinstance(value, bool) else f"{value:g}"
        said = contract.value_problem(parameter, value)
        if said:
            near = nearest(str(value), parameter.choices) if parameter.choices else ""
            if isinstance(value, str) and parameter.kind not in contract.TEXT_KINDS:
                near = _number_hint(value)
            self.source.say(node, f"{name}: {said}", near)
            return None
        if parameter.kind == "model" and value not in self.catalog.models:
            self.source.unknown(node, str(value), "model", list(self.catalog.models))
            return None
        return value if isinstance(value, str) else float(value)

    def name_of(self, what: str, node: Node, known: Sequence[str] | Mapping[str, Any]) -> str | None:
        """A text that must be one of ``known``."""
        if not isinstance(node.value, str | int | float) or isinstance(node.value, bool):
            self.source.say(node, f"a {what} is named by a text, not {node.kind}")
            return None
        name = str(node.value)
        if name not in known:
            self.source.unknown(node, name, what, list(known))
            return None
        return name

    def stack(self, node: Node) -> str | None:
        """The canonical name of a method stack."""
        if not isinstance(node.value, str):
            self.source.say(node, f"a method is named by a text, not {node.kind}")
            return None
        stack, said, unknown = stacks.parse(node.value, self.host.methods)
        if stack is None:
            hint = self.host.missing("method", unknown, self.host.methods) if unknown else ""
            self.source.say(node, said, hint)
            return None
        self.stacks[stack.name] = stack
        return stack.name

    def profile_value(self, node: Node) -> str | None:
        if isinstance(node.value, str):
            if node.value in self.profiles:
                return node.value
            rates = _rates(node.value)
            if rates is None:
                self.source.unknown(node, node.value, "acceptance profile", list(self.profiles))
                return None
            return self.anonymous(node, rates)
        return self.anonymous(node, self.rates(node))

    def anonymous(self, node: Node, rates: Sequence[float] | None) -> str | None:
        if rates is None or not self.falling(node, rates):
            return None
        name = "/".join(f"{rate:.12g}" for rate in rates)
        self.profiles.setdefault(name, vectors.Profile(name, tuple(rates), self.source.file, "Given in the table."))
        return name

    def rates(self, node: Node) -> list[float] | None:
        values = node.value if isinstance(node.value, list) else [node]
        if not values or not all(isinstance(v.value, int | float) and not isinstance(v.value, bool) for v in values):
            self.source.say(node, "a profile is a list of marginal acceptance rates, such as [0.8, 0.6, 0.5]")
            return None
        return [float(v.value) for v in values]

    def falling(self, node: Node, rates: Sequence[float]) -> bool:
        if len(rates) > vectors.POSITIONS:
            self.source.say(node, f"a profile has at most {vectors.POSITIONS} rates, not {len(rates)}")
        elif not all(0 <= rate <= 1 for rate in rates):
            self.source.say(node, "acceptance rates lie between 0 and 1")
        elif any(later > earlier for earlier, later in zip(rates, rates[1:], strict=False)):
            self.source.say(node, "marginal acceptance rates never rise with the position",
                            "these may be conditional rates: multiply them up (p_k = p_(k-1) * a_k)")  # fmt: skip
        else:
            return True
        return False

    def profile_section(self, node: Node | None) -> list[tuple[str, vectors.Profile]]:
        found = []
        for name, entry in self.section(node, "profiles").items():
            body, notes = self.body(entry, "rates", "profile")
            rates = self.rates(body) if body else None
            if rates is not None and body is not None and self.falling(body, rates):
                found.append((name, vectors.Profile(name, tuple(rates), notes.get("source", self.source.file), notes.get("doc", ""))))
        return found

    def curve_section(self, node: Node | None) -> list[tuple[str, vectors.Curve]]:
        found = []
        for name, entry in self.section(node, "curves").items():
            body, notes = self.body(entry, "points", "curve")
            if body is None:
                continue
            points = body.plain()
            good = isinstance(points, list) and len(points) >= 2 and all(
                isinstance(p, list) and len(p) == 2 and all(isinstance(v, int | float) and abs(v) < 1e30 for v in p) for p in points
            )  # fmt: skip
            if not good:
                self.source.say(body, "a curve is a list of at least two points, such as [[1, 4.8], [64, 5.1]]")
            elif any(later[0] <= earlier[0] for earlier, later in zip(points, points[1:], strict=False)):
                self.source.say(body, "the x values of a curve must rise")
            else:
                pairs = tuple((float(x), float(y)) for x, y in points)
                found.append((name, vectors.Curve(name, pairs, notes.get("source", self.source.file), notes.get("doc", ""))))
        return found

    def body(self, entry: Node, key: str, what: str) -> tuple[Node | None, dict[str, str]]:
        if not isinstance(entry.value, dict):
            return entry, {}
        for name, node in entry.value.items():
            if name not in (key, "source", "doc"):
                self.source.unknown(entry.keys.get(name, node), name, f"{what} field", [key, "source", "doc"])
        if key not in entry.value:
            self.source.say(entry, f"a {what} needs {key}")
            return None, {}
        return entry.value[key], {k: str(n.value) for k, n in entry.value.items() if k != key}

    def time_model(self, node: Node | None) -> str:
        if node is None:
            return "bound" if "bound" in self.host.time_models else next(iter(self.host.time_models), "bound")
        if not isinstance(node.value, str) or node.value not in self.host.time_models:
            hint = self.host.missing("time model", str(node.value), self.host.time_models)
            self.source.say(node, f"unknown time model '{node.value}'", hint)
            return ""
        return node.value

    def preset_names(self, node: Node | None) -> tuple[str, ...]:
        if node is None:
            return ()
        listed = node.value if isinstance(node.value, list) else [node]
        names = [self.name_of("preset", item, self.host.presets) for item in listed]
        found = [name for name in names if name]
        for name in found:
            preset = self.host.presets[name]
            for parameter, value in preset.values.items():
                if self.host.methods[preset.method].parameters[parameter].kind == "profile":
                    self.profile_value(replace(node, value=value))
        return tuple(found)

    def defaults(self, node: Node | None) -> dict[str, float | str]:
        known = {**shared.INPUTS, **shared.SCALARS}
        found: dict[str, float | str] = {}
        for name, cell in self.section(node, "defaults").items():
            key = node.keys.get(name, cell) if node else cell
            value: float | str | None
            if name in ("model", "gpu", "method"):
                value = self.text_input(name, cell)
            elif name in known:
                value = self.value(name, known[name], cell)
            elif name in self.parameters:
                owners = [method.name for method in self.host.methods.values() if name in method.parameters]
                self.source.say(key, f"'{name}' belongs to a method, not to all rows",
                                f"parameters: {{{owners[0]}: {{{name}: {cell.value}}}}}")  # fmt: skip
                continue
            else:
                self.source.unknown(key, name, "default", ["model", "gpu", "method", *known])
                continue
            if value is not None:
                found[name] = value
        return found

    def text_input(self, name: str, node: Node) -> str | None:
        if name == "method":
            return self.stack(node)
        if name == "time_model":
            return self.name_of("time model", node, self.host.time_models)
        return self.name_of(*{"model": ("model", self.catalog.models), "gpu": ("GPU", self.catalog.gpus)}[name][:1], node,
                            {"model": self.catalog.models, "gpu": self.catalog.gpus}[name])  # fmt: skip

    def method_parameters(self, node: Node | None) -> dict[str, dict[str, float | str]]:
        found: dict[str, dict[str, float | str]] = {}
        for method, body in self.section(node, "parameters").items():
            key = node.keys.get(method, body) if node else body
            if method not in self.host.methods:
                hint = self.host.missing("method", method, self.host.methods)
                if "+" in method:
                    hint = "parameters are set for each method of a stack on its own"
                self.source.say(key, f"unknown method '{method}'", hint)
                continue
            specs = self.host.methods[method].parameters
            for name, cell in self.section(body, f"parameters of {method}").items():
                if name not in specs:
                    self.source.unknown(body.keys.get(name, cell), name, f"parameter of {method}", list(specs))
                    continue
                value = self.value(name, specs[name], cell)
                if value is not None:
                    found.setdefault(method, {})[name] = value
        return found

    def columns(self, node: Node | None) -> dict[str, tuple[Column, Node]]:
        found: dict[str, tuple[Column, Node]] = {}
        fields = ("formula", "unit", "doc", "title", "format", "source")
        for name, cell in self.section(node, "columns").items():
            key = node.keys.get(name, cell) if node else cell
            for problem in contract._variable("", name):
                self.source.say(key, problem.message, problem.hint)
            extra: dict[str, str] = {}
            formula = cell
            if isinstance(cell.value, dict):
                for field_name, part in cell.value.items():
                    if field_name not in fields:
                        self.source.unknown(cell.keys.get(field_name, part), field_name, "column field", list(fields))
                    else:
                        extra[field_name] = str(part.value)
                if "formula" not in cell.value:
                    self.source.say(cell, f"column '{name}' needs a formula")
                    continue
                formula = cell.value["formula"]
            read = self.formula(formula, f"column '{name}'")
            if read:
                found[name] = (Column(**{**extra, "formula": read.text}), read.node)
        return found

    def formula(self, node: Node | None, what: str) -> Formula | None:
        if node is None:
            return None
        if isinstance(node.value, bool | dict | list) or node.value is None:
            self.source.say(node, f"{what} is a formula, not {node.kind}")
            return None
        text = str(node.value)
        try:
            contract.parse_formula(text, self.host, {"forward_ms": contract.TIME_FUNCTION})
        except FormulaError as error:
            self.source.problems += [self.source.formula_problem(node, problem) for problem in error.problems]
            return None
        return Formula(text, node)

    def sort(self, node: Node | None) -> tuple[tuple[str, bool], ...]:
        if node is None:
            return ()
        found = []
        for item in node.value if isinstance(node.value, list) else [node]:
            if not isinstance(item.value, str) or not item.value.strip("-+ "):
                self.source.say(item, f"sort names a column, not {item.kind}")
                continue
            found.append((item.value.strip("-+ "), item.value.strip().startswith("-")))
        return tuple(found)

    def summary(self, node: Node | None) -> Summary:
        parts = self.section(node, "summary")
        for name, cell in parts.items():
            if name not in ("rows", "columns", "where"):
                self.source.unknown(node.keys.get(name, cell) if node else cell, name, "summary key", ["rows", "columns", "where"])
        metrics: list[str] = []
        if "rows" in parts:
            listed = parts["rows"].value if isinstance(parts["rows"].value, list) else [parts["rows"]]
            for item in listed:
                if isinstance(item.value, str):
                    metrics.append(item.value)
                else:
                    self.source.say(item, f"summary rows are names of columns, not {item.kind}")
        across = parts.get("columns")
        if across is not None and not isinstance(across.value, str):
            self.source.say(across, f"summary columns is the name of an input, not {across.kind}")
        where: dict[str, float | str] = {}
        for name, cell in self.section(parts.get("where"), "summary where").items():
            if isinstance(cell.value, str | int | float) and not isinstance(cell.value, bool):
                where[name] = cell.value if isinstance(cell.value, str) else float(cell.value)
            else:
                self.source.say(cell, f"summary where gives one value for {name}, not {cell.kind}")
        return Summary(tuple(metrics), str(across.value) if across is not None else "", where)


def parameter_specs(host: Host) -> dict[str, Parameter]:
    """Every parameter of every method by name; one that several declare allows what any of them allows."""
    found: dict[str, Parameter] = {}
    for method in host.methods.values():
        for name, parameter in method.parameters.items():
            if name not in found:
                found[name] = parameter
                continue
            old = found[name]
            lows = [p.low for p in (old, parameter)]
            highs = [p.high for p in (old, parameter)]
            found[name] = replace(
                old,
                low=None if None in lows else min(low for low in lows if low is not None),
                high=None if None in highs else max(high for high in highs if high is not None),
            )
    return found


def _rates(text: str) -> list[float] | None:
    try:
        return [float(part) for part in text.split("/")]
    except ValueError:
        return None


def _number_hint(text: str) -> str:
    if "," in text:
        return "a number has a decimal point and no separators: " + text.replace(",", ".", 1)
    if text.strip().endswith("%"):
        return "a percentage is written as a number: 0.5"
    return ""


def unknown_column(source: Source, node: Node | None, name: str, known: Sequence[str]) -> Problem:
    """The problem of naming a column that is not there."""
    return source.problem(node, f"unknown column '{name}'", nearest(name, known))
