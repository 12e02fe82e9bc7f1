"""Arrays that are flattened are read where they lie, whatever their rank."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp


@pytest.mark.parametrize("shape", [(5, 7), (3, 5, 7), (2, 3, 5, 7), (2, 3, 1, 5, 7)])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_a_product_of_flattened_arrays_divides_no_index(shape, dtype):
    """From three axes on each element was gathered from a place that two divisions gave: 14 times as long."""
    x = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    y = (1 + np.cos(x.real)).astype(dtype)
    for function in (jnp.vdot, lambda x, y: jnp.sum(x.ravel() * y.reshape(-1))):
        program = jax.jit(function).lower(x, y)
        assert "floordiv" not in program.as_text("nests") and "floormod" not in program.as_text("nests")
        np.testing.assert_allclose(program.compile()(x, y), np.vdot(x, y), rtol=1e-5)


def test_parts_of_a_flattened_array_are_cut_anew():
    x = np.arange(2 * 3 * 5 * 7, dtype=np.float32).reshape(2, 3, 5, 7)
    got = jax.jit(lambda x: jnp.sum(x.reshape(6, 35).T.reshape(7, 5, 6) * x.reshape(7, 5, 6), 1))(x)
    np.testing.assert_allclose(got, (x.reshape(6, 35).T.reshape(7, 5, 6) * x.reshape(7, 5, 6)).sum(1), rtol=1e-6)
