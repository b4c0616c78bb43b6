"""The command line. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import click

from scenario import __version__
from scenario.cli.options import PLUGINS, QUIET
from scenario.common.errors import OutputError, Problem, ScenarioError, TableError

# Commands in modules of their own, imported when they are asked for; their modules import nothing heavy themselves.
LATER = {
    "diff": "diff", "export-table": "export", "add-model": "models",
    "explain": "explain", "graph": "explain", "simulate": "simulate",
    "new-plugin": "author", "schema": "author",
    "best": "answers", "sensitivity": "answers", "compare": "answers",
}  # fmt: skip


class Commands(click.Group):
    """Turns every error into one clear message and an exit code: 2 for input, 1 for what went wrong outside it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *LATER})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in LATER:
            command: click.Command = getattr(importlib.import_module(f"scenario.cli.{LATER[cmd_name]}"), cmd_name.replace("-", "_"))
            return command
        return super().get_command(ctx, cmd_name)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed by whoever started us
                setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # as long as the program runs
        sys.unraisablehook = _unraisable
        if threading.current_thread() is threading.main_thread():
            for stop in (signal.SIGTERM, getattr(signal, "SIGHUP", None)):
                # A signal that is ignored (nohup) stays ignored.
                if stop is not None and signal.getsignal(stop) is signal.SIG_DFL:
                    signal.signal(stop, _stop)
        return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            value = super().invoke(ctx)
            sys.stdout.flush()  # here, where it can still be answered for
            return value
        except ScenarioError as error:
            click.echo(f"{error}", err=True)
            ctx.exit(error.exit_code)
        except BrokenPipeError:
            # The reader of our output has gone; nothing is wrong.
            _drop_stdout()
            ctx.exit(0)
        except OSError as error:
            if error.filename is None and error.errno in (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG):
                _drop_stdout()
                click.echo(f"the output cannot be written: {error.strerror}", err=True)
                ctx.exit(1)
            self.internal(ctx, error)
        except (click.ClickException, click.exceptions.Exit, click.Abort, KeyboardInterrupt):
            raise
        except MemoryError:
            click.echo("there is not enough memory for this many rows", err=True)
            ctx.exit(1)
        except Exception as error:
            self.internal(ctx, error)

    def internal(self, ctx: click.Context, error: Exception) -> None:
        """A fault of this program, in one line unless someone asks for more."""
        if os.environ.get("SCENARIO_DEBUG"):
            raise error
        said = " ".join(str(error).split())[:500]
        click.echo(f"internal error, please report it: {type(error).__name__}: {said}\n  SCENARIO_DEBUG=1 shows where", err=True)
        ctx.exit(1)


def _unraisable(event: Any, tell: Callable[[Any], None] = sys.unraisablehook) -> None:
    """What goes wrong where nobody can answer for it; a full disk has been told of by then."""
    if not (isinstance(event.exc_value, OSError) and event.exc_value.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)):
        tell(event)


def _stop(number: int, frame: object) -> None:
    """End in an orderly way, so that unfinished files are removed."""
    from scenario import output as files

    files.signalled.append(number)
    sys.exit(128 + number)


def _drop_stdout() -> None:
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="scenario")
def main() -> None:
    """How fast does this model decode on this GPU, this way, and what does a million tokens cost?

    Write a table (scenario init), run it (scenario run table.yaml -o costs.xlsx), open the workbook.
    """


