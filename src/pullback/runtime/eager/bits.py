"""Who computes an operation in eager work: as compiled code and what runs without compilation may have other bits, that
must not depend on how often something is called.

Most operations have the same bits either way: what moves and compares, what rounds each element once, and functions of
numbers, whose kernels are those of programs (functions.py). They are compiled when that pays. Others add in an order of
their own, or are LAPACK's: types and shapes alone decide on those, for all calls.

    EITHER      the bits are the same
    UNCOMPILED  a plan or the reference, never compiled code: products, and sums that are not long
    COMPILED    compiled code from the first call on: what it does in a fraction of the time (Fourier transforms,
                matrices, running sums, convolutions), and long work

What a primitive's kind of lowering does not tell of that, traits of its record do: "exact", "own order" and "quicker
compiled".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from pullback.core.jaxpr import ClosedJaxpr, jaxprs_in_params
from pullback.core.lowering import Elementwise, HostCall, Inline, InlineFunction, Pointwise, Reduction, must_be_compiled
from pullback.core.primitive import NoRule, Primitive
from pullback.runtime.eager.work import BLAS, COMPILATION, GAIN, work

EITHER, UNCOMPILED, COMPILED = "either", "uncompiled", "compiled"

_SIMPLE = (Pointwise, HostCall, NoRule, Inline)
# Nanoseconds of work from which on a compilation of 10 ms is worth its hundred calls. Less would make those wait who
# sum arrays of ever new sizes, more those who sum the same ones all the time.
LONG = 80_000
STRIDED = 0.5  # nanoseconds for an element that is no neighbour of the one before
SUM = 0.1  # nanoseconds for an element that a loop of plans reduces


def _is_same(primitive: Primitive, avals: Sequence[Any], outs: Sequence[Any]) -> bool:
    """Whether compiled code has the bits of what runs without, by itself and among other operations."""
    lower, traits = primitive.lower, primitive.traits
    if "own order" in traits:
        return False
    if "exact" in traits or (isinstance(lower, _SIMPLE) and "quicker compiled" not in traits):
        return True
    if isinstance(lower, Elementwise):
        return primitive.name != "pow" or len({aval.dtype for aval in avals}) == 1
    return all([getattr(aval.dtype, "kind", "b") in "biu" for aval in (*avals, *outs)])


def kind_of(primitive: Primitive, avals: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> str:
    """EITHER, UNCOMPILED or COMPILED: who computes a primitive on operands of these types."""
    if isinstance(primitive.reference, NoRule) or must_be_compiled(primitive.lower, avals, params):
        return COMPILED
    if _is_same(primitive, avals, outs):
        return EITHER
    if not primitive.traits.isdisjoint(("quicker compiled", "matrices", "own order")):
        return COMPILED
    if isinstance(primitive.lower, Elementwise):
        return UNCOMPILED
    by_loop = isinstance(primitive.lower, Reduction) and primitive.lower.combine is not None
    nanoseconds = work(primitive, avals, outs, params) * (SUM if by_loop else 1.0)
    if primitive.name == "dot_general" and avals[0].dtype.char in BLAS:
        if _is_sum_down(avals, outs, params):
            nanoseconds = STRIDED * max(avals[0].size, avals[1].size)
            return COMPILED if nanoseconds > LONG else UNCOMPILED
        return COMPILED if GAIN * nanoseconds > COMPILATION else UNCOMPILED
    return COMPILED if nanoseconds > LONG else UNCOMPILED


def _is_sum_down(avals: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> bool:
    """Whether a product is one of each of many pairs of vectors whose elements are not neighbours. NumPy takes one pair
    after the other, and for each of its elements another line of memory; programs read row by row.
    """
    (contracted, batch) = params["dimension_numbers"]
    are_vectors = all([math.prod([x.shape[d] for d in axes]) == outs[0].size for x, axes in zip(avals, batch)])
    return are_vectors and outs[0].size > 1 and any([x.ndim - 1 not in axes for x, axes in zip(avals, contracted)])


def kinds_in(closed: ClosedJaxpr) -> frozenset[str]:
    """The kinds of all equations of a jaxpr, and of those inside of them."""
    return closed.cached("bits", lambda: frozenset(_kinds(closed)))


def _kinds(jaxpr: Any) -> Iterator[str]:
    for eqn in jaxpr.eqns:
        inner, lower = jaxprs_in_params(eqn.params), eqn.primitive.lower
        if not inner and isinstance(lower, Inline) and not isinstance(lower, InlineFunction):
            inner = [lower.jaxpr(eqn.params)]  # as that of a solver, which its parameters hold deeper
        if not inner:
            yield _kind(eqn)
        for each in inner:
            yield from _kinds(each)


def _kind(eqn: Any) -> str:
    avals, outs = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
    return EITHER if _is_same(eqn.primitive, avals, outs) else kind_of(eqn.primitive, avals, outs, eqn.params)


__all__ = ["COMPILED", "EITHER", "LONG", "UNCOMPILED", "kind_of", "kinds_in"]
