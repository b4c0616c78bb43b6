"""The properties that :func:`scenario.testing.check_method` holds a method to, one function each.

Each takes a :class:`Subject` and yields one message per thing that is wrong, empty when the property holds.
"""

from __future__ import annotations

import difflib
import importlib.util
import itertools
import math
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scenario import api
from scenario.book.book import Book
from scenario.common.errors import ScenarioError
from scenario.engine.evaluator import Evaluator
from scenario.formulas.expr import Call, Node, Text, names, walk
from scenario.formulas.to_excel import compile_excel
from scenario.model import kinds, shared, stacks
from scenario.model.spec import Method, Parameter
from scenario.registry import contract
from scenario.registry import host as plugin_host
from scenario.registry.loaded import Host

if TYPE_CHECKING:
    import polars as pl

Values = Mapping[str, float]
Simulation = Callable[[Values, Any, int], Any]
"""``simulation(values, rng, rounds)`` gives the tokens of so many rounds, drawn with a numpy generator."""

CHANCES = ("alpha", "hit", "hit_rate")
"""Parameters that are a chance to be accepted: at 0 a round gives one token, and more of them is never worse."""
OFF = {"gamma": 0.0}
"""Values with which nothing is drafted, so that the method is vanilla decoding."""
RANDOM_POINTS = 24
STEPS = 9
ROUNDS = 40_000


@dataclass
class Subject:
    """A method on the bench: in a host of its own, with the points of its parameters that are tried."""

    method: Method
    host: Host
    model: str = "llama-3.1-8b"
    gpu: str = "h100-sxm"
    where: Callable[[Values], bool] | None = None
    simulation: Simulation | None = None
    rises_with: Sequence[str] = CHANCES
    off: Values = field(default_factory=lambda: dict(OFF))
    points: list[dict[str, float]] = field(default_factory=list)

    def run(self, points: Sequence[Values], batch: float = 8) -> tuple[Book, pl.DataFrame]:
        """Every column of one row per point, after a row of vanilla decoding."""
        common = {"model": self.model, "gpu": self.gpu, "batch": batch, "context": 2048}
        rows = [{"id": "vanilla", **common, "method": "vanilla"}]
        rows += [{"id": f"p{i}", **common, "method": self.method.name, **point} for i, point in enumerate(points)]
        book, _ = api.check({"version": 1, "rows": rows}, host=self.host)
        return book, Evaluator(book).run(book.table.rows)

    @property
    def defaults(self) -> dict[str, float]:
        return {name: float(p.default) for name, p in self.method.parameters.items() if isinstance(p.default, int | float) and not p.derive}

    def may(self, point: Values) -> bool:
        """Whether the author says that these values make sense together."""
        return self.where is None or self.where({**self.defaults, **point})


def prepare(subject: Subject) -> list[str]:
    """Put the method into the host; the messages say why it cannot be."""
    method, host = subject.method, subject.host
    known = host.methods.pop(method.name, None) if hasattr(method, "name") else None
    if not isinstance(method, Method):
        return [f"[contract] {type(method).__name__} where Method is due"]
    if known is not None and known != method:
        host.methods[method.name] = known
        return [f"[contract] there is another method named '{method.name}': choose another name"]
    try:
        contract.check_item(method, host)
    except ScenarioError as error:
        return [f"[contract] {' '.join(str(problem).split())}" for problem in error.problems]
    host.methods[method.name] = method
    subject.points = [point for point in _points(method) if subject.may(point)]
    return []


def _points(method: Method) -> list[dict[str, float]]:
    """Values to try: the defaults, each parameter at its ends, all of them low or high, and a few at random.

    A parameter without a default stays unset: it is another way to say what the others say.
    """
    spans = {name: _span(p) for name, p in method.parameters.items() if (p.kind == "flag" or kinds.is_number(p)) and p.default is not None}
    found: list[dict[str, float]] = [{}]
    found += [{name: value} for name, span in spans.items() for value in span]
    found += [{name: span[0] for name, span in spans.items()}, {name: span[-1] for name, span in spans.items()}]
    rng = random.Random(0)
    found += [{name: rng.choice(span) for name, span in spans.items()} for _ in range(RANDOM_POINTS if len(spans) > 1 else 0)]
    return [dict(point) for point in dict.fromkeys(tuple(sorted(point.items())) for point in found)]


