"""Vanilla decoding: one token per sequence and step, nothing drafted."""

from scenario import Method, hookimpl


@hookimpl
def scenario_methods():
    yield Method("vanilla", title="Vanilla decoding", doc="One token per sequence and pass: the baseline of every speedup.")
