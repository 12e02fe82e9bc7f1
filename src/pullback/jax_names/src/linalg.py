"""Stands for jax._src.lax.linalg: the names of jax.lax.linalg (unxt), and what pyscfad writes lowering rules with.

A rule works on arrays here (interpreters/mlir.py), so these are functions of arrays.
"""

from typing import Any

from pullback import numpy as jnp
from pullback.jax_names.src import names_of
from pullback.lax import expand_dims, linalg


def _T(x: Any) -> Any:
    return jnp.swapaxes(x, -1, -2)


def _H(x: Any) -> Any:
    return _T(x).conj()


def symmetrize(x: Any) -> Any:
    """The Hermitian part of matrices."""
    return (x + _H(x)) / 2


def _nan_like_hlo(_ctx: Any, aval: Any) -> Any:
    return jnp.full(aval.shape, jnp.nan, aval.dtype)


def _broadcasting_select_hlo(
    _ctx: Any, which: Any, _which_aval: Any, x: Any, _x_aval: Any, y: Any, _y_aval: Any
) -> Any:
    """x where `which` is True, else y; the dimensions of `which` are the first ones of x."""
    return jnp.where(expand_dims(which, range(which.ndim, x.ndim)), x, y)


__getattr__ = names_of(__name__, linalg)
