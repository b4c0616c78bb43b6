"""The command line: exit codes, what goes to which stream, and output that reads well in any width."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from scenario.cli import running
from scenario.cli.commands import main

TABLE = """version: 1
title: Two batches
rows:
  - {model: llama-3.1-8b, gpu: h100-sxm, batch: [1, 8], context: 2048, method: [vanilla, eagle, int4+eagle]}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "SCENARIO_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "t.yaml").write_text(TABLE)
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def shell(command: str, **env: str) -> subprocess.CompletedProcess[str]:
    program = f"{sys.executable} -m scenario"
    return subprocess.run(["bash", "-o", "pipefail", "-c", command.replace("scenario", program, 1)], capture_output=True, text=True,
                          check=False, env={**os.environ, **env})  # fmt: skip


@pytest.mark.parametrize(("arguments", "code", "said"), [
    ("run t.yaml", 0, ""), ("check t.yaml", 0, ""), ("run t.yaml -q", 0, ""), ("run starter -q", 0, ""),
    ("run nowhere.yaml", 2, "nowhere.yaml: there is no such file"),
    ("check nowhere.yaml", 2, "there is no such file"),
    ("run .", 2, "this is a folder"),
    ("run costs.xlsx", 2, "there is no such file"), ("run costs.ods", 2, "an .xlsx workbook"),
    ("run t.yaml -o t.yaml --format csv", 2, "the output would replace a file that this command reads"),
    ("run t.yaml -o ./../x/../t.csv", 1, "does not exist"),
    ("run t.yaml -o nowhere/x.csv", 1, "the folder nowhere does not exist"),
    ("run t.yaml -o x.cvs", 2, "did you mean '.csv'?"),
    ("run t.yaml -o x", 2, "the output file has no ending"),
    ("run t.yaml -o x.csv --format exel", 2, "there is no format 'exel'"),
    ("run t.yaml --format csv", 2, "--format needs -o FILE"),
    ("run t.yaml -o -  --format nope", 2, "there is no format 'nope'"),
    ("run t.yaml --max-rows 3", 2, "makes 6 rows"),
    ("run t.yaml --max-rows 0", 2, "--max-rows"),
    ("run t.yaml -p nowhere.py", 2, "there is no such file"),
    ("run t.yaml -p no:egle", 2, "did you mean 'eagle'"),
    ("list nothing", 2, "is not one of"), ("rum t.yaml", 2, "No such command"), ("run", 2, "Missing argument"),
    ("init t.yaml", 2, "t.yaml is there already"), ("init nowhere/t.yaml", 1, "does not exist"),
])  # fmt: skip
def test_exit_codes_and_messages(arguments: str, code: int, said: str) -> None:
    """0 when it worked, 2 for what the user can mend in the input, 1 for the world outside; faults go to stderr only."""
    done = call(*arguments.split())
    assert done.exit_code == code, done.output
    assert said in done.stderr
    assert "Traceback" not in done.output
    assert "internal error" not in done.output
    if code:
        assert done.stdout == ""
    if "-q" in arguments:
        assert done.output == ""


def test_a_link_to_the_table_is_not_overwritten(here: Path) -> None:
    """The table is safe behind another name of the same file too."""
    os.link("t.yaml", "same.csv")
    Path("soft.csv").symlink_to("t.yaml")
    for name in ("same.csv", "soft.csv"):
        assert call("run", "t.yaml", "-o", name).exit_code == 2
    assert Path("t.yaml").read_text() == TABLE


def test_init_check_run(here: Path) -> None:
    """The starter table is commented, passes its own check and runs; a file that is there stays without --force."""
    assert call("init").exit_code == 0
    text = Path("table.yaml").read_text(encoding="utf-8")
    assert text.count("#") > 8
    assert "good: 34 rows" in call("check", "table.yaml").stdout
    done = call("run", "table.yaml", "-o", "out.csv")
    assert done.exit_code == 0
    assert "wrote out.csv" in done.stderr
    assert len(Path("out.csv").read_text().splitlines()) == 35
    Path("table.yaml").write_text("mine")
    assert call("init").exit_code == 2
    assert Path("table.yaml").read_text() == "mine"
    assert call("init", "--force").exit_code == 0
    assert Path("table.yaml").read_text(encoding="utf-8") == text


def test_stdout_carries_nothing_but_the_file(here: Path) -> None:
    """-o - writes CSV, or the format asked for, and no word beside it."""
    lines = call("run", "t.yaml", "-o", "-").stdout.splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("id,model,")
    assert call("run", "t.yaml", "-o", "-", "--format", "markdown").stdout.startswith("# Two batches\n")
    assert call("run", "t.yaml", "-o", "-", "--format", "parquet").stdout_bytes[:4] == b"PAR1"


