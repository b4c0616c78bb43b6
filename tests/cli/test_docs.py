"""The documentation: the reference is what the code says now, and every command that is shown runs and prints what is shown."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from scenario import api
from scenario.cli import reference
from scenario.cli.commands import main
from scenario.registry import host
from scenario.tables import schema
from scenario.tables.sections import KEYS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(?:^<!-- file: (?P<file>\S+) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.M | re.S)


class Block(NamedTuple):
    """A fenced block: a file to write, or commands with what they print."""

    file: str | None
    kind: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*match.group("file", "kind", "text")) for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def steps(console: str) -> list[tuple[str, list[str]]]:
    """The commands of a console block, each with the lines it prints."""
    found: list[tuple[str, list[str]]] = []
    for line in console.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def missing(wanted: list[str], printed: str) -> str:
    """The first wanted line that is not printed where it should be; ``...`` stands for any lines, or for the rest of one."""
    lines = printed.splitlines()
    place, gap = 0, False
    for line in wanted:
        if line == "...":
            gap = True
            continue
        pattern = re.compile(r".*?".join(re.escape(part.rstrip() if part else part) for part in line.split("...")) + r"\s*\Z")
        here = range(place, len(lines)) if gap else range(place, min(place + 1, len(lines)))
        at = next((index for index in here if pattern.match(lines[index])), None)
        if at is None:
            return line
        place, gap = at + 1, False
    return "" if gap or place == len(lines) else f"(nothing more) but there is: {lines[place]}"


def run(command: str) -> tuple[int, str]:
    """Exit code and output of a command: in this process where it is one of ours and needs no shell, which is quicker."""
    words = shlex.split(command)
    if words[0] == "scenario" and not set(command) & set("|>;&"):
        done = CliRunner().invoke(main, words[1:])
        return done.exit_code, done.output
    shell = subprocess.run(["bash", "-c", command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return shell.returncode, shell.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_documented_commands_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each console block of a page, run in a folder with the page's files, prints the lines shown and ends as shown."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "my_draft.py").write_bytes((ROOT / "examples" / "my_draft.py").read_bytes())
    for block in blocks(page):
        if block.file:
            target = tmp_path / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        if block.kind != "console":
            continue
        for command, lines in steps(block.text):
            ended, printed = run(command)
            code = 0
            if lines and (found := re.fullmatch(r"\[exit (\d+)\]", lines[-1])):
                code, lines = int(found[1]), lines[:-1]
            assert ended == code, f"{command}\n{printed}"
            assert missing(lines, printed) == "", f"{command}\n{printed}"


def test_pages_have_commands() -> None:
    """Tutorial, how-to, explanation and README show commands, so that the test above has something to run."""
    for name in ("README", "tutorial", "how-to", "explanation"):
        page = next(page for page in PAGES if page.stem == name)
        assert any(block.kind == "console" for block in blocks(page)), name


@pytest.mark.parametrize("name", reference.pages())
def test_the_reference_is_fresh(name: str) -> None:
    """Each generated page is what ``python -m scenario.cli.reference docs/`` writes."""
    made = reference.pages()[name]
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == made, "run: python -m scenario.cli.reference docs/"


def test_links_lead_somewhere() -> None:
    """Every relative link of README and docs names a file that is there, and a heading that is there."""
    for page in [*PAGES, *(ROOT / "docs" / "reference").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]*)(#[^)]*)?\)", page.read_text(encoding="utf-8")):
            path, anchor = target
            file = page.parent / path if path else page
            assert file.exists(), f"{page.name}: {path}"
            if anchor:
                heads = [line.lstrip("# ") for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
                anchors = {"#" + re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
                assert anchor in anchors, f"{page.name}: {path}{anchor}"


def test_the_tutorials_method_is_the_sample_package() -> None:
    """The tutorial's module and test are those of examples/scenario-layerskip; the module takes at most 25 lines."""
    files = {block.file: block.text for block in blocks(ROOT / "docs" / "tutorial.md") if block.file}
    module = files["scenario-layerskip/scenario_layerskip.py"]
    assert module == (ROOT / "examples" / "scenario-layerskip" / "scenario_layerskip.py").read_text(encoding="utf-8")
    assert len(module.splitlines()) <= 25
    test = (ROOT / "examples" / "scenario-layerskip" / "tests" / "test_layerskip.py").read_text(encoding="utf-8")
    assert files["scenario-layerskip/tests/test_layerskip.py"] in test.partition("\n\n")[2]


def validator() -> jsonschema.Draft7Validator:
    made = schema.table_schema(host.load(third_party=False))
    jsonschema.Draft7Validator.check_schema(made)
    return jsonschema.Draft7Validator(made)


@pytest.mark.parametrize("name", api.bundled())
def test_bundled_tables_fit_the_schema(name: str) -> None:
    """An editor finds nothing wrong with a table that the program reads."""
    found = validator().iter_errors(yaml.safe_load(api.bundled()[name].read_text(encoding="utf-8")))
    assert [error.message for error in found] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tables_of_the_docs_fit_the_schema(page: Path) -> None:
    """So does every table that the documentation shows."""
    for block in blocks(page):
        if block.file and block.file.endswith(".yaml") and "version:" in block.text:
            assert [error.message for error in validator().iter_errors(yaml.safe_load(block.text))] == [], block.file


ROW = "rows: [{model: llama-3.1-8b, gpu: h100-sxm, batch: 1, context: 0, method: vanilla}]"


@pytest.mark.parametrize(
    "text",
    [
        f"version: 2\n{ROW}", f"version: 1\ngird: {{}}\n{ROW}", "version: 1\nrows: [{modle: x}]", "version: 1\ntitle: no rows",
        f"version: 1\n{ROW}\ndefaults: {{weights: bf61}}", f"version: 1\n{ROW}\nparameters: {{eagle: {{alpha: 1.5}}}}",
        f"version: 1\n{ROW}\nparameters: {{eagel: {{alpha: 0.5}}}}", f"version: 1\n{ROW}\nprofiles: {{p: [0.5, 2]}}",
        "version: 1\nrows: [{batch: 0}]", f"version: 1\n{ROW}\ncolumns: {{x: {{unit: ms}}}}",
    ],
)  # fmt: skip
def test_the_schema_finds_what_an_editor_should(text: str) -> None:
    """Misspelt keys, values out of range and missing parts are marked while typing."""
    assert list(validator().iter_errors(yaml.safe_load(text)))


def test_the_schema_knows_every_key() -> None:
    """Each key of the table format is in the schema with its description, and the schema knows no key that the format lacks."""
    made = schema.table_schema(host.load(third_party=False))
    assert list(made["properties"]) == list(KEYS)
    assert all(len(made["properties"][key]) > 1 and made["properties"][key]["description"] for key in KEYS)


def test_the_schema_command_prints_json() -> None:
    """``scenario schema`` prints the file under docs."""
    done = subprocess.run([sys.executable, "-m", "scenario", "schema"], capture_output=True, check=True)
    assert json.loads(done.stdout)["properties"]["version"] == {"description": "Version of the table format: 1.", "const": 1}
