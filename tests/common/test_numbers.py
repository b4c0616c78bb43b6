"""One way to show a number: the digits asked for, thousands apart, nothing else lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenario.common.numbers import show_in_column, show_number, show_value


@pytest.mark.parametrize(("value", "shown"), [
    (0.0, "0"), (64.0, "64"), (-2048.0, "-2,048"), (4.8712345, "4.8712"), (1234.5678, "1,234.6"), (123456.78, "123,457"),
    (0.000012345678, "1.2346e-05"), (1.5e12, "1.5e+12"), (999_999_999_999.0, "999,999,999,999"),
])  # fmt: skip
def test_numbers_for_reading(value: float, shown: str) -> None:
    """Up to five digits; whole numbers whole."""
    assert show_number(value) == shown


@pytest.mark.parametrize(("value", "shown"), [(4.8712, "4.87"), (12.0, "12"), (0.78812, "0.788"), (1472.4, "1,472"), (-3.456, "-3.46"), (2e13, "2e+13")])
def test_numbers_in_a_column(value: float, shown: str) -> None:
    """Two decimals from 1 to 1,000, so that the points meet."""
    assert show_in_column(value) == shown


@given(st.floats(-1e300, 1e300), st.integers(2, 9))
def test_what_is_shown_is_near(value: float, digits: int) -> None:
    """Read back, a shown number is off by half of its last digit at most."""
    assert abs(float(show_number(value, digits).replace(",", "")) - value) <= 0.5000001 * 10.0 ** (1 - digits) * abs(value)


def test_other_values() -> None:
    """Truth, text, no value and no limit have words."""
    assert [show_value(value, unlimited=1e15) for value in (True, False, None, "a", 1e15, 2)] == ["yes", "no", "-", "a", "unlimited", "2"]
    assert show_value(1e15) == "1e+15"
    assert show_value(None, blank="") == ""
