"""Pages of `pullback.core`: programs, their types, and the values that stand in them."""

PAGES = {
    "ClosedJaxpr": """
Fields:
    jaxpr: the open program.
    consts: the values of its constvars.
    in_avals, out_avals: the types of its arguments and results.

>>> closed = jax.make_jaxpr(lambda x: x * 2.0)(1.0)
>>> closed.in_avals, len(closed.jaxpr.eqns), closed.consts
([ShapedArray(float32[], weak_type=True)], 1, [])
>>> jax.core.jaxpr_as_fun(closed)(jnp.float32(3.0))
[Array(6., dtype=float32)]
""",
    "DebugInfo": """
>>> def half(x):
...     return x / 2.0
>>> jax.make_jaxpr(half)(1.0).jaxpr.debug_info.func_name
'half'
""",
    "DropVar": """
>>> jax.core.DropVar(jax.core.get_aval(1.0))
_
""",
    "JaxprEqn": """
Fields:
    primitive: the operation.
    invars: its operands, a Var or Literal each.
    outvars: the variables that take its results.
    params: its parameters by name.

>>> equation = jax.make_jaxpr(jnp.sum)(jnp.ones(3)).jaxpr.eqns[0]
>>> equation.primitive.name, equation.params["axes"], equation.outvars[0].aval
('reduce_sum', (0,), ShapedArray(float32[]))
""",
    "Literal": """
>>> equation = jax.make_jaxpr(lambda x: x * 2.0)(1.0).jaxpr.eqns[0]
>>> [float(atom.val) for atom in equation.invars if isinstance(atom, jax.core.Literal)]
[2.0]
""",
    "Primitive": """
One of your own takes its rules by `def_impl`, `def_abstract_eval`, and `interpreters.ad`, `interpreters.batching`.

>>> double_p = jax.core.Primitive("double")
>>> _ = double_p.def_impl(lambda x: 2 * x)
>>> double_p.bind(3.0)
6.0
""",
    "ShapedArray": """
Arguments:
    shape: tuple of integers.
    dtype: dtype.
    weak_type: whether the dtype gives way to others, as that of numbers of Python.
    sharding: how arrays of the type lie over a mesh; None leaves it open.
    memory_space: the kind of memory that they are in, a `MemorySpace`; None leaves it open.
    _: set to make no new type; for unpickling.

>>> jax.core.ShapedArray((2, 3), jnp.float32)
ShapedArray(float32[2,3])
>>> jax.core.ShapedArray((2, 3), jnp.float32) is jax.core.get_aval(jnp.ones((2, 3)))
True
""",
    "Tracer": """
What `jit`, `grad` and `vmap` call a function with: it has shape, dtype, operators and methods of an array, and no
numbers.

>>> kinds = []
>>> def f(x):
...     kinds.append((isinstance(x, jax.core.Tracer), isinstance(x, jax.Array), x.shape))
...     return x + 1
>>> _ = jax.jit(f)(jnp.ones(3))
>>> kinds
[(True, True, (3,))]
""",
    "Var": """
>>> jaxpr = jax.make_jaxpr(lambda x: x + 1.0)(1.0).jaxpr
>>> isinstance(jaxpr.invars[0], jax.core.Var), jaxpr.invars[0].aval.dtype
(True, dtype('float32'))
""",
    "eval_jaxpr": """
Arguments:
    jaxpr: an open Jaxpr.
    consts: the values of its constvars, in order.
    *args: the values of its arguments.
    propagate_source_info: whether errors and programs made from it name the lines that its equations come from.
Returns:
    A list of its results.
Raises:
    TypeError or ValueError where there are not as many arguments as the program takes.

>>> closed = jax.make_jaxpr(lambda x: x * 2.0)(1.0)
>>> jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 3.0)
[Array(6., dtype=float32, weak_type=True)]
""",
    "get_aval": """
Arguments:
    x: array, tracer, array of NumPy or number.
Returns:
    Its type, a ShapedArray.
Raises:
    TypeError for anything else.

>>> jax.core.get_aval(jnp.ones((2, 3)))
ShapedArray(float32[2,3])
""",
}
