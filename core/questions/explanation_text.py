"""Explanations as text, markdown and LaTeX: symbolic = with the numbers = value, then what it rests on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from scenario.common.numbers import show_number, show_value
from scenario.common.texts import escape_markdown, for_line
from scenario.formulas.expr import UNLIMITED, Blank, Node, Number
from scenario.formulas.nodes import Value
from scenario.formulas.to_latex import compile_latex, escape, symbol
from scenario.formulas.to_text import PLAIN, compile_text
from scenario.questions.explain import Step, walk


def shown(value: Value, unit: str = "", limit: bool = False) -> str:
    """A value with its unit, for reading: ``4.87 ms``, ``67.2 %``, ``yes``, ``blank``; ``limit``: of one that can be unlimited."""
    if isinstance(value, str):
        return f'"{value}"'
    most = UNLIMITED if limit else None
    if value is None or isinstance(value, bool) or (most and value >= most):
        return show_value(value, unlimited=most, blank="blank")
    return f"{show_number(value * 100 if unit == '%' else value, 6)} {unit}".rstrip()


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
    head = f"{pad}{_name(step)} = {result(step)}"
    if step.role != "calc" or step.again or step.symbolic is None:
        where = ["see above"] if step.again else [step.origin, step.source]
        said = "; ".join(note for note in where if note)
        return [head + (f"   [{said}]" if said else "")]
    lines = [head + (f"   {step.doc}" if step.doc else "")]
    inner = pad + "    "
    lines += [inner + line for line in _equations(step)]
    lines += [inner + note for note in _notes(step)]
    for below in step.below:
        lines += _text(below, level + 1)
    return lines


def _name(step: Step) -> str:
    return f"{step.name} of {step.of}" if step.of else step.name


def _equations(step: Step) -> list[str]:
    """The formula in names, and below it with the numbers put in, and what it gives."""
    assert step.symbolic is not None
    lines = [f"{step.name} = {compile_text(step.symbolic, signs=PLAIN)}"]
    if not _constant(step.symbolic):
        lead = " " * len(step.name)
        lines += [f"{lead} = {numbers(step)}", f"{lead} = {result(step)}"]
    return lines


def _notes(step: Step) -> list[str]:
    """What a formula rests on: the methods that answer with it, the cases that chose it, its source."""
    parts = (("by ", ", ".join(step.methods)), ("since ", "; ".join(step.cases)), ("source: ", step.source))
    return [word + said for word, said in parts if said]


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
    lines = [f"# Row {escape_markdown(row)}", ""]
    for step in _formulas(steps):
        lines += [f"## {escape_markdown(f'{_name(step)} = {result(step)}')}", ""]
        lines += [escape_markdown(step.doc), ""] if step.doc else []
        lines += [*_fenced(_equations(step)), ""]
        lines += [f"- {escape_markdown(note)}" for note in _notes(step)] + [""] * bool(_notes(step))
        if step.below:
            lines += ["| reads | value | from |", "| --- | ---: | --- |"]
            lines += [f"| `{b.name}` | {escape_markdown(result(b))} | {escape_markdown(_cell(b))} |" for b in step.below] + [""]
    return "\n".join(lines)


def _fenced(lines: Sequence[str]) -> list[str]:
    """Lines as code; a fence is longer than any run of its sign inside."""
    kept = [for_line(line) for line in lines]
    fence = "`" * max(3, *(len(run) + 1 for line in kept for run in re.findall("`+", line)), 3)
    return [fence, *kept, fence]


def _cell(step: Step) -> str:
    return "its formula" if step.role == "calc" else "; ".join(part for part in (step.origin, step.source) if part)


def as_latex(row: str, steps: Sequence[Step]) -> str:
    """A fragment for a paper: one ``align*`` per number (packages: amsmath)."""
    lines = [f"% row {for_line(row)}: needs \\usepackage{{amsmath}}"]
    for step in _formulas(steps):
        lines += ["", f"% {for_line(step.doc)}" if step.doc else "%", r"\begin{align*}"]
        lines.append(f"  {symbol(step.name)} &= " + " \\\\\n  &= ".join(_latex_rows(step)))
        lines.append(r"\end{align*}")
        if _notes(step):
            said = escape(for_line("; ".join(_notes(step))))
            for sign, command in _LATEX.items():
                said = said.replace(sign, f"${command}$")
            lines.append(said + r"\par")
    return "\n".join(lines) + "\n"


_LATEX = {"\u2212": "-", "\u00d7": r"\times", "\u2264": r"\le", "\u2265": r"\ge", "\u2260": r"\ne"}


def _latex_rows(step: Step) -> list[str]:
    assert step.symbolic is not None
    assert step.taken is not None
    rows = [compile_latex(step.symbolic)]
    if not _constant(step.symbolic):
        values = {name: _latex_value(value, step.units.get(name, ""), name in step.limits) for name, value in step.values.items()}
        rows.append(compile_latex(step.taken, values.__getitem__))
    return [*rows, _latex_value(step.value, step.unit, step.name in step.limits)]


def _latex_value(value: Value, unit: str, limit: bool) -> str:
    if value is None or isinstance(value, bool | str) or (limit and value >= UNLIMITED):
        return f"\\text{{{escape(shown(value, unit, limit))}}}"
    number = compile_latex(Number(value * 100 if unit == "%" else value))
    text = f"{number}\\,\\text{{{escape(unit)}}}" if unit else number
    return f"\\left({text}\\right)" if value < 0 else text


FORMATS: dict[str, Callable[[str, Sequence[Step]], str]] = {"text": as_text, "markdown": as_markdown, "latex": as_latex}
