"""Products with one-hot rows are gathers, with the values that the products would have."""

import numpy as np
import pytest

import pullback as pb
import pullback.numpy as jnp
from pullback.compiler.pipelines import optimize_jaxpr

RNG = np.random.default_rng(0)


def names(f, *args):
    """The primitives of the optimized program of `f`."""
    return [eqn.primitive.name for eqn in optimize_jaxpr(pb.make_jaxpr(f)(*args)).jaxpr.eqns]


def is_gather(f, *args, want):
    found = names(f, *args)
    assert "gather" in found and "dot_general" not in found
    got = pb.jit(f)(*args)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int32"])
def test_rows_from_the_left(dtype):
    x = RNG.integers(-9, 9, (20, 5)).astype(dtype)
    i = np.array([3, 0, 19, 20, -1, 7, 7], np.int32)
    want = np.where((i >= 0)[:, None] & (i < 20)[:, None], x[np.clip(i, 0, 19)], np.zeros((), dtype))
    is_gather(lambda i, x: pb.nn.one_hot(i, 20, dtype=x.dtype) @ x, i, x, want=want)


def test_columns_from_the_right():
    x = RNG.standard_normal((3, 4, 20)).astype("f4")
    i = RNG.integers(0, 20, (6, 2)).astype("i4")
    f = lambda i, x: jnp.einsum("abc,dec->abde", x, pb.nn.one_hot(i, 20))
    is_gather(f, i, x, want=x[:, :, i])


def test_classes_first():
    x = RNG.standard_normal((20, 5)).astype("f4")
    i = RNG.integers(0, 20, 6).astype("i4")
    is_gather(lambda i, x: (jnp.arange(20)[:, None] == i).astype("f4").T @ x, i, x, want=x[i])
    is_gather(lambda i, x: jnp.where(i[:, None] == jnp.arange(20), jnp.float32(1), jnp.float32(0)) @ x, i, x, want=x[i])


def test_types_too_narrow_for_the_count():
    """Indices of 8 bits never reach 200, and a counter of 8 bits would not count that far."""
    x = RNG.standard_normal((200, 5)).astype("f4")
    i = np.array([0, 127, -1, -56], np.int8)
    want = np.stack([x[0], x[127], np.zeros(5, "f4"), np.zeros(5, "f4")])
    is_gather(lambda i, x: pb.nn.one_hot(i.astype("i4"), 200) @ x, i, x, want=want)


def test_other_comparisons_stay_products():
    x = RNG.standard_normal((20, 5)).astype("f4")
    i = RNG.integers(0, 20, 6).astype("i4")
    for f in (
        lambda i, x: (i[:, None] <= jnp.arange(20)).astype("f4") @ x,
        lambda i, x: (i[:, None] * jnp.arange(20) == jnp.arange(20)).astype("f4") @ x,
        lambda i, x: (2.0 * pb.nn.one_hot(i, 20) + 1) @ x,
    ):
        assert "dot_general" in names(f, i, x)


def test_counts_of_one_value():
    x = RNG.integers(0, 4, (20, 30)).astype("i4")
    np.testing.assert_array_equal(pb.jit(lambda x: (x == 1).sum(0))(x), (x == 1).sum(0))
    np.testing.assert_array_equal(pb.jit(lambda x: (x == 1).astype("i4") @ x.T)(x), (x == 1) @ x.T)


def is_scatter(f, *args, want):
    found = names(f, *args)
    assert "scatter-add" in found and "dot_general" not in found and "reduce_sum" not in found
    got = pb.jit(f)(*args)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int32"])