def _span(parameter: Parameter) -> list[float]:
    """A few values from the lowest to the highest that a parameter allows, and sensible ones where it has no limit."""
    limits = kinds.parameter_facts(parameter)
    default = float(parameter.default) if isinstance(parameter.default, int | float) else 1.0
    low = limits.low if limits.low > -1e9 else min(0.0, default)
    high = limits.high if limits.high < 1e9 else max(4 * abs(default), 10.0)
    low = low + (high - low) * 1e-3 if limits.open_low else low
    values = {low, (low + high) / 2, high}
    if limits.integer:
        values = {float(math.floor(value)) for value in values if limits.may_be(float(math.floor(value)))}
    return sorted(values)


def described(subject: Subject) -> Iterator[str]:
    """A method says what it is, with a source; so does each parameter and column, and parameters have limits."""
    method = subject.method
    for what in ("title", "doc", "source"):
        if not getattr(method, what) and (what != "source" or method.columns):
            yield f"the method has no {what}"
    for name, parameter in method.parameters.items():
        if not parameter.doc:
            yield f"parameter {name} has no doc: say in one line what it means"
        if kinds.is_number(parameter) and parameter.low is None and parameter.above is None:
            yield f"parameter {name} has no lower limit (low or above): a typing error would go unnoticed"
    for name, column in method.columns.items():
        if not column.doc:
            yield f"column {name} has no doc: say in one line what it means"
        if near := _nearly_open(name):
            yield f"column {name} answers no question of the engine; if '{near}' was meant, that is left unanswered"


def _nearly_open(name: str) -> str:
    """The open question that a column's name is nearly, but not."""
    near = difflib.get_close_matches(name, shared.OPEN, n=1, cutoff=0.85) if name not in shared.OPEN else []
    return near[0] if near else ""


def units(subject: Subject) -> Iterator[str]:
    """An answer to an open question comes in the question's unit."""
    for name, column in subject.method.columns.items():
        if name in shared.OPEN and column.unit != shared.OPEN[name].unit:
            yield f"column {name} is in '{column.unit}', the engine reads '{shared.OPEN[name].unit}'"


def ranges(subject: Subject) -> Iterator[str]:
    """At every point tried: numbers, none negative, one to ``rows_per_sequence`` tokens a round."""
    _, frame = subject.run(subject.points)
    tried = {name: list(zip(subject.points, frame[name].to_list()[1:], strict=True)) for name in frame.columns}
    yield from _too_low(tried)
    yield from _too_many(tried)
    yield from _lost(tried)


Tried = Mapping[str, Sequence[tuple[Values, Any]]]
"""For each column, the points tried and its value there."""


def _too_low(tried: Tried) -> Iterator[str]:
    lowest = {"rows_per_sequence": 1.0, "tokens_per_round": 1.0, "weight_bits": 1e-9}
    for name in shared.OPEN:
        low = lowest.get(name, 0.0)
        bad = [(point, value) for point, value in tried.get(name, ()) if value is None or value < low - 1e-9]
        if bad:
            said = "blank" if bad[0][1] is None else f"{bad[0][1]:g}"
            yield f"{name} is {said} at {_at(bad[0][0])}; it is a number of at least {low:g}" + _more(bad)


def _too_many(tried: Tried) -> Iterator[str]:
    both = zip(tried["tokens_per_round"], tried["rows_per_sequence"], strict=True)
    over = [(p, t, r) for (p, t), (_, r) in both if t is not None and r is not None and t > r + 1e-9]
    if over:
        point, t, r = over[0]
        yield (f"tokens_per_round is {t:.6g} with {r:g} rows verified, at {_at(point)}: a row gives at most one token. "
               f"Limit the values, or tell the kit which make sense together (where=)" + _more(over))  # fmt: skip


def _lost(tried: Tried) -> Iterator[str]:
    for name in ("tokens_per_s", "speedup"):
        lost = [point for (point, value), (_, fits) in zip(tried[name], tried["fits"], strict=True) if fits and value is None]
        if lost:
            yield f"{name} is blank at {_at(lost[0])}" + _more(lost)


def limits(subject: Subject) -> Iterator[str]:
    """Where nothing is drafted the method is vanilla; where nothing is accepted a round gives one token."""
    yield from _drafts_nothing(subject)
    yield from _accepts_nothing(subject)


