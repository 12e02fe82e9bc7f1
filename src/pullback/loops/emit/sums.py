"""Sums that keep what rounding loses: the arithmetic of long float sums, and which values of a loop are such.

Long float sums keep their rounding errors to the last addition, which makes them about as accurate as pairwise sums
while the order of additions depends on sizes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from pullback.loops.ir.ir import Loop
from pullback.util.record import mutable_record

from .code import Code
from .types import literal
from .values import Asm, Value, broadcast, constant, element_of

_FLOATS = frozenset(("f32", "f64", "c64", "c128"))


@mutable_record
class Sums:
    """What a loop carries, and an error for each float sum, in their order: the sum is total + error."""

    totals: list[Value] = field(default_factory=list)
    errors: list[Value] = field(default_factory=list)

    @classmethod
    def of(cls, values: list[Value], count: int) -> Sums:
        """The first `count` values are totals."""
        return cls(values[:count], values[count:])


def float_sums(loop: Loop) -> list[bool]:
    """For each value that the loop carries, whether it is a float sum. Such may be made of the sums of parts."""
    return [group.combine == "add" and v.dtype in _FLOATS for group in loop.carried for v in group.vars]


def zero(code: Code, dtype: str, lanes: int, sign: float = 0.0) -> Value:
    """0.0, or -0.0, which leaves all it is added to as it is."""
    value = constant(dtype, complex(sign, sign)) if dtype[0] == "c" else Value(dtype, literal(dtype, sign))
    return broadcast(code, value, lanes)


def plus(code: Code, x: Value, y: Value) -> Value:
    """x + y."""
    a, element = Asm(code, x.lanes), element_of(x.dtype)
    return _value(x, [a.op("fadd", element, p, q) for p, q in zip(x.parts, y.parts)])


def two_sum(code: Code, x: Value, y: Value) -> tuple[Value, Value]:
    """(x + y, what rounding loses) (two-sum; Knuth, The Art of Computer Programming 2)."""
    a, element = Asm(code, x.lanes), element_of(x.dtype)
    totals, losses = [], []
    for p, q in zip(x.parts, y.parts):
        total = a.op("fadd", element, p, q)
        virtual = a.op("fsub", element, total, p)
        left = a.op("fsub", element, p, a.op("fsub", element, total, virtual))
        totals.append(total)
        losses.append(a.op("fadd", element, left, a.op("fsub", element, q, virtual)))
    return _value(x, totals), _value(x, losses)


def settled(code: Code, sums: Sums, flags: Sequence[bool]) -> list[Value]:
    """totals + errors; an error that is NaN, as one is where a total overflowed, counts as 0."""
    errors = iter(sums.errors)
    return [plus(code, x, _finite(code, next(errors))) if flag else x for x, flag in zip(sums.totals, flags)]


def _finite(code: Code, error: Value) -> Value:
    a, element = Asm(code, error.lanes), element_of(error.dtype)
    nothing = a.imm(element, 0.0)
    return _value(error, [a.select(a.cmp("uno", element, p, p), element, nothing, p) for p in error.parts])


def _value(like: Value, refs: list[str]) -> Value:
    return Value(like.dtype, refs[0], like.lanes, refs[1] if len(refs) > 1 else None)
