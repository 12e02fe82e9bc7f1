"""Running sums, products, extrema and log-sum-exps along an axis."""

from __future__ import annotations

import math
import operator
from typing import Any

from pullback.core.lowering import Nest
from pullback.lax.elementwise.bits import convert
from pullback.lax.records.families import *
from pullback.lax.records.nests import loops, two_sum, with_lost
from pullback.lax.records.operands import check_kind
from pullback.lax.records.sums import running_sum
from pullback.lax.reductions.reductions import highest, lowest

__all__ = [
    "cumlogsumexp",
    "cumlogsumexp_p",
    "cummax",
    "cummax_p",
    "cummin",
    "cummin_p",
    "cumprod",
    "cumprod_p",
    "cumsum",
    "cumsum_p",
]

Array = Any


def _emitted(step: Any, identity: Any) -> Any:
    """How a running combination becomes a loop; the arguments are those of `_running`."""

    def emit(ctx):
        b, axis, reverse = ctx.b, ctx.params["axis"], ctx.params["reverse"]
        aval, source, target = ctx.in_avals[0], ctx.operand(0), ctx.result(0)
        shape, n = aval.shape, aval.shape[axis]
        if aval.size == 0:
            return
        kept = dtypes.short_name(aval.dtype)
        dtype = "f32" if kept in ("f16", "bf16") else kept  # as the reference does
        first = b.const(dtype, identity(aval.dtype).item())
        # A combination that is one operation may be done in another order, so in lanes.
        groups: list[Any]
        if isinstance(step, str):
            groups, role = [((first,), step)], "scan"
        else:
            groups, role = [((start,), None) for start in (first, *[b.const(dtype, 0)] * 2)], "sequential"

        def row(outer):
            with b.carried_loop(n, groups, role) as scan:
                i = b.op("sub", b.const("i64", n - 1), scan.i) if reverse else scan.i
                index = (*outer[:axis], i, *outer[axis:])
                element = b.convert(ctx.load(source, index), dtype)
                if isinstance(step, str):
                    value = b.let(b.op(step, scan.var, element))
                    state = [value]
                else:
                    value, *state = step(b, *scan.vars, element)
                ctx.store(target, index, b.convert(value, kept))
                scan.update(*state)

        loops(b, shape[:axis] + shape[axis + 1 :], row)

    return emit


def _running(name: str, doc: str, accepts: str, accumulate: Any, step: Any, combine: Any, identity: Any) -> Primitive:
    """`accumulate(x, axis)` is the meaning, in the dtype of x (narrow floats are made wider before), `step` a loop IR
    operation or one step `step(b, *state, x)`, which gives a value and the next state, of three scalars that start as
    (identity, 0, 0); `combine(x, y)` is the same by lax functions.
    """

    def abstract_eval(aval, *, axis, **_direction):
        check_kind(name, aval.dtype, accepts)
        if axis < 0:
            raise ValueError(f"{name}: axis {axis} must not be negative")
        if axis >= aval.ndim:
            raise ValueError(f"{name}: axis {axis} is out of bounds for shape {aval.shape}")
        return aval

    def reference(x, axis, reverse):
        if reverse:
            return np.flip(reference(np.flip(x, axis), axis, False), axis)
        if x.dtype.itemsize <= 2 and dtypes.kind_of(x.dtype) == "f":
            return accumulate(x.astype(np.float32), axis).astype(x.dtype)
        return accumulate(x, axis)

    p = Primitive(
        name,
        doc=doc,
        abstract_eval=abstract_eval,
        reference=reference,
        lower=Nest(_emitted(step, identity), strided=True),
        traits={"stacked", "exact" if step in ("min", "max") else "quicker compiled"},
        transpose=NOT_LINEAR,
        samples=Samples(
            cases=lambda rng: [
                Case((rng.normal(size=s).astype(np.float32),), {"axis": a, "reverse": r})
                for s, a, r in [((5,), 0, False), ((3, 4), 1, True), ((3, 4), 0, False), ((2, 0), 1, False)]
            ]
        ),
    )

    def jvp(primals, tangents, **params):
        from pullback.lax.control.loops import by_doubling
        from pullback.transforms.jvp import jvp_flat

        axis, reverse = params["axis"], params["reverse"]
        if is_zero(tangents[0]):
            out = p.bind(*primals, **params)
            return out, tangent_zero(out)
        turned = (lambda x: lax.rev(x, (axis,))) if reverse else lambda x: x
        pairs = lambda xs, ys: [combine(*xs, *ys)]
        (out,), (out_dot,) = jvp_flat(lambda x: [turned(by_doubling(pairs, [turned(x)], axis)[0])], primals, tangents)
        if name == "cumlogsumexp" and dtypes.kind_of(out.dtype) == "c":
            out = p.bind(*primals, **params)  # the first element, too, with an angle of at most pi
        return out, out_dot

    def batch(args, dims, axis, reverse):
        (x,), (d,) = args, dims
        return p.bind(x, axis=axis + (axis >= d), reverse=reverse), d

    p.jvp, p.batch = jvp, batch
    return p


def _log_add_exp_step(b, top, total, lost, x):
    if x.dtype in ("c64", "c128"):
        return _complex_step(b, top, total, lost, x)
    return _real_step(b, top, total, lost, x)


