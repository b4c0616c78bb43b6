"""What the formula tests share: cases from files, and one way to ask each back end for a value."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ironcalc
import openpyxl
import polars as pl
import yaml
from openpyxl.utils import get_column_letter
from polars._typing import EngineType

from scenario.formulas import facts
from scenario.formulas.expr import Node, names, parse
from scenario.formulas.facts import Facts
from scenario.formulas.to_excel import compile_excel
from scenario.formulas.to_polars import compile_polars
from scenario.formulas.to_python import evaluate
from scenario.formulas.vectors import POSITIONS, Curve, Profile, Tree, Vectors

TOLERANCE = 1e-9
CASES = Path(__file__).parent / "cases"
ENGINES: tuple[EngineType, ...] = ("in-memory", "streaming")
DTYPES = {"number": pl.Float64, "text": pl.String, "flag": pl.Boolean, "none": pl.Float64}

# Halves, so that every expected length is exact: E of "chat" is 1, 1.5, 1.75, 1.875, ...; of "code" 1, 2, 2.5, 2.75, ...
VECTORS = Vectors(
    profiles={"chat": Profile("chat", (0.5, 0.25)), "code": Profile("code", (1.0, 0.5, 0.25))},
    curves={"step": Curve("step", ((1.0, 10.0), (2.0, 12.0), (4.0, 20.0))), "flat": Curve("flat", ((0.0, 3.0), (8.0, 3.0)))},
    trees={"chat": Tree("chat", ((-1, 0, 1), (-1, 1, 1), (0, 0, 2)), ((0.5, 0.25), (0.5,)))},
)
TREES = 60
"""The column from which the trees stand: names, then tokens and rows by depth."""


@dataclass(frozen=True)
class Case:
    """One line of a case file: a formula, what its names hold, and what must come out."""

    file: str
    formula: str
    values: dict[str, Any]
    facts: dict[str, Facts]
    value: Any = None
    excel: str = ""
    error: str = ""
    line: int = 0
    column: int = 0
    hint: str = ""
    overflow: bool = False

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self.values.items())
        return f"{self.file}: {self.formula[:60]}" + (f" [{given}]" if given else "")

    def tree(self) -> Node:
        return facts.check(parse(self.formula), self.facts, self.formula)


def declared(entry: Mapping[str, Any]) -> Facts:
    """Facts from a case file's words: type, low, high, above, below (open ends), blank, whole."""
    low, high = entry.get("above", entry.get("low", -facts.HUGE)), entry.get("below", entry.get("high", facts.HUGE))
    return Facts(entry.get("type", "number"), float(low), float(high), "above" in entry, "below" in entry,
                 entry.get("blank", False), entry.get("whole", False))  # fmt: skip


def load_cases(*, errors: bool) -> list[Case]:
    """All cases that end in an error, or all that end in a value."""
    found = []
    for path in sorted(CASES.glob("*.yaml")):
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        env = {name: declared(entry) for name, entry in document.get("names", {}).items()}
        for entry in document["cases"]:
            entry = dict(entry)
            given = entry.pop("with", {})
            values = {key: float(value) if type(value) in (int, float) else value for key, value in given.items()}
            value = entry.pop("value", None)
            value = float(value) if type(value) in (int, float) else value
            case = Case(path.stem, values=values, facts=env, value=value, **entry)
            if bool(case.error) == errors:
                found.append(case)
    return found


def same(got: Any, wanted: Any, tolerance: float = TOLERANCE) -> bool:
    """Whether two values are alike: blanks equal, numbers within the tolerance, texts and conditions exact."""
    if wanted is None or got is None:
        return got is None and wanted is None
    if isinstance(wanted, float) and isinstance(got, int | float) and not isinstance(got, bool):
        return bool(abs(got - wanted) <= tolerance * max(1.0, abs(wanted)))
    return type(got) is type(wanted) and got == wanted


def by_python(tree: Node, values: Mapping[str, Any]) -> Any:
    return evaluate(tree, values, VECTORS)


def by_polars(tree: Node, values: Mapping[str, Any], env: Mapping[str, Facts]) -> list[Any]:
    """The values of three equal rows, by each engine, then of the same with every name a constant."""
    schema = {name: DTYPES[env[name].type] for name in names(tree)}
    frame = pl.DataFrame({name: [values[name]] * 3 for name in schema} or {"row": [1.0] * 3}, schema_overrides=schema)
    constants = {name: values[name] for name in schema}
    expressions = compile_polars(tree, VECTORS), compile_polars(tree, VECTORS, constants)
    plans = [frame.lazy().with_columns(expression.alias("result")) for expression in expressions]
    # As catalogs and rows are computed: by either of polars' engines.
    return [value for plan in plans for engine in ENGINES for value in plan.collect(engine=engine)["result"].to_list()]


