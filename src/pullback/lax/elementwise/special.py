"""Special functions: error functions, gamma functions and their relatives, Bessel functions.

References are SciPy's, some of which err more than our own kernels, so the tests' bounds for those are the reference's.
Those of erf and erfc are our polynomials in longdouble: SciPy's erfc of 0.4 to 26 errs by up to 500 units in the last
place.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.lax.elementwise.arithmetic import add_p, mul_p, neg_p, op, sub_p
from pullback.lax.elementwise.densities import beta_density, gamma_density
from pullback.lax.elementwise.zeta_slope import zeta_slope
from pullback.lax.records.families import *
from pullback.lax.records.families import INF, NAN, broadcast_operands
from pullback.util.tracebacks import api_boundary

__all__ = [
    "bessel_i0e",
    "bessel_i0e_p",
    "bessel_i1e",
    "bessel_i1e_p",
    "betainc",
    "digamma",
    "digamma_p",
    "erf",
    "erf_inv",
    "erf_inv_p",
    "erf_p",
    "erfc",
    "erfc_p",
    "igamma",
    "igamma_grad_a",
    "igamma_grad_a_p",
    "igamma_p",
    "igammac",
    "igammac_p",
    "lgamma",
    "lgamma_p",
    "polygamma",
    "polygamma_p",
    "random_gamma_grad",
    "random_gamma_grad_p",
    "regularized_incomplete_beta_p",
    "zeta",
    "zeta_p",
]

EDGES = (0.0, 1.0, -1.0, 0.5, INF, -INF, NAN)


def _scipy(name: str):
    """A function of scipy.special, imported at the first call: the import takes longer than that of this package."""

    def function(*operands):
        import scipy.special

        return getattr(scipy.special, name)(*operands)

    return computed_wide(function)


def _in_f32(name: str):
    """The lowering to an operation that the loop IR has for f32 and f64; narrower floats are computed in f32."""

    def lower(b, *operands):
        dtype = operands[0].dtype
        if dtype in ("f32", "f64"):
            return b.op(name, *operands)
        return b.convert(b.op(name, *[b.convert(x, "f32") for x in operands]), dtype)

    return lower


def _exp(x):
    return lax.exp_p.bind(x)


def _times(x, value):
    return mul_p.bind(x, constant(x, value))


def _special(name, doc, reference, jvp, samples, cost=40):
    return unary(name, doc=doc, accepts=FLOAT, reference=reference, jvp=jvp, lower=op(name), samples=samples, cost=cost)


def _gauss(x, scale):
    return _times(_exp(neg_p.bind(lax.square_p.bind(x))), scale)


def _in_longdouble(polynomial, z):
    total = np.zeros_like(z)
    for c in reversed(polynomial.coefficients):
        total = total * (z - polynomial.centre) + np.longdouble(c)
    return total


def _error_function(x, complement):
    """erf or 1 - erf of float64: the polynomials of `loops/math/error_function.py`, where rounding takes nothing."""
    from pullback.loops.math._tables import error_function  # with 28 modules that the import shall not take

    wide = np.asarray(x, np.longdouble)
    size = np.minimum(np.abs(wide), 28)
    near, far = size <= 0.9, size >= 0.5
    erf = np.copysign(1, wide)
    erf[near] = wide[near] * (1 + _in_longdouble(error_function.ERF_F64, wide[near] ** 2))
    tail = np.zeros_like(wide)
    s = size[far]
    tail[far] = _in_longdouble(error_function.ERFC_F64, (s - 3.75) / (s + 3.75)) * np.exp(-s * s) / (1 + 2 * s)
    if complement:
        out = np.where(far & (wide > 0), tail, np.where(near, 1 - erf, 2 - tail))
    else:
        out = np.where(near, erf, np.copysign(1 - tail, wide))
    return np.where(np.isnan(wide), np.nan, out).astype(np.float64)


def _error_reference(name, complement):
    """SciPy's in double precision for narrower types, which is 80 times as quick as what float64 needs."""

    def function(x):
        x = np.asarray(x)
        if x.dtype != np.float64:
            return _scipy(name)(x)
        return _error_function(np.atleast_1d(x), complement).reshape(x.shape)

    return function


