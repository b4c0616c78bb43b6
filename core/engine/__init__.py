"""polars: plans, slices, and the frame that comes out."""
