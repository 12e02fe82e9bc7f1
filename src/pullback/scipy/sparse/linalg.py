"""Krylov methods for A x = b, where A is a matrix or a linear function of trees: cg, bicgstab, gmres.

Derivatives are those of the solution (implicit differentiation), so a solve is differentiable in b and in what A closes
over, in both modes. Algorithms as in Y. Saad, Iterative Methods for Sparse Linear Systems, 2003 (6.7, 7.4.2, 6.5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.core.explain import explain_all as _explain_all
from pullback.flatten_util import ravel_pytree
from pullback.manual import add_pages as _add_pages
from pullback.manual.scipy.sparse.linalg import PAGES as _PAGES
from pullback.numpy._arguments import is_arraylike, static_int
from pullback.scipy import _parameters
from pullback.util import dtypes
from pullback.util.absent import listed as _listed
from pullback.util.promoting import promoting_as_now, promoting_freely
from pullback.util.pytree import tree_flatten, tree_map, tree_structure

__all__ = ["bicgstab", "cg", "gmres"]

Vector = Any
Operator = Callable[[Any], Any]


def cg(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None
) -> tuple[Any, None]:
    """(x, None): conjugate gradients, for A symmetric (Hermitian) and positive definite.

    A: a function of trees like b, or a matrix f[n, n]; M: an approximate inverse of A, of the same kind. It ends when
    |b - A x| <= max(tol |b|, atol), or after `maxiter` steps (ten times the number of unknowns by default). ValueError
    where x0, or what A gives, has not the structure and shapes of b.
    """
    return _solve("cg", _cg, A, b, x0, tol, atol, maxiter, M, True), None


def bicgstab(
    A: Any, b: Any, x0: Any = None, *, tol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None
) -> tuple[Any, None]:
    """(x, None): stabilized biconjugate gradients, for any A; arguments and errors as of `cg`."""
    return _solve("bicgstab", _bicgstab, A, b, x0, tol, atol, maxiter, M, False), None


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, Any]:
    """(x, info): generalized minimal residuals, for any A, restarted after `restart` steps; info is -1 if x has NaN,
    else 0.

    `maxiter` counts restarts; `solve_method` is 'batched' or 'incremental', which have one implementation here; else
    arguments and errors as of `cg`.
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(
            f"gmres: argument 'solve_method' is {solve_method!r}; accepted are 'batched' and 'incremental'"
        )

    restart = static_int(restart, "gmres: argument 'restart'")
    if restart < 1:
        raise ValueError(f"gmres: argument 'restart' must be positive, got {restart}")

    def method(A: Operator, b: Any, x: Any, M: Operator, limit: Any, steps: Any) -> Any:
        return _gmres(A, b, x, M, limit, steps, min(restart, b.size))

    x = _solve("gmres", method, A, b, x0, tol, atol, maxiter, M, False)
    failed = [jnp.isnan(leaf).any() for leaf in tree_flatten(x)[0]]
    return x, jnp.where(jnp.stack(failed).any() if failed else False, -1, 0)


def _is_sparse(A: Any) -> bool:
    """Whether it is an array that knows only its products with dense ones."""
    return hasattr(A, "todense")


def _operator(name: str, A: Any) -> Operator:
    if callable(A):
        return A
    if not _is_sparse(A) and (not is_arraylike(A) or jnp.ndim(A) == 0):
        raise TypeError(f"{name}: an operator is a function, a matrix or a sparse matrix; got {A!r}")
    matrix = A if _is_sparse(A) else jnp.asarray(A)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name}: the operator has shape {matrix.shape}; expected a square matrix")
    return promoting_freely(lambda x: matrix @ x)


def _shapes(tree: Any) -> list[tuple[int, ...]]:
    return [jnp.shape(x) for x in tree_flatten(tree)[0]]


