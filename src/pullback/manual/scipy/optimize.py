"""Pages of minimization."""

PAGES = {
    "OptimizeResults": """
>>> found = jax.scipy.optimize.minimize(lambda x: jnp.sum((x - 1.0) ** 2), jnp.zeros(2), method="BFGS")
>>> found.x, bool(found.success)
(Array([1., 1.], dtype=float32), True)
""",
    "minimize": """
Arguments:
    fun: function of a vector and of args that gives a scalar.
    x0: vector of floats: where to begin.
    args: tuple of further arguments.
    method: 'BFGS', or the name above; must be given.
    tol: largest element of the gradient at which it ends; None for 1e-5.
    options: dictionary; None for none.
Returns:
    OptimizeResults, with x, fun, jac, success and more.
Raises:
    ValueError for other methods; TypeError if args is no tuple.

>>> jnp.abs(jax.scipy.optimize.minimize(lambda x: jnp.sum((x - 2) ** 2), jnp.zeros(2), method="BFGS").x).round(2)
Array([2., 2.], dtype=float32)
""",
}
