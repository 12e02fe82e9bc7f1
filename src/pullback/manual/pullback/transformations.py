"""Pages of transformations of functions."""

from pullback.manual._arguments import ALLOW_INT, ARGNUMS, BACKEND, DIFFERENTIATED, HAS_AUX, HOLOMORPHIC, REDUCE_AXES

PAGES = {
    "jit": f"""
Arguments:
    fun: function of arrays and of trees of them; None for a decorator.
    in_shardings, out_shardings: Shardings or PartitionSpecs, or tree prefixes of them; None: as they come.
    static_argnums, static_argnames: positions and names of arguments that are constants of the program.
    donate_argnums, donate_argnames: positions and names of arguments whose memory results may take.
    keep_unused: whether arguments that are not used stay parameters of the program.
    device: device on which it runs; None for that of the arguments.
{BACKEND}
    inline: whether calls within other programs are put in their place.
    compiler_options: dictionary of options, such as "autotune"; None for none.
Returns:
    Function like fun, with lower, trace, eval_shape and clear_cache.
Raises:
    TypeError for arguments and results that are no arrays; ValueError for static arguments that cannot be hashed.

>>> jax.jit(lambda x, n: x**n, static_argnums=1)(jnp.array([1, 2]), 3)
Array([1, 8], dtype=int32)
""",
    "grad": f"""
Arguments:
{DIFFERENTIATED}
{ARGNUMS}
{HAS_AUX}
{HOLOMORPHIC}
{ALLOW_INT}
{REDUCE_AXES}
Returns:
    Function of the arguments of fun.
Raises:
    TypeError if the result is no scalar, or an argument of integers.

>>> jax.grad(lambda x: x**3)(2.0)
Array(12., dtype=float32, weak_type=True)
>>> jax.grad(lambda p: p["a"] * p["b"])({{"a": 2.0, "b": 3.0}})["a"]
Array(3., dtype=float32, weak_type=True)
""",
    "value_and_grad": f"""
Arguments:
{DIFFERENTIATED}
{ARGNUMS}
{HAS_AUX}
{HOLOMORPHIC}
{ALLOW_INT}
{REDUCE_AXES}
Returns:
    Function of the arguments of fun; with has_aux its value is the pair.
Raises:
    TypeError if the result is no scalar.

>>> jax.value_and_grad(lambda x: x**3)(2.0)
(Array(8., dtype=float32, weak_type=True), Array(12., dtype=float32, weak_type=True))
""",
    "jacfwd": f"""
Arguments:
    fun: function of arrays.
{ARGNUMS}
{HAS_AUX}
{HOLOMORPHIC}
Returns:
    Function of the arguments of fun.
Raises:
    TypeError for integers.

>>> jax.jacfwd(lambda x: x**2)(jnp.array([1.0, 2.0]))
Array([[2., 0.],
       [0., 4.]], dtype=float32)
""",
    "jacrev jacobian": f"""
Arguments:
    fun: function of arrays.
{ARGNUMS}
{HAS_AUX}
{HOLOMORPHIC}
{ALLOW_INT}
Returns:
    Function of the arguments of fun.
Raises:
    TypeError for integers.

>>> jax.jacrev(lambda x: x**2)(jnp.array([1.0, 2.0]))
Array([[2., 0.],
       [0., 4.]], dtype=float32)
""",
    "hessian": f"""
Arguments:
    fun: function of arrays.
{ARGNUMS}
{HAS_AUX}
{HOLOMORPHIC}
Returns:
    Function of the arguments of fun.

>>> jax.hessian(lambda x: x[0] ** 2 * x[1])(jnp.array([1.0, 2.0]))
Array([[4., 2.],
       [2., 0.]], dtype=float32)
""",
    "jvp": f"""
Arguments:
    fun: function of arrays.
    primals: tuple or list of its arguments.
    tangents: tuple or list of as many tangents, of the same structure, shapes and dtypes.
{HAS_AUX}
Returns:
    Pair of the result and its tangent, or with has_aux a triple.
Raises:
    TypeError if tangents do not fit.

>>> jax.jvp(lambda x: x**2, (3.0,), (1.0,))
(Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
""",
    "vjp": f"""
Arguments:
    fun: function of arrays.
    primals: its arguments.
{HAS_AUX}
{REDUCE_AXES}
Returns:
    Pair of the result and a function of its cotangent, or with has_aux a triple.

>>> out, pullback = jax.vjp(lambda x, y: x * y, 2.0, 3.0)
>>> pullback(1.0)
(Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
""",
    "linearize": f"""
Arguments:
    fun: function of arrays.
    primals: its arguments.
{HAS_AUX}
Returns:
    Pair of the result and a linear function of tangents, or with has_aux a triple.

>>> out, f_jvp = jax.linearize(lambda x: x**2, 3.0)
>>> f_jvp(1.0)
Array(6., dtype=float32, weak_type=True)
""",
    "linear_transpose": f"""
Arguments:
    fun: linear function of arrays.
    primals: its arguments, or ShapeDtypeStructs of them.
{REDUCE_AXES}
Returns:
    Function of a cotangent that gives a tuple of cotangents.

>>> jax.linear_transpose(lambda x: 2 * x, 1.0)(3.0)
(Array(6., dtype=float32, weak_type=True),)
""",
    "vmap": """
Arguments:
    fun: function of arrays.
    in_axes: integer, None, or tuple of one for each argument, each a tree prefix of it.
    out_axes: integer, None, or tree prefix of them for the result.
    axis_name: name of the axis for collectives; None for none.
    axis_size: static integer: the size of the axis; None for that of the arguments.
    spmd_axis_name: name of the axis of a mesh along which the axis is cut; None for none.
    sum_match: whether results whose out_axes are None are summed instead of being refused.
Returns:
    Function of the arguments with a further axis.
Raises:
    ValueError if sizes differ.

>>> jax.vmap(lambda x, y: x + y, in_axes=(0, None))(jnp.array([1, 2]), 10)
Array([11, 12], dtype=int32)
""",
    "checkpoint remat": """
Arguments:
    fun: function of arrays; None for a decorator.
    prevent_cse: whether computing again is kept apart from computing first.
    policy: function that says what is kept, as in `checkpoint_policies`; None for nothing.
    static_argnums, static_argnames: positions and names of arguments that are passed on as they are.
    concrete: must not be given.
Returns:
    Function like fun.

>>> jax.grad(jax.checkpoint(lambda x: jnp.sin(x) ** 2))(0.0)
Array(0., dtype=float32, weak_type=True)
""",
    "custom_gradient": """
Arguments:
    fun: function that gives a pair of its result and a function of the result's cotangent.
Returns:
    Function that gives the result.

>>> @jax.custom_gradient
... def f(x):
...     return x**2, lambda g: (10 * g,)
>>> jax.grad(f)(3.0)
Array(10., dtype=float32, weak_type=True)
""",
    "closure_convert": """
Arguments:
    fun: function of arrays.
    example_args: arguments like those of later calls.
Returns:
    Pair of a function and a list of arrays.

>>> x = jnp.array(2.0)
>>> f, hoisted = jax.closure_convert(lambda y: x * y, 3.0)
>>> f(3.0, *hoisted)
Array(6., dtype=float32, weak_type=True)
""",
    "fwd_and_bwd": f"""
Arguments:
    fun: function of arrays.
{ARGNUMS}
{HAS_AUX}
    jitted: whether both functions are jitted.
Returns:
    Pair of functions.

>>> fwd, bwd = jax.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
>>> out, residuals = fwd(2.0, 3.0)
>>> bwd(residuals, 1.0)
(Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
""",
    "eval_shape": """
Arguments:
    fun: function of arrays.
    args: its arguments, or anything with shape and dtype.
    kwargs: arguments by name.
Returns:
    Tree of ShapeDtypeStruct.
Raises:
    TypeError for arguments that are no arrays.

>>> jax.eval_shape(lambda x: x @ x, jnp.ones((3, 3)))
ShapeDtypeStruct(shape=(3, 3), dtype=float32)
""",
    "make_jaxpr": """
Arguments:
    fun: function of arrays.
    static_argnums: positions of arguments that are constants.
    axis_env: list of (name, size) of mapped axes; None for none.
    return_shape: whether to give the tree of ShapeDtypeStruct of the result, too.
Returns:
    Function of the arguments that gives a ClosedJaxpr.

>>> jax.make_jaxpr(lambda x: x + 1)(jnp.int32(2))
{ lambda ; a:i32[]. let b:i32[] = add a 1:i32[] in (b,) }
""",
    "typeof": """
Arguments:
    x: array, tracer, number or Ref.
Returns:
    ShapedArray or another type.
Raises:
    TypeError for other things.

>>> jax.typeof(jnp.ones((2, 3)))
ShapedArray(float32[2,3])
""",
    "named_call": """
Arguments:
    fun: function.
    name: text; None for its own.
Returns:
    Function like fun.

>>> jax.named_call(lambda x: x + 1, name="add_one")(1)
2
""",
    "named_scope": """
Arguments:
    name: text.
Returns:
    Context manager.
Raises:
    TypeError if it is no text.

>>> with jax.named_scope("layer"):
...     y = jnp.ones(2) + 1
""",
}
