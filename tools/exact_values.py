"""Where pullback's element is what mpmath gives and JAX's is not: masks for explained_values.py."""

from __future__ import annotations

import re
from typing import Any

import mpmath
import numpy as np
from fuzz.calls import Call
from fuzz.compare import near, precision, wide


def polygamma(call: Call, x: np.ndarray, y: np.ndarray) -> Any:
    """Where ours is what mpmath gives, for negative arguments."""
    order = re.search(r"polygamma\((\d+), x0\)", call.text)
    at = call.arguments[0].value()
    if order is None or x.dtype != np.float32 or at.shape != x.shape:
        return False
    sign = -1 if "x0 = -x0" in call.text else 1

    def exact(v: float) -> float:
        return float(mpmath.polygamma(int(order[1]), sign * v))

    found = np.zeros(x.shape, bool)
    for i in np.ndindex(*x.shape):
        if sign * at[i] < 0 and not near(x[i], y[i]):
            found[i] = near(x[i], np.float32(exact(float(at[i]))))
    return found


def gamma_slope(call: Call, x: np.ndarray, y: np.ndarray) -> Any:
    """Where ours is what mpmath gives, by differences of the lower function, for small samples."""
    a, at = np.broadcast_arrays(*(v.value().astype(float) for v in call.arguments))
    if a.shape != x.shape or x.dtype not in (np.float32, np.float64):
        return False

    def exact(a: float, at: float) -> float:
        with mpmath.workdps(60):
            slope = mpmath.diff(lambda v: mpmath.log(mpmath.gammainc(v, 0, at, regularized=True)), a)
            density = at ** (mpmath.mpf(a) - 1) * mpmath.exp(-at) / mpmath.gamma(a)
            return float(-slope * mpmath.gammainc(a, 0, at, regularized=True) / density)

    found = np.zeros(x.shape, bool)
    for i in np.ndindex(*x.shape):
        if not near(x[i], y[i]) and np.isfinite(x[i]) and 0 < a[i] < 1e4 and 0 < at[i] < 1e4:
            found[i] = near(x[i], np.asarray(exact(a[i], at[i]), x.dtype))
    return found


def box_cox(call: Call, x: np.ndarray, y: np.ndarray) -> Any:
    """Within 64 units of JAX's, and ours within two of what mpmath gives."""
    given, exponent = (np.broadcast_to(a.value(), x.shape).reshape(-1).tolist() for a in call.arguments)
    shift, eps = int("boxcox1p" in call.text), precision(x)[0]

    def right(v: float, p: float, ours: float) -> bool:
        base = shift + mpmath.mpf(v)
        if not (np.isfinite(ours) and base > 0):
            return False
        exact = mpmath.expm1(p * mpmath.log(base)) / p if p else mpmath.log(base)
        return bool(abs(ours - exact) <= 2 * eps * abs(exact))

    with mpmath.workdps(40):
        found = [right(*row) for row in zip(given, exponent, wide(x).reshape(-1).tolist())]
    return np.array(found).reshape(x.shape) & (np.abs(wide(x) - wide(y)) <= 64 * eps * np.abs(wide(y)))


def log1mexp(call: Call, x: np.ndarray, y: np.ndarray) -> Any:
    """Within 256 units of JAX's, and ours within four of what mpmath gives."""
    given, eps = call.arguments[0].value(), precision(x)[0]
    if given.shape != x.shape or given.dtype != x.dtype:
        return False
    with mpmath.workdps(40):
        exact = [
            float(mpmath.log(-mpmath.expm1(-mpmath.mpf(v)))) if v > 0 else np.nan for v in given.reshape(-1).tolist()
        ]
    right = np.abs(x - np.array(exact).reshape(x.shape)) <= 4 * eps * np.abs(x)
    return right & (np.abs(x - y) <= 256 * eps * np.abs(y))


def owens_t(call: Call, x: np.ndarray, y: np.ndarray) -> Any:
    """Where ours is what mpmath integrates, to within 1024 units, and nearer to it than JAX's."""
    h, a = np.broadcast_arrays(*(v.value().astype(float) for v in call.arguments))
    if h.shape != x.shape or x.dtype not in (np.float32, np.float64):
        return False

    def exact(h: float, a: float) -> float:
        with mpmath.workdps(30):
            parts = mpmath.linspace(0, a, 40)
            area = mpmath.quad(lambda v: mpmath.exp(-(mpmath.mpf(h) ** 2) * (1 + v * v) / 2) / (1 + v * v), parts)
            return float(area / (2 * mpmath.pi))

    found = np.zeros(x.shape, bool)
    for i in np.ndindex(*x.shape):
        if not near(x[i], y[i]) and np.isfinite(h[i]) and np.isfinite(a[i]):
            right = np.asarray(exact(h[i], a[i]), x.dtype)
            found[i] = near(x[i], right, 1024) and abs(x[i] - right) < abs(y[i] - right)
    return found


def complex_pole(call: Call, x: np.ndarray, y: np.ndarray) -> Any:
    """Where ours is what mpmath gives, next to a pole of gamma: to half of the digits in the smaller part."""
    given = call.arguments[0].value()
    if given.shape != x.shape or x.dtype.kind != "c":
        return False
    near_pole = (np.abs(given - np.round(given.real)) < 1e-8) & (given.real < 0.5) & (given.imag != 0)
    found = np.zeros(x.shape, bool)
    for i in np.argwhere(near_pole):
        exact = complex(mpmath.gamma(mpmath.mpc(complex(given[tuple(i)]))))
        found[tuple(i)] = bool(near(x[tuple(i)][None], np.array([exact], x.dtype))[0])
    return found
