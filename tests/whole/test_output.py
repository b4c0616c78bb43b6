"""Writing: whatever goes wrong midway, the old file stays whole and one clear line says so."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest
from click.testing import CliRunner

import scenario
from scenario import Exporter, OutputError
from scenario import output as files
from scenario.cli.commands import main

TABLE = "version: 1\nrows:\n  - {model: llama-3.1-8b, gpu: h100-sxm, batch: [1, 8], context: 0, method: vanilla}\n"
OLD = b"the old file"


def midway(error: BaseException) -> Callable[[BinaryIO], None]:
    def fill(stream: BinaryIO) -> None:
        stream.write(b"half a file")
        stream.flush()
        raise error

    return fill


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "costs.xlsx"
    path.write_bytes(OLD)
    return path


def unchanged(target: Path) -> None:
    assert target.read_bytes() == OLD
    assert [path.name for path in target.parent.iterdir()] == [target.name], "a half-written file was left behind"


@pytest.mark.parametrize("error", [
    ValueError("x"), KeyboardInterrupt(), SystemExit(3), MemoryError(), OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EIO, "Input/output error"),
], ids=lambda error: type(error).__name__ + str(getattr(error, "errno", "") or ""))  # fmt: skip
def test_a_writer_that_stops_midway_leaves_the_old_file(error: BaseException, target: Path) -> None:
    """However a writer ends, the target is what it was and nothing lies beside it."""
    expected = OutputError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected):
        files.replace(target, midway(error))
    unchanged(target)


def test_a_full_disk_is_one_clear_line(target: Path) -> None:
    """No space is said in plain words with the file's name."""
    with pytest.raises(OutputError) as caught:
        files.replace(target, midway(OSError(errno.ENOSPC, "No space left on device")))
    assert str(caught.value) == f"{target}: cannot be written: the disk is full"
    assert caught.value.exit_code == 1
    with pytest.raises(OutputError, match="the disk is full"):
        files.replace(Path("/dev/full"), lambda stream: stream.write(b"x" * 100_000) and None)


def test_a_limit_on_file_size_leaves_the_old_file(target: Path) -> None:
    """A write that the system cuts off (here by a limit on file sizes) counts for nothing."""
    code = ("import resource, signal, sys; from pathlib import Path; from scenario import output as files, ScenarioError\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
            "try: files.replace(Path(sys.argv[1]), lambda stream: stream.write(b'x' * 100_000) and None)\n"
            "except ScenarioError as error: sys.exit(str(error))\n")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code, str(target)], capture_output=True, text=True, check=False)
    assert "larger than the system allows" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000
    unchanged(target)


