"""Complex functions over real and imaginary part; a complex value here is a pair of float expressions.

Special values are those of C99 Annex G where NumPy has them. Functions whose formulas cancel or overflow in the
precision of their parts (log, sqrt, the inverses, pow) compute complex64 in f64, where the plain
formula is safe; in complex128 they scale by powers of two and carry low parts. Sources: Kahan, Branch cuts for complex
elementary functions (1987); Hull, Fairgrieve, Tang, ACM TOMS 23 (1997) for asin and acos.

Measured: |error| / |value| below 2.7 eps for all but exp2 of parts above 1e9, and pow, whose error is about |w log z|
eps in complex128; each part within 3 eps, but where it vanishes by cancellation (expm1, log near |z| = 1, logistic).

Sizes of complex64 are found in f32, scaled by a power of two from the exponent's bits: half of the time of f64, 1 ulp.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pullback.loops.ir.ir import RARE, Const, Expr, Op

from ._kit import bits_of, clamp_high, fast_two_sum, format_of, polynomial, two_product, two_sum, with_sign_of
from .exponential import EXP, power_of_two, reduce_by_ln2
from .exponential import expm1 as real_expm1
from .hyperbolic import SCALED, scaled_sinh_cosh
from .inverse_trigonometric import HALF_PI, atan2
from .logarithm import INF, NAN, log_of_sum
from .logarithm import log1p as real_log1p
from .trigonometric import cos, sin

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder

Pair = tuple[Expr, Expr]
LN2, LN2_REST = 0.6931471805599453, 2.3190468138462996e-17
BIG, SMALL = 2.0**500, 2.0**-480  # between them squares of f64 are safe
LEAST_SQUARE = {"f32": 2.0**-90, "f64": 2.0**-900}  # of sums of two squares that underflow does no harm
# Sizes |x| + |y| of divisors, and of what they divide, for which no product leaves the normal numbers, nor does its
# rounding error but for one of parts 2^75 (f32) times as far apart.
DIVISORS = {"f32": (2.0**-20, 2.0**20), "f64": (2.0**-200, 2.0**200)}
DIVIDENDS = {"f32": (2.0**-30, 2.0**40), "f64": (2.0**-300, 2.0**400)}


def _finite(b: Builder, x: Expr) -> Expr:
    return b.abs(x) < INF


def _infinite(b: Builder, x: Expr) -> Expr:
    return b.eq(b.abs(x), INF)


def _is_nan(b: Builder, x: Expr) -> Expr:
    return b.ne(x, x)


def _of_f32(*parts: Expr) -> bool:
    """Whether f64 numbers are f32 ones, or 0 and 1: squares of them do no harm, and products of two are exact."""

    def is_f32(x: Expr) -> bool:
        return isinstance(x, Op) and x.name == "convert" and x.args[0].dtype == "f32"

    return all(is_f32(x) or (isinstance(x, Const) and x.value in (0, 1)) for x in parts)


def _scaling(b: Builder, size: Expr, *parts: Expr) -> tuple[Expr, Expr]:
    """(s, 1 / s): powers of two (even exponents) by which f64 `parts` of `size` can be squared without harm."""
    if _of_f32(*parts):
        return b.const("f64", 1.0), b.const("f64", 1.0)
    big, small = size > BIG, size < SMALL
    s = b.select(big, b.const("f64", 2.0**-600), b.select(small, b.const("f64", 2.0**600), 1.0))
    return s, b.select(big, b.const("f64", 2.0**600), b.select(small, b.const("f64", 2.0**-600), 1.0))


def _larger(b: Builder, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """(larger, smaller) of two sizes; NaN goes to either."""
    swap = x < y
    return b.select(swap, y, x), b.select(swap, x, y)


def hypot(b: Builder, x: Expr, y: Expr) -> Expr:
    """sqrt(x^2 + y^2) of f64 parts without overflow; inf if either is infinite, even if the other is NaN."""
    large, small = _larger(b, b.abs(x), b.abs(y))
    s, inverse = _scaling(b, large, x, y)
    large, small = large * s, small * s
    size = b.sqrt(b.fma(large, large, small * small)) * inverse
    return b.select(_infinite(b, x) | _infinite(b, y), INF, size)


def size(b: Builder, x: Expr, y: Expr) -> Expr:
    """|x + i y| within 1.1 ulp, inf if either part is infinite: the root of a sum of squares of moderate size."""
    square = b.fma(x, x, y * y)
    least = LEAST_SQUARE[x.dtype]
    some = b.ne((bits_of(b, x) | bits_of(b, y)) & ~format_of(x).sign_bit, 0)
    hard = b.not_(square < INF) | ((square < least) & some)
    wide = [b.convert(part, "f64") for part in (x, y)]
    return b.op("select", hard, b.convert(hypot(b, *wide), x.dtype), b.sqrt(square), attrs=(RARE,))


def _log_size(b: Builder, x: Expr, y: Expr, low: Expr | None = None) -> Expr:
    """log |x + low + i y| of f64 parts: half the logarithm of the sum of squares, kept as a sum of two doubles."""
    size_x, size_y = b.abs(x), b.abs(y)
    large, small = _larger(b, size_x, size_y)
    s, _ = _scaling(b, large, x, y)
    extra = b.select(large > BIG, b.const("f64", -1200.0), b.select(large < SMALL, b.const("f64", 1200.0), 0.0))
    square, square_low = two_product(b, large * s, large * s)
    other, other_low = two_product(b, small * s, small * s)
    u, lost = fast_two_sum(b, square, other)
    lost = lost + (square_low + other_low)
    if low is not None:
        lost = b.fma(2.0 * (x * s), low * s, lost)
    infinite = _infinite(b, x) | _infinite(b, y)
    u = b.select(infinite, INF, u)
    return log_of_sum(b, u, b.select(infinite, 0.0, lost), extra) * 0.5


def exp(b: Builder, z: Pair) -> Pair:
    """e^x (cos y + i sin y), which overflows only where a part of the product does."""
    x, y = z
    f = format_of(x)
    start, limit, less = SCALED[f.name]
    low = -150.0 if f.name == "f32" else -800.0  # e^low is 0 after rounding
    clamped = b.select(x < low, low, clamp_high(b, x, limit))
    far = clamped > start
    i, r = reduce_by_ln2(b, clamped, 2 * f.bias)
    p = polynomial(b, r, (1.0, 1.0, *EXP[f.name].coefficients))
    i = i - b.select(far, b.const(f.bits, less), 0)
    half = b.shr_logical(i, 1)
    s1, s2 = power_of_two(b, half, f.name), power_of_two(b, i - half, f.name)
    more = b.select(far, b.const(f.name, 2.0 ** (less // 2)), 1.0)
    vanishing = b.eq(x, -INF) & b.not_(_finite(b, y))
    zero = with_sign_of(b, b.const(f.name, 0.0), y)
    real = b.select(vanishing, 0.0, cos(b, y) * p * s1 * s2 * more * more)
    imag = sin(b, y) * p * s1 * s2 * more * more
    imag = b.select(vanishing, zero, b.select(b.eq(y, 0.0), y, imag))
    # inf + i (inf or NaN): the real part is infinite
    return b.select(b.eq(x, INF) & b.not_(_finite(b, y)), INF, real), imag


def expm1(b: Builder, z: Pair) -> Pair:
    """e^z - 1: real part expm1(x) cos y - 2 sin^2(y / 2)."""
    x, y = z
    real, imag = exp(b, z)
    half = sin(b, y * 0.5)
    accurate = b.fma(real_expm1(b, x), cos(b, y), -2.0 * half * half)
    return b.select(b.abs(x) < 30.0, accurate, real - 1.0), imag


def sinh(b: Builder, z: Pair) -> Pair:
    """sinh x cos y + i cosh x sin y."""
    x, y = z
    s, c, (k, l) = scaled_sinh_cosh(b, x)
    real = s * cos(b, y) * k * l
    imag = c * sin(b, y) * k * l
    odd = b.not_(_finite(b, y))
    real = b.select(b.eq(x, 0.0), x, b.select(odd & _infinite(b, x), x, real))
    return real, b.select(b.eq(y, 0.0), y, imag)


def cosh(b: Builder, z: Pair) -> Pair:
    """cosh x cos y + i sinh x sin y."""
    x, y = z
    s, c, (k, l) = scaled_sinh_cosh(b, x)
    real = c * cos(b, y) * k * l
    imag = s * sin(b, y) * k * l
    zero = b.eq(x, 0.0) | b.eq(y, 0.0)
    real = b.select(b.not_(_finite(b, y)) & _infinite(b, x), INF, real)
    return real, b.select(zero, with_sign_of(b, b.const(x.dtype, 0.0), _product_sign(b, x, y)), imag)


def _product_sign(b: Builder, x: Expr, y: Expr) -> Expr:
    """A float with the sign bit of x * y."""
    f = format_of(x)
    one = b.const(f.name, 1.0)
    return with_sign_of(b, one, x) * with_sign_of(b, one, y)


def tanh(b: Builder, z: Pair) -> Pair:
    """(sinh x cosh x + i sin y cos y) / (sinh^2 x + cos^2 y): no term cancels another."""
    x, y = z
    limit = 44.0 if x.dtype == "f32" else 354.0
    clamped = with_sign_of(b, clamp_high(b, b.abs(x), limit), x)
    s, c, (k, l) = scaled_sinh_cosh(b, clamped)
    s, c = s * k * l, c * k * l
    sin_y, cos_y = sin(b, y), cos(b, y)
    under = b.fma(s, s, cos_y * cos_y)
    real, imag = s * c / under, sin_y * cos_y / under
    one = with_sign_of(b, b.const(x.dtype, 1.0), x)
    end = b.abs(x) > limit  # where the imaginary part has vanished
    imag_at_end = with_sign_of(b, b.const(x.dtype, 0.0), b.select(_finite(b, y), sin_y * cos_y, y))
    real = b.select(_infinite(b, x), one, b.select(b.eq(x, 0.0), x, real))
    imag = b.select(end & (_finite(b, y) | _infinite(b, x)), imag_at_end, imag)
    return real, b.select(b.eq(y, 0.0), y, imag)


def _rotated(function: Callable[[Builder, Pair], Pair]) -> Callable[[Builder, Pair], Pair]:
    """z -> -i function(i z): sin from sinh, tan from tanh, asin from asinh, atan from atanh."""

    def rotated(b: Builder, z: Pair) -> Pair:
        x, y = z
        real, imag = function(b, (-y, x))
        return imag, -real

    return rotated


sin_, tan = _rotated(sinh), _rotated(tanh)


def cos_(b: Builder, z: Pair) -> Pair:
    """cos z = cosh(i z)."""
    x, y = z
    return cosh(b, (-y, x))


def log(b: Builder, z: Pair) -> Pair:
    """log |z| + i arg z (f64 parts)."""
    x, y = z
    return _log_size(b, x, y), atan2(b, y, x)


def log1p(b: Builder, z: Pair) -> Pair:
    """log(1 + z) (f64 parts), accurate near 0."""
    x, y = z
    u, low = two_sum(b, b.const("f64", 1.0), x)
    low = b.select(_finite(b, x), low, 0.0)
    return _log_size(b, u, y, low), atan2(b, y, u)


def sqrt(b: Builder, z: Pair) -> Pair:
    """The root with positive real part (f64 parts); the cut is the negative real axis, by the sign of the zero."""
    x, y = z
    size_x, size_y = b.abs(x), b.abs(y)
    large, _ = _larger(b, size_x, size_y)
    s, _ = _scaling(b, large, x, y)
    inverse = b.select(large > BIG, b.const("f64", 2.0**300), b.select(large < SMALL, b.const("f64", 2.0**-300), 1.0))
    if _of_f32(x, y):
        inverse = b.const("f64", 1.0)
    u, v = size_x * s, size_y * s
    root = b.sqrt((u + b.sqrt(b.fma(u, u, v * v))) * 0.5)
    other = b.select(b.eq(size_x + size_y, 0.0), 0.0, v / (root + root))
    root, other = root * inverse, other * inverse
    left = x < 0.0
    real, imag = b.select(left, other, root), b.select(left, root, other)
    infinite_y, right_end, left_end = _infinite(b, y), b.eq(x, INF), b.eq(x, -INF)
    real = b.select(infinite_y | right_end, INF, b.select(left_end & b.eq(y, y), 0.0, real))
    imag = b.select(infinite_y | left_end, INF, b.select(right_end & _finite(b, y), 0.0, imag))
    return real, with_sign_of(b, imag, y)


def _hull(b: Builder, x: Expr, y: Expr) -> tuple[Expr, Expr, Expr]:
    """For x, y >= 0 (f64): the two legs of asin's real part, tan(re asin) = x / leg, and the imaginary part of asin."""
    one = b.const("f64", 1.0)
    up, down = x + 1.0, x - 1.0
    r, s = hypot(b, up, y), hypot(b, down, y)
    a = (r + s) * 0.5
    outside = x > 1.0
    r_side = one / (r + up)  # r - (x + 1) = y^2 / (r + x + 1)
    inner = b.select(outside, 1.0, s - down)  # x <= 1: s + (1 - x)
    outer = b.select(outside, s + down, 1.0)
    # leg^2 = a^2 - x^2 = (a + x) (a - x)
    leg_inside = b.sqrt(0.5 * (a + x) * (y * (y * r_side) + inner))
    leg_outside = y * b.sqrt(0.5 * ((a + x) * r_side + (a + x) / outer))
    leg = b.select(outside, leg_outside, leg_inside)
    # a - 1, with the factor y taken out of the root where a - 1 may underflow
    q = 0.5 * (r_side + one / inner)
    less_inside = y * y * q
    less_outside = 0.5 * (y * (y * r_side) + outer)
    root_inside = y * b.sqrt(q * (a + 1.0))
    root_outside = b.sqrt(less_outside * (a + 1.0))
    at_one = b.eq(inner, 0.0)  # z = 1
    total = b.select(outside, less_outside + root_outside, b.select(at_one, 0.0, less_inside + root_inside))
    return x, leg, real_log1p(b, total)


