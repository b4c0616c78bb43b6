"""What the commands share: options, and writing text to the terminal or a pipe."""

from __future__ import annotations

import click

PLUGINS = click.option(
    "-p", "--plugin", "plugins", multiple=True, metavar="NAME",
    help="Load a plugin: a .py file or a module; no:NAME switches one off. May be given again.",
)  # fmt: skip
QUIET = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")


def emit(text: str) -> None:
    """Print text in UTF-8, whatever the terminal's encoding."""
    click.get_binary_stream("stdout").write(text.encode())