@pytest.mark.parametrize("step", ["replace", "fsync", "chmod"])
def test_a_failure_of_the_last_steps_leaves_the_old_file(step: str, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file held open elsewhere (which refuses the move) or a failing disk is one line; the old file stays."""
    def refuse(*args: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, step, refuse)
    with pytest.raises(OutputError, match="cannot be written: Permission denied"):
        files.replace(target, lambda stream: stream.write(b"new") and None)
    monkeypatch.undo()
    unchanged(target)


@pytest.mark.parametrize("lock", ["~$costs.xlsx", ".~lock.costs.xlsx#"])
def test_a_file_open_in_a_spreadsheet_program_is_left_alone(lock: str, target: Path) -> None:
    """The lock files of Excel and LibreOffice send the result to a name beside it, and the user is told."""
    (target.parent / lock).touch()
    table = target.parent / "t.yaml"
    table.write_text(TABLE)
    done = CliRunner().invoke(main, ["run", str(table), "-o", str(target), "--format", "csv"])
    assert done.exit_code == 0
    beside = target.with_name("costs (2).xlsx")
    assert beside.read_bytes().startswith(b"id,")
    assert target.read_bytes() == OLD
    assert "is open in another program" in done.stderr
    assert f"wrote {beside}" in done.stderr
    assert files.replace(target, lambda stream: None).name == "costs (3).xlsx"


def test_a_link_keeps_pointing_and_its_file_is_replaced(tmp_path: Path) -> None:
    """Writing to a symbolic link replaces what it points to, not the link; a dangling one is followed as well."""
    real = tmp_path / "real.csv"
    real.write_bytes(OLD)
    for link, goal in ((tmp_path / "link.csv", real), (tmp_path / "dangling.csv", tmp_path / "new.csv")):
        link.symlink_to(goal)
        files.replace(link, lambda stream: stream.write(b"new") and None)
        assert link.is_symlink()
        assert goal.read_bytes() == b"new"


def test_the_mode_of_a_file_is_kept(target: Path) -> None:
    """A replaced file keeps its permissions, a new one gets those of the user's mask."""
    target.chmod(0o640)
    files.replace(target, lambda stream: None)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    fresh = files.replace(target.with_name("fresh.csv"), lambda stream: None)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o666 & ~mask


def test_pipes_folders_and_names_at_the_limit(tmp_path: Path) -> None:
    """A pipe is written to as it is, a folder is refused, and a name as long as the system allows works."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    files.replace(pipe, lambda stream: stream.write(b"x") and None)
    reader.join(5)
    assert got == [b"x"]
    with pytest.raises(OutputError, match="this is a folder"):
        files.replace(tmp_path, lambda stream: None)
    long = tmp_path / ("n" * 251 + ".csv")
    assert files.replace(long, lambda stream: None) == long
    with pytest.raises(OutputError, match="does not exist"):
        files.replace(tmp_path / "nowhere" / "x.csv", lambda stream: None)
    with pytest.raises(OutputError, match="cannot be written"):
        files.replace(long / "x.csv", lambda stream: None)


def test_a_writer_may_close_its_stream(target: Path) -> None:
    """Archive writers close what they write to; the file still ends up whole."""
    def fill(stream: BinaryIO) -> None:
        stream.write(b"new")
        stream.close()

    files.replace(target, fill)
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError("no luck"), SystemExit(3)], ids=["raises", "exits"])
def test_an_exporter_that_fails_is_named_with_its_plugin(error: BaseException, tmp_path: Path, target: Path) -> None:
    """A fault inside a plugin's exporter is no traceback: one line names the format and the plugin."""
    result = scenario.run({"version": 1, "rows": [{"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": 1, "context": 0,
                                                   "method": "vanilla"}]})  # fmt: skip
    def write(_: scenario.Result, stream: BinaryIO) -> None:
        midway(error)(stream)

    owner = result.host.owners[Exporter, "csv"]
    result.host.items[Exporter]["bad"] = Exporter("bad", (".bad",), write)
    result.host.owners[Exporter, "bad"] = owner
    with pytest.raises(OutputError) as caught:
        result.to(target, "bad")
    assert f"format 'bad' of plugin '{owner.name}'" in str(caught.value)
    assert type(error).__name__ in str(caught.value)
    unchanged(target)


def _listen() -> None:
    """Have the child hear signals that whoever runs the tests ignores (nohup, a background job of a shell)."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_a_run_killed_midway_leaves_the_old_file(number: signal.Signals, target: Path) -> None:
    """A run that is killed while it writes leaves the old file whole; one that is asked to stop tidies up as well."""
    plugin, table = target.parent / "slow.py", target.parent / "t.yaml"
    table.write_text(TABLE)
    plugin.write_text(
        "import sys, time\nfrom scenario import Exporter, hookimpl\n"
        "def write(result, stream):\n    stream.write(b'half'); stream.flush(); print('now', file=sys.stderr, flush=True); time.sleep(30)\n"
        "@hookimpl\ndef scenario_exporters():\n    yield Exporter('slow', ('.slow',), write)\n"
    )
    run = subprocess.Popen([sys.executable, "-m", "scenario", "run", str(table), "-p", str(plugin), "-o", str(target), "--format", "slow"],
                           stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, preexec_fn=_listen)  # fmt: skip
    assert run.stderr is not None
    assert run.stderr.readline() == "now\n"
    run.send_signal(number)
    started = time.monotonic()
    rest = run.stderr.read()
    assert run.wait(10) != 0
    assert time.monotonic() - started < 5
    assert target.read_bytes() == OLD
    assert "Traceback" not in rest
    if number is not signal.SIGKILL:
        assert not list(target.parent.glob(".*.part"))


def test_nothing_is_written_for_a_bad_table(target: Path) -> None:
    """Exit code 2 means that no file was made or touched."""
    table = target.parent / "t.yaml"
    table.write_text(TABLE.replace("vanilla", "vanila"))
    done = CliRunner().invoke(main, ["run", str(table), "-o", str(target)])
    assert done.exit_code == 2
    assert done.stdout == ""
    table.unlink()
    unchanged(target)
