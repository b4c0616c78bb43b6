"""The series' summary table, whole: every number that it prints, from the command and from the workbook, before and after edits.

``data/series_table.csv`` holds the table as printed. What cells must hold after an assumption is changed is worked out here from
the models' dimensions, apart from the engine.
"""

from __future__ import annotations

import csv
import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from spreadsheet import needs_soffice
from workbooks import edit, recalculate_all

import scenario
from scenario.api import bundled

with (Path(__file__).parents[1] / "data" / "series_table.csv").open(encoding="utf-8") as stream:
    PRINTED = {line["row"]: line for line in csv.DictReader(stream)}
MODELS = ("llama-3-8b", "llama-3-70b", "deepseek-v3")
ORDER = (*(f"S{n}" for n in range(1, 14)), "P1", "P2", "P3", "I1", "I2", "LLaVA", "InternVL2", "Llama-3.2", "I3", "N1", "N1-lora", "N2")
"""The lines of the Summary from the top, by their names in the file of printed numbers."""


# -- what the cells must hold, from dimensions alone ----------------------------------------------------------


@dataclass(frozen=True)
class Dense:
    """A Llama: hidden, layers, heads, KV heads, inner width; 128 wide heads and 128,256 words."""

    d: int
    layers: int
    heads: int
    kv: int
    ff: int

    @property
    def params(self) -> float:
        q, kv = self.heads * 128, self.kv * 128
        return self.layers * (2 * self.d * q + 2 * self.d * kv + 3 * self.d * self.ff + 2 * self.d) + 2 * 128256 * self.d + self.d

    @property
    def working(self) -> float:
        return self.params - 128256 * self.d

    @property
    def values(self) -> int:
        return 2 * self.layers * self.kv * 128

    def lora(self, rank: float) -> tuple[float, float]:
        q, kv = self.heads * 128, self.kv * 128
        attention = rank * self.layers * (2 * (self.d + q) + 2 * (self.d + kv))
        return attention, attention + rank * self.layers * 3 * (self.d + self.ff)


def deepseek() -> tuple[float, float]:
    """Parameters of DeepSeek-V3: all, and those that work on a token without the input embedding."""
    d, heads = 7168, 128
    attention = d * 1536 + 1536 * heads * 192 + d * 576 + 512 * heads * 256 + heads * 128 * d + 1536 + 512
    expert = 3 * d * 2048
    rest = 61 * (attention + 2 * d) + 3 * 3 * d * 18432 + 58 * (d * 256 + 256 + expert) + d
    vocabulary = 129280 * d
    return rest + 58 * 256 * expert + 2 * vocabulary, rest + 58 * 8 * expert + vocabulary


L8, L70 = Dense(4096, 32, 32, 8, 14336), Dense(8192, 80, 64, 8, 28672)
V3, V3_WORKING = deepseek()
GPUS = {"h100-sxm": (80.0, 3.35e12, 989e12), "h200": (150.754, 4.8e12, 989e12)}


@dataclass(frozen=True)
class Assumed:
    """The assumptions of the table."""

    gpu: str = "h100-sxm"
    memory: float | None = None
    context: float = 131072
    alpha: float = 0.8
    gamma: int = 4
    cost: float = 0.1
    mtp_alpha: float = 0.85
    rank: int = 16
    bytes: float = 16
    side: int = 1024
    bits: float = 4
    group: int = 128


def shown(value: float, digits: int) -> str:
    """A number as people round it."""
    rounded = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    return f"{rounded:.{max(digits, 0)}f}"


