"""Plugins: loaded by file, module or entry point; isolated; every fault of one is told in a line."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import scenario
from scenario import PluginError, ScenarioError
from scenario.cli.commands import main
from scenario.registry import host

ROOT = Path(__file__).parents[2]
ROW = {"model": "llama-3.1-8b", "gpu": "h100-sxm", "batch": 1, "context": 0}
HEAD = "from scenario import *\nfrom scenario import hookimpl, Method, Parameter, Column\n"


def method(inside: str) -> str:
    return f"{HEAD}@hookimpl\ndef scenario_methods():\n    yield Method({inside})\n"


GOOD = method("'mine', parameters={'hit': Parameter(0.5, 0, 1)}, columns={'tokens_per_round': Column('1 + hit')}")
BROKEN = {
    "answer in a circle": (method("'m', columns={'tokens_per_round': Column('1 + tpot_ms')}"),
                           "method 'm', column 'tokens_per_round': its answer goes round in a circle: tokens_per_round -> tpot_ms -> tokens_per_round"),
    "parameter in a circle": (method("'m', parameters={'a': Parameter(None, 0, 1, derive='draft_ms')}, columns={'draft_ms': Column('a')}"),
                              "its answer goes round in a circle: draft_ms -> a -> draft_ms"),
    "time model in a circle": (f"{HEAD}from scenario import TimeModel\n@hookimpl\ndef scenario_time_models():\n    yield TimeModel('t', 'rows + round_ms')\n",
                               "time model 't', column"),
    "import error": ("import nowhere_to_be_found\n", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
    "syntax error": ("def (:\n", "SyntaxError"),
    "sys.exit": ("import sys\nsys.exit(0)\n", "SystemExit: 0"),
    "raises at import": ("raise ValueError('two\\nlines')\n", "ValueError: two lines"),
    "no hook": ("x = 1\n", "the plugin has no hook"),
    "unmarked hook": ("def scenario_methods():\n    return []\n", "the hook scenario_methods is not marked"),
    "wrong hook name": (f"{HEAD}@hookimpl\ndef scenario_method():\n    return []\n", "there is no hook 'scenario_method'"),
    "hook with an argument": (f"{HEAD}@hookimpl\ndef scenario_methods(table):\n    return []\n", "table"),
    "hook that raises": (f"{HEAD}@hookimpl\ndef scenario_methods():\n    1 / 0\n", "scenario_methods() fails: ZeroDivisionError"),
    "hook that raises late": (
        f"{HEAD}@hookimpl\ndef scenario_methods():\n    yield Method('early')\n    raise KeyError('x')\n", "scenario_methods() fails: KeyError"),
    "hook that exits": (f"{HEAD}import os, sys\n@hookimpl\ndef scenario_methods():\n    sys.exit(3)\n", "fails: SystemExit: 3"),
    "hook without end": (f"{HEAD}@hookimpl\ndef scenario_methods():\n    while True:\n        yield Method('x')\n", "more than 10,000"),
    "returns nothing": (f"{HEAD}@hookimpl\ndef scenario_methods():\n    pass\n", "must yield or return a list of Method"),
    "returns text": (f"{HEAD}@hookimpl\ndef scenario_methods():\n    return 'eagle'\n", "must yield or return a list of Method"),
    "wrong type": (f"{HEAD}@hookimpl\ndef scenario_methods():\n    yield 5\n", "gave int where Method is due"),
    "clash": (method("'eagle', columns={'tokens_per_round': Column('2')}"), "'eagle' (built in) and"),
    "own name twice": (f"{HEAD}@hookimpl\ndef scenario_methods():\n    yield Method('a')\n    yield Method('a')\n", "'a' is brought by two"),
    "bad name": (method("'My Method'"), "is not a good name for a method"),
    "name of a number": (method("5"), "named by a text"),
    "api": (method("'mine', api=2"), "written for plugin contract 2; this is contract 1"),
    "bad formula": (method("'mine', columns={'tokens_per_round': Column('1 +* 2')}"), "column 'tokens_per_round': the formula cannot be read"),
    "unknown name": (method("'mine', columns={'tokens_per_round': Column('1 + bacth')}"), "did you mean 'batch'"),
    "text formula": (method("'mine', columns={'tokens_per_round': Column('\"x\"')}"), "gives a text"),
    "formula of a number": (method("'mine', columns={'tokens_per_round': Column(5)}"), "formula is int; str is due"),
    "engine column": (method("'mine', columns={'step_ms': Column('1')}"), "'step_ms' is computed by the engine"),
    "not a column": (method("'mine', columns={'tokens_per_round': '1'}"), "str where Column is due"),
    "not a parameter": (method("'mine', parameters={'hit': 0.5}"), "float where Parameter is due"),
    "list of parameters": (method("'mine', parameters=['hit']"), "parameters is list; Mapping is due"),
    "shared name": (method("'mine', parameters={'batch': Parameter(1, 0, 9)}"), "'batch' is already a shared name"),
    "keyword": (method("'mine', parameters={'lambda': Parameter(1, 0, 9)}"), "'lambda' is a word of the formula language"),
    "default outside": (method("'mine', parameters={'hit': Parameter(2, 0, 1)}"), "the default does not fit: 2 is out of range"),
    "no range": (method("'mine', parameters={'hit': Parameter(2)}"), "a number needs a range"),
    "limits crossed": (method("'mine', parameters={'hit': Parameter(None, 3, 1)}"), "lower limit 3 is above"),
    "limit of a text": (method("'mine', parameters={'hit': Parameter(1, 'a', 3)}"), "low is str"),
    "unknown kind": (method("'mine', parameters={'hit': Parameter(1, 0, 3, kind='numbr')}"), "did you mean 'number'"),
    "unknown model": (method("'mine', parameters={'small': Parameter('gpt-9', kind='model')}"), "no model 'gpt-9'"),
    "bad profile": (method("'mine', parameters={'rates': Parameter('0.5/0.9', kind='profile')}"), "never rise"),
    "other kind": (method("'mine', parameters={'alpha': Parameter('x', kind='choice', choices=('x',))}"), "and another kind"),
    "preset": (f"{HEAD}@hookimpl\ndef scenario_presets():\n    yield Preset('p', 'eagel', {{}})\n", "unknown method 'eagel'"),
    "preset value": (f"{HEAD}@hookimpl\ndef scenario_presets():\n    yield Preset('p', 'eagle', {{'alpha': 3}})\n", "3 is out of range"),
    "column": (f"{HEAD}@hookimpl\ndef scenario_columns():\n    yield NamedColumn('x', 'batch')\n", "column is str; Column is due"),
    "function": (f"{HEAD}@hookimpl\ndef scenario_functions():\n    yield Function('max', ('x',), 'x')\n", "the name of a function"),
    "recursion": (f"{HEAD}@hookimpl\ndef scenario_functions():\n    yield Function('f', ('x',), 'f(x)')\n", "f"),
    "exporter ending": (f"{HEAD}@hookimpl\ndef scenario_exporters():\n    yield Exporter('x', '.foo', print)\n", "suffixes is str"),
    "exporter clash": (f"{HEAD}@hookimpl\ndef scenario_exporters():\n    yield Exporter('x', ('.csv',), print)\n", "already written by format 'csv'"),
    "time model": (f"{HEAD}@hookimpl\ndef scenario_time_models():\n    yield TimeModel('x', 'rows +')\n", "cannot be read"),
}  # fmt: skip


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, **plugins: str) -> None:
    """Make an installed distribution of these modules: a dist-info folder on sys.path is all it takes."""
    info = folder / "stranger-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.2\n")
    lines = ["[scenario]"]
    for name, text in plugins.items():
        (folder / f"stranger_{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, f"stranger_{name}", raising=False)
        lines.append(f"{name} = stranger_{name}")
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(str(folder))


def test_the_example_plugin_runs_on_a_table(tmp_path: Path) -> None:
    """The draft method of the README is loaded from its file, and its numbers are those of its formulas by hand."""
    text = (ROOT / "examples" / "my_draft.py").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 25
    table = {"version": 1, "rows": [{**ROW, "method": ["vanilla", "my-lookahead"]}, {**ROW, "method": "my-lookahead", "hit": 0.5, "ngram": 3}]}
    frame = scenario.run(table, [str(ROOT / "examples" / "my_draft.py")]).frame
    assert frame["tokens_per_round"].to_list() == pytest.approx([1, 1 + 0.4 * 3, 1 + 0.5 * 2])
    assert frame["rows_per_sequence"].to_list() == [1, 30, 20]
    # Weights are read once whatever the rows, as long as memory is what limits: the speedup is the tokens per round.
    assert frame["speedup"].to_list() == pytest.approx([1, 2.2, 2.0])
    (tmp_path / "t.yaml").write_text(
        "version: 1\nrows:\n  - {model: llama-3.1-8b, gpu: h100-sxm, batch: 1, context: 0, method: int4+my-lookahead}\n")
    done = CliRunner().invoke(main, ["run", str(tmp_path / "t.yaml"), "-p", str(ROOT / "examples" / "my_draft.py")])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("sort", BROKEN)
def test_a_broken_plugin_that_was_named_is_an_error(sort: str, tmp_path: Path) -> None:
    """A file named with -p that cannot be used ends the run with exit code 2, its name and what is wrong."""
    text, said = BROKEN[sort]
    path = tmp_path / "broken_one.py"
    path.write_text(text)
    with pytest.raises(PluginError) as caught:
        host.load([str(path)], third_party=False)
    shown = " ".join(str(caught.value).split())
    assert said in shown
    assert str(path) in shown
    assert "Traceback" not in shown
    assert caught.value.exit_code == 2
    assert not [name for name in sys.modules if name.startswith("scenario_plugin_broken_one")] or "Error" not in sort


@pytest.mark.parametrize("sort", BROKEN)
def test_a_broken_plugin_that_is_installed_is_left_out(sort: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed plugin that cannot be used takes nothing with it: the others load, and one line says why it did not."""
    text, said = BROKEN[sort]
    install(tmp_path, monkeypatch, broken=text, zgood=GOOD)
    loaded = host.load()
    failed = [plugin for plugin in loaded.failures if plugin.name == "broken"]
    assert len(failed) == 1
    assert said in failed[0].error
    assert failed[0].origin == "stranger 1.2"
    assert "\n" not in failed[0].error
    assert failed[0].adds == []
    assert "mine" in loaded.methods
    assert "early" not in loaded.methods
    assert {"vanilla", "eagle", "int4"} <= set(loaded.methods)


