"""Matrices by rows and by columns, the older formats: the names that JAX has in this module."""

from pullback.experimental.sparse import *  # noqa: F403
from pullback.experimental.sparse._primitives import (  # noqa: F401
    COOInfo,
    _csr_extract,
    _csr_fromdense,
    _csr_matmat,
    _csr_matvec,
    _csr_to_coo,
    _csr_todense,
    csr_fromdense_p,
    csr_matmat_p,
    csr_matvec_p,
    csr_todense_p,
)
