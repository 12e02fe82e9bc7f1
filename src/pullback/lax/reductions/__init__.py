"""Reductions, running ones, and those over windows."""
