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
    "ravel_first_arg": """
Arguments:
    f: function of a tree of arrays, and of others, that gives a tree of arrays.
    unravel: function from a vector to the tree that f takes first, as `ravel_pytree` gives it.
    debug_info: anything.
Returns:
    Function of a vector [n] and f's other arguments, which gives a vector.
Raises:
    Nothing itself; its result ValueError for a vector of another length.

>>> flat, unravel = jax.flatten_util.ravel_pytree({"a": jnp.ones(()), "b": jnp.ones(()) + 1})
>>> turned = jax.experimental.ode.ravel_first_arg(lambda x, t: {"a": x["b"] * t, "b": x["a"]}, unravel, None)
>>> turned(flat, 3.0)
Array([6., 1.], dtype=float32)
""",
}
