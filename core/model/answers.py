"""Answers that tables ask for by name (``show:``, or any mention): break-even points and the best draft length.

They cost nothing where they are not mentioned. Two families of helper columns have a sheet of their own in the
workbook: the time per token by draft length (``tpot_ms_g0`` to ``tpot_ms_g16``) and the speedup by batch
(``speedup_b1`` to ``speedup_b8192``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scenario.formulas import expr
from scenario.formulas.vectors import POSITIONS
from scenario.model import acceptance, side_by_side
from scenario.model.spec import Column

GAMMAS = range(POSITIONS + 1)
"""Draft lengths that are tried, unless a method of the table allows more or fewer."""
MOST_GAMMA = 64
"""The longest draft that is tried."""
BATCHES = tuple(2**power for power in range(14))
GAMMA_SHEET, BATCH_SHEET = "By gamma", "By batch"
FAMILIES = ("tokens", "rows", "draft_ms", "tpot_ms")
BY_GAMMA = {f"{family}_g{gamma}": (family, gamma) for gamma in range(MOST_GAMMA + 1) for family in FAMILIES}
"""Helper columns by draft length: what it is, and the length that stands in place of gamma."""


STEPS = {"step_ms": "One plain decode step with this method's weights", "verify_ms": "One verify pass",
          "baseline_ms": "One step of vanilla decoding", "draft_ms": "Drafting of one round",
         "draft_cost": "One draft pass over a step of vanilla decoding"}  # fmt: skip
"""What has helper columns at other batches: passes by their times, and what the drafting of every method rests on."""
STEP_UNITS = {"draft_cost": ""}
"""Their units, where they are no ms."""
NEEDS = {"draft_ms": ("baseline_ms", "draft_cost"), "draft_cost": ("baseline_ms",)}
"""The helper columns at a batch that another one at that batch reads: written out they would fill no cell."""


def by_gamma(gammas: range) -> dict[str, Column]:
    """The columns that choose among the draft lengths that are tried."""
    times = [f"tpot_ms_g{gamma}" for gamma in gammas]
    first = gammas[0]
    place = f"coalesce(best_gamma, {first}) - {first - 1}" if first > 1 else "coalesce(best_gamma, 1)" if first else "coalesce(best_gamma, 0) + 1"
    before, after = (f"best_gamma - {first}" if first else "best_gamma", f"best_gamma - {first - 2}" if first > 2 else f"best_gamma + {2 - first}")

    def relative(place: str) -> str:
        """The time at another length over the best one; blank where the method does not allow that length."""
        other = f"choose({place}, {', '.join(times)})"
        return f"{other} / best_tpot_ms - 1 if {other} < unlimited else blank"

    parts = (("tokens", "best_tokens", "tokens", "Tokens per round"), ("rows", "best_rows", "rows", "Token rows verified per sequence"),
             ("draft_ms", "best_draft_ms", "ms", "Drafting time per round"))  # fmt: skip
    return {
        "best_tpot_ms": Column(f"min({', '.join(times)})", "ms", "Time per token with the best number of draft tokens, memory aside."),
        "best_gamma": Column(
            "blank if is_blank(set_gamma) else "
            + "".join(f"{gamma} if {name} <= best_tpot_ms else " for gamma, name in zip(gammas[:-1], times, strict=False)) + f"{gammas[-1]}",
            "tokens", "Draft tokens per round that give the lowest time per token, of those that the method allows; 0 is off."),
        **{name: Column(f"choose({place}, {', '.join(f'{family}_g{gamma}' for gamma in gammas)})", unit,
                        f"{doc} with the best number of draft tokens.") for family, name, unit, doc in parts},
        "one_more_cost": Column(relative(after), "%",
                                "What one draft token more than the best adds to the time per token."),
        "one_less_cost": Column(relative(before), "%",
                                "What one draft token less than the best adds to the time per token; blank at 0."),
    }  # fmt: skip


CROSSING_AT = {"": "crossing_batch", "_after": "crossing_batch + 1"}
"""The batches that are columns themselves, by how the names of the helper columns there end."""
ASKED: dict[str, Column] = {
    **side_by_side.ASKED,
    "ridge_headroom": Column("ridge / intensity", "x", "How many times as many token rows a pass takes before arithmetic sets its time.",
                             source="Roofline: Williams, Waterman, Patterson 2009, doi:10.1145/1498765.1498785."),
    "accepted_per_round": Column("tokens_per_round - 1", "tokens", "Draft tokens accepted per round, without the bonus token."),
    "accepted_of_drafted": Column(
        "(tokens_per_round - 1) / (rows_per_sequence - 1) if rows_per_sequence > 1 else blank", "%",
        "Accepted draft tokens over those verified: the draft acceptance rate of serving engines."),
    "acceptance_source": Column("", "", "What says how much is accepted: a profile, a tree, a measured length, or constant alpha, "
                                "which is the fallback."),
    **acceptance.inversion("profile_alpha", "profile_length", "gamma"),
    "profile_length": Column("at(acceptance, gamma) if not is_blank(acceptance) else blank", "tokens",
                             "Tokens per round by the row's profile, hits aside."),
    "alpha_equivalent": Column("profile_alpha if not is_blank(acceptance) else alpha", "",
                               "The constant alpha that gives the same tokens per round with as many drafts."),
    **acceptance.inversion("measured_alpha", "measured_length", "measured_drafts"),
    "measured_drafts": Column("coalesce(measured_gamma, set_gamma)", "tokens", "Draft tokens per round when it was measured."),
    "measured_length": Column("coalesce(acceptance_length, accepted_length + 1, accepted_share * measured_drafts + 1)", "tokens",
                              "The measured tokens per round, bonus included."),
    "break_even_length": Column("1 + (round_ms / step_ms - 1) / coalesce(hit_rate, 1)", "tokens",
                                "Tokens per round, given a hit, at which a round is as fast as not drafting."),
    **acceptance.inversion("needed_alpha", "break_even_length", "gamma"),
    "break_even_alpha": Column("blank if is_blank(gamma) else 0 if break_even_length <= 1 else needed_alpha", "",
                               "Constant alpha from which drafting pays; blank when no acceptance is enough."),
    **by_gamma(GAMMAS),
    "best_round_ms": Column("", "ms", "One round with the best number of draft tokens."),
    "best_speedup": Column("", "x", "Speedup with the best number of draft tokens, memory aside."),
    **{f"speedup_b{batch}": Column("", "x", f"Gain of drafting at batch {batch} over the same weights without it, memory aside.")
       for batch in BATCHES},
    **{f"{name}_b{batch}": Column("", STEP_UNITS.get(name, "ms"), f"{doc} at batch {batch}.")
       for batch in BATCHES for name, doc in STEPS.items()},
    "break_even_bracket": Column(
        " else ".join(f"{batch} if speedup_b{batch} >= 1" for batch in reversed(BATCHES)) + " else 0", "sequences",
        "The largest power of two, up to 8192, at which drafting still pays; 0 when it never does."),
    "crossing_growth_ms": Column("draft_ms_b2 - draft_ms_b1", "ms", "What a sequence adds to the drafting time at small batches."),
    "crossing_batch": Column(
        "floor((tokens_per_round * step_ms_b1 - draft_ms_b1 + crossing_growth_ms)"
        " / (crossing_growth_ms + rows_per_sequence * 2 * gemm_params / (peak_tflops * gpus * mfu * 1e9)) * (1 + 1e-12))", "sequences",
        "Where the arithmetic of verifying and drafting takes as long as the steps that are saved, if drafting goes on growing like that."),
    "crossing_gain": Column("", "x", "Gain of drafting at crossing_batch over the same weights without it."),
    "crossing_gain_after": Column("", "x", "The same with one sequence more."),
    **{f"crossing_{name}{end}": Column("", STEP_UNITS.get(name, "ms"), f"{doc} at {place}.")
       for name, doc in STEPS.items() for end, place in CROSSING_AT.items()},
    "break_even_closed": Column(
        "0 if speedup_b1 < 1 else crossing_batch if crossing_batch >= 1 and crossing_gain >= 1 and crossing_gain_after < 1"
        " else break_even_bracket", "sequences",
        "In closed form for a dense model without a cache in the bound, where trying that batch and the next confirms it; else bracketed."),
    "break_even_batch": Column("", "sequences", "Largest batch at which drafting pays over the same weights without it: exact for a dense "
                               "model without a cache in the bound, else the largest power of two that still pays."),
}  # fmt: skip
"""Columns that exist only where they are mentioned. The ones without a formula get theirs from the assembler."""

BY_BATCH = {f"{family}_b{batch}": (family, batch) for family in ("speedup", *STEPS) for batch in BATCHES}
"""Helper columns by batch: what it is, and the batch that stands in place of the row's."""
GAIN = "tokens_per_round * step_ms / (draft_ms + verify_ms)"
"""Gain of drafting over the same weights without it; ``speedup_b1`` and so on are this at other batches."""
BEST = ("best_tokens", "best_rows", "best_draft_ms", "best_round_ms")
"""A round with the best number of draft tokens, from which ``best_speedup`` follows as ``speedup`` does from the row's own."""
CROSSING = {f"crossing_{family}{end}": (family, end) for family in ("gain", *STEPS) for end in CROSSING_AT}
"""Helper columns at batches that are columns themselves: what it is, and the end of its name."""
SIZING = "sizing_gamma"
"""Helper column of tables in which both the number of GPUs and that of draft tokens are to be found."""


