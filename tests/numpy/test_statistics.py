"""Quantiles, averages, covariances, histograms, counts, interpolation and differences."""

from __future__ import annotations

import numpy as np
import pytest
from against_numpy import assert_same, check, check_gradient

import pullback
import pullback.numpy as jnp
from pullback.errors import ConcretizationTypeError

RNG = np.random.default_rng(0)
DTYPES = [np.float32, np.float64, np.float16, np.int32, np.uint8, np.bool_]


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def x64(request):
    with pullback.enable_x64(request.param):
        yield request.param


def sample(shape, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    if dtype is np.bool_:
        return rng.random(shape) > 0.5
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 20, shape).astype(dtype)
    return (2 * rng.normal(size=shape)).astype(dtype)


def with_nan(shape, dtype=np.float32):
    x = sample(shape, dtype)
    x[RNG.random(shape) < 0.2] = np.nan
    return x


# ---- quantiles

METHODS = ["linear", "lower", "higher", "midpoint", "inverted_cdf"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("q", [0.3, 0.0, 1.0, np.array([0.1, 0.5, 0.9])], ids=str)
def test_quantile(method, q):
    for shape, axis in (((7,), None), ((1,), None), ((4, 5), 0), ((4, 5), (0, 1)), ((2, 3, 4), (0, -1))):
        for keepdims in (False, True):
            x = sample(shape)
            check(
                lambda x, a=axis, k=keepdims: jnp.quantile(x, jnp.asarray(q), axis=a, method=method, keepdims=k),
                lambda x, a=axis, k=keepdims: np.quantile(x, q, axis=a, method=method, keepdims=k),
                x,
                compiled=shape == (4, 5),
            )


def test_nearest_quantile_is_of_the_nearer_element():
    x = np.arange(11, dtype=np.float32)
    for q, expected in ((0.24, 2.0), (0.26, 3.0), (0.0, 0.0), (1.0, 10.0)):
        check(lambda x, q=q: jnp.quantile(x, q, method="nearest"), lambda x, e=expected: np.float32(e), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_quantile_of_dtypes(dtype, x64):
    x = sample((9,), dtype)
    got = check(lambda x: jnp.quantile(x, 0.4), lambda x: np.quantile(x.astype(float), 0.4), x)
    assert got.dtype == jnp.asarray(x).mean().dtype
    check(jnp.median, lambda x: np.median(x.astype(float)), x)


@pytest.mark.parametrize("method", METHODS)
def test_quantile_without_nan(method):
    x = with_nan((5, 6))
    x[2] = np.nan
    with pytest.warns(RuntimeWarning, match="All-NaN"):
        expected = np.nanquantile(x, 0.4, axis=1, method=method)
    check(lambda x: jnp.nanquantile(x, 0.4, axis=1, method=method), lambda x: expected, x)
    check(
        lambda x: jnp.quantile(x, 0.4, axis=0, method=method), lambda x: np.quantile(x, 0.4, axis=0, method=method), x
    )
    check(
        lambda x: jnp.nanpercentile(x, jnp.array([20.0, 70.0]), method=method),
        lambda x: np.nanpercentile(x, [20, 70], method=method),
        x,
    )


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_medians(axis, keepdims, x64):
    x, y = sample((4, 5)), with_nan((4, 5))
    check(lambda x: jnp.median(x, axis, keepdims=keepdims), lambda x: np.median(x, axis, keepdims=keepdims), x)
    check(lambda x: jnp.nanmedian(x, axis, keepdims=keepdims), lambda x: np.nanmedian(x, axis, keepdims=keepdims), y)
    check(
        lambda x: jnp.percentile(x, 30, axis, keepdims=keepdims),
        lambda x: np.percentile(x, 30, axis, keepdims=keepdims),
        x,
    )


def test_weighted_quantiles():
    x, w = sample((4, 5)), RNG.integers(0, 3, 5).astype(np.float32) + np.float32(0.5)
    check(
        lambda x, w: jnp.quantile(x, jnp.array([0.2, 0.7]), axis=1, weights=w, method="inverted_cdf"),
        lambda x, w: np.quantile(x, [0.2, 0.7], axis=1, weights=w, method="inverted_cdf"),
        x,
        w,
    )


def test_quantiles_of_infinities_and_empty_rows():
    x = np.array([np.inf, 1, 2, -np.inf], np.float32)
    expected = np.array([-np.inf, -np.inf, 1.5, np.inf])
    assert_same(jnp.quantile(jnp.asarray(x), jnp.array([0.0, 0.3, 0.5, 1.0])), expected)
    assert jnp.quantile(jnp.zeros((0, 3)), 0.5, axis=1).shape == (0,)
    with pytest.raises(TypeError, match="axis of length 0 has no quantiles"):
        jnp.quantile(jnp.zeros((0, 3)), 0.5, axis=0)
    with pytest.raises(IndexError, match="axis of length 0 has no quantiles"):  # of nothing at all, as in JAX
        jnp.nanmedian(jnp.zeros((0, 3)), axis=(0, 1))
    for wanted in ({"axis": 0}, {"keepdims": True}):
        with pytest.raises(TypeError, match="axis of length 0 has no quantiles"):
            jnp.nanquantile(jnp.zeros((0, 3)), 0.5, **wanted)


def test_gradients_of_quantiles():
    x = RNG.permutation(9).astype(float) + 0.1
    check_gradient(lambda x: jnp.quantile(x, jnp.array([0.2, 0.55])), x)
    check_gradient(lambda q: jnp.quantile(jnp.asarray(x), q), np.array([0.2, 0.55]))
    check_gradient(lambda x: jnp.median(x, axis=1), x.reshape(3, 3))


def test_mistakes_in_quantiles():
    x = jnp.arange(4.0)
    for error, text, call in [
        (ValueError, "argument 'q' must be a scalar or a vector", lambda: jnp.quantile(x, jnp.ones((2, 2)))),
        (ValueError, "complex numbers have no order", lambda: jnp.quantile(x + 1j, 0.5)),
        (ValueError, "argument 'method' is 'foo'", lambda: jnp.quantile(x, 0.5, method="foo")),
        (ValueError, "does not support overwrite_input", lambda: jnp.quantile(x, 0.5, overwrite_input=True)),
        (ValueError, "axis 3 is out of bounds", lambda: jnp.median(x, axis=3)),
        (TypeError, "got <class 'list'> at position 0", lambda: jnp.median([1, 2])),
        (NotImplementedError, "weights need method='inverted_cdf'", lambda: jnp.quantile(x, 0.5, weights=x)),
    ]:
        with pytest.raises(error, match=text):
            call()


# ---- averages and covariances


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
def test_average(axis, x64):
    x, w = sample((3, 4)), np.abs(sample((3, 4), seed=1))
    for keepdims in (False, True):
        check(
            lambda x, w, k=keepdims: jnp.average(x, axis, w, True, k),
            lambda x, w, k=keepdims: np.average(x, axis, w, True, keepdims=k),
            x,
            w,
        )
        check(
            lambda x, k=keepdims: jnp.average(x, axis, returned=True, keepdims=k),
            lambda x, k=keepdims: np.average(x, axis, returned=True, keepdims=k),
            x,
        )
    v = np.arange(1.0, 5, dtype=np.float32)
    check(lambda x, v: jnp.average(x, 1, v), lambda x, v: np.average(x, 1, v), x, v)
    with pytest.raises(ValueError, match="pass 'axis', the axes they belong to"):
        jnp.average(jnp.asarray(x), weights=jnp.asarray(v))
    with pytest.raises(ValueError, match="argument 'weights' has shape"):
        jnp.average(jnp.asarray(x), 0, jnp.asarray(v))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int32])
