"""Checks of what plugins bring, before any of it is used: names, ranges, formulas, the contract's version."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any

from scenario.catalogs import catalog, series
from scenario.common import yamltree
from scenario.common.errors import FormulaError, PluginError, Problem, nearest
from scenario.formulas import expr, facts, functions
from scenario.formulas.facts import Facts
from scenario.model import answers, entities, features, parallel, serving, shared
from scenario.model.kinds import KINDS, is_text, parameter_facts, value_problem
from scenario.model.spec import API, Column, Exporter, Function, Method, NamedColumn, Parameter, Preset, TimeModel
from scenario.registry.loaded import Host
from scenario.registry.ownership import SHARED

_SLUG = re.compile(r"[a-z][a-z0-9]*([._-][a-z0-9]+)*\Z")
RESERVED = {*expr.LITERALS, *expr.CONSTANTS, *keyword.kwlist}


@lru_cache(maxsize=1)
def shared_names() -> dict[str, Facts]:
    """Every name a plugin's formula may read besides its own parameters, with loose facts (type only)."""
    env: dict[str, Facts] = {"model": facts.TEXT, "gpu": facts.TEXT, "method": facts.TEXT}
    for name, parameter in (shared.INPUTS | shared.SCALARS | entities.MODEL_FIELDS | serving.INPUTS).items():
        env[name] = parameter_facts(parameter)
    for name, parameter in entities.HARDWARE_FIELDS.items():
        env[f"hardware_{name}"] = parameter_facts(parameter, blank=False)
    for name, parameter in entities.GPU_FIELDS.items():
        env[f"gpu_{name}"] = parameter_facts(parameter)
    for name in entities.MODEL_COLUMNS:
        env[name] = Facts(low=0, high=1e18)
    for name in ("measured_low", "measured_high"):
        env[name] = Facts(low=0, high=1e18)
    for name in ("weights_bits", "kv_bits"):
        env[name] = Facts(low=0, high=64, open_low=True)
    for name in (*shared.COLUMNS, *features.COLUMNS, *serving.COLUMNS, *serving.ESTIMATE_COLUMNS, *serving.FIRST_COLUMNS):
        kind = {"bound": "text", "status": "text", "breaking_term": "text", "placement": "text", "basis": "text", "verdict": "text", "fits": "flag"}.get(name, "number")
        env[name] = Facts(kind, -1e30, 1e30)
    for name in answers.SHOWN:
        env[name] = facts.TEXT if name == "acceptance_source" else Facts(low=-1e30, high=1e30, blank=True)
    return env


def parse_formula(text: str, host: Host, extra: Mapping[str, tuple[tuple[str, ...], expr.Node]] | None = None) -> expr.Node:
    """A formula as a tree with the functions that are formulas written out."""
    return expr.expand(expr.parse(text), {**function_trees(host), **(extra or {})}, text=text)


def function_trees(host: Host) -> dict[str, tuple[tuple[str, ...], expr.Node]]:
    """The functions that are formulas, the engine's and the plugins', parsed."""
    return {**_own_functions(), **{f.name: (tuple(f.arguments), expr.parse(f.formula)) for f in host.functions.values()}}


@lru_cache(maxsize=1)
def _own_functions() -> dict[str, tuple[tuple[str, ...], expr.Node]]:
    trees = {f.name: (f.arguments, expr.parse(f.formula)) for f in shared.FUNCTIONS}
    # The time model stands behind this one; for checking, a pass takes some positive time.
    return trees


@lru_cache(maxsize=1)
def _placement_functions() -> dict[str, tuple[tuple[str, ...], expr.Node]]:
    return {f.name: (f.arguments, expr.parse(f.formula)) for f in parallel.FEATURE.functions if f.name.endswith(("_gb", "_bytes_ms"))}


TIME_FUNCTION = (("rows", "weight_gb", "kv_gb"), expr.parse("max(1e-12, rows + weight_gb + kv_gb)"))
DRAFT_FUNCTION = ("read", "active", "head", "layers_", "bits_", "gpus_", "cache_gb")
MEASURED = {"measured_ms": (("rows",), expr.parse("rows"))}
"""What stands for a table's measured points while no table is known."""


