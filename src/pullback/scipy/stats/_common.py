"""What the distributions share: promotion of arguments, standard variables, support."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.numpy._arguments import convert, plain_float, promote_dtypes_inexact
from pullback.util import dtypes


def promoted(*args: Any) -> list[Any]:
    """The arguments as arrays of one float type, at least that of the default float for integers; weakly typed where
    all of them are."""
    weak = all(type(a) is bool or dtypes.is_weak(a) for a in args)
    return [convert(a, a.dtype, weak) for a in promote_dtypes_inexact(*map(plain_float, args))]


def weakly_promoted(*args: Any) -> list[Any]:
    """As `promoted`, but weakly typed wherever the promotion is: of an integer array and Python floats, too."""
    return promote_dtypes_inexact(*map(plain_float, args))


def promoted_reals(*args: Any, by: Any = promoted) -> list[Any]:
    """As `promoted` (or what is given), for what is decided by comparisons: TypeError for complex numbers."""
    arrays = by(*args)
    if dtypes.issubdtype(arrays[0].dtype, np.complexfloating):
        raise TypeError(f"distributions of real numbers do not accept dtype {arrays[0].dtype}")
    return arrays


def inside(support: Any, value: Any, outside: float = -np.inf) -> Any:
    """`value` where the mask holds, else -inf (or `outside`), without letting what is masked into derivatives'
    choice. NaN is in no support and outside of none: masks that say what is not outside leave it to the value."""
    return jnp.where(support, value, outside)


def within(outside: Any, value: float | Any, function: Callable[[Any], Any], z: Any, point: float) -> Any:
    """function(z), but `value` where the mask holds and other parameters do not make the function NaN.

    There it is given a point inside, as its derivative at the edge may be infinite, and zero times that is NaN.
    """
    inner = function(jnp.where(outside, point, z))
    return jnp.where(outside & ~jnp.isnan(inner), value, inner)