def test_sums_of_segments(dtype):
    x = RNG.integers(-9, 9, (70, 3, 5)).astype(dtype)
    i = RNG.integers(-2, 13, (70, 3)).astype("i4")
    want = np.zeros((11, 5), dtype)
    inside = (i >= 0) & (i < 11)
    np.add.at(want, i[inside], x[inside])
    hot = lambda i, dtype: pb.nn.one_hot(i, 11, dtype=dtype)
    is_scatter(lambda i, x: jnp.einsum("abk,abd->kd", hot(i, x.dtype), x), i, x, want=want)
    is_scatter(lambda i, x: jnp.einsum("abd,abk->dk", x, hot(i, x.dtype)), i, x, want=want.T)
    is_scatter(lambda i, x: jnp.einsum("bda,abk->kd", x.transpose(1, 2, 0), hot(i, x.dtype)), i, x, want=want)
    first = np.zeros((11, 3, 5), dtype)
    np.add.at(first, i[:, 0][inside[:, 0]], x[inside[:, 0]])
    is_scatter(lambda i, x: jnp.tensordot(hot(i, x.dtype).T, x, 1), i[:, 0], x, want=first)
    is_scatter(lambda i, x: hot(i, x.dtype).T @ x, i[:, 0], x[:, 0, 0], want=first[:, 0, 0])
    is_scatter(lambda i, x: x @ hot(i, x.dtype), i[:, 0], x[:, 0, 0], want=first[:, 0, 0])


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int8", "complex64"])
def test_counts(dtype):
    i = RNG.integers(-3, 44, (60, 30)).astype("i4")
    want = np.bincount(i[(i >= 0) & (i < 41)].ravel(), minlength=41).astype(dtype)
    is_scatter(lambda i: pb.nn.one_hot(i, 41, dtype=dtype).sum((0, 1)).astype(dtype), i, want=want)


def test_long_segments_are_as_accurate_as_products():
    x = RNG.random((200_000, 2)).astype("f4")
    i = np.zeros(200_000, np.int32)
    got = pb.jit(lambda i, x: pb.nn.one_hot(i, 20).T @ x)(i, x)
    np.testing.assert_allclose(got[0], x.astype("f8").sum(0), rtol=2e-7)


def test_sums_that_keep_other_axes_stay_products():
    x = RNG.standard_normal((6, 4)).astype("f4")
    i = RNG.integers(0, 20, (6, 3)).astype("i4")
    for f in (
        lambda i, x: jnp.einsum("abk,ad->bkd", pb.nn.one_hot(i, 20), x),
        lambda i, x: jnp.einsum("ak,ad->kd", pb.nn.one_hot(i[:, 0], 5), x),
        lambda i, x: jnp.einsum("ak,ad->kd", (i[:, :1] > jnp.arange(20)).astype("f4"), x),
    ):
        assert "scatter-add" not in names(f, i, x)
        np.testing.assert_allclose(pb.jit(f)(i, x), f(i, x), rtol=1e-5, atol=1e-6)


def test_gradients_of_segments():
    x = RNG.standard_normal((30, 5)).astype("f4")
    i = RNG.integers(0, 20, 30).astype("i4")
    got = pb.jit(pb.grad(lambda x: ((pb.nn.one_hot(i, 20).T @ x) ** 2).sum()))(x)
    sums = np.zeros((20, 5), np.float32)
    np.add.at(sums, i, x)
    np.testing.assert_allclose(got, 2 * sums[i], rtol=1e-5, atol=1e-6)


def test_gradients():
    x = RNG.standard_normal((20, 5)).astype("f4")
    i = RNG.integers(0, 20, 6).astype("i4")
    got = pb.jit(pb.grad(lambda x: ((pb.nn.one_hot(i, 20) @ x) ** 2).sum()))(x)
    want = np.zeros_like(x)
    np.add.at(want, i, 2 * x[i])
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_sums_of_groups_by_masks():
    """Where a mask for each class chooses the elements: also for vmapped masks, and for axes in another order."""
    x = RNG.standard_normal((70, 3, 9)).astype("f4")
    i = RNG.integers(-2, 90, (70, 3)).astype("i4")
    want = np.stack([x[i == k].sum(0) for k in range(80)])
    by_vmap = lambda i, x: pb.vmap(lambda k: jnp.where((i == k)[..., None], x, 0).sum((0, 1)))(jnp.arange(80))
    by_product = lambda i, x: ((i[..., None] == jnp.arange(80))[..., None] * x[:, :, None]).sum((0, 1))
    last = lambda i, x: jnp.where(i[..., None, None] == jnp.arange(80), x[..., None], 0).sum((0, 1))
    one = lambda i, x: jnp.where(i[:, :1] == jnp.arange(80), x[:, :1, 0], 0).sum(0)
    for f, exact in (
        (by_vmap, want),
        (by_product, want),
        (last, want.T),
        (one, np.stack([x[:, 0, 0][i[:, 0] == k].sum() for k in range(80)])),
    ):
        found = names(f, i, x)
        assert "scatter-add" in found and not {"reduce_sum", "dot_general"} & set(found), found
        np.testing.assert_allclose(pb.jit(f)(i, x), exact, rtol=1e-5, atol=1e-5)
    others = lambda i, x: pb.vmap(lambda k: jnp.where((i == k)[..., None], x, 0).sum(0))(jnp.arange(80))
    assert "scatter-add" not in names(others, i, x)  # an axis of the mask stays
    np.testing.assert_allclose(pb.jit(others)(i, x).sum(1), want, rtol=1e-5, atol=1e-5)
    ones = lambda i, x: pb.vmap(lambda k: jnp.where((i == k)[..., None], x, 1).sum((0, 1)))(jnp.arange(80))
    assert "scatter-add" not in names(ones, i, x)


