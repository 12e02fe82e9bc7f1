"""Timings against JAX and NumPy; see __main__."""
