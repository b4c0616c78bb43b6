"""``scenario new-plugin``: an installable package for one method, with a table to run and a test that passes."""

from __future__ import annotations

from pathlib import Path
from string import Template

from scenario import __version__
from scenario.common.errors import OutputError, PluginError, Problem, TableError
from scenario.model.spec import Method
from scenario.registry.contract import check_item
from scenario.registry.loaded import Host

MODULE = '''"""$title for scenario: what is drafted, what that costs, and how many tokens come out."""

from scenario import Column, Method, Parameter, hookimpl

METHOD = Method(
    name="$name",
    title="$title",
    doc="A sample: a chain of gamma drafts. Say here in one or two lines how yours works.",
    source="Name the paper or measurement that the numbers below come from.",
    parameters={
        "alpha": Parameter(0.7, 0, 1, doc="Chance that a draft token is accepted, given those before it were."),
        "gamma": Parameter(4, 0, 16, "tokens", "Draft tokens per round.", kind="integer"),
        "share": Parameter(0.1, 0, 1, doc="Time of one draft token over that of one step of the target."),
    },
    columns={
        "rows_per_sequence": Column("gamma + 1", "rows", "The drafts and the token before them."),
        "tokens_per_round": Column("geometric(alpha, gamma)", "tokens", "The drafts accepted, and one more."),
        "draft_ms": Column("gamma * share * baseline_ms", "ms", "One draft after the other."),
    },
)


@hookimpl
def scenario_methods():
    yield METHOD
'''

TEST = '''"""$title keeps the contract of a method, and its rounds are as long as when they are played."""

from scenario.testing import check_method, simulate_chain
from $module import METHOD


def chain(values, rng, rounds):
    return simulate_chain([values["alpha"]] * int(values["gamma"]), rounds, rng)


def test_method():
    """Names, units, ranges, limits, Excel and the simulation."""
    check_method(METHOD, simulation=chain)
'''

PROJECT = """[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "$dist"
version = "0.1.0"
description = "$title for scenario"
requires-python = ">=3.11"
dependencies = ["scenario-engine>=$version"]

[project.optional-dependencies]
test = ["pytest", "ironcalc", "scenario-engine[simulate]"]

[project.entry-points.scenario]
"$name" = "$module"

[tool.setuptools]
py-modules = ["$module"]

[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["."]
"""

README = """# $dist

$title as a method of `scenario`.

    pip install .            # from this folder; scenario finds it by its entry point
    scenario plugins         # lists it
    scenario run table.yaml -o costs.xlsx

While writing it, nothing needs installing: `scenario run table.yaml -p $module.py`.

`pip install ".[test]"` and `python -m pytest` check the method against its contract and a simulation.
"""

TABLE = """version: 1
title: $title against vanilla decoding

grid:
  model: [llama-3.1-8b]
  gpu: [h100-sxm]
  batch: [1, 8, 64]
  context: [2048]
  method: [vanilla, $name]

summary:
  columns: method
  rows: [tokens_per_round, round_ms, tpot_ms, tokens_per_s, speedup, usd_per_million_tokens, status]
"""

IGNORE = "__pycache__/\n*.egg-info/\nbuild/\ndist/\n.pytest_cache/\n*.xlsx\n"


def files(name: str) -> dict[str, str]:
    """The package's files by their path inside it."""
    module = "scenario_" + name.replace("-", "_").replace(".", "_")
    title = name.replace("-", " ").replace("_", " ").capitalize()
    words = {"name": name, "module": module, "dist": f"scenario-{name}", "title": title, "version": __version__.rpartition(".")[0]}
    texts = {
        "pyproject.toml": PROJECT, f"{module}.py": MODULE, f"tests/test_{module.removeprefix('scenario_')}.py": TEST,
        "table.yaml": TABLE, "README.md": README, ".gitignore": IGNORE,
    }  # fmt: skip
    return {path: Template(text).substitute(words) for path, text in texts.items()}


def write(name: str, parent: Path, host: Host) -> Path:
    """Write the package under ``parent``; returns its folder.

    Raises :class:`TableError` for a name that cannot be a method's or is one already, :class:`OutputError` where the
    folder is there or cannot be written. Nothing that exists is touched.
    """
    try:
        check_item(Method(name), host)
    except PluginError as error:
        raise TableError(error.problems) from None
    if name in host.methods:
        raise TableError(f"there is a method '{name}' already ({host.owners[Method, name].origin})", "choose another name")
    folder = parent / f"scenario-{name}"
    if folder.exists():
        raise OutputError(Problem("this is there already", "choose another name or --dir", file=str(folder)))
    try:
        for path, text in files(name).items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(Problem(f"cannot be written: {error.strerror or error}", file=str(folder))) from None
    return folder
