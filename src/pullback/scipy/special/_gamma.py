"""The gamma function and its relatives."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import pullback.numpy as jnp
from pullback import lax
from pullback.api import custom_jvp
from pullback.numpy._arguments import static_int
from pullback.scipy.special._common import inexact, real_arguments
from pullback.scipy.special._complex_gamma import complex_log_gamma
from pullback.util import dtypes
from pullback.util.promoting import promoting_freely

_DOUBLE = np.dtype(np.float64)


# sign * log Gamma(sum of coefficients * arguments + 0 or 1), for each of some terms.
Terms = tuple[tuple[int, tuple[int, ...], int], ...]


def _arguments_of(terms: Terms, args: Sequence[Any], one: Any) -> list[Any]:
    """What the gamma functions of some terms are taken of; `one` is 1 in the type of the arguments."""
    found = []
    for _, coefficients, constant in terms:
        parts = [x if c == 1 else lax.neg(x) for c, x in zip(coefficients, args) if c]
        found.append(functools.reduce(lax.add, [*parts, *([one] if constant else [])]))
    return found


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _product(terms: Terms, *given: Any) -> Any:
    """The product of gamma functions, by float64 within, as exp makes the rounding of large logarithms large."""
    first, args = given[0], list(given)
    narrow = first.dtype.itemsize < 8
    one = lax.full_like(first, 1)
    if narrow:
        one, *args = (lax.convert_element_type_p.bind(x, new_dtype=_DOUBLE, weak_type=False) for x in (one, *args))
    logs = [lax.lgamma(x) for x in _arguments_of(terms, args, one)]
    value = lax.exp(functools.reduce(lax.add, [x if sign == 1 else lax.neg(x) for (sign, *_), x in zip(terms, logs)]))
    if not narrow:
        return value
    weak = bool(getattr(first.aval, "weak_type", False))
    return lax.convert_element_type_p.bind(value, new_dtype=first.dtype, weak_type=weak)


@_product.defjvp
def _product_jvp(terms: Terms, primals: Any, tangents: Any) -> Any:
    """Gamma's logarithmic derivative is digamma; in the type of the arguments, so that it has derivatives in turn."""
    out = _product(terms, *primals)
    total = lax.full_like(out, 0)
    for (sign, coefficients, _), x in zip(terms, _arguments_of(terms, primals, lax.full_like(out, 1))):
        slope = lax.digamma(x)
        for c, x_dot in zip(coefficients, tangents):
            if c:
                total = lax.add(total, lax.mul(lax.full_like(slope, sign * c), lax.mul(slope, x_dot)))
    return out, lax.mul(out, total)


def gammaln(x: Any) -> Any:
    """log |Gamma(x)|."""
    return lax.lgamma(inexact(x))


def loggamma(x: Any) -> Any:
    """log Gamma(x), on the branch that is real for x > 0 and cut along x <= 0; NaN for real x <= 0."""
    x = inexact(x)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return complex_log_gamma(x)
    return jnp.where(x > 0, lax.lgamma(x), np.nan)


def gammasgn(x: Any) -> Any:
    """The sign of Gamma(x): nan at negative integers and -inf, that of x at 0."""
    x = real_arguments("gammasgn", x)
    floor = jnp.floor(x)
    negative = jnp.where(floor == x, np.nan, jnp.where(jnp.mod(floor, 2) == 0, 1.0, -1.0))
    value = jnp.where(x == 0, jnp.copysign(1.0, x), jnp.where(x > 0, 1.0, negative))
    return jnp.where(jnp.isnan(x), np.nan, value).astype(x.dtype)


def gamma(x: Any) -> Any:
    """Gamma(x)."""
    x = inexact(x)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        return jnp.exp(complex_log_gamma(x))
    return gammasgn(x) * _product(((1, (1,), 0),), x)


def digamma(x: Any) -> Any:
    """The derivative of log Gamma."""
    return lax.digamma(inexact(x))


def polygamma(n: Any, x: Any) -> Any:
    """The derivative of order n + 1 of log Gamma(x). ValueError unless n is of integers."""
    if not dtypes.issubdtype(dtypes.dtype_of(n), np.integer):
        raise ValueError(f"polygamma: argument 'n' must be of integers, got {dtypes.dtype_of(n)}")
    return lax.polygamma(*inexact(n, x))


def zeta(x: Any, q: Any = None) -> Any:
    """Hurwitz' zeta function sum_(k >= 0) (k + q)^-x; without q, Riemann's (q = 1)."""
    return lax.zeta(*inexact(x, 1.0 if q is None else q))


