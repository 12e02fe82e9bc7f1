"""Stands for jax._src.ad_util: zero tangents (genjax), and primitives of derivatives (folx)."""

from pullback.custom_derivatives import SymbolicZero
from pullback.extend.core.primitives import add_jaxvals_p
from pullback.interpreters import ad
from pullback.jax_names.src import names_of
from pullback.lax import stop_gradient_p

add_any_p = add_jaxvals_p

__all__ = ["SymbolicZero", "add_any_p", "add_jaxvals_p", "stop_gradient_p"]
__getattr__ = names_of(__name__, ad)
