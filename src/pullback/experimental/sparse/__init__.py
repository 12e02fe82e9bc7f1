"""Sparse arrays in coordinate format and by rows, with batch and dense dimensions."""

from pullback.core.explain import explain_all as _explain_all
from pullback.core.explain import explain_methods as _explain_methods
from pullback.experimental.sparse import _base, _indexing, _matrices, _products, linalg
from pullback.experimental.sparse._base import JAXSparse, SparseEfficiencyError, SparseEfficiencyWarning
from pullback.experimental.sparse._bcoo import BCOO
from pullback.experimental.sparse._bcsr import (
    BCSR,
    bcsr_broadcast_in_dim,
    bcsr_concatenate,
    bcsr_dot_general,
    bcsr_extract,
    bcsr_fromdense,
    bcsr_sum_duplicates,
    bcsr_todense,
)
from pullback.experimental.sparse._derivatives import grad, jacfwd, jacobian, jacrev, value_and_grad
from pullback.experimental.sparse._flat import (
    bcoo_dot_general_p,
    bcoo_dot_general_sampled_p,
    bcoo_extract_p,
    bcoo_fromdense_p,
    bcoo_sort_indices_p,
    bcoo_spdot_general_p,
    bcoo_sum_duplicates_p,
    bcoo_todense_p,
    bcoo_transpose_p,
    bcsr_dot_general_p,
    bcsr_extract_p,
    bcsr_fromdense_p,
    bcsr_todense_p,
)
from pullback.experimental.sparse._indexing import bcoo_gather, bcoo_rev, bcoo_slice
from pullback.experimental.sparse._layout import bcoo_conv_general_dilated, bcoo_update_layout
from pullback.experimental.sparse._make import bcoo_fromdense, empty, eye, random_bcoo
from pullback.experimental.sparse._matrices import (
    COO,
    CSC,
    CSR,
    coo_fromdense,
    coo_matmat,
    coo_matvec,
    coo_todense,
    csr_fromdense,
    csr_matmat,
    csr_matvec,
    csr_todense,
)
from pullback.experimental.sparse._primitives import (
    coo_fromdense_p,
    coo_matmat_p,
    coo_matvec_p,
    coo_todense_p,
    csr_fromdense_p,
    csr_matmat_p,
    csr_matvec_p,
    csr_todense_p,
    todense,
    todense_p,
)
from pullback.experimental.sparse._products import bcoo_dot_general, bcoo_multiply_dense, bcoo_multiply_sparse
from pullback.experimental.sparse._sampled import (
    CuSparseEfficiencyWarning,
    bcoo_dot_general_sampled,
    bcoo_dynamic_slice,
    bcoo_eliminate_zeros,
    bcsr_eliminate_zeros,
)
from pullback.experimental.sparse._shapes import bcoo_broadcast_in_dim, bcoo_concatenate, bcoo_reshape
from pullback.experimental.sparse._sparsify import sparsify
from pullback.experimental.sparse._structure import (
    bcoo_extract,
    bcoo_reduce_sum,
    bcoo_sort_indices,
    bcoo_squeeze,
    bcoo_sum_duplicates,
    bcoo_todense,
    bcoo_transpose,
)
from pullback.manual import add_pages as _add_pages
from pullback.manual.experimental.sparse import PAGES as _PAGES
from pullback.util.absent import absent_names, listed

__all__ = [
    "BCOO", "BCSR", "COO", "CSC", "CSR", "CuSparseEfficiencyWarning", "JAXSparse", "SparseEfficiencyError",
    "SparseEfficiencyWarning", "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_conv_general_dilated",
    "bcoo_dot_general",
    "bcoo_dot_general_sampled", "bcoo_dynamic_slice", "bcoo_eliminate_zeros", "bcoo_extract", "bcoo_fromdense",
    "bcoo_gather", "bcoo_multiply_dense", "bcoo_multiply_sparse", "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev",
    "bcoo_slice",
    "bcoo_sort_indices", "bcoo_squeeze", "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose",
    "bcoo_update_layout",
    "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general", "bcsr_eliminate_zeros", "bcsr_extract",
    "bcsr_fromdense", "bcsr_sum_duplicates", "bcsr_todense", "coo_fromdense", "coo_matmat", "coo_matvec",
    "coo_todense", "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense", "empty", "eye", "grad", "jacfwd",
    "jacobian", "jacrev", "linalg", "random_bcoo", "sparsify", "todense", "value_and_grad",
]  # fmt: skip

vars(_base.operations).update(
    add=_products.add,
    bcoo_fromdense=bcoo_fromdense,
    bcoo_broadcast_in_dim=bcoo_broadcast_in_dim,
    bcoo_reduce_sum=bcoo_reduce_sum,
    bcoo_reshape=bcoo_reshape,
    bcoo_sort_indices=bcoo_sort_indices,
    bcoo_sum_duplicates=bcoo_sum_duplicates,
    bcoo_todense=bcoo_todense,
    bcoo_transpose=bcoo_transpose,
    bcoo_update_layout=bcoo_update_layout,
    divide=_products.divide,
    get=_indexing.get,
    empty=empty,
    matmul=_products.matmul,
    matrix=_matrices.matrix,
    multiply=_products.multiply,
)

__getattr__ = absent_names(__name__)

_explain_all(globals())
for _class in (JAXSparse, BCOO, BCSR, COO, CSR):
    _explain_methods(_class)
_add_pages(globals(), _PAGES)

from pullback.experimental.sparse import ad, api, bcoo, bcsr, coo, csr, random, transform, util  # noqa: E402

__dir__ = listed(__name__)
