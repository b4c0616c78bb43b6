"""Bundled data: the catalogs of models, GPUs and prices, and tables to run."""
