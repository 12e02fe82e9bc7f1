"""igamma, igammac, their derivative in a, random_gamma_grad, and the regularized incomplete beta function.

All are computed in f64, whatever the type. P(a, x) = 1 - Q(a, x) by one of three: the series x^a e^-x / Gamma(a + 1)
(1 + x / (a + 1) (1 + ...)) where x < max(a, 1), Legendre's continued fraction for Q above, and near x = a > 20 Temme's
uniform expansion (DLMF 8.7.1, 8.9.2, 8.12.3). Series and fraction run backwards through one loop of fixed length, whose
step is one quotient; the derivative in a is carried along. The loops are statements in front of the one that uses the
value. The incomplete beta function is its density times a continued fraction, computed in the same way, or, where both
parameters are large and the fraction converges slowly (as their root), times an integral by 32 nodes.

Measured: in f32 all within 0.5 ulp. In f64, with a from 0.01 to 5000, far tails included: igamma,
igammac, igamma_grad_a and random_gamma_grad 4 eps (igammac from a = 1e-300 and x = 1e-320 on); the incomplete beta
12 eps at nine of ten, some |log value| eps in far tails, and with parameters up to 1e10 within what one unit in the
last place of x changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.loops.ir.ir import RARE, Expr
from pullback.util.record import mutable_record

from ._kit import clamp_high, polynomial, two_product, two_sum
from ._tables import gamma as gamma_tables
from ._tables import logarithm as logarithm_tables
from ._tables.incomplete import TEMME
from ._tables.quadrature import NODES, WEIGHTS
from .error_function import erfc
from .exponential import exp, expm1
from .gamma import digamma, lgamma
from .logarithm import INF, NAN, log, log1p
from .power import log_double

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder

STEPS = 112  # of series and fraction: enough for 2^-53 where they are used
BETA_STEPS = 72  # of the incomplete beta's fraction, where one parameter is at most 20, whatever the other
SMALL_TERMS = 17  # of the sum for small a and x < 1: 1 / 18! is below 2^-53
NEAR = 0.29  # of |x / mean - 1|
CLOSE = 2.0**-10  # of |x / a - 1|
HUGE = 1e300  # a and b beyond count as infinite: their sums overflow
TWO_PI = 6.283185307179586


@mutable_record
class _Gamma:
    """What the functions of (a, x) have in common; all f64."""

    a: Expr
    x: Expr
    series: Expr  # bool: the series is used, unless temme
    temme: Expr  # bool: the uniform expansion is used
    mu: Expr  # x / a - 1
    phi: Expr  # mu - log1p(mu)
    h: Expr  # eta / mu, eta^2 / 2 = phi; for small mu
    eta: Expr
    log_x: Expr
    remainder: Expr  # log of Gamma*(a), for a > 3.5
    t: Expr  # result of the loop
    t_dot: Expr | None  # its derivative in a


def _less_log(b: Builder, mu: Expr, ratio: Expr) -> tuple[Expr, Expr, Expr]:
    """(mu - log(1 + mu) without cancellation, 1 / (mu + 2), p); `ratio` is 1 + mu.

    For small mu it is s mu - s^3 p(s^2), s = mu / (2 + mu), as log1p(mu) = 2 s + s^3 p(s^2).
    """
    r = 1.0 / (mu + 2.0)
    s = mu * r
    z = s * s
    p = polynomial(b, z, logarithm_tables.LOG_F64)
    return b.select(b.abs(mu) < NEAR, s * mu - s * z * p, mu - log(b, ratio)), r, p


def _common(b: Builder, a: Expr, x: Expr, derivative: bool) -> _Gamma:
    a, x = b.convert(a, "f64"), b.convert(x, "f64")
    mu = (x - a) / a
    phi, r, p = _less_log(b, mu, x / a)
    h = b.sqrt(2.0 * (r - mu * r * r * r * p))
    temme = (b.abs(mu) < NEAR) & (a > 20.0)
    series = (x < 1.0) | (x < a)
    inverse = 1.0 / a
    remainder = inverse * polynomial(b, inverse * inverse, gamma_tables.STIRLING_F64)
    start = b.select(series, b.const("f64", 1.0), 0.0)
    inits = (start, b.const("f64", 0.0)) if derivative else (start,)
    with b.carried_loop(STEPS, [(inits, None)], "sequential", name="k") as loop:
        k = b.convert(STEPS - loop.i, "f64")
        t = loop.vars[0]
        top = b.select(series, x * t, k * (k - a))
        bottom = b.select(series, a + k, (x - a) + (k + k + 1.0) - t)
        one_over = 1.0 / bottom
        q = top * one_over
        new = b.select(series, q + 1.0, q)
        if derivative:
            t_dot = loop.vars[1]
            top_dot = b.select(series, x * t_dot, -k)
            bottom_dot = b.select(series, 1.0, -1.0 - t_dot)
            loop.update(new, (top_dot - q * bottom_dot) * one_over)
        else:
            loop.update(new)
    result_dot = loop.results[1] if derivative else None
    return _Gamma(a, x, series, temme, mu, phi, h, mu * h, log(b, x), remainder, loop.results[0], result_dot)


def _exponent(b: Builder, g: _Gamma) -> tuple[Expr, Expr]:
    """log(x^a e^-x / Gamma(a + 1)), for a > 3.5 less log of 1 / sqrt(2 pi a), as a sum of two doubles; with the uniform
    expansion, -a phi.

    Rounded to one double it would cost |log value| eps in far tails. It is a log(x / a) - (x - a) and Stirling's
    remainder, or a log x - x - log Gamma(a + 1) for small a. Close to x = a, where the terms of the former cancel, phi
    is better.
    """
    large = g.a > 3.5
    ratio = g.x / g.a
    high, low = log_double(b, b.select(large, ratio, g.x))
    low = b.select(large, low + b.fma(-ratio, g.a, g.x) / g.x, low)
    product, product_low = two_product(b, g.a, high)
    away, away_low = two_sum(b, g.x, b.select(large, -g.a, 0.0))
    upper, upper_low = two_sum(b, product, -away)
    rest = b.select(large, b.select(g.temme, 0.0, g.remainder), lgamma(b, b.select(large, 1.0, g.a + 1.0)))
    lower = upper_low + ((b.fma(g.a, low, product_low) - away_low) - rest)
    close = g.temme & (b.abs(g.mu) < CLOSE)
    upper = b.select(close, -g.a * g.phi, upper)
    zero = close | (b.abs(upper) > 800.0)  # infinities have no lower part
    upper, lower = two_sum(b, upper, b.select(zero, 0.0, lower))
    return upper, b.select(zero, 0.0, lower)


def _density(b: Builder, g: _Gamma, exponent: tuple[Expr, Expr] | None = None) -> Expr:
    """x^a e^-x / Gamma(a + 1); where the uniform expansion is used, e^(-a phi) / sqrt(2 pi a)."""
    upper, lower = exponent or _exponent(b, g)
    power = exp(b, upper)
    return b.fma(power, lower, power) * b.select(g.a > 3.5, 1.0 / b.sqrt(TWO_PI * g.a), 1.0)


def _temme_sums(b: Builder, g: _Gamma) -> tuple[Expr, Expr, Expr]:
    """(T, dT/deta, dT/d(1/a)) with T = sum_k c_k(eta) a^-k."""
    inverse = 1.0 / g.a
    c = [polynomial(b, g.eta, row) for row in TEMME]
    c_dot = [polynomial(b, g.eta, [n * d for n, d in enumerate(row)][1:]) for row in TEMME]

    def horner(terms: list[Expr]) -> Expr:
        total = terms[-1]
        for term in reversed(terms[:-1]):
            total = b.fma(total, inverse, term)
        return total

    return horner(c), horner(c_dot), horner([float(k) * term for k, term in enumerate(c)][1:])


def _smaller(b: Builder, a: Expr, x: Expr) -> tuple[Expr, Expr]:
    """(v, lower): v is P(a, x) where `lower`, else Q(a, x)."""
    g = _common(b, a, x, derivative=False)
    exponent = _exponent(b, g)
    density = _density(b, g, exponent)
    total, _, _ = _temme_sums(b, g)
    below = g.mu < 0.0
    # erfc(root), root^2 = -exponent, whose slope takes the part that root was rounded by.
    root = b.abs(g.eta) * b.sqrt(g.a * 0.5)
    square, square_low = two_product(b, root, root)
    excess = (exponent[0] + square) + (exponent[1] + square_low)
    slope = b.select(root > 0.5, density * b.sqrt(g.a * 0.5) / root, 0.0)
    tail = b.fma(slope, excess, erfc(b, root) * 0.5)
    uniform = b.fma(density, b.select(below, -total, total), tail)
    fraction = (g.x - g.a) + 1.0 - g.t
    v = b.select(g.temme, uniform, density * b.select(g.series, g.t, g.a / fraction))
    return v, b.select(g.temme, below, g.series)


def _rest_of_small(b: Builder, a: Expr, x: Expr) -> Expr:
    """Q(a, x) for a < 1/2 and x < 1, where P is near 1 if a is near 0: with c = x^a / Gamma(a + 1) it is
    (1 - c) - c a sum_k (-x)^k / (k! (a + k)), k > 0, and either part as small as a."""
    lgamma1p = a * polynomial(b, a, gamma_tables.LGAMMA_F64) - log1p(b, a)
    less_one = expm1(b, a * log(b, x) - lgamma1p)
    total = b.const("f64", 0.0)
    for k in range(SMALL_TERMS, 0, -1):
        total = 1.0 / (a + float(k)) - x * total * (1.0 / (k + 1))
    return b.fma((less_one + 1.0) * a, x * total, -less_one)


def _igamma(b: Builder, a: Expr, x: Expr, upper: bool) -> Expr:
    dtype = a.dtype
    v, lower = _smaller(b, a, x)
    if upper:
        rest = _rest_of_small(b, b.convert(a, "f64"), b.convert(x, "f64"))
        v = b.select(lower, b.select((a < 0.5) & (x < 1.0), rest, 1.0 - v), v)
    else:
        v = b.select(lower, v, 1.0 - v)
    at_zero, at_end = (1.0, 0.0) if upper else (0.0, 1.0)  # values at x = 0 and at x = inf
    v = b.convert(v, dtype)
    none, zero_a = b.eq(x, 0.0), b.eq(a, 0.0)
    end_x, end_a = b.eq(x, INF), b.eq(a, INF)
    v = b.select(end_x | zero_a, at_end, b.select(none | end_a, at_zero, v))
    invalid = (a < 0.0) | (x < 0.0) | (zero_a & none) | b.ne(a, a) | b.ne(x, x)
    return b.select(invalid, NAN, v)


def igamma(b: Builder, a: Expr, x: Expr) -> Expr:
    """The regularized lower incomplete gamma function P(a, x); NaN for a < 0 or x < 0 and at (0, 0)."""
    return _igamma(b, a, x, upper=False)


def igammac(b: Builder, a: Expr, x: Expr) -> Expr:
    """The regularized upper incomplete gamma function Q(a, x); NaN for a < 0 or x < 0 and at (0, 0)."""
    return _igamma(b, a, x, upper=True)


def _uniform_slope(b: Builder, g: _Gamma) -> Expr:
    """dQ/da over e^(-a phi) / sqrt(2 pi a), from the uniform expansion."""
    total, by_eta, by_inverse = _temme_sums(b, g)
    inverse = 1.0 / g.a
    ratio = 1.0 / g.h  # mu / eta
    total_dot = -inverse * (ratio * by_eta) - inverse * inverse * by_inverse
    return (ratio - 0.5 * g.eta) + total_dot + total * ((g.mu - g.phi) - 0.5 * inverse)


def _slopes(b: Builder, g: _Gamma) -> tuple[Expr, Expr]:
    """(dP/da over the density where the series holds, dQ/da over a times the density where the fraction does)."""
    assert g.t_dot is not None
    growth = g.log_x - digamma(b, g.a + 1.0)  # of the density's logarithm
    series = b.fma(g.t, growth, g.t_dot)
    inverse = 1.0 / ((g.x - g.a) + 1.0 - g.t)
    fraction = inverse * (growth + 1.0 / g.a + (1.0 + g.t_dot) * inverse)
    return series, fraction


def igamma_grad_a(b: Builder, a: Expr, x: Expr) -> Expr:
    """The derivative of igamma(a, x) with respect to a; 0 at x = 0 and x = inf, NaN for a <= 0 or x < 0."""
    dtype = a.dtype
    g = _common(b, a, x, derivative=True)
    series, fraction = _slopes(b, g)
    slope = b.select(g.temme, -_uniform_slope(b, g), b.select(g.series, series, -(g.a * fraction)))
    value = b.convert(slope * _density(b, g), dtype)
    value = b.select(b.eq(x, 0.0) | b.eq(x, INF), 0.0, value)
    return b.select((a <= 0.0) | (x < 0.0) | b.ne(a, a) | b.ne(x, x), NAN, value)


def random_gamma_grad(b: Builder, a: Expr, x: Expr) -> Expr:
    """dx/da of a gamma(a) variate x at fixed probability: -(dP/da) / (dP/dx); the density cancels."""
    dtype = a.dtype
    g = _common(b, a, x, derivative=True)
    series, fraction = _slopes(b, g)
    uniform = _uniform_slope(b, g) * exp(b, g.remainder)
    value = b.select(g.temme, uniform / g.a, b.select(g.series, -series / g.a, fraction))
    value = b.convert(value * g.x, dtype)
    value = b.select(b.eq(x, 0.0), 0.0, value)
    return b.select((a <= 0.0) | (x < 0.0) | b.ne(a, a) | b.ne(x, x), NAN, value)


@mutable_record
class _Beta:
    """What the ways to I_u(a, c) have in common, for u up to the mean a / (a + c) or so; all f64."""

    a: Expr
    c: Expr
    n: Expr  # a + c
    u: Expr
    v: Expr  # 1 - u, and where u was 1 - v, as exact as v
    excess: Expr  # n u - a without cancellation: it says how far u is from the mean


def _excess_of_mean(b: Builder, left: Expr, right: Expr, z: Expr, rest: Expr) -> Expr:
    """(left + right) z - left, rounded but once or twice: rest = 1 - z as it was rounded."""
    up, up_low = two_product(b, right, z)
    down, down_low = two_product(b, left, rest)
    return (up - down) + (up_low - down_low - left * ((1.0 - rest) - z))


def _beta_density(b: Builder, g: _Beta) -> Expr:
    """u^a v^c / (a B(a, c)).

    With Gamma(a + 1) = (a / e)^a S(a) it is e^-(a phi(u / (a / n)) + c phi(v / (c / n))) (c / n) S(n) / (S(a) S(c)),
    phi(q) = q - 1 - log q >= 0, where no large terms cancel, as they do in sums of lgamma.
    """

    def scale(a: Expr) -> tuple[Expr, Expr]:  # logarithm and factor of S
        large = a > 3.5
        inverse = 1.0 / a
        stirling = inverse * polynomial(b, inverse * inverse, gamma_tables.STIRLING_F64)
        small = a - a * log(b, a) + lgamma(b, a + 1.0)
        return b.select(large, stirling, small), b.select(large, b.sqrt(TWO_PI * a), 1.0)

    def term(a: Expr, u: Expr, excess: Expr) -> Expr:
        mu = excess / a
        phi, _, _ = _less_log(b, mu, g.n * u / a)
        return b.select(b.abs(mu) < NEAR, a * phi, excess - a * log(b, g.n * u / a))

    (log_n, n), (log_a, a), (log_c, c) = scale(g.n), scale(g.a), scale(g.c)
    exponent = (log_n - log_a - log_c) - (term(g.a, g.u, g.excess) + term(g.c, g.v, -g.excess))
    return exp(b, exponent) * (g.c / g.n) * (n / (a * c))


def _beta_fraction(b: Builder, g: _Beta) -> Expr:
    """I over the density, by the continued fraction (9) of DiDonato and Morris, ACM TOMS 18 (1992)."""
    last = 1.0 / (g.a + (2.0 * BETA_STEPS + 1.0))
    with b.carried_loop(BETA_STEPS, [((b.const("f64", 0.0), last), None)], "sequential", name="k") as loop:
        k = b.convert(BETA_STEPS - loop.i, "f64")
        t, above = loop.vars  # above is 1 / (a + 2 k + 1)
        below = 1.0 / (g.a + (k + k - 1.0))
        w = k * (g.c - k) * g.u * below
        bottom = k + w + (g.a + k) * above * (k * (g.v + 1.0) + 1.0 - g.excess)
        loop.update((g.a + k - 1.0) * below * ((g.n + k - 1.0) * g.u) * w / (bottom + t), below)
    t, first = loop.results
    return g.a / (g.a * first * (1.0 - g.excess) + t)


def _beta_quadrature(b: Builder, g: _Beta, wanted: Expr) -> Expr:
    """I over the density, by Gauss and Legendre's rule, for a and c that are not small; 0 where not `wanted`.

    The integral of f(t) dt / (t (1 - t)), f(t) = t^a (1 - t)^c / (u^a v^c), from where f falls below e^-40 to u, with
    t = u (1 - s): -log f = a phi(1 - s) + c phi(1 + r s) - excess s / v, r = u / v, phi as in the density.
    """
    r, slope = g.u / g.v, -g.excess / g.v
    falls = b.select(slope < 0.0, 0.0, slope)
    length = b.const("f64", 0.0)
    for _ in range(4):  # -log f >= falls s + (a + c r^2 / (1 + 2 r s / 3)) s^2 / 2, solved for s from below
        bend = g.a + g.c * r * r / (r * length * (2.0 / 3.0) + 1.0)
        length = clamp_high(b, 80.0 / (falls + b.sqrt(falls * falls + bend * 80.0)), 1.0)
    half = len(NODES)
    with b.carried_loop(2 * half, [((b.const("f64", 0.0),), None)], "sequential", name="k") as loop:
        entry = lambda row: b.op("lookup", loop.i, dtype="f64", attrs=(("table", row),))
        node = entry(NODES)
        s = length * b.select(loop.i < half, node, 1.0 - node)
        below, above = 1.0 - s, b.fma(r, s, b.const("f64", 1.0))
        phi_a, _, _ = _less_log(b, -s, below)
        phi_c, _, _ = _less_log(b, r * s, above)
        f = exp(b, -(g.a * phi_a + g.c * phi_c + slope * s))
        total = b.fma(f, entry(WEIGHTS) / (below * above), loop.var)
        loop.update(b.op("select", wanted, total, loop.var, attrs=(RARE,)))
    return g.a * length * loop.result / g.v


def regularized_incomplete_beta(b: Builder, p: Expr, q: Expr, x: Expr) -> Expr:
    """I_x(p, q) for p, q >= 0 and 0 <= x <= 1, else NaN; by symmetry where x > (p + 1) / (p + q + 2).

    A step at x = 0 where p is 0 or q infinite, a step at x = 1 where q is 0 or p infinite, NaN where both are.
    """
    dtype = p.dtype
    invalid = b.not_((p >= 0.0) & (q >= 0.0) & (x >= 0.0) & (x <= 1.0))
    left, right, z = b.convert(p, "f64"), b.convert(q, "f64"), b.convert(x, "f64")
    swap = z * (left + right + 2.0) > left + 1.0
    rest = 1.0 - z
    excess = _excess_of_mean(b, left, right, z, rest)
    g = _Beta(
        a=b.select(swap, right, left),
        c=b.select(swap, left, right),
        n=left + right,
        u=b.select(swap, rest, z),
        v=b.select(swap, z, rest),
        excess=b.select(swap, -excess, excess),
    )
    large = (left > 20.0) & (right > 20.0)
    ratio = b.select(large, _beta_quadrature(b, g, large), _beta_fraction(b, g))
    value = _beta_density(b, g) * ratio
    value = b.select(b.eq(g.u, 0.0), 0.0, value)
    value = b.select(swap, 1.0 - value, value)
    zero, one = b.const("f64", 0.0), b.const("f64", 1.0)
    at_zero, at_one = b.eq(left, 0.0) | (right > HUGE), b.eq(right, 0.0) | (left > HUGE)
    value = b.select(at_one | b.eq(z, 0.0), zero, b.select(at_zero | b.eq(z, 1.0), one, value))
    value = b.select(at_one & b.eq(z, 1.0), one, value)
    return b.select(invalid | (at_zero & at_one), NAN, b.convert(value, dtype))
