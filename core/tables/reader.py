"""Reads the sections of a table, noting every problem with its place before it gives up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from scenario.catalogs import catalog, hardware, series
from scenario.catalogs import draft_trees as trees
from scenario.common.errors import FormulaError, ScenarioError, nearest
from scenario.common.yamltree import Node, Source
from scenario.formulas.vectors import Profile, Tree, Vectors
from scenario.model import acceptance, answers, kinds, serving, shared, stacks
from scenario.model.spec import Column, Parameter
from scenario.model.stacks import Stack
from scenario.registry import contract
from scenario.registry.host import Host
from scenario.tables import rows
from scenario.tables.table import KEYS, VERSION, Formula, Summary, Table, parameter_specs

CORE = ("model", "gpu", "method")


class Reader:
    """Reads one table. ``profiles`` and ``stacks`` grow with what its values name."""

    def __init__(self, source: Source, root: Node, host: Host, max_rows: int) -> None:
        self.source, self.root, self.host, self.max_rows = source, root, host, max_rows
        self.parameters = parameter_specs(host)
        self.profiles: dict[str, Profile] = {}
        self.trees: dict[str, Tree] = {}
        self.stacks: dict[str, Stack] = {}
        self.catalog = catalog.builtin()

    def table(self) -> Table:
        """The table, or :class:`TableError` with all its problems."""
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
        self.profiles = series.profiles(source, get("profiles"))
        self.trees = trees.trees(source, get("trees"))
        self.method_profiles()
        curves = series.curves(source, get("curves"))
        measured = series.measured(source, get("measured"), self.catalog)
        sets = hardware.included(source, get("hardware"), Path(source.file).parent, self.catalog.gpus)
        title = self.text(get("title"), "title")
        time_model = self.time_model(get("time_model"))
        presets = self.preset_names(get("preset"))
        defaults = self.defaults(get("defaults"))
        parameters = self.method_parameters(get("parameters"))
        broken: dict[str, tuple[Column, Node]] = {}
        columns = self.columns(get("columns"), broken)
        where = self.formula(get("where"), "where")
        sort = self.sort(get("sort"))
        summary = self.summary(get("summary"))
        given = self.given_rows(defaults)
        if not source.problems:
            self.summary_choices(summary, given, defaults)
        table = Table(
            source.file, title or Path(source.file).stem, source.sha256, source, self.catalog,
            Vectors(self.profiles, {**curves, **{curve.name: curve for curve, _ in measured}}, self.trees), given,
            self.stacks, time_model, presets, defaults, parameters, columns, where, tuple((name, down) for name, down, _ in sort),
            summary, get("summary"), tuple(node for _, _, node in sort), hardware=sets, measured=measured, show=self.show(get("show")),
        )  # fmt: skip
        if source.problems:
            self.formula_problems(replace(table, columns={**columns, **broken}))
        source.stop()
        return table

    def given_rows(self, defaults: Mapping[str, float | str]) -> Any:
        """The rows as given: a frame of inputs, null where a row says nothing."""
        frame = rows.Expander(self, defaults).frame(self.root.value.get("grid"), self.root.value.get("rows"))
        return self.overrides(frame)

    def overrides(self, frame: Any) -> Any:
        """Values that stand in place of computed ones, as columns ``<name>_override``; blank where there is none."""
        import polars as pl

        section = self.root.value.get("overrides")
        if section is None or self.source.problems:
            return frame
        known = frame["id"].to_list()
        changed: dict[str, dict[str, float]] = {}
        for row, cells in self.section(section, "overrides").items():
            if row not in known:
                self.source.say(section.keys.get(row, cells), f"there is no row '{row}' to override", nearest(row, known))
                continue
            for name, cell in self.section(cells, f"overrides of {row}").items():
                if isinstance(cell.value, bool) or not isinstance(cell.value, int | float) or abs(cell.value) > 1e15:
                    self.source.say(cell, f"an override is a number, not {cell.kind}")
                else:
                    changed.setdefault(name, {})[row] = float(cell.value)
        for name, values in changed.items():
            typed = pl.col("id").replace_strict(values, default=None, return_dtype=pl.Float64)
            frame = frame.with_columns(typed.alias(f"{name}_override"))
        return frame

    def formula_problems(self, table: Table) -> None:
        """Check the formulas of a table that has other faults, as far as that goes: a user wants to hear all at once."""
        import polars as pl

        from scenario.book.assemble import assemble

        if not (table.columns or table.where or table.sort or table.summary_node):
            return
        nothing = {name: [None] for name in (*shared.INPUTS, *self.parameters)}
        row = {"id": ["x"], "model": [next(iter(table.catalog.models))], "gpu": [next(iter(table.catalog.gpus))],
               "method": [next(iter(self.host.methods), "")]}  # fmt: skip
        every = {stack.name: stack for stack in stacks.every(self.host.methods)}
        try:
            time_model = table.time_model or next(iter(self.host.time_models))
            assemble(replace(table, rows=pl.DataFrame({**nothing, **row}), stacks=every, time_model=time_model), self.host)
        except ScenarioError as error:
            self.source.problems += [problem for problem in error.problems if problem.file == self.source.file]
        except StopIteration:
            return

    def version(self) -> None:
        node = self.root.value.get("version")
        if node is None:
            self.source.say(self.root, "the table has no version", f"write version: {VERSION}")
        elif isinstance(node.value, bool | dict | list) or node.value != VERSION:
            said = f"version {node.shown} of the table format is unknown" if node.shown else "the version is blank"
            if isinstance(node.value, str) and node.value == str(VERSION):
                said = f"the version is a text; a number is needed: version: {VERSION}"
            self.source.say(node, said, f"this program reads version {VERSION}")

    def section(self, node: Node | None, what: str) -> dict[str, Node]:
        return catalog.mapping(self.source, node, what)

    def text(self, node: Node | None, what: str) -> str:
        """A text, or an empty one with a problem noted."""
        if node is None or node.value is None:
            return ""
        if isinstance(node.value, dict | list):
            self.source.say(node, f"{what} is a text, not {node.kind}")
            return ""
        return str(node.value) if isinstance(node.value, str) else node.shown

    # -- single values ---------------------------------------------------------------------------------

    def value(self, name: str, parameter: Parameter, node: Node) -> float | str | None:
        """One checked value, or None with a problem noted."""
        value = node.value
        if name == "gpus":
            if value == "auto":
                return 0.0
            parameter = replace(parameter, low=1)
        if parameter.kind == "profile" and isinstance(value, dict | list | str | int | float):
            return self.profile_value(node)
        if parameter.kind == "tree" and not isinstance(value, dict | list) and value is not None:
            return self.name_of("tree", node, self.trees)
        if isinstance(value, dict | list) or value is None:
            self.source.say(node, f"{name} is one value, not {node.kind}")
            return None
        if kinds.is_text(parameter) and not isinstance(value, str):
            value = node.shown
        said = kinds.value_problem(parameter, value)
        if said:
            near = nearest(str(value), parameter.choices) if parameter.choices else ""
            if not kinds.is_text(parameter):
                near = catalog.number_hint(value)
            self.source.say(node, f"{name}: {said}", near)
            return None
        if parameter.kind == "model" and value not in self.catalog.models:
            self.source.unknown(node, str(value), "model", list(self.catalog.models))
            return None
        return value if isinstance(value, str) else float(value)

    def name_of(self, what: str, node: Node, known: Sequence[str] | Mapping[str, Any]) -> str | None:
        """A text that must be one of ``known``."""
        if not isinstance(node.value, str | int | float) or isinstance(node.value, bool) or node.value == "":
            self.source.say(node, f"a {what} is named by a text, not {node.kind}")
            return None
        name = node.value if isinstance(node.value, str) else node.shown
        if name not in known:
            self.source.unknown(node, name, what, list(known))
            return None
        return name

    def core(self, name: str, node: Node) -> str | None:
        """The checked value of an input that names something: model, GPU, method, time model."""
        if name == "method":
            return self.stack(node)
        if name == "time_model":
            return self.name_of("time model", node, self.host.time_models)
        return self.name_of("model", node, self.catalog.models) if name == "model" else self.name_of("GPU", node, self.catalog.gpus)

    def stack(self, node: Node) -> str | None:
        """The canonical name of a method stack."""
        if not isinstance(node.value, str) or not node.value.strip():
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
        """The name of a profile that is named, or given as rates."""
        if isinstance(node.value, str) and node.value in self.profiles:
            return node.value
        before = len(self.source.problems)
        if isinstance(node.value, dict) and len(node.value) == 1 and next(iter(node.value)) in series.KINDS:
            given, cell = next(iter(node.value.items()))
            made = series.profile(self.source, cell, given)
        elif isinstance(node.value, dict):
            made = None
            self.source.say(node, "a profile given in place is one list of rates", "{conditional: [0.7, 0.65]} or [0.7, 0.46]")
        else:
            made = series.from_text(self.source, node) if isinstance(node.value, str) else series.profile(self.source, node, "marginal")
        if made is not None:
            self.profiles.setdefault(made.name, made)
            return made.name
        if isinstance(node.value, str) and len(self.source.problems) == before:
            hint = nearest(node.value, self.profiles) or ("known: " + ", ".join(sorted(self.profiles)) if self.profiles else "")
            said = f"unknown acceptance profile '{node.shown}'"
            self.source.say(node, said, hint or "name one under profiles:, or give rates: [0.8, 0.6]")
        return None

    def dialects(self, found: Mapping[str, list[tuple[Any, Node]]], key: str, gamma: float | None) -> None:
        """Note a problem where one place says how much is accepted in ways that contradict each other."""
        given = {name: found[name] for name in acceptance.DIALECTS if any(value is not None for value, _ in found.get(name, []))}
        if len(given) < 2:
            return
        single = all(len(pairs) == 1 for pairs in given.values())
        values = {}
        for name, pairs in given.items():
            profile = self.profiles.get(str(pairs[0][0]))
            values[name] = (pairs[0][0], profile.lengths if profile and name == "acceptance" else None)
        said = acceptance.contradiction(values, gamma if single else None)
        if said:
            at = list(given.values())[-1][0][1]
            self.source.say(at, f"{key}: {said}", "give one of them; the others follow from it")

    # -- sections --------------------------------------------------------------------------------------

    def method_profiles(self) -> None:
        """Make known the profiles that methods have as defaults."""
        for method in self.host.methods.values():
            for parameter in method.parameters.values():
                if parameter.kind == "profile" and isinstance(parameter.default, str):
                    rates = series.rates_of(parameter.default) or []
                    self.profiles.setdefault(parameter.default, Profile(parameter.default, tuple(rates), parameter.source, parameter.doc))

    def time_model(self, node: Node | None) -> str:
        if node is None or node.value is None:
            if "bound" not in self.host.time_models:
                hint = f"give one with time_model: {', '.join(self.host.time_models)}" if self.host.time_models else ""
                self.source.say(self.root, "the table says no time_model, and the default, 'bound', is not there", hint)
                return ""
            return "bound"
        if not isinstance(node.value, str) or node.value not in self.host.time_models:
            hint = self.host.missing("time model", node.shown, self.host.time_models)
            self.source.say(node, f"unknown time model '{node.shown}'", hint)
            return ""
        return node.value

    def preset_names(self, node: Node | None) -> tuple[str, ...]:
        if node is None or node.value is None:
            return ()
        listed = node.value if isinstance(node.value, list) else [node]
        found = []
        for item in listed:
            if isinstance(item.value, str) and item.value not in self.host.presets:
                hint = self.host.missing("preset", item.value, self.host.presets)
                self.source.say(item, f"unknown preset '{item.shown}'", hint)
                continue
            name = self.name_of("preset", item, self.host.presets)
            if name:
                found.append(name)
        for name in found:
            preset = self.host.presets[name]
            for parameter, value in preset.values.items():
                if self.host.methods[preset.method].parameters[parameter].kind == "profile":
                    self.profile_value(replace(node, value=value))
        return tuple(found)

    def defaults(self, node: Node | None) -> dict[str, float | str]:
        known = {**shared.INPUTS, **serving.INPUTS, **shared.SCALARS}
        found: dict[str, float | str] = {}
        for name, cell in self.section(node, "defaults").items():
            key = node.keys.get(name, cell) if node else cell
            if name not in known and name not in CORE:
                self.not_a_default(name, key, cell, known)
                continue
            if cell.value is None:  # blank: as if it were not there
                continue
            value = self.core(name, cell) if name in CORE else self.value(name, known[name], cell)
            if value is not None:
                found[name] = value
        return found

    def not_a_default(self, name: str, key: Node, cell: Node, known: Mapping[str, Parameter]) -> None:
        owners = [method.name for method in self.host.methods.values() if name in method.parameters]
        if owners:
            self.source.say(key, f"'{name}' belongs to a method, not to all rows", f"parameters: {{{owners[0]}: {{{name}: {cell.shown}}}}}")
        elif name in KEYS:
            self.source.say(key, f"'{name}' is a key of the table itself, not a default", f"write {name}: at the left margin")
        else:
            self.source.unknown(key, name, "default", [*CORE, *known])

    def method_parameters(self, node: Node | None) -> dict[str, dict[str, float | str]]:
        found: dict[str, dict[str, float | str]] = {}
        for method, body in self.section(node, "parameters").items():
            key = node.keys.get(method, body) if node else body
            if method not in self.host.methods and method not in self.host.time_models:
                hint = self.host.missing("method", method, self.host.methods)
                if "+" in method:
                    hint = "parameters are set for each method of a stack on its own"
                elif method in self.parameters:
                    owner = next(m.name for m in self.host.methods.values() if method in m.parameters)
                    hint = f"parameters stand below their method: {{{owner}: {{{method}: {body.shown}}}}}"
                self.source.say(key, f"unknown method '{method}'", hint)
                continue
            specs = (self.host.methods.get(method) or self.host.time_models[method]).parameters
            for name, cell in self.section(body, f"parameters of {method}").items():
                if name not in specs:
                    self.source.unknown(body.keys.get(name, cell), name, f"parameter of {method}", list(specs))
                    continue
                if name == "gamma" and cell.value == "auto" and "auto_gamma" in specs:
                    found.setdefault(method, {})["auto_gamma"] = 1.0
                    continue
                value = self.value(name, specs[name], cell) if cell.value is not None else None
                if value is not None:
                    found.setdefault(method, {})[name] = value
            own = found.get(method, {})
            gamma = own.get("gamma", specs["gamma"].default if "gamma" in specs else None)
            places = {name: [(value, body.value.get(name, body))] for name, value in own.items()}
            self.dialects(places, f"parameters of {method}", float(gamma) if isinstance(gamma, int | float) else None)
        return found

    def columns(self, node: Node | None, broken: dict[str, tuple[Column, Node]]) -> dict[str, tuple[Column, Node]]:
        """The table's own columns; those that cannot be read go to ``broken``, so that others may name them."""
        found: dict[str, tuple[Column, Node]] = {}
        fields = ("formula", "unit", "doc", "title", "format", "source")
        for name, cell in self.section(node, "columns").items():
            key = node.keys.get(name, cell) if node else cell
            bad = contract.name_problems("", name)
            for problem in bad:
                self.source.say(key, problem.message, problem.hint)
            extra: dict[str, str] = {}
            formula = cell
            if isinstance(cell.value, dict):
                for field_name, part in cell.value.items():
                    if field_name not in fields:
                        self.source.unknown(cell.keys.get(field_name, part), field_name, "column field", list(fields))
                    elif field_name != "formula":
                        extra[field_name] = self.text(part, field_name)
                        said = contract.format_problem(extra[field_name]) if field_name == "format" else ""
                        if said:
                            self.source.say(part, said)
                formula = cell.value.get("formula", cell)
                if formula is cell:
                    self.source.say(cell, f"column '{name}' needs a formula")
            read = self.formula(formula, f"column '{name}'") if formula is not cell or not isinstance(cell.value, dict) else None
            if read and not bad:
                found[name] = (Column(**{**extra, "formula": read.text}), read.node)
            elif not bad:
                broken[name] = (Column("blank"), key)
        return found

    def show(self, node: Node | None) -> tuple[str, ...]:
        """The columns that the table asks for beside those that every row has."""
        if node is None or node.value is None:
            return ()
        known = [*answers.GROUPS, *answers.SHOWN]
        listed = node.value if isinstance(node.value, list) else [node]
        return tuple(name for name in (self.name_of("column to show", item, known) for item in listed) if name)

    def formula(self, node: Node | None, what: str) -> Formula | None:
        if node is None:
            return None
        if isinstance(node.value, bool | dict | list) or node.value is None:
            self.source.say(node, f"{what} is a formula, not {node.kind}")
            return None
        text = node.value if isinstance(node.value, str) else repr(node.value)
        try:
            contract.parse_formula(text, self.host, {"forward_ms": contract.TIME_FUNCTION, **contract.MEASURED})
        except FormulaError as error:
            self.source.problems += [self.source.formula_problem(node, problem) for problem in error.problems]
            return None
        return Formula(text, node)

    def sort(self, node: Node | None) -> list[tuple[str, bool, Node]]:
        if node is None or node.value is None:
            return []
        found: list[tuple[str, bool, Node]] = []
        for item in node.value if isinstance(node.value, list) else [node]:
            name = item.value.strip() if isinstance(item.value, str) else ""
            down, name = name.startswith("-"), name.removeprefix("-").removeprefix("+").strip()
            if not name:
                said = "nothing" if isinstance(item.value, str) else item.kind
                self.source.say(item, f"sort names a column, not {said}", "sort: [model, -tokens_per_s]")
            elif any(name == earlier for earlier, _, _ in found):
                self.source.say(item, f"sort lists '{name}' twice")
            else:
                found.append((name, down, item))
        return found

    def summary(self, node: Node | None) -> Summary:
        parts = self.section(node, "summary")
        nodes: dict[tuple[str, str], Node] = {}
        for name, cell in parts.items():
            if name not in ("rows", "columns", "where"):
                self.source.unknown(node.keys.get(name, cell) if node else cell, name, "summary key", ["rows", "columns", "where"])
        listed = parts.get("rows")
        items: list[Node] = []
        if listed is not None and listed.value is not None:
            items = listed.value if isinstance(listed.value, list) else [listed]
        for item in items:
            if isinstance(item.value, str):
                nodes["rows", item.value] = item
            else:
                self.source.say(item, f"summary rows are names of columns, not {item.kind}")
        across = parts.get("columns")
        if across is not None and isinstance(across.value, str):
            nodes["columns", across.value] = across
        elif across is not None and across.value is not None:
            self.source.say(across, f"summary columns is the name of an input, not {across.kind}")
        where: dict[str, float | str] = {}
        section = parts.get("where")
        known = {**shared.INPUTS, **serving.INPUTS, **self.parameters}
        for name, cell in self.section(section, "summary where").items():
            nodes["where", name] = section.keys.get(name, cell) if section and name not in (*CORE, *known) else cell
            value: float | str | None = cell.shown
            if name in CORE or name in known:
                value = self.core(name, cell) if name in CORE else self.value(name, known[name], cell)
            if value is not None:
                where[name] = value
        metrics = tuple(name for part, name in nodes if part == "rows")
        return Summary(metrics, next((name for part, name in nodes if part == "columns"), ""), where, nodes)

    def summary_choices(self, summary: Summary, given: Any, defaults: Mapping[str, float | str]) -> None:
        """A value that the summary starts with must be that of some row."""
        for name, value in summary.where.items():
            parameter = {**shared.INPUTS, **serving.INPUTS, **self.parameters}.get(name)
            fallback = defaults.get(name, parameter.default if parameter else None)
            values = given[name].unique().to_list() if name in given.columns else [None]
            if value not in [fallback if item is None else item for item in values] and (name in CORE or name in shared.INPUTS):
                text = value if isinstance(value, str) else f"{value:g}"
                self.source.say(summary.nodes["where", name], f"no row has {name} {text}")

