"""Elementary functions: exponentials, logarithms, circular and hyperbolic functions."""

from __future__ import annotations

from pullback.lax.elementwise.arithmetic import abs_p, add_p, div_p, mul_p, neg_p, op, sub_p
from pullback.lax.elementwise.powers import sqrt_p, square_p
from pullback.lax.records.families import *
from pullback.lax.records.families import FLOAT_EDGES, INF, NAN

__all__ = [
    "acos",
    "acos_p",
    "acosh",
    "acosh_p",
    "asin",
    "asin_p",
    "asinh",
    "asinh_p",
    "atan",
    "atan2",
    "atan2_p",
    "atan_p",
    "atanh",
    "atanh_p",
    "cos",
    "cos_p",
    "cosh",
    "cosh_p",
    "exp",
    "exp2",
    "exp2_p",
    "exp_p",
    "expm1",
    "expm1_p",
    "log",
    "log1p",
    "log1p_p",
    "log_p",
    "logistic",
    "logistic_p",
    "sin",
    "sin_p",
    "sinh",
    "sinh_p",
    "tan",
    "tan_p",
    "tanh",
    "tanh_p",
]

LN2 = 0.6931471805599453
LN2_REST = 2.3190468138462996e-17


def one_minus(x):
    """1 - x."""
    return sub_p.bind(constant(x, 1), x)


def one_plus(x):
    """1 + x."""
    return add_p.bind(x, constant(x, 1))


def _math(name, doc, reference, jvp, samples, cost=20, lower=None):
    return unary(
        name,
        doc=doc,
        accepts=INEXACT,
        reference=computed_wide(reference),
        jvp=jvp,
        lower=lower or op(name),
        samples=samples,
        cost=cost,
    )


exp_p = _math(
    "exp",
    "e ** x, elementwise.",
    np.exp,
    lambda x_dot, y, x: mul_p.bind(x_dot, y),
    Samples(low=-10, high=10, edges=(*FLOAT_EDGES, 88.8, -104.0, 709.9)),
)


def _times_ln2(x):
    """(x ln 2 of float64, what is lost by rounding it), by Veltkamp's splitting into exact halves."""

    def halves(v):
        scaled = v * 134217729.0  # 2^27 + 1
        high = scaled - (scaled - v)
        return high, v - high

    product, (x1, x2), (c1, c2) = x * LN2, halves(x), halves(LN2)
    return product, x1 * c1 - product + x1 * c2 + x2 * c1 + x2 * c2 + x * LN2_REST


def _exp2_reference(x):
    if x.dtype.kind != "c":
        return np.exp2(x)
    wide = np.asarray(x).astype(np.complex128)
    out, rest = np.empty_like(wide), np.empty_like(wide)
    with np.errstate(all="ignore"):
        (out.real, rest.real), (out.imag, rest.imag) = _times_ln2(wide.real), _times_ln2(wide.imag)
        out = np.exp(out)
        more = np.where(np.abs(rest) < 2.0**-20, out * rest, 0)  # beyond, the angle is not known to that accuracy
        return np.where(np.isfinite(more), out + more, out).astype(x.dtype)


def _expm1_reference(x):
    if x.dtype.kind != "c":
        return np.expm1(x)
    # NumPy's has NaN where exp overflows, though the angle is 0, and where a part is infinite.
    return np.where(np.isfinite(x) & (x.real < 40), np.expm1(x), np.exp(x) - 1)


exp2_p = _math(
    "exp2",
    "2 ** x, elementwise.",
    _exp2_reference,
    lambda x_dot, y, x: mul_p.bind(x_dot, mul_p.bind(constant(x, LN2), y)),
    Samples(low=-10, high=10, edges=(*FLOAT_EDGES, 128.0, -150.0), ulp=4),
)
log_p = _math(
    "log",
    "The natural logarithm, elementwise.",
    np.log,
    lambda x_dot, y, x: div_p.bind(x_dot, x),
    Samples(low=0.01, high=20, edges=FLOAT_EDGES),
)


def _complex_log1p(x):
    if x.dtype.kind != "c":
        return np.log1p(x)
    # |1 + x|^2 - 1 = re (2 + re) + im^2 does not cancel near 0; far out it overflows, near -1 it is -1.
    re, im = np.real(x), np.imag(x)
    out = np.empty(x.shape, x.dtype)
    out.real, out.imag = re + 1, im
    size = np.maximum(abs(out.real), abs(im))
    out = np.asarray(np.log(out))
    out.real = np.where((size > 0.5) & (size < 4), 0.5 * np.log1p(re * (2 + re) + im * im), out.real)
    return out


