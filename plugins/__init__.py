"""The built-in plugins: one module per decoding method, and the time models."""