def _real_step(b, top, total, lost, x):
    """log(exp(top) (total + lost) + exp(x)) and the next (top, total, lost); `lost` is what rounding took."""
    larger, grows = b.let(b.op("max", top, x)), b.op("gt", x, top)
    gap = b.op("neg", b.op("abs", b.op("sub", top, x)))
    # Equal infinities have a gap of NaN.
    smaller = b.let(b.select(b.op("eq", top, x), b.const(x.dtype, 1), b.op("exp", gap)))
    scale = b.let(b.select(grows, smaller, b.const(x.dtype, 1)))
    term = b.let(b.select(grows, b.const(x.dtype, 1), smaller))
    added, rest = two_sum(b, b.let(b.op("mul", total, scale)), term)
    rest = b.let(b.op("add", b.op("mul", lost, scale), rest))
    value = b.op("add", larger, b.op("log", b.op("add", added, rest)))
    return b.let(b.select(b.op("is_finite", larger), value, larger)), larger, added, rest


def _complex_step(b, top, total, lost, x):
    """As `_real_step`; `top` is the largest finite real part so far, as infinite ones cannot be taken off."""
    times = lambda z, factor: b.op(
        "complex", b.op("mul", b.op("real", z), factor), b.op("mul", b.op("imag", z), factor)
    )
    less = lambda z, part: b.op("complex", b.op("sub", b.op("real", z), part), b.op("imag", z))
    before, part = b.let(b.op("real", top)), b.let(b.op("real", x))
    larger = b.let(b.select(b.op("is_finite", part), b.op("max", before, part), before))
    scale = b.let(b.op("exp", b.op("sub", before, larger)))
    term = b.let(b.op("exp", less(x, larger)))
    added, rest = two_sum(b, b.let(times(total, scale)), term)
    rest = b.let(b.op("add", times(lost, scale), rest))
    logarithm = b.let(b.op("log", with_lost(b, added, rest)))
    return b.let(less(logarithm, b.op("neg", larger))), b.let(b.op("complex", larger, 0.0)), added, rest


def _running_log_sum_exp(x, axis):
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, axis, dtype=np.float64).astype(x.dtype)
    first = np.moveaxis(x.astype(np.complex128), axis, 0)
    rows = first.reshape(len(first), math.prod(first.shape[1:]))
    out, total = np.empty_like(rows), np.zeros(rows.shape[1:], np.clongdouble)
    top = np.full(rows.shape[1:], _start_of_log_sum_exps(rows.dtype).real)
    for row, result in zip(rows, out):
        larger = np.where(np.isfinite(row.real), np.maximum(top, row.real), top)
        scale, term = np.exp(top - larger), row.copy()
        term.real -= larger
        term = np.exp(term)
        total.real, total.imag, top = total.real * scale + term.real, total.imag * scale + term.imag, larger
        result[...] = np.log(total)
        result.real += larger
    return np.moveaxis(out.reshape(first.shape), 0, axis).astype(x.dtype)


def _start_of_log_sum_exps(dtype):
    return dtype.type(np.finfo(dtype).min) if dtypes.kind_of(dtype) == "c" else lowest(dtype)


def _log_add_exp(x, y):
    larger = lax.stop_gradient(lax.max(lax.real(x), lax.real(y)) if dtypes.kind_of(x.dtype) == "c" else lax.max(x, y))
    larger = lax.select(lax.is_finite(larger), larger, lax.full_like(larger, 0))
    larger = convert(larger, x.dtype)
    return lax.add(larger, lax.log(lax.add(lax.exp(lax.sub(x, larger)), lax.exp(lax.sub(y, larger)))))


cumsum_p = _running(
    "cumsum",
    "Running sums along an axis.",
    NUMERIC,
    running_sum,
    "add",
    lambda x, y: lax.add(x, y),
    lambda dtype: np.zeros((), dtype),
)
cumprod_p = _running(
    "cumprod",
    "Running products along an axis.",
    NUMERIC,
    lambda x, axis: np.multiply.accumulate(x, axis, dtype=x.dtype),
    "mul",
    lambda x, y: lax.mul(x, y),
    lambda dtype: np.ones((), dtype),
)
cummax_p = _running(
    "cummax",
    "Running maxima along an axis.",
    NUMERIC,
    np.maximum.accumulate,
    "max",
    lambda x, y: lax.max(x, y),
    lowest,
)
cummin_p = _running(
    "cummin",
    "Running minima along an axis.",
    NUMERIC,
    np.minimum.accumulate,
    "min",
    lambda x, y: lax.min(x, y),
    highest,
)
cumlogsumexp_p = _running(
    "cumlogsumexp",
    "Running log-sum-exps along an axis.",
    INEXACT,
    _running_log_sum_exp,
    _log_add_exp_step,
    _log_add_exp,
    _start_of_log_sum_exps,
)


def _cumsum_jvp(primals, tangents, axis, reverse):
    out = cumsum_p.bind(*primals, axis=axis, reverse=reverse)
    if is_zero(tangents[0]):
        return out, tangent_zero(out)
    return out, cumsum_p.bind(*tangents, axis=axis, reverse=reverse)


def _cumsum_transpose(y_bar, x, axis, reverse):
    return [tangent_zero(x) if is_zero(y_bar) else cumsum_p.bind(y_bar, axis=axis, reverse=not reverse)]


cumsum_p.jvp, cumsum_p.transpose = _cumsum_jvp, _cumsum_transpose
cumsum_p.traits |= {"linear"}


def _public(p):
    def function(operand, axis=0, reverse=False):
        operand = as_array(operand, p.name)
        canonical_axis(axis, operand.ndim, p.name)  # before its dtype, as JAX does
        return p.bind(operand, axis=operator.index(axis), reverse=bool(reverse))

    function.__name__ = function.__qualname__ = p.name
    function.__doc__ = (
        p.doc + " With `reverse`, from the end. Raises ValueError for an axis that is negative or not there."
    )
    function.__module__ = "pullback.lax"
    return function


cumsum = _public(cumsum_p)
cumprod = _public(cumprod_p)
cummax = _public(cummax_p)
cummin = _public(cummin_p)
cumlogsumexp = _public(cumlogsumexp_p)