def check_item(item: Any, host: Host) -> None:
    """Raise :class:`PluginError` with every fault of one thing that a plugin brings."""
    if item.api != API:
        newer = isinstance(item.api, int) and item.api > API
        hint = "install a newer scenario-engine" if newer else f"the plugin needs its version for contract {API}, with api={API}"
        raise PluginError(f"'{item.name}' is written for plugin contract {item.api}; this is contract {API}", hint)
    name = yamltree.show(item.name) if isinstance(item.name, str) else type(item.name).__name__
    problems = type_problems(f"{type(item).__name__.lower()} '{name}'", item)
    if not isinstance(item.name, str):
        problems.append(Problem(f"a {type(item).__name__.lower()} is named by a text, not {name}"))
    for part in (*getattr(item, "parameters", {}).values(), *getattr(item, "columns", {}).values()) if not problems else ():
        if isinstance(part, Parameter | Column):
            problems += type_problems(f"{type(item).__name__.lower()} '{name}'", part)
    if isinstance(item, NamedColumn) and not problems:
        problems = type_problems(f"column '{name}'", item.column)
    if not problems:
        problems = list(_CHECKS[type(item)](item, host))
    if isinstance(item, Method) and not problems:
        problems = misspelt(item)
    if problems:
        raise PluginError(problems)


def misspelt(method: Method) -> list[Problem]:
    """Columns that answer no open question, are declared as no helper and read by nobody, but are called much like a question."""
    formulas = [column.formula for column in method.columns.values()] + [p.derive for p in method.parameters.values() if p.derive]
    read = {name for formula in formulas for name in expr.names(expr.parse(formula))}
    others = [name for name in method.columns if name not in shared.OPEN and name not in method.helpers and name not in read]
    near = {name: nearest(name, shared.OPEN) for name in others}
    declared = [Problem(f"'{name}' answers no open question, and a helper of this name is a question itself",
                        place=f"method '{method.name}', column '{name}'") for name in method.helpers if name in shared.OPEN]  # fmt: skip
    return declared + [
        Problem(f"'{name}' is no open question, and no formula of the method reads it", f"{hint} a helper stands under helpers=",
                place=f"method '{method.name}', column '{name}'") for name, hint in near.items() if hint]  # fmt: skip


def _slug(kind: str, name: str) -> list[Problem]:
    if isinstance(name, str) and _SLUG.match(name):
        return []
    return [Problem(f"{name!r} is not a good name for a {kind}", "small letters and digits, joined by - _ or .")]


def name_problems(place: str, name: str) -> list[Problem]:
    """What keeps ``name`` from naming a column or a parameter."""
    if name in RESERVED:
        return [Problem(f"'{name}' is a word of the formula language", "choose another name", place=place)]
    if not isinstance(name, str) or not expr.NAME.match(name) or len(name) > 64:
        return [Problem(f"{name!r} is not a good name", "letters, digits and _, a letter first", place=place)]
    if name in functions.FUNCTIONS:
        return [Problem(f"'{name}' is the name of a function", place=place)]
    return []


def _check_method(method: Method, host: Host) -> list[Problem]:
    problems = _slug("method", method.name)
    if "+" in str(method.name):
        problems.append(Problem("a method's name has no '+': that joins methods"))
    env: dict[str, Facts] = dict(shared_names())
    own = {name: Facts(low=-1e30, high=1e30, blank=True) for name in method.columns if name not in shared.OPEN}
    for name, parameter in method.parameters.items():
        place = f"method '{method.name}', parameter '{name}'"
        if isinstance(parameter, Parameter):
            problems += _check_own_parameter(place, name, parameter, host)
            env |= _parameter_names(name, parameter)
        else:
            problems.append(Problem(f"{type(parameter).__name__} where Parameter is due", place=place))
    for name, column in method.columns.items():
        problems += _check_column_name(method, name, column)
    for name, column in method.columns.items():
        if isinstance(column, Column):
            wanted = "number" if name in shared.OPEN else ""
            problems += _check_formula(f"method '{method.name}', column '{name}'", column.formula, env | own, host, wanted)
    for name, parameter in method.parameters.items():
        if isinstance(parameter, Parameter) and parameter.derive:
            place = f"method '{method.name}', parameter '{name}'"
            problems += _check_formula(place, parameter.derive, env | own, host, "number")
    return problems


def _check_own_parameter(place: str, name: str, parameter: Parameter, host: Host) -> list[Problem]:
    """What is wrong with a parameter of a method; one on the shared list is of one kind in all methods."""
    problems = name_problems(place, name) + _check_parameter(place, parameter)
    if name in shared_names():
        problems.append(Problem(f"'{name}' is already a shared name", "choose another name", place=place))
    for other in host.methods.values() if name in SHARED else ():
        mine = other.parameters.get(name)
        if mine is not None and mine.kind != parameter.kind and (is_text(mine) or is_text(parameter)):
            problems.append(Problem(f"method '{other.name}' has a parameter of this name and another kind", place=place))
    return problems


def _parameter_names(name: str, parameter: Parameter) -> dict[str, Facts]:
    """What formulas may read because of a parameter: itself, and the fields of the model that it names."""
    fields_ = (*entities.MODEL_FIELDS, *entities.MODEL_COLUMNS) if parameter.kind == "model" else ()
    return {**{f"{name}_{field}": Facts(low=0, high=1e18, blank=True) for field in fields_}, name: parameter_facts(parameter)}


