"""Layerskip keeps the contract of a method, and its rounds are as long as when they are played."""

from scenario.testing import check_method, simulate_chain
from scenario_layerskip import METHOD


def chain(values, rng, rounds):
    return simulate_chain([values["alpha"]] * int(values["gamma"]), rounds, rng)


def test_method():
    """Names, units, ranges, limits, Excel and the simulation."""
    check_method(METHOD, simulation=chain)
