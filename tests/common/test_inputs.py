"""Inputs: only regular files (and pipes that are open already) of bounded size are read, by every command alike."""

from __future__ import annotations

import gzip
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from scenario import TableError
from scenario.cli.commands import main
from scenario.common import inputs

SMALL = inputs.Kind("a test", 1000)
READERS = {
    "run": ("run", "IN"), "run csv": ("run", "IN.csv"), "run workbook": ("run", "IN.xlsx"), "check": ("check", "IN"),
    "check workbook": ("check", "IN.xlsx"), "export-table": ("export-table", "IN"), "diff": ("diff", "IN", "IN"), "best": ("best", "IN"),
    "explain": ("explain", "IN"), "graph": ("graph", "IN"), "compare": ("compare", "IN"), "sensitivity": ("sensitivity", "IN"),
    "add-model": ("add-model", "IN"), "calibrate": ("calibrate", "IN"), "acceptance": ("acceptance", "IN"), "simulate": ("simulate", "IN"),
}  # fmt: skip


def make(kind: str, path: Path) -> None:
    """Something that is no regular file."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize("command", list(READERS))
def test_no_command_reads_what_is_no_file(command: str, kind: str, tmp_path: Path) -> None:
    """A named pipe, a device and a folder are refused at once, in one line that says what they are."""
    arguments = [part.replace("IN", str(tmp_path / "in")) for part in READERS[command]]
    made = next(part for part in arguments if part.startswith(str(tmp_path)))
    make(kind, Path(made))
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2, done.output
    said = {"pipe": "not a file but a named pipe", "device": "not a file but a device", "folder": "this is a folder"}[kind]
    assert done.stderr.splitlines()[0] == f"{made}: this is {said}" or ": this is a folder" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("key", ["hf_config", "hardware"])
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_table_names_no_device_either(key: str, kind: str, tmp_path: Path) -> None:
    """What a table includes (a config.json, hardware constants) is held to the same: no endless read, no waiting."""
    make(kind, tmp_path / "other")
    row = "rows: [{model: MODEL, gpu: h100-sxm, batch: 1, context: 0, method: vanilla}]\n"
    table = tmp_path / "t.yaml"
    if key == "hf_config":
        table.write_text(f"version: 1\nmodels: {{mine: {{hf_config: {tmp_path / 'other'}}}}}\n" + row.replace("MODEL", "mine"))
    else:
        table.write_text("version: 1\ntime_model: estimate\nhardware: other\n" + row.replace("MODEL", "llama-3.1-8b"))
    done = CliRunner().invoke(main, ["run", str(table)])
    assert done.exit_code == 2
    assert "not a file" in done.stderr or "there is no file other" in done.stderr


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "socket"])
def test_what_is_no_file_is_said(kind: str, tmp_path: Path) -> None:
    """Each kind of thing is called by its name."""
    make(kind, tmp_path / "x")
    with pytest.raises(TableError, match={"pipe": "a named pipe", "device": "a device", "folder": "a folder", "socket": "a socket"}[kind]):
        inputs.read(tmp_path / "x", SMALL)


def test_the_limit_is_said(tmp_path: Path) -> None:
    """A file of the limit is read, one byte more is not; unpacked sizes count too."""
    path = tmp_path / "x"
    path.write_bytes(b"a" * 1000)
    assert len(inputs.read(path, SMALL)) == 1000
    path.write_bytes(b"a" * 1001)
    with pytest.raises(TableError, match=r"larger than the limit of 0\.001 MB for a test"):
        inputs.read(path, SMALL)
    assert inputs.unpacked(gzip.compress(b"a" * 1000), "x", SMALL) == b"a" * 1000
    with pytest.raises(TableError, match="unpacked it is larger than the limit"):
        inputs.unpacked(gzip.compress(b"a" * 1001), "x", SMALL)
    with pytest.raises(TableError, match="cannot be read"):
        inputs.unpacked(gzip.compress(b"a" * 1000)[:-9], "x", SMALL)


@pytest.mark.parametrize(("file", "limit"), [("t.yaml", "64 MB for a table"), ("t.csv", "64 MB for a table"), ("t.xlsx", "1 GB for a workbook")])
def test_a_huge_file_is_refused_unread(file: str, limit: str, tmp_path: Path) -> None:
    """A sparse file of a terabyte is refused by its size."""
    with (tmp_path / file).open("wb") as stream:
        stream.truncate(10**12)
    done = CliRunner().invoke(main, ["run", str(tmp_path / file)])
    assert done.exit_code == 2
    assert f"larger than the limit of {limit}" in done.stderr


def test_a_pipe_that_goes_on_is_cut_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Standard input may be a pipe; it is read up to the limit and not beyond."""
    code = ("from scenario.common import inputs; from scenario.cli.commands import main\n"
            "inputs.LOG = inputs.Kind('a log', 3_000_000); inputs.TABLE = inputs.Kind('a table', 3_000_000); main()")  # fmt: skip
    for arguments in (["acceptance", "-"], ["run", "/dev/stdin"]):
        with subprocess.Popen(["yes", "x: y"], stdout=subprocess.PIPE) as endless:
            done = subprocess.run([sys.executable, "-c", code, *arguments], stdin=endless.stdout, capture_output=True, text=True, check=False)
            endless.kill()
        assert done.returncode == 2, done.stderr
        assert "larger than the limit of 3 MB" in done.stderr


def test_inputs_are_remembered_while_a_command_runs_only(tmp_path: Path) -> None:
    """A program that reads a file and later writes it through the library is not held back."""
    path = tmp_path / "x"
    path.write_bytes(b"a")
    with inputs.remembered():
        assert not inputs.was_read(path)
        inputs.read(path, SMALL)
        assert inputs.was_read(path)
        assert not inputs.was_read(tmp_path / "other")
    assert not inputs.was_read(path)
