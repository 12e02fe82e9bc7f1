"""Functions with derivatives of their own."""

from pullback.api.custom import (
    CustomVJPPrimal,
    SymbolicZero,
    closure_convert,
    custom_gradient,
    custom_jvp,
    custom_vjp,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)
from pullback.lax.control.linear_call import linear_call
from pullback.transforms.custom import custom_jvp_call_p, custom_vjp_call_p
from pullback.util.absent import absent_names

__getattr__ = absent_names(__name__)

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_jvp_call_p",
    "custom_vjp", "custom_vjp_call_p", "custom_vjp_primal_tree_values", "linear_call", "zero_from_primal",
]  # fmt: skip
