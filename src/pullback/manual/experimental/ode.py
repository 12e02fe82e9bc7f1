"""Pages of differential equations."""

PAGES = {
    "odeint": """
Arguments:
    func: function (y, t, *args) that gives dy/dt, a tree like y.
    y0: array or tree of floats or complex numbers: y at t[0].
    t: float[n], increasing or decreasing: the times.
    args: arrays or trees that func gets.
    rtol, atol: error that a step may make, relative to y and absolute.
    mxstep: most steps between two times, after which the last state counts.
    hmax: largest step.
Returns:
    Tree like y0 of arrays [n, ...].
Raises:
    TypeError for y0 or t that are not floating point, and for args that are no arrays; ValueError for t of another
    number of dimensions.

>>> y = jax.experimental.ode.odeint(lambda y, t, k: -k * y, 1.0, jnp.array([0.0, 1.0]), 2.0)
>>> jnp.allclose(y, jnp.exp(jnp.array([0.0, -2.0])))
Array(True, dtype=bool)
""",
}
