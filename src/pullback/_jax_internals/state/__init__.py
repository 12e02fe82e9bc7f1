"""Stands for jax._src.state: mutable arrays, which are not there yet."""
