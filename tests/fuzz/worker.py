"""A process that runs commands one after the other within limits of memory and processor time.

Each line of standard input is a JSON list of arguments with a folder in front; the answer is a JSON line with the exit
code and what was printed. A command that takes more than :data:`SECONDS` of processor time ends the process (SIGXCPU).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys

SECONDS = 20
MEMORY = 6 << 30


def run(arguments: list[str]) -> tuple[int, str, str]:
    """One command in this process: exit code, standard output, standard error."""
    from scenario.cli.commands import main

    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments, prog_name="scenario")
        except SystemExit as done:
            code = done.code if isinstance(done.code, int) else int(bool(done.code))
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8", "replace"))  # type: ignore[attr-defined]
    return code, *texts  # type: ignore[return-value]


def serve() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    for line in sys.stdin:
        folder, *arguments = json.loads(line)
        os.chdir(folder)
        used = resource.getrusage(resource.RUSAGE_SELF)
        soft = int(used.ru_utime + used.ru_stime) + SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))
        answers.write(json.dumps(run(arguments)) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