def expected(a: Assumed = Assumed()) -> dict[str, tuple[Any, ...]]:
    """What each line must hold: numbers as they are, texts whole (None: what is not worked out here)."""
    memory, bandwidth, flops = GPUS[a.gpu]
    memory = a.memory or memory
    int4 = a.bits + 32 / a.group
    total, working = (L8.params, L70.params, V3), (L8.working, L70.working, V3_WORKING)
    values = (L8.values, L70.values, 61 * 576)
    tokens = sum(a.alpha**k for k in range(a.gamma + 1))
    free = math.floor(flops / bandwidth / (a.gamma + 1))
    gain = tokens / (a.gamma * a.cost + 1)

    def bound(index: int, bits: float) -> float:
        return max(total[index] * bits / 8 / bandwidth, 2 * working[index] / flops) * 1000

    def w4a16(index: int) -> Any:
        held = total[index] * int4 / 8e9
        count = next(2**n for n in range(11) if held <= memory * 2**n)
        if count > 1:
            return f"fits {count} GPUs"
        return bound(index, int4) if index == 0 else f"{shown(bound(index, int4), 1)} ms (fits one GPU)"

    lora = [model.lora(a.rank) for model in (L8, L70)]
    image = math.ceil(a.side / 28) ** 2
    about = f"{shown(gain, 1)}x (B up to about {shown(free, -1)})"
    trained = [(model.params * 2 / 1e9, adapters[1] * a.bytes / 1e9) for model, adapters in zip((L8, L70), lora, strict=True)]
    tiles = math.ceil(a.side / 560) ** 2
    mib = 1024.0**2
    none = "–"
    return {
        "S1": (total[0], total[1], f"{shown(V3 / 1e9, 0)}B ({shown(V3_WORKING / 1e9, 0)}B active per token)"),
        "S2": (total[0] * 2 / 1e9, total[1] * 2 / 1e9, f"{shown(V3 * 2 / 1e9, 0)} GB (FP8 {shown(V3 / 1e9, 0)} GB)"),
        "S3": tuple(count * int4 / 8e9 for count in total),
        "S4": (2 * L8.working / 1e9, f"~{shown(2 * L70.params / 1e9, 0)} GFLOPs ({shown(2 * L70.working / 1e9, 1)} without the input embedding)",
               f"~74 GFLOPs ({shown(2 * V3_WORKING / 1e9, 1)} by its parameters)"),
        "S5": tuple(count * 2 / 1024 for count in values),
        "S6": tuple(count / 1024 for count in values),
        "S7": tuple(count * 2 * a.context / 1024**3 for count in values),
        "S8": tuple(bound(index, 16) if count * 2 / 1e9 <= memory else "does not fit one GPU" for index, count in enumerate(total)),
        "S9": tuple(w4a16(index) for index in range(3)),
        "S10": (about, about, f"MTP alpha {a.mtp_alpha:g}-0.9 gamma 1: about 1.8x (maker)"),
        "S11": (f"{shown(lora[0][0] / 1e6, 2)}M ({shown(lora[0][0] / L8.params * 100, 2)}%)",
                f"{shown(lora[1][0] / 1e6, 1)}M ({shown(lora[1][0] / L70.params * 100, 3)}%)", none),
        "S12": (f"{shown(lora[0][1] / 1e6, 1)}M ({shown(lora[0][1] / L8.params * 100, 2)}%)",
                f"{shown(lora[1][1] / 1e6, 0)}M ({shown(lora[1][1] / L70.params * 100, 2)}%)", none),
        "S13": (f"{shown(trained[0][0], 2)} + {shown(trained[0][1], 2)} GB", f"{shown(trained[1][0], 0)} + {shown(trained[1][1], 1)} GB", none),
        "P1": (tokens, tokens, f"{shown(1 + a.mtp_alpha, 2)}-1.9 (MTP)"),
        "P2": (gain, gain, "~1.8x (maker)"),
        "P3": (f"~{about.split()[-1][:-1]} ({free} by the formula)",) * 2 + (none,),
        "I1": (image, image, none),
        "I2": (image * L8.values * 2 / mib, image * L70.values * 2 / mib, none),
        "LLaVA": (576, 576, none),
        "InternVL2": (1280, 1280, none) if a.side == 1024 else (None, None, none),
        "Llama-3.2": (tiles * 1601, none, none),
        "I3": (f"{shown(tiles * 1601 * 8 * 4096 / mib, -1)} MiB instead of {shown(tiles * 1601 * L8.values * 2 / mib, -1)} MiB", none, none),
        "N1": (L8.params * a.bytes / 1e9, L70.params * a.bytes / 1e9, none),
        "N1-lora": (sum(trained[0]), sum(trained[1]), none),
        "N2": tuple(count / 1e9 for count in total),
    }  # fmt: skip


# -- what the Summary shows -----------------------------------------------------------------------------------


