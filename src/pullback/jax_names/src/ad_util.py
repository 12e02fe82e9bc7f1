"""Stands for jax._src.ad_util."""

from pullback.lax import stop_gradient_p

__all__ = ["stop_gradient_p"]