@pytest.mark.parametrize(
    "options", [{}, {"rowvar": False}, {"bias": True}, {"ddof": 2}, {"ddof": 0, "rowvar": False}], ids=str
)
def test_cov(dtype, options, x64):
    x = sample((3, 5), np.float32).astype(dtype) + (1j * sample((3, 5), seed=3) if dtype is np.complex64 else 0)
    x = x.astype(dtype)
    check(lambda x: jnp.cov(x, **options), lambda x: np.cov(x, **options), x)
    check(
        lambda x: jnp.cov(x, x[:1] * 2, **{**options, "rowvar": True}),
        lambda x: np.cov(x, x[:1] * 2, **{**options, "rowvar": True}),
        x,
    )


def test_weighted_cov():
    x, f, a = sample((3, 5)), np.array([1, 2, 0, 3, 1], np.int32), np.abs(sample((5,), seed=2))
    check(lambda x, f: jnp.cov(x, fweights=f), lambda x, f: np.cov(x, fweights=f), x, f)
    check(lambda x, a: jnp.cov(x, aweights=a), lambda x, a: np.cov(x, aweights=a), x, a)
    check(
        lambda x, f, a: jnp.cov(x, fweights=f, aweights=a), lambda x, f, a: np.cov(x, fweights=f, aweights=a), x, f, a
    )
    with pytest.raises(TypeError, match="fweights must be integer"):
        jnp.cov(jnp.asarray(x), fweights=jnp.ones(5))
    with pytest.raises(RuntimeError, match="incompatible numbers of samples and aweights"):
        jnp.cov(jnp.asarray(x), aweights=jnp.ones(4))
    with pytest.raises(ValueError, match="m has more than 2 dimensions"):
        jnp.cov(jnp.ones((2, 2, 2)))


