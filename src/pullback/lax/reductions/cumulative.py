"""Running sums, products, extrema and log-sum-exps along an axis."""

from __future__ import annotations

import operator
from typing import Any

from pullback.core.lowering import Nest
from pullback.lax.records.families import *
from pullback.lax.records.nests import loops
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
            raise ValueError(f"axis {axis} is out of bounds for array of shape {aval.shape}")
        return aval

    def reference(x, axis, reverse):
        if reverse:
            return np.flip(reference(np.flip(x, axis), axis, False), axis)
        if x.dtype.itemsize <= 2 and dtypes.kind_of(x.dtype) == "f":
            return accumulate(x.astype(np.float32), axis).astype(x.dtype)
        return accumulate(x, axis)

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

    p = Primitive(
        name,
        doc=doc,
        abstract_eval=abstract_eval,
        reference=reference,
        lower=Nest(emit, strided=True),
        transpose=NOT_LINEAR,
        samples=Samples(
            cases=lambda rng: [
                Case((rng.normal(size=s).astype(np.float32),), {"axis": a, "reverse": r})
                for s, a, r in [((5,), 0, False), ((3, 4), 1, True), ((3, 4), 0, False), ((2, 0), 1, False)]
            ]
        ),
    )

    def jvp(primals, tangents, **params):
        from pullback.transforms.jvp import jvp_flat

        axis, reverse = params["axis"], params["reverse"]
        if is_zero(tangents[0]):
            out = p.bind(*primals, **params)
            return out, tangent_zero(out)
        (out,), (out_dot,) = jvp_flat(
            lambda x: [lax.associative_scan(combine, x, reverse=reverse, axis=axis)], primals, tangents
        )
        return out, out_dot

    def batch(args, dims, axis, reverse):
        (x,), (d,) = args, dims
        return p.bind(x, axis=axis + (axis >= d), reverse=reverse), d

    p.jvp, p.batch = jvp, batch
    return p


def _log_add_exp_step(b, top, total, lost, x):
    """log(exp(top) (total + lost) + exp(x)) and the next (top, total, lost); `lost` is what rounding took."""
    larger, grows = b.let(b.op("max", top, x)), b.op("gt", x, top)
    gap = b.op("neg", b.op("abs", b.op("sub", top, x)))
    # Equal infinities have a gap of NaN.
    smaller = b.let(b.select(b.op("eq", top, x), b.const(x.dtype, 1), b.op("exp", gap)))
    scale = b.let(b.select(grows, smaller, b.const(x.dtype, 1)))
    term = b.let(b.select(grows, b.const(x.dtype, 1), smaller))
    scaled = b.let(b.op("mul", total, scale))
    added = b.let(b.op("add", scaled, term))
    taken = b.let(b.op("sub", added, scaled))
    rest = b.op("add", b.op("sub", scaled, b.op("sub", added, taken)), b.op("sub", term, taken))
    rest = b.let(b.op("add", b.op("mul", lost, scale), rest))
    value = b.op("add", larger, b.op("log", b.op("add", added, rest)))
    return b.let(b.select(b.op("is_finite", larger), value, larger)), larger, added, rest


def _log_add_exp(x, y):
    larger = lax.stop_gradient(lax.max(x, y))
    larger = lax.select(lax.is_finite(larger), larger, lax.full_like(larger, 0))
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
    FLOAT,
    lambda x, axis: np.logaddexp.accumulate(x, axis, dtype=np.float64).astype(x.dtype),
    _log_add_exp_step,
    _log_add_exp,
    lowest,
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
