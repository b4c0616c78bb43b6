"""The plugin host: finds plugins, runs their hooks one by one, checks what they bring, names who clashes.

Order: ``-p no:name`` first, then built-ins, then installed entry points of group ``scenario`` (each on its
own; one that fails is set aside with a reason), then what ``-p`` names (a failure there is an error).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import pkgutil
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from scenario.common import inputs, signals
from scenario.common.errors import PluginError, Problem, ScenarioError, nearest
from scenario.model import acceptance
from scenario.model.spec import Exporter, Function, Method, NamedColumn, Preset, TimeModel
from scenario.registry import hooks, loops
from scenario.registry.contract import check_item
from scenario.registry.loaded import BUILT_IN, HOOKS, Host, Plugin

GROUP = "scenario"
MAX_ITEMS = 10_000


def load(names: Sequence[str] = (), *, third_party: bool = True) -> Host:
    """A host with all built-in and installed plugins and those in ``names``.

    ``names`` are what ``-p`` takes: a Python file, a module, or ``no:plugin``. Raises :class:`PluginError`
    for a named plugin that cannot be used; installed ones that fail are listed in ``host.failures``.
    """
    off = {name[3:] for name in names if name.startswith("no:")}
    host = Host()
    manager = pluggy.PluginManager(hooks.PROJECT)
    manager.add_hookspecs(hooks)
    for name, module in _builtin():
        if name in off:
            host.plugins.append(Plugin(name, BUILT_IN, "off"))
            continue
        _register(host, manager, Plugin(name, BUILT_IN), importlib.import_module(module))
    if third_party:
        for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: entry.name):
            _load_entry(host, manager, entry, off)
    for name in dict.fromkeys(names):
        if not name.startswith("no:"):
            _load_named(host, manager, name)
    unknown = off - {plugin.name for plugin in host.plugins}
    if unknown:
        known = [plugin.name for plugin in host.plugins]
        raise PluginError([Problem(f"-p no:{name}: there is no plugin of this name", nearest(name, known)) for name in sorted(unknown)])
    return host


def _builtin() -> Iterator[tuple[str, str]]:
    for package in ("scenario.plugins", "scenario.exporters"):
        for info in pkgutil.iter_modules(importlib.import_module(package).__path__):
            if not info.name.startswith("_"):
                yield info.name.replace("_", "-"), f"{package}.{info.name}"


def _load_entry(host: Host, manager: pluggy.PluginManager, entry: metadata.EntryPoint, off: set[str]) -> None:
    dist = entry.dist
    origin = f"{dist.name} {dist.version}" if dist else "an installed distribution"
    plugin = Plugin(entry.name, origin)
    if entry.name in off:
        plugin.state = "off"
        host.plugins.append(plugin)
        return
    loaded: Any = None
    try:
        with _quiet():
            loaded = entry.load()
        _register(host, manager, plugin, loaded)
    except BaseException as error:  # an installed plugin may even call sys.exit; no run may depend on it
        signals.pass_on(error)
        _undo(host, manager, plugin)
        if isinstance(error, PluginError) and loaded is not None:
            error = error.at(file=str(getattr(loaded, "__file__", "") or ""))
        plugin.state, plugin.error = "failed", _one_line(error)
        host.plugins.append(plugin)


def _load_named(host: Host, manager: pluggy.PluginManager, name: str) -> None:
    try:
        with _quiet():
            module, plugin_name = _import_named(name)
        known = manager.get_name(module)
        if known is not None and any(plugin.name == known and plugin.state == "loaded" for plugin in host.plugins):
            return  # it is installed as well, and loaded already
        _register(host, manager, Plugin(plugin_name, name), module)
    except ScenarioError as error:
        raise PluginError(error.problems).at(file=name) from None
    except BaseException as error:
        signals.pass_on(error)
        line = _line(error, str(Path(name).resolve()) if name.endswith(".py") else "")
        raise PluginError(Problem(f"the plugin cannot be loaded: {_one_line(error)}", file=name, line=line, column=min(line, 1))) from None


def _import_named(name: str) -> tuple[ModuleType, str]:
    path = Path(name)
    if not name.strip():
        raise PluginError("-p names a Python file or a module; this is an empty name")
    if name.endswith(".py") or path.exists():
        if not path.is_file():
            raise PluginError("there is no such file" if not path.exists() else "this is a folder, not a Python file")
        inputs.note(path.stat())
        # A name of its own keeps two files of one name, and a file and a module, apart.
        unique = f"scenario_plugin_{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
        spec = importlib.util.spec_from_file_location(unique, path.resolve())
        if spec is None or spec.loader is None:
            raise PluginError("a plugin file ends in .py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[unique] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(unique, None)
            raise
        return module, path.stem.replace("_", "-")
    try:
        return importlib.import_module(name), name.rpartition(".")[2].replace("_", "-")
    except ModuleNotFoundError as error:
        if error.name == name and Path(f"{name}.py").is_file():
            raise PluginError(f"there is no module '{name}'", f"did you mean the file {name}.py?") from None
        raise


def _register(host: Host, manager: pluggy.PluginManager, plugin: Plugin, module: Any) -> None:
    """Run the hooks of one plugin and take in what they return, all of it or nothing."""
    if any(known.name == plugin.name and known.state == "loaded" for known in host.plugins):
        other = next(known for known in host.plugins if known.name == plugin.name)
        raise PluginError(f"a plugin named '{plugin.name}' is already loaded ({other.origin})")
    _check_hooks(module)
    manager.register(module, name=plugin.name)
    callers = [caller for caller in manager.get_hookcallers(module) or [] if caller.name in HOOKS]
    host.plugins.append(plugin)
    for hook in sorted((caller.name for caller in callers), key=list(HOOKS).index):
        function = next(
            impl.function for impl in getattr(manager.hook, hook).get_hookimpls() if impl.plugin_name == plugin.name
        )
        for item, line in _answers(hook, function):
            try:
                _take(host, plugin, hook, item)
            except PluginError as error:  # a place inside a formula is shown below it; the line is the plugin's own
                raise PluginError([replace(problem, line=line, column=1) for problem in error.problems]) from None


def _check_hooks(module: Any) -> None:
    """Hooks that would never be called, or not as they are written, are said rather than passed over."""
    functions = {name: getattr(module, name, None) for name in dir(module) if name.startswith("scenario_")}
    functions = {name: function for name, function in functions.items() if callable(function) and not isinstance(function, type)}
    marked = {name for name, function in functions.items() if hasattr(function, f"{hooks.PROJECT}_impl")}
    for name in functions:
        if name not in HOOKS and (name in marked or nearest(name, HOOKS)):
            raise PluginError(f"there is no hook '{name}'", nearest(name, HOOKS) or "hooks: " + ", ".join(HOOKS))
        if name in HOOKS and name not in marked:
            raise PluginError(f"the hook {name} is not marked", "write @hookimpl in the line above it")
    if not marked:
        raise PluginError("the plugin has no hook", "mark a function such as scenario_methods with @hookimpl")


def _line(error: BaseException, file: str) -> int:
    """The line of a file at which an error arose; 0 where it did not arise there."""
    if isinstance(error, SyntaxError):
        return error.lineno or 0
    lines = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return lines[-1] if lines else 0


def _answers(hook: str, function: Any) -> list[tuple[Any, int]]:
    """What a hook returns, each with its line; a hook that raises or never ends is named."""
    found: list[tuple[Any, int]] = []
    first = function.__code__.co_firstlineno if hasattr(function, "__code__") else 0
    with _quiet():
        try:
            returned = function()
            if returned is None or isinstance(returned, str | bytes | dict) or not isinstance(returned, Iterable):
                raise PluginError(f"{hook}() must yield or return a list of {HOOKS[hook].__name__}")
            for item in returned:
                frame = getattr(returned, "gi_frame", None)  # of a hook that yields: where it stands
                found.append((item, frame.f_lineno if frame else first))
                if len(found) > MAX_ITEMS:
                    raise PluginError(f"{hook}() gives more than {MAX_ITEMS:,} descriptions")
        except ScenarioError:
            raise
        except BaseException as error:
            signals.pass_on(error)
            line = _line(error, function.__code__.co_filename if first else "")
            raise PluginError(Problem(f"{hook}() fails: {_one_line(error)}", line=line, column=min(line, 1))) from None
    return found


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """What a plugin prints goes to stderr: stdout may be a table."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


