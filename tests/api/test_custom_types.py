"""Custom rules that give other types than the function: an error wherever the function was traced before."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp

X = jnp.arange(3.0)
WRONG = {
    "shape": jnp.sum,
    "rank": lambda y: y[None],
    "dtype": lambda y: y.astype("float16"),
    "count": lambda y: (y, y),
    "container": lambda y: [y],
}
INSIDE = {
    "jit": lambda f, x: jax.jit(f)(x),
    "scan": lambda f, x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "cond": lambda f, x: jax.lax.cond(x[0] < 3, f, lambda x: x, x),
    "checkpoint": lambda f, x: jax.checkpoint(f)(x),
    "while": lambda f, x: jax.lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1])), (0, x))[1],
}


def with_jvp(change):
    f = jax.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda primals, tangents: (change(primals[0] * 2), change(tangents[0] * 2)))
    return f


def with_vjp(change):
    f = jax.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (change(x * 2), None), lambda _, bar: (bar * 2,))
    return f


@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("made", [with_jvp, with_vjp])
def test_rules_of_other_types(made, wrong, inside):
    with pytest.raises(TypeError, match=r"(?i)custom[ _](jvp|vjp).*rule"):
        jax.jvp(lambda x: INSIDE[inside](made(WRONG[wrong]), x), (X,), (X,))
    if inside != "while":
        with pytest.raises(TypeError, match=r"(?i)custom[ _](jvp|vjp).*rule"):
            jax.grad(lambda x: jnp.sum(INSIDE[inside](made(WRONG[wrong]), x)))(X)


@pytest.mark.parametrize("inside", ["jit", "scan", "cond", "checkpoint"])
@pytest.mark.parametrize("made", [with_jvp, with_vjp])
def test_weak_types_may_differ(made, inside):
    grad = jax.grad(lambda x: jnp.sum(INSIDE[inside](made(lambda y: y + 0.0), x)))(X)
    assert grad.tolist() == [2.0 ** (1 + (inside == "scan"))] * 3


def test_python_numbers_as_cotangents_under_vmap():
    product = jax.custom_vjp(lambda x, y: x * y)
    product.defvjp(lambda x, y: (x * y, None), lambda _, g: (1.0, 2))
    x_bar, y_bar = jax.vmap(jax.grad(product, (0, 1)))(jnp.ones(3), jnp.ones(3))
    np.testing.assert_array_equal(x_bar, [1, 1, 1])
    assert (x_bar.dtype, x_bar.weak_type) == (np.float32, True) and y_bar.dtype == np.int32  # as they are without vmap
