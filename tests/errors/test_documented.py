"""The errors that introductions to JAX run into on purpose: each names the function, the argument, what came and what
is accepted, the user's own line, and shows the fix."""

from __future__ import annotations

import inspect
from functools import partial

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.util import errors

X = np.arange(6, dtype=np.float32).reshape(2, 3)
HERE = "test_documented.py:"
AT = "JAX arrays are immutable: items cannot be assigned. x = x.at[idx].set(y) gives a new array"


class Model:
    def __init__(self, w):
        self.w = w

    def __repr__(self):
        return "Model(w)"


# Setting items.


def sets_item(x):
    x[0, 0] = 2
    return x


def sets_slice(x):
    x[1:, ::2] = jnp.zeros((1, 2))
    return x


def adds(x):
    x[0] += 3 * x[1]
    return x


def multiplies(x):
    x[..., 1] *= 2
    return x


def sets_on_one_line(x): x[0, -1] = 1.5; return x  # fmt: skip  # noqa: E702


# Python's control flow on values.


def branches(x):
    if x > 0:
        return x
    return -x


def loops(x):
    while x < 10:
        x = x * 2
    return x


def asserts(x):
    assert x > 0
    return x


def both(x):
    return x > 0 and x < 3


def scales_and_branches(x, params):
    scale = params["w"] * 2
    return x if scale > 0 else -x


def masked(y):
    return y[y % 2 == 0]


def leak(transform, *args):
    kept = []

    def keeps(x):
        y = x * 2
        kept.append(y)
        return y

    transform(keeps)(*args)
    return kept[0] + 1


def leak_from_attribute():
    model = Model(0.0)

    def step(x):
        model.w = model.w + x
        return model.w

    jax.jit(step)(1.0)
    return jnp.sin(model.w)


class Method:
    w = 2.0

    @jax.jit
    def scaled(self, x):
        return x * self.w


@partial(jax.jit, static_argnums=(1,))
def with_options(x, options):
    return x


@partial(jax.jit, static_argnames=("options",))
def with_named_options(x, *, options):
    return x


def scan_over(f, carry=np.float32(1)):
    return lax.scan(lambda c, x: (f(c), None), carry, np.arange(3))


def scanned(f):
    return lambda: scan_over(f)


CONTROL = ["Attempted boolean conversion of traced array with shape bool[]", "jnp.where", "lax.cond", "lax.while_loop"]
INDEX = ["Array boolean indices must be concrete", "jnp.where(mask, x, fill)", "x = x.at[mask].set(y)", "size=n"]
LEAK = ["Encountered an unexpected tracer", "leaked tracer", "a function kept it outside", "Return the value"]
CLASS = ["Model(w)", "is not a valid JAX type", "make it an array", "register_pytree_node_class"]
SCALAR = "Gradient only defined for scalar-output functions. Output had shape: (1000,)."

