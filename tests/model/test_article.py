"""Every number that the LLM inference arithmetic article series prints, from the bundled tables.

``data/article_numbers.csv`` holds the numbers as printed; ``LINES`` says where each one is found. A number is
reproduced when the computed value, rounded to as many digits as were printed, shows the same digits.
"""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

with (Path(__file__).parents[1] / "data" / "article_numbers.csv").open(encoding="utf-8") as stream:
    ARTICLE = {line["id"]: line for line in csv.DictReader(stream)}


class Line(NamedTuple):
    """Where a printed number is: a bundled table, what the row's cells say, a column, and units per printed unit."""

    table: str
    row: dict[str, object]
    column: str
    unit: float = 1


L8, L70, V3, MIXTRAL = "llama-3-8b", "llama-3-70b", "deepseek-v3", "mixtral-8x7b"
PERCENT = 0.01


def cost(model: str, column: str, unit: float = 1, weights: str = "bf16", kv: str = "bf16") -> Line:
    return Line("article-cost", {"model": model, "weights": weights, "kv": kv}, column, unit)


def variant(column: str, alpha: float, gamma: int, draft_cost: float = 0.1) -> Line:
    return Line("article-variants", {"alpha": alpha, "gamma": gamma, "draft_cost": draft_cost}, column)


def batch(size: int, column: str, mfu: float = 1, unit: float = 1) -> Line:
    return Line("article-batch", {"batch": size, "mfu": mfu}, column, unit)


def int4(model: str, method: str, column: str, unit: float = 1) -> Line:
    return Line("article-int4", {"model": model, "method": method}, column, unit)


def cache_line(model: str, size: int, context: int, column: str, kv: str = "bf16") -> Line:
    return Line("article-kv", {"model": model, "batch": size, "context": context, "kv": kv}, column)


def experts(model: str, rows: int, column: str, unit: float = 1) -> Line:
    return Line("article-moe", {"model": model, "batch": rows}, column, unit)


def mtp(alpha: float, column: str) -> Line:
    return Line("article-mtp", {"id": {0.85: "b1", 0.9: "b1-high"}[alpha], "alpha": alpha, "batch": 1, "gamma": 1}, column)


