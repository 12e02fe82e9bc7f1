"""Functions of matrices."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.api import jit, jvp
from pullback.lax import linalg as lax_linalg
from pullback.scipy.linalg._factor import schur, square
from pullback.util import dtypes
from pullback.util.static import check_flags


def _pade(degree: int) -> list[float]:
    """Coefficients of the numerator of the diagonal Pade approximant to exp: (2m-k)! m! / ((2m)! (m-k)! k!), times
    b_m^-1."""
    m = degree
    ratio = [math.comb(m, k) * math.factorial(2 * m - k) for k in range(m + 1)]
    return [r / ratio[m] for r in ratio]


# Largest 1-norms for which the approximant of a degree is exact to the unit roundoff. Higham, "The scaling and squaring
# method for the matrix exponential revisited", SIAM J. Matrix Anal. Appl. 2005, tables 2.3 (double) and the same for
# single.
_LIMITS = {
    64: {3: 1.495585217958292e-2, 5: 2.539398330063230e-1, 7: 9.504178996162932e-1, 9: 2.097847961257068,
         13: 5.371920351148152},
    32: {3: 4.258730016922831e-1, 5: 1.880152677804762, 7: 3.925724783138660},
}  # fmt: skip


def _even_and_odd(a: Any, degree: int) -> tuple[Any, Any]:
    """(V, U) of the approximant (V + U) / (V - U): its even and odd parts."""
    b = _pade(degree)
    eye = jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape)
    powers = [eye, jnp.matmul(a, a)]
    if degree == 13:
        a2 = powers[1]
        a4 = jnp.matmul(a2, a2)
        a6 = jnp.matmul(a4, a2)
        u = jnp.matmul(a6, b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye
        v = jnp.matmul(a6, b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye
        return v, jnp.matmul(a, u)
    while 2 * len(powers) < degree + 1:
        powers.append(jnp.matmul(powers[-1], powers[1]))
    zero = jnp.zeros_like(a)
    v = sum((b[2 * k] * p for k, p in enumerate(powers) if 2 * k <= degree), zero)
    u = sum((b[2 * k + 1] * p for k, p in enumerate(powers) if 2 * k + 1 <= degree), zero)
    return v, jnp.matmul(a, u)


@functools.partial(jit, static_argnames=("upper_triangular", "max_squarings"))
def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Any:
    """The matrix exponential, by scaling, a Pade approximant, and squaring.

    nan where more than `max_squarings` squarings were needed (1-norm above about 5 * 2^max_squarings).
    `upper_triangular`: A is known to be, and so is the result.
    """
    a = square("expm", A)
    if dtypes.finfo(a.dtype).bits < 32:
        raise TypeError(f"expm: matrices of {a.dtype} are not supported; use single or double precision")
    if a.ndim > 2:
        batch = a.shape[:-2]
        flat = lax.reshape(a, (math.prod(batch), *a.shape[-2:]))
        out = lax.map(lambda x: expm(x, upper_triangular=upper_triangular, max_squarings=max_squarings), flat)
        return lax.reshape(out, a.shape)
    limits = _LIMITS[64 if dtypes.finfo(a.dtype).bits == 64 else 32]
    degrees = list(limits)
    if a.size == 0:
        return a
    norm = jnp.max(jnp.sum(jnp.abs(a), axis=-2), axis=-1)
    top = limits[degrees[-1]]
    squarings = jnp.maximum(0, jnp.ceil(jnp.log2(norm / top))).astype(np.int32)
    squarings = jnp.where(norm > top, squarings, 0)
    scaled = a / (2.0 ** squarings.astype(dtypes.finfo(a.dtype).dtype)).astype(a.dtype)
    which = jnp.searchsorted(jnp.asarray([limits[d] for d in degrees[:-1]], norm.dtype), norm)
    v, u = lax.switch(which, [functools.partial(_even_and_odd, degree=d) for d in degrees], scaled)
    first = jnp.linalg.solve(v - u, v + u)
    if upper_triangular:
        first = jnp.triu(first)

    def again(i: Any, x: Any) -> Any:
        return lax.cond(i < squarings, lambda x: jnp.matmul(x, x), lambda x: x, x)

    out = lax.fori_loop(0, max_squarings, again, first)
    return jnp.where(squarings > max_squarings, np.nan, out)


def expm_frechet(A: Any, E: Any, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """(expm(A), L), L the derivative of expm at A in the direction E; L alone unless `compute_expm`.

    Raises ValueError if the shapes differ.
    """
    check_flags("expm_frechet", compute_expm=compute_expm, method=method)
    a, e = square("expm_frechet", jnp.asarray(A), jnp.asarray(E))
    if a.shape != e.shape:
        raise ValueError(f"expm_frechet: A has shape {a.shape} and E {e.shape}; expected equal shapes")
    value, slope = jvp(expm, (a,), (e,))
    return (value, slope) if compute_expm else slope


def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """The complex Schur form (T', Z') of a real one (T, Z): Z' T' Z'^H = Z T Z^T, T' upper triangular; also of stacks.

    Each 2x2 block is made triangular by a rotation. Golub, Van Loan, "Matrix Computations", 7.4.
    """
    check_flags("rsf2csf", check_finite=check_finite)
    t, z = square("rsf2csf", T, Z)
    n = t.shape[-1]
    if z.shape[-2:] != (n, n):
        raise ValueError(f"rsf2csf: expected matrices of one order, got {t.aval.short()} and {z.aval.short()}")
    if max(t.ndim, z.ndim) > 2:
        return jnp.vectorize(rsf2csf, signature="(n,n),(n,n)->(n,n),(n,n)")(t, z)
    kind = dtypes.to_complex_dtype(t.dtype)
    t, z = t.astype(kind), z.astype(kind)

    def rotate(step: Any, state: Any) -> Any:
        m = n - 1 - step
        t, z = state
        block = lax.dynamic_slice(t, (m - 1, m - 1), (2, 2))
        trace, determinant = block[0, 0] + block[1, 1], block[0, 0] * block[1, 1] - block[0, 1] * block[1, 0]
        root = jnp.sqrt(trace * trace / 4 - determinant)
        mu = jnp.where(jnp.abs(trace / 2 + root - block[1, 1]) <= jnp.abs(trace / 2 - root - block[1, 1]),
                       trace / 2 + root, trace / 2 - root) - block[1, 1]  # fmt: skip
        below = block[1, 0]
        length = jnp.sqrt(jnp.abs(mu) ** 2 + jnp.abs(below) ** 2).astype(kind)
        needed = below != 0
        c = jnp.where(needed, mu / jnp.where(needed, length, 1), 1)
        s = jnp.where(needed, below / jnp.where(needed, length, 1), 0)
        g = jnp.array([[jnp.conj(c), s], [-s, c]])
        rows = jnp.matmul(g, lax.dynamic_slice(t, (m - 1, 0), (2, n)))
        t = lax.dynamic_update_slice(t, rows, (m - 1, 0))
        columns = jnp.matmul(lax.dynamic_slice(t, (0, m - 1), (n, 2)), jnp.conj(g.T))
        t = lax.dynamic_update_slice(t, columns, (0, m - 1))
        z = lax.dynamic_update_slice(z, jnp.matmul(lax.dynamic_slice(z, (0, m - 1), (n, 2)), jnp.conj(g.T)), (0, m - 1))
        return t, z

    t, z = lax.fori_loop(0, n - 1, rotate, (t, z)) if n > 1 else (t, z)
    return jnp.triu(t), z


def sqrtm(A: Any, blocksize: int = 1) -> Any:
    """The principal square root, complex; NotImplementedError for blocksize > 1.

    By the Schur form. Bjorck, Hammarling, "A Schur method for the square root of a matrix", 1983.
    """
    if blocksize > 1:
        raise NotImplementedError("Blocked version is not implemented yet.")
    a = square("sqrtm", A)
    t, z = schur(a, output="complex")
    n = t.shape[-1]
    if n == 0:
        return t
    roots = jnp.sqrt(jnp.diagonal(t, axis1=-2, axis2=-1))
    index = jnp.arange(n)

    def column(u: Any, j: Any) -> tuple[Any, None]:
        # Above the diagonal column j of u solves (u + u[j, j]) x = t[:, j], whose matrix is the part that is there.
        root, given = (lax.dynamic_index_in_dim(x, j, axis=x.ndim - 1) for x in (roots, t))
        pivots = roots + root
        pivots = jnp.where((pivots == 0) | (index >= j), 1, pivots)
        solvable = (roots + root != 0) & (index < j)
        system = jnp.where(solvable[..., None], jnp.triu(u, 1), 0) + pivots[..., None] * jnp.eye(n, dtype=u.dtype)
        right = jnp.where(solvable[..., None], given, 0)
        above = lax_linalg.triangular_solve(system, right, left_side=True, lower=False)
        return jnp.where(index == j, above + jnp.where(index == j, root, 0)[..., None], u), None

    u, _ = lax.scan(column, jnp.zeros_like(t), index)
    return jnp.matmul(jnp.matmul(z, u), jnp.conj(jnp.swapaxes(z, -1, -2)))


@jit
def _from_diagonal(t: Any, f: Any) -> Any:
    """What commutes with the upper triangular t, from its diagonal: one superdiagonal after the other."""
    n = t.shape[-1]
    diagonal = jnp.diagonal(t)
    distance = jnp.arange(n)[None, :] - jnp.arange(n)[:, None]

    def superdiagonal(f: Any, p: Any) -> tuple[Any, None]:
        # One of t f - f t, which is 0: what f is not known yet is 0 in both products.
        difference = jnp.einsum("ik,ki->i", t, jnp.roll(f, -p, 1)) - jnp.einsum("ik,ki->i", f, jnp.roll(t, -p, 1))
        gaps = jnp.roll(diagonal, -p) - diagonal
        found = jnp.where(gaps == 0, difference, difference / jnp.where(gaps == 0, 1, gaps))
        return jnp.where(distance == p, found[:, None], f), None

    return lax.scan(superdiagonal, f, jnp.arange(1, max(n, 1)))[0]


def funm(A: Any, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """The function of a matrix whose eigenvalues are `func` of A's; with disp=False also an estimate of the error.

    By Parlett's recurrence on the Schur form: Golub, Van Loan, "Matrix Computations", 9.1. Eigenvalues must differ.
    """
    a = square("funm", jnp.asarray(A))
    if a.ndim != 2:
        raise ValueError(f"expected square array_like input, got {a.aval.short()}")
    t, z = schur(a, output="complex")
    n = t.shape[-1]
    diagonal = jnp.diagonal(t)
    f = jnp.diag(func(diagonal)).astype(t.dtype)
    between = jnp.abs(diagonal[:, None] - diagonal[None, :])
    least = jnp.min(jnp.where(jnp.eye(n, dtype=bool), np.inf, between)) if n > 1 else 1.0
    f = _from_diagonal(t, f)
    out = jnp.matmul(jnp.matmul(z, f), jnp.conj(z.T))
    if disp:
        return out
    eps = dtypes.finfo(out.dtype).eps
    bound = jnp.maximum(
        eps, eps / jnp.where(least == 0, eps, least) * jnp.max(jnp.sum(jnp.abs(jnp.triu(t, 1)), axis=0))
    )
    return out, jnp.where(jnp.all(jnp.isfinite(jnp.abs(out))), jnp.minimum(1, bound), np.inf)