erf_p = _special(
    "erf",
    "The error function, elementwise.",
    _error_reference("erf", False),
    lambda x_dot, y, x: mul_p.bind(x_dot, _gauss(x, 2 / math.sqrt(math.pi))),
    Samples(low=-4, high=4, edges=EDGES),
)
# Where `ulp` is above 4 it is the reference's error: against mpmath, SciPy's i1e errs by 7.3 units in the last place,
# ours by 2.5.
erfc_p = _special(
    "erfc",
    "1 - erf(x), accurate for large x.",
    _error_reference("erfc", True),
    lambda x_dot, y, x: mul_p.bind(x_dot, _gauss(x, -2 / math.sqrt(math.pi))),
    Samples(low=-4, high=8, edges=EDGES),
)
erf_inv_p = _special(
    "erf_inv",
    "The inverse of the error function on (-1, 1).",
    _scipy("erfinv"),
    lambda x_dot, y, x: mul_p.bind(x_dot, _times(_exp(lax.square_p.bind(y)), math.sqrt(math.pi) / 2)),
    Samples(low=-0.999, high=0.999, edges=(0.0, 1.0, -1.0, 1.5, NAN), ulp=4),
)


def _lgamma_reference(x):
    import scipy.special

    x = np.asarray(x)
    found = np.where(np.isneginf(x), np.inf, scipy.special.gammaln(x))  # SciPy has -inf there, C and JAX inf
    zero = (np.abs(x - 1) < 0.1) | (np.abs(x - 2) < 0.2)  # where gammaln cancels, and the complex one takes a series
    if x.dtype == np.float64 and np.any(zero):
        found[zero] = scipy.special.loggamma(x[zero] + 0j).real
    return found


lgamma_p = _special(
    "lgamma",
    "log |gamma(x)|, elementwise.",
    computed_wide(_lgamma_reference),
    lambda x_dot, y, x: mul_p.bind(x_dot, digamma_p.bind(x)),
    Samples(low=0.1, high=20, edges=EDGES, ulp=16),
)


def _digamma_jvp(x_dot, y, x):
    return mul_p.bind(x_dot, polygamma_p.bind(constant(x, 1), x))


def _digamma_reference(x):
    import scipy.special

    return np.where(x == -np.inf, np.nan, scipy.special.psi(x)) if x.ndim else scipy.special.psi(x)


digamma_p = _special(
    "digamma",
    "The derivative of lgamma.",
    computed_wide(_digamma_reference),
    _digamma_jvp,
    Samples(low=0.1, high=20, edges=(1.0, 0.5, 2.0, NAN), ulp=4),
)
bessel_i0e_p = _special(
    "bessel_i0e",
    "exp(-|x|) I0(x), the scaled modified Bessel function of order 0.",
    _scipy("i0e"),
    lambda x_dot, y, x: mul_p.bind(x_dot, sub_p.bind(bessel_i1e_p.bind(x), mul_p.bind(lax.sign_p.bind(x), y))),
    Samples(low=-10, high=20, edges=(0.0, 1.0, -1.0, NAN), ulp=12),
)


def _bessel_i1e_jvp(x_dot, y, x):
    # At 0, y / x is 0 / 0; the derivative there is 1/2.
    tiny = lax.lt_p.bind(lax.abs_p.bind(x), constant(x, dtypes.finfo(x.dtype).eps))
    safe = lax.select_n_p.bind(tiny, x, constant(x, dtypes.finfo(x.dtype).eps))
    slope = sub_p.bind(
        bessel_i0e_p.bind(safe), mul_p.bind(y, add_p.bind(lax.sign_p.bind(safe), lax.integer_pow_p.bind(safe, y=-1)))
    )
    return mul_p.bind(x_dot, lax.select_n_p.bind(tiny, slope, constant(x, 0.5)))


bessel_i1e_p = _special(
    "bessel_i1e",
    "exp(-|x|) I1(x), the scaled modified Bessel function of order 1.",
    _scipy("i1e"),
    _bessel_i1e_jvp,
    Samples(low=-10, high=20, edges=(0.0, 1.0, -1.0, NAN), ulp=12),
)


# ------------------------------------------------------------------------------------------ incomplete gamma functions


