"""Complex functions against mpmath on the plane, and against NumPy's special values."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from loops.math import kit

INF, NAN = math.inf, math.nan
MPMATH = {
    "exp": mp.exp,
    "exp2": lambda z: mp.power(2, z),
    "expm1": lambda z: mp.exp(z) - 1,
    "log": mp.log,
    "log1p": lambda z: mp.log(1 + z),
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "asinh": mp.asinh,
    "acosh": mp.acosh,
    "atanh": mp.atanh,
    "sqrt": mp.sqrt,
    "rsqrt": lambda z: 1 / mp.sqrt(z),
    "reciprocal": lambda z: 1 / z,
    "square": lambda z: z * z,
    "logistic": lambda z: 1 / (1 + mp.exp(-z)),
    "abs": abs,
    "sign": lambda z: z / abs(z),
}
NUMPY = {
    "exp": np.exp,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "sqrt": np.sqrt,
    "abs": np.abs,
}
# |error| / |value| and the errors of real and imaginary part, in eps: within 3 and 5 but for these. exp2 rounds z ln 2;
# parts of the others pass through zero off the axes.
BY_SIZE = {"exp2": 40}
BY_PART = {"expm1": INF, "square": INF, "exp2": INF, "log": 60, "logistic": 20}


def points(dtype: str, size: int = 30) -> np.ndarray:
    rng = np.random.default_rng(0)
    plane = [(rng.normal(size=size) + 1j * rng.normal(size=size)) * scale for scale in (1e-3, 0.5, 1, 5, 20)]
    circle = np.exp(1j * rng.uniform(0, 6.28, size))
    near_axes = [rng.normal(size=size) * 1e-8 + 1j * rng.normal(size=size), rng.normal(size=size) * (1 + 1e-8j)]
    return np.concatenate([*plane, circle, *near_axes]).astype(kit.NP_DTYPE[dtype])


def edge_points(dtype: str) -> np.ndarray:
    """All pairs of zeros, infinities, NaN, whole and half numbers and numbers whose squares leave the format."""
    info = np.finfo(kit.NP_DTYPE[dtype])
    large, small = float(info.max) / 4, float(info.smallest_normal) * 4
    values = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, INF, -INF, NAN, large, small])
    re, im = (part.ravel() for part in np.meshgrid(values, values))
    z = np.empty(re.size, kit.NP_DTYPE[dtype])
    z.real, z.imag = re, im
    return z


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("name", MPMATH)
def test_against_mpmath(name, dtype):
    z = points(dtype)
    got = kit.compiled(name, z).astype(np.complex128)
    with mp.workdps(50):
        want = np.array([complex(MPMATH[name](mp.mpc(complex(v)))) for v in z])
    eps = np.finfo(z.dtype).eps
    tiny = np.finfo(z.dtype).smallest_normal
    error = np.abs(got - want) / np.maximum(np.abs(want), tiny) / eps
    k = int(np.argmax(error))
    assert error[k] <= BY_SIZE.get(name, 3), (z[k], got[k], want[k])
    for part, other in ((got.real, want.real), (got.imag, want.imag)):
        error = np.abs(part - other) / np.maximum(np.abs(other), tiny / eps) / eps
        k = int(np.argmax(error))
        assert error[k] <= BY_PART.get(name, 5), (z[k], got[k], want[k])


@np.errstate(invalid="ignore")
def _agree(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    equal = (x == y) & (np.signbit(x) == np.signbit(y))
    near = np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= 1e-5 * np.abs(y))
    return equal | near | (np.isnan(x) & np.isnan(y))


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("name", NUMPY)
def test_special_values_are_numpys(name, dtype):
    """As NumPy; where C99 leaves a sign open (next to a NaN) any will do."""
    z = edge_points(dtype)
    got = kit.compiled(name, z)
    with np.errstate(all="ignore"):
        want = NUMPY[name](z)
    re, im = _agree(got.real, want.real), _agree(got.imag, want.imag)
    free = np.isnan(want.real) | np.isnan(want.imag)
    re |= free & (np.abs(got.real) == np.abs(want.real))
    im |= free & (np.abs(got.imag) == np.abs(want.imag))
    bad = np.flatnonzero(~(re & im))
    assert not bad.size, [(z[k], got[k], want[k]) for k in bad[:5]]


DIVISIONS = [
    (1, complex(INF, INF), complex(0, -0.0)),
    (1 + 1j, complex(INF, 1), 0j),
    (complex(INF, 0), 1 + 1j, complex(INF, -INF)),
    (complex(INF, NAN), 1 + 1j, complex(INF, -INF)),
    (1, complex(-0.0, 0.0), complex(-INF, NAN)),
    (1 + 1j, 0j, complex(INF, INF)),
    (0j, 0j, complex(NAN, NAN)),
    (1e300 + 1e300j, 1e300 + 1e300j, 1 + 0j),
    (1e-300 + 2e-300j, 1e-300 + 2e-300j, 1 + 0j),
]


def test_division_recovers_infinities():
    """The cases of C99 Annex G.5.1, which JAX follows too, and no overflow on the way."""
    z, w, want = (np.array(column, np.complex128) for column in zip(*DIVISIONS))
    got = kit.compiled("div", z, w)
    for part, other in ((got.real, want.real), (got.imag, want.imag)):
        assert np.allclose(part, other, rtol=1e-15, atol=1e-15, equal_nan=True), list(zip(z, w, got, want))


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_division_and_power(dtype):
    rng = np.random.default_rng(4)
    z, w = (rng.normal(size=(2, 200)) + 1j * rng.normal(size=(2, 200))).astype(kit.NP_DTYPE[dtype])
    eps = np.finfo(z.dtype).eps
    for name, function in (("div", lambda x, y: x / y), ("pow", mp.power)):
        got = kit.compiled(name, z, w)
        with mp.workdps(50):
            want = np.array([complex(function(mp.mpc(complex(x)), mp.mpc(complex(y)))) for x, y in zip(z, w)])
        error = np.abs(got - want) / np.abs(want) / eps
        assert error.max() <= (3 if name == "div" else 15), name


def test_power_of_zero():
    z = np.array([0, 0, 0, 2 + 1j, NAN], np.complex128)
    w = np.array([0, 2, 1 + 1j, 0, 0], np.complex128)
    assert np.array_equal(kit.compiled("pow", z, w), np.array([1, 0, 0, 1, 1], np.complex128))


def test_integer_pow():
    z = points("c128")
    got = kit.compiled("integer_pow", z, y=3)
    assert np.allclose(got, z**3, rtol=1e-14)


def test_sizes_of_complex64_over_all_exponents():
    """Within an ulp and a half of the value in f64, from the smallest numbers to those that overflow."""
    rng = np.random.default_rng(0)
    sizes = np.exp2(rng.uniform(-149, 128, 20_000))
    z = np.empty(sizes.size, np.complex64)
    with np.errstate(over="ignore"):
        z.real, z.imag = sizes, sizes * np.where(rng.random(sizes.size) < 0.5, rng.normal(size=sizes.size), 1e-30)
        exact = np.hypot(z.real.astype(np.float64), z.imag.astype(np.float64))
        want = exact.astype(np.float32)
    got = kit.compiled("abs", z)
    finite = np.isfinite(want)
    assert (np.abs(got[finite] - exact[finite]) <= 1.5 * np.spacing(want[finite])).all()
    np.testing.assert_array_equal(got[~finite], want[~finite])


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_quotients_over_all_exponents(dtype):
    """What is divided in the numbers' own precision, and what by the longer way beside it in a vector: 3 eps of the
    value, and of each part that is not far smaller than the other.
    """
    rng = np.random.default_rng(0)
    kind, n = kit.NP_DTYPE[dtype], 20_000
    most = 60 if dtype == "c64" else 500

    def numbers():
        sizes = np.exp2(rng.uniform(-most, most, n) * (rng.random(n) < 0.5))
        return (sizes * (rng.normal(size=n) + 1j * rng.normal(size=n))).astype(kind)

    z, w = numbers(), numbers()
    z[::100] = 0
    wide, by = z.astype(np.clongdouble), w.astype(np.clongdouble)
    eps = np.finfo(kind).eps
    square = by.real**2 + by.imag**2
    conjugate = (wide.real * by.real + wide.imag * by.imag, wide.imag * by.real - wide.real * by.imag)
    for got, want in (
        (kit.compiled("div", z, w), (conjugate[0] / square, conjugate[1] / square)),
        (kit.compiled("reciprocal", w), (by.real / square, -by.imag / square)),
        (kit.compiled("sign", w), (by.real / np.sqrt(square), by.imag / np.sqrt(square))),
    ):
        size = np.hypot(*want)
        for part, right in zip((got.real, got.imag), want):
            error = np.abs(part - right)
            assert (error <= 3 * eps * size).all()
            if dtype == "c64":  # in c128, exact products have more digits than a long double
                assert (error <= 3 * eps * np.abs(right)).all()
    assert not kit.compiled("div", z, w)[::100].any()


def test_signs_of_zeros_in_quotients_by_real_numbers():
    z = np.array([complex(5, -0.0), complex(-0.0, 5), complex(5, 0), complex(-5, -0.0)], np.complex64)
    got, want = kit.compiled("div", z, np.complex64(2)), kit.compiled("div", z.astype("c16"), np.complex128(2))
    for quotient in (got, want):
        assert (np.signbit(quotient.imag) == [True, False, False, False]).all()
    assert (np.abs(got) == 2.5).all()


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("y", [-3, -1, 2, 5])
def test_whole_powers_are_expanded_to_the_end(dtype, y):
    """Those below zero are quotients of complex numbers, which are expanded again."""
    z = points(dtype)
    got = kit.compiled("integer_pow", z, y=y)
    want = z.astype(np.complex128) ** y
    assert (np.abs(got - want) <= 8 * np.finfo(z.dtype).eps * np.abs(want)).all()


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_quotients_are_rounded_as_real_ones_where_nothing_is_lost(dtype):
    rng = np.random.default_rng(1)
    kind, n = kit.NP_DTYPE[dtype], 5_000
    z = (rng.normal(size=n) * 10 ** rng.uniform(-3, 3, n) + 1j * rng.normal(size=n)).astype(kind)
    assert (kit.compiled("div", z, z.copy()) == 1).all()
    x, y = (rng.normal(size=n).astype(z.real.dtype) for _ in "xy")
    tiny = np.finfo(x.dtype).tiny
    over = y + (1j * tiny * rng.normal(size=n)).astype(kind)
    for below in (y.astype(kind), over):  # as where a derivative is read off a small imaginary part
        np.testing.assert_array_equal(kit.compiled("div", x.astype(kind), below).real, x / y)
        np.testing.assert_array_equal(kit.compiled("reciprocal", below).real, 1 / y)
