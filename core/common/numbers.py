"""How a value is shown to people: one way for terminal, markdown, explanations and reports."""

from __future__ import annotations


def show_number(value: float, digits: int = 5) -> str:
    """A number with up to ``digits`` significant digits, thousands separated; whole numbers whole, below 10^12."""
    if value == int(value) and abs(value) < 1e12:
        return f"{int(value):,}"
    if 10**digits <= abs(value) < 1e12:
        return f"{value:,.0f}"
    return f"{value:,.{digits}g}"


def show_value(value: object, *, digits: int = 5, unlimited: float | None = None, blank: str = "-") -> str:
    """Any value: numbers as :func:`show_number` does, true and false as yes and no, no value as ``blank``.

    ``unlimited`` is the number from which on a value stands for no limit; None where no value does.
    """
    if value is None:
        return blank
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    if unlimited is not None and value >= unlimited:
        return "unlimited"
    return show_number(value, digits)


def show_in_column(value: float) -> str:
    """A number that stands below others: two decimals from 1 to 1,000, so that their points meet."""
    if 1 <= abs(value) < 1000 and value != int(value):
        return f"{value:.2f}"
    return show_number(value, 3) if abs(value) < 1e12 else f"{value:.4g}"
