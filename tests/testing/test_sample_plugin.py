"""Plugins as packages: the scaffold works as it comes, and the sample package installs, runs and survives broken neighbours."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import openpyxl
import pytest
from click.testing import CliRunner

from scenario.cli.commands import main
from scenario.registry import host
from scenario.testing import scaffold

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "examples" / "scenario-layerskip"


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample package, installed by pip from its own directory into a folder, beside a package that cannot be imported."""
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"
    shutil.copytree(SAMPLE, source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build", ".pytest_cache"))
    site = folder / "site"
    done = run(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", str(site), str(source))
    assert done.returncode == 0, done.stderr
    info = site / "broken-0.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 0.3\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[scenario]\nbroken = module_that_is_not_there\n", encoding="utf-8")
    return site


def scenario(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "scenario", *arguments, PYTHONPATH=str(site), COLUMNS="200")


def test_the_installed_sample_is_listed_with_its_version(installed: Path) -> None:
    """The entry point is found; the broken neighbour is listed as failed, with its distribution and the reason."""
    said = scenario(installed, "plugins").stdout
    assert "layerskip (scenario-layerskip 0.1.0): loaded" in said
    assert "method layerskip" in said
    assert "broken (broken 0.3): failed: ModuleNotFoundError: No module named 'module_that_is_not_there'" in said


def test_the_installed_sample_runs_its_table(installed: Path, tmp_path: Path) -> None:
    """Without -p the method is there: the table runs, the workbook holds it live, and the broken neighbour costs one line."""
    target = tmp_path / "costs.xlsx"
    done = scenario(installed, "run", str(SAMPLE / "table.yaml"), "-o", str(target))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("'broken'") == 1
    cells = [cell for row in openpyxl.load_workbook(target)["Scenarios"].iter_rows(values_only=True) for cell in row]
    assert "layerskip" in cells
    assert any(isinstance(cell, str) and cell.startswith("=") and "layerskip_exit_layer" in cell for cell in cells)


BROKEN = {
    "absent": "import module_that_is_not_there\n",
    "syntax": "def (:\n",
    "leaves": "import sys\nsys.exit(3)\n",
    "hookless": "x = 1\n",
    "misnamed": "from scenario import hookimpl\n@hookimpl\ndef scenario_method():\n    return []\n",
    "raises": "from scenario import hookimpl\n@hookimpl\ndef scenario_methods():\n    raise RuntimeError('no')\n",
    "clashes": "from scenario import Method, hookimpl\n@hookimpl\ndef scenario_methods():\n    yield Method('eagle')\n",
    "formula": "from scenario import *\nfrom scenario import Column, Method, hookimpl\n@hookimpl\ndef scenario_methods():\n"
               "    yield Method('bad', columns={'draft_ms': Column('1 +', 'ms')})\n",
    "version": "from scenario import Method, hookimpl\n@hookimpl\ndef scenario_methods():\n    yield Method('old', api=99)\n",
}  # fmt: skip


def test_every_sort_of_broken_plugin_at_once(tmp_path: Path) -> None:
    """Nine broken distributions installed together: a run that needs none of them ends well and names each in one line."""
    for name, text in BROKEN.items():
        (tmp_path / f"broken_{name}.py").write_text(text, encoding="utf-8")
        info = tmp_path / f"broken_{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: broken-{name}\nVersion: 1.0\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[scenario]\n{name} = broken_{name}\n", encoding="utf-8")
    done = scenario(tmp_path, "run", "article-mtp", "-o", "-")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("id,model,")
    for name in BROKEN:
        assert len([line for line in done.stderr.splitlines() if line.startswith(f"plugin '{name}' (broken-{name} 1.0) is left out: ")]) == 1
    assert len(done.stderr.splitlines()) == len(BROKEN)


def test_the_installed_sample_stacks(installed: Path, tmp_path: Path) -> None:
    """int4+layerskip is a method as well: alpha .8 and gamma 4 give the article's 3.3616 tokens a round."""
    table = tmp_path / "t.yaml"
    table.write_text("version: 1\nrows:\n  - {id: one, model: llama-3.1-8b, gpu: h100-sxm, batch: 1, context: 0, "
                     "method: int4+layerskip, alpha: 0.8, gamma: 4}\n", encoding="utf-8")  # fmt: skip
    assert "= 3.3616 tokens" in scenario(installed, "explain", str(table), "tokens_per_round", "--depth", "0").stdout