TABLE = [
    # (program, exception, what the text must say)
    (lambda: sets_item(jnp.asarray(X)), TypeError, [AT, HERE, "sets_item", "x = x.at[0, 0].set(2)"]),
    (lambda: sets_slice(jnp.asarray(X)), TypeError, [AT, "x = x.at[1:, ::2].set(jnp.zeros((1, 2)))"]),
    (lambda: adds(jnp.asarray(X)), TypeError, [AT, "x = x.at[0].add(3 * x[1])"]),
    (lambda: multiplies(jnp.asarray(X)), TypeError, [AT, "x = x.at[..., 1].multiply(2)"]),
    (lambda: sets_on_one_line(jnp.asarray(X)), TypeError, [AT, "x = x.at[0, -1].set(1.5)"]),
    (lambda: jnp.asarray(X).__setitem__((0, slice(1, None)), 2), TypeError, [AT, HERE, "x = x.at[0, 1:].set(2)"]),
    (lambda: jax.jit(sets_item)(X), TypeError, [AT, HERE, "x = x.at[0, 0].set(2)"]),
    (lambda: jax.grad(lambda x: sets_item(x).sum())(X), TypeError, [AT, HERE, "x = x.at[0, 0].set(2)"]),
    (lambda: jax.vmap(adds)(X[None]), TypeError, [AT, HERE, "x = x.at[0].add(3 * x[1])"]),
    (lambda: scan_over(sets_item, X), TypeError, [AT, HERE, "x = x.at[0, 0].set(2)"]),
    (lambda: exec("del x[0]", {"x": jnp.ones(3)}), TypeError, ["immutable", "jax.numpy.delete(x, idx)"]),
    # the gradient of a vector
    (lambda: jax.grad(lambda x: x * 2)(jnp.ones(1000)), TypeError, [SCALAR, "<lambda>", HERE, "jnp.sum", "jacrev"]),
    (lambda: jax.jit(jax.grad(jnp.sin))(jnp.ones(1000)), TypeError, [SCALAR, "vmap(grad(f))"]),
    (lambda: jax.value_and_grad(lambda x: x)(jnp.ones(1000)), TypeError, [SCALAR, HERE]),
    (lambda: jax.vmap(jax.grad(lambda x: x))(jnp.ones((2, 1000))), TypeError, [SCALAR, HERE]),
    (lambda: scan_over(jax.grad(lambda x: x), np.ones(1000)), TypeError, [SCALAR, HERE]),
    (lambda: jax.grad(lambda x: [x.sum()])(X), TypeError, ["scalar-output", HERE, "has_aux=True"]),
    # custom classes
    (lambda: lax.scan(lambda c, _: (c, None), Model(X), None, 3), TypeError, ["scan", "'init'", *CLASS]),
    (lambda: lax.fori_loop(0, 3, lambda i, m: m, Model(X)), TypeError, ["fori_loop", "'init_val'", *CLASS]),
    (lambda: lax.while_loop(lambda m: True, lambda m: m, Model(X)), TypeError, ["while_loop", "'init_val'", *CLASS]),
    (
        lambda: lax.scan(lambda c, _: (Model(c), None), X, None, 3),
        TypeError,
        ["scan: the function <lambda> at", HERE, "as output component [0]", *CLASS],
    ),
    (lambda: jax.jit(lambda m: m.w)(Model(X)), TypeError, ["at path m", "static_argnums", *CLASS]),
    (lambda: jax.jit(lambda p: p)({"a": [Model(X)]}), TypeError, ["at path p['a'][0]", *CLASS]),
    (lambda: jax.jit(lambda s: s)("text"), TypeError, ["'text'", "<class 'str'>", "is not a valid JAX type"]),
    (lambda: jax.grad(lambda m: m.w)(Model(1.0)), TypeError, ["grad: argument m is", *CLASS]),
    (lambda: jax.grad(lambda a, b: a, argnums=(1, 0))(1.0, {"m": "text"}), TypeError, ["grad: argument b['m'] is"]),
    (lambda: jax.vmap(lambda m: m.w)(Model(X)), TypeError, ["vmap: argument m", *CLASS]),
    (lambda: jax.checkpoint(lambda a, m: m.w)(1.0, Model(1.0)), TypeError, ["checkpoint: argument m is", *CLASS]),
    (lambda: jax.device_put({"m": Model(1.0)}), TypeError, ["device_put: argument x['m'] is", *CLASS]),
    (lambda: jax.jit(Model)(1.0), TypeError, ["jit: the result of Model", "Model(w)", "is not a valid JAX type"]),
    (lambda: Method().scaled(1.0), TypeError, ["argument to scaled", "at path self", "is not a valid JAX type"]),
    # bool of a tracer
    (
        lambda: jax.jit(branches)(1.0),
        errors.TracerBoolConversionError,
        [
            *CONTROL,
            HERE,
            "function branches at",
            "for jit",
            "computed from the argument x.",
            "static_argnums",
        ],
    ),
    (lambda: jax.jit(loops)(1.0), errors.TracerBoolConversionError, [*CONTROL, HERE, "(loops)"]),
    (lambda: jax.jit(asserts)(1.0), errors.TracerBoolConversionError, [*CONTROL, HERE]),
    (lambda: jax.jit(both)(1.0), errors.TracerBoolConversionError, [*CONTROL, HERE]),
    (lambda: jax.vmap(branches)(X[0]), errors.TracerBoolConversionError, [*CONTROL, HERE, "(branches)"]),
    (lambda: jax.jit(jax.grad(branches))(1.0), errors.TracerBoolConversionError, [*CONTROL, "the argument x."]),
    (lambda: jax.jit(jax.vmap(branches))(X[0]), errors.TracerBoolConversionError, [*CONTROL, "the argument x."]),
    (lambda: scan_over(branches), errors.TracerBoolConversionError, [*CONTROL, "for scan", "the argument c."]),
    (lambda: lax.fori_loop(0, 3, lambda i, x: branches(x), 1.0), errors.TracerBoolConversionError, [*CONTROL, HERE]),
    (
        lambda: jax.jit(scales_and_branches)(1.0, {"b": 1.0, "w": 2.0}),
        errors.TracerBoolConversionError,
        [*CONTROL, "computed from the argument params['w']."],
    ),
    (
        lambda: jax.jit(lambda x, y, z: branches(x + z))(1.0, 2.0, 3.0),
        errors.TracerBoolConversionError,
        [*CONTROL, "computed from the arguments x, z."],
    ),
    # indexing by a mask, and results whose shape depends on values
    (
        lambda: jax.jit(masked)(X[0]),
        errors.NonConcreteBooleanIndexError,
        [*INDEX, "bool[3]", HERE, "function masked at", "the argument y."],
    ),
    (lambda: jax.vmap(masked)(X), errors.NonConcreteBooleanIndexError, [*INDEX, "bool[3]", HERE]),
    (lambda: scan_over(masked, X[0]), errors.NonConcreteBooleanIndexError, [*INDEX, "for scan", "the argument c."]),
    (
        lambda: jax.jit(jax.grad(lambda y: masked(y).sum()))(X[0]),
        errors.NonConcreteBooleanIndexError,
        [*INDEX, "bool[3]", HERE, "the argument y."],
    ),
    (
        lambda: jax.jit(lambda x: jnp.unique(x))(X),
        errors.ConcretizationTypeError,
        ["jnp.unique: the length of the result", "'size'", HERE, "the argument x."],
    ),
    (
        lambda: jax.vmap(jnp.unique)(X),
        errors.ConcretizationTypeError,
        ["jnp.unique: the length of the result", "'size'", HERE],
    ),
    (
        lambda: jax.jit(lambda x: jnp.nonzero(x))(X),
        errors.ConcretizationTypeError,
        ["jnp.nonzero: the number of elements found", "jnp.nonzero(x, size=n)", HERE],
    ),
    (lambda: jax.jit(lambda x: jnp.where(x > 1))(X), errors.ConcretizationTypeError, ["jnp.where(mask, x, fill)"]),
    (lambda: jax.jit(lambda n: jnp.zeros(n))(3), TypeError, ["Shapes must be 1D", "static_argnums", "argument n."]),
    (lambda: jax.jit(lambda n: jnp.arange(n))(3), errors.ConcretizationTypeError, ["jnp.arange argument 'stop'", HERE]),
    (lambda: jax.jit(lambda x, n: x[:n])(X, 1), IndexError, ["static integers", "position 0", "lax.dynamic_slice"]),
    # numbers out of tracers
    (lambda: jax.jit(lambda x: float(x))(1.0), errors.ConcretizationTypeError, ["`float` makes", "x.astype(float)"]),
    (lambda: jax.jit(lambda x: x.item())(1.0), errors.ConcretizationTypeError, ["item() method", "the argument x."]),
    (lambda: jax.jit(np.sin)(1.0), errors.TracerArrayConversionError, ["__array__()", "pullback.numpy function"]),
    (lambda: jax.jit(lambda n: [1, 2][n])(1), errors.TracerIntegerConversionError, ["__index__()", HERE]),
    (lambda: jax.jit(lambda n: list(range(n)))(1), errors.TracerIntegerConversionError, ["__index__()", HERE]),
    # static arguments
    (
        lambda: with_options(1.0, [1, 2]),
        ValueError,
        ["Non-hashable static arguments", "position 1 of with_options", "<class 'list'>", "[1, 2]", "make it a tuple"],
    ),
    (
        lambda: with_named_options(1.0, options={"a": 1}),
        ValueError,
        ["Non-hashable static arguments", "'options' of with_named_options", "<class 'dict'>", "__eq__"],
    ),
    (lambda: with_options(1.0, np.ones(2)), ValueError, ["Non-hashable static arguments", "<class 'numpy.ndarray'>"]),
    # leaks
    (lambda: leak(jax.jit, 1.0), errors.UnexpectedTracerError, [*LEAK, "f32[]", "function keeps at", "for jit", HERE]),
    (lambda: leak(jax.grad, 1.0), errors.UnexpectedTracerError, [*LEAK, "(keeps)", HERE]),
    (lambda: leak(jax.vmap, X), errors.UnexpectedTracerError, [*LEAK, "f32[3]", "under vmap at", "(keeps)", HERE]),
    (lambda: leak(scanned), errors.UnexpectedTracerError, [*LEAK, "for scan", "(keeps)", HERE]),
    (lambda: jax.jit(lambda x: leak(jax.jit, x))(1.0), errors.UnexpectedTracerError, [*LEAK, "(keeps)", HERE]),
    (leak_from_attribute, errors.UnexpectedTracerError, [*LEAK, "function step at", "(step)", HERE]),
]


