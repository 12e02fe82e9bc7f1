"""Rows of one array that are chosen: rolls and padding in two and three directions have no loop for each side."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax
from pullback.loops.ir import Buffer, Builder
from pullback.loops.ir.print import to_text
from pullback.loops.passes.places import places

RNG = np.random.default_rng(0)


def nests(f, *args):
    return pullback.jit(f).lower(*args).as_text("nests")


def laplacian(xp, u, rolled):
    return sum(rolled(xp, u, s, a) for a in range(u.ndim) for s in (1, -1)) - 2 * u.ndim * u


def by_roll(xp, u, s, a):
    return xp.roll(u, s, a)


def by_join(xp, u, s, a):
    first, last = (lax.slice_in_dim(u, k, k + 1, axis=a) for k in (0, u.shape[a] - 1))
    wide = xp.concatenate([last, u, first], a)
    return wide[tuple([slice(1 - s, 1 - s + u.shape[a]) if k == a else slice(None) for k in range(u.ndim)])]


@pytest.mark.parametrize("rolled", [by_roll, by_join])
@pytest.mark.parametrize("shape", [(40, 30), (9, 12, 33)])
def test_a_stencil_has_one_long_loop(shape, rolled):
    x = RNG.standard_normal(shape).astype("f4")
    text = nests(lambda x: laplacian(jnp, x, rolled), x)
    assert text.count("vector") == 1 + text.count("rim=True"), text
    np.testing.assert_allclose(
        pullback.jit(lambda x: laplacian(jnp, x, rolled))(x), laplacian(np, x.astype("f8"), by_roll), atol=1e-4
    )


def test_diagonals_and_corners():
    x = RNG.standard_normal((70, 50)).astype("f4")
    moves = [(a, b) for a in (-1, 0, 2) for b in (-3, 0, 1)]

    def f(xp, x):
        return sum((k + 1) * xp.roll(x, m, (0, 1)) for k, m in enumerate(moves))

    assert nests(lambda x: f(jnp, x), x).count("vector") <= 3
    np.testing.assert_allclose(pullback.jit(lambda x: f(jnp, x))(x), f(np, x.astype("f8")), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["wrap", "reflect", "symmetric", "edge", "constant"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i4", "c8", "bool"])
@pytest.mark.parametrize("shape", [(2, 2), (5, 3), (40, 70)])
def test_padded_arrays(shape, dtype, mode):
    x = (10 * RNG.standard_normal(shape)).astype(dtype)

    def f(xp, x):
        wide = xp.pad(x, 1, mode=mode)
        return xp.where(wide[:-2, 2:] == wide[2:, 1:-1], wide[1:-1, :-2], wide[:-2, :-2])

    with pullback.enable_x64(dtype == "f8"):
        np.testing.assert_array_equal(pullback.jit(lambda x: f(jnp, x))(x), f(np, x))


@pytest.mark.parametrize("shape", [(1, 40), (40, 1), (2, 64), (64, 2), (0, 40), (33, 17), (17, 1, 33), (6, 40, 20)])
@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (-1, -2), (0, 0), (0, -1)])
def test_rolls_by_more_than_there_is(shape, axes):
    x = RNG.standard_normal(shape).astype("f4")

    def f(xp, x):
        return xp.roll(x, (3, -100), axes) - xp.roll(xp.exp(x), (-1, 7), axes)

    np.testing.assert_allclose(pullback.jit(lambda x: f(jnp, x))(x), f(np, x), rtol=1e-5, atol=1e-5)


def test_rows_along_which_more_differs_are_cut():
    x, y = RNG.standard_normal((2, 60, 80)).astype("f4")

    def f(xp, x, y):
        return xp.concatenate([x[:20], y[20:]]) * xp.roll(x, (1, 1), (0, 1))

    np.testing.assert_array_equal(pullback.jit(lambda *a: f(jnp, *a))(x, y), f(np, x, y))


def test_elements_of_arrays_that_change_in_between_are_not_taken_for_those_before():
    """A corner is read before the loop that overwrites it, and is what it was."""
    x = RNG.standard_normal((40, 40)).astype("f4")

    def step(xp, x):
        return xp.roll(x, (1, 1), (0, 1)) * 0.5 + xp.roll(x, (-1, 1), (0, 1)) * x[0, 0]

    want = x
    for _ in range(3):
        want = step(np, want)
    found = pullback.jit(lambda x: lax.fori_loop(0, 3, lambda _, x: step(jnp, x), x))(x)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-6)


def test_what_is_the_same_along_a_row_is_chosen_once():
    b = Builder()
    x, y = b.input("x", "f32", 6400), b.output("y", "f32", 6400)
    with b.loop(100) as i, b.loop(64) as j:
        up = b.select(b.op("lt", i, 1), b.load(x, j + 6336), b.load(x, (i - 1) * 64 + j))
        left = b.select(b.op("lt", j, 1), b.load(x, i * 64 + 63), b.load(x, i * 64 + j - 1))
        b.store(y, i * 64 + j, b.op("add", up, left))
    text = to_text(places(b.function("f")))
    assert "x[select(lt(i, 1)" in text and "x[select(lt(j" not in text


def test_lanes_do_not_walk_along_chosen_places():
    """Columns of a transposed array lie next to each other: there the loop is cut."""
    x = RNG.standard_normal((64, 64)).astype("f4")

    def f(xp, x):
        return xp.roll(x.T, (1, 1), (0, 1)) + x

    np.testing.assert_array_equal(pullback.jit(lambda x: f(jnp, x))(x), f(np, x))


def test_gradients_of_rolls():
    x = RNG.standard_normal((30, 40)).astype("f4")

    def loss(x):
        return jnp.sum(laplacian(jnp, x, by_roll) ** 3) / 3

    y = laplacian(np, x.astype("f8"), by_roll)
    want = laplacian(np, y * y, by_roll)
    np.testing.assert_allclose(pullback.jit(pullback.grad(loss))(x), want, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("space", ["temporary", "input"])
def test_elements_read_before_a_nest_are_not_read_in_it_from_memory_that_others_have_then(space):
    """The last mention of a temporary ends its life: what the nest writes may lie where it was."""
    b = Builder()
    u, v = (b.buffer(name, "f32", 2, space) for name in "uv")
    t, y = b.temporary("t", "f32", 4), b.output("y", "f32", 4)
    if space == "temporary":
        with b.loop(2) as i:
            b.store(u, i, 1.0)
            b.store(v, i, 2.0)
    (u0, u1), (v0, v1) = ([b.let(b.load(buffer, k)) for k in (0, 1)] for buffer in (u, v))
    with b.loop(2) as i, b.loop(2) as j:
        first = b.op("lt", j, 1)
        b.store(t, i * 2 + j, b.select(b.op("lt", i, 1), b.select(first, v0, v1), b.select(first, u0, u1)))
    with b.loop(4) as k:
        b.store(y, k, b.load(t, k))
    function = b.function("f")
    text = to_text(places(function, last=True))
    assert ("u[select(" in text or "v[select(" in text) == (space == "input"), text


def test_stores_look_at_what_was_read_of_their_own_memory(monkeypatch):
    """Straight code has thousands of elements and of stores: each store looked at all elements before it."""

    b = Builder()
    u, t, y = b.input("u", "f32", 80), b.temporary("t", "f32", 80), b.output("y", "f32", 80)
    for k in range(80):
        b.store(t, k, b.let(b.load(u, k)))
        with b.loop(4) as i:
            b.store(y, i, b.load(t, k))
    function = b.function("f")
    looked, plain = [], Buffer.__hash__
    monkeypatch.setattr(Buffer, "__hash__", lambda buffer: looked.append(1) or plain(buffer))
    assert places(function) is function
    assert len(looked) < 2000