def ranges(curve: str, part: str) -> str:
    """Where :func:`write_vectors` puts profiles, curves and trees."""
    if curve == "trees":
        first = TREES + {"names": 0, "tokens": 1, "rows": 2 + POSITIONS}[part]
        last_column = first + (0 if part == "names" else POSITIONS)
        return f"Vectors!${get_column_letter(first)}$1:${get_column_letter(last_column)}${len(VECTORS.trees)}"
    if curve == "profiles":
        last = len(VECTORS.profiles)
        return f"Vectors!$A$1:$A${last}" if part == "names" else f"Vectors!$B$1:${get_column_letter(POSITIONS + 2)}${last}"
    column = get_column_letter(30 + 3 * list(VECTORS.curves).index(curve) + ["x", "y", "slope"].index(part))
    return f"Vectors!${column}$1:${column}${len(VECTORS.curves[curve].points)}"


def write_vectors(sheet: Any) -> None:
    for row, profile in enumerate(VECTORS.profiles.values(), 1):
        sheet.cell(row, 1, profile.name)
        for n, length in enumerate(profile.lengths):
            sheet.cell(row, 2 + n, length)
    for row, tree in enumerate(VECTORS.trees.values(), 1):
        for column, value in enumerate((tree.name, *tree.tokens, *tree.rows), TREES):
            sheet.cell(row, column, value)
    for index, curve in enumerate(VECTORS.curves.values()):
        for row, ((x, y), slope) in enumerate(zip(curve.points, curve.slopes, strict=True), 1):
            for part, value in enumerate((x, y, slope)):
                sheet.cell(row, 30 + 3 * index + part, value)


class Sheets:
    """A workbook with one formula a row; column A holds the result, the columns after it the names' values.

    A blank is a cell with the formula ``=""`` (what a computed blank is), or no cell at all (an input left out).
    """

    def __init__(self) -> None:
        self.workbook = openpyxl.Workbook()
        self.sheet = self.workbook.active
        assert self.sheet is not None
        write_vectors(self.workbook.create_sheet("Vectors"))
        self.row = 0

    def add(self, tree: Node, values: Mapping[str, Any], *, missing: bool = False) -> int:
        """The row of a new formula; ``missing``: blank names are left out rather than computed."""
        self.row += 1
        row, sheet = self.row, self.sheet
        assert sheet is not None
        cells = {}
        for column, (name, value) in enumerate(values.items(), 2):
            cells[name] = f"${get_column_letter(column)}{row}"
            if value is not None or not missing:
                sheet.cell(row, column, '=""' if value is None else value)
        sheet.cell(row, 1, "=" + compile_excel(tree, cells.__getitem__, ranges, set(values) if missing else ()))
        return row

    def save(self, folder: Path) -> Path:
        path = folder / "formulas.xlsx"
        self.workbook.save(path)
        return path

    def by_ironcalc(self, folder: Path) -> dict[int, Any]:
        model = ironcalc.load_from_xlsx(str(self.save(folder)), "en", "UTC", "en")
        model.evaluate()
        return {row: _cell(model.get_cell_value(0, row, 1)) for row in range(1, self.row + 1)}

    def by_libreoffice(self, folder: Path) -> dict[int, Any]:
        from spreadsheet import recalculate

        sheet = openpyxl.load_workbook(recalculate(self.save(folder), folder), data_only=True).worksheets[0]
        return {row: _cell(sheet.cell(row, 1).value) for row in range(1, self.row + 1)}


def _cell(value: Any) -> Any:
    if value == "":
        return None
    return float(value) if type(value) in (int, float) else value


def wrong(found: Iterable[tuple[Any, Any, Any]]) -> list[str]:
    """What disagrees, as readable lines; ``found`` holds (what, got, wanted)."""
    lines = []
    for what, got, wanted in found:
        ok = False
        with contextlib.suppress(TypeError):
            ok = same(got, wanted)
        if not ok:
            lines.append(f"{what}: got {got!r}, wanted {wanted!r}")
    return lines
