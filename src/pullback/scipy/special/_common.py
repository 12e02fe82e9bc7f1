"""Promotion of arguments to one float type."""

from __future__ import annotations

from typing import Any

import pullback.numpy as jnp
from pullback import lax
from pullback.util import dtypes


def inexact(*args: Any) -> Any:
    """The arguments as arrays of one float or complex type, broadcast; one array for one argument."""
    dtype = dtypes.to_inexact_dtype(dtypes.result_type(*args))
    arrays = [lax.convert_element_type(jnp.asarray(a), dtype) for a in args]
    return arrays[0] if len(arrays) == 1 else jnp.broadcast_arrays(*arrays)
