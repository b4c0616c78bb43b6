"""``scenario simulate``: speculative sampling gives the target's text, and rounds as long as the papers' formulas say."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from scenario.cli.commands import main
from scenario.evidence import simulate, simulate_check

SHAPES = {
    "chain": simulate.tree([1, 1, 1, 1]),
    "tree": simulate.tree([3, 2, 1]),
    "medusa": simulate.topology([[0], [1], [2], [0, 0], [0, 1], [1, 0], [0, 0, 0]]),
}


@pytest.mark.parametrize("replacement", [False, True], ids=["differ", "repeat"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_text_is_the_targets(shape: str, replacement: bool) -> None:
    """The first three tokens of 60,000 sequences pass a chi-square test against the target decoding alone, whatever the draft."""
    rng = np.random.default_rng(7)
    lang = simulate.drawn(6, 0.3, rng)
    run = simulate.run(lang, SHAPES[shape], 60_000, 3, rng, replacement=replacement)
    verdict = simulate_check.text_verdict(lang, run)
    assert verdict.p_value > 1e-4
    assert verdict.total_variation < 2 * verdict.noise


def test_a_wrong_sampler_is_found_out() -> None:
    """Text drawn from the draft instead of the target fails the same test."""
    rng = np.random.default_rng(7)
    lang = simulate.drawn(6, 0.3, rng)
    wrong = simulate.Language(lang.q(0), lang.draft)
    run = simulate.run(wrong, SHAPES["chain"], 60_000, 3, rng)
    assert not simulate_check.text_verdict(lang, run).same


@pytest.mark.parametrize(
    ("alpha", "gamma", "tokens"),
    [(0.6, 4, 2.3056), (0.8, 2, 2.44), (0.8, 4, 3.3616), (0.8, 8, 4.32891), (0.9, 4, 4.0951), (0.0, 4, 1.0), (1.0, 4, 5.0)],
)
def test_chains_are_as_long_as_the_article_says(alpha: float, gamma: int, tokens: float) -> None:
    """Expected tokens per round are those of the article's lines E1 to E5, and 1 and gamma + 1 at the ends."""
    lang, shape = simulate.accepting([alpha]), simulate.tree([1] * gamma)
    assert simulate_check.expected_tokens(lang, shape) == pytest.approx(tokens, rel=1e-5)
    run = simulate.run(lang, shape, 100_000, 1, np.random.default_rng(3))
    mean, error = simulate_check.mean_and_error(run.tokens)
    assert abs(mean - tokens) <= 5 * error + 1e-9


@pytest.mark.parametrize("replacement", [False, True], ids=["differ", "repeat"])
@pytest.mark.parametrize("shape", SHAPES)
def test_trees_are_as_long_as_computed_exactly(shape: str, replacement: bool) -> None:
    """The mean length of the first round is the sum over nodes of the chance that each is kept."""
    rng = np.random.default_rng(11)
    lang = simulate.drawn(6, 0.4, rng)
    exact = simulate_check.expected_tokens(lang, SHAPES[shape], replacement=replacement)
    mean, error = simulate_check.mean_and_error(simulate.run(lang, SHAPES[shape], 100_000, 1, rng, replacement=replacement).tokens)
    assert exact is not None
    assert abs(mean - exact) < 5 * error


def test_two_tries_by_hand() -> None:
    """p = (.5, .5), q = (1, 0): the first try is kept half the time; a second draw of the same token never (SpecInfer)."""
    lang = simulate.language([0.5, 0.5], [1.0, 0.0])
    assert simulate_check.expected_tokens(lang, simulate.tree([1])) == pytest.approx(1.5)
    assert simulate_check.expected_tokens(lang, simulate.tree([2]), replacement=True) == pytest.approx(1.5)


def test_siblings_that_differ_cover_a_vocabulary_of_two() -> None:
    """p = (.6, .4), q = (.5, .5): the second child is what the first was not, so one of the two is always kept."""
    lang = simulate.language([0.6, 0.4], [0.5, 0.5])
    assert simulate_check.expected_tokens(lang, simulate.tree([2])) == pytest.approx(2.0)
    assert simulate_check.expected_tokens(lang, simulate.tree([2]), replacement=True) == pytest.approx(1 + 0.9 + 0.1 * 0.5)


@pytest.mark.parametrize("shape", SHAPES)
def test_greedy_text_is_the_targets_to_the_token(shape: str) -> None:
    """At temperature 0 every sequence is what the target alone would say after the same token."""
    rng = np.random.default_rng(5)
    lang = simulate.drawn(16, 0.6, rng)
    start = rng.integers(0, 16, 2_000)
    run = simulate.run(lang, SHAPES[shape], 2_000, 4, rng, greedy=True, keep=4, start=start)
    text, last = [], start
    for _ in range(4):
        last = lang.target[last].argmax(axis=1)
        text.append(last)
    assert (run.first == np.stack(text, axis=1)).all()


