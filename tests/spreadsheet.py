"""Recalculation of workbooks by LibreOffice, for tests that want an independent engine's opinion."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

SOFFICE = shutil.which("soffice")
"""The LibreOffice program, or None where it is not installed."""

needs_soffice = pytest.mark.skipif(SOFFICE is None, reason="LibreOffice (soffice) is not installed")

# LibreOffice trusts the values that a workbook carries unless its profile says "always recalculate" (0).
_PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema"
           xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load"><prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
"""


def recalculate(path: str | Path, tmp: str | Path, timeout: float = 180) -> Path:
    """A copy of the workbook at ``path``, under ``tmp``, with every formula calculated anew by LibreOffice.

    Values that the workbook carried are not trusted. Each call has a LibreOffice profile of its own, so that
    tests may run side by side. Read the copy with ``openpyxl.load_workbook(copy, data_only=True)``.
    """
    return _convert(path, tmp, "xlsx:Calc MS Excel 2007 XML", "{stem}.xlsx", timeout)


def recalculated_sheet(path: str | Path, tmp: str | Path, sheet: str, header: int, timeout: float = 180) -> pl.DataFrame:
    """The texts of one sheet after a recalculation, below its ``header`` row (1 is the first): quick for long sheets.

    Numbers are written as they are, with 15 digits; a percentage ends in ``%``.
    """
    every_sheet = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false,false,false,-1"
    text = _convert(path, tmp, every_sheet, "{stem}-" + sheet + ".csv", timeout)
    return pl.read_csv(text, skip_lines=header - 1, infer_schema=False, truncate_ragged_lines=True)


def _convert(path: str | Path, tmp: str | Path, filter_: str, name: str, timeout: float) -> Path:
    """What LibreOffice makes of a workbook, as the file called ``name``."""
    if SOFFICE is None:
        pytest.skip("LibreOffice (soffice) is not installed")
    path, tmp = Path(path).resolve(), Path(tmp).resolve()
    profile, out = tmp / "soffice-profile", tmp / "recalculated"
    (profile / "user").mkdir(parents=True, exist_ok=True)
    settings = profile / "user" / "registrymodifications.xcu"
    if not settings.exists():
        settings.write_text(_PROFILE, encoding="utf-8")
    out.mkdir(exist_ok=True)
    target = out / name.format(stem=path.stem)
    target.unlink(missing_ok=True)
    command = [
        SOFFICE, f"-env:UserInstallation={profile.as_uri()}", "--headless", "--norestore", "--convert-to", filter_, "--outdir", str(out), str(path),
    ]  # fmt: skip
    said = ""
    for _ in range(2):  # a new profile may make the first run stop without a word
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        said = f"exit {done.returncode}: {done.stdout} {done.stderr}"
        if target.exists():
            return target
    raise AssertionError(f"LibreOffice wrote no {target.name}: {said}")
