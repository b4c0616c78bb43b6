"""The commands, and what they print."""

from scenario.cli.commands import main as main
