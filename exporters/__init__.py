"""The built-in exporters: one module per file format."""