def test_an_installed_plugin_works_like_a_built_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry point of group scenario is found, listed with its distribution, and can be switched off."""
    install(tmp_path, monkeypatch, extra=GOOD)
    table = {"version": 1, "rows": [{**ROW, "method": "mine", "hit": 0.25}]}
    assert scenario.run(table).frame["tokens_per_round"].to_list() == [1.25]
    shown = CliRunner().invoke(main, ["plugins"]).output
    assert "extra (stranger 1.2): loaded" in shown
    assert "method mine" in shown
    with pytest.raises(ScenarioError, match="switched off: extra"):
        scenario.check(table, ["no:extra"])


def test_a_method_whose_plugin_failed_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that names an unknown method learns which installed plugin did not load, and why."""
    install(tmp_path, monkeypatch, gone="import nowhere_to_be_found\n")
    with pytest.raises(ScenarioError) as caught:
        scenario.check({"version": 1, "rows": [{**ROW, "method": "my-lookahead"}]})
    assert "unknown method 'my-lookahead'" in str(caught.value)
    assert "plugin 'gone' (stranger 1.2) failed to load: ModuleNotFoundError" in str(caught.value)
    done = CliRunner().invoke(main, ["list", "tables", "-p", "stranger_gone"])
    assert done.exit_code == 2


