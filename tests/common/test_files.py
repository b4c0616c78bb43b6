"""Writing: whatever goes wrong midway, the old file stays whole and one clear line says so."""

from __future__ import annotations

import errno
import os
import platform
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
from scenario.cli.commands import main
from scenario.common import files

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
    code = ("import resource, signal, sys; from pathlib import Path; from scenario.common import files; from scenario import ScenarioError\n"
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
    assert done.exit_code == 3
    beside = target.with_name("costs (2).xlsx")
    assert beside.read_bytes().startswith(b"id,")
    assert target.read_bytes() == OLD
    assert "is open in another program" in done.stderr
    assert f"wrote {beside}" in done.stderr
    assert files.replace(target, lambda stream: None).name == "costs (3).xlsx"
    quiet = CliRunner().invoke(main, ["run", str(table), "-o", str(target), "--format", "csv", "-q"])
    assert quiet.exit_code == 3
    assert "wrote " in quiet.stderr
    assert "costs (4).xlsx" in quiet.stderr
    assert quiet.stdout == ""


@pytest.mark.parametrize(("host", "running", "goes"), [
    (platform.node(), ["bash", "python3"], "costs.xlsx"), (platform.node(), ["soffice.bin"], "costs (2).xlsx"),
    (platform.node(), None, "costs (2).xlsx"), ("elsewhere", ["bash"], "costs (2).xlsx"),
])  # fmt: skip
def test_a_lock_that_is_left_over_does_not_count(
    host: str, running: list[str] | None, goes: str, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock of LibreOffice on this machine, where no LibreOffice runs, is stale; any other is believed."""
    (target.parent / ".~lock.costs.xlsx#").write_text(f",ann,{host},30.11.2026 10:00,file:///home/ann/.config/libreoffice/4;")
    monkeypatch.setattr(files, "_processes", lambda: running)
    assert files.replace(target, lambda stream: stream.write(b"new") and None).name == goes


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
    left = list(target.parent.glob(".*.part"))
    assert len(left) == (number is signal.SIGKILL)
    if number is not signal.SIGKILL:
        assert run.returncode == 128 + number
        assert len(rest.splitlines()) == 1, rest
    files.replace(target, lambda stream: None)
    assert not list(target.parent.glob(".*.part")), "what a dead run left is cleaned by the next one"


def test_a_file_that_another_run_is_writing_is_not_taken_for_a_dead_one(target: Path) -> None:
    """While one run writes a file aside, another of the same name ends first, and both come through."""
    def slow(stream: BinaryIO) -> None:
        files.replace(target, lambda inner: inner.write(b"fast") and None)
        assert target.read_bytes() == b"fast"
        stream.write(b"slow")

    files.replace(target, slow)
    assert target.read_bytes() == b"slow"
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_the_owner_of_a_file_is_kept_or_the_file_is_left(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of another user stays theirs; where the system does not let us, it is not replaced at all."""
    asked: list[tuple[int, int]] = []
    real = os.stat

    def of_another(path: object, **options: object) -> os.stat_result:
        found = real(path, **options)  # type: ignore[arg-type]
        return os.stat_result((*found[:4], 4321, 4322, *found[6:])) if str(path) == str(target) else found

    monkeypatch.setattr(os, "stat", of_another)
    monkeypatch.setattr(os, "chown", lambda path, user, group: asked.append((user, group)))
    files.replace(target, lambda stream: stream.write(b"new") and None)
    assert asked == [(4321, 4322)]

    def refuse(*parts: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    target.write_bytes(OLD)
    monkeypatch.setattr(os, "chown", refuse)
    with pytest.raises(OutputError, match="it belongs to another user"):
        files.replace(target, lambda stream: stream.write(b"new") and None)
    monkeypatch.undo()
    unchanged(target)


@pytest.mark.parametrize("name", ["n" * 256 + ".csv", "\u00e4" * 200, "x\0y.csv"], ids=["long", "long in bytes", "nul"])
def test_names_that_no_file_can_have_are_refused(name: str, tmp_path: Path) -> None:
    """A name beyond the limit of the file system, or with a NUL, is one line."""
    with pytest.raises(OutputError, match=r"longer than the system allows|not the name of a file") as caught:
        files.replace(tmp_path / name, lambda stream: None)
    assert len(str(caught.value).splitlines()) == 1
    assert not list(tmp_path.iterdir())


INPUTS = {
    "run": ("run", "in.yaml", "-o", "OUT", "--format", "csv"), "sensitivity": ("sensitivity", "in.yaml", "-o", "OUT"),
    "compare": ("compare", "in.yaml", "-o", "OUT"), "export-table": ("export-table", "in.yaml", "-o", "OUT"),
    "diff": ("diff", "in.yaml", "in.yaml", "-o", "OUT", "--format", "markdown"),
    "add-model": ("add-model", "in.yaml", "--name", "m", "-o", "OUT", "--force"),
    "acceptance": ("acceptance", "in.yaml", "-o", "OUT"), "acceptance of a pipe": ("acceptance", "-", "-o", "OUT"),
    "calibrate": ("calibrate", "in.yaml", "-o", "OUT"), "simulate": ("simulate", "in.yaml"),
}  # fmt: skip
TEXTS = {"add-model": "configs", "acceptance": "log", "acceptance of a pipe": "log", "calibrate": "measured"}


@pytest.mark.parametrize("link", ["same", "symbolic", "hard"])
@pytest.mark.parametrize("command", [name for name in INPUTS if name != "simulate"])
def test_no_command_replaces_what_it_reads(command: str, link: str, tmp_path: Path) -> None:
    """Under its own name, behind a symbolic link or as a hard link: the input is refused as output, and stays as it was."""
    data = Path(__file__).parents[1] / "data"
    text = {"configs": data / "hf_configs/Qwen--Qwen3-0.6B.json", "log": data / "logs/vllm.log",
            "measured": data / "measured_serving_sample.csv"}  # fmt: skip
    given = TABLE.encode() if command not in TEXTS else text[TEXTS[command]].read_bytes()
    source, out = tmp_path / "in.yaml", tmp_path / "out.csv"
    source.write_bytes(given)
    if link == "same":
        out = source
    elif link == "symbolic":
        out.symlink_to(source)
    else:
        out.hardlink_to(source)
    arguments = [{"in.yaml": str(source), "OUT": str(out)}.get(part, part) for part in INPUTS[command]]
    if link == "same" and command in ("sensitivity", "compare"):
        pytest.skip("the ending of a table is no format's")
    with source.open("rb") as stream:
        done = subprocess.run([sys.executable, "-m", "scenario", *arguments], stdin=stream, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "would replace a file that this command reads" in done.stderr
    assert source.read_bytes() == given
    assert out.is_symlink() == (link == "symbolic")


def test_nothing_is_written_for_a_bad_table(target: Path) -> None:
    """Exit code 2 means that no file was made or touched."""
    table = target.parent / "t.yaml"
    table.write_text(TABLE.replace("vanilla", "vanila"))
    done = CliRunner().invoke(main, ["run", str(table), "-o", str(target)])
    assert done.exit_code == 2
    assert done.stdout == ""
    table.unlink()
    unchanged(target)