def _check_column_name(method: Method, name: str, column: Column) -> list[Problem]:
    """What is wrong with the name of a method's column: an open question, or a name of the method's own."""
    if name in shared.OPEN:
        place = f"method '{method.name}', '{name}'"
        return [] if isinstance(column, Column) else [Problem(f"{type(column).__name__} where Column is due", place=place)]
    place = f"method '{method.name}', column '{name}'"
    problems = name_problems(place, name)
    if name in shared_names() or name in method.parameters:
        near = nearest(name, shared.OPEN) or "open questions: " + ", ".join(shared.OPEN)
        problems.append(Problem(f"'{name}' is computed by the engine, or is a parameter", near, place=place))
    return problems


def _check_parameter(place: str, parameter: Parameter) -> list[Problem]:
    if parameter.kind not in KINDS:
        return [Problem(f"unknown kind '{parameter.kind}'", nearest(parameter.kind, KINDS) or "kinds: " + ", ".join(KINDS), place=place)]
    if parameter.kind in ("number", "integer") and parameter.low is None and parameter.high is None and parameter.above is None:
        return [Problem("a number needs a range", "give low=, high= or above=", place=place)]
    if parameter.kind == "choice" and not parameter.choices:
        return [Problem("a choice needs its choices", place=place)]
    limits = parameter_facts(parameter)
    if limits.low > limits.high:
        return [Problem(f"the lower limit {limits.low:g} is above the upper limit {limits.high:g}", place=place)]
    if parameter.default is not None:
        said = value_problem(parameter, parameter.default)
        if said:
            return [Problem(f"the default does not fit: {said}", place=place)]
        said = named_problem(parameter, parameter.default)
        if said:
            return [Problem(f"the default does not fit: {said}", place=place)]
    return []


_FORMAT = re.compile(
    r"""(?:"[^"]*" | \\. | [_*]. | @ | General
      | \[(?:Black|Blue|Cyan|Green|Magenta|Red|White|Yellow|Color[0-9]{1,2}|(?:[<>]=?|<>|=)-?[0-9.]+(?:E[+-]?[0-9]+)?|\$[^\]]*|[hms]{1,2})\]
      | [0#?.,%+\-/ :$()] | E[+-] | AM/PM | [dmyhs])*""",
    re.VERBOSE | re.IGNORECASE,
)


def format_problem(text: str) -> str:
    """What is wrong with a number format, which a spreadsheet program would else refuse to open the file for."""
    sections = re.split(r""";(?=(?:[^"]*"[^"]*")*[^"]*$)""", text[:256])
    if len(text) > 255 or len(sections) > 4 or not all(_FORMAT.fullmatch(section) for section in sections):
        return f"'{text[:60]}' is not a number format such as #,##0.00 or 0.0%; words stand in double quotes"
    return ""


def named_problem(parameter: Parameter, value: Any) -> str:
    """What is wrong with a plugin's value that names a model or an acceptance profile."""
    if parameter.kind == "model" and value not in catalog.builtin().models:
        return f"there is no model '{value}' in the catalog"
    if parameter.kind == "profile":
        return series.text_fault(str(value))
    return ""


_FIELDS: dict[str, tuple[type, ...]] = {
    "title": (str,), "doc": (str,), "source": (str,), "unit": (str,), "format": (str,), "formula": (str,), "derive": (str,),
    "kind": (str,), "low": (int, float, type(None)), "high": (int, float, type(None)), "above": (int, float, type(None)),
    "default": (int, float, str, type(None)), "choices": (tuple, list), "arguments": (tuple, list), "suffixes": (tuple, list),
    "parameters": (Mapping,), "columns": (Mapping,), "helpers": (Mapping,), "values": (Mapping,), "column": (Column,), "write": (Callable,),  # type: ignore[dict-item]
    "max_rows": (int, type(None)), "text": (bool,), "method": (str,),
}  # fmt: skip


def type_problems(place: str, item: Any) -> list[Problem]:
    """Fields of a description that hold something else than they should."""
    found = []
    for part in fields(item):
        value = getattr(item, part.name)
        wanted = _FIELDS.get(part.name)
        if wanted and not isinstance(value, wanted):
            names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in wanted)
            found.append(Problem(f"{part.name} is {type(value).__name__}; {names} is due", place=place))
        elif part.name == "format" and format_problem(value):
            found.append(Problem(format_problem(value), place=place))
        elif isinstance(value, tuple | list) and not all(isinstance(text, str) for text in value):
            found.append(Problem(f"{part.name} holds something else than texts", place=place))
        elif isinstance(value, Mapping) and not all(isinstance(name, str) for name in value):
            found.append(Problem(f"{part.name} has a name that is not a text", place=place))
    return found


