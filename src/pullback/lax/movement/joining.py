"""Putting arrays together and taking them apart: pad, concatenate, stack, split, unstack; barriers."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

from pullback.core import trace
from pullback.core.dimensions import index as size_of
from pullback.core.lowering import InlineFunction, Nest, Pointwise
from pullback.core.types import cut_as, type_on_mesh
from pullback.lax.records.families import *
from pullback.lax.records.nests import copy_into

__all__ = [
    "concatenate",
    "concatenate_p",
    "optimization_barrier",
    "optimization_barrier_p",
    "pad",
    "pad_p",
    "split",
    "split_p",
    "stack",
    "stack_p",
    "unstack",
    "unstack_p",
]

Array = Any


# ----------------------------------------------------------------------------------------------------------------- pad


def _pad_shape(aval, padding, *, padding_config):
    if aval.dtype != padding.dtype:
        raise TypeError(
            f"pad: argument 'padding_value' is of {padding.dtype}, the operand of {aval.dtype}; convert one"
        )
    if padding.ndim:
        raise TypeError(f"pad: argument 'padding_value' must be a scalar, got an array of shape {padding.shape}")
    if len(padding_config) != aval.ndim:
        raise ValueError(
            f"pad: argument 'padding_config' is {tuple(padding_config)}; expected (low, high, interior) for each axis "
            f"of the operand, which has shape {aval.shape}"
        )
    if any(interior < 0 for _, _, interior in padding_config):
        raise ValueError(
            f"pad: argument 'padding_config' is {tuple(padding_config)}; its third numbers, of what is put "
            "between elements, must not be negative"
        )
    shape = tuple(
        [lo + hi + (n + (n - 1) * interior if n else 0) for n, (lo, hi, interior) in zip(aval.shape, padding_config)]
    )
    if any(n < 0 for n in shape):
        raise ValueError(
            f"pad: argument 'padding_config' is {tuple(padding_config)}, which takes away more than there is: shape "
            f"{aval.shape} would become {shape}"
        )
    return ShapedArray(shape, aval.dtype, aval.weak_type and padding.weak_type)


def _pad_reference(x, padding, padding_config):
    wide = [n + (n - 1) * i if n else 0 for n, (_, _, i) in zip(np.shape(x), padding_config)]
    out = np.full([n + max(lo, 0) + max(hi, 0) for n, (lo, hi, _) in zip(wide, padding_config)], padding, x.dtype)
    out[tuple([slice(max(lo, 0), max(lo, 0) + n, i + 1) for n, (lo, _, i) in zip(wide, padding_config)])] = x
    return out[tuple([slice(max(-lo, 0), n - max(-hi, 0)) for n, (lo, hi, _) in zip(out.shape, padding_config)])]


def _pad_jvp(primals, tangents, padding_config):
    x, padding = primals
    out = pad_p.bind(x, padding, padding_config=padding_config)
    x_dot, padding_dot = tangents
    if is_zero(x_dot) and is_zero(padding_dot):
        return out, tangent_zero(out)
    padding_dot = constant(out, 0) if is_zero(padding_dot) else padding_dot
    return out, pad_p.bind(
        instantiate(x_dot) if not is_zero(x_dot) else lax.full(x.shape, constant(x, 0)),
        padding_dot,
        padding_config=padding_config,
    )


def _pad_transpose(y_bar, x, padding, padding_config):
    if is_zero(y_bar):
        return [tangent_zero(a) if is_linear(a) else None for a in (x, padding)]
    x_bar = _unpad(y_bar, padding_config)
    if not is_linear(padding):
        return [x_bar, None]
    everything = tuple(range(y_bar.ndim))
    total = lax.reduce_sum_p.bind(y_bar, axes=everything)
    padding_bar = lax.sub(total, lax.reduce_sum_p.bind(x_bar, axes=everything))
    return [x_bar if is_linear(x) else None, padding_bar]


def _unpad(y, padding_config):
    y = pad_p.bind(y, constant(y, 0), padding_config=tuple([(-lo, -hi, 0) for lo, hi, _ in padding_config]))
    if any(interior for _, _, interior in padding_config):
        y = lax.slice_p.bind(
            y,
            start_indices=(0,) * y.ndim,
            limit_indices=y.shape,
            strides=tuple([interior + 1 for _, _, interior in padding_config]),
        )
    return y


def _pad_batch(args, dims, padding_config):
    (x, padding), (d, padding_d) = args, dims
    if padding_d is None:
        return pad_p.bind(x, padding, padding_config=(*padding_config[:d], (0, 0, 0), *padding_config[d:])), d
    size = batch_size(args, dims)
    x = batch_front(x, d, size)
    config = ((0, 0, 0), *padding_config)
    inside = pad_p.bind(lax.full(x.shape, np.True_), np.False_, padding_config=config)
    x = pad_p.bind(x, constant(x, 0), padding_config=config)
    padding = lax.broadcast_in_dim_p.bind(padding, shape=x.shape, broadcast_dimensions=(0,))
    return lax.select_n_p.bind(inside, padding, x), 0


def _pad_at(ctx, index):
    b, shape = ctx.b, ctx.in_avals[0].shape
    place, inside = [], None
    for i, n, m, (lo, _, interior) in zip(index, shape, ctx.out_aval.shape, ctx.params["padding_config"]):
        source = b.op("sub", i, lo) if lo else i
        tests = [b.op("ge", source, 0)] if lo > 0 else []
        wide = n + (n - 1) * interior if n else 0
        if m - lo > wide:
            tests.append(b.op("lt", source, wide))
        if interior:
            tests.append(b.op("eq", b.op("floormod", source, interior + 1), 0))
            source = b.op("floordiv", source, interior + 1)
        place.append(source)
        for test in tests:
            inside = test if inside is None else b.op("and", inside, test)
    x = ctx.operand(0, tuple(place))
    return x if inside is None else b.select(inside, x, ctx.operand(1, ()))


pad_p = Primitive(
    "pad",
    doc="Padding before, after and between the elements of each dimension; negative amounts crop.",
    abstract_eval=_pad_shape,
    reference=_pad_reference,
    jvp=_pad_jvp,
    transpose=_pad_transpose,
    batch=_pad_batch,
    lower=Pointwise(_pad_at, moves=True, cost=2),
    traits={"movement"},
    samples=Samples(
        cases=lambda rng: [
            Case((rng.normal(size=(3, 4)).astype(np.float32), np.float32(1.5)), {"padding_config": c})
            for c in [
                ((1, 2, 0), (0, 0, 0)),
                ((0, 1, 1), (2, 0, 2)),
                ((-1, 1, 0), (1, -2, 1)),
                ((0, 0, 0), (-1, -1, 0)),
            ]
        ]
    ),
)


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """The operand with padding_value around it: per dimension (before, after, between elements); negative amounts crop.

    Raises TypeError for differing dtypes, ValueError for negative sizes of the result.
    """
    operand, padding_value = as_arrays("pad", operand, padding_value)
    return pad_p.bind(
        operand, padding_value, padding_config=tuple([tuple([size_of(n) for n in c]) for c in padding_config])
    )


# --------------------------------------------------------------------------------------------------------- concatenate


def _concatenate_shape(*avals, dimension):
    if not avals:
        raise ValueError("concatenate: argument 'operands' is empty; expected at least one array")
    first = avals[0]
    if any(a.ndim != first.ndim for a in avals):
        raise TypeError(
            "concatenate: Cannot concatenate different numbers of dimensions; the shapes are "
            f"{', '.join(str(a.shape) for a in avals)}"
        )
    if not 0 <= dimension < first.ndim:
        raise TypeError(
            f"concatenate: argument 'dimension' is {dimension}, which is no axis of shapes "
            f"{', '.join(str(a.shape) for a in avals)}"
        )
    rest = first.shape[:dimension] + first.shape[dimension + 1 :]
    if any(a.shape[:dimension] + a.shape[dimension + 1 :] != rest for a in avals):
        raise TypeError(
            f"concatenate: Cannot concatenate along axis {dimension}, as sizes of other axes differ: the shapes are "
            f"{', '.join(str(a.shape) for a in avals)}"
        )
    check_dtypes("concatenate", *avals)
    return ShapedArray(
        (*first.shape[:dimension], sum(a.shape[dimension] for a in avals), *first.shape[dimension + 1 :]),
        first.dtype,
        all(a.weak_type for a in avals),
    )


def _concatenate_reference(*operands, dimension):
    return np.concatenate(operands, dimension)


def _zeros_for(t, x):
    return lax.full(x.shape, constant(x, 0)) if is_zero(t) else t


def _concatenate_jvp(primals, tangents, dimension):
    out = concatenate_p.bind(*primals, dimension=dimension)
    if all(map(is_zero, tangents)):
        return out, tangent_zero(out)
    return out, concatenate_p.bind(*[_zeros_for(t, x) for t, x in zip(tangents, primals)], dimension=dimension)


def _concatenate_transpose(y_bar, *operands, dimension):
    if is_zero(y_bar):
        return [tangent_zero(x) if is_linear(x) else None for x in operands]
    bars, start = [], [0] * y_bar.ndim
    for x in operands:
        limit = list(y_bar.shape)
        limit[dimension] = start[dimension] + aval_of(x).shape[dimension]
        bars.append(
            lax.slice_p.bind(y_bar, start_indices=tuple(start), limit_indices=tuple(limit), strides=None)
            if is_linear(x)
            else None
        )
        start[dimension] = limit[dimension]
    return bars


def _concatenate_batch(args, dims, dimension):
    size = batch_size(args, dims)
    return concatenate_p.bind(*[batch_front(x, d, size) for x, d in zip(args, dims)], dimension=dimension + 1), 0


def _concatenate_at(ctx, index):
    b, dimension = ctx.b, ctx.params["dimension"]
    sizes = [a.shape[dimension] for a in ctx.in_avals]
    start = sum(sizes)
    out = None
    for k in reversed(range(len(sizes))):
        start -= sizes[k]
        if not sizes[k] and not (out is None and k == 0):
            continue
        i = b.op("sub", index[dimension], start) if start else index[dimension]
        x = ctx.operand(k, (*index[:dimension], i, *index[dimension + 1 :]))
        out = x if out is None else b.select(b.op("lt", index[dimension], start + sizes[k]), x, out)
    return out


_CONCATENATED: list[Any] = [([(2, 3), (1, 3)], 0), ([(2, 3), (2, 0), (2, 2)], 1), ([(3,)], 0)]

concatenate_p = Primitive(
    "concatenate",
    doc="Arrays one after the other along a dimension.",
    abstract_eval=_concatenate_shape,
    reference=_concatenate_reference,
    jvp=_concatenate_jvp,
    transpose=_concatenate_transpose,
    batch=_concatenate_batch,
    lower=Pointwise(_concatenate_at, moves=True, cost=2),
    traits={"movement", "linear"},
    samples=Samples(
        cases=lambda rng: [
            Case(tuple(rng.normal(size=s).astype(np.float32) for s in shapes), {"dimension": d})
            for shapes, d in _CONCATENATED
        ]
    ),
)


def concatenate(operands: Sequence[Any], dimension: int) -> Array:
    """Arrays of one dtype one after the other along `dimension`, whose other dimensions agree (TypeError).

    Raises ValueError without operands.
    """
    if not len(operands):
        raise ValueError("concatenate: argument 'operands' is empty; expected at least one array")
    operands = as_arrays("concatenate", *operands)
    if len(operands) == 1 and -1 < dimension < operands[0].ndim:
        return operands[0]
    return concatenate_p.bind(*operands, dimension=operator.index(dimension))


# ------------------------------------------------------------------------------------------------------ stack, unstack


def _stack_shape(*avals, axis):
    if not avals:
        raise ValueError("stack: argument 'operands' is empty; expected at least one array")
    first = avals[0]
    if any(a.shape != first.shape for a in avals):
        raise ValueError(f"stack: arrays of one shape are expected, got {', '.join(str(a.shape) for a in avals)}")
    check_dtypes("stack", *avals)
    if not 0 <= axis <= first.ndim:
        raise ValueError(f"stack: axis {axis} is out of bounds; the result has axes 0 to {first.ndim}")
    return ShapedArray(
        (*first.shape[:axis], len(avals), *first.shape[axis:]), first.dtype, all(a.weak_type for a in avals)
    )


def _stack_jvp(primals, tangents, axis):
    out = stack_p.bind(*primals, axis=axis)
    if all(map(is_zero, tangents)):
        return out, tangent_zero(out)
    return out, stack_p.bind(*[_zeros_for(t, x) for t, x in zip(tangents, primals)], axis=axis)


def _stack_transpose(y_bar, *operands, axis):
    if is_zero(y_bar):
        return [tangent_zero(x) if is_linear(x) else None for x in operands]
    return [bar if is_linear(x) else None for bar, x in zip(unstack_p.bind(y_bar, axis=axis), operands)]


def _stack_batch(args, dims, axis):
    size = batch_size(args, dims)
    return stack_p.bind(*[batch_front(x, d, size) for x, d in zip(args, dims)], axis=axis + 1), 0


def _stack_written_out(avals, params):
    def concatenated(*operands):
        return [lax.concatenate([lax.expand_dims(x, (params["axis"],)) for x in operands], params["axis"])]

    return trace(concatenated, avals)


stack_p = Primitive(
    "stack",
    doc="Arrays along a new axis.",
    abstract_eval=_stack_shape,
    reference=lambda *operands, axis: np.stack(operands, axis),
    jvp=_stack_jvp,
    transpose=_stack_transpose,
    batch=_stack_batch,
    lower=InlineFunction(trace=_stack_written_out),
    traits={"movement", "linear"},
    samples=Samples(
        cases=lambda rng: [
            Case(tuple(rng.normal(size=(n, 2, 3)).astype(np.float32)), {"axis": axis})
            for n, axis in [(1, 0), (3, 1), (2, 2)]
        ]
    ),
)


def stack(operands: Sequence[Any], axis: int = 0) -> Array:
    """Arrays of one shape and dtype along a new axis. Raises ValueError for differing shapes or without operands."""
    if not len(operands):
        raise ValueError("stack: argument 'operands' is empty; expected at least one array")
    operands = as_arrays("stack", *operands)
    return stack_p.bind(*operands, axis=canonical_axis(axis, operands[0].ndim + 1, "stack"))


def _unstack_shape(aval, *, axis):
    if not 0 <= axis < aval.ndim:
        raise ValueError(f"unstack: axis {axis} is out of bounds; the operand has shape {aval.shape}")
    out = ShapedArray((*aval.shape[:axis], *aval.shape[axis + 1 :]), aval.dtype, aval.weak_type)
    return [out] * aval.shape[axis]


def _parts_jvp(p):
    def jvp(primals, tangents, **params):
        outs = p.bind(*primals, **params)
        if is_zero(tangents[0]):
            return outs, [tangent_zero(out) for out in outs]
        return outs, p.bind(*tangents, **params)

    return jvp


def _zero_parts(bars, avals):
    like = type_on_mesh(
        next(bar for bar in bars if not is_zero(bar))
    )  # zeros are cut along explicit axes as the others
    return [
        cut_as(lax.full(aval.shape, np.zeros((), aval.dtype)[()]), like) if is_zero(bar) else bar
        for bar, aval in zip(bars, avals)
    ]


def _unstack_transpose(bars, x, axis):
    if all(map(is_zero, bars)):
        return [tangent_zero(x)]
    return [stack_p.bind(*_zero_parts(bars, _unstack_shape(x.aval, axis=axis)), axis=axis)]


def _unstack_batch(args, dims, axis):
    (x,), (d,) = args, dims
    outs = unstack_p.bind(x, axis=axis + (axis >= d))
    return outs, [d - (axis < d)] * len(outs)


def _unstack_written_out(avals, params):
    def slices(x):
        return [lax.index_in_dim(x, k, params["axis"], keepdims=False) for k in range(x.shape[params["axis"]])]

    return trace(slices, avals)


unstack_p = Primitive(
    "unstack",
    doc="The slices along an axis, without it.",
    abstract_eval=_unstack_shape,
    multiple_results=True,
    reference=lambda x, axis: [np.take(x, k, axis) for k in range(x.shape[axis])],
    transpose=_unstack_transpose,
    batch=_unstack_batch,
    lower=InlineFunction(trace=_unstack_written_out),
    traits={"movement", "linear", "stacked"},
    samples=Samples(
        cases=lambda rng: [Case((rng.normal(size=(2, 3)).astype(np.float32),), {"axis": a}) for a in (0, 1)]
    ),
)
unstack_p.jvp = _parts_jvp(unstack_p)


def unstack(x: Any, axis: int = 0) -> tuple[Array, ...]:
    """The slices of x along an axis, without it, as a tuple."""
    x = as_array(x, "unstack")
    return tuple(unstack_p.bind(x, axis=canonical_axis(axis, x.ndim, "unstack")))


# --------------------------------------------------------------------------------------------------------------- split


def _split_shape(aval, *, sizes, axis):
    if not 0 <= axis < aval.ndim:
        raise ValueError(f"split: axis {axis} is out of bounds; the operand has shape {aval.shape}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"split: argument 'sizes' must not be negative, got {list(sizes)}")
    if sum(sizes) != aval.shape[axis]:
        raise ValueError(
            f"split: argument 'sizes' adds up to {sum(sizes)}, but axis {axis} of the operand has size "
            f"{aval.shape[axis]}, in shape {list(aval.shape)}"
        )
    return [ShapedArray((*aval.shape[:axis], n, *aval.shape[axis + 1 :]), aval.dtype, aval.weak_type) for n in sizes]


def _split_transpose(bars, x, sizes, axis):
    if all(map(is_zero, bars)):
        return [tangent_zero(x)]
    return [concatenate_p.bind(*_zero_parts(bars, _split_shape(x.aval, sizes=sizes, axis=axis)), dimension=axis)]


def _split_batch(args, dims, sizes, axis):
    (x,), (d,) = args, dims
    return split_p.bind(x, sizes=sizes, axis=axis + (axis >= d)), [d] * len(sizes)


def _split_written_out(avals, params):
    stops = list(itertools.accumulate(params["sizes"]))

    def slices(x):
        return [lax.slice_in_dim(x, a, b, axis=params["axis"]) for a, b in itertools.pairwise([0, *stops])]

    return trace(slices, avals)


split_p = Primitive(
    "split",
    doc="Consecutive parts along an axis.",
    abstract_eval=_split_shape,
    multiple_results=True,
    reference=lambda x, sizes, axis: np.split(x, np.cumsum(sizes)[:-1], axis),
    transpose=_split_transpose,
    batch=_split_batch,
    lower=InlineFunction(trace=_split_written_out),
    traits={"movement", "linear", "stacked"},
    samples=Samples(
        cases=lambda rng: [
            Case((rng.normal(size=(3, 5)).astype(np.float32),), {"sizes": s, "axis": a})
            for s, a in [((2, 3), 1), ((1, 0, 2), 0)]
        ]
    ),
)
split_p.jvp = _parts_jvp(split_p)


def split(operand: Any, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Consecutive parts of the given sizes along an axis; ValueError unless they add up."""
    operand = as_array(operand, "split")
    return split_p.bind(
        operand, sizes=tuple([size_of(n) for n in sizes]), axis=canonical_axis(axis, operand.ndim, "split")
    )


