"""Kinds and limits of values: what is text, what is whole, what is limited. Whoever reads or writes values asks here."""

from __future__ import annotations

from scenario.common import yamltree
from scenario.formulas.facts import Facts
from scenario.model.spec import Parameter

KINDS = ("number", "integer", "flag", "model", "profile", "tree", "choice")
"""What a parameter may be."""
TEXT_KINDS = ("model", "profile", "tree", "choice")
"""The kinds whose values are texts; those of all others are numbers."""
UNBOUNDED = 1e15
"""No number that is typed is larger, whatever its parameter allows."""
NO_NUMBER = 1e300
"""What is larger cannot be reckoned with."""


LISTED = 10
"""Choices that a message lists where there are many more and a command that lists them."""


def is_text(parameter: Parameter) -> bool:
    """Whether the values of a parameter are texts."""
    return parameter.kind in TEXT_KINDS


def is_number(parameter: Parameter) -> bool:
    """Whether a parameter is a measure or a count that may be varied: neither a text nor a flag."""
    return parameter.kind in ("number", "integer")


def parameter_facts(parameter: Parameter, *, blank: bool | None = None) -> Facts:
    """What a formula may take for granted of a parameter's value."""
    if blank is None:
        blank = parameter.default is None
    if is_text(parameter):
        return Facts("text", blank=blank)
    if parameter.kind == "flag":
        return Facts("number", 0, 1, blank=blank, integer=True)
    low = -UNBOUNDED if parameter.low is None else parameter.low
    if parameter.above is not None:
        low = parameter.above
    high = UNBOUNDED if parameter.high is None else parameter.high
    return Facts("number", low, high, parameter.above is not None, False, blank, parameter.kind == "integer")


def value_problem(parameter: Parameter, value: object) -> str:
    """What is wrong with a typed value for a parameter, or an empty text.

    Catalog names (``model``, ``profile``) are only checked to be text: the catalog knows the rest.
    """
    if is_text(parameter):
        return _text_problem(parameter, value)
    if isinstance(value, bool) and parameter.kind == "flag":
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"a number is needed, not {_shown(value)}"
    if value != value or abs(value) > NO_NUMBER:
        return f"{yamltree.show(value)} is not a number that can be used"
    limits = parameter_facts(parameter)
    if limits.integer and value != int(value):
        return f"a whole number is needed, not {_number(value)}"
    return "" if limits.may_be(value) else f"{_number(value)} is out of range: {limit_text(parameter)}"


def _text_problem(parameter: Parameter, value: object) -> str:
    if not isinstance(value, str):
        return f"a text is needed, not {_shown(value)}"
    if parameter.kind == "choice" and value not in parameter.choices:
        return f"'{yamltree.show(value)}' is not one of {_choices(parameter)}"
    return ""


def _choices(parameter: Parameter) -> str:
    """The choices; the first of many, with the word for the rest."""
    shown = parameter.choices if not parameter.also else parameter.choices[:LISTED]
    return ", ".join(shown) + (f" ... (scenario list {parameter.also})" if len(shown) < len(parameter.choices) else "")


def limit_text(parameter: Parameter) -> str:
    """The allowed range of a parameter in words."""
    limits = parameter_facts(parameter)
    low = f"more than {_number(limits.low)}" if limits.open_low else f"at least {_number(limits.low)}"
    bounds = [low] if limits.low > -UNBOUNDED else []
    if limits.high < UNBOUNDED:
        bounds.append(f"at most {_number(limits.high)}")
    return " and ".join(bounds) or "any number"


def _number(value: float) -> str:
    return f"{value:,.12g}" if abs(value) < 1e15 else f"{value:.6g}"


def _shown(value: object) -> str:
    if value is None or value == "":
        return "a blank"
    return yamltree.show(value) if isinstance(value, bool | int | float) else f"'{yamltree.show(value)}'"