def _solve(
    name: str,
    method: Callable[..., Any],
    A: Any,
    b: Any,
    x0: Any,
    tol: Any,
    atol: Any,
    maxiter: Any,
    M: Any,
    hermitian: bool,
) -> Any:
    b = tree_map(jnp.asarray, b)
    x0 = tree_map(jnp.zeros_like, b) if x0 is None else tree_map(jnp.asarray, x0)
    if tree_structure(x0) != tree_structure(b):
        raise ValueError(
            f"{name}: the tree structure of b is {tree_structure(b)}, that of x0 {tree_structure(x0)}; expected the "
            "same"
        )
    if _shapes(x0) != _shapes(b):
        raise ValueError(f"{name}: the shapes in b are {_shapes(b)}, those in x0 {_shapes(x0)}; expected the same")
    apply, precondition = _operator(name, A), (lambda x: x) if M is None else _operator(name, M)
    matrices = [x.dtype if _is_sparse(x) else jnp.asarray(x) for x in (A, M) if x is not None and not callable(x)]
    common = promoting_freely(lambda x, y: jnp.result_type(x, y, np.float32, *matrices))
    given = promoting_freely(lambda x, y: jnp.result_type(x, y, *matrices))
    flat, unravel = ravel_pytree(tree_map(lambda x, y: x.astype(common(x, y)), b, x0))
    start = ravel_pytree(x0)[0].astype(flat.dtype)
    steps = 10 * flat.size if maxiter is None else maxiter

    def in_given(tree: Any) -> Any:
        return tree_map(lambda v, *operands: _as_given(v, given(*operands)), tree, b, x0)

    def on_vectors(f: Operator, by_user: bool) -> Operator:
        f = promoting_as_now(f)

        def g(v: Any) -> Any:
            out = f(in_given(unravel(v)) if by_user else unravel(v))
            if tree_structure(out) != tree_structure(b) or _shapes(out) != _shapes(b):
                raise ValueError(f"{name}: the operator gives {_shapes(out)}; expected {_shapes(b)}, the shapes of b")
            return ravel_pytree(out)[0].astype(v.dtype)

        return g

    prepared = on_vectors(precondition, callable(M))

    @promoting_freely
    def solve(matvec: Operator, v: Any) -> Any:
        limit = jnp.maximum(tol * _norm(v), atol)
        return method(matvec, v, start, prepared, limit, steps)

    # The transpose of a Hermitian matrix is another one, unless it is real.
    symmetric = hermitian and not dtypes.issubdtype(flat.dtype, np.complexfloating)
    matvec = on_vectors(apply, callable(A))
    x = lax.custom_linear_solve(matvec, flat, solve=solve, transpose_solve=solve, symmetric=symmetric)
    return in_given(unravel(x))


def _as_given(x: Any, dtype: Any) -> Any:
    """A solution, which is computed in 32 bits at least, in the half type of the operands."""
    return x.astype(dtype) if dtypes.issubdtype(dtype, np.floating) else x


def _dot(x: Any, y: Any) -> Any:
    return jnp.vdot(x, y, precision=lax.Precision.HIGHEST)


def _norm(x: Any) -> Any:
    return jnp.sqrt(_dot(x, x).real)


def _over(x: Any, y: Any) -> Any:
    """x / y, and 0 where y is 0: a method that has broken down stays where it is."""
    return jnp.where(y == 0, 0, x / jnp.where(y == 0, 1, y))


def _cg(A: Operator, b: Any, x: Any, M: Operator, limit: Any, steps: Any) -> Any:
    r = b - A(x)
    z = M(r)

    def goes_on(state: Any) -> Any:
        _, r, _, _, k = state
        return (_norm(r) > limit) & (k < steps)

    def step(state: Any) -> Any:
        x, r, p, rz, k = state
        Ap = A(p)
        alpha = _over(rz, _dot(p, Ap)).astype(x.dtype)
        x, r = x + alpha * p, r - alpha * Ap
        z = M(r)
        new = _dot(r, z)
        return x, r, z + _over(new, rz).astype(x.dtype) * p, new, k + 1

    return lax.while_loop(goes_on, step, (x, r, z, _dot(r, z), 0))[0]