# ------------------------------------------------------------------------------------------------ optimization_barrier


def _barrier_jvp(primals, tangents):
    outs = optimization_barrier_p.bind(*primals)
    live = [i for i, t in enumerate(tangents) if not is_zero(t)]
    dots = [tangent_zero(x) for x in primals]
    if live:
        for i, dot in zip(live, optimization_barrier_p.bind(*[tangents[i] for i in live])):
            dots[i] = dot
    return outs, dots


def _barrier_transpose(bars, *operands):
    live = [i for i, bar in enumerate(bars) if not is_zero(bar)]
    outs = [tangent_zero(x) if is_linear(x) else None for x in operands]
    if live:
        for i, bar in zip(live, optimization_barrier_p.bind(*[bars[i] for i in live])):
            outs[i] = bar
    return outs


def _barrier_emit(ctx):
    for k in range(len(ctx.in_avals)):
        copy_into(ctx, ctx.operand(k), ctx.result(k))


optimization_barrier_p = Primitive(
    "optimization_barrier",
    doc="The operands; nothing is moved across.",
    abstract_eval=lambda *avals: list(avals),
    multiple_results=True,
    reference=lambda *operands: list(operands),
    jvp=_barrier_jvp,
    transpose=_barrier_transpose,
    traits={"linear", "barrier", "exact"},
    batch=lambda args, dims: (optimization_barrier_p.bind(*args), list(dims)),
    lower=Nest(_barrier_emit, strided=True),
    samples=Samples(cases=lambda rng: [Case((rng.normal(size=3).astype(np.float32), np.int32(3)), {})]),
)


def optimization_barrier(operand: Any, /) -> Any:
    """The pytree `operand`, computed as a whole before anything that uses the result: no operation moves across."""
    from pullback.util import pytree

    leaves, treedef = pytree.tree_flatten(operand)
    outs = optimization_barrier_p.bind(*as_arrays("optimization_barrier", *leaves)) if leaves else []
    return pytree.tree_unflatten(treedef, outs)
