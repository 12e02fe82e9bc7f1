"""Matrices by coordinates, the older format: the names that JAX has in this module."""

from pullback.experimental.sparse import *  # noqa: F403
from pullback.experimental.sparse._primitives import (  # noqa: F401
    COOInfo,
    _coo_extract,
    _coo_fromdense,
    _coo_matmat,
    _coo_matvec,
    _coo_todense,
    coo_fromdense_p,
    coo_matmat_p,
    coo_matvec_p,
    coo_todense_p,
)
