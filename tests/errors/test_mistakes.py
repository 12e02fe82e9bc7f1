"""Users' mistakes: each raises the error that JAX's users know by type, with a text that says what came and what to
do."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.experimental import checkify
from pullback.experimental.ode import odeint
from pullback.util import errors
from pullback.util.elsewhere import OTHER_LIBRARIES
from pullback.util.other_arrays import INSTEAD

X = np.arange(3.0, dtype=np.float32)
KEY = jax.random.key(0)


class Point:
    def __init__(self, x):
        self.x = x


def leak():
    kept = []
    jax.jit(lambda x: (kept.append(x * 2), x)[1])(1.0)
    return kept[0] + 1


def leak_from_grad():
    kept = []
    jax.grad(lambda x: (kept.append(x * 2), x * x)[1])(1.0)
    return jax.jit(lambda y: kept[0] + y)(1.0)


def deleted():
    x = jnp.ones(10000)
    jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    return x + 1


@pytest.mark.parametrize(
    "call, error, text",
    [
        # Python control flow and NumPy on traced values
        (lambda: jax.jit(lambda x: 1 if x > 0 else 2)(1.0), errors.TracerBoolConversionError, "lax.cond"),
        (lambda: jax.vmap(lambda x: 1 if x > 0 else 2)(X), errors.TracerBoolConversionError, "traced array"),
        (lambda: jax.jit(lambda x: np.sin(x))(1.0), errors.TracerArrayConversionError, "__array__"),
        (lambda: jax.jit(lambda x: [1, 2, 3][x])(1), errors.TracerIntegerConversionError, "__index__"),
        (lambda: jax.jit(lambda x: float(x))(1.0), errors.ConcretizationTypeError, "concrete value"),
        (lambda: jax.jit(lambda x: int(x))(1), errors.ConcretizationTypeError, "concrete value"),
        (lambda: jax.jit(lambda y: y[y % 2 == 0])(X), errors.NonConcreteBooleanIndexError, "boolean"),
        (lambda: jax.jit(lambda y: jnp.unique(y))(X), errors.ConcretizationTypeError, "size"),
        (lambda: jax.jit(lambda n: jnp.zeros(n))(3), TypeError, "[Ss]hape"),
        (lambda: jax.jit(lambda n: jnp.arange(n))(3), errors.ConcretizationTypeError, "arange"),
        (lambda: jax.jit(lambda n: jnp.linspace(0, 1, n))(3), errors.ConcretizationTypeError, "'num' .*static_argnums"),
        (lambda: jax.jit(lambda n: jax.random.normal(KEY, (n,)))(3), TypeError, "computed from the argument n"),
        (lambda: jax.checkpoint(lambda x, n: x if n else -x)(1.0, 2), errors.TracerBoolConversionError, "argument n"),
        # memory
        (lambda: jnp.zeros((10**7, 10**7)), errors.JaxRuntimeError, "RESOURCE_EXHAUSTED"),
        (lambda: jnp.zeros((10**7, 10**7)), MemoryError, "400000000000000 bytes"),
        (deleted, RuntimeError, "donate_argnums"),
        # leaks
        (leak, errors.UnexpectedTracerError, r"for jit, at \S+ \(<lambda>\), and used"),
        (leak, errors.UnexpectedTracerError, "leaked|escape"),
        (leak_from_grad, errors.UnexpectedTracerError, "unexpected tracer"),
        # arguments that are no arrays, and others of the wrong kind
        (lambda: jnp.ones(2, 3), TypeError, "ones: argument 'dtype' must .* several dimensions go into one tuple"),
        (lambda: jax.random.normal(KEY, 2, 3), TypeError, "normal: argument 'dtype' .* go into one tuple"),
        (lambda: jnp.zeros(3, "flaot32"), TypeError, "zeros: argument 'dtype' .*'flaot32'.* did you mean 'float32'"),
        (lambda: jax.random.normal(KEY, (3,), "flot"), TypeError, "normal: argument 'dtype' .* did you mean 'float'"),
        (lambda: jnp.vstack(X, X), TypeError, r"vstack: .* array of type float32\[3\]; .*several arrays into one seq"),
        (lambda: jnp.stack(X, X), TypeError, "stack: argument 'axis' .* several arrays go into one sequence"),
        (lambda: jnp.concatenate(X, X), TypeError, "concatenate: argument 'axis' .* several arrays go into one seq"),
        (lambda: jnp.array(X)[0:1.5], TypeError, "Slice entries must be integers, got 0:1.5 at position 0"),
        (lambda: jnp.array(X)[::X], TypeError, "Slice entries must be integers, got ::array.* at position 0"),
        (lambda: jnp.array(X).astype(), TypeError, r"Array.astype\(\) missing .*'dtype'"),
        (lambda: jnp.array(X).clip(minn=0), TypeError, "did you mean 'min'. clip takes min, max"),
        (lambda: jnp.array(X).reshape("a"), TypeError, "reshape: argument 'args' must be an integer or a seq"),
        (lambda: jnp.einsum(X, X), TypeError, "einsum: argument 'subscripts' must be a string .* float32"),
        (lambda: jnp.pad(X, 1, mode="zero"), NotImplementedError, "'constant', 'edge'"),
        (lambda: jax.random.fold_in(KEY, "a"), TypeError, "fold_in: argument 'data' must be an integer, got 'a'"),
        (lambda: jax.scipy.stats.norm.pdf([1.0]), TypeError, r"(?m)^pdf: argument 'x' .* got \[1.0\]"),
        (lambda: lax.associative_scan(lambda a, b: jnp.sum(a), X), ValueError, r"along axis 0, .* it made f32\[\]"),
        (lambda: lax.associative_scan(lambda a, b: (a, b), X), TypeError, "must give a tree like elems"),
        (lambda: lax.dot_general(X, X, ((0,), (0,))), TypeError, "dot_general: .*lhs_contracting.* got .*0,"),
        (lambda: jax.random.split(KEY, "a"), TypeError, "split: argument 'num'"),
        (lambda: jax.debug.print("{x} {y}", x=1.0), KeyError, "names the argument 'y'; given are x"),
        (lambda: jax.device_put("a"), TypeError, "device_put: argument x is 'a'"),
        (lambda: jnp.ones(3).at[0].set(jnp.ones(2)), ValueError, r"x.at\[index\] has shape \(\), the values have"),
        (lambda: jnp.ones((2, 3, 4)) @ jnp.ones((3, 4, 5)), ValueError, r"f32\[2,3,4\] and f32\[3,4,5\]"),
        (lambda: jax.scipy.optimize.minimize(lambda x: x, X, method="BFGS"), TypeError, "test_mistakes.py"),
        (lambda: jax.jit(lambda p: p)(Point(1)), TypeError, "not a valid JAX type"),
        (lambda: jax.jit(lambda s: s)("text"), TypeError, "not a valid JAX type"),
        (lambda: jax.jit(lambda s: s)(jax.ShapeDtypeStruct((3,), "f4")), TypeError, "no values: jit.f..lower and"),
        (lambda: jax.ops.segment_sum(jnp.array(X), jnp.arange(2), 3), ValueError, r"_ids' has shape \(2,\), .* \(3,\)"),
        (lambda: jnp.linalg.norm(jnp.ones((2, 2)), "fr"), ValueError, "Invalid order 'fr' .*'nuc'"),
        (lambda: jnp.linalg.norm(jnp.array(X), "fr"), ValueError, "Invalid order 'fr' .* takes numbers"),
        (lambda: jnp.convolve(jnp.ones((2, 2)), X), ValueError, r"1-dimensional .*\(2, 2\) and \(3,\)"),
        (lambda: jax.linear_transpose(lambda x: x * x, X)(X), NotImplementedError, "the function is not linear"),
        (lambda: lax.scan(lambda c, _: (c, None), Point(1), None, length=2), TypeError, "not a valid JAX type"),
        (lambda: jax.jit(lambda x: Point(x))(1.0), TypeError, "not a valid JAX type"),
        (lambda: jax.jit(lambda x, n: x, static_argnums=1)(1.0, [1]), ValueError, "[Nn]on-hashable static"),
        (lambda: jax.jit(lambda x: x, static_argnums=3), ValueError, "static_argnums"),
        (lambda: jax.jit(lambda x: x, static_argnames="y"), ValueError, "no argument 'y'"),
        (lambda: jax.jit(3), TypeError, "callable"),
        (lambda: jax.jit(lambda x: x)(1.0, 2.0), TypeError, "argument"),
        (lambda: jax.jit(lambda x: x)(), TypeError, "missing"),
        # differentiation
        (lambda: jax.grad(lambda x: x * 2)(X), TypeError, r"scalar-output functions. Output had shape: \(3,\)"),
        (lambda: jax.grad(lambda x: (x, x))(1.0), TypeError, "scalar-output"),
        (lambda: jax.grad(lambda x: x)(1), TypeError, "real- or complex-valued inputs"),
        (lambda: jax.grad(lambda x: jnp.int32(1))(1.0), TypeError, "real-valued outputs"),
        (lambda: jax.grad(lambda x: x, argnums=1)(1.0), TypeError, "at least 2 positional arguments"),
        (lambda: jax.grad(lambda x: x, argnums="x"), TypeError, "argnums"),
        (lambda: jax.grad(lambda x: 1j * x)(1.0), TypeError, "holomorphic"),
        (lambda: jax.grad(lambda x: x, has_aux=True)(1.0), TypeError, "two-element tuple"),
        (lambda: jax.jvp(jnp.sin, X, X), TypeError, "must be tuples or lists"),
        (lambda: jax.jvp(jnp.sin, (X,), (X[:2],)), ValueError, "different primal and tangent shapes"),
        (lambda: jax.jvp(jnp.sin, (X,), (np.arange(3),)), TypeError, "float0|dtypes must be equal"),
        (lambda: jax.jvp(jnp.sin, (X,), (X, X)), TypeError, "same tree structure"),
        (lambda: jax.vjp(jnp.sin, X)[1](X[:2]), ValueError, "takes f32"),
        (lambda: jax.vjp(jnp.sin, X)[1]((X,)), ValueError, "tree structure"),
        (lambda: jax.jacfwd(lambda x: x)(1), TypeError, "real- or complex-valued"),
        # batching
        (lambda: jax.vmap(lambda x, y: x)(X, X[:2]), ValueError, "inconsistent sizes"),
        (lambda: jax.vmap(lambda x: x)(1.0), ValueError, "no such axis: its rank is 0"),
        (lambda: jax.vmap(lambda x: x, in_axes=None)(X), ValueError, "at least one non-None"),
        (lambda: jax.vmap(lambda x: x, in_axes=(0, 0))(X), ValueError, r"len\(in_axes\)=2, len\(args\)=1"),
        (lambda: jax.vmap(lambda x: x, in_axes="a"), TypeError, "in_axes must be"),
        (lambda: jax.vmap(lambda x: x, out_axes=None)(X), ValueError, "axis spec None"),
        (lambda: jax.vmap(lambda x: x, out_axes=2)(X), ValueError, "out_axes is 2"),
        # arrays
        (lambda: jnp.asarray(X).__setitem__(0, 1.0), TypeError, r"\.at\["),
        (lambda: jnp.asarray(X) + jnp.ones(2), (TypeError, ValueError), "(broadcast|shapes)"),
        (lambda: jnp.sum(X, axis=3), ValueError, "axis 3"),
        (lambda: jnp.reshape(jnp.asarray(X), (2, 2)), TypeError, "reshape"),
        (lambda: bool(jnp.asarray(X)), ValueError, "ambiguous"),
        (lambda: hash(jnp.asarray(X)), TypeError, "unhashable"),
        (lambda: jnp.add([1, 2], 3), TypeError, "list"),
        (lambda: jnp.dot(jnp.ones((2, 3)), jnp.ones((2, 3))), TypeError, "contract"),
        (lambda: jnp.concatenate([jnp.ones((2, 3)), jnp.ones((2, 4))]), TypeError, "concatenat"),
        (lambda: jnp.array(["a"]), TypeError, "valid JAX"),
        (lambda: jnp.asarray(X) * (1, 2, 3), TypeError, r"for \*: 'Array(Impl)?' and 'tuple'; make the elements"),
        (lambda: [1, 2, 3] + jnp.asarray(X), TypeError, r"for \+: 'list' and 'Array(Impl)?'; make the elements"),
        (lambda: np.zeros(3).__setitem__(0, jnp.asarray(X)), ValueError, "with a sequence"),
        (lambda: jnp.asarray(X).at[0].set(), TypeError, r"set\(\) missing 1 required positional argument: 'values'"),
        (lambda: jnp.asarray(X).view(-1), TypeError, r"got -1; x.reshape\(shape\) changes the shape"),
        (lambda: jnp.float8_e5m2("a"), ValueError, "could not convert string to float: 'a'"),
        (lambda: jnp.float6_e2m3fn("a"), ValueError, "could not convert string to float: 'a'"),
        # others
        (lambda: jax.vjp(jnp.sin, X)[1](X, X), TypeError, "takes one argument, .* called with 2 arguments"),
        (lambda: jax.random.randint(KEY, 0, 10, (3,)), TypeError, r"'maxval' must be an array or a number, got \(3,\)"),
        (lambda: jax.default_device("tpu"), RuntimeError, r"Unknown backend tpu. Available backends are \['cpu'\]"),
        (lambda: jax.pmap(lambda x, y: x)(X[:1], X[:2]), ValueError, "argument 0 has 1; argument 1 has 2"),
        (lambda: jax.tree.leaves({"a": 1, 2: 3}), ValueError, "'a' is of type str and 2 of type int"),
    ],
)
def test_mistake(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: jax.grad(lambda p, q: p["a"], argnums=(1, 0))({"a": 1.0, "n": 3}, 1.0), TypeError, r"p\['n'\], i32"),
        (lambda: jax.jacfwd(lambda x, n: x, argnums=(0, -1))(1.0, 3), TypeError, r"The argument is n, i32"),
        (lambda: jax.jacrev(lambda x: x)(3), TypeError, r"The argument is x, i32"),
        (lambda: lax.scan(lambda c, x: c, 0.0, X), TypeError, "must be a pair"),
        (lambda: lax.scan(lambda c, x: ((c, c), x), 0.0, X), TypeError, "structure"),
        (lambda: lax.scan(lambda c, x: (x + X, x), 0.0, X), TypeError, "equal types"),
        (lambda: lax.while_loop(lambda c: c, lambda c: c + 1, 0), TypeError, "boolean scalar"),
        (lambda: lax.while_loop(lambda c: c < X, lambda c: (c, c), 0), TypeError, "structure"),
        (
            lambda: lax.fori_loop(0, 3, lambda i, c: c[None], X),
            TypeError,
            r"fori_loop body: .*\n  val goes in as f32\[3\]",
        ),
        (
            lambda: lax.fori_loop(0, 3, lambda i, c: (c, c), X),
            TypeError,
            r"fori_loop body: .*\n  val goes in as an array",
        ),
        (lambda: lax.fori_loop(0, jnp.int32(3), lambda i, c: {"a": c["a"][None]}, {"a": X}), TypeError, r"val\['a'\]"),
        (
            lambda: jax.jit(lambda n: lax.fori_loop(0, n, lambda i, c: c[None], X))(3),
            TypeError,
            r"fori_loop body: .*\n  val goes in as f32\[3\]",
        ),
        (lambda: lax.cond(True, lambda: 1.0, lambda: 1), TypeError, "true_fun is <lambda>"),
        (lambda: lax.switch(0, [lambda: 1.0, lambda: (1.0,)]), TypeError, r"branches\[1\] is <lambda>"),
    ],
)
def test_the_function_of_the_users_is_named(call, error, text):
    with pytest.raises(error, match=text) as caught:
        call()
    assert f"<lambda> at {__file__}:" in str(caught.value)


def test_what_lies_beside_the_mistake_is_named():
    with pytest.raises(ValueError, match=r"xs\['a'\] is f32\[3\], xs\['b'\] is f32\[2\]"):
        lax.scan(lambda c, x: (c, x), 0.0, {"a": X, "b": X[:2]})
    with pytest.raises(TypeError, match="astype: argument 'dtype'"):
        jnp.ones(2).astype("foo")
    with pytest.raises(TypeError, match=r"argument 'key' comes first"):
        jax.random.normal((3,))
    with pytest.raises(IndexError, match="static_argnums"):
        jax.jit(lambda n: jnp.asarray(X)[:n])(2)


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda: jnp.sum(X, axes=0), "'axes'; did you mean 'axis'[?] sum takes a, axis, dtype,"),
        (lambda: jax.jit(abs, static_argnum=0), "did you mean 'static_argnums'[?] jit takes fun, "),
        (lambda: jax.vmap(abs, in_axis=0), "did you mean 'in_axes'[?] vmap takes fun, in_axes, "),
        (lambda: jnp.linalg.norm(X, order=2), "did you mean 'ord'[?] norm takes x, ord, axis, keepdims$"),
        (lambda: jnp.einsum("i->", X, optimise=True), "did you mean 'optimize'[?] einsum takes subscripts"),
        (lambda: jnp.sin(X, like=0), "'like'; sin takes x$"),
        (lambda: jnp.sum(X, dim=0), "'dim'; did you mean 'axis'[?] sum takes a, axis,"),
        (lambda: jnp.add(X, X, dtype=int), "^add[(][)] got an unexpected keyword argument 'dtype'"),
    ],
)
def test_misspelt_keywords(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_misspelt_names():
    """Python offers a name like it where it prints an error that has the module."""
    for module, name in ((jnp, "arrange"), (jax, "jitt"), (lax, "scann"), (jax.random, "norml"), (jax.nn, "rellu")):
        with pytest.raises(AttributeError, match=f"^module '{module.__name__}' has no attribute '{name}'$") as caught:
            getattr(module, name)
        assert caught.value.name == name and caught.value.obj is module


def test_names_of_another_module_or_library():
    """Each says what to write here; all that is said exists, and no name of a library is said to be another's."""
    for module, name, instead in (
        (jnp, "cat", "jax.numpy.concatenate"),
        (jnp, "mul", "jax.numpy.multiply"),
        (jnp, "random", "jax.random"),
        (jnp, "relu", "jax.nn.relu"),
        (lax, "where", "jax.numpy.where"),
        (jax, "scan", "jax.lax.scan"),
    ):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'; it is {instead} here$"):
            getattr(module, name)
        assert not hasattr(module, name)
    for name, instead in OTHER_LIBRARIES.items():
        assert callable(attrgetter(instead.removeprefix("jax."))(jax)), name
        assert not any(hasattr(module, name) for module in (jax, jnp)), name


