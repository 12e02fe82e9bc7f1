"""scatter: windows of an array combined with updates at places given by an array of indices.

    out[start(g) + o] = combine(out[start(g) + o], updates[g, o])     for each (g, o) in row-major order

The order is fixed, so of several updates of one place by `scatter` the last one stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.core.lowering import Nest
from pullback.lax.elementwise.bits import convert
from pullback.lax.movement.gather import (
    GatherDimensionNumbers,
    GatherScatterMode,
    check_batching,
    gather_p,
    places,
    update_jaxpr_of,
)
from pullback.lax.movement.scatter_sums import emit_shares, shares, wide_dtype
from pullback.lax.records.families import *
from pullback.lax.records.nests import loops
from pullback.util.record import NamedTuple

__all__ = [
    "ScatterDimensionNumbers",
    "scatter_add_p",
    "scatter_max_p",
    "scatter_min_p",
    "scatter_mul_p",
    "scatter_p",
    "scatter_sub_p",
]

Array = Any


class ScatterDimensionNumbers(NamedTuple):
    """Which dimension plays which part in `scatter`.

    update_window_dims: dimensions of the updates that are window dimensions. inserted_window_dims: dimensions of the
    operand that windows lack (size 1). scatter_dims_to_operand_dims: the operand's dimension of each component of a
    start vector. operand_batching_dims, scatter_indices_batching_dims: dimensions walked together.
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


def _window_sizes(shape, updates_shape, n):
    """The window's size along each operand dimension."""
    sizes = iter([updates_shape[d] for d in n.update_window_dims])
    dropped = {*n.inserted_window_dims, *n.operand_batching_dims}
    return tuple([1 if d in dropped else next(sizes) for d in range(len(shape))])


def _scatter_shape(
    operand,
    indices,
    updates,
    *,
    dimension_numbers,
    update_jaxpr=None,
    update_consts=(),
    indices_are_sorted=False,
    unique_indices=False,
    mode=None,
):
    n = dimension_numbers
    check_dtypes("scatter", operand, updates, tip=False)
    if dtypes.kind_of(indices.dtype) not in "iu":
        raise ValueError(f"scatter: argument 'scatter_indices' must be of an integer type, got {indices.dtype}")
    if not indices.shape:
        raise TypeError(
            "scatter: argument 'scatter_indices' must have at least one dimension, which holds the start vectors"
        )
    if indices.shape[-1] != len(n.scatter_dims_to_operand_dims):
        raise TypeError(
            f"scatter: each index, along the last axis of 'scatter_indices', has {indices.shape[-1]} components, but "
            f"scatter_dims_to_operand_dims has {len(n.scatter_dims_to_operand_dims)} axes for them: "
            f"{n.scatter_dims_to_operand_dims}"
        )
    if updates.ndim != len(n.update_window_dims) + indices.ndim - 1:
        raise TypeError(
            f"scatter: argument 'updates' needs {len(n.update_window_dims) + indices.ndim - 1} axes, those of indices "
            f"and of windows, {n.update_window_dims}; it has shape {updates.shape}"
        )
    dropped = {*n.inserted_window_dims, *n.operand_batching_dims}
    if operand.ndim != len(n.update_window_dims) + len(dropped):
        raise TypeError(
            f"scatter: update_window_dims, inserted_window_dims and operand_batching_dims account for "
            f"{len(n.update_window_dims) + len(dropped)} axes, but the operand has {operand.ndim}: {n}"
        )
    for d, dims in (
        (updates.ndim, n.update_window_dims),
        (operand.ndim, n.inserted_window_dims),
        (operand.ndim, n.operand_batching_dims),
    ):
        if list(dims) != sorted(set(dims)) or any(not 0 <= k < d for k in dims):
            raise TypeError(f"scatter: dimension numbers must be sorted, distinct and in range; got {n}")
    if len(set(n.scatter_dims_to_operand_dims)) != len(n.scatter_dims_to_operand_dims) or any(
        not 0 <= d < operand.ndim for d in n.scatter_dims_to_operand_dims
    ):
        raise TypeError(
            f"scatter: scatter_dims_to_operand_dims is {n.scatter_dims_to_operand_dims}; expected axes of the operand, "
            "each at most once"
        )
    check_batching("scatter", operand.shape, indices.shape, n.operand_batching_dims, n.scatter_indices_batching_dims)
    for size, m in zip(operand.shape, _window_sizes(operand.shape, updates.shape, n)):
        if m != 1 and m > size:  # in this order: a symbolic size need not be compared with 1
            raise TypeError(
                f"scatter: argument 'updates' has shape {updates.shape}, with windows larger than the operand, which "
                f"has shape {operand.shape}"
            )
    batch = tuple([m for d, m in enumerate(updates.shape) if d not in n.update_window_dims])
    if batch != indices.shape[:-1]:
        raise TypeError(
            f"scatter: argument 'updates' has windows for {batch} places, but 'scatter_indices' names "
            f"{indices.shape[:-1]} of them"
        )
    return ShapedArray(operand.shape, operand.dtype, operand.weak_type and updates.weak_type)


