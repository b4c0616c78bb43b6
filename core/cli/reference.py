"""The reference part of the documentation, made from the code: ``python -m scenario.cli.reference docs/`` writes it.

Methods, columns, functions, errors, commands, the table format and the plugin contract come from the registries they are
defined in, so what is added there appears by running this again. A test compares the files with what this gives.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

import scenario
from scenario import api, testing
from scenario.common import errors
from scenario.formulas import functions
from scenario.model import entities, kinds, shared, spec
from scenario.model.spec import Parameter
from scenario.registry import hooks
from scenario.registry import host as plugin_host
from scenario.registry.loaded import HOOKS, Host
from scenario.tables.schema import table_schema
from scenario.tables.sections import SECTIONS

NOTE = "<!-- Made by `python -m scenario.cli.reference docs/` from the code; edit there, not here. -->"


def pages() -> dict[str, str]:
    """Every generated file by its path under ``docs``."""
    host = plugin_host.load(third_party=False)
    made: dict[str, Callable[[Host], Iterable[str]]] = {
        "methods": methods, "columns": columns, "functions": formula_functions, "table": table_format, "commands": commands,
        "errors": messages, "plugins": plugins,
    }  # fmt: skip
    texts = {f"reference/{name}.md": "\n".join([NOTE, "", *make(host)]).rstrip() + "\n" for name, make in made.items()}
    texts["table.schema.json"] = json.dumps(table_schema(host), indent=1, ensure_ascii=False) + "\n"
    return texts


def grid(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A markdown table, or nothing where there are no rows."""
    lines = ["| " + " | ".join(part.replace("|", "\\|").replace("\n", " ") for part in row) + " |" for row in rows]
    return ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads), *lines, ""] if lines else []


def code(text: str) -> str:
    """Inline code, or nothing."""
    return f"`{text}`" if text else ""


def _default(parameter: Parameter) -> str:
    shown = f"{parameter.default:g}" if isinstance(parameter.default, int | float) else parameter.default or ""
    return f"derived, else {shown}" if parameter.derive and shown else "derived" if parameter.derive else shown or "none"


def _range(parameter: Parameter) -> str:
    if parameter.kind == "choice":
        return ", ".join(parameter.choices)
    if parameter.kind in ("number", "integer"):
        return ("whole, " if parameter.kind == "integer" else "") + kinds.limit_text(parameter)
    return {"flag": "0 or 1", "model": "a model's name", "profile": "a profile's name or rates"}.get(parameter.kind, parameter.kind)


def parameter_grid(parameters: Iterable[tuple[str, Parameter]]) -> list[str]:
    """Parameters with default, range, unit, meaning and source."""
    return grid(
        ("name", "default", "allowed", "unit", "meaning", "source"),
        [(code(name), _default(p), _range(p), p.unit, p.doc, p.source) for name, p in parameters],
    )


def methods(host: Host) -> Iterator[str]:
    """Decoding methods, their presets, and time models."""
    yield "# Methods"
    yield ""
    yield ("Methods for weights and methods for drafting can be joined: `int4+eagle`. A method answers some of the engine's open "
           "questions; the others keep the answer of vanilla decoding ([columns](columns.md)).")  # fmt: skip
    yield ""
    for method in host.methods.values():
        yield f"## {method.name}: {method.title or method.name}"
        yield ""
        yield from ([method.doc, ""] if method.doc else [])
        yield from ([f"Source: {method.source}", ""] if method.source else [])
        yield from parameter_grid(method.parameters.items())
        yield from grid(
            ("answers", "formula", "unit", "meaning", "source"),
            [(code(name), code(c.formula), c.unit, c.doc, c.source) for name, c in method.columns.items()],
        )
        derived = [(code(name), code(p.derive)) for name, p in method.parameters.items() if p.derive]
        yield from grid(("derived", "formula"), derived)
        chosen = [preset for preset in host.presets.values() if preset.method == method.name]
        shown = [(code(p.name), ", ".join(f"{k} {v}" for k, v in p.values.items()), p.doc, p.source) for p in chosen]
        yield from grid(("preset", "values", "meaning", "source"), shown)
    yield "# Time models"
    yield ""
    yield "How long one forward pass takes, in ms, from `rows` (token rows), `weight_gb` and `kv_gb` (what it reads, GB)."
    yield ""
    for model in host.time_models.values():
        yield from [f"## {model.name}: {model.title or model.name}", "", model.doc, "", "```", model.formula, "```", ""]
        yield from ([f"Source: {model.source}", ""] if model.source else [])
        yield from parameter_grid(model.parameters.items())


