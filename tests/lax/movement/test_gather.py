"""Gathers of whole slices of an axis by number, which the reference takes at once, against programs."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(4, 5, 3)).astype("f4"))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(), (1,), (6,), (2, 3)])
@pytest.mark.parametrize("mode", ["clip", "fill", "wrap", "drop"])
@pytest.mark.parametrize("dtype", ["i1", "i4", "u1"])
def test_slices_of_an_axis(axis, shape, mode, dtype):
    low = 0 if dtype[0] == "u" else -9
    for index in (RNG.integers(low, 9, shape).astype(dtype), RNG.integers(0, 3, shape).astype(dtype)):
        if mode == "drop":
            take = lambda x, i: x.at[(slice(None),) * axis + (i,)].get(mode="fill", fill_value=7)
        else:
            take = lambda x, i: jnp.take(x, i, axis=axis, mode=mode)
        want = pullback.jit(take)(X, index)
        for _ in range(3):
            np.testing.assert_array_equal(take(X, index), want)
        if mode == "wrap" or ((index >= 0).all() and (index < X.shape[axis]).all()):
            np.testing.assert_array_equal(want, np.take(np.asarray(X), index, axis, mode="wrap"))