def test_many_rows_of_few_classes_are_added_without_a_wide_copy():
    """The sums are as exact as in the wider type, which the scatter adds in by itself."""
    i, x = np.zeros(20_000, np.int32), np.full((20_000, 9), 0.1, np.float32)
    f = lambda i, x: pb.nn.one_hot(i, 20).T @ x
    assert all(e.outvars[0].aval.dtype != np.float64 for e in optimize_jaxpr(pb.make_jaxpr(f)(i, x)).jaxpr.eqns)
    np.testing.assert_allclose(pb.jit(f)(i, x)[0], np.full(9, 20_000 * float(np.float32(0.1))), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "i4", "u4"])
def test_many_numbers_added_at_few_places(dtype):
    """A sum for each place, in lanes; numbers of places that are not there are left out."""
    rng = np.random.default_rng(0)
    for shape in ((3000,), (40, 100)):
        i, x = rng.integers(-3, 12, shape).astype("i4"), (rng.standard_normal(shape) * 9).astype(dtype)
        start = np.zeros(9, "f4") if dtype == "f4" else np.arange(9).astype(dtype)

        def f(start, i, x):
            start = jnp.zeros(9) if dtype == "f4" else start
            return start.at[i].add(x, mode="drop", wrap_negative_indices=False)

        expected = start.astype("f8" if dtype == "f4" else dtype)
        inside = (i >= 0) & (i < 9)
        np.add.at(expected, i[inside], x[inside])
        np.testing.assert_allclose(pb.jit(f)(start, i, x), expected, rtol=2e-6 if dtype == "f4" else 0)
        names = {e.primitive.name for e in optimize_jaxpr(pb.make_jaxpr(f)(start, i, x)).jaxpr.eqns}
        assert "scatter-add" not in names and "reduce_sum" in names
    i = rng.integers(0, 5, 5000)
    np.testing.assert_array_equal(pb.jit(lambda i: jnp.bincount(i, length=5))(i), np.bincount(i, minlength=5))


def test_zeros_that_are_added_keep_their_sign():
    i, x = np.arange(1000) % 4, np.full(1000, -0.0, "f4")
    for start, sign in ((np.full(4, -0.0, "f4"), True), (np.zeros(4, "f4"), False)):
        for given in (start, jnp.asarray(start)):
            found = pb.jit(lambda i, x, given=given: jnp.asarray(given).at[i].add(x))(i, x)
            np.testing.assert_array_equal(np.signbit(found), np.full(4, sign))
        found = pb.jit(lambda start, i, x: start.at[i].add(x))(start, i, x)
        np.testing.assert_array_equal(np.signbit(found), np.full(4, sign))


def test_what_is_not_added_stays_out():
    """Infinities and NaN of one place are none of the others'."""
    i, x = np.arange(1000) % 4, np.ones(1000, "f4")
    x[1::8], x[2::8] = np.inf, np.nan
    found = pb.jit(lambda i, x: pb.ops.segment_sum(x, i, 4))(i, x)
    np.testing.assert_array_equal(found, [250, np.inf, np.nan, 250])


def test_few_numbers_or_many_places_are_scattered():
    for n, places in ((100, 9), (3000, 40)):
        i, x = np.arange(n) % places, np.ones(n, "f4")
        f = lambda i, x, places=places: jnp.zeros(places).at[i].add(x)
        assert "scatter-add" in {e.primitive.name for e in optimize_jaxpr(pb.make_jaxpr(f)(i, x)).jaxpr.eqns}
        np.testing.assert_allclose(pb.jit(f)(i, x), np.bincount(i, x))
