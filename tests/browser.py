"""Headless Chromium for tests of the live page: the distribution's browser, driven by playwright."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(not CHROMIUM or importlib.util.find_spec("playwright") is None, reason="needs chromium and playwright")


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser of its own, without network."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def opened(browser: Any, path: Path, *, fragment: str = "", **options: Any) -> Any:
    """The page of a file, which must load without an error or a message of the security policy."""
    page = browser.new_context(offline=True, accept_downloads=True, **options).new_page()
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("console", lambda message: page.faults.append(message.text) if message.type in ("error", "warning") else None)
    page.on("request", lambda request: page.faults.append(request.url) if not request.url.startswith(("file:", "data:", "blob:")) else None)
    page.goto(f"{path.as_uri()}{fragment}")
    page.wait_for_function("globalThis.scenarioPage !== undefined")
    assert not page.faults
    return page


def columns(page: Any) -> dict[str, list[Any]]:
    """Every column that the page computes, blank as None, one value per row of the table."""
    found: dict[str, list[Any]] = page.evaluate(
        """() => Object.fromEntries([...scenarioPage.book.rows.columns].map(([name, column]) =>
             [name, [...column.values].map((v) => (Engine.isBlank(v) ? null : v))]))"""
    )
    return found
