"""Pages of `scipy.interpolate`."""

PAGES = {
    "RegularGridInterpolator": """
Arguments:
    points: sequence of d arrays [n_k], strictly increasing or decreasing.
    values: array [n_0, ..., n_(d-1), ...].
    method: 'linear' or 'nearest'.
    bounds_error: whether coordinates outside of the grid are errors.
    fill_value: value outside of the grid; None continues the function there.
Raises:
    ValueError for other methods, shapes that do not fit, and points in no order.

>>> f = jax.scipy.interpolate.RegularGridInterpolator((jnp.array([0.0, 1.0]),), jnp.array([0.0, 10.0]))
>>> f(jnp.array([[0.25]]))
Array([2.5], dtype=float32)
""",
}
