"""What people see on a terminal: results, catalogs, plugins. No id and no number is ever broken over lines."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence

import polars as pl
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from scenario import api
from scenario.book.book import Field
from scenario.catalogs import catalog
from scenario.formulas import functions
from scenario.formulas.expr import UNLIMITED
from scenario.model import answers, entities, features, kinds, serving, shared
from scenario.model.spec import Parameter
from scenario.registry.host import Host
from scenario.result import Result
from scenario.workbooks.check import Checked, shown_as

MAX_SHOWN = 40
FIRST = ("model", "gpu", "batch", "context", "method")
METRICS = ("tpot_ms", "ttft_ms", "tokens_per_s", "speedup", "verdict", "usd_per_million_tokens", "usd_low", "usd_high", "memory_gb", "bound",
           "max_batch", "status")  # fmt: skip
IMPORTANT = ("tpot_ms", "tokens_per_s", "speedup", "usd_per_million_tokens", "status")
LABELS = {"tpot_ms": "TPOT", "ttft_ms": "TTFT", "usd_low": "low", "usd_high": "high", "tokens_per_s": "tokens/s", "usd_per_million_tokens": "$/1M tokens", "memory_gb": "memory",
          "max_batch": "max batch"}  # fmt: skip
"""Headers of the metrics; every other column is headed by its name."""
WIDE = 10_000
BOUND = "a bound: no server is faster, real ones are slower"


class Screen(Console):
    """A console that leaves it to the command line what a reader who has gone means."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def screen() -> Console:
    """A terminal of its width; anything else is never cut or coloured."""
    console = Screen(highlight=False)
    return console if console.is_terminal else Screen(highlight=False, width=WIDE, color_system=None)


def print_result(result: Result) -> None:
    """The rows by what varies in them, with the numbers people ask for first."""
    console, frame, table = screen(), result.frame, result.book.table
    fields = {item.name: item for item in result.book.public}
    inputs = [name for name in frame.columns if name in _inputs(result)]
    typed = {*table.rows.columns, *table.defaults}
    varying = [name for name in inputs if name in typed and frame[name].n_unique() > 1]
    constant = [name for name in inputs if name in typed and name not in varying and frame.height and frame[name][0] is not None]
    own = [name for name in table.columns if name in frame.columns]
    metrics = [name for name in METRICS if name in frame.columns and name not in varying]
    all_well = frame.height > 0 and bool((frame["status"] == "ok").all())
    if all_well:
        metrics.remove("status")
    leading = [name for name in FIRST if name in varying] + [name for name in varying if name not in FIRST]
    shown = [*(leading or ["model", "method"]), *metrics, *own]
    rank = [*leading, *IMPORTANT, *own, *shown]

    console.print(Text(table.title, style="bold"))
    if constant:
        parts = [f"{name} {cell(fields[name], frame[name][0])}" for name in [*FIRST, *constant] if name in constant]
        console.print(Text("all rows: " + ", ".join(dict.fromkeys(parts)), style="dim"))
    some = frame.head(MAX_SHOWN)
    heads = {name: _head(fields[name]) for name in shown}
    cells = {name: [cell(fields[name], value) for value in some[name]] for name in shown}
    right = {name for name in shown if fields[name].facts.type == "number"}
    faint = [not bool(value) for value in some["fits"]] if "fits" in some.columns else None
    left_out = _grid(console, heads, cells, right, sorted(shown, key=rank.index), faint)
    if frame.height > MAX_SHOWN:
        console.print(f"... and {frame.height - MAX_SHOWN:,} more rows (all are in the file: -o FILE)")
    if left_out:
        console.print(Text("not shown for want of width: " + ", ".join(left_out), style="dim"))
    notes = [f"{frame.height:,} row{'s' if frame.height != 1 else ''}", *(["all fit"] if all_well else []), _basis(result)]
    if "status" in left_out:  # a dash needs its reason
        for status, count in frame.filter(pl.col("status") != "ok")["status"].value_counts(sort=True).iter_rows():
            notes.insert(1, f"{count:,} of them: {status}")
    if result.left_out:
        notes.append(f"where: left out {result.left_out:,}")
    console.print(Text("; ".join(notes), style="dim"))


