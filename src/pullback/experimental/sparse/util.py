"""Errors and warnings about sparse arrays: the names that JAX has in this module."""

from pullback.experimental.sparse import *  # noqa: F403
from pullback.experimental.sparse._flat import (  # noqa: F401
    SparseInfo,
    _count_stored_elements,
    _count_stored_elements_per_batch,
    broadcasting_vmap,
    nfold_vmap,
)
from pullback.experimental.sparse._primitives import _coo_extract, _csr_extract, _csr_to_coo  # noqa: F401
