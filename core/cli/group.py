"""The group of commands: it turns every error into one clear message and an exit code."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
from typing import Any

import click

from scenario.common import signals
from scenario.common.errors import ScenarioError

# Commands in modules of their own, imported when they are asked for; their modules import nothing heavy themselves.
LATER = {
    "diff": "diff", "export-table": "export", "export-sql": "sql", "add-model": "models",
    "explain": "explain", "graph": "explain", "simulate": "simulate",
    "new-plugin": "author", "schema": "author", "open": "opening", "from-command": "from_command",
    "best": "answers", "sensitivity": "answers", "compare": "answers",
}  # fmt: skip
DISK = (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG)
LOST = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


class Commands(click.Group):
    """Exit codes: 2 for input, 1 for what went wrong outside it, 128 + signal where someone asked to stop."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *LATER})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in LATER:
            module = importlib.import_module(f"scenario.cli.{LATER[cmd_name]}")
            command: click.Command = getattr(module, cmd_name.replace("-", "_"))
            return command
        return super().get_command(ctx, cmd_name)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed by whoever started us
                setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # as long as the program runs
        sys.unraisablehook = _unraisable
        signals.listen("SIGTERM", "SIGHUP")
        return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        from scenario.common import inputs

        with inputs.remembered():
            try:
                value = super().invoke(ctx)
                sys.stdout.flush()  # here, where it can still be answered for
                return value
            except (click.ClickException, click.exceptions.Exit, click.Abort, SystemExit):
                raise
            except KeyboardInterrupt:  # raised by a library that has taken the signal for itself
                signals.say(2)
                ctx.exit(130)
            except BaseException as error:
                ctx.exit(self.answer(error))

    def answer(self, error: BaseException) -> int:
        """Say what went wrong, in one line unless someone asks for more; returns the exit code."""
        if isinstance(error, ScenarioError):
            click.echo(f"{error}", err=True)
            return error.exit_code
        if isinstance(error, BrokenPipeError):  # the reader of our output has gone; nothing is wrong
            _drop_stdout()
            return 0
        if isinstance(error, OSError) and error.filename is None and error.errno in DISK:
            _drop_stdout()
            click.echo(f"the output cannot be written: {error.strerror}", err=True)
            return 1
        if isinstance(error, MemoryError) or isinstance(error.__context__, MemoryError):
            click.echo("there is not enough memory for this many rows", err=True)
            return 1
        if os.environ.get("SCENARIO_DEBUG"):
            raise error
        said = " ".join(str(error).split())[:500]
        click.echo(f"internal error, please report it: {type(error).__name__}: {said}\n  SCENARIO_DEBUG=1 shows where", err=True)
        return 1


def _unraisable(event: Any) -> None:
    """What goes wrong where nobody can answer for it; a full disk has been told of by then."""
    if not (isinstance(event.exc_value, OSError) and event.exc_value.errno in LOST):
        signals.raised_nowhere(event)


def _drop_stdout() -> None:
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
