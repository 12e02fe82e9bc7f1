"""Scatters at places that the program itself determines are windows and choices, and mean the same."""

import numpy as np
import pytest

import pullback as jax
import pullback.numpy as jnp

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 30, 20)).astype("f4")

PLACES = {
    "every second": np.s_[::2],
    "every second from one": np.s_[1::2],
    "every third of all axes": np.s_[::3, ::3, ::3],
    "backwards": np.s_[::-1],
    "backwards by two, last axis": np.s_[:, :, ::-2],
    "inside of two": np.s_[1:-1:2, :, 1:-1:2],
    "one row, every second": np.s_[3, 4, ::2],
    "rows by an array": np.s_[np.arange(5, 35)],
    "last axis by an array": np.s_[:, :, np.arange(0, 20, 2)],
    "two arrays beside each other": np.s_[np.arange(0, 40, 2)[:, None], np.arange(30)],
    "two arrays apart": np.s_[np.arange(40)[:, None], :, np.arange(1, 20, 2)],
    "a diagonal": np.s_[np.arange(30), np.arange(30)],
    "twice the same": np.s_[np.arange(40) // 2],
    "uneven": np.s_[:, np.array([0, 1, 3, 4, 6, 7, 9, 11, 12, 13, 14, 15, 16, 18, 20, 29])],
}


def jaxpr(f, *args):
    return jax.jit(f).lower(*args).as_text("jaxpr")


@pytest.mark.parametrize("kind", ["set", "add", "multiply", "min", "subtract"])
@pytest.mark.parametrize("name", PLACES)
def test_values(name, kind):
    at = PLACES[name]
    new = RNG.standard_normal(X[at].shape).astype("f4")
    if name == "twice the same" and kind == "set":
        new[::2] = new[1::2]
    want = X.copy()
    if kind == "set":
        want[at] = new
    else:
        {"add": np.add, "multiply": np.multiply, "min": np.minimum, "subtract": np.subtract}[kind].at(want, at, new)
    ours = jax.jit(lambda x, new: getattr(x.at[at], kind)(new))(X, new)
    np.testing.assert_allclose(ours, want, rtol=1e-6, atol=1e-6)
    zeros = jax.jit(lambda new: getattr(jnp.zeros(X.shape, "f4").at[at], kind)(new))(new)
    eager = getattr(jnp.zeros(X.shape, "f4").at[at], kind)(new)
    np.testing.assert_allclose(zeros, eager, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["c8", "i1", "bool", "f2"])
def test_dtypes(dtype):
    x, new = X.astype(dtype), RNG.standard_normal((40, 30, 10)).astype("f4").astype(dtype)
    want = x.copy()
    want[:, :, ::2] = new
    np.testing.assert_array_equal(jax.jit(lambda x, new: x.at[:, :, ::2].set(new))(x, new), want)


def test_derivatives_and_maps():
    def f(x, new):
        return jnp.sum(jnp.sin(x.at[:, 1::2].set(new).at[::2].multiply(2.0)))

    new = RNG.standard_normal((40, 15, 20)).astype("f4")
    for ours, eager in zip(jax.jit(jax.grad(f, (0, 1)))(X, new), jax.grad(f, (0, 1))(X, new)):
        np.testing.assert_allclose(ours, eager, rtol=1e-5, atol=1e-6)
    each = jax.jit(jax.vmap(lambda x, new: x.at[::2].add(new)))
    want = X.copy()
    want[:, ::2] += new
    np.testing.assert_allclose(each(X, new), want, rtol=1e-6)


def test_nothing_is_lost_of_what_lies_outside():
    x, new = np.arange(40, dtype="f4"), -np.ones(20, "f4")
    places = 2 * np.arange(20) + 10
    ours = jax.jit(lambda x, new: x.at[places].set(new))(x, new)
    want = x.copy()
    want[places[places < 40]] = -1
    np.testing.assert_array_equal(ours, want)
    clipped = jax.jit(lambda x, new: x.at[places].set(new, mode="clip"))(x, new)
    want[39] = -1
    np.testing.assert_array_equal(clipped, want)
    infinite = jax.jit(lambda x: x.at[::2].multiply(2.0))(np.full(64, np.inf, "f4"))
    np.testing.assert_array_equal(infinite, np.full(64, np.inf, "f4"))


def test_which_are_no_scatters():
    for name, at in PLACES.items():
        new = np.zeros(X[at].shape, "f4")
        text = jaxpr(lambda x, new, at=at: x.at[at].add(new), X, new)
        stays = name in ("a diagonal", "one row, every second", "every third of all axes")
        assert ("scatter" in text) == stays, name


def test_steps_in_a_loop():
    def steps(u):
        def body(_, u):
            u = u.at[1:-1:2].set(0.5 * (u[:-2:2] + u[2::2]))
            return u.at[2:-1:2].set(0.5 * (u[1:-2:2] + u[3::2]))

        return jax.lax.fori_loop(0, 5, body, u)

    want = X[0, 0].copy().repeat(5)[:99]
    start = want.copy()
    for _ in range(5):
        want[1:-1:2] = np.float32(0.5) * (want[:-2:2] + want[2::2])
        want[2:-1:2] = np.float32(0.5) * (want[1:-2:2] + want[3::2])
    np.testing.assert_allclose(jax.jit(steps)(start), want, rtol=1e-6)


def test_columns_that_were_rows():
    """vmap along columns of what adds rows: nothing is transposed."""
    i = RNG.integers(-1, 50, 200).astype("i4")
    x = RNG.standard_normal((200, 16)).astype("f4")
    f = lambda x, i: jax.vmap(lambda c: jnp.zeros(50).at[i].add(c, mode="drop", wrap_negative_indices=False), 1, 1)(x)
    text = jaxpr(f, x, i)
    assert "scatter" in text and "transpose" not in text
    want = np.zeros((50, 16), "f4")
    np.add.at(want, i[i >= 0], x[i >= 0])
    np.testing.assert_allclose(jax.jit(f)(x, i), want, rtol=1e-5, atol=1e-5)
    g = lambda x, i: jax.vmap(lambda c: jnp.ones(50).at[i].max(c), 1, 0)(x)
    other = np.ones((50, 16), "f4")
    np.maximum.at(other, i, x)
    np.testing.assert_array_equal(jax.jit(g)(x, i), other.T)


_N = 24
SEVERAL_RUNS = {
    "around": lambda i: (i - 5) % _N,
    "back": lambda i: (3 - i) % _N,
    "held": lambda i: jnp.clip(i - 2, 0, _N - 1),
    "reflected": lambda i: jnp.abs(i - 2),
    "twice": lambda i: (2 * i) % _N,
}


@pytest.mark.parametrize("name", SEVERAL_RUNS)
@pytest.mark.parametrize("axis", [0, 1])
def test_several_runs_along_an_axis(name, axis):
    shape = (_N, 9) if axis == 0 else (9, _N)
    x, u = (RNG.integers(-9, 9, shape).astype("f4") for _ in range(2))
    where = np.asarray(SEVERAL_RUNS[name](jnp.arange(_N)))

    def at(x):
        places = SEVERAL_RUNS[name](jnp.arange(_N))
        return x.at[places] if axis == 0 else x.at[:, places]

    def wanted(x, combine):
        out = x.copy()
        for k, place in enumerate(where):
            to, of = (place, k) if axis == 0 else (np.s_[:, place], np.s_[:, k])
            out[to] = combine(out[to], u[of])
        return out

    zero = np.zeros_like(x)
    for f, want in (
        (lambda x, u: at(x).add(u), wanted(x, np.add)),
        (lambda x, u: at(x).max(u), wanted(x, np.maximum)),
        (lambda x, u: at(x).set(u), wanted(x, lambda _, new: new)),
        (lambda x, u: at(jnp.zeros_like(x)).add(u), wanted(zero, np.add)),
        (lambda x, u: at(jnp.zeros_like(x)).set(u), wanted(zero, lambda _, new: new)),
    ):
        assert "scatter" not in jaxpr(f, x, u)
        np.testing.assert_array_equal(jax.jit(f)(x, u), want)


def test_gradients_of_neighbours_around_the_end_are_rolls():
    u = RNG.standard_normal((40, 30)).astype("f4")

    def loss(u):
        i = jnp.arange(40)
        return ((u[(i - 1) % 40] - u[(i + 1) % 40]) ** 2).sum()

    assert "scatter" not in jaxpr(jax.grad(loss), u)
    difference = 2 * (np.roll(u, 1, 0) - np.roll(u, -1, 0))
    want = np.roll(difference, -1, 0) - np.roll(difference, 1, 0)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(u), want, rtol=1e-5, atol=1e-5)


