"""Signals: one line and the usual exit code from the first line of the entry point on, and nothing left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

# Sends the signal when a module is first looked for: the moment is a step of the program, not a time.
AT_IMPORT = """
import os, signal, sys
class Kill:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
sys.meta_path.insert(0, Kill())
sys.argv = ["scenario", "run", "starter", "-o", "out.csv"]
from scenario.cli import main
main()
"""


@pytest.mark.parametrize("module", ["scenario.cli.commands", "click", "yaml", "polars", "pluggy", "scenario.engine.plan", "scenario.cli.terminal"])
@pytest.mark.parametrize(("number", "code", "said"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "stopped (SIGTERM)")],
                         ids=["SIGINT", "SIGTERM"])  # fmt: skip
def test_a_signal_during_imports_is_one_line(module: str, number: int, code: int, said: str, tmp_path: Path) -> None:
    """Wherever the program is in loading its parts, it ends with one line, 128 + signal, and no file."""
    program = AT_IMPORT.format(module=module, number=int(number))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1:]) == (code, [said]), done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1 or module == "scenario.cli.terminal"  # the file has been told of by then


def test_nothing_is_imported_before_signals_are_heard() -> None:
    """The module of the entry point imports no other part of the program, and click not either."""
    code = "import sys; import scenario.cli; print(*(name for name in sys.modules if name.startswith('scenario.') or name == 'click'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert set(done.stdout.split()) == {"scenario.cli", "scenario.common", "scenario.common.signals"}


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """Under nohup a closing terminal does not end a run."""
    code = ("import os, signal, sys\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\nfrom scenario.cli import main\n"
            "try: main(['--help'])\nexcept SystemExit: pass\nos.kill(os.getpid(), signal.SIGHUP); print('alive')")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.endswith("alive\n")
    assert done.returncode == 0