def _apply_by_rounds(out, index, updates, update_jaxpr):
    """One update per place at a time, in order, by the computation."""
    from pullback.lax.reductions.computations import evaluate_reference

    flat = np.ravel_multi_index(index, out.shape)
    pending = np.arange(flat.size)
    values = out.reshape(-1)
    while pending.size:
        _, first = np.unique(flat[pending], return_index=True)
        now = pending[first]
        (values[flat[now]],) = evaluate_reference(update_jaxpr, values[flat[now]], updates[now])
        pending = np.delete(pending, first)


def _scatter_reference_of(name, ufunc):
    def reference(
        operand,
        indices,
        updates,
        *,
        dimension_numbers,
        update_jaxpr=None,
        mode=None,
        **_others,
    ):
        n = dimension_numbers
        out = np.array(operand)
        if updates.size == 0 or operand.size == 0:
            return out
        if operand.ndim == 0:
            index, values = (), updates.reshape(-1)
        else:
            clip = GatherScatterMode.from_any(mode) is GatherScatterMode.CLIP
            where = places(
                operand.shape,
                indices,
                _window_sizes(operand.shape, updates.shape, n),
                updates.shape,
                n.update_window_dims,
                (*n.inserted_window_dims, *n.operand_batching_dims),
                n.scatter_dims_to_operand_dims,
                n.operand_batching_dims,
                n.scatter_indices_batching_dims,
                clip,
            )
            inside = np.broadcast_to(where.inside, updates.shape).reshape(-1)
            index = tuple([np.broadcast_to(i, updates.shape).reshape(-1)[inside] for i in where.indices])
            values = updates.reshape(-1)[inside]
        if name == "scatter" and update_jaxpr is not None:
            if operand.ndim == 0:
                out = out.reshape(1)
                _apply_by_rounds(out, (np.zeros(values.size, int),), values, update_jaxpr)
                return out.reshape(())
            _apply_by_rounds(out, index, values, update_jaxpr)
        elif ufunc is None:
            if operand.ndim:
                out[index] = values
            else:
                out[...] = values[-1]
        elif operand.ndim == 0:
            for value in values:
                out = np.asarray(ufunc(out, value))
        else:
            wide = wide_dtype(out.dtype, out.size, values.size) if ufunc in (np.add, np.subtract) else out.dtype
            total = out.astype(wide)
            ufunc.at(total, index, values.astype(wide))
            out = total.astype(out.dtype)
        return out

    return reference


