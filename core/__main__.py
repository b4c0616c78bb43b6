"""``python -m scenario``."""

from scenario.cli.commands import main

main(prog_name="scenario")
