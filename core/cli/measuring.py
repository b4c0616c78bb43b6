"""What ``scenario calibrate`` and ``scenario acceptance`` do and print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from scenario.catalogs import catalog
from scenario.cli.options import wrote
from scenario.common import files, texts
from scenario.common.errors import Problem, TableError, nearest
from scenario.registry import host


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A plain table on standard output, the first two columns to the left."""
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    for row in [heads, *rows]:
        cells = [part.ljust(width) if i < 2 else part.rjust(width) for i, (part, width) in enumerate(zip(row, widths, strict=True))]
        click.echo("  ".join(cells).rstrip())


def calibrate(paths: Sequence[str], output: str | None, given: Mapping[str, Any], seed: int, quiet: bool, models: str | None = None) -> None:
    """Read, fit, report, write. ``models`` is a table whose models and GPUs the measurements may name."""
    from scenario.evidence import calibrate as fitting
    from scenario.evidence import measurements

    known = catalog.of_table(models) if models else catalog.builtin()
    reading = measurements.read(paths, given, known)
    if output:
        files.refuse(Path(output))
    if not reading.points:
        first = {reason: place for place, reason in reversed(reading.skipped)}
        listed = [f"{place}: {reason}" for reason, place in reversed(first.items())]
        reasons = "; ".join([*listed[:5], *([f"and {len(listed) - 5} other reasons"] if len(listed) > 5 else [])])
        raise TableError(Problem("there are no measurements to fit to", reasons))
    found = fitting.calibrate(reading.points, host.load(third_party=False), seed, known)
    if not found:
        raise TableError(Problem("no measurement fits into the memory of its GPUs", "check gpu, gpus and weights"))
    if not quiet:
        _report(found, reading, fitting)
    if output:
        names = ", ".join(Path(path).name for path in paths)
        wrote(output, files.replace_text(Path(output), fitting.to_yaml(found, f"scenario calibrate {names}")), False)


def _report(found: Sequence[Any], reading: Any, fitting: Any) -> None:
    def cells(errors: Any) -> list[str]:
        known = fitting.stats(errors)
        return [f"{value:.1%}" for value in known] if known else ["-"] * 3

    rows = []
    for fit in found:
        rows.append([fit.gpu, fit.engine, str(fit.points), *cells(fit.fitted), *cells(fit.errors), *cells(fit.first_errors)])
    heads = ["GPU", "engine", "points", "fit: mean", "median", "p90", "held out: mean", "median", "p90", "TTFT: mean", "median", "p90"]
    table(heads, rows)
    if len(found) > 1:
        import numpy as np

        whole = np.concatenate([fit.errors for fit in found])
        click.echo(f"all, held out: mean {cells(whole)[0]}, median {cells(whole)[1]}, p90 {cells(whole)[2]}")
    for fit in found:
        click.echo(f"\n{fit.name}")
        table(["constant", "unit", "value", "uncertain by"],
              [[name, fitting.entities.HARDWARE_CONSTANTS[name].unit, f"{fit.constants[name]:.4g}", f"{fit.uncertainty[name]:.0%}"]
               for name in fitting.WIDTHS if name in fit.uncertainty])  # fmt: skip
        for note in fit.notes:
            click.echo(f"  note: {note}")
        for place, why in fit.outliers[:20]:
            click.echo(f"  outlier {place}: {why}")
        if len(fit.outliers) > 20:
            click.echo(f"  ... and {len(fit.outliers) - 20} more outliers")
        for place, why in fit.left_out[:5]:
            click.echo(f"  left out {place}: {why}")
        if len(fit.left_out) > 5:
            click.echo(f"  ... and {len(fit.left_out) - 5} more left out")
    for place, why in reading.skipped[:10]:
        click.echo(f"skipped {place}: {why}")
    if len(reading.skipped) > 10:
        click.echo(f"... and {len(reading.skipped) - 10} more skipped")


def acceptance(paths: Sequence[str], output: str | None, method: str, gamma: int | None, source: str, quiet: bool) -> None:
    """Read, report, write the parameters."""
    from scenario.common import emit
    from scenario.evidence import logs

    loaded = host.load(third_party=False)
    if method not in loaded.methods:
        raise TableError(Problem(f"there is no method '{method}'", nearest(method, loaded.methods)))
    if "alpha" not in loaded.methods[method].parameters:
        drafting = [name for name, known in loaded.methods.items() if "alpha" in known.parameters]
        raise TableError(Problem(f"method '{method}' takes no acceptance", f"--method is one that drafts: {', '.join(drafting)}"))
    report = logs.read(paths)
    report.wanted = source
    if not quiet:
        _acceptance_report(report)
    if report.best is None:
        raise TableError(_nothing(report, source))
    read = report.parameters(method, gamma)
    found = {name: value for name, value in read.items() if name in loaded.methods[method].parameters}
    if not found:
        raise TableError(Problem(f"method '{method}' has no parameter for what is in here: {', '.join(read)}",
                                 f"it takes {', '.join(loaded.methods[method].parameters)}"))  # fmt: skip
    text = "\n".join(["parameters:", f"  {method}:", *(line for name, value in found.items() for line in emit.entry(name, value, 4))]) + "\n"
    if output:
        said = texts.for_line(f"# from {', '.join(Path(path).name for path in paths)}: {report.best.name}")
        wrote(output, files.replace_text(Path(output), f"{said}\n{text}"), False)
    elif not quiet:
        click.echo()
    if not output:
        click.echo(text, nl=False)


def _nothing(report: Any, wanted: str) -> Problem:
    """Why no parameters follow, without denying what was seen."""
    usable = [name for name, found in report.sources.items() if found.total.rounds and not found.partial]
    if usable:
        return Problem(f"no source that can be used has '{wanted}' in its name", f"there are {', '.join(usable)}")
    if report.sources or report.refused:
        return Problem("what stands in here about accepted drafts does not say how many tokens a round gains", report.lacking())
    return Problem("there is nothing about accepted drafts that can be used", report.lacking() or "see docs/inputs.md for what is read")


def _acceptance_report(report: Any) -> None:
    rows = []
    for source in report.sources.values():
        for label, tally in [("all", source.total), *sorted(source.batches.items())]:
            if label == 0 or (label == "all" and source.partial):
                continue
            drafted = f"{tally.gamma:.2f}" if tally.gamma else "-"
            rates = " ".join(f"{rate:.3f}" for rate in tally.rates) or "-"
            length = f"{tally.length:.3f}" if tally.length else "-"
            rows.append([source.name, str(label), f"{tally.rounds:,.0f}", drafted, length, rates])
        if source.partial:
            share = source.total.accepted / source.total.drafted if source.total.drafted else 0
            rows.append([source.name, "all", "-", "-", "-", f"{share:.1%} of the drafted tokens"])
    table(["source", "batch", "rounds", "drafted", "length", "accepted by position (marginal)"], rows)
    if report.draft_cost is not None:
        click.echo(f"draft cost: {report.draft_cost:.3f} of a target step (proposal per token / scoring)")
    if report.hit_rate is not None:
        per_step = f"; {report.tokens_per_step:.2f} tokens per step, those without one counted" if report.tokens_per_step else ""
        click.echo(f"hit rate: {report.hit_rate:.3f} of the steps had a draft{per_step}")
    for name, why in report.refused.items():
        click.echo(f"not read: {name}: {why}")
    for note in report.notes:
        click.echo(f"note: {note}")