def _asin_parts(b: Builder, z: Pair) -> tuple[Expr, Expr, Expr]:
    """(side, leg, height) for |x|, |y|: re asin = atan2(side, leg), im asin = height, far arguments included."""
    x, y = b.abs(z[0]), b.abs(z[1])
    large, _ = _larger(b, x, y)
    far = large > 2.0**100
    near_x, near_y = b.select(far, 1.0, x), b.select(far, 1.0, y)
    side, leg, height = _hull(b, near_x, near_y)
    far_height = _log_size(b, x, y) + LN2
    height = b.select(_infinite(b, x) | _infinite(b, y), INF, height)
    return b.select(far, x, side), b.select(far, y, leg), b.select(far, far_height, height)


def asin(b: Builder, z: Pair) -> Pair:
    """The arc sine (f64 parts); cuts on the real axis beyond +-1, by the sign of the imaginary zero."""
    side, leg, height = _asin_parts(b, z)
    real = with_sign_of(b, atan2(b, side, leg), z[0])
    return b.select(b.eq(z[0], 0.0), z[0], real), with_sign_of(b, height, z[1])


def acos(b: Builder, z: Pair) -> Pair:
    """The arc cosine (f64 parts): pi/2 - asin, without the subtraction."""
    side, leg, height = _asin_parts(b, z)
    real = atan2(b, leg, with_sign_of(b, side, z[0]))
    pi_half = b.const("f64", HALF_PI["f64"][0])
    real = b.select(b.eq(z[0], 0.0), pi_half, real)
    return real, with_sign_of(b, height, -z[1])


