"""Polynomial coefficients by subject, written by tools/minimax.py."""
