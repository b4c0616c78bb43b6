"""What is shipped: a wheel and an sdist that hold everything, and installs that give a working command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = {"core": "scenario", "plugins": "scenario/plugins", "exporters": "scenario/exporters", "scenarios": "scenario/scenarios"}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean copy of what belongs to the project, as a fresh clone has it."""
    copy = tmp_path_factory.mktemp("clone") / "project"
    ignored = shutil.ignore_patterns(".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis", "artefacts")
    shutil.copytree(ROOT, copy, ignore=ignored)
    return copy


@pytest.fixture(scope="module")
def built(sources: Path) -> Path:
    """The folder with the wheel and the sdist."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--sdist", "--outdir", str(sources / "dist"), str(sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return sources / "dist"


def shipped() -> set[str]:
    """Every module and data file of the source folders, under its name in the package."""
    files = set()
    for folder, package in FOLDERS.items():
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".yaml") or path.name == "py.typed" or (path.parent.name == "page" and path.is_file()):
                files.add(f"{package}/{path.relative_to(ROOT / folder).as_posix()}")
    return files


def environment(folder: Path) -> Path:
    """A fresh virtual environment that sees this one's dependencies, but not this one's `scenario`."""
    venv.create(folder, with_pip=False, symlinks=True)
    site = next((folder / "lib").glob("python*")) / "site-packages"
    # One link each, so that an installed `scenario` beside them is not found in place of the one under test.
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(("scenario", "__editable__", "__pycache__")) and not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def install(python: Path, *what: str) -> None:
    """Install into that environment with this one's pip."""
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-build-isolation",
               "--disable-pip-version-check", "--ignore-installed", *what]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def works(python: Path, folder: Path) -> None:
    """The command runs the main job, and the package imports from that environment."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    where = subprocess.run([str(python), "-c", "import scenario; print(scenario.__file__)"], capture_output=True, text=True, cwd=folder, env=clean,
                           check=True)  # fmt: skip
    assert sysconfig.get_path("purelib") not in where.stdout
    command = [str(python.parent / "scenario"), "run", "starter", "-q", "-o", "costs.xlsx"]
    subprocess.run(command, cwd=folder, env=clean, check=True)
    assert zipfile.is_zipfile(folder / "costs.xlsx")


def test_the_wheel_holds_every_module_and_data_file_and_nothing_else(built: Path) -> None:
    """The wheel's contents are the four source folders under their package names, and its metadata."""
    (wheel,) = built.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == shipped()


def test_the_sdist_holds_what_it_needs_to_be_built(built: Path) -> None:
    """The sdist has every source file, the README and the licence."""
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.split("/", 1)[1] for name in opened.getnames() if "/" in name}
    for folder in FOLDERS:
        assert {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*.py")} <= names
    assert {"README.md", "LICENSE", "pyproject.toml", "scenarios/models.yaml"} <= names


def test_the_wheel_gives_a_working_command(built: Path, tmp_path: Path) -> None:
    """A wheel installed into a fresh environment runs the main job."""
    python = environment(tmp_path / "env")
    install(python, str(next(built.glob("*.whl"))))
    works(python, tmp_path)


def test_the_sdist_gives_a_working_command(built: Path, tmp_path: Path) -> None:
    """An sdist installed into a fresh environment runs the main job."""
    python = environment(tmp_path / "env")
    install(python, str(next(built.glob("*.tar.gz"))))
    works(python, tmp_path)


def test_a_plain_install_gives_a_working_command(sources: Path, tmp_path: Path) -> None:
    """`pip install .` in a clone runs the main job."""
    python = environment(tmp_path / "env")
    install(python, str(sources))
    works(python, tmp_path)


def test_an_editable_install_gives_a_working_command(sources: Path, tmp_path: Path) -> None:
    """`pip install -e .` in a clone runs the main job."""
    python = environment(tmp_path / "env")
    install(python, "-e", str(sources))
    works(python, tmp_path)
