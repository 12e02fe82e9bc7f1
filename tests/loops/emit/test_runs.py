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


@pytest.mark.parametrize("mode", [None, "clip", "wrap", "fill"])
@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_windows_from_anywhere(dtype, mode):
    """Windows at places that data give: inside, over both ends, and where places wrap around."""
    x = (np.random.default_rng(0).normal(size=N) * 50).astype(dtype)
    starts = np.array([0, 3, N - 20, N - 7, -5, -N, -N - 9, N + 4, 2**31 - 12, -(2**31)], np.int32)
    with pb.enable_x64(False):
        f = lambda x, s: jnp.take(x, s[:, None] + jnp.arange(20), mode=mode, fill_value=7 if mode == "fill" else None)
        got, total = pb.jit(f)(x, starts), pb.jit(lambda x, s: f(x, s).astype("f4").sum(1))(x, starts)
        with pb.disable_jit():
            want = np.asarray(f(jnp.asarray(x), jnp.asarray(starts)))
    np.testing.assert_array_equal(got, want)
    np.testing.assert_allclose(total, want.astype("f4").sum(1), rtol=1e-5, atol=1e-3)


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


def test_lanes_go_along_windows():
    """A window at an unknown place is read by one access for all lanes, and summed along it."""
    x, starts = np.zeros(5000, np.float32), np.zeros(300, np.int32)
    for f in (lambda x, s: x[s[:, None] + jnp.arange(64)], lambda x, s: x[s[:, None] + jnp.arange(64)].sum(1)):
        assert "usual" in pb.jit(f).lower(x, starts).as_text("llvm")
