"""Running hostile inputs and judging what came of them."""

from __future__ import annotations

import collections
import csv
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import yaml

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
COUNTS = os.environ.get("SCENARIO_FUZZ_COUNTS")
"""A file that gets the number of cases by kind and exit code."""
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Case:
    """An input of a kind, and the command that reads it: ``IN`` is the input's name, ``OUT`` the output's."""

    kind: str
    name: str
    data: bytes
    arguments: tuple[str, ...]

    @property
    def output(self) -> str:
        return next((part for part in self.arguments if part.startswith("OUT")), "")


@dataclass
class Worker:
    """The process that runs the cases; a new one when it has died, and now and then."""

    process: subprocess.Popen[str] | None = None
    done: int = 0
    counts: collections.Counter[str] = field(default_factory=collections.Counter)

    def ask(self, folder: Path, arguments: list[str]) -> tuple[int, str, str]:
        """Exit code, output and errors of a command; the exit code of a process that died is negative."""
        if self.process is None or self.process.poll() is not None or self.done >= 2000:
            self.stop()
            env = {**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            self.process, self.done = subprocess.Popen([sys.executable, str(HERE / "worker.py")], stdin=subprocess.PIPE,
                                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env), 0  # fmt: skip
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self.done += 1
        try:
            process.stdin.write(json.dumps([str(folder), *arguments]) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            return -abs(process.wait() or 1), "", process.stderr.read()
        code, out, err = json.loads(line)
        return code, out, err

    def stop(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()

    def judge(self, case: Case) -> int:
        """Run a case; an assertion fails when anything but a good file or a clear refusal comes of it."""
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            path = Path(folder)
            (path / case.name).write_bytes(case.data)
            arguments = [case.name if part == "IN" else part for part in case.arguments]
            code, out, err = self.ask(path, arguments)
            self.counts[f"{case.kind} {code}"] += 1
            try:
                check(case, path, code, out, err)
            except AssertionError:
                keep(case)
                raise
        return code


def keep(case: Case) -> None:
    """Save what failed where the suite will replay it from now on, once it is known to be worth keeping."""
    folder = Path(os.environ.get("SCENARIO_FUZZ_FOUND", tempfile.gettempdir() + "/scenario-fuzz-found"))
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(case.data + repr(case.arguments).encode()).hexdigest()[:10]
    (folder / f"{case.kind}-{digest}-{case.name}").write_bytes(case.data)
    (folder / f"{case.kind}-{digest}-{case.name}.args").write_text(json.dumps(case.arguments))


def replayed(path: Path) -> Case:
    """A case of the corpus."""
    kind, _, name = path.name.split("-", 2)
    arguments = json.loads(path.with_name(path.name + ".args").read_text(encoding="utf-8"))
    return Case(kind, name, path.read_bytes(), tuple(arguments))


def check(case: Case, folder: Path, code: int, out: str, err: str) -> None:
    """What must hold of every command, whatever it is given."""
    assert code in (0, 1, 2), f"exit code {code}: {err[-2000:]}"
    assert "Traceback" not in err, err[-2000:]
    assert "internal error" not in err, err[-2000:]
    assert code != 2 or err.strip(), "refused without a word"
    assert not _UNSEEN.search(err), f"a control character in {err!r:.500}"
    assert len(err) < 200_000, "endless messages"
    assert (folder / case.name).read_bytes() == case.data, "the input was changed"
    left = {path.name for path in folder.iterdir()} - {case.name}
    assert left == ({case.output} if code == 0 and case.output else set()), f"exit code {code} and {left}"
    if code == 0 and case.output:
        parses(folder / case.output)


def parses(path: Path) -> None:
    """A written file can be read by what reads its format."""
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith((".xml", ".rels")):
                    ElementTree.fromstring(archive.read(name))
        return
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".csv":
        rows = list(csv.reader(text.splitlines(keepends=True)))
        assert len({len(row) for row in rows}) == 1, "rows of different widths"
    elif path.suffix == ".yaml":
        try:
            yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise AssertionError(f"what was written is no YAML: {error}") from None
    elif path.suffix == ".md":
        assert "<" not in text


def write_counts(worker: Worker) -> None:
    """Add the counts of this process to the file of counts."""
    if COUNTS and worker.counts:
        Path(COUNTS).parent.mkdir(parents=True, exist_ok=True)
        with open(COUNTS, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(dict(worker.counts)) + "\n")
