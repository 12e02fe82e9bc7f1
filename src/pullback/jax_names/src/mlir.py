"""Stands for jax._src.interpreters.mlir: the names of jax.interpreters.mlir, and what pyscfad writes rules with.

A rule works on arrays here (interpreters/mlir.py), so these are functions of arrays.
"""

from typing import Any

from pullback import lax
from pullback.interpreters import mlir
from pullback.jax_names.src import names_of

_COMPARISONS = {"EQ": lax.eq, "NE": lax.ne, "LT": lax.lt, "LE": lax.le, "GT": lax.gt, "GE": lax.ge}


def full_like_aval(_ctx: Any, value: Any, aval: Any) -> Any:
    """An array of a type that is `value` everywhere."""
    return lax.full(aval.shape, value, aval.dtype)


def compare_hlo(x: Any, y: Any, direction: str, _comparison_type: str | None = None) -> Any:
    """Whether elements are "EQ", "NE", "LT", "LE", "GT" or "GE"."""
    return _COMPARISONS[direction](x, y)


def broadcast_in_dim(_ctx: Any, op: Any, aval_out: Any, *, broadcast_dimensions: Any) -> Any:
    """An array broadcast to the shape of a type."""
    return lax.broadcast_in_dim(op, aval_out.shape, broadcast_dimensions)


__getattr__ = names_of(__name__, mlir)

__all__ = ["broadcast_in_dim", "compare_hlo", "full_like_aval"]
