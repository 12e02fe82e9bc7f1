"""Matrices by rows and by columns, the older formats: the names that JAX has in this module."""

from pullback.experimental.sparse import *  # noqa: F403
from pullback.experimental.sparse._primitives import csr_fromdense_p, csr_matmat_p, csr_matvec_p, csr_todense_p  # noqa: F401
