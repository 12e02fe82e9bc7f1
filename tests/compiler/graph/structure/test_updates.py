"""A window set at a known place of an array of one value is a padded array: one pass, whoever makes the window."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax

X = np.random.default_rng(0).standard_normal((40, 30)).astype("f4")


def optimized(f, *args):
    got, expected = pullback.jit(f)(*args), f(*map(jnp.asarray, args))
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)
    return pullback.jit(f).lower(*args)


@pytest.mark.parametrize("dtype", ["f4", "f2", "c8", "i4", "?"])
def test_windows_set_inside_of_one_value_take_one_pass(dtype):
    x = (X * 5).astype(dtype)

    def f(x):
        return jnp.full_like(x, 3).at[1:-1, 2:].set(x[1:-1, 2:] | x[:-2, :-2] if dtype == "?" else x[1:-1, 2:] * 2)

    lowered = optimized(f, x)
    assert "dynamic_update_slice" not in lowered.as_text("jaxpr")
    assert len(lowered.as_text("fused").strip().splitlines()) == 2  # a heading, and one nest


def test_the_value_may_be_computed_and_places_are_clamped():
    def f(x, value):
        return lax.dynamic_update_slice(jnp.broadcast_to(value, x.shape), jnp.exp(x[:30, 1:]), (99, -7))

    assert "pad" in optimized(f, X, np.float32(2)).as_text("jaxpr")
    batched = pullback.vmap(f, (0, 0))
    optimized(batched, np.stack([X, X + 1]), np.arange(2, dtype="f4"))
    gradient = pullback.grad(lambda x, v: (f(x, v) ** 2).sum(), (0, 1))
    for a, b in zip(pullback.jit(gradient)(X, np.float32(2)), gradient(jnp.asarray(X), np.float32(2))):
        np.testing.assert_allclose(a, b, rtol=1e-4)


def test_several_windows_and_sums():
    optimized(lambda x: jnp.zeros_like(x).at[:-1].add(jnp.diff(x, axis=0)).at[1:].add(-jnp.diff(x, axis=0)), X)
    optimized(lambda x: x + jnp.zeros_like(x).at[1:].set(jnp.sin(x[1:])), X)
    optimized(lambda x: jnp.zeros_like(x).at[1:].set(x[:0].sum()).at[0].set(1), X)
    optimized(lambda x: jnp.zeros((0, 3)).at[:].set(x[:0, :3]), X)


@pytest.mark.parametrize("dtype", ["f4", "f2", "c8", "i4"])
def test_windows_of_most_of_a_computed_array_take_one_pass(dtype):
    x = (X * 5).astype(dtype)
    for f in (
        lambda x: (x * 2).at[1:-1, 2:].add(x[:-2, :-2]),
        lambda x: (x + 1).at[:, 1:].add(x[:, :-1]).at[:, :-1].add(-x[:, 1:]).at[1:].set(x[:-1] * 3),
        lambda x: jnp.zeros_like(x).at[:-1].add(jnp.diff(x, axis=0)).at[1:].add(-jnp.diff(x, axis=0)),
        lambda x: lax.dynamic_update_slice(x * 3, x[1:, :25] + 1, (7, -30)),
    ):
        lowered = optimized(f, x)
        assert "dynamic_update_slice" not in lowered.as_text("jaxpr")
        assert len(lowered.as_text("fused").strip().splitlines()) == 2
    optimized(lambda x: (x.sum() * 2).astype(dtype).at[()].set(x[0, 0]), x[:1, :1])


def test_windows_of_arrays_that_are_in_memory_stay_updates():
    for f in (
        lambda x: jnp.cumsum(x, 0).at[1:].set(0.5),
        lambda x: lax.fori_loop(0, 9, lambda i, u: u.at[1:-1].add(0.1 * (u[2:] + u[:-2])), x),
    ):
        assert "dynamic_update_slice" in optimized(f, X).as_text("jaxpr")


def test_windows_in_the_steps_of_a_loop():
    def f(x):
        return lax.fori_loop(0, 5, lambda i, u: (0.9 * u).at[1:-1, 1:].add(0.1 * u[2:, 1:]).at[0].set(1), x)

    optimized(f, X)
    gradient = pullback.grad(lambda x: (f(x) ** 2).sum())
    np.testing.assert_allclose(pullback.jit(gradient)(X), gradient(jnp.asarray(X)), rtol=1e-4, atol=1e-5)
    optimized(pullback.vmap(f), np.stack([X, X + 1]))


@pytest.mark.parametrize("width, start", [(3, 0), (40, "traced")])
def test_small_windows_and_unknown_places_stay_updates(width, start):
    def f(x, i):
        window = jnp.sin(x[:width, :20])
        return lax.dynamic_update_slice(jnp.zeros_like(x), window, (0, i if start == "traced" else 5))

    assert "dynamic_update_slice" in optimized(f, X, 4).as_text("jaxpr")


UPDATES = {
    "one element": lambda x, i: x.at[i].set(7),
    "added": lambda x, i: x.at[jnp.stack([i, i, i + 1])].add(2),
    "of several, some equal, some out of bounds": lambda x, i: x.at[jnp.stack([i, 3 * i, 3 * i, 999 - i])].set(
        jnp.arange(4).astype(x.dtype)
    ),
    "clipped": lambda x, i: x.at[jnp.stack([1000 - i, 300 * i])].mul(3, mode="clip"),
    "the least": lambda x, i: x.at[jnp.stack([i, i])].min(0),
    "a window": lambda x, i: lax.dynamic_update_slice(x, x[:3] * 2, (300 * i,)),
    "one after the other": lambda x, i: lax.dynamic_update_slice(x.at[i].set(7).at[i + 1].add(x[i]), x[5:7], (i,)),
}


@pytest.mark.parametrize(
    "name, dtype",
    [(name, dtype) for name in UPDATES for dtype in ("f4", "i4", "c8") if (name, dtype) != ("the least", "c8")],
)
def test_a_choice_between_an_array_and_an_update_chooses_the_window(name, dtype):
    update = UPDATES[name]
    x = (np.random.default_rng(0).standard_normal((4, 300)) * 5).astype(dtype)
    x[:, :2] = [-0.0, np.nan] if dtype != "i4" else [0, 1]
    steps, which = np.array([0, 1, -1, 2]), np.array([True, False, True, False])

    for f in (
        lambda x, i, p: lax.cond(p, update, lambda x, i: x, x, i),
        lambda x, i, p: jnp.where(p, x, update(x, i)),
    ):
        batched = pullback.jit(pullback.vmap(f))
        got = batched(x, steps, which)
        expected = np.stack([f(*map(jnp.asarray, each)) for each in zip(x, steps, which)])
        np.testing.assert_array_equal(got, expected)
        np.testing.assert_array_equal(np.signbit(got.real), np.signbit(expected.real))
        assert "[4,300] = select_n" not in batched.lower(x, steps, which).as_text("jaxpr")


def test_items_of_a_loop_that_are_done_leave_their_arrays_alone():
    def f(i, x):
        return lax.while_loop(lambda c: c[0] < c[1].size, lambda c: (c[0] + 1, c[1].at[c[0]].set(1)), (i, x))

    compiled = pullback.jit(pullback.vmap(f))
    first, x = jnp.array([0, 30]), jnp.zeros((2, 50))
    np.testing.assert_array_equal(compiled(first, x)[1], [[1] * 50, [0] * 30 + [1] * 20])
    assert "f32[2,50] = select_n" not in compiled.lower(first, x).as_text("jaxpr")