def lines(path: Path) -> dict[str, list[Any]]:
    """The lines of a workbook's Summary as they are shown: the title, then (value, number format) per model."""
    sheet = openpyxl.load_workbook(path, data_only=True)["Summary"]
    head = next(row for row in range(1, 40) if sheet.cell(row, 2).value == "Llama-3-8B")
    rows = []
    for row in range(head + 1, head + 60):
        cells = [sheet.cell(row, column) for column in range(2, 5)]
        if any(cell.value is not None for cell in cells):
            rows.append([sheet.cell(row, 1).value, *((cell.value, cell.number_format) for cell in cells)])
    assert len(rows) == len(ORDER)
    return dict(zip(ORDER, rows, strict=True))


def printed(value: Any, form: str) -> str:
    """A cell as its number format prints it."""
    if isinstance(value, str):
        return value
    match = re.fullmatch(r'([#,]*0)(?:\.(0+))?(,*)(?: ?"?([^"]*)"?)?', form)
    assert match, form
    scaled = value / 1000 ** len(match[3])
    return shown(scaled, len(match[2] or "")) + (" " if '" ' not in form and ' "' in form else "") + (match[4] or "")


def numbers(text: str) -> list[str]:
    """The numbers that a text prints."""
    return re.findall(r"[0-9]+(?:\.[0-9]+)?", re.sub(r"(?i)w4a16|fp8|bf16", "", text))


@cache
def made(*edits: tuple[str, str]) -> Path:
    """The workbook that the command makes of the bundled table, with texts in its file replaced first."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="series-"))
    text = bundled()["series"].read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / "series.yaml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "scenario", "run", "series.yaml" if edits else "series", "-q", "-o", "series.xlsx"]
    (folder / "here").mkdir()
    done = subprocess.run(command, cwd=folder if edits else folder / "here", env={**os.environ, "COLUMNS": "100"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "series.xlsx" if edits else folder / "here" / "series.xlsx"


def compare(found: dict[str, list[Any]], wanted: dict[str, tuple[Any, ...]], what: str = "") -> None:
    """Every cell is what it must be."""
    for name, values in wanted.items():
        for model, value, (cell, _) in zip(MODELS, values, found[name][1:], strict=True):
            if isinstance(value, str):
                assert cell == value, f"{what} {name} {model}"
            elif value is not None:
                assert cell == pytest.approx(value, rel=2e-6), f"{what} {name} {model}"


@pytest.mark.parametrize("name", PRINTED)
def test_every_printed_number_of_the_series_table(name: str) -> None:
    """The command's workbook shows each number of the printed table as it is printed, with the exact one in the cell."""
    title, *cells = lines(made())[name]
    compared = 0
    for model, (value, form) in zip(MODELS, cells, strict=True):
        said, got = PRINTED[name][model], printed(value, form)
        if said == "-":
            assert got == "–"
        elif said == "1.2-1.3 ms":
            assert got == "1.27 ms"
        elif said == "1.85-1.9 (MTP)" or not numbers(said):
            assert got == said
        else:
            assert numbers(got)[: len(numbers(said))] == numbers(said), (title, said, got)
            compared += len(numbers(said))
    assert compared or name == "I3"


def test_the_cells_hold_the_exact_numbers() -> None:
    """Worked out anew from the models' dimensions, every cell is the same number or the same words."""
    compare(lines(made()), expected())


def test_the_terms_of_the_printed_table_are_there() -> None:
    """Footnotes say what counts: input embedding, MLA, the maker's figure, the exact batch; assumptions stand at the top."""
    sheet = openpyxl.load_workbook(made(), data_only=True)["Summary"]
    text = "\n".join(str(cell.value) for row in sheet.iter_rows() for cell in row if isinstance(cell.value, str))
    for words in ("input embedding is looked up", "one latent vector", "figure of DeepSeek-V3's maker", "up to a batch of 59"):
        assert words in text
    top = {sheet.cell(row, column).value: sheet.cell(row, column + 1).value for row in range(4, 12) for column in (1, 3)}
    assert (top["GPU"], top["context (tokens)"], top["batch"]) == ("h100-sxm", 131072, 1)
    assert (top["acceptance alpha"], top["draft tokens gamma"], top["draft cost c"], top["LoRA rank r"]) == (0.8, 4, 0.1, 16)