def _emit_of(loop_op):
    """Updates in order; the window of one start vector is a parallel loop, as is everything where indices are
    unique. Many updates of few places are collected in shares (`scatter_sums.py`).
    """

    def emit(ctx):
        b, n = ctx.b, ctx.params["dimension_numbers"]
        indices, updates, out = ctx.operand(1), ctx.operand(2), ctx.result(0)
        if updates.size == 0 or out.size == 0:
            return
        clip = GatherScatterMode.from_any(ctx.params.get("mode")) is GatherScatterMode.CLIP
        window = _window_sizes(out.shape, updates.shape, n)
        dropped = {*n.inserted_window_dims, *n.operand_batching_dims}
        batch_dims = [d for d in range(updates.ndim) if d not in n.update_window_dims]
        role = "parallel" if ctx.params.get("unique_indices") else "sequential"
        update_jaxpr = ctx.params.get("update_jaxpr") if loop_op is None else None
        cells = [ctx.temporary(out.dtype, ()) for _ in range(2)] if update_jaxpr is not None else []

        def plainly(place, value):
            if loop_op is not None:
                value = b.op(loop_op, ctx.load(out, place), value)
            ctx.store(out, place, value)

        def group(batch, combine=plainly):
            starts: dict[int, Any] = {}
            inside = None
            for k, d in enumerate(n.scatter_dims_to_operand_dims):
                start = ctx.load(indices, (*batch, b.const("i64", k)))
                start = b.let(start if start.dtype == "i64" else b.convert(start, "i64"))
                if clip:
                    starts[d] = b.let(b.op("min", b.op("max", start, 0), out.shape[d] - window[d]))
                    if not isinstance(out.shape[d] - window[d], int):  # where a symbolic size is 0, nothing fits
                        fits = b.op("ge", out.shape[d] - window[d], 0)
                        inside = fits if inside is None else b.op("and", inside, fits)
                else:
                    starts[d] = start
                    fits = b.op("and", b.op("ge", start, 0), b.op("le", start, out.shape[d] - window[d]))
                    inside = fits if inside is None else b.op("and", inside, fits)
            for d, k in zip(n.operand_batching_dims, n.scatter_indices_batching_dims):
                starts[d] = batch[k]

            def element(offset):
                place, offsets = [], iter(offset)
                for d in range(len(out.shape)):
                    at = starts.get(d)
                    if d not in dropped:
                        o = next(offsets)
                        at = o if at is None else b.op("add", at, o)
                    place.append(b.const("i64", 0) if at is None else at)
                source = [None] * updates.ndim
                for d, i in zip((*batch_dims, *n.update_window_dims), (*batch, *offset)):
                    source[d] = i
                value = ctx.load(updates, tuple(source))
                if update_jaxpr is not None:
                    ctx.store(cells[0], (), ctx.load(out, tuple(place)))
                    ctx.store(cells[1], (), value)
                    ctx.subprogram(update_jaxpr, cells, cells[:1])
                    value = ctx.load(cells[0], ())
                combine(tuple(place), value)

            def windows():
                loops(
                    b,
                    tuple(updates.shape[d] for d in n.update_window_dims),
                    element,
                    "sequential" if cells else "parallel",
                )

            if inside is None:
                windows()
            else:
                with ctx.if_(inside):
                    windows()

        shape = tuple(updates.shape[d] for d in batch_dims)
        parts = shares(out, updates, shape, loop_op) if role == "sequential" else 0
        if parts:
            emit_shares(ctx, out, updates, shape, parts, group, loop_op)
        else:
            loops(b, shape, group, "sequential" if cells else role)

    return emit


# ---------------------------------------------------------------------------------------------- helpers of derivatives


def _gather_of(x, indices, shape, updates_shape, n, mode, fill=0):
    """The values of x at the places of the updates; `fill` where there is no place."""
    numbers = GatherDimensionNumbers(
        tuple(n.update_window_dims),
        tuple(n.inserted_window_dims),
        tuple(n.scatter_dims_to_operand_dims),
        tuple(n.operand_batching_dims),
        tuple(n.scatter_indices_batching_dims),
    )
    mode = (
        GatherScatterMode.CLIP
        if GatherScatterMode.from_any(mode) is GatherScatterMode.CLIP
        else GatherScatterMode.FILL_OR_DROP
    )
    return gather_p.bind(
        x,
        indices,
        dimension_numbers=numbers,
        slice_sizes=_window_sizes(shape, updates_shape, n),
        unique_indices=False,
        indices_are_sorted=False,
        mode=mode,
        fill_value=fill,
    )


def _zeros(shape, like):
    return lax.full(shape, constant(like, 0))


def _linear_jvp(primitive):
    """For what is linear in operand and updates together."""

    def jvp(primals, tangents, **params):
        operand, indices, updates = primals
        p = primitive()
        out = p.bind(operand, indices, updates, **params)
        operand_dot, _, updates_dot = tangents
        if is_zero(operand_dot) and is_zero(updates_dot):
            return out, tangent_zero(out)
        if params.get("update_jaxpr") is not None and p.name == "scatter":
            raise NotImplementedError(
                "Differentiation rule of scatter_apply is not there: the function may not be linear; use gather, "
                "the function and scatter instead"
            )
        return out, p.bind(
            _zeros(operand.shape, out) if is_zero(operand_dot) else operand_dot,
            indices,
            _zeros(updates.shape, out) if is_zero(updates_dot) else updates_dot,
            **params,
        )

    return jvp


def _sum_transpose(negate):
    def transpose(out_bar, operand, indices, updates, *, dimension_numbers, mode=None, **params):
        if is_zero(out_bar):
            return [tangent_zero(a) if is_linear(a) else None for a in (operand, indices, updates)]
        updates_bar = None
        if is_linear(updates):
            updates_bar = _gather_of(out_bar, indices, out_bar.shape, updates.aval.shape, dimension_numbers, mode)
            updates_bar = lax.neg_p.bind(updates_bar) if negate else updates_bar
        return [out_bar if is_linear(operand) else None, None, updates_bar]

    return transpose


