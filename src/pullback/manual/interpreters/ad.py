"""Pages of `pullback.interpreters.ad`: derivative rules of primitives of one's own."""

HALVES = """>>> half_p = jax.core.Primitive("half")
>>> _ = half_p.def_impl(lambda x: x / 2)
>>> _ = half_p.def_abstract_eval(lambda x: x)"""
PRIMITIVE = """    primitive: Primitive."""
NOTHING = """Returns:
    None.
Raises:
    Nothing."""

PAGES = {
    "JVPTrace": """
>>> from pullback.interpreters import ad
>>> traces = []
>>> _ = jax.jvp(lambda x: traces.append(x._trace) or x, (1.0,), (1.0,))
>>> isinstance(traces[0], ad.JVPTrace)
True
""",
    "JVPTracer": """
>>> from pullback.interpreters import ad
>>> seen = []
>>> _ = jax.jvp(lambda x: seen.append((x.primal, x.tangent, type(x) is ad.JVPTracer)) or x, (2.0,), (1.0,))
>>> seen
[(2.0, 1.0, True)]
""",
    "add_tangents add_jaxvals": """
Arguments:
    x, y: arrays or Zero.
Returns:
    Their sum.
Raises:
    TypeError for arrays of different shapes.

>>> from pullback.interpreters import ad
>>> ad.add_tangents(ad.Zero(jax.core.get_aval(1.0)), jnp.float32(2.0))
Array(2., dtype=float32)
""",
    "defbilinear": f"""
Arguments:
{PRIMITIVE}
    lhs_rule, rhs_rule: functions as said.
{NOTHING}

>>> from pullback.interpreters import ad
>>> times_p = jax.core.Primitive("times")
>>> _ = times_p.def_impl(lambda x, y: x * y)
>>> _ = times_p.def_abstract_eval(lambda x, y: x)
>>> ad.defbilinear(times_p, lambda out, x, y: times_p.bind(out, y), lambda out, x, y: times_p.bind(x, out))
>>> jax.jvp(lambda x: times_p.bind(x, 3.0), (2.0,), (1.0,))[1]
3.0
""",
    "defjvp": f"""
Arguments:
{PRIMITIVE}
    *rules: functions as said; None for an argument without a derivative.
{NOTHING}

>>> from pullback.interpreters import ad
{HALVES}
>>> ad.defjvp(half_p, lambda x_dot, x: half_p.bind(x_dot))
>>> jax.jvp(half_p.bind, (3.0,), (1.0,))[1]
0.5
""",
    "defjvp2": f"""
Arguments:
{PRIMITIVE}
    *rules: functions as said; None for an argument without a derivative.
{NOTHING}

>>> from pullback.interpreters import ad
{HALVES}
>>> ad.defjvp2(half_p, lambda x_dot, out, x: half_p.bind(x_dot))
>>> jax.jvp(half_p.bind, (3.0,), (1.0,))[1]
0.5
""",
    "defjvp_zero": f"""
Arguments:
{PRIMITIVE}
{NOTHING}

>>> from pullback.interpreters import ad
{HALVES}
>>> ad.defjvp_zero(half_p)
>>> jax.jvp(half_p.bind, (3.0,), (1.0,))[1]
Array(0., dtype=float32, weak_type=True)
""",
    "deflinear": f"""
Arguments:
{PRIMITIVE}
    transpose_rule: function as said.
{NOTHING}

>>> from pullback.interpreters import ad
{HALVES}
>>> ad.deflinear(half_p, lambda x_bar: [half_p.bind(x_bar)])
>>> jax.grad(half_p.bind)(3.0)
Array(0.5, dtype=float32, weak_type=True)
""",
    "deflinear2": f"""
Arguments:
{PRIMITIVE}
    transpose_rule: function as said.
{NOTHING}

>>> from pullback.interpreters import ad
{HALVES}
>>> ad.deflinear2(half_p, lambda x_bar, x: [half_p.bind(x_bar)])
>>> jax.grad(half_p.bind)(3.0)
Array(0.5, dtype=float32, weak_type=True)
""",
    "instantiate_zeros": """
Arguments:
    tangent: array or Zero.
Returns:
    An array.
Raises:
    Nothing.

>>> from pullback.interpreters import ad
>>> ad.instantiate_zeros(ad.Zero(jax.core.get_aval(jnp.ones(2))))
Array([0., 0.], dtype=float32)
""",
    "is_undefined_primal": """
Arguments:
    x: anything.
Returns:
    A bool.
Raises:
    Nothing.

>>> from pullback.interpreters import ad
>>> ad.is_undefined_primal(ad.UndefinedPrimal(jax.core.get_aval(1.0)))
True
""",
    "zeros_like_aval": """
Arguments:
    aval: ShapedArray.
Returns:
    An array.
Raises:
    Nothing.

>>> from pullback.interpreters import ad
>>> ad.zeros_like_aval(jax.core.get_aval(jnp.ones(2)))
Array([0., 0.], dtype=float32)
""",
    "UndefinedPrimal": """
>>> from pullback.interpreters import ad
>>> ad.UndefinedPrimal(jax.core.get_aval(1.0)).aval.dtype
dtype('float32')
""",
    "Zero": """
>>> from pullback.interpreters import ad
>>> ad.Zero(jax.core.get_aval(jnp.ones(2))).aval
ShapedArray(float32[2])
""",
}
