"""Kernels of functions of numbers: a primitive on arrays of any length, as eager work runs it.

A kernel has the expressions that programs have for an element: those of the primitive's lowering, expanded by the same
pass. So a value has the same bits inside of a program and outside. It is compiled ahead (runtime/programs/ahead.py), as
no call of a function is to wait for that.

    count, x, ..., out      count elements in vectors, of which the last overlaps the one before; where there are fewer
                            than a vector has, one is computed: there must be memory for it (ext/programs/functions.h)
"""

from __future__ import annotations

from typing import Any

from pullback._ext import _core
from pullback.core.avals import ShapedArray
from pullback.core.primitive import registry
from pullback.loops.emit.cpu.target import current_target
from pullback.loops.emit.lanes import lane_count
from pullback.loops.emit.symbols import FUNCTION
from pullback.loops.ir import Builder, Function
from pullback.loops.ir.ir import Loop
from pullback.loops.ir.types import NAME_OF_NP_DTYPE, NP_DTYPE
from pullback.loops.passes.expand_math import expand_math

ANY = 1 << 40  # elements of a buffer whose size is the caller's


def function_kernel(name: str) -> Function:
    """The kernel of a name: FUNCTION, the operands' type, how many there are, and the primitive."""
    dtype, arity, primitive = name.removeprefix(FUNCTION).split("_", 2)
    return _kernel(primitive, dtype, int(arity))


def _kernel(name: str, dtype: str, arity: int) -> Function:
    primitive = registry[name]
    result = NAME_OF_NP_DTYPE[primitive.rule("abstract_eval")(*[ShapedArray((2,), NP_DTYPE[dtype])] * arity).dtype]
    function = _of_least(primitive, dtype, result, arity, _core.FEWEST)
    loop = next(stmt for stmt in function.body if isinstance(stmt, Loop))
    lanes = lane_count(loop, current_target())
    assert lanes <= _core.FEWEST, f"{name} of {dtype}: vectors of {lanes}"
    return _of_least(primitive, dtype, result, arity, lanes)


def _of_least(primitive: Any, dtype: str, result: str, arity: int, least: int) -> Function:
    """The kernel, which computes so many elements at least: then it needs no code for fewer than a vector has."""
    b = Builder()
    count = b.input("count", "i64", 1)
    operands = [b.input(f"x{k}", dtype, ANY) for k in range(arity)]
    out = b.output("out", result, ANY)
    extent = b.let(b.op("max", b.load(count, 0), b.index(least)), "extent")
    with b.loop(extent, "vector", "i") as i:
        values = [b.load(x, i) for x in operands]
        b.out_dtype = result
        b.store(out, i, primitive.lower.scalar(b, *values))
    return expand_math(b.function(primitive.name))


__all__ = ["function_kernel"]
