"""``scenario open``: the page is written and handed to the browser; ``--watch`` writes it anew when the table is saved."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from scenario.cli.commands import main

TABLE = "version: 1\ntitle: {title}\ndefaults: {{gpu: h100-sxm, context: 0, method: vanilla}}\nrows: [{{model: llama-3.1-8b, batch: 1}}]\n"


def test_the_page_goes_to_the_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the browser is asked to show is the page that was written."""
    asked: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: asked.append(url) or True)
    (tmp_path / "t.yaml").write_text(TABLE.format(title="one"), encoding="utf-8")
    done = CliRunner().invoke(main, ["open", str(tmp_path / "t.yaml"), "-o", str(tmp_path / "t.html")])
    assert done.exit_code == 0, done.output
    assert asked == [(tmp_path / "t.html").as_uri()]
    assert "one" in (tmp_path / "t.html").read_text(encoding="utf-8")


def test_a_bad_table_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The faults of a table are told as by `run`, and no browser starts."""
    monkeypatch.setattr("webbrowser.open", lambda url: pytest.fail("it was opened"))
    (tmp_path / "t.yaml").write_text("version: 1\nrows: [{model: nobody}]\n", encoding="utf-8")
    done = CliRunner().invoke(main, ["open", str(tmp_path / "t.yaml"), "-o", str(tmp_path / "t.html")])
    assert done.exit_code == 2
    assert not (tmp_path / "t.html").exists()


@pytest.mark.process
def test_watching_writes_the_page_anew(tmp_path: Path) -> None:
    """A saved table is on the page soon after; one half typed is told, and leaves the page as it was."""
    table, page = tmp_path / "t.yaml", tmp_path / "t.html"
    table.write_text(TABLE.format(title="one"), encoding="utf-8")
    command = [sys.executable, "-m", "scenario", "open", str(table), "-o", str(page), "--watch", "--no-browser"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "wrote" in process.stderr.readline()
        time.sleep(0.1)
        table.write_text(TABLE.format(title="another"), encoding="utf-8")
        assert "again" in process.stderr.readline()
        assert "another" in page.read_text(encoding="utf-8")
        table.write_text("version: 1\nrows: [{", encoding="utf-8")
        os.utime(table)
        assert "t.yaml" in process.stderr.readline()
        assert "another" in page.read_text(encoding="utf-8")
        process.send_signal(signal.SIGINT)
    assert process.returncode == 130