def columns(host: Host) -> Iterator[str]:
    """Inputs, computed columns, catalog fields."""
    heads = ("column", "unit", "meaning", "formula", "source")

    def computed(found: Iterable[tuple[str, spec.Column]], asked: bool = False) -> list[str]:
        return grid(heads, [(code(n), c.unit, c.doc, code(c.formula) if not asked or c.formula else "", c.source) for n, c in found])

    yield from ["# Columns", "", "A formula may read any of these by name. CSV, Parquet and the frame carry the same names.", ""]
    yield from ["## Inputs of a row", "", "`model`, `gpu`, `method` and `id` are texts; the others:", ""]
    yield from parameter_grid(shared.INPUTS.items())
    yield from ["## Assumptions for the whole table", "", "Set under `defaults:`.", ""]
    yield from parameter_grid(shared.SCALARS.items())
    yield from ["## Open questions", "", "What a method may answer; the formula is vanilla decoding's.", ""]
    yield from computed(shared.OPEN.items())
    yield from ["## Computed for every row", ""]
    yield from computed((name, c) for name, c in shared.COLUMNS.items() if name not in shared.OPEN)
    yield from computed((name, named.column) for name, named in host.columns.items())
    said = "Given in the catalog or under `models:`. A parameter `draft` of kind model brings them as `draft_...`."
    yield from ["## Model fields", "", said, ""]
    yield from parameter_grid(entities.MODEL_FIELDS.items())
    yield from ["## Computed for every model", ""]
    yield from computed(entities.MODEL_COLUMNS.items())
    yield from ["## GPU fields", "", "In formulas with `gpu_` in front: `gpu_memory_gb`.", ""]
    yield from parameter_grid(entities.GPU_FIELDS.items())
    yield from ["## Formats of weights and KV cache", "", "`weights_bits` and `kv_bits` are the bits of the row's formats.", ""]
    yield from grid(("format", "bits", "meaning"), [(code(name), f"{bits:g}", doc) for name, (bits, doc) in entities.FORMATS.items()])


def formula_functions(host: Host) -> Iterator[str]:
    """The formula language and its functions."""
    yield from [
        "# Formulas", "",
        "A formula is arithmetic on names: `+ - * / // % **`, comparisons, `and or not`, `value if condition else other`, numbers, "
        "texts in quotes, `blank`, `unlimited`, and the functions below. What cannot be computed (a division by zero, the logarithm "
        "of a negative number) is blank, and so is what reads a blank; a spreadsheet shows the same.", "",
        "## Functions", "",
    ]  # fmt: skip
    yield from grid(("function", "meaning"), [(code(f.signature), f.doc) for f in functions.FUNCTIONS.values() if not f.lint])
    yield from ["## Functions that are formulas", "", "They are written out before a formula is computed.", ""]
    own = [*shared.FUNCTIONS, *host.functions.values()]
    yield from grid(
        ("function", "meaning", "formula", "source"),
        [(code(f"{f.name}({', '.join(f.arguments)})"), f.doc, code(f.formula), f.source) for f in own],
    )
    yield "`forward_ms(rows, weight_gb, kv_gb)` is the row's [time model](methods.md#time-models)."


def table_format(host: Host) -> Iterator[str]:
    """Keys of a table, and an example."""
    yield from ["# The table format", "", "A table is a YAML file. Unknown keys are errors; so are values out of range.", ""]
    yield from grid(("key", "meaning"), [(code(section.key), section.doc) for section in SECTIONS])
    yield from ["Editors complete and check tables with [table.schema.json](../table.schema.json) (`scenario schema` prints it with your "
                "plugins). With the YAML extension of VS Code, write as the first line:", "",
                "```yaml", "# yaml-language-server: $schema=docs/table.schema.json", "```", ""]  # fmt: skip
    yield from ["`scenario init` writes this table:", "", "```yaml", api.bundled()["starter"].read_text(encoding="utf-8").rstrip(), "```", ""]
    yield from ["## Bundled tables", "", "Run them by name: `scenario run starter`.", ""]
    for name, path in api.bundled().items():
        title = next((line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("title:")), "title:")
        yield f"- `{name}`: {title.partition(':')[2].strip()}"


def commands(host: Host) -> Iterator[str]:
    """The help text of every command."""
    from scenario.cli.commands import main

    yield from ["# Commands", ""]
    context = click.Context(main, info_name="scenario", terminal_width=100, max_content_width=100, **main.context_settings)
    yield from ["## scenario", "", "```text", main.get_help(context).rstrip(), "```", ""]
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, terminal_width=100, max_content_width=100)
        yield from [f"## scenario {name}", "", "```text", command.get_help(inner).rstrip(), "```", ""]
    yield ("Exit codes: 0 done; 1 something outside the input went wrong (a full disk), or a comparison failed; 2 the input cannot be "
           "used; 3 the result was written, but under another name, since the file is open in another program; 130 interrupted; "
           "143 stopped by SIGTERM.")