@pytest.mark.parametrize("command", ["scenario run t.yaml -o - | head -1", "scenario list columns | head -1", "scenario run t.yaml | head -1"])
def test_a_reader_that_leaves_early_is_no_fault(command: str) -> None:
    """Piping into head ends quietly with exit code 0."""
    done = shell(command)
    assert done.returncode == 0
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("command", ["scenario run t.yaml > /dev/full", "scenario run t.yaml -o - > /dev/full", "scenario list gpus > /dev/full",
                                     "scenario run t.yaml -o /dev/full --format csv"])  # fmt: skip
def test_a_full_disk_under_the_output_is_one_line(command: str) -> None:
    """Output that cannot be written ends with exit code 1 and one clear line."""
    done = shell(command)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert re.search("cannot be written: (the disk is full|No space left)", done.stderr)


def test_devices_pipes_and_redirections_work(here: Path) -> None:
    """/dev/stdout, a table from a pipe and a closed terminal are things people do."""
    assert shell("scenario run t.yaml -q -o /dev/stdout --format csv | cat").stdout.startswith("id,")
    assert shell("scenario check /dev/stdin -q < t.yaml").returncode == 0
    assert shell("cat t.yaml | scenario run /dev/stdin -o -").stdout.startswith("id,")
    assert shell("nohup scenario check t.yaml").returncode == 0


def test_help_is_light() -> None:
    """--help imports neither polars nor openpyxl nor yaml nor rich, so that it is there at once."""
    code = ("import sys; from scenario.cli.commands import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
            "sys.exit(' '.join({'polars', 'openpyxl', 'yaml', 'rich', 'pluggy'} & set(sys.modules)) or None)")  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "scenario init" in done.stdout


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("table", ["t.yaml", "starter"])
def test_the_result_reads_well_in_any_width(width: int, table: str) -> None:
    """No line is wider than the terminal, nothing is cut or broken, and columns without room are named."""
    done = shell(f"scenario run {table}", COLUMNS=str(width), TTY_COMPATIBLE="1", NO_COLOR="1", TERM="xterm")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    lines = plain.splitlines()
    body = [line for line in lines if line.startswith(("llama", "deepseek", "    1", "    8"))]
    assert max(len(line.rstrip()) for line in lines if line in body) <= width
    assert "…" not in plain
    assert len(body) == (6 if table == "t.yaml" else 34)
    assert len({len(line) for line in body}) == 1
    for word in ("TPOT", "tokens/s", "int4+eagle"):
        assert word in plain
    assert ("not shown for want of width: " in plain) == (not all(word in plain.splitlines()[2] for word in ("max batch", "memory", "bound")))
    if table == "t.yaml":
        assert "all rows: model llama-3.1-8b, gpu h100-sxm, context 2,048" in plain
        assert "all fit" in plain


def test_output_that_is_no_terminal_is_plain_and_whole() -> None:
    """Into a file or pipe go all columns, uncut, without colours, however narrow the terminal is."""
    done = shell("scenario run starter", COLUMNS="40")
    assert "\x1b" not in done.stdout
    assert "…" not in done.stdout
    assert "not shown" not in done.stdout
    assert "usd_per_day" in done.stdout
    assert "does not fit: KV cache" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) > 120


def test_a_row_that_does_not_fit_or_has_no_price_is_told(here: Path) -> None:
    """Blank numbers are a dash and the status says why; counts speak of one row and of rows left out."""
    Path("u.yaml").write_text("version: 1\nwhere: not fits\nrows:\n"
                              "  - {model: deepseek-v3, gpu: h100-sxm, batch: 1, context: 0, method: [vanilla, int4], gpus: [1, 8]}\n")  # fmt: skip
    out = call("run", "u.yaml").stdout
    assert "does not fit: weights" in out
    assert " - " in out
    assert "where: left out 1" in out
    Path("v.yaml").write_text("version: 1\nwhere: batch > 5\nrows:\n"
                              "  - {model: llama-3-8b, gpu: h100-sxm, batch: 1, context: 0, method: vanilla}\n")  # fmt: skip
    assert "0 rows" in call("run", "v.yaml").stdout


