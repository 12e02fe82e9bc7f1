"""Mutable arrays: reads and writes outside and inside of traced functions, and where they end."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import ref as refs


def test_reads_and_writes():
    r = jax.new_ref(jnp.arange(3.0))
    assert isinstance(r, jax.Ref) and r.shape == (3,) and r.dtype == np.float32 and r.ndim == 1 and r.size == 3
    r[0] = 5
    r[...] += 1
    r[1:] *= 2
    np.testing.assert_array_equal(r[...], [6, 4, 6])
    np.testing.assert_array_equal(r[jnp.array([2, 0])], [6, 6])
    assert float(refs.swap(r, 1, 9.0)) == 4
    refs.set(r, None, jnp.ones(3))
    refs.addupdate(r, jnp.array([0, 0]), 1.0)
    np.testing.assert_array_equal(refs.get(r), [3, 1, 1])
    kept = r[...]
    r[...] = 0
    assert kept[0] == 3 and "Ref(" in repr(r)
    np.testing.assert_array_equal(jax.freeze(r), [0, 0, 0])
    with pytest.raises(ValueError, match="freed"):
        r[...]
    assert jax.empty_ref(jax.ShapeDtypeStruct((2,), jnp.int32))[...].dtype == np.int32


def f(x):
    r = jax.new_ref(x)
    r[...] *= x
    for i in range(3):
        r[i] += i
    return r[...].sum()


def test_inside_of_transformations():
    x = jnp.arange(3.0)
    assert float(f(x)) == float(jax.jit(f)(x)) == 8
    np.testing.assert_array_equal(jax.grad(f)(x), 2 * x)
    np.testing.assert_array_equal(jax.jit(jax.grad(f))(x), 2 * x)
    np.testing.assert_array_equal(jax.vmap(f)(jnp.stack([x, 2 * x])), [8, 23])
    r = jax.new_ref(x)
    assert float(jax.grad(lambda y: (r[...] * y).sum())(1.0)) == 3


def test_what_is_not_supported_says_so():
    r = jax.new_ref(jnp.zeros(3))

    def write(x):
        r[...] = x

    for bad in (jax.jit(lambda: r[...] + 1), lambda: jax.jit(write)(jnp.ones(3)), lambda: jax.vmap(write)(jnp.ones(3)),
                lambda: jax.lax.fori_loop(0, 3, lambda i, x: x + r[i], 0.0)):  # fmt: skip
        with pytest.raises(NotImplementedError, match="made outside of it"):
            bad()
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.jit(lambda r: r[...])(r)
    with pytest.raises(ValueError, match="shape"):
        r[...] = jnp.ones(4)
    with pytest.raises(ValueError, match="dtype"):
        r[0] = jnp.complex64(1j)
    with pytest.raises(TypeError, match="Ref itself"):
        jax.new_ref(r)
    kept = []
    jax.jit(lambda x: kept.append(jax.new_ref(x)))(1.0)
    with pytest.raises(ValueError, match="has ended"):
        kept[0][...]