class Plain:
    def __init__(self):
        self.w = X

    @jax.jit
    def method(self, x):
        return self.w * x


async def later(x):
    return x


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: jnp.linalg.det(X), ValueError, r"^det: square matrices must have shape"),
        (lambda: jnp.arange(0, 1, 0), ZeroDivisionError, "^arange: argument 'step' is 0"),
        (lambda: jnp.histogram(X, bins=-1), ValueError, "argument 'bins' is -1"),
        (lambda: jnp.where(X, 1), TypeError, "where: argument 'x' was given without 'y'"),
        (lambda: jnp.where(X, y=1) if 0 else jnp.where(X, None, 1), TypeError, "'y' was given without 'x'"),
        (lambda: jnp.lexsort(3), TypeError, "lexsort: argument 'keys' must be a sequence of arrays, got 3"),
        (lambda: jnp.zeros("3"), TypeError, "got '3'"),
        (lambda: lax.after_all("a"), TypeError, "after_all: arguments must be tokens, .* got 'a' of type str"),
        (lambda: jnp.fft.fftn(1.0, norm="foo"), ValueError, "Invalid norm value foo"),
        (lambda: jnp.broadcast_shapes((-1,)), TypeError, r"must not be negative, got shapes=\[\(-1,\)\]"),
        (lambda: jnp.sum(X, where="a"), TypeError, "sum: argument 'where' must be an array or a number, got 'a'"),
        (lambda: jnp.sum({"a": X}), TypeError, "dict.*; jax.tree.map applies a function to each array"),
        (lambda: jnp.einsum(X, [0, 1], [0, 2]), KeyError, "label 2 of the result is in no operand's list"),
        (lambda: jnp.einsum("ij->l", jnp.ones((2, 3))), ValueError, r"'l' did not .*\n\(in einsum\(subscripts="),
        (lambda: ~jnp.array(X), TypeError, "^bitwise_not does not accept dtype float32"),
        (lambda: -jnp.array([True]), TypeError, "^neg does not accept dtype bool"),
        (lambda: jnp.array(X).at.set(1), AttributeError, r"takes an index first: x.at\[index\].set\(...\)"),
        (lambda: jnp.array(X).at.foo, AttributeError, "x.at has no attribute 'foo'"),
        (lambda: jnp.array(X).at(0), TypeError, r"square brackets: x.at\[index\].set\(y\)"),
        (lambda: jnp.array(X).at[0].sett(1), AttributeError, "no attribute 'sett'; it has get, set, add"),
        (lambda: f"{jnp.array(X):.2f}", TypeError, r"Array.__format__: '.2f' needs a number, .* float32\[3\]"),
        (lambda: jnp.array(X) + "a", TypeError, "'Array(Impl)?' and 'str'$"),
        (lambda: jax.jit(lambda x: x + "a")(X), TypeError, "'(JitTracer|DynamicJaxprTracer)' and 'str'$"),
        (lambda: "%d" % jnp.array(X), TypeError, "not Array(Impl)?$"),  # noqa: UP031
        (lambda: jnp.bfloat16("abc"), ValueError, "could not convert string to float: 'abc'"),
        (lambda: jnp.float8_e8m0fnu("abc"), ValueError, "could not convert string to float: 'abc'"),
        (lambda: jax.jit(lambda x: x, static_argnums=0)(jnp.array(X)), ValueError, r"jax.Array \(float32\[3\]\)"),
        (lambda: jax.jit(lambda f, x: f(x))(jnp.sin, 1.0), TypeError, "of type <class 'PjitFunction'>"),
        (lambda: jax.jit(later), TypeError, "got an async function: later"),
        (lambda: Plain().method(X), TypeError, "Of a method, 'self' is an argument like the others"),
        (
            lambda: jax.grad(lambda x: x, has_aux=True)(1.0),
            TypeError,
            r"got type jax.Array \(traced float32\[\]\) with",
        ),
        (lambda: jax.make_mesh(1, "x"), TypeError, "make_mesh: argument 'axis_shapes' must be a sequence"),
        (lambda: jax.sharding.Mesh(1, 1), TypeError, "Mesh: axis names must be"),
        (
            lambda: jax.shard_map(
                lambda x: x, mesh=jax.make_mesh((1,), ("x",)), in_specs=(jax.P("x"), jax.P("x")), out_specs=jax.P("x")
            )(X),
            ValueError,
            "shard_map in_specs",
        ),
        (lambda: jax.config.enable_x46, AttributeError, r"\(did you mean jax_enable_x64\?\)"),
        (lambda: jax.tree_util.register_pytree_node_class(3), TypeError, "argument 'cls' must be a class, got 3"),
        (lambda: jax.tree_util.register_pytree_node_class(Point), AttributeError, "Point has no method 'tree_flatten'"),
        (lambda: jax.export.deserialize("abc"), TypeError, "argument 'blob' must be bytes, got 'abc'"),
        (lambda: checkify.checkify(1), TypeError, "checkify: argument 'f' must be a function, got 1"),
        (lambda: checkify.checkify(abs, errors="foo"), TypeError, "argument 'errors' must be a set of checks"),
        (lambda: odeint(lambda y, t: y[:2], X, X), ValueError, r"must return dy/dt, .* \(3,\); it returned \(2,\)"),
        (lambda: odeint(lambda y: y, X, X), TypeError, "takes 1 positional argument but 2 were given"),
        (lambda: lax.conv(X, X, (1,), "SAME"), TypeError, r"with a batch, a feature and .* shapes \(3,\) and \(3,\)"),
        (lambda: lax.rng_uniform(0.0, 1.0, "a"), TypeError, "argument 'shape' must be a sequence of integers"),
        (lambda: lax.map(lambda x: x, (X, X[:2]), batch_size=1), ValueError, "different leading axis sizes: 2, 3"),
        (lambda: lax.map(lambda x: x, 3.0, batch_size=1), ValueError, "'xs' has a scalar, with no leading axis"),
        (lambda: lax.map(lambda x: x, X, batch_size=-2), ValueError, "'batch_size' must not be negative, got -2"),
        (lambda: lax.dynamic_slice(X, 0, 2), TypeError, "dynamic_slice: argument 'slice_sizes'"),
        (lambda: jnp.loadtxt, AttributeError, r"; write jax.numpy.asarray\(numpy.loadtxt\(...\)\), outside of jit$"),
        (lambda: jnp.savetxt, AttributeError, r"; write numpy.savetxt\(file, x\), outside of jit$"),
        (lambda: jax.nn.Linear, AttributeError, "; libraries written for JAX have it, such as Equinox and Flax$"),
        (lambda: jax.optim, AttributeError, "; libraries written for JAX have it, such as Optax$"),
        (lambda: jax.experimental.foo, AttributeError, "has no attribute 'foo'$"),
        (lambda: jnp.sort(itself()), TypeError, "sort requires ndarray"),
    ],
)
def test_newcomers_mistake(call, error, text):
    with pytest.raises(error, match=text) as caught:
        call()
    assert not re.search(r"pullback\.\w+\._|pullback\._|StagedTracer", str(caught.value))


