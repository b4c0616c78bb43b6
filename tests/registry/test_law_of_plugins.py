"""The law of plugins: one that a table does not use changes nothing, and what a method calls its own is its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import scenario
from scenario.api import bundled
from scenario.cli.commands import main
from scenario.registry import host

DATA = Path(__file__).parent.parent / "data" / "plugins"
PLUGINS = [str(DATA / f"{name}.py") for name in ("draft_layers", "helper_column", "two_helpers")]
"""They use names that built-in methods have for other things, one name each for two things, and helper columns."""
ROW = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": 2, "context": 2048}


@pytest.fixture(scope="module")
def hosts() -> tuple[host.Host, host.Host]:
    """The built-in methods alone, and with every plugin of the folder."""
    return host.load(third_party=False), host.load(PLUGINS, third_party=False)


@pytest.mark.parametrize("name", sorted(bundled()))
def test_a_plugin_that_a_table_does_not_use_changes_nothing(name: str, hosts: tuple[host.Host, host.Host], tmp_path: Path) -> None:
    """Every bundled table gives the same CSV, byte for byte, with every plugin loaded."""
    alone, full = (scenario.run(name, host=loaded).to_csv(tmp_path / f"{place}.csv").read_bytes() for place, loaded in enumerate(hosts))
    assert alone == full


def test_nor_does_it_change_the_workbook(hosts: tuple[host.Host, host.Host], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workbook is the same file, byte for byte: no drop-down, no sheet and no note tells of the plugin."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    alone, full = (scenario.run("article-mtp", host=loaded).to_excel(tmp_path / f"{place}.xlsx").read_bytes() for place, loaded in enumerate(hosts))
    assert alone == full


def test_a_parameter_of_a_plugin_is_no_field_of_a_draft_model(hosts: tuple[host.Host, host.Host]) -> None:
    """``draft_layers`` of a plugin is not the depth of the draft model that small-model names, used in one table or not."""
    table = {"version": 1, "parameters": {"small-model": {"draft": "llama-3.2-1b"}, "dflash": {"draft_layers": 6}}}
    alone = scenario.run({**table, "parameters": {"small-model": {"draft": "llama-3.2-1b"}}, "rows": [{**ROW, "method": "small-model"}]},
                         host=hosts[0]).frame  # fmt: skip
    frame = scenario.run({**table, "rows": [{**ROW, "method": ["small-model", "dflash"]}]}, host=hosts[1]).frame
    assert frame["draft_ms"][0] == alone["draft_ms"][0]
    assert frame["draft_ms"][1] == pytest.approx(6 / 32 * frame["baseline_ms"][1])  # llama-3.1-8b has 32 layers


def test_a_helper_column_of_a_plugin_works_in_its_rows(hosts: tuple[host.Host, host.Host]) -> None:
    """``pass_ms`` is a tenth of a step, and drafting is two of them."""
    frame = scenario.run({"version": 1, "rows": [{**ROW, "method": ["vanilla", "m2"]}]}, host=hosts[1]).frame
    assert frame["draft_ms"].to_list() == [0, pytest.approx(0.2 * frame["baseline_ms"][1])]


def test_two_methods_have_one_name_for_two_things(hosts: tuple[host.Host, host.Host]) -> None:
    """A parameter in weights and one in ms, a helper in bits and one in ms: each keeps its own, in one table and in one stack."""
    frame = scenario.run({"version": 1, "rows": [{**ROW, "method": ["qz", "dr", "qz+dr"]}]}, host=hosts[1]).frame
    assert frame["weight_bits"].to_list() == [32 / 64 + 4, 16, 32 / 64 + 4]
    assert frame["draft_ms"].to_list() == [0, 0.5 * 2 * 2, 0.5 * 2 * 2]


def test_a_row_gives_a_private_name_to_its_own_method(hosts: tuple[host.Host, host.Host]) -> None:
    """``window`` in a row is that of the row's method; in a stack of both it is asked which is meant."""
    rows = [{**ROW, "method": "qz", "window": 128}, {**ROW, "method": "dr", "window": 0.25}, {**ROW, "method": "qz+dr"}]
    frame = scenario.run({"version": 1, "rows": rows}, host=hosts[1]).frame
    assert frame["weight_bits"].to_list() == [4.25, 16, 4.5]
    assert frame["draft_ms"].to_list() == [0, 1, 2]
    own = scenario.run({"version": 1, "rows": [{**ROW, "method": "qz+dr", "qz_window": 128, "dr_window": 0.25}]}, host=hosts[1]).frame
    assert (own["weight_bits"][0], own["draft_ms"][0]) == (4.25, 1)
    with pytest.raises(scenario.TableError, match=r"(?s)'window' is a parameter of .*qz_window or dr_window"):
        scenario.run({"version": 1, "rows": [{**ROW, "method": "qz+dr", "window": 1}, {**ROW, "method": "dr"}]}, host=hosts[1])


def test_a_workbook_of_such_methods_comes_back(tmp_path: Path) -> None:
    """What the methods of a plugin call by one name is kept apart in the workbook, and read back without a word."""
    run = CliRunner()
    table, book, plugin = tmp_path / "t.yaml", tmp_path / "t.xlsx", ["-p", PLUGINS[2]]
    table.write_text((DATA / "two_helpers.yaml").read_text(encoding="utf-8") + "parameters: {qz: {window: 32}, dr: {window: 0.75}}\n")
    assert run.invoke(main, ["run", str(table), "-q", "-o", str(book), *plugin]).exit_code == 0
    done = run.invoke(main, ["check", str(book), *plugin])
    assert (done.exit_code, "passed over" in done.output) == (0, False), done.output
    first = scenario.run(table, plugin[1:]).frame
    assert scenario.run(book, plugin[1:]).frame.equals(first)
    assert first["weight_bits"].to_list() == [16, 5, 16]


def test_a_faulty_plugin_is_named_with_its_file_and_line(tmp_path: Path) -> None:
    """The message names the plugin's file and the line that describes what is wrong."""
    path = tmp_path / "faulty.py"
    path.write_text("""from scenario import Column, Method, hookimpl
@hookimpl
def scenario_methods():
    yield Method("good", columns={"draft_ms": Column("1", "ms", "d")})
    yield Method("bad", columns={"draft_ms": Column("nowhere * 2", "ms", "d")})
""")
    with pytest.raises(scenario.PluginError) as caught:
        host.load([str(path)], third_party=False)
    assert str(caught.value).startswith(f"{path}:5:1: method 'bad', column 'draft_ms': ")
    path.write_text("import scenario\nraise ValueError('no')\n")
    with pytest.raises(scenario.PluginError) as caught:
        host.load([str(path)], third_party=False)
    assert str(caught.value).startswith(f"{path}:2:1: the plugin cannot be loaded")
