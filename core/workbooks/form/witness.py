"""What a sheet held when it was written, as a line of the sheet Source: what stands there beyond it, somebody has added."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

BEGIN = "# as written: "
"""How such a line begins; to a reader of tables it is a remark."""
MOST = 20_000
"""Rows of a sheet that are looked at."""
PLACE = re.compile(r"([A-Z]{1,3})([0-9]{1,7})")


@dataclass
class Witness:
    """What one sheet held when it was written.

    ``texts``: a short hash of each text or number that is no formula; of each text on a sheet that is ``read``
    cell by cell, where what its reader takes is not looked at. None: only what stands beside its ``width`` columns
    is. ``formulas`` and ``comments`` are places, ``choices`` the cells that choose what is shown, with the input that
    each stands for. From the row ``body`` on (0: nowhere) the ``width`` columns hold formulas alone, one row of them per scenario.
    """

    sheet: str
    width: int = 16_384
    texts: Collection[str] | None = None
    formulas: Collection[str] = ()
    comments: Collection[str] = ()
    drawings: int = 0
    choices: dict[str, str] = field(default_factory=dict)
    body: int = 0
    columns: list[str] = field(default_factory=list)
    """The headers of Scenarios from the left, in whose letters the sheet Formulas speaks."""
    read: bool = False
    names: list[str] = field(default_factory=list)
    """What its rows are called, where they are models, GPUs, profiles or curves."""
    fills: list[str] = field(default_factory=list)
    """The colours with which any cell of the workbook was filled."""
    rules: int | None = None
    """Its conditional formats."""

    def line(self) -> str:
        """The line that says it."""
        said: dict[str, Any] = {"sheet": self.sheet, "width": self.width, "comments": runs(self.comments), "drawings": self.drawings}
        if self.texts is not None:
            said |= {"texts": " ".join(sorted(set(self.texts))), "formulas": runs(self.formulas), "choices": self.choices}
        more = {"body": self.body, "columns": self.columns, "read": self.read, "names": self.names, "fills": self.fills}
        said |= {key: value for key, value in more.items() if value}
        if self.rules is not None:
            said["rules"] = self.rules
        return BEGIN + json.dumps(said)

    @staticmethod
    def digest(value: Any) -> str:
        """A short hash of what a cell says, whatever program saved it."""
        text = f"{float(value):.12g}" if isinstance(value, int | float) else " ".join(str(value).split())
        return f"{zlib.crc32(text.encode()) & 0xFFFFFF:06x}"

    @staticmethod
    def of(line: str) -> Witness | None:
        """The mark that a line says; None when it says none."""
        try:
            said = json.loads(line.removeprefix(BEGIN))
            texts = set(str(said["texts"]).split()) if "texts" in said else None
            choices = {str(place): str(name) for place, name in dict(said.get("choices", {})).items()}
            columns, names, fills = ([str(item) for item in list(said.get(key, []))] for key in ("columns", "names", "fills"))
            return Witness(str(said["sheet"]), int(said["width"]), texts, set(places(str(said.get("formulas", "")))),
                           set(places(str(said["comments"]))), int(said["drawings"]), choices, int(said.get("body", 0)), columns, bool(said.get("read")), names, fills,
                           int(said["rules"]) if "rules" in said else None)  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


def runs(cells: Iterable[str]) -> str:
    """Places in short: ``B4 C6:19`` for B4 and C6 to C19."""
    by_column: dict[str, list[int]] = {}
    for place in cells:
        match = PLACE.fullmatch(place)
        if match:
            by_column.setdefault(match[1], []).append(int(match[2]))
    found = []
    for column, numbers in by_column.items():
        start = last = None
        for row in [*sorted(numbers), None]:
            if last is not None and row == last + 1:
                last = row
                continue
            if start is not None:
                found.append(f"{column}{start}" if start == last else f"{column}{start}:{last}")
            start = last = row
    return " ".join(found)


def places(text: str) -> Iterator[str]:
    """The places of :func:`runs`."""
    for match in re.finditer(r"([A-Z]{1,3})([0-9]{1,7})(?::([0-9]{1,7}))?", text):
        first = int(match[2])
        for row in range(first, min(int(match[3] or first), first + MOST) + 1):
            yield f"{match[1]}{row}"
