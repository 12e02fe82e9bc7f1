"""Special functions against mpmath (f64) and SciPy (f32): measured errors, edges, regions where others fail."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
import scipy.special as sp
from loops.math import kit

SCIPY = {
    "erf": sp.erf,
    "erfc": sp.erfc,
    "erf_inv": sp.erfinv,
    "lgamma": sp.gammaln,
    "digamma": sp.digamma,
    "bessel_i0e": sp.i0e,
    "bessel_i1e": sp.i1e,
}
MPMATH = {
    "erf": mp.erf,
    "erfc": mp.erfc,
    "erf_inv": mp.erfinv,
    "lgamma": lambda x: mp.re(mp.loggamma(x)),
    "digamma": mp.digamma,
    "bessel_i0e": lambda x: mp.besseli(0, x) * mp.exp(-abs(x)),
    "bessel_i1e": lambda x: mp.besseli(1, x) * mp.exp(-abs(x)),
}
# Largest errors in ulp allowed (f32, f64): what is measured on more points, rounded up.
BOUNDS = {
    "erf": (1.2, 1.1),
    "erfc": (2.0, 2.0),
    "erf_inv": (2.0, 2.0),
    "lgamma": (3.0, 3.0),
    "digamma": (11.0, 10.0),
    "bessel_i0e": (4.5, 4.5),
    "bessel_i1e": (4.5, 4.5),
}


def points(name: str, dtype: str, size: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    mantissa = 24 if dtype == "f32" else 53
    if name == "erf_inv":
        close = (1 - 2.0 ** -rng.uniform(0, mantissa, size)) * rng.choice([-1, 1], size)
        parts = [rng.uniform(-1, 1, size), close, 2.0 ** -rng.uniform(0, 100, size)]
    else:
        parts = [rng.uniform(-s, s, size) for s in (0.1, 1, 2, 4, 10, 30)]
        parts.append(np.exp(rng.uniform(-80, 80, size)))
        if name in ("lgamma", "digamma"):
            close = rng.uniform(-1, 1, size) * 2.0 ** -rng.uniform(0, 20, size)
            parts = [*(np.abs(p) for p in parts), 1 + close, 2 + close]
    return np.concatenate(parts).astype(kit.NP_DTYPE[dtype])


def exact(name: str, x: np.ndarray) -> np.ndarray:
    """By mpmath, as a long double made of two doubles."""
    result = np.empty(x.shape, np.longdouble)
    with mp.workdps(40):
        for k, v in enumerate(x):
            y = MPMATH[name](mp.mpf(float(v)))
            high = float(y)
            result[k] = np.longdouble(high) + (np.longdouble(float(y - mp.mpf(high))) if math.isfinite(high) else 0)
    return result


@pytest.mark.parametrize("name", SCIPY)
def test_f32(name):
    x = points(name, "f32", 20_000)
    with np.errstate(all="ignore"):
        want = SCIPY[name](x.astype(np.float64))
    error, place = kit.worst(kit.compiled(name, x), want, x)
    assert error <= BOUNDS[name][0], place


@pytest.mark.parametrize("name", SCIPY)
def test_f64(name):
    x = points(name, "f64", 60)
    error, place = kit.worst(kit.compiled(name, x), exact(name, x), x)
    assert error <= BOUNDS[name][1], place


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", SCIPY)
def test_interpreted_is_compiled(name, dtype):
    x = np.concatenate([points(name, dtype, 100), kit.edges(dtype)])
    want, got = kit.interpreted(name, x), kit.compiled(name, x)
    error, place = kit.worst(got, want.astype(np.longdouble), x)
    assert error <= 4, place


INF, NAN = math.inf, math.nan
EDGES = {
    "erf": [(INF, 1), (-INF, -1), (NAN, NAN), (0.0, 0.0), (-0.0, -0.0)],
    "erfc": [(INF, 0.0), (-INF, 2), (NAN, NAN), (0.0, 1)],
    "erf_inv": [(1, INF), (-1, -INF), (1.5, NAN), (-2, NAN), (NAN, NAN), (0.0, 0.0), (-0.0, -0.0)],
    "lgamma": [(0.0, INF), (-0.0, INF), (-1, INF), (-7, INF), (INF, INF), (-INF, INF), (NAN, NAN), (1, 0.0), (2, 0.0)],
    "digamma": [(0.0, -INF), (-0.0, INF), (-1, NAN), (-7, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "bessel_i0e": [(0.0, 1), (INF, 0.0), (-INF, 0.0), (NAN, NAN)],
    "bessel_i1e": [(0.0, 0.0), (-0.0, -0.0), (INF, 0.0), (-INF, -0.0), (NAN, NAN)],
}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("name", EDGES)
def test_edges(name, dtype):
    kind = kit.NP_DTYPE[dtype]
    x, want = (np.array(column, kind) for column in zip(*EDGES[name]))
    got = kit.compiled(name, x)
    equal = (got == want) & ((want != 0) | (np.signbit(got) == np.signbit(want)))
    good = np.where(np.isnan(want), np.isnan(got), equal)
    assert good.all(), list(zip(x, got, want))


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
@pytest.mark.parametrize(("dtype", "tolerance"), [("f32", 3e-6), ("f64", 1e-14)])
def test_negative_arguments(name, dtype, tolerance):
    """Between the poles the error is small against 1 + |value|, since the zeros there are not resolved."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-20, 0, 3000).astype(kit.NP_DTYPE[dtype])
    x = x[np.abs(x - np.rint(x)) > 1e-3]
    want = SCIPY[name](x.astype(np.float64))
    got = kit.compiled(name, x).astype(np.float64)
    slope = 1 + np.abs(want) + (want**2 if name == "digamma" else 0)
    assert (np.abs(got - want) <= tolerance * slope * np.maximum(1, np.abs(x))).all()