def _bicgstab(A: Operator, b: Any, x: Any, M: Operator, limit: Any, steps: Any) -> Any:
    r = b - A(x)
    shadow = r
    one = jnp.ones((), b.dtype)

    def goes_on(state: Any) -> Any:
        _, r, _, _, rho, _, omega, k = state
        return (_norm(r) > limit) & (k < steps) & (rho != 0) & (omega != 0)

    def step(state: Any) -> Any:
        x, r, p, v, rho, alpha, omega, k = state
        new = _dot(shadow, r)
        p = r + _over(new, rho) * _over(alpha, omega) * (p - omega * v)
        ahead = M(p)
        v = A(ahead)
        alpha = _over(new, _dot(shadow, v))
        half = r - alpha * v
        smooth = M(half)
        t = A(smooth)
        omega = _over(_dot(t, half), _dot(t, t))
        done = _norm(half) <= limit  # the first half of the step was enough
        x = x + alpha * ahead + jnp.where(done, 0, omega) * smooth
        return x, jnp.where(done, half, half - omega * t), p, v, new, alpha, omega, k + 1

    zero = jnp.zeros_like(b)
    return lax.while_loop(goes_on, step, (x, r, zero, zero, one, one, one, 0))[0]


def _gmres(A: Operator, b: Any, x: Any, M: Operator, limit: Any, steps: Any, restart: int) -> Any:
    """Restarts of Arnoldi's method on M A."""
    return restarted(lambda x, r: x + gmres_cycle(A, M, M(r), restart), lambda x: b - A(x), x, limit, steps)


def restarted(cycle: Callable[[Any, Any], Any], residual: Operator, x: Any, limit: Any, steps: Any) -> Any:
    """x = cycle(x, residual(x)) until that is at most `limit` in norm, or `steps` times."""

    def goes_on(state: Any) -> Any:
        _, r, k = state
        return (_norm(r) > limit) & (k < steps)

    def step(state: Any) -> Any:
        x, r, k = state
        x = cycle(x, r)
        return x, residual(x), k + 1

    return lax.while_loop(goes_on, step, (x, residual(x), 0))[0]


def gmres_cycle(A: Operator, M: Operator, r: Any, restart: int) -> Any:
    """The y in the Krylov space of M A and r that makes |r - M A y| least: Gram-Schmidt twice, and least squares."""
    size = _norm(r)
    basis = jnp.zeros((restart + 1, r.size), r.dtype).at[0].set(_over(r, size))

    def extend(k: Any, state: Any) -> Any:
        basis, table = state
        w = M(A(basis[k]))
        before = _norm(w)
        first = jnp.matmul(basis.conj(), w, precision=lax.Precision.HIGHEST)
        w = w - jnp.matmul(first, basis, precision=lax.Precision.HIGHEST)
        second = jnp.matmul(basis.conj(), w, precision=lax.Precision.HIGHEST)
        w = w - jnp.matmul(second, basis, precision=lax.Precision.HIGHEST)
        length = _norm(w)
        # What is left by rounding alone is no new direction.
        new = jnp.where(length > 4 * float(np.finfo(length.dtype).eps) * before, length, 0)
        column = (first + second).at[k + 1].set(new.astype(r.dtype))
        return basis.at[k + 1].set(_over(w, new)), table.at[:, k].set(column)

    table = jnp.zeros((restart + 1, restart), r.dtype)
    basis, table = lax.fori_loop(0, restart, extend, (basis, table))
    target = jnp.zeros(restart + 1, r.dtype).at[0].set(size.astype(r.dtype))
    return jnp.matmul(jnp.linalg.lstsq(table, target)[0], basis[:restart], precision=lax.Precision.HIGHEST)


_explain_all(globals(), _parameters.SPARSE, {})

_add_pages(globals(), _PAGES)

__dir__ = _listed(__name__)
