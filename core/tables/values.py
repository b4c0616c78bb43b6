"""Checks single values of a table, noting every problem with its place; what reads a section stands on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from scenario.catalogs import aliases, catalog, series
from scenario.common.errors import FormulaError, nearest
from scenario.common.yamltree import Source, YamlNode
from scenario.formulas.vectors import Curve, Profile, Tree
from scenario.model import acceptance, kinds, stacks
from scenario.model.spec import Column, Parameter
from scenario.model.stacks import Stack
from scenario.registry import contract
from scenario.registry.loaded import Host
from scenario.tables.summary import SummaryTable
from scenario.tables.table import Formula, parameter_specs

CORE = ("model", "gpu", "method")


class ValueReader:
    """Checks the values of one table.

    ``profiles`` and ``stacks`` grow with what its values name; ``parts`` holds the fields of the table that are read so
    far, ``broken`` the columns that cannot be read, so that others may name them. ``keys`` are the keys of a table.
    """

    keys: tuple[str, ...] = ()

    def __init__(self, source: Source, root: YamlNode, host: Host, max_rows: int) -> None:
        self.source, self.root, self.host, self.max_rows = source, root, host, max_rows
        self.parameters = parameter_specs(host)
        self.profiles: dict[str, Profile] = {}
        self.trees: dict[str, Tree] = {}
        self.curves: dict[str, Curve] = {}
        self.stacks: dict[str, Stack] = {}
        self.catalog = catalog.builtin()
        self.parts: dict[str, Any] = {}
        self.broken: dict[str, tuple[Column, YamlNode]] = {}
        self.notes: list[str] = []
        """What is told of the table that is no fault."""
        self.summary: SummaryTable | None = None
        """The summary, once it is read; it makes rows."""

    def given_rows(self, defaults: Mapping[str, float | str]) -> pl.DataFrame:
        """The rows as given: a frame of inputs, null where a row says nothing. Each kind of file has its own."""
        raise NotImplementedError

    def section(self, node: YamlNode | None, what: str) -> dict[str, YamlNode]:
        """The entries of a mapping, or none with a problem noted."""
        return catalog.mapping(self.source, node, what)

    def text(self, node: YamlNode | None, what: str) -> str:
        """A text, or an empty one with a problem noted."""
        return self.source.text(node, what)

    def value(self, name: str, parameter: Parameter, node: YamlNode) -> float | str | None:
        """One checked value, or None with a problem noted."""
        value = node.value
        if name == "gpus":
            if value == "auto":
                return 0.0
            parameter = replace(parameter, low=1)
        if parameter.kind == "profile" and value is not None:
            return self.profile_value(node)
        if isinstance(value, dict | list) or value is None:
            self.source.say(node, f"{name} is one value, not {node.kind}")
            return None
        return self.name_of("tree", node, self.trees) if parameter.kind == "tree" else self.plain_value(name, parameter, node)

    def plain_value(self, name: str, parameter: Parameter, node: YamlNode) -> float | str | None:
        """A checked number, choice or name of a model, or None with a problem noted."""
        text = kinds.is_text(parameter)
        value = node.shown if text and not isinstance(node.value, str) else node.value
        kind = "models" if parameter.kind == "model" else parameter.also
        if kind:
            value = aliases.find(kind, str(value), self.catalog.models if kind == "models" else parameter.choices) or value
        if said := kinds.value_problem(parameter, value):
            near = nearest(str(value), parameter.choices) if text and parameter.choices else "" if text else catalog.number_hint(value, parameter.unit)
            self.source.say(node, f"{name}: {said}", near)
            return None
        if parameter.kind == "model" and value not in self.catalog.models:
            self.source.unknown(node, str(value), "model", list(self.catalog.models))
            return None
        return value if isinstance(value, str) else float(value)

    def input(self, name: str, known: Mapping[str, Parameter], node: YamlNode) -> float | str | None:
        """The checked value of an input that names something, or of a parameter in ``known``."""
        return self.value(name, known[name], node) if name in known else self.core(name, node)

    def name_of(self, what: str, node: YamlNode, known: Sequence[str] | Mapping[str, Any]) -> str | None:
        """A text that must be one of ``known``."""
        if not isinstance(node.value, str | int | float) or isinstance(node.value, bool) or node.value == "":
            self.source.say(node, f"a {what} is named by a text, not {node.kind}")
            return None
        name = node.value if isinstance(node.value, str) else node.shown
        if name not in known:
            self.source.unknown(node, name, what, list(known))
            return None
        return name

    def core(self, name: str, node: YamlNode) -> str | None:
        """The checked value of an input that names something: model, GPU, method, time model."""
        if name == "method":
            return self.stack(node)
        if name == "time_model":
            return self.name_of("time model", node, self.host.time_models)
        return self.entry("models", "model", node) if name == "model" else self.entry("gpus", "GPU", node)

    def entry(self, kind: str, what: str, node: YamlNode) -> str | None:
        """The name of a model or GPU of the catalog, however it is written."""
        known = self.catalog.models if kind == "models" else self.catalog.gpus
        found = aliases.find(kind, node.value, known) if isinstance(node.value, str) else None
        if found is None and kind == "models" and isinstance(node.value, str) and aliases.stated(node.value):
            self.source.say(node, f"unknown model '{node.shown}', whose name says a format", aliases.split(node.value, known))
            return None
        return found or self.name_of(what, node, known)

    def stack(self, node: YamlNode) -> str | None:
        """The canonical name of a method stack."""
        if not isinstance(node.value, str) or not node.value.strip():
            self.source.say(node, f"a method is named by a text, not {node.kind}")
            return None
        stack, said, unknown = stacks.parse(aliases.stack(node.value, self.host.methods), self.host.methods)
        if stack is None:
            hint = self.host.missing("method", unknown, self.host.methods) if unknown else ""
            self.source.say(node, said, hint)
            return None
        self.stacks[stack.name] = stack
        return stack.name

    def profile_value(self, node: YamlNode) -> str | None:
        """The name of a profile that is named, or given as rates."""
        text = isinstance(node.value, str)
        if text and node.value in self.profiles:
            return str(node.value)
        before = len(self.source.problems)
        made = self.profile_in_place(node)
        if made is not None:
            self.profiles.setdefault(made.name, made)
            return made.name
        if text and len(self.source.problems) == before:
            hint = nearest(node.value, self.profiles) or ("known: " + ", ".join(sorted(self.profiles)) if self.profiles else "")
            said = f"unknown acceptance profile '{node.shown}'"
            self.source.say(node, said, hint or "name one under profiles:, or give rates: [0.8, 0.6]")
        return None

    def profile_in_place(self, node: YamlNode) -> Profile | None:
        """The profile that a list, a text or a mapping of one kind of rates makes."""
        if isinstance(node.value, str):
            return series.from_text(self.source, node)
        if not isinstance(node.value, dict):
            return series.profile(self.source, node, "marginal")
        if len(node.value) == 1 and next(iter(node.value)) in series.KINDS:
            given, cell = next(iter(node.value.items()))
            return series.profile(self.source, cell, given)
        self.source.say(node, "a profile given in place is one list of rates", "{conditional: [0.7, 0.65]} or [0.7, 0.46]")
        return None

    def dialects(self, found: Mapping[str, list[tuple[Any, YamlNode]]], key: str, gamma: float | None) -> None:
        """Note a problem where one place says how much is accepted in ways that contradict each other."""
        given = {name: found[name] for name in acceptance.DIALECTS if any(value is not None for value, _ in found.get(name, []))}
        if len(given) < 2:
            return
        values = {name: (pairs[0][0], self.lengths(name, pairs[0][0])) for name, pairs in given.items()}
        single = all(len(pairs) == 1 for pairs in given.values())
        if said := acceptance.contradiction(values, gamma if single else None):
            at = list(given.values())[-1][0][1]
            self.source.say(at, f"{key}: {said}", "give one of them; the others follow from it")

    def lengths(self, name: str, value: Any) -> tuple[float, ...] | None:
        """Tokens per round by number of drafts, where the input names a profile."""
        profile = self.profiles.get(str(value)) if name == "acceptance" else None
        return profile.lengths if profile else None

    def formula(self, node: YamlNode | None, what: str) -> Formula | None:
        """A formula that can be parsed, or None with a problem noted."""
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


def items(node: YamlNode | None) -> list[YamlNode]:
    """The parts of a list, or the one value that stands for it; none for a blank."""
    if node is None or node.value is None:
        return []
    return node.value if isinstance(node.value, list) else [node]