def asinh(b: Builder, z: Pair) -> Pair:
    """-i asin(i z)."""
    real, imag = asin(b, (-z[1], z[0]))
    return imag, -real


def acosh(b: Builder, z: Pair) -> Pair:
    """+-i acos z, whichever has a positive real part."""
    real, imag = acos(b, z)
    return b.abs(imag), with_sign_of(b, real, z[1])


def atanh(b: Builder, z: Pair) -> Pair:
    """log1p(4 x / ((1 - x)^2 + y^2)) / 4 + i arg((1 - x) (1 + x) - y^2, 2 y) / 2 (f64 parts)."""
    x, y = b.abs(z[0]), b.abs(z[1])
    less = 1.0 - x
    large, _ = _larger(b, x, y)
    far = large > BIG
    # far out 4 x / |z|^2 without squares; close to 1 scaled by 2^1200, taken off the logarithm again
    far_under = x * (x / large) + y * (y / large)
    close = (b.abs(less) < SMALL) & (y < SMALL)
    s = b.select(close, b.const("f64", 2.0**600), 1.0)
    u, v = less * s, y * s
    ratio = b.select(far, 4.0 * ((x / large) / far_under), 4.0 * x / b.fma(u, u, v * v))
    whole, lost = two_sum(b, b.const("f64", 1.0), ratio)
    bounded = b.not_(close) & _finite(b, ratio)
    real = log_of_sum(
        b, b.select(close, ratio, whole), b.select(bounded, lost, 0.0), b.select(close, b.const("f64", -1200.0), 0.0)
    )
    infinite = _infinite(b, x) | _infinite(b, y)
    real = b.select(infinite | b.eq(x, 0.0), 0.0, real * 0.25)
    imag = b.select(far, HALF_PI["f64"][0], atan2(b, y + y, b.fma(less, x + 1.0, -(y * y))) * 0.5)
    imag = b.select(b.eq(y, 0.0) & (x < 1.0), 0.0, imag)
    imag = b.select(_infinite(b, y) | (_infinite(b, x) & b.eq(y, y)), HALF_PI["f64"][0], imag)
    imag = b.select(b.eq(y, 0.0) & _is_nan(b, x), 0.0, b.select(_is_nan(b, y), y, imag))
    return with_sign_of(b, real, z[0]), with_sign_of(b, imag, z[1])