EDITS: dict[str, tuple[Assumed, tuple[str, Any], tuple[tuple[str, str], ...]]] = {
    "gpu": (Assumed(gpu="h200"), ("default_gpu", "h200"), (("gpu: h100-sxm\n", "gpu: h200\n"),)),
    "context": (Assumed(context=65536), ("default_context", 65536), (("context: 131072 ", "context: 65536 "),)),
    "batch": (Assumed(), ("default_batch", 4), (("batch: 1\n", "batch: 4\n"),)),
    "alpha": (Assumed(alpha=0.7), ("small_model_alpha", 0.7), (("alpha: 0.8,", "alpha: 0.7,"),)),
    "gamma": (Assumed(gamma=3), ("small_model_gamma", 3), (("gamma: 4,", "gamma: 3,"),)),
    "cost": (Assumed(cost=0.05), ("small_model_draft_cost", 0.05), (("draft_cost: 0.1}", "draft_cost: 0.05}"),)),
    "mtp": (Assumed(mtp_alpha=0.75), ("mtp_alpha", 0.75), (("mtp: {alpha: 0.85", "mtp: {alpha: 0.75"),)),
    "rank": (Assumed(rank=32), ("lora_rank", 32), (("lora_rank: 16", "lora_rank: 32"),)),
    "bytes": (Assumed(bytes=12), ("default_training_bytes", 12), (("training_bytes: 16 ", "training_bytes: 12 "),)),
    "bits": (Assumed(bits=8), ("int4_bits", 8), (("int4: {bits: 4", "int4: {bits: 8"),)),
    "group": (Assumed(group=64), ("int4_group_size", 64), (("group_size: 128", "group_size: 64"),)),
    "image": (Assumed(side=560), ("image_width", 560), (("  lora_rank: 16", "  lora_rank: 16\n  image_width: 560\n  image_height: 560"),)),
}  # fmt: skip
"""By name: the assumptions then, the cell of Assumptions that is changed, and the same change in the table's file."""


def changed(base: Path, target: Path, name: str) -> Path:
    """The workbook with one assumption typed over."""
    _, (scalar, value), _ = EDITS[name]
    sheet = openpyxl.load_workbook(base, read_only=True)["Assumptions"]
    places = {row[1]: number for number, row in enumerate(sheet.iter_rows(values_only=True), 1)}
    cells = {("Assumptions", f"C{places[scalar]}"): value}
    if name == "image":
        cells["Assumptions", f"C{places['image_height']}"] = value
    return edit(base, target, cells)


@needs_soffice
def test_an_edit_of_each_assumption_moves_the_workbook_as_it_should(tmp_path: Path) -> None:
    """Recalculated by LibreOffice, untouched and with each assumption changed, every cell is what it must be."""
    paths = [changed(made(), tmp_path / f"{name}.xlsx", name) for name in EDITS]
    plain, *others = recalculate_all([made(), *paths], tmp_path)
    compare(lines(plain), expected(), "untouched")
    for (name, (assumed, _, _)), path in zip(EDITS.items(), others, strict=True):
        compare(lines(path), expected(assumed), name)


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_each_assumption_moves_the_table_as_it_should(name: str) -> None:
    """The command, run on the table with one assumption changed, shows what it must."""
    assumed, _, edits = EDITS[name]
    compare(lines(made(*edits)), expected(assumed), name)


def test_a_smaller_gpu_turns_numbers_into_words() -> None:
    """With 12 GB a model whose weights no longer fit one GPU says so in place of its bound, and names the GPUs it takes."""
    found = lines(made(("h100-sxm: {memory_gb: 80}", "h100-sxm: {memory_gb: 12}")))
    compare(found, {name: expected(Assumed(memory=12))[name] for name in ("S8", "S9")})
    assert found["S8"][1][0] == "does not fit one GPU"
    assert [cell for cell, _ in found["S9"][2:]] == ["fits 4 GPUs", "fits 32 GPUs"]


def test_every_model_has_rows_of_its_own() -> None:
    """Each metric with inputs of its own reads a row of Scenarios; the workbook comes back with the same rows."""
    rows = scenario.run("series").frame
    assert {"8b", "70b", "v3", "8b-bound", "v3-int4", "v3-spec-high"} <= set(rows["id"])
    assert scenario.run(made()).frame.equals(rows)
