"""What Python, NumPy and text may ask of a traced value: the outcome in every kind of trace, as a table.

A number that leaves a trace as a Python float is a constant to everything after, and loses its derivative in silence.
So it never leaves; only decisions (bool, int, an index) may be made by values that are known.
"""

import cmath
import copy
import decimal
import fractions
import math
import operator

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax

VALUE = np.array(1.5, np.float32)
NAMES = {"np": np, "jnp": jnp, "jax": jax, "copy": copy, "math": math, "cmath": cmath, "operator": operator}
NAMES |= {"Decimal": decimal.Decimal, "Fraction": fractions.Fraction}

# (what is asked of a scalar x of float32, outcome where its value is known, outcome where it is not):
# the name of a type, with ! of an exception.
OUTCOMES = [
    ("float(x)", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("complex(x)", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("int(x)", "int", "!ConcretizationTypeError"),
    ("bool(x)", "bool", "!TracerBoolConversionError"),
    ("round(x)", "array", "tracer"),
    ("round(x, 1)", "array", "tracer"),
    ("math.trunc(x)", "!TypeError", "!TypeError"),
    ("math.floor(x)", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("math.ceil(x)", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("math.sin(x)", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("math.exp(x)", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("math.isnan(x)", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("math.pow(x,2)", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("math.fsum([x])", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("math.gcd(x, 2)", "!TypeError", "!TypeError"),
    ("math.isclose(x, 1.5)", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("math.factorial(x)", "!TypeError", "!TypeError"),
    ("math.prod([x])", "tracer", "tracer"),
    ("math.comb(x, 1)", "!TypeError", "!TypeError"),
    ("math.ldexp(x, 1)", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("cmath.sin(x)", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("x.tolist()", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("x.item()", "float", "!ConcretizationTypeError"),
    ("x.item(0)", "float", "!ConcretizationTypeError"),
    ("x.tobytes()", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("operator.index(x)", "!TypeError", "!TypeError"),
    ("x.__index__()", "!TypeError", "!TypeError"),
    ("[1,2,3][x]", "!TypeError", "!TypeError"),
    ("list(range(x))", "!TypeError", "!TypeError"),
    ("[1]*x", "!TypeError", "!TypeError"),
    ("hex(x)", "!TypeError", "!TypeError"),
    ("bin(x)", "!TypeError", "!TypeError"),
    ("oct(x)", "!TypeError", "!TypeError"),
    ("chr(x)", "!TypeError", "!TypeError"),
    ("[1,2,3][:x]", "!TypeError", "!TypeError"),
    ('f"{x:.2f}"', "!TypeError", "!TypeError"),
    ('"%f" % x', "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ('"%d" % x', "str", "!TypeError"),
    ("format(x, '.2f')", "!TypeError", "!TypeError"),
    ('f"{x:>20}"', "!TypeError", "!TypeError"),
    ('"{:.3e}".format(x)', "!TypeError", "!TypeError"),
    ('"%g" % x', "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ('"%x" % x', "!TypeError", "!TypeError"),
    ('"%c" % x', "!TypeError", "!TypeError"),
    ('"%*d" % (x, 3)', "!TypeError", "!TypeError"),
    ("np.asarray(x)", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("np.array(x)", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("np.sin(x)", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("np.add(x, 1)", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("np.add(np.ones(()), x)", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("np.ones(()) + x", "tracer", "tracer"),
    ("np.float32(2) + x", "tracer", "tracer"),
    ("np.float32(x)", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("np.float64(x)", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("np.int32(x)", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("np.sum(x)", "tracer", "tracer"),
    ("np.array([x])", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("np.stack([x, x])", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("np.zeros(3).__setitem__(0, x)", "!ValueError", "!ValueError"),
    ("np.arange(3)[x]", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("np.mean(x)", "tracer", "tracer"),
    ("np.where(x, 1, 2)", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("np.copy(x)", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("np.allclose(x, x)", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("np.broadcast_to(x, (2,))", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("np.reshape(x, (-1,)).shape", "tuple", "tuple"),
    ("np.round(x)", "array", "tracer"),
    ("np.isnan(x)", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("np.max(x)", "tracer", "tracer"),
    ("np.dot(x, x)", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("len(x)", "!TypeError", "!TypeError"),
    ("list(x)", "!TypeError", "!TypeError"),
    ("next(iter(x))", "!TypeError", "!TypeError"),
    ("list(reversed(x))", "!IndexError", "!IndexError"),
    ("1. in x", "!ValueError", "!ValueError"),
    ("(lambda a, b, c: a)(*x)", "!TypeError", "!TypeError"),
    ("max(x)", "!TypeError", "!TypeError"),
    ("sum(x)", "!TypeError", "!TypeError"),
    ("sorted(x)", "!TypeError", "!TypeError"),
    ("list(enumerate(x))", "!TypeError", "!TypeError"),
    ("list(zip(x, [1,2]))", "!TypeError", "!TypeError"),
    ("any(x)", "!TypeError", "!TypeError"),
    ("all(x)", "!TypeError", "!TypeError"),
    ("1 if x > 0 else 2", "int", "!TracerBoolConversionError"),
    ("1 if x else 2", "int", "!TracerBoolConversionError"),
    ("not x", "bool", "!TracerBoolConversionError"),
    ("x and x", "tracer", "!TracerBoolConversionError"),
    ("x or 1", "tracer", "!TracerBoolConversionError"),
    ("[1 for _ in iter(lambda: bool(x < 0), False)]", "list", "!TracerBoolConversionError"),
    ("(_ for _ in ()).throw(AssertionError) if x == 77 else 1", "int", "!TracerBoolConversionError"),
    ("-10 < x < 10", "array", "!TracerBoolConversionError"),
    ("x % 'a'", "!TypeError", "!TypeError"),
    ("x in ['a', 3.]", "bool", "!TracerBoolConversionError"),
    ("[3., x].index(x)", "int", "!TracerBoolConversionError"),
    ("x is x", "bool", "bool"),
    ("hash(x)", "!TypeError", "!TypeError"),
    ("{x}", "!TypeError", "!TypeError"),
    ("{x: 1}", "!TypeError", "!TypeError"),
    ("x.__setitem__(0, 1)", "!TypeError", "!TypeError"),
    ("copy.copy(x)", "tracer", "tracer"),
    ("copy.deepcopy(x)", "tracer", "tracer"),
    ("x.block_until_ready()", "!AttributeError", "!AttributeError"),
    ("jax.block_until_ready(x)", "tracer", "tracer"),
    ("x.sharding and 1", "!AttributeError", "!AttributeError"),
    ("x.devices() and 1", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("x.device and 1", "!AttributeError", "!AttributeError"),
    ("x.on_device_size_in_bytes()", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("x.is_deleted()", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("x.delete()", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("x.committed", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("x.addressable_data(0)", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("x.addressable_shards", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("x.unsafe_buffer_pointer()", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("x.__dlpack__()", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("x.is_fully_addressable", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("x.is_fully_replicated", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("x.copy_to_host_async()", "!AttributeError", "!AttributeError"),
    ("x.global_shards", "!ConcretizationTypeError", "!ConcretizationTypeError"),
    ("x.__array__()", "!TracerArrayConversionError", "!TracerArrayConversionError"),
    ("divmod(x, 2)", "tuple", "tuple"),
    ("pow(x, 2, 3)", "!TypeError", "!TypeError"),
    ("x[x > 0]", "tracer", "!NonConcreteBooleanIndexError"),
    ("x[0]", "!IndexError", "!IndexError"),
    ("x['a']", "!TypeError", "!TypeError"),
    ("x[1.5]", "!TypeError", "!TypeError"),
    ("x.flat", "!AbsentAttributeError", "!AbsentAttributeError"),
    ("np.linalg.norm(x)", "!TracerArrayConversionError", "!TracerArrayConversionError"),
]

KNOWN = {
    "grad": lambda f: jax.grad(f)(VALUE),
    "value_and_grad": lambda f: jax.value_and_grad(f)(VALUE),
    "jvp": lambda f: jax.jvp(f, (VALUE,), (VALUE,)),
    "vjp": lambda f: jax.vjp(f, VALUE),
    "linearize": lambda f: jax.linearize(f, VALUE),
    "jacrev": lambda f: jax.jacrev(f)(VALUE),
    "jacfwd of a closure": lambda f: jax.jvp(lambda x: jax.jvp(lambda y: f(x) + y, (x,), (x,))[0], (VALUE,), (VALUE,)),
}
UNKNOWN = {
    "jit": lambda f: jax.jit(f)(VALUE),
    "vmap": lambda f: jax.vmap(f)(np.stack([VALUE, VALUE])),
    "make_jaxpr": lambda f: jax.make_jaxpr(f)(VALUE),
    "eval_shape": lambda f: jax.eval_shape(f, VALUE),
    "checkpoint": lambda f: jax.checkpoint(f)(VALUE),
    "scan": lambda f: lax.scan(lambda c, x: (c, f(x)), 0.0, np.stack([VALUE, VALUE])),
    "cond": lambda f: lax.cond(True, f, lambda x: jnp.float32(x), VALUE),
    "while": lambda f: lax.while_loop(lambda c: f(c) > 1e9, lambda c: c, VALUE),
    "map": lambda f: lax.map(f, np.stack([VALUE, VALUE])),
    "vmap of grad": lambda f: jax.vmap(jax.grad(f))(np.stack([VALUE, VALUE])),
    "jit of grad": lambda f: jax.jit(jax.grad(f))(VALUE),
    "grad of jit": lambda f: jax.grad(jax.jit(f))(VALUE),
    "grad of checkpoint": lambda f: jax.grad(jax.checkpoint(f))(VALUE),
    "tangent of custom_jvp": lambda f: jax.grad(_custom_jvp(f))(VALUE),
}


def _custom_jvp(f):
    g = jax.custom_jvp(lambda x: x * 1.0)
    g.defjvp(lambda primals, tangents: (primals[0] * 1.0, tangents[0] + 0 * f(tangents[0])))
    return g


def _outcome(ask, x):
    try:
        result = ask(x)
    except Exception as e:
        return f"!{type(e).__name__}"
    if isinstance(result, jax.core.Tracer):
        return "tracer"
    return "array" if isinstance(result, jax.Array) else type(result).__name__


@pytest.mark.parametrize(
    "trace, column",
    [(t, 1) for t in KNOWN.values()] + [(t, 2) for t in UNKNOWN.values()],
    ids=[*KNOWN, *UNKNOWN],
)
def test_what_a_traced_scalar_answers(trace, column):
    found = {}

    def f(x):
        for text, *_ in OUTCOMES:
            found[text] = _outcome(eval(f"lambda x: {text}", NAMES), x)
        return x * 1.0

    trace(f)
    wrong = {row[0]: found[row[0]] for row in OUTCOMES if found[row[0]] != row[column]}
    assert found and not wrong


@pytest.mark.parametrize("text", ["float(x)", "math.sin(x)", "x.tolist()", "complex(x)", "f'{x:.2f}'", "'%f' % x"])
def test_the_message_names_the_value_and_a_way_out(text):
    with pytest.raises(TypeError, match=r"f32\[\].*<string>:1") as caught:  # the line given to eval() is the user's
        jax.grad(lambda x: eval(text, NAMES | {"x": x}) and x)(1.5)
    assert any(way in str(caught.value) for way in ("astype", "return the array", "jax.debug.print"))


def test_operands_that_operators_refuse():
    for wrap in (
        lambda f: f(jnp.arange(3.0)),
        lambda f: jax.jit(f)(jnp.arange(3.0)),
        lambda f: jax.vmap(f)(jnp.arange(3.0)),
    ):
        for other in ({}, {1}, [1.0], (1.0,), np.array(["a"]), np.array([None]), np.array(["2020"], "M8[Y]")):
            for operate in (operator.eq, operator.lt, operator.add, operator.pow):
                with pytest.raises(TypeError):
                    wrap(lambda v: operate(v, other))  # noqa: B023
    with pytest.raises(ValueError, match="scalar"):
        assert 1.0 in jnp.float32(1.5)
    assert 2.0 in jnp.arange(3.0) and 7.0 not in jnp.arange(3.0)
