"""What people ask of a table: explain, best, compare, sensitivity, diff."""
