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

    def line(self) -> str:
        """The line that says it."""
        said: dict[str, Any] = {"sheet": self.sheet, "width": self.width, "comments": runs(self.comments), "drawings": self.drawings}
        if self.texts is not None:
            said |= {"texts": " ".join(sorted(set(self.texts))), "formulas": runs(self.formulas), "choices": self.choices}
        more = {"body": self.body, "columns": self.columns, "read": self.read, "names": self.names}
        return BEGIN + json.dumps(said | {key: value for key, value in more.items() if value})

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
            columns, names = ([str(item) for item in list(said.get(key, []))] for key in ("columns", "names"))
            formulas, comments = (set(places(str(said.get(key, "")))) for key in ("formulas", "comments"))
            return Witness(str(said["sheet"]), int(said["width"]), texts, formulas, comments, int(said["drawings"]), choices,
                           int(said.get("body", 0)), columns, bool(said.get("read")), names)  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None


def split(place: str) -> tuple[str, int]:
    """The letters and the number of a place, or of the first place of a run."""
    match = PLACE.match(place)
    return (match[1].rjust(3), int(match[2])) if match else ("", 0)


def runs(cells: Iterable[str]) -> str:
    """Places in short: ``B4 C6:C19`` for B4 and C6 to C19."""
    by_column: dict[str, set[int]] = {}
    for place in cells:
        match = PLACE.fullmatch(place)
        if match:
            by_column.setdefault(match[1], set()).add(int(match[2]))
    found = []
    for column, numbers in by_column.items():
        starts = sorted(row for row in numbers if row - 1 not in numbers)
        ends = sorted(row for row in numbers if row + 1 not in numbers)
        found += [f"{column}{a}" if a == b else f"{column}{a}:{column}{b}" for a, b in zip(starts, ends, strict=True)]
    return " ".join(found)


def places(text: str) -> Iterator[str]:
    """The places of :func:`runs`."""
    for column, first, last in re.findall(r"([A-Z]{1,3})([0-9]{1,7})(?::[A-Z]{0,3}([0-9]{1,7}))?", text):
        for row in range(int(first), min(int(last or first), int(first) + MOST) + 1):
            yield f"{column}{row}"