def test_a_plugin_that_is_switched_off_is_not_even_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """-p no:name comes before the import, so a plugin that would end the process does no harm."""
    install(tmp_path, monkeypatch, deadly="import os\nos._exit(7)\n")
    loaded = host.load(["no:deadly"])
    assert [plugin.state for plugin in loaded.plugins if plugin.name == "deadly"] == ["off"]
    assert "stranger_deadly" not in sys.modules


def test_switching_off_a_built_in_method_makes_room_for_another(tmp_path: Path) -> None:
    """A plugin may bring a method of a built-in name once the built-in one is off, in whatever order they are named."""
    path = tmp_path / "eagle.py"
    path.write_text(method("'eagle', columns={'tokens_per_round': Column('2')}"))
    table = {"version": 1, "rows": [{**ROW, "method": "eagle"}]}
    for names in ([str(path), "no:eagle"], ["no:eagle", str(path), str(path)]):
        assert scenario.run(table, names).frame["tokens_per_round"].to_list() == [2]
    with pytest.raises(PluginError, match="no plugin of this name"):
        host.load(["no:eagel"])


def test_two_files_of_one_name_are_kept_apart(tmp_path: Path) -> None:
    """A second plugin of the same name is refused with the place of the first, and modules do not mix."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.py").write_text(method(f"'{folder}-method'"))
    with pytest.raises(PluginError, match="a plugin named 'same' is already loaded"):
        host.load([str(tmp_path / "a" / "same.py"), str(tmp_path / "b" / "same.py")], third_party=False)
    assert "b-method" in host.load([str(tmp_path / "b" / "same.py")], third_party=False).methods


def test_a_failed_installed_plugin_can_be_replaced_by_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While mending an installed plugin its author may load the new file under the same name."""
    install(tmp_path / "site", monkeypatch, mend=f"{HEAD}@hookimpl\ndef scenario_methods():\n    1 / 0\n")
    (tmp_path / "mend.py").write_text(GOOD)
    assert "mine" in host.load([str(tmp_path / "mend.py")]).methods


def test_naming_an_installed_plugin_again_is_harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """-p module for a module that an entry point has loaded already changes nothing."""
    install(tmp_path, monkeypatch, twice=GOOD)
    loaded = host.load(["stranger_twice"])
    assert len([plugin for plugin in loaded.plugins if "twice" in plugin.name]) == 1