atan = _rotated(atanh)


def divide(b: Builder, z: Pair, w: Pair) -> Pair:
    """z / w (f64 parts) scaled by powers of two, the products' errors added back; infinities as in C99."""
    a, c = z
    x, y = w
    size_w, size_z = _larger(b, b.abs(x), b.abs(y))[0], _larger(b, b.abs(a), b.abs(c))[0]
    s, _ = _scaling(b, size_w, x, y)
    t, t_inverse = _scaling(b, size_z, a, c)
    xs, ys, as_, cs = x * s, y * s, a * t, c * t
    under = b.fma(xs, xs, ys * ys)
    inverse = 1.0 / under
    simple = _dot(b, as_, xs, cs, ys) / under, _dot(b, cs, xs, -as_, ys) / under
    real, imag = _corrected(b, simple, (as_, cs), (xs, ys), inverse)
    real, imag = real * s * t_inverse, imag * s * t_inverse
    # What C99 recovers: non-zero / 0 and infinite / finite are infinite, finite / infinite is 0.
    zero = b.eq(b.abs(x) + b.abs(y), 0.0)
    inf_z, inf_w = _infinite(b, a) | _infinite(b, c), _infinite(b, x) | _infinite(b, y)
    a, c = b.select(inf_z, _box(b, a), a), b.select(inf_z, _box(b, c), c)
    x1, y1 = b.select(inf_w, _box(b, x), x), b.select(inf_w, _box(b, y), y)
    factor = b.select(inf_w, b.const("f64", 0.0), INF)
    special = b.ne(inf_z, inf_w) & (b.eq(a, a) & b.eq(c, c) & b.eq(x1, x1) & b.eq(y1, y1))
    real = b.select(special, factor * (a * x1 + c * y1), real)
    imag = b.select(special, factor * (c * x1 - a * y1), imag)
    far = with_sign_of(b, b.const("f64", INF), x)
    return b.select(zero, far * z[0], real), b.select(zero, far * z[1], imag)


