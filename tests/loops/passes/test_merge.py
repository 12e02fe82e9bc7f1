"""Loops one in the other that walk along memory as one."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax
from pullback.loops.ir import Builder
from pullback.loops.ir.interpret import interpret
from pullback.loops.ir.ir import Loop
from pullback.loops.ir.visit import statements
from pullback.loops.passes.merge import merge

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


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq"])
@pytest.mark.parametrize("sign", [1, -1])
def test_bounds_of_the_row_are_bounds_of_the_number(name, sign):
    """For every place of the bound, and with what differs from step to step; equality stays a question to the row."""
    b = Builder()
    x, y = b.input("x", "f32", 15), b.output("y", "f32", 7 * 15)
    with b.loop(7, "sequential") as k, b.loop(5) as i, b.loop(3) as j:
        condition = b.op(name, i + k, 5) if sign > 0 else b.op(name, k - 1, i)
        b.store(y, k * 15 + i * 3 + j, b.select(condition, b.load(x, i * 3 + j), 0.5))
    function = b.function("f")
    after = merge(function)
    data = [np.arange(15, dtype="f4")]
    np.testing.assert_array_equal(interpret(after, data)[0], interpret(function, data)[0])
    assert sum(isinstance(stmt, Loop) for stmt in statements(after.body)) == (3 if name == "eq" else 2)


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4"])
@pytest.mark.parametrize("channels", [1, 2, 3, 5])
def test_pools_of_pixels_walk_along_memory(dtype, channels):
    x = (RNG.standard_normal((2, 9, 11, channels)) * 50).astype(dtype)
    least = np.array(np.iinfo(dtype).min if dtype != "f4" else -np.inf, dtype)[()]
    ours = pullback.jit(lambda x: lax.reduce_window(x, least, lax.max, (1, 3, 3, 1), (1,) * 4, "SAME"))
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=least)
    want = np.max([padded[:, i : i + 9, j : j + 11] for i in range(3) for j in range(3)], 0)
    np.testing.assert_array_equal(ours(x), want)