@pytest.mark.parametrize("name", ["nowhere.py", "no_such_module_at_all", "folder", "a b", ""])
def test_a_plugin_that_is_not_there_is_said(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing file or module named with -p is one problem, not a traceback."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with pytest.raises(PluginError):
        host.load([name], third_party=False)


def test_what_a_plugin_prints_stays_out_of_the_output(tmp_path: Path) -> None:
    """Prints at import and in hooks go to stderr: stdout may be the CSV that a program reads."""
    (tmp_path / "chatty.py").write_text("print('LOUD')\n" + GOOD.replace("    yield", "    print('LOUD')\n    yield"))
    (tmp_path / "t.yaml").write_text("version: 1\nrows:\n  - {model: llama-3.1-8b, gpu: h100-sxm, batch: 1, context: 0, method: mine}\n")
    done = CliRunner().invoke(main, ["run", str(tmp_path / "t.yaml"), "-p", str(tmp_path / "chatty.py"), "-o", "-"])
    assert done.exit_code == 0
    assert done.stdout.startswith("id,")
    assert "LOUD" not in done.stdout
    assert done.stderr.count("LOUD") == 2


def test_each_row_obeys_the_range_of_its_own_method(tmp_path: Path) -> None:
    """Two methods may allow different values of an input they share; a row is held to its own method's."""
    path = tmp_path / "wide.py"
    path.write_text(method("'wide', parameters={'gamma': Parameter(2.5, above=0, high=40)}, columns={'tokens_per_round': Column('gamma')}"))
    row = {**ROW, "method": "wide", "gamma": 30.5}
    assert scenario.run({"version": 1, "rows": [row]}, [str(path)]).frame["tokens_per_round"].to_list() == [30.5]
    with pytest.raises(ScenarioError, match="gamma of method 'eagle': a whole number is needed"):
        scenario.check({"version": 1, "rows": [{**row, "method": "eagle"}]}, [str(path)])


def test_a_default_profile_of_a_plugin_is_known(tmp_path: Path) -> None:
    """An acceptance profile that a method has as its default works without the table saying a word."""
    path = tmp_path / "prof.py"
    path.write_text(method("'prof', parameters={'rates': Parameter('0.8/0.4', kind='profile')}, columns={'tokens_per_round': Column('at(rates, 2)')}"))
    frame = scenario.run({"version": 1, "rows": [{**ROW, "method": "prof"}]}, [str(path)]).frame
    assert frame["tokens_per_round"].to_list() == pytest.approx([2.2])


@pytest.mark.parametrize("folder", ["plugins", "exporters", "examples"])
def test_plugins_import_nothing_but_what_scenario_exports(folder: str) -> None:
    """Built-in plugins are written as a stranger would write them: of this package they see only its top level.

    The writer of workbooks also sees what a workbook looks like, which it shares with their reader.
    """
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert not [name for name in node.names if name.name.startswith("scenario.")], path
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "scenario":
                own = node.module == "scenario.exporters" or (node.module or "").startswith(f"scenario.{folder}")
                own = own or (path.parent.name == "xlsx" and (node.module or "").startswith("scenario.workbooks.form"))
                own = own or (path.parent.name == "tests" and node.module == "scenario.testing")
                names = {name.name for name in node.names}
                assert own or (node.module == "scenario" and names <= {*scenario.__all__, "__version__"}), f"{path}: {names}"


def test_a_plugin_cannot_slow_down_help(tmp_path: Path) -> None:
    """Installed plugins are looked for by commands that need them only."""
    code = "import sys, scenario.cli\nsys.exit('pluggy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_built_in_answer_goes_round_in_a_circle() -> None:
    """What is asked of a stranger's plugin when it loads holds for those that come with the program."""
    from scenario.registry import loops

    loaded = host.load(third_party=False)
    assert [str(problem) for item in (*loaded.methods.values(), *loaded.time_models.values()) for problem in loops.of(item, loaded)] == []
    assert len(loaded.methods) > 10


def test_without_the_default_time_model_a_table_has_to_say_one() -> None:
    """`-p no:bound` is no way to get other numbers from the same table unawares."""
    with pytest.raises(ScenarioError, match="the table says no time_model, and the default, 'bound', is not there"):
        scenario.run({"version": 1, "rows": [{**ROW, "method": "vanilla"}]}, ["no:bound"])


def test_a_file_named_without_its_ending_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-p my_draft` beside my_draft.py; and a name that is empty."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_unique_draft.py").write_text(GOOD)
    with pytest.raises(ScenarioError, match=r"did you mean the file my_unique_draft\.py"):
        host.load(["my_unique_draft"])
    with pytest.raises(ScenarioError, match="this is an empty name"):
        host.load([""])