def _corrected(b: Builder, q: Pair, z: Pair, w: Pair, inverse: Expr) -> Pair:
    """The quotient q of z and w less what it is off by (one step of Newton's), inverse = 1 / |w|^2.

    Quotients of equal numbers are 1, and those of numbers that are all but real are rounded as real ones are: without
    it three roundings showed where differences of quotients are taken. The step is as exact as q is large: the smaller
    part by far, which has its own rounding, stays, and so do signs of zeros.
    """
    (p, r), (a, c), (x, y) = q, z, w
    off, off_imag = b.fma(p, x, b.fma(-r, y, -a)), b.fma(r, x, b.fma(p, y, -c))
    steps = b.fma(off, x, off_imag * y) * inverse, b.fma(off_imag, x, -(off * y)) * inverse
    real = b.select(b.abs(p) * 2.0 > b.abs(r), p - steps[0], p)
    return real, b.select(b.abs(r) * 2.0 > b.abs(p), r - steps[1], r)


def _between(b: Builder, bounds: tuple[float, float], x: Expr, y: Expr) -> Expr:
    """Whether |x| + |y| is in a range; False for NaN."""
    total = b.abs(x) + b.abs(y)
    return (total >= bounds[0]) & (total <= bounds[1])


def _unless(b: Builder, plain: Expr, simple: Pair, z: Pair, *more: Pair, by: Callable[..., Pair]) -> Pair:
    """`simple` where it is good, `by` in f64 of the numbers z and `more` where not, which is rare."""
    hard = by(b, *[(b.convert(x, "f64"), b.convert(y, "f64")) for x, y in (z, *more)])
    part = z[0].dtype
    no = b.not_(plain)
    real, imag = [b.op("select", no, b.convert(h, part), s, attrs=(RARE,)) for h, s in zip(hard, simple)]
    return real, imag


