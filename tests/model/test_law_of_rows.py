"""A row is its own: a row beside it that asks for any part of the model changes no bit of it, in files or in the workbook."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import scenario
from scenario.registry.host import load

HOST = load(third_party=False)
BASE = {"model": "llama-3.1-70b", "gpu": "h100-sxm", "batch": 16, "context": 1000, "method": "eagle-2"}
FEATURES: dict[str, dict[str, Any]] = {
    "published": {"weights": "published", "model": "gpt-oss-120b"}, "activations": {"weights": "fp8", "activations": "fp8"}, "auto": {"gpus": "auto"},
    "tp": {"tp": 8, "method": "vanilla"}, "pp": {"pp": 4, "tp": 2}, "dp": {"dp": 2, "tp": 4},
    "ep": {"ep": 8, "tp": 2, "dp": 4, "model": "mixtral-8x7b"}, "requests": {"prompt_tokens": 1000, "output_tokens": 100},
    "images": {"encoder": "siglip-896", "images": 2, "prompt_tokens": 100, "output_tokens": 10},
    "time model": {"time_model": "measured"}, "bound": {"time_model": "bound"}, "estimate": {"time_model": "estimate"},
    "measured length": {"acceptance_length": 2.5, "method": "eagle"}, "rates": {"acceptance": [0.8, 0.5, 0.3], "method": "eagle"},
    "best gamma": {"gamma": "auto", "method": "eagle"}, "draft": {"method": "small-model", "draft": "llama-3.2-1b", "draft_gpus": 2},
    "tree": {"method": "medusa", "tree": "mine"}, "stack": {"method": "int4+eagle-3", "keep_head": True},
}  # fmt: skip
ROWS: dict[str, dict[str, Any]] = {
    "pooled": {"gpus": 8}, "one": {"model": "llama-3.1-8b"}, "vanilla": {"gpus": 8, "method": "vanilla"}, "sized": {"tp": 8, "method": "eagle"},
    "mixture": {"model": "deepseek-v3", "weights": "fp8", "gpus": 16, "method": "mtp"}, "int4": {"gpus": 4, "method": "int4+ngram"},
}  # fmt: skip
SECTIONS = {"trees": {"mine": {"rates": [[0.7, 0.15], [0.6, 0.1]], "nodes_per_depth": [2, 3]}},
            "measured": {"points": {"model": "llama-3.1-70b", "gpu": "h100-sxm", "points": [[1, 20], [64, 25], [4000, 300]]}}}  # fmt: skip


def table(time_model: str, *rows: dict[str, Any], served: bool = False) -> dict[str, Any]:
    full = [{**BASE, **row} for row in rows]
    if served:
        full = [{name: value for name, value in row.items() if name != "context"} | {"isl": 1000, "osl": 200} for row in full]
    text = str(rows)
    sections = {name: section for name, section in SECTIONS.items() if name[:-1] in text or name in text}
    return {"version": 1, "time_model": time_model, **sections, "rows": full}


def of_row(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    # The key of the Summary is what the table varies, and no number.
    changed = {name: (value, found.get(name)) for name, value in wanted.items() if name in found and found[name] != value and name not in ("summary_key", "price_within_limits")}
    assert not changed


def plain(source: dict[str, Any], name: str) -> dict[str, Any]:
    frame = scenario.run(source, host=HOST).full
    return next(row for row in frame.iter_rows(named=True) if row["id"] == name)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(row=st.sampled_from(sorted(ROWS)), time_model=st.sampled_from(["bound", "estimate"]), served=st.booleans(),
       features=st.lists(st.sampled_from(sorted(FEATURES)), min_size=1, max_size=3, unique=True), first=st.booleans())
def test_no_neighbour_changes_a_bit(row: str, time_model: str, served: bool, features: list[str], first: bool) -> None:
    """A row alone, and the same first or last beside rows that use up to three parts of the model."""
    if served:
        features = [name for name in features if "prompt_tokens" not in FEATURES[name]]
    own = {"id": "own", **ROWS[row]}
    others = [{"id": f"other-{index}", **FEATURES[name]} for index, name in enumerate(features)]
    alone = plain(table(time_model, own, served=served), "own")
    of_row(plain(table(time_model, *((own, *others) if first else (*others, own)), served=served), "own"), alone)


@pytest.mark.parametrize("feature", FEATURES)
def test_each_part_leaves_other_rows_alone(feature: str) -> None:
    """For each part of the model: a pooled EAGLE-2 row of the estimate, alone and beside a row that uses that part."""
    own = {"id": "own", **ROWS["pooled"]}
    of_row(plain(table("estimate", own, {"id": "other", **FEATURES[feature]}), "own"), plain(table("estimate", own), "own"))


def test_the_case_that_was_found() -> None:
    """Llama-3.1-70B on 8 H100 takes 11.91 ms a token in the estimate, whether or not another row names tp."""
    pooled = {"id": "pooled", "gpus": 8}
    alone = plain(table("estimate", pooled), "pooled")
    beside = plain(table("estimate", pooled, {"id": "other", "method": "vanilla", "tp": 8, "gpus": 8}), "pooled")
    assert beside["tpot_ms"] == alone["tpot_ms"]
    assert beside["verdict"] == alone["verdict"]
    assert beside["comm_ms"] > 0


@pytest.mark.parametrize("feature", ["tp", "requests", "auto"])
def test_files_say_the_same_of_a_row(feature: str, tmp_path: Path) -> None:
    """CSV and the values in the workbook, by header, of the row alone and in company."""
    own = {"id": "own", **ROWS["pooled"]}
    found = []
    for index, rows in enumerate(([own], [own, {"id": "other", **FEATURES[feature]}])):
        result = scenario.run(table("estimate", *rows), host=HOST)
        text = result.frame.write_csv()
        lines = {line["id"]: line for line in csv.DictReader(io.StringIO(text))}
        path = tmp_path / f"{index}.xlsx"
        result.to_excel(path)
        sheet = openpyxl.load_workbook(path, data_only=True)["Scenarios"]
        cells = list(sheet.iter_rows(values_only=True))
        head = next(at for at, line in enumerate(cells) if "id" in line and "tpot_ms" in line)
        body = next(dict(zip(cells[head], line, strict=True)) for line in cells[head + 1 :] if "own" in line)
        found.append((lines["own"], {name: value for name, value in body.items() if name}))
    of_row(found[1][0], found[0][0])
    of_row(found[1][1], found[0][1])
