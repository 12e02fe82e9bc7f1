# ruff: noqa
# Written by `python -m tools.stubs`: what functions take is in their docstrings.
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

from pullback.core.tracer import Array

T = TypeVar("T")

EigImplementation: Any
EighImplementation: Any
SvdAlgorithm: Any

def cholesky(x: Any, *, symmetrize_input: Any = ...) -> Array: ...

cholesky_p: Any

def cholesky_update(r_matrix: Any, w_vector: Any) -> Array: ...

cholesky_update_p: Any

def eig(
    x: Any,
    *,
    compute_left_eigenvectors: Any = ...,
    compute_right_eigenvectors: Any = ...,
    enable_eigvec_derivs: Any = ...,
    implementation: Any = ...,
    use_magma: Any = ...,
) -> list[Array]: ...

eig_p: Any

def eigh(
    x: Any,
    *,
    lower: Any = ...,
    symmetrize_input: Any = ...,
    sort_eigenvalues: Any = ...,
    subset_by_index: Any = ...,
    implementation: Any = ...,
) -> tuple[Array, Array]: ...

eigh_p: Any

def geqrf(a: Any) -> tuple[Array, Array]: ...

geqrf_p: Any

def hessenberg(a: Any) -> list[Array]: ...

hessenberg_p: Any

def householder_product(a: Any, taus: Any) -> Array: ...

householder_product_p: Any

def lu(x: Any) -> list[Array]: ...

lu_p: Any

def lu_pivots_to_permutation(pivots: Any, permutation_size: Any) -> Array: ...

lu_pivots_to_permutation_p: Any

def ormqr(a: Any, taus: Any, c: Any, *, left: Any = ..., transpose: Any = ...) -> Array: ...

ormqr_p: Any

def qdwh(
    x: Any, *, is_hermitian: Any = ..., max_iterations: Any = ..., eps: Any = ..., dynamic_shape: Any = ...
) -> Any: ...
def qr(x: Any, *, pivoting: Any = ..., full_matrices: Any = ..., use_magma: Any = ...) -> tuple[Array, ...]: ...

qr_p: Any

def schur(
    x: Any, *, compute_schur_vectors: Any = ..., sort_eig_vals: Any = ..., select_callable: Any = ...
) -> list[Array]: ...

schur_p: Any

def svd(
    x: Any, *, full_matrices: Any = ..., compute_uv: Any = ..., subset_by_index: Any = ..., algorithm: Any = ...
) -> Any: ...

svd_p: Any

def symmetric_product(
    a_matrix: Any, c_matrix: Any, *, alpha: Any = ..., beta: Any = ..., symmetrize_output: Any = ...
) -> Array: ...
def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: Any = ...,
    lower: Any = ...,
    transpose_a: Any = ...,
    conjugate_a: Any = ...,
    unit_diagonal: Any = ...,
) -> Array: ...

triangular_solve_p: Any

def tridiagonal(a: Any, *, lower: Any = ...) -> list[Array]: ...

tridiagonal_p: Any

def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: Any = ...) -> Array: ...

tridiagonal_solve_p: Any

def __getattr__(name: str) -> Any: ...
