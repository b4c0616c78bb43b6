"""What is public: the names at the top of the package, each with a meaning, and nothing a plugin needs below."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import scenario

ROW = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "vanilla"}


@pytest.mark.parametrize("name", scenario.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    """What __all__ lists can be had and says what it is."""
    value = getattr(scenario, name)
    assert name in dir(scenario)
    assert name == "UNLIMITED" or value.__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    """Lazy loading does not swallow misspelt names."""
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        _ = scenario.rum


def test_importing_the_package_loads_nothing_heavy() -> None:
    """import scenario alone costs next to nothing."""
    code = "import sys, scenario; sys.exit(' '.join({'polars', 'openpyxl', 'yaml', 'rich', 'pluggy', 'click'} & set(sys.modules)) or None)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).stderr == b""


def test_errors_survive_pickling() -> None:
    """A problem found in another process arrives with all its parts."""
    with pytest.raises(scenario.TableError) as caught:
        scenario.check({"version": 1, "rows": [{**ROW, "batch": 0}]})
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is scenario.TableError
    assert copy.problems == caught.value.problems
    assert str(copy) == str(caught.value)


def test_run_gives_a_frame_and_writes_files(tmp_path: object) -> None:
    """The three lines of the package's own description work: run, frame, to_*."""
    from pathlib import Path

    result = scenario.run({"version": 1, "rows": [ROW]})
    assert result.frame.height == 1
    assert result.to_csv(Path(str(tmp_path)) / "x.csv").read_bytes().startswith(b"id,")
    assert set(result.units) == set(result.frame.columns)
