"""What the row's method decides: its answers to the open questions, and its parameters where the row gives none."""

from __future__ import annotations

from scenario.book.scope import NUMBER, Scope, scalar_name
from scenario.formulas import expr
from scenario.formulas.expr import Blank, Call, Name, Node, Number
from scenario.model.shared import OPEN
from scenario.model.spec import Column, Method, Parameter


def chosen(slot: str, arms: list[Node]) -> Node:
    """One of several trees by the row's method; the first is for rows without one."""
    return Call("choose", (Name(NUMBER[slot]), *arms))


def answers(scope: Scope, name: str, default: Column | None) -> Node:
    """The methods' answers to an open question, chosen by the row's method."""
    slot = scope.slot_of(name)
    first: Node = scope.tree(default.formula) if default else Blank()
    if not slot:
        return first
    return chosen(slot, [first, *(answer(scope, method, name, first) for method in scope.methods[slot])])


def answer(scope: Scope, method: Method, name: str, default: Node) -> Node:
    """One method's answer, or the default."""
    if name not in method.columns:
        return default
    return expr.substitute(scope.tree(method.columns[name].formula), inline(scope, method))


def inline(scope: Scope, method: Method) -> dict[str, Node]:
    """What the formulas of a method read for its parameters that are no columns in this table."""
    here = [key for key in method.parameters if key in scope.parameters and not has_column(scope, key)]
    return {key: fallback(scope, method, key) for key in here}


def has_column(scope: Scope, name: str) -> bool:
    """Whether a method parameter is a column: it is shared, used, or given; else formulas read the scalar."""
    if scope.parameters[name].kind == "model":  # catalog lookups need a column for their key
        return True
    owners = scope.owners(name)
    asked = name == "hit_rate" and "break_even_length" in scope.asked
    return len(owners) > 1 or asked or f"{name}_given" in scope.fields or any(owner.name in scope.used for owner in owners)


def parameter(scope: Scope, name: str) -> Node:
    """The value of a parameter where the row gives none, by the row's method."""
    slot = next(slot for slot, methods in scope.methods.items() if any(name in method.parameters for method in methods))
    return chosen(slot, [Blank(), *(fallback(scope, method, name) for method in scope.methods[slot])])


def fallback(scope: Scope, method: Method, name: str) -> Node:
    """The value of a method's parameter where the row gives none; blank of one that the method does not have."""
    if name not in method.parameters:
        return Blank()
    declared = method.parameters[name]
    scalar = Name(scalar_name(method, name))
    if scalar.id not in scope.scalars:
        return unset(scope, declared)
    if not declared.derive:
        return scalar
    parts: list[Node] = [scalar, Name(f"{scalar.id}_derived")]
    if declared.default is not None:
        parts.append(Name(f"{scalar.id}_default"))
    return Call("coalesce", tuple(parts))


def unset(scope: Scope, declared: Parameter) -> Node:
    """What a parameter is that has no cell of its own."""
    if declared.derive:
        return scope.tree(declared.derive)
    return Number(float(declared.default)) if isinstance(declared.default, int | float) else Blank()


def derived(scope: Scope) -> dict[str, tuple[Column, Node]]:
    """The helper columns of parameters with a formula behind them, each with a value in its method's rows."""
    found: dict[str, tuple[Column, Node]] = {}
    for method in scope.host.methods.values():
        for key, item in method.parameters.items():
            name = scalar_name(method, key)
            if item.derive and name in scope.scalars:
                tree = expr.substitute(scope.tree(item.derive), inline(scope, method))
                doc = f"{key} of {method.name} as it follows from the model and the GPU; {item.doc}"
                slot, methods = next((slot, methods) for slot, methods in scope.methods.items() if method in methods)
                arms = [tree if other is method else Blank() for other in methods]
                found[f"{name}_derived"] = Column(item.derive, item.unit, doc), chosen(slot, [Blank(), *arms])
    return found


def own_columns(scope: Scope) -> dict[str, Method]:
    """Columns that methods bring for their own rows, if a row uses them."""
    used = [method for method in scope.host.methods.values() if method.name in scope.used]
    return {name: method for method in used for name in method.columns if name not in OPEN}