def betaln(a: Any, b: Any) -> Any:
    """log |B(a, b)|, for large arguments without cancellation.

    Where the larger argument b and the sum are at least 8: Stirling's series of both quotients of gamma functions.
    Didonato, Morris, "Algorithm 708", 1992, section 3.
    """
    a, b = inexact(a, b)
    small, large = jnp.minimum(a, b), jnp.maximum(a, b)
    use = (large >= 8) & (small + large >= 8)
    big = jnp.where(use, large, 8)
    total = jnp.where(use, small + big, 8)
    correction = _stirling(big) - _stirling(total)
    less = jnp.where(use, small, 0)
    # For small quotients the product is `less`; the quotient itself might be lost below the normal numbers.
    far = jnp.abs(less) < float(jnp.finfo(big.dtype).eps) * big
    moved = jnp.where(far, less, (big - 0.5) * jnp.log1p(jnp.where(far, 0, less) / big))
    difference = correction - moved - less * (jnp.log(total) - 1)
    series = lax.lgamma(small) + jnp.where(use, difference, 0)
    direct = lax.lgamma(small) + lax.lgamma(large) - lax.lgamma(small + large)
    return jnp.where(use, series, direct)


def _stirling(x: Any) -> Any:
    """log Gamma(x) - (x - 1/2) log x + x - log(2 pi) / 2, x >= 8, by the series of Bernoulli numbers
    B_2k/(2k(2k-1)x^(2k-1))."""
    inverse = 1 / (x * x)
    coefficients = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156]
    out = jnp.zeros_like(x)
    for c in reversed(coefficients):
        out = out * inverse + c
    return out / x


def beta(a: Any, b: Any) -> Any:
    """B(a, b) = Gamma(a) Gamma(b) / Gamma(a + b)."""
    a, b = real_arguments("beta", a, b)
    sign = gammasgn(a) * gammasgn(b) * gammasgn(a + b)
    if a.dtype.itemsize == 8:
        return sign * jnp.exp(betaln(a, b))
    near = jnp.maximum(a, b) < 1e6  # beyond, logarithms cancel in float64, too
    return sign * jnp.where(near, _product(BETA, a, b), jnp.exp(betaln(a, b)))


BETA: Terms = ((1, (1, 0), 0), (1, (0, 1), 0), (-1, (1, 1), 0))


def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function I_x(a, b)."""
    return lax.betainc(*real_arguments("betainc", a, b, x))


def gammainc(a: Any, x: Any) -> Any:
    """The regularized lower incomplete gamma function P(a, x)."""
    return lax.igamma(*inexact(a, x))


def gammaincc(a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x)."""
    return lax.igammac(*inexact(a, x))


@promoting_freely
def multigammaln(a: Any, d: int) -> Any:
    """log of the multivariate gamma function: d (d-1)/4 log pi + sum_(i<d) log Gamma(a - i/2). d is a static
    integer."""
    d = static_int(d, "multigammaln: argument 'd'")
    a = inexact(a)
    shifts = np.arange(d) / 2
    terms = lax.lgamma(jnp.expand_dims(a, -1) - jnp.asarray(shifts, a.dtype))
    return jnp.sum(terms, axis=-1) + 0.25 * d * (d - 1) * math.log(math.pi)


def poch(z: Any, m: Any) -> Any:
    """Pochhammer's symbol Gamma(z + m) / Gamma(z)."""
    z, m = real_arguments("poch", z, m)
    sign = gammasgn(z) * gammasgn(z + m)
    return jnp.where(m == 0, 1, sign * _product(((1, (1, 1), 0), (-1, (1, 0), 0)), z, m)).astype(z.dtype)


def factorial(n: Any, exact: bool = False) -> Any:
    """Gamma(n + 1), and 0 for n < 0. NotImplementedError for `exact`."""
    if exact:
        raise NotImplementedError("factorial with exact=True")
    n = inexact(n)
    value = _product(((1, (1,), 1),), n)
    return jnp.where(n < 0, 0, value)


CHOOSE: Terms = ((1, (1, 0), 1), (-1, (0, 1), 1), (-1, (1, -1), 1))


def comb(N: Any, k: Any, *, repetition: bool = False) -> Any:
    """N choose k, 0 unless 0 <= k <= N; with `repetition`, (N + k - 1) choose k."""
    n, k = inexact(N, k)
    if repetition:
        n = n + k - 1
    valid = (k >= 0) & (k <= n)
    a, b = jnp.where(valid, n, 1), jnp.where(valid, k, 0)
    value = _product(CHOOSE, a, b)
    return jnp.where(valid, value, 0)
