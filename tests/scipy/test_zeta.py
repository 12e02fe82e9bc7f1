"""The Hurwitz zeta function and polygamma below zero, at poles and in limits: eager and compiled, against mpmath."""

import mpmath as mp
import numpy as np
import pytest

import pullback as pb
from pullback import lax

INF, NAN = np.inf, np.nan


def hurwitz(s, q):
    """The sum over all terms, which mpmath does not give for negative q."""
    below = max(0, int(np.ceil(-q)))
    return mp.fsum([mp.mpf(q + k) ** -int(s) for k in range(below)]) + mp.zeta(int(s), mp.mpf(q) + below)


def both(function, *args):
    with pb.enable_x64(True):
        return np.asarray(function(*args)), np.asarray(pb.jit(function)(*args))


def test_negative_arguments():
    q = np.array([-0.5, -2.5, -0.25, -1e-3, -1e-9, -3.7, -9.999, -20.3, -1000.1, 0.5, 3.25])
    for s in (2.0, 3.0, 5.0, 8.0):
        expected = np.array([float(hurwitz(s, x)) for x in q])
        for got in both(lax.zeta, np.full_like(q, s), q):
            np.testing.assert_allclose(got, expected, rtol=1e-10)
        sign = -1 if s % 2 else 1
        for got in both(lax.polygamma, np.full_like(q, s - 1), q):
            np.testing.assert_allclose(got, sign * float(mp.factorial(s - 1)) * expected, rtol=1e-10)
    narrow = np.asarray(pb.jit(lax.zeta)(np.float32(3), q.astype("f4")))
    exact = [float(hurwitz(3, x)) for x in q.astype("f4").astype("f8")]
    np.testing.assert_allclose(narrow, exact, rtol=3e-7)


@pytest.mark.parametrize(
    "s, q, expected",
    [
        (10, -1, INF), (3, -2, INF), (2, 0, INF), (2.5, 0, INF), (2, -INF, INF), (2, -1e30, INF), (1, 3, INF),
        (1, -0.5, INF), (2, INF, 0), (2.5, -0.5, NAN), (0.5, 2, NAN), (-3, 2, NAN), (NAN, 2, NAN), (NAN, -1, NAN),
        (2, NAN, NAN), (1e15, 2, 0), (1e15, 1, 1), (1e15, 0.5, INF), (1.5, 1e300, 2e-150),
        (3, -1e-300, -INF), (2, -1e-300, INF),
    ],
)  # fmt: skip
def test_limits_of_zeta(s, q, expected):
    for got in both(lax.zeta, float(s), float(q)):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "m, x, expected",
    [
        (1, -1, INF), (2, -1, -INF), (1, 0, INF), (2, 0, -INF), (1, -INF, INF), (1, INF, 0),
        (0, 0, -INF), (0, INF, INF), (0.5, 2, NAN), (-1, 2, NAN), (INF, 2, NAN), (NAN, 2, NAN), (1, NAN, NAN),
        (2, 1e-300, -INF), (2, -1e-300, INF),
        (10, 1e30, -362880e-300),
    ],
)  # fmt: skip
def test_limits_of_polygamma(m, x, expected):
    for got in both(lax.polygamma, float(m), float(x)):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_digamma_has_a_slope_below_zero():
    with pb.enable_x64(True):
        slope = pb.jit(pb.grad(lambda x: lax.digamma(x).sum()))(np.array([-0.5, -3.3, 0.5]))
        np.testing.assert_allclose(slope, [float(mp.psi(1, mp.mpf(x))) for x in (-0.5, -3.3, 0.5)], rtol=1e-12)


def test_the_slope_of_digamma_needs_no_powers_and_has_the_bits_of_polygamma():
    x = np.concatenate([np.linspace(-9.9, 30, 401), [1e-9, 1e9, -0.5, 8.5]])
    with pb.enable_x64(True):
        for dtype in ("f4", "f8"):
            at = x.astype(dtype)
            slope = pb.jit(pb.grad(lambda x: lax.digamma(x).sum()))
            got = np.asarray(slope(at))
            np.testing.assert_array_equal(got, np.asarray(lax.polygamma(np.ones_like(at), at)))
            np.testing.assert_array_equal(got, np.asarray(pb.jit(lax.polygamma)(np.ones_like(at), at)))
            exact = [float(mp.psi(1, mp.mpf(float(v)))) for v in at]
            np.testing.assert_allclose(got, exact, rtol=4 * np.finfo(dtype).eps)
        assert "@pow" not in slope.lower(at).as_text("llvm")


def test_derivative_in_the_first_argument():
    s = np.array([1.001, 1.3, 2.0, 3.0, 7.5, 30.0, 3.0, 2.0, 2.5])
    q = np.array([2.0, 0.4, 1.0, 2.0, 3.3, 1.5, 40.0, 1e-3, 1e4])
    exact = [float(mp.zeta(a, b, 1)) for a, b in zip(s, q)]
    for got in both(pb.vmap(pb.grad(lax.zeta)), s, q):
        np.testing.assert_allclose(got, exact, rtol=1e-12)
    for got in both(pb.vmap(pb.grad(pb.grad(lax.zeta))), s[1:], q[1:]):
        np.testing.assert_allclose(got, [float(mp.zeta(a, b, 2)) for a, b in zip(s[1:], q[1:])], rtol=1e-10)
    narrow = pb.jit(pb.vmap(pb.grad(lax.zeta)))(s.astype("f4")[1:], q.astype("f4")[1:])
    exact = [float(mp.zeta(float(a), float(b), 1)) for a, b in zip(s.astype("f4")[1:], q.astype("f4")[1:])]
    np.testing.assert_allclose(narrow, exact, rtol=5e-6)
    assert pb.grad(lax.zeta)(1.0, 2.0) == -INF and pb.grad(lax.zeta)(3.0, INF) == 0
    assert np.isnan(pb.grad(lax.zeta)(0.5, 2.0)) and np.isnan(pb.grad(lax.zeta)(3.0, -1.5))


def test_slopes_of_large_exponents():
    """Products of Euler and Maclaurin's formula overflow float32 where the power is 0."""
    slopes = [float(pb.grad(lax.zeta)(*p)) for p in ((50.0, 300.0), (171.5, 10.0), (300.0, 1e-5), (6e4, 1e30))]
    np.testing.assert_array_equal(slopes, [0, 0, np.inf, 0])