LINES: dict[str, Line] = {
    # Parameters, weights, arithmetic and cache per token
    "P1": cost(L8, "params", 1e9), "P2": cost(L70, "params", 1e9), "P3": cost(V3, "params", 1e9),
    "P4": cost(V3, "active_params", 1e9),
    "P5": experts(MIXTRAL, 1, "params", 1e9), "P6": experts(MIXTRAL, 1, "active_params", 1e9),
    "W1": cost(L8, "weight_gb"), "W2": cost(L70, "weight_gb"), "W3": cost(V3, "weight_gb"),
    "W4": cost(V3, "weight_gb", weights="fp8"),
    "W5": int4(L8, "int4", "weight_bits"), "W6": int4(L8, "int4", "weight_gb"), "W7": int4(L70, "int4", "weight_gb"),
    "W8": cost(V3, "weight_gb", weights="int4"),
    "F1": cost(L8, "weight_gflop"), "F2": cost(L70, "weight_gflop"),
    "F3": cost(V3, "active_gflop"), "F5": cost(V3, "weight_gflop"),
    "F4": cache_line(L8, 8, 8192, "attention_gflop"),
    "K1": cost(L8, "kv_kib_per_token"), "K2": cost(L70, "kv_kib_per_token"), "K3": cost(V3, "kv_kib_per_token"),
    "K4": cost(L8, "kv_gib"), "K5": cost(L70, "kv_gib"), "K6": cost(V3, "kv_gib"),
    "K7": cost(L8, "kv_kib_per_token", kv="fp8"), "K8": cost(L70, "kv_kib_per_token", kv="fp8"),
    "K9": cost(V3, "kv_kib_per_token", kv="fp8"),
    # Times
    "T1": int4(L8, "vanilla", "step_ms"), "T2": int4(L8, "int4", "step_ms"),
    "T3": int4(L70, "vanilla", "step_ms"), "T4": int4(L70, "int4", "step_ms"),
    "T5": batch(1, "ridge"), "T6": batch(1, "ridge_rows"), "T7": batch(1, "ridge", mfu=0.6),
    "T8": batch(64, "verify_ms"), "T9": batch(128, "verify_ms"), "T10": batch(256, "verify_ms"),
    "T11": cache_line(L8, 8, 8192, "step_ms"), "T12": cache_line(L8, 64, 8192, "step_ms"),
    "T13": cache_line(L70, 64, 8192, "step_ms"),
    # Speculative decoding
    "E1": variant("tokens_per_round", 0.6, 4), "E2": variant("tokens_per_round", 0.8, 2),
    "E3": variant("tokens_per_round", 0.8, 4), "E4": variant("tokens_per_round", 0.8, 8),
    "E5": variant("tokens_per_round", 0.9, 4),
    "S1": variant("speedup", 0.6, 4, 0.1), "S2": variant("speedup", 0.6, 4, 0.02),
    "S3": variant("speedup", 0.8, 2, 0.1), "S4": variant("speedup", 0.8, 2, 0.02),
    "S5": variant("speedup", 0.8, 4, 0.1), "S6": variant("speedup", 0.8, 4, 0.02),
    "S7": variant("speedup", 0.8, 8, 0.1), "S8": variant("speedup", 0.8, 8, 0.02),
    "S9": variant("speedup", 0.9, 4, 0.1), "S10": variant("speedup", 0.9, 4, 0.02),
    **{f"B{i}": batch(size, "speedup") for i, size in enumerate((1, 8, 32, 64, 128, 256), 1)},
    **{f"B{i}": batch(size, "speedup", mfu=0.6) for i, size in enumerate((1, 8, 32, 64, 128, 256), 7)},
    "X1": batch(1, "free_batch"), "X2": batch(1, "free_batch", mfu=0.6),
    "X3": int4(L8, "int4+small-model", "free_batch"),
    "X4": Line("article-batch", {"id": "all-compute-bound"}, "speedup"),
    "X5": variant("useful_flops_share", 0.8, 4)._replace(unit=PERCENT),
    "X6": int4(L8, "vanilla", "achieved_mfu", PERCENT),
    "M1": mtp(0.85, "tokens_per_round"), "M2": mtp(0.9, "tokens_per_round"),
    # LoRA
    "L1": int4(L8, "vanilla", "lora_attention_params", 1e6), "L2": int4(L8, "vanilla", "lora_all_params", 1e6),
    "L3": int4(L8, "vanilla", "lora_share", PERCENT),
    "L4": int4(L70, "vanilla", "lora_attention_params", 1e6), "L5": int4(L70, "vanilla", "lora_all_params", 1e6),
    "L6": int4(L70, "vanilla", "lora_share", PERCENT),
    # Mixtures of experts
    "A1": experts(MIXTRAL, 8, "experts_touched"), "A2": experts(V3, 8, "experts_touched"),
    "A3": experts(V3, 32, "experts_touched"), "A4": experts(V3, 128, "experts_touched"),
    "A5": experts(V3, 1, "params_read", 1e9), "A6": experts(V3, 32, "params_read", 1e9),
    "A7": experts(MIXTRAL, 8, "params_read", 1e9),
    # What fits
    "C1": cache_line(L8, 1, 4096, "max_batch"), "C2": cache_line(L8, 1, 131072, "max_batch"),
    "C3": cache_line(L70, 1, 32768, "max_batch"), "C4": cache_line(L8, 1, 8192, "max_batch", kv="fp8"),
    "C5": cache_line(V3, 1, 4096, "max_batch"),
}  # fmt: skip
SHOWN = {"M3"}
"""Lines that are a maker's statement, shown as a preset: no formula gives them."""
MODELS = {"Llama-3-8B": L8, "Llama-3-70B": L70, "DeepSeek-V3": V3, "Mixtral-8x7B": MIXTRAL}
INPUTS = {"c": "draft_cost", "group": "group_size", "scale": "scale_bits", "zero": "zero_bits", "rows": "verify_rows"}


def scenario(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "scenario", *arguments], capture_output=True, encoding="utf-8", timeout=60,
                          env={**os.environ, "COLUMNS": "400", "PYTHONUTF8": "1"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def computed(tmp_path_factory):
    """A bundled table's rows as the command line writes them, each table run once."""
    folder = tmp_path_factory.mktemp("article")

    @cache
    def rows(table: str) -> list[dict[str, str]]:
        path = folder / f"{table}.csv"
        scenario("run", table, "-o", str(path), "--quiet")
        return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))

    return rows


