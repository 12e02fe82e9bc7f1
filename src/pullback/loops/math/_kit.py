"""What all math expansions share: the facts of a float format, polynomial evaluation, small exact tricks.

Conventions of this package. An expansion is a function of a `Builder` and float expressions of one format; it returns
one expression of basic ops, without branches, so that it works for scalars and for lanes alike. `x < y` is False for
NaN, and clamps are written `select(x < low, low, x)`, which keeps NaN and is one machine instruction. A comparison
with "one ulp" bounds is stated as measured by tests/loops/math.

A `select` whose first branch is long and hardly ever needed is marked `RARE`: the emitter may then jump over
that branch when no lane wants it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pullback.loops.ir.ir import Expr
from pullback.util.record import frozen_record

from ._polynomials import Pieces, Polynomial

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder


@frozen_record
class Format:
    """A binary float format, and constants in it, split so that the parts sum to the number far beyond its precision.

    The parts of pi are all positive, so that -0 - 0 * pi is -0 part by part.
    `magic` is 1.5 * 2**mantissa: adding it to a small x leaves round_even(x) in the low bits of the sum.
    """

    name: str
    bits: str  # the integer type of the same width
    mantissa: int  # bits stored
    bias: int
    magic: float
    ln2: tuple[float, float]
    log2e: float
    pi: tuple[float, float, float]
    max: float
    min_normal: float

    @property
    def top(self) -> int:
        """The number of the sign bit: 31 or 63."""
        return self.mantissa + self.bias.bit_length() + 1

    @property
    def sign_bit(self) -> int:
        """The sign bit alone, as a signed integer."""
        return -(1 << self.top)


F32 = Format(
    "f32", "i32", 23, 127, 12582912.0,
    ln2=(0.6931471824645996, -1.9046542121259336e-09),
    log2e=1.4426950216293335,
    pi=(3.141592502593994, 1.5099578831723193e-07, 1.078060505991553e-14),
    max=3.4028234663852886e38,
    min_normal=2.0**-126,
)  # fmt: skip
F64 = Format(
    "f64", "i64", 52, 1023, 6755399441055744.0,
    ln2=(0.6931471805599453, 2.3190468138462996e-17),
    log2e=1.4426950408889634,
    pi=(3.141592653589793, 1.224646799147353e-16, 2.1657133478438278e-32),
    max=1.7976931348623157e308,
    min_normal=2.0**-1022,
)  # fmt: skip
FORMATS = {"f32": F32, "f64": F64}


def format_of(x: Expr) -> Format:
    """The format of a float expression; KeyError unless f32 or f64."""
    return FORMATS[x.dtype]


def polynomial(b: Builder, z: Expr, p: Polynomial | Sequence[float]) -> Expr:
    """p(z) by Horner's rule: one fma per coefficient, the shortest form (other iterations fill its latency)."""
    if isinstance(p, Polynomial):
        coefficients: Sequence[float] = p.coefficients
        if p.centre:
            z = z - p.centre
    else:
        coefficients = p
    result = b.const(z.dtype, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = b.fma(result, z, b.const(z.dtype, c))
    return result


def by_pieces(b: Builder, x: Expr, p: Pieces) -> Expr:
    """A function by a table of its pieces: Horner's rule with coefficients looked up for each lane.

    One that is not odd is taken of |x|, which times `density` is rounded to the number of a piece in the low bits of
    a sum.
    """
    f = format_of(x)
    size = clamp_high(b, b.abs(x), p.limit)
    piece = bits_of(b, b.fma(size, p.density, f.magic))
    entry = lambda row: b.op("lookup", piece, dtype=f.name, attrs=(("table", row),))
    h = size - entry(p.centres)
    result = entry(p.coefficients[-1])
    for row in reversed(p.coefficients[1 if p.odd else 0 : -1]):
        result = b.fma(result, h, entry(row))
    if not p.odd:
        return result
    # Around 0, where entry 0 is 0, h is most of the sum: its factor 1 is not rounded with the rest of the slope.
    return with_sign_of(b, b.fma(result, h, h) + entry(p.coefficients[0]), x)


def clamp_low(b: Builder, x: Expr, low: float) -> Expr:
    """x, but at least `low`; NaN stays."""
    return b.select(x < low, low, x)


def clamp_high(b: Builder, x: Expr, high: float) -> Expr:
    """x, but at most `high`; NaN stays."""
    return b.select(x > high, high, x)


def bits_of(b: Builder, x: Expr) -> Expr:
    """The bits of a float as a signed integer."""
    return b.bitcast(x, format_of(x).bits)


def with_sign_of(b: Builder, x: Expr, y: Expr) -> Expr:
    """x >= +0 (or already of y's sign) with the sign of y: `or` of the sign bit."""
    f = format_of(x)
    return b.bitcast(bits_of(b, x) | (bits_of(b, y) & f.sign_bit), f.name)


def flip_sign(b: Builder, x: Expr, mask: Expr) -> Expr:
    """x with its sign flipped where the top bit of the integer `mask` is set; other bits of `mask` must be zero."""
    return b.bitcast(bits_of(b, x) ^ mask, x.dtype)


def two_sum(b: Builder, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """(s, e) with s = fl(x + y) and s + e = x + y exactly (Knuth; Muller et al., Handbook of FP Arithmetic, 4.4)."""
    s = b.add(x, y, exact=True)
    rest = b.sub(s, x, exact=True)
    return s, b.add(b.sub(x, b.sub(s, rest, exact=True), exact=True), b.sub(y, rest, exact=True), exact=True)


def fast_two_sum(b: Builder, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """As two_sum, for |x| >= |y| or x = 0 (Dekker)."""
    s = b.add(x, y, exact=True)
    return s, b.sub(y, b.sub(s, x, exact=True), exact=True)


def two_product(b: Builder, x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """(p, e) with p = fl(x * y) and p + e = x * y exactly, barring underflow."""
    p = b.mul(x, y, exact=True)
    return p, b.fma(x, y, -p)
