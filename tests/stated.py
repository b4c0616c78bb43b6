"""What makers state about their models, and the documentation's table of it against what is computed.

``python tests/stated.py`` writes docs/catalog.md anew; a test compares the file with what would be written.
"""

from __future__ import annotations

import csv
import json
from functools import cache
from importlib import resources
from pathlib import Path

import yaml

import scenario
from scenario.catalogs.hf import config as hf

CONFIGS = Path(__file__).parent / "data" / "hf_configs"
DOCUMENT = Path(__file__).parents[1] / "docs" / "catalog.md"
FOLDER = resources.files("scenario.scenarios")


def entries(kind: str) -> dict[str, dict[str, str]]:
    """A catalog file with its numbers as they are written, so that the digits stated can be counted."""
    return yaml.load((FOLDER / f"{kind}.yaml").read_text(encoding="utf-8"), Loader=yaml.BaseLoader)[kind]


def stated_configs() -> dict[str, dict[str, str]]:
    """The configs of this folder by name, with what their makers state."""
    with (Path(__file__).parent / "data" / "stated.csv").open(encoding="utf-8") as stream:
        return {row["config"]: row for row in csv.DictReader(stream)}


@cache
def reading(config: str) -> hf.ConfigReading:
    """What the reader makes of one of the configs."""
    return hf.read(json.loads((CONFIGS / f"{config}.json").read_text(encoding="utf-8")))


@cache
def computed() -> dict[str, dict[str, float]]:
    """The columns of every catalog model, and of every config under its own name."""
    models = {config: {"hf_config": str(CONFIGS / f"{config}.json")} for config in stated_configs()}
    row = {"model": "llama-3-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "vanilla"}
    frame = scenario.run({"version": 1, "models": models, "rows": [row]}).entities["models"]
    return {item["name"]: item for item in frame.iter_rows(named=True)}


def to_digits(value: float, stated: str) -> bool:
    """Whether ``value``, rounded to as many significant digits as ``stated`` has, is ``stated``."""
    digits = len(stated.lower().partition("e")[0].replace(".", "").lstrip("0"))
    return f"{value:.{digits - 1}e}" == f"{float(stated):.{digits - 1}e}"


def active_counts(row: dict[str, float]) -> dict[str, float]:
    """Ways in which makers count active parameters."""
    routers = row["moe_layers"] * row["router_params"]
    counts = {
        "all": row["active_params"], "without the input embedding": row["gemm_params"],
        "without vocabulary tables": row["gemm_params"] - row["embedding_params"],
    }  # fmt: skip
    return counts | {f"{name}{', ' if name != 'all' else ' '}without routers".strip(): count - routers for name, count in counts.items()}


def active_count(row: dict[str, float], stated: str) -> tuple[str, float]:
    """The way of counting that gives the stated figure, and its count; the first one when none does."""
    counts = active_counts(row)
    return next(((name, count) for name, count in counts.items() if to_digits(count, stated)), ("all", counts["all"]))


def _billions(value: float | str) -> str:
    if isinstance(value, float):
        return f"{value / 1e9:.6g}"
    digits = value.lower().partition("e")[0].replace(".", "").lstrip("0")
    return f"{float(value) / 1e9:.{max(len(digits), 1)}g}" if float(value) < 1e9 * 10 ** len(digits) else f"{float(value) / 1e9:.0f}"


def _line(name: str, said: dict[str, str], keys: tuple[str, str], source: str) -> str:
    row = computed()[name]
    total, active = (said.get(key, "") for key in keys)
    parts = [name, _billions(total), _billions(row["params"])]
    if active:
        way, count = active_count(row, active)
        parts += [_billions(active), f"{_billions(count)}" + (f" ({way})" if way != "all" else "")]
    else:
        parts += ["", ""]
    return "| " + " | ".join([*parts, source]) + " |"


def document() -> str:
    """The text of docs/catalog.md."""
    head = "| {} | stated | computed | stated active | computed active | source of what is stated |\n| --- | ---: | ---: | ---: | ---: | --- |"
    models = entries("models")
    lines = [
        "# Models and configs against what their makers state", "",
        "Parameters in 10^9. A figure agrees when the computed one, rounded to the digits stated, shows the same digits; the test suite",
        "checks every line. Makers count active parameters in different ways; the way that gives their figure is named. Image and audio",
        "encoders and multi-token-prediction blocks are counted apart. This file is written by `python tests/stated.py`.", "",
        f"## The catalog ({len(models)} models)", "", head.format("model"),
    ]  # fmt: skip
    for name, said in models.items():
        unverified = " (config not read again: unverified)" if said.get("unverified") == "true" else ""
        lines.append(_line(name, said, ("stated_params", "stated_active_params"), said["stated_source"] + unverified))
    lines += ["", "## Configs read with `hf_config`", "",
              "`shape keys only` marks configs of the test suite that hold just the keys that shape the model.", "", head.format("config")]  # fmt: skip
    for name, said in stated_configs().items():
        lines.append(_line(name, said, ("params", "active_params"), f"{said['source']} ({said['text']})"))
    gpus = entries("gpus")
    lines += ["", f"## Accelerators ({len(gpus)})", "", "Dense rates; memory as the driver reports it.", "",
              "| GPU | GB | TB/s | BF16 TFLOP/s | FP8 | FP4 | link GB/s | W | source | date |",
              "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |"]  # fmt: skip
    for name, gpu in gpus.items():
        cells = [name, *(gpu.get(key, "") for key in ("memory_gb", "bandwidth_tb_s", "bf16_tflops", "fp8_tflops", "fp4_tflops", "nvlink_gb_s",
                                                      "watts")), gpu["source"] + (" (unverified)" if gpu.get("unverified") else ""),
                 gpu.get("date", "")]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