def sized(gpus: int) -> str:
    """The helper column of the memory needed on this many GPUs; 0: on any number of them."""
    return f"sizing_memory_{gpus}_gb" if gpus else "sizing_memory_gb"


_READS: dict[str, tuple[str, ...]] = {
    "best_round_ms": BEST[:3], "best_speedup": BEST,
    **{name: ("crossing_batch", *(f"crossing_{step}{end}" for step in (STEPS if family == "gain" else NEEDS.get(family, ()))))
       for name, (family, end) in CROSSING.items()},
    **{name: tuple(f"{step}_b{batch}" for step in (STEPS if family == "speedup" else NEEDS.get(family, ())))
       for name, (family, batch) in BY_BATCH.items()},
}  # fmt: skip
"""The asked-for columns that those without a formula read."""

SHOWN = tuple(
    name for name in ASKED
    if "_step_" not in name and not name.startswith(("measured_", "profile_", "needed_", "crossing_"))
    and name not in ("break_even_closed", "break_even_bracket", *BEST, *BY_BATCH)
)  # fmt: skip
"""What ``show:`` offers."""
ALWAYS = ("acceptance_source", "accepted_per_round", "accepted_of_drafted")
"""Shown wherever a method drafts by ``alpha``."""
GROUPS = {
    "acceptance": (*ALWAYS, "alpha_equivalent"),
    "best_gamma": ("best_gamma", "best_tpot_ms", "best_speedup", "one_more_cost", "one_less_cost"),
    "break_even": ("break_even_batch", "break_even_alpha"),
}  # fmt: skip
"""Names that stand for several columns in ``show:``."""


