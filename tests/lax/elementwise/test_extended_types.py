"""Element types that users define: conversions, movement, and how they are added in derivatives."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback import lax
from pullback.core import ShapedArray
from pullback.util import dtypes


class MostRules:
    """Floats, or pairs of them, of which derivatives take the most instead of the sum."""

    @staticmethod
    def physical_element_aval(dtype):
        return ShapedArray((2,) * dtype.pairs, np.dtype(np.float32))

    @staticmethod
    def convert_from(dtype, other):
        return other == np.float32

    @staticmethod
    def convert_to(other, dtype):
        return other == np.float32

    @staticmethod
    def add(dtype, x, y):
        most = lax.max(lax.convert_element_type(x, jnp.float32), lax.convert_element_type(y, jnp.float32))
        return lax.convert_element_type(most, dtype)

    @staticmethod
    def zero(dtype):
        return lax.convert_element_type(np.full((2,) * dtype.pairs, -np.inf, np.float32), dtype)

    @staticmethod
    def tangent_dtype(dtype):
        return dtype


class most_type(dtypes.extended):
    pass


class Most(dtypes.ExtendedDType):
    _rules = MostRules
    type = most_type

    def __init__(self, pairs=False):
        self.pairs = pairs
        self.name = "most2" if pairs else "most"

    def __reduce__(self):
        return _again, (self.pairs,)


def _again(pairs):
    return PAIRS if pairs else MOST


MOST, PAIRS = Most(), Most(True)


def most(x, dtype=MOST):
    return lax.convert_element_type(x, dtype)


def floats(x):
    return lax.convert_element_type(x, jnp.float32)


def test_conversions_and_what_is_known_of_an_array():
    x = most(jnp.arange(3.0))
    assert (x.dtype, x.shape, x.ndim, x.nbytes) == (MOST, (3,), 1, 12) and isinstance(x, jax.Array)
    assert jnp.issubdtype(x.dtype, most_type) and jnp.issubdtype(x.dtype, jax.dtypes.extended)
    assert floats(x).tolist() == [0, 1, 2] and most(x) is x and repr(x).startswith("EArray([0., 1., 2.]")
    pairs = most(jnp.arange(6.0).reshape(3, 2), PAIRS)
    assert pairs.shape == (3,) and floats(pairs).shape == (3, 2)
    for f in (lambda: lax.convert_element_type(jnp.arange(3), MOST), lambda: lax.convert_element_type(x, jnp.float16)):
        with pytest.raises(ValueError, match="Cannot convert_element_type from"):
            f()
    with pytest.raises(TypeError, match="convert it first"):
        np.asarray(x)
    with pytest.raises(TypeError, match="reduce_sum does not accept dtype most"):
        jnp.sum(x)
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), jax.device_put(x), jnp.asarray(x)):
        assert other.dtype is MOST and floats(other).tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", [MOST, PAIRS])
def test_movement_and_loops(dtype):
    words = jnp.arange(6.0).reshape(3, 2) if dtype is PAIRS else jnp.arange(3.0)

    def moved(x):
        both = jnp.stack([x, jnp.broadcast_to(x, (3,))])
        where = jnp.where(jnp.array([True, False, True]), x, lax.rev(x, (0,)))
        carry, ys = lax.scan(lambda c, _: (c, c), x, None, length=2)
        chosen = lax.cond(jnp.sum(floats(x)) > 0, lambda x: x, lambda x: lax.rev(x, (0,)), x)
        looped = lax.fori_loop(0, 2, lambda _, c: lax.rev(c, (0,)), x)
        return [
            floats(y) for y in (both, where, carry, ys, chosen, looped, jnp.zeros_like(x), lax.full((2,), 3.0, dtype))
        ]

    x = most(words, dtype)
    for ours, plain in zip(moved(x), jax.jit(moved)(x)):
        assert np.array_equal(ours, plain)
    assert np.array_equal(moved(x)[1], words.at[1].set(words[1])) and np.array_equal(moved(x)[0][1], words)
    assert np.array_equal(jax.jit(lambda x: x)(x)._base_array, words)
    assert np.array_equal(jax.vmap(lambda x: floats(x) * 2)(x), words * 2)
    text = str(jax.make_jaxpr(lambda x: most(floats(x) * 2, dtype))(x))
    assert "from_edtype[dtype=float32]" in text and f"to_edtype[edtype={dtype}]" in text


def test_derivatives_add_as_the_type_says():
    def f(x):
        y = most(x)
        _, ys = lax.scan(lambda c, k: (c, floats(y) * k), 0.0, jnp.arange(1.0, 4.0))
        return (floats(y) * 5).sum() + ys.sum()

    x = jnp.arange(3.0)
    for grad in (jax.grad(f), jax.jit(jax.grad(f)), jax.grad(jax.checkpoint(f))):
        assert grad(x).tolist() == [5, 5, 5]
    assert float(jax.jvp(f, (x,), (jnp.ones(3),))[1]) == 33
    slopes = jax.grad(lambda y: (floats(y) * jnp.array([1.0, 2.0, 3.0])).sum() + (floats(y) * 2).sum(), allow_int=True)
    assert floats(slopes(most(x))).tolist() == [2, 2, 3]
    assert floats(jax.grad(lambda y, z: z * 1.0, allow_int=True)(most(x), 1.0)).tolist() == [-np.inf] * 3
    with pytest.raises(TypeError, match="grad"):
        jax.grad(lambda y: floats(y).sum())(most(x))
