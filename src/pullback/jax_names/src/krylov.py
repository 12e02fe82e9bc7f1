"""Stands for jax._src.scipy.sparse.linalg: its public names, and the parts of gmres that pyscfad uses."""

from collections.abc import Callable
from typing import Any

from pullback import numpy as jnp
from pullback.flatten_util import ravel_pytree
from pullback.jax_names.src import names_of
from pullback.scipy.sparse import linalg
from pullback.scipy.sparse.linalg import gmres_cycle, restarted
from pullback.util.pytree import tree_leaves


def _identity(x: Any) -> Any:
    return x


def _normalize_matvec(f: Any) -> Callable[[Any], Any]:
    """A linear function as it is, or that of a matrix. TypeError, ValueError for what is neither."""
    return linalg._operator("linear solver", f)


def _norm(x: Any) -> Any:
    """The 2-norm of all elements of a tree."""
    return jnp.sqrt(sum(jnp.vdot(leaf, leaf).real for leaf in tree_leaves(x)))


def _on_vectors(f: Callable[[Any], Any], unravel: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda v: ravel_pytree(f(unravel(v)))[0]


def _gmres_batched(
    A: Any, b: Any, x0: Any, unit_residual: Any, residual_norm: Any, ptol: Any, restart: int, M: Any
) -> tuple[Any, Any, Any]:
    """One cycle of gmres: (x, the residual there over its norm, its norm)."""
    flat, unravel = ravel_pytree(b)
    residual = ravel_pytree(unit_residual)[0] * residual_norm
    at = ravel_pytree(x0)[0] + gmres_cycle(_on_vectors(A, unravel), _on_vectors(M, unravel), residual, restart)
    after = _on_vectors(M, unravel)(flat - _on_vectors(A, unravel)(at))
    norm = jnp.linalg.norm(after)
    return unravel(at), unravel(after / jnp.where(norm == 0, 1, norm)), norm


_gmres_incremental = _gmres_batched  # two ways to compute the same


def _gmres_solve(
    A: Any, b: Any, x0: Any, atol: Any, ptol: Any, restart: int, maxiter: Any, M: Any, gmres_func: Any
) -> Any:
    """x with |M (b - A x)| <= ptol, by at most `maxiter` cycles of gmres_func."""
    flat, unravel = ravel_pytree(b)
    matvec, prepared = _on_vectors(A, unravel), _on_vectors(M, unravel)

    def cycle(x: Any, residual: Any) -> Any:
        norm = jnp.linalg.norm(residual)
        unit = unravel(residual / jnp.where(norm == 0, 1, norm))
        return ravel_pytree(gmres_func(A, b, unravel(x), unit, norm, ptol, restart, M)[0])[0]

    start = ravel_pytree(x0)[0]
    return unravel(restarted(cycle, lambda x: prepared(flat - matvec(x)), start, ptol, maxiter))


__getattr__ = names_of(__name__, linalg)