def sheet_of(name: str) -> str:
    """The sheet of a helper column; empty for one that stands with the scenarios."""
    if name in BY_GAMMA or name in BEST:
        return GAMMA_SHEET
    return BATCH_SHEET if name in BY_BATCH or CROSSING.get(name, ("gain",))[0] != "gain" else ""


def closure(wanted: Iterable[str], extra: Mapping[str, Iterable[str]], gammas: range = GAMMAS) -> set[str]:
    """``wanted`` and every asked-for column that their formulas read; ``extra`` gives what formulas-to-be read."""
    columns = ASKED | by_gamma(gammas)
    found: set[str] = set()
    stack = list(wanted)
    while stack:
        name = stack.pop()
        if name in found or (name not in ASKED and name not in BY_GAMMA and name != "set_gamma"):
            continue
        found.add(name)
        if name in BY_GAMMA:
            family, gamma = BY_GAMMA[name]
            stack += [f"{part}_g{gamma}" for part in FAMILIES[:3]] if family == "tpot_ms" else []
        elif name in columns and columns[name].formula:
            stack += expr.names(expr.parse(columns[name].formula))
        stack += [*_READS.get(name, ()), *extra.get(name, ())]
    return found


SOURCES = {"tokens": "tokens_per_round", "rows": "rows_per_sequence", "draft_ms": "draft_ms"}
"""The three answers of a method that its time per token follows from, by family."""
MEANINGS = {"tokens": ("tokens", "Tokens per round"), "rows": ("rows", "Token rows verified per sequence"),
            "draft_ms": ("ms", "Drafting time per round"), "tpot_ms": ("ms", "Time per token, memory aside,")}  # fmt: skip
