"""Measurements, logs, calibration and simulation."""
