"""Printing, and files in NumPy's formats."""
