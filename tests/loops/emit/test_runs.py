"""Loads at places that mostly follow each other: one access where they do, each by itself where they do not."""

import numpy as np
import pytest

import pullback as pb
from pullback import numpy as jnp

N = 70
BENT = {
    "clip": lambda np_, i, s: np_.clip(i - s, 0, N - 1),
    "clip backwards": lambda np_, i, s: np_.clip(s - i, 0, N - 1),
    "period": lambda np_, i, s: (i + s) % N,
    "period backwards": lambda np_, i, s: (s - i) % N,
    "where": lambda np_, i, s: np_.where(i < s, i, i - s) % N,
    "two bends": lambda np_, i, s: np_.minimum(np_.maximum(i - s, 3), np_.where(i > 50, 40, i)),
    "leaps": lambda np_, i, s: np_.where(i % 2 == 0, i, N - 1 - i),
    "steps of two": lambda np_, i, s: np_.clip(2 * i - s, 0, N - 1),
    "still": lambda np_, i, s: np_.clip(i, s, s) % N,
}


@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("name", BENT)
def test_bent_indices(name, dtype):
    """A shift that goes up to the ends, and away from them by less than a vector."""
    place = BENT[name]
    with pb.enable_x64(True):
        x = (np.random.default_rng(0).normal(size=N) * 50).astype(dtype)
        f = pb.jit(lambda x, s: x[place(jnp, jnp.arange(N), s)])
        g = pb.jit(lambda x, s: jnp.where(jnp.arange(N) > s, x[place(jnp, jnp.arange(N), s)], x))
        for s in (0, 1, 3, 4, 16, 33, 66, 69):
            want = x[place(np, np.arange(N), s)]
            np.testing.assert_array_equal(f(x, s), want)
            np.testing.assert_array_equal(g(x, s), np.where(np.arange(N) > s, want, x))


def test_a_bound_and_its_opposite_in_one_vector():
    """The last lane's place is computed of the last lane, whatever folds: i + 3 - 3 is i, not i + 3."""
    x = np.arange(7, dtype=np.float32)
    f = pb.jit(lambda x: x[jnp.clip(jnp.arange(7) + 3, 0, 6)] - x[jnp.clip(jnp.arange(7) - 3, 0, 6)])
    np.testing.assert_array_equal(f(x), [3, 4, 5, 6, 5, 4, 3])


def test_no_gather_where_lanes_follow_each_other():
    """One access for all lanes stands beside the gather."""
    x = np.zeros(500, np.float32)
    text = pb.jit(lambda x, s: x[jnp.clip(jnp.arange(500) - s, 0, 499)] * 2).lower(x, 3).as_text("llvm")
    assert "usual" in text
    text = pb.jit(lambda x, i: x[i] * 2).lower(x, np.arange(500)).as_text("llvm")
    assert "usual" not in text
