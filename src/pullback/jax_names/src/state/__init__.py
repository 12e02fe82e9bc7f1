"""Stands for jax._src.state: mutable arrays."""
