"""A difference of two tables for people and programs: markdown, JSON, and the rows that every form shows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from scenario.common import emit
from scenario.common.numbers import show_value
from scenario.questions.diff import Diff
from scenario.questions.diff_columns import INTERACTION, Movement

HEADLINES = (
    "tpot_ms", "tokens_per_s", "speedup", "bound", "memory_gb", "fits", "max_batch", "usd_per_million_tokens", "status",
)  # fmt: skip
"""Shared columns that a short report shows; the table's own columns are always shown."""
TOGETHER = "only together"
"""What is said of a value that no change brings by itself."""
LISTED = 40
"""Rows of a part that a terminal or a markdown page lists."""
Cells = Sequence[Any]


def show(value: Any) -> str:
    """A value in few digits; blank as a dash."""
    return show_value(value)


def signed(value: float | None) -> str:
    return "-" if value is None else ("+" if value > 0 else "") + show(value)


def percent(value: float | None) -> str:
    """A relative change, such as +12.3 %."""
    if value is None:
        return "-"
    return f"{value:+.1%}" if abs(value) < 10 else f"{value:+,.0%}"


def headline(found: Diff) -> str:
    """One line that says how much differs."""
    if found.equal:
        return f"{found.old} and {found.new} say the same: {count(found.matched, 'row')}"
    parts = [count(len(found.changes), "input") + " changed", f"{count(found.matched, 'row')} in both"]
    parts += [f"{len(found.appeared):,} appeared"] if found.appeared else []
    parts += [f"{len(found.gone):,} gone"] if found.gone else []
    parts.append(f"{count(len(found.movements), 'output')} moved" if found.movements else "no output moved")
    return f"{found.old} -> {found.new}: " + ", ".join(parts)


def count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def exact(value: Any) -> str:
    """An input as it was given, to the last digit."""
    return emit.number(value) if isinstance(value, int | float) and not isinstance(value, bool) else show(value)


def input_rows(found: Diff) -> list[Cells]:
    """Input, old value, new value, rows."""
    return [(change.label, change.old, change.new, change.rows) for change in found.changes]