@pytest.mark.parametrize("what", ["models", "gpus", "methods", "columns", "functions", "presets", "tables", "formats"])
@pytest.mark.parametrize("width", ["80", "30"])
def test_lists_fit_the_terminal(what: str, width: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every list holds to the width of the terminal, breaking no word but those longer than a line."""
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    done = call("list", what)
    assert done.exit_code == 0, done.output
    lines = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).splitlines()
    assert len(lines) > 1
    if width == "80":
        headings = [line for line in lines if line.startswith("    ") and len(line.split()) > 1]
        assert all(len(line.rstrip()) <= 80 for line in headings)


def test_lists_name_what_tables_can_say() -> None:
    """Models, GPUs, methods with defaults and ranges, columns with formulas and tables are all there."""
    assert "llama-3.1-8b" in call("list", "models").stdout
    assert "h100-sxm" in call("list", "gpus").stdout
    methods = call("list", "methods").stdout
    assert "eagle: EAGLE head" in methods
    assert "  alpha = 0.75 (at least 0 and at most 1)" in methods
    assert "tpot_ms (ms)" in call("list", "columns").stdout
    assert "starter" in call("list", "tables").stdout
    assert "eagle (built in): loaded" in call("plugins").stdout


def test_names_that_are_not_utf8_are_no_traceback(here: Path) -> None:
    """A file name with odd bytes is read, written and reported like any other."""
    name = os.fsencode("t") + b"\xff.yaml"
    Path(os.fsdecode(name)).write_text(TABLE)
    done = subprocess.run([sys.executable.encode(), b"-m", b"scenario", b"check", name], capture_output=True, check=False)
    assert done.returncode == 0
    assert b"good: 6 rows" in done.stdout
    done = subprocess.run([sys.executable.encode(), b"-m", b"scenario", b"check", b"no" + name], capture_output=True, check=False)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_a_fault_of_the_program_itself_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even a bug shows no traceback unless SCENARIO_DEBUG asks for it."""
    from scenario import api

    monkeypatch.setattr(api, "check", lambda *args, **kwargs: 1 / 0)
    done = call("run", "t.yaml")
    assert done.exit_code == 1
    assert "internal error, please report it: ZeroDivisionError: division by zero" in done.stderr
    monkeypatch.setenv("SCENARIO_DEBUG", "1")
    assert isinstance(call("run", "t.yaml").exception, ZeroDivisionError)


class Terminal(io.StringIO):
    """A stand-in for a terminal that remembers what is written to it."""

    def isatty(self) -> bool:
        return True


def test_a_progress_bar_is_for_long_work_and_people_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bar shows after a second, on stderr, at a terminal, unless --quiet; work that ends in time shows none."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with running.Progress(quiet=True) as update:
        assert update is None
    with running.Progress(quiet=False) as update:
        assert update is not None
        update(1, 10)
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]
    progress = running.Progress(quiet=False)
    progress.start -= 2
    with progress as update:
        assert update is not None
        update(1, 10)
        update(10, 10)
    assert "computing" in sys.stderr.getvalue()  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with running.Progress(quiet=False) as update:
        assert update is None


def test_a_reason_stands_below_numbers_that_are_missing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the status column has no room, the foot says how many rows have no numbers and why."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    Path("w.yaml").write_text("version: 1\nrows:\n  - {model: deepseek-v3, gpu: [h100-sxm, h200], batch: 1, context: 0, method: [vanilla, int4], gpus: [1, 8]}\n")
    out = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", call("run", "w.yaml").stdout).split())
    # 671 B parameters: 1342 GB in BF16, 357 GB in INT4; the GPUs hold 85.5, 684, 141 and 1128 GB.
    assert "6 of them: does not fit: weights" in out


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_no_fault(closed: str, here: Path) -> None:
    """A daemon or a cron job may have no stdout or stderr: the file is written, and the exit code is 0."""
    done = shell(f"scenario run t.yaml -o closed.csv {closed}")
    assert (done.returncode, done.stdout, done.stderr.replace("wrote closed.csv\n", "")) in ((0, "", ""), (0, done.stdout, ""))
    assert (here / "closed.csv").read_text().startswith("id,")


def test_init_wants_a_file(here: Path) -> None:
    """A folder, also one that is not there, is no place for the text of a table."""
    done = call("init", "sub/")
    assert done.exit_code == 2
    assert not (here / "sub").exists()
    assert "sub/ is a folder" in done.stderr


def test_a_full_disk_is_told_in_one_line(here: Path) -> None:
    """The libraries below have nothing to add."""
    done = shell("ulimit -f 40; scenario run t.yaml -q -o big.xlsx")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert not (here / "big.xlsx").exists()


def test_a_new_plugin_is_installed_from_its_folder(here: Path) -> None:
    """The advice names a path: a bare name would be looked for on the package index."""
    done = call("new-plugin", "mine")
    assert "pip install ./scenario-mine\n" in done.stdout
    assert "pip install './scenario-mine[test]'" in done.stdout
