"""Polynomials, and the convolutions by which they are multiplied."""

from __future__ import annotations

import numpy as np
import pytest
from against_numpy import assert_same, check, check_gradient

import pullback
import pullback.numpy as jnp
from pullback.errors import ConcretizationTypeError

DTYPES = [np.float32, np.float64, np.int32, np.complex64]


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def x64(request):
    with pullback.enable_x64(request.param):
        yield request.param


def sample(n, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.integers(1, 9, n).astype(float)
    return (values + (1j * rng.integers(1, 9, n) if np.dtype(dtype).kind == "c" else 0)).astype(dtype)


# ---- convolution


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_convolutions(mode, dtype, x64):
    for n, m in ((5, 3), (3, 5), (4, 4), (5, 2), (2, 5), (1, 1), (6, 1)):
        a, v = sample(n, dtype), sample(m, dtype, 1)
        check(lambda a, v: jnp.convolve(a, v, mode), lambda a, v: np.convolve(a, v, mode), a, v, compiled=n == 5)
        check(lambda a, v: jnp.correlate(a, v, mode), lambda a, v: np.correlate(a, v, mode), a, v, compiled=n == 5)


def test_types_and_gradients_of_convolutions():
    a = jnp.arange(4, dtype=jnp.int8)
    assert jnp.convolve(a, a).dtype == jnp.float32
    assert jnp.convolve(a, a, preferred_element_type=jnp.float32).dtype == jnp.float32
    for mode in ("full", "same", "valid"):
        check_gradient(lambda a, v, m=mode: jnp.convolve(a, v, m), sample(5), sample(3, seed=1))
        check_gradient(lambda a, v, m=mode: jnp.correlate(a, v, m), sample(3), sample(5, seed=1))
    rows = sample(12).reshape(3, 4)
    kernel = sample(3, seed=1)
    got = pullback.vmap(lambda row: jnp.convolve(row, jnp.asarray(kernel)))(jnp.asarray(rows))
    assert_same(got, np.stack([np.convolve(row, kernel) for row in rows]))


def test_mistakes_in_convolutions():
    x = jnp.arange(3.0)
    for function, name in ((jnp.convolve, "convolve"), (jnp.correlate, "correlate")):
        with pytest.raises(ValueError, match="mode must be one of"):
            function(x, x, "foo")
        with pytest.raises(ValueError, match=f"{name}\\(\\) only support 1-dimensional inputs"):
            function(jnp.ones((2, 2)), x)
        with pytest.raises(ValueError, match="inputs cannot be empty"):
            function(x, jnp.zeros(0))
        with pytest.raises(TypeError, match=f"{name} requires ndarray"):
            function([1], x)


# ---- arithmetic


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lengths", [(3, 3), (4, 2), (1, 5)])
def test_sums_and_products(dtype, lengths, x64):
    a, b = sample(lengths[0], dtype), sample(lengths[1], dtype, 1)
    check(jnp.polyadd, np.polyadd, a, b)
    check(jnp.polysub, np.polysub, a, b)
    check(jnp.polymul, np.polymul, a, b)


def test_products_with_leading_zeros():
    a, b = np.array([0, 0, 2.0, 1], np.float32), np.array([0, 3.0, 1], np.float32)
    check(lambda a, b: jnp.polymul(a, b), lambda a, b: np.convolve(a, b), a, b)
    check(lambda a, b: jnp.polymul(a, b, trim_leading_zeros=True), np.polymul, a, b, compiled=False)
    with pytest.raises(ConcretizationTypeError, match="trim_leading_zeros=False"):
        pullback.jit(lambda a, b: jnp.polymul(a, b, trim_leading_zeros=True))(a, b)


@pytest.mark.parametrize("lengths", [(5, 3), (3, 3), (5, 1), (1, 1)])
def test_polydiv(lengths, x64):
    u, v = sample(lengths[0]), sample(lengths[1], seed=1)
    quotient, remainder = jnp.polydiv(jnp.asarray(u), jnp.asarray(v))
    assert remainder.shape == u.shape
    expected_quotient, expected_remainder = np.polydiv(u.astype(float), v.astype(float))
    assert_same(quotient, expected_quotient)
    tail = np.asarray(remainder)[len(u) - len(expected_remainder) :]
    np.testing.assert_allclose(tail, expected_remainder, atol=1e-3)
    back = np.polyadd(np.polymul(v, np.asarray(quotient)), np.asarray(remainder))
    np.testing.assert_allclose(back[-len(u) :], u, rtol=1e-4)
    check(lambda u, v: jnp.polydiv(u, v)[0], lambda u, v: expected_quotient, u, v)


def test_polydiv_by_more_than_it_has():
    quotient, remainder = jnp.polydiv(jnp.array([1.0, -1.0]), jnp.array([1.0, 2.0, 3.0]))
    assert_same(quotient, np.zeros(1))
    assert_same(remainder, np.array([1.0, -1.0]))
    exact = np.array([1.0, 2, 3, 6, 11], np.float32), np.array([1.0, 2, 3], np.float32)
    got = jnp.polydiv(*map(jnp.asarray, exact), trim_leading_zeros=True)
    assert_same(got, (np.array([1.0, 0, 0]), np.array([6.0, 11])))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("unroll", [1, 4, 16])
def test_polyval(dtype, unroll, x64):
    p = sample(6, dtype) / np.asarray(1, dtype)
    p = p.astype(dtype)
    for x in (np.asarray(2, dtype), sample(5, dtype, 1), sample(6, np.float32, 1).reshape(2, 3)):
        check(lambda p, x: jnp.polyval(p, x, unroll=unroll), np.polyval, p, x)


def test_polyval_of_many_polynomials_and_none():
    p = sample(6).reshape(3, 2)
    check(
        jnp.polyval, lambda p, x: np.stack([np.polyval(p[:, 0], x[0]), np.polyval(p[:, 1], x[1])]), p, sample(2, seed=1)
    )
    assert_same(jnp.polyval(jnp.zeros(0), 2.0), np.float32(0))
    check_gradient(jnp.polyval, sample(5), sample(3, seed=1) / 4)
    with pytest.raises(IndexError, match="expected a vector of coefficients"):
        jnp.polyval(2.0, 3.0)


@pytest.mark.parametrize("m", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("dtype", DTYPES)
def test_derivatives_and_antiderivatives(m, dtype, x64):
    p = sample(4, dtype)
    got = check(lambda p: jnp.polyder(p, m), lambda p: np.polyder(p, m), p)
    assert got.dtype == (jnp.complex64 if dtype is np.complex64 else jnp.asarray(p).mean().dtype)
    check(lambda p: jnp.polyint(p, m), lambda p: np.polyint(p, m), p)
    if m:
        check(lambda p: jnp.polyint(p, m, 3), lambda p: np.polyint(p, m, 3), p)
        k = np.arange(1.0, m + 1, dtype=np.float32)
        check(lambda p, k: jnp.polyint(p, m, k), lambda p, k: np.polyint(p, m, k), p, k)


def test_mistakes_in_derivatives():
    p = jnp.arange(3.0)
    with pytest.raises(ValueError, match="Order of derivative must be positive"):
        jnp.polyder(p, -1)
    with pytest.raises(ValueError, match="Order of integral must be positive"):
        jnp.polyint(p, -1)
    with pytest.raises(ValueError, match="argument 'k' must be one constant or"):
        jnp.polyint(p, 2, jnp.ones(3))
    with pytest.raises(ConcretizationTypeError):
        pullback.jit(jnp.polyder)(p, 1)


# ---- roots


def sorted_roots(r):
    r = np.asarray(r)
    return r[np.lexsort((r.imag.round(3), r.real.round(3)))]


@pytest.mark.parametrize("p", [[1, -3, 2], [0, 0, 2, 1], [1, 2, 0, 0], [2, 0, 1, 5, 3], [0, 0], [3], []], ids=str)
def test_roots(p, x64):
    p = np.array(p, np.float32)
    expected = np.roots(p.astype(float))
    got = jnp.roots(jnp.asarray(p))
    assert got.dtype == jnp.complex64
    assert got.shape == expected.shape
    np.testing.assert_allclose(sorted_roots(got), sorted_roots(expected), atol=1e-4)


def test_roots_of_traced_coefficients():
    find = pullback.jit(lambda p: jnp.roots(p, strip_zeros=False))
    np.testing.assert_allclose(sorted_roots(find(jnp.array([1.0, -3, 2]))), [1, 2], atol=1e-5)
    padded = np.asarray(find(jnp.array([0.0, 0, 2, 1])))
    np.testing.assert_allclose(padded[0], -0.5, atol=1e-5)
    assert np.isnan(padded[1:]).all()
    with pytest.raises(ConcretizationTypeError, match="strip_zeros=False"):
        pullback.jit(jnp.roots)(jnp.ones(3))
    with pytest.raises(ValueError, match="rank-1"):
        jnp.roots(jnp.ones((2, 2)))


def test_poly(x64):
    for roots in (
        np.array([1.0, -3, 2], np.float32),
        np.array([1 + 1j, 1 - 1j], np.complex64),
        np.array([2, 2], np.int32),
    ):
        check(jnp.poly, np.poly, roots)
    assert_same(jnp.poly(jnp.zeros(0)), np.poly(np.zeros(0)))
    matrix = np.array([[1.0, 2], [3, 4]], np.float32)
    check(lambda a: jnp.poly(a).real, np.poly, matrix, tolerance=1e-4)
    check_gradient(jnp.poly, np.array([1.0, 2.0, -1.5]))
    with pytest.raises(ValueError, match="vector of roots or a square matrix"):
        jnp.poly(jnp.ones((2, 3)))


# ---- fits


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_polyfit(degree, weighted, x64):
    x = np.linspace(-1, 2, 9, dtype=np.float32)
    y = np.stack([x**2 - x, np.sin(3 * x)], 1).astype(np.float32)
    w = (1 + np.abs(x)).astype(np.float32) if weighted else None
    for target in (y, y[:, 1]):
        check(
            lambda x, y: jnp.polyfit(x, y, degree, w=w),
            lambda x, y: np.polyfit(x, y, degree, w=w),
            x,
            target,
            tolerance=1e-4,
        )
        for cov in (True, "unscaled"):
            check(
                lambda x, y, c=cov: jnp.polyfit(x, y, degree, w=w, cov=c),
                lambda x, y, c=cov: np.polyfit(x, y, degree, w=w, cov=c),
                x,
                target,
                tolerance=1e-3,
                compiled=False,
            )


def test_polyfit_in_full():
    x, y = jnp.array([0.0, 1, 2, 3]), jnp.array([1.0, 2, 5, 11])
    c, residuals, rank, singular, rcond = jnp.polyfit(x, y, 1, full=True)
    expected = np.polyfit(np.asarray(x), np.asarray(y), 1, full=True)
    np.testing.assert_allclose(c, expected[0], rtol=1e-4)
    np.testing.assert_allclose(residuals, expected[1], rtol=1e-4)
    assert int(rank) == expected[2]
    np.testing.assert_allclose(singular, expected[3], rtol=1e-5)
    assert rcond.shape == ()
    check_gradient(lambda x, y: jnp.polyfit(x, y, 1), np.asarray(x), np.asarray(y), tolerance=1e-4)


def test_mistakes_in_polyfit():
    x = jnp.arange(4.0)
    for error, text, call in [
        (ValueError, "argument 'deg' must be 0 or more", lambda: jnp.polyfit(x, x, -1)),
        (TypeError, "argument 'x' must be a vector", lambda: jnp.polyfit(jnp.ones((2, 2)), x, 1)),
        (TypeError, "argument 'x' has no points", lambda: jnp.polyfit(x[:0], x[:0], 1)),
        (TypeError, "4 points in 'x', but 2 in 'y'", lambda: jnp.polyfit(x, x[:2], 1)),
        (TypeError, "'y' must have one axis or two", lambda: jnp.polyfit(x, jnp.ones((4, 1, 1)), 1)),
        (TypeError, "must be a vector of weights", lambda: jnp.polyfit(x, x, 1, w=jnp.ones((4, 1)))),
        (ValueError, "to scale the covariance, more than", lambda: jnp.polyfit(x[:2], x[:2], 3, cov=True)),
    ]:
        with pytest.raises(error, match=text):
            call()


def test_an_infinite_root_leaves_the_other_coefficients():
    np.testing.assert_array_equal(jnp.poly(np.array([2.0, np.inf]))[:1], [1.0])


def test_scalars_are_no_polynomials_to_differentiate():
    for f in (jnp.polyder, jnp.polyint):
        with pytest.raises(TypeError, match="scalar"):
            f(np.float32(1))


def test_polynomials_of_higher_rank_are_differentiated_along_their_first_axis():
    p = np.arange(1.0, 25.0).reshape(4, 3, 2)
    for m in (0, 1, 2, 4, 5):
        wanted = np.stack([np.polyder(p[:, i, j], m) for i in range(3) for j in range(2)], -1).reshape(-1, 3, 2)
        np.testing.assert_allclose(jnp.polyder(p, m), wanted if m < 4 else np.zeros((0, 3, 2)))


def test_sums_of_polynomials_with_more_axes():
    a, b = jnp.arange(6.0).reshape(2, 3), jnp.array([10.0])
    np.testing.assert_array_equal(jnp.polyadd(a, b), [[0, 1, 2], [13, 14, 15]])
    np.testing.assert_array_equal(pullback.jit(jnp.polysub)(b, a), [[0, -1, -2], [7, 6, 5]])
    np.testing.assert_array_equal(jnp.polyadd(a, jnp.ones((2, 1))), a + 1)
    with pytest.raises(ValueError, match="fewer dimensions"):
        jnp.polyadd(jnp.ones(3), a)
    with pytest.raises(ValueError, match="broadcast"):
        jnp.polysub(a, jnp.ones(2))
