"""What the commands share: options, notes to whoever runs them, and saying where a result went."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from scenario.common import texts

if TYPE_CHECKING:
    from scenario.registry.loaded import Host
    from scenario.tables.table import Table

PLUGINS = click.option(
    "-p", "--plugin", "plugins", multiple=True, metavar="NAME",
    help="Load a plugin: a .py file or a module; no:NAME switches one off. May be given again.",
)  # fmt: skip
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
ELSEWHERE = 3
"""Exit code of a command whose result went to another name than the one that was asked for."""


def emit(text: str) -> None:
    """Print text in UTF-8, whatever the terminal's encoding."""
    sys.stdout.flush()
    sys.stdout.buffer.write(texts.for_terminal(text).encode() if sys.stdout.isatty() else text.encode(errors="replace"))
    sys.stdout.buffer.flush()


def tell(text: str) -> None:
    """A line to whoever runs the command, beside its output."""
    click.echo(texts.for_message(text), err=True)


def wrote(asked: str, written: Path, quiet: bool, more: str = "") -> None:
    """Say where a result went. To another name than ``asked`` it is said even when quiet, and the command ends with 3."""
    elsewhere = written.resolve() != Path(asked).resolve()
    if elsewhere:
        from scenario.common import files

        lock = files.lock_of(Path(asked))
        said = f" ({lock} says so; remove it if that is not true)" if lock else ""
        tell(f"{asked} is open in another program{said}, so it was left as it is")
    if elsewhere or not quiet:
        tell(f"wrote {written}{more}")
    if elsewhere:
        click.get_current_context().exit(ELSEWHERE)


def tell_failures(loaded: Host, quiet: bool) -> None:
    """One line for each installed plugin that does not load; the run goes on without it."""
    for plugin in () if quiet else loaded.failures:
        tell(f"plugin '{plugin.name}' ({plugin.origin}) is left out: {plugin.error}")


def tell_notes(table: Table, quiet: bool) -> None:
    """What the reader of the table left out, and what a config.json said that is not understood."""
    for note in () if quiet else table.notes:
        tell(f"{table.file}: {note}")
    for what, entries in () if quiet else (("model", table.catalog.models), ("GPU", table.catalog.gpus)):
        for entry in entries.values():
            for warning in entry.notes.get("warnings", ()):
                tell(f"{what} '{entry.name}': {warning}")