def messages(host: Host) -> Iterator[str]:
    """The error classes, and every message that the code can give."""
    yield from ["# Errors", "", "```text", inspect.cleandoc(errors.__doc__ or ""), "```", ""]
    yield from grid(
        ("class", "exit code", "meaning"),
        [(code(kind.__name__), str(kind.exit_code), _first_line(kind)) for kind in _tree(errors.ScenarioError)],
    )
    yield from ["## Messages", "", "What stands in `{}` is what the message speaks of. Most carry the file, line and column, and a suggestion.", ""]
    root = Path(inspect.getfile(scenario)).parent
    for path in sorted(root.rglob("*.py")):
        found = list(dict.fromkeys(_said(path)))
        if found:
            yield from [f"### {path.relative_to(root).with_suffix('').as_posix()}", "", *(f"- {text}" for text in found), ""]


def _first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")


def _tree(kind: type[errors.ScenarioError]) -> Iterator[type[errors.ScenarioError]]:
    yield kind
    for below in sorted((k for k in kind.__subclasses__() if k.__module__ == errors.__name__), key=lambda k: k.__name__):
        yield from _tree(below)


RAISERS = {"Problem", "ScenarioError", "FormulaError", "TableError", "PluginError", "OutputError", "UsageError", "say", "refuse", "problem"}


def _said(path: Path) -> Iterator[str]:
    """The texts given to calls that make problems, in the order of the file."""
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if name not in RAISERS:
            continue
        for argument in call.args:
            text = _literal(argument)
            if text and " " in text:
                yield " ".join(text.split()).replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
                break


def _literal(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else _hole(part) for part in node.values)
    return ""


def _hole(part: ast.expr) -> str:
    """What stands in a message for a value: its variable's name where it has a plain one."""
    value = part.value if isinstance(part, ast.FormattedValue) else part
    name = value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else "..."
    return "{" + name + "}"


def plugins(host: Host) -> Iterator[str]:
    """Hooks, the descriptions they return, the public names, the conformance kit."""
    yield from ["# The plugin contract", "", f"Version {spec.API}. A plugin is a module with hooks: functions marked with `@hookimpl`, without "
                "arguments, each of which returns descriptions. Entry points of the group `scenario` are found by themselves.", ""]  # fmt: skip
    returned = {name: kind.__name__ for name, kind in HOOKS.items()}
    yield from grid(("hook", "returns", "meaning"), [(code(n), code(k), (getattr(hooks, n).__doc__ or "")) for n, k in returned.items()])
    described: list[Any] = [spec.Column, spec.Parameter, *HOOKS.values()]
    for kind in dict.fromkeys(described):
        yield from [f"## {kind.__name__}", "", inspect.getdoc(kind) or "", ""]
        yield from grid(("field", "type", "default"), [(code(f.name), code(str(f.type)), _field_default(f)) for f in dataclasses.fields(kind)])
    yield from ["## scenario.testing", "", "The conformance kit. Nothing in it needs pytest.", ""]
    for name in testing.__all__:
        function = getattr(testing, name)
        yield from [f"### {name}", "", "```python", _signature(name, function), "```", "", inspect.getdoc(function) or "", ""]
    yield from ["## Public names", "", "What `scenario` exports; plugins import nothing else.", ""]
    public = {name: _first_line(getattr(scenario, name)) for name in scenario.__all__}
    public["UNLIMITED"] = "What stands for no limit in a number column: 1e15."
    public["hookimpl"] = "Marks a function of a plugin module as a hook."
    yield from grid(("name", "meaning"), [(code(name), doc) for name, doc in public.items()])


def _signature(name: str, function: Callable[..., Any]) -> str:
    lines = [str(parameter) for parameter in inspect.signature(function).parameters.values()]
    if "*" not in lines and any(p.kind is p.KEYWORD_ONLY for p in inspect.signature(function).parameters.values()):
        first = next(i for i, p in enumerate(inspect.signature(function).parameters.values()) if p.kind is p.KEYWORD_ONLY)
        lines.insert(first, "*")
    lines = [re.sub(r": '([^']*)'", r": \1", line) for line in lines]
    return f"{name}(\n" + "".join(f"    {line},\n" for line in lines) + ")"


def _field_default(item: dataclasses.Field[Any]) -> str:
    if item.default is not dataclasses.MISSING:
        return code(repr(item.default))
    return "empty" if item.default_factory is not dataclasses.MISSING else "needed"


def main(arguments: Sequence[str]) -> int:
    """Write all pages under the folder given; files that are as they should be are left alone."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m scenario.cli.reference DOCS_FOLDER\n")
        return 2
    folder = Path(arguments[0])
    for name, text in pages().items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
