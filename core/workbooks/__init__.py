"""A workbook that comes back: opened, understood, compared with the engine."""
