"""Eager quotients of complex numbers at the ends of their range are those of compiled code, which are those of C99."""

import numpy as np
import pytest

import pullback as pb
from pullback import lax

FUNCTIONS = {
    "div": lax.div,
    "reciprocal": lambda x, _: pb.numpy.reciprocal(x),
    "sign": lambda x, _: lax.sign(x),
    "rsqrt": lambda x, _: lax.rsqrt(x),
    "log1p": lambda x, _: lax.log1p(x),
}


def numbers(dtype):
    """Pairs of numbers whose parts are small, large, infinite, NaN or zeros of either sign."""
    limits = np.finfo(dtype)
    parts = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, limits.max, limits.max / 2, limits.tiny, 1e-20, 1e20])
    grid = np.array(np.meshgrid(*[parts.astype(limits.dtype)] * 4)).reshape(4, -1)
    z = np.empty((2, grid.shape[1]), dtype)
    z.real, z.imag = grid[::2], grid[1::2]
    return z


def kinds(x):
    infinite = np.isinf(x.real) | np.isinf(x.imag)
    return np.where(infinite, "infinite", np.where(np.isnan(x), "nan", "number"))


@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_eager_is_compiled(name, dtype):
    function, limits = FUNCTIONS[name], np.finfo(dtype)
    with pb.enable_x64(True):
        x, y = numbers(dtype)
        eager, compiled = (np.asarray(f(*map(pb.numpy.asarray, (x, y)))) for f in (function, pb.jit(function)))
    # Sums of two parts that together overflow are NaN times zero in complex64, and fit into what it is compiled to.
    large = (abs(x.real) >= limits.max / 2) & (abs(x.imag) >= limits.max / 2)
    same = (kinds(eager) == kinds(compiled)) | (large & ~np.isfinite(y))
    assert same.all(), [(x[k], y[k], eager[k], compiled[k]) for k in np.flatnonzero(~same)[:5]]
    number = kinds(eager) == "number"
    np.testing.assert_allclose(eager[number], compiled[number], rtol=8 * limits.eps, atol=4 * limits.tiny)


def test_values():
    infinite, one = complex(np.inf, np.inf), np.complex64(1)
    assert lax.div(one, np.complex64(infinite)) == 0 and lax.div(np.complex64(infinite), one).imag == np.inf
    assert lax.div(one, np.complex64(0)).real == np.inf
    large = np.complex64(3.4e38 + 1.7e38j)
    np.testing.assert_allclose(lax.sign(large), (2 + 1j) / 5**0.5, rtol=1e-6)
    np.testing.assert_allclose(lax.div(large, large), 1, rtol=1e-6)
    np.testing.assert_allclose(lax.log1p(np.complex64(1e20)), 46.0517, rtol=1e-6)
    np.testing.assert_allclose(lax.log1p(np.complex64(-1 + 1e-20j)), -46.0517 + 1.5707963j, rtol=1e-6)
