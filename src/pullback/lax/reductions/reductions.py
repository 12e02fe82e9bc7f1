"""Folds over axes: sums, products, extrema, logical folds, positions of extrema, and folds by any associative
function.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.lowering import Nest, Reduction
from pullback.lax.collectives.sharding import out_placed
from pullback.lax.records.families import *
from pullback.lax.records.families import batch_reduction, check_axes, shape_without
from pullback.lax.records.nests import loops
from pullback.lax.records.sums import sum_over

__all__ = [
    "argmax",
    "argmax_p",
    "argmin",
    "argmin_p",
    "reduce",
    "reduce_and",
    "reduce_and_p",
    "reduce_max",
    "reduce_max_p",
    "reduce_min",
    "reduce_min_p",
    "reduce_or",
    "reduce_or_p",
    "reduce_p",
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


def _zero(dtype):
    return np.zeros((), dtype)[()]


def _one(dtype):
    return np.ones((), dtype)[()]


reduce_sum_p = reduction(
    "reduce_sum",
    doc="The sum over axes.",
    accepts=NUMERIC,
    reference=_narrow_safe(sum_over),
    jvp=LINEAR,
    transpose=lambda y_bar, aval, axes, **params: spread(y_bar, axes, aval.shape),
    lower=Reduction("add", _zero),
    samples=Samples(cases=_axis_cases(_normal)),
    traits=("linear", "added by plans"),
)


def _prod_jvp(x_dot, y, x, axes):
    """The product of all but one element, by prefix products from both sides: right also where elements are zero."""
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
    lower=Reduction("mul", _one),
    samples=Samples(cases=_axis_cases(_normal)),
)


def _extremum_jvp(x_dot, y, x, axes):
    """The mean of the tangents at all places where the extremum is reached; NaN where that is NaN, in reverse too."""
    unknown = lax.ne_p.bind(y, y)
    reached = lax.or_p.bind(lax.eq_p.bind(x, spread(y, axes, x.shape)), spread(unknown, axes, x.shape))
    # Chosen, not multiplied, as 0 times an infinite tangent were NaN.
    total = reduce_sum_p.bind(lax.select_n_p.bind(reached, lax.full_like(x_dot, 0), x_dot), axes=axes)
    count = reduce_sum_p.bind(lax.convert_element_type(reached, x.dtype), axes=axes)
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
    )


reduce_max_p = _extremum("reduce_max", "The largest element over axes; NaN if there is one.", np.maximum, "max", lowest)
reduce_min_p = _extremum(
    "reduce_min", "The smallest element over axes; NaN if there is one.", np.minimum, "min", highest
)


def _all_ones(dtype):
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
    )


reduce_and_p = _logical("reduce_and", "Bitwise (for bool: logical) and over axes.", np.bitwise_and, "and", _all_ones)
reduce_or_p = _logical("reduce_or", "Bitwise (for bool: logical) or over axes.", np.bitwise_or, "or", _zero)
reduce_xor_p = _logical(
    "reduce_xor", "Bitwise (for bool: logical) exclusive or over axes.", np.bitwise_xor, "xor", _zero
)


# ------------------------------------------------------------------------------------------------------ argmax, argmin


def _arg_shape(aval, *, axes, index_dtype):
    check_axes(aval, axes)
    if len(axes) != 1:
        raise ValueError(f"argmin and argmax take one axis, got {tuple(axes)}")
    if dtypes.kind_of(index_dtype) not in "iu":
        raise TypeError(f"index_dtype must be an integer type, but got {index_dtype}")
    if aval.shape[axes[0]] == 0:
        raise ValueError(
            f"argmin and argmax require non-empty reduced dimension. operand.shape={aval.shape} axis={axes[0]}"
        )
    if dtypes.kind_of(aval.dtype) not in REAL + BOOL:
        raise TypeError(
            f"argmin and argmax do not accept dtype {aval.dtype}. Accepted dtypes are real numbers and bool."
        )
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
        traits={"reduction"},
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
    return p.bind(operand, axes=(operator.index(axis),), index_dtype=dtypes.canonicalize_dtype(index_dtype))


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


# ------------------------------------------------------------------------------------------ reduce, by any computation

_MONOIDS = {
    "add": ("add", "reduce_sum_p", _zero),
    "mul": ("mul", "reduce_prod_p", _one),
    "max": ("max", "reduce_max_p", lowest),
    "min": ("min", "reduce_min_p", highest),
    "or": ("bitwise_or", "reduce_or_p", _zero),
    "and": ("bitwise_and", "reduce_and_p", _all_ones),
    "xor": ("bitwise_xor", "reduce_xor_p", _zero),
}


def monoid_of(closed: Any) -> str | None:
    """The name of the loop IR operation that a two-argument jaxpr is, if it is a known commutative one."""
    jaxpr = closed.jaxpr
    if len(jaxpr.eqns) != 1 or len(jaxpr.invars) != 2 or len(jaxpr.outvars) != 1:
        return None
    (eqn,) = jaxpr.eqns
    if eqn.outvars[0] is not jaxpr.outvars[0] or {*map(id, eqn.invars)} != {*map(id, jaxpr.invars)}:
        return None
    return eqn.primitive.name if eqn.primitive.name in _MONOIDS else None


def trace_computation(computation: Callable, operands: Sequence[Any], treedef: Any, name: str) -> Any:
    """The closed jaxpr of a binary function on scalars (or pytrees of them), which is traced once for these types;
    TypeError unless it keeps them.
    """
    from pullback.lax.control.bodies import remembered

    avals = tuple([ShapedArray((), x.dtype) for x in operands])
    key = (name, treedef, avals)
    return remembered(computation, key, lambda: _traced(computation, avals, treedef, name), _is_self_contained)


def _is_self_contained(closed: Any, own: bool) -> bool:
    return not closed.effects and not closed.consts


def _traced(computation: Callable, avals: Sequence[ShapedArray], treedef: Any, name: str) -> Any:
    from pullback.core import trace
    from pullback.util import pytree

    n = len(avals)
    found = []

    def flat(*args):
        out = computation(pytree.tree_unflatten(treedef, args[:n]), pytree.tree_unflatten(treedef, args[n:]))
        leaves, out_tree = pytree.tree_flatten(out)
        found.append(out_tree)
        return [as_array(leaf, name) for leaf in leaves]

    closed = trace(flat, [*avals, *avals])
    if found[0] != treedef:
        raise ValueError(
            f"{name}: the computation must return the structure of its operands: {treedef}, got {found[0]}"
        )
    for aval, var in zip(avals, closed.jaxpr.outvars):
        if (var.aval.shape, var.aval.dtype) != ((), aval.dtype):
            raise TypeError(
                f"{name}: the computation must map {aval.short()}, {aval.short()} to {aval.short()}, got "
                f"{var.aval.short()}"
            )
    return closed


def evaluate_reference(closed: Any, *arrays: np.ndarray) -> list[np.ndarray]:
    """A jaxpr of elementwise primitives on NumPy arrays of any one shape: the meaning of a scalar function, mapped."""
    jaxpr = closed.jaxpr
    env = dict(zip(jaxpr.constvars, map(np.asarray, closed.consts)))
    env.update(zip(jaxpr.invars, arrays))

    def read(atom):
        return np.asarray(atom.val, atom.aval.dtype) if hasattr(atom, "val") else env[atom]

    for eqn in jaxpr.eqns:
        inner = next((v for v in eqn.params.values() if hasattr(v, "jaxpr")), None)
        if "elementwise" not in eqn.primitive.traits and inner is None:
            raise NotImplementedError(f"a scalar computation may not contain {eqn.primitive.name}")
        operands = [read(a) for a in eqn.invars]
        outs = (
            evaluate_reference(inner, *operands)
            if inner is not None
            else eqn.primitive.rule("reference")(*operands, **eqn.params)
        )
        env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results or inner is not None else [outs]))
    shape = np.broadcast_shapes(*map(np.shape, arrays))
    return [np.broadcast_to(read(a), shape) for a in jaxpr.outvars]


def _reduce_shape(*avals, computation, jaxpr, dimensions):
    n = len(avals) // 2
    operands = avals[:n]
    if any(a.shape != operands[0].shape for a in operands):
        raise TypeError(f"reduce: operands must have one shape, got {', '.join(a.short() for a in operands)}")
    check_axes(operands[0], dimensions)
    return [ShapedArray(shape_without(a.shape, dimensions), a.dtype) for a in operands]


def _reduce_reference(*args, computation, jaxpr, dimensions):
    n = len(args) // 2
    operands, inits = args[:n], args[n:]
    ndim = operands[0].ndim
    kept = [i for i in range(ndim) if i not in dimensions]
    shape = tuple(operands[0].shape[i] for i in kept)
    rows = [
        np.transpose(x, (*dimensions, *kept)).reshape(math.prod([x.shape[d] for d in dimensions]), *shape)
        for x in operands
    ]
    acc = [np.broadcast_to(init, shape) for init in inits]
    for k in range(rows[0].shape[0]):
        acc = evaluate_reference(jaxpr, *acc, *[x[k] for x in rows])
    return [np.asarray(a, x.dtype) for a, x in zip(acc, operands)]


def _reduce_emit(ctx):
    b, jaxpr, dimensions = ctx.b, ctx.params["jaxpr"], ctx.params["dimensions"]
    n = len(ctx.in_avals) // 2
    shape = ctx.in_avals[0].shape
    kept = [i for i in range(len(shape)) if i not in dimensions]
    scalars = [ctx.temporary(dtypes.short_name(a.dtype), ()) for a in ctx.in_avals[:n]]
    elements = [ctx.temporary(dtypes.short_name(a.dtype), ()) for a in ctx.in_avals[:n]]

    def row(outer):
        for k in range(n):
            ctx.store(scalars[k], (), ctx.load(ctx.operand(n + k), ()))

        def step(inner):
            index = [None] * len(shape)
            for i, v in zip((*kept, *dimensions), (*outer, *inner)):
                index[i] = v
            for k in range(n):
                ctx.store(elements[k], (), ctx.load(ctx.operand(k), tuple(index)))
            ctx.subprogram(jaxpr, [*scalars, *elements], scalars)

        loops(b, tuple(shape[i] for i in dimensions), step, "sequential")
        for k in range(n):
            ctx.store(ctx.result(k), outer, ctx.load(scalars[k], ()))

    loops(b, tuple(shape[i] for i in kept), row, "sequential")


def _reduce_batch(args, dims, computation, jaxpr, dimensions):
    n = len(args) // 2
    if any(d is not None for d in dims[n:]):
        raise NotImplementedError(
            "vmap of lax.reduce over init_values is not there; combine them with the result instead"
        )
    size = batch_size(args, dims)
    operands = [batch_front(x, d, size) for x, d in zip(args[:n], dims[:n])]
    outs = reduce_p.bind(
        *operands, *args[n:], computation=computation, jaxpr=jaxpr, dimensions=tuple(d + 1 for d in dimensions)
    )
    return outs, [0] * n


def _reduce_tree(args, jaxpr, dimensions):
    """The fold as halvings in operations that can be differentiated; the computation is elementwise on arrays too."""
    from pullback.core import eval_jaxpr

    n = len(args) // 2
    operands, inits = args[:n], args[n:]
    ndim = operands[0].ndim
    kept = [i for i in range(ndim) if i not in dimensions]
    shape = tuple(operands[0].shape[i] for i in kept)
    rows = [
        lax.reshape(lax.transpose(x, (*dimensions, *kept)), (math.prod(x.shape[d] for d in dimensions), *shape))
        for x in operands
    ]
    size = rows[0].shape[0]
    while size > 1:
        half = size // 2
        left = [lax.slice_in_dim(x, 0, 2 * half, 2) for x in rows]
        right = [lax.slice_in_dim(x, 1, 2 * half, 2) for x in rows]
        merged = eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *left, *right)
        rows = (
            merged
            if size % 2 == 0
            else [lax.concatenate([m, lax.slice_in_dim(x, size - 1, size)], 0) for m, x in zip(merged, rows)]
        )
        size = rows[0].shape[0]
    inits = [lax.broadcast_in_dim(i, shape, ()) for i in inits]
    if size == 0:
        return inits
    return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *inits, *[lax.squeeze(x, (0,)) for x in rows])


def _reduce_jvp(primals, tangents, computation, jaxpr, dimensions):
    from pullback.transforms.jvp import jvp_flat

    return jvp_flat(lambda *args: _reduce_tree(args, jaxpr, dimensions), primals, tangents)


reduce_p = Primitive(
    "reduce",
    doc="Fold over dimensions by any associative function.",
    abstract_eval=_reduce_shape,
    reference=_reduce_reference,
    jvp=_reduce_jvp,
    transpose=NOT_LINEAR,
    batch=_reduce_batch,
    lower=Nest(_reduce_emit),
    multiple_results=True,
    traits={"reduction"},
    samples=Samples(cases=lambda rng: []),
)


def reduce(
    operands: Any, init_values: Any, computation: Callable, dimensions: Sequence[int], out_sharding: Any = None
) -> Any:
    """Fold of a pytree of arrays over dimensions by an associative `computation(a, b)` of scalars, from init_values.

    Sums, products, extrema and logical folds are recognized. Raises ValueError for differing structures, TypeError for
    differing dtypes or shapes, and for a computation that does not keep the types.
    """
    from pullback.util import pytree

    flat, treedef = pytree.tree_flatten(operands)
    inits, init_tree = pytree.tree_flatten(init_values)
    if treedef != init_tree:
        raise ValueError(f"Operands must have the same tree structure as init_values: {treedef} vs. {init_tree}")
    if not flat:
        raise ValueError("reduce must have at least one operand")
    flat = as_arrays("reduce", *flat)
    inits = as_arrays("reduce", *inits)
    for init in inits:
        if init.shape:
            raise ValueError(f"reduce found non-scalar initial value: {init.shape}")
    dimensions = tuple(operator.index(d) for d in dimensions)
    closed = trace_computation(computation, flat, treedef, "reduce")
    monoid = monoid_of(closed)
    inits = of_operands_types("reduce", flat, inits, monoid)
    if monoid is not None and dtypes.kind_of(flat[0].dtype) != "c":
        combine, primitive, _ = _MONOIDS[monoid]
        folded = getattr(lax, primitive).bind(flat[0], axes=dimensions)
        outs = [_with_init(monoid, combine, folded, inits[0])]
    else:
        outs = reduce_p.bind(*flat, *inits, computation=computation, jaxpr=closed, dimensions=dimensions)
    return pytree.tree_unflatten(treedef, [out_placed("reduce", out, out_sharding) for out in outs])


def of_operands_types(name, operands, inits, monoid):
    """The start values, which must have the operands' dtypes; TypeError else.

    One that is known to be neutral in its own dtype may have any: the fold starts at nothing.
    """
    found = []
    for x, init in zip(operands, inits):
        if init.dtype != x.dtype:
            if monoid is None or not _is_neutral(monoid, init):
                raise TypeError(
                    f"{name}: init_values must have the dtypes of the operands, got {init.dtype} for {x.dtype}"
                )
            init = constant(x, _MONOIDS[monoid][2](x.dtype))
        found.append(init)
    return found


def _is_neutral(monoid, init):
    from pullback.core import Tracer

    return not isinstance(init, Tracer) and bool(np.asarray(init) == _MONOIDS[monoid][2](init.dtype))


def _with_init(monoid, combine, folded, init):
    """The fold, started at `init`: nothing to do where that is known to be the neutral element."""
    if _is_neutral(monoid, init):
        return folded
    return getattr(lax, combine)(folded, init)
