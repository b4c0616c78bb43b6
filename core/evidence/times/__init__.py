"""Measured times out of what benchmarks write: one module per tool."""
