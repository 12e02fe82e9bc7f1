"""Sums of many updates into few places: at least as accurate as pairwise ones, however uneven."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp

CASES = [(300, 3, ()), (1000, 4, (3,)), (20_000, 1, ()), (70_003, 10, (2,)), (70_000, 50, ()), (70_000, 9000, ())]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_sums_of_many_updates_err_by_few_units(dtype):
    rng = np.random.default_rng(0)
    with pullback.enable_x64(True):
        eps = float(jnp.finfo(dtype).eps)
        for n, places, window in CASES:
            x = np.asarray(jnp.asarray(rng.uniform(0, 1, (n, *window)), dtype))
            where = np.maximum(rng.integers(-12 * places, places, n), 0)  # one place gets nearly all
            where[:places] = np.arange(places)
            true = np.zeros((places, *window), np.clongdouble)
            np.add.at(true, where, x.astype(np.clongdouble))
            if dtype == "float16" and np.max(np.abs(true)) > 6e4:
                continue
            for way in (lambda f: f, pullback.jit):
                added = way(lambda x, w=where, p=places: pullback.ops.segment_sum(x, w, p))(x)
                taken = way(lambda x, w=where, t=true: jnp.zeros(t.shape, x.dtype).at[w].subtract(x))(x)
                # Of float64 some 16 updates of a place are added as they come, as others add all: by chance errors of
                # the one that gets nearly all cancel out but for the root of their number.
                units = 2 if eps > 1e-10 or 16 * true.size <= x.size else n**0.5
                for found in (added, -taken):
                    assert found.dtype == jnp.dtype(dtype)
                    assert np.max(np.abs(np.asarray(found).astype(np.clongdouble) - true) / np.abs(true)) <= units * eps


def test_what_is_not_added_to_keeps_its_sign_and_infinities_stay():
    where = np.arange(1000) % 3
    x = np.ones(1000, np.float32)
    x[3], x[4] = np.inf, np.nan
    for way in (lambda f: f, pullback.jit):
        start = np.full(6, -0.0, np.float32)
        added = np.asarray(way(lambda s, x: s.at[where].add(x))(jnp.asarray(start), x))
        taken = np.asarray(way(lambda s, x: s.at[where].subtract(x))(jnp.asarray(start), x))
        np.testing.assert_array_equal(added, [np.inf, np.nan, 333, 0, 0, 0])
        np.testing.assert_array_equal(taken, [-np.inf, np.nan, -333, 0, 0, 0])
        assert np.all(np.signbit(added[3:])) and np.all(np.signbit(taken[3:]))


@pytest.mark.parametrize("kind", ["min", "max"])
@pytest.mark.parametrize("dtype", ["float32", "int16", "uint32", "bfloat16"])
def test_extrema_of_many_updates_are_found_by_threads(kind, dtype):
    """Shares of the updates, each with places of its own: what nothing reaches keeps what it was."""
    rng = np.random.default_rng(1)
    where = np.where(rng.random(70_001) < 0.9, rng.integers(0, 70, 70_001), -200)  # some have no place
    x = np.array(jnp.asarray(rng.integers(0 if dtype[0] == "u" else -9000, 9000, 70_001), dtype))
    x[5], where[5] = (np.nan, 3) if dtype == "float32" else (x[5], 3)
    start = np.asarray(jnp.asarray(np.arange(100), dtype))
    way = pullback.jit(lambda s, x, w: getattr(s.at[w], kind)(x, mode="drop", wrap_negative_indices=False))
    assert "part" in way.lower(start, x, where).as_text("loops")
    expected = start.copy()
    kept = where >= 0
    with np.errstate(invalid="ignore"):
        getattr(np, f"{kind}imum").at(expected, where[kept], x[kept])
    np.testing.assert_array_equal(np.asarray(way(start, x, where)).astype(float), expected.astype(float))


@pytest.mark.parametrize("n", [32, 33, 131, 1026])
def test_iterations_in_turns_do_what_they_do_one_by_one(n):
    """Four updates a turn, and those that are left: in order, and without those that have no place."""
    rng = np.random.default_rng(n)
    where = rng.integers(-5, 12, n)
    x = rng.standard_normal((n, 3)).astype(np.float32)
    way = pullback.jit(lambda x, w: jnp.zeros((7, 3)).at[w].set(x, mode="drop", wrap_negative_indices=False))
    expected = np.zeros((7, 3), np.float32)
    for place, row in zip(where, x):
        if 0 <= place < 7:
            expected[place] = row
    np.testing.assert_array_equal(way(x, where), expected)


@pytest.mark.parametrize("n", [255, 256, 257, 259, 515, 2051])
@pytest.mark.parametrize("order", ["sorted", "random"])
@pytest.mark.parametrize("kind", ["add", "multiply", "max"])
def test_every_update_of_every_stream_is_added_once(n, order, kind):
    """Streams of equal length, and what is left of a share; with rows of numbers, and indices along two axes."""
    rng = np.random.default_rng(n)
    where = rng.integers(-2, 12, (n, 2))  # the last two places are not there
    where = np.sort(where, 0) if order == "sorted" else where
    x = (rng.integers(-9, 9, (n, 2, 3)) if kind != "multiply" else rng.choice([-1, 1, 2, 0.5], (n, 2, 3))).astype("f4")
    x = np.clip(x, -9, 1) if kind == "multiply" else x  # halves and signs alone: exact until they are 0
    expected = np.ones((12, 3), np.float32)
    at = {"add": np.add, "multiply": np.multiply, "max": np.maximum}[kind].at
    at(expected, np.where(where < 0, 11, where), x)
    way = pullback.jit(lambda x, w: getattr(jnp.ones((10, 3)).at[w], kind)(x, mode="drop", wrap_negative_indices=False))
    np.testing.assert_array_equal(way(x, where), expected[:10])


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "uint16"])
def test_products_by_threads_are_those_of_one(dtype):
    rng = np.random.default_rng(2)
    where = np.sort(rng.integers(0, 60, 40_001))
    with pullback.enable_x64(True):
        x = jnp.asarray(rng.choice([-1, 1], (40_001, 2)) if dtype[0] != "u" else rng.integers(1, 9, (40_001, 2)), dtype)
        x = x.at[7].set(jnp.asarray([3, 0], dtype))
        start = jnp.asarray(np.full((64, 2), 5), dtype)
        way = pullback.jit(lambda s, x, w: s.at[w].multiply(x))
        assert "part" in way.lower(start, x, where).as_text("loops")
        expected = np.array(start)
        np.multiply.at(expected, where, np.asarray(x))
        np.testing.assert_array_equal(np.asarray(way(start, x, where)).astype(float), expected.astype(float))


@pytest.mark.parametrize("kind", ["multiply", "min", "max"])
def test_chains_of_products_and_of_larger_ones_are_in_streams(kind):
    """A sequential loop with one update of each of four stretches, where places get several updates."""

    def loops(n: int, places: int) -> str:
        way = pullback.jit(lambda x, w: getattr(jnp.ones(places).at[w], kind)(x))
        return way.lower(np.ones(n, np.float32), np.zeros(n, np.int32)).as_text("loops")

    assert "750" in loops(1000, 100)  # where the last stretch begins
    assert "750" not in loops(1000, 400)
