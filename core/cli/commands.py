"""The command line. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from scenario import __version__
from scenario.cli.group import Commands
from scenario.cli.options import PLUGINS, QUIET, wrote
from scenario.common.errors import Problem, TableError


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="scenario")
def main() -> None:
    """How fast does this model decode on this GPU, this way, and what does a million tokens cost?

    Write a table (scenario init), run it (scenario run table.yaml -o costs.xlsx), open the workbook.
    """


@main.command()
@click.argument("table")
@click.option("-o", "--output", metavar="FILE", help="Where to write: .xlsx .html .csv .parquet .md; - is stdout.")
@click.option("--format", "format_", metavar="NAME", help="The format, whatever the file ending says.")
@click.option("--max-rows", type=click.IntRange(1), default=None, help="Allow a table of more rows than 5,000,000.")
@click.option("--keep-overrides", is_flag=True, help="Keep values typed over a workbook's formulas, as visible overrides.")
@PLUGINS
@QUIET
def run(
    table: str, output: str | None, format_: str | None, max_rows: int | None, keep_overrides: bool, plugins: tuple[str, ...], quiet: bool
) -> None:
    """Compute TABLE and write it: a YAML or CSV file, a workbook that comes back, or the name of a bundled table."""
    from scenario.cli import running

    running.run(table, output, format_, max_rows, keep_overrides, plugins, quiet)


@main.command()
@click.argument("table")
@PLUGINS
@QUIET
def check(table: str, plugins: tuple[str, ...], quiet: bool) -> None:
    """Read and check TABLE without computing it; of a workbook, recompute every cell and list what it shows otherwise."""
    from scenario.cli import running

    running.check(table, plugins, quiet)


@main.command()
@click.argument("path", default="table.yaml")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def init(path: str, force: bool) -> None:
    """Write a commented table to start from (table.yaml)."""
    from scenario import api
    from scenario.common import files

    target = Path(path)
    if path.endswith(("/", os.sep)) or target.is_dir():
        raise TableError(Problem(f"{path} is a folder", f"name a file: {Path(path) / 'table.yaml'}"))
    files.refuse(target)
    if target.exists() and not force:
        raise TableError(Problem(f"{path} is there already", "--force replaces it"))
    written = files.replace_text(target, api.bundled()["starter"].read_text(encoding="utf-8"))
    wrote(path, written, True)
    click.echo(f"wrote {path}; next: scenario run {path} -o costs.xlsx")


@main.command()
@click.argument("measurements", nargs=-1, required=True)
@click.option("-o", "--output", metavar="FILE", help="Where to write the constants; tables include the file with hardware: FILE.")
@click.option("--model", help="The model, where the files do not say: a name of the catalog.")
@click.option("--gpu", help="The GPU, where the files do not say.")
@click.option("--gpus", type=float, help="GPUs that served together.")
@click.option("--engine", help="vllm, sglang, trtllm, llamacpp or other.")
@click.option("--batch", type=float, help="Requests that ran together.")
@click.option("--weights", help="Format of the weights: bf16, fp8, nvfp4 ...")
@click.option("--kv", help="Format of the KV cache.")
@click.option("--activations", help="Format that products are computed in: bf16, fp8, fp4.")
@click.option("--models", metavar="TABLE", help="A table whose models: and gpus: the measurements name.")
@click.option("--seed", type=int, default=0, help="Seed of the folds that errors are measured on.")
@QUIET
def calibrate(measurements: tuple[str, ...], output: str | None, models: str | None, seed: int, quiet: bool, **given: Any) -> None:
    """Fit the constants of the estimate to MEASUREMENTS: benchmark results of any mix of formats (see docs/estimate.md)."""
    from scenario.cli import measuring

    measuring.calibrate(measurements, output, given, seed, quiet, models)


@main.command()
@click.argument("logs", nargs=-1, required=True)
@click.option("-o", "--output", metavar="FILE", help="Write the parameters: block of a table here.")
@click.option("--method", default="eagle", help="The method the log is of (default eagle).")
@click.option("--gamma", type=click.IntRange(1, 64), help="Draft tokens per round, where the log does not say.")
@click.option("--source", default="", help="Part of the name of the source to take, where logs hold several.")
@QUIET
def acceptance(logs: tuple[str, ...], output: str | None, method: str, gamma: int | None, source: str, quiet: bool) -> None:
    """Read the acceptance of drafts out of engine LOGS (plain, gzipped, or - for standard input)."""
    from scenario.cli import measuring

    measuring.acceptance(logs, output, method, gamma, source, quiet)


@main.command(name="list")
@click.argument("what", type=click.Choice(["models", "gpus", "methods", "columns", "functions", "presets", "tables", "formats"]))
@PLUGINS
def list_(what: str, plugins: tuple[str, ...]) -> None:
    """List what tables can name, with units and sources."""
    from scenario.cli import lists
    from scenario.registry import host

    lists.print_list(what, host.load(plugins))


@main.command()
@PLUGINS
def plugins(plugins: tuple[str, ...]) -> None:
    """Show the plugins: origin, version, what each adds, and whether it works."""
    from scenario.cli import lists
    from scenario.registry import host

    lists.print_plugins(host.load(plugins))


if __name__ == "__main__":
    main()
