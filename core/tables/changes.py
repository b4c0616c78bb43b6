"""What differs between two tables: one entry per input, each able to carry the old table towards the new one."""

from __future__ import annotations

from dataclasses import replace

from scenario.registry.loaded import Host
from scenario.tables.section import Change, Writing
from scenario.tables.sections import SECTIONS
from scenario.tables.table import Table


def table_changes(old: Table, new: Table, host: Host) -> list[Change]:
    """Everything outside the rows that differs."""
    sides = Writing(old, host), Writing(new, host)
    return [change for section in SECTIONS for change in section.changes(*sides)]


def united(old: Table, new: Table, host: Host) -> Table:
    """The old table with what only the new one has (models, GPUs, curves, trees, columns), which alone moves nothing."""
    found, sides = old, (Writing(old, host), Writing(new, host))
    for section in SECTIONS:
        if section.entries == "still" and section.take:
            for name in section.only_in(*reversed(sides)):
                found = section.take(found, new, (name,))
    # Profiles without a name of their own are lists of rates, given where they are used.
    vectors = replace(found.vectors, profiles={**new.vectors.profiles, **found.vectors.profiles})
    return replace(found, stacks={**new.stacks, **old.stacks}, vectors=vectors)
