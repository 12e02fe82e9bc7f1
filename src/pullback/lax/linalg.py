"""Decompositions and solvers of stacks of matrices: `jax.lax.linalg`."""

from pullback.lax._linalg_decompose import (
    EighImplementation,
    EigImplementation,
    SvdAlgorithm,
    eig,
    eig_p,
    eigh,
    eigh_p,
    hessenberg,
    hessenberg_p,
    householder_product,
    householder_product_p,
    ormqr,
    ormqr_p,
    qdwh,
    qr,
    qr_p,
    schur,
    schur_p,
    svd,
    svd_p,
    symmetric_product,
    tridiagonal,
    tridiagonal_p,
)
from pullback.lax._linalg_solve import (
    cholesky,
    cholesky_p,
    cholesky_update,
    cholesky_update_p,
    lu,
    lu_p,
    lu_pivots_to_permutation,
    lu_pivots_to_permutation_p,
    triangular_solve,
    triangular_solve_p,
    tridiagonal_solve,
    tridiagonal_solve_p,
)

__all__ = [name for name in dir() if not name.startswith("_")]