def itself():
    """A list that contains itself."""
    found = []
    found.append(found)
    return found


def test_modules_that_are_imported_on_their_own_are_named():
    call = "import pullback.experimental as e; e.jet"
    found = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True)
    assert found.stderr.count("; it is a module: write import jax.experimental.jet") == 1


def test_methods_of_other_libraries_arrays_name_what_is_written_here():
    x = jnp.arange(6.0).reshape(2, 3) / 6 + 0.1
    given = {
        "jax": jax, "numpy": np, "x": x, "y": x, "axis": 1, "axes": (1, 0), "to": 0, "n": 1, "value": 2.0, "q": 0.5,
        "low": 0.0, "high": 1.0, "dtype": jnp.float16, "shape": (2, 3), "repeats": 2, "mask": x > 0.3,
        "device": jax.devices()[0], "loss": jnp.sum, "index": jnp.zeros((2, 1), int),
    }  # fmt: skip
    seen = []
    jax.jit(lambda t: seen.append(t) or t)(x)
    for name, instead in INSTEAD.items():
        for array, kind in ((x, type(x).__name__), (seen[0], type(seen[0]).__name__)):  # as JAX they have its names
            with pytest.raises(AttributeError, match=f"^'{kind}' object has no attribute '{name}'; here one writes "):
                getattr(array, name)
            assert not hasattr(array, name) and name not in dir(array)
        square = {**given, "x": jnp.eye(3), "y": jnp.eye(3)} if "linalg" in instead or "@" in instead else given
        with jax.enable_x64(True):
            for written in instead.partition(", with")[0].split(" or "):
                eval(written, {}, square if "(x, y" not in written else given)
    assert "sum" in dir(x) and x.sum().shape == ()


