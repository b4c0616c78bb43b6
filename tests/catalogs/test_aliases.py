"""Names as people write them: published names, drivers' names, engines' names; a format in a name is never passed over."""

from __future__ import annotations

import pytest

import scenario
from scenario import TableError
from scenario.catalogs import aliases, catalog
from scenario.model.entities import FORMATS

ROW = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": 1, "context": 1000, "method": "vanilla"}


def first(**given: object) -> dict[str, object]:
    return scenario.run({"version": 1, "rows": [{**ROW, **given}]}).full.row(0, named=True)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"model": "meta-llama/Llama-3.1-8B-Instruct"}, {"model": "llama-3.1-8b"}),
        ({"model": "QWEN/qwen3-8B"}, {"model": "qwen3-8b"}),
        ({"gpu": "NVIDIA H100 80GB HBM3"}, {"gpu": "h100-sxm"}),
        ({"weights": "Q4_K_M"}, {"weights": "q4_k_m"}),
        ({"weights": "awq", "kv": "fp8_e4m3"}, {"weights": "int4", "kv": "fp8"}),
        ({"method": "EAGLE3"}, {"method": "eagle-3"}),
        ({"method": "draft_model", "draft": "Qwen/Qwen3-0.6B"}, {"method": "small-model", "draft": "qwen3-0.6b"}),
        ({"model": "deepseek-v3", "gpus": 16, "method": "NEXTN"}, {"method": "mtp"}),
        ({"model": "deepseek-v3", "gpus": 16, "method": "deepseek_mtp"}, {"method": "mtp"}),
    ],
)
def test_a_row_takes_names_as_they_are_written(given, wanted):
    """The row is that of the catalog's own name."""
    row = first(**given)
    assert {name: row[name] for name in wanted} == wanted


@pytest.mark.parametrize(("name", "bits"), [("q4_k_m", 4.9), ("q5_k_m", 5.7), ("q6_k", 6.6), ("q8_0", 8.5), ("iq4_xs", 4.25), ("q4_0", 4.5), ("nf4", 4.5)])
def test_bits_of_gguf_formats(name, bits):
    """Bits per weight as llama.cpp's table has them."""
    assert FORMATS[name][0] == pytest.approx(bits, abs=0.01)


@pytest.mark.parametrize(("name", "hint"), [
    ("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8", "model: llama-3.1-8b, weights: fp8"), ("TheBloke/Llama-2-7B-Chat-GPTQ", "2 to 8 bits"),
])  # fmt: skip
def test_a_format_in_a_models_name_is_asked_for_apart(name, hint):
    """Such a name is refused with what to write, never taken for 16 bits."""
    with pytest.raises(TableError, match=hint):
        first(model=name)


def test_short_names_of_several_boards_are_asked():
    """H100 is three boards of different bandwidth."""
    with pytest.raises(TableError, match="h100-pcie"):
        first(gpu="H100")


def test_every_listed_name_stands_for_one_entry():
    """No name is listed twice, and models and formats that are listed are there."""
    known = {"models": catalog.builtin().models, "formats": FORMATS, "gpus": catalog.builtin().gpus}
    for kind, entries in known.items():
        assert set(aliases.listed()[kind].values()) <= set(entries), kind
