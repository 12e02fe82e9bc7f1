"""Stands for jax._src.numpy.array_methods: what `x.at` and `x.at[index]` are (unxt)."""

from pullback.numpy._at import IndexUpdateHelper as _IndexUpdateHelper
from pullback.numpy._at import IndexUpdateRef as _IndexUpdateRef

__all__ = ["_IndexUpdateHelper", "_IndexUpdateRef"]
