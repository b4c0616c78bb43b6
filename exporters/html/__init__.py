"""A live page: one file without network or server that computes with the engine's own formulas.

``run table.yaml -o costs.html`` puts scripts, styles and the table's data into one HTML file. Scripts and styles are the
same in every page of a release, and a content security policy names their hashes: nothing else can run there,
whatever a table's texts say. The data is a block of JSON that scripts read and never execute.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib import resources
from typing import BinaryIO

from scenario import Exporter, Result, hookimpl

MOST_ROWS = 20_000
"""Rows that a page holds: more are slow to draw, and better asked of a workbook or of Parquet."""
SCRIPTS = ("uPlot.iife.min.js", "engine.js", "state.js", "files.js", "charts.js", "table.js", "app.js")
STYLES = ("uPlot.min.css", "page.css")


@cache
def part(name: str) -> str:
    """A file of the page."""
    return (resources.files(__package__) / "page" / name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """How a content security policy names an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def inert(data: object) -> str:
    """JSON that no HTML parser takes for anything else."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def write_html(result: Result, stream: BinaryIO) -> None:
    """Write the page. Raises :class:`scenario.FormulaError` for a formula that it could not compute."""
    from scenario.exporters.html.data import payload

    scripts, styles = [part(name) for name in SCRIPTS], [part(name) for name in STYLES]
    policy = "; ".join([
        "default-src 'none'", f"script-src {' '.join(map(digest, scripts))}", f"style-src {' '.join(map(digest, styles))}",
        "img-src data: blob:", "base-uri 'none'", "form-action 'none'",
    ])  # fmt: skip
    page = part("page.html")
    for mark, text in (
        ("@policy@", policy), ("@styles@", "".join(f"<style>{text}</style>" for text in styles)),
        ("@scripts@", "".join(f"<script>{text}</script>" for text in scripts)), ("@data@", inert(payload(result))),
    ):  # fmt: skip
        page = page.replace(mark, text, 1)
    stream.write(page.encode())


@hookimpl
def scenario_exporters():  # type: ignore[no-untyped-def]
    yield Exporter(
        "html",
        (".html", ".htm"),
        write_html,
        "A live page: one file, no network, the engine's own formulas.",
        max_rows=MOST_ROWS,
    )