def test_cov_of_too_few_observations_is_nan():
    assert np.isnan(jnp.cov(jnp.ones((3, 1)))).all()
    assert np.isnan(jnp.cov(jnp.ones((1, 4)), rowvar=False)).all()
    assert np.isnan(jnp.cov(jnp.ones((2, 3)), ddof=4)).all()
    assert jnp.cov(jnp.zeros((0, 3))).shape == (0, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_corrcoef(dtype, x64):
    x = sample((3, 6)).astype(dtype)
    x = (x + 1j * sample((3, 6), seed=3)).astype(dtype) if dtype is np.complex64 else x
    check(jnp.corrcoef, np.corrcoef, x)
    check(lambda x: jnp.corrcoef(x[0], x[1]), lambda x: np.corrcoef(x[0], x[1]), x)
    check(lambda x: jnp.corrcoef(x, rowvar=False), lambda x: np.corrcoef(x, rowvar=False), x)
    check(lambda x: jnp.corrcoef(x[0]), lambda x: np.corrcoef(x[0]), x)


def test_gradients_of_covariances():
    check_gradient(jnp.cov, sample((2, 5)))
    check_gradient(jnp.corrcoef, sample((3, 5)))


@pytest.mark.parametrize("offset", [-2, 0, 1, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.complex64])
def test_trace(offset, dtype):
    x = sample((3, 4, 2), np.int8).astype(dtype)
    check(lambda x: jnp.trace(x, offset), lambda x: np.trace(x, offset), x)
    check(lambda x: jnp.trace(x, offset, 2, 0), lambda x: np.trace(x, offset, 2, 0), x)
    check(lambda x, k: jnp.trace(x, k), lambda x, k: np.trace(x, k), x, np.int32(offset))
    with pytest.raises(ValueError, match="trace: axis1 and axis2 cannot be the same"):
        jnp.trace(jnp.asarray(x), axis1=1, axis2=-2)


# ---- counts


def test_bincount(x64):
    x, w = np.array([3, 1, 2, 2, 5], np.int32), np.array([1.0, 2, 1, 3, 1], np.float32)
    check(jnp.bincount, np.bincount, x, compiled=False)
    check(lambda x, w: jnp.bincount(x, w), lambda x, w: np.bincount(x, w), x, w, compiled=False)
    check(lambda x: jnp.bincount(x, minlength=9), lambda x: np.bincount(x, minlength=9), x, compiled=False)
    for length in (0, 3, 8):
        check(lambda x, n=length: jnp.bincount(x, length=n), lambda x, n=length: np.bincount(x, minlength=8)[:n], x)
        check(
            lambda x, w, n=length: jnp.bincount(x, w, length=n), lambda x, w, n=length: np.bincount(x, w, 8)[:n], x, w
        )
    assert_same(jnp.bincount(jnp.zeros(0, int)), np.zeros(0, int))
    assert_same(jnp.bincount(jnp.array([-1, 2, -5])), np.array([2, 0, 1]))


def test_mistakes_in_bincount():
    with pytest.raises(TypeError, match="must be numbers"):
        jnp.bincount(jnp.arange(2), jnp.array([True, False]))
    x = jnp.array([1, 2])
    with pytest.raises(TypeError, match="argument 'x' is of dtype float32"):
        jnp.bincount(jnp.ones(2))
    with pytest.raises(ValueError, match="only 1-dimensional"):
        jnp.bincount(jnp.ones((2, 2), int))
    with pytest.raises(ValueError, match="weights must match"):
        jnp.bincount(x, jnp.ones(3))
    with pytest.raises(ConcretizationTypeError):
        pullback.jit(jnp.bincount)(x)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[1, 2, 4, 6], [6, 4, 2, 1], [2, 2], [3]], ids=str)