def _with_limits(reference, lower):
    """The reference, with limits that SciPy has NaN for: 1 of P where x and a are both infinite, 0 for a huge a > x."""

    def limited(a, x):
        found = reference(a, x)
        full = np.asarray(float(lower), x.dtype)
        found = np.where((a == np.inf) & (x == np.inf), full, found)
        return np.where(np.isnan(found) & (x >= 0) & (a > x), 1 - full, found)

    return limited


igamma_p = nary(
    "igamma",
    2,
    doc="The regularized lower incomplete gamma function P(a, x).",
    accepts=FLOAT,
    reference=_with_limits(_scipy("gammainc"), True),
    jvp=(
        lambda a_dot, out, a, x: mul_p.bind(a_dot, igamma_grad_a_p.bind(a, x)),
        lambda x_dot, out, a, x: mul_p.bind(x_dot, gamma_density(a, x)),
    ),
    lower=_in_f32("igamma"),
    cost=200,
    samples=Samples(low=0.2, high=8.0, edges=(1.0, 2.0), ulp=128, derivatives=False),
)
igammac_p = nary(
    "igammac",
    2,
    doc="The regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).",
    accepts=FLOAT,
    reference=_with_limits(_scipy("gammaincc"), False),
    lower=_in_f32("igammac"),
    cost=200,
    samples=Samples(low=0.2, high=8.0, edges=(1.0, 2.0), ulp=128, derivatives=False),
    jvp=(
        lambda a_dot, out, a, x: mul_p.bind(a_dot, neg_p.bind(igamma_grad_a_p.bind(a, x))),
        lambda x_dot, out, a, x: mul_p.bind(x_dot, neg_p.bind(gamma_density(a, x))),
    ),
)


def _most_terms(a):
    """Where x is near a large a, terms shrink as exp(-n^2 / (2 a)). Enough up to a = 1e7."""
    return 4000 + int(12 * np.sqrt(min(a.max(initial=0), 1e7)))


def _series_ratio(a, x):
    """(dP/da) / (dP/dx) from P = x^a e^-x / gamma(a+1) * sum_n x^n / ((a+1)...(a+n)), differentiated term by term."""
    import scipy.special

    total, slope = np.ones_like(x), np.zeros_like(x)
    term, harmonic = np.ones_like(x), np.zeros_like(x)
    for n in range(1, _most_terms(a)):
        term = term * x / (a + n)
        harmonic = harmonic + 1 / (a + n)
        total, slope = total + term, slope - term * harmonic
        if not np.any(term * harmonic > 1e-17 * np.abs(slope)):
            break
    return x / a * (total * (np.log(x) - scipy.special.psi(a + 1)) + slope)


def _fraction_ratio(a, x):
    """The same from Q = x^a e^-x / gamma(a) * h, h the continued fraction (DLMF 8.9.2), differentiated step by step."""
    import scipy.special

    # Modified Lentz (Numerical Recipes 6.2), with derivatives with respect to a.
    b, b_dot = x + 1 - a, -np.ones_like(x)
    c, c_dot = np.full_like(x, 1e300), np.zeros_like(x)
    d = 1 / b
    d_dot = -b_dot * d * d
    h, h_dot = d, d_dot
    for n in range(1, _most_terms(a)):
        an, an_dot = -n * (n - a), float(n)
        b = b + 2
        e, e_dot = an * d + b, an_dot * d + an * d_dot + b_dot
        d = 1 / e
        d_dot = -e_dot * d * d
        c_dot = b_dot + an_dot / c - an * c_dot / (c * c)
        c = b + an / c
        step, step_dot = c * d, c_dot * d + c * d_dot
        h, h_dot = h * step, h_dot * step + h * step_dot
        if not np.any((np.abs(step - 1) > 1e-15) | (np.abs(step_dot) > 1e-15)):
            break
    return -x * (h * (np.log(x) - scipy.special.psi(a)) + h_dot)


def _gamma_ratio(a, x):
    """(dP/da) / (dP/dx) in f64; NaN outside of a > 0, x > 0."""
    a, x = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    ok = (a > 0) & (x > 0) & np.isfinite(x) & np.isfinite(a)
    far = ok & (x > 1) & (x > a)
    near = ok & ~far
    out = np.full(a.shape, np.nan)
    with np.errstate(all="ignore"):
        out[far] = _fraction_ratio(a[far], x[far])
        out[near] = _series_ratio(a[near], x[near])
    return out