def same(cell: str, wanted: object) -> bool:
    return cell == wanted if isinstance(wanted, str) else cell != "" and float(cell) == wanted


def only_row(rows: list[dict[str, str]], line: Line) -> dict[str, str]:
    found = [row for row in rows if all(same(row[name], wanted) for name, wanted in line.row.items())]
    assert len(found) == 1, f"{len(found)} rows of {line.table} match {line.row}"
    return found[0]


def test_every_printed_number_has_a_place() -> None:
    """The mapping covers the article's lines, no more and no fewer."""
    assert set(LINES) | SHOWN == set(ARTICLE)
    assert not set(LINES) & SHOWN


@pytest.mark.parametrize("number", LINES)
def test_number_is_reproduced(number: str, computed) -> None:
    """The computed value, rounded to the digits that the article prints, shows those digits."""
    line, printed = LINES[number], ARTICLE[number]["printed"]
    value = float(only_row(computed(line.table), line)[line.column]) / line.unit
    digits = len(printed.partition(".")[2])
    assert f"{value:.{digits}f}" == printed, f"{ARTICLE[number]['quantity']}: {value!r}"


@pytest.mark.parametrize("number", LINES)
def test_row_has_the_inputs_of_the_article(number: str, computed) -> None:
    """The row that a number is read from says what the article says: model, GPU, batch, alpha, gamma, cost and so on."""
    line, said = LINES[number], ARTICLE[number]
    row = only_row(computed(line.table), line)
    if said["model"]:
        assert row["model"] == MODELS[said["model"]]
    if said["gpu"]:
        assert row["gpu"] == "h100-sxm"
    for part in said["inputs"].split():
        name, _, value = part.partition("=")
        if name == "rank":
            continue  # one value for the whole table; the next test looks at it
        name = INPUTS.get(name, name)
        assert same(row[name], value if name == "method" else float(value)), f"{name} is {row[name]}, not {value}"


@pytest.mark.parametrize("table", sorted({line.table for line in LINES.values()}))
def test_tables_count_memory_as_the_article_does(table: str, computed) -> None:
    """The article's H100 has 80e9 bytes, not what the driver reports."""
    for row in computed(table):
        assert float(row["memory_available_gb"]) == 80 * float(row["gpus"])


def test_lora_rank_is_the_articles() -> None:
    """LoRA lines are for rank 16, which the table says itself."""
    import yaml

    from scenario.api import bundled

    table = yaml.safe_load(bundled()["article-int4"].read_text(encoding="utf-8"))
    assert table["defaults"]["lora_rank"] == 16


def test_rows_that_do_not_fit_show_no_speed(computed) -> None:
    """T3 and T13 are bounds of a 70B model on one GPU: times are shown, a speed or a price never."""
    for number, reason in (("T3", "weights"), ("T13", "weights"), ("T12", "KV cache")):
        row = only_row(computed(LINES[number].table), LINES[number])
        assert row["status"] == f"does not fit: {reason}"
        assert float(row["step_ms"]) > 0
        assert [row[name] for name in ("tpot_ms", "tokens_per_s", "speedup", "usd_per_million_tokens")] == [""] * 4


def test_makers_mtp_speedup_is_shown() -> None:
    """M3, 1.8 times, is the maker's measurement: the list of presets tells it."""
    shown = " ".join(scenario("list", "presets").split())
    assert "deepseek-v3-mtp" in shown
    assert f"{ARTICLE['M3']['printed']} times the tokens per second" in shown


def test_bundled_article_tables_are_listed() -> None:
    """A newcomer finds the article's tables with their titles."""
    shown = scenario("list", "tables")
    for table in {line.table for line in LINES.values()}:
        assert table in shown


def test_page_shows_every_number(computed) -> None:
    """The documentation page lists all lines with the printed and the computed number, and stays true."""
    page = Path(__file__).parents[2] / "docs" / "article.md"
    cells = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in page.read_text(encoding="utf-8").splitlines()]
    shown = {row[0]: row for row in cells if len(row) == 6 and row[0] in ARTICLE}
    assert set(shown) == set(ARTICLE)
    for number, (_, _, printed, found, _, table) in shown.items():
        assert printed == ARTICLE[number]["printed"]
        if number in LINES:
            line = LINES[number]
            assert table == line.table
            value = float(only_row(computed(table), line)[line.column]) / line.unit
            assert float(found) == pytest.approx(value, rel=2e-5)
