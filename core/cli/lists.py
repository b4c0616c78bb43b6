"""The lists that ``scenario list`` and ``scenario plugins`` print."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import polars as pl
from rich.text import Text

from scenario import api
from scenario.catalogs import catalog
from scenario.cli.terminal import screen, table_of
from scenario.common.numbers import show_number
from scenario.formulas import functions
from scenario.model import answers, entities, features, kinds, serving, shared
from scenario.model.optional_part import Feature
from scenario.model.spec import Column, Parameter
from scenario.registry.loaded import Host


def print_list(what: str, host: Host) -> None:
    """One of the lists, by its name in :data:`LISTS`."""
    LISTS[what](host)


def _methods(host: Host) -> None:
    for method in host.methods.values():
        _entry(f"{method.name}: {method.title}" if method.title else method.name, [method.doc, _source(method.source)])
        for name, parameter in method.parameters.items():
            _entry(f"{name} = {_default(parameter)} ({_allowed(parameter)})", [parameter.doc, _source(parameter.source)], 2)


def _allowed(parameter: Parameter) -> str:
    if parameter.kind == "choice":
        return ", ".join(parameter.choices)
    return kinds.limit_text(parameter) if kinds.is_number(parameter) else parameter.kind


def _default(parameter: Parameter) -> str:
    if parameter.derive:
        return "derived"
    if isinstance(parameter.default, int | float):
        return f"{parameter.default:g} {parameter.unit}".strip()
    return parameter.default or "-"


def _source(text: str) -> str:
    return text and f"Source: {text}"


def _columns(host: Host) -> None:
    for name, parameter in {**shared.INPUTS, **serving.INPUTS}.items():
        said = "An input." if name in shared.INPUTS else "An input of tables that give it."
        _entry(_with_unit(name, parameter.unit), [parameter.doc, said])
    for name, column in _computed(host):
        _column(name, column, f"{_asked(name)}{column.formula}")
    for feature in features.FEATURES:
        said = f"Only in tables that give {' or '.join(_wanted(feature))}."
        for name, column in feature.columns.items():
            if name not in shared.COLUMNS:
                _column(name, column, f"= {column.formula}", said)
    for name in answers.SHOWN:
        _entry(_with_unit(name, answers.ASKED[name].unit), [answers.ASKED[name].doc, "Worked out where a table mentions it (show:)."])
    for name, parameter in _fields():
        _entry(_with_unit(name, parameter.unit), [parameter.doc, "From the catalog."])


def _computed(host: Host) -> Iterator[tuple[str, Column]]:
    """Every column that is computed, each once."""
    found = {**serving.COLUMNS, **serving.ESTIMATE_COLUMNS, **serving.FIRST_COLUMNS}
    extra = {name: column for name, column in found.items() if name not in shared.COLUMNS}
    named = {name: item.column for name, item in host.columns.items()}
    yield from {**shared.COLUMNS, **extra, **entities.MODEL_COLUMNS, **named}.items()


def _asked(name: str) -> str:
    if name in serving.EVERY_QUESTION:
        return "Open: time models answer it; the bound: "
    return "Open: methods answer it; vanilla: " if name in shared.OPEN else "= "


def _wanted(feature: Feature) -> Iterator[str]:
    """What a table gives that brings a feature's columns."""
    yield from feature.inputs
    for name, values in feature.values.items():
        for value in values:
            yield f"{name}: {'auto' if value == 0 else value}"


def _fields() -> Iterator[tuple[str, Parameter]]:
    for name, parameter in entities.GPU_FIELDS.items():
        yield f"gpu_{name}", parameter
    yield from entities.MODEL_FIELDS.items()
    for name, parameter in entities.HARDWARE_FIELDS.items():
        yield f"hardware_{name}", parameter


def _column(name: str, column: Column, *said: str) -> None:
    _entry(_with_unit(name, column.unit), [column.doc, *said, _source(column.source)])


def _functions(host: Host) -> None:
    for spec in functions.FUNCTIONS.values():
        if not spec.lint:
            _entry(spec.signature, [spec.doc])
    for f in (*shared.FUNCTIONS, *host.functions.values()):
        _entry(f"{f.name}({', '.join(f.arguments)})", [f.doc, f"= {f.formula}"])


