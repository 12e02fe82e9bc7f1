"""Stands for jax._src.lax.lax: the names of jax.lax, and constants of the type of an example (jet-array)."""

from typing import Any

import numpy as np

from pullback import lax
from pullback.core import typeof
from pullback.jax_names.src import names_of

__getattr__ = names_of(__name__, lax)


def _const(example: Any, val: Any) -> Any:
    """The number as one of the example's dtype, or of its kind of Python number."""
    for kind in (bool, int, float, complex):
        if type(example) is kind:
            return kind(val)
    return np.asarray(val, typeof(example).dtype)
