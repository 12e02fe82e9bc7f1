"""Folds over sliding windows (pooling): sums, extrema, any computation.

    out[o] = fold over k of x'[o * stride + k * window_dilation - low]

`x'` is the operand with base_dilation - 1 gaps between its elements; gaps and padding hold the neutral element. Sums
and extrema over large windows are those of each dimension, one after the other (`one_by_one`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.dimensions import index as size_of
from pullback.core.explain import check
from pullback.core.kinds import SEQUENCE, optional
from pullback.core.lowering import Nest
from pullback.lax.movement.window_slices import stacked_windows
from pullback.lax.products.conv_shapes import dilated, padtype_to_pads
from pullback.lax.records.families import *
from pullback.lax.records.nests import fold, loops
from pullback.lax.reductions.computations import (
    evaluate_reference,
    halved,
    is_elementwise,
    monoid_of,
    of_operands_types,
    scalar_values,
    trace_computation,
)
from pullback.lax.reductions.reductions import highest, lowest, zero
from pullback.lax.reductions.window_places import (
    batched_params,
    place_of,
    view,
    window_cases,
    window_shape,
    without_edges,
)
from pullback.lax.reductions.window_routing import select_and_gather_add_p

__all__ = [
    "reduce_window",
    "reduce_window_max_p",
    "reduce_window_min_p",
    "reduce_window_p",
    "reduce_window_shape_tuple",
    "reduce_window_sum_p",
]

Array = Any


def _window_primitive(name, doc, accepts, ufunc, loop_op, identity):
    def abstract_eval(aval, **params):
        if dtypes.kind_of(aval.dtype) not in accepts:
            raise TypeError(f"{name} does not accept dtype {aval.dtype}.")
        return ShapedArray(window_shape(name, aval.shape, **params), aval.dtype, aval.weak_type)

    def reference(x, **params):
        wide = x.astype(np.float32) if dtypes.kind_of(x.dtype) == "f" and x.dtype.itemsize < 4 else x
        windows = view(wide, identity(wide.dtype), **params)
        return ufunc.reduce(
            windows, axis=-1, dtype=wide.dtype if ufunc is np.add else None, initial=identity(wide.dtype)
        ).astype(x.dtype, copy=False)

    def emit(ctx):
        b, source = ctx.b, ctx.operand(0)
        neutral = b.const(source.dtype, np.asarray(identity(ctx.in_avals[0].dtype)).item())
        if 0 in (source.size, ctx.out_aval.size):
            ctx.fill(ctx.result(0), neutral)
            return
        source, params = without_edges(ctx, ctx.params, source, neutral)

        def element(index):
            def step(values, offset):
                place, inside = place_of(ctx, params, index, offset, source.shape)
                x = ctx.load(source, place)
                return (b.op(loop_op, values[0], x if inside is None else b.select(inside, x, neutral)),)

            ctx.store(ctx.result(0), index, fold(b, params["window_dimensions"], step, (neutral,))[0])

        loops(b, ctx.out_aval.shape, element)

    p = Primitive(
        name,
        doc=doc,
        abstract_eval=abstract_eval,
        reference=reference,
        transpose=NOT_LINEAR,
        lower=Nest(emit, strided=True),
        traits={"exact"} if loop_op in ("min", "max") else set(),
        samples=Samples(ulp=16, cases=window_cases),
    )
    p.batch = lambda args, dims, **params: (p.bind(args[0], **batched_params(params, dims[0])), dims[0])
    return p


reduce_window_sum_p = _window_primitive("reduce_window_sum", "Sums over sliding windows.", NUMERIC, np.add, "add", zero)
reduce_window_max_p = _window_primitive(
    "reduce_window_max", "Maxima over sliding windows.", REAL + BOOL, np.maximum, "max", lowest
)
reduce_window_min_p = _window_primitive(
    "reduce_window_min", "Minima over sliding windows.", REAL + BOOL, np.minimum, "min", highest
)


def _sum_jvp(primals, tangents, **params):
    out = reduce_window_sum_p.bind(*primals, **params)
    return out, tangent_zero(out) if is_zero(tangents[0]) else reduce_window_sum_p.bind(*tangents, **params)


def lie_side_by_side(window_dimensions, window_strides, base_dilation, window_dilation, **_):
    """Whether the windows lie side by side without holes, so that each element is in one at most."""
    sizes = zip(window_dimensions, window_strides, base_dilation, window_dilation)
    return all(k == s and bd == 1 and (wd == 1 or k == 1) for k, s, bd, wd in sizes)


def _repeated(x, shape, times, starts):
    """Each element so many times along each axis, from `starts` on for the lengths of `shape`; zeros behind the end."""
    wide = [size for n, k in zip(x.shape, times) for size in (n, k)]
    x = lax.broadcast_in_dim(x, wide, range(0, 2 * x.ndim, 2))
    x = lax.reshape(x, [n * k for n, k in zip(wide[::2], wide[1::2])])
    edges = [(-start, start + n - size, 0) for start, n, size in zip(starts, shape, x.shape)]
    return lax.pad(x, constant(x, 0), edges) if any(low or high for low, high, _ in edges) else x


def _sum_transpose(out_bar, x, **params):
    """x_bar[i] = sum of out_bar[o] over the windows that hold i: again a sum over windows, of out_bar dilated by the
    stride.
    """
    if is_zero(out_bar):
        return [tangent_zero(x)]
    if 0 in out_bar.shape:
        return [lax.full(x.aval.shape, constant(out_bar, 0))]
    if lie_side_by_side(**params):
        return [_repeated(out_bar, x.aval.shape, params["window_dimensions"], [low for low, _ in params["padding"]])]
    pads = []
    for n, o, k, s, (low, _), bd, wd in zip(
        x.aval.shape,
        out_bar.shape,
        params["window_dimensions"],
        params["window_strides"],
        params["padding"],
        params["base_dilation"],
        params["window_dilation"],
    ):
        size, window, span = dilated(n, bd), dilated(k, wd), dilated(o, s)
        before = window - 1 - low
        pads.append((before, size - 1 + window - span - before))
    return [
        reduce_window_sum_p.bind(
            out_bar,
            window_dimensions=params["window_dimensions"],
            window_strides=params["base_dilation"],
            padding=tuple(pads),
            base_dilation=params["window_strides"],
            window_dilation=params["window_dilation"],
        )
    ]


reduce_window_sum_p.jvp, reduce_window_sum_p.transpose = _sum_jvp, _sum_transpose
reduce_window_sum_p.traits |= {"linear"}


def _extremum_jvp(p, select):
    def jvp(primals, tangents, **params):
        out = p.bind(*primals, **params)
        if is_zero(tangents[0]):
            return out, tangent_zero(out)
        return out, select_and_gather_add_p.bind(tangents[0], primals[0], select=select, **params)

    return jvp


reduce_window_max_p.jvp = _extremum_jvp(reduce_window_max_p, "max")
reduce_window_min_p.jvp = _extremum_jvp(reduce_window_min_p, "min")


# ------------------------------------------------------------------------------------------- reduce_window, in general


def _general_shape(*avals, jaxpr, consts=(), **params):
    n = len(avals) // 2
    shape = window_shape("reduce_window", avals[0].shape, **params)
    if any(a.shape != avals[0].shape for a in avals[:n]):
        raise TypeError(f"reduce_window: operands must have one shape, got {[a.shape for a in avals[:n]]}")
    return [ShapedArray(shape, a.dtype) for a in avals[:n]]


def _general_reference(*args, jaxpr, consts=(), **params):
    n = len(args) // 2
    operands, inits = args[:n], args[n:]
    shape = window_shape("reduce_window", operands[0].shape, **params)
    views = [view(x, init, **params) for x, init in zip(operands, inits)]
    # Padding is no element: what it would be combined with stays as it is.
    inside = view(np.ones(operands[0].shape, np.bool_), np.False_, **params)
    acc = [np.broadcast_to(init, shape) for init in inits]
    for k in range(views[0].shape[-1]):
        new = evaluate_reference(jaxpr, *acc, *[view[..., k] for view in views])
        acc = [np.where(inside[..., k], a, b) for a, b in zip(new, acc)]
    return [np.asarray(a, x.dtype) for a, x in zip(acc, operands)]


def _general_emit(ctx):
    """Of elementwise computations as values that loops carry, so that lanes and threads share the windows; of others
    in memory.
    """
    b, params, n = ctx.b, ctx.params, len(ctx.in_avals) // 2
    if not is_elementwise(params["jaxpr"]):
        _general_emit_in_memory(ctx)
        return
    shape = ctx.in_avals[0].shape
    if 0 in ctx.out_avals[0].shape:
        return
    inits = [b.let(ctx.scalar(n + k)) for k in range(n)]
    if 0 in shape:
        for k in range(n):
            ctx.fill(ctx.result(k), inits[k])
        return

    def one(index):
        def step(values, offset):
            place, inside = place_of(ctx, params, index, offset, shape)
            elements = [ctx.load(ctx.operand(k), place) for k in range(n)]
            if inside is not None:
                elements = [b.select(inside, x, init) for x, init in zip(elements, inits)]
            new = scalar_values(b, params["jaxpr"], (*values, *elements))
            if inside is not None:  # padding is no element
                new = [b.select(inside, x, old) for x, old in zip(new, values)]
            return tuple(new)

        for k, value in enumerate(fold(b, params["window_dimensions"], step, tuple(inits))):
            ctx.store(ctx.result(k), index, value)

    loops(b, ctx.out_avals[0].shape, one)


def _general_emit_in_memory(ctx):
    b, params, n = ctx.b, ctx.params, len(ctx.in_avals) // 2
    cells = [ctx.temporary(dtypes.short_name(a.dtype), ()) for a in ctx.in_avals[:n]]
    elements = [ctx.temporary(dtypes.short_name(a.dtype), ()) for a in ctx.in_avals[:n]]
    shape = ctx.in_avals[0].shape

    def one(index):
        for k in range(n):
            ctx.store(cells[k], (), ctx.load(ctx.operand(n + k), ()))

        def step(offset):
            place, inside = place_of(ctx, params, index, offset, shape)
            for k in range(n):
                init = ctx.load(ctx.operand(n + k), ())
                value = init if 0 in shape else ctx.load(ctx.operand(k), place)
                ctx.store(elements[k], (), value if inside is None else b.select(inside, value, init))
            before = [b.let(ctx.load(cell, ())) for cell in cells]
            ctx.subprogram(params["jaxpr"], [*cells, *elements], cells)
            for cell, old in zip(cells, before):  # padding is no element
                kept = old if 0 in shape else b.select(inside, ctx.load(cell, ()), old) if inside is not None else None
                if kept is not None:
                    ctx.store(cell, (), kept)

        loops(b, params["window_dimensions"], step, "sequential")
        for k in range(n):
            ctx.store(ctx.result(k), index, ctx.load(cells[k], ()))

    loops(b, ctx.out_avals[0].shape, one, "sequential")


def _general_batch(args, dims, **params):
    n = len(args) // 2
    if any(d is not None for d in dims[n:]):
        raise NotImplementedError(
            "vmap of lax.reduce_window over init_values is not there; combine them with the result instead"
        )
    size = batch_size(args, dims)
    outs = reduce_window_p.bind(
        *[batch_front(x, d, size) for x, d in zip(args[:n], dims[:n])], *args[n:], **batched_params(params, 0)
    )
    return outs, [0] * n


def _general_tree(args, jaxpr, consts=(), **params):
    """The folds as halvings of all elements of the windows, in operations that can be differentiated."""
    from pullback.core import eval_jaxpr

    n = len(args) // 2
    operands, inits = args[:n], args[n:]
    shape = window_shape("reduce_window", operands[0].shape, **params)
    outside = ~view(np.ones(operands[0].shape, np.bool_), np.False_, **params)
    begin = [lax.broadcast_in_dim(init, shape, ()) for init in inits]
    if outside.size == 0 or outside.all():
        return begin
    rows = [_elements(x, init, shape, **params) for x, init in zip(operands, inits)]
    if not outside.any():
        rows = halved(rows, lambda *pairs: eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *pairs))
        return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *begin, *[lax.squeeze(x, (0,)) for x in rows])

    def combine(*pairs):
        """Where one side is padding the other stays as it is."""
        (*left, no_left), (*right, no_right) = pairs[: n + 1], pairs[n + 1 :]
        both = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *left, *right)
        kept = [lax.select(no_left, b, lax.select(no_right, a, c)) for a, b, c in zip(left, right, both)]
        return [*kept, lax.bitwise_and(no_left, no_right)]

    rows = halved([*rows, np.moveaxis(outside, -1, 0)], combine)
    return combine(*begin, lax.full(shape, np.False_), *[lax.squeeze(x, (0,)) for x in rows])[:n]


def _elements(x, fill, shape, window_dimensions, window_strides, padding, base_dilation, window_dilation):
    """(window flattened, *shape): the elements of all windows."""
    x = lax.pad(x, fill, [(low, high, by - 1) for (low, high), by in zip(padding, base_dilation)])
    x = stacked_windows(x, window_dimensions, window_strides, window_dilation, shape)
    return lax.reshape(x, (math.prod(window_dimensions), *shape))


def _general_jvp(primals, tangents, **params):
    from pullback.transforms.jvp import jvp_flat

    _, slopes = jvp_flat(lambda *args: _general_tree(args, **params), primals, tangents)
    return reduce_window_p.bind(*primals, **params), slopes


reduce_window_p = Primitive(
    "reduce_window",
    doc="Folds over sliding windows by any computation.",
    abstract_eval=_general_shape,
    reference=_general_reference,
    multiple_results=True,
    transpose=NOT_LINEAR,
    batch=_general_batch,
    jvp=_general_jvp,
    lower=Nest(_general_emit),
    samples=Samples(cases=lambda rng: []),
)


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Folds over sliding windows of a pytree of arrays, from init_value, by an associative computation of scalars.

    padding: 'SAME', 'SAME_LOWER', 'VALID' or (low, high) per dimension; only elements of the array count, each window
    begins with init_value. Sums, maxima and minima are recognized. Raises TypeError and ValueError for arguments that
    don't fit.
    """
    from pullback.util import pytree

    flat, treedef = pytree.tree_flatten(operand)
    inits, init_tree = pytree.tree_flatten(init_value)
    if treedef != init_tree:
        raise ValueError(f"reduce_window: operand is a pytree {treedef}, but init_value {init_tree}")
    if not flat:
        raise ValueError("reduce_window: operand is a pytree without leaves")
    flat, inits = as_arrays("reduce_window", *flat), as_arrays("reduce_window", *inits)
    for init in inits:
        if init.shape:
            raise TypeError(f"reduce_window: init_values must be scalars, got {init.aval.short()}")
    ndim = flat[0].ndim

    def ints(values):
        return (1,) * ndim if values is None else tuple([size_of(v) for v in values])

    window, strides, base, dilation = (
        ints(window_dimensions),
        ints(window_strides),
        ints(base_dilation),
        ints(window_dilation),
    )
    for what, values in (("window_dimensions", window), ("window_strides", strides)):
        if any(v < 1 for v in values):
            raise TypeError(f"reduce_window {what} must be positive, got {values}")
    if isinstance(padding, str):  # of the array before base_dilation, as in JAX
        padding = padtype_to_pads(
            flat[0].shape,
            [dilated(k, d) for k, d in zip(window, dilation)],
            strides,
            padding,
        )
    params = {
        "window_dimensions": window,
        "window_strides": strides,
        "padding": tuple([tuple(map(size_of, p)) for p in padding]),
        "base_dilation": base,
        "window_dilation": dilation,
    }
    closed = trace_computation(computation, flat, treedef, "reduce_window")
    monoid = monoid_of(closed)
    inits = of_operands_types("reduce_window", flat, inits, monoid)
    known = {
        "add": (reduce_window_sum_p, zero, lambda x, y: lax.add(x, y)),
        "max": (reduce_window_max_p, lowest, lambda x, y: lax.max(x, y)),
        "min": (reduce_window_min_p, highest, lambda x, y: lax.min(x, y)),
    }
    if flat[0].dtype == np.bool_ and monoid in ("or", "and"):
        monoid = "max" if monoid == "or" else "min"
    if monoid in ("max", "min") and flat[0].dtype.kind == "c":  # ordered by real, then by imaginary parts
        monoid = None
    if monoid in known and len(flat) == 1:
        from pullback.core import Tracer

        primitive, identity, combine = known[monoid]
        init, out = inits[0], flat[0]
        for each in one_by_one(params) if out.dtype.itemsize >= 4 or monoid != "add" else [params]:
            out = primitive.bind(out, **each)
        if isinstance(init, Tracer) or np.asarray(init) != identity(init.dtype):
            out = combine(out, lax.full_like(out, init))
        return pytree.tree_unflatten(treedef, [out])
    outs = reduce_window_p.bind(*flat, *inits, jaxpr=closed, consts=(), **params)
    return pytree.tree_unflatten(treedef, outs)


