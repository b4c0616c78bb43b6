"""Good tables: which rows they make, under which ids, and which value wins where several are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import polars as pl
import pytest

import scenario
from scenario import ScenarioError

ROW: dict[str, Any] = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": 1, "context": 0, "method": "vanilla"}
EAGLE = {**ROW, "method": "eagle"}


def frame(rows: list[dict[str, Any]] | None = None, plugins: tuple[str, ...] = (), **more: Any) -> pl.DataFrame:
    return scenario.run({"version": 1, **({"rows": rows} if rows else {}), **more}, plugins).frame


def ids(*rows: dict[str, Any], **more: Any) -> list[str]:
    return frame(list(rows), **more)["id"].to_list()


def test_a_grid_expands_with_its_last_list_fastest() -> None:
    """A grid makes every combination once, in the order of its lists; rows follow it."""
    found = frame([{**ROW, "batch": 64}], grid={**ROW, "batch": [1, 8], "method": ["vanilla", "eagle"]})
    assert found.select("batch", "method").rows() == [(1, "vanilla"), (1, "eagle"), (8, "vanilla"), (8, "eagle"), (64, "vanilla")]


def test_a_row_expands_in_the_order_it_is_written() -> None:
    """Lists inside a row expand as they stand in that row, the last fastest, whatever other rows do."""
    found = frame([{**ROW, "batch": [1, 2], "method": ["vanilla", "eagle"]},
                   {"method": ["vanilla", "eagle"], **{k: v for k, v in ROW.items() if k != "method"}, "batch": [3, 4]}])  # fmt: skip
    assert found.select("batch", "method").rows() == [
        (1, "vanilla"), (1, "eagle"), (2, "vanilla"), (2, "eagle"), (3, "vanilla"), (4, "vanilla"), (3, "eagle"), (4, "eagle")]


def test_a_row_of_many_combinations_is_made_like_a_small_one() -> None:
    """A row that expands to 20,000 keeps its order, its neighbours and its numbered id."""
    found = frame([{**ROW, "id": "a"}, {**ROW, "id": "b", "batch": range(1, 201), "context": range(100)}, {**ROW, "id": "c"}])
    assert found.height == 20_002
    assert found["id"].to_list()[:3] == ["a", "b-1", "b-2"]
    assert found["id"].to_list()[-2:] == ["b-20000", "c"]
    assert found.row(101, named=True)["batch"] == 2
    assert found["id"].is_unique().all()


@pytest.mark.parametrize(("rows", "expected"), [
    ([{**ROW, "batch": [1, 8]}], ["b1", "b8"]),
    ([{**ROW, "batch": [1, 8], "method": ["vanilla", "int4+eagle"]}], ["b1_vanilla", "b1_int4+eagle", "b8_vanilla", "b8_int4+eagle"]),
    ([ROW, ROW, ROW], ["llama-3.1-8b", "llama-3.1-8b-2", "llama-3.1-8b-3"]),
    ([{**ROW, "id": "x"}, {**ROW, "id": "y"}], ["x", "y"]),
    ([{**ROW, "id": "x", "batch": [1, 2]}], ["x-1", "x-2"]),
    ([{**ROW, "id": 7}, {**ROW, "id": "7a"}], ["7", "7a"]),
    ([{**ROW, "batch": [1, 8]}, {**ROW, "id": "b1"}], ["b1-2", "b8", "b1"]),
    ([{**ROW, "batch": 1}, {**ROW, "batch": 1}, {**ROW, "batch": 2, "id": "b1-2"}], ["b1", "b1-2-2", "b1-2"]),
    ([{**ROW, "context": 0.5}, {**ROW, "context": 1}], ["c0.5", "c1"]),
    ([{**EAGLE, "acceptance": [[0.8, 0.6], [0.7]]}], ["acceptance-0.8-0.6", "acceptance-0.7"]),
    ([{**EAGLE, "gamma": [None, 2]}], ["llama", "g2"]),
    ([{**ROW, "id": None}], ["llama-3.1-8b"]),
])  # fmt: skip
def test_ids_are_stable_and_unique(rows: list[dict[str, Any]], expected: list[str]) -> None:
    """An id is the one given, else what varies in short; one that was given is never changed to make room."""
    found = ids(*rows)
    if expected[0] == "llama":  # nothing but a blank: any text will do
        assert found[1] == expected[1]
    else:
        assert found == expected
    assert len(set(found)) == len(found)
    assert found == ids(*rows)


def test_the_value_of_a_row_wins_then_the_table_then_the_preset_then_the_method() -> None:
    """row > parameters > preset > default, each seen in the tokens per round of a chain (geometric sum by hand)."""
    def tokens(alpha: float, gamma: int) -> float:
        return sum(alpha**k for k in range(gamma + 1))

    def one(row: dict[str, Any], **more: Any) -> float:
        return float(frame([{**row}], **more)["tokens_per_round"][0])

    mtp = {**ROW, "method": "mtp"}
    assert one(mtp) == pytest.approx(tokens(0.85, 1))
    assert one(mtp, preset="deepseek-v3-mtp", parameters={"mtp": {"gamma": 3}}) == pytest.approx(tokens(0.85, 3))
    assert one(EAGLE, preset=["eagle-llama2-chat-70b"]) == pytest.approx(1 + 0.75 + 0.5175 + 0.336375 + 0.21528 + 0.1377792)
    assert one({**EAGLE, "gamma": 1}, preset="eagle-llama2-chat-70b") == pytest.approx(1.75)
    assert one(EAGLE, parameters={"eagle": {"alpha": 0.5}}) == pytest.approx(tokens(0.5, 4))
    assert one({**EAGLE, "alpha": 0.25}, parameters={"eagle": {"alpha": 0.5}}) == pytest.approx(tokens(0.25, 4))
    assert one({**EAGLE, "alpha": None}, parameters={"eagle": {"alpha": 0.5}}) == pytest.approx(tokens(0.5, 4))
    assert one(EAGLE, parameters={"eagle": {"alpha": None}}) == pytest.approx(tokens(0.75, 4))


def test_defaults_hold_where_a_row_is_silent_or_blank() -> None:
    """A default stands in for an input that is left out or blank, and yields to one that is given."""
    found = frame([{}, {"batch": 2}, {"batch": None, "method": "int4"}, {"gpus": 2}], defaults={**ROW, "weights": "fp8", "gpus": None})
    assert found["batch"].to_list() == [1, 2, 1, 1]
    assert found["method"].to_list() == ["vanilla", "vanilla", "int4", "vanilla"]
    assert found["weights"].to_list() == ["fp8"] * 4
    assert found["gpus"].to_list() == [1, 1, 1, 2]


@pytest.mark.parametrize("batch", [[1, 3, 5], (1, 3, 5), range(1, 6, 2), numpy.array([1, 3, 5]), numpy.array([1.0, 3, 5], dtype="float32"),
                                   pl.Series([1, 3, 5]), [numpy.int64(1), numpy.float32(3), 5.0]], ids=lambda value: type(value).__name__)  # fmt: skip
def test_data_of_many_sorts_makes_the_same_table(batch: Any) -> None:
    """A table given as data may hold ranges, tuples, numpy arrays and polars series for lists."""
    assert frame([{**ROW, "batch": batch}])["batch"].to_list() == [1, 3, 5]
    assert frame(grid={**ROW, "batch": batch})["batch"].to_list() == [1, 3, 5]


def test_the_digest_of_data_tells_tables_apart() -> None:
    """Two tables given as data differ in their digest even where their printed form is cut short."""
    one, other = (scenario.check({"version": 1, "rows": [{**ROW, "batch": numpy.arange(1, end)}]})[0].table for end in (3000, 3001))
    assert one.sha256 != other.sha256


def test_profiles_and_curves_are_read_end_to_end() -> None:
    """A named profile, one in place and one rate give sums of their marginal rates; a curve is linear between and beyond."""
    found = frame(
        [{**EAGLE, "acceptance": ["chat", "0.5/0.25", None], "gamma": 2}, {**EAGLE, "acceptance": [[0.9, 0.3]], "gamma": 2},
         {**EAGLE, "acceptance": 0.5, "gamma": 3}],
        profiles={"chat": {"rates": [0.8, 0.6], "source": "measured"}},
        curves={"t": [[1, 4], [3, 8], [7, 8]]}, columns={"y": 'curve("t", gamma)'},
    )  # fmt: skip
    assert found["tokens_per_round"].to_list() == pytest.approx([2.4, 1.75, 1 + 0.75 + 0.75**2, 2.2, 1 + 0.5 + 0.25 + 0.125])
    assert found["y"].to_list() == pytest.approx([6, 6, 6, 6, 8])


def test_models_gpus_and_prices_of_the_table_count() -> None:
    """A table changes fields of catalog entries, adds entries of its own and sets prices; times follow by hand."""
    tiny = {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 16, "ffn": 128, "vocab": 1000, "tied": True}
    fast = {"memory_gb": 10, "bandwidth_tb_s": 1, "bf16_tflops": 1000}
    found = frame([{**ROW, "model": "tiny", "gpu": "fast"}, {**ROW, "gpu": "h100-sxm"}], models={"tiny": tiny},
                  gpus={"fast": fast, "h100-sxm": {"bandwidth_tb_s": 6.7}}, prices={"fast": 3.6, "h100-sxm": {"usd_per_hour": 7.2}})  # fmt: skip
    # attention 2 h h + 2 h kv d per layer, SwiGLU 3 h f, two norms, final norm, one tied table
    params = 2 * (2 * 64 * 64 + 2 * 64 * 2 * 16 + 3 * 64 * 128 + 2 * 64) + 64 + 1000 * 64
    assert found["step_ms"][0] == pytest.approx(params * 2 / 1e9)
    assert found["usd_per_million_tokens"][0] == pytest.approx(3.6 / 3600 * params * 2 / 1e12 * 1e6)
    assert found["usd_per_hour"].to_list() == [3.6, 7.2]
    plain = frame([ROW])
    assert found["step_ms"][1] == pytest.approx(plain["step_ms"][0] * 3.35 / 6.7)


def test_where_sort_and_columns_act_on_the_output() -> None:
    """where drops rows (a blank condition too), sort orders them with blanks last, columns are computed from the others."""
    result = scenario.run({
        "version": 1, "rows": [{**ROW, "batch": [1, 8, 64]}, {**ROW, "model": "deepseek-v3", "batch": 2}],
        "columns": {"twice": {"formula": "2 * batch", "unit": "sequences"}, "again": "twice + 1"},
        "where": "batch < 60", "sort": ["-tokens_per_s", "batch"],
    })  # fmt: skip
    assert result.frame["batch"].to_list() == [8, 1, 2]
    assert result.frame["again"].to_list() == [17, 3, 5]
    assert result.units["twice"] == "sequences"
    assert result.left_out == 1
    assert frame([{**ROW, "model": "deepseek-v3"}, ROW], where="speedup > 0").height == 1
    assert frame([ROW], where="batch > 5").height == 0


def test_the_summary_says_what_it_shows() -> None:
    """Metrics, the input across and the values to start from are kept as given, or chosen from what varies."""
    book = scenario.check({"version": 1, "grid": {**ROW, "batch": [1, 8], "method": ["vanilla", "eagle"]},
                           "summary": {"rows": ["tpot_ms", "speedup"], "columns": "method", "where": {"batch": 8}}})[0]  # fmt: skip
    assert (book.summary_rows, book.summary_columns, dict(book.summary_where)) == (("tpot_ms", "speedup"), "method", {"batch": 8})
    assert scenario.check({"version": 1, "grid": {**ROW, "batch": [1, 8]}})[0].summary_columns == "batch"
    with pytest.raises(ScenarioError, match="no row has batch 7"):
        scenario.check({"version": 1, "grid": {**ROW, "batch": [1, 8]}, "summary": {"where": {"batch": 7}}})


def test_a_table_in_a_file_and_as_data_are_one(tmp_path: Path) -> None:
    """YAML, with anchors, merges, comments, a byte order mark and Windows line ends, gives what the mapping gives."""
    text = ("\ufeffversion: 1  # the format\r\ndefaults: &d {context: 0, gpu: h100-sxm}\r\nrows:\r\n"
            "  - &r {model: llama-3.1-8b, batch: 1e1, method: vanilla, <<: *d}\r\n  - {<<: *r, batch: 2_0}\r\n")  # fmt: skip
    (tmp_path / "t.yaml").write_bytes(text.encode())
    found = scenario.run(tmp_path / "t.yaml").frame
    same = frame([{**ROW, "batch": 10}, {**ROW, "batch": 20}])
    assert found.equals(same)
    assert found.height == 2