log1p_p = _math(
    "log1p",
    "log(1 + x), accurate near 0.",
    _complex_log1p,
    lambda x_dot, y, x: div_p.bind(x_dot, one_plus(x)),
    Samples(low=-0.9, high=10, edges=FLOAT_EDGES),
)
expm1_p = _math(
    "expm1",
    "exp(x) - 1, accurate near 0.",
    _expm1_reference,
    lambda x_dot, y, x: mul_p.bind(x_dot, one_plus(y)),
    Samples(low=-10, high=10, edges=FLOAT_EDGES),
)
sin_p = _math(
    "sin",
    "The sine, elementwise.",
    np.sin,
    lambda x_dot, y, x: mul_p.bind(x_dot, cos_p.bind(x)),
    Samples(low=-10, high=10, edges=(*FLOAT_EDGES, 1e6, 1e30)),
)
cos_p = _math(
    "cos",
    "The cosine, elementwise.",
    np.cos,
    lambda x_dot, y, x: neg_p.bind(mul_p.bind(x_dot, sin_p.bind(x))),
    Samples(low=-10, high=10, edges=(*FLOAT_EDGES, 1e6, 1e30)),
)
tan_p = _math(
    "tan",
    "The tangent, elementwise.",
    np.tan,
    lambda x_dot, y, x: mul_p.bind(x_dot, one_plus(square_p.bind(y))),
    Samples(low=-1.4, high=1.4, edges=FLOAT_EDGES, ulp=4),
)


sinh_p = _math(
    "sinh",
    "The hyperbolic sine, elementwise.",
    np.sinh,
    lambda x_dot, y, x: mul_p.bind(x_dot, cosh_p.bind(x)),
    Samples(low=-10, high=10, edges=FLOAT_EDGES),
)
cosh_p = _math(
    "cosh",
    "The hyperbolic cosine, elementwise.",
    np.cosh,
    lambda x_dot, y, x: mul_p.bind(x_dot, sinh_p.bind(x)),
    Samples(low=-10, high=10, edges=FLOAT_EDGES),
)


def _tanh_slope(x_dot, y, x):
    if y.dtype.kind == "c":  # their squares round more: (1 - y)(1 + y) keeps the digits that 1 - y^2 loses
        return mul_p.bind(x_dot, mul_p.bind(one_minus(y), one_plus(y)))
    return mul_p.bind(x_dot, one_minus(square_p.bind(y)))


tanh_p = _math(
    "tanh",
    "The hyperbolic tangent, elementwise.",
    np.tanh,
    _tanh_slope,
    Samples(low=-5, high=5, edges=FLOAT_EDGES),
)


def _root_of_one_minus_square(x):
    # (1 - x)(1 + x) keeps the digits that 1 - x^2 loses near 1.
    return sqrt_p.bind(mul_p.bind(one_minus(x), one_plus(x)))


asin_p = _math(
    "asin",
    "The inverse sine, elementwise.",
    np.arcsin,
    lambda x_dot, y, x: div_p.bind(x_dot, _root_of_one_minus_square(x)),
    Samples(low=-0.99, high=0.99, edges=(*FLOAT_EDGES, 1.5), ulp=3),
)
acos_p = _math(
    "acos",
    "The inverse cosine, elementwise.",
    np.arccos,
    lambda x_dot, y, x: div_p.bind(neg_p.bind(x_dot), _root_of_one_minus_square(x)),
    Samples(low=-0.99, high=0.99, edges=(*FLOAT_EDGES, 1.5), ulp=3),
)
atan_p = _math(
    "atan",
    "The inverse tangent, elementwise.",
    np.arctan,
    lambda x_dot, y, x: div_p.bind(x_dot, one_plus(square_p.bind(x))),
    Samples(low=-10, high=10, edges=FLOAT_EDGES),
)
asinh_p = _math(
    "asinh",
    "The inverse hyperbolic sine, elementwise.",
    np.arcsinh,
    lambda x_dot, y, x: div_p.bind(x_dot, sqrt_p.bind(one_plus(square_p.bind(x)))),
    Samples(low=-10, high=10, edges=FLOAT_EDGES, ulp=3),
)


def _root_of_square_minus_one(x):
    if x.dtype.kind != "c":  # not NaN below -1, so that where(x > 1, acosh(x), 0) has a slope of 0
        x = abs_p.bind(x)
    # The square of large x is inf, and its root is on the other branch where Re x < 0.
    return mul_p.bind(sqrt_p.bind(sub_p.bind(x, constant(x, 1))), sqrt_p.bind(one_plus(x)))


