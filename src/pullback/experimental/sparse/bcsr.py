"""Matrices by rows: the names that JAX has in this module."""

from pullback.experimental.sparse import *  # noqa: F403
from pullback.experimental.sparse._flat import (  # noqa: F401
    BCSRProperties,
    SparseInfo,
    _bcoo_to_bcsr,
    _bcsr_dot_general,
    _bcsr_extract,
    _bcsr_fromdense,
    _bcsr_to_bcoo,
    _bcsr_todense,
    _count_stored_elements,
    _validate_bcsr,
    bcsr_dot_general_p,
    bcsr_extract_p,
    bcsr_fromdense_p,
    bcsr_todense_p,
    nfold_vmap,
)