def quotient(b: Builder, z: Pair, w: Pair) -> Pair:
    """z / w: numbers of moderate size, zero among those divided, need no scaling and are not special."""
    (a, c), (x, y) = z, w
    inverse = 1.0 / b.fma(x, x, y * y)
    simple = _dot(b, a, x, c, y) * inverse, _dot(b, c, x, -a, y) * inverse
    simple = _corrected(b, simple, z, w, inverse)
    dividend = _between(b, DIVIDENDS[x.dtype], a, c) | b.eq(b.abs(a) + b.abs(c), 0.0)
    plain = dividend & _between(b, DIVISORS[x.dtype], x, y)
    return _unless(b, plain, simple, z, w, by=divide)


def _box(b: Builder, x: Expr) -> Expr:
    """+-1 for infinite x, else +-0."""
    return with_sign_of(b, b.select(_infinite(b, x), b.const(x.dtype, 1.0), 0.0), x)


def _dot(b: Builder, a: Expr, c: Expr, d: Expr, e: Expr) -> Expr:
    """a c + d e with one rounding of each product's error (Kahan; Handbook of Floating-Point Arithmetic, 4.10).

    The error is subtracted, as exact ones are +0: a sum of -0 stays so.
    """
    p = b.mul(d, e, exact=True)
    return b.fma(a, c, p) - b.fma(-d, e, p)


def reciprocal(b: Builder, z: Pair) -> Pair:
    """1 / z."""
    x, y = z
    inverse = 1.0 / b.fma(x, x, y * y)
    one = b.const("f64", 1.0), b.const("f64", 0.0)
    plain = _between(b, DIVISORS[x.dtype], x, y)
    same = b.const(x.dtype, 1.0), b.const(x.dtype, 0.0)
    simple = _corrected(b, (x * inverse, -y * inverse), same, z, inverse)
    return _unless(b, plain, simple, z, by=lambda b, z: divide(b, one, z))


def rsqrt(b: Builder, z: Pair) -> Pair:
    """1 / sqrt(z)."""
    return reciprocal(b, sqrt(b, z))


def logistic(b: Builder, z: Pair) -> Pair:
    """1 / (1 + e^-z); for real parts below 0, e^z / (1 + e^z)."""
    x, y = z
    left = x < 0.0
    real, imag = exp(b, (-b.abs(x), b.select(left, y, -y)))  # e^-|x|
    one, zero = b.const("f64", 1.0), b.const("f64", 0.0)
    top = b.select(left, real, one), b.select(left, imag, zero)
    return quotient(b, top, (real + 1.0, imag))


