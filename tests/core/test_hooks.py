"""Operators that arrays and tracers are given."""

import numpy as np

import pullback as jax
import pullback.numpy as jnp


def test_the_class_of_arrays_has_operators_that_take_traced_ones():
    """scico takes them there."""
    concrete = type(jnp.ones(2))
    x, y = jnp.array([5, 7]), jnp.array([2, 3])
    for name in ("__sub__", "__rsub__", "__lt__", "__divmod__"):
        operator = getattr(concrete, name)
        for call in (operator, jax.jit(operator), lambda a, b, name=name: getattr(a, name)(b)):
            np.testing.assert_array_equal(call(x, y), getattr(np.ndarray, name)(np.array(x), np.array(y)))
    _, dot = jax.jvp(concrete.__neg__, (1.5,), (2.0,))
    assert dot == -2 and concrete.__sub__(x, object()) is NotImplemented
