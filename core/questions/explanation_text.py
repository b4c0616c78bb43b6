"""Explanations as text, markdown and LaTeX: symbolic = with the numbers = value, then what it rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from scenario.book.book import Value
from scenario.formulas.expr import UNLIMITED, Blank, Node, Number
from scenario.formulas.to_latex import compile_latex, escape, symbol
from scenario.formulas.to_text import PLAIN, compile_text, show_number
from scenario.questions.explain import Step, walk


def shown(value: Value, unit: str = "", limit: bool = False) -> str:
    """A value with its unit, for reading: ``4.87 ms``, ``67.2 %``, ``yes``, ``blank``; ``limit``: of one that can be unlimited."""
    if value is None:
        return "blank"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return f'"{value}"'
    if limit and value >= UNLIMITED:
        return "unlimited"
    if unit == "%":
        return f"{value * 100:.6g} %"
    return f"{show_number(value)} {unit}".rstrip()


def result(step: Step) -> str:
    """What a step gives, with its unit."""
    return shown(step.value, step.unit, step.name in step.limits)


def as_text(row: str, steps: Sequence[Step]) -> str:
    """For a terminal: each level is set in by two columns."""
    lines = [f"row {row}"]
    for step in steps:
        lines += ["", *_text(step, 0)]
    return "\n".join(lines) + "\n"


def _text(step: Step, level: int) -> list[str]:
    pad = "  " * level
    of = f" of {step.of}" if step.of else ""
    head = f"{pad}{step.name}{of} = {result(step)}"
    if step.role != "calc" or step.again or step.symbolic is None:
        where = ["see above"] if step.again else [step.origin, step.source]
        said = "; ".join(note for note in where if note)
        return [head + (f"   [{said}]" if said else "")]
    lines = [head + (f"   {step.doc}" if step.doc else "")]
    inner = pad + "    "
    lead = f"{inner}{step.name} "
    blank = " " * len(lead)
    lines.append(f"{lead}= {compile_text(step.symbolic, signs=PLAIN)}")
    if not _constant(step.symbolic):
        lines.append(f"{blank}= {numbers(step)}")
        lines.append(f"{blank}= {result(step)}")
    notes = [f"by {', '.join(step.methods)}"] if step.methods else []
    notes += [f"since {'; '.join(step.cases)}"] if step.cases else []
    notes += [f"source: {step.source}"] if step.source else []
    lines += [inner + note for note in notes]
    for below in step.below:
        lines += _text(below, level + 1)
    return lines


def _formulas(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps with a formula, each once."""
    seen = set()
    for step in walk(list(steps)):
        if step.symbolic is not None and (step.of, step.name) not in seen:
            seen.add((step.of, step.name))
            yield step


def _constant(node: Node) -> bool:
    return isinstance(node, Number | Blank)


def numbers(step: Step, label: Callable[[str], str] | None = None) -> str:
    """The formula that applies, with values and units in place of names."""
    assert step.taken is not None

    def value(name: str) -> str:
        text = shown(step.values[name], step.units.get(name, ""), name in step.limits)
        return f"({text})" if text.startswith("-") else text

    return compile_text(step.taken, label or value, signs=PLAIN)


def as_markdown(row: str, steps: Sequence[Step]) -> str:
    """For a page: a heading per number, formulas as code, what it rests on as a table."""
    lines = [f"# Row {row}", ""]
    for step in _formulas(steps):
        assert step.symbolic is not None
        of = f" of {step.of}" if step.of else ""
        lines += [f"## {step.name}{of} = {result(step)}", ""]
        lines += [step.doc, ""] if step.doc else []
        lines += ["```", f"{step.name} = {compile_text(step.symbolic, signs=PLAIN)}"]
        if not _constant(step.symbolic):
            lead = " " * len(step.name)
            lines += [f"{lead} = {numbers(step)}", f"{lead} = {result(step)}"]
        lines += ["```", ""]
        notes = [f"by {', '.join(step.methods)}"] if step.methods else []
        notes += [f"since {'; '.join(step.cases)}"] if step.cases else []
        notes += [f"source: {step.source}"] if step.source else []
        lines += [f"- {note}" for note in notes] + [""] * bool(notes)
        if step.below:
            lines += ["| reads | value | from |", "| --- | ---: | --- |"]
            lines += [f"| `{b.name}` | {result(b)} | {_cell(b)} |" for b in step.below] + [""]
    return "\n".join(lines)


def _cell(step: Step) -> str:
    said = "its formula" if step.role == "calc" else "; ".join(part for part in (step.origin, step.source) if part)
    return said.replace("|", "\\|")


def as_latex(row: str, steps: Sequence[Step]) -> str:
    """A fragment for a paper: one ``align*`` per number (packages: amsmath)."""
    lines = [f"% row {row}: needs \\usepackage{{amsmath}}"]
    for step in _formulas(steps):
        assert step.symbolic is not None
        assert step.taken is not None
        rows = [compile_latex(step.symbolic)]
        if not _constant(step.symbolic):
            rows.append(compile_latex(step.taken, lambda name, step=step: _latex_value(step.values[name], step.units.get(name, ""), name in step.limits)))  # type: ignore[misc]
        rows.append(_latex_value(step.value, step.unit, step.name in step.limits))
        lines += ["", f"% {step.doc}" if step.doc else "%", r"\begin{align*}"]
        lines.append(f"  {symbol(step.name)} &= " + " \\\\\n  &= ".join(rows))
        lines.append(r"\end{align*}")
        if step.methods or step.cases or step.source:
            notes = [f"by {', '.join(step.methods)}"] * bool(step.methods) + [f"since {'; '.join(step.cases)}"] * bool(step.cases)
            notes += [f"source: {step.source}"] * bool(step.source)
            lines.append(escape("; ".join(notes)).replace("−", "$-$").replace("×", r"$\times$").replace("≤", r"$\le$")
                         .replace("≥", r"$\ge$").replace("≠", r"$\ne$") + r"\par")  # fmt: skip
    return "\n".join(lines) + "\n"


def _latex_value(value: Value, unit: str, limit: bool) -> str:
    if value is None or isinstance(value, bool | str) or (limit and value >= UNLIMITED):
        return f"\\text{{{escape(shown(value, unit, limit))}}}"
    number = compile_latex(Number(value * 100 if unit == "%" else value))
    text = f"{number}\\,\\text{{{escape(unit)}}}" if unit else number
    return f"\\left({text}\\right)" if value < 0 else text


FORMATS: dict[str, Callable[[str, Sequence[Step]], str]] = {"text": as_text, "markdown": as_markdown, "latex": as_latex}