def _presets(host: Host) -> None:
    for p in host.presets.values():
        values = ", ".join(f"{key}: {value}" for key, value in p.values.items())
        _entry(p.name, [f"{p.method}: {{{values}}}", p.doc, _source(p.source)])


def _formats(host: Host) -> None:
    table_of(("format", "bits", "meaning"), [(name, f"{bits:g}", doc) for name, (bits, doc) in entities.FORMATS.items()], right=(1,))


def _tables(host: Host) -> None:
    rows = []
    for name, path in api.bundled().items():
        first = next((line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("title:")), "title: ")
        rows.append((name, first.partition(":")[2].strip()))
    table_of(("table", "about"), rows)


def _models(host: Host) -> None:
    from scenario.book.assemble import assemble
    from scenario.engine.evaluator import entity_frame
    from scenario.registry.host import load
    from scenario.tables.reader import load as load_table

    known, own = catalog.builtin(), load(third_party=False)
    row = {"model": next(iter(known.models)), "gpu": next(iter(known.gpus)), "batch": 1, "context": 0, "method": "vanilla"}
    book = assemble(load_table({"version": 1, "rows": [row]}, own), own)
    frame = entity_frame(book, book.tables["models"]).with_columns(kv=pl.col("layers") * pl.col("kv_width") * 2)
    rows = []
    for found in frame.iter_rows(named=True):
        entry = known.models[found["name"]]
        sizes = [f"{found[name] / 1e9:.2f} B" for name in ("params", "active_params")]
        counts = [show_number(found[name]) for name in ("layers", "kv", "context_length")]
        rows.append((found["name"], entry.title, *sizes, *counts, entry.cited))
    heads = ("name", "title", "parameters", "active", "layers", "KV bytes/token", "max context", "source")
    table_of(heads, rows, right=(2, 3, 4, 5, 6))


GPU_COLUMNS = {"memory_gb": "memory GB", "bandwidth_tb_s": "TB/s", "bf16_tflops": "BF16 TFLOP/s", "fp8_tflops": "FP8", "int8_tops": "INT8",
               "fp4_tflops": "FP4"}  # fmt: skip


def _gpus(host: Host) -> None:
    known, rows = catalog.builtin(), []
    for entry in known.gpus.values():
        price = known.prices.get(entry.name)
        rows.append((entry.name, entry.title, *[_number(entry.values[name], "g") for name in GPU_COLUMNS],
                     _number(price.usd_per_hour if price else None, ".2f"), entry.cited))  # fmt: skip
    table_of(("name", "title", *GPU_COLUMNS.values(), "$/h", "source"), rows, right=tuple(range(2, 9)))


def _number(value: float | None, format: str) -> str:
    return "-" if value is None else f"{value:{format}}"


LISTS: Mapping[str, Callable[[Host], None]] = {
    "models": _models, "gpus": _gpus, "methods": _methods, "columns": _columns, "functions": _functions, "presets": _presets,
    "tables": _tables, "formats": _formats,
}  # fmt: skip


def print_plugins(host: Host) -> None:
    """All plugins with origin, what they add and their state."""
    for plugin in host.plugins:
        state = f"{plugin.state}: {plugin.error}" if plugin.error else plugin.state
        _entry(f"{plugin.name} ({plugin.origin}): {state}", [", ".join(plugin.adds)])


def _with_unit(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name


def _entry(head: str, lines: Sequence[str] | Iterable[str], indent: int = 0) -> None:
    """A heading with what is to be said about it indented below; at a terminal lines are broken at words."""
    console = screen()
    console.print(Text(" " * indent + head, style="" if indent else "bold"), soft_wrap=True)
    pad = " " * (indent + 4)
    for line in filter(None, lines):
        if console.is_terminal:
            line = textwrap.fill(line, max(console.width, 40), initial_indent=pad, subsequent_indent=pad, break_long_words=False,
                                 break_on_hyphens=False)  # fmt: skip
        else:
            line = pad + line
        console.print(Text(line), soft_wrap=True)
