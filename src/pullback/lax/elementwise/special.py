"""Special functions: error functions, gamma functions and their relatives, Bessel functions.

References run the compiled function for float64 (`hooks.elementwise`): so eager values and constants
are those of programs, and no other library is needed. Tests compare them with SciPy and mpmath.
"""

from __future__ import annotations

import math
from typing import Any

from pullback.core.hooks import hooks
from pullback.lax.elementwise.arithmetic import add_p, mul_p, neg_p, op, sub_p
from pullback.lax.elementwise.densities import beta_density, gamma_density
from pullback.lax.elementwise.gamma_curve import gamma_curve
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


def _compiled(name: str):
    """The reference that runs a function's own code for float64, and rounds once."""

    def reference(*operands):
        dtype = operands[0].dtype
        return hooks.elementwise(name, [np.asarray(x, np.float64) for x in operands]).astype(dtype)

    return reference


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


def _special(name, doc, jvp, samples):
    return unary(
        name, doc=doc, accepts=FLOAT, reference=_compiled(name), jvp=jvp, lower=op(name), samples=samples, cost=40
    )


def _gauss(x, scale):
    return _times(_exp(neg_p.bind(lax.square_p.bind(x))), scale)


erf_p = _special(
    "erf",
    "The error function, elementwise.",
    lambda x_dot, y, x: mul_p.bind(x_dot, _gauss(x, 2 / math.sqrt(math.pi))),
    Samples(low=-4, high=4, edges=EDGES),
)
# Where `ulp` is above 4 it is SciPy's error, which tests compare with: against mpmath, its i1e errs by 7.3 units,
# ours by 2.5.
erfc_p = _special(
    "erfc",
    "1 - erf(x), accurate for large x.",
    lambda x_dot, y, x: mul_p.bind(x_dot, _gauss(x, -2 / math.sqrt(math.pi))),
    Samples(low=-4, high=8, edges=EDGES),
)
erf_inv_p = _special(
    "erf_inv",
    "The inverse of the error function on (-1, 1).",
    lambda x_dot, y, x: mul_p.bind(x_dot, _times(_exp(lax.square_p.bind(y)), math.sqrt(math.pi) / 2)),
    Samples(low=-0.999, high=0.999, edges=(0.0, 1.0, -1.0, 1.5, NAN), ulp=4),
)


lgamma_p = _special(
    "lgamma",
    "log |gamma(x)|, elementwise.",
    lambda x_dot, y, x: mul_p.bind(x_dot, digamma_p.bind(x)),
    Samples(low=0.1, high=20, edges=EDGES, ulp=16),
)


def _digamma_jvp(x_dot, y, x):
    return mul_p.bind(x_dot, polygamma_p.bind(constant(x, 1), x))


digamma_p = _special(
    "digamma",
    "The derivative of lgamma.",
    _digamma_jvp,
    Samples(low=0.1, high=20, edges=(1.0, 0.5, 2.0, NAN), ulp=4),
)
bessel_i0e_p = _special(
    "bessel_i0e",
    "exp(-|x|) I0(x), the scaled modified Bessel function of order 0.",
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
    _bessel_i1e_jvp,
    Samples(low=-10, high=20, edges=(0.0, 1.0, -1.0, NAN), ulp=12),
)


# ------------------------------------------------------------------------------------------ incomplete gamma functions


igamma_p = nary(
    "igamma",
    2,
    doc="The regularized lower incomplete gamma function P(a, x).",
    accepts=FLOAT,
    reference=_compiled("igamma"),
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
    reference=_compiled("igammac"),
    lower=_in_f32("igammac"),
    cost=200,
    samples=Samples(low=0.2, high=8.0, edges=(1.0, 2.0), ulp=128, derivatives=False),
    jvp=(
        lambda a_dot, out, a, x: mul_p.bind(a_dot, neg_p.bind(igamma_grad_a_p.bind(a, x))),
        lambda x_dot, out, a, x: mul_p.bind(x_dot, neg_p.bind(gamma_density(a, x))),
    ),
)


def _growth(a, x):
    """The derivative in a of log(x^(a-1) exp(-x) / gamma(a))."""
    return sub_p.bind(lax.log_p.bind(x), digamma_p.bind(a))


def _igamma_grad_a_jvp_x(x_dot, out, a, x):
    return mul_p.bind(x_dot, mul_p.bind(gamma_density(a, x), _growth(a, x)))


def _igamma_grad_a_jvp_a(a_dot, out, a, x):
    return mul_p.bind(a_dot, mul_p.bind(gamma_density(a, x), gamma_curve(a, x)))


def _random_gamma_grad_jvp_a(a_dot, out, a, x):
    # Of -(dP/da) / f: -(d2P/da2) / f - out (df/da) / f.
    return mul_p.bind(a_dot, neg_p.bind(add_p.bind(gamma_curve(a, x), mul_p.bind(out, _growth(a, x)))))


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
    reference=_compiled("igamma_grad_a"),
    lower=_in_f32("igamma_grad_a"),
    cost=400,
    jvp=(_igamma_grad_a_jvp_a, _igamma_grad_a_jvp_x),
    samples=Samples(low=0.2, high=8.0, edges=(1.0, 2.0), ulp=64, derivatives=False),
)
random_gamma_grad_p = nary(
    "random_gamma_grad",
    2,
    doc="dx/da of a gamma(a) variate x at fixed probability.",
    accepts=FLOAT,
    reference=_compiled("random_gamma_grad"),
    lower=_in_f32("random_gamma_grad"),
    cost=400,
    jvp=(_random_gamma_grad_jvp_a, _random_gamma_grad_jvp_x),
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
    reference=_compiled("regularized_incomplete_beta"),
    jvp=(
        _not_differentiable("betainc", "a"),
        _not_differentiable("betainc", "b"),
        lambda x_dot, out, a, b, x: mul_p.bind(x_dot, beta_density(a, b, x)),
    ),
    cost=300,
    lower=_in_f32("regularized_incomplete_beta"),
    samples=Samples(low=(0.3, 0.3, 0.05), high=(6.0, 6.0, 0.95), edges=(0.5, 1.0), ulp=256, derivatives=False),
)


zeta_p = nary(
    "zeta",
    2,
    doc="The Hurwitz zeta function, sum over k of (q + k) ** -x.",
    accepts=FLOAT,
    reference=_compiled("zeta"),
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


polygamma_p = nary(
    "polygamma",
    2,
    doc="The derivative of order m of digamma at x, m a whole number.",
    accepts=FLOAT,
    reference=_compiled("polygamma"),
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
