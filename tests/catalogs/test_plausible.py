"""Numbers of GPUs: units and sparse rates that look wrong are told; the catalog's own are told of by nobody."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from scenario.catalogs import catalog, plausible
from scenario.cli.commands import main

HEAD = "version: 1\nrows: [{model: llama-3.1-8b, gpu: mine, batch: 1, context: 0, method: vanilla}]\n"


@pytest.mark.parametrize(
    ("gpu", "said"),
    [
        ("{memory_gb: 80, bandwidth_tb_s: 3350, bf16_tflops: 989}", "3.35 TB/s"),
        ("{memory_gb: 81559, bandwidth_tb_s: 3.35, bf16_tflops: 989}", "85.52 GB"),
        ("{memory_gb: 85.5, bandwidth_tb_s: 3.35, bf16_tflops: 1979, fp8_tflops: 3958}", "sparsity"),
    ],
    ids=["GB/s", "MiB", "sparse"],
)
def test_implausible_numbers_are_told(tmp_path, gpu, said):
    """The table runs, and says on stderr what the number would be in the unit that was probably meant."""
    (tmp_path / "t.yaml").write_text(f"{HEAD}gpus: {{mine: {gpu}}}\n")
    done = CliRunner().invoke(main, ["run", str(tmp_path / "t.yaml")])
    assert done.exit_code == 0, done.output
    assert said in done.stderr


def test_dense_rates_are_not_told(tmp_path):
    """The H100's own numbers are no fault."""
    (tmp_path / "t.yaml").write_text(f"{HEAD}gpus: {{mine: {{memory_gb: 85.5, bandwidth_tb_s: 3.35, bf16_tflops: 989}}}}\n")
    assert "mine'" not in CliRunner().invoke(main, ["run", str(tmp_path / "t.yaml")]).stderr


def test_the_catalogs_gpus_are_plausible():
    """No entry is beyond what any GPU has; each has a source, and says unverified where none could be read."""
    for entry in catalog.builtin().gpus.values():
        assert plausible.remarks(entry.values, ()) == (), entry.name
        assert entry.source, entry.name


@pytest.mark.parametrize("name", [
    "rtx-pro-6000", "gb300", "a100-80gb-pcie", "a40", "a30", "l20", "h800", "v100-32gb", "t4", "gh200-144gb", "gb10", "rubin", "mi350x", "tpu-v5e", "tpu-v6e",
    "tpu-v7", "gaudi-3", "trainium2", "m3-max", "m4-max", "m3-ultra", "strix-halo",
])  # fmt: skip
def test_machines_that_people_name_are_there(name):
    """Memory, bandwidth and a dense rate are stated for each."""
    values = catalog.builtin().gpus[name].values
    assert all(values[field] for field in ("memory_gb", "bandwidth_tb_s", "bf16_tflops"))