def _last_writers(shape, indices, updates_shape, params):
    """Whether each update is the one that stays at its place: numbers are scattered the same way, and read back."""
    count = int(np.prod(updates_shape, dtype=int))
    numbers = lax.reshape(lax.iota(np.int32, count), updates_shape)
    written = scatter_p.bind(lax.full(shape, np.int32(-1)), indices, numbers, **params)
    read = _gather_of(written, indices, shape, updates_shape, params["dimension_numbers"], params.get("mode"), -1)
    return lax.eq_p.bind(read, numbers)


def _set_transpose(out_bar, operand, indices, updates, **params):
    if is_zero(out_bar):
        return [tangent_zero(a) if is_linear(a) else None for a in (operand, indices, updates)]
    shape, updates_shape = out_bar.shape, aval_of(updates).shape
    operand_bar = updates_bar = None
    if is_linear(operand):
        operand_bar = scatter_p.bind(out_bar, indices, _zeros(updates_shape, out_bar), **params)
    if is_linear(updates):
        updates_bar = _gather_of(
            out_bar, indices, shape, updates_shape, params["dimension_numbers"], params.get("mode")
        )
        if not params.get("unique_indices"):
            stays = _last_writers(shape, indices, updates_shape, params)
            updates_bar = lax.select_n_p.bind(stays, constant(out_bar, 0), updates_bar)
    return [operand_bar, None, updates_bar]


def _mul_jvp(primals, tangents, **params):
    (operand, indices, updates), (operand_dot, _, updates_dot) = primals, tangents
    out, out_dot = scatter_mul_p.bind(operand, indices, updates, **params), None
    if not is_zero(operand_dot):
        out_dot = scatter_mul_p.bind(operand_dot, indices, updates, **params)
    if not is_zero(updates_dot):
        if not params.get("unique_indices"):
            raise NotImplementedError(
                "scatter_mul gradients with respect to the updates are only implemented if `unique_indices=True`"
            )
        at_places = _gather_of(
            operand, indices, operand.shape, updates.shape, params["dimension_numbers"], params.get("mode")
        )
        params = params | {"update_jaxpr": update_jaxpr_of("scatter-add", out.dtype)}
        sums = scatter_add_p.bind(_zeros(operand.shape, out), indices, lax.mul_p.bind(updates_dot, at_places), **params)
        out_dot = add_tangents(out_dot, sums)
    return out, tangent_zero(out) if out_dot is None else out_dot


def _mul_transpose(out_bar, operand, indices, updates, **params):
    if is_linear(updates):
        raise NotImplementedError(
            "Transpose (reverse-mode) rule of primitive 'scatter-mul' is not there for its updates"
        )
    return [
        tangent_zero(operand) if is_zero(out_bar) else scatter_mul_p.bind(out_bar, indices, updates, **params),
        None,
        None,
    ]


def _extremum_jvp_of(primitive):
    """The mean of the tangents of all that reach the extremum at a place."""

    def jvp(primals, tangents, **params):
        (operand, indices, updates), (operand_dot, _, updates_dot) = primals, tangents
        out = primitive().bind(operand, indices, updates, **params)
        if is_zero(operand_dot) and is_zero(updates_dot):
            return out, tangent_zero(out)
        here = _gather_of(out, indices, operand.shape, updates.shape, params["dimension_numbers"], params.get("mode"))
        operand_wins = convert(lax.eq_p.bind(operand, out), out.dtype)
        update_wins = convert(lax.eq_p.bind(updates, here), out.dtype)
        zeros = _zeros(operand.shape, out)
        params = params | {"update_jaxpr": update_jaxpr_of("scatter-add", out.dtype)}
        winners = scatter_add_p.bind(operand_wins, indices, update_wins, **params)
        total = zeros if is_zero(operand_dot) else lax.mul_p.bind(operand_dot, operand_wins)
        if not is_zero(updates_dot):
            total = scatter_add_p.bind(total, indices, lax.mul_p.bind(updates_dot, update_wins), **params)
        # Nothing wins where there is NaN: no tangent, not 0 / 0.
        return out, lax.div_p.bind(total, lax.max_p.bind(winners, lax.full_like(winners, 1)))

    return jvp


