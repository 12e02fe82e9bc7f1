"""Extremes over long windows."""

import numpy as np
import pytest

import pullback
from pullback import lax

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["f4", "i4", "bool"])
@pytest.mark.parametrize("n, low, high", [(24, 0, 0), (40, 39, 0), (40, 0, 39), (31, 15, 15), (60, 59, 3)])
def test_extremes_over_long_windows_are_made_of_those_over_half(n, low, high, dtype):
    x = (50 * RNG.standard_normal((3, 40))).astype(dtype)
    if dtype == "f4":
        x[0, 7], x[1, 20], x[2, 30:32] = np.nan, -np.inf, (0.0, -0.0)
    rest = {"f4": -np.inf, "i4": -(1 << 31), "bool": False}[dtype]
    init = np.asarray(rest, dtype)

    def f(x):
        return lax.reduce_window(x, init, lax.max, (1, n), (1, 1), ((0, 0), (low, high)))

    padded = np.pad(x, ((0, 0), (low, high)), constant_values=init)
    want = np.lib.stride_tricks.sliding_window_view(padded, n, axis=1).max(-1)
    np.testing.assert_array_equal(pullback.jit(f)(x), want)
    assert "sequential" not in pullback.jit(f).lower(x).as_text("nests")
