"""``python -m scenario``."""

from scenario.cli import main

main(prog_name="scenario")
