"""A table file, read and written."""
