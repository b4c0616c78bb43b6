"""What is loaded: the plugins, and all that they brought by kind and name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scenario.common.errors import nearest
from scenario.model.spec import Exporter, Function, Method, NamedColumn, Preset, TimeModel

BUILT_IN = "built in"
"""The origin of what comes with the package."""
HOOKS: dict[str, type] = {
    "scenario_functions": Function, "scenario_methods": Method, "scenario_time_models": TimeModel,
    "scenario_columns": NamedColumn, "scenario_presets": Preset, "scenario_exporters": Exporter,
}  # fmt: skip
"""Every hook and what it returns, in the order in which the answers depend on each other."""


@dataclass
class Plugin:
    """One plugin as ``scenario plugins`` shows it.

    ``origin`` is ``built in``, an installed distribution with its version, or the file or module that
    ``-p`` named; ``state`` is ``loaded``, ``failed`` or ``off``; ``adds`` lists what it brought.
    """

    name: str
    origin: str
    state: str = "loaded"
    error: str = ""
    adds: list[str] = field(default_factory=list)


@dataclass
class Host:
    """All that plugins brought, by kind and name. ``owners`` maps (kind, name) to the plugin."""

    plugins: list[Plugin] = field(default_factory=list)
    items: dict[type, dict[str, Any]] = field(default_factory=lambda: {kind: {} for kind in HOOKS.values()})
    owners: dict[tuple[type, str], Plugin] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, str]] | None = None
    """By method, its private names that are others in a table; None where this is no table's own view of a host."""

    @property
    def methods(self) -> dict[str, Method]:
        return self.items[Method]

    @property
    def time_models(self) -> dict[str, TimeModel]:
        return self.items[TimeModel]

    @property
    def functions(self) -> dict[str, Function]:
        return self.items[Function]

    @property
    def columns(self) -> dict[str, NamedColumn]:
        return self.items[NamedColumn]

    @property
    def presets(self) -> dict[str, Preset]:
        return self.items[Preset]

    @property
    def exporters(self) -> dict[str, Exporter]:
        return self.items[Exporter]

    @property
    def failures(self) -> list[Plugin]:
        return [plugin for plugin in self.plugins if plugin.state == "failed"]

    def missing(self, what: str, name: str, known: Iterable[str]) -> str:
        """A hint for an unknown ``name``: a near miss, or the installed plugin that failed to load."""
        failed = "; ".join(f"plugin '{plugin.name}' ({plugin.origin}) failed to load: {plugin.error}" for plugin in self.failures)
        known = list(known)
        hint = nearest(name, known) or f"known {what}s: {', '.join(known)}"
        off = [plugin.name for plugin in self.plugins if plugin.state == "off"]
        if off:
            hint += f"; switched off: {', '.join(off)}"
        return f"{hint}; {failed}" if failed else hint