def test_digitize(bins, right):
    bins = np.array(bins, np.float32)
    for x in (np.array([0, 1, 1.5, 2, 3, 6, 7, np.nan], np.float32), np.float32(2), np.zeros((0,), np.float32)):
        expected = np.digitize(np.nan_to_num(x, nan=np.inf), bins, right)
        if bins[0] > bins[-1]:
            expected = np.where(np.isnan(x), 0, expected)
        check(lambda x, b: jnp.digitize(x, b, right), lambda x, b, e=expected: e, x, bins)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bins", [1, 4, np.array([-1.0, 0, 0.5, 3])], ids=str)
def test_histogram(dtype, bins, x64):
    x = sample((3, 20), dtype)
    ours = bins if isinstance(bins, int) else jnp.asarray(bins)
    check(
        lambda x: jnp.histogram(x, ours),
        lambda x: np.histogram(x.astype(float), bins),
        x,
        compiled=dtype is np.float32,
    )


@pytest.mark.parametrize("density", [False, True])
def test_histogram_options(density):
    x, w = sample((50,)), np.abs(sample((50,), seed=1))
    for options in ({}, {"range": (-1.0, 2.0)}, {"range": (0.0, 0.0)}):
        check(
            lambda x, w, o=options: jnp.histogram(x, 5, weights=w, density=density, **o),
            lambda x, w, o=options: np.histogram(x, 5, weights=w, density=density, **o),
            x,
            w,
        )
    check(lambda x: jnp.histogram(x, 3), lambda x: np.histogram(x, 3), np.ones(4, np.float32))
    check(jnp.histogram_bin_edges, np.histogram_bin_edges, x)


@pytest.mark.parametrize("kind", ["float16", "int32", "complex64"])
def test_edges_of_bins_have_the_type_of_the_elements(kind, x64):
    """Of complex edges the real parts count where the elements are real."""
    x, edges = np.array([1, 2, 3], kind), np.array([1 + 1j, 2, 3])
    counts, found = jnp.histogram(x, edges if kind != "complex64" else edges.real)
    assert found.dtype == jnp.histogram(x)[1].dtype
    np.testing.assert_array_equal(found, np.array([1, 2, 3], found.dtype))
    np.testing.assert_array_equal(counts, np.array([1, 2], found.dtype))
    if kind != "complex64":
        assert jnp.digitize(x, edges).tolist() == [0, 2, 3]  # real parts first, then imaginary ones


