"""Everything that can go wrong for a user, as one small tree.

    ScenarioError            one or more problems; the command line exits with 2
    |-- FormulaError         a formula cannot be read or does not fit its names
    |-- TableError           a table, catalog or workbook says something that cannot be used
    |-- PluginError          a plugin that the user named cannot be used
    `-- OutputError          a result cannot be written; the command line exits with 1

An error keeps its parts (:class:`Problem`) and turns them into text only when printed, so a caller
may show them in its own way. All of them survive pickling.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, and where.

    ``line`` and ``column`` count from 1; 0 means unknown. ``source`` is the line of text itself and
    ``caret`` the column in it at which the mark belongs (1 = first character, 0 = no mark).
    ``place`` names a spot that is not a line of a file, such as a sheet and cell or a column's name.
    """

    message: str
    hint: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    source: str = ""
    caret: int = 0
    place: str = ""

    def __str__(self) -> str:
        where = self.file
        if self.line:
            where += f":{self.line}:{self.column}" if where else f"line {self.line}, column {self.column}"
        head = ": ".join(part for part in (where, self.place, self.message) if part)
        lines = [head]
        if self.source:
            # A very long line is shown around the mark only.
            start = max(0, self.caret - 60)
            before, after = "..." if start else "", "..." if len(self.source) > start + 110 else ""
            shown = self.source[start : start + 110]
            lines.append("    " + before + "".join(char if char.isprintable() else " " for char in shown) + after)
            if self.caret:
                lines.append("    " + " " * (len(before) + self.caret - 1 - start) + "^")
        if self.hint:
            lines.append("  " + self.hint)
        return "\n".join(lines)


class ScenarioError(Exception):
    """One or more problems, all found before anything was written.

    ``problems`` holds them in reading order.
    """

    exit_code = 2

    def __init__(self, problems: str | Problem | Iterable[Problem], hint: str = "") -> None:
        if isinstance(problems, str):
            problems = [Problem(problems, hint)]
        elif isinstance(problems, Problem):
            problems = [problems]
        self.problems: tuple[Problem, ...] = tuple(dict.fromkeys(problems))
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)

    def at(self, **parts: str) -> ScenarioError:
        """The same error with ``file`` or ``place`` filled in where a problem lacks it."""
        filled = [
            replace(problem, **{key: value for key, value in parts.items() if not getattr(problem, key)})  # type: ignore[arg-type]
            for problem in self.problems
        ]
        return type(self)(filled)


class FormulaError(ScenarioError):
    """A formula cannot be read, or does not fit the names it uses."""


class TableError(ScenarioError):
    """A table, a catalog or a workbook says something that cannot be used."""


class PluginError(ScenarioError):
    """A plugin that the user named cannot be loaded or breaks its contract."""


class OutputError(ScenarioError):
    """A result cannot be written. What stood at the target before is untouched."""

    exit_code = 1


def nearest(word: str, known: Iterable[str], say: str = "did you mean {}?") -> str:
    """A suggestion for a misspelt ``word`` out of ``known``, or an empty text when nothing is near."""
    word = word.lower()[:200]
    options = {name.lower(): name for name in known}
    longer = sorted(name for name in options if name.startswith(word)) if len(word) > 2 else []
    found = longer[:3] or difflib.get_close_matches(word, options, n=2, cutoff=0.6)
    return say.format(" or ".join(f"'{options[name]}'" for name in found)) if found else ""
