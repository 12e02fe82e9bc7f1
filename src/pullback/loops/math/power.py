"""pow, integer_pow, square, cbrt, rsqrt, reciprocal.

pow in f32 is 2^(y log2 |x|) in f64 arithmetic: its 53 bits leave 2^-40, where y log2 |x| below 150 in size needs 2^-33.
In f64 the logarithm and the product with y are sums of two doubles (about 2^-65; Muller et al., Handbook of
Floating-Point Arithmetic, 2nd ed., 10.3 and 4.4), as the error of the exponent is magnified up to 745 times.

Largest errors measured (ulp, f32 / f64): pow 0.51 / 1.15 (1.84 for a few exponents that are known in advance),
cbrt 0.68 / 0.68, rsqrt 1.00 / 1.00 (once for a row 1.49 / 1.49).

pow with a small exponent that is known is products and a square root: the general kernel took most of an n-body step.
So are whole exponents below 64, known or an index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.loops.ir.ir import RARE, Const, Expr
from pullback.loops.ir.types import REAL_OF

from ._kit import (
    F64,
    bits_of,
    clamp_high,
    clamp_low,
    fast_two_sum,
    flip_sign,
    format_of,
    polynomial,
    two_product,
    two_sum,
    with_sign_of,
)
from ._tables import power as tables
from .exponential import EXP, power_of_two, reduce_by_ln2, scale_twice
from .logarithm import INF, NAN, split_exponent

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder

# ln 2 with 11 bits to spare in the upper part, so that k times it is exact
LN2_SHORT = (0.6931471805598903, 5.497923018708371e-14)
TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)


def pow(b: Builder, x: Expr, y: Expr) -> Expr:
    """x^y with the C99 values: x^0 = 1^y = 1 even for NaN; negative x needs a whole y; signed zeros, infinities."""
    if isinstance(y, Const) and y.value in KNOWN:
        return _pow_known(b, x, y.value)
    if isinstance(y, Const) and 0 <= y.value < MOST and y.value == int(y.value):
        return whole_pow(b, x, int(y.value), int(y.value))
    f = format_of(x)
    size = b.abs(x)
    magnitude = _pow_f32(b, size, y) if f.name == "f32" else _pow_f64(b, size, y)
    whole = b.eq(b.floor(y), y)
    half = y * 0.5
    odd = whole & b.ne(b.floor(half), half)
    flip = b.select(odd, bits_of(b, x) & f.sign_bit, 0)
    invalid = (x < 0.0) & (x > -INF) & b.not_(whole)
    # (-1)^NaN is NaN, since NaN is not whole; 1^NaN is 1
    return b.select(invalid, NAN, flip_sign(b, magnitude, flip))


KNOWN = (-2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)


def _pow_known(b: Builder, x: Expr, y: float) -> Expr:
    """x^y for a y of KNOWN by products and a square root: at most three roundings, 1.84 ulp.

    What is multiplied is denormal only where the result is 0 or infinite anyway.
    """
    if y == int(y):
        base = x if y > 0 else 1.0 / x
        return [base, base * base, base * base * base][abs(int(y)) - 1]
    size = b.abs(x)
    root = b.op("sqrt", size)
    if y == -0.5:
        result = 1.0 / root
    elif y == -1.5:
        result = 1.0 / size / root
    else:
        result = [root, size * root, size * size * root][int(y)]
    return b.select((x < 0.0) & (x > -INF), NAN, result)


MOST = 64  # whole exponents below are products


def whole_pow(b: Builder, x: Expr, y: Expr | int, most: int) -> Expr:
    """x^y for a whole y from 0 to `most`: squares of x, of which those are multiplied that the bits of y ask for.

    Of f32 in f64, of f64 as sums of two doubles, so that only the end is rounded, where it counts: at most 1.1 ulp.
    What overflows on the way is not asked for, or does so in the end, too; so with zeros. For an index as y this takes
    an eighth of the general kernel's time.
    """
    kept = x.dtype
    one = b.const("f64", 1.0)
    square, square_low = b.convert(x, "f64") if kept == "f32" else x, b.const("f64", 0.0)
    power: Expr | None = None
    power_low = square_low
    for k in range(most.bit_length()):
        if k:
            square, square_low = _wide_product(b, kept, square, square_low, square, square_low)
        factor, factor_low = square, square_low
        if isinstance(y, int):
            if not y >> k & 1:
                continue
        else:
            asked = b.ne(y & (1 << k), 0)
            factor, factor_low = b.select(asked, square, one), b.select(asked, square_low, 0.0) if k else square_low
        if power is None:
            power, power_low = factor, factor_low
        else:
            power, power_low = _wide_product(b, kept, power, power_low, factor, factor_low)
    if power is None:
        return b.const(kept, 1.0)
    if kept == "f32":
        return b.convert(power, "f32")
    plain = (b.abs(power) < INF) & b.ne(power, 0.0)
    return b.select(plain, power + power_low, power)


def _wide_product(b: Builder, kept: str, x: Expr, x_low: Expr, y: Expr, y_low: Expr) -> tuple[Expr, Expr]:
    """(x + x_low) (y + y_low) for a result in `kept`: f32 does without the lower parts, which are 0."""
    if kept == "f32":
        return b.mul(x, y, exact=True), x_low
    product, low = two_product(b, x, y)
    return product, b.fma(x, y_low, b.fma(y, x_low, low))


def _pow_f32(b: Builder, size: Expr, y: Expr) -> Expr:
    wide, exponent = b.convert(size, "f64"), b.convert(y, "f64")
    k, m, _ = split_exponent(b, wide)  # denormals of f32 are normal here
    s = (m - 1.0) / (m + 1.0)
    log2 = b.fma(s, polynomial(b, s * s, tables.LOG2_F64), k)
    log2 = b.select(b.eq(wide, 0.0), -INF, b.select(wide < INF, log2, wide))
    w = b.select(b.eq(log2, 0.0) | b.eq(y, 0.0), 0.0, log2 * exponent)
    w = clamp_high(b, clamp_low(b, w, -200.0), 200.0)
    magic = F64.magic + F64.bias
    t = b.add(w, magic, exact=True)
    r = b.sub(w, b.sub(t, magic, exact=True), exact=True)
    power = polynomial(b, r, tables.EXP2_SHORT_F64) * power_of_two(b, b.bitcast(t, "i64"), "f64")
    return b.convert(power, "f32")


def log_double(b: Builder, x: Expr) -> tuple[Expr, Expr]:
    """log x as a sum of two doubles, relative error about 2^-65, for finite x > 0, denormals included."""
    small = x < F64.min_normal
    bias = b.const("f64", F64.magic + F64.bias)
    k, m, _ = split_exponent(b, b.select(small, x * 2.0**54, x), b.select(small, F64.magic + F64.bias + 54.0, bias))
    # s = (m - 1) / (m + 1) = s_high + s_low
    above, above_low = two_sum(b, b.const("f64", 1.0), m)
    below = b.sub(m, 1.0, exact=True)
    inverse = 1.0 / above
    s = b.mul(below, inverse, exact=True)
    s_low = b.fma(-s, above_low, b.fma(-s, above, below)) * inverse
    # log m = 2 s + s^3 (2/3 + s^2 tail(s^2))
    z, z_low = two_product(b, s, s)
    z_low = b.fma(s + s, s_low, z_low)
    tail = b.mul(z, polynomial(b, z, tables.LOG_TAIL_F64), exact=True)
    cubic, cubic_low = fast_two_sum(b, b.const("f64", TWO_THIRDS[0]), tail)
    cubic_low = cubic_low + TWO_THIRDS[1]
    p, p_low = two_product(b, z, cubic)
    p_low = p_low + b.fma(z, cubic_low, z_low * cubic)
    q, q_low = two_product(b, s, p)
    q_low = q_low + b.fma(s, p_low, s_low * p)
    twice = s + s
    high, low = fast_two_sum(b, twice, q)
    low = low + b.fma(b.const("f64", 2.0), s_low, q_low)
    # + k ln 2
    base = b.mul(k, LN2_SHORT[0], exact=True)
    total, rest = two_sum(b, base, high)
    return fast_two_sum(b, total, rest + b.fma(k, LN2_SHORT[1], low))


def _pow_f64(b: Builder, size: Expr, y: Expr) -> Expr:
    high, low = log_double(b, size)
    high = b.select(b.eq(size, 0.0), -INF, b.select(size < INF, high, size))
    w, w_low = two_product(b, y, high)
    w_low = b.fma(y, low, w_low)
    none = b.eq(high, 0.0) | b.eq(y, 0.0)
    w_low = b.select((b.abs(w) < 800.0) & b.not_(none), w_low, 0.0)
    w = b.select(none, 0.0, w)
    w = clamp_high(b, clamp_low(b, w, -746.0), 710.0)
    i, r = reduce_by_ln2(b, w, 2 * F64.bias)
    r = r + w_low
    p = b.fma(r * r, polynomial(b, r, EXP["f64"]), r) + 1.0
    return scale_twice(b, p, i)


def integer_pow(b: Builder, x: Expr, y: int) -> Expr:
    """x^y for a Python integer y by repeated squaring, in any number type; 1 / x^|y| for negative y.

    Of complex x (1 / x)^|y|, since x^|y| that overflows may be NaN.
    """
    if y == 0:
        return b.const(x.dtype, 1)
    if y < 0 and x.dtype in REAL_OF:
        return integer_pow(b, b.div(b.const(x.dtype, 1), x), -y)
    power, square, n = None, x, abs(y)
    while True:
        if n & 1:
            power = square if power is None else b.mul(power, square)
        n >>= 1
        if not n:
            break
        square = b.mul(square, square)
    assert power is not None
    return power if y > 0 else b.div(b.const(x.dtype, 1), power)


def square(b: Builder, x: Expr) -> Expr:
    """x * x."""
    return b.mul(x, x)


def reciprocal(_b: Builder, x: Expr) -> Expr:
    """1 / x, correctly rounded."""
    return 1.0 / x


# The bits of an estimate within 3.5 % are this less half of the number's (Lomont, "Fast inverse square root", 2003).
HALVED = {"f32": 0x5F375A86, "f64": 0x5FE6EB50C7B537A9}


def rsqrt(b: Builder, x: Expr) -> Expr:
    """1 / sqrt(x); rsqrt(+-0) = +-inf, rsqrt(inf) = 0, NaN below 0.

    An estimate on the bits, refined by r += r e (1/2 + 3/8 e), e = 1 - x r^2, which cubes the error each time: two such
    steps, and in f64 one of r += r e / 2. In lanes a root and a division take up to 2.7 times as long; they stay for
    what is no normal number.
    """
    f = format_of(x)
    bits = bits_of(b, x)
    r = b.bitcast(b.const(f.bits, HALVED[f.name]) - b.shr_logical(bits, 1), f.name)
    one = b.const(f.name, 1.0)
    for _ in range(2):
        e = b.fma(-(x * r), r, one)
        r = b.fma(e * r, b.fma(e, 0.375, b.const(f.name, 0.5)), r)
    if f.name == "f64":
        r = b.fma(b.fma(-(x * r), r, one), r * 0.5, r)
    plain = (x >= f.min_normal) & (x < INF)
    return b.op("select", b.op("not", plain), 1.0 / b.sqrt(x), r, attrs=(RARE,))


def inverse_root(b: Builder, x: Expr) -> Expr:
    """rsqrt of one number at a time, whose steps would wait for each other."""
    return 1.0 / b.sqrt(x)


def cbrt(b: Builder, x: Expr) -> Expr:
    """The real cube root, odd.

    r = |x|^(-1/3) from a linear estimate on the bits (3 %), refined by r += r e (1/3 + 2/9 e), e = 1 - |x| r^3, which
    cubes the error each time; then y = |x| r^2 with one Newton step that takes y^3 - |x| without rounding error.
    """
    f = format_of(x)
    size = b.abs(x)
    up = 54 if f.name == "f32" else 162  # by powers of 8, so that `error` is no denormal number
    small = size < f.min_normal * 2.0 ** (2 * f.mantissa)
    size = b.select(small, size * 2.0**up, size)
    if f.name == "f32":
        third = b.convert(b.convert(bits_of(b, size), "f32") * (1 / 3), "i32")
        r = b.bitcast(b.const("i32", 0x548C2B4B) - third, "f32")
    else:
        high = b.bitcast(b.shr_logical(bits_of(b, size), 32) | 0x4330000000000000, "f64") - 2.0**52
        third = b.bitcast(b.fma(high, 1 / 3, F64.magic), "i64")
        r = b.bitcast(b.shl(b.const("i64", 0x553EF0FF) - third, 32), "f64")
    scaled = size
    for _ in range(2 if f.name == "f32" else 3):
        e = b.fma(-(scaled * r), r * r, b.const(f.name, 1.0))
        r = b.fma(r, e * b.fma(e, 2 / 9, b.const(f.name, 1 / 3)), r)
    y = size * r * r
    y2, y2_low = two_product(b, y, y)
    error = b.fma(y, y2_low, b.fma(y2, y, -size))
    y = b.fma(error * (r * r), -1 / 3, y)
    y = b.select(small, y * 2.0 ** (-up // 3), y)
    plain = (size > 0.0) & (size < INF)
    return b.select(plain, with_sign_of(b, y, x), x)