@pytest.mark.parametrize("program, exception, fragments", TABLE)
def test_text(program, exception, fragments):
    with pytest.raises(exception) as caught:
        program()
    text = str(caught.value)
    for fragment in fragments:
        assert fragment in text, text


def test_lines_are_those_of_the_user():
    """The line that made a leaked value, and the one that uses it."""
    lines, first = inspect.getsourcelines(leak)
    made = first + next(k for k, line in enumerate(lines) if "y = x * 2" in line)
    used = first + next(k for k, line in enumerate(lines) if "kept[0] + 1" in line)
    for transform, x in ((jax.jit, 1.0), (jax.vmap, X), (scanned, None)):
        with pytest.raises(errors.UnexpectedTracerError) as caught:
            leak(transform, *(() if x is None else (x,)))
        assert f"test_documented.py:{made} (keeps)" in str(caught.value)
        assert f"used at {__file__}:{used} (leak)" in str(caught.value)


def test_the_fixes_work():
    x = jnp.asarray(X)
    np.testing.assert_array_equal(x.at[0, 0].set(2)[0, 0], 2)
    np.testing.assert_array_equal(x.at[0].add(3 * x[1])[0], X[0] + 3 * X[1])
    np.testing.assert_array_equal(x.at[..., 1].multiply(2)[:, 1], 2 * X[:, 1])
    assert float(jax.jit(lambda x: lax.cond(x > 0, lambda x: x, lambda x: -x, x))(-3.0)) == 3.0
    np.testing.assert_array_equal(jax.jit(lambda y: jnp.nonzero(y % 2 == 0, size=2)[0])(X[0]), [0, 2])
    np.testing.assert_array_equal(jax.jit(lambda y: jnp.unique(y, size=3))(X[0]), X[0])
    assert float(with_options(1.0, (1, 2))) == 1.0
    assert float(jax.grad(branches)(3.0)) == 1.0  # a concrete value may steer Python
