"""Pages of the example libraries."""