def _drafts_nothing(subject: Subject) -> Iterator[str]:
    parameters = subject.method.parameters
    off = {name: value for name, value in subject.off.items() if name in parameters}
    if not off or not all(kinds.parameter_facts(parameters[name]).may_be(value) for name, value in off.items()) or not subject.may(off):
        return
    _, frame = subject.run([off])
    wanted = {"tokens_per_round": 1.0, "rows_per_sequence": 1.0, "draft_ms": 0.0}
    if "quantization" not in stacks.slots(subject.method):
        wanted |= {"round_ms": frame["round_ms"][0], "speedup": 1.0}
    for name, value in wanted.items():
        if not _close(frame[name][1], value):
            yield f"with {_at(off)} it is vanilla decoding: {name} must be {value:g}, not {_show(frame[name][1])}"


def _accepts_nothing(subject: Subject) -> Iterator[str]:
    parameters = subject.method.parameters
    for name in CHANCES:
        if name not in parameters or not kinds.parameter_facts(parameters[name]).may_be(0):
            continue
        points = [{name: 0.0}, {name: 0.0, "gamma": 8.0}]
        points = [point for point in points if set(point) <= set(parameters) and subject.may(point)]
        _, frame = subject.run(points)
        tokens = zip(points, frame["tokens_per_round"].to_list()[1:], strict=True)
        bad = next(((point, value) for point, value in tokens if not _close(value, 1.0)), None)
        if bad is not None:
            yield f"nothing is accepted at {_at(bad[0])}: tokens_per_round must be 1, not {_show(bad[1])}"


def monotone(subject: Subject) -> Iterator[str]:
    """More acceptance never gives fewer tokens, whatever the other parameters."""
    for name in subject.rises_with:
        parameter = subject.method.parameters.get(name)
        if parameter is None:
            continue
        low, high = _span(parameter)[0], _span(parameter)[-1]
        steps = [low + (high - low) * i / (STEPS - 1) for i in range(STEPS)]
        lines = _lines(subject, name, steps)
        if lines:
            yield from _first_fall(subject, name, steps, lines)


def _lines(subject: Subject, name: str, steps: Sequence[float]) -> list[list[dict[str, float]]]:
    """The points tried, each drawn out into a line along one parameter; those that may not be are left out."""
    others = dict.fromkeys(tuple(sorted((k, v) for k, v in point.items() if k != name)) for point in subject.points)
    lines = [[{**dict(other), name: value} for value in steps] for other in others]
    return [line for line in lines if all(subject.may(point) for point in line)]


def _first_fall(subject: Subject, name: str, steps: Sequence[float], lines: Sequence[list[dict[str, float]]]) -> Iterator[str]:
    _, frame = subject.run([point for line in lines for point in line])
    tokens = frame["tokens_per_round"].to_list()[1:]
    for number, line in enumerate(lines):
        here = tokens[number * STEPS : (number + 1) * STEPS]
        falls = [i for i, (one, next) in enumerate(pairwise(here)) if one is not None and next is not None and next < one - 1e-9]
        if falls:
            fall, other = falls[0], {k: v for k, v in line[0].items() if k != name}
            yield (f"tokens_per_round falls from {here[fall]:.6g} to {here[fall + 1]:.6g} when {name} rises from "
                   f"{steps[fall]:.4g} to {steps[fall + 1]:.4g}" + (f" ({_at(other)})" if other else ""))  # fmt: skip
            return


def excel(subject: Subject) -> Iterator[str]:
    """An independent spreadsheet engine computes from the Excel text what polars computes (needs ironcalc)."""
    if importlib.util.find_spec("ironcalc") is None:
        return
    import ironcalc
    import openpyxl

    points = subject.points[:40]
    book, frame = subject.run(points)
    wanted = [name for name in (*subject.method.columns, *(n for n in book.fields if n.endswith("_derived"))) if name in book.fields]
    workbook = openpyxl.Workbook()
    sheet: Any = workbook.active
    part_of = _profiles(workbook, book)
    places: list[tuple[int, str, int]] = []
    for index, name in itertools.product(range(1, frame.height), wanted):
        node = book.fields[name].node
        if node is not None and not _reads_curve(node):
            places.append((len(places) + 1, name, index))
            _put(sheet, len(places), node, lambda read, index=index: frame[read][index] if read in frame.columns else book.constants[read],  # type: ignore[misc]
                 part_of)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "method.xlsx"
        workbook.save(path)
        model = ironcalc.load_from_xlsx(str(path), "en", "UTC", "en")
    model.evaluate()
    bad: dict[str, list[tuple[Any, Any, Values]]] = {}
    for place, name, index in places:
        got, value = model.get_cell_value(0, place, 1), frame[name][index]
        got = None if got == "" else got
        if not (_close(got, value) if isinstance(value, float) else got == value):
            bad.setdefault(name, []).append((got, value, points[index - 1]))
    for name, found in bad.items():
        got, value, point = found[0]
        yield f"{name} is {_show(got)} in a spreadsheet and {_show(value)} in polars at {_at(point)}" + _more(found)


