"""Folds over axes: sums, products, extrema, logical folds, positions of extrema."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.lowering import Reduction
from pullback.core.types import whole_along
from pullback.lax.collectives.sharding import out_placed
from pullback.lax.elementwise.bits import convert
from pullback.lax.records.families import *
from pullback.lax.records.families import batch_reduction, check_axes, shape_without
from pullback.lax.records.operands import check_places
from pullback.lax.records.sums import sum_over

__all__ = [
    "argmax",
    "argmax_p",
    "argmin",
    "argmin_p",
    "reduce_and",
    "reduce_and_p",
    "reduce_max",
    "reduce_max_p",
    "reduce_min",
    "reduce_min_p",
    "reduce_or",
    "reduce_or_p",
    "reduce_prod",
    "reduce_prod_p",
    "reduce_sum",
    "reduce_sum_p",
    "reduce_xor",
    "reduce_xor_p",
]

Array = Any


def _narrow_safe(function):
    """A NumPy reduction that keeps the dtype; 16-bit floats are accumulated in f32."""

    def reference(x, axes, **params):
        if x.dtype.itemsize <= 2 and dtypes.kind_of(x.dtype) == "f":
            return np.asarray(function(x.astype(np.float32), axes)).astype(x.dtype)
        return function(x, axes)

    return reference


def lowest(dtype: Any) -> Any:
    """The neutral element of max: -inf, the least number where there is none, or False."""
    return _limit(dtype, -1)


def highest(dtype: Any) -> Any:
    """The neutral element of min: inf, the largest number where there is none, or True."""
    return _limit(dtype, 1)


def _limit(dtype, sign):
    kind = dtypes.kind_of(dtype)
    if kind == "b":
        return np.bool_(sign > 0)
    if kind in "iu":
        limits = dtypes.iinfo(dtype)
        return np.asarray(limits.max if sign > 0 else limits.min, dtype)[()]
    if kind == "f" and not has_infinity(dtype):
        limits = dtypes.finfo(dtype)
        return np.asarray(limits.max if sign > 0 else limits.min, dtype)[()]
    return np.asarray(complex(sign * np.inf, sign * np.inf) if kind == "c" else sign * np.inf, dtype)[()]


@functools.cache
def has_infinity(dtype: Any) -> bool:
    """Whether a floating-point type has infinities, as most of 8 bits and all of 4 have not."""
    return bool(np.isinf(np.asarray(np.inf, np.float32).astype(dtype).astype(np.float32)))


def spread(y: Any, axes: Sequence[int], shape: tuple[int, ...]) -> Any:
    """A reduced array repeated along the axes that were reduced."""
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    return lax.broadcast_in_dim_p.bind(y, shape=shape, broadcast_dimensions=kept)


def _axis_cases(make, dtype=np.float32):
    def cases(rng):
        return [
            Case((make(rng, s).astype(dtype),), {"axes": a})
            for s, a in [
                ((5,), (0,)),
                ((3, 4), (1,)),
                ((3, 4), (0,)),
                ((2, 3, 4), (0, 2)),
                ((2, 3), ()),
                ((2, 3), (0, 1)),
            ]
        ]

    return cases


def _normal(rng, shape):
    return rng.normal(size=shape)


def _integers(rng, shape):
    return rng.integers(-9, 9, shape)


def zero(dtype):
    """The identity of sums, or, and exclusive or."""
    return np.zeros((), dtype)[()]


def one(dtype):
    """The identity of products."""
    return np.ones((), dtype)[()]


reduce_sum_p = reduction(
    "reduce_sum",
    doc="The sum over axes.",
    accepts=NUMERIC,
    reference=_narrow_safe(sum_over),
    jvp=LINEAR,
    transpose=lambda y_bar, aval, axes, **params: spread(y_bar, axes, aval.shape),
    lower=Reduction("add", zero),
    samples=Samples(cases=_axis_cases(_normal)),
    traits=("linear", "added by plans"),
)


def _prod_jvp(x_dot, y, x, axes):
    """The product of all but one element, by prefix products from both sides: right also where elements are zero."""
    x, x_dot = whole_along(x, axes), whole_along(x_dot, axes)
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    order, rows = (*kept, *axes), tuple(x.shape[i] for i in kept)
    flat = lax.reshape(lax.transpose(x, order), (*rows, int(np.prod([x.shape[i] for i in axes], dtype=int))))
    flat_dot = lax.reshape(lax.transpose(x_dot, order), flat.shape)
    axis, n = len(kept), flat.shape[-1]
    if n == 0:
        return lax.full(rows, constant(x, 0))
    one = lax.full((*rows, 1), constant(x, 1))
    before = lax.concatenate([one, lax.cumprod(lax.slice_in_dim(flat, 0, n - 1, axis=axis), axis)], axis)
    after = lax.concatenate([lax.cumprod(lax.slice_in_dim(flat, 1, n, axis=axis), axis, reverse=True), one], axis)
    return reduce_sum_p.bind(lax.mul(flat_dot, lax.mul(before, after)), axes=(axis,))


reduce_prod_p = reduction(
    "reduce_prod",
    doc="The product over axes.",
    accepts=NUMERIC,
    reference=_narrow_safe(lambda x, axes: np.prod(x, axis=tuple(axes), dtype=x.dtype)),
    jvp=_prod_jvp,
    lower=Reduction("mul", one),
    samples=Samples(cases=_axis_cases(_normal)),
    traits=("added by plans",),
)


def _extremum_jvp(x_dot, y, x, axes):
    """The mean of the tangents at all places where the extremum is reached; NaN where that is NaN, in reverse too."""
    unknown = lax.ne_p.bind(y, y)
    reached = lax.or_p.bind(lax.eq_p.bind(x, spread(y, axes, x.shape)), spread(unknown, axes, x.shape))
    # Chosen, not multiplied, as 0 times an infinite tangent were NaN.
    total = reduce_sum_p.bind(lax.select_n_p.bind(reached, lax.full_like(x_dot, 0), x_dot), axes=axes)
    count = reduce_sum_p.bind(convert(reached, x.dtype), axes=axes)
    return lax.div_p.bind(total, lax.select_n_p.bind(unknown, count, lax.full_like(count, np.nan)))


def _extremum(name, doc, ufunc, loop_op, identity):
    def reference(x, axes, **params):
        return (
            ufunc.reduce(x, axis=tuple(axes), initial=identity(x.dtype))
            if 0 in x.shape
            else ufunc.reduce(x, axis=tuple(axes))
        )

    return reduction(
        name,
        doc=doc,
        accepts=ANY,
        reference=reference,
        jvp=_extremum_jvp,
        lower=Reduction(loop_op, identity),
        samples=Samples(cases=_axis_cases(_normal)),
        traits=("exact", "added by plans"),
    )


reduce_max_p = _extremum("reduce_max", "The largest element over axes; NaN if there is one.", np.maximum, "max", lowest)
reduce_min_p = _extremum(
    "reduce_min", "The smallest element over axes; NaN if there is one.", np.minimum, "min", highest
)


def all_ones(dtype):
    """The identity of and: all bits are 1."""
    return np.bool_(True) if dtype == np.bool_ else np.array(-1).astype(dtype)[()]


def _logical(name, doc, ufunc, loop_op, identity):
    return reduction(
        name,
        doc=doc,
        accepts=BITS,
        reference=lambda x, axes: ufunc.reduce(x, axis=tuple(axes)),
        jvp=ZERO,
        lower=Reduction(loop_op, identity),
        samples=Samples(cases=_axis_cases(_integers, np.int32)),
        traits=("exact",),
    )


reduce_and_p = _logical("reduce_and", "Bitwise (for bool: logical) and over axes.", np.bitwise_and, "and", all_ones)
reduce_or_p = _logical("reduce_or", "Bitwise (for bool: logical) or over axes.", np.bitwise_or, "or", zero)
reduce_xor_p = _logical(
    "reduce_xor", "Bitwise (for bool: logical) exclusive or over axes.", np.bitwise_xor, "xor", zero
)


# ------------------------------------------------------------------------------------------------------ argmax, argmin


def _arg_shape(aval, *, axes, index_dtype):
    check_axes(aval, axes)
    if len(axes) != 1:
        raise ValueError(f"argmin and argmax take one axis, got {tuple(axes)}")
    if dtypes.kind_of(index_dtype) not in "iu":
        raise TypeError(f"argmin and argmax: index_dtype must be of integers, got {index_dtype}")
    if aval.shape[axes[0]] == 0:
        raise ValueError(f"argmin and argmax: there is no element along axis {axes[0]} of shape {aval.shape}")
    check_places("argmin and argmax", aval.shape[axes[0]], index_dtype)
    if dtypes.kind_of(aval.dtype) not in REAL + BOOL:
        raise TypeError(f"argmin and argmax do not accept dtype {aval.dtype}; accepted are real numbers and bool")
    return ShapedArray(shape_without(aval.shape, axes), index_dtype)


def _arg_lowering(greater: str, not_less: str, identity: Callable) -> Reduction:
    """Folds (value, index) pairs; of equal values, and of NaNs, which win, the first place is kept.

    What equals the neutral element never takes its place, and leaves the largest index: then all do, and 0 is first.
    """

    def init(ctx):
        b, dtype = ctx.b, ctx.in_avals[0].dtype
        value = identity(dtype)
        return (
            b.const(dtypes.short_name(dtype), value.item()),
            b.const(dtypes.short_name(ctx.params["index_dtype"]), int(dtypes.iinfo(ctx.params["index_dtype"]).max)),
        )

    def element(ctx, operands, index):
        place, target = index[ctx.params["axes"][0]], dtypes.short_name(ctx.params["index_dtype"])
        return operands[0], place if target == "i64" else ctx.b.convert(place, target)

    def merge(ctx, left, right):
        b = ctx.b
        (x, i), (y, j) = left, right
        wins, ties = b.op(greater, x, y), b.op("eq", x, y)
        if x.dtype in ("f16", "bf16", "f32", "f64"):
            x_nan, y_nan = b.op("ne", x, x), b.op("ne", y, y)
            wins = b.op("or", wins, b.op("and", x_nan, b.op("not", y_nan)))
            ties = b.op("or", ties, b.op("and", x_nan, y_nan))
        left_wins = b.op("or", wins, b.op("and", ties, b.op("lt", i, j)))
        return b.select(left_wins, x, y), b.select(left_wins, i, j)

    def step(ctx, left, right):
        b = ctx.b
        (x, i), (y, j) = left, right
        if x.dtype in ("f16", "bf16", "f32", "f64"):
            right_wins = b.op("and", b.op("not", b.op(not_less, x, y)), b.op("eq", x, x))
        else:
            right_wins = b.op(greater, y, x)
        return b.select(right_wins, y, x), b.select(right_wins, j, i)

    def finish(ctx, accumulators):
        b, place = ctx.b, accumulators[1]
        none = int(dtypes.iinfo(ctx.params["index_dtype"]).max)
        return (b.select(b.op("eq", place, none), b.const(place.dtype, 0), place),)

    return Reduction(init=init, element=element, merge=merge, step=step, finish=finish)


def _arg_cases(rng):
    x = rng.normal(size=(3, 4)).astype(np.float32)
    x[1, 2] = np.nan
    return [Case((x,), {"axes": (a,), "index_dtype": np.dtype("int32")}, derivatives=False) for a in (0, 1)] + [
        Case(
            (rng.integers(0, 3, (6,)).astype(np.int32),),
            {"axes": (0,), "index_dtype": np.dtype("int32")},
            derivatives=False,
        )
    ]


def _arg(name, doc, function, greater, not_less, identity):
    p = Primitive(
        name,
        doc=doc,
        abstract_eval=_arg_shape,
        jvp=ZERO,
        transpose=NOT_LINEAR,
        traits={"reduction", "exact"},
        reference=lambda x, axes, index_dtype: np.asarray(function(x, axes[0])).astype(index_dtype),
        lower=_arg_lowering(greater, not_less, identity),
        samples=Samples(cases=_arg_cases),
    )
    p.batch = batch_reduction(p.bind)
    return p


argmax_p = _arg(
    "argmax",
    "The first place of the largest element along an axis; NaN counts as largest.",
    np.argmax,
    "gt",
    "ge",
    lowest,
)
argmin_p = _arg(
    "argmin",
    "The first place of the smallest element along an axis; NaN counts as smallest.",
    np.argmin,
    "lt",
    "le",
    highest,
)


def _positions(p, operand, axis, index_dtype):
    operand = as_array(operand, p.name)
    if not 0 <= axis < operand.ndim:
        raise ValueError(f"Invalid axis {axis} for operand shape {operand.shape}")
    index_dtype = dtypes.check_user_dtype_supported(index_dtype, p.name)
    return p.bind(operand, axes=(operator.index(axis),), index_dtype=index_dtype)


def argmax(operand: Any, axis: int, index_dtype: Any) -> Array:
    """The first place of the largest element along an axis, as `index_dtype`; NaN counts as largest.

    Raises ValueError for an axis that is not there or empty, TypeError for an index_dtype that is not an integer type.
    """
    return _positions(argmax_p, operand, axis, index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any) -> Array:
    """The first place of the smallest element along an axis, as `index_dtype`; NaN counts as smallest. Raises as
    `argmax`.
    """
    return _positions(argmin_p, operand, axis, index_dtype)


# ---------------------------------------------------------------------------------------------------- public functions


def _public(p):
    def function(operand, axes):
        return p.bind(
            operand if hasattr(operand, "aval") else as_array(operand, p.name),
            axes=tuple([operator.index(a) for a in axes]),
        )

    function.__name__ = function.__qualname__ = p.name
    function.__doc__ = p.doc
    function.__module__ = "pullback.lax"
    return function


def reduce_sum(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The sum over axes, in the operand's dtype. Raises ValueError for axes that are not there or given twice."""
    return out_placed(
        "reduce_sum",
        reduce_sum_p.bind(as_array(operand, "reduce_sum"), axes=tuple([operator.index(a) for a in axes])),
        out_sharding,
    )


reduce_prod = _public(reduce_prod_p)
reduce_max = _public(reduce_max_p)
reduce_min = _public(reduce_min_p)
reduce_and = _public(reduce_and_p)
reduce_or = _public(reduce_or_p)
reduce_xor = _public(reduce_xor_p)
