"""What a table asks for beside the columns of every row: dialects of acceptance, answers, families of helper columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from scenario.book import by_method
from scenario.book.scope import Pending, Scope, scalar_name
from scenario.formulas import expr
from scenario.formulas.expr import Binary, Blank, Call, Compare, If, Logic, Name, Node, Number
from scenario.formulas.to_text import compile_text
from scenario.formulas.vectors import POSITIONS
from scenario.formulas.what_if import WhatIf
from scenario.model import acceptance, answers, features, serving, shared
from scenario.model.spec import Column, Method
from scenario.tables.table import parameter_specs


def prepare(scope: Scope) -> None:
    """Find out which optional parameters and columns the table has."""
    scope.mentioned = mentions(scope)
    specs = parameter_specs(scope.host)
    scope.parameters = {name: parameter for name, parameter in specs.items() if not parameter.quiet or scope.uses(name)}
    scope.absent = absences(scope)
    scope.asked = asked_columns(scope)


def mentions(scope: Scope) -> set[str]:
    """The names that the table and the plugins' columns read or show."""
    table = scope.table
    texts = [column.formula for column, _ in table.columns.values()] + ([table.where.text] if table.where else [])
    texts += [named.column.formula for named in scope.host.columns.values()]
    texts += summary_formulas(scope)
    found = {name for text in texts for name in expr.names(expr.parse(text))}
    shown = [part for name in table.show for part in answers.GROUPS.get(name, (name,))]
    return found | {name for name, _ in table.sort} | {*table.summary.rows, table.summary.columns, *table.summary.where, *shown}


def summary_formulas(scope: Scope) -> list[str]:
    """The formulas of a summary whose columns are scenarios of their own."""
    asked = scope.table.summary.table
    return list(asked.formulas) if asked is not None else []


def absences(scope: Scope) -> dict[str, Node]:
    """What formulas read in place of parameters that this table has no cell for."""
    found: dict[str, Node] = {}
    for name, parameter in parameter_specs(scope.host).items():
        if name not in scope.parameters:
            found[name] = by_method.unset(scope, parameter)
    for name in ("alpha", "gamma", "hit_rate", *acceptance.DIALECTS, *acceptance.ADDED):
        if name not in scope.parameters:
            found.setdefault(name, Blank())
    found |= dict.fromkeys(scope.model.unasked, Blank())
    if "auto_gamma" not in scope.parameters:
        found["set_gamma"] = Name("gamma") if "gamma" in scope.parameters else Blank()
    return found


def asked_columns(scope: Scope) -> set[str]:
    """The columns of :mod:`scenario.model.answers` that this table has."""
    drafting = [scope.host.methods[name] for name in scope.used if "alpha" in scope.host.methods[name].parameters]
    wanted = set(scope.mentioned) | (set(answers.ALWAYS) if drafting else set())
    if any(name in scope.parameters for name in acceptance.LENGTHS):
        wanted.add("measured_alpha")
    if drafting and scope.uses("acceptance"):
        wanted.add("alpha_equivalent")
    if "auto_gamma" in scope.parameters:
        wanted.add("best_gamma")
    reads = {"break_even_batch": ["break_even_closed", "break_even_bracket"]}
    if any(name in scope.parameters for name in acceptance.LENGTHS):
        reads["acceptance_source"] = ["measured_length"]
    found = answers.closure(wanted, reads, gammas(scope))
    return found - set(scope.absent) - set(scope.table.columns)


def gammas(scope: Scope) -> range:
    """The draft lengths that are tried: from the fewest to the most that a method of the table allows."""
    used = [method for name, method in scope.host.methods.items() if name in scope.used and "gamma" in method.parameters]
    limits = [gamma_limits(method) for method in used]
    return range(min(low for low, _ in limits), max(high for _, high in limits) + 1) if limits else answers.GAMMAS


def gamma_limits(method: Method) -> tuple[int, int]:
    """The fewest and the most draft tokens that a method allows, of those that are tried."""
    parameter = method.parameters["gamma"]
    low, high = parameter.low or 0, answers.MOST_GAMMA if parameter.high is None else parameter.high
    return min(max(int(low), 0), answers.MOST_GAMMA), min(max(int(high), 0), answers.MOST_GAMMA)


def longest(scope: Scope) -> str:
    """The most draft tokens that the row's method allows, of those that are tried."""
    methods = scope.methods["drafting"]
    most = [gamma_limits(method)[1] if "gamma" in method.parameters else POSITIONS for method in methods]
    if {*most} <= {POSITIONS}:
        return str(POSITIONS)
    return f"choose(draft_no, {', '.join(str(number) for number in (POSITIONS, *most))})"


