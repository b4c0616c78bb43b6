"""How a value is shown to people: one way for terminal, markdown, explanations and reports."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal

_CODE = re.compile(r'''"(?P<said>[^"]*)"|\\(?P<sign>.)|(?P<digits>[#0?][#0?,]*(?:\.[#0?]*)?,*)''')


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


def show_formatted(value: float, code: str) -> str:
    """A number as a spreadsheet shows it under a number format such as ``0.0 "GB"``, ``#,##0.00##``, ``0.00,,,"B"`` or ``0%``.

    Of several sections the first counts. A format of another kind (scientific, dates) is as good as none.
    """
    section = re.split(r''';(?=(?:[^"]*"[^"]*")*[^"]*$)''', code)[0]
    placed = next((match for match in _CODE.finditer(section) if match["digits"]), None)
    bare = re.sub(r'"[^"]*"|\\.', "", section)
    if placed is None or "E" in bare or "[" in bare or "/" in bare:
        return show_number(value)
    scaled = Decimal(repr(float(value))) * (100 if "%" in bare else 1)
    digits = _digits(scaled, placed["digits"])
    return _literal(section[: placed.start()]) + digits + _literal(section[placed.end() :])


def _digits(value: Decimal, code: str) -> str:
    """The digits of a number: decimals that ``#`` marks are shown where there are any; each comma at the end divides by 1,000."""
    core = code.rstrip(",")
    whole, _, decimals = core.partition(".")
    value = value.scaleb(-3 * (len(code) - len(core)))
    rounded = value.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
    text = f"{rounded if rounded else abs(rounded):{',' if ',' in whole else ''}.{len(decimals)}f}"
    least = decimals.rstrip("#?")
    while len(decimals) > len(least) and text.endswith("0"):
        text, decimals = text[:-1], decimals[:-1]
    return text.removesuffix(".")


def _literal(text: str) -> str:
    """What stands around the digits of a number format."""
    return re.sub(r'"([^"]*)"|\\(.)', lambda match: match[1] if match[1] is not None else match[2], text)