def test_the_part_of_a_carry_that_differs_is_named():
    carry = {"w": jnp.ones(3), "b": [0.0]}
    with pytest.raises(
        TypeError, match=r"carry\['b'\] goes in as list of length 1 and .* list of length 2, so the lengths"
    ):
        lax.scan(lambda c, _: (c | {"b": [0.0, 0.0]}, None), carry, X)
    with pytest.raises(TypeError, match=r"carry\['w'\] goes in as an array and .* <class 'tuple'>, so their Python"):
        lax.while_loop(lambda c: True, lambda c: c | {"w": ()}, carry)
    with pytest.raises(TypeError, match=rf"<lambda> at {__file__}:\d+; with has_aux=True it returns"):
        jax.grad(lambda x: x.sum(), has_aux=True)(X)


@pytest.mark.parametrize(
    "call",
    [
        lambda: jnp.zeros(3, np.float64),
        lambda: jnp.arange(3).astype(np.int64),
        lambda: jnp.asarray([1, 2], np.int64),
        lambda: (X + 1j).astype(np.float32),
        lambda: jnp.arange(3).at[0].set(1.5),
    ],
)
def test_warnings_name_the_users_line(call):
    """Python shows those of a line once, so one of ours would hide what it says of all others."""
    with pytest.warns(Warning) as caught:
        call()
    assert [Path(w.filename).name for w in caught] == ["test_mistakes.py"]