def test_a_draft_of_the_targets_layers_is_as_quantised_as_the_target(installed: Path, tmp_path: Path) -> None:
    """A quarter of the layers drafting 6 tokens makes a round 1 + 6 / 4 plain steps of the row's weights, in a stack as well.

    So the speedup over the stored weights is that of int4 alone, times (1 - .7^7) / (1 - .7) tokens over 2.5 steps: 4.61.
    """
    common = "model: llama-3-8b, gpu: h100-sxm, batch: 1, context: 0"
    rows = "".join(f"  - {{id: {name}, {common}, method: {name}}}\n" for name in ("int4", "layerskip", "int4+layerskip"))
    table, target = tmp_path / "t.yaml", tmp_path / "t.csv"
    table.write_text(f"version: 1\nrows:\n{rows}", encoding="utf-8")
    done = scenario(installed, "run", str(table), "-q", "-o", str(target))
    assert done.returncode == 0, done.stderr
    with target.open(encoding="utf-8", newline="") as stream:
        speedup = {row["id"]: float(row["speedup"]) for row in csv.DictReader(stream)}
    alone = (1 - 0.7**7) / (1 - 0.7) / 2.5
    assert speedup["layerskip"] == pytest.approx(alone, rel=1e-9)
    assert speedup["int4+layerskip"] == pytest.approx(speedup["int4"] * alone, rel=1e-9)
    assert speedup["int4+layerskip"] == pytest.approx(4.61, abs=0.005)


def test_a_run_that_needs_a_plugin_that_is_off_says_so(installed: Path) -> None:
    """Switched off, the method is unknown, and the message names the switch and the plugin that failed."""
    done = scenario(installed, "run", str(SAMPLE / "table.yaml"), "-p", "no:layerskip")
    assert done.returncode == 2
    assert "unknown method 'layerskip'" in done.stderr
    assert "switched off: layerskip" in done.stderr
    assert "plugin 'broken' (broken 0.3) failed to load" in done.stderr


def test_the_scaffold_is_the_sample() -> None:
    """The sample package has the files that the scaffold writes, and all but its formulas are as written."""
    made = scaffold.files("layerskip")
    kept = [path for path in SAMPLE.rglob("*") if path.is_file() and not {"__pycache__", ".pytest_cache"} & set(path.parts)]
    there = {path.relative_to(SAMPLE).as_posix() for path in kept}
    assert there == set(made)
    for name in there - {"scenario_layerskip.py"}:
        assert (SAMPLE / name).read_text(encoding="utf-8") == made[name], name


@pytest.mark.parametrize("name", ["two-words", "v2.draft"])
def test_a_new_plugin_passes_its_own_test(name: str, tmp_path: Path) -> None:
    """What new-plugin writes runs its table and passes its test as it comes, whatever signs the name has."""
    done = CliRunner().invoke(main, ["new-plugin", name, "--dir", str(tmp_path)])
    assert done.exit_code == 0, done.output
    folder = tmp_path / f"scenario-{name}"
    module = next(folder.glob("scenario_*.py"))
    ran = CliRunner().invoke(main, ["run", str(folder / "table.yaml"), "-p", str(module), "-o", "-"])
    assert ran.exit_code == 0, ran.output
    assert f",{name}," in ran.output
    tested = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder))
    assert "1 passed" in tested.stdout, tested.stdout
    style = run(sys.executable, "-m", "ruff", "check", "--isolated", str(folder))
    assert style.returncode == 0, style.stdout


@pytest.mark.parametrize(
    ("name", "said", "code"),
    [("eagle", "there is a method 'eagle' already (built in)", 2), ("Big Name", "'Big Name' is not a good name for a method", 2),
     ("taken", "this is there already", 1), ("a+b", "not a good name", 2)],
)  # fmt: skip
def test_a_plugin_that_cannot_be_started_is_refused(name: str, said: str, code: int, tmp_path: Path) -> None:
    """A name that is taken or cannot be a method's is refused, and a folder that is there is not touched."""
    (tmp_path / "scenario-taken").mkdir()
    done = CliRunner().invoke(main, ["new-plugin", name, "--dir", str(tmp_path)])
    assert done.exit_code == code
    assert said in done.output
    assert list((tmp_path / "scenario-taken").iterdir()) == []


def test_the_sample_conforms() -> None:
    """The sample's method passes the kit from its file."""
    from scenario.testing import check_method

    check_method(host.load([str(SAMPLE / "scenario_layerskip.py")], third_party=False).methods["layerskip"])
