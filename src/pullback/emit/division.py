"""Lanes of floats divided by one number: by its reciprocal, which is found once, where the pass `divisions` says so.

The quotient is corrected by what it leaves, which a fused multiply-add gives exactly, so it is rounded as a division is
(Markstein, IBM Journal of Research and Development 34, 1990) but for dividends and quotients near the smallest normal
numbers, which may give one unit off.
"""

from __future__ import annotations

from ..loop_ir.ir import INVERSE, Const, Op
from .code import Code
from .values import Asm, Value, broadcast, element_of

# Numbers between these have reciprocals that are normal: (smallest, largest).
RANGE = {"f32": (2.0**-126, 2.0**125), "f64": (2.0**-1022, 2.0**1021)}
SCALE = 2.0**64  # brings any other number but 0, infinities and NaN between them


def suits(op: Op) -> bool:
    """Whether a pass has chosen the reciprocal, and it is no constant without a normal one."""
    if INVERSE not in op.attrs:
        return False
    low, high = RANGE[op.dtype]
    by = op.args[1]
    return not isinstance(by, Const) or low <= abs(by.value) <= high


def by_one(code: Code, op: Op, x: Value, y: Value) -> str:
    """x / y for x of several lanes and y of one; rounded as a division is."""
    a, one, element = Asm(code, x.lanes), Asm(code, 1), element_of(op.dtype)
    dividend, divisor = x.ref, y.ref

    def lanes(ref: str) -> str:
        return broadcast(code, Value(op.dtype, ref), x.lanes).ref

    if not isinstance(op.args[1], Const):
        # Both are scaled by what keeps the reciprocal normal: an overflow or underflow of x is then one of x / y.
        low, high = RANGE[op.dtype]
        size = one.call("llvm.fabs", element, divisor)
        large = one.cmp("ogt", element, size, one.imm(element, high))
        scale = one.select(large, element, one.imm(element, 1 / SCALE), one.imm(element, 1.0))
        small = one.cmp("olt", element, size, one.imm(element, low))
        scale = one.select(small, element, one.imm(element, SCALE), scale)
        divisor = one.op("fmul", element, divisor, scale)
        dividend = a.op("fmul", element, dividend, lanes(scale))
    inverse = lanes(one.op("fdiv", element, one.imm(element, 1.0), divisor))
    negative = lanes(one.op("fmul", element, divisor, one.imm(element, -1.0)))
    quotient = better = a.op("fmul", element, dividend, inverse)
    for _ in range(2):  # the first brings it within a unit of the last place, from where the second rounds rightly
        left = a.call("llvm.fma", element, better, negative, dividend)
        better = a.call("llvm.fma", element, left, inverse, better)
    # What infinities leave is no number, and what zeros leave has lost their sign.
    good = a.cmp("one", element, better, a.imm(element, 0.0))
    return a.select(good, element, better, quotient)
