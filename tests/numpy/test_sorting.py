"""Sorting and searching against NumPy."""

import numpy as np
import pytest

import pullback
import pullback.numpy as jnp

RNG = np.random.RandomState(4)
X = RNG.randn(3, 7).astype(np.float32)
T = RNG.randint(0, 4, (3, 7)).astype(np.int32)
N = X.copy()
N[0, 2] = N[1, 0] = N[1, 5] = np.nan
C = (T + 1j * T[::-1]).astype(np.complex64)


@pytest.mark.parametrize("axis", [-1, 0, None])
@pytest.mark.parametrize("x", [X, T, N, C, X > 0, T.astype(np.uint8)], ids=lambda x: str(x.dtype))
def test_sort(same, x, axis):
    same(lambda m, x: m.sort(x, axis=axis), x)
    same(lambda m, x: m.argsort(x, axis=axis, stable=True), x)


def _words(n, pattern):
    """u32[n]: keys that are spread as sorts by buckets like it, and as they do not."""
    words = RNG.randint(0, 2**32, n, np.uint64).astype(np.uint32)
    return {
        "even": words,
        "with ties": words >> np.uint32(18) << np.uint32(18),
        "few bits": words >> np.uint32(9),
        "above a common prefix": words >> np.uint32(5) | np.uint32(0xA8000000),
        "with a gap": np.where(words < 2**31, words >> np.uint32(3), words),  # of buckets that a word cannot tell apart
        "crowded": np.where(words % 7 == 0, words, words % 999),
        "equal": np.full(n, 7, np.uint32),
        "in order": np.sort(words),
    }[pattern]


PATTERNS = ["even", "with ties", "few bits", "above a common prefix", "with a gap", "crowded", "equal", "in order"]


@pytest.mark.parametrize("n", [2, 25, 513, 2048, 16_384, 16_385, 70_001])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_stable_orders_of_words(pattern, n):
    sort = pullback.jit(lambda keys, x: pullback.lax.sort((keys, x), num_keys=1))
    keys = np.stack([_words(n, pattern), _words(n, "even")])
    with pullback.enable_x64(True):
        for words, payload in ((keys, np.int32), (keys.view(np.int32), np.float64)):
            order = np.argsort(words, axis=1, kind="stable")
            places = np.broadcast_to(np.arange(n, dtype=payload), words.shape)
            ordered, moved = sort(words, places)
            np.testing.assert_array_equal(ordered, np.take_along_axis(words, order, 1))
            np.testing.assert_array_equal(moved, order)


def test_descending():
    assert jnp.sort(jnp.array([1, 3, 2]), descending=True).tolist() == [3, 2, 1]
    assert jnp.argsort(jnp.array([1, 1, 0]), descending=True).tolist() == [0, 1, 2]
    # As JAX has it for short arrays: equal elements come the other way round where their order is nobody's business.
    assert jnp.argsort(jnp.array([1, 1, 0]), descending=True, stable=False).tolist() == [1, 0, 2]
    assert jnp.argsort(jnp.array([3.0, jnp.nan, 1.0]), descending=True).tolist() == [1, 0, 2]


def test_partition():
    for k in (0, 3, -1):
        p = np.asarray(jnp.partition(X, k))
        np.testing.assert_array_equal(p[:, k], np.sort(X)[:, k])
        q = np.asarray(jnp.argpartition(X, k))
        np.testing.assert_array_equal(np.take_along_axis(X, q, 1)[:, k], np.sort(X)[:, k])
    with pytest.raises(ValueError, match="out of bounds"):
        jnp.partition(X, 9)


def test_short_rows_are_partitioned_in_the_order_that_jax_gives():
    x = jnp.array([6, 8, 4, 3, 1, 9, 7, 5, 2, 3])
    assert jnp.partition(x, 4).tolist() == [1, 2, 3, 3, 4, 9, 8, 7, 6, 5]
    assert jnp.argpartition(x, 4).tolist() == [4, 8, 3, 9, 2, 0, 1, 5, 6, 7]
    assert jnp.partition(x[:, None], 1, axis=0)[:, 0].tolist() == [1, 2, 9, 8, 7, 6, 5, 4, 3, 3]
    assert jnp.argpartition(jnp.array([2.0, jnp.nan, 1.0, jnp.nan]), 0).tolist() == [2, 0, 1, 3]


def test_long_rows_are_partitioned_in_linear_time():
    jaxpr = str(pullback.make_jaxpr(lambda x: (jnp.partition(x, 4), jnp.argpartition(x, 4)))(jnp.ones(1000)))
    assert "sort" not in jaxpr and "argpartition" in jaxpr


@pytest.mark.parametrize("shape", [(13, 36), (1000,)])
@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_partitions_come_in_one_order_compiled_or_not(shape, dtype):
    x = jnp.asarray((np.random.default_rng(0).normal(size=shape) * 30).astype(dtype))
    for function in (jnp.partition, jnp.argpartition):
        found = function(x, 3)
        np.testing.assert_array_equal(found, pullback.jit(function, static_argnums=1)(x, 3))


