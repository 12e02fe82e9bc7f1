"""Sums over indices and loops that only count, as formulas."""