def _profiles(workbook: Any, book: Book) -> Callable[[object, str], str]:
    """A sheet with the profiles; returns where a part of them stands."""
    sheet = workbook.create_sheet("Profiles")
    for profile in book.vectors.profiles.values():
        sheet.append([profile.name, *profile.lengths])
    last = max(len(book.vectors.profiles), 1)
    places = {"names": f"Profiles!$A$1:$A${last}"}
    return lambda _, part: places.get(part, f"Profiles!$B$1:$R${last}")


def _put(sheet: Any, row: int, node: Node, value_of: Callable[[str], Any], part_of: Callable[[object, str], str]) -> None:
    """A formula in the first cell of a row, what it reads in those behind."""
    from openpyxl.utils import get_column_letter

    cells: dict[str, str] = {}
    for column, read in enumerate(names(node), 2):
        value = value_of(read)
        sheet.cell(row, column, '=""' if value is None else value)
        cells[read] = f"${get_column_letter(column)}{row}"
    sheet.cell(row, 1, "=" + compile_excel(node, cells.__getitem__, part_of))


def _reads_curve(node: Node) -> bool:
    return any(isinstance(part, Call) and part.function == "curve" and isinstance(part.args[0], Text) for part in walk(node))


def simulated(subject: Subject) -> Iterator[str]:
    """The simulation that the author gives has the mean that the formula has, within five standard errors (needs numpy)."""
    if subject.simulation is None:
        return
    import numpy as np

    points = subject.points[:12] + subject.points[-4:]
    _, frame = subject.run(points)
    rng = np.random.default_rng(12345)
    bad = []
    for index, (point, tokens) in enumerate(zip(points, frame["tokens_per_round"].to_list()[1:], strict=True), 1):
        values = {**subject.defaults, **point, **_applied(subject, frame, index)}
        try:
            drawn = np.asarray(subject.simulation(values, rng, ROUNDS), dtype=float)
        except Exception as raised:  # the author's own code: whatever it raises is told
            yield f"the simulation ends in {type(raised).__name__}: {' '.join(str(raised).split())}, at {_at(point)}"
            return
        if drawn.ndim != 1 or not drawn.size:
            yield f"the simulation gives an array of shape {drawn.shape}: the tokens of each round are wanted"
            return
        mean, error = float(drawn.mean()), float(drawn.std()) / math.sqrt(drawn.size)
        if tokens is None or abs(mean - tokens) > 5 * error + 1e-9:
            bad.append(f"{mean:.4f} +- {error:.4f} where the formula says {_show(tokens)}, at {_at(point)}")
    if bad:
        yield f"the simulation gives {bad[0]}" + _more(bad)


def _applied(subject: Subject, frame: pl.DataFrame, index: int) -> dict[str, float]:
    """The values of the method's parameters in a row, derived ones as well."""
    numbers = [name for name, p in subject.method.parameters.items() if name in frame.columns and (p.kind == "flag" or kinds.is_number(p))]
    return {name: frame[name][index] for name in numbers if frame[name][index] is not None}


def _close(got: Any, wanted: float) -> bool:
    return isinstance(got, int | float) and not isinstance(got, bool) and abs(got - wanted) <= 1e-9 * max(1.0, abs(wanted))


def _show(value: Any) -> str:
    return "blank" if value is None else f"{value:.9g}" if isinstance(value, float) else str(value)


def _at(point: Values) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in point.items()) or "the defaults"


def _more(found: Sequence[Any]) -> str:
    return f" (and at {len(found) - 1} more points)" if len(found) > 1 else ""


PROPERTIES: dict[str, Callable[[Subject], Iterator[str]]] = {
    "description": described, "units": units, "ranges": ranges, "limits": limits, "monotone": monotone, "excel": excel,
    "simulation": simulated,
}  # fmt: skip
"""The properties by the name that a message carries; ``contract`` comes before them all."""


def bench(method: Method, plugins: Sequence[str] = ()) -> Host:
    """A host of the built-in plugins and ``plugins``, for one method to be put into."""
    return plugin_host.load(plugins, third_party=False)
