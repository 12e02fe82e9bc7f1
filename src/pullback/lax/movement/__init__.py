"""Primitives that move elements: shapes, joining, slices, gathers, scatters."""
