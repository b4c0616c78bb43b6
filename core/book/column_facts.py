"""The facts of a book's columns: what each may hold, and what is wrong with formulas that cannot be told."""

from __future__ import annotations

from dataclasses import replace

from scenario.book import optional_columns
from scenario.book.scope import NUMBER, Scope, scalar_name
from scenario.common.errors import FormulaError, Problem, nearest
from scenario.formulas import expr, facts
from scenario.formulas.expr import Blank, Call, Name, Node
from scenario.formulas.facts import Facts
from scenario.model.kinds import parameter_facts
from scenario.model.spec import Method


def check(scope: Scope, name: str, tree: Node, text: str, known: list[str]) -> Node:
    """Facts for a tree; the arms of a choice by method are checked with that method's parameters set."""
    typed = optional_columns.typed_in(scope, name)
    node = check_arms(scope, name, tree, text, known)
    if not typed.endswith("_given"):
        known_series(scope, node, text)
    return first_of(scope, typed, node) if typed else node


def known_series(scope: Scope, node: Node, text: str) -> None:
    """Refuse a curve or a profile that a formula names and the table does not have."""
    for item in expr.walk(node):
        if isinstance(item, Call) and item.function in ("curve", "at") and isinstance(item.args[0], expr.Text):
            known = scope.table.vectors.curves if item.function == "curve" else scope.table.vectors.profiles
            asked, kind = item.args[0].value, "curve" if item.function == "curve" else "acceptance profile"
            if asked not in known:
                hint = nearest(asked, known) or f"name one under {'curves' if kind == 'curve' else 'profiles'}:"
                raise FormulaError(expr.problem(text, item.args[0].span, f"unknown {kind} '{asked}'", hint))


def first_of(scope: Scope, typed: str, inner: Node) -> Node:
    """The value of an input column where it has one, else the formula."""
    tree = Call("coalesce", (replace(Name(typed), facts=scope.env[typed]), inner))
    return replace(tree, facts=replace(facts.unite([scope.env[typed], inner.facts]), blank=inner.facts.blank))


def check_arms(scope: Scope, name: str, tree: Node, text: str, known: list[str]) -> Node:
    """Facts for a tree; of a choice by method each arm has those of its method's rows."""
    slot = slot_of(tree)
    if not slot or not isinstance(tree, Call):
        return facts.check(tree, scope.env, text, known)
    number = facts.check(tree.args[0], scope.env)
    envs = [scope.env, *(method_env(scope, method) for method in scope.methods[slot])]
    done = [facts.check(arm, env, text, known) for arm, env in zip(tree.args[1:], envs, strict=True)]
    if name.endswith("_derived"):
        scope.sure[name] = not next((arm.facts.blank for arm in done if not isinstance(arm, Blank)), True)
    if all(arm == done[0] for arm in done):
        return done[0]
    return replace(tree, args=(number, *done), facts=facts.unite([arm.facts for arm in done]))


def slot_of(tree: Node) -> str:
    """The slot by whose number a tree chooses; empty for any other tree."""
    if not isinstance(tree, Call) or tree.function != "choose":
        return ""
    return next((slot for slot, number in NUMBER.items() if tree.args[0] == Name(number)), "")


def method_env(scope: Scope, method: Method) -> dict[str, Facts]:
    """What is known of every name in the rows of one method, whose parameters are set there."""
    sure = {}
    for key, parameter in method.parameters.items():
        if key in scope.env:
            blank = parameter.default is None and not scope.sure.get(f"{scalar_name(method, key)}_derived", False)
            blank = blank or (key == "alpha" and "measured_alpha" in scope.asked) or (key == "gamma" and "auto_gamma" in scope.delayed)
            sure[key] = parameter_facts(parameter, blank=blank)
    return {**scope.env, **sure}


def place_of(scope: Scope, name: str) -> Problem:
    """Where the formula of a column stands."""
    if name in scope.table.columns:
        return scope.table.source.problem(scope.table.columns[name][1], "")
    return Problem("", place=f"column '{name}'")


def located(scope: Scope, name: str, problem: Problem) -> Problem:
    if name in scope.table.columns:
        return scope.table.source.formula_problem(scope.table.columns[name][1], problem)
    owner = scope.host.columns.get(name)
    return replace(problem, place=f"column '{name}'" + (" of a plugin" if owner else ""))
