"""``scenario explain`` and ``scenario graph``: what they say is what the engine computes."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from scenario import api
from scenario.cli.commands import main
from scenario.formulas import functions, to_latex
from scenario.formulas.expr import parse
from scenario.formulas.to_latex import compile_latex
from scenario.formulas.to_python import evaluate
from scenario.questions import drawing, explain
from scenario.questions import explanation_text as show_steps
from scenario.questions.resolve import resolve

ONE = """
version: 1
rows:
  - {id: stacked, model: llama-3-8b, gpu: h100-sxm, batch: 8, context: 0, method: int4+eagle, alpha: 0.8, gamma: 4}
  - {id: plain, model: llama-3-8b, gpu: h100-sxm, batch: 8, context: 0, method: vanilla}
"""


def scenario(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "one.yaml"
    path.write_text(ONE, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", [name for name in api.bundled() if name.startswith(("article", "starter"))])
def test_the_formula_that_is_shown_gives_the_value_that_is_shown(name: str) -> None:
    """For every column of a first, a middle and a last row, plain Python arithmetic on the shown formula gives the engine's value."""
    book, _ = api.check(str(api.bundled()[name]))
    ids = book.table.rows["id"].to_list()
    for row in {ids[0], ids[len(ids) // 2], ids[-1]}:
        values = explain.row_values(book, row)
        for item in book.fields.values():
            if item.node is None:
                continue
            found = resolve(item.node, values, book)
            for node in (found.symbolic, found.taken):
                got, wanted = evaluate(node, values, book.vectors), values[item.name]
                if isinstance(wanted, float) and got is not None:
                    assert math.isclose(got, wanted, rel_tol=1e-12, abs_tol=1e-300), (row, item.name)
                else:
                    assert got == wanted, (row, item.name)


def test_text_puts_the_numbers_into_the_formula(table: str) -> None:
    """Expected tokens of a chain of 4 at 0.8 are 3.3616 (article, line E3), shown symbolic, substituted and as a value, by its method."""
    said = scenario("explain", table, "tokens_per_round", "--row", "stacked").output
    assert "= (1 − 0.8 ^ (4 tokens + 1)) / (1 − 0.8)\n" in said
    assert re.search(r"^ +tokens_per_round = at\(acceptance, gamma\) if .* else \(1 − alpha \^ \(gamma \+ 1\)\)", said, re.M)
    assert "= 3.3616 tokens" in said
    assert "by method eagle" in said
    assert "alpha = 0.8   [row 'stacked' of" in said


def test_a_choice_is_resolved_to_the_methods_of_the_row(table: str) -> None:
    """INT4's bits come to the stacked row from its quantizing method; the vanilla row reads the stored weights."""
    stacked = scenario("explain", table, "weight_bits", "--row", "stacked").output
    assert "weight_bits = bits + (scale_bits + zero_bits) / group_size" in stacked
    assert "= 4 bit + (16 bit + 16 bit) / 128 weights" in stacked
    assert "= 4.25 bit" in stacked
    assert "by method int4" in stacked
    plain = scenario("explain", table, "weight_bits", "--row", "plain").output
    assert "16 bit" in plain
    assert "method" not in plain


def test_a_profile_shows_its_rates(tmp_path: Path) -> None:
    """Where tokens are read from an acceptance profile, its rates and their source stand below: 1 + .8 + .4 = 2.2 tokens."""
    path = tmp_path / "profile.yaml"
    path.write_text(
        "version: 1\nprofiles: {logged: {rates: [0.8, 0.4], source: a log}}\nrows:\n  - {model: llama-3-8b, gpu: h100-sxm, batch: 8, "
        "context: 0, method: eagle, acceptance: logged, gamma: 2}\n", encoding="utf-8")  # fmt: skip
    said = scenario("explain", str(path), "tokens_per_round").output
    assert '= at("logged", 2 tokens)\n' in said
    assert "= 2.2 tokens" in said
    assert re.search(r'acceptance = "logged"   \[row .*; marginal rates 0.8, 0.4; a log\]', said)


def test_depth_says_how_far_down_to_go(table: str) -> None:
    """Depth 0 is the column alone; each level more adds the formulas of what it reads, down to catalog entries with sources."""
    lines = [len(scenario("explain", table, "speedup", "--row", "plain", "--depth", str(depth)).output.splitlines()) for depth in range(5)]
    assert lines == sorted(set(lines))
    deep = scenario("explain", table, "weight_gb", "--row", "plain", "--depth", "9").output
    assert "hidden of llama-3-8b = 4,096   [catalog; https://" in deep
    assert "kv_lora_rank > 0 is false" in deep
    assert "q_lora_rank of" not in deep
    assert "params of llama-3-8b = 8,030,261,248 parameters" in deep


def test_without_a_column_the_main_results_are_explained(table: str) -> None:
    """Speed, memory and price each have their formula."""
    said = scenario("explain", table, "--row", "plain", "--depth", "0").output
    for name in explain.HEADLINE:
        assert f"\n{name} = " in said


def test_markdown_and_latex_say_the_same(table: str) -> None:
    """All formats show the same value; LaTeX has balanced braces and environments."""
    markdown = scenario("explain", table, "tokens_per_round", "--row", "stacked", "--format", "markdown").output
    latex = scenario("explain", table, "tokens_per_round", "--row", "stacked", "--format", "latex").output
    assert "## tokens_per_round = 3.3616 tokens" in markdown
    assert r"&= 3.3616\,\text{tokens}" in latex
    assert r"1 - {0.8}^{4\,\text{tokens} + 1}" in latex
    bare = latex.replace(r"\{", "").replace(r"\}", "")
    assert bare.count("{") == bare.count("}")
    assert latex.count(r"\begin{") == latex.count(r"\end{")
    assert latex.count(r"\left") == latex.count(r"\right")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--row", "stackd"], "there is no row 'stackd'\n  did you mean 'stacked'?"),
        ([], "the table has 2 rows: say which with --row\n  rows: stacked, plain"),
        (["speedupp", "--row", "plain"], "unknown column 'speedupp'\n  did you mean 'speedup'?"),
    ],
)
def test_what_cannot_be_explained_is_named(table: str, arguments: list[str], said: str) -> None:
    """A wrong row or column ends in exit code 2 and a suggestion."""
    done = scenario("explain", table, *arguments)
    assert done.exit_code == 2
    assert said in done.output


