"""Windows set at known places are joined, and slices read what lies below windows that nobody else reads."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp
from pullback import lax
from pullback.compiler.graph.structure import windows

X = np.random.default_rng(0).standard_normal(60).astype("f4")


def text_of(f, *args):
    return pullback.jit(f).lower(*args).as_text("jaxpr")


def columns(x, n=5):
    found = jnp.zeros((len(x), n), x.dtype)
    for k in range(n):
        found = found.at[:, k].set(jnp.sin(x * k))
    return found


def test_columns_are_a_stack():
    assert "dynamic_update_slice" not in text_of(columns, X)
    np.testing.assert_allclose(pullback.jit(columns)(X), np.sin(X[:, None] * np.arange(5)), rtol=1e-5, atol=1e-6)
    gradient = pullback.grad(lambda x: (columns(x) ** 3).sum())
    assert "dynamic_update_slice" not in text_of(gradient, X)
    wanted = pullback.grad(lambda x: (jnp.sin(x[:, None] * jnp.arange(5)) ** 3).sum())(X)
    np.testing.assert_allclose(pullback.jit(gradient)(X), wanted, rtol=1e-5, atol=1e-5)


def test_what_is_added_at_known_places():
    def f(x):
        y = jnp.cos(x).reshape(12, 5)
        return y.at[:6].add(1.0).at[4:, :3].multiply(2.0).at[:, 1].add(jnp.arange(12.0))

    wanted = np.cos(X).reshape(12, 5)
    wanted[:6] += 1
    wanted[4:, :3] *= 2
    wanted[:, 1] += np.arange(12)
    assert "dynamic_update_slice" not in text_of(f, X)
    np.testing.assert_allclose(pullback.jit(f)(X), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.at[3].set(1.0).at[7].set(2.0),  # where the array is in memory in any case
        lambda x: jnp.zeros((60, 60)).at[3, 4].set(x[0]).at[8, 9].set(x[1]),  # few lines of many
        lambda x: jnp.sin(x).at[3].set(1.0),  # one small window
    ],
)
def test_what_stays_an_update(f):
    assert "dynamic_update_slice" in text_of(f, X)


def test_results_that_others_read_stay():
    def f(x):
        first = jnp.zeros((60, 3)).at[:, 0].set(x)
        return first, first.at[:, 1].set(x + 1).at[:, 2].set(x + 2)

    first, last = pullback.jit(f)(X)
    np.testing.assert_array_equal(first, np.stack([X, 0 * X, 0 * X], 1))
    np.testing.assert_array_equal(last, np.stack([X, X + 1, X + 2], 1))


def test_what_has_no_results_reads_them():
    """A callback is an equation without results: whether it is an update that follows was asked of its first one."""
    seen = []

    def f(x):
        y = x.at[:2].set(1.0)
        pullback.debug.callback(seen.append, y)
        return y[1:]

    np.testing.assert_array_equal(pullback.jit(f)(X[:4]), [1, *X[2:4]])
    pullback.effects_barrier()
    np.testing.assert_array_equal(seen, [[1, 1, *X[2:4]]])


def test_loops_write_their_carry_in_place():
    def body(k, carry):
        return carry.at[0].set(carry[1] + 1).at[-1].set(carry[0])

    f = pullback.jit(lambda x: lax.fori_loop(0, 3, body, x))
    wanted = X.copy()
    for _ in range(3):
        wanted[0], wanted[-1] = wanted[1] + 1, wanted[1] + 1
    np.testing.assert_array_equal(f(X), wanted)
    assert "concatenate" not in f.lower(X).as_text("jaxpr")


@pytest.mark.sample(10)
@pytest.mark.parametrize("seed", range(30))
def test_random_windows(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(0 if seed % 10 == 9 else 1, 6, size=rng.integers(0, 4)))
    dtype = [np.float32, np.int8, np.complex64, np.bool_][seed % 4]
    base = rng.integers(0, 2 if dtype is np.bool_ else 9, shape).astype(dtype)
    made = rng.integers(0, 3)
    windows = []
    for _ in range(rng.integers(1, 7)):
        size = tuple(rng.integers(0, n + 1) for n in shape)
        at = tuple(int(k) for k in rng.integers(-2, 7, len(shape)))
        windows.append((rng.integers(0, 2, size).astype(dtype), at))
    slices = []
    for _ in range(rng.integers(0, 5)):
        ends = [sorted(rng.integers(0, n + 1, 2)) for n in shape]
        slices.append(tuple(slice(int(a), int(b), int(rng.integers(1, 3))) for a, b in ends))
    whole = bool(rng.integers(0, 2)) or not slices

    def f(base, *windows_):
        x = [base, base == base, jnp.zeros(shape, dtype)][made].astype(dtype)
        results = []
        for k, (window, (_, at)) in enumerate(zip(windows_, windows)):
            results += [x[s] for s in slices if k == len(windows) // 2]
            x = lax.dynamic_update_slice(x, window, at)
        return [*results, *(x[s] for s in slices), *([x] if whole else [])]

    def by_numpy():
        x = np.array([base, base == base, np.zeros(shape)][made], dtype)
        results = []
        for k, (window, at) in enumerate(windows):
            results += [x[s].copy() for s in slices if k == len(windows) // 2]
            low = [min(max(a + n * (a < 0), 0), n - m) for a, n, m in zip(at, shape, window.shape)]
            x[tuple(slice(a, a + m) for a, m in zip(low, window.shape))] = window
        return [*results, *(x[s] for s in slices), *([x] if whole else [])]

    found = pullback.jit(f)(base, *[w for w, _ in windows])
    for a, b in zip(found, by_numpy(), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype


def test_the_inside_of_an_argument_made_of_its_neighbours_is_one_pass():
    x = np.random.default_rng(0).standard_normal((40, 50)).astype("f4")

    def heat(u):
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        return u.at[1:-1, 1:-1].set(0.25 * around)

    def added(u):
        return u.at[1:-1].add(u[2:] + u[:-2])

    def twenty(u):
        return lax.fori_loop(0, 20, lambda _, u: heat(u), u)

    def plain(u):
        u = u.copy()
        u[1:-1, 1:-1] = 0.25 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        return u

    for f in (heat, added):
        assert "dynamic_update_slice" not in pullback.jit(f).lower(x).as_text("jaxpr")
    np.testing.assert_allclose(pullback.jit(heat)(x), plain(x), rtol=1e-6, atol=1e-6)
    want = x.copy()
    want[1:-1] += x[2:] + x[:-2]
    np.testing.assert_allclose(pullback.jit(added)(x), want, rtol=1e-6, atol=1e-6)
    want = x
    for _ in range(20):
        want = plain(want)
    np.testing.assert_allclose(pullback.jit(twenty)(x), want, rtol=1e-5, atol=1e-5)


def test_what_is_made_of_the_same_window_or_is_little_stays_an_update():
    x = np.random.default_rng(0).standard_normal((40, 50)).astype("f4")
    for f in (
        lambda u: u.at[1:-1].set(u[1:-1] * 2),
        lambda u: u.at[1:4].set(u[2:5] + u[:3]),
        lambda u: u.at[1:-1].set(jnp.sort(u[2:], 0)),
    ):
        assert "dynamic_update_slice" in pullback.jit(f, donate_argnums=0).lower(x).as_text("jaxpr")


def test_most_of_an_argument_that_is_kept_is_one_pass():
    """It would be copied first. If it is donated, or a carry, it is changed in place."""
    x, y = np.random.default_rng(0).standard_normal((2, 40, 50)).astype("f4")
    for f in (
        lambda u, v: u.at[1:-1, 2:].add(v[2:, 2:] - v[:-2, 2:]),
        lambda u, v: u.at[:30].mul(v[:30]),
        lambda u, v: u.at[:, 3:].set(v[:, :-3]).at[1].set(7),
        lambda u, v: u.at[1:].set(jnp.cumsum(v, 0)[1:]),
    ):
        text = pullback.jit(f).lower(x, y).as_text("jaxpr")
        assert "dynamic_update_slice" not in text
        np.testing.assert_array_equal(pullback.jit(f)(x, y), f(jnp.asarray(x), jnp.asarray(y)))
        assert "dynamic_update_slice" in pullback.jit(f, donate_argnums=0).lower(x, y).as_text("jaxpr")
    few = lambda u, v: u.at[1:5].set(v[:4])
    assert "dynamic_update_slice" in pullback.jit(few).lower(x, y).as_text("jaxpr")
    loop = lambda u, v: lax.fori_loop(0, 3, lambda i, u: u.at[1:-1].add(v[1:-1] * i), u)
    assert "dynamic_update_slice" in pullback.jit(loop).lower(x, y).as_text("jaxpr")


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("k", [0, -1, 3])
def test_rolled_arrays_whose_rims_are_set_are_not_stored(axis, k):
    x = np.random.default_rng(0).standard_normal((40, 50)).astype("f4")
    at = (slice(None),) * axis + (k,)

    def f(x):
        moved = (jnp.roll(x, 1, axis) - jnp.roll(x, -1, axis)) / 2
        return x + 0.5 * jnp.abs(moved.at[at].set(x[at]).at[(slice(None),) * axis + (1,)].set(0))

    assert "temporary" not in pullback.jit(f).lower(x).as_text("nests")
    moved = (np.roll(x, 1, axis) - np.roll(x, -1, axis)) / 2
    moved[at] = x[at]
    moved[(slice(None),) * axis + (1,)] = 0
    np.testing.assert_allclose(pullback.jit(f)(x), x + 0.5 * np.abs(moved), rtol=1e-5, atol=1e-6)


def test_long_chains_of_updates_that_are_read(monkeypatch):
    looked = []
    meets = windows._meets
    monkeypatch.setattr(windows, "_meets", lambda *boxes: looked.append(1) or meets(*boxes))

    def f(x):
        for i in range(300):
            x = x.at[i % 10].add(x[(i * 7) % 10] * 0.5)
        return x

    want = X[:10].copy()
    for i in range(300):
        want[i % 10] += want[(i * 7) % 10] * np.float32(0.5)
    np.testing.assert_allclose(pullback.jit(f)(X[:10]), want, rtol=1e-4)
    # A slice looks down to what covers it, not through all that was written before: that would be 90,000.
    assert len(looked) < 30_000


def test_steps_of_a_stencil_do_not_pass_all_before_them(monkeypatch):
    """A step reads around the window that each step sets: what is under it is seen, but not what later steps cover."""
    looked = []
    meets = windows._meets
    monkeypatch.setattr(windows, "_meets", lambda *args: looked.append(1) or meets(*args))

    def program(n):
        def f(u):
            for k in range(n):
                u = u.at[1:-1].set((u[2:] + u[:-2]) * (0.1 + k))
            return u

        return f

    def count(n):
        looked.clear()
        pullback.jit(program(n)).lower(np.ones(40, "f4")).compile()
        return len(looked)

    few = count(10)
    assert few and count(20) <= 2.2 * few
    x = np.random.default_rng(0).standard_normal(12).astype("f4")
    with pullback.disable_jit():
        want = program(5)(jnp.asarray(x))
    np.testing.assert_array_equal(pullback.jit(program(5))(x), want)
