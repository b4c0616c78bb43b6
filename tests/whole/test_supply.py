"""Supply: what development installs is pinned by version and hash, its licences are listed, wheels come out the same."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PINNED = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")


def plain(name: str) -> str:
    """A package's name as indexes compare them (PEP 503)."""
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!~\[; ]", name)[0]).lower()


def test_every_package_is_pinned_by_version_and_hash() -> None:
    """Each requirement has one exact version and hashes to check it by; no address of an index stands in the file."""
    entries = re.split(r"\n(?=\S)", PINNED.strip())
    for entry in entries:
        assert re.match(r"[a-z0-9.-]+==[^ ]+", entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry
    assert not re.search(r"https?:|--(extra-)?index|--find-links", PINNED)


def test_all_that_the_project_names_is_pinned() -> None:
    """Whatever pyproject.toml asks for, to run, test and measure, is in the file."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [need for extra in ("test", "bench", "simulate", "calibrate") for need in project["optional-dependencies"][extra]]
    assert {plain(need) for need in [*project["dependencies"], *extras]} <= set(re.findall(r"^([a-z0-9.-]+)==", PINNED, re.MULTILINE))


def test_licences_are_listed() -> None:
    """Each pinned package stands in docs/licences.md with its version and a licence that a user of MIT code may rely on."""
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    for name, version in re.findall(r"^([a-z0-9.-]+)==([^ \\]+)", PINNED, re.MULTILINE):
        row = re.search(rf"^\| {re.escape(name)} \| (.*) \| (.+) \|$", page, re.MULTILINE)
        assert row, name
        assert version in row[1].split(", "), name
        assert re.fullmatch(r"((MIT|BSD-[23]-Clause|0BSD|Apache-2\.0|MPL-2\.0|PSF-2\.0|Zlib|CC0-1\.0)( (AND|OR) )?)+", row[2]), (name, row[2])


@pytest.mark.slow
def test_a_wheel_is_built_the_same_twice(tmp_path: Path) -> None:
    """Two builds of one tree at other places and times are one file, byte for byte, once SOURCE_DATE_EPOCH is set."""
    made = []
    for place in ("one", "another/below"):
        copy = tmp_path / place / "project"
        ignored = shutil.ignore_patterns(".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis")
        shutil.copytree(ROOT, copy, ignore=ignored)
        for path in copy.rglob("*.py"):
            os.utime(path, (1_500_000_000 + len(made) * 1000,) * 2)
        command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(copy / "dist"), str(copy)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
        assert done.returncode == 0, done.stderr[-2000:]
        made.append(next((copy / "dist").glob("*.whl")).read_bytes())
    assert made[0] == made[1]