acosh_p = _math(
    "acosh",
    "The inverse hyperbolic cosine, elementwise.",
    np.arccosh,
    lambda x_dot, y, x: div_p.bind(x_dot, _root_of_square_minus_one(x)),
    Samples(low=1.01, high=10, edges=(1.0, 0.5, INF, NAN), ulp=3),
)
atanh_p = _math(
    "atanh",
    "The inverse hyperbolic tangent, elementwise.",
    np.arctanh,
    lambda x_dot, y, x: div_p.bind(x_dot, mul_p.bind(one_minus(x), one_plus(x))),
    Samples(low=-0.99, high=0.99, edges=(*FLOAT_EDGES, 1.5), ulp=3),
)


def _logistic_reference(x):
    if x.dtype.kind == "c":
        left = x.real < 0
        small = np.exp(np.where(left, x, -x))  # never overflows
        return np.where(left, small, 1) / (1 + small)
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + small), small / (1 + small))


logistic_p = _math(
    "logistic",
    "1 / (1 + exp(-x)), elementwise.",
    _logistic_reference,
    lambda x_dot, y, x: mul_p.bind(x_dot, mul_p.bind(y, one_minus(y))),
    Samples(low=-10, high=10, edges=FLOAT_EDGES),
)


def _atan2_reference(x, y):
    if x.dtype.kind == "c":  # -i log((y + i x) / sqrt(x^2 + y^2)), of both over the larger one
        size = np.maximum(np.abs(x), np.abs(y))
        scale = np.where((size > 0) & (size < np.inf), size, 1)
        x, y = x / scale, y / scale
        return -1j * np.log((y + 1j * x) / np.sqrt(x * x + y * y))
    return np.arctan2(x, y)


def _atan2_lower(b, x, y):
    if x.dtype not in ("c64", "c128"):
        return b.op("atan2", x, y)
    i = b.const(x.dtype, 1j)
    size = b.op("max", b.op("abs", x), b.op("abs", y))
    usable = b.op("and", b.op("gt", size, 0.0), b.op("lt", size, INF))
    scale = b.op("complex", b.op("select", usable, size, b.const(size.dtype, 1.0)), 0.0)
    x, y = b.op("div", x, scale), b.op("div", y, scale)
    ratio = b.op(
        "div", b.op("add", y, b.op("mul", i, x)), b.op("sqrt", b.op("add", b.op("mul", x, x), b.op("mul", y, y)))
    )
    return b.op("mul", b.op("neg", i), b.op("log", ratio))


def _atan2_slope(above, x, y):
    """above / (x^2 + y^2), both over the larger of |x| and |y|, so that the squares keep within the range."""
    size_x, size_y = lax.abs_p.bind(x), lax.abs_p.bind(y)
    size = lax.max_p.bind(size_x, size_y)
    usable = lax.and_p.bind(lax.gt_p.bind(size, constant(size, 0)), lax.lt_p.bind(size, constant(size, INF)))
    scale = lax.select_n_p.bind(usable, lax.full_like(size, 1), size)
    if dtypes.kind_of(x.dtype) == "c":
        scale = lax.complex_p.bind(scale, constant(scale, 0))
    first, second = div_p.bind(x, scale), div_p.bind(y, scale)
    squares = add_p.bind(square_p.bind(first), square_p.bind(second))
    return div_p.bind(div_p.bind(div_p.bind(above, scale), squares), scale)


atan2_p = nary(
    "atan2",
    2,
    doc="The angle of the point (y, x): atan(x / y) in the right quadrant.",
    accepts=INEXACT,
    reference=computed_wide(_atan2_reference),
    cost=30,
    lower=_atan2_lower,
    jvp=(
        lambda x_dot, out, x, y: mul_p.bind(x_dot, _atan2_slope(y, x, y)),
        lambda y_dot, out, x, y: mul_p.bind(y_dot, _atan2_slope(neg_p.bind(x), x, y)),
    ),
    samples=Samples(edges=FLOAT_EDGES, ulp=8),
)

exp = unary_function(exp_p, accuracy=True)
exp2 = unary_function(exp2_p, accuracy=True)
log = unary_function(log_p, accuracy=True)
log1p = unary_function(log1p_p, accuracy=True)
expm1 = unary_function(expm1_p, accuracy=True)
sin = unary_function(sin_p, accuracy=True)
cos = unary_function(cos_p, accuracy=True)
tan = unary_function(tan_p, accuracy=True)
tanh = unary_function(tanh_p, accuracy=True)
logistic = unary_function(logistic_p, accuracy=True)
sinh = unary_function(sinh_p)
cosh = unary_function(cosh_p)
asin = unary_function(asin_p)
acos = unary_function(acos_p)
atan = unary_function(atan_p)
asinh = unary_function(asinh_p)
acosh = unary_function(acosh_p)
atanh = unary_function(atanh_p)
atan2 = binary_function(atan2_p)