def test_histograms_of_several_variables():
    x, y, w = sample((40,)), sample((40,), seed=1), np.abs(sample((40,), seed=2))
    for options in (
        {},
        {"bins": 3},
        {"bins": [2, 3]},
        {"bins": 2, "range": [[-1, 2], None]},
        {"bins": 2, "density": True},
    ):
        check(
            lambda x, y, o=options: jnp.histogram2d(x, y, **o), lambda x, y, o=options: np.histogram2d(x, y, **o), x, y
        )
    check(
        lambda x, y, w: jnp.histogram2d(x, y, 3, weights=w), lambda x, y, w: np.histogram2d(x, y, 3, weights=w), x, y, w
    )
    points = np.stack([x, y, w], 1)
    for options in ({"bins": 2}, {"bins": [2, 1, 3], "density": True}, {"bins": 2, "range": [(0, 2), (-1, 1), (0, 1)]}):
        check(lambda p, o=options: jnp.histogramdd(p, **o), lambda p, o=options: np.histogramdd(p, **o), points)


def test_mistakes_in_histograms():
    x = jnp.arange(4.0)
    for error, text, call in [
        (ValueError, "expected a weight for each element", lambda: jnp.histogram(x, weights=x[:2])),
        (ValueError, r"a pair \(low, high\)", lambda: jnp.histogram(x, 3, range=(1, 2, 3))),
        (TypeError, "must be an integer or edges", lambda: jnp.histogram(x, 2.5)),
        (NotImplementedError, "choosing bins from the data", lambda: jnp.histogram(x, "auto")),
        (
            ValueError,
            "'bins' has 3 entries for points of 2 coordinates",
            lambda: jnp.histogramdd(jnp.ones((4, 2)), [1, 2, 3]),
        ),
        (
            ValueError,
            r"'weights' has shape \(2,\) for 4 points",
            lambda: jnp.histogramdd(jnp.ones((4, 2)), weights=x[:2]),
        ),
        (ValueError, "expected a vector of edges", lambda: jnp.digitize(x, jnp.ones((2, 2)))),
    ]:
        with pytest.raises(error, match=text):
            call()


# ---- interpolation, sums and differences along an axis

XP, FP = np.array([1.0, 2, 4, 5], np.float32), np.array([1.0, 3, 2, 8], np.float32)


@pytest.mark.parametrize("options", [{}, {"left": -1.0}, {"right": 9.0, "left": 0.0}, {"period": 3.0}], ids=str)
def test_interp(options, x64):
    for x in (np.linspace(-1, 7, 30, dtype=np.float32), np.float32(3.3), sample((2, 3), np.int32)):
        check(
            lambda x, xp, fp: jnp.interp(x, xp, fp, **options),
            lambda x, xp, fp: np.interp(x, xp, fp, **options),
            x,
            XP,
            FP,
        )
    z = (FP + 1j * FP[::-1]).astype(np.complex64)
    check(jnp.interp, np.interp, np.linspace(0, 6, 11, dtype=np.float32), XP, z)


def test_interp_beyond_the_ends():
    x = np.array([0.0, 6.0], np.float32)
    got = jnp.interp(x, XP, FP, left="extrapolate", right="extrapolate")
    assert_same(got, np.array([-1.0, 14.0]))
    check_gradient(lambda fp: jnp.interp(jnp.linspace(0, 6, 7), jnp.asarray(XP), fp), FP)
    check_gradient(lambda x: jnp.interp(x, jnp.asarray(XP), jnp.asarray(FP, float)), np.array([1.3, 2.5, 4.9]))


def test_mistakes_in_interp():
    for text, call in [
        ("expected vectors of one length", lambda: jnp.interp(XP, XP, FP[:2])),
        ("argument 'x' is complex", lambda: jnp.interp(XP + 1j, XP, FP)),
        ("argument 'left' is 'foo'", lambda: jnp.interp(XP, XP, FP, left="foo")),
        ("period must be a scalar", lambda: jnp.interp(XP, XP, FP, period=jnp.ones(2))),
    ]:
        with pytest.raises(ValueError, match=text):
            call()


