"""Loops one in the other that walk along memory as one."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("mode", ["edge", "constant", "wrap", "reflect"])
def test_rows_of_a_padded_array_are_one_loop(mode):
    x = RNG.standard_normal((3, 2157, 12)).astype("f4")
    padded = pullback.jit(lambda x: jnp.pad(x, [(0, 0), (1, 0), (0, 0)], mode=mode))
    total = pullback.jit(lambda x: jnp.pad(x, [(0, 0), (1, 0), (0, 0)], mode=mode).sum())
    want = np.pad(x, [(0, 0), (1, 0), (0, 0)], mode=mode)
    np.testing.assert_array_equal(padded(x), want)
    np.testing.assert_allclose(total(x), want.astype("f8").sum(), rtol=1e-5)
    rows = total.lower(x).as_text("nests")
    whole = 2157 if mode in ("constant", "wrap") else 2156  # edge and reflect read the first row, or the second, twice
    assert f"< {whole * 12} " in rows, rows


def test_loops_whose_counters_are_read_for_something_else_stay():
    x = RNG.standard_normal((2157, 12)).astype("f4")

    def numbered(x):
        rows = jnp.pad(x, [(1, 0), (0, 0)])
        return (rows * jnp.arange(12, dtype="f4")).sum(), (rows * jnp.arange(2158.0)[:, None]).sum()

    want = np.pad(x.astype("f8"), [(1, 0), (0, 0)])
    found = pullback.jit(numbered)(x)
    np.testing.assert_allclose(found[0], (want * np.arange(12)).sum(), rtol=1e-5, atol=1e-2)
    np.testing.assert_allclose(found[1], (want * np.arange(2158)[:, None]).sum(), rtol=1e-5, atol=1.0)
