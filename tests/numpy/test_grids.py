"""What is written with brackets: mgrid, ogrid, r_, c_, s_."""

from __future__ import annotations

import numpy as np
import pytest
from against_numpy import assert_same

import pullback
import pullback.numpy as jnp
from pullback.errors import ConcretizationTypeError

SLICES = [
    np.s_[0:4],
    np.s_[0:4, 0:2],
    np.s_[0:1:3j],
    np.s_[0:1:3j, 0:3],
    np.s_[:3],
    np.s_[5:0:-2],
    np.s_[0:1:0.25, 1:1],
]


@pytest.mark.parametrize("key", SLICES, ids=str)
def test_grids(key):
    assert_same(jnp.mgrid[key], np.mgrid[key])
    assert_same(list(jnp.ogrid[key]), list(np.ogrid[key]))


X, A = np.arange(3.0, dtype=np.float32), np.arange(6, dtype=np.int32).reshape(2, 3)


@pytest.mark.parametrize(
    "key",
    [(1, 2, 3), (X, 5, X), np.s_[0:3, 7], np.s_[-1:1:3j], ("0,2", X, X), ("-1", A, A), ("1", A, A), ("0,2,0", X, X),
     ("0,2,1", X, X), ("0,3,-1", A, A), ("0,3", X, X), (X,)],
    ids=str,
)  # fmt: skip
def test_joining(key):
    ours = tuple(jnp.asarray(k) if isinstance(k, np.ndarray) else k for k in key) if isinstance(key, tuple) else key
    assert_same(jnp.r_[ours], np.r_[key])
    if not isinstance(key, tuple) or not isinstance(key[0], str):
        return
    assert_same(jnp.c_[ours], np.c_[key])


def test_columns_and_matrices():
    assert_same(jnp.c_[X, X], np.c_[X, X])
    assert_same(jnp.c_[A, A], np.c_[A, A])
    assert_same(jnp.c_[1:4, 2:5], np.c_[1:4, 2:5])
    assert_same(jnp.r_["r", X, X], np.concatenate([X, X])[None])
    assert_same(jnp.r_["c", X, X], np.concatenate([X, X])[:, None])
    assert jnp.s_[1:2, ::3] == (slice(1, 2), slice(None, None, 3))


def test_mistakes():
    with pytest.raises(ValueError, match="could not understand directive 'foo'"):
        jnp.r_["foo", X]
    with pytest.raises(ConcretizationTypeError):
        pullback.jit(lambda n: jnp.mgrid[0:n])(3)