def test_trapezoid():
    y, x = sample((3, 4)), np.cumsum(np.abs(sample((4,)))).astype(np.float32)
    check(jnp.trapezoid, np.trapezoid, y)
    check(lambda y: jnp.trapezoid(y, dx=0.5, axis=0), lambda y: np.trapezoid(y, dx=0.5, axis=0), y)
    check(lambda y, x: jnp.trapezoid(y, x), lambda y, x: np.trapezoid(y, x), y, x)
    check(lambda y: jnp.trapezoid(y, y, axis=0), lambda y: np.trapezoid(y, y, axis=0), y)
    check(lambda y: jnp.trapezoid(y[:, :1]), lambda y: np.trapezoid(y[:, :1]), y)
    check_gradient(lambda y, x: jnp.trapezoid(y, x), y, x)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8, np.bool_, np.complex64])
@pytest.mark.parametrize("n", [0, 1, 2, 9])
def test_diff(dtype, n):
    x = sample((3, 5), np.uint8).astype(dtype)
    for axis in (0, -1):
        check(lambda x, a=axis: jnp.diff(x, n, a), lambda x, a=axis: np.diff(x, n, a), x, compiled=n == 2)
    if dtype is not np.bool_:
        check(
            lambda x: jnp.diff(x, n, 0, prepend=x[:1], append=x[:2]),
            lambda x: np.diff(x, n, 0, prepend=x[:1], append=x[:2]),
            x,
        )


def test_ediff1d():
    x = sample((2, 3), np.int32)
    check(jnp.ediff1d, np.ediff1d, x)
    check(lambda x: jnp.ediff1d(x, 7, x), lambda x: np.ediff1d(x, 7, x), x)
    check(jnp.ediff1d, np.ediff1d, np.float32(2))
    with pytest.raises(ValueError, match="a scalar, which has no axis to take differences"):
        jnp.diff(2.0)
    with pytest.raises(ValueError, match="0 or more"):
        jnp.diff(jnp.ones(3), -1)


@pytest.mark.parametrize("shape", [(2,), (6,), (3, 4), (2, 3, 4)])
def test_gradient(shape):
    x = sample(shape)
    check(jnp.gradient, lambda x: np.gradient(x), x)
    check(lambda x: jnp.gradient(x, 0.5, axis=-1), lambda x: np.gradient(x, 0.5, axis=-1), x)
    places = np.cumsum(1 + np.abs(sample((shape[0],), seed=4))).astype(np.float32)
    check(lambda x, p: jnp.gradient(x, p, axis=0), lambda x, p: np.gradient(x, p, axis=0), x, places)
    if len(shape) == 2:
        check(lambda x, p: jnp.gradient(x, p, 2.0), lambda x, p: np.gradient(x, p, 2.0), x, places)


def test_mistakes_in_gradient():
    x = jnp.arange(4.0)
    with pytest.raises(TypeError, match="Invalid number of spacing arguments"):
        jnp.gradient(x, 1.0, 2.0)
    with pytest.raises(ValueError, match="2 elements or more"):
        jnp.gradient(x[:1])
    with pytest.raises(ValueError, match="Spacing arrays must be"):
        jnp.gradient(x, x[:2])


