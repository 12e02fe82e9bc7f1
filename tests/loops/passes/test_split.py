"""Loops cut where their conditions change."""

import re

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax
from pullback.util.switches import switches


def test_parts_have_scratch_space_of_their_own():
    x = np.random.default_rng(0).standard_normal((300, 20, 40)).astype("f4")

    def spread(x):
        y = x + jnp.pad(x[:-1], ((1, 0), (0, 0), (0, 0)))
        y = jnp.stack([y, y * y, jnp.abs(y)]).mean(0)
        return jnp.std(y, -1)

    with switches.set(form="written"):
        text = pullback.jit(spread).lower(x).as_text("nests")
    assert text.count("local row") == 2 and "threads" in text.split("parallel", 1)[1]
    np.testing.assert_allclose(pullback.jit(spread)(x), spread(jnp.asarray(x)), rtol=1e-5, atol=1e-6)


def test_the_middle_of_many_shifted_arrays_is_cut_out():
    x = np.random.default_rng(0).standard_normal(20_000).astype("f4")

    def shifted(x):
        return sum((k + 1) * jnp.roll(x, k) for k in range(24))

    program = pullback.jit(shifted)
    text = program.lower(x).as_text("nests")
    middle = [part for part in text.split("vector ") if "select" not in part and part.count("x0[") == 24]
    assert middle, text  # 24 loads without a choice; all 24 rims by themselves would be too much code
    want = sum((k + 1) * np.roll(x.astype("f8"), k) for k in range(24))
    np.testing.assert_allclose(program(x), want, rtol=1e-5, atol=1e-4)


def test_the_middle_is_cut_out_of_loops_inside_each_other():
    x = np.random.default_rng(0).standard_normal((64, 96)).astype("f4")
    weights = [1, 4, 6, 4, 1]

    def blurred(x):
        wide = jnp.pad(x, 2, mode="edge")
        return sum(weights[i] * weights[j] * wide[i : i + 64, j : j + 96] for i in range(5) for j in range(5))

    program = pullback.jit(blurred)
    text = program.lower(x).as_text("nests")
    chosen = re.compile(r"select\((%\d+|\w+\([^)]*\)), \w+\[")  # elements; rows may be
    middle = [part for part in text.split("vector ") if not chosen.search(part) and part.count("x0[") == 25]
    assert middle, text  # neither rows nor columns alone leave few choices
    wide = np.pad(x.astype("f8"), 2, mode="edge")
    want = sum(weights[i] * weights[j] * wide[i : i + 64, j : j + 96] for i in range(5) for j in range(5))
    np.testing.assert_allclose(program(x), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("reduced", [jnp.mean, jnp.max])
def test_blocks_of_rolled_arrays_are_known_but_for_one(reduced):
    x = np.random.default_rng(0).standard_normal((128, 96)).astype("f4")

    def blocks(xp, x, reduced):
        return reduced(xp.roll(x, (3, 5), (0, 1)).reshape(32, 4, 24, 4), (1, 3))

    program = pullback.jit(lambda x: blocks(jnp, x, reduced))
    text = program.lower(x).as_text("nests")
    loops = [part for part in text.split("vector ")[1:] if "x0[" in part]
    assert loops and all("select(lt(i1" not in part for part in loops), text
    want = blocks(np, x, np.mean if reduced is jnp.mean else np.max)
    np.testing.assert_allclose(program(x), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 32])
@pytest.mark.parametrize("shift", [-700, -3, 1, 4, 31, 95])
def test_blocks_of_rolled_vectors(size, shift):
    x = np.random.default_rng(0).standard_normal(960).astype("f4")
    found = pullback.jit(lambda x: jnp.roll(x, shift).reshape(-1, size).sum(1))(x)
    np.testing.assert_allclose(found, np.roll(x, shift).reshape(-1, size).sum(1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "c8", "c16", "i1", "bool"])
@pytest.mark.parametrize("n", [5, 8, 23, 24, 25, 64, 77])
@pytest.mark.parametrize("shifts", [(1, -1), (3, -2), (1,), (-1,), (7, 1, -7)])
def test_rims_of_rows(shifts, n, dtype):
    x = (10 * np.random.default_rng(0).standard_normal((20, n))).astype(dtype)

    def f(xp, x):
        y = xp.roll(x, shifts[0], 1)
        for k, shift in enumerate(shifts):
            y = xp.where(xp.roll(x, shift, 1) == x, y, xp.roll(x, shift + k, 1))
        return y, xp.pad(x, ((0, 0), (2, 1)), mode="edge")[:, :n], y == x

    with pullback.enable_x64(dtype in ("f8", "c16")):
        for found, want in zip(pullback.jit(lambda x: f(jnp, x))(x), f(np, x)):
            np.testing.assert_array_equal(found, want)


