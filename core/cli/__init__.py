"""The commands, and what they print."""

from __future__ import annotations

from typing import Any

from scenario.common import signals


def main(*args: Any, **keys: Any) -> Any:
    """The entry point of the command ``scenario``: it listens to signals before it imports anything else."""
    signals.listen("SIGINT", "SIGTERM", "SIGHUP")
    from scenario.cli import commands

    return commands.main(*args, **keys)