# Folds that an element costs that is stored between two dimensions, and read again. Measured (Zen 4, two cores): sums
# over 9 x 9 of 211 x 307 elements 78 us at once, 20 so; over 3 x 3 they take as long either way.
_STORED = 4


def one_by_one(params: dict[str, Any]) -> list[dict[str, Any]]:
    """The folds along each dimension, from the last on, of which a fold over windows is made, if they are fewer; the
    first of equal maxima is that of the whole window then, too. Else the fold itself.
    """
    window, strides = params["window_dimensions"], params["window_strides"]
    along = [k for k, n in enumerate(window) if n > 1]
    # How many elements for one of the result each dimension has while those before it are not folded yet.
    many = [math.prod(strides[i] for i in along if i < k) for k in along]
    separate = sum(m * (window[k] + _STORED) for m, k in zip(many, along)) - _STORED
    if len(along) < 2 or separate >= math.prod(window):
        return [params]
    none = {"padding": (0, 0)}
    folds = []
    for k in reversed(range(len(window))):
        own = {name: values[k] for name, values in params.items()}
        if own != {name: none.get(name, 1) for name in params}:
            each = {name: [none.get(name, 1)] * len(window) for name in params}
            for name, value in own.items():
                each[name][k] = value
            folds.append({name: tuple(values) for name, values in each.items()})
    return folds


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape of `reduce_window`."""
    sequences = {
        "operand_shape": operand_shape, "window_dimensions": window_dimensions, "window_strides": window_strides,
        "base_dilation": base_dilation, "window_dilation": window_dilation,
    }  # fmt: skip
    check("reduce_window_shape_tuple", optional(SEQUENCE), **sequences)
    ones = (1,) * len(operand_shape)
    for name, dilation in (("base_dilation", base_dilation), ("window_dilation", window_dilation)):
        if dilation is not None and any(d < 1 for d in dilation):
            raise TypeError(f"reduce_window_shape_tuple: argument '{name}' must be positive, got {dilation}")
    return window_shape(
        "reduce_window",
        operand_shape,
        window_dimensions,
        window_strides,
        padding,
        ones if base_dilation is None else base_dilation,
        ones if window_dilation is None else window_dilation,
    )