def test_lexsort(same):
    same(lambda m, a, b: m.lexsort((a, b)), T[0], T[1])
    same(lambda m, t: m.lexsort(t, axis=0), np.stack([T, T[::-1]]))
    same(lambda m, c: m.sort_complex(c), C[0])


@pytest.mark.parametrize("method", ["scan", "scan_unrolled", "sort", "compare_all"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted(same, side, method):
    a = np.sort(RNG.randint(0, 9, 20)).astype(np.float32)
    v = RNG.randint(-2, 11, (2, 5)).astype(np.float32)
    options = {"side": side}
    same(lambda m, a, v: m.searchsorted(a, v, **options, **({"method": method} if m is jnp else {})), a, v)
    same(lambda m, a, v: m.searchsorted(a, v[0, 0], **options), a, v)
    nan = np.array([1.0, 2.0, np.nan, np.nan], np.float32)
    same(lambda m, a, v: m.searchsorted(a, v, **options), nan, np.array([0.0, np.nan, 2.0, np.inf], np.float32))


def test_searchsorted_of_no_elements():
    assert jnp.searchsorted(jnp.zeros(0), jnp.ones(2)).tolist() == [0, 0]


def test_sorter(same):
    a = RNG.randn(9).astype(np.float32)
    same(lambda m, a: m.searchsorted(a, 0.1, sorter=m.argsort(a)), a)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: jnp.sort(X, axis=4), ValueError, "axis 4 is out of bounds"),
        (lambda: jnp.sort(X, kind="quicksort"), TypeError, "stable=True keeps"),
        (lambda: jnp.argsort(X, order="a"), TypeError, "'order'"),
        (lambda: jnp.sort([3, 1]), TypeError, "list"),
        (lambda: jnp.searchsorted(X, 1.0), ValueError, "1-dimensional"),
        (lambda: jnp.searchsorted(X[0], 1.0, side="middle"), ValueError, "'left', 'right'"),
        (lambda: jnp.lexsort((X[0], X[:, 0])), ValueError, "same shape"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_derivatives():
    w = np.arange(7.0, dtype=np.float32)
    gradient = pullback.grad(lambda x: jnp.sum(jnp.sort(x) * w))(jnp.asarray(X[0]))
    expected = np.empty(7)
    expected[np.argsort(X[0])] = w
    np.testing.assert_allclose(gradient, expected)
    np.testing.assert_array_equal(pullback.vmap(jnp.argsort)(X), np.argsort(X, axis=1))


def test_searchsorted_sorts_where_that_is_not_slower():
    for n, m, sorts in ((100, 1000, False), (1 << 19, 1 << 17, True), (1 << 19, 1000, False)):
        search = lambda a, v: jnp.searchsorted(a, v, method="sort")
        a, v = (pullback.ShapeDtypeStruct((k,), np.float32) for k in (n, m))
        assert ("sort[" in str(pullback.make_jaxpr(search)(a, v))) == sorts


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "f2"])
def test_searchsorted_among_few_and_many(dtype, monkeypatch):
    """Few elements are compared with, among more values are found by bisection or sorting: NaN, infinities, zeros,
    equals.
    """
    monkeypatch.setattr("pullback.numpy._sorting.NEAR", 0)
    rng = np.random.default_rng(0)
    with pullback.enable_x64(dtype == "f8"):
        for m in (1, 7, 64, 65):
            a, v = ((rng.normal(size=n) * 5 + (100 if dtype == "u1" else 0)).astype(dtype) for n in (m, 200))
            v[:m] = a
            if dtype[0] == "f":
                v[m // 2 : m // 2 + 4], v[100:104] = (np.nan, np.inf, -np.inf, -0.0), (np.nan, np.inf, -np.inf, 0.0)
                a[0], a[-2:] = 0.0, np.nan
            a = np.sort(a)
            for side in ("left", "right"):
                for method in ("scan", "sort", "compare_all"):
                    found = pullback.jit(lambda a, v, s=side, m=method: jnp.searchsorted(a, v, s, method=m))(a, v)
                    np.testing.assert_array_equal(found, np.searchsorted(a, v, side), err_msg=f"{m} {side} {method}")
                edges, w = (x[x == x] for x in (a, v))
                for bins in (edges, edges[::-1]) if len(edges) else ():
                    found = pullback.jit(lambda w, bins, s=side: jnp.digitize(w, bins, right=s == "left"))(w, bins)
                    np.testing.assert_array_equal(found, np.digitize(w, bins, right=side == "left"))


def test_searchsorted_among_few_gathers_nothing():
    a, v = np.arange(20.0, dtype="f4"), np.zeros(1000, "f4")
    assert "gather" not in pullback.jit(jnp.searchsorted).lower(a, v).as_text("jaxpr")
    assert (
        pullback.jit(jnp.digitize).lower(v, a).as_text("jaxpr").count("reduce_sum") == 2
    )  # one search, and NaN's number


def test_what_is_taken_from_an_axis_of_no_elements_is_zero_compiled_too():
    take = lambda a, i: jnp.take_along_axis(a, i, -1, mode="clip")
    for f in (take, pullback.jit(take)):
        np.testing.assert_array_equal(f(jnp.zeros((2, 0)), jnp.zeros((2, 1), int)), np.zeros((2, 1)))