def _igamma_grad_a_reference(a, x):
    import scipy.special

    wide_a, wide_x = np.asarray(a, np.float64), np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        density = np.exp((wide_a - 1) * np.log(wide_x) - wide_x - scipy.special.gammaln(wide_a))
    ends = (wide_a > 0) & ((wide_x == 0) | (wide_x == np.inf))  # P is 0 or 1 there, whatever a is, as it is
    ends |= (wide_a > 1e300) & (wide_x >= 0) & (wide_x < wide_a)  # where the density is infinity less infinity
    return np.where(ends, 0.0, _gamma_ratio(a, x) * density)


def _random_gamma_grad_reference(a, x):
    return np.where((np.asarray(x) == 0) & (np.asarray(a) > 0), 0.0, -_gamma_ratio(a, x))


def _growth(a, x):
    """The derivative in a of log(x^(a-1) exp(-x) / gamma(a))."""
    return sub_p.bind(lax.log_p.bind(x), digamma_p.bind(a))


def _igamma_grad_a_jvp_x(x_dot, out, a, x):
    return mul_p.bind(x_dot, mul_p.bind(gamma_density(a, x), _growth(a, x)))


def _random_gamma_grad_jvp_x(x_dot, out, a, x):
    # Of -(dP/da) / f, f the density: -(df/da) / f - out (df/dx) / f.
    slope = sub_p.bind(lax.div_p.bind(sub_p.bind(a, constant(a, 1)), x), constant(x, 1))
    at_zero = lax.eq_p.bind(x, constant(x, 0))  # there the first term is infinite, and the second 0 times infinity
    second = lax.select_n_p.bind(at_zero, mul_p.bind(out, slope), out)
    return mul_p.bind(x_dot, neg_p.bind(add_p.bind(_growth(a, x), second)))


igamma_grad_a_p = nary(
    "igamma_grad_a",
    2,
    doc="The derivative of igamma(a, x) with respect to a.",
    accepts=FLOAT,
    reference=computed_wide(_igamma_grad_a_reference),
    lower=_in_f32("igamma_grad_a"),
    cost=400,
    jvp=(NoRule("no published formula is implemented for the second derivative of igamma in a"), _igamma_grad_a_jvp_x),
    samples=Samples(low=0.2, high=8.0, edges=(1.0, 2.0), ulp=64, derivatives=False),
)
random_gamma_grad_p = nary(
    "random_gamma_grad",
    2,
    doc="dx/da of a gamma(a) variate x at fixed probability.",
    accepts=FLOAT,
    reference=computed_wide(_random_gamma_grad_reference),
    lower=_in_f32("random_gamma_grad"),
    cost=400,
    jvp=(
        NoRule("no published formula is implemented for the second derivative of a gamma variate in a"),
        _random_gamma_grad_jvp_x,
    ),
    samples=Samples(low=0.2, high=8.0, edges=(1.0, 2.0), ulp=64, derivatives=False),
)


# ----------------------------------------------------------------------------------------------- beta, zeta, polygamma


def _not_differentiable(name, which):
    def rule(*_):
        raise ValueError(f"The gradient of {name} with respect to {which} is not supported.")

    return rule


regularized_incomplete_beta_p = nary(
    "regularized_incomplete_beta",
    3,
    doc="The regularized incomplete beta function I_x(a, b).",
    accepts=FLOAT,
    reference=_scipy("betainc"),
    jvp=(
        _not_differentiable("betainc", "a"),
        _not_differentiable("betainc", "b"),
        lambda x_dot, out, a, b, x: mul_p.bind(x_dot, beta_density(a, b, x)),
    ),
    cost=300,
    lower=_in_f32("regularized_incomplete_beta"),
    samples=Samples(low=(0.3, 0.3, 0.05), high=(6.0, 6.0, 0.95), edges=(0.5, 1.0), ulp=256, derivatives=False),
)


def _zeta_reference(x, q):
    import scipy.special

    # SciPy's is NaN for large x, where 0 is multiplied by infinity, and infinite for x that is NaN at poles.
    found = np.where((x > 700) & (q > 1), np.power(q, -x), scipy.special.zeta(x, q))
    return np.where(np.isnan(x), x, found)


