"""Options of vmap and checkpoint that the tests of transformations do not reach."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp


def test_sum_match():
    x = jnp.arange(6.0).reshape(2, 3)
    product, same = jax.vmap(lambda x, y: (x * y, y), (1, None), None, sum_match=True)(x, 2.0)
    assert product.tolist() == [6, 24] and same == 2
    both = jax.jit(jax.vmap(lambda x: {"a": x, "b": x > 2}, out_axes={"a": None, "b": 0}, sum_match=True))(x)
    assert both["a"].tolist() == [3, 5, 7] and both["b"].tolist() == [[False] * 3, [True] * 3]
    assert jax.vmap(lambda x: x > 1, out_axes=None, sum_match=True)(x).tolist() == [1, 1, 2]
    slope = jax.grad(lambda x: jax.vmap(jnp.sin, out_axes=None, sum_match=True)(x))(x[0])
    np.testing.assert_allclose(slope, np.cos(x[0]), rtol=1e-6)
    with pytest.raises(ValueError, match="out_axes is None"):
        jax.vmap(lambda x: x, out_axes=None)(x)


def test_checkpoint_static_argnames():
    def power(x, n, *, negative=False):
        return -(x**n) if negative else x**n if n > 2 else x

    f = jax.checkpoint(power, static_argnames=("n", "negative"))
    for call in (lambda x: f(x, 3, negative=True), lambda x: f(x, n=3, negative=True)):
        assert call(2.0) == jax.jit(call)(2.0) == -8 and jax.grad(call)(2.0) == -12
        assert jax.vmap(call)(jnp.arange(3.0)).tolist() == [0, -1, -8]
    assert jax.checkpoint(static_argnames="n")(power)(2.0, n=2) == 2
    with pytest.raises(TypeError, match="static_argnames"):
        jax.checkpoint(power, static_argnames=(1,))
    with pytest.raises(NotImplementedError, match="static_argnums"):
        jax.checkpoint(power, concrete=False)
