"""Gathers at places that the program itself determines are slices, and mean the same."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp
from pullback.compiler.pipelines import optimize_jaxpr

X = np.random.default_rng(0).standard_normal((40, 30, 20)).astype("f4")


def jaxpr(f, *args):
    return jax.jit(f).lower(*args).as_text("jaxpr")


PLACES = {
    "rolled": lambda n: (jnp.arange(n) + 3) % n,
    "rolled back": lambda n: (jnp.arange(n) - 1) % n,
    "reversed": lambda n: n - 1 - jnp.arange(n),
    "every second": lambda n: jnp.arange(n // 2) * 2,
    "clipped": lambda n: jnp.clip(jnp.arange(n) + n // 2, 0, n - 1),
    "from the end": lambda n: jnp.arange(n) - n,
    "backwards by two": lambda n: n - 1 - 2 * jnp.arange(n // 2),
    "two halves": lambda n: jnp.concatenate([jnp.arange(n // 2, n), jnp.arange(n // 2)]),
    "one and the rest": lambda n: jnp.where(jnp.arange(n) == 0, n - 1, jnp.arange(n) - 1),
    "outside": lambda n: jnp.arange(n) + 5,
    "each twice": lambda n: jnp.arange(n) // 2,
    "each three times": lambda n: np.minimum(np.arange(3 * (n // 2)) // 3, n - 1),
    "clipped on both sides": lambda n: np.clip(np.arange(n) - 2, 1, n - 5),
    "one": lambda n: jnp.arange(n) // n + 1,
    "squares": lambda n: jnp.arange(n) ** 2 % n,
}


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("name", PLACES)
def test_values_and_derivatives(name, axis):
    n = X.shape[axis]
    places = np.asarray(PLACES[name](n))
    inside = np.where(places < 0, places + n, places)

    def f(x):
        return jnp.take(x, PLACES[name](n), axis=axis)

    want = np.take(X, np.minimum(inside, n - 1), axis)
    if name == "outside":
        want = np.where(np.expand_dims(inside < n, [a for a in range(3) if a != axis]), want, np.nan)
    np.testing.assert_array_equal(jax.jit(f)(X), want)
    np.testing.assert_array_equal(jax.jit(jax.vmap(f, 1, 1) if axis != 1 else f)(X), want) if axis == 0 else None
    slope = jax.jit(jax.grad(lambda x: jnp.sum(jnp.nan_to_num(f(x)) * 2)))(X)
    count = np.bincount(inside[inside < n], minlength=n)
    np.testing.assert_allclose(
        slope, np.broadcast_to(np.expand_dims(2.0 * count, [a for a in range(3) if a != axis]), X.shape)
    )


def test_which_are_slices():
    for name, f in PLACES.items():
        text = jaxpr(lambda x, f=f: x[f(40)], X)
        assert ("gather" in text) == (name in ("outside", "squares")), name
    assert "gather" in jaxpr(lambda x, i: x[i], X, np.arange(40))
    assert "gather" not in jaxpr(lambda x: x[:, (jnp.arange(30) + 1) % 30, :], X)
    assert "gather" not in jaxpr(lambda x: x[:, :, np.arange(20)[::-1]], X)


def test_rows_and_columns_of_one():
    x = jnp.asarray(X[:, :1])
    np.testing.assert_array_equal(jax.jit(lambda x: x[(jnp.arange(40) + 1) % 40])(x), np.roll(x, -1, 0))
    np.testing.assert_array_equal(jax.jit(lambda x: x[:, jnp.zeros(20, int)])(x), np.repeat(x, 20, 1))


SEVERAL = {
    "grid": lambda x: x[jnp.arange(30)[:, None] + 1, jnp.arange(30)],
    "turned": lambda x: x[jnp.arange(40)[None], jnp.arange(30)[:, None]],
    "apart": lambda x: x[jnp.arange(40)[:, None], :, jnp.arange(20)[::-1]],
    "one of them fixed": lambda x: x[jnp.arange(40)[:, None], 3, jnp.arange(20)],
    "ix": lambda x: x[jnp.ix_(jnp.arange(20), jnp.arange(0, 30, 2), jnp.arange(5, 15))],
    "two maps": lambda x: jax.vmap(
        lambda i: jax.vmap(lambda j: x[i, j + 1] - x[i + 1, j])(jnp.arange(29)),
    )(jnp.arange(39)),
    "rows of slices": lambda x: jax.vmap(lambda i: jax.lax.dynamic_slice(x, (i, 0, 0), (1, 30, 20)))(jnp.arange(40)),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_places_along_several_axes(name):
    f = SEVERAL[name]
    assert "gather" not in jaxpr(f, X)
    np.testing.assert_allclose(jax.jit(f)(X), f(jnp.asarray(X)), rtol=1e-6)
    gradient = jax.grad(lambda x: jnp.sin(f(x)).sum())
    np.testing.assert_allclose(jax.jit(gradient)(X), gradient(jnp.asarray(X)), rtol=1e-5, atol=1e-6)


def test_a_diagonal_is_no_grid():
    f = lambda x: x[jnp.arange(20), jnp.arange(20)]
    np.testing.assert_array_equal(jax.jit(f)(X), X[np.arange(20), np.arange(20)])


def _difference(n, m):
    return np.arange(n)[:, None] - np.arange(m)


SHIFTED = {
    "distance": (lambda x, np: x[np.abs(_difference(30, 40))], 1),
    "wrapped": (lambda x, np: x[_difference(30, 25) % 20], 1),
    "clipped": (lambda x, np: x[np.clip(_difference(20, 50) + 9, 0, 19)], 1),
    "sums": (lambda x, np: x[(np.arange(20)[:, None] + 3 * np.arange(17)[None] // 3) % 40], 1),
    "windows": (lambda x, np: x[np.arange(24)[:, None] + np.arange(17)], 1),
    "rows of a table": (lambda x, np: x[np.abs(_difference(18, 33))], 2),
    "from the end": (lambda x, np: x[_difference(20, 20)], 1),
}


@pytest.mark.parametrize("name", SHIFTED)
@pytest.mark.parametrize("dtype", ["f4", "i2", "c8", "?"])
def test_places_that_depend_on_a_difference_or_a_sum(name, dtype):
    """Parts of one row: its elements are looked up once, and their number is that of both axes together."""
    f, rank = SHIFTED[name]
    x = (np.random.default_rng(0).standard_normal((40, 3)[:rank]) * 9).astype(dtype)
    np.testing.assert_array_equal(jax.jit(lambda x: f(x, jnp))(x), f(x, np))
    gathers = [
        eqn
        for eqn in optimize_jaxpr(jax.make_jaxpr(lambda x: f(x, jnp))(x)).jaxpr.eqns
        if eqn.primitive.name == "gather"
    ]
    assert gathers and all(eqn.invars[1].aval.size < 100 for eqn in gathers)


@pytest.mark.parametrize("axis", [1, 2])
def test_windows_along_any_axis(axis):
    x = np.random.default_rng(0).standard_normal((3, 40, 5) if axis == 1 else (2, 3, 40)).astype("f4")

    def windows(x, xnp):
        places = xnp.arange(31)[:, None] + xnp.arange(10)
        return x[:, places] if axis == 1 else x[:, :, places]

    np.testing.assert_array_equal(jax.jit(lambda x: windows(x, jnp))(x), windows(x, np))
    eqns = optimize_jaxpr(jax.make_jaxpr(lambda x: windows(x, jnp))(x)).jaxpr.eqns
    assert all(eqn.invars[1].aval.size < 100 for eqn in eqns if eqn.primitive.name == "gather")


def test_derivatives_of_places_that_depend_on_a_difference():
    x = np.random.default_rng(0).standard_normal(30).astype("f4")
    i = abs(_difference(30, 30))
    expected = np.zeros(30)
    np.add.at(expected, i, np.cos(x)[i])
    found = jax.jit(jax.grad(lambda x: jnp.sin(x[abs(_difference(30, 30))]).sum()))(x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_other_places_stay():
    x = np.random.default_rng(0).standard_normal(900).astype("f4")
    for i in (_difference(20, 20) * np.arange(20), np.arange(20)[:, None] * 2 + np.arange(20) * 3):
        np.testing.assert_array_equal(jax.jit(lambda x, i=i: x[jnp.asarray(i)])(x), x[i])
    outside = jax.jit(lambda x: x.at[abs(_difference(40, 40))].get(mode="fill", fill_value=-1))(x[:20])
    i = abs(_difference(40, 40))
    np.testing.assert_array_equal(outside, np.where(i < 20, x[np.minimum(i, 19)], -1))


@pytest.mark.parametrize("dtype", ["f4", "i4", "c8"])
def test_windows_times_a_vector(dtype):
    """Windows that share elements are read where they lie, by indices too large to be known one by one."""
    n, w = 70_000, 20
    x = (9 * np.random.default_rng(0).standard_normal(n)).astype(dtype)
    h = np.arange(w).astype(dtype)
    expected = np.convolve(x, h[::-1], "valid")

    def by_indices(x, h):
        return x[jnp.arange(n - w + 1)[:, None] + jnp.arange(w)] @ h

    def mapped(x, h):
        return jax.vmap(lambda k: jax.lax.dynamic_slice(x, (k,), (w,)) @ h)(jnp.arange(n - w + 1))

    for f in (by_indices, mapped):
        np.testing.assert_allclose(jax.jit(f)(x, h), expected, rtol=1e-4, atol=1e-2)
        if dtype != "c8":
            assert "dot_general" not in jaxpr(f, x, h)
    assert "iota" not in jaxpr(by_indices, x, h).split("gather")[1]


def test_rows_of_a_table_times_a_vector():
    table = np.random.default_rng(0).standard_normal((50, 40)).astype("f4")
    i, v = np.random.default_rng(1).integers(0, 50, 300), np.arange(40, dtype="f4")
    for f in (lambda t, i, v: t.at[i].get(mode="clip") @ v, lambda t, i, v: v @ t.T[:, i]):
        np.testing.assert_allclose(jax.jit(f)(table, i, v), table[i] @ v, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("step", [-64, 3, 64, 300])
def test_pieces_at_equal_distances(step, turned):
    x = np.random.default_rng(0).standard_normal((3, 12_000)).astype("f4")
    first = 11_700 if step < 0 else 20

    def pieces(xp, x):
        places = first + step * xp.arange(38)[:, None] + xp.arange(250)
        return x[:, places.T if turned else places]

    f = lambda x: pieces(jnp, x)
    closed = optimize_jaxpr(jax.make_jaxpr(f)(x))
    gathers = [e for e in closed.jaxpr.eqns if e.primitive.name == "gather"]
    assert [e.invars[1].aval.shape for e in gathers] == [(38, 1)]
    np.testing.assert_array_equal(jax.jit(f)(x), pieces(np, x))


def test_pieces_beyond_the_end_are_those_of_places():
    x = np.arange(3000.0, dtype="f4")
    places = 100 * np.arange(40)[:, None] + np.arange(50)
    got = jax.jit(lambda x: x[100 * jnp.arange(40)[:, None] + jnp.arange(50)])(x)
    np.testing.assert_array_equal(got, x[np.minimum(places, 2999)])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64"])
@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
def test_places_of_several_arrays_are_counted_once(mode, dtype):
    rng = np.random.default_rng(3)
    low, high = (0, 20) if mode == "promise_in_bounds" else (-100 if dtype[0] == "i" else 0, 100)
    with jax.enable_x64(dtype == "int64"):
        i, j = rng.integers(low, high, (2, 17, 23)).astype(dtype)

        def f(x, i, j):
            return x.at[:, i, j].get(mode=mode)

        def g(x, i, j):
            return x.transpose(0, 2, 1).at[:, i, j].get(mode=mode)

        for h, y in ((f, X), (g, X.transpose(0, 2, 1))):
            assert "40,600]" in jaxpr(h, X, i, j)
            assert "start_index_map=(1,)" in jaxpr(h, X, i, j)
            a, b = i.astype("i8"), j.astype("i8")
            inside = np.ones(a.shape, bool)
            for k, n in ((0, y.shape[1]), (1, y.shape[2])):
                at = (a, b)[k]
                at = np.where(at < 0, at + n, at)
                inside &= (at >= 0) & (at < n)
                a, b = (np.clip(at, 0, n - 1), b) if k == 0 else (a, np.clip(at, 0, n - 1))
            want = y[:, a, b]
            want = np.where(inside, want, np.nan) if mode == "fill" else want
            np.testing.assert_array_equal(jax.jit(h)(X, i, j), want)


def test_places_of_one_array_or_along_axes_of_their_own_stay():
    rng = np.random.default_rng(4)
    i, j = rng.integers(0, 20, (2, 17, 23)).astype("i4")
    for f in (lambda x, i, j: x[0, i, j], lambda x, i, j: x[:, i[:, :1], j[:1]], lambda x, i, j: x[i, j]):
        assert "start_index_map=(1,)" not in jaxpr(f, X, i, j)


def test_places_without_components():
    """Every slice lies at the beginning."""
    numbers = jax.lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=())
    x, places = X[:, :, 0], np.zeros((3, 0), np.int32)
    found = jax.jit(lambda x: jax.lax.gather(x, places, numbers, (1, 4), mode="clip"))(x)
    np.testing.assert_array_equal(found, np.tile(x[0, :4], (3, 1)))
    adding = jax.lax.ScatterDimensionNumbers((), (0,), ())
    total = jax.jit(lambda x, u: jax.lax.scatter_add(x, places, u, adding))
    grad = jax.grad(lambda x, u: total(x, u).sum(), 1)
    np.testing.assert_allclose(total(x[:, 0], x[0, :3]), x[:, 0] + (np.arange(40) == 0) * x[0, :3].sum(), rtol=1e-6)
    np.testing.assert_array_equal(grad(x[:, 0], x[0, :3]), np.ones(3))