zeta_p = nary(
    "zeta",
    2,
    doc="The Hurwitz zeta function, sum over k of (q + k) ** -x.",
    accepts=FLOAT,
    reference=computed_wide(_zeta_reference),
    cost=100,
    lower=_in_f32("zeta"),
    jvp=(
        lambda x_dot, out, x, q: mul_p.bind(x_dot, zeta_slope(x, q)),
        lambda q_dot, out, x, q: mul_p.bind(
            q_dot, neg_p.bind(mul_p.bind(x, zeta_p.bind(add_p.bind(x, constant(x, 1)), q)))
        ),
    ),
    samples=Samples(low=(1.2, 0.5), high=(6.0, 6.0), ulp=8, derivatives=False),
)


def _polygamma_reference(m, x):
    import scipy.special

    m, x = np.broadcast_arrays(m, x)
    with np.errstate(all="ignore"):
        sign = np.where(np.mod(m, 2) == 0, -1.0, 1.0)
        higher = (
            sign
            * scipy.special.gamma(m.astype(np.float64) + 1)
            * scipy.special.zeta(m.astype(np.float64) + 1, x.astype(np.float64))
        )
        out = np.where(m == 0, scipy.special.psi(x.astype(np.float64)), higher)
    return np.where((m >= 0) & (m == np.floor(m)) & (m < np.inf), out, np.nan)


polygamma_p = nary(
    "polygamma",
    2,
    doc="The derivative of order m of digamma at x, m a whole number.",
    accepts=FLOAT,
    reference=computed_wide(_polygamma_reference),
    cost=150,
    lower=_in_f32("polygamma"),
    jvp=(
        _not_differentiable("polygamma", "m"),
        lambda x_dot, out, m, x: mul_p.bind(x_dot, polygamma_p.bind(add_p.bind(m, constant(m, 1)), x)),
    ),
    samples=Samples(
        cases=lambda rng: [
            Case((np.float32(m), rng.uniform(0.5, 6, 5).astype(np.float32)), {}, tolerance=1e-4, derivatives=False)
            for m in (0, 1, 2, 3)
        ]
    ),
)

erf = unary_function(erf_p)
erfc = unary_function(erfc_p)
erf_inv = unary_function(erf_inv_p)
lgamma = unary_function(lgamma_p)
digamma = unary_function(digamma_p)
bessel_i0e = unary_function(bessel_i0e_p)
bessel_i1e = unary_function(bessel_i1e_p)


@api_boundary
def igamma(a: Any, x: Any) -> Any:
    """The regularized lower incomplete gamma function P(a, x), elementwise; a > 0, x >= 0, else NaN."""
    return igamma_p.bind(*broadcast_operands("igamma", a, x))


@api_boundary
def igammac(a: Any, x: Any) -> Any:
    """The regularized upper incomplete gamma function Q(a, x), elementwise; a > 0, x >= 0, else NaN."""
    return igammac_p.bind(*broadcast_operands("igammac", a, x))


@api_boundary
def igamma_grad_a(a: Any, x: Any) -> Any:
    """The derivative of igamma(a, x) with respect to a, elementwise."""
    return igamma_grad_a_p.bind(*broadcast_operands("igamma_grad_a", a, x))


@api_boundary
def random_gamma_grad(a: Any, x: Any) -> Any:
    """dx/da of a sample x of the gamma distribution with shape a, at fixed probability (implicit reparametrization)."""
    return random_gamma_grad_p.bind(*broadcast_operands("random_gamma_grad", a, x))


@api_boundary
def betainc(a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function I_x(a, b), elementwise; a, b > 0, x in [0, 1], else NaN."""
    return regularized_incomplete_beta_p.bind(*broadcast_operands("betainc", a, b, x))


@api_boundary
def zeta(x: Any, q: Any) -> Any:
    """The Hurwitz zeta function, elementwise."""
    return zeta_p.bind(*broadcast_operands("zeta", x, q))


@api_boundary
def polygamma(m: Any, x: Any) -> Any:
    """The derivative of order m of digamma at x, elementwise."""
    return polygamma_p.bind(*broadcast_operands("polygamma", m, x))
