"""Functions that `make_jaxpr` shows as calls, as JAX's jaxprs do."""

import importlib

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.api.named_calls import _NAMES, name_in_jaxprs
from pullback.core import eval_jaxpr

X = np.linspace(-2, 3, 12, dtype="f4").reshape(3, 4)
PACKAGES = {
    "numpy": ("numpy", "numpy.linalg", "numpy.fft", "numpy._shape"),
    "scipy": ("scipy.linalg", "scipy.special", "scipy.ndimage"),
    "image": ("image",),
}


def calls_of(fun, *args):
    """Names of the calls of the outermost jaxpr."""
    return [eqn.params["name"] for eqn in jax.make_jaxpr(fun)(*args).jaxpr.eqns if eqn.primitive.name == "jit"]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_a_function_of_its_package(package):
    modules = [importlib.import_module(f"pullback.{name}") for name in PACKAGES[package]]
    for name, shown in _NAMES[package].items():
        functions = [getattr(module, name, getattr(module, f"_{name}", None)) for module in modules]
        found = [name_in_jaxprs(function) for function in functions if function is not None]
        assert shown in found, name


@pytest.mark.parametrize(
    "shown, fun",
    {
        "_where": lambda x: jnp.where(x > 0, x, 0.0),
        "clip": lambda x: x.clip(0, 1),
        "floor_divide": lambda x: x // 2,
        "remainder": lambda x: 5.0 % x,
        "_roll_static": lambda x: jnp.roll(x, 1, axis=0),
        "_var": lambda x: x.var(axis=0),
        "_take": lambda x: jnp.take(x, jnp.array([0, 2]), axis=1),
        "norm": jnp.linalg.norm,
        "fft": jnp.fft.rfft,
        "_resize": lambda x: jax.image.resize(x, (6, 4), "linear"),
        "_cholesky": lambda x: jax.scipy.linalg.cholesky(x @ x.T + 9 * jnp.eye(3)),
    }.items(),
)
def test_calls_compute_the_same(shown, fun):
    assert shown in calls_of(fun, X)
    closed = jax.make_jaxpr(fun)(X)
    np.testing.assert_allclose(eval_jaxpr(closed.jaxpr, closed.consts, X)[0], fun(jnp.asarray(X)), rtol=1e-6)

    def loss(x):
        return jnp.sum(jnp.abs(fun(x)) ** 2)

    grad = jax.make_jaxpr(jax.grad(loss))(X)
    assert shown in str(grad)
    np.testing.assert_allclose(eval_jaxpr(grad.jaxpr, grad.consts, X)[0], jax.grad(loss)(X), rtol=1e-5, atol=1e-5)
    stack = np.stack([X, X + 1])
    mapped = jax.make_jaxpr(jax.vmap(fun))(stack)
    np.testing.assert_allclose(
        eval_jaxpr(mapped.jaxpr, mapped.consts, stack)[0], jax.vmap(fun)(stack), rtol=1e-5, atol=1e-5
    )


def test_one_that_is_called_twice_is_printed_once():
    text = str(jax.make_jaxpr(lambda x: jnp.where(x > 0, x, 0.0) + jnp.where(x > 1, x, 1.0))(X))
    assert text.startswith("let _where = ") and text.count("select_n") == 1


def test_what_would_be_static_and_is_traced_is_no_call_or_another():
    assert calls_of(lambda x, shift: jnp.roll(x, shift), X, 1) == ["_roll_dynamic"]
    assert calls_of(lambda x: jnp.roll(x, (1, 2), (0, 0)), X) == ["_roll_static"]
    assert calls_of(lambda x, axis: jnp.clip(x, 0, 1) + jnp.moveaxis(x, 0, 0) + axis, X, 1) == ["clip"]
    assert calls_of(lambda x, axis: jnp.sort(x, axis=-1) + axis, X, 1) == ["sort"]


def test_constants_and_mistakes_are_those_of_the_function():
    assert calls_of(lambda x: x + jnp.linspace(0, 1, 4), X) == []
    with pytest.raises(TypeError, match="where"):
        jax.make_jaxpr(lambda x: jnp.where(x > 0, [1, 2], x))(X)
    with pytest.raises(TypeError, match="sort"):
        jax.make_jaxpr(lambda x: jnp.sort([x, x]))(X)


def test_programs_that_are_run_have_no_such_calls():
    @jax.jit
    def f(x):
        return jnp.where(x > 0, x, 0.0)

    assert "_where" in str(jax.make_jaxpr(f)(X))
    assert "_where" not in str(f.trace(X).jaxpr)
    np.testing.assert_array_equal(f(X), np.where(X > 0, X, 0))
