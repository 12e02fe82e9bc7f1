"""Functions made of logarithms, with their limits at 0; Bernoulli numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax, nn
from pullback.api import custom_jvp
from pullback.numpy._arguments import of_scalars
from pullback.scipy.special._common import inexact, real_arguments
from pullback.scipy.special._piecewise import widened
from pullback.util import dtypes

LARGEST = 2**1024 - 2**970  # integers from here on are infinite as floats


def softmax(x: Any, /, *, axis: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along `axis`, by default over all of x. ValueError for an axis that x has not."""
    return nn.softmax(x, axis)


def log_softmax(x: Any, /, *, axis: Any = None) -> Any:
    """x - log(sum(exp(x))) along `axis`, by default over all of x. Errors as softmax."""
    return nn.log_softmax(x, axis)


@custom_jvp
def _xlogy(x: Any, y: Any) -> Any:
    safe = (x != 0) | jnp.isnan(y)
    return jnp.where(safe, x * jnp.log(jnp.where(safe, y, 1)), jnp.zeros_like(x))


@_xlogy.defjvp
def _xlogy_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (x_dot, y_dot) = primals, tangents
    return _xlogy(x, y), x_dot * jnp.log(y) + y_dot * x / y


def xlogy(x: Any, y: Any) -> Any:
    """x log y, and 0 where x is 0, unless y is NaN."""
    return _xlogy(*inexact(x, y))


@custom_jvp
def _xlog1py(x: Any, y: Any) -> Any:
    safe = (x != 0) | jnp.isnan(y)
    return jnp.where(safe, x * jnp.log1p(jnp.where(safe, y, 0)), jnp.zeros_like(x))


@_xlog1py.defjvp
def _xlog1py_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (x_dot, y_dot) = primals, tangents
    return _xlog1py(x, y), x_dot * jnp.log1p(y) + y_dot * x / (1 + y)


def xlog1py(x: Any, y: Any) -> Any:
    """x log(1 + y), and 0 where x is 0, unless y is NaN."""
    return _xlog1py(*inexact(x, y))


@custom_jvp
def _xlogx(x: Any) -> Any:
    return _xlogy(x, x)


@_xlogx.defjvp
def _xlogx_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    return _xlogx(x), x_dot * (jnp.log(x) + 1)


def entr(x: Any) -> Any:
    """-x log x; -inf for x < 0."""
    x = real_arguments("entr", x)
    return jnp.where(x < 0, -np.inf, -_xlogx(jnp.where(x < 0, 1, x)))


def rel_entr(p: Any, q: Any) -> Any:
    """p log(p / q) for p, q > 0; 0 for p = 0 <= q; inf elsewhere."""
    p, q = real_arguments("rel_entr", p, q)
    both, zero = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    a, b = jnp.where(both, p, 1), jnp.where(both, q, 1)
    return jnp.where(both, _xlogx(a) - _xlogy(a, b), jnp.where(zero, 0, np.inf))


def kl_div(p: Any, q: Any) -> Any:
    """rel_entr(p, q) - p + q."""
    p, q = real_arguments("kl_div", p, q)
    value = rel_entr(p, q)
    return jnp.where(jnp.isfinite(value), value - p + q, value)


@custom_jvp
def _logit(x: Any) -> Any:
    middle = (x > 0.25) & (x < 0.75)
    inner = 2 * jnp.arctanh(2 * jnp.where(middle, x, 0.5) - 1)
    return jnp.where(middle, inner, jnp.log(x) - jnp.log1p(-x))


@_logit.defjvp
def _logit_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    return _logit(x), x_dot / (x * (1 - x))


def logit(x: Any) -> Any:
    """log(x / (1 - x)); around 1/2, where it is 0, 2 atanh(2 x - 1)."""
    x = inexact(x)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return of_scalars(jnp.log(x) - jnp.log1p(-x), x)
    y = _logit(widened(x))
    return of_scalars(y, x) if y.dtype == x.dtype else y.astype(x.dtype)  # which would lose the weak type


def expit(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return lax.logistic(inexact(x))


def boxcox(x: Any, lmbda: Any) -> Any:
    """(x^lmbda - 1) / lmbda, and log x where lmbda is 0."""
    x, lmbda = inexact(x, lmbda)
    return _boxcox(jnp.log(x), lmbda)


def boxcox1p(x: Any, lmbda: Any) -> Any:
    """((1 + x)^lmbda - 1) / lmbda, and log(1 + x) where lmbda is 0."""
    x, lmbda = inexact(x, lmbda)
    return _boxcox(jnp.log1p(x), lmbda)


def _boxcox(log_x: Any, lmbda: Any) -> Any:
    zero = jnp.abs(lmbda) < float(jnp.finfo(lmbda.dtype).eps) ** 2  # the next term adds nothing, and products underflow
    safe = jnp.where(zero, 1, lmbda)
    return jnp.where(zero, log_x, jnp.expm1(safe * log_x) / safe)


def bernoulli(n: int) -> Any:
    """The Bernoulli numbers B_0 to B_n, with B_1 = -1/2. Raises ValueError for n < 0."""
    if n < 0:
        raise ValueError(f"bernoulli: n must be a non-negative integer, got {n}")
    # |B_2k| = 2 k T_k / (4^k (4^k - 1)), T_k the tangent numbers (Brent and Harvey, "Fast computation of Bernoulli,
    # tangent and secant numbers", 2013).
    half = n // 2
    tangent = [math.factorial(k) for k in range(half)]
    for k in range(1, half):
        for j in range(k, half):
            tangent[j] = (j - k) * tangent[j - 1] + (j - k + 2) * tangent[j]
    found = np.zeros(n + 1)
    found[:2] = (1, -0.5)[: n + 1]
    for k in range(1, half + 1):
        size = Fraction(2 * k * tangent[k - 1], 4**k * (4**k - 1))
        found[2 * k] = (1 if k % 2 else -1) * (float(size) if size < LARGEST else math.inf)
    return jnp.asarray(found)
