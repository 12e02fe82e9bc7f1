"""linear_call: values, derivatives and batches, with the transpose that is given."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.custom_derivatives import linear_call


def divide(n, d):
    return linear_call(lambda d, x: x / d, lambda d, t: t / d, d, n)


def doubled(x):
    """Its transpose is wrong by a factor, so that it shows where it is used."""
    return linear_call(lambda _, x: {"a": 2 * x}, lambda _, t: 100 * t["a"], (), x)["a"]


def test_transformations():
    assert float(divide(3.0, 4.0)) == float(jax.jit(divide)(3.0, 4.0)) == 0.75
    assert float(jax.grad(divide)(3.0, 4.0)) == 0.25 == float(jax.grad(jax.jit(divide))(3.0, 4.0))
    assert [float(x) for x in jax.jvp(lambda x: divide(x, 4.0), (1.0,), (2.0,))] == [0.25, 0.5]
    assert float(jax.linear_transpose(doubled, 1.0)(1.0)[0]) == 100 == float(jax.grad(doubled)(1.0))
    assert float(jax.jvp(doubled, (1.0,), (1.0,))[1]) == 2
    # The transpose of the transpose is the function again.
    turned = lambda t: jax.linear_transpose(doubled, 1.0)(t)[0]
    assert float(jax.linear_transpose(turned, 1.0)(1.0)[0]) == 2
    np.testing.assert_allclose(jax.vmap(divide)(jnp.arange(3.0), jnp.array([1.0, 2.0, 4.0])), [0, 0.5, 0.5])
    np.testing.assert_allclose(jax.vmap(divide, (None, 0))(2.0, jnp.array([1.0, 2.0])), [2, 1])
    np.testing.assert_allclose(jax.vmap(jax.grad(divide), (0, None))(jnp.arange(2.0), 4.0), [0.25, 0.25])
    np.testing.assert_allclose(jax.grad(divide, 1)(3.0, 4.0), -3 / 16)
    loop = lambda x: jax.lax.scan(lambda c, _: (divide(c, 2.0), None), x, None, length=3)[0]
    assert float(jax.grad(loop)(1.0)) == 0.125
    z = jnp.float32(3.0)
    assert (
        float(jax.jit(lambda z: jax.grad(lambda x: linear_call(lambda _, x: x * z, lambda _, t: t * z, (), x))(1.0))(z))
        == 3
    )


def test_mistakes():
    with pytest.raises(TypeError, match="argument 'fun_transpose' must be a function"):
        linear_call(lambda r, x: x, 3, (), 1.0)


@pytest.mark.parametrize(
    ("transpose", "error", "text"),
    [
        (lambda r, t: (t,), TypeError, "'fun_transpose' gave the pytree structure"),
        (lambda r, t: jnp.ones(3), ValueError, "'fun_transpose' gave .* expected the types"),
        (lambda r, t: 1 / 0, ZeroDivisionError, "division by zero"),
    ],
)
def test_transposes_that_do_not_fit_are_refused_where_they_are_wanted(transpose, error, text):
    double = lambda x: linear_call(lambda r, x: r * x, transpose, 2.0, x)
    assert float(double(3.0)) == float(jax.jit(double)(3.0)) == 6 and jax.jvp(double, (1.0,), (2.0,))[1] == 4
    assert jax.vmap(double)(jnp.arange(2.0)).tolist() == [0, 2]
    assert float(jax.lax.scan(lambda c, _: (double(c), None), 1.0, None, length=3)[0]) == 8
    for transposed in (jax.grad(double), jax.jit(jax.grad(double)), jax.linear_transpose(double, 1.0)):
        with pytest.raises(error, match=text):
            transposed(1.0)


def test_integers_are_never_transposed():
    triple = lambda x: linear_call(lambda r, x: r * x, lambda r, t: r * t * 1.0, 3, x)
    assert int(triple(2)) == int(jax.checkpoint(triple)(2)) == 6
