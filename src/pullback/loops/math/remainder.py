"""The remainder of a division truncated towards zero, exactly: C's fmod.

With q one of the whole numbers next to |x / y|, |x| - q |y| is a multiple of y's last place no larger than y, so one
fma gives it without rounding. The reciprocal of y is taken too large by 2^-21 (f32): for |x / y| below 2^20, q is never
too small, and one too large at most. Whatever q is, a result in [0, |y|) is the remainder; of other lanes, as where
x / y is huge or an argument is not finite, a library's fmod takes care, which subtracts bit by bit. It also does where
y is so small that the fma's result may be a denormal number, which would be flushed to zero; x below y stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pullback.loops.ir.ir import RARE, Expr

from ._contract import EXACT
from ._kit import format_of, with_sign_of

if TYPE_CHECKING:
    from pullback.loops.ir.build import Builder


def rem(b: Builder, x: Expr, y: Expr) -> Expr:
    """x - trunc(x / y) y, exact, with the sign of x; NaN for infinite x and for y = 0, x for infinite y."""
    f = format_of(x)
    size, by = b.abs(x), b.abs(y)
    inverse = 1.0 / by * (1 + 2.0 ** (2 - f.mantissa))
    rest = b.fma(-b.trunc(size * inverse), by, size)
    rest = b.select(rest < 0.0, rest + by, rest)
    rest = b.select(size < by, size, rest)
    unsigned = "u" + f.bits[1:]  # as bits, negative numbers and NaN are larger than all others
    least = b.select(by < f.min_normal * 2.0**f.mantissa, 0.0, by)
    hard = b.bitcast(rest, unsigned) >= b.bitcast(least, unsigned)
    exact = b.op("rem", size, by, attrs=(EXACT,))
    return with_sign_of(b, b.op("select", hard, exact, rest, attrs=(RARE,)), x)