def test_the_ends_of_rows_are_vectors_that_ask():
    x = np.random.default_rng(0).standard_normal((20, 100)).astype("f4")
    program = pullback.jit(lambda x: x - jnp.roll(x, 1, 1) + jnp.roll(x, -2, 1))
    text = program.lower(x).as_text("nests")
    assert text.count("rim=True") == 2 and text.count("vector") == 3, text
    np.testing.assert_allclose(program(x), x - np.roll(x, 1, 1) + np.roll(x, -2, 1), rtol=1e-5, atol=1e-6)


def test_long_sides_of_choices_are_not_computed_in_vain():
    x = np.random.default_rng(0).standard_normal((40, 100)).astype("f4")

    def f(x):
        return jnp.concatenate([jnp.sin(x[:, :2]) + jnp.exp(x[:, :2]), jnp.tanh(x[:, 2:])], 1)

    assert "rim=True" not in pullback.jit(f).lower(x).as_text("nests")
    want = np.concatenate([np.sin(x[:, :2]) + np.exp(x[:, :2]), np.tanh(x[:, 2:])], 1)
    np.testing.assert_allclose(pullback.jit(f)(x), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("stride", "dtype"), [(1, "f4"), (2, "f4"), (2, "u1")])
def test_the_middle_of_windows_that_reach_over_edges_asks_nothing(stride, dtype):
    x = np.random.default_rng(0).integers(1, 200, (150, 140)).astype(dtype)
    zero = x.dtype.type(0)

    def pooled(x):
        return lax.reduce_window(x, zero, lax.max, (3, 3), (stride, stride), ((1, 1), (1, 1)))

    program = pullback.jit(pooled)
    parts = re.split("vector|parallel|threads", program.lower(x).as_text("nests"))
    assert any("x0[" in part and "select" not in part for part in parts), parts
    wide = np.pad(x, 1)
    want = np.max([wide[i : i + 150, j : j + 140] for i in range(3) for j in range(3)], 0)[::stride, ::stride]
    np.testing.assert_array_equal(program(x), want)


@pytest.mark.parametrize(("height", "width", "channels"), [(40, 33, 24), (17, 64, 3), (33, 40, 1), (3, 40, 16)])
def test_ends_of_rows_and_columns_are_one_nest_where_all_channels_ask_alike(height, width, channels):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, height, width, channels)).astype("f4")
    w = rng.standard_normal((3, 3, channels)).astype("f4")

    def depthwise(x, w):
        wide = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        return sum(w[i, j] * wide[:, i : i + height, j : j + width] for i in range(3) for j in range(3))

    text = pullback.jit(depthwise).lower(x, w).as_text("nests")
    if (height, channels) == (40, 24):
        assert text.count("y0[") == 3, text  # rows at the ends, the first and last elements of others, and the rest
    wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    want = sum(w[i, j] * wide[:, i : i + height, j : j + width] for i in range(3) for j in range(3))
    np.testing.assert_allclose(pullback.jit(depthwise)(x, w), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_rows_of_a_matrix_that_are_computed_differently_are_written_in_one_pass(dtype):
    rng = np.random.default_rng(0)
    q, v = rng.standard_normal((700, 3)).astype(dtype), rng.standard_normal((700, 3)).astype(dtype)

    def turned(q, v):
        x, y, z = jnp.sin(q.T)
        matrix = jnp.array([[x, y * z, z], [x - y, y, x * z], [z, x + y, 1 - z]])
        return jnp.einsum("ijn,nj->ni", matrix, v)

    with pullback.enable_x64():
        nests = re.split("vector|parallel|threads", pullback.jit(turned).lower(q, v).as_text("nests"))
        assert [part.count("\n      y0[") + part.count("\n    y0[") for part in nests if " y0[" in part] == [3], nests
        x, y, z = np.sin(q.T)
        matrix = np.array([[x, y * z, z], [x - y, y, x * z], [z, x + y, 1 - z]])
        np.testing.assert_allclose(pullback.jit(turned)(q, v), np.einsum("ijn,nj->ni", matrix, v), rtol=2e-5, atol=1e-5)
