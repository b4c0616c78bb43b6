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

from scenario.common import texts


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
        parts = [": ".join(part for part in (where, self.place, self.message) if part), *self._marked()]
        return "\n".join(texts.for_message(part) for part in [*parts, *([f"  {self.hint}"] if self.hint else [])])

    def _marked(self) -> list[str]:
        """The line itself with a mark below; a very long one is shown around the mark only."""
        if not self.source:
            return []
        start = max(0, self.caret - 60)
        before, after = "..." if start else "", "..." if len(self.source) > start + 110 else ""
        shown = "".join(char if char.isprintable() else " " for char in self.source[start : start + 110])
        mark = ["    " + " " * (len(before) + self.caret - 1 - start) + "^"] if self.caret else []
        return ["    " + before + shown + after, *mark]


MOST = 20
"""Problems of one file that are told; the others are counted."""


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
        """At most :data:`MOST` problems of each file, then how many more there are."""
        files: dict[str, list[Problem]] = {}
        for problem in self.problems:
            files.setdefault(problem.file, []).append(problem)
        lines = []
        for file, found in files.items():
            lines += [str(problem) for problem in found[:MOST]]
            if len(found) > MOST:
                rest = len(found) - MOST
                lines.append(texts.for_message(f"{file or 'here'}: and {rest:,} more problem{'s' if rest > 1 else ''}"))
        return "\n".join(lines)

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
