"""Plugins: found, loaded, checked."""