def _basis(result: Result) -> str:
    """What the times of the rows rest on, and how far off they may be."""
    frame, model = result.frame, result.book.table.time_model
    if "basis" not in frame.columns or not frame.height:
        return f"times are {BOUND}" if model == "bound" else f"times are by the model '{model}'"
    said = []
    known = frame.filter(pl.col("time_error").is_not_null())
    if known.height:
        bases, errors = known["basis"].drop_nulls().unique(maintain_order=True).to_list(), known["time_error"].to_list()
        reach = f"{min(errors):.0%}" if min(errors) == max(errors) else f"{min(errors):.0%} to {max(errors):.0%}"
        said.append(f"{', '.join(bases)}: nine of ten measurements lie within {reach}")
    words = {"bound": BOUND, "extrapolated": "extrapolated: nothing says how far off"}
    others = frame.filter(pl.col("time_error").is_null())["basis"].drop_nulls().unique(maintain_order=True).to_list()
    said += [words.get(basis, f"by the model '{basis}'") for basis in others if basis != "no measurement"]
    missing = frame.filter(pl.col("basis") == "no measurement").height
    nothing = [f"no times in {missing:,} of them: nothing was measured" if said else "no times: nothing was measured"] if missing else []
    return "; ".join([*([f"times are {'; '.join(said)}"] if said else []), *nothing]) or f"times are by the model '{model}'"


def _head(item: Field) -> tuple[str, str]:
    label = LABELS.get(item.name, item.name)
    return label, "" if item.unit in label or item.name in FIRST else item.unit


def _grid(console: Console, heads: dict[str, tuple[str, str]], cells: dict[str, list[str]], right: set[str], rank: Sequence[str],
          faint: Sequence[bool] | None = None) -> list[str]:  # fmt: skip
    """Print the columns that fit, the first of ``rank`` before the others; returns the names of those that do not."""
    widths = {name: max(cell_len(text) for text in (*heads[name], *cells[name])) + 2 for name in heads}
    kept: set[str] = set()
    room = console.width - 2
    for name in rank:
        if widths[name] <= room or not kept:
            kept.add(name)
            room -= widths[name]
    grid = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    two = any(unit for name, (_, unit) in heads.items() if name in kept)
    for name, (label, unit) in heads.items():
        if name in kept:
            grid.add_column(Text(f"{label}\n{unit}" if two else label), justify="right" if name in right else "left", no_wrap=True,
                            overflow="ellipsis")  # fmt: skip
    for index, row in enumerate(zip(*(cells[name] for name in heads if name in kept), strict=True)):
        grid.add_row(*[Text(part) for part in row], style="dim" if faint and faint[index] else None)
    console.print(grid)
    return [name for name in heads if name not in kept]


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
    if item.limit and value >= UNLIMITED:
        return "unlimited"
    if item.unit == "%":
        return f"{value:.1%}"
    if abs(value) >= 1e12:
        return f"{value:.4g}"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"


def print_check(file: str, found: Checked) -> None:
    """What a workbook shows otherwise than the engine computes, by cell and cause."""
    console = screen()
    if not found.differences:
        console.print(f"{file}: good: {found.cells:,} cells of {found.rows:,} rows show what the engine computes")
        return
    shown = found.differences[:MAX_SHOWN]
    rows = [(d.place, d.column, shown_as(d.shows), shown_as(d.engine), d.cause) for d in shown]
    table_of(("cell", "column", "shows", "engine", "cause"), rows, right=(2, 3))
    if len(found.differences) > MAX_SHOWN:
        console.print(f"and {len(found.differences) - MAX_SHOWN:,} more")
    causes = Counter(d.cause for d in found.differences)
    console.print(f"{file}: {len(found.differences):,} of {found.cells:,} cells differ")
    for cause, count in causes.most_common(5):
        console.print(f"  {count:,}: {cause}")