def test_the_cache_holds_the_text_but_for_its_newest_token() -> None:
    """Each round computes nodes + 1 positions and keeps one more than drafts were kept; nothing is lost or kept twice."""
    rng = np.random.default_rng(2)
    run = simulate.run(simulate.drawn(8, 0.5, rng), SHAPES["tree"], 500, 20, rng)
    assert run.rows == 3 + 6 + 6 + 1
    # The token before the first is in the text too, the newest is not in the cache yet.
    assert (run.kv_length == run.tokens.sum(axis=0)).all()
    assert run.tokens.min() >= 1
    assert run.tokens.max() <= 4


@pytest.mark.parametrize(
    ("chi", "degrees", "tail"),
    [(3.841, 1, 0.05), (18.307, 10, 0.05), (23.209, 10, 0.01), (124.342, 100, 0.05), (3.940, 10, 0.95), (0.0, 4, 1.0)],
)
def test_chi_square_tail(chi: float, degrees: int, tail: float) -> None:
    """Critical values are those of printed tables (Abramowitz and Stegun, table 26.8)."""
    assert simulate_check.chi_square_tail(chi, degrees) == pytest.approx(tail, abs=2e-4)


def test_overlap_is_one_less_the_total_variation() -> None:
    """beta = sum(min(p, q)) of (.5, .3, .2) and (.2, .5, .3) is .7."""
    assert simulate_check.overlap(simulate.language([0.5, 0.3, 0.2], [0.2, 0.5, 0.3])) == pytest.approx(0.7)


def run_command(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["simulate", *arguments])
    return done.exit_code, done.output


def test_command_reports_text_rounds_and_cache() -> None:
    """The default run shows the article's 3.3616 and says that text and rounds are as computed."""
    code, said = run_command("--sequences", "20000")
    assert code == 0
    assert "text: the target's" in said
    assert "tokens per round: as computed" in said
    assert "exact                             3.3616" in said
    assert "rolled back" in said


def test_command_reads_distributions_from_a_file(tmp_path: Path) -> None:
    """Given distributions (.5, .3, .2) and (.2, .5, .3): two drafts give 1 + .7 + .49 tokens; the same seed gives the same numbers."""
    path = tmp_path / "given.yaml"
    path.write_text("target: [0.5, 0.3, 0.2]\ndraft: [0.2, 0.5, 0.3]\ngamma: 2\n", encoding="utf-8")
    code, said = run_command(str(path), "--format", "json", "--sequences", "20000")
    assert code == 0
    assert json.loads(said)["exact_tokens_per_round"] == pytest.approx(2.19)
    assert said == run_command(str(path), "--format", "json", "--sequences", "20000")[1]


def test_json_files_are_read_as_well(tmp_path: Path) -> None:
    """A JSON file with one distribution per context and Medusa's list of paths runs."""
    path = tmp_path / "given.json"
    path.write_text(json.dumps({"target": [[0.9, 0.1], [0.2, 0.8]], "draft": [[0.5, 0.5], [0.5, 0.5]], "tree": [[0], [1], [0, 0]]}),
                    encoding="utf-8")  # fmt: skip
    code, said = run_command(str(path), "--sequences", "20000")
    assert code == 0
    assert "tree of 3 nodes, 2 deep" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("target: [0.5, 0.4]\ndraft: [0.5, 0.5]\n", "target: every distribution holds chances that sum to 1"),
        ("target: [0.5, 0.5]\n", "target and draft are given together"),
        ("target: [0.5, 0.5]\ndraft: [0.2, 0.3, 0.5]\n", "target has the shape (1, 2) and draft (1, 3)"),
        ("targt: [1]\n", "did you mean 'target'?"),
        ("target: [a, b]\ndraft: [1]\n", "a list of chances that sum to 1"),
        ("tree: [[0, 0]]\n", "its parent and its elder siblings must be in the tree"),
        ("- 1\n", "this is a mapping"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, text: str, said: str) -> None:
    """What cannot be simulated ends in exit code 2 with one clear message."""
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    code, output = run_command(str(path))
    assert code == 2
    assert said in output


def test_geometric_series_is_only_shown_where_it_holds() -> None:
    """For drawn languages, where acceptance depends on the context, the constant-alpha formula is left out."""
    said = run_command("--drawn", "--sequences", "20000")[1]
    assert "(1 - a^(gamma+1))" not in said
    assert math.isfinite(float(said.split("exact")[1].split()[0]))