@main.command()
@click.argument("table")
@click.option("-o", "--output", metavar="FILE", help="Where to write: .xlsx .csv .parquet .md; - is stdout.")
@click.option("--format", "format_", metavar="NAME", help="The format, whatever the file ending says.")
@click.option("--max-rows", type=click.IntRange(1), default=None, help="Allow a table of more rows than 5,000,000.")
@click.option("--keep-overrides", is_flag=True, help="Keep values typed over a workbook's formulas, as visible overrides.")
@PLUGINS
@QUIET
def run(
    table: str, output: str | None, format_: str | None, max_rows: int | None, keep_overrides: bool, plugins: tuple[str, ...], quiet: bool
) -> None:
    """Compute TABLE and write it: a YAML or CSV file, a workbook that comes back, or the name of a bundled table."""
    from scenario import api, result
    from scenario import output as files
    from scenario.registry import host
    from scenario.tables import table as tables

    _refuse_workbook(table)
    loaded = host.load(plugins)
    exporter: Any = None
    if output == "-":
        exporter = files.exporter_for(loaded, "-", format_ or "csv")
        if not exporter.text and sys.stdout.isatty():
            raise _input(f"format '{exporter.name}' is not text, and stdout is a terminal", "name a file: -o FILE")
    elif output or format_:
        if not output:
            raise click.UsageError("--format needs -o FILE (or -o -)")
        exporter = files.exporter_for(loaded, output, format_)
        if Path(table).exists() and Path(output).exists() and os.path.samefile(table, output):
            raise _input("the output would replace the table itself", "choose another name")
        parent = Path(output).parent
        if not parent.is_dir():
            raise OutputError(Problem(f"cannot be written: the folder {parent} does not exist", file=output))
    overrides = "keep" if keep_overrides else "refuse"
    book, loaded = api.check(table, max_rows=max_rows or tables.MAX_ROWS, host=loaded, overrides=overrides)
    if exporter is not None and book.where is None:
        files.check_size(exporter, book.table.rows.height)
    _tell_failures(loaded, quiet)
    _tell_notes(book.table, quiet)
    with _Progress(quiet) as progress:
        computed = result.evaluate(book, loaded, progress)
        if output == "-":
            assert exporter is not None
            files.check_size(exporter, computed.full.height)
            files.fill(exporter, computed, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            _tell_lost(book.table, computed, quiet)
            return
        written = files.write(Path(output), exporter, computed) if output and exporter else None
    if not quiet:
        from scenario.cli import terminal

        _tell_lost(book.table, computed, quiet)
        terminal.print_result(computed)
        if written is not None:
            if output and written.resolve() != Path(output).resolve():
                click.echo(f"{output} is open in another program, so it was left as it is", err=True)
            click.echo(f"wrote {written}", err=True)


@main.command()
@click.argument("table")
@PLUGINS
@QUIET
def check(table: str, plugins: tuple[str, ...], quiet: bool) -> None:
    """Read and check TABLE without computing it; of a workbook, recompute every cell and list what it shows otherwise."""
    from scenario import api

    _refuse_workbook(table)
    if table.lower().endswith((".xlsx", ".xlsm")):
        _check_workbook(table, plugins, quiet)
        return
    book, loaded = api.check(table, plugins)
    _tell_failures(loaded, quiet)
    _tell_notes(book.table, quiet)
    if not quiet:
        rows = book.table.rows.height
        click.echo(f"{table}: good: {rows:,} row{'s' if rows != 1 else ''}, {len(book.public)} columns")


@main.command()
@click.argument("path", default="table.yaml")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def init(path: str, force: bool) -> None:
    """Write a commented table to start from (table.yaml)."""
    from scenario import api
    from scenario import output as files

    target = Path(path)
    if path.endswith(("/", os.sep)) or target.is_dir():
        raise _input(f"{path} is a folder", f"name a file: {Path(path) / 'table.yaml'}")
    if target.exists() and not force:
        raise _input(f"{path} is there already", "--force replaces it")
    text = api.bundled()["starter"].read_bytes()
    def fill(stream: BinaryIO) -> None:
        stream.write(text)

    files.replace(target, fill)
    click.echo(f"wrote {path}; next: scenario run {path} -o costs.xlsx")


@main.command()
@click.argument("measurements", nargs=-1, required=True)
@click.option("-o", "--output", metavar="FILE", help="Where to write the constants; tables include the file with hardware: FILE.")
@click.option("--model", help="The model, where the files do not say: a name of the catalog.")
@click.option("--gpu", help="The GPU, where the files do not say.")
@click.option("--gpus", type=float, help="GPUs that served together.")
@click.option("--engine", help="vllm, sglang, trtllm, llamacpp or other.")
@click.option("--batch", type=float, help="Requests that ran together.")
@click.option("--weights", help="Format of the weights: bf16, fp8, nvfp4 ...")
@click.option("--kv", help="Format of the KV cache.")
@click.option("--activations", help="Format that products are computed in: bf16, fp8, fp4.")
@click.option("--seed", type=int, default=0, help="Seed of the folds that errors are measured on.")
@QUIET
def calibrate(measurements: tuple[str, ...], output: str | None, seed: int, quiet: bool, **given: Any) -> None:
    """Fit the constants of the estimate to MEASUREMENTS: benchmark results of any mix of formats (see docs/estimate.md)."""
    from scenario.cli import measuring

    measuring.calibrate(measurements, output, given, seed, quiet)


@main.command()
@click.argument("logs", nargs=-1, required=True)
@click.option("-o", "--output", metavar="FILE", help="Write the parameters: block of a table here.")
@click.option("--method", default="eagle", help="The method the log is of (default eagle).")
@click.option("--gamma", type=click.IntRange(1, 16), help="Draft tokens per round, where the log does not say.")
@click.option("--source", default="", help="Part of the name of the source to take, where logs hold several.")
@QUIET
def acceptance(logs: tuple[str, ...], output: str | None, method: str, gamma: int | None, source: str, quiet: bool) -> None:
    """Read the acceptance of drafts out of engine LOGS (plain, gzipped, or - for standard input)."""
    from scenario.cli import measuring

    measuring.acceptance(logs, output, method, gamma, source, quiet)


@main.command(name="list")
@click.argument("what", type=click.Choice(["models", "gpus", "methods", "columns", "functions", "presets", "tables", "formats"]))
@PLUGINS
def list_(what: str, plugins: tuple[str, ...]) -> None:
    """List what tables can name, with units and sources."""
    from scenario.cli import terminal
    from scenario.registry import host

    terminal.print_list(what, host.load(plugins))


@main.command()
@PLUGINS
def plugins(plugins: tuple[str, ...]) -> None:
    """Show the plugins: origin, version, what each adds, and whether it works."""
    from scenario.cli import terminal
    from scenario.registry import host

    terminal.print_plugins(host.load(plugins))


def _input(message: str, hint: str) -> TableError:
    return TableError(Problem(message, hint))


def _refuse_workbook(table: str) -> None:
    if table.lower().endswith((".xls", ".ods", ".parquet")):
        raise TableError(Problem("a table is a YAML file, a CSV file or an .xlsx workbook", "save it as .xlsx", file=table))


def _check_workbook(table: str, plugins: tuple[str, ...], quiet: bool) -> None:
    """Exit code 1 when a cell shows something else than the engine computes."""
    from scenario.cli import terminal
    from scenario.registry import host
    from scenario.workbooks import check as xlsx_check

    loaded = host.load(plugins)
    _tell_failures(loaded, quiet)
    found = xlsx_check.check(table, loaded)
    if not quiet:
        for note in found.notes:
            click.echo(f"{table}: {note}", err=True)
        terminal.print_check(table, found)
    if found.differences:
        click.get_current_context().exit(1)


def _tell_failures(loaded: Any, quiet: bool) -> None:
    """One line for each installed plugin that does not load; the run goes on without it."""
    if not quiet:
        for plugin in loaded.failures:
            click.echo(f"plugin '{plugin.name}' ({plugin.origin}) is left out: {plugin.error}", err=True)


def _tell_lost(table: Any, computed: Any, quiet: bool) -> None:
    """What the new file could not hold of what an analyst had added to the old one."""
    for note in () if quiet else computed.lost:
        click.echo(f"{table.file}: {note}", err=True)


def _tell_notes(table: Any, quiet: bool) -> None:
    """What the reader of the table left out, and what a config.json said that is not understood."""
    for note in () if quiet else table.notes:
        click.echo(f"{table.file}: {note}", err=True)
    for model in () if quiet else table.catalog.models.values():
        for warning in model.notes.get("warnings", ()):
            click.echo(f"model '{model.name}': {warning}", err=True)


class _Progress:
    """A bar on stderr, once work has taken a second and only for a person at a terminal."""

    def __init__(self, quiet: bool) -> None:
        self.wanted = not quiet and sys.stderr.isatty()
        self.start = time.monotonic()
        self.bar: Any = None
        self.task: Any = None

    def __enter__(self) -> Callable[[int, int], None] | None:
        return self.update if self.wanted else None

    def update(self, done: int, total: int) -> None:
        if self.bar is None and time.monotonic() - self.start > 1 and done < total:
            from rich.console import Console
            from rich.progress import Progress

            self.bar = Progress(console=Console(stderr=True), transient=True)
            self.bar.start()
            self.task = self.bar.add_task("computing", total=total)
        if self.bar is not None:
            self.bar.update(self.task, completed=done)

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()


if __name__ == "__main__":
    main()
