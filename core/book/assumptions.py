"""The assumptions of a book: scalars with their sources, and the tables that rows refer to by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from scenario.book import timing
from scenario.book.book import EntityTable, Field, Lookup, Scalar, Value, calc, entity_inputs, entity_rows, time_model_rows
from scenario.book.optional_columns import Asked, scalar_name
from scenario.book.selection import Selection
from scenario.book.timing import Timing
from scenario.formulas import expr, facts, graph
from scenario.formulas.facts import Facts
from scenario.model import acceptance, answers, entities, images, shared, stacks
from scenario.model.kinds import parameter_facts
from scenario.model.spec import Column, Parameter

CORE_TEXT = ("model", "gpu", "method")
NUMBER = {"quantization": "quant_no", "drafting": "draft_no"}
"""The column that holds the number of a row's method, by slot."""


class Assumptions(Asked):
    """What holds for every row. The attributes are the assembler's."""

    env: dict[str, Facts]
    inputs: Mapping[str, Parameter]
    tables: dict[str, EntityTable]
    model: Selection
    timing: Timing

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
            names = self.own_names(preset.method)
            presets.update({(preset.method, names.get(key, key)): (value, preset) for key, value in preset.values.items()})
        for method in self.host.methods.values():
            names = self.own_names(method.name)
            typed = {names.get(key, key): value for key, value in self.table.parameters.get(method.name, {}).items()}
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

    def known_lookups(self) -> list[str]:
        found = [*answers.SHOWN, *self.tables["models"].fields, *(f"gpu_{name}" for name in self.tables["gpus"].fields), "weights_bits", "kv_bits"]
        return [*found, *self.parameters, *(f.name for f in shared.FUNCTIONS), *self.host.functions]