def tried(scope: Scope, gamma: int, tree: Node) -> Node:
    """A time by draft length, or no limit where the row's method does not allow that length or its rates do not reach so far."""
    arms: list[Node] = [tree]
    for method in scope.methods["drafting"]:
        limited = method.name in scope.used and "gamma" in method.parameters
        low, high = gamma_limits(method) if limited else (0, answers.MOST_GAMMA)
        reached = tree if gamma <= POSITIONS else Call("coalesce", (tree, Number(expr.UNLIMITED)))
        arms.append(reached if low <= gamma <= high else Number(expr.UNLIMITED))
    return tree if all(arm == tree for arm in arms) else by_method.chosen("drafting", arms)


def dialect(scope: Scope, name: str, fallback: Node) -> Node:
    """How much is accepted where the row does not say it this way: not at all, when it says it in another."""
    if name == "alpha":
        measured = "measured_alpha" in scope.asked
        return If(Call("is_blank", (Name("measured_length"),)), fallback, Name("measured_alpha")) if measured else fallback
    others = [f"{other}_given" for other in acceptance.DIALECTS if other != name and f"{other}_given" in scope.fields]
    tests = tuple(Call("is_blank", (Name(other),)) for other in others)
    if not tests:
        return fallback
    return If(tests[0] if len(tests) == 1 else Logic("and", tests), fallback, Blank())


def typed_in(scope: Scope, name: str) -> str:
    """The input column whose value stands before a column's formula; empty where there is none."""
    given = f"{name.removeprefix('set_')}_given"
    if given in scope.fields and name not in scope.model.finish and not (name == "gamma" and "auto_gamma" in scope.delayed):
        return given
    return f"{name}_override" if f"{name}_override" in scope.fields else ""


def whole(scope: Scope, name: str, node: Node) -> Node:
    """A column's tree with the value that may be typed in its place."""
    typed = typed_in(scope, name)
    return Call("coalesce", (Name(typed), node)) if typed else node


def what_if(scope: Scope, pending: Pending) -> WhatIf:
    """The columns of the row itself, to ask of other draft lengths and batches.

    The GPUs stay those of the row, also where their number follows from the memory needed.
    """
    open_ = {*shared.OPEN, *serving.EVERY_QUESTION}
    trees = {name: whole(scope, name, tree) for name, (_, tree) in pending.items()}
    spelled = {name: whole(scope, name, expr.parse(scope.columns[name].formula)) for name in scope.columns if name not in open_}
    return WhatIf(trees, spelled, scope.model.finish)


def sized(scope: Scope, row: WhatIf) -> dict[str, tuple[Column, Node]]:
    """Columns that find the number of GPUs before what rests on it is known: by the most drafts there may be, and the caches' copies."""
    found: dict[str, tuple[Column, Node]] = {}
    values: dict[str, Node] = {}
    if "auto_gamma" in scope.delayed:
        most = Column(f"{longest(scope)} if coalesce(auto_gamma, 0) > 0 else set_gamma", "tokens", "Draft tokens that the GPUs have memory for.")
        found[answers.SIZING] = most, scope.tree(most.formula)
        values = {"gamma": Name(answers.SIZING)}
    by_size = "memory_gb" in row.dependents(["gpus"])
    needed: Node = Number(float(features.AUTO_SIZES[-1]))
    for size in reversed(features.AUTO_SIZES[:-1]):
        name = answers.sized(size if by_size else 0)
        if name not in found:
            tree, text = row.instead(Name("memory_gb"), {**values, **({"gpus": Number(float(size))} if by_size else {})})
            on = f" on {size} GPU{'s' if size > 1 else ''}" if by_size else ""
            found[name] = Column(text, "GB", f"Memory needed{on}; with the most draft tokens where their number follows from the GPUs."), tree
        test = Compare("<=", Name(name), Binary("*", Number(float(size)), Name("memory_per_gpu_gb")))
        needed = If(test, Number(float(size)), needed)
    if not values and not by_size:
        return {}
    return {**found, "gpus_needed": (replace(scope.columns["gpus_needed"], formula=compile_text(needed)), needed)}


def asked_for(scope: Scope, name: str, row: WhatIf) -> tuple[Column, Node]:
    """An asked-for column and its tree; ``row`` are the columns of the row itself."""
    if name in answers.BY_GAMMA:
        return by_gamma(scope, name, row)
    column = (answers.ASKED | answers.by_gamma(gammas(scope)))[name]
    if name in ("best_round_ms", "best_speedup"):
        return best(name, row)
    if name in answers.BY_BATCH:
        return by_batch(name, row)
    if name in answers.CROSSING:
        family, end = answers.CROSSING[name]
        return at_batch(column, family, expr.parse(answers.CROSSING_AT[end]), lambda step: f"crossing_{step}{end}", row)
    if name == "acceptance_source":
        return column, scope.tree(source_text(scope))
    if name == "break_even_batch":
        column = replace(column, formula=break_even_text(scope))
    return column, scope.tree(column.formula)


