"""What people see on a terminal: results, catalogs, plugins, as rich tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scenario import api, catalog, contract, entities, functions, shared
from scenario.book import Field
from scenario.expr import UNLIMITED
from scenario.host import Host
from scenario.result import Result
from scenario.spec import Parameter

MAX_SHOWN = 40
METRICS = ("tpot_ms", "tokens_per_s", "speedup", "bound", "memory_gb", "max_batch", "usd_per_million_tokens", "status")


def print_result(result: Result) -> None:
    """The rows by what varies in them, with the numbers people ask for first."""
    frame = result.frame
    console = Console()
    table = result.book.table
    varying = [name for name in frame.columns if name in _inputs(result) and frame[name].n_unique() > 1]
    first = [name for name in ("model", "gpu", "batch", "context", "method") if name in varying]
    shown = [*(first or ["model", "gpu", "method"]), *[name for name in varying if name not in first][:3]]
    shown += [name for name in METRICS if name in frame.columns and name not in shown]
    shown += [name for name in table.columns if name in frame.columns][:6]
    fields = {item.name: item for item in result.book.public}
    grid = Table(title=Text(table.title), title_justify="left", header_style="bold")
    for name in shown:
        item = fields[name]
        label = name.replace("_", " ") if name != "usd_per_million_tokens" else "price"
        label = label.removesuffix(" ms").removesuffix(" gb")
        grid.add_column(Text(f"{label}\n{item.unit}"), justify="right" if item.facts.type == "number" else "left", overflow="fold")
    for row in frame.head(MAX_SHOWN).select(shown).iter_rows():
        style = "dim" if "fits" in frame.columns and row[shown.index("status")].startswith("does not fit") else None
        grid.add_row(*[Text(cell(fields[name], value)) for name, value in zip(shown, row, strict=True)], style=style)
    console.print(grid)
    if frame.height > MAX_SHOWN:
        console.print(f"... and {frame.height - MAX_SHOWN:,} more rows")
    model = "bound: no server is faster; real ones are slower" if table.time_model == "bound" else table.time_model
    notes = [f"{frame.height:,} rows", f"times are a {model}"]
    if result.left_out:
        notes.append(f"where: left out {result.left_out:,}")
    console.print("; ".join(notes), style="dim")


def _inputs(result: Result) -> set[str]:
    given = {item.name.removesuffix("_given") for item in result.book.fields.values() if item.role == "input"}
    return given - {"id"}


def cell(item: Field, value: object) -> str:
    """One value for a terminal: few digits, blank as a dash."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return str(value)
    if value >= UNLIMITED:
        return "unlimited"
    if item.unit == "%":
        return f"{value:.1%}"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"


def print_list(what: str, host: Host) -> None:
    """One of the lists that ``scenario list`` offers."""
    known = catalog.builtin()
    if what == "models":
        heads = ("name", "title", "parameters", "active", "layers", "KV bytes/token", "max context", "source")
        _table(heads, _models(known), right=(2, 3, 4, 5, 6))
    elif what == "gpus":
        gpu_heads = ("name", "title", "memory GB", "TB/s", "BF16 TFLOP/s", "FP8", "INT8", "FP4", "$/h", "source")
        _table(gpu_heads, _gpus(known), right=tuple(range(2, 9)))
    elif what == "methods":
        rows = []
        for method in host.methods.values():
            rows.append((method.name, method.title, method.doc, "", method.source))
            for name, parameter in method.parameters.items():
                rows.append((f"  {name}", _default(parameter), parameter.doc, contract.limit_text(parameter) if parameter.kind in ("number", "integer") else parameter.kind, parameter.source))
        _table(("method / parameter", "title / default", "meaning", "range", "source"), rows)
    elif what == "columns":
        opened = {name: "open: methods answer it" for name in shared.OPEN}
        rows = [(name, c.unit, c.doc, opened.get(name, c.formula)) for name, c in shared.COLUMNS.items()]
        rows = [(name, p.unit, p.doc, "input") for name, p in shared.INPUTS.items()] + rows
        rows += [(name, c.unit, c.doc, c.formula) for name, c in entities.MODEL_COLUMNS.items()]
        rows += [(f"gpu_{name}", p.unit, p.doc, "catalog") for name, p in entities.GPU_FIELDS.items()]
        rows += [(name, p.unit, p.doc, "catalog") for name, p in entities.MODEL_FIELDS.items()]
        _table(("column", "unit", "meaning", "formula"), rows)
    elif what == "functions":
        rows = [(spec.signature, spec.doc, "") for spec in functions.FUNCTIONS.values() if not spec.lint]
        rows += [(f"{f.name}({', '.join(f.arguments)})", f.doc, f.formula) for f in (*shared.FUNCTIONS, *host.functions.values())]
        _table(("function", "meaning", "formula"), rows)
    elif what == "presets":
        rows = [(p.name, p.method, ", ".join(f"{k}={v}" for k, v in p.values.items()), p.doc, p.source) for p in host.presets.values()]
        _table(("preset", "method", "values", "meaning", "source"), rows)
    elif what == "formats":
        _table(("format", "bits", "meaning"), [(name, f"{bits:g}", doc) for name, (bits, doc) in entities.FORMATS.items()], right=(1,))
    else:
        rows = []
        for name, path in api.bundled().items():
            first = next((line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("title:")), "title: ")
            rows.append((name, first.partition(":")[2].strip()))
        _table(("table", "about"), rows)


def _default(parameter: Parameter) -> str:
    if parameter.derive:
        return "derived"
    return "-" if parameter.default is None else f"{parameter.default:g} {parameter.unit}" if isinstance(parameter.default, int | float) else parameter.default


def _models(known: catalog.Catalog) -> Iterable[Sequence[str]]:
    from scenario.assemble import assemble
    from scenario.engine import entity_frame
    from scenario.host import load
    from scenario.table import load as load_table

    host = load(third_party=False)
    first = {"version": 1, "rows": [{"model": next(iter(known.models)), "gpu": next(iter(known.gpus)), "batch": 1, "context": 0, "method": "vanilla"}]}
    book = assemble(load_table(first, host), host)
    frame = entity_frame(book, book.tables["models"]).with_columns(kv=pl.col("layers") * pl.col("kv_width") * 2)
    for row in frame.iter_rows(named=True):
        entry = known.models[row["name"]]
        yield (row["name"], entry.title, f"{row['params'] / 1e9:.2f} B", f"{row['active_params'] / 1e9:.2f} B", f"{row['layers']:.0f}",
               f"{row['kv']:,.0f}", f"{row['max_context']:,.0f}", entry.cited)  # fmt: skip


def _gpus(known: catalog.Catalog) -> Iterable[Sequence[str]]:
    for entry in known.gpus.values():
        price = known.prices.get(entry.name)
        numbers = [entry.values[name] for name in ("memory_gb", "bandwidth_tb_s", "bf16_tflops", "fp8_tflops", "int8_tops", "fp4_tflops")]
        yield (entry.name, entry.title, *["-" if n is None else f"{n:g}" for n in numbers],
               f"{price.usd_per_hour:.2f}" if price else "-", entry.cited)  # fmt: skip


def print_plugins(host: Host) -> None:
    """All plugins with origin, what they add and their state."""
    rows = [(p.name, p.origin, p.state + (f": {p.error}" if p.error else ""), ", ".join(p.adds)) for p in host.plugins]
    _table(("plugin", "origin", "state", "adds"), rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> None:
    table = Table(header_style="bold")
    for index, head in enumerate(heads):
        table.add_column(Text(head), justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*[Text(str(part)) for part in row])
    Console().print(table)
