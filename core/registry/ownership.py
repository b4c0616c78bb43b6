"""Names that belong to a method: its parameters and helper columns are its own, whatever other plugins call theirs.

A table sees the built-in methods and the plugins that it uses, so that no other plugin changes anything. Where two of those give
one name to different things, the plugin's is told apart by its method: ``window`` of the method ``dr`` is ``dr_window``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from scenario.model import acceptance, entities, shared
from scenario.model.spec import Function, Method, NamedColumn, Parameter, Preset, TimeModel
from scenario.model.stacks import Stack
from scenario.registry.loaded import BUILT_IN, Host

SHARED = ("alpha", "gamma", "acceptance", "tree", "draft", "draft_cost", "hit_rate", "nodes", *acceptance.ADDED)
"""Parameters that mean the same in every method that has them: they are one column and one input."""
_QUOTED = re.compile(r"""("[^"]*"|'[^']*')""")

Names = Mapping[str, Mapping[str, str]]
"""By method: what its private names are called in a table, where that is another name."""


def built_in(host: Host, kind: type, name: str) -> bool:
    """Whether something is part of the package."""
    owner = host.owners.get((kind, name))
    return owner is not None and owner.origin == BUILT_IN


def private(method: Method) -> list[str]:
    """The names that a method's author chose freely: parameters off the shared list, and helper columns."""
    helpers = [name for name in method.columns if name not in shared.OPEN]
    return [*(name for name in method.parameters if name not in SHARED), *helpers]


def fields(method: Method) -> set[str]:
    """The names under which formulas read the fields of the models that a method's parameters name."""
    models = [name for name, parameter in method.parameters.items() if isinstance(parameter, Parameter) and parameter.kind == "model"]
    return {f"{name}_{field}" for name in models for field in (*entities.MODEL_FIELDS, *entities.MODEL_COLUMNS)}


def renamed(host: Host, used: Collection[str]) -> Names:
    """What the private names of plugins are called in a table that uses these methods, where two would be one."""
    methods = [method for name, method in host.methods.items() if built_in(host, Method, name) or name in used]
    taken = Counter(name for method in methods for name in {*private(method), *fields(method)})
    found: dict[str, dict[str, str]] = {}
    for method in methods:
        if not built_in(host, Method, method.name):
            clashing = [name for name in private(method) if taken[name] > 1]
            own = {name: unique(method.name, name, taken) for name in clashing}
            if own:
                found[method.name] = own
    return found


def unique(method: str, name: str, taken: Collection[str]) -> str:
    """A name that tells whose it is, and is not taken."""
    found = re.sub(r"[^A-Za-z0-9]", "_", method) + f"_{name}"
    while found in taken:
        found += "_"
    return found


def parts(stacks: Iterable[Stack]) -> set[str]:
    """The methods that stacks are made of."""
    return {part for stack in stacks for part in (stack.quantization, stack.drafting, stack.name) if part}


def for_table(host: Host, used: Collection[str]) -> Host:
    """The host as a table sees it that uses these methods: no other plugin's methods, and every name of one meaning."""
    if host.names is not None:
        return host
    names = renamed(host, used)
    kept = {name: under(method, names.get(name, {})) for name, method in host.methods.items()
            if built_in(host, Method, name) or name in used}  # fmt: skip
    return replace(host, items={**host.items, Method: kept}, names=names)


def under(method: Method, names: Mapping[str, str]) -> Method:
    """A method whose private names are others."""
    if not names:
        return method
    parameters = {names.get(name, name): replace(item, derive=said(item.derive, names)) for name, item in method.parameters.items()}
    columns = {names.get(name, name): replace(item, formula=said(item.formula, names)) for name, item in method.columns.items()}
    return replace(method, parameters=parameters, columns=columns)


def said(formula: str, names: Mapping[str, str]) -> str:
    """A formula with other names for some of those it reads; what stands in quotes is text."""
    word = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")
    parts = _QUOTED.split(formula)
    return "".join(part if place % 2 else word.sub(lambda found: names[found[1]], part) for place, part in enumerate(parts))


def aliases(host: Host) -> dict[str, Parameter]:
    """The parameters of all methods under the names that they may have in some table."""
    names = renamed(host, [*host.methods])
    return {now: host.methods[method].parameters[was] for method, own in names.items() for was, now in own.items()
            if was in host.methods[method].parameters}  # fmt: skip


def seen(host: Host, methods: Iterable[str], time_models: Collection[str], presets: Collection[str]) -> tuple[tuple[str, str], ...]:
    """The plugins, name and origin, that a table uses; those that are built in are always there."""
    used: set[tuple[type, str]] = {(Method, name) for name in methods} | {(TimeModel, name) for name in time_models} | {(Preset, name) for name in presets}
    used |= {(kind, name) for kind in (NamedColumn, Function) for name in host.items[kind]}
    owners = {id(owner) for key, owner in host.owners.items() if key in used}
    return tuple((plugin.name, plugin.origin) for plugin in host.plugins
                 if plugin.state == "loaded" and (plugin.origin == BUILT_IN or id(plugin) in owners))  # fmt: skip
