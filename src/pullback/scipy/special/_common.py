"""Promotion of arguments to one float type."""

from __future__ import annotations

from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback.numpy._arguments import plain_float, promote_dtypes_inexact
from pullback.util.errors import UnsupportedArgumentError


def inexact(*args: Any) -> Any:
    """The arguments as arrays of one float or complex type, broadcast; one array for one argument.

    They are weakly typed where the promotion lattice says so.
    """
    arrays = promote_dtypes_inexact(*map(plain_float, args))
    if len(arrays) == 1:
        return arrays[0]
    try:
        return jnp.broadcast_arrays(*arrays)
    except ValueError as error:
        if len({a.ndim for a in arrays if a.ndim}) > 1:
            raise
        raise TypeError(f"got incompatible shapes for broadcasting: {error}") from None


def real_arguments(name: str, *args: Any) -> Any:
    """The arguments as real arrays of one float type, one for one argument; an error of all kinds if complex."""
    arrays = inexact(*args)
    dtype = (arrays if len(args) == 1 else arrays[0]).dtype
    if np.issubdtype(dtype, np.complexfloating):
        raise UnsupportedArgumentError(f"{name} does not support complex-valued inputs, got {dtype}")
    return arrays
