"""Pages of classes, and of functions with derivatives of their own."""

FUN = """    fun: function of trees of arrays.
    nondiff_argnums, nondiff_argnames: positions and names of arguments that rules get as they are."""

PAGES = {
    "custom_jvp": f"""
Arguments:
{FUN}
Raises:
    TypeError when it is called, for arguments that are no arrays; AttributeError when it is differentiated without
    a rule; TypeError for rules whose results have other types than fun's.

>>> @jax.custom_jvp
... def log1pexp(x):
...     return jnp.log(1.0 + jnp.exp(x))
>>> @log1pexp.defjvp
... def log1pexp_jvp(primals, tangents):
...     (x,), (x_dot,) = primals, tangents
...     return log1pexp(x), (1.0 - 1.0 / (1.0 + jnp.exp(x))) * x_dot
>>> jax.grad(log1pexp)(100.0)
Array(1., dtype=float32, weak_type=True)
""",
    "custom_vjp": f"""
Arguments:
{FUN}
Raises:
    TypeError when it is called, for arguments that are no arrays; AttributeError when it is differentiated without
    rules; TypeError for rules whose cotangents do not fit the arguments, and in forward mode.

>>> @jax.custom_vjp
... def clipped(x):
...     return x
>>> clipped.defvjp(lambda x: (x, None), lambda residuals, x_bar: (jnp.clip(x_bar, -1.0, 1.0),))
>>> jax.grad(lambda x: clipped(10.0 * x))(1.0)
Array(10., dtype=float32, weak_type=True)
""",
    "Array": """
Arrays are made by `jax.numpy`'s functions; the class is for `isinstance` and for types of arguments.

>>> isinstance(jnp.ones(2), jax.Array), isinstance(np.ones(2), jax.Array)
(True, False)
""",
    "Device": """
>>> device = jax.devices()[0]
>>> device.platform, device.id
('cpu', 0)
""",
    "ShapeDtypeStruct": """
Arguments:
    shape: tuple of integers.
    dtype: dtype.
    sharding: sharding or Format; None leaves it open.
    weak_type: whether the dtype gives way to others, as that of numbers of Python.
    manual_axis_type: a ManualAxisType, the mesh axes along which it varies in shard_map; None for none.
    is_ref: whether it stands for a Ref.
Raises:
    TypeError without a dtype.

>>> jax.eval_shape(jnp.dot, jax.ShapeDtypeStruct((2, 3), jnp.float32), jax.ShapeDtypeStruct((3,), jnp.float32))
ShapeDtypeStruct(shape=(2,), dtype=float32)
""",
    "checkpoint_policies": """
>>> f = jax.checkpoint(lambda x: jnp.sin(jnp.cos(x)), policy=jax.checkpoint_policies.dots_saveable)
>>> jax.grad(f)(0.0)
Array(-0., dtype=float32, weak_type=True)
""",
    "set_num_threads": """
Arguments:
    n: integer from 1 to 1024.
Returns:
    Context manager, which need not be entered.
Raises:
    TypeError for what is no integer; ValueError for other integers.

>>> with jax.set_num_threads(1):
...     print(jax.get_num_threads())
1
""",
}
