"""Pages of `pullback.extend.core`: what libraries ask of programs and of the trace they run in."""

NOTHING = """Returns:
    A bool."""
PROGRAM = "a ClosedJaxpr"

PAGES = {
    "check_jaxpr": """
Arguments:
    jaxpr: a Jaxpr.
    made_by: the name of the pass that made it, for the message.
    known: a dict that several calls share, for what earlier ones have found right; by default a new one.
Returns:
    None.
Raises:
    JaxprTypeError for a program in which a variable is unbound, bound twice or of another type than its equation says.

>>> jax.extend.core.check_jaxpr(jax.make_jaxpr(jnp.sin)(1.0).jaxpr)
""",
    "concrete_or_error": """
Arguments:
    force: function of the value, such as int; None leaves it as it is.
    val: value.
    context: sentence for the message.
Returns:
    force(val).
Raises:
    ConcretizationTypeError where val is traced.

>>> jax.extend.core.concrete_or_error(int, jnp.int32(3))
3
""",
    "find_top_trace": """
Arguments:
    _: anything.
Returns:
    The interpreter in force.
Raises:
    Nothing.

>>> jax.extend.core.find_top_trace(()) is jax.extend.core.find_top_trace(())
True
""",
    "get_opaque_trace_state": """
Arguments:
    convention: anything; not read.
Returns:
    An object that is equal to those taken in the same trace.
Raises:
    Nothing.

>>> before = jax.extend.core.get_opaque_trace_state()
>>> before == jax.extend.core.get_opaque_trace_state()
True
>>> jax.jit(lambda x: x if before == jax.extend.core.get_opaque_trace_state() else -x)(1.0)
Array(-1., dtype=float32, weak_type=True)
""",
    "jaxpr_as_fun": """
Arguments:
    closed: a ClosedJaxpr.
    name: the function's name; None for one of its own.
Returns:
    A function of arrays that gives a list of arrays.
Raises:
    Nothing; the function TypeError or ValueError for arguments that the program does not take.

>>> jax.extend.core.jaxpr_as_fun(jax.make_jaxpr(lambda x: x * 2.0)(1.0))(3.0)
[Array(6., dtype=float32, weak_type=True)]
""",
    "jaxprs_in_params": """
Arguments:
    params: the parameters of an equation.
Returns:
    A list of the programs among them.
Raises:
    Nothing.

>>> equation = jax.make_jaxpr(jax.jit(jnp.sin))(1.0).jaxpr.eqns[0]
>>> [[e.primitive.name for e in jaxpr.eqns] for jaxpr in jax.extend.core.jaxprs_in_params(equation.params)]
[['sin']]
""",
    "mapped_aval": """
Arguments:
    size: number of elements of the axis.
    axis: integer, or None for a type that stays as it is.
    aval: ShapedArray.
Returns:
    The ShapedArray of one element of a batch.
Raises:
    ValueError if the axis has another size.

>>> jax.extend.core.mapped_aval(5, 0, jax.core.ShapedArray((5, 3), jnp.float32))
ShapedArray(float32[3])
""",
    "new_jaxpr_eqn": """
Arguments:
    invars: operands, a list of Var and Literal.
    outvars: a list of Var.
    primitive: Primitive.
    params: dict of its parameters.
    effects: set of Effect.
    source_info: where it comes from; None where that is not known.
    ctx: what is set around it.
Returns:
    A JaxprEqn.
Raises:
    Nothing.

>>> equation = jax.make_jaxpr(jnp.sin)(1.0).jaxpr.eqns[0]
>>> made = jax.extend.core.new_jaxpr_eqn(equation.invars, equation.outvars, lax.cos_p, {}, frozenset())
>>> made.primitive.name
'cos'
""",
    "nonempty_axis_env_DO_NOT_USE": f"""
{NOTHING}

>>> jax.extend.core.nonempty_axis_env_DO_NOT_USE()
False
""",
    "primal_dtype_to_tangent_dtype": """
Arguments:
    primal_dtype: dtype.
Returns:
    A dtype of NumPy.
Raises:
    TypeError for what is no dtype.

>>> jax.extend.core.primal_dtype_to_tangent_dtype(jnp.float16)
dtype('float16')
""",
    "set_current_trace": """
Arguments:
    trace: an interpreter, as `take_current_trace` gives it.
    check_leaks: not read.

>>> with jax.extend.core.take_current_trace() as trace, jax.extend.core.set_current_trace(trace):
...     x = jnp.sin(0.0)
>>> x
Array(0., dtype=float32, weak_type=True)
""",
    "subjaxprs": """
Arguments:
    jaxpr: a Jaxpr.
Returns:
    An iterator over the programs among the parameters of its equations; not over those within these.
Raises:
    Nothing.

>>> jaxpr = jax.make_jaxpr(jax.jit(jnp.sin))(1.0).jaxpr
>>> [[e.primitive.name for e in inner.eqns] for inner in jax.extend.core.subjaxprs(jaxpr)]
[['sin']]
""",
    "take_current_trace": """
>>> def size(x):
...     with jax.extend.core.take_current_trace():
...         count = int(jnp.ones(3).sum())
...     return x * count
>>> jax.jit(size)(2.0)
Array(6., dtype=float32, weak_type=True)
""",
    "unmapped_aval": """
Arguments:
    size: number of elements of the new axis.
    axis: its position, or None for a type that stays as it is.
    aval: ShapedArray of one element.
    explicit_mesh_axis: None.
Returns:
    The ShapedArray of a batch.
Raises:
    NotImplementedError for an explicit_mesh_axis.

>>> jax.extend.core.unmapped_aval(5, 0, jax.core.ShapedArray((3,), jnp.float32))
ShapedArray(float32[5,3])
""",
    "unsafe_am_i_under_a_jit_DO_NOT_USE": f"""
{NOTHING}

>>> jax.jit(lambda x: x + jax.extend.core.unsafe_am_i_under_a_jit_DO_NOT_USE())(1)
Array(2, dtype=int32, weak_type=True)
""",
    "unsafe_am_i_under_a_vmap_DO_NOT_USE": f"""
{NOTHING}

>>> jax.vmap(lambda x: x + jax.extend.core.unsafe_am_i_under_a_vmap_DO_NOT_USE())(jnp.arange(2))
Array([1, 2], dtype=int32)
""",
    "unsafe_get_axis_names_DO_NOT_USE": """
Returns:
    A list of names.

>>> names = []
>>> _ = jax.vmap(lambda x: names.extend(jax.extend.core.unsafe_get_axis_names_DO_NOT_USE()) or x, axis_name="i")(
...     jnp.arange(2)
... )
>>> names
['i']
""",
    "valid_jaxtype": """
Arguments:
    x: anything.
Returns:
    A bool.
Raises:
    Nothing.

>>> jax.extend.core.valid_jaxtype(1.0), jax.extend.core.valid_jaxtype("a")
(True, False)
""",
}