def by_gamma(scope: Scope, name: str, row: WhatIf) -> tuple[Column, Node]:
    """A helper column with another number of draft tokens."""
    family, gamma = answers.BY_GAMMA[name]
    unit, doc = answers.MEANINGS[family]
    column = Column("", unit, f"{doc} with {gamma} draft tokens per round.")
    values: dict[str, Node] = {"gamma": Number(float(gamma))}
    if family != "tpot_ms":
        return column, row.instead(Name(answers.SOURCES[family]), values)[0]
    values |= {source: Name(f"{part}_g{gamma}") for part, source in answers.SOURCES.items()}
    tree, text = row.instead(Name("tpot_ms"), values)
    return replace(column, formula=text), tried(scope, gamma, tree)


def best(name: str, row: WhatIf) -> tuple[Column, Node]:
    """A column with the best number of draft tokens."""
    values: dict[str, Node] = {"gamma": Name("best_gamma")}
    values |= {source: Name(f"best_{part}") for part, source in answers.SOURCES.items()}
    values |= {"round_ms": Name("best_round_ms")} if name == "best_speedup" else {}
    tree, text = row.instead(Name(name.removeprefix("best_")), values)
    return replace(answers.ASKED[name], formula=text), tree


def by_batch(name: str, row: WhatIf) -> tuple[Column, Node]:
    """A helper column at another batch."""
    family, batch = answers.BY_BATCH[name]
    return at_batch(answers.ASKED[name], family, Number(float(batch)), lambda step: f"{step}_b{batch}", row)


def at_batch(column: Column, family: str, batch: Node, named: Callable[[str], str], row: WhatIf) -> tuple[Column, Node]:
    """A column with another batch: a pass, or the gain that follows from them; ``named`` gives the helper columns there."""
    # A measured speed of plain decoding holds at the row's own batch.
    values: dict[str, Node] = {"batch": batch, "plain_ratio": Number(1.0), "plain_gap_ms": Number(0.0)}
    gain = family in ("gain", "speedup")
    values |= {step: Name(named(step)) for step in (answers.STEPS if gain else answers.NEEDS.get(family, ()))}
    tree, text = row.instead(expr.parse(answers.GAIN) if gain else Name(family), values)
    return replace(column, formula=text), tree


def break_even_text(scope: Scope) -> str:
    """The formula of ``break_even_batch``: in closed form only where that is exact."""
    bracket = "blank if draft_no < 2 else break_even_bracket"
    if "bound" not in scope.time_models:
        return bracket
    tests = ["experts < 1", "kv_sequence_gb <= 0"]
    tests += ['time_model == "bound"'] if len(scope.time_models) > 1 else []
    return f"blank if draft_no < 2 else break_even_closed if {' and '.join(tests)} else break_even_bracket"


def source_text(scope: Scope) -> str:
    """The formula that says where the row's acceptance comes from; methods that ask alike have one text, written once in a cell."""
    methods = scope.methods["drafting"]
    off = f"choose(draft_no, {', '.join(['1', *map(off_default, methods)])})"
    each = ["blank", *(source_of(scope, method, off) for method in methods)]
    texts = list(dict.fromkeys(each))
    if len(texts) == 1:
        return texts[0]
    return f"choose(choose(draft_no, {', '.join(str(texts.index(text) + 1) for text in each)}), {', '.join(texts)})"


def off_default(method: Method) -> str:
    """How far a method's alpha is from its default; 1 where it has none."""
    default = method.parameters["alpha"].default if "alpha" in method.parameters else None
    return f"abs({scalar_name(method, 'alpha')} - {default})" if default else "1"


def source_of(scope: Scope, method: Method, off: str) -> str:
    """Where the acceptance of one method's rows comes from; ``off`` says how far the row's alpha is from the default."""
    if "alpha" not in method.parameters:
        return "blank"
    parts = [f'"{name}" if not is_blank({of}) else' for name, of in (("tree", "tree"), ("profile", "acceptance"))
             if of in method.parameters and of in scope.parameters]  # fmt: skip
    parts += ['"measured length" if not is_blank(measured_length) else'] if "measured_length" in scope.asked else []
    parts += ['"constant alpha" if not is_blank(alpha_given) else'] if "alpha_given" in scope.fields else []
    return " ".join([*parts, f'"constant alpha (default)" if {off} < 1e-12 else "constant alpha"'])
