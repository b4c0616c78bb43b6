"""The cases under tests/cases, every one on every back end: that is what a formula means."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import formula_backends as backends
import pytest
from formula_backends import CASES, Case, Sheets, by_polars, by_python, load_cases, same, wrong
from spreadsheet import needs_soffice

from scenario.common.errors import FormulaError
from scenario.formulas.expr import parse
from scenario.formulas.to_excel import compile_excel
from scenario.formulas.to_text import compile_text

VALUES = load_cases(errors=False)
ERRORS = load_cases(errors=True)


@pytest.fixture(scope="module")
def sheets() -> tuple[Sheets, dict[int, tuple[Case, str]]]:
    """All cases in one workbook, each with its blanks computed and once more with them left out."""
    made, rows = Sheets(), {}
    for case in VALUES:
        rows[made.add(case.tree(), case.values)] = case, f"{case}"
        if None in case.values.values():
            rows[made.add(case.tree(), case.values, missing=True)] = case, f"{case} (cells left empty)"
    return made, rows


@pytest.mark.parametrize("case", VALUES, ids=str)
def test_python_gives_the_expected_value(case: Case) -> None:
    """The reference gives the value that the case states."""
    assert same(by_python(case.tree(), case.values), case.value)


@pytest.mark.parametrize("case", VALUES, ids=str)
def test_polars_gives_the_expected_value(case: Case) -> None:
    """Every row of a frame, by each engine of polars and with the names as constants too, has the value stated."""
    got = by_polars(case.tree(), case.values, case.facts)
    assert len(got) == 3 * 2 * 2
    assert not wrong((case, value, case.value) for value in got)


@pytest.mark.parametrize("case", VALUES, ids=str)
def test_text_parses_to_the_same_tree(case: Case) -> None:
    """The canonical text of a formula is the formula."""
    tree = parse(case.formula)
    assert parse(compile_text(tree)) == tree


@pytest.mark.parametrize("case", [case for case in VALUES if case.excel], ids=str)
def test_excel_text(case: Case) -> None:
    """The cell text is the one that the case spells out."""
    assert compile_excel(case.tree(), lambda name: name, backends.ranges) == case.excel


def test_ironcalc_gives_the_expected_values(sheets: tuple[Sheets, dict[int, tuple[Case, str]]], tmp_path: Path) -> None:
    """An independent spreadsheet engine computes what the cases state, from the cell texts.

    Not where a result is past the largest number: ironcalc goes on with infinity there, where Excel has an error.
    """
    made, rows = sheets
    got = made.by_ironcalc(tmp_path)
    assert not wrong((what, got[row], case.value) for row, (case, what) in rows.items() if not case.overflow)


@needs_soffice
def test_libreoffice_gives_the_expected_values(sheets: tuple[Sheets, dict[int, tuple[Case, str]]], tmp_path: Path) -> None:
    """LibreOffice, made to calculate everything anew, computes what the cases state."""
    made, rows = sheets
    got = made.by_libreoffice(tmp_path)
    assert not wrong((what, got[row], case.value) for row, (case, what) in rows.items())


@pytest.mark.parametrize("case", ERRORS, ids=str)
def test_error(case: Case) -> None:
    """What cannot be used is refused at its place, saying what is wrong and what was meant."""
    with pytest.raises(FormulaError) as raised:
        case.tree()
    text = str(raised.value)
    first: Any = raised.value.problems[0]
    assert case.error.lower() in text.lower()
    assert case.hint in first.hint
    if case.line:
        assert first.line == case.line
    if case.column:
        assert first.column == case.column


def test_every_case_says_how_it_ends() -> None:
    """No case is without a value or an error, so that a slip in a file cannot pass as a blank."""
    import yaml

    for path in sorted(CASES.glob("*.yaml")):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8"))["cases"]:
            assert ("value" in entry) != ("error" in entry), (path.name, entry)
            assert set(entry) <= {"formula", "with", "value", "excel", "error", "line", "column", "hint", "overflow"}
