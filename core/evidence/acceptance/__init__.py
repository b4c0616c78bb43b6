"""Acceptance of drafts out of what engines print: one module per engine or kind of output."""
