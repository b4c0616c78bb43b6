"""``scenario add-model``: a catalog entry from a Hugging Face config.json, with how each value was derived."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import click

from scenario.cli.options import wrote
from scenario.common.errors import Problem, TableError


@click.command(name="add-model")
@click.argument("config")
@click.option("--name", metavar="NAME", help="Name of the model; else made from the file's name, or its folder's for config.json.")
@click.option("--family", metavar="NAME", default="", help="Read the config as one of this family, whatever its model_type.")
@click.option("-o", "--output", metavar="FILE", help="Write the entry to this file instead of printing it.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def add_model(config: str, name: str | None, family: str, output: str | None, force: bool) -> None:
    """Print the models: entry that CONFIG (a config.json) stands for, to be pasted into a table."""
    from scenario.common import files

    text = entry(config, name or name_for(Path(config)), family)
    if not output:
        click.echo(text, nl=False)
        return
    target = Path(output)
    files.refuse(target)
    if target.exists() and not force:
        raise TableError(Problem(f"{output} is there already", "--force replaces it"))
    wrote(output, files.replace_text(target, text), False)


def name_for(path: Path) -> str:
    """A model's name from its config's path: ``Llama-3.1-8B/config.json`` and ``meta--Llama-3.1-8B.json`` give llama-3.1-8b."""
    stem = path.stem if path.stem != "config" else path.resolve().parent.name
    stem = stem.rpartition("--")[2].lower()
    return re.sub(r"[^a-z0-9._-]+", "-", stem).strip("-._") or "my-model"


def entry(path: str, name: str, family: str = "") -> str:
    """The YAML of one catalog entry, commented; its totals are the engine's."""
    from scenario import api
    from scenario.catalogs.catalog import NAME
    from scenario.catalogs.hf import config as hf
    from scenario.common import emit, texts
    from scenario.model import entities

    if not NAME.match(name):
        raise TableError(Problem(f"'{name}' is not a good name for a model", "letters, digits and . _ -"))
    reading = hf.load(path, family)
    row = {"model": name, "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "vanilla"}
    model: dict[str, object] = {"hf_config": str(Path(path).resolve())}
    if family:
        model["family"] = family
    done = api.run({"version": 1, "models": {name: model}, "rows": [row]}).entities["models"]
    totals = next(item for item in done.iter_rows(named=True) if item["name"] == name)
    lines = [f"# Read from {Path(path).name} as one of the {reading.family} family.",
             f"# {totals['params']:.5g} parameters, {totals['active_params']:.5g} work on a token ({totals['gemm_params']:.5g} without the "
             "input embedding's lookup)"]  # fmt: skip
    if totals["mtp_params"]:
        lines.append(f"# and {totals['mtp_params']:.4g} more in multi-token-prediction blocks.")
    lines += [f"# WARNING: {warning}" for warning in reading.warnings]
    lines += ["models:", f"  {name}:"]
    for field, parameter in entities.MODEL_FIELDS.items():
        value = reading.fields.get(field)
        if value is None or value == parameter.default:
            continue
        shown = ("true" if value else "false") if parameter.high == 1 else f"{value:.12g}"
        how = reading.how.get(field, "")
        lines.append(f"    {field}: {shown}" + (f"  # {how}" if how and how != field else ""))
    lines.append(f"    published_weights: {reading.weights}")
    lines.append(f"    source: {emit.text(Path(path).name, flow=False)}")
    lines.append(f'    date: "{datetime.date.today().isoformat()}"')
    return "\n".join(map(texts.for_line, lines)) + "\n"  # keys and names of a config may hold anything, line ends too
