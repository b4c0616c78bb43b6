"""The command ``open``: a table as a live page in the browser."""

from __future__ import annotations

import tempfile
import time
import webbrowser
from pathlib import Path

import click

from scenario.cli.options import PLUGINS, QUIET, tell
from scenario.common.errors import ScenarioError

EVERY_S = 0.5
"""How often ``--watch`` looks at the table, in seconds."""


@click.command("open")
@click.argument("table")
@click.option("-o", "--output", metavar="FILE", help="Where to write the page; without it, in a temporary folder.")
@click.option("--watch", is_flag=True, help="Write the page again whenever the table is saved; end with Ctrl-C.")
@click.option("--browser/--no-browser", default=True, help="Whether to open the page, or only to write it.")
@PLUGINS
@QUIET
def open(table: str, output: str | None, watch: bool, browser: bool, plugins: tuple[str, ...], quiet: bool) -> None:
    """Compute TABLE and open it as a live page: one file, no server."""
    from scenario import api

    target = Path(output) if output else Path(tempfile.mkdtemp(prefix="scenario-")) / f"{Path(table).stem or 'page'}.html"
    written = _write(table, target, plugins)
    if not quiet or not browser:
        tell(f"wrote {written}")
    if browser and not webbrowser.open(written.resolve().as_uri()):
        tell(f"no browser was found: open {written}")
    source = Path(str(api.locate(table)))
    seen = _stamp(source)
    while watch:
        time.sleep(EVERY_S)
        now = _stamp(source)
        if now in (seen, None):
            continue
        seen = now
        try:
            tell(f"wrote {_write(table, target, plugins)} again; reload the page")
        except ScenarioError as error:  # a table half typed: the page stays as it was
            tell(str(error))


def _write(table: str, target: Path, plugins: tuple[str, ...]) -> Path:
    """The page of the table as it is now."""
    from scenario import api

    return api.run(table, plugins).to(target, "html")


def _stamp(path: Path) -> tuple[int, int] | None:
    """What changes when a file is saved; None while it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
