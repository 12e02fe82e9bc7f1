"""Pages of solvers that need products alone."""

from pullback.manual._arguments import SPARSE_SOLVER

PAGES = {
    "cg": f"""
Arguments:
{SPARSE_SOLVER}
    maxiter: integer: number of steps; None for ten times the number of unknowns.
    M: approximate inverse of A; None for none.
Returns:
    Pair of a pytree like b and None.
Raises:
    ValueError if x0 does not fit.

>>> x, info = jax.scipy.sparse.linalg.cg(lambda x: 2 * x, jnp.array([2.0, 4.0]))
>>> x.round(3)
Array([1., 2.], dtype=float32)
""",
    "bicgstab": f"""
Arguments:
{SPARSE_SOLVER}
    maxiter: integer: number of steps; None for ten times the number of unknowns.
    M: approximate inverse of A; None for none.
Returns:
    Pair of a pytree like b and None.
Raises:
    ValueError if x0 does not fit.

>>> x, info = jax.scipy.sparse.linalg.bicgstab(lambda x: 2 * x, jnp.array([2.0, 4.0]))
>>> x.round(3)
Array([1., 2.], dtype=float32)
""",
    "gmres": f"""
Arguments:
{SPARSE_SOLVER}
    restart: integer: steps between restarts.
    maxiter: integer: number of restarts; None for ten times the number of unknowns.
    M: approximate inverse of A; None for none.
    solve_method: 'batched' or 'incremental'.
Returns:
    Pair of a pytree like b and an integer.
Raises:
    ValueError if x0 does not fit.

>>> x, info = jax.scipy.sparse.linalg.gmres(lambda x: 2 * x, jnp.array([2.0, 4.0]))
>>> x.round(3)
Array([1., 2.], dtype=float32)
""",
}
