"""Decompositions and solvers of stacks of matrices: `jax.lax.linalg`."""

from pullback.core.explain import explain_all as _explain_all
from pullback.lax import _parameters
from pullback.lax.linalg.factor import (
    cholesky,
    cholesky_p,
    cholesky_update,
    cholesky_update_p,
    lu,
    lu_p,
    lu_pivots_to_permutation,
    lu_pivots_to_permutation_p,
    symmetric_product,
)
from pullback.lax.linalg.general_eig import EigImplementation, eig, eig_p
from pullback.lax.linalg.hermitian_eig import EighImplementation, eigh, eigh_p
from pullback.lax.linalg.orthogonal import (
    geqrf,
    geqrf_p,
    householder_product,
    householder_product_p,
    ormqr,
    ormqr_p,
    qr,
    qr_p,
)
from pullback.lax.linalg.schur_forms import hessenberg, hessenberg_p, schur, schur_p, tridiagonal, tridiagonal_p
from pullback.lax.linalg.singular_values import SvdAlgorithm, qdwh, svd, svd_p
from pullback.lax.linalg.solve import triangular_solve, triangular_solve_p
from pullback.lax.linalg.tridiagonal_systems import tridiagonal_solve, tridiagonal_solve_p
from pullback.manual import add_pages as _add_pages
from pullback.manual.lax.linalg import PAGES as _PAGES
from pullback.util.absent import absent_names, listed

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_p",
    "cholesky_update",
    "cholesky_update_p",
    "eig",
    "eig_p",
    "eigh",
    "eigh_p",
    "geqrf",
    "geqrf_p",
    "hessenberg",
    "hessenberg_p",
    "householder_product",
    "householder_product_p",
    "lu",
    "lu_p",
    "lu_pivots_to_permutation",
    "lu_pivots_to_permutation_p",
    "ormqr",
    "ormqr_p",
    "qdwh",
    "qr",
    "qr_p",
    "schur",
    "schur_p",
    "svd",
    "svd_p",
    "symmetric_product",
    "triangular_solve",
    "triangular_solve_p",
    "tridiagonal",
    "tridiagonal_p",
    "tridiagonal_solve",
    "tridiagonal_solve_p",
]

# Functions of arrays alone need no explanation: their primitives say what is wrong.
_explain_all(globals(), _parameters.LINALG, {}, skip=_parameters.of_arrays(globals()))
_add_pages(globals(), _PAGES)

__getattr__ = absent_names(__name__)

__dir__ = listed(__name__)