def _batch_of(primitive):
    def batch(args, dims, *, dimension_numbers, **params):
        (operand, indices, updates), (d, indices_d, updates_d) = args, dims
        n, size = dimension_numbers, batch_size(args, dims)

        def up(values):
            return tuple([v + 1 for v in values])

        operand, updates = batch_front(operand, d, size), batch_front(updates, updates_d, size)
        if indices_d is None:  # the batch axis is one more window dimension
            numbers = ScatterDimensionNumbers(
                (0, *up(n.update_window_dims)),
                up(n.inserted_window_dims),
                up(n.scatter_dims_to_operand_dims),
                up(n.operand_batching_dims),
                tuple(n.scatter_indices_batching_dims),
            )
        else:
            indices = move_batch_axis(indices, indices_d, 0)
            numbers = ScatterDimensionNumbers(
                up(n.update_window_dims),
                up(n.inserted_window_dims),
                up(n.scatter_dims_to_operand_dims),
                (0, *up(n.operand_batching_dims)),
                (0, *up(n.scatter_indices_batching_dims)),
            )
        return primitive().bind(operand, indices, updates, dimension_numbers=numbers, **params), 0

    return batch


def _scatter_cases(rng, derivatives=True):
    found = []
    for shape, numbers, indices, updates in [
        ((5, 3), ScatterDimensionNumbers((1,), (0,), (0,)), rng.integers(-1, 6, (4, 1)), (4, 3)),
        ((5, 3), ScatterDimensionNumbers((), (0, 1), (1, 0)), rng.integers(0, 3, (6, 2)), (6,)),
        ((5, 6), ScatterDimensionNumbers((0, 1), (), (0, 1)), rng.integers(-1, 6, (3, 2)), (2, 3, 3)),
        ((4, 5), ScatterDimensionNumbers((), (1,), (1,), (0,), (0,)), rng.integers(0, 5, (4, 2, 1)), (4, 2)),
    ]:
        for mode in (GatherScatterMode.CLIP, GatherScatterMode.FILL_OR_DROP):
            found.append(
                Case(
                    (
                        rng.normal(size=shape).astype(np.float32),
                        indices.astype(np.int32),
                        rng.normal(size=updates).astype(np.float32),
                    ),
                    {
                        "dimension_numbers": numbers,
                        "update_jaxpr": None,
                        "update_consts": (),
                        "indices_are_sorted": False,
                        "unique_indices": False,
                        "mode": mode,
                    },
                    derivatives=derivatives,
                )
            )
    return found


def _scatter(name, doc, ufunc, loop_op):
    p = Primitive(
        name,
        doc=doc,
        abstract_eval=_scatter_shape,
        reference=_scatter_reference_of(name, ufunc),
        transpose=NOT_LINEAR,
        lower=Nest(_emit_of(loop_op), in_place=0),
        traits={"scatter", "exact"} if loop_op in (None, "min", "max") else {"scatter"},
        samples=Samples(cases=lambda rng: _scatter_cases(rng, name != "scatter-mul")),
    )
    p.batch = _batch_of(lambda: p)
    return p


scatter_p = _scatter("scatter", "Windows overwritten by updates.", None, None)
scatter_add_p = _scatter("scatter-add", "Updates added to windows.", np.add, "add")
scatter_sub_p = _scatter("scatter-sub", "Updates subtracted from windows.", np.subtract, "sub")
scatter_mul_p = _scatter("scatter-mul", "Windows multiplied by updates.", np.multiply, "mul")
scatter_min_p = _scatter("scatter-min", "Smaller ones of windows and updates.", np.minimum, "min")
scatter_max_p = _scatter("scatter-max", "Larger ones of windows and updates.", np.maximum, "max")
scatter_p.jvp, scatter_p.transpose = _linear_jvp(lambda: scatter_p), _set_transpose
scatter_add_p.jvp, scatter_add_p.transpose = _linear_jvp(lambda: scatter_add_p), _sum_transpose(False)
scatter_sub_p.jvp, scatter_sub_p.transpose = _linear_jvp(lambda: scatter_sub_p), _sum_transpose(True)
scatter_mul_p.jvp, scatter_mul_p.transpose = _mul_jvp, _mul_transpose
scatter_min_p.jvp = _extremum_jvp_of(lambda: scatter_min_p)
scatter_max_p.jvp = _extremum_jvp_of(lambda: scatter_max_p)
_BY_NAME = {p.name: p for p in (scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p)}


def bind_scatter(
    name: str,
    operand: Any,
    indices: Any,
    updates: Any,
    numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
    update_jaxpr: Any = None,
) -> Any:
    """A scatter by the name of its primitive."""
    return _BY_NAME[name].bind(
        operand,
        indices,
        updates,
        update_jaxpr=update_jaxpr or update_jaxpr_of(name, operand.dtype),
        update_consts=(),
        dimension_numbers=numbers,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
        mode=mode,
    )
