"""The house: every import goes from a room to one before it, no circle of files, and docs/architecture.md names every room."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import scenario

ROOT = Path(__file__).parents[2]
ORDER = ("common", "formulas", "model", "catalogs", "registry", "tables", "book", "engine", "output", "result", "workbooks", "questions",
         "evidence", "api", "ask", "testing", "cli")  # fmt: skip
"""A room imports only what stands before it, and itself."""
FOLDERS = {"core": "scenario", "plugins": "scenario.plugins", "exporters": "scenario.exporters", "scenarios": "scenario.scenarios"}
WRITER = "scenario.workbooks.form"
"""What the built-in workbook writer may see beside the top level of the package."""


def modules() -> dict[str, Path]:
    """Every module of the product under its dotted name."""
    found = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = (package, *path.relative_to(ROOT / folder).with_suffix("").parts)
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


MODULES = modules()


def imports(path: Path) -> Iterator[str]:
    """The modules of the product that a file imports: at its top, in functions and under TYPE_CHECKING alike."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name.split(".")[0] == "scenario")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "scenario":
            for name in node.names:
                below = f"{node.module}.{name.name}"
                yield below if below in MODULES else str(node.module)


def room(module: str) -> str:
    """The room that a module of ``core/`` stands in."""
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize("module", [name for name, path in MODULES.items() if path.is_relative_to(ROOT / "core")])
def test_a_room_imports_only_what_stands_before_it(module: str) -> None:
    """Nothing in core/ knows a later room, a plugin or an exporter."""
    place = ORDER.index(room(module)) if room(module) in ORDER else len(ORDER)
    for other in imports(MODULES[module]):
        assert other == "scenario" or (room(other) in ORDER and ORDER.index(room(other)) <= place), f"{module} imports {other}"


@pytest.mark.parametrize("module", [name for name, path in MODULES.items() if not path.is_relative_to(ROOT / "core")])
def test_plugins_and_exporters_know_the_top_level_only(module: str) -> None:
    """Built-in plugins are written as a stranger would write them; the workbook's writer shares its form with the reader."""
    own = {"scenario.plugins", "scenario.exporters"}
    for other in imports(MODULES[module]):
        inside = any(other == name or other.startswith(f"{name}.") for name in own)
        assert other == "scenario" or inside or (module.startswith("scenario.exporters.xlsx") and other.startswith(WRITER)), other


def test_no_files_import_each_other_in_a_circle() -> None:
    """Every file can be understood after those that it imports."""
    graph = {name: {other for other in imports(path) if other in MODULES and other not in (name, "scenario")} for name, path in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


def test_no_two_classes_have_one_name() -> None:
    """A class's name says which class it is, wherever it is read."""
    found: dict[str, list[str]] = {}
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(name)
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_every_package_is_listed_for_the_wheel() -> None:
    """A folder with modules is a package that pyproject.toml names."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = set(re.findall(r'^ {4}"(scenario[\w.]*)",$', text, re.MULTILINE))
    assert listed == {name for name, path in MODULES.items() if path.name == "__init__.py"}


def test_the_architecture_page_names_every_room_and_file_that_exists() -> None:
    """docs/architecture.md lists the rooms in the order of imports, and every path it names is there."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = re.findall(r"^\| `core/(\w+)/?(?:\.py)?` \|", page, re.MULTILINE)
    assert rooms == [name for name in ORDER if (ROOT / "core" / name).is_dir() or (ROOT / "core" / f"{name}.py").is_file()]
    for path in re.findall(r"`((?:core|plugins|exporters|scenarios|tests|docs|benchmarks|examples)/[\w./-]*)`", page):
        assert (ROOT / path).exists(), path


def test_the_version_is_written_once_for_each_reader() -> None:
    """The package and its metadata say the same version, and the change log has an entry for it."""
    version = re.search(r'^version = "([\d.]+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert version
    assert version[1] == scenario.__version__
    assert f"## [{version[1]}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