def _take(host: Host, plugin: Plugin, hook: str, item: Any) -> None:
    kind: type[Any] = HOOKS[hook]
    if not isinstance(item, kind):
        raise PluginError(f"{hook}() gave {type(item).__name__} where {kind.__name__} is due")
    check_item(item, host)
    if plugin.origin != BUILT_IN:  # those are tested
        problems = [*loops.of(item, host)]
        if problems:
            raise PluginError(problems)
    if isinstance(item, Method):
        item = acceptance.complete(item)
    owner = host.owners.get((kind, item.name))
    if owner is not None:
        raise PluginError(
            f"the {kind.__name__.lower()} '{item.name}' is brought by two plugins: "
            f"'{owner.name}' ({owner.origin}) and '{plugin.name}' ({plugin.origin})",
            f"switch one off with -p no:{owner.name}",
        )
    host.items[kind][item.name] = item
    host.owners[kind, item.name] = plugin
    plugin.adds.append(f"{_KIND_NAMES[kind]} {item.name}")


_KIND_NAMES = {Method: "method", TimeModel: "time model", Function: "function", NamedColumn: "column",
               Preset: "preset", Exporter: "format"}  # fmt: skip


def _undo(host: Host, manager: pluggy.PluginManager, plugin: Plugin) -> None:
    host.plugins[:] = [known for known in host.plugins if known is not plugin]
    for key in [key for key, owner in host.owners.items() if owner is plugin]:
        del host.owners[key]
        del host.items[key[0]][key[1]]
    plugin.adds.clear()
    if not any(known.name == plugin.name and known.state == "loaded" for known in host.plugins):
        with contextlib.suppress(Exception):
            manager.unregister(name=plugin.name)


def _one_line(error: BaseException) -> str:
    if isinstance(error, ScenarioError):
        return "; ".join(" ".join(str(problem).split()) for problem in error.problems)
    try:
        said = " ".join(str(error).split())[:300]
    except Exception:  # an exception whose text cannot be made
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
