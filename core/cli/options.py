"""What the commands share: options, and writing text to the terminal or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import BinaryIO

import click

PLUGINS = click.option(
    "-p", "--plugin", "plugins", multiple=True, metavar="NAME",
    help="Load a plugin: a .py file or a module; no:NAME switches one off. May be given again.",
)  # fmt: skip
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")


def fill(text: str) -> Callable[[BinaryIO], None]:
    """What writes a text into a file that is opened for it."""

    def write(stream: BinaryIO) -> None:
        stream.write(text.encode())

    return write


def emit(text: str) -> None:
    """Print text in UTF-8, whatever the terminal's encoding."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()
