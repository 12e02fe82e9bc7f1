"""lax.rng_uniform: numbers of a generator of the process."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "int8", "uint8", "int32", "uint32"])
@pytest.mark.parametrize("shape", [(), (0,), (200,), (3, 4)])
def test_range_and_type(dtype, shape):
    low, high = jnp.asarray(3, dtype), jnp.asarray(5, dtype)
    for f in (lax.rng_uniform, jax.jit(lax.rng_uniform, static_argnums=2)):
        x = f(low, high, shape)
        assert x.dtype == dtype and x.shape == shape and not x.weak_type
        assert bool(jnp.all((x >= low) & (x < high)))


def test_each_run_and_each_place_draws_anew():
    f = jax.jit(lambda: (lax.rng_uniform(0.0, 1.0, (4,)), lax.rng_uniform(0.0, 1.0, (4,))))
    draws = np.array([f(), f()]).reshape(4, 4)
    assert len({tuple(row) for row in draws}) == 4
    rows = jax.jit(lambda: lax.scan(lambda c, _: (c, lax.rng_uniform(0.0, 1.0, (4,))), 0, None, length=5)[1])()
    assert len({tuple(row) for row in np.asarray(rows)}) == 5


def test_mean():
    x = lax.rng_uniform(-2.0, 4.0, (20_000,))
    assert abs(float(x.mean()) - 1) < 0.1 and x.weak_type
    counts = np.bincount(np.asarray(lax.rng_uniform(0, 4, (20_000,))))
    assert counts.size == 4 and counts.min() > 4_500


@pytest.mark.parametrize(
    "error, text, call",
    [
        (ValueError, "one dtype, got int32 and float32", lambda: lax.rng_uniform(0, 1.0, (3,))),
        (ValueError, "must be scalars", lambda: lax.rng_uniform(jnp.zeros(2), 1.0, (3,))),
        (ValueError, "negative", lambda: lax.rng_uniform(0.0, 1.0, (-3,))),
        (TypeError, "real numbers", lambda: lax.rng_uniform(1j, 1j, (3,))),
        (TypeError, "sequence of integers", lambda: lax.rng_uniform(0.0, 1.0, 3)),
        (NotImplementedError, "rng_uniform", lambda: jax.vmap(lambda a: lax.rng_uniform(a, 1.0, (3,)))(jnp.zeros(2))),
        (NotImplementedError, "rng_uniform", lambda: jax.grad(lambda a: lax.rng_uniform(a, 1.0, (3,)).sum())(0.0)),
    ],
)
def test_errors(error, text, call):
    with pytest.raises(error, match=text):
        call()
