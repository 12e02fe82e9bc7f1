"""Functions with derivatives of their own."""

from pullback.api.custom import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_jvp,
    custom_vjp,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)
from pullback.api.custom_gradient import closure_convert, custom_gradient
from pullback.lax.control.linear_call import linear_call
from pullback.manual import add_pages as _add_pages
from pullback.manual.custom_derivatives import PAGES as _PAGES
from pullback.transforms.custom import custom_jvp_call_p, custom_vjp_call_p
from pullback.util.absent import absent_names, listed

__getattr__ = absent_names(__name__)

__all__ = [
    "CustomVJPPrimal", "SymbolicZero", "closure_convert", "custom_gradient", "custom_jvp", "custom_jvp_call_p",
    "custom_vjp", "custom_vjp_call_p", "custom_vjp_primal_tree_values", "linear_call", "zero_from_primal",
]  # fmt: skip

_add_pages(globals(), _PAGES)

__dir__ = listed(__name__)