def print_list(what: str, host: Host) -> None:
    """One of the lists that ``scenario list`` offers."""
    known = catalog.builtin()
    if what == "models":
        heads = ("name", "title", "parameters", "active", "layers", "KV bytes/token", "max context", "source")
        table_of(heads, _models(known), right=(2, 3, 4, 5, 6))
    elif what == "gpus":
        gpu_heads = ("name", "title", "memory GB", "TB/s", "BF16 TFLOP/s", "FP8", "INT8", "FP4", "$/h", "source")
        table_of(gpu_heads, _gpus(known), right=tuple(range(2, 9)))
    elif what == "methods":
        for method in host.methods.values():
            _entry(f"{method.name}: {method.title}" if method.title else method.name, [method.doc, method.source and f"Source: {method.source}"])
            for name, parameter in method.parameters.items():
                said = kinds.limit_text(parameter) if kinds.is_number(parameter) else parameter.kind
                said = ", ".join(parameter.choices) if parameter.kind == "choice" else said
                _entry(f"{name} = {_default(parameter)} ({said})", [parameter.doc, parameter.source and f"Source: {parameter.source}"], 2)
    elif what == "columns":
        for name, parameter in {**shared.INPUTS, **serving.INPUTS}.items():
            said = "An input." if name in shared.INPUTS else "An input of tables that give it."
            _entry(_with_unit(name, parameter.unit), [parameter.doc, said])
        extra = {name: column for name, column in (serving.COLUMNS | serving.ESTIMATE_COLUMNS | serving.FIRST_COLUMNS).items() if name not in shared.COLUMNS}
        columns = {**shared.COLUMNS, **extra, **entities.MODEL_COLUMNS, **{name: named.column for name, named in host.columns.items()}}
        for name, column in columns.items():
            asked = "Open: methods answer it; vanilla: " if name in shared.OPEN else "= "
            if name in serving.EVERY_QUESTION:
                asked = "Open: time models answer it; the bound: "
            _entry(_with_unit(name, column.unit), [column.doc, f"{asked}{column.formula}", column.source and f"Source: {column.source}"])
        for feature in features.FEATURES:
            by = " or ".join((*feature.inputs, *(f"{name}: {'auto' if value == 0 else value}" for name, found in feature.values.items()
                                                 for value in found)))  # fmt: skip
            for name, column in feature.columns.items():
                if name not in shared.COLUMNS:
                    _entry(_with_unit(name, column.unit), [column.doc, f"= {column.formula}", f"Only in tables that give {by}.",
                                                           column.source and f"Source: {column.source}"])  # fmt: skip
        for name in answers.SHOWN:
            _entry(_with_unit(name, answers.ASKED[name].unit), [answers.ASKED[name].doc, "Worked out where a table mentions it (show:)."])
        catalogs = {f"gpu_{name}": field for name, field in entities.GPU_FIELDS.items()} | entities.MODEL_FIELDS
        catalogs |= {f"hardware_{name}": field for name, field in entities.HARDWARE_FIELDS.items()}
        for name, parameter in catalogs.items():
            _entry(_with_unit(name, parameter.unit), [parameter.doc, "From the catalog."])
    elif what == "functions":
        for spec in functions.FUNCTIONS.values():
            if not spec.lint:
                _entry(spec.signature, [spec.doc])
        for f in (*shared.FUNCTIONS, *host.functions.values()):
            _entry(f"{f.name}({', '.join(f.arguments)})", [f.doc, f"= {f.formula}"])
    elif what == "presets":
        for p in host.presets.values():
            values = ", ".join(f"{key}: {value}" for key, value in p.values.items())
            _entry(p.name, [f"{p.method}: {{{values}}}", p.doc, p.source and f"Source: {p.source}"])
    elif what == "formats":
        table_of(("format", "bits", "meaning"), [(name, f"{bits:g}", doc) for name, (bits, doc) in entities.FORMATS.items()], right=(1,))
    else:
        rows = []
        for name, path in api.bundled().items():
            first = next((line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("title:")), "title: ")
            rows.append((name, first.partition(":")[2].strip()))
        table_of(("table", "about"), rows)