@pytest.mark.parametrize("options", [{}, {"period": 4}, {"period": 5}, {"discont": 4.0}, {"axis": 0}], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_unwrap(options, dtype, x64):
    x = np.cumsum(sample((3, 8), np.int32) - 9, axis=1).astype(dtype)
    if np.dtype(dtype).kind == "i" and "discont" in options:
        return  # integers with a discontinuity of another type are truncated here, and promoted by NumPy
    check(lambda x: jnp.unwrap(x, **options), lambda x: np.unwrap(x, **options), x)


@pytest.mark.parametrize("dtype", ["float16", jnp.bfloat16])
def test_quantiles_of_more_halves_than_a_half_can_count(dtype):
    x = jnp.asarray(np.random.default_rng(0).normal(size=70_001), dtype)
    wide, weights = np.asarray(x, np.float64), jnp.ones(70_001, dtype)
    for q in (0.3, 0.5, 0.9):
        want = np.quantile(wide, q)
        traced = pullback.jit(jnp.quantile)(x, q)
        found = [jnp.quantile(x, q), jnp.nanquantile(x, q), traced]
        found.append(jnp.quantile(x, q, weights=weights, method="inverted_cdf"))
        np.testing.assert_allclose(np.asarray(found, np.float64), want, atol=0.01)
    assert float(jnp.median(x)) == np.median(wide)


@pytest.mark.parametrize("types, want", [
    ((np.float32, np.float16, np.float16), np.float32), ((np.uint32, np.uint8, "bfloat16"), np.float32),
    ((np.float32, np.float32, np.complex64), np.complex64), ((np.float16, np.float16, np.float32), np.float32),
])  # fmt: skip
def test_interpolation_has_the_type_of_all_its_arguments(types, want):
    x, xp, fp = (jnp.ones(n, t) for n, t in zip((2, 3, 3), types))
    assert jnp.interp(x, xp, fp).dtype == want


@pytest.mark.parametrize("bins", [2, 7, 100, 4095])
def test_bins_found_by_division_are_those_of_the_edges(bins):
    rng = np.random.default_rng(0)
    n = 5000
    some = rng.random(n).astype("f4")
    assert "cond[" in str(pullback.make_jaxpr(lambda x: jnp.histogram(x, bins))(some))
    samples = {
        "normal": (rng.standard_normal(n), None),
        "on edges": (rng.integers(0, 50, n), None),
        "bins of few ulp": (1e6 + some, None),
        "outside": (some, (0.25, 0.75)),
        "nan": (np.where(some < 0.1, np.nan, some), (0.0, 1.0)),
        "infinite": (np.where(some < 0.1, np.inf, some), (0.0, 1.0)),
        "all equal": (np.ones(n), None),
        "backwards": (some, (1.0, 0.0)),
    }
    for name, (x, ends) in samples.items():
        x = x.astype("f4")
        counts, edges = pullback.jit(lambda x, ends=ends: jnp.histogram(x, bins, range=ends))(x)
        by_edges, _ = pullback.jit(jnp.histogram)(x, edges)
        np.testing.assert_array_equal(counts, by_edges, err_msg=name)


def test_unwrap_by_a_period_that_is_traced():
    x = np.array([0, 3, 5, 2, 7, 1])
    for period in (4, 5):
        found = pullback.jit(lambda x, period: jnp.unwrap(x, period=period))(x, period)
        np.testing.assert_array_equal(found, np.unwrap(x, period=period))


def test_weighted_quantiles_of_narrow_types_are_wide_as_the_weights():
    x, weights = jnp.arange(4.0), jnp.ones(4)
    for dtype in ("bfloat16", "float16", "float32"):
        found = jnp.quantile(x.astype(dtype), 0.5, weights=weights, method="inverted_cdf")
        assert found.dtype == np.float32 and found == 1
    assert jnp.quantile(x, 0.5, weights=weights.astype(int), method="inverted_cdf").dtype == np.float32


def test_an_array_of_bins_has_an_entry_for_each_coordinate():
    points = sample((20, 2))
    edges = np.array([[-3.0, 0.0, 3.0], [-2.0, 1.0, 2.0]], np.float32)
    for bins in (np.array([2, 3]), edges):
        check(lambda p, b=bins: jnp.histogramdd(p, b), lambda p, b=bins: np.histogramdd(p, b), points)
        check(lambda p, b=bins: jnp.histogram2d(*p.T, b), lambda p, b=bins: np.histogram2d(*p.T, b), points)
    assert_same(jnp.histogramdd(points, jnp.array([2, 3]))[0], jnp.histogramdd(points, [2, 3])[0])
    with pytest.raises(ValueError, match="3 entries"):
        jnp.histogramdd(points, jnp.arange(3))
    with pytest.raises(TypeError, match="one axis"):
        jnp.histogram_bin_edges(points, edges)


def test_no_values():
    assert_same(jnp.trapezoid(jnp.zeros((3, 0)), jnp.zeros(0)), np.zeros(3, np.float32))
    assert_same(jnp.take(jnp.ones((3, 4)), jnp.array([]), axis=0), np.zeros((0, 4), np.float32))
    with pytest.raises(ValueError, match="integer"):
        jnp.take(jnp.ones(3), jnp.array([1.0]))
