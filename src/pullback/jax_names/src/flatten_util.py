"""Stands for jax._src.flatten_util."""

from pullback.flatten_util import ravel_pytree

__all__ = ["ravel_pytree"]