def test_functions_of_ours_under_jit():
    for fun in (jnp.nonzero, jnp.unique):
        with pytest.raises(errors.ConcretizationTypeError) as caught:
            jax.jit(fun)(X)
        assert "None" not in str(caught.value)


def test_a_leak_names_the_line_that_made_the_value():
    with pytest.raises(errors.UnexpectedTracerError, match=r"test_mistakes\.py"):
        leak()


def test_an_argument_error_names_the_path():
    with pytest.raises(TypeError, match=r"params\['w'\]\[1\]"):
        jax.jit(lambda params: 1)({"w": [1.0, Point(2)]})
    with pytest.raises(ValueError, match=r"argument ys\['a'\] of type f32\[2\]"):
        jax.vmap(lambda x, ys: x)(X, {"a": X[:2]})


def test_a_concrete_value_under_grad_may_steer_python():
    assert float(jax.grad(lambda x: x**2 if x > 0 else x)(3.0)) == 6.0


def test_registered_dataclasses_are_trees():
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class State:
        w: object
        b: object

    out = jax.jit(lambda s: State(s.w * 2, s.b + 1))(State(jnp.ones(2), 0.0))
    np.testing.assert_allclose(out.w, [2, 2])
    assert float(out.b) == 1.0


def test_the_process_survives_bad_shapes():
    for n in range(200):
        with pytest.raises((TypeError, ValueError)):
            jnp.ones(n + 2) + jnp.ones(n + 3)
