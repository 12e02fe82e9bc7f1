"""Stands for jax._src.numpy.util: operands of functions brought to one dtype (orthax)."""

from pullback.numpy._arguments import promote_dtypes, promote_dtypes_inexact, promote_dtypes_numeric

__all__ = ["promote_dtypes", "promote_dtypes_inexact", "promote_dtypes_numeric"]
