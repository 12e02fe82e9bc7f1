"""Linear algebra by SciPy's names: factorizations, solutions, functions of matrices, matrices of special form.

Leading dimensions are batches. `overwrite_*` and `check_finite` are accepted and have no effect: arrays are
immutable, and finiteness is not known while tracing.
"""

from pullback.api.eager import remember_all as _remember_all
from pullback.core.explain import explain_all as _explain_all
from pullback.manual import add_pages as _add_pages
from pullback.manual.scipy.linalg import PAGES as _PAGES
from pullback.scipy import _parameters
from pullback.scipy.linalg._equations import qr_multiply, solve_sylvester
from pullback.scipy.linalg._factor import (
    cho_factor,
    cho_solve,
    cholesky,
    det,
    eigh,
    hessenberg,
    inv,
    lu,
    lu_factor,
    lu_solve,
    polar,
    qr,
    schur,
    solve,
    solve_triangular,
    svd,
)
from pullback.scipy.linalg._functions import expm, expm_frechet, funm, rsf2csf, sqrtm
from pullback.scipy.linalg._special_matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from pullback.scipy.linalg._tridiagonal import eigh_tridiagonal

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "convolution_matrix", "det",
    "dft", "eigh", "eigh_tridiagonal", "expm", "expm_frechet", "fiedler", "fiedler_companion", "funm", "hadamard",
    "hankel", "helmert", "hessenberg", "hilbert", "inv", "invhilbert", "invpascal", "leslie", "lu", "lu_factor",
    "lu_solve", "pascal", "polar", "qr", "qr_multiply", "rsf2csf", "schur", "solve", "solve_sylvester",
    "solve_triangular", "sqrtm", "svd", "toeplitz",
]  # fmt: skip

_remember_all(
    globals(),
    _parameters.LINALG,
    _parameters.LINALG_OWN,
    skip=("cho_factor", "cho_solve", "funm", "invpascal", "pascal"),
    at_once=True,
)
_explain_all(globals(), _parameters.LINALG, _parameters.LINALG_OWN)

_add_pages(globals(), _PAGES)
