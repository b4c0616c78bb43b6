"""The built-in catalog against what makers state: parameters, sources, dates, prices."""

from __future__ import annotations

from importlib import resources

import pytest
import yaml

import scenario

FOLDER = resources.files("scenario.scenarios")


def entries(kind: str) -> dict[str, dict[str, str]]:
    """A catalog file with its numbers as they are written, so that the digits stated can be counted."""
    return yaml.load((FOLDER / f"{kind}.yaml").read_text(encoding="utf-8"), Loader=yaml.BaseLoader)[kind]


MODELS, GPUS, PRICES = entries("models"), entries("gpus"), entries("prices")
REQUIRED_MODELS = (
    "llama-3-8b", "llama-3-70b", "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "llama-3.2-1b", "llama-3.2-3b",
    "mixtral-8x7b", "mixtral-8x22b", "deepseek-v3", "qwen3-0.6b", "qwen3-8b", "qwen3-32b", "qwen3-30b-a3b",
    "qwen3-235b-a22b", "gpt-oss-20b", "gpt-oss-120b",
)  # fmt: skip
REQUIRED_GPUS = (
    "h100-sxm", "h100-pcie", "h200", "b200", "a100-40gb", "a100-80gb", "l40s", "l4", "a10", "rtx-4090", "rtx-3090",
    "mi300x", "h20",
)  # fmt: skip


@pytest.fixture(scope="module")
def computed() -> dict[str, dict[str, float]]:
    """Every bundled model's columns."""
    grid = {"model": list(MODELS), "gpu": ["h100-sxm"], "batch": [1], "context": [0], "method": ["vanilla"]}
    frame = scenario.run({"version": 1, "grid": grid}).frame
    return {row["model"]: row for row in frame.iter_rows(named=True)}


def to_digits(value: float, stated: str) -> bool:
    """Whether ``value``, rounded to as many significant digits as ``stated`` has, is ``stated``."""
    digits = len(stated.lower().partition("e")[0].replace(".", "").lstrip("0"))
    return f"{value:.{digits - 1}e}" == f"{float(stated):.{digits - 1}e}"


@pytest.mark.parametrize("name", MODELS)
def test_total_parameters_are_the_stated_ones(name: str, computed) -> None:
    """The parameter arithmetic gives what the maker states, to the digits stated."""
    stated = MODELS[name]["stated_params"]
    assert to_digits(computed[name]["params"], stated), f"{computed[name]['params']:.5g}, stated {stated}"
    assert MODELS[name]["stated_source"]


MIXTURES = [name for name in MODELS if "experts" in MODELS[name]]


@pytest.mark.parametrize("name", MIXTURES)
def test_active_parameters_are_the_stated_ones(name: str, computed) -> None:
    """Makers count active parameters with or without vocabulary tables and routers; one of these is their figure."""
    model = MODELS[name]
    stated = model["stated_active_params"]
    routers = int(model["moe_layers"]) * int(model["hidden"]) * int(model["experts"])
    row = computed[name]
    counts = (row["active_params"], row["gemm_params"], row["gemm_params"] - row["embedding_params"])
    found = [count - left_out for count in counts for left_out in (0, routers)]
    assert any(to_digits(value, stated) for value in found), f"{found}, stated {stated}"


@pytest.mark.parametrize(
    ("name", "count"),
    # The counts that Hugging Face shows for the checkpoints, or that num_parameters() and GGUF headers tell.
    [("llama-3-8b", 8_030_261_248), ("llama-3-70b", 70_553_706_496), ("llama-3.1-405b", 405_853_388_800),
     ("llama-3.2-1b", 1_235_814_400), ("llama-3.2-3b", 3_212_749_824), ("mixtral-8x7b", 46_702_792_704),
     ("qwen3-0.6b", 596_049_920), ("qwen3-8b", 8_190_735_360), ("qwen3-32b", 32_762_123_264),
     ("qwen3-30b-a3b", 30_532_122_624), ("gpt-oss-20b", 20_914_757_184), ("gpt-oss-120b", 116_829_156_672)],
)  # fmt: skip
def test_parameter_counts_to_the_last_one(name: str, count: int, computed) -> None:
    """Models whose published checkpoints count to the last parameter are computed to the last parameter."""
    assert computed[name]["params"] == count


