"""Text from elsewhere is harmless where it is shown, and messages stay short."""

from __future__ import annotations

import html
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from scenario import Problem, TableError
from scenario.cli.commands import main
from scenario.common import texts

CASES = Path(__file__).parents[1] / "data" / "hostile"
ROW = "rows: [{model: llama-3.1-8b, gpu: h100-sxm, batch: 1, context: 0, method: vanilla}]\n"
ANY = st.text(st.characters(codec=None, exclude_categories=()))


@given(ANY)
def test_a_terminal_gets_nothing_to_obey(text: str) -> None:
    """No control character but line ends and tabs, no mark that turns the direction of reading, nothing that cannot be written."""
    shown = texts.for_terminal(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    shown.encode()
    assert "\n" not in texts.for_line(text)


@given(ANY)
def test_xml_can_hold_what_is_left(text: str) -> None:
    """Any text, cleaned, makes an XML document that a parser reads back as the same text."""
    kept = texts.for_xml(text)
    read = ElementTree.fromstring(f"<a>{html.escape(kept)}</a>").text or ""
    assert read == re.sub("\r\n?", "\n", kept)


@given(ANY)
def test_markdown_shows_a_text_as_it_is(text: str) -> None:
    """No tag, no link, no new cell and no new line can be made of a text."""
    shown = texts.escape_markdown(text)
    assert not re.search(r"[<>\n]|(?<!\\)(?:\\\\)*[|`*\[\]]", shown)


@pytest.mark.parametrize("text", [r'columns: {c: {formula: batch, doc: "a\vb"}}', r'columns: {c: {formula: batch, unit: "\e[2J"}}',
                                  r'title: "\e]0;owned\a"', r'notes: {"a\x9bb": c}'])  # fmt: skip
@pytest.mark.parametrize("command", ["run", "check", "export-table"])
def test_a_table_with_control_characters_is_refused_with_its_place(text: str, command: str, tmp_path: Path) -> None:
    """Written as an escape or not, a control character is a mistake: the message shows it by its number, and nothing is written."""
    table, out = tmp_path / "t.yaml", tmp_path / "out.xlsx"
    table.write_text(f"version: 1\n{text}\n{ROW}")
    done = CliRunner().invoke(main, [command, str(table), *(["-o", str(out)] if command != "check" else [])])
    assert done.exit_code == 2
    assert re.search(r"t\.yaml:2:\d+: there is a control character \(\\x(0b|1b|9b)\) in this text", done.stderr), done.stderr
    assert not re.search("[\x0b\x1b\x9b]", done.output)
    assert not out.exists()


def test_messages_carry_no_escapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a file, or what stands in it, cannot send an escape sequence to the terminal by way of a message."""
    monkeypatch.chdir(tmp_path)
    name = "\x1b[2Jx.yaml"
    Path(name).write_text("version: 1\nrwos: 3\n")
    for arguments in (["run", name], ["run", "t\x1b[31m"], ["check", "starter", "-p", "no:\x1b[2J"]):
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code == 2
        assert "\x1b" not in done.output
        assert r"\x1b[" in done.stderr


def test_twenty_problems_of_a_file_and_the_count_of_the_rest() -> None:
    """A file that is wrong throughout gets twenty messages, other files theirs; the error itself keeps all."""
    error = TableError([*(Problem(f"wrong {number}", file="a.yaml", line=number) for number in range(1, 31)), Problem("bad", file="b.yaml")])
    lines = str(error).splitlines()
    assert len(error.problems) == 31
    assert lines[19:] == ["a.yaml:20:0: wrong 20", "a.yaml: and 10 more problems", "b.yaml: bad"]


def test_a_value_is_quoted_to_200_characters() -> None:
    """However long a value is, a message shows its beginning."""
    said = str(Problem(f"unknown model '{'x y ' * 1000}'", hint="z" * 5000))
    assert len(re.search("'(.*)'", said)[1]) == 200  # type: ignore[index]
    assert len(said) < 500


HOSTILE = "\x1b[2J[red]<script>alert(1)</script>|`x`](http://x)\u202e"


def test_a_console_obeys_nothing_that_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """Escapes are written out and square brackets are no markup, in lines and in grids, at a terminal and in a pipe."""
    from rich.text import Text

    from scenario.cli import terminal

    console = terminal.screen()
    console.print(Text(HOSTILE))
    console.print(HOSTILE)
    terminal.table_of((HOSTILE,), [(HOSTILE,)])
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert shown.count(r"\x1b[2J[red]<script>") == 4


def test_markdown_and_graphs_of_hostile_texts_hold_no_markup(tmp_path: Path) -> None:
    """Titles, units and docs of a table go into markdown, mermaid and dot as texts: no tag, no link, no broken label."""
    unit = '"];<b>|`](x)#'
    table = tmp_path / "t.yaml"
    table.write_text(f"version: 1\ntitle: '<img src=x onerror=a> [x](y)'\n{ROW}"
                     f"columns: {{c: {{formula: batch * 2, unit: '{unit}', doc: '<script>|'}}}}\n")  # fmt: skip
    markdown = CliRunner().invoke(main, ["run", str(table), "-o", "-", "--format", "markdown"]).output
    assert "<" not in markdown
    assert r"\[x\](y)" in markdown
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in markdown.splitlines()[2:]}) == 1
    explained = CliRunner().invoke(main, ["explain", str(table), "c", "--format", "markdown"]).output
    assert not re.search("<(script|b)", re.sub(r"```.*?```", "", explained, flags=re.DOTALL))
    mermaid = CliRunner().invoke(main, ["graph", str(table), "c"]).output
    assert re.search(r'n_c\["c<br/>#quot;\];#lt;b#gt;\|#96;\]\(x\)#35;"\]:::calc', mermaid)
    dot = CliRunner().invoke(main, ["graph", str(table), "c", "--format", "dot"]).output
    assert r'"c" [label="c\n\"];<b>|`](x)#"' in dot
