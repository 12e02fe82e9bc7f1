"""Functions of sparse arrays: the names that JAX has in this module."""

from pullback.experimental.sparse import *  # noqa: F403
from pullback.experimental.sparse._spvalues import (
    SparsifyEnv,
    SparsifyValue,
    arrays_to_spvalues,
    eval_sparse,
    sparsify_raw,
    spvalues_to_arrays,
    spvalues_to_avals,
)
from pullback.util.absent import absent_names

__all__ = [
    "SparsifyEnv",
    "SparsifyValue",
    "arrays_to_spvalues",
    "eval_sparse",
    "sparsify_raw",
    "spvalues_to_arrays",
    "spvalues_to_avals",
]
__getattr__ = absent_names(__name__)
