"""Arrays in coordinate format: the names that JAX has in this module."""

from pullback.experimental.sparse import *  # noqa: F403
from pullback.experimental.sparse._flat import (  # noqa: F401
    BCOOProperties,
    SparseInfo,
    _bcoo_broadcast_in_dim,
    _bcoo_dot_general,
    _bcoo_extract,
    _bcoo_fromdense,
    _bcoo_multiply_dense,
    _bcoo_multiply_sparse,
    _bcoo_rdot_general,
    _bcoo_reduce_sum,
    _bcoo_set_nse,
    _bcoo_spdot_general,
    _bcoo_sum_duplicates,
    _bcoo_todense,
    _bcoo_transpose,
    _count_stored_elements,
    _validate_bcoo,
    bcoo_dot_general_p,
    bcoo_dot_general_sampled_p,
    bcoo_extract_p,
    bcoo_fromdense_p,
    bcoo_sort_indices_p,
    bcoo_spdot_general_p,
    bcoo_sum_duplicates_p,
    bcoo_todense_p,
    bcoo_transpose_p,
    nfold_vmap,
)
from pullback.util.absent import absent_names

__getattr__ = absent_names(__name__)