@pytest.mark.parametrize("kind", ["models", "gpus", "prices"])
def test_every_fact_has_a_source_and_a_date(kind: str) -> None:
    """An entry says where its facts are from and of when, or is marked unverified."""
    for name, entry in entries(kind).items():
        verified = entry.get("unverified", "false") != "true"
        assert not verified or (entry.get("source") and entry.get("date")), name
        if "date" in entry:
            year, month, day = entry["date"].split("-")
            assert 2017 <= int(year) <= 2100, name
            assert 1 <= int(month) <= 12, name
            assert 1 <= int(day) <= 31, name


def test_models_and_gpus_people_ask_for_are_there() -> None:
    """The catalog holds the models and GPUs that tables usually name."""
    assert not [name for name in REQUIRED_MODELS if name not in MODELS]
    assert not [name for name in REQUIRED_GPUS if name not in GPUS]


@pytest.mark.parametrize("name", PRICES)
def test_prices_are_positive_and_dated(name: str) -> None:
    """A price belongs to a GPU of the catalog, is positive, and says whose and of which day it is."""
    price = PRICES[name]
    assert name in GPUS
    assert 0 < float(price["usd_per_hour"]) < 100
    assert price["date"]
    assert price["source"]


@pytest.mark.parametrize(
    ("name", "mib"),
    # What nvidia-smi reports.
    [("h100-sxm", 81559), ("h200", 143771), ("a100-40gb", 40960), ("a100-80gb", 81920), ("l4", 23034),
     ("rtx-4090", 24564), ("rtx-3090", 24576)],
)  # fmt: skip
def test_memory_is_what_the_driver_reports(name: str, mib: int) -> None:
    """GB are 1e9 bytes and never mixed with GiB: that alone decides rows at the edge of memory."""
    assert float(GPUS[name]["memory_gb"]) == pytest.approx(mib * 1024**2 / 1e9, abs=0.006)


@pytest.mark.parametrize(
    ("name", "bandwidth", "bf16"),
    # The makers' datasheets: dense rates, half of those printed with sparsity.
    [("h100-sxm", 3.35, 989), ("h100-pcie", 2.0, 756), ("h200", 4.8, 989), ("h20", 4.0, 148), ("a100-80gb", 2.039, 312),
     ("a100-40gb", 1.555, 312), ("l40s", 0.864, 362), ("l4", 0.3, 121), ("a10", 0.6, 125), ("rtx-4090", 1.008, 165.2),
     ("rtx-3090", 0.936, 71), ("mi300x", 5.3, 1307.4)],
)  # fmt: skip
def test_rates_are_dense_ones_of_the_datasheet(name: str, bandwidth: float, bf16: float) -> None:
    """Peak rates are dense: a rate with sparsity would double the compute and hide every compute bound."""
    assert float(GPUS[name]["bandwidth_tb_s"]) == bandwidth
    assert float(GPUS[name]["bf16_tflops"]) == pytest.approx(bf16, rel=0.002)


def test_a_changed_entry_keeps_the_rest() -> None:
    """A table may change one field of a GPU: the article's 80e9 bytes leave bandwidth and price alone."""
    table = {
        "version": 1, "gpus": {"h100-sxm": {"memory_gb": 80}},
        "rows": [{"model": "llama-3-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "vanilla"}],
    }  # fmt: skip
    row = scenario.run(table).frame.row(0, named=True)
    assert row["memory_available_gb"] == 80
    assert row["ridge"] == pytest.approx(989 / 3.35)
    assert row["usd_per_hour"] == float(PRICES["h100-sxm"]["usd_per_hour"])
