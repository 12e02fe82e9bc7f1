"""Stands for jax._src.interpreters: the modules of jax.interpreters, and names of theirs that are private there."""

from pullback.interpreters import ad, partial_eval, pxla, xla
from pullback.jax_names.src import batching, mlir

__all__ = ["ad", "batching", "mlir", "partial_eval", "pxla", "xla"]