UNEVEN = np.array([3, 3, 0, 7, 5, 3, 1, 0, 2, 9, 6, 6, 8, 4, 4, 7, 3, 11, 10, 5])


@pytest.mark.parametrize("dtype", ["f4", "f2", "i1", "c8"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_few_that_meet_are_gathered_in_their_order(axis, dtype):
    at = (slice(None),) * axis + (UNEVEN,)
    shape = (12,) * 3
    x, new = (100 * RNG.standard_normal(s).astype("f4") for s in (shape, np.zeros(shape)[at].shape))
    x, new = x.astype(dtype), new.astype(dtype)
    want = x.copy()
    np.add.at(want, at, new)
    add = jax.jit(lambda x, new: x.at[at].add(new))
    assert "scatter" not in add.lower(x, new).as_text("jaxpr")
    np.testing.assert_array_equal(add(x, new), want)


@pytest.mark.parametrize("mode", ["drop", "clip"])
@pytest.mark.parametrize("kind", ["add", "min", "max", "multiply"])
def test_what_lies_outside_of_gathered_ones(kind, mode):
    places = np.concatenate([UNEVEN, [14, 40, -20]])
    x, new = (RNG.standard_normal((n, 9)).astype("f4") for n in (12, len(places)))
    want, wraps = x.copy(), np.where(places < 0, places + 12, places)
    inside = np.clip(wraps, 0, 11) if mode == "clip" else wraps
    held = (inside >= 0) & (inside < 12)
    how = {"add": np.add, "min": np.minimum, "max": np.maximum, "multiply": np.multiply}[kind]
    how.at(want, inside[held], new[held])
    ours = jax.jit(lambda x, new: getattr(x.at[places], kind)(new, mode=mode))(x, new)
    np.testing.assert_array_equal(ours, want)


def test_many_that_meet_stay_a_scatter():
    at = np.array([1] * 30 + [0, 2])
    text = jaxpr(lambda x, new: x.at[at].add(new), X[:3], np.zeros((32, 30, 20), "f4"))
    assert "scatter" in text
    numbers, half = np.zeros(60, "f4"), np.arange(60) // 2 * 7 % 60
    assert "scatter" in jaxpr(lambda x, new: x.at[half[::2]].add(new), numbers, numbers[::2])
    assert "scatter" not in jaxpr(lambda x, new: x.at[7 * np.arange(60) % 60].add(new), numbers, numbers)
    many = np.zeros(1 << 17, "f4")
    assert "scatter" in jaxpr(lambda x, new: x.at[7 * np.arange(1 << 17) % (1 << 17)].add(new), many, many)
    few = np.zeros((60, 8), "f4")
    text = jaxpr(lambda x, new: x.at[5 * UNEVEN[:10]].add(new), few, few[:10])
    assert "scatter" in text


def test_the_gradient_of_a_fixed_choice_of_columns():
    at = RNG.permutation(np.repeat(np.arange(20), 2))
    w = RNG.standard_normal((5, 40)).astype("f4")
    grad = jax.jit(jax.grad(lambda x: (w * x[:, at]).sum()))
    want = np.zeros((5, 20), "f4")
    np.add.at(want, (slice(None), at), w)
    np.testing.assert_array_equal(grad(np.ones((5, 20), "f4")), want)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    "places", [np.arange(12), np.arange(12) * 5 % 12, np.array([0, 3, 3, 1, 2, 5, 4, 7, 6, 8, 9, 10])]
)
def test_known_places_of_several_sequences(places, axis):
    """As positions in the sequences of a batch, which all look up the same rows of a table."""
    shape = (2, 12) if axis == 1 else (12, 2)
    at = np.broadcast_to(places if axis == 1 else places[:, None], shape)
    for n in (12, 14):
        x, new = RNG.standard_normal((n, 8)).astype("f4"), RNG.standard_normal((*shape, 8)).astype("f4")
        want = x.copy()
        np.add.at(want, at, new)
        np.testing.assert_array_equal(jax.jit(lambda x, new: x.at[at].add(new))(x, new), want)
        want = np.zeros((8, n), "f4")
        np.add.at(want, (slice(None), at), np.moveaxis(new, -1, 0))
        grad = jax.jit(jax.grad(lambda x, w: (x[:, jnp.asarray(at)] * w).sum()))
        np.testing.assert_array_equal(grad(np.zeros((8, n), "f4"), np.moveaxis(new, -1, 0)), want)


GROUPS = {
    "rows": np.arange(600) // 30,
    "columns": np.arange(600) % 30,
    "between": np.arange(600) // 5 % 30,
    "backwards": 25 - np.arange(600) // 30,
    "apart": np.arange(600) // 30 * 2 + 1,
    "one": np.zeros(600, int) + 7,
}


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("how", ["add", "max", "min", "multiply"])
@pytest.mark.parametrize("window", [(), (4,)])
def test_regular_groups_are_folded_along_axes(name, how, window):
    places = GROUPS[name]
    u = 1 + 0.1 * np.random.default_rng(0).standard_normal((600, *window)).astype("f4")
    x = np.full((45, *window), 0.9, "f4")

    def f(x, u):
        return getattr(jnp.asarray(x).at[jnp.asarray(places) + 0 * jnp.arange(600)], how)(u)

    text = jax.jit(f).lower(x, u).as_text("jaxpr")
    assert "scatter" not in text or name in ("apart", "one")
    want = x.copy()
    ufunc = {"add": np.add, "max": np.maximum, "min": np.minimum, "multiply": np.multiply}[how]
    ufunc.at(want, places, u)
    np.testing.assert_allclose(jax.jit(f)(x, u), want, rtol=1e-4)
    if how == "multiply":  # has no derivative by what comes twice
        return
    got = jax.jit(jax.grad(lambda u: (f(x, u) ** 2).sum()))(u)
    with jax.disable_jit():
        plain = jax.grad(lambda u: (f(jnp.asarray(x), u) ** 2).sum())(jnp.asarray(u))
    np.testing.assert_allclose(got, plain, rtol=1e-3, atol=1e-5)
