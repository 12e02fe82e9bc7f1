"""Stands for jax._src.dtypes: the error of mixed dtypes."""

from pullback.util.dtypes import TypePromotionError

__all__ = ["TypePromotionError"]