def _check_formula(place: str, text: str, env: Mapping[str, Facts], host: Host, wanted: str = "number") -> list[Problem]:
    try:
        node = parse_formula(text, host, {**_placement_functions(), "forward_ms": TIME_FUNCTION, **MEASURED})
        node = facts.check(node, env, text, [*functions.FUNCTIONS])
    except FormulaError as error:
        return list(error.at(place=place).problems)
    if wanted and node.facts.type not in (wanted, "none"):
        return [Problem(f"the formula gives a {node.facts.type}; a {wanted} is needed", place=place)]
    return []


def _check_time_model(model: TimeModel, host: Host) -> list[Problem]:
    problems = _slug("time model", model.name)
    env = dict(shared_names()) | {name: Facts(low=0, high=1e18) for name in TIME_FUNCTION[0]}
    for name, parameter in model.parameters.items():
        place = f"time model '{model.name}', parameter '{name}'"
        if not isinstance(parameter, Parameter):
            return [*problems, Problem(f"{type(parameter).__name__} where Parameter is due", place=place)]
        problems += name_problems(place, name) + _check_parameter(place, parameter)
        env[name] = parameter_facts(parameter)
    place = f"time model '{model.name}'"
    problems += _check_formula(place, model.formula, env, host)
    if model.draft:
        sizes = {name: Facts(low=0, high=1e15, open_low=name in ("bits_", "gpus_")) for name in DRAFT_FUNCTION}
        problems += _check_formula(f"{place}, draft", model.draft, {**env, **sizes}, host)
    if model.communication:
        problems += _check_formula(f"{place}, communication", model.communication, env, host)
    questions = serving.EVERY_QUESTION
    for name, column in model.columns.items():
        if name not in questions:
            problems.append(Problem(f"'{name}' is not an open question of time models", nearest(name, questions), place=place))
        else:
            problems += _check_formula(f"{place}, column '{name}'", column.formula, env, host, "text" if name == "basis" else "number")
    return problems


def _check_function(function: Function, host: Host) -> list[Problem]:
    place = f"function '{function.name}'"
    problems = name_problems(place, function.name)
    taken = {*functions.FUNCTIONS, *(f.name for f in shared.FUNCTIONS), "forward_ms"}
    if function.name in taken:
        problems.append(Problem(f"'{function.name}' is a function of the engine", place=place))
    env = dict(shared_names()) | {name: Facts() for name in function.arguments}
    return problems + _check_formula(place, function.formula, env, host, "")


def _check_column(named: NamedColumn, host: Host) -> list[Problem]:
    place = f"column '{named.name}'"
    problems = name_problems(place, named.name)
    if named.name in shared_names():
        problems.append(Problem(f"'{named.name}' is already a shared name", place=place))
    env = dict(shared_names())
    for method in host.methods.values():
        env |= {name: parameter_facts(parameter, blank=True) for name, parameter in method.parameters.items()}
    env |= {name: Facts(low=-1e30, high=1e30, blank=True) for name in host.columns}
    return problems + _check_formula(place, named.column.formula, env, host, "")


def _check_preset(preset: Preset, host: Host) -> list[Problem]:
    problems = _slug("preset", preset.name)
    method = host.methods.get(preset.method)
    if method is None:
        hint = nearest(preset.method, host.methods)
        return [*problems, Problem(f"preset '{preset.name}' is for an unknown method '{preset.method}'", hint)]
    for name, value in preset.values.items():
        place = f"preset '{preset.name}', parameter '{name}'"
        if name not in method.parameters:
            problems.append(Problem(f"method '{method.name}' has no such parameter", nearest(name, method.parameters), place=place))
            continue
        said = value_problem(method.parameters[name], value)
        said = said or named_problem(method.parameters[name], value)
        if said:
            problems.append(Problem(said, place=place))
    return problems


def _check_exporter(exporter: Exporter, host: Host) -> list[Problem]:
    problems = _slug("format", exporter.name)
    for suffix in exporter.suffixes:
        if not re.fullmatch(r"\.[a-z0-9]+", suffix):
            problems.append(Problem(f"'{suffix}' is not a file ending", "a dot, then small letters and digits, such as .csv"))
        for other in host.exporters.values():
            if suffix in other.suffixes and other.name != exporter.name:
                problems.append(Problem(f"the ending '{suffix}' is already written by format '{other.name}'"))
    return problems


_CHECKS: dict[type, Any] = {
    Method: _check_method, TimeModel: _check_time_model, Function: _check_function, NamedColumn: _check_column,
    Preset: _check_preset, Exporter: _check_exporter,
}  # fmt: skip
