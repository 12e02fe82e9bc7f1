"""Concatenations and stacks of many arrays are copies into one.

Elsewhere an element of a concatenation is a choice among all operands, computed wherever it is wanted, so that what is
made of it needs no memory. Of n operands that takes n choices an element: 64 rows of 100 took 115 us to sum, and the
program as long to compile as their square; in memory they take 3.5.

Measured: 1,000 scalars in a stack took 50 us, now 2.8; the sum of a stack of 1,000 took minutes to compile, now half a
second. Sums along the axis of up to 64 stay choices, which become straight code (loops/passes/unroll.py).
"""

from __future__ import annotations

from typing import Any

from pullback.compiler.graph.simplify.rewrite import Rewriter
from pullback.compiler.graph.structure.stacks import windows
from pullback.core.jaxpr import ClosedJaxpr, JaxprEqn, Var
from pullback.core.lowering import Elementwise, Nest, Reduction
from pullback.core.primitive import registry
from pullback.lax.records.compiler_made import compiler_primitive
from pullback.lax.records.nests import loops
from pullback.loops.passes.split import MAX_PARTS
from pullback.loops.passes.unroll import MAX_CHOICES

MANY_WINDOWS = 8  # operands of which slices of one array at regular places are read as such
MAX_CHOSEN = 16  # operands that choices are made among
MANY_APART = MAX_PARTS  # the same where copies write elements that are far apart: along the last of several axes


def write_joins(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program with concatenations and stacks of many operands as copies."""
    return Rewriter(closed, {"concatenate": (_copied,), "stack": (_copied,)}, "joins").run(write_joins)


def _copied(r: Rewriter, eqn: JaxprEqn) -> Any:
    ((_, axis),) = eqn.params.items()
    out = eqn.outvars[0].aval
    if len(eqn.invars) <= MANY_WINDOWS or (out.shape[axis] <= MAX_CHOICES and _is_folded(r, eqn.outvars[0], axis)):
        return None
    found = windows(r, eqn)
    if found is not None or len(eqn.invars) <= (MANY_APART if 0 < axis == out.ndim - 1 else MAX_CHOSEN):
        return found
    return r.emit(join_p, *eqn.invars, axis=axis, new=eqn.primitive.name == "stack")


def _is_folded(r: Rewriter, joined: Var, axis: int) -> bool:
    """Whether a reduction goes along this axis alone: its steps become straight code, without choices
    (`loops/passes/unroll.py`)."""
    seen, stack = {joined}, [joined]
    while stack:
        for eqn in r.readers.get(stack.pop(), ()):
            lower = eqn.primitive.lower
            if isinstance(lower, Reduction):
                if tuple(lower.axes(eqn.params)) == (axis,):
                    return True
            elif isinstance(lower, Elementwise):
                found = [v for v in eqn.outvars if v not in seen and v.aval.shape == joined.aval.shape]
                seen.update(found)
                stack += found
    return False


def _emit(ctx: Any) -> None:
    axis, new = ctx.params["axis"], ctx.params["new"]
    start = 0
    for k, aval in enumerate(ctx.in_avals):
        _copy(ctx, k, axis, start, new)
        start += 1 if new else aval.shape[axis]


def _copy(ctx: Any, k: int, axis: int, start: int, new: bool) -> None:
    b = ctx.b

    def body(index: Any) -> None:
        at = b.index(start) if new else b.op("add", index[axis], start) if start else index[axis]
        place = (*index[:axis], at, *index[axis if new else axis + 1 :])
        ctx.store(ctx.result(0), place, ctx.load(ctx.operand(k), index))

    if 0 not in ctx.in_avals[k].shape:
        loops(b, ctx.in_avals[k].shape, body)


def _as(rule: str) -> Any:
    def apply(*operands: Any, axis: int, new: bool) -> Any:
        like = registry["stack" if new else "concatenate"]
        return getattr(like, rule)(*operands, **{"axis" if new else "dimension": axis})

    return apply


join_p = compiler_primitive(
    "join",
    doc="Many arrays along a dimension, or a new one, copied into one.",
    abstract_eval=_as("abstract_eval"),
    reference=_as("reference"),
    lower=Nest(_emit, strided=True),
    traits={"inside"},
)
