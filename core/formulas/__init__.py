"""Formula text to a checked syntax tree, and one module per back end."""
