"""Stands for jax._src.compiler, which chex imports to forbid compilation for a platform."""