def row_rows(rows: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    """Id and what the row gives."""
    return [(row["id"], ", ".join(f"{name} {exact(value)}" for name, value in row.items() if name != "id")) for row in rows]


def causes(movement: Movement, *, turned: bool = False) -> str:
    """What moved the numbers, or with ``turned`` what made the other steps; the most effective first."""
    shares = [share for share in movement.shares if (share.turned if turned else share.rows)]
    if turned:
        ordered = sorted(shares, key=lambda share: (share.label == INTERACTION, -share.turned))
        return "; ".join(f"{TOGETHER if share.label == 'interaction' else share.label} ({count(share.turned, 'row')})" for share in ordered)
    return "; ".join(f"{s.label} {percent(s.relative) if s.relative is not None else signed(s.change)}" for s in shares)


def span(movement: Movement) -> str:
    """The range of relative changes over the rows."""
    if movement.least is None or movement.most is None or movement.numbers < 2:
        return ""
    return f"{percent(movement.least)} to {percent(movement.most)}" if movement.most > movement.least else ""


def turns(movement: Movement) -> str:
    """The steps that are not from number to number, the most frequent first."""
    said = [f"{show(old) if old is not None else 'blank'} -> {show(new) if new is not None else 'blank'} ({count(rows, 'row')})"
            for old, new, rows in movement.turned]  # fmt: skip
    return "; ".join(said[:4]) + (f"; and {len(said) - 4} more" if len(said) > 4 else "")


def output_row(movement: Movement) -> tuple[str, ...]:
    """Output, rows, old, new, change, relative, range."""
    numbers: tuple[str, ...] = ("", "", "", "", "")
    if movement.numbers:
        numbers = (show(movement.old), show(movement.new), signed(movement.change), percent(movement.relative), span(movement))
    return (f"{movement.column} ({movement.unit})" if movement.unit else movement.column, f"{movement.numbers:,}", *numbers)


def shown_shares(shares: Sequence[dict[str, Any]], old: str | None) -> str:
    """The shares of one moved value."""
    try:
        base = abs(float(old)) if old else 0.0
    except ValueError:
        base = 0.0
    if any(s["change"] is None for s in shares):
        return "; ".join(TOGETHER if s["by"] == INTERACTION else s["by"] for s in shares)
    return "; ".join(f"{s['by']} " + (percent(s["change"] / base) if base else signed(s["change"])) for s in shares)


def by_row(found: Diff, most: int | None = None) -> list[tuple[Any, ...]]:
    """Id, output, old, new, change, relative, causes of every moved value."""
    frame = found.moved if most is None else found.moved.head(most)
    return [(row["id"], row["column"], plain(row["old"]), plain(row["new"]), row["change"], row["relative"],
             shown_shares(row["shares"], row["old"])) for row in frame.iter_rows(named=True)]  # fmt: skip


def plain(text: str | None) -> Any:
    """A moved value as number, flag or text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


# -- markdown --------------------------------------------------------------------------------------------


def markdown(found: Diff) -> str:
    """A page with every part that has something to say."""
    lines = [f"# What changed from {_safe(found.old)} to {_safe(found.new)}", "", _safe(headline(found)) + "."]
    if found.changes:
        rows = [(label, exact(old), exact(new), show(rows) if rows is not None else "") for label, old, new, rows in input_rows(found)]
        lines += ["", "## Inputs that changed", "", *_table(("input", "old", "new", "rows"), rows, "lrrr")]
    for title, listed in (("Rows that appeared", found.appeared), ("Rows that went", found.gone)):
        if listed:
            lines += ["", f"## {title}", "", *_table(("id", "what it is"), row_rows(listed[:LISTED]), "ll"), *_more(len(listed))]
    numbers = [movement for movement in found.movements if movement.numbers]
    turned = [movement for movement in found.movements if movement.turned]
    if numbers:
        heads: tuple[str, ...] = ("output", "rows", "old", "new", "change", "relative", "range", "moved by")
        lines += ["", "## Outputs that moved", "", "Means over the rows that moved; relative to the old value of each row.", "",
                  *_table(heads, [(*output_row(m), causes(m)) for m in numbers], "lrrrrrll")]  # fmt: skip
    if turned:
        steps = [(m.column, turns(m), causes(m, turned=True)) for m in turned]
        lines += ["", "## Outputs that turned", "", *_table(("output", "steps", "turned by"), steps, "lll")]
    if found.moved.height:
        heads = ("id", "output", "old", "new", "change", "relative", "moved by")
        values = [(a, b, show(c), show(d), signed(e), percent(f), g) for a, b, c, d, e, f, g in by_row(found)]
        lines += ["", "## Row by row", "", *_table(heads, values, "llrrrrl")]
    lines += [f"\n> {_safe(note)}." for note in found.notes]
    return "\n".join(lines) + "\n"


def _more(number: int) -> list[str]:
    return ["", f"... and {number - LISTED:,} more"] if number > LISTED else []


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], sides: str) -> list[str]:
    rules = ["---:" if side == "r" else "---" for side in sides]
    return ["| " + " | ".join(_safe(str(cell)) for cell in row) + " |" for row in (heads, rules, *rows)]


def _safe(text: str) -> str:
    """Text that stays one cell and no markup."""
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("`", "\\`").split())


# -- JSON ------------------------------------------------------------------------------------------------


def to_json(found: Diff) -> str:
    """Everything, for programs."""
    data = {
        "old": found.old, "new": found.new, "equal": found.equal, "rows_in_both": found.matched,
        "changes": [{"kind": c.kind, "name": c.name, "old": c.old, "new": c.new, "rows": c.rows} for c in found.changes],
        "appeared": found.appeared, "gone": found.gone,
        "outputs": [
            {**{key: value for key, value in asdict(m).items() if key not in ("turned", "shares")},
             "turned": [{"old": old, "new": new, "rows": rows} for old, new, rows in m.turned],
             "shares": [asdict(share) for share in m.shares]}
            for m in found.movements
        ],
        "notes": found.notes,
    }  # fmt: skip
    if found.moved.height:
        data["by_row"] = [{**row, "old": plain(row["old"]), "new": plain(row["new"])} for row in found.moved.iter_rows(named=True)]
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