@pytest.mark.parametrize(
    ("formula", "latex"),
    [
        ("alpha ** (gamma + 1)", r"{\alpha}^{\gamma + 1}"),
        ("(a + b) / 2e9", r"\frac{\mathrm{a} + \mathrm{b}}{2 \cdot 10^{9}}"),
        ("2 * (a - (b - c))", r"2 \cdot \left(\mathrm{a} - \left(\mathrm{b} - \mathrm{c}\right)\right)"),
        ("-a_b // 3", r"\left\lfloor \frac{-\mathrm{a\_b}}{3} \right\rfloor"),
        ("(a / b) ** 2", r"{\left(\frac{\mathrm{a}}{\mathrm{b}}\right)}^{2}"),
        ("a if b > 0 else 1", r"\begin{cases} \mathrm{a} & \text{if } \mathrm{b} > 0 \\ 1 & \text{otherwise} \end{cases}"),
        ("ceil(sqrt(a))", r"\left\lceil \sqrt{\mathrm{a}} \right\rceil"),
        ('"50 %" if a else "x"', r"\begin{cases} \text{50 \%} & \text{if } \mathrm{a} \\ \text{x} & \text{otherwise} \end{cases}"),
        ("not (a and b)", r"\lnot \left(\mathrm{a} \land \mathrm{b}\right)"),
    ],
)
def test_latex_of_formulas(formula: str, latex: str) -> None:
    """Each kind of expression has its LaTeX, bracketed where its meaning needs it."""
    assert compile_latex(parse(formula)) == latex


def test_latex_has_every_function() -> None:
    """The LaTeX back end knows every function of the language."""
    assert {spec.name for spec in functions.FUNCTIONS.values() if not spec.lint} - set(to_latex.FUNCTIONS) == set()


def test_the_formats_of_the_command_are_those_there_are() -> None:
    """The command line offers each format that is implemented."""
    for command, formats in (("explain", show_steps.FORMATS), ("graph", drawing.FORMATS)):
        option = next(param for param in main.get_command(None, command).params if param.name == "format_")  # type: ignore[arg-type,union-attr]
        assert list(option.type.choices) == list(formats)  # type: ignore[attr-defined]


def test_graph_draws_what_a_column_rests_on(table: str) -> None:
    """Every line of the drawing joins two boxes, and the row's choice leaves other methods' parameters out."""
    said = scenario("graph", table, "tokens_per_round", "--row", "stacked").output
    boxes = {line.split("[")[0].split("(")[0].split("{")[0].strip() for line in said.splitlines() if ":::" in line}
    edges = [tuple(line.strip().split(" --> ")) for line in said.splitlines() if "-->" in line]
    assert ("n_alpha", "n_tokens_per_round") in edges
    assert {end for edge in edges for end in edge} == boxes
    assert "n_ngram_alpha" not in boxes
    assert "n_ngram_alpha" in scenario("graph", table, "tokens_per_round").output


def test_dot_names_every_box_once(table: str) -> None:
    """The dot file declares each node before it joins them."""
    said = scenario("graph", table, "speedup", "--format", "dot").output
    declared = re.findall(r'^  "(\w+)" \[', said, re.M)
    assert len(declared) == len(set(declared))
    assert {end for edge in re.findall(r'"(\w+)" -> "(\w+)"', said) for end in edge} <= set(declared)


def test_help_imports_nothing_heavy() -> None:
    """``scenario --help`` imports neither polars nor openpyxl, yaml, numpy or rich, whatever commands there are."""
    code = ("import sys; from click.testing import CliRunner; from scenario.cli.commands import main; "
            "done = CliRunner().invoke(main, ['--help']); assert done.exit_code == 0 and 'explain' in done.output; "
            "print([name for name in ('polars', 'openpyxl', 'yaml', 'numpy', 'rich', 'pluggy') if name in sys.modules])")  # fmt: skip
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