def _with_unit(name: str, unit: str) -> str:
    return f"{name} ({unit})" if unit else name


def _entry(head: str, lines: Iterable[str], indent: int = 0) -> None:
    """A heading with what is to be said about it indented below."""
    console = screen()
    console.print(Text(" " * indent + head, style="" if indent else "bold"), soft_wrap=True)
    for line in lines:
        if line:
            pad = " " * (indent + 4)
            wide = not console.is_terminal
            console.print(Text(pad + line if wide else textwrap.fill(
                line, max(console.width, 40), initial_indent=pad, subsequent_indent=pad, break_long_words=False, break_on_hyphens=False
            )), soft_wrap=True)  # fmt: skip


def _default(parameter: Parameter) -> str:
    if parameter.derive:
        return "derived"
    return "-" if parameter.default is None else f"{parameter.default:g} {parameter.unit}".strip() if isinstance(parameter.default, int | float) else parameter.default


def _models(known: catalog.Catalog) -> Iterable[Sequence[str]]:
    from scenario.book.assemble import assemble
    from scenario.engine.evaluator import entity_frame
    from scenario.registry.host import load
    from scenario.tables.table import load as load_table

    host = load(third_party=False)
    first = {"version": 1, "rows": [{"model": next(iter(known.models)), "gpu": next(iter(known.gpus)), "batch": 1, "context": 0, "method": "vanilla"}]}
    book = assemble(load_table(first, host), host)
    frame = entity_frame(book, book.tables["models"]).with_columns(kv=pl.col("layers") * pl.col("kv_width") * 2)
    for row in frame.iter_rows(named=True):
        entry = known.models[row["name"]]
        yield (row["name"], entry.title, f"{row['params'] / 1e9:.2f} B", f"{row['active_params'] / 1e9:.2f} B", f"{row['layers']:.0f}",
               f"{row['kv']:,.0f}", f"{row['context_length']:,.0f}", entry.cited)  # fmt: skip


def _gpus(known: catalog.Catalog) -> Iterable[Sequence[str]]:
    for entry in known.gpus.values():
        price = known.prices.get(entry.name)
        numbers = [entry.values[name] for name in ("memory_gb", "bandwidth_tb_s", "bf16_tflops", "fp8_tflops", "int8_tops", "fp4_tflops")]
        yield (entry.name, entry.title, *["-" if n is None else f"{n:g}" for n in numbers],
               f"{price.usd_per_hour:.2f}" if price and price.usd_per_hour is not None else "-", entry.cited)  # fmt: skip


def print_plugins(host: Host) -> None:
    """All plugins with origin, what they add and their state."""
    for plugin in host.plugins:
        state = f"{plugin.state}: {plugin.error}" if plugin.error else plugin.state
        _entry(f"{plugin.name} ({plugin.origin}): {state}", [", ".join(plugin.adds)])


def table_of(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> None:
    """A list in columns; the last ones are left out where a terminal is too narrow for them."""
    console, listed = screen(), [[str(part) for part in row] for row in rows]
    cells = {head: [row[index] for row in listed] for index, head in enumerate(heads)}
    left_out = _grid(console, {head: (head, "") for head in heads}, cells, {heads[index] for index in right}, heads)
    if left_out:
        console.print(Text("not shown for want of width: " + ", ".join(left_out), style="dim"))
