"""Pages of control flow, callbacks and solvers with derivatives of their own."""

from pullback.manual._arguments import AXIS

PAGES = {
    "cond": """
Arguments:
    pred: scalar; it may be traced.
    true_fun: function of the operands.
    false_fun: function of the operands, with a result of the same structure, shapes and dtypes.
    operands: pytrees of arrays.
    operand: the only operand by name; nothing by default.
Returns:
    The result of the function chosen.
Raises:
    TypeError if the results differ.

>>> jax.lax.cond(jnp.array(3) > 2, lambda x: x + 1, lambda x: x - 1, 10)
Array(11, dtype=int32, weak_type=True)
""",
    "switch": """
Arguments:
    index: scalar integer; it is moved into range.
    branches: list of functions with results of the same structure, shapes and dtypes.
    operands: pytrees of arrays.
    operand: the only operand by name; nothing by default.
Returns:
    The result of the function chosen.
Raises:
    ValueError without branches.

>>> jax.lax.switch(2, [lambda x: x, lambda x: 2 * x], 10)
Array(20, dtype=int32, weak_type=True)
""",
    "while_loop": """
Arguments:
    cond_fun: function of the value with a boolean scalar as result.
    body_fun: function of the value with a result of the same structure, shapes and dtypes.
    init_val: pytree of arrays.
Returns:
    Pytree as init_val.
Raises:
    TypeError if the value changes its type.

>>> jax.lax.while_loop(lambda x: x < 100, lambda x: 2 * x, 1)
Array(128, dtype=int32, weak_type=True)
""",
    "fori_loop": """
Arguments:
    lower, upper: scalar integers; they may be traced.
    body_fun: function of the number and the value with a result like the value.
    init_val: pytree of arrays.
    unroll: static integer, how many steps are laid out one after the other, or True for all; None for 1.
Returns:
    Pytree as init_val.

>>> jax.lax.fori_loop(0, 4, lambda i, total: total + i, 0)
Array(6, dtype=int32, weak_type=True)
""",
    "scan": """
Arguments:
    f: function (carry, x) -> (carry, y).
    init: pytree of arrays: the first carry.
    xs: pytree of arrays of one leading length; None for none.
    length: static integer: the number of steps; None for the leading length of xs.
    reverse: whether to begin at the end.
    unroll: static integer, how many steps are laid out one after the other, or True for all.
    _split_transpose: has no effect.
Returns:
    Pair of the last carry and the tree of all y, stacked along a leading axis.
Raises:
    TypeError if the carry changes its type; ValueError if lengths differ.

>>> jax.lax.scan(lambda total, x: (total + x, total), 0, jnp.array([1, 2, 3]))
(Array(6, dtype=int32), Array([0, 1, 3], dtype=int32, weak_type=True))
""",
    "map": """
Arguments:
    f: function of an element.
    xs: pytree of arrays of one leading length.
    batch_size: static integer: elements that are taken at once; None for one at a time.
Returns:
    Pytree of stacked results.

>>> jax.lax.map(lambda x: x**2, jnp.array([1, 2, 3]))
Array([1, 4, 9], dtype=int32)
""",
    "associative_scan": f"""
Arguments:
    fn: associative function (a, b) of trees like elems.
    elems: pytree of arrays.
    reverse: whether to begin at the end.
{AXIS}
Returns:
    Pytree as elems.

>>> jax.lax.associative_scan(jnp.maximum, jnp.array([1, 3, 2]))
Array([1, 3, 3], dtype=int32)
""",
    "custom_root": """
Arguments:
    f: function whose root is sought.
    initial_guess: pytree of arrays.
    solve: function (f, initial_guess) -> root.
    tangent_solve: function (g, y) -> x with g(x) = y, for a linear g.
    has_aux: whether solve gives a pair of the root and anything.
Returns:
    The root, or the pair.

>>> def sqrt(a):
...     newton = lambda f, x: jax.lax.fori_loop(0, 20, lambda i, x: x - f(x) / (2 * x), x)
...     return jax.lax.custom_root(lambda x: x**2 - a, 1.0, newton, lambda g, y: y / g(1.0))
>>> print(f"{sqrt(4.0):.3f} {jax.grad(sqrt)(4.0):.3f}")
2.000 0.250
""",
    "custom_linear_solve": """
Arguments:
    matvec: linear function.
    b: pytree of arrays.
    solve: function (matvec, b) -> x.
    transpose_solve: function (vecmat, b) -> x for the transpose; None unless reverse mode is wanted.
    symmetric: whether matvec is its own transpose.
    has_aux: whether solvers give a pair of x and anything.
Returns:
    x, or the pair.

>>> solve = lambda matvec, b: b / matvec(jnp.ones_like(b))
>>> jax.lax.custom_linear_solve(lambda x: 2 * x, jnp.array([2.0, 6.0]), solve, symmetric=True)
Array([1., 3.], dtype=float32)
""",
    "debug_callback": """
Arguments:
    callback: function of NumPy values or arrays.
    args: pytrees of arrays.
    ordered: whether calls keep their order.
    partitioned: whether it is called for each part of an array over a mesh.
    kwargs: pytrees of arrays by name.
Returns:
    None.
Raises:
    TypeError if it is no function.

>>> jax.lax.debug_callback(lambda x: print(int(x)), jnp.array(3))
3
""",
    "io_callback": """
Arguments:
    callback: function of arrays.
    result_shape_dtypes: pytree of things with shape and dtype, as jax.ShapeDtypeStruct.
    args: pytrees of arrays.
    sharding: sharding of a single device; None for the default one.
    ordered: whether calls keep their order.
    kwargs: pytrees of arrays by name.
Returns:
    Pytree of arrays.

>>> jax.lax.io_callback(lambda x: np.asarray(x) + 1, jax.ShapeDtypeStruct((), jnp.int32), jnp.array(3))
Array(4, dtype=int32)
""",
    "pure_callback": """
Arguments:
    callback: function of arrays without side effects.
    result_shape_dtypes: pytree of things with shape and dtype, as jax.ShapeDtypeStruct.
    args: pytrees of arrays.
    sharding: sharding of a single device; None for the default one.
    vmap_method: 'sequential', 'broadcast_all', 'expand_dims' or None, with which vmap raises.
    kwargs: pytrees of arrays by name.
Returns:
    Pytree of arrays.
Raises:
    ValueError for another vmap_method.

>>> jax.lax.pure_callback(lambda x: np.asarray(x) + 1, jax.ShapeDtypeStruct((), jnp.int32), jnp.array(3))
Array(4, dtype=int32)
""",
    "platform_dependent": """
Arguments:
    args: arguments of the function.
    default: function for all other platforms; None for none.
    per_platform: functions by the name of their platform, such as cpu.
Returns:
    The result of the function chosen.
Raises:
    NotImplementedError if there is none.

>>> jax.lax.platform_dependent(jnp.array(3), cpu=lambda x: x + 1, default=lambda x: x)
Array(4, dtype=int32, weak_type=True)
""",
    "composite": """
Arguments:
    decomposition: function.
    name: text.
    version: integer.
Returns:
    Function as the decomposition.

>>> jax.lax.composite(lambda x: x + 1, name="my.add_one")(jnp.array(3))
Array(4, dtype=int32, weak_type=True)
""",
    "dtype": """
Arguments:
    x: array, number or dtype.
Returns:
    numpy.dtype.
Raises:
    ValueError for None.

>>> jax.lax.dtype(jnp.array([1.0]))
dtype('float32')
""",
    "create_token": """
Arguments:
    _: anything; it is not used.
Returns:
    Token.
Raises:
    Nothing.

>>> token = jax.lax.create_token()
""",
    "after_all": """
Arguments:
    operands: tokens.
Returns:
    Token.
Raises:
    Nothing.

>>> token = jax.lax.after_all(jax.lax.create_token())
""",
    "Tolerance": """
Arguments:
    atol, rtol: numbers: absolute and relative error.
    ulps: integer: error in units of the last place.

>>> jax.lax.exp(0.0, accuracy=jax.lax.Tolerance(rtol=1e-3))
Array(1., dtype=float32, weak_type=True)
""",
}