def exp2(b: Builder, z: Pair) -> Pair:
    """e^(z ln 2) (f64 parts); what the product loses is a factor 1 + the rest, where that is small."""
    rounded = [two_product(b, part, b.const("f64", LN2)) for part in z]
    x, y = (b.fma(part, LN2_REST, low) for part, (_, low) in zip(z, rounded))
    u, v = exp(b, (rounded[0][0], rounded[1][0]))
    u_more, v_more = b.fma(u, x, -(v * y)), b.fma(u, y, v * x)
    exact = _finite(b, u_more) & _finite(b, v_more) & (b.abs(x) < 2.0**-20) & (b.abs(y) < 2.0**-20)
    return b.select(exact, u + u_more, u), b.select(exact, v + v_more, v)


def power(b: Builder, z: Pair, w: Pair) -> Pair:
    """e^(w log z) (f64 parts), z^0 = 1^w = 1, 0^w = 0 for Re w > 0; relative error about |w log z| ulp."""
    log_size, angle = log(b, z)
    u, v = w
    x = _dot(b, u, log_size, -v, angle)
    y = _dot(b, u, angle, v, log_size)
    real, imag = exp(b, (x, y))
    none = (b.eq(u, 0.0) & b.eq(v, 0.0)) | (b.eq(z[0], 1.0) & b.eq(z[1], 0.0))
    zero = b.eq(z[0], 0.0) & b.eq(z[1], 0.0)
    at_zero = b.select(b.eq(v, 0.0) & (u > 0.0), b.const("f64", 0.0), b.select(u > 0.0, b.const("f64", 0.0), NAN))
    real = b.select(none, 1.0, b.select(zero, at_zero, real))
    return real, b.select(none, 0.0, b.select(zero, at_zero, imag))


def _scaled_sign(b: Builder, z: Pair) -> Pair:
    """z / |z| (f64 parts), 0 at 0."""
    x, y = z
    none = b.eq(hypot(b, x, y), 0.0)
    s, _ = _scaling(b, _larger(b, b.abs(x), b.abs(y))[0], x, y)
    length = hypot(b, x * s, y * s)
    return b.select(none, x, x * s / length), b.select(none, y, y * s / length)


def sign(b: Builder, z: Pair) -> Pair:
    """z / |z|, 0 at 0."""
    x, y = z
    square = b.fma(x, x, y * y)
    inverse = 1.0 / b.sqrt(square)
    zero = b.eq(x, 0.0) & b.eq(y, 0.0)
    plain = ((square < INF) & (square >= LEAST_SQUARE[x.dtype])) | zero
    simple = b.select(zero, x, x * inverse), b.select(zero, y, y * inverse)
    return _unless(b, plain, simple, z, by=_scaled_sign)


# Functions computed in the precision of their parts, and those that compute complex64 in f64.
NATIVE: dict[str, Callable[..., Pair]] = {
    "exp": exp,
    "expm1": expm1,
    "sin": sin_,
    "cos": cos_,
    "tan": tan,
    "sinh": sinh,
    "cosh": cosh,
    "tanh": tanh,
    "reciprocal": reciprocal,
    "div": quotient,
    "sign": sign,
}
WIDE: dict[str, Callable[..., Pair]] = {
    "exp2": exp2,
    "log": log,
    "log1p": log1p,
    "sqrt": sqrt,
    "rsqrt": rsqrt,
    "logistic": logistic,
    "pow": power,
    "asin": asin,
    "acos": acos,
    "atan": atan,
    "asinh": asinh,
    "acosh": acosh,
    "atanh": atanh,
}


def expand_complex(b: Builder, name: str, args: tuple[Expr, ...]) -> Expr | None:
    """The expansion of op `name` on complex arguments, or None."""
    part = "f32" if args[0].dtype == "c64" else "f64"
    pairs = [(b.real(arg), b.imag(arg)) for arg in args]
    if name == "abs":
        return size(b, *pairs[0])
    if name in NATIVE:
        return b.complex(*NATIVE[name](b, *pairs))
    if part == "f32":
        pairs = [(b.convert(x, "f64"), b.convert(y, "f64")) for x, y in pairs]
    if name in WIDE:
        real, imag = WIDE[name](b, *pairs)
        return b.complex(b.convert(real, part), b.convert(imag, part))
    return None
