"""Promotion of arguments to one float type."""

from __future__ import annotations

from typing import Any

import pullback.numpy as jnp
from pullback.numpy._arguments import promote_dtypes_inexact


def inexact(*args: Any) -> Any:
    """The arguments as arrays of one float or complex type, broadcast; one array for one argument.

    They are weakly typed where the promotion lattice says so.
    """
    arrays = promote_dtypes_inexact(*args)
    return arrays[0] if len(arrays) == 1 else jnp.broadcast_arrays(*arrays)
